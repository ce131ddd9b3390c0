/* Panels, guesses and exercises in the page. Nothing is fetched before a click. */

// --- Python, in a worker beside the page

const SLOW = 8000; // ms; then a cell can be stopped

class Python {
  #worker;
  #ready;
  #waiting = new Map();
  #count = 0;

  /** Start once; later calls wait for the same start. */
  start() {
    this.#ready ??= this.#begun().catch((error) => {
      this.stop(error);
      throw error;
    });
    return this.#ready;
  }

  #begun() {
    this.#worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.#worker.onmessage = ({ data }) => this.#answered(data);
    this.#worker.onerror = () => this.stop(new Error("Python could not be loaded."));
    return this.#ask("start", [Progress.stored()]);
  }

  async call(name, ...about) {
    await this.start();
    return JSON.parse(await this.#ask(name, about));
  }

  #ask(name, about) {
    const id = ++this.#count;
    this.#worker.postMessage({ id, name, about });
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  #answered({ id, value, error, step }) {
    if (step) return document.dispatchEvent(new CustomEvent("python", { detail: step }));
    const { resolve, reject } = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) resolve(value);
    else reject(new Error(error));
  }

  stop(why = new Error("Stopped.")) {
    this.#worker?.terminate();
    for (const { reject } of this.#waiting.values()) reject(why);
    this.#waiting.clear();
    this.#ready = undefined;
  }
}

const python = new Python();

// --- what the page says of itself

const PAGE = location.pathname.match(/([^/]*)\.html$/)?.[1] ?? "";
const told = (name) =>
  JSON.parse(document.getElementById(`live-${name}`)?.textContent ?? "[]");
const CELLS = told("cells"); // as they stand in the page; the learner's, once run
const COURSE = told("course");

// --- small helpers

function made(tag, about = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(about)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...inside);
  return element;
}

const button = (text, act, plain = true) =>
  made("button", {
    type: "button",
    className: plain ? "live-button live-plain" : "live-button",
    textContent: text,
    onclick: act,
  });

/** How far Python is, in words and as a bar, until the element says something else. */
function waiting(element) {
  const bar = made("progress", { max: 1, "aria-label": "Python is being fetched" });
  const words = made("span", { textContent: "Python is being started …" });
  element.replaceChildren(words, " ", bar);
  document.addEventListener("python", ({ detail }) => {
    words.textContent = detail.words;
    bar.value = detail.part;
  });
}

const show = (element, wanted) => element.toggleAttribute("hidden", !wanted);

// --- a panel

class Field {
  constructor(name, control, panel) {
    Object.assign(this, { name, control, panel });
    this.input = this.#input();
    this.input.id = `${panel.name}-${name}`;
    this.input.title = control.help;
    this.input.addEventListener("change", () =>
      panel.act("write", name, this.#written()),
    );
    const label = made("label", { htmlFor: this.input.id, textContent: control.label });
    this.echo = made("span", { className: "live-echo" });
    const parts = control.kind === "flag" ? [this.input, label] : [label, this.input];
    this.box = made("div", { className: `live-field live-${control.kind}` }, ...parts);
    if (control.stops) this.box.append(this.#slider());
    if (control.kind === "number") this.box.append(this.echo);
    if (control.play) this.box.append(this.#play());
  }

  #input() {
    const { kind, options, lines, longest } = this.control;
    if (kind === "choice")
      return made("select", {}, ...options.map((one) => new Option(one, one)));
    if (kind === "flag") return made("input", { type: "checkbox" });
    if (lines > 1) return made("textarea", { rows: lines, spellcheck: false });
    const about = { type: "text", autocomplete: "off", spellcheck: false };
    const size = kind === "text" ? 32 : this.panel.small ? Math.max(longest, 4) : 9;
    return made("input", { ...about, size });
  }

  #written() {
    return this.control.kind === "flag" ? this.input.checked : this.input.value;
  }

  #slider() {
    const { label, stops, help } = this.control;
    this.slider = made("input", { type: "range", min: 0, max: stops - 1, title: help });
    this.slider.setAttribute("aria-label", `${label}, slider`);
    this.slider.addEventListener("input", () => {
      if (this.playing) this.#pause(); // a hand on the slider takes over
      this.panel.act("slide", this.name, Number(this.slider.value));
    });
    return this.slider;
  }

  /** A button that moves the slider stop by stop, and stops it again. */
  #play() {
    const play = button("Play", () => (this.playing ? this.#pause() : this.#begin()));
    play.classList.add("live-play");
    return (this.player = play);
  }

  /** The first time, and after the last stop, from the beginning. */
  #begin() {
    const anew = !this.played || this.slider.value === this.slider.max;
    this.played = true;
    this.player.textContent = "Pause";
    this.player.classList.add("live-playing");
    this.playing = setInterval(() => this.#step(), this.pace);
    this.#to(anew ? 0 : Number(this.slider.value) + 1);
  }

  #step() {
    if (this.panel.busy) return; // the last picture is still being drawn
    this.#to(Number(this.slider.value) + 1);
  }

