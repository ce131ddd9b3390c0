/* A panel in a page: Python draws it in a worker, once it's started. */
import { button } from "./elements.js";
import { PanelFace } from "./face.js";
import { narrow } from "./handle.js";
import { python, waiting } from "./python.js";

class Kernel {
  constructor(word) {
    this.word = word;
  }

  act(...deed) {
    return python.call("act", this.word, ...deed);
  }

  buttons() {
    this.copy = button("Copy a link", () => this.#copyLink());
    return [this.copy];
  }

  /** The address says what's set, but of a scene on a projector which one it is. */
  shown({ address }) {
    if (document.querySelector(".present")) return;
    const search = address ? `?${address}` : location.pathname;
    history.replaceState(null, "", search + location.hash);
  }

  async #copyLink() {
    try {
      await navigator.clipboard.writeText(location.href);
      this.copy.textContent = "Copied";
    } catch {
      this.copy.textContent = "The link is in the address bar";
    }
    setTimeout(() => (this.copy.textContent = "Copy a link"), 2500);
  }
}

/** Start Python, and show the panel in the place of the one that was saved. */
export async function openPanel(section, address = "") {
  const { word } = section.dataset;
  const first = section.firstElementChild;
  first.setAttribute("role", "status");
  waiting(first);
  try {
    const answer = await python.call("opened", word, address, narrow());
    const face = new PanelFace(section, word, new Kernel(word));
    face.build(answer.layout);
    section.parentElement.querySelector(".live-saved").hidden = true;
    face.tell(answer);
    const room = document.documentElement.classList.contains("present"); // the arrows go on there
    (room ? face.answer : face.preset).focus({ preventScroll: true });
    section.scrollIntoView({ block: "start" });
  } catch (error) {
    first.textContent = `The panel didn't start: ${error.message} `;
    first.append(button("Try again", () => openPanel(section, address), false));
  }
}
