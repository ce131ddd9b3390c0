"""Chapter 01's exercises: what they say beside right and wrong, and its predictions."""

from llmtrain_helpers import Transformer
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_helpers.exercises.common import judge
from tests.pages import cell


def test_hints_come_in_steps() -> None:
    hints = [judge("01-a", 5, EXERCISES["01-a"], tries).text for tries in range(4)]
    assert len(set(hints)) == 3
    assert "12lh²" not in hints[0]
    assert "in solutions/01_parameters.ipynb" in hints[2] == hints[3]


def test_the_pages_first_try_of_a_design_fails_by_its_tables() -> None:
    tried = Transformer.llama(16, 2048, 32, 8, 8192, 128256, 8192)
    assert "more than a fifth" in check("01-d", tried).text
    assert "num_layers=16" in cell("01_parameters", "exercise-d")


def test_guesses_are_told_how_far_they_were_and_why() -> None:
    guess = PREDICTIONS["01-guess"]
    assert guess.truth() == 50257 * 12288
    told = guess.reveal("20B")
    assert "you said 20B; it is 618 million: 32 times too much" in told
    assert "0.354 % of the model" in told
    assert "31.0 % of the model" in told
    told = [PREDICTIONS["01-llama"].reveal(x) for x in ("right", "too many", "Too few")]
    assert [("and so it is" in text) for text in told] == [False, False, True]
    assert len({text.split(".")[1] for text in told}) == 3
