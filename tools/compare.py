"""How long from a key press to the picture: our panel beside `interactive_output`.

    .venv/bin/python tools/compare.py

Both stand in one notebook in one JupyterLab and show the same answer: the panel of
chapter 01, and the usual technique, `interactive_output` with a new matplotlib figure.
Each slider is stepped by the same key, in turn; medians and ratio are printed.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import nbformat

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser import lab
from tools.regenerate import METADATA

STEPS = 15

PANEL = """
from llmtrain_course.panels import parameters_panel
panel = parameters_panel()
panel
"""

USUAL = """
import ipywidgets as widgets
import matplotlib.pyplot as plt
from IPython.display import HTML, display
from llmtrain_helpers import Transformer, count_parameters, units
from llmtrain_course.kit.figures import new_figure, styled
from llmtrain_course.kit import panel as common

def draw(num_layers):
    counted = count_parameters(Transformer.gpt(num_layers, 12288, 96, 50257, 2048))
    display(HTML(common.sentence(units.count(counted.total))))
    picture(counted)
    plt.show()
    rows = [[name, units.exact(size)] for name, size in counted.parts().items()]
    display(HTML(common.table(["part", "parameters"], rows)))

@styled
def picture(counted):
    figure, axes = new_figure("This model", "parameters", "")
    left = 0
    for name, size in counted.parts().items():
        axes.barh([0], [size], left=left, label=name)
        left += size
    axes.legend()

layers = widgets.IntSlider(96, 1, 1000, description="Layers, usual")
layers.add_class("usual-slider")
usual = widgets.interactive_output(draw, {"num_layers": layers})
usual.add_class("usual-output")
widgets.VBox([layers, usual])
"""

WATCH = """
selector => {
    window.changed = null;
    const target = document.querySelector(selector);
    const drawn = target.querySelector('img') !== null;
    const picture = () => {
        const image = target.querySelector('img');
        return drawn ? image && image.src : target.innerHTML;
    };
    const before = picture();
    const painted = () => { window.changed = performance.now(); };
    new MutationObserver((_, observer) => {
        if (picture() && picture() !== before) {
            observer.disconnect();
            requestAnimationFrame(() => setTimeout(painted));
        }
    }).observe(target, {childList: true, subtree: true, attributes: true});
    const start = () => { window.started = performance.now(); };
    window.addEventListener('keydown', start, {once: true, capture: true});
}
"""


def main() -> None:
    """Measure, and print what came out."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with lab.jupyterlab(folder) as address, lab.chromium() as browser:
            cells = [nbformat.v4.new_code_cell(code.strip()) for code in (PANEL, USUAL)]
            cells.append(nbformat.v4.new_code_cell("print('all ' + 'ready')"))
            notebook = nbformat.v4.new_notebook(cells=cells, metadata=METADATA)
            nbformat.write(notebook, folder / "notebooks" / "compare.ipynb")
            page = browser.new_page(viewport={"width": 1280, "height": 2400})
            lab.open_notebook(page, address, "compare.ipynb")
            lab.run_all(page, "all ready")
            page.wait_for_selector(".usual-output img")
            panel = ".llmtrain-answer"
            times = {"panel": [], "usual": []}
            for _ in range(STEPS):
                times["panel"].append(one_step(page, ".llmtrain-panel", panel))
                times["usual"].append(one_step(page, ".usual-slider", ".usual-output"))
    medians = {kind: statistics.median(values) for kind, values in times.items()}
    for kind, milliseconds in medians.items():
        print(f"{kind}: {milliseconds:.0f} ms from key press to picture (median)")
    print(f"ratio: {medians['panel'] / medians['usual']:.2f}")


def one_step(page: lab.Page, place: str, output: str) -> float:
    """Milliseconds from a slider's step until the output shows another picture."""
    page.locator(f"{place} .noUi-handle").first.focus()
    page.evaluate(WATCH, output)
    page.keyboard.press("ArrowRight")
    page.wait_for_function("window.changed !== null", timeout=20_000)
    page.wait_for_timeout(300)
    return page.evaluate("window.changed - window.started")


if __name__ == "__main__":
    main()
