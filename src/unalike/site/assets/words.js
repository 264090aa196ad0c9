"use strict";
// Words: numbers as people read them.

const words = (() => {
  const there = (value) => value !== null && value !== undefined;
  const fixed = (digits) => (value) => (there(value) ? value.toFixed(digits) : "–");
  const score = fixed(2);

  function spread(mean, std) {
    return there(std) ? `${score(mean)} ± ${score(std)}` : score(mean);
  }

  function signed(value, digits = 2) {
    return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
  }

  function seconds(value) {
    if (!there(value)) return "–";
    if (value < 1) return `${(1000 * value).toPrecision(2)} ms`;
    return value < 120 ? `${value.toPrecision(3)} s` : `${(value / 60).toFixed(1)} min`;
  }

  function memory(value) {
    if (!there(value)) return "–";
    return value < 1024 ? `${value.toPrecision(3)} MB` : `${(value / 1024).toFixed(1)} GB`;
  }

  function count(number, what) {
    return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
  }

  function option(value) {
    return typeof value === "string" ? value : JSON.stringify(value);
  }

  const spaced = (name) => name.replaceAll("_", " ");

  return { there, fixed, score, spread, signed, seconds, memory, count, option, spaced };
})();
