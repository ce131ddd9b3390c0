/* A handle: one picture that one to three controls move. It moves at once, by pictures that
   were drawn when the site was built; what none of them shows, Python draws. */
import { makeDraggable } from "./drag.js";
import { Interactive } from "./interactive.js";
import { python, waiting } from "./python.js";

const NONE = { pieces: [], pictures: {} };
const MARK = /<circle cx="([\d.-]+)" cy="([\d.-]+)"[^>]* data-moves="(\w+)"/g;

export class Handle extends Interactive {
  small = true;
  #pictures;
  #byPython;

  constructor(section, place) {
    super(section, `handle-${place}`);
    const { layout, fields, stops, all } = JSON.parse(section.dataset.start);
    this.all = all;
    this.build(layout);
    for (const field of this.fields) field.tell(fields[field.name]);
    this.places = this.fields.map(({ name }) => stops[name].indexOf(fields[name].text));
    this.stops = this.fields.map(({ name }) => stops[name]);
    this.answer.append(...this.saved.querySelector(".live-answer").childNodes);
    const near = new IntersectionObserver(([seen]) => {
      if (!seen.isIntersecting) return;
      near.disconnect();
      this.#fetch();
    });
    near.observe(section);
    makeDraggable(this);
  }

  /** Its few controls, one beside the other. */
  rows() {
    return this.fields.map((one) => one.box);
  }

  async answerTo(...deed) {
    this.section.classList.add("live-touched");
    if (!this.all) python.start().catch(() => {}); // it will be asked before long
    const answer = this.#byPython ? undefined : await this.#drawing(deed);
    if (answer) return answer;
    this.#byPython ??= this.#handOver();
    try {
      await this.#byPython;
    } catch (error) {
      this.#byPython = undefined; // the pictures that there are go on
      throw error;
    }
    return await super.answerTo(...deed);
  }

  /** The picture after this deed, where it was drawn. */
  async #drawing(deed) {
    const { pieces, pictures } = await this.#fetch();
    const places = this.#placesAfter(...deed);
    const parts = pictures[places.join()]?.map((at) => pieces[at]);
    if (!parts) return undefined;
    this.places = places;
    const fields = {};
    for (const { name } of this.fields) fields[name] = JSON.parse(parts.shift());
    return { fields, html: parts.join(""), status: "", old: false, set_all: [], take: [] };
  }

  /** As if its slider had been moved. */
  slide(name, stop) {
    this.fields.find((one) => one.name === name).slider.value = stop;
    this.act("slide", name, stop);
  }

  /** Where the marks of a control stand at each of its stops, the other controls as they are. */
  async marks(name) {
    const { pieces, pictures } = await this.#fetch();
    const at = this.fields.findIndex((one) => one.name === name);
    return this.stops[at].map((_, stop) => {
      const parts = pictures[this.places.with(at, stop).join()] ?? [];
      const html = parts.slice(this.fields.length).map((piece) => pieces[piece]).join("");
      return [...html.matchAll(MARK)].filter((one) => one[3] === name).map(([, x, y]) => [Number(x), Number(y)]);
    });
  }

  get file() {
    const name = this.word.replace("handle:", "") + (this.narrow ? "-narrow" : "");
    return new URL(`../handles/${name}.json`, import.meta.url);
  }

  #fetch() {
    this.#pictures ??= fetch(this.file)
      .then((answer) => answer.json())
      .catch(() => NONE);
    return this.#pictures;
  }

  /** The places of the controls after a deed; -1 for what is no stop. */
  #placesAfter(deed, name, what) {
    const at = this.fields.findIndex((one) => one.name === name);
    const place = deed === "slide" ? what : this.stops[at].indexOf(what);
    return this.places.with(at, place);
  }

  /** Python goes on from where the pictures ended. */
  async #handOver() {
    waiting(this.status);
    const begun = this.fields.map(({ name }, at) => [name, this.stops[at][this.places[at]]]);
    await python.call("opened", this.word, "", this.narrow, this.name);
    for (const set of begun) await python.call("act", this.name, "write", ...set);
  }
}
