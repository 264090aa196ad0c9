"use strict";
// Test scores against the time and the memory of a run.

const cost = (() => {
  const state = { dataset: null };

  /** The cells of a column, each with its row and column. */
  function entries(content, column) {
    return content.rows
      .map((row, index) => ({ row, cell: content.cells[index][column] }))
      .filter(({ cell }) => cell)
      .map(({ row, cell }) => ({
        ...cell,
        method: row.label,
        family: row.family,
        row,
        column: content.columns[column],
        cell,
      }));
  }

  function scatter(name, all, key, label, toText) {
    const rows = all
      .filter((entry) => entry[key] > 0)
      .map(({ cell, method, family, mean, std, device, [key]: value }) => ({
        method,
        family,
        mean,
        low: mean - (std ?? 0),
        high: mean + (std ?? 0),
        [key]: value,
        lines: [method, ...cellScore.lines(cell), toText(value), device],
      }));
    return charts.figure(
      name,
      { rows },
      { caption: `Test score by ${label}; up and to the left is better` },
    );
  }

  /** The families of methods in the colours of their dots. */
  function legend(families, shown) {
    return element(
      "ul",
      { class: "legend" },
      families.map((family, index) =>
        shown.includes(family) ? element("li", { class: `family-${index}` }, family) : null,
      ),
    );
  }

  function costTable(rows) {
    const open = (entry) =>
      element(
        "button",
        { type: "button", class: "link", onclick: () => cellDialog.open(entry) },
        entry.method,
      );
    const columns = [
      { ...table.texts("method", "method"), show: open },
      {
        ...table.numbers("mean", "test score"),
        show: ({ mean, std }) => format.meanStd(mean, std),
      },
      table.numbers("seconds", "time of a run", format.seconds, "ascending"),
      table.numbers("memory_mb", "peak memory", format.memory, "ascending"),
      table.texts("device", "device"),
    ];
    const order = { column: "mean", direction: "descending" };
    return table.of("The same in numbers", columns, rows, { order });
  }

  function draw(site) {
    const content = site.tables.at(-1);
    if (!content.columns.length) return [element("p", {}, "There are no runs yet.")];
    const sizes = content.columns.map((_, column) => entries(content, column).length);
    const labels = content.columns.map(({ label }) => label);
    const largest = sizes.indexOf(Math.max(...sizes));
    const column = Math.max(labels.indexOf(state.dataset ?? labels[largest]), 0);
    const rows = entries(content, column);
    const change = (value) => {
      state.dataset = value;
      page.redraw();
    };
    return [
      element(
        "div",
        { class: "controls" },
        select("select-dataset", "Dataset", labels, labels[column], change),
      ),
      legend(
        site.families,
        rows.map(({ family }) => family),
      ),
      element(
        "div",
        { class: "pair" },
        scatter("cost_time", rows, "seconds", "time of a run", format.seconds),
        scatter("cost_memory", rows, "memory_mb", "peak memory", format.memory),
      ),
      note(
        "Runs of equal shape train together as one stack; the time of a run is its part of the ",
        "stack's time. Bars are one standard deviation over splits. Compare within one device.",
      ),
      table.scroller("Scores, time and memory", costTable(rows)),
    ];
  }

  return { draw };
})();
