"""Chapter 09's exercises: what they say beside right and wrong, and its predictions."""

from llmtrain_helpers import best_checkpoint_interval, losses
from llmtrain_helpers.exercises import PREDICTIONS, predict
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


def test_per_cent_may_be_written_as_such() -> None:
    guess = PREDICTIONS["09-guess"]
    assert guess.reveal("2 %").replace("2 %", "2", 1) == guess.reveal(2)
    assert "5.3 times too much" in guess.reveal("2%")
