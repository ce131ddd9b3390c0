/* A handle's pictures that were drawn when the site was built: it moves at once. What none of
   them shows, Python draws. */
import { create } from "./elements.js";
import { HandleFace } from "./face.js";
import { addLinks } from "./figure.js";
import { python, waiting } from "./python.js";

const NONE = { pieces: [], pictures: {} };
const MARK = /<circle cx="([\d.-]+)" cy="([\d.-]+)"[^>]* data-moves="([\w ]+)"/g;
export const narrow = () => matchMedia("(max-width: 600px)").matches;

/** What a field replies to this, when it can't be set to it and that's plain to see. */
function refusal({ words, outside, part, least, most } = {}, written) {
  if (!/[0-9]/.test(written)) return words;
  if (!/^[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?$/.test(written)) return undefined; // Python reads it
  const value = Number(written.replaceAll(",", ""));
  if (value % 1 && part) return value > 0 && value < 1 ? undefined : part; // 0.5 may be 50%
  return value < least || value > most ? outside : undefined;
}

/** A number as it's compared: `1,024` and `1024` are the same. */
const plain = (written) => String(written).replaceAll(",", "").trim().toLowerCase();

class Drawn {
  #pictures;
  #byPython;

  constructor(word, name, { fields, stops, all, refusals, refused }) {
    Object.assign(this, { word, name, all, refusals, refused });
    this.names = Object.keys(stops);
    this.stops = Object.values(stops);
    this.places = this.names.map((name, at) => this.stops[at].indexOf(fields[name].text));
  }

  async act(...deed) {
    const refused = !this.#byPython && deed[0] === "write" && (await this.#refuse(...deed));
    if (refused) return refused;
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
    return await python.call("act", this.name, ...deed);
  }

  async marks(name) {
    const at = this.names.indexOf(name);
    const spots = await Promise.all(
      this.stops[at].map(async (_, stop) => {
        const html = (await this.#html(this.places.with(at, stop))) ?? "";
        return [...html.matchAll(MARK)].filter((one) => one[3].split(" ").includes(name));
      }),
    );
    return spots.map((all) => all.map(([, x, y]) => [Number(x), Number(y)]));
  }

  /** The picture after this deed, where it was drawn. */
  async #drawing([deed, ...moves]) {
    const places = [...this.places];
    for (let i = 0; i < moves.length; i += 2) {
      const [at, what] = [this.names.indexOf(moves[i]), moves[i + 1]];
      const stop = this.stops[at].findIndex((one) => plain(one) === plain(what)); // -1 for no stop
      places[at] = deed === "slide" ? what : stop;
    }
    const { pieces, pictures } = await this.fetch();
    const parts = pictures[places.join()]?.map((at) => pieces[at]);
    if (!parts) return undefined;
    this.places = places;
    const fields = {};
    for (const name of this.names) fields[name] = JSON.parse(parts.shift());
    return { fields, html: parts.join(""), status: "", old: false, set_all: [], take: [] };
  }

  /** The picture stays, and its other fields with it. */
  async #refuse(_, name, written) {
    const reply = refusal(this.refusals[name], String(written).trim());
    const answer = reply && written.length < 30 && (await this.#drawing(["slide"]));
    if (!answer) return undefined;
    const { [name]: field, ...fields } = answer.fields;
    const text = `${reply.replace("{}", () => `'${written}'`)} It's still ${field.text}.`;
    const safe = create("p", { textContent: text }).innerHTML;
    return { ...answer, fields, status: this.refused.replace("{}", () => safe) };
  }

  async #html(places) {
    const { pieces, pictures } = await this.fetch();
    return pictures[places.join()]?.slice(this.names.length).map((at) => pieces[at]).join("");
  }

  get file() {
    const name = this.word.replace("handle:", "") + (narrow() ? "-narrow" : "");
    return new URL(`../handles/${name}.json`, import.meta.url);
  }

  fetch() {
    this.#pictures ??= fetch(this.file)
      .then((answer) => answer.json())
      .catch(() => NONE);
    return this.#pictures;
  }

  /** Python goes on from where the pictures ended. */
  async #handOver() {
    waiting(this.face.status);
    const begun = this.names.map((name, at) => [name, this.stops[at][this.places[at]]]);
    await python.call("opened", this.word, "", narrow(), this.name);
    for (const set of begun) await python.call("act", this.name, "write", ...set);
  }
}

/** Let a handle's saved picture move, and fetch the others when it comes near. */
export function openHandle(section, place) {
  const saved = section.parentElement.querySelector(".live-saved");
  const start = JSON.parse(section.dataset.start);
  const source = new Drawn(section.dataset.word, `handle-${place}`, start);
  const face = new HandleFace(section, source.name, source);
  source.face = face;
  face.build(start.layout);
  for (const field of face.fields) field.tell(start.fields[field.name]);
  saved.hidden = true;
  const first = saved.querySelector(".live-answer");
  face.keepRoom(first.dataset.longest);
  face.answer.append(...first.childNodes);
  const near = new IntersectionObserver(([seen]) => {
    if (!seen.isIntersecting) return;
    near.disconnect();
    source.fetch().then(({ longest }) => face.keepRoom(longest));
  });
  near.observe(section);
  addLinks(face, start.fields);
  return source;
}
