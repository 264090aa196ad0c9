"use strict";
// Theme: light or dark, as the system says until somebody presses the button.

const theme = (() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const OTHER = { light: "dark", dark: "light" };

  function kept() {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null; // a browser may refuse storage to a page from a disk
    }
  }

  function keep(name) {
    try {
      localStorage.setItem("theme", name);
    } catch {
      // the choice then lasts as long as the page
    }
  }

  function current() {
    return root.dataset.theme ?? (system.matches ? "dark" : "light");
  }

  function show() {
    const other = OTHER[current()];
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to ${other} colours`);
  }

  function choose(name) {
    root.dataset.theme = name;
    show();
  }

  if (kept() in OTHER) root.dataset.theme = kept();
  button.addEventListener("click", () => {
    keep(OTHER[current()]);
    choose(OTHER[current()]);
  });
  system.addEventListener("change", show);
  show();
  return { current };
})();
