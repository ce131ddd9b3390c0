/* What readers move: fields that set something, and the picture and words that answer.

   A face asks its source: `act(...deed)` gives what's to be shown after a deed, and
   `marks(control)` where the marks that move with a control are at each of its stops. In a
   page the source is pictures that were drawn before, and Python in a worker; in a notebook
   it's the kernel. */
import { makeClickable, makeDraggable } from "./drag.js";
import { button, create, show } from "./elements.js";

class Field {
  constructor(name, control, panel) {
    Object.assign(this, { name, control, panel });
    this.input = this.#input();
    this.input.id = `${panel.name}-${name}`;
    this.input.title = control.help;
    this.input.addEventListener("input", () => (this.typing = true));
    this.input.addEventListener("change", () => {
      this.typing = false;
      panel.act("write", name, this.#written());
    });
    this.input.addEventListener("keydown", (event) => this.#enter(event));
    if (control.lines > 1) // a pasted text is read at once, once it's in the box
      this.input.addEventListener("paste", () => setTimeout(() => this.input.dispatchEvent(new Event("change"))));
    const label = create("label", { htmlFor: this.input.id, textContent: control.label });
    this.echo = create("span", { className: "live-echo" });
    const parts = control.kind === "flag" ? [this.input, label] : [label, this.input];
    this.box = create("div", { className: `live-field live-${control.kind}` }, ...parts);
    if (control.stops) this.box.append(this.#slider());
    if (control.kind === "number") this.box.append(this.echo);
    if (control.play) this.box.append(this.#play());
  }

  #input() {
    const { kind, options, lines, longest, help } = this.control;
    if (kind === "choice")
      return create("select", {}, ...options.map((one) => new Option(one, one)));
    if (kind === "flag") return create("input", { type: "checkbox" });
    if (lines > 1) return create("textarea", { rows: lines, spellcheck: false, placeholder: help });
    const about = { type: "text", autocomplete: "off", spellcheck: false };
    const size = kind === "text" ? 32 : this.panel.small ? Math.max(longest, 4) : 9;
    return create("input", { ...about, size });
  }

  /** Enter writes what's typed: JupyterLab keeps the browser from saying that it changed. */
  #enter(event) {
    if (event.key !== "Enter" || this.input.type !== "text") return;
    event.preventDefault();
    this.input.dispatchEvent(new Event("change"));
  }

  #written() {
    return this.control.kind === "flag" ? this.input.checked : this.input.value;
  }

  #slider() {
    const { label, stops, help } = this.control;
    this.slider = create("input", { type: "range", min: 0, max: stops - 1, title: help });
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

  /** What the panel says of this field; one that could not be read stays as it is. */
  tell(answer) {
    this.input.ariaInvalid = answer ? null : "true";
    if (!answer) return;
    // a handle keeps its place, so that nothing jumps
    if (this.panel.small) this.box.classList.toggle("live-away", !answer.shown);
    else show(this.box, answer.shown);
    if (this.control.kind === "flag") this.input.checked = answer.text;
    else if (!this.typing || document.activeElement !== this.input) this.input.value = answer.text;
    this.echo.innerHTML = answer.echo ?? "";
    if (!this.slider) return;
    if (answer.last !== undefined) this.slider.max = answer.last;
    if (answer.stop !== undefined && document.activeElement !== this.slider && !this.playing)
      this.slider.value = answer.stop;
    this.pace = answer.pace;
    this.slider.setAttribute("aria-valuetext", answer.text);
  }
}

/** Fields and a picture that answers them. `name` is the page's own for it. */
class Face {
  busy = false;
  #waiting = [];
  #hush;

  constructor(section, name, source) {
    Object.assign(this, { section, name, source });
  }

  /** Build the fields, and the places for messages and the picture. */
  build({ title, controls }) {
    this.fields = Object.entries(controls).map(
      ([name, control]) => new Field(name, control, this),
    );
    this.status = create("div", { className: "live-status", role: "status" });
    this.offers = create("div", { className: "live-row" });
    this.advice = create("div", { className: "live-advice" });
    this.answer = create("div", { className: "live-answer", tabIndex: 0 });
    this.answer.setAttribute("role", "region");
    this.answer.setAttribute("aria-label", `${title} The answer`);
    this.announcement = create("div", { className: "live-announcement", "aria-live": "polite" });
    this.controls = create("div", { className: "live-controls" });
    const picture = create("div", { className: "live-picture" });
    this.controls.append(...this.rows());
    const problem = create("div", { className: "live-problem" });
    problem.append(this.status, this.offers);
    const parts = this.small ? [this.answer, problem] : [problem, this.answer];
    picture.append(...parts, this.advice, this.announcement);
    this.section.replaceChildren(this.controls, picture);
    this.section.classList.add("live-on");
  }

