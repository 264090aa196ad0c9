"use strict";
// Cost: scores against the time and the memory they took.

const cost = (() => {
  const state = { dataset: null };

  function points(told, column) {
    return [...told.rows.keys()]
      .filter((place) => told.cells[place][column])
      .map((place) => {
        const [row, found] = [told.rows[place], told.cells[place][column]];
        const where = { row, column: told.columns[column], cell: found };
        return { ...found, ...where, method: row.label, family: row.family };
      });
  }

  function scatter(all, name, label, unit, shown) {
    const found = all.filter((one) => one[name] > 0);
    const caption = `Test score by ${label}; up and to the left is better`;
    const colour = ({ family }) => charts.colour(family);
    return charts.figure(caption, (Plot) => ({
      height: 340,
      marginRight: 70,
      marginLeft: 45,
      x: charts.logarithmic(
        `${label}, ${unit} →`,
        found.map((one) => one[name]),
      ),
      y: { label: "↑ test score", grid: true, nice: true, ticks: 6 },
      marks: [
        Plot.ruleX(found, {
          x: name,
          y1: (one) => one.mean - (one.std ?? 0),
          y2: (one) => one.mean + (one.std ?? 0),
          stroke: colour,
          strokeOpacity: 0.35,
        }),
        Plot.dot(found, { x: name, y: "mean", fill: colour, r: 5 }),
        Plot.text(found, { x: name, y: "mean", text: "method", dx: 9, textAnchor: "start" }),
        Plot.tip(
          found,
          Plot.pointer({
            x: name,
            y: "mean",
            title: (one) =>
              [one.method, ...score.lines(one.cell), shown(one[name]), one.device].join("\n"),
          }),
        ),
      ],
    }));
  }

  function listing(found) {
    const open = (one) =>
      element(
        "button",
        { type: "button", class: "link", onclick: () => cell.open(one) },
        one.method,
      );
    const columns = [
      { ...table.texts("method", "method"), show: open },
      { ...table.numbers("mean", "test score"), show: (one) => words.spread(one.mean, one.std) },
      table.numbers("seconds", "time of a run", words.seconds, "ascending"),
      table.numbers("memory_mb", "peak memory", words.memory, "ascending"),
      table.texts("device", "device"),
    ];
    const order = { column: "mean", direction: "descending" };
    return table.of("The same in numbers", columns, found, { order });
  }

  function draw(site) {
    const told = site.tables.at(-1);
    if (!told.columns.length) return [element("p", {}, "Nothing was run yet.")];
    const sizes = told.columns.map((_, column) => points(told, column).length);
    const labels = told.columns.map(({ label }) => label);
    const fullest = sizes.indexOf(Math.max(...sizes));
    const column = Math.max(labels.indexOf(state.dataset ?? labels[fullest]), 0);
    const found = points(told, column);
    const change = (value) => {
      state.dataset = value;
      page.redraw();
    };
    return [
      element(
        "div",
        { class: "controls" },
        choice.pick("choose-dataset", "Dataset", choice.plain(labels), labels[column], change),
      ),
      charts.legend(found.map((one) => one.family)),
      element(
        "div",
        { class: "pair" },
        scatter(found, "seconds", "time of a run", "seconds", words.seconds),
        scatter(found, "memory_mb", "peak memory", "MB", words.memory),
      ),
      quiet(
        "Runs of one shape train together; the time of a run is its share of theirs. ",
        "Bars are one standard deviation over splits. Compare within one device.",
      ),
      table.scroller("Scores, time and memory", listing(found)),
    ];
  }

  return { draw };
})();
