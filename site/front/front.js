/* The line moves: T = t·n·X / 6P. The values and limits are the page's, from the course. */
const told = JSON.parse(document.getElementById("told").textContent);
const $ = (id) => document.getElementById(id);
const slides = ["gpus", "days", "size"].map($);

function count(number) {
  const power = Math.max(0, Math.floor(Math.log10(Number(number.toPrecision(2))) / 3));
  const words = ["", " thousand", " million", " billion", " trillion", " quadrillion"];
  const digits = Number((number / 1000 ** power).toPrecision(2));
  return (digits < 10 && power ? digits.toFixed(1) : digits) + words[power];
}

const across = (size) => (100 * Math.log10(size / told.x[0])) / Math.log10(told.x[1] / told.x[0]);
const up = (tokens) => (100 * Math.log10(tokens / told.y[0])) / Math.log10(told.y[1] / told.y[0]);

function draw() {
  const [gpus, days, size] = slides.map((one) => told[one.id][one.value]);
  const work = gpus * days * 86400 * told.rate; // what the GPUs do in these days
  const tokens = work / (6 * size);
  slides.forEach((one) => {
    const label = told.labels[one.id][one.value];
    $(`${one.id}-said`).textContent = label;
    one.setAttribute("aria-valuetext", label);
  });
  $("tokens").textContent = `${count(tokens)} tokens`;
  const [left, right] = told.x.map((x) => 100 - up(work / (6 * x)));
  const ends = { x1: 0, y1: left, x2: 100, y2: right };
  for (const [name, value] of Object.entries(ends)) $("line").setAttribute(name, value);
  $("reach").setAttribute("points", `0,${left} 100,${right} 100,200 0,200`);
  $("you").style.left = `${across(size)}%`;
  $("you").style.bottom = `${Math.min(Math.max(up(tokens), 0), 100)}%`;
  $("you").classList.toggle("far", across(size) > 75);
  let inside = 0;
  document.querySelectorAll(".run").forEach((dot, i) => {
    const [P, T] = told.runs[i];
    inside += dot.classList.toggle("in", 6 * P * T <= work);
  });
  $("inside").textContent = inside;
}
slides.forEach((one) => one.addEventListener("input", draw));
draw();

$("theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.mode = localStorage.theme = theme; } catch { /* private */ }
  document.documentElement.dataset.theme = theme;
});

/* The guess is kept where the first page looks for it. */
const kept = () => {
  try { return JSON.parse(localStorage.llmtrain ?? "{}") ?? {}; } catch { return {}; }
};
const keep = (more) => {
  try { localStorage.llmtrain = JSON.stringify({ ...kept(), ...more }); } catch { /* private */ }
};
function reveal(guess) {
  const times = Math.max(guess / told.years, told.years / guess);
  const side = guess > told.years ? "too much" : "too little";
  const near = times < 1.15 ? "very near" : `${times.toPrecision(2)} times ${side}`;
  return `You said ${guess}; it is ${told.years} years: ${near}. ${told.why}`;
}
$("guess").addEventListener("submit", (event) => {
  event.preventDefault();
  const written = $("years").value.trim();
  const guess = Number(written.replace(/\s*years?$/, "").replace(",", "."));
  if (!(guess > 0 && guess < 1e9)) {
    $("verdict").textContent = "Write a number of years, such as 3.";
    return;
  }
  const { guesses = {}, done = {}, cells = {} } = kept();
  const first = guesses[told.guess] ?? String(guess);
  const said = reveal(Number(first) || guess);
  $("verdict").textContent = said;
  keep({ guesses: { ...guesses, [told.guess]: first }, done: { ...done, [told.guess]: true },
    cells: { ...cells, [told.guess]: { told: said, written: first } }, tries: kept().tries ?? {} });
});

const { [told.guess]: answered } = kept().cells ?? {}; // a reload keeps it in sight
if (answered) [$("years").value, $("verdict").textContent] = [answered.written, answered.told];

/* How far you are, on each card. */
const { done = {} } = kept();
for (const card of document.querySelectorAll("[data-chapter]")) {
  const ids = told.exercises.filter((id) => id.startsWith(`${card.dataset.chapter}-`));
  const passed = ids.filter((id) => done[id]).length;
  if (passed) card.textContent += ` · ${passed} of ${ids.length} done`;
}

/* What you did, as a notebook: to keep, to hand in, for the class report to read. */
function notebook(cells) {
  const answered = Object.entries(cells).filter(([id]) => /^\d\d-/.test(id));
  const judged = (id, { written, told }) => ({
    cell_type: "code", id: id.replace(/\W/g, "-"), execution_count: null, metadata: {},
    source: `# ${id}\n${written}`,
    outputs: [{ output_type: "execute_result", execution_count: null, metadata: {},
      data: { "text/plain": told } }],
  });
  return { nbformat: 4, nbformat_minor: 5, metadata: {}, cells: answered.map((one) => judged(...one)) };
}
$("mine").hidden = !Object.keys(kept().cells ?? {}).length;
$("save").addEventListener("click", () => {
  const text = JSON.stringify(notebook(kept().cells ?? {}), null, 1);
  const file = new Blob([text], { type: "application/x-ipynb+json" });
  const link = Object.assign(document.createElement("a"), { download: "my_answers.ipynb" });
  link.href = URL.createObjectURL(file);
  link.click();
  URL.revokeObjectURL(link.href);
});
$("forget").addEventListener("click", () => {
  if (!confirm("Forget all your answers, guesses and your own run?")) return;
  try { localStorage.removeItem("llmtrain"); } catch { /* private */ }
  location.reload();
});

/* What was visited stays there without a network. */
if ("serviceWorker" in navigator) navigator.serviceWorker.register("offline.js").catch(() => {});
