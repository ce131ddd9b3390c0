"""Chapter 00's panel: what each control changes, and what it refuses."""

import re
from html import unescape

import pytest

from llmtrain_course.panels import HANDLES, PANELS, start_here_panel
from llmtrain_course.start_here.handles import Setting
from llmtrain_helpers import training_seconds, units
from llmtrain_helpers.published import run
from tests.pages import cell
from tests.panel_code import value_of

PANEL = PANELS["start_here"]


@pytest.mark.parametrize("name", PANEL.presets)
def test_the_panel_says_what_the_formula_says(name: str) -> None:
    values = PANEL.presets[name]
    html = unescape(PANEL.render(**values))
    tokens = value_of(html)
    assert f"<b>{units.count(tokens, 2)} tokens</b>" in html
    again = training_seconds(
        round(tokens), values["parameters"], values["num_gpus"], _rate(html), "none"
    )
    assert again / units.DAY == pytest.approx(values["days"], rel=0.01)


def _rate(html: str) -> float:
    match = re.search(r"each GPU computes</td><td[^>]*>([\d.]+) TFLOP/s", html)
    assert match
    return float(match[1]) * 1e12


def test_the_picture_says_how_many_gpus_reach_gpt_3_once_they_do() -> None:
    machine, tokens = HANDLES["machine"], run("GPT-3 175B")["tokens"]
    assert Setting(num_gpus=51).tokens >= tokens > Setting(num_gpus=50).tokens
    assert "GPT-3 was trained on" not in machine.render(**{**machine.default, "num_gpus": 50})
    for num_gpus in (51, 64, 512):
        html = machine.render(**{**machine.default, "num_gpus": num_gpus})
        assert "GPT-3 was trained on 300 billion, and 51 GPUs would be enough for that." in html
    assert "51" not in cell("00_start_here", "machine-seen")


def test_the_tasks_come_out_as_the_page_says() -> None:
    default = dict(PANEL.default)

    def each(**changes: float) -> tuple[float, float]:
        html = PANEL.render(**{**default, **changes})
        match = re.search(r"tokens per parameter</td><td[^>]*>([\d.]+)", html)
        assert match
        size = changes.get("parameters", default["parameters"])
        return float(match[1]), float(match[1]) * size

    assert each(num_gpus=16)[1] == pytest.approx(2 * each()[1], rel=0.01)
    assert each(parameters=16 * 10**9)[1] == pytest.approx(each()[1] / 2, rel=0.01)
    assert each(parameters=16 * 10**9)[0] == pytest.approx(each()[0] / 4, rel=0.01)
    gpt3 = run("GPT-3 175B")["tokens"]
    assert each(num_gpus=51)[1] >= gpt3 > each(num_gpus=50)[1]
    assert each(parameters=4_300_000_000)[0] >= 20 > each(parameters=4_400_000_000)[0]


@pytest.mark.parametrize(
    ("name", "written", "message"),
    [
        ("num_gpus", "0", "GPUs: '0' is outside 1 to 1M."),
        ("days", "soon", "Days: 'soon' isn't a number"),
        ("parameters", "8", "'8' is outside 1M to 10T; for billions write 8B."),
    ],
)
def test_what_cannot_be_is_refused_in_the_panels_words(
    name: str, written: str, message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        PANEL.controls[name].read(written)


def test_every_stop_and_every_chip_can_be_drawn() -> None:
    for name, control in PANEL.controls.items():
        for value in control.stops or control.options:
            assert PANEL.answer({**PANEL.default, name: value}).html, (name, value)


def test_the_notebooks_panel_begins_with_the_default() -> None:
    panel = start_here_panel()
    assert panel.state.preset == "Eight A100s for a month"
    assert "47 billion tokens" in panel.html
