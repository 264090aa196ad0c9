"use strict";
// Confusion: a heat map of which classes are taken for which, and its numbers.

const confusion = (() => {
  const WRITTEN = 7;
  const NAMED = 20;
  const LONG = 12;
  const WIDE = 7; // pixels of a letter
  const short = (name) => (name.length > LONG ? `${name.slice(0, LONG - 1)}…` : name);
  const compact = (count) =>
    count < 10000
      ? count.toLocaleString("en")
      : count.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 });
  const percent = (share) => (words.there(share) ? `${Math.round(100 * share)} %` : "–");

  const ink = (share) => `var(--${share > 0.5 ? "page" : share > 0 ? "ink" : "quiet"})`;

  function entries(matrix) {
    return matrix.flatMap((row, from) => {
      const all = row.reduce((sum, count) => sum + count, 0);
      return row.map((count, to) => ({ from, to, count, share: all ? count / all : null }));
    });
  }

  function title(names, { from, to, count, share }) {
    const lines = [`class ${names[from]}`, `answer ${names[to]}`];
    return [...lines, words.count(count, "node"), `${percent(share)} of the class`].join("\n");
  }

  function marks(Plot, found, names) {
    const [x, y] = ["to", "from"];
    const right = found.filter(({ from, to }) => from === to);
    return [
      Plot.cell(found, { x, y, fill: "var(--accent)", fillOpacity: "share" }),
      Plot.cell(right, { x, y, fill: "none", stroke: "var(--quiet)", inset: 0.5 }),
      names.length > WRITTEN
        ? null
        : Plot.text(found, {
            x,
            y,
            text: ({ share, count }) => (count ? `${percent(share)}\n${compact(count)}` : "0"),
            lineHeight: 1.25,
            fontSize: 11.5,
            fill: ({ share }) => ink(share),
          }),
      Plot.tip(found, Plot.pointer({ x, y, title: (one) => title(names, one) })),
    ];
  }

  function map(found, names, caption) {
    const tickFormat = (place) => short(names[place]);
    const axis = { tickFormat, tickSize: 0, ...(names.length > NAMED ? { ticks: [] } : {}) };
    const longest = Math.max(...names.map((name) => short(name).length));
    const marginLeft = names.length > NAMED ? 20 : 18 + WIDE * longest;
    return charts.figure(caption, (Plot, room) => {
      const width = Math.min(room, 440);
      const turned = WIDE * longest * names.length > width - marginLeft - 20;
      return {
        width,
        aspectRatio: 1,
        padding: 0.03,
        marginTop: 26,
        marginLeft,
        marginBottom: turned && names.length <= NAMED ? 36 + 6 * longest : 40,
        x: { ...axis, label: "answer →", labelAnchor: "right", tickRotate: turned ? -45 : 0 },
        y: { ...axis, label: "↓ class", labelAnchor: "top" },
        opacity: { domain: [0, 1], range: [0.04, 1] },
        marks: marks(Plot, found, names),
      };
    });
  }

  function line(names, from, row) {
    const cells = row.map(({ count, share }) =>
      element(
        "td",
        { class: "number" },
        count.toLocaleString("en"),
        element("small", {}, percent(share)),
      ),
    );
    return element("tr", {}, element("th", { scope: "row" }, names[from]), cells);
  }

  function numbers(found, names) {
    const head = ["class", ...names.map((name) => `answered ${name}`)];
    const headings = head.map((text, place) =>
      element("th", { scope: "col", class: place ? "number" : null }, text),
    );
    const rows = names.map((_, from) =>
      line(
        names,
        from,
        found.filter((one) => one.from === from),
      ),
    );
    const caption = element("caption", {}, "Test nodes by class and answer, and their share");
    const made = element(
      "table",
      {},
      caption,
      element("thead", {}, element("tr", {}, headings)),
      element("tbody", {}, rows),
    );
    return table.scroller("Confusion matrix in numbers", made);
  }

  function draw({ confusion: matrix, classes, splits }) {
    if (!matrix) return quiet("No confusion matrix is kept of more than 50 classes.");
    const names = classes ?? matrix.map((_, place) => String(place));
    const found = entries(matrix);
    const over = words.count(splits, "split");
    const caption = `Which classes are taken for which: share and test nodes, ${over} together`;
    return element(
      "div",
      { class: "chart" },
      map(found, names, caption),
      element("details", {}, element("summary", {}, "In numbers"), numbers(found, names)),
    );
  }

  return { draw };
})();
