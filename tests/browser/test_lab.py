"""The course in a real JupyterLab, driven by keyboard in a headless Chromium."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import lab

ARTIFACTS = Path(__file__).parents[2] / "artifacts"

REQUIRED = bool(os.environ.get("REQUIRE_BROWSER"))

pytestmark = pytest.mark.skipif(
    lab.CHROMIUM is None and not REQUIRED,
    reason="no Chromium on this machine: the browser test is left out",
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    assert lab.CHROMIUM, "REQUIRE_BROWSER is set, and there is no Chromium"
    folder = tmp_path_factory.mktemp("lab")
    with lab.jupyterlab(folder) as served:
        for path in folder.glob("notebooks/*.ipynb"):
            lab.strip(path)
        yield served


@pytest.fixture
def page(address: str) -> Iterator[lab.Page]:
    with lab.chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        yield page
        assert not page.errors


PANELS = [
    # notebook, the last cell's text, a control's label, the sentence before and after
    ("01_parameters", "sequence_length + 10 %", "Layers", "175 billion", "176 billion"),
    (
        "02_flops",
        "batch_size + 10 %",
        "Batch (sequences)",
        "154 TFLOP/s",
        "156 TFLOP/s",
    ),
    (
        "03_duration",
        "48.0 % of the peak",
        "Tokens (billions)",
        "33.8 days",
        "45.1 days",
    ),
    ("04_batch", "overhead 0.2 s", "Micro-batch", "16.8 million", "33.6 million"),
    (
        "05_precision",
        "grads, stage 3",
        "Replicas (data parallel)",
        "60.2 GB",
        "58.9 GB",
    ),
    (
        "06_activations",
        "full recomputation: 6.48 GB",
        "Micro-batch",
        "42.1 GB",
        "66.8 GB",
    ),
    ("07_plan", "on A100: 67 to 91 days", "Pipeline stages", "24.6 days", "26.2 days"),
]


READ = {
    # notebook: a bar's number, another preset, what is read there
    "01_parameters": ("This model: 175 billion", "gpt2", "gives 1,536 less"),
    "02_flops": (
        "Peak: 312 TFLOP/s",
        "GPT-3 on 64 A100, selective",
        "MFU 51.4 %, HFU 51.8 %",
    ),
    "03_duration": ("This run: 33.8 days", "Mixtral on 256 H100", "10.1 days"),
    "04_batch": ("This batch: 16.8 million", "BLOOM-176B", "from 8 replicas"),
    "05_precision": ("Memory: 80.0 GB", "GPT-2 XL on a small card", "24.9 GB"),
    "06_activations": ("At the peak: 42.1 GB", "GPT-2 on a small card", "13.1 GB"),
    "07_plan": ("Memory: 80.0 GB", "70B on 8 H100", "more GPUs"),
}


@pytest.mark.parametrize(("name", "last", "label", "before", "after"), PANELS)
def test_all_cells_run_and_the_panel_follows_the_keyboard(
    page: lab.Page,
    address: str,
    name: str,
    last: str,
    label: str,
    before: str,
    after: str,
) -> None:
    lab.open_notebook(page, address, f"{name}.ipynb")
    lab.run_all(page, last)
    panel = page.locator(".llmtrain-panel")
    output = panel.locator(".llmtrain-answer")
    wait_for_answer(page, before)
    panel.scroll_into_view_if_needed()
    seen = parts_of(output)
    panel.get_by_label(label, exact=True).focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    wait_for_answer(page, after)
    changed = parts_of(output)
    assert all(new != old for new, old in zip(changed, seen, strict=True))
    choose_a_preset(page, panel, *READ[name])
    assert (
        page.locator("[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    )
    ARTIFACTS.mkdir(exist_ok=True)
    panel.screenshot(path=ARTIFACTS / f"{name}_panel.png")


def choose_a_preset(page: lab.Page, panel: Any, bar: str, name: str, told: str) -> None:
    """Back to the default, whose bar has its number, and on to another preset."""
    panel.get_by_role("button", name="Reset").click()
    wait_for_answer(page, bar)
    panel.get_by_label("Start from", exact=True).select_option(label=name)
    wait_for_answer(page, told)


def wait_for_answer(page: lab.Page, text: str) -> None:
    page.wait_for_function(
        """text => {
            const answer = document.querySelector('.llmtrain-answer');
            return answer && answer.innerText.includes(text);
        }""",
        arg=text,
    )


def parts_of(output: object) -> list[str]:
    """Sentence, picture, table and call, as the page holds them."""
    kinds = ["p", "div", "table", "pre"]
    return [output.locator(kind).first.inner_html() for kind in kinds]
