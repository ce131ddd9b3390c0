/* A face in a notebook: its source is the kernel. The answer is a trait of the widget, so that a
   second view and a page that's loaded again show the same. */
import { create } from "./elements.js";
import { HandleFace, PanelFace } from "./face.js";

const NARROW = 520; // px; in less room a picture is drawn for a phone
const SILENT = 10_000; // ms without an answer, after which a reader is told

class Kernel {
  #waiting = new Map();
  #count = 0;
  view = crypto.getRandomValues(new Uint32Array(1))[0].toString(36);

  constructor(model) {
    this.model = model;
  }

  act(...deed) {
    return this.#ask({ deed });
  }

  marks(control) {
    return this.#ask({ marks: control });
  }

  #ask(about) {
    const id = `${this.view}-${++this.#count}`;
    const silent = setTimeout(() => {
      this.face.status.textContent =
        "Python doesn't answer. If the kernel was stopped or restarted, run this cell again.";
    }, SILENT);
    this.model.send({ id, ...about });
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject })).finally(() =>
      clearTimeout(silent),
    );
  }

  /** An answer of the kernel: mine, or that of another view. */
  answered(answer) {
    const mine = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (mine) mine.resolve(answer);
    else if (!this.face.busy) this.face.tell(answer);
  }

  replied({ id, marks, error }) {
    const mine = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) mine?.reject(new Error(error));
    else mine?.resolve(marks);
  }
}

/** Take messages by the widget's own comm: anywidget drops them all where its module took more
    than two seconds to start. */
async function takeMessages(model) {
  const whole = await model.widget_manager.get_model(model.get("address"));
  const { _handle_comm_msg: take } = Object.getPrototypeOf(Object.getPrototypeOf(whole));
  whole.comm?.on_msg((message) => take.call(whole, message));
}

/** Leave keys without Ctrl, Alt or Meta to the face: a letter in a list adds no cell. */
function keepKeys(element) {
  const named = "lmSuppressShortcuts";
  const keep = (event) => {
    if (!element.contains(event.target)) return;
    const labs = event.ctrlKey || event.altKey || event.metaKey || (event.shiftKey && event.key === "Enter");
    if (labs) delete event.target.dataset[named];
    else event.target.dataset[named] = "true";
  };
  window.addEventListener("keydown", keep, true);
  return () => window.removeEventListener("keydown", keep, true);
}

async function render({ model, el }) {
  await takeMessages(model); // before anything can be asked
  const about = model.get("about");
  const kinds = about.small ? "live-panel live-handle" : "live-panel";
  const section = create("section", { className: kinds });
  el.classList.add("llmtrain");
  el.replaceChildren(section);
  const source = new Kernel(model);
  const face = new (about.small ? HandleFace : PanelFace)(section, source.view, source);
  source.face = face;
  face.build(about);
  face.tell(model.get("answer"));
  model.on("change:answer", () => source.answered(model.get("answer")));
  model.on("msg:custom", (reply) => source.replied(reply));
  let narrow = false;
  const seen = new ResizeObserver(([{ contentRect: { width } }]) => {
    if (!width || width < NARROW === narrow) return;
    narrow = width < NARROW;
    face.act("narrow", narrow);
  });
  seen.observe(el);
  const free = keepKeys(el);
  return () => {
    seen.disconnect();
    free();
  };
}

export default { render };
