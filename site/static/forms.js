/* Guesses, exercises and other cells: forms in the page whose answers are judged. */
import { button, create, show } from "./elements.js";
import { pageData } from "./page_data.js";
import { answerGuess } from "./guess.js";
import { Progress } from "./progress.js";
import { python, waiting } from "./python.js";

const PAGE = location.pathname.match(/([^/]*)\.html$/)?.[1] ?? "";
const CELLS = pageData("cells"); // as they stand in the page; the learner's, once run
const EXAMPLE =
  "This is still the course's example. Press “Run or change”, and it becomes your own run.";
const SLOW = 8000; // ms; then a cell can be stopped

const answer = (value) => `answer = ${JSON.stringify(value)}`;

/** A form whose answer Python judges; what was written is kept. */
export class AnswerForm {
  static all = [];

  constructor(form) {
    AnswerForm.all.push(this);
    Object.assign(this, { form, verdict: form.querySelector(".live-verdict") });
    ({ id: this.id, kind: this.kind } = form.dataset);
    this.cell = form.querySelector("textarea");
    this.turns = [...form.querySelectorAll("[data-turn]")];
    this.asked = this.turns[0];
    this.source = form.previousElementSibling;
    this.key = this.id.startsWith("cell-") ? `${PAGE} ${this.id}` : this.id;
    this.at = Number(form.dataset.at);
    form.addEventListener("input", ({ target }) => {
      this.asked = target.closest("[data-turn]") ?? this.asked;
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!this.turns.length || this.#choose()) this.judge();
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
    const run = form.querySelector(".live-run");
    if (run) run.onclick = () => this.judge();
    form.querySelector("details")?.addEventListener("toggle", () => this.#fit());
    if ("closed" in form.dataset) this.#offer();
    else this.#open();
    this.#takeUp(Progress.all().cells?.[this.key]);
  }

  /** Take up what was written and answered on an earlier visit; as text, whatever is stored. */
  #takeUp(earlier) {
    if (!earlier || (this.cell && earlier.source !== this.cell.defaultValue)) return;
    this.#open();
    const told = String(earlier.told || "Run it again to see what it shows.");
    const text = this.kind === "guess" ? told.replace(`${this.id}: `, "") : told;
    this.verdict.replaceChildren(create("p", { className: "live-kept", textContent: text }));
    if (this.cell) {
      CELLS[this.at] = this.cell.value = String(earlier.written);
      this.#fit();
    }
    this.#askNext();
    for (const one of this.form.elements) {
      if (this.turns.length) one.checked = one.type === "radio" && this.cell.value.includes(answer(one.value));
      else if (one.type === "radio") one.checked = one.value === earlier.written;
      else if (one.type === "text") one.value = earlier.written;
    }
  }

  /** Show a choice, and the question that joins it after a wrong one: only that one counts then. */
  #askNext() {
    const turn = Math.min(Progress.all().turns?.[this.id] ?? 0, this.turns.length - 1);
    this.turns.forEach((one, at) => show(one, at <= turn));
    this.asked = this.turns[turn];
  }

  /** Put what was answered last into the cell, and say whether anything was. */
  #choose() {
    const chosen = this.asked.querySelector(":checked, [type=text]")?.value.trim();
    if (chosen) this.cell.value = this.cell.defaultValue.replace("answer = None", answer(chosen));
    else this.verdict.textContent = `You haven't ${this.asked.localName === "p" ? "written" : "chosen"} anything yet.`;
    return Boolean(chosen);
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
    const mine = Object.keys(Progress.all().run ?? {}).length;
    if (!mine || !("example" in this.form.dataset)) return;
    const note = create("p", { className: "live-note", textContent: EXAMPLE });
    this.source.querySelector(".cell_output")?.prepend(note);
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
    for (const one of AnswerForm.all.filter(plain))
      if (!one.form.hidden) await one.judge(false);
  }

  #written() {
    return new FormData(this.form).get(`of-${this.id}`)?.replaceAll("\r\n", "\n");
  }

  async judge(first = true) {
    const written = this.#written();
    if (!written?.trim()) {
      this.verdict.textContent = this.form.querySelector("input[type=radio]")
        ? "You haven't chosen anything yet."
        : "You haven't written anything yet.";
      return;
    }
    if (this.kind === "guess" && this.#guess(written.trim())) return;
    const changed = this.cell && written !== CELLS[this.at];
    waiting(this.verdict);
    let slow;
    try {
      await python.start();
      slow = setTimeout(() => this.#offerStop(), SLOW);
      const { html, ...kept } = await python.call(...this.#ask(written));
      const refused = this.kind === "guess" && !html.includes(">→<"); // it doesn't count
      if (refused) this.#say(html);
      else this.#tell(html || "It ran without printing anything.", written, kept);
    } catch (error) {
      this.verdict.textContent = error.message;
    }
    clearTimeout(slow);
    if (first && changed) await this.#runLater();
  }

  /** A guess's answer without the guess's name, which means nothing to its reader. */
  #say(html) {
    this.verdict.innerHTML = this.kind === "guess" ? html.replace(` ${this.id}: `, " ") : html;
  }

  /** Show a verdict, and store it with what else is to be stored. */
  #tell(html, written, kept) {
    this.#say(html);
    const cells = { ...Progress.all().cells };
    const question = this.source.previousElementSibling?.textContent.trim();
    const date = new Date().toISOString().slice(0, 10);
    const asked = this.verdict.querySelector(".asked")?.innerText ?? ""; // the form asks it
    const told = this.verdict.innerText.replace(asked, "").trim();
    cells[this.key] = { told, written, question, date, source: this.cell?.defaultValue };
    Progress.keep({ ...kept, cells });
    Progress.show();
    this.#askNext();
  }

  /** Answer a guess without Python, and say whether that could be done. */
  #guess(written) {
    const { guesses = {}, done = {} } = Progress.all();
    const first = typeof guesses[this.id] === "string" ? guesses[this.id] : written;
    const answer = answerGuess(this.id, written, first);
    if (!answer) return false;
    if (!answer.counts) {
      this.#say(answer.html);
      return true;
    }
    const kept = { guesses: { ...guesses, [this.id]: first }, done: { ...done, [this.id]: true } };
    this.#tell(answer.html, written, kept);
    if (python.begun) python.call("guess", this.id, first); // it keeps count as well
    return true;
  }

  #ask(written) {
    if (!this.cell) return [this.kind, this.id, written];
    CELLS[this.at] = written;
    return ["run", JSON.stringify(CELLS.slice(0, this.at)), written];
  }

  #offerStop() {
    this.verdict.textContent = "It's still running. ";
    this.verdict.append(button("Stop it", () => python.stop()));
  }
}