  #to(place) {
    this.slider.value = place; // at most its last
    this.panel.act("slide", this.name, Number(this.slider.value));
    if (this.slider.value === this.slider.max) this.#pause();
  }

  #pause() {
    clearInterval(this.playing);
    this.playing = undefined;
    this.player.textContent = "Play";
    this.player.classList.remove("live-playing");
  }

  focus() {
    (this.slider ?? this.input).focus({ preventScroll: true });
  }

  /** What the panel says of this field; one that could not be read stays as it is. */
  tell(told) {
    if (!told) return;
    // a handle keeps its place, so that nothing jumps
    if (this.panel.small) this.box.classList.toggle("live-away", !told.shown);
    else show(this.box, told.shown);
    if (this.control.kind === "flag") this.input.checked = told.text;
    else this.input.value = told.text;
    this.echo.innerHTML = told.echo ?? "";
    if (!this.slider) return;
    if (told.last !== undefined) this.slider.max = told.last;
    if (told.stop !== undefined && document.activeElement !== this.slider && !this.playing)
      this.slider.value = told.stop;
    this.pace = told.pace;
    this.slider.setAttribute("aria-valuetext", told.text);
  }
}

/** A panel, or a handle: the smallest one. `name` is the page's own for it. */
class Panel {
  static all = [];
  #next;
  #hush;

  constructor(section) {
    const before = Panel.all.push(this) - 1;
    this.section = section;
    this.word = section.dataset.word;
    this.small = section.classList.contains("live-handle");
    this.name = this.small ? `handle-${before}` : this.word;
    this.saved = section.parentElement.querySelector(".live-saved");
    this.busy = false;
  }

  async start(address = "") {
    const first = this.section.firstElementChild;
    first.setAttribute("role", "status");
    waiting(first);
    try {
      const narrow = matchMedia("(max-width: 600px)").matches;
      const told = await python.call("opened", this.word, address, narrow, this.name);
      this.#build(told.layout);
      this.#tell(told);
      this.#focus();
    } catch (error) {
      first.textContent = `It did not start: ${error.message} `;
      first.append(button("Try again", () => this.start(address), false));
    }
  }

