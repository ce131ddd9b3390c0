"""Chapter 00: its drawings, its panel, its exercises, and the first formula."""

from __future__ import annotations

import re
from html import unescape
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from timeit import timeit

import pytest

from llmtrain_helpers import count_parameters, exercises, training_seconds, units
from llmtrain_helpers.drawings import start_here as drawings
from llmtrain_helpers.drawings.common import COLORS
from llmtrain_helpers.evidence.published import architecture, run
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS, check, predict
from llmtrain_helpers.exercises.start_here import (
    SIZES,
    check_environment,
    tokens_for_each_parameter,
)
from llmtrain_helpers.panels import PANELS, start_here_panel

from .panel_code import value_of

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "00_start_here.ipynb"
PANEL = PANELS["start_here"]


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins with nothing answered and nothing guessed."""
    monkeypatch.setattr(exercises, "_TRIES", {})
    monkeypatch.setattr(exercises, "_GUESSES", {})


# --- exercises: each right way, and each plausible wrong one in its own words

DAYS = 6 * 1.4e12 * 13e9 / (512 * 110e12) / 86400
BYTES = 24576 * 2**20

RIGHT = {
    "00-a": [
        DAYS,
        training_seconds(1.4e12, 13e9, 512, 110e12, "none") / units.DAY,
        22.4,
        "22.4",
        22.44,
        round(DAYS, 1),
    ],
    "00-b": ["B", "b", " B "],
    "00-c": [BYTES, 24 * 2**30, float(BYTES), "25,769,803,776", 25.77e9, "25.77B"],
    "00-d": ["14B", "14b", 14e9, 14 * 10**9, "14e9", "14,000,000,000"],
}


@pytest.mark.parametrize("id", RIGHT)
def test_every_right_way_is_right(id: str) -> None:
    for answer in RIGHT[id]:
        assert check(id, answer).ok is True, answer


WRONG = {
    "00-a": {
        DAYS * 86400: "these are seconds",
        DAYS * 24: "these are hours",
        DAYS * 512: "time of a single GPU",
        DAYS * 8 / 6: "this counts 8",
        DAYS / 3: "forward pass alone",
        DAYS / 2: "a multiply-add is 2",
        DAYS * 10: "ten times too much",
        DAYS / 10: "ten times too little",
        30: "too high. Is the rate that of all GPUs together",
    },
    "00-b": {
        "A": "what GPUs deliver is a rate",
        "C": "what one token takes is a number",
        "D": "is tokens a second: 467 thousand",
        "E": "none of the choices",
    },
    "00-c": {
        24e9: "as the card is sold",
        "24B": "as the card is sold",
        24576e6: "takes a MiB for a MB",
        24576: "these are still MiB",
        24576 * 2**30: "these are MiB, not GiB",
        24576 * 1024: "these are MiB, not KiB",
        25.8e9: "rounded; please give",
        26e9: "too high. A MiB is no MB.",
    },
    "00-d": {
        "3B": "3B gets 500 tokens for each parameter: enough, and a larger",
        "8B": "8B gets 71 tokens for each parameter: enough, and a larger",
        32e9: "32B gets 4.4 tokens for each parameter: too few",
        "70b": "70B gets 0.92 tokens for each parameter: too few",
        "15B": "choose one of the sizes: 3B, 8B, 14B, 32B, 70B",
        "big": "is no number",
    },
}


@pytest.mark.parametrize("id", WRONG)
def test_each_wrong_answer_has_its_own_words(id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for answer, told in WRONG[id].items():
        monkeypatch.setattr(exercises, "_TRIES", {})
        verdict = check(id, answer)
        assert verdict.ok is False
        assert told in verdict.text, (answer, verdict.text)


@pytest.mark.parametrize("id", ["00-a", "00-c"])
def test_hints_come_in_steps(id: str) -> None:
    said = [check(id, 7).text for _ in range(4)]
    assert len(set(said)) == 3
    assert said[2] == said[3]
    assert EXERCISES[id].unit(EXERCISES[id].key()) not in " ".join(said)


def test_the_largest_size_is_the_root_of_a_120th_of_the_work() -> None:
    work = 64 * 350e12 * 14 * 86400
    best = (work / 120) ** 0.5
    assert EXERCISES["00-d"].key() == max(x for x in SIZES if x <= best)
    for size in SIZES:
        assert tokens_for_each_parameter(size) == pytest.approx(work / 6 / size**2)


# --- the prediction


def test_a_guess_is_judged_by_the_formula_and_shows_nothing_before() -> None:
    size = count_parameters(architecture("Llama-3.1-8B")).total
    years = 6 * 15e12 * size / (8 * 110e12) / units.YEAR
    assert PREDICTIONS["00-guess"].truth() == pytest.approx(years)
    assert not re.search(r"\d{2}", predict("00-guess", None).text)
    told = predict("00-guess", 2).text
    assert told.startswith("you said 2; it is 26 years: 13 times too little")
    months = years * units.YEAR / (30 * units.DAY)
    assert f"{units.digits(months, 2)} times" in told
    assert f"{units.digits(8 * months, 2)} A100" in told
    hours = units.count(run("Llama 3.1 8B")["gpu_hours"])
    assert f"Meta reports {hours}, on H100" in told
    assert "1.8 million GPU-hours, or 0.57 million on H100" in told


def test_the_first_guess_counts() -> None:
    predict("00-guess", 2)
    assert predict("00-guess", 26).text.startswith("Your first guess counts: you said 2")


# --- drawings


def test_an_estimate_is_told_in_two_digits() -> None:
    numbers = (47.34e9, 1.249e12, 999e6, 999.9e6, 860, 12_400)
    told = ["47 billion", "1.2 trillion", "1.0 billion", "1.0 billion", "860", "12 thousand"]
    assert [units.count(number, 2) for number in numbers] == told


def test_the_stairs_have_a_computed_example_for_each_prefix() -> None:
    words = drawings.ladder().words
    for letter, example in zip(
        "kMGTPEZ",
        ["2,048 tokens", "124 million", "8.03 billion", "312 T", "1.31 P", "16.2 E"],
        strict=False,
    ):
        assert re.search(rf"{letter} \(\w+, 10[³⁶⁹¹²⁵⁸]+\): {example}", words)
    assert "314 ZFLOP" in words
    letters = re.findall(r'fill="white"[^>]*>(\w)<', drawings.ladder().body)
    assert "".join(letters) == "kMGTPEZ"


def test_each_prefix_is_what_units_prints() -> None:
    for i, (letter, *_) in enumerate(drawings.STEPS[1:], 2):
        assert units.flops(1000.0**i) == f"1.00 {letter}FLOP"


def test_the_question_shows_its_sums() -> None:
    tokens = 8 * 110e12 * 30 * 86400 / (6 * 8e9)
    drawing = drawings.question(8e9, tokens, 8, 110e12, price=2)
    for value in ("2.28 ZFLOP", "30.0 days", "8.00 billion", "48 billion", "110 TFLOP/s"):
        assert f">{value}<" in drawing.body
        assert value in drawing.words
    assert "$11.5 thousand" in drawing.words
    for told in ("forward: 2 operations", "backward: 4 operations", "2 more"):
        assert told in drawing.body


def test_fills_are_colours_that_have_a_meaning() -> None:
    bodies = [drawings.ladder().body, PANEL.render(), drawings.question(1, 1, 1, 1e9, 1).body]
    fills = set(re.findall(r'(?:fill|stroke)="(#\w+)"', "".join(bodies)))
    assert fills <= set(COLORS.values())


@pytest.mark.parametrize(("n", "shown"), [(1, 1), (64, 64), (65, 33), (16384, 64)])
def test_a_square_stands_for_one_gpu_or_for_as_many_as_it_says(n: int, shown: int) -> None:
    body = drawings.budget(n, 30, 1e14, 1e9, []).body
    squares = re.findall(rf'width="15" height="15" fill="{COLORS["weights"]}"', body)
    assert len(squares) == shown
    each = re.search(r"GPUs?, (\d+) a square", body)
    assert shown == -(-n // int(each[1] if each else 1))


@pytest.mark.parametrize("tokens", [1.0, 1e6, 1e9, 1e14, 1e20])
def test_the_bar_ends_on_the_scale(tokens: float) -> None:
    body = drawings.budget(1, 1, 1e14, tokens, [("x", tokens)], before=1e10).body
    for x in re.findall(r' (?:x|x1|x2)="(-?[\d.]+)"', body):
        assert 0 <= float(x) <= 860
    assert not re.search(r'width="-', body)


# --- the panel


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
    found = re.search(r"each GPU does</td><td[^>]*>([\d.]+) TFLOP/s", html)
    assert found
    return float(found[1]) * 1e12


def test_a_change_leaves_an_outline_of_the_bar_before() -> None:
    before = dict(PANEL.default)
    assert 'stroke-dasharray="5 4"' not in PANEL.render(before, **before)
    more = PANEL.render(before, **{**before, "num_gpus": 16})
    assert more.count('stroke-dasharray="5 4"') == 1


def test_the_tasks_come_out_as_the_page_says() -> None:
    default = dict(PANEL.default)

    def each(**changes: float) -> tuple[float, float]:
        html = PANEL.render(**{**default, **changes})
        found = re.search(r"tokens for each parameter</td><td[^>]*>([\d.]+)", html)
        assert found
        size = changes.get("parameters", default["parameters"])
        return float(found[1]), float(found[1]) * size

    assert each(num_gpus=16)[1] == pytest.approx(2 * each()[1], rel=0.01)
    assert each(parameters=16 * 10**9)[1] == pytest.approx(each()[1] / 2, rel=0.01)
    assert each(parameters=16 * 10**9)[0] == pytest.approx(each()[0] / 4, rel=0.01)
    gpt3 = run("GPT-3 175B")["tokens"]
    assert each(num_gpus=51)[1] >= gpt3 > each(num_gpus=50)[1]
    assert each(parameters=4_300_000_000)[0] >= 20 > each(parameters=4_400_000_000)[0]


@pytest.mark.parametrize(
    ("name", "written", "told"),
    [
        ("num_gpus", "0", "GPUs: '0' lies outside 1 to 1M."),
        ("days", "soon", "Days: 'soon' is no number"),
        ("parameters", "8", "'8' lies outside 1M to 10T; for billions write 8B."),
    ],
)
def test_what_cannot_be_is_refused_in_the_panels_words(name: str, written: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        PANEL.controls[name].read(written)


def test_every_stop_and_every_chip_can_be_drawn() -> None:
    for name, control in PANEL.controls.items():
        for value in control.stops or control.options:
            assert PANEL.answer({**PANEL.default, name: value}).html, (name, value)


def test_the_notebooks_panel_begins_with_the_default_and_redraws_fast() -> None:
    panel = start_here_panel()
    assert panel.preset.value == "Eight A100 for a month"
    assert "47 billion tokens" in panel.output.value
    seconds = timeit(lambda: PANEL.render(PANEL.default), number=20) / 20
    assert seconds < 0.02  # 1 ms on a quiet machine


# --- the machine


def test_the_environment_is_told_without_versions() -> None:
    lines = check_environment()
    assert len(lines) == 7
    assert not re.search(r"\d\.\d+\.\d", "".join(lines))


def test_in_a_browser_jupyterlab_is_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    module = "llmtrain_helpers.exercises.start_here"
    monkeypatch.setattr(f"{module}.version", missing)
    assert sum("is missing" in line for line in check_environment()) == 6
    monkeypatch.setattr("sys.platform", "emscripten")
    told = [line for line in check_environment() if "is missing" not in line]
    assert [line.split()[-1] for line in told[1:]] == ["jupyterlab"]
