/* The line moves: T = t·n·X / 6P. The values and limits are the page's, from the course. */
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const slides = ["gpus", "days", "size"].map($);
const rings = [...document.querySelectorAll(".run")];

function count(number) {
  const power = Math.max(0, Math.floor(Math.log10(Number(number.toPrecision(2))) / 3));
  const words = ["", " thousand", " million", " billion", " trillion", " quadrillion"];
  const digits = Number((number / 1000 ** power).toPrecision(2));
  return (digits < 10 && power ? digits.toFixed(1) : digits) + words[power];
}

const across = (size) => (100 * Math.log10(size / data.x[0])) / Math.log10(data.x[1] / data.x[0]);
const up = (tokens) => (100 * Math.log10(tokens / data.y[0])) / Math.log10(data.y[1] / data.y[0]);

/** The picture as the sliders say, with a part of what the GPUs do in these days. */
function draw(part = 1) {
  const [gpus, days, size] = slides.map((one) => data[one.id][one.value]);
  const work = gpus * days * 86400 * data.rate * part;
  const tokens = work / (6 * size);
  slides.forEach((one) => {
    const label = data.labels[one.id][one.value];
    $(`${one.id}-value`).textContent = label;
    one.setAttribute("aria-valuetext", label);
  });
  $("tokens").textContent = `${count(tokens)} tokens`;
  const [left, right] = data.x.map((x) => 100 - up(work / (6 * x)));
  const ends = { x1: 0, y1: left, x2: 100, y2: right };
  for (const [name, value] of Object.entries(ends)) $("line").setAttribute(name, value);
  $("reach").setAttribute("points", `0,${left} 100,${right} 100,200 0,200`);
  const height = up(tokens);
  $("you").style.left = `${across(size)}%`;
  $("you").style.bottom = `${Math.min(Math.max(height, 0), 100)}%`;
  $("you").firstChild.textContent = height > 100 ? "your model ↑" : height < 0 ? "your model ↓" : "your model";
  let inside = 0;
  rings.forEach((dot, i) => {
    const [P, T] = data.runs[i];
    inside += dot.classList.toggle("in", 6 * P * T <= work);
  });
  $("inside").textContent = inside;
  if (part === 1) write(); // names stay where they are while the line rises
}

/* Names stand where they lie on no ring, no line and no other name, or not at all. */
const sides = [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [-1, 1], [1, 1], [-1, -1],
  [0.5, 1], [-0.5, 1], [0.5, -1], [-0.5, -1]];
const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const AIR = 6; // px between two names
const aired = (box) => ({ left: box.left - AIR, right: box.right + AIR, top: box.top, bottom: box.bottom });

/** The first place about a point where a label meets nothing of what is taken; one that stands
    farther off has a line to its point, which passes no other ring or label. */
function place(label, [x, y], fars, taken) {
  const { scrollWidth: width, offsetHeight: height } = label;
  const own = (one) => Math.abs(one.left + one.right - 2 * x) + Math.abs(one.top + one.bottom - 2 * y) < 0.1;
  const others = taken.filter((one) => !own(one));
  for (const far of fars) {
    for (const [right, down] of sides) {
      const left = x + right * far + (right - 1) * width / 2;
      const top = y + down * far + (down - 1) * height / 2;
      const box = { left, top, right: left + width, bottom: top + height };
      const inside = left > 2 && top > -20 && box.right < $("plane").clientWidth + 8 && box.bottom < $("plane").clientHeight - 2;
      if (!inside || others.some((one) => meets(one, box))) continue;
      const leader = far > fars[0] && [[x, y], [middle(left, x, box.right), middle(top, y, box.bottom)]];
      if (leader && passes(...leader, taken)) continue;
      label.style.translate = `${left - x}px ${top - y}px`;
      return { ...box, leader };
    }
  }
  return null;
}
const middle = (...three) => three.sort((a, b) => a - b)[1];