  #build({ title, controls, presets }) {
    this.fields = Object.entries(controls).map(
      ([name, control]) => new Field(name, control, this),
    );
    const boxes = (wanted) => this.fields.filter(wanted).map((one) => one.box);
    const first = (one) => !one.control.more;
    const plain = (one) => first(one) && !one.slider && !one.control.lead;
    this.status = made("div", { className: "live-status", role: "status" });
    this.mend = made("div", { className: "live-row" });
    this.take = made("div", { className: "live-advice" });
    this.answer = made("div", { className: "live-answer", tabIndex: 0 });
    this.answer.setAttribute("role", "region");
    this.answer.setAttribute("aria-label", `${title} The answer`);
    this.said = made("div", { className: "live-said", "aria-live": "polite" });
    const rows = this.small
      ? boxes(first)
      : [
          this.#starts(presets, boxes((one) => first(one) && one.control.lead)),
          ...boxes((one) => first(one) && one.slider && !one.control.lead),
          made("div", { className: "live-row" }, ...boxes(plain)),
          this.#more(boxes((one) => one.control.more)),
        ];
    const controlled = made("div", { className: "live-controls" });
    const answered = made("div", { className: "live-picture" });
    controlled.append(...rows);
    // a handle's picture stays where it is; a panel's controls may reach far down
    (this.small ? controlled : answered).append(this.status, this.mend);
    answered.append(this.answer, this.take, this.said);
    this.section.replaceChildren(controlled, answered);
    this.section.classList.add("live-on");
    show(this.saved, false);
  }

  /** What a keyboard reaches first; a panel comes to the top of the window. */
  #focus() {
    if (this.small) {
      this.section.querySelector(".live-controls").scrollIntoView({ block: "nearest" });
      return this.fields[0].focus();
    }
    this.preset.focus({ preventScroll: true });
    this.section.scrollIntoView({ block: "start" });
  }

  /** Where to start from, and what decides which sliders there are. */
  #starts(presets, lead) {
    const preset = made("select", { id: `${this.name}-preset` });
    preset.append(...presets.map((one) => new Option(one, one)));
    preset.addEventListener("change", () => this.act("choose", preset.value));
    this.preset = preset;
    const from = made("label", { htmlFor: preset.id, textContent: "Start from" });
    this.copy = button("Copy a link", () => this.#copyLink());
    const starts = made("div", { className: "live-row" });
    starts.append(made("div", { className: "live-field" }, from, preset));
    starts.append(button("Reset", () => this.act("reset")), this.copy, ...lead);
    return starts;
  }

  #more(boxes) {
    const row = made("div", { className: "live-row" }, ...boxes);
    const summary = made("summary", { textContent: "More" });
    this.folded = made("details", {}, summary, row);
    return this.folded;
  }

  /** Do it now, or when the last answer is there; of two that wait, the later. */
  async act(...deed) {
    this.#next = deed;
    if (this.busy) return;
    this.busy = true;
    this.section.classList.add("live-busy");
    while (this.#next) {
      const now = this.#next;
      this.#next = undefined;
      try {
        this.#tell(await python.call("act", this.name, ...now));
      } catch (error) {
        this.status.textContent = error.message;
      }
    }
    this.busy = false;
    this.section.classList.remove("live-busy");
  }

  #tell(told) {
    for (const field of this.fields) field.tell(told.fields[field.name]);
    if (!this.small) {
      show(this.folded, this.fields.some((f) => f.control.more && !f.box.hidden));
      this.preset.value = told.preset;
    }
    this.status.innerHTML = told.status;
    this.answer.classList.toggle("live-old", told.old);
    this.answer.setAttribute("aria-disabled", told.old);
    this.#picture(told.html);
    const offers = (deed, labels) =>
      labels.map((label, at) => button(label, () => this.act(deed, at)));
    this.mend.replaceChildren(...offers("mend", told.mend));
    this.take.replaceChildren(...offers("take", told.take));
    // what a page's address says is its panel, but for a projector
    if (this.small || document.querySelector(".present")) return;
    const search = told.address ? `?${told.address}` : location.pathname;
    history.replaceState(null, "", search + location.hash);
  }

  #picture(html) {
    const parts = () => [...this.answer.querySelectorAll("details")];
    const open = parts().map((one) => one.open);
    this.answer.innerHTML = html;
    parts().forEach((one, at) => (one.open = open[at] ?? false));
    const { scrollWidth, clientWidth } = this.answer;
    this.answer.classList.toggle("live-wide", scrollWidth > clientWidth + 4);
    clearTimeout(this.#hush);
    const told = this.answer.querySelector("p")?.textContent ?? "";
    this.#hush = setTimeout(() => (this.said.textContent = told), 700);
  }

  async #copyLink() {
    try {
      await navigator.clipboard.writeText(location.href);
      this.copy.textContent = "Copied";
    } catch {
      this.copy.textContent = "It stands in the address above";
    }
    setTimeout(() => (this.copy.textContent = "Copy a link"), 2500);
  }
}

// --- guesses and exercises

class Progress {
  static KEY = "llmtrain";

  /** As it was stored; Python looks for itself at what it takes up. */
  static stored() {
    try {
      return localStorage.getItem(this.KEY) ?? "{}";
    } catch {
      return "{}"; // a private window may keep nothing
    }
  }

  static all() {
    try {
      return JSON.parse(this.stored()) ?? {};
    } catch {
      return {};
    }
  }

  static keep(more) {
    try {
      localStorage.setItem(this.KEY, JSON.stringify({ ...this.all(), ...more }));
    } catch {
      /* a private window may keep nothing */
    }
  }

  /** How many of a chapter's exercises and guesses are done. */
  static of(chapter) {
    const ids = COURSE.filter((id) => id.startsWith(`${chapter}-`));
    const done = this.all().done ?? {};
    return [ids.filter((id) => done[id]).length, ids.length];
  }

  /** Beside the title, and in the list of chapters. */
  static show() {
    for (const link of document.querySelectorAll(".bd-sidebar-primary a")) {
      const chapter = link.textContent.trim().match(/^(\d\d) ·/)?.[1];
      if (!chapter || !this.all().done || /solutions|evidence/.test(link.href)) continue;
      const [done, all] = this.of(chapter);
      let mark = link.querySelector(".live-mark");
      mark ??= link.appendChild(made("span", { className: "live-mark" }));
      mark.textContent = done ? `${done === all ? "✓ " : ""}${done} of ${all}` : "";
    }
  }
}

/** A form whose answer Python judges; what was written is kept. */
class Judged {
  static all = [];

