"use strict";
// Runs: the runs of a setting, and the settings that were tried, as tables.

const runs = (() => {
  const FEW = 12;

  function repeat(setting, splits) {
    const line = shelf.command(setting, splits);
    return line ? command.copyButton(line, `split ${splits.join(", ")}`) : "–";
  }

  const splitsOf = (setting) => setting.runs.map((run) => run.split);

  function ofSetting(setting) {
    const columns = [
      table.numbers("split", "split", String, "ascending"),
      ...["train", "valid", "test"].map((key) => table.numbers(key, key, words.score)),
      table.numbers("best_epoch", "best epoch"),
      table.numbers("seconds", "time", words.seconds),
      table.numbers("peak_memory_mb", "memory", words.memory),
      table.texts("commit", "commit", (commit) => commit.slice(0, 8)),
      { key: "command", label: "command", show: (run) => repeat(setting, [run.split]) },
    ];
    return table.scroller("Runs", table.of("Runs", columns, setting.runs));
  }

  function option(name) {
    const value = (setting) => setting.varied[name];
    const show = (setting) => (words.there(value(setting)) ? words.option(value(setting)) : "–");
    return { key: `option-${name}`, label: words.spaced(name), value, show, first: "ascending" };
  }

  function settingsTable(told, chosen, limit) {
    const mark = (setting) => (setting === chosen ? element("small", {}, "chosen") : null);
    const columns = [
      {
        ...table.numbers("valid", "validation"),
        show: (setting) => [words.score(setting.valid), mark(setting)],
      },
      {
        ...table.numbers("test", "test"),
        show: (setting) => words.spread(setting.test, setting.std),
      },
      ...Object.keys(told.options).map(option),
      table.numbers("count", "splits"),
      { key: "command", label: "command", show: (setting) => repeat(setting, splitsOf(setting)) },
    ];
    const order = { column: "valid", direction: "descending" };
    const made = table.of("Settings that were tried", columns, told.settings, { order, limit });
    return table.scroller("Settings", made);
  }

  function ofShelf(told, chosen) {
    const place = element("div", {}, settingsTable(told, chosen, FEW));
    const all = told.settings.length;
    if (all <= FEW) return place;
    const onclick = () => place.replaceChildren(settingsTable(told, chosen, Infinity));
    const attributes = { type: "button", class: "more", onclick };
    place.append(element("button", attributes, `Show all ${all} settings`));
    return place;
  }

  return { ofSetting, ofShelf, splitsOf };
})();
