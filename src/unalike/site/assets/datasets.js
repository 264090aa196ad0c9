"use strict";
// Datasets: how homophilous they are, where edges of each class end, and degrees.

const datasets = (() => {
  const WRITTEN = 7;
  const FIRST = ["edge_homophily", "node_homophily", "class_homophily", "adjusted_homophily",
    "label_informativeness", "monophily", "two_hop_node_homophily"];

  function heatMap(dataset) {
    const size = dataset.compatibility.length;
    const entries = dataset.compatibility.flatMap((row, from) => row.map((share, to) => ({ from, to, share })));
    return charts.figure("Where the edges of each class end", (Plot) => ({
      aspectRatio: 1,
      width: 260,
      padding: 0.02,
      x: { label: "to class", ticks: size > 12 ? [] : undefined },
      y: { label: "from class", ticks: size > 12 ? [] : undefined },
      opacity: { domain: [0, 1], range: [0.04, 1] },
      marks: [
        Plot.cell(entries, { x: "to", y: "from", fill: "var(--accent)", fillOpacity: "share" }),
        size > WRITTEN ? null : Plot.text(entries, { x: "to", y: "from", text: ({ share }) => (words.there(share) ? share.toFixed(2).replace(/^0/, "") : "–"),
          fill: ({ share }) => (share > 0.55 ? "var(--page)" : "var(--ink)") }),
        Plot.tip(entries, Plot.pointer({ x: "to", y: "from", title: ({ from, to, share }) => `${from} → ${to}: ${words.fixed(3)(share)}` })),
      ],
    }), `Compatibility of the classes of ${dataset.name}`);
  }

  function degreePlot(dataset) {
    const { degrees, counts, line, mean, alone } = dataset.degrees;
    const dots = degrees.map((degree, place) => ({ degree, nodes: counts[place] }));
    const steps = line[0].map((degree, place) => ({ degree, nodes: line[1][place] }));
    const without = alone ? `, ${alone.toLocaleString("en")} without edges` : "";
    return charts.figure(`Nodes by degree; mean ${mean.toFixed(1)}${without}`, (Plot) => ({
      width: 260,
      height: 240,
      marginLeft: 45,
      x: charts.logarithmic("degree →", degrees),
      y: { ...charts.logarithmic("↑ nodes", [...counts, ...line[1]]), grid: true },
      marks: [
        Plot.dot(dots, { x: "degree", y: "nodes", r: 1.5, fill: "var(--quiet)" }),
        Plot.line(steps, { x: "degree", y: "nodes", stroke: "var(--accent)", strokeWidth: 2 }),
      ],
    }), `Degrees of ${dataset.name}`);
  }

  function card(dataset) {
    return element("article", { class: "dataset", id: `dataset-${dataset.name}` },
      element("h3", {}, dataset.name),
      element("p", { class: "quiet" }, dataset.headline.replace(`${dataset.name}: `, "")),
      element("div", { class: "pair" }, heatMap(dataset), degreePlot(dataset)),
      command.block(dataset.command, dataset.name));
  }

  function measured(name) {
    const shown = (dataset) => {
      const value = words.fixed(3)(dataset.measures[name]);
      const printed = dataset.printed[name];
      return [value, words.there(printed) ? element("small", {}, words.fixed(3)(printed)) : null];
    };
    return { key: name, label: words.spaced(name), value: (dataset) => dataset.measures[name], show: shown, kind: "number" };
  }

  function listing(found) {
    const rest = Object.keys(found[0].measures).filter((name) => !FIRST.includes(name));
    const name = { key: "name", label: "dataset", value: (dataset) => dataset.name, first: "ascending" };
    const columns = [name, ...[...FIRST, ...rest].map(measured)];
    return table.of("Homophily", columns, found);
  }

  function drawn({ datasets: found, left_out: leftOut }) {
    const skipped = Object.entries(leftOut).map(([name, why]) => `${name} (${why})`).join(", ");
    if (!found.length) return [element("p", {}, "No dataset is at hand: `unalike fetch` gets them.")];
    return [
      element("p", { class: "quiet" }, "Large: measured. Small: printed, where there is a printed number."),
      table.scroller("Homophily of datasets", listing(found)),
      skipped ? element("p", { class: "quiet" }, `Left out: ${skipped}.`) : null,
      element("div", { class: "cards" }, found.map(card)),
    ].filter(Boolean);
  }

  async function fill(place) {
    try {
      place.replaceChildren(...drawn(await documents.get("measures")));
    } catch (error) {
      place.replaceChildren(element("p", { class: "quiet" }, error.message));
    }
  }

  function draw(site) {
    if (!site.measured) return [element("p", {}, "The datasets were left out (--no-measures).")];
    const place = element("div", {}, element("p", { class: "quiet" }, "Reading the measures …"));
    fill(place);
    return [place];
  }

  return { draw };
})();