  constructor(form) {
    Judged.all.push(this);
    Object.assign(this, { form, verdict: form.querySelector(".live-verdict") });
    ({ id: this.id, kind: this.kind } = form.dataset);
    this.cell = form.querySelector("textarea");
    this.source = form.previousElementSibling;
    this.key = this.id.startsWith("cell-") ? `${PAGE} ${this.id}` : this.id;
    this.at = Number(form.dataset.at);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.judge();
    });
    this.cell?.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.shiftKey || event.ctrlKey || event.metaKey))
        return;
      event.preventDefault();
      this.judge();
    });
    form.addEventListener("reset", () => {
      this.verdict.replaceChildren();
      setTimeout(() => this.#fit());
    });
    this.cell?.addEventListener("input", () => this.#fit());
    addEventListener("resize", () => this.#fit());
    if ("closed" in form.dataset) this.#offer();
    else this.#open();
    this.#takeUp(Progress.all().cells?.[this.key]);
  }

  /** What was written and told on an earlier visit; as text, whatever is stored. */
  #takeUp(earlier) {
    if (!earlier || (this.cell && earlier.source !== this.cell.defaultValue)) return;
    this.#open();
    const told = String(earlier.told || "Run it again to see what it shows.");
    this.verdict.replaceChildren(made("p", { className: "live-kept", textContent: told }));
    if (this.cell) {
      CELLS[this.at] = this.cell.value = String(earlier.written);
      this.#fit();
    }
    for (const one of this.form.elements) {
      if (one.type === "radio") one.checked = one.value === earlier.written;
      else if (one.type === "text") one.value = earlier.written;
    }
  }

  /** Beside the cell, a button that makes it one to write in. */
  #offer() {
    const open = button("Run or change", () => {
      this.#open();
      this.cell.focus({ preventScroll: true });
      this.judge();
    });
    open.classList.add("live-open");
    open.title = "Run this cell here, and change it";
    this.source.querySelector(".cell_input").append(open);
  }

  #open() {
    show(this.source, false);
    show(this.form, true);
    this.#fit();
  }

  /** As high as the lines that it shows. */
  #fit() {
    if (!this.cell || this.form.hidden) return;
    this.cell.style.height = "auto";
    this.cell.style.height = `${this.cell.scrollHeight + 3}px`;
  }

  /** Cells further down that have run are run again, on what changed here. */
  async #runLater() {
    const plain = (one) => one.at > this.at && "closed" in one.form.dataset;
    for (const one of Judged.all.filter(plain))
      if (!one.form.hidden) await one.judge(false);
  }

  #written() {
    return new FormData(this.form).get(`of-${this.id}`)?.replaceAll("\r\n", "\n");
  }

  async judge(first = true) {
    const written = this.#written();
    if (!written?.trim()) {
      this.verdict.textContent = this.form.querySelector("input[type=radio]")
        ? "Nothing is chosen yet."
        : "Nothing is written yet.";
      return;
    }
    const changed = this.cell && written !== CELLS[this.at];
    waiting(this.verdict);
    let slow;
    try {
      await python.start();
      slow = setTimeout(() => this.#offerStop(), SLOW);
      const { html, ...kept } = await python.call(...this.#ask(written));
      this.verdict.innerHTML = html || "It ran, and showed nothing.";
      const cells = { ...Progress.all().cells };
      const told = this.verdict.innerText;
      cells[this.key] = { told, written, source: this.cell?.defaultValue };
      Progress.keep({ ...kept, cells });
      Progress.show();
    } catch (error) {
      this.verdict.textContent = error.message;
    }
    clearTimeout(slow);
    if (first && changed) await this.#runLater();
  }

  #ask(written) {
    if (!this.cell) return [this.kind, this.id, written];
    CELLS[this.at] = written;
    return ["run", JSON.stringify(CELLS.slice(0, this.at)), written];
  }

  #offerStop() {
    this.verdict.textContent = "It is still running. ";
    this.verdict.append(button("Stop it", () => python.stop()));
  }
}

// --- without a network

/** Pages that were visited stay, with all that they asked for. */
async function stay() {
  if (!("serviceWorker" in navigator)) return;
  const { active } = await navigator.serviceWorker
    .register(new URL("../offline.js", import.meta.url))
    .then(() => navigator.serviceWorker.ready);
  const asked = performance.getEntriesByType("resource").map((one) => one.name);
  active.postMessage([location.href.split("#")[0], ...asked]);
}
addEventListener("load", () => stay().catch(() => {})); // a private window may refuse

// --- begin

for (const form of document.querySelectorAll(".live-form")) new Judged(form);
for (const section of document.querySelectorAll(".live-panel")) {
  const panel = new Panel(section);
  const address = panel.small || location.search === "?present" ? "" : location.search.slice(1);
  section.querySelector(".live-start").onclick = () => panel.start(address);
  const shared = new URLSearchParams(address);
  shared.delete("highlight");
  const [visit] = performance.getEntriesByType("navigation");
  if ([...shared].length && visit?.type === "navigate") {
    panel.start(shared.toString()); // a link that somebody shared
    section.scrollIntoView();
  }
}
if (COURSE.length) Progress.show();
if (new URLSearchParams(location.search).has("present")) import("./present.js");
if (document.getElementById("search-results")) import("./search.js");
