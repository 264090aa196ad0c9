"use strict";
// Missing: cells without a number of ours, and runs that failed, with the reasons.

const missing = (() => {
  function cells(group) {
    const columns = [
      { key: "table", label: "table", value: (one) => one.table, first: "ascending" },
      { key: "row", label: "method", value: (one) => one.row, first: "ascending" },
      { key: "column", label: "dataset", value: (one) => one.column, first: "ascending" },
      { key: "printed", label: "printed", value: (one) => one.printed, show: (one) => words.score(one.printed), kind: "number" },
      { key: "command", label: "command", show: (one) => (one.sweep ? command.copyButton(one.sweep, `${one.row} on ${one.column}`) : "–") },
    ];
    return table.of(`Cells: ${group.reason}`, columns, group.cells);
  }

  function reason(group) {
    const made = element("details", {}, element("summary", {}, `${group.reason} `, element("small", {}, words.count(group.cells.length, "cell"))));
    made.addEventListener("toggle", () => {
      if (made.open && made.children.length === 1) made.append(table.scroller(group.reason, cells(group)));
    });
    return made;
  }

  function failure(one) {
    const last = one.error.trim().split("\n").at(-1);
    const head = `${one.method} on ${one.dataset}: ${last} `;
    return element("details", {},
      element("summary", {}, head, element("small", {}, words.count(one.runs, "run"))),
      element("pre", { tabindex: 0 }, one.error),
      element("p", { class: "quiet" }, "A sweep leaves failed runs alone; with --retry it tries them again."));
  }

  function draw(site) {
    const empty = site.missing.reduce((sum, group) => sum + group.cells.length, 0);
    const failed = site.failures.reduce((sum, one) => sum + one.runs, 0);
    return [
      element("h2", {}, failed ? `${words.count(failed, "run")} failed` : "No run failed"),
      ...site.failures.map(failure),
      element("h2", {}, `${words.count(empty, "cell")} without a number of ours`),
      ...site.missing.map(reason),
    ];
  }

  return { draw };
})();
