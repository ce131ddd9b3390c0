/* Results of a search lead to the section that has the words, with a sentence of it. What is
   called so comes first, then the chapters that say it, then what else has the words. */
import { create } from "./elements.js";

const AROUND = 130; // letters of a text before and behind what was asked

const asked = (new URLSearchParams(location.search).get("q") ?? "").trim().toLowerCase();
const words = asked.match(/[\p{L}\p{N}]+/gu) ?? [];
const results = document.getElementById("search-results");
const places = new Set();
const seen = new Set();

const plain = (one) => one?.textContent.replace(/\s+/g, " ").replace(/#$/, "").trim() ?? "";
const title = (section) => plain(section.querySelector(":scope > :is(h1, h2, h3, h4)"));
const isNamed = (section) => title(section).toLowerCase() === asked;

/** What a section says in sentences; its subsections, code and tables left out. */
function prose(section) {
  const paragraphs = [...section.querySelectorAll("p, li")].filter(
    (one) => one.closest("section") === section && !one.closest("table, pre, .cell_output, .live-form, .live-note"),
  );
  return paragraphs.map(plain).join(" ");
}

/** How much a section has of what was asked: its name, the whole, or some of the words. */
function score(section) {
  if (isNamed(section)) return 1000;
  const text = `${title(section)} ${prose(section)}`.toLowerCase();
  return 10 * (text.split(asked).length - 1) + words.filter((word) => text.includes(word)).length;
}

/** A piece of a section's text, with what was asked marked in it. */
function excerpt(section) {
  const text = prose(section);
  const whole = text.toLowerCase().indexOf(asked);
  const named = title(section).toLowerCase().includes(asked);
  const part = whole < 0 ? !named && words.find((word) => text.toLowerCase().includes(word)) : asked;
  const at = Math.max(0, part ? text.toLowerCase().indexOf(part) : 0);
  const from = at < AROUND ? 0 : text.indexOf(" ", at - AROUND) + 1;
  const to = text.lastIndexOf(" ", at + AROUND + asked.length);
  const end = text.length < at + AROUND + asked.length ? text.length : Math.max(to, at + asked.length);
  const length = part ? part.length : 0;
  const mark = length ? create("mark", { textContent: text.slice(at, at + length) }) : "";
  const pieces = [from ? "… " : "", text.slice(from, at), mark, text.slice(at + length, end)];
  return create("p", { className: "live-found" }, ...pieces, end < text.length ? " …" : "");
}

/** Lead a result to its section, and put it in its place among those that are there. */
async function lead(item) {
  const link = item.querySelector("a");
  if (!link.pathname.endsWith(".html")) return;
  const html = await (await fetch(link.pathname)).text();
  const page = new DOMParser().parseFromString(html, "text/html");
  const sections = [...page.querySelectorAll("article section[id]")];
  const section = sections.reduce((best, one) => (score(one) > score(best) ? one : best));
  link.hash = section.id;
  const twice = places.has(link.href);
  places.add(link.href);
  if (twice) return item.remove();
  const name = plain(page.querySelector("article h1"));
  link.textContent = name === title(section) ? name : `${name} › ${title(section)}`;
  item.append(excerpt(section));
  const beside = /solutions|evidence|teaching|data|helpers/i.test(link.pathname) ? 500 : 0;
  item.weight = Math.min(score(section), 1000) - beside;
  const others = [...item.parentElement.children].filter((one) => one !== item);
  const later = others.find((one) => (one.weight ?? -1000) < item.weight
    || (one.weight === item.weight && one.place > item.place)); // whichever page came first
  if (later) later.before(item);
}

function leadAll() {
  for (const item of results.querySelectorAll("ul.search > li"))
    if (!seen.has(item)) {
      item.place = seen.size;
      seen.add(item);
      lead(item).catch(() => {});
    }
}
new MutationObserver(leadAll).observe(results, { childList: true, subtree: true });
leadAll();
