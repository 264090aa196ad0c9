"use strict";
// Sensitivity: what each option of a method does to its validation score.

const sensitivity = (() => {
  const state = { method: null, dataset: null };

  function lines(name, best) {
    return [
      `${words.spaced(name)} ${best.value}`,
      `validation ${words.score(best.valid)}`,
      `test ${words.score(best.test)}`,
      `the best of ${words.count(best.settings, "setting")}`,
    ];
  }

  function chart(told, name) {
    const best = told.sensitivity[name].map((one) => ({ ...one, value: words.option(one.value) }));
    const tried = told.settings
      .filter((one) => one.alike)
      .map((one) => ({
        ...one,
        value: words.there(one.varied[name]) ? words.option(one.varied[name]) : null,
      }))
      .filter((one) => one.value !== null);
    return charts.figure(
      words.spaced(name),
      (Plot) => ({
        height: 220,
        marginLeft: 45,
        x: { type: "point", domain: best.map((one) => one.value), label: null, padding: 0.4 },
        y: { label: "↑ validation score", grid: true, nice: true },
        marks: [
          Plot.dot(tried, {
            x: "value",
            y: "valid",
            r: 2.5,
            fill: "var(--quiet)",
            fillOpacity: 0.5,
          }),
          Plot.line(best, { x: "value", y: "valid", stroke: "var(--accent)", strokeWidth: 2 }),
          Plot.dot(best, { x: "value", y: "valid", fill: "var(--accent)", r: 4 }),
          Plot.tip(
            best,
            Plot.pointer({
              x: "value",
              y: "valid",
              title: (one) => lines(name, one).join("\n"),
            }),
          ),
        ],
      }),
      `Validation score by ${words.spaced(name)}`,
    );
  }

  function drawn(told) {
    const names = Object.keys(told.sensitivity);
    if (!names.length) return [element("p", {}, "Only one setting was tried.")];
    const best = told.settings[0];
    return [
      quiet(
        `Each dot is one of ${words.count(told.settings.length, "setting")}; `,
        "the line follows the best setting with each value.",
      ),
      element(
        "div",
        { class: "grid" },
        names.map((name) => chart(told, name)),
      ),
      element("h3", {}, "The setting with the best validation score"),
      command.block(shelf.command(best, runs.splitsOf(best)), "best setting"),
    ];
  }

  async function fill(place, mark) {
    try {
      place.replaceChildren(...drawn(await shelf.get(mark)));
    } catch (error) {
      place.replaceChildren(quiet(error.message));
    }
  }

  const fullest = (shelves) =>
    shelves.reduce((most, one) => (one.settings > most.settings ? one : most));

  function draw(site) {
    if (!site.shelves.length) return [element("p", {}, "Nothing was run yet.")];
    const methods = [...new Set(site.shelves.map((one) => one.method))].sort();
    const method = methods.includes(state.method) ? state.method : fullest(site.shelves).method;
    const having = site.shelves.filter((one) => one.method === method);
    const one = having.find(({ dataset }) => dataset === state.dataset) ?? fullest(having);
    const place = element("div", { "aria-live": "polite" }, quiet("Reading the runs …"));
    const set = (name) => (value) => {
      state[name] = value;
      page.redraw();
    };
    fill(place, one.mark);
    return [
      element(
        "div",
        { class: "controls" },
        choice.pick("choose-method", "Method", choice.plain(methods), method, set("method")),
        choice.pick(
          "choose-shelf",
          "Dataset",
          having.map(({ dataset, settings }) => ({
            value: dataset,
            text: `${dataset} (${words.count(settings, "setting")})`,
          })),
          one.dataset,
          set("dataset"),
        ),
      ),
      place,
    ];
  }

  return { draw };
})();
