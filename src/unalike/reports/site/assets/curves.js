"use strict";
// Curves: how the training of every split went.

const curves = (() => {
  const NONE =
    "No curves are stored for these runs: results carried in a file without them have none, " +
    "nor have methods that do not train.";

  function points(found, name) {
    return found.flatMap((curve) =>
      curve.epochs.map((epoch, place) => ({
        split: String(curve.split),
        epoch: epoch + 1,
        value: curve[name][place],
      })),
    );
  }

  function chart(found, name, label) {
    const caption = `${label} by epoch, a line for each of ${words.count(found.length, "split")}`;
    return charts.figure(caption, (Plot) => ({
      height: 220,
      x: { label: "epoch" },
      y: { label: null, grid: true },
      color: { type: "ordinal", scheme: "Observable10" },
      marks: [
        Plot.line(points(found, name), {
          x: "epoch",
          y: "value",
          stroke: "split",
          strokeWidth: 1.25,
          strokeOpacity: 0.8,
          tip: { format: { z: false } },
        }),
      ],
    }));
  }

  function draw(found, metric) {
    if (!found?.length) return quiet(NONE);
    return element(
      "div",
      { class: "pair" },
      chart(found, "grades", `Validation ${metric}, percent,`),
      chart(found, "losses", "Training loss"),
    );
  }

  return { draw };
})();
