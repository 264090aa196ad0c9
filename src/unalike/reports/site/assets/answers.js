"use strict";
// Answers: what was said of the test nodes, right and wrong, sure and unsure.

const answers = (() => {
  const NONE =
    "The answers to test nodes were not kept for these runs: they were made by an older " +
    "version. Runs that are made from now on keep them.";

  function draw(told) {
    const charts = told
      ? element("div", { class: "pair" }, confusion.draw(told), reliability.draw(told))
      : quiet(NONE);
    return [element("h3", {}, "The answers to test nodes"), charts];
  }

  return { draw };
})();
