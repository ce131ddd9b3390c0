/* The search is Pagefind's, in a dialog or on a page of its own. Its files are fetched when
   somebody opens it, and then stay on the device with the whole index. */
import { button, create, show } from "./elements.js";

const SITE = new URL("../", import.meta.url);
const FILES = new URL("pagefind/", SITE);
const LONGEST = 5000; // ms that a key waits for results
let loaded;

export function addSearch() {
  document.querySelector(".search-button").addEventListener("click", open);
  addEventListener("keydown", (event) => {
    if (event.key !== "k" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    open();
  });
  if (document.getElementById("search")) open();
}

async function open() {
  loaded ??= load();
  const dialog = await loaded;
  if (dialog) dialog.open();
  else document.querySelector("pagefind-input").focus();
}

/** Fetch Pagefind, and give it what was asked in the address; return its dialog, if it's one. */
async function load() {
  const href = new URL("pagefind-component-ui.css", FILES).href;
  const styled = new Promise((done) => {
    document.head.prepend(create("link", { rel: "stylesheet", href, onload: done, onerror: done }));
  });
  await Promise.all([styled, import(new URL("pagefind-component-ui.js", FILES))]);
  window.PagefindComponents.configureInstance("default", {
    bundlePath: FILES.pathname,
    baseUrl: SITE.pathname,
    ranking: { metaWeights: { title: 0 } }, // it also names the page; the heading is in the text
  });
  const page = document.getElementById("search");
  const parts = page ? ["input", "summary", "results"] : ["modal"];
  const elements = parts.map((name) => create(`pagefind-${name}`));
  (page ?? document.body).append(...elements);
  const input = document.querySelector("pagefind-input input");
  openFirst(input, document.querySelector("pagefind-results"));
  offerNear(input, document.querySelector("pagefind-results")).catch(() => {});
  input.value = new URLSearchParams(location.search).get("q") ?? "";
  if (input.value) input.dispatchEvent(new Event("input"));
  keep().catch(() => {}); // a private window may refuse
  return page ? undefined : elements[0];
}

/** Let Enter open the first result of all that's typed, and the arrow go to it: what was
    found for half of it is still there, and would take the focus with it when it goes. */
function openFirst(input, results) {
  const search = window.PagefindComponents.getInstanceManager().getInstance("default");
  let [asked, answered] = ["", ""];
  search.on("search", (words) => (asked = words));
  search.on("results", () => (answered = asked));
  const first = () => (answered === input.value ? results.querySelector("li")?.querySelector("a") : null);
  const actions = { Enter: "click", ArrowDown: "focus" };
  const act = async (event) => {
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const end = performance.now() + LONGEST;
    while (!first() && performance.now() < end) await new Promise((done) => setTimeout(done, 50));
    first()?.[action]();
  };
  input.addEventListener("keydown", act, { capture: true }); // before Pagefind's own
}

/** Offer the word of a heading that's nearest to what was typed, when no heading has that. */
async function offerNear(input, results) {
  const words = await (await fetch(new URL("words.json", FILES))).json();
  const offer = create("p", { className: "search-near", role: "status" });
  results.before(offer);
  const search = window.PagefindComponents.getInstanceManager().getInstance("default");
  search.on("results", () => {
    const typed = input.value.toLowerCase().match(/[a-z-]{5,}/g) ?? [];
    const wrong = typed.find((one) => !words.some((word) => word.startsWith(one)));
    const near = words.map((word) => [distance(wrong ?? "", word), word]).sort(([a], [b]) => a - b)[0];
    show(offer, Boolean(wrong) && near[0] <= 2);
    const take = () => {
      input.value = input.value.toLowerCase().replace(wrong, near[1]);
      input.dispatchEvent(new Event("input"));
      input.focus();
    };
    offer.replaceChildren("Did you mean ", button(near[1], take), "?");
  });
}

/** How many letters have to change, be added, be left out or swap places. */
function distance(a, b) {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i]);
  rows[0] = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1)
    for (let j = 1; j <= b.length; j += 1) {
      const other = a[i - 1] === b[j - 1] ? 0 : 1;
      rows[i][j] = Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + other);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        rows[i][j] = Math.min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  return rows[a.length][b.length];
}

async function keep() {
  const files = await (await fetch(new URL("files.json", FILES))).json();
  (await navigator.serviceWorker.ready).active.postMessage(files);
}
