"use strict";
// Cell: the dialog that shows where a number comes from.

const cell = (() => {
  const dialog = document.getElementById("cell");

  function fact(name, value) {
    return element("div", {}, element("dt", {}, name), element("dd", {}, value));
  }

  function ours(cell) {
    if (!score.isOurs(cell)) return [];
    return [
      fact("ours, validation", words.score(cell.valid)),
      fact("runs", words.count(cell.runs, "split")),
      fact("chosen among", score.chosen(cell)),
      fact("time of a run", words.seconds(cell.seconds)),
      fact("peak memory", words.memory(cell.memory_mb)),
      fact("device", cell.device),
    ];
  }

  function facts({ cell, column }) {
    const test = `ours, test ${column.metric}`;
    const printed = cell.quoted ? `printed, quoted from ${cell.quoted}` : "printed";
    const lost = cell.relative_error;
    return element(
      "dl",
      { class: "facts" },
      score.isOurs(cell) ? fact(test, words.spread(cell.mean, cell.std)) : null,
      words.there(cell.printed_mean) ? fact(printed, score.printed(cell)) : null,
      cell.limit ? fact("the paper's program", `ran out of ${cell.limit}`) : null,
      words.there(lost) ? fact("lost against full batch", `${words.score(lost)} %`) : null,
      ours(cell),
    );
  }

  function chips(options) {
    return element(
      "ul",
      { class: "chips" },
      Object.entries(options).map(([name, value]) =>
        element("li", {}, element("span", {}, words.spaced(name)), ` ${words.option(value)}`),
      ),
    );
  }

  function sweep(title, cell) {
    return cell.sweep ? [element("h3", {}, title), command.block(cell.sweep, "sweep")] : [];
  }

  function behind(told, { cell, column }) {
    const chosen = told.settings.find((one) => one.mark === cell.setting);
    if (!chosen) return [quiet("These runs have changed; close this and open the cell again.")];
    return [
      curves.draw(told.curves[chosen.mark], column.metric),
      ...answers.draw(told.answers[chosen.mark]),
      element("h3", {}, "The command that repeats it"),
      command.block(shelf.command(chosen, runs.splitsOf(chosen)), "all splits"),
      ...sweep("The command that tries all settings", cell),
      element("h3", {}, "The chosen setting"),
      chips(chosen.options),
      runs.ofSetting(chosen),
      runs.ofShelf(told, chosen),
    ];
  }

  function absent({ cell }) {
    return [
      element("p", {}, `There is nothing of ours: ${cell.missing}.`),
      ...sweep("The command that fills it", cell),
    ];
  }

  async function open(where) {
    const title = `${where.row.label} on ${where.column.label}`;
    const body = element("div", { class: "body" });
    const onclick = () => dialog.close();
    dialog.replaceChildren(
      element(
        "div",
        { class: "top" },
        element("h2", { id: "cell-title" }, title),
        element("button", { type: "button", class: "close", onclick, "aria-label": "Close" }, "×"),
      ),
      facts(where),
      body,
    );
    dialog.showModal();
    dialog.scrollTop = 0;
    if (!where.cell.shelf) {
      body.append(...absent(where));
      return;
    }
    body.append(quiet("Reading the runs …"));
    try {
      body.replaceChildren(...behind(await shelf.get(where.cell.shelf), where));
    } catch (error) {
      body.replaceChildren(quiet(error.message));
    }
  }

  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return { open };
})();