/** Whether the way from one point to another meets what is taken beside the first point. */
function passes([x, y], [right, down], taken) {
  const on = (left, top) => (one) => meets(one, { left, top, right: left, bottom: top });
  const others = taken.filter((one) => !on(x, y)(one));
  return [0.2, 0.4, 0.6, 0.8, 1].some((part) =>
    others.some(on(x + part * (right - x), y + part * (down - y))));
}

/** Small boxes along the line, so that a name that it would strike is seen. */
function struck({ clientWidth: width, clientHeight: height }) {
  const [left, right] = ["y1", "y2"].map((end) => $("line").getAttribute(end) * height / 100);
  return Array.from({ length: 120 }, (_, i) => {
    const y = left + (right - left) * i / 119;
    return { left: width * i / 119 - 4, right: width * i / 119 + 4, top: y - 5, bottom: y + 5 };
  });
}

/** Where the middle of a ring or of your dot stands in the plane. */
const point = (one) => [one.offsetLeft + one.offsetWidth / 2, one.offsetTop + one.offsetHeight / 2];

function write() {
  const plane = $("plane");
  const around = ([x, y], far) => ({ left: x - far, right: x + far, top: y - far, bottom: y + far });
  const line = struck(plane);
  const taken = rings.map((ring) => around(point(ring), 9)); // no name beside another's ring
  const you = $("you").firstChild;
  const yours = place(you, point($("you")), [16, 26, 38, 52, 70, 90, 120], [...taken, ...line]) ?? place(you, point($("you")), [16], []);
  taken.push(...line, around(point($("you")), 14), aired(yours));
  const seen = [yours];
  const most = plane.clientWidth < 400 ? 5 : data.named.length;
  for (const i of data.named) {
    const label = rings[i].firstChild;
    const box = seen.length <= most && place(label, point(rings[i]), [10, 18, 26, 36, 48, 64, 84], taken);
    label.classList.toggle("seen", Boolean(box));
    if (!box) continue;
    taken.push(aired(box));
    seen.push(box);
  }
  const part = ([x, y]) => `${100 * x / plane.clientWidth} ${100 * y / plane.clientHeight}`;
  $("leaders").setAttribute("d", seen.filter((one) => one.leader)
    .map(({ leader }) => `M${leader.map(part).join("L")}`).join(""));
}

/* Rings say their names: the nearest to the pointer or finger first, then what else lies
   under it, one a line; by Tab and arrows each alone. */
function name(nearby) {
  $("name").hidden = !nearby.length;
  rings.forEach((ring) => ring.classList.toggle("named", nearby.includes(ring)));
  if (!nearby.length) return;
  const lines = nearby.map((ring, i) => {
    const line = document.createElement(i ? "span" : "b");
    line.textContent = ring.getAttribute("aria-label");
    return line;
  });
  $("name").replaceChildren(...lines);
  const { offsetWidth: width, offsetHeight: height } = $("name");
  const [x, y] = point(nearby[0]);
  $("name").style.left = `${middle(width / 2 - 72, x, $("plane").clientWidth - width / 2)}px`;
  $("name").style.top = `${y - height - 12 > -24 ? y - height - 12 : y + 12}px`;
}
function near({ clientX, clientY, pointerType }) {
  const { left, top } = $("plane").getBoundingClientRect();
  const far = (ring) => {
    const [x, y] = point(ring);
    return Math.hypot(left + $("plane").clientLeft + x - clientX, top + y - clientY);
  };
  const nearby = rings.filter((ring) => far(ring) < 22).sort((a, b) => far(a) - far(b));
  return nearby.filter((ring, i) => !i || pointerType !== "mouse" || far(ring) < 12); // a mouse is exact
}
$("plane").addEventListener("pointermove", (event) => dragging || name(near(event)));
$("plane").addEventListener("pointerleave", () => name([]));
$("plane").addEventListener("focusout", () => name([]));
document.addEventListener("click", (event) => { // a tap; it comes after the finger has left
  if (event.detail) name(event.target.closest("#plane") && event.target !== $("you") ? near(event) : []);
});
rings.forEach((ring) => ring.addEventListener("focus", () => name([ring])));
const bySize = rings.map((_, i) => i).sort((a, b) => data.runs[a][0] - data.runs[b][0]);
$("plane").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const at = bySize.indexOf(rings.indexOf(document.activeElement)) + step;
  const next = rings[bySize[Math.min(Math.max(at, 0), bySize.length - 1)]];
  rings.forEach((ring) => { ring.tabIndex = ring === next ? 0 : -1; });
  next.focus();
});

