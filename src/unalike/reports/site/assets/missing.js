"use strict";
// Table cells without a result of ours, and runs that failed, with the reasons.

const missing = (() => {
  function cellsTable(group) {
    const copyButton = ({ sweep, row, column }) => command.copyButton(sweep, `${row} on ${column}`);
    const columns = [
      table.texts("table", "table"),
      table.texts("row", "method"),
      table.texts("column", "dataset"),
      table.numbers("published", "published", format.score),
      {
        key: "command",
        label: "command",
        show: (cell) => (cell.sweep ? copyButton(cell) : "–"),
      },
    ];
    return table.of(`Cells: ${group.reason}`, columns, group.cells);
  }

  function summary(text, count) {
    return element("summary", {}, `${text} `, element("small", {}, count));
  }

  /** A reason with its cells, which are drawn when it is first opened. */
  function reasonDetails(group) {
    const node = element(
      "details",
      {},
      summary(group.reason, format.count(group.cells.length, "cell")),
    );
    const fill = () => node.append(table.scroller(group.reason, cellsTable(group)));
    node.addEventListener("toggle", fill, { once: true });
    return node;
  }

  function failureDetails({ method, dataset, error, runs }) {
    const lastLine = error.trim().split("\n").at(-1);
    return element(
      "details",
      {},
      summary(`${method} on ${dataset}: ${lastLine}`, format.count(runs, "run")),
      element("pre", { tabindex: 0 }, error),
      note("A sweep skips failed runs; with --retry it runs them again."),
    );
  }

  function draw(site) {
    const numMissing = site.missing.reduce((sum, group) => sum + group.cells.length, 0);
    const numFailed = site.failed_runs.reduce((sum, group) => sum + group.runs, 0);
    return [
      element("h2", {}, numFailed ? `${format.count(numFailed, "run")} failed` : "No run failed"),
      ...site.failed_runs.map(failureDetails),
      element("h2", {}, `${format.count(numMissing, "cell")} without a result of ours`),
      ...site.missing.map(reasonDetails),
    ];
  }

  return { draw };
})();
