"use strict";
// Leaderboard: methods and datasets, ours and the printed numbers.

const leaderboard = (() => {
  const state = { table: null, family: "", batching: "", order: {} };

  const cellsOf = (told) => told.cells.flat().filter(Boolean);
  const numOurs = (told) => cellsOf(told).filter(score.isOurs).length;

  /** The chosen table; at first the fullest of the paper's, or all that was run. */
  function chosen(site) {
    const share = (told) => numOurs(told) / (cellsOf(told).length || 1);
    const all = site.tables.at(-1);
    const papers = site.tables.slice(0, -1).filter(numOurs);
    const usual = papers.reduce(
      (best, one) => (share(one) > share(best) ? one : best),
      papers[0] ?? all,
    );
    return site.tables.find(({ name }) => name === state.table) ?? usual;
  }

  function visible(told) {
    const fits = (row) =>
      ["family", "batching"].every((name) => !state[name] || row[name] === state[name]);
    return [...told.rows.keys()].filter((place) => fits(told.rows[place]));
  }

  function ordered(told, places) {
    const { column, direction } = state.order;
    const number = (place) => told.cells[place][column] && score.value(told.cells[place][column]);
    const value = column === "method" ? (place) => told.rows[place].label : number;
    return column === undefined ? places : table.sorted(places, value, direction);
  }

  function entry(told, place, column, best) {
    const found = told.cells[place][column];
    if (!found) return element("td", {});
    const isOurs = score.isOurs(found);
    const beside =
      isOurs && words.there(found.printed_mean) ? words.score(found.printed_mean) : null;
    const button = element(
      "button",
      { type: "button", id: `cell-${place}-${column}`, onclick: () => open(told, place, column) },
      element("span", { class: isOurs ? "ours" : "theirs" }, words.score(score.value(found))),
      beside && element("small", {}, element("span", { class: "unseen" }, "printed "), beside),
    );
    const kinds = ["number", found.shaded && "shaded", best === place && "best"];
    return element(
      "td",
      { class: kinds.filter(Boolean).join(" ") },
      tip.on(button, score.lines(found)),
    );
  }

  function open(told, place, column) {
    cell.open({
      row: told.rows[place],
      column: told.columns[column],
      cell: told.cells[place][column],
    });
  }

  function rowHeading(row) {
    const under = row.batching === "full" ? row.family : `${row.family}, ${row.batching}`;
    return element("th", { scope: "row" }, row.label, element("small", {}, under));
  }

  function body(told, places, shown) {
    const best = told.columns.map((_, column) => winners.ranking(shown, column)[0]);
    return element(
      "tbody",
      {},
      ordered(told, places).map((place) =>
        element(
          "tr",
          {},
          rowHeading(told.rows[place]),
          told.columns.map((_, column) => entry(told, place, column, best[column])),
        ),
      ),
    );
  }

  function head(told) {
    const columns = [
      { key: "method", label: "method", first: "ascending" },
      ...told.columns.map(({ label, metric }, key) => ({
        key,
        label,
        under: metric,
        kind: "number",
      })),
    ];
    const change = (order) => {
      state.order = order;
      page.redraw();
    };
    return element(
      "thead",
      {},
      element(
        "tr",
        {},
        columns.map((one) => table.heading(one, state.order, change)),
      ),
    );
  }

  function legend(told) {
    const shading = told.shaded === "none" ? "" : ` Shaded: ${told.shaded}.`;
    return `${told.title}: mean test score over splits, in percent.${shading}`;
  }

  function controls(site, told) {
    const set = (name) => (value) => {
      state[name] = value;
      page.redraw();
    };
    const entries = site.tables.map((one) => ({
      value: one.name,
      text: `${one.title} (${numOurs(one)} of ${cellsOf(one).length} ours)`,
    }));
    const choose = (name) => {
      state.table = name;
      state.order = {};
      state.family = "";
      state.batching = "";
      page.redraw();
    };
    return element(
      "div",
      { class: "controls" },
      choice.pick("choose-table", "Table", entries, told.name, choose),
      choice.pick(
        "choose-family",
        "Family",
        choice.orAll(
          told.rows.map((row) => row.family),
          "all families",
        ),
        state.family,
        set("family"),
      ),
      choice.pick(
        "choose-batching",
        "Batching",
        choice.orAll(
          told.rows.map((row) => row.batching),
          "all batchings",
        ),
        state.batching,
        set("batching"),
      ),
    );
  }

  function draw(site) {
    const told = chosen(site);
    const places = visible(told);
    const shown = { ...told, visible: new Set(places) };
    const grid = element(
      "table",
      { class: "leaderboard", "aria-labelledby": "legend" },
      head(told),
      body(told, places, shown),
    );
    return [
      controls(site, told),
      winners.draw(shown, (place, column) => open(told, place, column)),
      element("p", { class: "quiet", id: "legend" }, legend(told)),
      table.scroller(told.title, grid),
      quiet(
        "Large: ours, of the setting with the best mean validation score. ",
        cellsOf(told).some((one) => words.there(one.printed_mean))
          ? "Grey: what the paper prints. "
          : "",
        "Every number opens the runs and the command behind it.",
      ),
    ];
  }

  return { draw };
})();
