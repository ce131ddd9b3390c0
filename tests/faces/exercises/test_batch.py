"""Chapter 04's exercises: what they say beside right and wrong, and its predictions."""

import pytest

from llmtrain_course.batch.formulas import batches_of_size, miss
from llmtrain_course.exercises import EXERCISES, PREDICTIONS
from llmtrain_course.kit.exercise import grade
from llmtrain_helpers import published, units


def test_04_b_asks_at_last_for_a_quarter_of_the_miss() -> None:
    [question] = EXERCISES["batch-b"].followups
    assert miss(128) == 0.25
    assert grade("batch-b", 128, question.exercise, 0).ok
    assert "halves the miss" in grade("batch-b", 32, question.exercise, 0).text


def test_the_batches_that_04_d_names_are_those_of_the_table() -> None:
    rows = {row["name"]: row for row in published.rows("batch_sizes")}
    batches = {"GPT-3 125M": 0.5, "Pythia 1.4B": 2.1, "Llama 2 7B": 4}
    batches |= {"DeepSeek LLM 7B": 9.4, "Llama 2 70B": 4, "DeepSeek LLM 67B": 19}
    batches |= {"Llama 3.1 405B": 16}
    for name, millions in batches.items():
        size = float(rows[name]["batch_tokens_end"])
        assert float(units.digits(size / 1e6, 2)) == millions
    assert batches_of_size(8_030_261_248)[0] == (2e6, "GPT-3 6.7B")


def test_a_batch_is_held_against_models_of_like_size() -> None:
    neighbors = batches_of_size(69e9)
    assert neighbors[0] == (3e6, "Chinchilla 70B")
    assert neighbors[-1] == (18_874_368, "DeepSeek LLM 67B")
    assert [name for _, name in batches_of_size(355e6)] == ["GPT-3 350M", "Pythia 410M"]
    assert len(batches_of_size(1.01e12)) == 4  # half to twice as large
    assert len(batches_of_size(1e15)) > 40  # any


@pytest.mark.parametrize("guess", [1, "2", 4, "8"])
def test_of_blooms_micro_batches_four_was_the_fastest(guess: int | str) -> None:
    reply = PREDICTIONS["batch-bloom"].reveal(guess)
    assert ("and that's right" in reply) == (guess == 4)
    assert " s with" not in reply  # the picture below shows it
