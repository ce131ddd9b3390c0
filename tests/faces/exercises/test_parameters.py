"""Chapter 01's exercises: what they say beside right and wrong, and its predictions."""

import pytest

from llmtrain_course.exercises import PREDICTIONS, check
from llmtrain_helpers import Transformer
from tests.pages import cell


def test_the_pages_first_try_of_a_design_fails_by_its_tables() -> None:
    tried = Transformer.llama(16, 2048, 32, 8, 8192, 128256, 8192)
    assert "more than 20%" in check("parameters-d", tried).text
    assert "num_layers=16" in cell("01_parameters", "exercise-d")


def test_guesses_are_told_how_far_they_were_and_why() -> None:
    guess = PREDICTIONS["parameters-guess"]
    assert guess.truth() == pytest.approx(0.354, abs=0.001)
    reply = guess.reveal("10%")
    assert "You said 10%. It's 0.35%, so you're 28× too high" in reply
    assert "In GPT-2 it's 31%" in reply
    reply = [PREDICTIONS["parameters-llama"].reveal(x) for x in ("right", "too many", "Too few")]
    assert [("and that's right" in text) for text in reply] == [False, False, True]
    assert len({text.split(".")[1] for text in reply}) == 3


@pytest.mark.parametrize(
    ("layers", "wide", "heads", "reply"),
    [
        (1, 440_000, 32, "nobody trains one with 1 layer. Use 6 to 128"),
        (20, 440_000, 32, "an MLP of 440,000 doesn't match h = 2,048"),
        (20, 8192, 512, "its heads are 32,768 numbers wide and h is 2,048"),
    ],
)
def test_what_is_no_model_is_no_design(layers: int, wide: int, heads: int, reply: str) -> None:
    monster = Transformer.llama(layers, 2048, heads, 8, wide, 128256, 8192, head_dim=64)
    verdict = check("parameters-d", monster)
    assert not verdict
    assert reply in verdict.text
