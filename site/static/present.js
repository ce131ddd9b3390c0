/* For a projector, at an address that ends in ?present: one scene a screen, its picture as
   large as there is room, arrows to go on. Loaded then alone. */
import { button, create } from "./elements.js";

const root = document.querySelector("article > section") ?? document.querySelector("article section");
const PICTURE = ".live-panel, svg.wt, [data-kind=guess]";
const EXERCISE = ".live-form[data-kind=run]:not([data-closed])";
const [SMALLEST, LARGEST] = [18, 36]; // px of the letters; where nothing is drawn they fill the window
const READ = 300; // px; a picture that is lower is not read from behind, and has no words above it
const LEAST = 120; // px; a picture is not made smaller
const BAR = 80; // px at the foot of the window, where the bar is

const shows = (one) => one.matches(PICTURE) || one.querySelector(PICTURE) !== null;

/** The screens: what stands above the first heading, then each section, cut to the window. */
function scenes() {
  const sections = [...root.querySelectorAll(":scope > section")];
  const opening = create("section", {}, ...[...root.childNodes].filter((one) => !sections.includes(one)));
  root.prepend(opening);
  const all = [opening, ...sections];
  for (const one of all) one.hidden = true; // each is measured alone
  return all.flatMap((section) => {
    const parts = screens(section);
    const see = section === opening ? "svg.wt" : PICTURE; // the first holds a question
    for (const one of parts) dress(one, see);
    const fitting = parts.flatMap(windows);
    fitting.slice(1).forEach((one, at) => (one.id = `${section.id}-${at + 2}`));
    return fitting;
  });
}

/** A section, cut where a second picture or guess begins, with the question before it, and
    behind each exercise. */
function screens(section) {
  const parts = [section];
  let pictured = false;
  let judged = false;
  for (const one of [...section.children]) {
    const starts = one.matches(".live-question") || (shows(one) && !one.matches(".live-form"));
    if ((starts && pictured) || judged) {
      parts.push(cut(parts.at(-1), one));
      pictured = false;
    }
    judged = one.matches(EXERCISE);
    pictured ||= shows(one);
  }
  return parts;
}

/** A new screen below the same heading, for what stands in a scene from one element on. */
function cut(scene, from) {
  const later = [...scene.children].slice([...scene.children].indexOf(from));
  const heading = scene.querySelector(":scope > :is(h1, h2)");
  const rest = create("section", { className: scene.className, hidden: true });
  if (heading) rest.append(heading.cloneNode(true));
  rest.append(...later);
  scene.after(rest);
  return rest;
}

/** The last question of the words above a picture, or what they ask one to do: it stays where
    the words have no room. */
function ask(scene) {
  const words = scene.querySelector(":scope > :is(p, ol):has(+ .live-call .live-handle)");
  const sentences = words?.textContent.trim().split(/(?<=[.?!])\s+/) ?? [];
  const question = sentences.findLast((one) => one.endsWith("?")) ?? sentences.at(-1);
  if (question) words.after(create("div", { className: "scene-ask", textContent: question }));
}

/** What is for reading alone is left out of a scene that has something to see. */
function dress(scene, see) {
  scene.classList.add("scene");
  scene.classList.toggle("scene-shown", scene.querySelector(see) !== null);
  const whole = (one) => one.querySelector(":scope > strong")?.textContent === one.textContent.trim();
  for (const one of scene.querySelectorAll(":scope > p")) one.classList.toggle("scene-line", whole(one));
  ask(scene);
}

/** A scene that is higher than the window, cut at its edge; an exercise stays with its
    question. One that shows nothing but its heading is no screen. */
function windows(scene) {
  scene.hidden = false;
  scene.style.setProperty("--picture", `${LEAST}px`);
  const seen = [...scene.children].filter((one) => one.offsetHeight && !one.matches("h1, h2"));
  const under = (one) => one.getBoundingClientRect().bottom + scrollY > innerHeight - BAR;
  let at = seen.findIndex(under);
  const words = scene.querySelector(":scope:not(.scene-bare) > :is(p, ol):has(+ .scene-ask, + .live-call)");
  if (words && at > 0 && seen[at].matches(".live-call, .scene-line")) {
    scene.classList.add("scene-bare"); // rather than part the picture from its line
    return windows(scene);
  }
  while (at > 0 && seen[at - 1].matches(".live-question")) at -= 1;
  scene.hidden = true;
  if (!seen.length) scene.remove();
  if (at < 1) return seen.length ? [scene] : [];
  return [scene, ...windows(cut(scene, seen[at]))];
}

document.documentElement.classList.add("present");
const all = scenes();
const place = create("span");

let at = Math.max(0, all.findIndex((one) => one.id && `#${one.id}` === location.hash));

/** Words without a picture, and the pictures of a scene, are as large as the window lets them; by halves, for words and
    controls stand above some and beside others. */
function fit() {
  const scene = all[at];
  const height = (picture) => {
    scene.style.setProperty("--picture", `${picture}px`);
    return scene.getBoundingClientRect().bottom + scrollY;
  };
  scene.style.fontSize = "";
  const most = Math.max(innerHeight, height(LEAST));
  if (!scene.querySelector("svg.wt"))
    for (let words = LARGEST; words >= SMALLEST; words -= 2) {
      scene.style.fontSize = `${words}px`;
      if (height(LEAST) <= innerHeight - BAR) return;
    }
  let size = LEAST;
  for (let step = 1024; step >= 1; step /= 2) if (height(size + step) <= most) size += step;
  height(size);
  const bare = size < READ && scene.querySelector(":scope > :is(p, ol):has(+ .scene-ask, + .live-call)");
  if (!bare || scene.matches(".scene-bare")) return;
  scene.classList.add("scene-bare");
  fit();
}

/** On to the line to carry away, which waits until its picture was seen, then to the next scene. */
function on() {
  const scene = all[at];
  const waits = scene.matches(".scene-shown:not(.scene-told)") && scene.querySelector(":scope > .scene-line");
  if (waits) scene.classList.add("scene-told");
  else go(at + 1);
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

const before = button("←", () => go(at - 1));
const next = button("→", on);
before.setAttribute("aria-label", "Scene before");
next.setAttribute("aria-label", "Next scene");
const end = create("a", { href: location.pathname, textContent: "back to the page" });
const bar = { className: "scene-bar", "aria-label": "Scenes" };
document.body.append(create("nav", bar, before, place, next, end));

const moved = "input:not([type=text]), select"; // what an arrow would move once more
const written = `${moved}, input, textarea`;
let byHand = false;
const free = () => byHand && document.activeElement.matches(moved) && document.activeElement.blur();
document.addEventListener("pointerdown", () => (byHand = true));
document.addEventListener("change", () => setTimeout(free));
document.addEventListener("click", ({ target }) => target.localName !== "select" && setTimeout(free));
document.addEventListener("keydown", (event) => {
  byHand = false;
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape") document.activeElement.blur();
  const turns = event.key.startsWith("Page") && event.target.localName !== "textarea"; // a clicker
  if (event.target.closest(written) && !turns) return;
  const step = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  if (step > 0) on();
  else go(at - 1);
});

go(at);
addEventListener("resize", fit);
new MutationObserver(fit).observe(root, { childList: true, subtree: true }); // it was started
