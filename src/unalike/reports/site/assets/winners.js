"use strict";
// Winners: which method is the best on each dataset, and by how much.

const winners = (() => {
  const SPACE = "http://www.w3.org/2000/svg";

  /** The rows that are shown, the best first, of one column. */
  function ranking(shown, column) {
    return shown.rankings[column].filter((row) => shown.visible.has(row));
  }

  function dot(share, best) {
    const made = document.createElementNS(SPACE, "circle");
    made.setAttribute("cx", `${3 + 94 * share}%`);
    made.setAttribute("cy", "50%");
    made.setAttribute("r", best ? 4.5 : 3);
    made.setAttribute("class", best ? "best" : "rest");
    return made;
  }

  /** Every method as a dot on a line from the worst to the best. */
  function strip(values) {
    const made = document.createElementNS(SPACE, "svg");
    made.setAttribute("class", "strip");
    made.setAttribute("aria-hidden", "true");
    const low = Math.min(...values);
    const range = Math.max(...values) - low || 1;
    made.append(...values.map((one, place) => dot((one - low) / range, place === 0)).reverse());
    return made;
  }

  function lead(shown, column, [best, next]) {
    if (next === undefined) return "the only one";
    const first = shown.cells[best][column];
    const by = score.value(first) - score.value(shown.cells[next][column]);
    const close = by <= score.spread(first) ? ", within its spread" : "";
    const other = shown.rows[next].label;
    return by ? `${words.signed(by)} over ${other}${close}` : `level with ${other}`;
  }

  function card(shown, column, open) {
    const places = ranking(shown, column);
    if (!places.length) return null;
    const best = shown.cells[places[0]][column];
    return element(
      "li",
      {},
      element(
        "button",
        { type: "button", onclick: () => open(places[0], column) },
        element("span", { class: "dataset" }, shown.columns[column].label),
        element("strong", {}, shown.rows[places[0]].label),
        element(
          "span",
          { class: "value" },
          words.score(score.value(best)),
          score.isOurs(best) ? null : element("small", {}, " printed"),
        ),
        strip(places.map((row) => score.value(shown.cells[row][column]))),
        element("span", { class: "lead" }, lead(shown, column, places)),
      ),
    );
  }

  function draw(shown, open) {
    const cards = shown.columns.map((_, column) => card(shown, column, open));
    return element("ul", { class: "winners", "aria-label": "The best on each dataset" }, cards);
  }

  return { draw, ranking };
})();
