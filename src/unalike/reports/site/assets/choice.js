"use strict";
// Choice: a labelled list to choose one entry from.

const choice = (() => {
  function pick(id, label, entries, chosen, change) {
    const onchange = (event) => change(event.target.value);
    const options = entries.map(({ value, text }) =>
      element("option", { value, selected: value === chosen }, text),
    );
    return element(
      "label",
      { class: "choice" },
      label,
      element("select", { id, onchange }, options),
    );
  }

  const plain = (values) => values.map((value) => ({ value, text: value }));

  function orAll(values, all) {
    return [{ value: "", text: all }, ...plain([...new Set(values)].sort())];
  }

  return { pick, plain, orAll };
})();
