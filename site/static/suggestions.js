/* While somebody types into the search, the places that are called so; Enter searches all text. */
import { create } from "./elements.js";

const MOST = 8;
const SITE = new URL("../", import.meta.url);

/** How near a head is to what was typed: 0 is the same, undefined is not at all. */
function distance(head, typed) {
  const name = head.toLowerCase();
  if (name === typed) return 0;
  if (name.startsWith(typed)) return 1;
  if (name.split(/[\s_(·,-]+/).some((word) => word.startsWith(typed))) return 2;
  return name.includes(typed) ? 3 : undefined;
}

function nearest(headings, typed) {
  return headings
    .map((head) => ({ head, far: distance(head[0], typed) }))
    .filter(({ far }) => far !== undefined)
    .sort((a, b) => a.far - b.far) // what is as near keeps the pages' order
    .slice(0, MOST)
    .map(({ head }) => head);
}

const link = ([name, page, address]) =>
  create("a", { href: new URL(address, SITE).href }, create("b", { textContent: name }), page && ` ${page}`);

export function suggestPlaces() {
  const dialog = document.getElementById("pst-search-dialog");
  const input = dialog?.querySelector("input[type=search]");
  if (!input) return;
  const list = create("nav", { className: "live-places" });
  list.setAttribute("aria-label", "Places with that name");
  list.setAttribute("aria-live", "polite");
  dialog.append(list);
  let fetched;

  input.addEventListener("input", async () => {
    fetched ??= fetch(new URL("heads.json", SITE)).then((answer) => answer.json());
    const typed = () => input.value.trim().toLowerCase();
    const headings = await fetched.catch(() => []);
    list.replaceChildren(...(typed() ? nearest(headings, typed()).map(link) : []));
  });
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const stops = [input, ...list.children];
    const next = stops[stops.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  list.addEventListener("click", () => dialog.close()); // a place of this page is only scrolled to
}
