"use strict";
// Tip: a few lines beside whatever the pointer or the keyboard is on.

const tip = (() => {
  const box = document.getElementById("tip");
  const GAP = 8;

  function place(target) {
    const at = target.getBoundingClientRect();
    const left = Math.min(at.left, innerWidth - box.offsetWidth - GAP);
    const below = at.bottom + GAP + box.offsetHeight < innerHeight;
    box.style.left = `${Math.max(GAP, left)}px`;
    box.style.top = `${below ? at.bottom + GAP : at.top - GAP - box.offsetHeight}px`;
  }

  function hide() {
    box.hidden = true;
  }

  function on(target, lines) {
    const show = () => {
      box.replaceChildren(...lines.map((line) => element("p", {}, line)));
      box.hidden = false;
      place(target);
    };
    target.setAttribute("aria-describedby", "tip");
    target.addEventListener("mouseenter", show);
    target.addEventListener("focus", show);
    target.addEventListener("mouseleave", hide);
    target.addEventListener("blur", hide);
    target.addEventListener("click", hide);
    return target;
  }

  addEventListener("scroll", hide, { passive: true, capture: true });
  addEventListener("keydown", (event) => event.key === "Escape" && hide());
  return { on, hide };
})();
