/* What moves in the page, and what starts it, its guesses and exercises. Nothing of Python
   is fetched before somebody asks for what it alone can show. */
import { contents } from "./contents.js";
import { openHandle } from "./handle.js";
import { AnswerForm } from "./forms.js";
import { openPanel } from "./panel.js";
import { Progress } from "./progress.js";
import { addSearch } from "./search.js";
import { addTooltips } from "./tooltips.js";

for (const form of document.querySelectorAll(".live-form")) new AnswerForm(form);
const handles = [...document.querySelectorAll(".live-handle")].map(
  (section, at) => openHandle(section, at),
);
for (const section of document.querySelectorAll(".live-panel:not(.live-handle)")) {
  const address = location.search === "?present" ? "" : location.search.slice(1);
  section.querySelector(".live-start").onclick = () => openPanel(section, address);
  const shared = new URLSearchParams(address);
  shared.delete("highlight");
  const [visit] = performance.getEntriesByType("navigation");
  if ([...shared].length && visit?.type === "navigate") {
    openPanel(section, shared.toString()); // a link that somebody shared
    section.scrollIntoView();
  }
}
Progress.show();
addTooltips();
addSearch();
contents();
/* One button for light and dark, as on the front page. The theme takes what it asks for from
   its element, so that is set first: the other of what is seen. */
document.getElementById("theme").addEventListener("click", ({ currentTarget: button }) => {
  button.dataset.mode = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
}, { capture: true });
/* Paper is white. */
const page = document.documentElement.dataset;
let theme;
addEventListener("beforeprint", () => ([theme, page.theme] = [page.theme, "light"]));
addEventListener("afterprint", () => (page.theme = theme));
if (new URLSearchParams(location.search).has("present")) import("./present.js");

/** The chapters stay from now on, and of each page that is visited the pictures it moves. */
async function stay() {
  if (!("serviceWorker" in navigator)) return;
  const { active } = await navigator.serviceWorker
    .register(new URL("../offline.js", import.meta.url))
    .then(() => navigator.serviceWorker.ready);
  const asked = performance.getEntriesByType("resource").map((one) => one.name);
  const pictures = handles.map((one) => one.file.href);
  active.postMessage([location.href.split("#")[0], ...asked, ...pictures]);
}
addEventListener("load", () => stay().catch(() => {})); // a private window may refuse
