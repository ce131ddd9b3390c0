/* Python for the page, beside it: the course's formulas in Pyodide. */
import { loadPyodide } from "../pyodide/pyodide.mjs";

const here = (name) => new URL(name, import.meta.url).href;
const WHOLE = 1; // bytes to fetch; the build writes how many
let python;
let fetched = 0;

/** Fetch as before, and tell how much of the whole is there. */
const plain = self.fetch;
self.fetch = async (...about) => {
  const answer = await plain(...about);
  if (!answer.body || !answer.ok) return answer;
  const counted = new TransformStream({
    transform(piece, next) {
      fetched += piece.byteLength;
      tell("Downloading Python, about 7 MB …");
      next.enqueue(piece);
    },
  });
  const { status, headers } = answer;
  return new Response(answer.body.pipeThrough(counted), { status, headers });
};

const tell = (words) =>
  postMessage({ step: { words, part: Math.min(fetched / WHOLE, 1) } });

const calls = {
  async start(kept) {
    const [pyodide, wheel] = await Promise.all([
      loadPyodide({ indexURL: here("../pyodide/") }),
      fetch(here("../course.zip")).then((answer) => answer.arrayBuffer()),
    ]);
    pyodide.unpackArchive(wheel, "zip");
    tell("Loading the course …");
    python = {
      panels: pyodide.pyimport("llmtrain_course.page"),
      exercises: pyodide.pyimport("llmtrain_course.cells"),
    };
    python.exercises.restore(kept);
  },
  opened: (...about) => python.panels.opened(...about),
  act: (word, deed, ...about) => python.panels.act(word, deed, ...about),
  run: (before, source) => python.exercises.run(before, source),
  guess: (id, written) => python.exercises.guess(id, written),
};

onmessage = async ({ data: { id, name, about } }) => {
  try {
    postMessage({ id, value: await calls[name](...about) });
  } catch (error) {
    postMessage({ id, error: String(error.message ?? error) });
  }
};
