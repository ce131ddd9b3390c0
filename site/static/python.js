/* Python, in a worker beside the page. Nothing is fetched before somebody asks. */
import { create } from "./elements.js";
import { Progress } from "./progress.js";

class Python {
  #worker;
  #ready;
  #waiting = new Map();
  #count = 0;

  /** Start once; later calls wait for the same start. */
  start() {
    this.#ready ??= this.#fetched().catch((error) => {
      this.stop(error);
      throw error;
    });
    return this.#ready;
  }

  get begun() {
    return this.#ready !== undefined;
  }

  #fetched() {
    this.#worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.#worker.onmessage = ({ data }) => this.#answered(data);
    this.#worker.onerror = () => this.stop(new Error("Python couldn't be loaded."));
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

export const python = new Python();

/** How far Python is, in words and as a bar, until the element says something else. */
export function waiting(element) {
  const bar = create("progress", { max: 1, "aria-label": "Downloading Python" });
  const words = create("span", { textContent: "Starting Python …" });
  element.replaceChildren(words, " ", bar);
  document.addEventListener("python", ({ detail }) => {
    words.textContent = detail.words;
    bar.value = detail.part;
  });
}
