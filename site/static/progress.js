/* What the reader has done: kept in the browser, and shown in the list of chapters. */
import { create } from "./elements.js";
import { pageData } from "./page_data.js";
import { current } from "./former.js";

const COURSE = pageData("course");
const NUMBERED = pageData("numbered"); // the chapter that each number stood for in an old id
const RENAMED = pageData("renamed"); // exercises that have moved, by their old id

/** Before a room nothing of earlier visits is shown, and nothing is kept. */
const ROOM = new URLSearchParams(location.search).has("present");

export class Progress {
  static KEY = "llmtrain";
  static #room = "{}";

  /** As it was stored; Python looks for itself at what it takes up. */
  static stored() {
    if (ROOM) return this.#room;
    try {
      return current(localStorage.getItem(this.KEY) ?? "{}", COURSE, NUMBERED, RENAMED);
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
    const all = JSON.stringify({ ...this.all(), ...more });
    if (ROOM) this.#room = all;
    try {
      if (!ROOM) localStorage.setItem(this.KEY, all);
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
    if (!COURSE.length) return;
    for (const link of document.querySelectorAll(".bd-sidebar-primary a")) {
      const chapter = link.pathname.match(/([a-z_]+)\.html$/)?.[1];
      if (!this.of(chapter)[1] || !this.all().done || /solutions|evidence/.test(link.href)) continue;
      const [done, all] = this.of(chapter);
      let mark = link.querySelector(".live-mark");
      mark ??= link.appendChild(create("span", { className: "live-mark" }));
      mark.textContent = done ? `${done === all ? "✓ " : ""}${done} of ${all} done` : "";
      mark.title = "exercises and guesses";
    }
  }
}
