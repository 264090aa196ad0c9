"use strict";
// Command: a command line with a button that copies it.

const command = (() => {
  const THANKS = 1500;

  async function copy(text, button) {
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => {
      button.textContent = before;
    }, THANKS);
  }

  function copyButton(text, what) {
    const onclick = (event) => copy(text, event.currentTarget);
    const label = `Copy the command: ${what}`;
    return element(
      "button",
      { type: "button", class: "copy", "aria-label": label, onclick },
      "Copy",
    );
  }

  function block(text, what) {
    if (!text) return quiet("This version has no command for it.");
    const parts = text.split(" ").flatMap((word) => [element("span", {}, word), " "]);
    return element("div", { class: "command" }, element("code", {}, parts), copyButton(text, what));
  }

  return { block, copyButton };
})();
