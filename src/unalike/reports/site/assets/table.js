"use strict";
// Tables that are sorted by clicking a column heading.

const table = (() => {
  const FLIP = { ascending: "descending", descending: "ascending" };

  /** Rows sorted by a value; rows without one come last. */
  function sorted(rows, value, direction) {
    const sign = direction === "ascending" ? 1 : -1;
    const compare = (a, b) =>
      typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
    return rows
      .map((row) => ({ row, value: value(row) }))
      .sort((a, b) => {
        if (!format.isPresent(a.value) || !format.isPresent(b.value)) {
          return format.isPresent(b.value) - format.isPresent(a.value);
        }
        return sign * compare(a.value, b.value);
      })
      .map(({ row }) => row);
  }

  /** A column that shows the values of one key. */
  function column(key, label, toText, first, kind) {
    const show = (row) => (format.isPresent(row[key]) ? toText(row[key]) : "–");
    return { key, label, value: (row) => row[key], show, first, kind };
  }

  const numbers = (key, label, toText = String, first = "descending") =>
    column(key, label, toText, first, "number");

  const texts = (key, label, toText = String) => column(key, label, toText, "ascending");

  /** A heading that sorts; `order` holds the key of the sorted column and its direction. */
  function heading(column, order, change) {
    const isSorted = order.column === column.key;
    const first = column.first ?? "descending";
    const direction = isSorted ? FLIP[order.direction] : first;
    const onclick = () => change({ column: column.key, direction });
    const attributes = { type: "button", id: `sort-${column.id ?? column.key}`, onclick };
    const button = element(
      "button",
      attributes,
      column.label,
      column.subtitle && element("small", {}, column.subtitle),
    );
    const sort = isSorted ? order.direction : "none";
    return element("th", { scope: "col", class: column.kind, "aria-sort": sort }, button);
  }

  /** A sortable table with one row for each entry of a list. */
  function of(caption, columns, rows, { order = {}, limit = Infinity } = {}) {
    const body = element("tbody");
    const head = element("tr");
    const draw = (by) => {
      const sortColumn = columns.find(({ key }) => key === by.column);
      const ordered = sortColumn ? sorted(rows, sortColumn.value, by.direction) : rows;
      head.replaceChildren(
        ...columns.map((column) =>
          column.value
            ? heading({ ...column, id: `${caption}-${column.key}` }, by, (next) => {
                draw(next);
                document.getElementById(`sort-${caption}-${next.column}`)?.focus();
              })
            : element("th", { scope: "col" }, column.label),
        ),
      );
      body.replaceChildren(...ordered.slice(0, limit).map((row) => tableRow(columns, row)));
    };
    draw(order);
    return element("table", {}, element("caption", {}, caption), element("thead", {}, head), body);
  }

  function tableRow(columns, row) {
    return element(
      "tr",
      {},
      columns.map((column, index) => {
        const content = column.show ? column.show(row) : column.value(row);
        const attributes = { class: column.kind, scope: index ? null : "row" };
        return element(index ? "td" : "th", attributes, ...[content].flat());
      }),
    );
  }

  /** A region that scrolls sideways, by the keyboard too, where it is wider than the page. */
  function scroller(label, child) {
    return element(
      "div",
      { class: "scroller", role: "region", tabindex: 0, "aria-label": label },
      child,
    );
  }

  return { of, numbers, texts, sorted, heading, scroller };
})();
