"""Chapter 00's exercises: what they say beside right and wrong, and its predictions."""

import re
from importlib.metadata import PackageNotFoundError

import pytest

from llmtrain_helpers import count_parameters, training_seconds, units
from llmtrain_helpers.evidence.published import architecture, run
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS, check, predict
from llmtrain_helpers.exercises.start_here import (
    SIZES,
    check_environment,
    tokens_for_each_parameter,
)
from tests.faces.kernel import restart

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
def test_each_wrong_answer_has_its_own_words(id: str) -> None:
    for answer, told in WRONG[id].items():
        restart()
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
