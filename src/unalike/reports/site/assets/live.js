"use strict";
// Live: asks a server whether there is something new, where the page comes from one.

const live = (() => {
  const box = document.getElementById("live");
  const PAUSE = 1000;

  function tell(state) {
    box.hidden = false;
    box.textContent = state
      ? `live, ${words.count(state.running, "run")} running`
      : "the server has gone";
    box.classList.toggle("gone", !state);
  }

  async function ask() {
    try {
      const found = await fetch("data/state.json");
      return found.ok ? await found.json() : null;
    } catch {
      return null;
    }
  }

  async function follow(seen, renew) {
    const state = await ask();
    tell(state);
    if (state && state.seen !== seen) await renew(state.seen);
    setTimeout(follow, PAUSE, state?.seen ?? seen, renew);
  }

  return { follow };
})();
