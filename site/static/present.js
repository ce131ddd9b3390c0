/* For a projector, at an address that ends in ?present: one scene a screen, its picture as
   large as there is room, arrows to go on. Loaded then alone. */

const root = document.querySelector("article > section") ?? document.querySelector("article section");

/** The scenes: what stands above the first heading, then a section for each. */
function scenes() {
  const sections = [...root.querySelectorAll(":scope > section")];
  const opening = document.createElement("section");
  const first = [...root.childNodes].filter((one) => !sections.includes(one));
  opening.append(...first);
  root.prepend(opening);
  return [opening, ...sections];
}

const all = scenes();
const bar = document.createElement("nav");
const place = document.createElement("span");

/** What is for reading alone is left out of a scene that has something to see. */
for (const scene of all) {
  scene.classList.add("scene");
  const shows = scene.querySelector(".live-panel, .cell_output svg, [data-kind=guess]");
  scene.classList.toggle("scene-shown", Boolean(shows));
}

let at = Math.max(0, all.findIndex((one) => `#${one.id}` === location.hash));

function go(to) {
  at = Math.min(Math.max(to, 0), all.length - 1);
  all.forEach((scene, i) => scene.toggleAttribute("hidden", i !== at));
  place.textContent = `${at + 1} of ${all.length}`;
  const hash = all[at].id ? `#${all[at].id}` : "";
  history.replaceState(null, "", location.pathname + location.search + hash);
  scrollTo(0, 0);
}

function button(text, label, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "live-button live-plain";
  made.textContent = text;
  made.setAttribute("aria-label", label);
  made.onclick = act;
  return made;
}

const end = document.createElement("a");
end.href = location.pathname;
end.textContent = "back to the page";
bar.className = "scene-bar";
bar.setAttribute("aria-label", "Scenes");
bar.append(button("←", "Scene before", () => go(at - 1)), place);
bar.append(button("→", "Next scene", () => go(at + 1)), end);
document.body.append(bar);

const written = "input, textarea, select, [role=slider]";
document.addEventListener("keydown", (event) => {
  if (event.target.closest(written) || event.ctrlKey || event.altKey || event.metaKey) return;
  const step = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  go(at + step);
});

document.documentElement.classList.add("present");
go(at);
