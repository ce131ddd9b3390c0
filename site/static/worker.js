/* Python for the page, beside it: the course's formulas in Pyodide. */
import { loadPyodide } from "../pyodide/pyodide.mjs";

const here = (name) => new URL(name, import.meta.url).href;
let python;

const calls = {
  async start(kept) {
    postMessage({ step: "Python is being fetched, some 6 MB …" });
    const [pyodide, wheel] = await Promise.all([
      loadPyodide({ indexURL: here("../pyodide/") }),
      fetch(here("../course.zip")).then((answer) => answer.arrayBuffer()),
    ]);
    pyodide.unpackArchive(wheel, "zip");
    postMessage({ step: "The course is being read …" });
    python = {
      panels: pyodide.pyimport("llmtrain_helpers.panels.page"),
      exercises: pyodide.pyimport("llmtrain_helpers.exercises.page"),
    };
    python.exercises.restore(kept);
  },
  opened: (...about) => python.panels.opened(...about),
  act: (word, deed, ...about) => python.panels.act(word, deed, ...about),
  run: (before, source) => python.exercises.run(before, source),
  chosen: (id, option) => python.exercises.chosen(id, option),
  guess: (id, written) => python.exercises.guess(id, written),
};

onmessage = async ({ data: { id, name, about } }) => {
  try {
    postMessage({ id, value: await calls[name](...about) });
  } catch (error) {
    postMessage({ id, error: String(error.message ?? error) });
  }
};
