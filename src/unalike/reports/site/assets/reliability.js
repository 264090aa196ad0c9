"use strict";
// Reliability: how often answers are right, by how sure they are.

const reliability = (() => {
  const NONE =
    "There is no reliability plot: scores that labels were spread into, or that are not " +
    "finite, say nothing of certainty.";
  const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;

  /** The bins that hold nodes, each with its place between two shares. */
  function bins({ counts, confidence, accuracy }) {
    return counts
      .map((nodes, place) => ({
        from: place / counts.length,
        to: (place + 1) / counts.length,
        nodes,
        sure: confidence[place],
        right: accuracy[place],
      }))
      .filter(({ nodes }) => nodes);
  }

  function mean(found, name) {
    const all = found.reduce((sum, bin) => sum + bin.nodes, 0);
    return found.reduce((sum, bin) => sum + bin.nodes * bin[name], 0) / all;
  }

  /** The calibration error, and in which direction answers miss. */
  function verdict(found, error) {
    const [sure, right] = [mean(found, "sure"), mean(found, "right")];
    const ways = { "-1": "too unsure of themselves", 0: "about as sure as right", 1: "too sure" };
    const way = ways[Math.abs(sure - right) < 0.02 ? 0 : Math.sign(sure - right)];
    return element(
      "p",
      {},
      element("strong", {}, `Calibration error ${percent(error, 1)}. `),
      `Answers are ${way}: ${percent(sure)} sure on average, and right in ${percent(right)} ` +
        "of cases.",
    );
  }

  const title = ({ from, to, nodes, sure, right }) =>
    [
      words.count(nodes, "node"),
      `${percent(from)} to ${percent(to)} sure`,
      `mean ${percent(sure, 1)}`,
      `right ${percent(right, 1)}`,
    ].join("\n");

  function marks(Plot, found) {
    const [x, y] = ["sure", "right"];
    const ends = [
      [0, 0],
      [1, 1],
    ];
    return [
      Plot.line(ends, { stroke: "var(--quiet)", strokeDasharray: "4 3" }),
      Plot.ruleX(found, { x, y1: "sure", y2: "right", stroke: "var(--family-1)", strokeWidth: 2 }),
      Plot.line(found, { x, y, stroke: "var(--accent)", strokeOpacity: 0.4 }),
      Plot.dot(found, { x, y, r: "nodes", fill: "var(--accent)" }),
      Plot.tip(found, Plot.pointer({ x, y, title })),
    ];
  }

  function plot(found, caption, label) {
    const axis = { domain: [0, 1], ticks: 5, tickFormat: "%", grid: true };
    return charts.figure(
      caption,
      (Plot, width) => ({
        width: Math.min(width, 440),
        aspectRatio: 1,
        marginTop: 24,
        marginLeft: 45,
        x: { ...axis, label: "how sure →" },
        y: { ...axis, label: "↑ how often right" },
        r: { range: [0, 9] },
        marks: marks(Plot, found),
      }),
      label,
    );
  }

  function numbers(found) {
    const range = ({ from, to }) => `${percent(from)} to ${percent(to)}`;
    const columns = [
      { ...table.numbers("from", "how sure"), show: range },
      table.numbers("nodes", "test nodes", (nodes) => nodes.toLocaleString("en")),
      table.numbers("sure", "sure on average", (share) => percent(share, 1)),
      table.numbers("right", "right", (share) => percent(share, 1)),
    ];
    return table.scroller("Reliability in numbers", table.of("Reliability", columns, found));
  }

  function draw({ reliability: told, splits }) {
    if (!told) return quiet(NONE);
    const found = bins(told);
    const caption =
      `How often answers are right by how sure they are, ${words.count(splits, "split")} ` +
      "together. Dots on the dashed line can be taken at their word; larger ones hold more nodes.";
    const label = `Reliability plot; the calibration error is ${percent(told.error, 1)}`;
    return element(
      "div",
      { class: "chart" },
      plot(found, caption, label),
      verdict(found, told.error),
      element("details", {}, element("summary", {}, "In numbers"), numbers(found)),
    );
  }

  return { draw };
})();
