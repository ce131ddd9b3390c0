/* The search is Pagefind's, in a dialog or on a page of its own. Its files are fetched when
   somebody opens it, and then stay on the device with the whole index. */
import { create } from "./elements.js";

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

async function keep() {
  const files = await (await fetch(new URL("files.json", FILES))).json();
  (await navigator.serviceWorker.ready).active.postMessage(files);
}
