"use strict";
// The dialog of a table cell: the runs, configurations and commands behind a number.

const cellDialog = (() => {
  const dialog = document.getElementById("cell");
  const NUM_CONFIGS = 12; // shown before the button "Show all" is pressed

  function item(name, value) {
    return element("div", {}, element("dt", {}, name), element("dd", {}, value));
  }

  function ourItems(cell) {
    if (!cellScore.isOurs(cell)) return [];
    return [
      item("ours, validation", format.score(cell.valid)),
      item("runs", format.count(cell.runs, "split")),
      item("best of", cellScore.selection(cell)),
      item("time of a run", format.seconds(cell.seconds)),
      item("peak memory", format.memory(cell.memory_mb)),
      item("device", cell.device),
    ];
  }

  function summary({ cell, column }) {
    const ourTest = `ours, test ${column.metric}`;
    const published = cell.quoted ? `published, quoted from ${cell.quoted}` : "published";
    const loss = cell.relative_error;
    return element(
      "dl",
      { class: "summary" },
      cellScore.isOurs(cell) ? item(ourTest, format.meanStd(cell.mean, cell.std)) : null,
      format.isPresent(cell.printed_mean) ? item(published, cellScore.published(cell)) : null,
      cell.limit ? item("the paper's program", `ran out of ${cell.limit}`) : null,
      format.isPresent(loss) ? item("loss against full batch", `${format.score(loss)} %`) : null,
      ourItems(cell),
    );
  }

  function optionList(options) {
    return element(
      "ul",
      { class: "options" },
      Object.entries(options).map(([name, value]) =>
        element("li", {}, element("span", {}, format.spaced(name)), ` ${format.option(value)}`),
      ),
    );
  }

  function sweep(title, cell) {
    return cell.sweep ? [element("h3", {}, title), command.block(cell.sweep, "sweep")] : [];
  }

  function repeatButton(config, splits) {
    const line = methodRuns.command(config, splits);
    return line ? command.copyButton(line, `split ${splits.join(", ")}`) : "–";
  }

  function runsTable(config) {
    const columns = [
      table.numbers("split", "split", String, "ascending"),
      ...["train", "valid", "test"].map((key) => table.numbers(key, key, format.score)),
      table.numbers("best_epoch", "best epoch"),
      table.numbers("seconds", "time", format.seconds),
      table.numbers("peak_memory_mb", "memory", format.memory),
      table.texts("commit", "commit", (commit) => commit.slice(0, 8)),
      { key: "command", label: "command", show: (run) => repeatButton(config, [run.split]) },
    ];
    return table.scroller("Runs", table.of("Runs", columns, config.runs));
  }

  function optionColumn(name) {
    const value = (config) => config.varying[name];
    const show = (config) =>
      format.isPresent(value(config)) ? format.option(value(config)) : "–";
    return { key: `option-${name}`, label: format.spaced(name), value, show, first: "ascending" };
  }

  function configsTable(content, selected, limit) {
    const label = (config) => (config === selected ? element("small", {}, "selected") : null);
    const columns = [
      {
        ...table.numbers("valid", "validation"),
        show: (config) => [format.score(config.valid), label(config)],
      },
      {
        ...table.numbers("test", "test"),
        show: (config) => format.meanStd(config.test, config.std),
      },
      ...Object.keys(content.varying_options).map(optionColumn),
      table.numbers("num_splits", "splits"),
      {
        key: "command",
        label: "command",
        show: (config) => repeatButton(config, methodRuns.splits(config)),
      },
    ];
    const order = { column: "valid", direction: "descending" };
    const node = table.of("Configurations", columns, content.configs, { order, limit });
    return table.scroller("Configurations", node);
  }

  function configs(content, selected) {
    const node = element("div", {}, configsTable(content, selected, NUM_CONFIGS));
    const total = content.configs.length;
    if (total <= NUM_CONFIGS) return node;
    const onclick = () => node.replaceChildren(configsTable(content, selected, Infinity));
    const attributes = { type: "button", class: "more", onclick };
    node.append(element("button", attributes, `Show all ${total} configurations`));
    return node;
  }

  function sections(content, { cell, column }) {
    const selected = content.configs.find(({ id }) => id === cell.config);
    if (!selected)
      return [note("These runs have changed; close this dialog and open the cell again.")];
    return [
      charts.curves(content.curves[selected.id], column.metric),
      ...predictions.draw(content.predictions[selected.id]),
      element("h3", {}, "Command that repeats these runs"),
      command.block(methodRuns.command(selected), "all splits"),
      ...sweep("Command that runs all configurations", cell),
      element("h3", {}, "Selected configuration"),
      optionList(selected.options),
      runsTable(selected),
      configs(content, selected),
    ];
  }

  function emptySections({ cell }) {
    return [
      element("p", {}, `No result of ours: ${cell.missing}.`),
      ...sweep("Command that runs it", cell),
    ];
  }

  /** Open the dialog of a cell, given with its row and column. */
  async function open(entry) {
    const title = `${entry.row.label} on ${entry.column.label}`;
    const body = element("div", { class: "body" });
    const onclick = () => dialog.close();
    dialog.replaceChildren(
      element(
        "div",
        { class: "top" },
        element("h2", { id: "cell-title" }, title),
        element("button", { type: "button", class: "close", onclick, "aria-label": "Close" }, "×"),
      ),
      summary(entry),
      body,
    );
    dialog.showModal();
    dialog.scrollTop = 0;
    if (!entry.cell.method_runs) {
      body.append(...emptySections(entry));
      return;
    }
    body.append(note("Loading the runs …"));
    try {
      body.replaceChildren(...sections(await methodRuns.get(entry.cell.method_runs), entry));
    } catch (error) {
      body.replaceChildren(note(error.message));
    }
  }

  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", tooltip.hide);
  return { open };
})();
