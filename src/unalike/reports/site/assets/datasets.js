"use strict";
// Datasets: how homophilous those at hand are, each with its charts.

const datasets = (() => {
  const FIRST = [
    "edge_homophily",
    "node_homophily",
    "class_homophily",
    "adjusted_homophily",
    "label_informativeness",
    "monophily",
    "two_hop_node_homophily",
  ];

  function card(dataset) {
    return element(
      "article",
      {},
      element("h3", {}, dataset.name),
      quiet(dataset.headline.replace(`${dataset.name}: `, "")),
      element("div", { class: "pair" }, compatibility.draw(dataset), degrees.draw(dataset)),
      command.block(dataset.command, dataset.name),
    );
  }

  function measured(name) {
    const value = (dataset) => dataset.measures[name];
    const printed = (dataset) => {
      const told = dataset.printed[name];
      return words.there(told) ? element("small", {}, words.fixed(3)(told)) : null;
    };
    const show = (dataset) =>
      element(
        "div",
        { title: dataset.words[name] },
        words.fixed(3)(value(dataset)),
        printed(dataset),
      );
    return { key: name, label: words.spaced(name), value, show, kind: "number" };
  }

  function listing(found) {
    const rest = Object.keys(found[0].measures).filter((name) => !FIRST.includes(name));
    const columns = [table.texts("name", "dataset"), ...[...FIRST, ...rest].map(measured)];
    return table.of("Homophily", columns, found);
  }

  function drawn({ datasets: found, left_out: leftOut }) {
    const skipped = Object.entries(leftOut)
      .map(([name, why]) => `${name} (${why})`)
      .join(", ");
    if (!found.length)
      return [element("p", {}, "No dataset is at hand: `unalike fetch` gets them.")];
    return [
      quiet("Large: measured. Small: printed, where there is a printed number."),
      table.scroller("Homophily of datasets", listing(found)),
      skipped ? quiet(`Left out: ${skipped}.`) : null,
      element("div", { class: "cards" }, found.map(card)),
    ].filter(Boolean);
  }

  async function fill(place) {
    try {
      place.replaceChildren(...drawn(await documents.get("measures")));
    } catch (error) {
      place.replaceChildren(quiet(error.message));
    }
  }

  function draw(site) {
    if (!site.measured) return [element("p", {}, "The datasets were left out (--no-measures).")];
    const place = element("div", {}, quiet("Reading the measures …"));
    fill(place);
    return [place];
  }

  return { draw };
})();
