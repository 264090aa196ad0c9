"use strict";
// The page: shows the view that the address names.

const page = (() => {
  const main = document.getElementById("main");
  const VIEWS = { leaderboard, cost, hyperparameters: sensitivity, datasets, missing };
  let site = null;

  function currentView() {
    const name = location.hash.slice(1);
    return Object.hasOwn(VIEWS, name) ? name : "leaderboard";
  }

  /** Draw the view again; the focus stays on the element that had it. */
  function redraw() {
    const focused = document.activeElement?.id;
    tooltip.hide();
    main.replaceChildren(...VIEWS[currentView()].draw(site));
    if (focused && main.contains(document.getElementById(focused)))
      document.getElementById(focused).focus();
  }

  function updateNavigation() {
    for (const link of document.querySelectorAll("nav a")) {
      link.removeAttribute("aria-current");
      if (link.hash !== `#${currentView()}`) continue;
      link.setAttribute("aria-current", "page");
      main.setAttribute("aria-label", link.textContent);
    }
  }

  async function update(token) {
    site = await documents.get("site", token);
    const summary = `${format.count(site.runs, "run")}, version ${site.version}`;
    document.getElementById("summary").textContent = summary;
    redraw();
  }

  async function start() {
    updateNavigation();
    await update("");
    if (site.live_token) live.poll(site.live_token, update);
  }

  addEventListener("hashchange", () => {
    updateNavigation();
    redraw();
    main.focus();
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address names the view
    main.focus();
  });
  start().catch((error) => main.replaceChildren(element("p", {}, error.message)));
  return { redraw, token: () => site.live_token ?? "" };
})();