  /** Do it now, or when the last answer is there; of two about one field, the later. */
  async act(...deed) {
    this.#waiting = this.#waiting.filter((one) => one[1] !== deed[1]);
    this.#waiting.push(deed);
    this.section.classList.add("live-touched");
    if (this.busy) return;
    this.busy = true;
    this.section.classList.add("live-busy");
    for (const { name, box } of this.fields) box.classList.toggle("live-last", name === deed[1]);
    while (this.#waiting.length) {
      const now = this.#waiting.shift();
      try {
        this.tell(await this.source.act(...now));
      } catch (error) {
        this.status.textContent = error.message;
      }
    }
    this.busy = false;
    this.section.classList.remove("live-busy");
  }

  tell(answer) {
    for (const field of this.fields) field.tell(answer.fields[field.name]);
    this.status.innerHTML = answer.status;
    this.answer.classList.toggle("live-old", answer.old);
    this.answer.setAttribute("aria-disabled", answer.old);
    this.#picture(answer.html);
    const buttons = (deed) =>
      answer[deed].map((label, at) => button(label, () => this.act(deed, at)));
    this.offers.replaceChildren(...buttons("set_all"));
    this.advice.replaceChildren(...buttons("take"));
  }

  #picture(html) {
    const parts = () => [...this.answer.querySelectorAll("details")];
    const open = parts().map((one) => one.open);
    const clicked = () => [...this.answer.querySelectorAll("[data-sets]")];
    const focused = clicked().indexOf(document.activeElement);
    this.answer.innerHTML = html;
    clicked()[focused]?.focus({ preventScroll: true });
    parts().forEach((one, at) => (one.open = open[at] ?? false));
    this.keepRoom(this.answer.querySelector(":scope > p")?.textContent);
    const { scrollWidth, clientWidth } = this.answer;
    this.answer.classList.toggle("live-wide", scrollWidth > clientWidth + 4);
    clearTimeout(this.#hush);
    const words = this.answer.querySelector("p")?.textContent ?? "";
    this.#hush = setTimeout(() => (this.announcement.textContent = words), 700);
  }

  /** Keep room for the longest sentence, so that nothing below it moves. */
  keepRoom(longest) {
    const { dataset } = this.answer;
    if (longest?.length > (dataset.longest ?? "").length) dataset.longest = longest;
  }
}

/** One picture that one to three controls move. */
export class HandleFace extends Face {
  small = true;

  build(layout) {
    super.build(layout);
    makeDraggable(this);
    makeClickable(this);
  }

  /** Its few controls, side by side. */
  rows() {
    return this.fields.map((one) => one.box);
  }

  /** As if the sliders of these controls had been moved, all at once. */
  slide(names, stops) {
    const moves = names.map((name, at) => [name, stops[at]]);
    for (const [name, stop] of moves) this.fields.find((one) => one.name === name).slider.value = stop;
    this.act("slide", ...moves.flat());
  }

  marks(name) {
    return this.source.marks(name);
  }
}

/** All controls of a chapter's question. */
export class PanelFace extends Face {
  build(layout) {
    this.presets = layout.presets;
    super.build(layout);
  }

  /** What decides which fields there are, then sliders, then the others; few of them folded. */
  rows() {
    const boxes = (wanted) => this.fields.filter(wanted).map((one) => one.box);
    const plain = (one) => !one.control.more && !one.control.lead;
    const lead = boxes(({ control }) => control.lead && !control.more);
    const sliders = boxes((one) => plain(one) && one.slider);
    const others = create("div", { className: "live-row" });
    others.append(...boxes((one) => plain(one) && !one.slider));
    const more = create("div", { className: "live-row" });
    more.append(...boxes((one) => one.control.more));
    this.more = create("details", {}, create("summary", { textContent: "More" }), more);
    return [this.#starts(lead), ...sliders, others, this.more];
  }

  /** Where to start from, and what decides which sliders there are. */
  #starts(lead) {
    const preset = create("select", { id: `${this.name}-preset` });
    preset.append(...this.presets.map((one) => new Option(one, one)));
    this.own = preset.lastElementChild; // it says that no preset is left, and can't be chosen
    preset.addEventListener("change", () => this.act("choose", preset.value));
    this.preset = preset;
    const from = create("label", { htmlFor: preset.id, textContent: "Start from" });
    const starts = create("div", { className: "live-row" });
    starts.append(create("div", { className: "live-field" }, from, preset));
    starts.append(button("Reset", () => this.act("reset")));
    starts.append(...(this.source.buttons?.() ?? []), ...lead);
    return starts;
  }

  tell(answer) {
    super.tell(answer);
    show(this.more, this.fields.some(({ control, box }) => control.more && !box.hidden));
    this.own.disabled = answer.preset !== this.own.value;
    this.preset.value = answer.preset;
    this.source.shown?.(answer);
  }
}
