"use strict";
// Shelf: the runs of a method on a dataset, unfolded from the columns they come in.

const shelf = (() => {
  function unfolded(columns) {
    const names = Object.keys(columns).filter((name) => name !== "length");
    const value = (name, place) =>
      Array.isArray(columns[name]) ? columns[name][place] : columns[name].all;
    return Array.from({ length: columns.length }, (_, place) =>
      Object.fromEntries(names.map((name) => [name, value(name, place)])),
    );
  }

  function options(told, place) {
    const varied = Object.entries(told.options).map(([name, values]) => [name, values[place]]);
    return {
      ...told.shared,
      ...Object.fromEntries(varied.filter(([, value]) => words.there(value))),
    };
  }

  function open(told) {
    const runs = unfolded(told.runs);
    const settings = unfolded(told.settings).map((setting, place) => ({
      ...setting,
      options: options(told, place),
      varied: Object.fromEntries(
        Object.entries(told.options).map(([name, values]) => [name, values[place]]),
      ),
      runs: runs.filter((run) => run.setting === place),
    }));
    return { ...told, settings };
  }

  function command(setting, splits) {
    return (
      setting.command && `${setting.command} --splits ${splits.join(",")} --seed ${setting.seed}`
    );
  }

  const get = (mark) => documents.get(mark, page.version()).then(open);

  return { get, command };
})();