/* The dot can be dragged: to the side it changes the model, up and down the GPUs. */
let dragging = false;
const nearest = (stops, wanted) => stops.reduce((best, stop, i) =>
  (Math.abs(Math.log(stop / wanted)) < Math.abs(Math.log(stops[best] / wanted)) ? i : best), 0);
function drag({ clientX, clientY }) {
  const { left, bottom, width, height } = $("plane").getBoundingClientRect();
  const at = ([low, high], part) => low * (high / low) ** part;
  const days = data.days[slides[1].value];
  slides[2].value = nearest(data.size, at(data.x, (clientX - left) / width));
  const tokens = at(data.y, (bottom - clientY) / height);
  slides[0].value = nearest(data.gpus, 6 * data.size[slides[2].value] * tokens / (days * 86400 * data.rate));
  move();
}
$("you").addEventListener("pointerdown", (event) => {
  dragging = true;
  name([]);
  $("you").setPointerCapture(event.pointerId);
  event.preventDefault();
});
$("you").addEventListener("pointermove", (event) => dragging && drag(event));
for (const end of ["pointerup", "pointercancel"]) $("you").addEventListener(end, () => { dragging = false; });

let touched = false;
function move() {
  touched = true;
  $("answer").ariaLive = "polite"; // what moves unasked is not read out
  draw();
}
slides.forEach((one) => one.addEventListener("input", move));
new ResizeObserver(write).observe($("plane"));
document.fonts.ready.then(write);

/* At first the line rises to where it stands: one sees rings come into reach, unasked for. */
const RISE = 1400; // ms
function rise(now) {
  const left = Math.max(0, 1 - (now - begun) / RISE);
  if (touched) return;
  draw(1000 ** -(left ** 2));
  if (left) requestAnimationFrame(rise);
}
const begun = performance.now();
draw();
if (!matchMedia("(prefers-reduced-motion: reduce)").matches && !document.hidden) rise(begun);

$("theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.mode = localStorage.theme = theme; } catch { /* private */ }
  document.documentElement.dataset.theme = theme;
});

/* The guess is kept where the first page looks for it. */
const kept = () => {
  try {
    const kept = localStorage.llmtrain ?? "{}";
    return JSON.parse(current(kept, data.exercises, data.numbered, data.renamed)) ?? {};
  } catch { return {}; }
};
const keep = (more) => {
  try { localStorage.llmtrain = JSON.stringify({ ...kept(), ...more }); } catch { /* private */ }
};
const words = () => import("./_static/guess.js").catch(() => null); // as chapters answer
const first = (written) => {
  const { guesses = {} } = kept();
  return typeof guesses[data.guess] === "string" ? guesses[data.guess] : written;
};

/** What is said here speaks of the picture of this page; what is kept is what the chapter says. */
async function reveal(written) {
  const script = await words();
  if (!script) return { sentence: "This page was opened as a file: chapter 00 says how to serve it." };
  const here = script.answerGuess("here", written, first(written));
  if (!here) return { sentence: "Write a number of years, such as 3." };
  const sentence = here.text[0].toUpperCase() + here.text.slice(1);
  const { html } = script.answerGuess(data.guess, written, first(written));
  const plain = new DOMParser().parseFromString(html, "text/html").body.innerText;
  return { sentence, stored: here.counts && plain };
}

