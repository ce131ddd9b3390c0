/* Results of a search lead to the section that has the words, not to the top of its page. */

const asked = new URLSearchParams(location.search).get("q") ?? "";
const words = (asked.match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => new RegExp(`\\b${word}`, "i"));

/** How many of the words a section has, its subsections left out. */
function had(section) {
  const own = section.cloneNode(true);
  for (const inner of own.querySelectorAll("section")) inner.remove();
  return words.filter((word) => word.test(own.textContent)).length;
}

/** The section of a page that has most of the words, the first of several. */
function found(page) {
  const sections = [...page.querySelectorAll("article section[id] section[id]")];
  const counts = sections.map(had);
  const most = Math.max(0, ...counts);
  return most ? sections[counts.indexOf(most)] : undefined;
}

async function lead(link) {
  if (link.hash || !link.pathname.endsWith(".html")) return;
  const html = await (await fetch(link.href)).text();
  const section = found(new DOMParser().parseFromString(html, "text/html"));
  if (!section) return;
  const heading = section.querySelector("h1, h2, h3, h4");
  heading.querySelector(".headerlink")?.remove();
  link.hash = section.id;
  link.append(` › ${heading.textContent.trim()}`);
}

const results = document.getElementById("search-results");
const seen = new Set();
function leadAll() {
  for (const link of results.querySelectorAll("li > a"))
    if (!seen.has(link)) seen.add(link) && lead(link).catch(() => {});
}
new MutationObserver(leadAll).observe(results, { childList: true, subtree: true });
leadAll();
