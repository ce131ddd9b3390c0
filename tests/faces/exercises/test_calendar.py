"""Chapter 09's exercises: what they say beside right and wrong, and its predictions."""

from typing import Any

import pytest

from llmtrain_helpers import best_checkpoint_interval, losses
from llmtrain_helpers.exercises import PREDICTIONS, check, predict
from llmtrain_helpers.units import DAY


def test_the_guess_is_told_in_its_parts() -> None:
    """Points of the run's length: writes less, lost work more, and both together."""
    best = best_checkpoint_interval(40, 4 * DAY)
    once, twice = (losses(k * best, 40, 4 * DAY, 1800) for k in (1, 2))
    whole = 1 + once.total
    saving = 100 * (once.saving - twice.saving) / whole
    lost = 100 * (twice.lost - once.lost) / whole
    told = f"Writes cost {saving:.2f} points less, lost work {lost:.2f} more: together"
    assert (round(saving, 2), round(lost, 2)) == (0.37, 0.75)
    assert f"{told} {lost - saving:.2f}." in str(predict("09-guess", 3))


OWN = {"gpus": 8, "computing_days": 24, "calendar_days": 30, "write_seconds": 60}
OWN |= {"restart_minutes": 600, "save_minutes": 240, "spare_nodes": 1}


OFTEN = {"restart_minutes": 30, "save_minutes": 60}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "right: at the worst rate of failures 25.7 days"),
        (OFTEN, "right: at the worst rate of failures 25.9 days"),
        ({**OFTEN, "save_minutes": 40}, "2.04 % longer than every 7.06 hours"),
        ({"spare_nodes": 2}, "right"),
        ({"spare_nodes": 2.5}, "only whole nodes"),
        ({"spare_nodes": 1000}, "too many: keep at most 2"),
        ({**OFTEN, "gpus": 1000, "spare_nodes": 10}, "at least 23 of spare_nodes"),
        ({**OFTEN, "gpus": 1000, "spare_nodes": 23}, "right"),
        ({**OFTEN, "gpus": 1000, "spare_nodes": 47}, "keep at most 46"),
        ({"write_seconds": 1e9}, "leaves hardly any time"),
        ({"save_minutes": 3000}, "more than a day to restart"),
        ({"spare_nodes": 0}, "it takes at least 1 of spare_nodes"),
        ({"restart_minutes": 1}, "within three minutes"),
        ({"save_minutes": 1}, "saving every 1 minutes makes the run 99.1 % longer"),
        ({"computing_days": 29}, "even with few outages"),
        ({"gpus": "16k"}, "a stop comes every 45.0 minutes"),
        ({"gpus": 256}, "saving every 240 minutes makes the run"),
        ({"save_minutes": None}, "no answer yet"),
        ({"gpus": "many"}, "is no number"),
    ],
)
def test_a_run_of_ones_own(changes: dict[str, object], said: str) -> None:
    assert said in check("09-d", {**OWN, **changes}).text


def test_per_cent_may_be_written_as_such() -> None:
    guess = PREDICTIONS["09-guess"]
    assert guess.reveal("2 %").replace("2 %", "2", 1) == guess.reveal(2)
    assert "5.3 times too much" in guess.reveal("2%")


def test_an_answer_that_leaves_something_out_is_told() -> None:
    assert "leaves out spare_nodes" in check("09-d", {**dict(list(OWN.items())[:-1])}).text


@pytest.mark.parametrize(
    ("promised", "said"),
    [
        (20, "cannot be promised"),
        (31, "31 days are after your last one, which is 30."),
        ("soon", "promised_days='soon' is no number"),
    ],
)
def test_a_date_is_kept_and_says_something(promised: Any, said: str) -> None:
    told = check("09-d", OWN | {"promised_days": promised}).text
    assert said in told
    assert check("09-d", OWN | {"promised_days": 30}).ok
    assert "to the rent: would you rather wait" in check("09-d", OWN).text
    long = OWN | {"calendar_days": 100, "promised_days": 60}
    assert "60 days promise nothing" in check("09-d", long).text


def test_the_choice_is_what_the_formulas_say() -> None:
    assert check("09-b", "faster writes").ok
    for other in ("faster restarts", "better nodes", "twice the spares"):
        assert check("09-b", other).ok is False
