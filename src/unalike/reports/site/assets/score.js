"use strict";
// Score: what a cell of a table says, in words.

const score = (() => {
  const isOurs = (cell) => words.there(cell.mean);

  /** What a cell is ranked by: ours, or the printed number where there is none. */
  const value = (cell) => cell.mean ?? cell.printed_mean;
  const spread = (cell) => (isOurs(cell) ? cell.std : cell.printed_std) ?? 0;

  function printed(cell) {
    const text = words.spread(cell.printed_mean, cell.printed_std);
    return words.there(cell.deviations)
      ? `${text} (ours ${words.signed(cell.deviations, 1)} σ)`
      : text;
  }

  function chosen(cell) {
    const some = words.there(cell.of) && cell.of !== cell.settings ? ` of ${cell.of}` : "";
    return `${cell.settings}${some} settings, by validation`;
  }

  /** A few lines that say all of it. */
  function lines(cell) {
    return [
      isOurs(cell) &&
        `ours ${words.spread(cell.mean, cell.std)} over ${words.count(cell.runs, "run")}`,
      isOurs(cell) && `chosen among ${chosen(cell)}`,
      cell.missing && `nothing of ours: ${cell.missing}`,
      words.there(cell.printed_mean) && `printed ${printed(cell)}`,
      cell.quoted && `the printed number is quoted from ${cell.quoted}`,
      cell.limit && `the paper's program ran out of ${cell.limit}`,
    ].filter(Boolean);
  }

  return { isOurs, value, spread, printed, chosen, lines };
})();
