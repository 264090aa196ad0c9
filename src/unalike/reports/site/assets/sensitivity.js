"use strict";
// Sensitivity: the validation score of a method by the value of each hyperparameter.

const sensitivity = (() => {
  const state = { method: null, dataset: null };

  function chart(content, name) {
    const rows = content.sensitivity[name].map((best) => ({
      ...best,
      value: format.option(best.value),
    }));
    const configs = content.configs
      .filter(({ comparable, varying }) => comparable && format.isPresent(varying[name]))
      .map(({ valid, varying }) => ({ valid, value: format.option(varying[name]) }));
    return charts.figure(
      "sensitivity",
      { rows, configs },
      {
        caption: format.spaced(name),
        label: `Validation score by ${format.spaced(name)}`,
        params: { values: rows.map(({ value }) => value) },
      },
    );
  }

  function sections(content) {
    const names = Object.keys(content.sensitivity);
    if (!names.length) return [element("p", {}, "Only one configuration was run.")];
    const best = content.configs[0];
    return [
      note(
        `Each dot is one of ${format.count(content.configs.length, "configuration")}; `,
        "the line connects the best configuration of each value.",
      ),
      element(
        "div",
        { class: "grid" },
        names.map((name) => chart(content, name)),
      ),
      element("h3", {}, "The configuration with the best validation score"),
      command.block(methodRuns.command(best), "best configuration"),
    ];
  }

  async function fill(node, id) {
    try {
      node.replaceChildren(...sections(await methodRuns.get(id)));
    } catch (error) {
      node.replaceChildren(note(error.message));
    }
  }

  const largest = (entries) =>
    entries.reduce((most, entry) => (entry.configs > most.configs ? entry : most));

  function draw(site) {
    if (!site.method_runs.length) return [element("p", {}, "There are no runs yet.")];
    const methods = [...new Set(site.method_runs.map(({ method }) => method))].sort();
    const method = methods.includes(state.method)
      ? state.method
      : largest(site.method_runs).method;
    const entries = site.method_runs.filter((entry) => entry.method === method);
    const selected =
      entries.find(({ dataset }) => dataset === state.dataset) ?? largest(entries);
    const node = element("div", { "aria-live": "polite" }, note("Loading the runs …"));
    const change = (key) => (value) => {
      state[key] = value;
      page.redraw();
    };
    const datasets = entries.map(({ dataset, configs }) => ({
      value: dataset,
      text: `${dataset} (${format.count(configs, "configuration")})`,
    }));
    fill(node, selected.id);
    return [
      element(
        "div",
        { class: "controls" },
        select("select-method", "Method", methods, method, change("method")),
        select("select-dataset", "Dataset", datasets, selected.dataset, change("dataset")),
      ),
      node,
    ];
  }

  return { draw };
})();
