"use strict";
// Page: shows one view at a time, the one that the address names.

const page = (() => {
  const main = document.getElementById("main");
  const VIEWS = { leaderboard, cost, settings: sensitivity, datasets, missing };
  const FIRST = "leaderboard";
  let site = null;

  const named = () =>
    Object.hasOwn(VIEWS, location.hash.slice(1)) ? location.hash.slice(1) : FIRST;

  /** Draw the view anew, and give the keyboard back what it was on. */
  function redraw() {
    const focused = document.activeElement?.id;
    tip.hide();
    main.replaceChildren(...VIEWS[named()].draw(site));
    if (focused && main.contains(document.getElementById(focused)))
      document.getElementById(focused).focus();
  }

  function mark() {
    for (const link of document.querySelectorAll("nav a")) {
      link.removeAttribute("aria-current");
      if (link.hash !== `#${named()}`) continue;
      link.setAttribute("aria-current", "page");
      main.setAttribute("aria-label", link.textContent);
    }
  }

  function tell() {
    const summary = document.getElementById("summary");
    summary.textContent = `${words.count(site.runs, "run")}, version ${site.version}`;
  }

  async function renew(version) {
    site = await documents.get("site", version);
    tell();
    redraw();
  }

  async function start() {
    mark();
    await renew("");
    if (site.live) live.follow(site.live, renew);
  }

  function skip(event) {
    event.preventDefault(); // the address names the view
    main.focus();
  }

  addEventListener("hashchange", () => {
    mark();
    redraw();
    main.focus();
  });
  document.querySelector(".skip").addEventListener("click", skip);
  start().catch((error) => main.replaceChildren(element("p", {}, error.message)));
  return { redraw, version: () => site.live ?? "" };
})();
