/* A guess, answered in the page as the package answers it, whose words the build left here.
   What is rarely written, a sum such as 2**5 or another unit, is left to Python. */
import { create } from "./elements.js";
import { pageData } from "./page_data.js";

const GUESSES = pageData("guesses");
const NUMBER = /^[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d[\d_]*)(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,2})?(?!\d)/i;
const DECIMAL_COMMA = /^\d+,\d{1,2} ?[a-z%]*$/i;
const LARGEST = 1e40; // beyond, the package says so

/** A number in two digits, never in powers of ten. */
function digits(number) {
  const [mantissa, power] = number.toExponential(1).split("e");
  const places = 1 - Number(power);
  if (places > 0) return number.toFixed(places);
  const whole = BigInt(mantissa.replace(".", "")) * 10n ** BigInt(-places);
  return whole.toLocaleString("en-US");
}

/** How far off a guess was, as people say it. */
function gap(guess, truth) {
  const ratio = Math.max(guess / truth, truth / guess);
  if (ratio < 1.02) return "and that's as good as exact";
  const side = guess > truth ? "too high" : "too low";
  if (ratio < 2) return `so you're ${digits(100 * Math.abs(guess / truth - 1))}% ${side}`;
  return `so you're ${digits(ratio)}× ${side}`;
}

/** The number that was written, alone or in the unit that is asked; undefined for any other. */
function read(written, units) {
  const plain = written.replace(/[−–]/g, "-").replace(/\s+/g, " ");
  const [number] = plain.match(NUMBER) ?? [];
  if (!number || written.length > 60) return undefined;
  const unit = plain.slice(number.length).replace(/^ /, "").toLowerCase();
  if (unit && !units.includes(unit.replaceAll("-", " ").replace(/\.+$/, ""))) return undefined;
  const value = Number(number.replace(/[,_]/g, ""));
  return value <= 0 || (value > 1 / LARGEST && value < LARGEST) ? value : undefined;
}

/** Judge a guess, or say what is wrong with it; undefined where Python has to judge. */
function judge({ options, truth, formatted, why, units, refusals }, written) {
  if (options) return options[written];
  if (!/[0-9]/.test(written)) return { problem: refusals.words };
  if (DECIMAL_COMMA.test(written)) return { problem: refusals.comma.replace("{}", () => written) };
  const value = read(written, units);
  if (value === undefined) return undefined;
  if (value <= 0) return { problem: refusals.low.replace("{}", () => written) };
  const echo = `you said ${written}`;
  return { echo, text: `You said ${written}. It's ${formatted}, ${gap(value, truth)}. ${why}` };
}

/** The verdict on a guess, as text and as HTML, and whether it counts; undefined where Python
    has to judge. `first` is what was guessed first, if that was something else. */
export function answerGuess(id, written, first = written) {
  const about = GUESSES[id];
  const now = about && judge(about, written);
  const before = about && judge(about, first);
  if (!now || (!now.problem && !before?.echo)) return undefined;
  const { problem, text } = now;
  const sentence = problem ?? (first === written ? text : `First ${before.echo}, now ${text[0].toLowerCase()}${text.slice(1)}`);
  const safe = create("p", { textContent: sentence }).innerHTML;
  return {
    counts: !problem,
    text: sentence,
    html: (problem ? about.refused : about.answered).replace("{}", () => safe),
  };
}
