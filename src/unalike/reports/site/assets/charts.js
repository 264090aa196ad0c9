"use strict";
// Charts: the drawing library, loaded when the first chart is wanted.

const charts = (() => {
  const FAMILIES = ["row-wise", "message passing", "after training", "closed form", "not here"];
  const colour = (family) => `var(--family-${FAMILIES.indexOf(family)})`;
  let library = null;

  function plot() {
    library ??= documents
      .load("assets/vendor/d3.min.js")
      .then(() => documents.load("assets/vendor/plot.min.js"))
      .then(() => Plot);
    return library;
  }

  /** A figure that is drawn once it comes into sight. */
  function figure(caption, options, label = caption) {
    const made = element("figure", {}, element("figcaption", {}, caption));
    const seen = new IntersectionObserver(async (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      const width = Math.max(260, made.clientWidth);
      const drawing = (await plot()).plot({
        width,
        marginBottom: 42,
        style: { fontSize: "12px", background: "transparent", overflow: "visible" },
        ...options(Plot, width),
      });
      drawing.setAttribute("role", "img");
      drawing.setAttribute("aria-label", label);
      made.append(drawing);
    });
    seen.observe(made);
    return made;
  }

  function legend(families) {
    return element(
      "ul",
      { class: "legend" },
      FAMILIES.map((family, place) =>
        families.includes(family) ? element("li", { class: `family-${place}` }, family) : null,
      ),
    );
  }

  /** Round numbers for a logarithmic axis. */
  function ticks(values) {
    const [low, high] = [Math.min(...values), Math.max(...values)].map(Math.log10);
    const steps = high - low > 1.5 ? [1] : [1, 2, 5];
    const stride = high - low > 4 ? 2 : 1;
    const count = (Math.ceil(high) - Math.floor(low)) / stride;
    const decades = Array.from(
      { length: Math.ceil(count) + 1 },
      (_, place) => Math.floor(low) + stride * place,
    );
    return decades.flatMap((decade) =>
      steps.map((step) => Number((step * 10 ** decade).toPrecision(1))),
    );
  }

  const compact = (value) =>
    value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 });

  /** A logarithmic axis with room for all values and a round number at each end. */
  function logarithmic(label, values) {
    const marks = values.length ? ticks(values) : [1, 10];
    const low = Math.max(...marks.filter((mark) => mark <= Math.min(...values)), marks[0]);
    const high = Math.min(...marks.filter((mark) => mark >= Math.max(...values)), marks.at(-1));
    const shown = marks.filter((mark) => mark >= low && mark <= high);
    return { type: "log", label, domain: [low, high], ticks: shown, tickFormat: compact };
  }

  return { figure, colour, legend, logarithmic };
})();
