"use strict";
// Elements of the page: text, selects, tooltips, commands with a copy button, themes.

/** Create an element; strings become text, never markup. */
function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** A paragraph in small print. */
function note(...texts) {
  return element("p", { class: "muted" }, ...texts);
}

/** A select with a label; entries are strings or pairs of value and text. */
function select(id, label, entries, selected, change) {
  const options = entries.map((entry) => {
    const { value, text } = typeof entry === "string" ? { value: entry, text: entry } : entry;
    return element("option", { value, selected: value === selected }, text);
  });
  const onchange = (event) => change(event.target.value);
  return element("label", { class: "select" }, label, element("select", { id, onchange }, options));
}

/** A box of lines beside an element or the pointer. */
const tooltip = (() => {
  const box = document.getElementById("tooltip");
  const GAP = 8; // pixels

  /** Show lines beside a rectangle, on top of an open dialog too. */
  function show(lines, { left, top, bottom }) {
    box.replaceChildren(...lines.map((line) => element("p", {}, line)));
    box.hidden = false;
    box.hidePopover();
    box.showPopover();
    const x = Math.min(left, innerWidth - box.offsetWidth - GAP);
    const fitsBelow = bottom + GAP + box.offsetHeight < innerHeight;
    box.style.left = `${Math.max(GAP, x)}px`;
    box.style.top = `${fitsBelow ? bottom + GAP : top - GAP - box.offsetHeight}px`;
  }

  function hide() {
    box.hidden = true;
  }

  /** Show lines while the pointer or the focus is on a node. */
  function attach(node, lines) {
    const open = () => show(lines, node.getBoundingClientRect());
    node.setAttribute("aria-describedby", "tooltip");
    for (const event of ["mouseenter", "focus"]) node.addEventListener(event, open);
    for (const event of ["mouseleave", "blur", "click"]) node.addEventListener(event, hide);
    return node;
  }

  addEventListener("scroll", hide, { passive: true, capture: true });
  addEventListener("keydown", (event) => event.key === "Escape" && hide());
  return { attach, show, hide };
})();

/** Command lines with a button that copies them. */
const command = (() => {
  const CONFIRMATION_MS = 1500;

  async function copy(text, button) {
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => {
      button.textContent = label;
    }, CONFIRMATION_MS);
  }

  function copyButton(text, description) {
    const onclick = (event) => copy(text, event.currentTarget);
    const label = `Copy the command: ${description}`;
    return element(
      "button",
      { type: "button", class: "copy", "aria-label": label, onclick },
      "Copy",
    );
  }

  function block(text, description) {
    if (!text) return note("This version has no command for it.");
    const parts = text.split(" ").flatMap((part) => [element("span", {}, part), " "]);
    const code = element("code", {}, parts);
    return element("div", { class: "command" }, code, copyButton(text, description));
  }

  return { block, copyButton };
})();

// Light or dark: the system decides until the button is pressed.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const OTHER = { light: "dark", dark: "light" };
  const current = () => root.dataset.theme ?? (system.matches ? "dark" : "light");

  function stored() {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null; // a browser may refuse storage to a page from a disk
    }
  }

  function store(name) {
    try {
      localStorage.setItem("theme", name);
    } catch {
      // the choice then lasts as long as the page
    }
  }

  function updateButton() {
    const other = OTHER[current()];
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to ${other} colours`);
  }

  if (stored() in OTHER) root.dataset.theme = stored();
  button.addEventListener("click", () => {
    root.dataset.theme = OTHER[current()];
    store(root.dataset.theme);
    updateButton();
  });
  system.addEventListener("change", updateButton);
  updateButton();
})();
