/* For a projector, at an address that ends in ?present: one scene a screen, its picture as
   large as there is room, keys to go on. Loaded then alone. */
import { button, create } from "./elements.js";

const page = document.documentElement;
const root = document.querySelector("article > section") ?? document.querySelector("article section");
const PICTURE = ".live-panel, svg.wt, [data-kind=guess]";
const EXERCISE = ".live-form[data-kind=run]:not([data-closed])";
const [WIDTH, HEIGHT] = [1280, 720]; // px of a window to which every other is scaled
const [SMALLEST, USUAL, LARGEST] = [18, 24, 40]; // px of letters; without a picture they fill the window
const LEAST = 300; // px of a picture's height, before the words below it go to the next screen
const BAR = 50; // px at the foot of the window, where the question and the bar are
const FLAT = 2.8; // times as wide as high: such a picture has its controls above it
const FEW = 250; // characters that don't need a screen of their own
const WALL = 420; // characters of a screen without a picture
const CONTEXT = 280; // characters of the words that lead to a picture

const shows = (one) => one.matches(PICTURE) || one.querySelector(PICTURE) !== null;

/** The screens: what stands above the first heading, then each section, cut to the window. */
function scenes() {
  const sections = [...root.querySelectorAll(":scope > section")];
  const opening = create("section", {}, ...[...root.childNodes].filter((one) => !sections.includes(one)));
  root.prepend(opening);
  const all = [opening, ...sections];
  for (const one of all) one.hidden = true; // each is measured alone
  return all.flatMap((section) => {
    const { id } = section;
    const parts = screens(section);
    const see = section === opening ? "svg.wt" : PICTURE; // the first holds a question
    const fitting = parts.flatMap((one) => dress(one, see)).flatMap(windows);
    fitting.forEach((one, at) => {
      one.dataset.section = id;
      one.id = at ? `${id}-${at + 1}` : id;
    });
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
      parts.push(cut(parts.at(-1), leading(one)));
      pictured = false;
    }
    judged = one.matches(EXERCISE);
    pictured ||= shows(one);
  }
  return parts;
}

