"use strict";
// Compatibility: a heat map of where the edges of each class end.

const compatibility = (() => {
  const WRITTEN = 7;
  const NAMED = 12;

  function draw(dataset) {
    const size = dataset.compatibility.length;
    const entries = dataset.compatibility.flatMap((row, from) =>
      row.map((share, to) => ({ from, to, share })),
    );
    return charts.figure(
      "Where the edges of each class end",
      (Plot) => ({
        aspectRatio: 1,
        width: 260,
        padding: 0.02,
        x: { label: "to class", ticks: size > NAMED ? [] : undefined },
        y: { label: "from class", ticks: size > NAMED ? [] : undefined },
        opacity: { domain: [0, 1], range: [0.04, 1] },
        marks: [
          Plot.cell(entries, { x: "to", y: "from", fill: "var(--accent)", fillOpacity: "share" }),
          size > WRITTEN
            ? null
            : Plot.text(entries, {
                x: "to",
                y: "from",
                text: ({ share }) =>
                  words.there(share) ? share.toFixed(2).replace(/^0/, "") : "–",
                fill: ({ share }) => (share > 0.55 ? "var(--page)" : "var(--ink)"),
              }),
          Plot.tip(
            entries,
            Plot.pointer({
              x: "to",
              y: "from",
              title: ({ from, to, share }) => `${from} → ${to}: ${words.fixed(3)(share)}`,
            }),
          ),
        ],
      }),
      `Compatibility of the classes of ${dataset.name}`,
    );
  }

  return { draw };
})();
