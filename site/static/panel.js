/* A panel: all controls of a chapter's question. Python draws it, once it is started. */
import { button, create, show } from "./elements.js";
import { Interactive } from "./interactive.js";
import { python, waiting } from "./python.js";

export class Panel extends Interactive {
  constructor(section) {
    super(section, section.dataset.word);
  }

  async start(address = "") {
    const first = this.section.firstElementChild;
    first.setAttribute("role", "status");
    waiting(first);
    try {
      const answer = await python.call("opened", this.word, address, this.narrow);
      this.build(answer.layout);
      this.tell(answer);
      const room = document.documentElement.classList.contains("present"); // the arrows go on there
      (room ? this.answer : this.preset).focus({ preventScroll: true });
      this.section.scrollIntoView({ block: "start" });
    } catch (error) {
      first.textContent = `It did not start: ${error.message} `;
      first.append(button("Try again", () => this.start(address), false));
    }
  }

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
    this.copy = button("Copy a link", () => this.#copyLink());
    const starts = create("div", { className: "live-row" });
    starts.append(create("div", { className: "live-field" }, from, preset));
    starts.append(button("Reset", () => this.act("reset")), this.copy, ...lead);
    return starts;
  }

  tell(answer) {
    super.tell(answer);
    show(this.more, this.fields.some(({ control, box }) => control.more && !box.hidden));
    this.own.disabled = answer.preset !== this.own.value;
    this.preset.value = answer.preset;
    if (document.querySelector(".present")) return; // its address says the scene
    const search = answer.address ? `?${answer.address}` : location.pathname;
    history.replaceState(null, "", search + location.hash);
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
