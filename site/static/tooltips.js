/* A word of the glossary shows its sentence: in a card beside it for pointer and keyboard, at
   the foot of the window for a finger, whose first touch does not leave the page. */
import { create, show } from "./elements.js";

const WORDS = 'article a[title][href*="glossary.html#"]';

export function addTooltips() {
  const card = create("div", { className: "live-tip", id: "live-tip", hidden: true });
  card.setAttribute("role", "tooltip");
  document.body.append(card);
  let explained; // the word whose sentence the card has
  let waits, from;

  const hide = () => {
    clearTimeout(waits);
    explained?.removeAttribute("aria-describedby");
    explained = undefined;
    show(card, false);
  };

  const tell = (word, byTouch) => {
    hide();
    [explained, from] = [word, scrollY];
    card.replaceChildren(create("b", { textContent: word.textContent }), ` ${word.dataset.tip}`);
    if (byTouch) card.append(" ", create("a", { href: word.href, textContent: "To the glossary" }));
    card.classList.toggle("live-tip-foot", byTouch);
    word.setAttribute("aria-describedby", card.id);
    show(card, true);
    if (byTouch) return;
    const { left, top, bottom } = word.getBoundingClientRect();
    const room = innerWidth - card.offsetWidth - 12;
    card.style.left = `${Math.max(12, Math.min(left, room))}px`;
    const above = bottom + card.offsetHeight + 12 > innerHeight;
    card.style.top = `${above ? top - card.offsetHeight - 8 : bottom + 8}px`;
  };

  for (const word of document.querySelectorAll(WORDS)) {
    word.dataset.tip = word.title;
    word.removeAttribute("title"); // else the browser shows it as well
    let byTouch = false;
    word.addEventListener("pointerdown", (event) => (byTouch = event.pointerType === "touch"));
    word.addEventListener("pointerenter", ({ pointerType }) => {
      clearTimeout(waits);
      if (pointerType === "mouse") waits = setTimeout(() => tell(word, false), 200);
    });
    word.addEventListener("pointerleave", ({ pointerType }) => {
      clearTimeout(waits);
      if (pointerType === "mouse") waits = setTimeout(hide, 250);
    });
    word.addEventListener("focus", () => byTouch || tell(word, false));
    word.addEventListener("blur", () => byTouch || hide()); // a finger goes on to the card's link
    word.addEventListener("click", (event) => {
      if (!byTouch || explained === word) return;
      event.preventDefault();
      tell(word, true);
    });
  }
  card.addEventListener("pointerenter", () => clearTimeout(waits));
  card.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && hide());
  addEventListener("keydown", (event) => event.key === "Escape" && hide());
  addEventListener("scroll", () => Math.abs(scrollY - from) > 40 && hide(), { passive: true });
  addEventListener("pointerdown", ({ target }) => target === explained || card.contains(target) || hide());
}