$("guess").addEventListener("submit", async (event) => {
  event.preventDefault();
  const written = $("years").value.trim();
  const verdict = await reveal(written);
  $("verdict").textContent = verdict.sentence;
  if (!verdict.stored) return;
  name([rings[data.asked]]);
  compare(written);
  const { guesses, done, cells, tries = {} } = kept();
  const question = $("asked").textContent;
  const date = new Date().toISOString().slice(0, 10);
  keep({ guesses: { ...guesses, [data.guess]: first(written) }, done: { ...done, [data.guess]: true },
    cells: { ...cells, [data.guess]: { told: verdict.stored, written, question, date } }, tries });
});

/* The answer as bars, to one scale: the days of the picture, the guess, the truth. A guess
   that is much too long is cut, and says so. */
let years = null; // what was guessed; null before
function compare(written) {
  years = Number.parseFloat(String(written).replaceAll(",", "")) || 0;
  drawYears();
}
const inYears = (number) => `${number < 1e4 ? Number(number.toPrecision(4)) : count(number)} year${number === 1 ? "" : "s"}`;
function drawYears() {
  const days = data.days[data.have];
  const rows = [
    ["What you have", data.labels.days[data.have], days / 365.25, "have"],
    ...(years ? [["Your guess", inYears(years), years, "guess"]] : []),
    ["What it takes", years === null ? "? years" : inYears(data.years), data.years, "takes"],
  ];
  const most = Math.min(Math.max(data.years, years ?? 0), 2 * data.years);
  const wide = $("bars").clientWidth;
  const bar = ([label, amount, value, kind], i) => {
    const width = Math.max(2, wide * Math.min(value / most, 1));
    const y = 60 * i;
    const cut = value > most ? `<path class="cut" d="M${wide - 34} ${y + 50}l10 -26M${wide - 24} ${y + 50}l10 -26"/>` : "";
    const open = kind === "takes" && years === null ? " open" : "";
    return `<text y="${y + 16}">${label}: <tspan>${amount}</tspan></text>
<rect class="${kind}${open}" x="${open ? 1 : 0}" y="${y + 26}" width="${open ? wide - 2 : width}" height="22"/>${cut}`;
  };
  $("bars").setAttribute("viewBox", `0 0 ${wide} ${rows.length * 60}`);
  $("bars").setAttribute("height", rows.length * 60);
  $("bars").innerHTML = rows.map(bar).join("");
  const scale = years === null ? "Not to scale yet. Your guess will draw it."
    : `All to one scale${years > most ? "; the bar of your guess is cut" : ""}.`;
  const words = rows.map(([label, amount]) => `${label}: ${amount}. `).join("");
  $("bars").setAttribute("aria-label", words + (years === null ? "" : "Next to the last bar, the first is only a sliver."));
  $("scale").textContent = scale;
}
new ResizeObserver(drawYears).observe($("bars").parentElement);
const { [data.guess]: answered } = kept().cells ?? {}; // a reload keeps it in sight
if (answered) {
  $("years").value = answered.written;
  compare(answered.written);
  reveal(String(answered.written)).then(({ stored, sentence }) => {
    $("verdict").textContent = stored ? sentence : answered.told;
  });
}

/* How far you are, on each card. */
const { done = {} } = kept();
let at, last; // the last chapter in which something is done, and where all of it is not
for (const card of document.querySelectorAll("[data-chapter]")) {
  const ids = data.exercises.filter((id) => id.startsWith(`${card.dataset.chapter}-`));
  const passed = ids.filter((id) => done[id]).length;
  if (passed) [at, last] = [passed < ids.length ? card : null, card];
  if (passed) card.textContent += ` · ${passed} of ${ids.length} done`;
}

if (last) {
  const card = at ?? last.closest("li").nextElementSibling?.querySelector("small") ?? last;
  for (const go of [$("start"), $("door")]) {
    go.textContent = `Go on with ${card.dataset.number}`;
    go.href = card.closest("a").href;
  }
}

/* What you did, as a notebook: to keep, to hand in, for the class report to read. */
function notebook(cells) {
  const answered = Object.entries(cells).filter(([id]) => data.exercises.includes(id));
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
  return { nbformat: 4, nbformat_minor: 5, metadata: {}, cells: answered.flatMap((one) => [asked(...one), judged(...one)]) };
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
