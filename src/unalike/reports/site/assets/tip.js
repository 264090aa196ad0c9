"use strict";
// Tip: a few lines beside whatever the pointer or the keyboard is on.

const tip = (() => {
  const box = document.getElementById("tip");
  const GAP = 8;
  let target = null;

  function place() {
    const at = target.getBoundingClientRect();
    const left = Math.min(at.left, innerWidth - box.offsetWidth - GAP);
    const below = at.bottom + GAP + box.offsetHeight < innerHeight;
    box.style.left = `${Math.max(GAP, left)}px`;
    box.style.top = `${below ? at.bottom + GAP : at.top - GAP - box.offsetHeight}px`;
  }

  function hide() {
    box.hidden = true;
  }

  function on(beside, lines) {
    const show = () => {
      target = beside;
      box.replaceChildren(...lines.map((line) => element("p", {}, line)));
      box.hidden = false;
      place();
    };
    beside.setAttribute("aria-describedby", "tip");
    for (const event of ["mouseenter", "focus"]) beside.addEventListener(event, show);
    for (const event of ["mouseleave", "blur", "click"]) beside.addEventListener(event, hide);
    return beside;
  }

  addEventListener("scroll", () => box.hidden || place(), { passive: true, capture: true });
  addEventListener("keydown", (event) => event.key === "Escape" && hide());
  return { on, hide };
})();
