"use strict";
// The leaderboard: scores of methods on datasets, and the best method of each dataset.

const leaderboard = (() => {
  const state = { table: null, family: "", batching: "", order: {} };

  const presentCells = (content) => content.cells.flat().filter(Boolean);
  const numOurs = (content) => presentCells(content).filter(cellScore.isOurs).length;

  function selectedTable(site) {
    const named = (wanted) => site.tables.find(({ name }) => name === wanted);
    return named(state.table) ?? named(site.opening_table);
  }

  function visibleRows(content) {
    const matches = (row) =>
      ["family", "batching"].every((key) => !state[key] || row[key] === state[key]);
    return [...content.rows.keys()].filter((row) => matches(content.rows[row]));
  }

  function sortedRows(content, rows) {
    const { column, direction } = state.order;
    const score = (row) =>
      content.cells[row][column] && cellScore.value(content.cells[row][column]);
    const value = column === "method" ? (row) => content.rows[row].label : score;
    return column === undefined ? rows : table.sorted(rows, value, direction);
  }

  /** The visible rows of a column that have a number, the best first. */
  function ranking(content, visible, column) {
    return content.rankings[column].filter((row) => visible.has(row));
  }

  function open(content, row, column) {
    cellDialog.open({
      row: content.rows[row],
      column: content.columns[column],
      cell: content.cells[row][column],
    });
  }

  function cell(content, row, column, best) {
    const entry = content.cells[row][column];
    if (!entry) return element("td", {});
    const isOurs = cellScore.isOurs(entry);
    const published =
      isOurs && format.isPresent(entry.printed_mean) ? format.score(entry.printed_mean) : null;
    const hidden = element("span", { class: "visually-hidden" }, "published ");
    const button = element(
      "button",
      {
        type: "button",
        id: `cell-${row}-${column}`,
        onclick: () => open(content, row, column),
      },
      element(
        "span",
        { class: isOurs ? "ours" : "published" },
        format.score(cellScore.value(entry)),
      ),
      published && element("small", {}, hidden, published),
    );
    const classes = ["number", entry.shaded && "shaded", best === row && "best"];
    return element(
      "td",
      { class: classes.filter(Boolean).join(" ") },
      tooltip.attach(button, cellScore.lines(entry)),
    );
  }

  function rowHeading(row) {
    const subtitle = row.batching === "full" ? row.family : `${row.family}, ${row.batching}`;
    return element("th", { scope: "row" }, row.label, element("small", {}, subtitle));
  }

  function body(content, rows) {
    const visible = new Set(rows);
    const best = content.columns.map((_, column) => ranking(content, visible, column)[0]);
    return element(
      "tbody",
      {},
      sortedRows(content, rows).map((row) =>
        element(
          "tr",
          {},
          rowHeading(content.rows[row]),
          content.columns.map((_, column) => cell(content, row, column, best[column])),
        ),
      ),
    );
  }

  function head(content) {
    const columns = [
      { key: "method", label: "method", first: "ascending" },
      ...content.columns.map(({ label, metric }, key) => ({
        key,
        label,
        subtitle: metric,
        kind: "number",
      })),
    ];
    const change = (order) => {
      state.order = order;
      page.redraw();
    };
    const headings = columns.map((column) => table.heading(column, state.order, change));
    return element("thead", {}, element("tr", {}, headings));
  }

  /** A dot for each method on a line from the lowest to the highest score. */
  function scoreStrip(scores) {
    const low = Math.min(...scores);
    const range = Math.max(...scores) - low || 1;
    const dots = scores.map((score, index) => {
      const left = `left: ${3 + (94 * (score - low)) / range}%`;
      return element("i", { class: index ? "other" : "best", style: left });
    });
    return element("span", { class: "strip", "aria-hidden": "true" }, dots.reverse());
  }

  function advantage(content, column, [best, second]) {
    if (second === undefined) return "the only one";
    const cell = content.cells[best][column];
    const difference = cellScore.value(cell) - cellScore.value(content.cells[second][column]);
    const close = difference <= cellScore.std(cell) ? ", within one std" : "";
    const other = content.rows[second].label;
    return difference ? `${format.signed(difference)} over ${other}${close}` : `equal to ${other}`;
  }

  /** The best method of a dataset. */
  function winner(content, visible, column) {
    const rows = ranking(content, visible, column);
    if (!rows.length) return null;
    const best = content.cells[rows[0]][column];
    return element(
      "li",
      {},
      element(
        "button",
        { type: "button", onclick: () => open(content, rows[0], column) },
        element("span", { class: "dataset" }, content.columns[column].label),
        element("strong", {}, content.rows[rows[0]].label),
        element(
          "span",
          { class: "value" },
          format.score(cellScore.value(best)),
          cellScore.isOurs(best) ? null : element("small", {}, " published"),
        ),
        scoreStrip(rows.map((row) => cellScore.value(content.cells[row][column]))),
        element("span", { class: "advantage" }, advantage(content, column, rows)),
      ),
    );
  }

  function winners(content, visible) {
    const items = content.columns.map((_, column) => winner(content, visible, column));
    return element("ul", { class: "winners", "aria-label": "The best on each dataset" }, items);
  }

  function controls(site, content) {
    const filter = (key, label, all) =>
      select(
        `select-${key}`,
        label,
        [{ value: "", text: all }, ...new Set(content.rows.map((row) => row[key]).sort())],
        state[key],
        (value) => {
          state[key] = value;
          page.redraw();
        },
      );
    const tables = site.tables.map((entry) => ({
      value: entry.name,
      text: `${entry.title} (${numOurs(entry)} of ${presentCells(entry).length} ours)`,
    }));
    const change = (name) => {
      Object.assign(state, { table: name, order: {}, family: "", batching: "" });
      page.redraw();
    };
    return element(
      "div",
      { class: "controls" },
      select("select-table", "Table", tables, content.name, change),
      filter("family", "Family", "all families"),
      filter("batching", "Batching", "all batchings"),
    );
  }

  function draw(site) {
    const content = selectedTable(site);
    const rows = visibleRows(content);
    const shading = content.shaded === "none" ? "" : ` Shaded: ${content.shaded}.`;
    const legend = `${content.title}: mean test score over splits, in percent.${shading}`;
    const hasPublished = presentCells(content).some((cell) => format.isPresent(cell.printed_mean));
    return [
      controls(site, content),
      winners(content, new Set(rows)),
      element("p", { class: "muted", id: "legend" }, legend),
      table.scroller(
        content.title,
        element(
          "table",
          { class: "leaderboard", "aria-labelledby": "legend" },
          head(content),
          body(content, rows),
        ),
      ),
      note(
        "Large: ours, of the configuration with the best mean validation score. ",
        hasPublished ? "Grey: published in the paper. " : "",
        "Every number opens the runs and the command behind it.",
      ),
    ];
  }

  return { draw };
})();
