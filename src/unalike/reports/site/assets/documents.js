"use strict";
// Documents: what the page knows, loaded as scripts because a disk serves nothing else.

const documents = (() => {
  const waiting = new Map();
  const found = new Map();

  function load(address) {
    return new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = address;
      script.onload = () => {
        script.remove();
        done();
      };
      script.onerror = () => {
        script.remove();
        failed(new Error(`${address} cannot be read`));
      };
      document.head.append(script);
    });
  }

  function taken(name) {
    const told = waiting.get(name);
    waiting.delete(name);
    return told;
  }

  /** A document by its name; only the version that was asked for last is kept. */
  function get(name, version = "") {
    if (found.get(name)?.version !== version) {
      const address = `data/${encodeURIComponent(name)}.js${version && `?${version}`}`;
      const arrived = waiting.has(name) ? Promise.resolve() : load(address);
      const document = arrived.then(() => taken(name));
      document.catch(() => found.delete(name));
      found.set(name, { version, document });
    }
    return found.get(name).document;
  }

  return { get, load, receive: (name, told) => waiting.set(name, told) };
})();

/** What every data file calls. */
function receive(name, told) {
  documents.receive(name, told);
}
