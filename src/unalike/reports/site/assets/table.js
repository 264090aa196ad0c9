"use strict";
// Table: rows of facts under headings; a heading sorts by its column.

const table = (() => {
  const FLIP = { ascending: "descending", descending: "ascending" };

  /** Sort rows by what a column says of them; what says nothing comes last. */
  function sorted(rows, value, direction) {
    const sign = direction === "ascending" ? 1 : -1;
    const compare = (a, b) =>
      typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
    return rows
      .map((row) => ({ row, value: value(row) }))
      .sort((a, b) => {
        if (!words.there(a.value) || !words.there(b.value)) {
          return words.there(b.value) - words.there(a.value);
        }
        return sign * compare(a.value, b.value);
      })
      .map(({ row }) => row);
  }

  /** A column of what rows hold under a key, shown in some words. */
  function column(key, label, shown, first, kind) {
    const show = (row) => (words.there(row[key]) ? shown(row[key]) : "–");
    return { key, label, value: (row) => row[key], show, first, kind };
  }

  const numbers = (key, label, shown = String, first = "descending") =>
    column(key, label, shown, first, "number");

  const texts = (key, label, shown = String) => column(key, label, shown, "ascending");

  /** A heading that sorts; `order` holds the sorted column and its direction. */
  function heading(column, order, change) {
    const is = order.column === column.key;
    const first = column.first ?? "descending";
    const direction = is ? FLIP[order.direction] : first;
    const onclick = () => change({ column: column.key, direction });
    const attributes = { type: "button", id: `sort-${column.id ?? column.key}`, onclick };
    const button = element(
      "button",
      attributes,
      column.label,
      column.under && element("small", {}, column.under),
    );
    const sort = is ? order.direction : "none";
    return element("th", { scope: "col", class: column.kind, "aria-sort": sort }, button);
  }

  /** A table of plain facts that sorts itself. */
  function of(caption, columns, rows, { order = {}, limit = Infinity } = {}) {
    const body = element("tbody");
    const head = element("tr");
    const draw = (by) => {
      const column = columns.find(({ key }) => key === by.column);
      const shown = column ? sorted(rows, column.value, by.direction) : rows;
      head.replaceChildren(
        ...columns.map((one) =>
          one.value
            ? heading({ ...one, id: `${caption}-${one.key}` }, by, (next) => {
                draw(next);
                refocus(caption, next);
              })
            : element("th", { scope: "col" }, one.label),
        ),
      );
      body.replaceChildren(...shown.slice(0, limit).map((row) => line(columns, row)));
    };
    draw(order);
    return element("table", {}, element("caption", {}, caption), element("thead", {}, head), body);
  }

  function refocus(caption, { column }) {
    document.getElementById(`sort-${caption}-${column}`)?.focus();
  }

  function line(columns, row) {
    return element(
      "tr",
      {},
      columns.map((column, place) => {
        const shown = column.show ? column.show(row) : column.value(row);
        const kind = place ? "td" : "th";
        return element(
          kind,
          { class: column.kind, scope: place ? null : "row" },
          ...[shown].flat(),
        );
      }),
    );
  }

  /** What may be wider than the screen scrolls by itself, also by keys. */
  function scroller(label, child) {
    return element(
      "div",
      { class: "scroller", role: "region", tabindex: 0, "aria-label": label },
      child,
    );
  }

  return { of, numbers, texts, sorted, heading, scroller };
})();
