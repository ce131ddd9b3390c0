/* For a projector, at an address that ends in ?present: one scene a screen, its picture as
   large as there is room, arrows to go on. Loaded then alone. */

const root = document.querySelector("article > section") ?? document.querySelector("article section");
const PICTURE = ".live-panel, svg.wt, [data-kind=guess]";
const LEAST = 200; // px; a picture is not made smaller

const shows = (one) => one.matches(PICTURE) || one.querySelector(PICTURE) !== null;

/** The screens: what stands above the first heading, then each section, cut where a second
    picture or guess begins, with its heading and the question before it. */
function scenes() {
  const sections = [...root.querySelectorAll(":scope > section")];
  const opening = document.createElement("section");
  opening.append(...[...root.childNodes].filter((one) => !sections.includes(one)));
  root.prepend(opening);
  return [opening, ...sections].flatMap(screens);
}

function screens(section) {
  const heading = section.querySelector(":scope > :is(h1, h2)");
  const found = [section];
  let shown = false;
  for (const one of [...section.children]) {
    const starts = one.matches(".live-question") || (shows(one) && !one.matches(".live-form"));
    const asked = one.previousElementSibling?.matches(".live-question");
    if (starts && shown && !asked) {
      found.push(document.createElement("section"));
      found.at(-1).id = `${section.id}-${found.length}`;
      section.after(...found.slice(1));
      if (heading) found.at(-1).append(heading.cloneNode(true));
      shown = false;
    }
    shown ||= shows(one);
    if (found.length > 1) found.at(-1).append(one);
  }
  return found;
}

const all = scenes();
const bar = document.createElement("nav");
const place = document.createElement("span");

/** What is for reading alone is left out of a scene that has something to see. */
for (const scene of all) {
  scene.classList.add("scene");
  const see = scene === all[0] ? "svg.wt" : PICTURE; // the first holds a question
  scene.classList.toggle("scene-shown", scene.querySelector(see) !== null);
}

let at = Math.max(0, all.findIndex((one) => one.id && `#${one.id}` === location.hash));

/** The pictures of the scene take what its words and controls leave of the window. */
function fit() {
  const scene = all[at];
  const pictures = [...scene.querySelectorAll("svg.wt")].filter((one) => one.clientHeight);
  if (!pictures.length) return;
  scene.style.setProperty("--picture", `${LEAST}px`);
  const taken = pictures.reduce((sum, one) => sum + one.getBoundingClientRect().height, 0);
  const words = scene.getBoundingClientRect().bottom + scrollY - taken;
  const room = (innerHeight - words) / pictures.length;
  scene.style.setProperty("--picture", `${Math.max(room, LEAST)}px`);
}

function go(to) {
  at = Math.min(Math.max(to, 0), all.length - 1);
  all.forEach((scene, i) => scene.toggleAttribute("hidden", i !== at));
  place.textContent = `${at + 1} of ${all.length}`;
  const hash = all[at].id ? `#${all[at].id}` : "";
  history.replaceState(null, "", location.pathname + location.search + hash);
  scrollTo(0, 0);
  fit();
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
addEventListener("resize", fit);
new MutationObserver(fit).observe(root, { childList: true, subtree: true }); // it was started
