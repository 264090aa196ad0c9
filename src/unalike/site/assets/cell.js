"use strict";
// Cell: the dialog that shows where a number comes from.

const cell = (() => {
  const dialog = document.getElementById("cell");
  const FEW = 12;

  function fact(name, value) {
    return element("div", {}, element("dt", {}, name), element("dd", {}, value));
  }

  function facts({ cell, column }) {
    const ours = score.isOurs(cell) ? [
      fact(`ours, test ${column.metric}`, words.spread(cell.mean, cell.std)),
      fact("ours, validation", words.score(cell.valid)),
      fact("runs", words.count(cell.runs, "split")),
      fact("chosen among", score.chosen(cell)),
      fact("time of a run", words.seconds(cell.seconds)),
      fact("peak memory", words.memory(cell.memory_mb)),
      fact("device", cell.device),
    ] : [];
    const printed = cell.quoted ? `printed, quoted from ${cell.quoted}` : "printed";
    return element("dl", { class: "facts" },
      ours.slice(0, 1),
      words.there(cell.printed_mean) ? fact(printed, score.printed(cell)) : null,
      cell.limit ? fact("the paper's program", `ran out of ${cell.limit}`) : null,
      words.there(cell.relative_error) ? fact("lost against full batch", `${words.score(cell.relative_error)} %`) : null,
      ours.slice(1));
  }

  function chips(options) {
    return element("ul", { class: "chips" }, Object.entries(options).map(([name, value]) =>
      element("li", {}, element("span", {}, words.spaced(name)), ` ${words.option(value)}`)));
  }

  function runsTable(setting) {
    return table.of("Runs", [
      { key: "split", label: "split", first: "ascending", value: (run) => run.split, kind: "number" },
      ...["train", "valid", "test"].map((key) => (
        { key, label: key, value: (run) => run[key], show: (run) => words.score(run[key]), kind: "number" })),
      { key: "epoch", label: "best epoch", value: (run) => run.best_epoch, show: (run) => run.best_epoch ?? "–", kind: "number" },
      { key: "seconds", label: "time", value: (run) => run.seconds, show: (run) => words.seconds(run.seconds), kind: "number" },
      { key: "memory", label: "memory", value: (run) => run.peak_memory_mb, show: (run) => words.memory(run.peak_memory_mb), kind: "number" },
      { key: "commit", label: "commit", value: (run) => run.commit, show: (run) => run.commit.slice(0, 8) },
      { key: "command", label: "command", show: (run) => repeat(setting, [run.split]) },
    ], setting.runs);
  }

  function repeat(setting, splits) {
    const line = shelf.command(setting, splits);
    return line ? command.copyButton(line, `split ${splits.join(", ")}`) : "–";
  }

  function settingsTable(told, chosen, limit) {
    const options = Object.keys(told.options).map((name) => ({
      key: name, label: words.spaced(name), value: (one) => one.varied[name],
      show: (one) => (words.there(one.varied[name]) ? words.option(one.varied[name]) : "–"), first: "ascending",
    }));
    return table.of("Settings that were tried", [
      { key: "valid", label: "validation", value: (one) => one.valid, show: (one) => [words.score(one.valid), one === chosen ? element("small", {}, "chosen") : null], kind: "number" },
      { key: "test", label: "test", value: (one) => one.test, show: (one) => words.spread(one.test, one.std), kind: "number" },
      ...options,
      { key: "count", label: "splits", value: (one) => one.count, kind: "number" },
      { key: "command", label: "command", show: (one) => repeat(one, one.runs.map((run) => run.split)) },
    ], told.settings, { order: { column: "valid", direction: "descending" }, limit });
  }

  function settings(told, chosen) {
    const place = element("div", {}, table.scroller("Settings", settingsTable(told, chosen, FEW)));
    const all = told.settings.length;
    if (all <= FEW) return place;
    const onclick = () => place.replaceChildren(table.scroller("Settings", settingsTable(told, chosen, Infinity)));
    place.append(element("button", { type: "button", class: "more", onclick }, `Show all ${all} settings`));
    return place;
  }

  function behind(told, { cell, column }) {
    const chosen = told.settings.find((one) => one.mark === cell.setting);
    if (!chosen) return [element("p", { class: "quiet" }, "These runs have changed; close this and open the cell again.")];
    const splits = chosen.runs.map((run) => run.split);
    return [
      curves.draw(told.curves[chosen.mark], column.metric),
      element("h3", {}, "The command that repeats it"),
      command.block(shelf.command(chosen, splits), "all splits"),
      element("h3", {}, "The chosen setting"),
      chips(chosen.options),
      table.scroller("Runs", runsTable(chosen)),
      settings(told, chosen),
    ];
  }

  function absent({ cell }) {
    return [
      element("p", {}, `There is nothing of ours: ${cell.missing}.`),
      cell.sweep ? element("h3", {}, "The command that fills it") : null,
      cell.sweep ? command.block(cell.sweep, "sweep") : null,
    ].filter(Boolean);
  }

  async function open(where) {
    const title = `${where.row.label} on ${where.column.label}`;
    const body = element("div", { class: "body" });
    const onclick = () => dialog.close();
    dialog.replaceChildren(
      element("div", { class: "top" },
        element("h2", { id: "cell-title" }, title),
        element("button", { type: "button", class: "close", onclick, "aria-label": "Close" }, "×")),
      facts(where), body);
    dialog.showModal();
    dialog.scrollTop = 0;
    if (!where.cell.shelf) {
      body.append(...absent(where));
      return;
    }
    body.append(element("p", { class: "quiet" }, "Reading the runs …"));
    try {
      body.replaceChildren(...behind(await shelf.get(where.cell.shelf), where));
    } catch (error) {
      body.replaceChildren(element("p", { class: "quiet" }, error.message));
    }
  }

  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return { open };
})();