/** The words that lead to a picture, whose question goes on the screen with it; or what starts one. */
function leading(one) {
  let first = one;
  while (first.previousElementSibling?.matches("ol, .live-margin")) first = first.previousElementSibling;
  const words = first.previousElementSibling;
  const line = words?.querySelector("strong:only-child")?.textContent === words?.textContent.trim();
  return one.matches(".live-call") && words?.matches("p:not(.live-question)") && !line ? words : one;
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

/** What leads to a picture or a guess: the end of the words above it, which asks or says what
    to do. It has its place above the picture's controls. If there are more words, they all have
    a screen before. */
function lead(scene) {
  const guess = scene.querySelector(":scope > .live-question");
  const parts = [...scene.children];
  const first = parts.findIndex((one) => one === guess || one.querySelector("svg.wt"));
  const above = parts.slice(0, first).filter((one) => one.matches("p, ol"));
  const sentences = above
    .flatMap((one) => one.textContent.trim().split(/(?<=[.?!])\s+/))
    .filter((one) => !one.startsWith("("));
  const asks = sentences.findLastIndex((one) => one.endsWith("?"));
  let words = sentences.slice(asks).join(" "); // without a question, the last sentence
  if (asks >= 0) words = sentences[asks];
  for (const one of sentences.slice(0, asks).reverse()) {
    if (words.length + one.length > CONTEXT) break;
    words = `${one} ${words}`;
  }
  if (!words) return [];
  const ask = create("p", { className: "scene-ask", textContent: words });
  const handle = scene.querySelector(".live-handle");
  if (handle) handle.prepend(ask);
  else if (guess) guess.before(ask);
  else scene.querySelector(":scope > :is(h1, h2)").after(ask);
  const prose = above.filter((one) => one.localName === "p");
  if (prose.map((one) => one.textContent).join(" ").length - words.length < FEW / 2) return [];
  const premise = create("section", { className: `${scene.className} scene`, hidden: true });
  const heading = scene.querySelector(":scope > :is(h1, h2)").cloneNode(true);
  premise.append(heading, ...prose.map((one) => one.cloneNode(true)));
  for (const one of premise.querySelectorAll("[id]")) one.removeAttribute("id");
  premise.classList.remove("scene-shown");
  scene.before(premise);
  return [premise];
}

/** A picture that can be played begins at its beginning. */
function rewind(scene) {
  for (const handle of scene.querySelectorAll(".live-handle:has(.live-play)")) {
    if (!JSON.parse(handle.dataset.start).all) continue; // Python would have to come for it
    const slider = handle.querySelector(".live-field:has(.live-play) input[type=range]");
    slider.value = 0;
    slider.dispatchEvent(new Event("input"));
  }
}

/** What is for reading alone is left out of a scene that has something to see. Its line to
    carry away is a bold sentence. */
function dress(scene, see) {
  scene.classList.add("scene");
  scene.classList.toggle("scene-shown", scene.querySelector(see) !== null);
  for (const bold of scene.querySelectorAll(":scope > p > strong:only-child")) {
    const { parentElement: line, textContent } = bold;
    line.classList.toggle("scene-line", line.textContent.trim() === textContent && /[.?!]$/.test(textContent));
  }
  rewind(scene);
  return scene.matches(".scene-shown") ? [...lead(scene), scene] : [scene];
}

/** What a scene's styles need to know about its pictures. */
function shape(scene) {
  for (const { style, viewBox } of scene.querySelectorAll("svg.wt"))
    style.setProperty("--ratio", viewBox.baseVal.width / viewBox.baseVal.height);
  const flat = (one) => one.style.getPropertyValue("--ratio") > FLAT;
  scene.classList.toggle("scene-flat", [...scene.querySelectorAll(".live-handle svg.wide")].some(flat));
}

/** A scene that is higher than the window, cut at its edge; an exercise stays with its
    question, and a line to carry away with its picture. One that shows nothing but its
    heading is no screen. */
function windows(scene) {
  scene.hidden = false;
  shape(scene);
  scene.style.setProperty("--picture", `${LEAST}px`);
  const seen = [...scene.children].filter((one) => one.offsetHeight && !one.matches("h1, h2, .scene-ask"));
  const edge = innerHeight - BAR * scale();
  const under = (one) => one.getBoundingClientRect().bottom + scrollY > edge;
  const over = (letters) => {
    scene.style.fontSize = `${letters}px`;
    return seen.findIndex((one) => under(one) && !one.matches(".scene-line"));
  };
  let at = over(USUAL);
  let read = 0;
  const much = (one) => one.matches("p, ul, ol") && (read += one.textContent.length) > WALL;
  const wall = scene.matches(".scene-shown") ? -1 : seen.findIndex((one) => much(one) && read > one.textContent.length);
  const rest = seen.slice(at).map((one) => (one.matches("p") ? one.textContent : " ".repeat(FEW)));
  if (rest.join("").length < FEW && over(SMALLEST) < 0) at = -1;
  if (wall > 0 && (at < 0 || wall < at)) at = wall;
  while (at > 0 && seen[at - 1].matches(".live-question")) at -= 1;
  scene.hidden = true;
  if (!seen.length) scene.remove();
  if (at < 1) return seen.length ? [scene] : [];
  return [scene, ...windows(cut(scene, seen[at]))];
}

/** Scale all scenes to the window. */
function scale() {
  const size = Math.max(0.6, Math.min(innerWidth / WIDTH, innerHeight / HEIGHT));
  page.style.setProperty("--scale", size);
  return size;
}

page.classList.add("present");
scale();
await document.fonts.ready; // or everything is measured in other letters
const all = scenes();
const place = create("span");

/** The scene of an address: its own, or the one in which the address is. */
function find() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  return Math.max(0, all.findIndex((one) => one.contains(target)));
}

