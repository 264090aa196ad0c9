"use strict";
// Predictions of test nodes: the confusion matrix and the reliability diagram.

const predictions = (() => {
  const MAX_LABEL = 12; // letters
  const details = (content) =>
    element("details", {}, element("summary", {}, "In numbers"), content);

  function confusionTable(matrix, names) {
    const head = ["class", ...names.map((name) => `predicted ${name}`)];
    const headings = head.map((text, index) =>
      element("th", { scope: "col", class: index ? "number" : null }, text),
    );
    const rows = matrix.map((counts, index) => {
      const total = counts.reduce((sum, count) => sum + count, 0);
      const cells = counts.map((count) => {
        const percent = format.percent(total ? count / total : null);
        return element(
          "td",
          { class: "number" },
          format.integer(count),
          element("small", {}, percent),
        );
      });
      return element("tr", {}, element("th", { scope: "row" }, names[index]), cells);
    });
    const caption = "Test nodes by class and prediction, and their fraction of the class";
    const node = element(
      "table",
      {},
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, headings)),
      element("tbody", {}, rows),
    );
    return table.scroller("Confusion matrix in numbers", node);
  }

  function confusion({ confusion: matrix, classes, splits }) {
    if (!matrix) return note("No confusion matrix is stored for more than 50 classes.");
    const names = classes ?? matrix.map((_, index) => String(index));
    const rows = matrix.flatMap((counts, from) => {
      const total = counts.reduce((sum, count) => sum + count, 0);
      return counts.map((count, to) => ({
        true: names[from],
        predicted: names[to],
        count,
        fraction: total ? count / total : null,
      }));
    });
    const longest = Math.max(...names.map((name) => name.length));
    const over = `${format.count(splits, "split")} together`;
    return element(
      "div",
      {},
      charts.figure(
        "confusion",
        { rows },
        {
          caption: `Confusion matrix: fraction of the class and test nodes, ${over}`,
          params: { classes: names, longest_label: Math.min(longest, MAX_LABEL) },
        },
      ),
      details(confusionTable(matrix, names)),
    );
  }

  /** The bins that hold nodes. */
  function bins({ counts, confidence, accuracy }) {
    const edge = (index) => format.percent(index / counts.length);
    return counts
      .map((nodes, index) => ({
        index,
        bin: `${edge(index)} to ${edge(index + 1)}`,
        nodes,
        confidence: confidence[index],
        accuracy: accuracy[index],
      }))
      .filter(({ nodes }) => nodes);
  }

  /** The calibration error, and in which direction confidence is wrong. */
  function calibration(rows, error) {
    const total = rows.reduce((sum, row) => sum + row.nodes, 0);
    const mean = (key) => rows.reduce((sum, row) => sum + row.nodes * row[key], 0) / total;
    const [confidence, accuracy] = [mean("confidence"), mean("accuracy")];
    const kinds = { "-1": "underconfident", 0: "well calibrated on average", 1: "overconfident" };
    const sign = Math.abs(confidence - accuracy) < 0.02 ? 0 : Math.sign(confidence - accuracy);
    return element(
      "p",
      {},
      element("strong", {}, `Expected calibration error ${format.percent(error, 1)}. `),
      `Predictions are ${kinds[sign]}: mean confidence ${format.percent(confidence)}, ` +
        `accuracy ${format.percent(accuracy)}.`,
    );
  }

  function reliabilityTable(rows) {
    const columns = [
      { ...table.numbers("index", "confidence", String, "ascending"), show: ({ bin }) => bin },
      table.numbers("nodes", "test nodes", format.integer),
      table.numbers("confidence", "mean confidence", (value) => format.percent(value, 1)),
      table.numbers("accuracy", "accuracy", (value) => format.percent(value, 1)),
    ];
    return table.scroller("Reliability in numbers", table.of("Reliability", columns, rows));
  }

  function reliability({ reliability: content, splits }) {
    if (!content)
      return note(
        "There is no reliability diagram: this method gives no probabilities, or some are not " +
          "finite.",
      );
    const rows = bins(content);
    const error = format.percent(content.error, 1);
    return element(
      "div",
      {},
      charts.figure(
        "reliability",
        { rows },
        {
          caption:
            `Accuracy by confidence, ${format.count(splits, "split")} together. Dots on the ` +
            "dashed line are well calibrated; larger dots hold more nodes.",
          label: `Reliability diagram; the expected calibration error is ${error}`,
        },
      ),
      calibration(rows, content.error),
      details(reliabilityTable(rows)),
    );
  }

  function draw(content) {
    return [
      element("h3", {}, "Predictions of test nodes"),
      content
        ? element("div", { class: "pair" }, confusion(content), reliability(content))
        : note(
            "No predictions are stored for these runs: they come from an older version or from " +
              "a file without predictions.",
          ),
    ];
  }

  return { draw };
})();
