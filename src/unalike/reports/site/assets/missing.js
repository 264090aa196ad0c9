"use strict";
// Missing: cells without a number of ours, and runs that failed, with the reasons.

const missing = (() => {
  function cells(group) {
    const copy = (one) => command.copyButton(one.sweep, `${one.row} on ${one.column}`);
    const columns = [
      table.texts("table", "table"),
      table.texts("row", "method"),
      table.texts("column", "dataset"),
      table.numbers("printed", "printed", words.score),
      { key: "command", label: "command", show: (one) => (one.sweep ? copy(one) : "–") },
    ];
    return table.of(`Cells: ${group.reason}`, columns, group.cells);
  }

  function summary(text, count) {
    return element("summary", {}, `${text} `, element("small", {}, count));
  }

  /** A reason that unfolds to its cells, which are drawn when it first does. */
  function reason(group) {
    const head = summary(group.reason, words.count(group.cells.length, "cell"));
    const made = element("details", {}, head);
    const fill = () => made.append(table.scroller(group.reason, cells(group)));
    made.addEventListener("toggle", fill, { once: true });
    return made;
  }

  function failure(one) {
    const last = one.error.trim().split("\n").at(-1);
    return element(
      "details",
      {},
      summary(`${one.method} on ${one.dataset}: ${last}`, words.count(one.runs, "run")),
      element("pre", { tabindex: 0 }, one.error),
      quiet("A sweep leaves failed runs alone; with --retry it tries them again."),
    );
  }

  function draw(site) {
    const empty = site.missing.reduce((sum, group) => sum + group.cells.length, 0);
    const failed = site.failures.reduce((sum, one) => sum + one.runs, 0);
    return [
      element("h2", {}, failed ? `${words.count(failed, "run")} failed` : "No run failed"),
      ...site.failures.map(failure),
      element("h2", {}, `${words.count(empty, "cell")} of the paper without a number of ours`),
      ...site.missing.map(reason),
    ];
  }

  return { draw };
})();
