"""Chapter 00's exercises: what they say beside right and wrong, and its predictions."""

import re
from importlib.metadata import PackageNotFoundError

import pytest

from llmtrain_course.exercises import EXERCISES, PREDICTIONS, predict
from llmtrain_course.start_here.exercises import SIZES, check_environment, tokens_for_each_parameter
from llmtrain_helpers import count_parameters, units
from llmtrain_helpers.published import architecture


def test_the_largest_size_is_the_root_of_a_120th_of_the_work() -> None:
    work = 64 * 350e12 * 14 * 86400
    best = (work / 120) ** 0.5
    assert EXERCISES["start_here-d"].key() == max(x for x in SIZES if x <= best)
    for size in SIZES:
        assert tokens_for_each_parameter(size) == pytest.approx(work / 6 / size**2)


def test_a_guess_is_judged_by_the_formula_and_shows_nothing_before() -> None:
    size = count_parameters(architecture("Llama-3.1-8B")).total
    years = 6 * 15e12 * size / (8 * 109e12) / units.YEAR
    assert PREDICTIONS["start_here-guess"].truth() == pytest.approx(years)
    assert not re.search(r"\d{2}", predict("start_here-guess", None).text)
    reply = predict("start_here-guess", 2).text
    assert reply.startswith("You said 2. It's 26 years, so you're 13× too low")
    months = years * units.YEAR / (30 * units.DAY)
    assert f"{units.digits(months, 2)}× as many" in reply


def test_the_environment_is_told_without_versions() -> None:
    lines = check_environment()
    assert len(lines) == 7
    assert not re.search(r"\d\.\d+\.\d", "".join(lines))


def test_in_a_browser_jupyterlab_is_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    module = "llmtrain_course.start_here.exercises"
    monkeypatch.setattr(f"{module}.version", missing)
    assert sum("is missing" in line for line in check_environment()) == 6
    monkeypatch.setattr("sys.platform", "emscripten")
    assert not any("pip" in line for line in check_environment())  # nobody can there
    lines = [line for line in check_environment() if "is missing" not in line]
    assert [line.split()[-1] for line in lines[1:]] == ["jupyterlab"]
