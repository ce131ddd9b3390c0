/* What is the same of a panel and a handle: fields that set something, and the picture and
   words that answer. */
import { button, made, show } from "./elements.js";
import { python } from "./python.js";

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

/** Fields and a picture that answers them. `name` is the page's own for it. */
export class Moving {
  busy = false;
  #next;
  #hush;

  constructor(section, name) {
    this.section = section;
    this.word = section.dataset.word;
    this.name = name;
    this.saved = section.parentElement.querySelector(".live-saved");
  }

  get narrow() {
    return matchMedia("(max-width: 600px)").matches;
  }

  /** The fields, and the places for what is said and shown. */
  build({ title, controls }) {
    this.fields = Object.entries(controls).map(
      ([name, control]) => new Field(name, control, this),
    );
    this.status = made("div", { className: "live-status", role: "status" });
    this.offers = made("div", { className: "live-row" });
    this.advice = made("div", { className: "live-advice" });
    this.answer = made("div", { className: "live-answer", tabIndex: 0 });
    this.answer.setAttribute("role", "region");
    this.answer.setAttribute("aria-label", `${title} The answer`);
    this.said = made("div", { className: "live-said", "aria-live": "polite" });
    this.controls = made("div", { className: "live-controls" });
    const shown = made("div", { className: "live-picture" });
    this.controls.append(...this.rows());
    (this.small ? this.controls : shown).append(this.status, this.offers);
    shown.append(this.answer, this.advice, this.said);
    this.section.replaceChildren(this.controls, shown);
    this.section.classList.add("live-on");
    this.saved.hidden = true;
  }

  /** Do it now, or when the last answer is there; of two that wait, the later. */
  async act(...deed) {
    this.#next = deed;
    if (this.busy) return;
    this.busy = true;
    this.section.classList.add("live-busy");
    for (const { name, box } of this.fields) box.classList.toggle("live-last", name === deed[1]);
    while (this.#next) {
      const now = this.#next;
      this.#next = undefined;
      try {
        this.tell(await this.asked(...now));
      } catch (error) {
        this.status.textContent = error.message;
      }
    }
    this.busy = false;
    this.section.classList.remove("live-busy");
  }

  /** What is to be shown after this deed. */
  async asked(...deed) {
    return await python.call("act", this.name, ...deed);
  }

  tell(told) {
    for (const field of this.fields) field.tell(told.fields[field.name]);
    this.status.innerHTML = told.status;
    this.answer.classList.toggle("live-old", told.old);
    this.answer.setAttribute("aria-disabled", told.old);
    this.#picture(told.html);
    const buttons = (deed) =>
      told[deed].map((label, at) => button(label, () => this.act(deed, at)));
    this.offers.replaceChildren(...buttons("set_all"));
    this.advice.replaceChildren(...buttons("take"));
  }

  #picture(html) {
    const parts = () => [...this.answer.querySelectorAll("details")];
    const open = parts().map((one) => one.open);
    this.answer.innerHTML = html;
    parts().forEach((one, at) => (one.open = open[at] ?? false));
    const { scrollWidth, clientWidth } = this.answer;
    this.answer.classList.toggle("live-wide", scrollWidth > clientWidth + 4);
    clearTimeout(this.#hush);
    const words = this.answer.querySelector("p")?.textContent ?? "";
    this.#hush = setTimeout(() => (this.said.textContent = words), 700);
  }
}
