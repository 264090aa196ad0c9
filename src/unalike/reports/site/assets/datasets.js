"use strict";
// Homophily, compatibility matrix and degrees of the datasets.

const datasets = (() => {
  const FIRST_MEASURES = [
    "edge_homophily",
    "node_homophily",
    "class_homophily",
    "adjusted_homophily",
    "label_informativeness",
    "monophily",
    "two_hop_node_homophily",
  ];

  const CONVENTIONS = {
    paper: "Edges are counted as in the numbers of the LINKX paper (--convention paper).",
    stored:
      "Edges are counted as they are stored, without self-loops and unlabelled ends " +
      "(--convention stored).",
  };

  function datasetSection(dataset) {
    return element(
      "article",
      {},
      element("h3", {}, dataset.name),
      note(dataset.summary.replace(`${dataset.name}: `, "")),
      note(CONVENTIONS[dataset.convention]),
      element(
        "div",
        { class: "pair" },
        charts.compatibility(dataset),
        charts.degrees(dataset),
      ),
      command.block(dataset.command, dataset.name),
    );
  }

  function measureColumn(name) {
    const value = (dataset) => dataset.measures[name];
    const show = (dataset) => {
      const published = dataset.published[name];
      return element(
        "div",
        { title: dataset.descriptions[name] },
        format.fixed(3)(value(dataset)),
        format.isPresent(published) ? element("small", {}, format.fixed(3)(published)) : null,
      );
    };
    return { key: name, label: format.spaced(name), value, show, kind: "number" };
  }

  function measuresTable(rows) {
    const rest = Object.keys(rows[0].measures).filter((name) => !FIRST_MEASURES.includes(name));
    const measures = [...FIRST_MEASURES, ...rest].map(measureColumn);
    return table.of("Homophily", [table.texts("name", "dataset"), ...measures], rows);
  }

  function sections({ datasets: rows, skipped }) {
    if (!rows.length)
      return [element("p", {}, "No dataset is available: `unalike fetch` downloads them.")];
    const reasons = Object.entries(skipped).map(([name, reason]) => `${name} (${reason})`);
    return [
      note("Large: measured. Small: published, where there is a published number."),
      table.scroller("Homophily of datasets", measuresTable(rows)),
      reasons.length ? note(`Not measured: ${reasons.join(", ")}.`) : null,
      element("div", { class: "datasets" }, rows.map(datasetSection)),
    ].filter(Boolean);
  }

  async function fill(node) {
    try {
      node.replaceChildren(...sections(await documents.get("datasets")));
    } catch (error) {
      node.replaceChildren(note(error.message));
    }
  }

  function draw(site) {
    if (!site.has_datasets)
      return [element("p", {}, "The report was written without datasets (--no-measures).")];
    const node = element("div", {}, note("Loading the measures …"));
    fill(node);
    return [node];
  }

  return { draw };
})();
