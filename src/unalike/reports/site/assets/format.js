"use strict";
// Numbers, durations, sizes and scores as text.

const format = (() => {
  const isPresent = (value) => value !== null && value !== undefined;
  const fixed = (digits) => (value) => (isPresent(value) ? value.toFixed(digits) : "–");
  const score = fixed(2);

  function meanStd(mean, std) {
    return isPresent(std) ? `${score(mean)} ± ${score(std)}` : score(mean);
  }

  function signed(value, digits = 2) {
    return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
  }

  function percent(fraction, digits = 0) {
    return isPresent(fraction) ? `${(100 * fraction).toFixed(digits)} %` : "–";
  }

  const integer = (value) => value.toLocaleString("en");

  /** Three significant digits, or all digits of a larger number. */
  function short(value) {
    return value < 100 ? String(Number(value.toPrecision(3))) : integer(Math.round(value));
  }

  function seconds(value) {
    if (!isPresent(value)) return "–";
    if (value < 1) return `${short(1000 * value)} ms`;
    return value < 120 ? `${short(value)} s` : `${short(value / 60)} min`;
  }

  /** Memory given in megabytes. */
  function memory(value) {
    if (!isPresent(value)) return "–";
    return value < 1024 ? `${short(value)} MB` : `${short(value / 1024)} GB`;
  }

  function count(number, noun) {
    return `${integer(number)} ${noun}${number === 1 ? "" : "s"}`;
  }

  function option(value) {
    return typeof value === "string" ? value : JSON.stringify(value);
  }

  const spaced = (name) => name.replaceAll("_", " ");

  return {
    isPresent,
    fixed,
    score,
    meanStd,
    signed,
    percent,
    integer,
    seconds,
    memory,
    count,
    option,
    spaced,
  };
})();

/** The number of a table cell: ours, the published one, and how ours was selected. */
const cellScore = (() => {
  const { isPresent } = format;
  const isOurs = (cell) => isPresent(cell.mean);

  /** What a cell is ranked by: ours, or the published number where ours is missing. */
  const value = (cell) => cell.mean ?? cell.printed_mean;
  const std = (cell) => (isOurs(cell) ? cell.std : cell.printed_std) ?? 0;

  function published(cell) {
    const text = format.meanStd(cell.printed_mean, cell.printed_std);
    if (!isPresent(cell.deviations)) return text;
    return `${text} (ours ${format.signed(cell.deviations, 1)} σ)`;
  }

  function selection(cell) {
    const isPartial = isPresent(cell.grid_size) && cell.grid_size !== cell.configs;
    const total = isPartial ? ` of ${cell.grid_size}` : "";
    return `${cell.configs}${total} configurations, by validation score`;
  }

  /** All of it in a few lines. */
  function lines(cell) {
    return [
      isOurs(cell) &&
        `ours ${format.meanStd(cell.mean, cell.std)} over ${format.count(cell.runs, "run")}`,
      isOurs(cell) && `best of ${selection(cell)}`,
      cell.missing && `no result of ours: ${cell.missing}`,
      isPresent(cell.printed_mean) && `published ${published(cell)}`,
      cell.quoted && `the published number is quoted from ${cell.quoted}`,
      cell.limit && `the paper's program ran out of ${cell.limit}`,
    ].filter(Boolean);
  }

  return { isOurs, value, std, published, selection, lines };
})();
