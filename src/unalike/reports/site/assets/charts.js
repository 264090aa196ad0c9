"use strict";
// Draws Vega-Lite charts; the library and the specifications are loaded for the first one.

const charts = (() => {
  let loading = null;
  const drawn = new Set();

  function load() {
    loading ??= Promise.all([documents.get("charts"), documents.load("assets/vega.js")]).then(
      ([content]) => content,
    );
    return loading;
  }

  function showTooltip(_, event, __, value) {
    if (!format.isPresent(value) || value === "") {
      tooltip.hide();
      return;
    }
    const lines =
      typeof value === "object"
        ? Object.entries(value).map(([name, text]) => `${name} ${text}`)
        : String(value).split("\n");
    const { clientX: left, clientY } = event;
    tooltip.show(lines, { left: left + 12, top: clientY, bottom: clientY + 6 });
  }

  function finalizeRemoved() {
    for (const chart of drawn) {
      if (chart.node.isConnected) continue;
      chart.result.finalize();
      drawn.delete(chart);
    }
  }

  async function draw(node, name, datasets, params) {
    const { config, specs } = await load();
    const spec = specs[name];
    const bound = (spec.params ?? []).map((param) =>
      param.name in params ? { ...param, value: params[param.name] } : param,
    );
    finalizeRemoved();
    const result = await vegaEmbed(
      node,
      { ...spec, datasets, params: bound },
      {
        actions: false,
        ast: true, // the content security policy forbids to evaluate code
        config,
        defaultStyle: false,
        mode: "vega-lite",
        renderer: "svg",
        tooltip: showTooltip,
      },
    );
    drawn.add({ node, result });
  }

  /** A figure that is drawn when it is first seen. */
  function figure(name, datasets, { caption, label = caption, params = {} }) {
    const node = element("div", {}); // Vega sets a role and a label of its own on it
    const attributes = { class: `chart ${name}`, role: "img", "aria-label": label };
    const observer = new IntersectionObserver(async (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      try {
        await draw(node, name, datasets, params);
      } catch (error) {
        node.replaceWith(note(error.message));
      }
    });
    observer.observe(node);
    const chart = element("div", attributes, node);
    return element("figure", {}, element("figcaption", {}, caption), chart);
  }

  function curves(runs, metric) {
    if (!runs?.length)
      return note(
        "No learning curves are stored for these runs: result files without curves have none, " +
          "nor have methods that do not train.",
      );
    const splits = format.count(runs.length, "split");
    const chart = (key, quantity) =>
      figure(
        "curves",
        {
          rows: runs.flatMap((run) =>
            run.epochs.map((epoch, index) => ({
              split: `split ${run.split}`,
              epoch: epoch + 1,
              value: run[key][index],
            })),
          ),
        },
        { caption: `${quantity} by epoch, a line for each of ${splits}` },
      );
    return element(
      "div",
      { class: "pair" },
      chart("scores", `Validation ${metric}, percent,`),
      chart("losses", "Training loss"),
    );
  }

  function compatibility(dataset) {
    const rows = dataset.compatibility.flatMap((fractions, from) =>
      fractions.map((fraction, to) => ({ from, to, fraction })),
    );
    return figure(
      "compatibility",
      { rows },
      {
        caption: "Where the edges of each class end",
        label: `Compatibility of the classes of ${dataset.name}`,
        params: { classes: [...dataset.compatibility.keys()] },
      },
    );
  }

  function degrees({ name, degrees: { rows, means, mean, num_isolated: isolated } }) {
    const points = (columns) =>
      columns.degree.map((degree, index) => ({ degree, nodes: columns.nodes[index] }));
    const without = isolated ? `, ${format.integer(isolated)} without edges` : "";
    return figure(
      "degrees",
      { rows: points(rows), means: points(means) },
      {
        caption: `Nodes by degree; mean ${mean.toFixed(1)}${without}`,
        label: `Degrees of ${name}`,
      },
    );
  }

  return { figure, curves, compatibility, degrees };
})();
