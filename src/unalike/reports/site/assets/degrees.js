"use strict";
// Degrees: how many nodes have how many neighbours, on two logarithmic axes.

const degrees = (() => {
  function draw(dataset) {
    const { degrees: found, counts, line, mean, alone } = dataset.degrees;
    const dots = found.map((degree, place) => ({ degree, nodes: counts[place] }));
    const steps = line[0].map((degree, place) => ({ degree, nodes: line[1][place] }));
    const without = alone ? `, ${alone.toLocaleString("en")} without edges` : "";
    return charts.figure(
      `Nodes by degree; mean ${mean.toFixed(1)}${without}`,
      (Plot) => ({
        width: 260,
        height: 240,
        marginLeft: 45,
        x: charts.logarithmic("degree →", found),
        y: { ...charts.logarithmic("↑ nodes", [...counts, ...line[1]]), grid: true },
        marks: [
          Plot.dot(dots, { x: "degree", y: "nodes", r: 1.5, fill: "var(--quiet)" }),
          Plot.line(steps, { x: "degree", y: "nodes", stroke: "var(--accent)", strokeWidth: 2 }),
        ],
      }),
      `Degrees of ${dataset.name}`,
    );
  }

  return { draw };
})();
