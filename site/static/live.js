/* Panels in the page, and what starts them, its guesses and exercises. Nothing is fetched
   before a click. */
import { button, made, show } from "./elements.js";
import { Judged } from "./judged.js";
import { Progress } from "./progress.js";
import { python, waiting } from "./python.js";

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
Progress.show();
if (new URLSearchParams(location.search).has("present")) import("./present.js");
if (document.getElementById("search-results")) import("./search.js");
