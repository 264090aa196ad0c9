"use strict";
// Charts: the drawing library, loaded when the first chart is wanted.

const charts = (() => {
  const FAMILIES = ["row-wise", "message passing", "after training", "closed form", "not here"];
  const COLOURS = FAMILIES.map((_, place) => `var(--family-${place})`);
  const family = { domain: FAMILIES, range: COLOURS };
  let library = null;

  function plot() {
    library ??= documents.load("assets/vendor/d3.min.js")
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
      const drawing = (await plot()).plot({
        width: Math.max(260, made.clientWidth),
        style: { fontSize: "12px", background: "transparent", overflow: "visible" },
        ...options(Plot),
      });
      drawing.setAttribute("role", "img");
      drawing.setAttribute("aria-label", label);
      made.append(drawing);
    });
    seen.observe(made);
    return made;
  }

  return { figure, family };
})();
