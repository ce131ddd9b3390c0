"""Chapter 10's exercises: what they say beside right and wrong, and its predictions."""

from collections.abc import Callable
from typing import Any

import pytest

from llmtrain_course.exercises import EXERCISES, PREDICTIONS, predict
from llmtrain_course.kit.own_run import OwnRun
from llmtrain_helpers import best_checkpoint_interval, calendar_days, losses
from llmtrain_helpers.plan.pace import STOPS
from llmtrain_helpers.units import DAY


def test_the_guess_is_told_in_its_parts() -> None:
    """Points of the run's length: writes less, lost work more, and both together."""
    best = best_checkpoint_interval(40, 4 * DAY)
    once, twice = (losses(k * best, 40, 4 * DAY, 1800) for k in (1, 2))
    whole = 1 + once.total
    saving = 100 * (once.saving - twice.saving) / whole
    lost = 100 * (twice.lost - once.lost) / whole
    sentence = f"Writes cost {saving:.2f} points less and lost work {lost:.2f} more, so the sum is"
    assert (round(saving, 2), round(lost, 2)) == (0.37, 0.75)
    assert f"{sentence} {lost - saving:.2f}." in str(predict("calendar-guess", 3))


def test_per_cent_may_be_written_as_such() -> None:
    guess = PREDICTIONS["calendar-guess"]
    assert guess.reveal("2%").replace("2%", "2", 1) == guess.reveal(2)
    assert "5.3× too high" in guess.reveal("2%")


RUNS: dict[str, dict[str, Any]] = {
    "the example": {},
    "64 H100s": {"gpus": 64, "chip": "H100", "days": 14},
    "a 1B": {"model": "Llama-3.2-1B", "chip": "H100"},
    "fewer tokens than there's time for": {"tokens": 20_000_000_000},
}


@pytest.mark.parametrize("name", RUNS)
def test_a_promise_follows_the_rule_of_the_page(set_run: Callable[..., OwnRun], name: str) -> None:
    """The slow end of the plan, as in plan-d; of a measured step, with the worst overhead."""
    mine = set_run(**RUNS[name])
    steps, first = calendar_days(mine.plan).computing.likely, mine.plan.first_run.greatest
    assert first <= mine.days * 1.001
    design = {"gpus": mine.gpus, "calendar_days": mine.days, "computing_days": steps}
    design |= {"write_seconds": 40, "restart_minutes": 30, "save_minutes": 180}
    design |= {"spare_nodes": 0 if mine.gpus == 8 else 4}

    def reply(days: float, measured: bool) -> str:
        answer = design | {"promised_days": days, "measured": measured}
        return EXERCISES["calendar-d"].grade(answer)[1]

    assert reply(first, False).startswith("Right: ")
    assert f"and up to {first:.3g}" in reply(first, False).replace(".0 ", " ")
    assert "are too few to promise" in reply(0.9 * first, False)
    assert "end after your last one" in reply(mine.days + 1, False)
    assert reply(STOPS[2] * steps, True).startswith("Right: ")
    assert "are too few to promise" in reply(1.2 * steps, True)
