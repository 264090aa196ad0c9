"use strict";
// Data of the page: documents that are loaded as scripts, runs of a method, live updates.

const documents = (() => {
  const received = new Map();
  const cached = new Map();

  /** Load a script; a page that was opened from a disk can load no other files. */
  function load(address) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = address;
      script.onload = () => {
        script.remove();
        resolve();
      };
      script.onerror = () => {
        script.remove();
        reject(new Error(`${address} cannot be read`));
      };
      document.head.append(script);
    });
  }

  function take(name) {
    const content = received.get(name);
    received.delete(name);
    return content;
  }

  /** A document by its name; only the last version that was requested is cached. */
  function get(name, version = "") {
    if (cached.get(name)?.version !== version) {
      const address = `data/${encodeURIComponent(name)}.js${version && `?${version}`}`;
      const loaded = received.has(name) ? Promise.resolve() : load(address);
      const content = loaded.then(() => take(name));
      content.catch(() => cached.delete(name));
      cached.set(name, { version, content });
    }
    return cached.get(name).content;
  }

  return { get, load, receive: (name, content) => received.set(name, content) };
})();

/** What every data file calls. */
function receive(name, content) {
  documents.receive(name, content);
}

/** All runs of a method on a dataset, which the document holds as columns. */
const methodRuns = (() => {
  function toRows(columns) {
    const names = Object.keys(columns).filter((name) => name !== "length");
    const value = (name, index) =>
      Array.isArray(columns[name]) ? columns[name][index] : columns[name].constant;
    return Array.from({ length: columns.length }, (_, index) =>
      Object.fromEntries(names.map((name) => [name, value(name, index)])),
    );
  }

  function toConfigs(content) {
    const runs = toRows(content.runs);
    const configs = toRows(content.configs).map((config, index) => {
      const varying = Object.entries(content.varying_options).map(([name, values]) => [
        name,
        values[index],
      ]);
      const present = varying.filter(([, value]) => format.isPresent(value));
      return {
        ...config,
        options: { ...content.shared_options, ...Object.fromEntries(present) },
        varying: Object.fromEntries(varying),
        runs: runs.filter((run) => run.config === index),
      };
    });
    return { ...content, configs };
  }

  const splits = (config) => config.runs.map((run) => run.split);

  /** The command that repeats a configuration on some splits. */
  function command(config, ids = splits(config)) {
    return config.command && `${config.command} --splits ${ids.join(",")} --seed ${config.seed}`;
  }

  const get = (id) => documents.get(id, page.token()).then(toConfigs);

  return { get, command, splits };
})();

/** Polls the server of a live page and redraws the page when results have changed. */
const live = (() => {
  const box = document.getElementById("live");
  const INTERVAL_MS = 1000;

  function showStatus(state) {
    box.hidden = false;
    box.textContent = state
      ? `live, ${format.count(state.running, "run")} running`
      : "the server does not answer";
    box.classList.toggle("offline", !state);
  }

  async function fetchState() {
    try {
      const response = await fetch("data/state.json");
      return response.ok ? await response.json() : null;
    } catch {
      return null;
    }
  }

  async function poll(token, update) {
    const state = await fetchState();
    showStatus(state);
    if (state && state.token !== token) await update(state.token);
    setTimeout(poll, INTERVAL_MS, state?.token ?? token, update);
  }

  return { poll };
})();
