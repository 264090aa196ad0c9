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

  /** Three digits, or all of a larger number. */
  function short(value) {
    return value < 100
      ? String(Number(value.toPrecision(3)))
      : Math.round(value).toLocaleString("en");
  }

  function seconds(value) {
    if (!there(value)) return "–";
    if (value < 1) return `${short(1000 * value)} ms`;
    return value < 120 ? `${short(value)} s` : `${short(value / 60)} min`;
  }

  function memory(value) {
    if (!there(value)) return "–";
    return value < 1024 ? `${short(value)} MB` : `${short(value / 1024)} GB`;
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