/** The picture of a scene, or the words of one without, are as large as the window lets them. */
function fit() {
  scale();
  const scene = all[at];
  scene.style.fontSize = "";
  const picture = scene.querySelector("svg.wt");
  shape(scene);
  const fits = (size) => {
    if (picture) scene.style.setProperty("--picture", `${size}px`);
    else scene.style.fontSize = `${size}px`;
    return page.scrollHeight <= innerHeight && page.scrollWidth <= innerWidth;
  };
  let [size, most] = picture ? [0, HEIGHT] : [SMALLEST, LARGEST];
  for (let step = 512; step >= 1; step /= 2)
    if (size + step <= most && fits(size + step)) size += step;
  fits(size);
}

/** On to what waits for a press: the sentence of a picture, then the line to carry away, then
    the next scene, and after the last the next chapter. */
function on() {
  const waits = all[at].querySelector(":is(.live-handle, :scope > .scene-line):not(.scene-told)");
  if (waits) waits.classList.add("scene-told");
  else if (at < all.length - 1) go(at + 1);
  else [...all[at].querySelectorAll('a[href*="?present"]')].at(-1)?.click();
}

/** A hand on a picture doesn't have to wait for its sentence. */
for (const type of ["input", "change", "pointerdown"])
  root.addEventListener(type, ({ target, isTrusted }) => isTrusted && target.closest(".live-handle")?.classList.add("scene-told"));

function go(to) {
  at = Math.min(Math.max(to, 0), all.length - 1);
  all.forEach((scene, i) => scene.toggleAttribute("hidden", i !== at));
  place.textContent = `${at + 1} of ${all.length}`;
  const { id, dataset } = all[at];
  const hash = id ? `#${id}` : "";
  end.href = location.pathname + (dataset.section ? `#${dataset.section}` : "");
  history.replaceState(null, "", location.pathname + location.search + hash);
  scrollTo(0, 0);
  fit();
}

const before = button("←", () => go(at - 1));
const next = button("→", on);
[before.ariaLabel, next.ariaLabel] = ["Previous scene", "Next scene"];
const end = create("a", { href: location.pathname, textContent: "back to the page" });
const bar = { className: "scene-bar", "aria-label": "Scenes" };
document.body.append(create("nav", bar, before, place, next, end));
const others = root.querySelectorAll("a.internal[href*='.html']:not([href*='/'], [href^=glossary])");
for (const chapter of others) chapter.search = "?present";

const moved = "input:not([type=text]), select"; // what an arrow would move once more
const arrows = "input, textarea, select"; // what uses them itself
const space = "input:not([type=range]), textarea, select, button, summary, [data-sets]"; // and the space bar
let byHand = false;
const free = () => byHand && document.activeElement.matches(moved) && document.activeElement.blur();
document.addEventListener("pointerdown", () => (byHand = true));
document.addEventListener("change", () => setTimeout(free));
document.addEventListener("click", ({ target }) => target.localName !== "select" && setTimeout(free));
addEventListener("keydown", (event) => {
  byHand = false;
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const { key } = event;
  const [target] = event.composedPath(); // within a control, too
  const clicker = key.startsWith("Page"); // nothing else may use its keys
  if (key === "Escape" && target === document.body) end.click(); // out of the room
  if (key === "Escape" || clicker) {
    target.blur?.();
    const list = target.closest?.("select");
    list?.replaceWith(list); // so that it closes
  }
  const play = key === "p" && !target.closest?.(arrows) && all[at].querySelector(".live-play");
  if (play) {
    play.closest(".live-handle")?.classList.add("scene-told");
    play.click();
  }
  const back = ["ArrowLeft", "ArrowUp", "PageUp"].includes(key) || (key === " " && event.shiftKey);
  const step = back ? -1 : ["ArrowRight", "ArrowDown", "PageDown", " "].includes(key) ? 1 : 0;
  if ((key === "Home" || key === "End") && !target.closest?.(arrows)) return go(key === "Home" ? 0 : all.length - 1);
  if (!step || (!clicker && target.closest?.(key === " " ? space : arrows))) return;
  event.preventDefault();
  event.stopPropagation();
  if (step > 0) on();
  else go(at - 1);
}, true); // before any control

let at = find();
go(at);
addEventListener("hashchange", () => go(find()));
addEventListener("resize", fit);
addEventListener("toggle", fit, true); // an answer was opened
new MutationObserver(fit).observe(root, { childList: true, subtree: true }); // it was started
