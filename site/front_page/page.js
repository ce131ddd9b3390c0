/* What the front page does beside its handle: the guess, how far you are, and what you keep. */
import { create, show } from "./_static/elements.js";
import { answerGuess } from "./_static/guess.js";
import { openHandle } from "./_static/handle.js";
import { pageData } from "./_static/page_data.js";
import { Progress } from "./_static/progress.js";

const $ = (id) => document.getElementById(id);
const reach = openHandle(document.querySelector(".live-handle"), 0);

/* The guess is kept as the first chapter keeps it. What's said here speaks of this page's picture. */
const form = $("guess");
const { id } = form.dataset;
const { truth, formatted } = pageData("guesses")[id];
const plain = (html) => create("div", { innerHTML: html }).textContent;

function reveal(written) {
  const { [id]: before } = Progress.all().guesses ?? {};
  const first = typeof before === "string" ? before : written;
  const here = answerGuess("here", written, first);
  if (!here) {
    $("verdict").textContent = "Write a number of years, such as 3.";
    return undefined;
  }
  $("verdict").textContent = here.text[0].toUpperCase() + here.text.slice(1);
  return here.counts && { first, told: plain(answerGuess(id, written, first).html) };
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const written = $("years").value.trim();
  const answer = reveal(written);
  if (!answer) return;
  drawBars(written);
  const { guesses, done, cells, tries = {} } = Progress.all();
  const about = { question: $("asked").textContent, date: new Date().toISOString().slice(0, 10) };
  Progress.keep({ guesses: { ...guesses, [id]: answer.first }, done: { ...done, [id]: true },
    cells: { ...cells, [id]: { told: answer.told, written, ...about } }, tries });
});

/** The days, the guess and the truth to one scale. A guess that is much too long is cut. */
function drawBars(written) {
  const years = Number.parseFloat(String(written).replaceAll(",", "")) || 0;
  const [, , words, guessed, takes] = $("bars").children;
  const most = 2 * truth;
  $("bars").style.setProperty("--longest", Math.min(Math.max(truth, years), most));
  $("bars").classList.add("drawn");
  guessed.style.setProperty("--years", years);
  guessed.classList.toggle("cut", years > most);
  for (const one of [words, guessed]) show(one, true);
  words.lastChild.textContent = `${years.toLocaleString("en-US")} year${years === 1 ? "" : "s"}`;
  takes.lastChild.textContent = formatted;
  takes.nextElementSibling.style.setProperty("--years", truth);
  $("bars").lastElementChild.textContent = `All to one scale${years > most ? "; the bar of your guess is cut" : ""}.`;
}
const { [id]: answered } = Progress.all().cells ?? {}; // a reload keeps it in sight
if (answered) {
  $("years").value = answered.written;
  drawBars(answered.written);
  if (!reveal(String(answered.written))) $("verdict").textContent = answered.told;
}

/* How far you are, on each card; and where you go on: the last chapter in which something is
   done, or the one after it. */
let at, last;
for (const card of document.querySelectorAll("[data-chapter]")) {
  const [done, all] = Progress.of(card.dataset.chapter);
  if (!done) continue;
  [at, last] = [done < all ? card : undefined, card];
  card.textContent += ` · ${done} of ${all} done`;
}
if (last) {
  const card = at ?? last.closest("li").nextElementSibling?.querySelector("small") ?? last;
  for (const go of [$("start"), $("door")]) {
    go.replaceChildren("Go on", create("span", { textContent: ` with ${card.dataset.number}` }));
    go.href = card.closest("a").href;
  }
}

/** What you did, as a notebook: to keep, to hand in, for the class report to read. */
function notebook(cells) {
  const course = pageData("course");
  const name = (id) => id.replace(/\W/g, "-");
  const asked = (id, { question = "", date = "" }) => ({
    cell_type: "markdown", id: `asked-${name(id)}`, metadata: {},
    source: `${question}\n\n${id}, ${date}`,
  });
  const named = (id, text) => String(text).replace(new RegExp(`^([○→]) (?!${id})`), `$1 ${id}: `); // of a guess
  const judged = (id, { written, told: text }) => ({
    cell_type: "code", id: name(id), execution_count: null, metadata: {},
    source: `# ${id}\n${written}`,
    outputs: [{ output_type: "execute_result", execution_count: null, metadata: {},
      data: { "text/plain": named(id, text) } }],
  });
  const answers = Object.entries(cells).filter(([id]) => course.includes(id));
  return { nbformat: 4, nbformat_minor: 5, metadata: {}, cells: answers.flatMap((one) => [asked(...one), judged(...one)]) };
}
show($("mine"), Object.keys(Progress.all().cells ?? {}).length);
$("save").addEventListener("click", () => {
  const text = JSON.stringify(notebook(Progress.all().cells ?? {}), null, 1);
  const file = new Blob([text], { type: "application/x-ipynb+json" });
  const link = create("a", { download: "my_answers.ipynb", href: URL.createObjectURL(file) });
  link.click();
  URL.revokeObjectURL(link.href);
});
$("forget").addEventListener("click", () => {
  if (!confirm("Forget all your answers, guesses and your own run?")) return;
  try { localStorage.removeItem(Progress.KEY); } catch { /* private */ }
  location.reload();
});

/* What was visited stays there without a network, and so do the pictures of the handle. */
const { serviceWorker } = navigator;
serviceWorker?.register("offline.js").then(() => serviceWorker.ready)
  .then(({ active }) => active.postMessage([reach.file.href])).catch(() => {});
