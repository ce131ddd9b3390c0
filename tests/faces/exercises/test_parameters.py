"""Chapter 01's exercises: what they say beside right and wrong, and its predictions."""

from dataclasses import replace

import pytest

from llmtrain_helpers import Transformer, count_parameters, gpt_parameters
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_helpers.exercises.common import judge
from tests.pages import cell

PLAIN = gpt_parameters(8, 512, 32000, 512)


LAPTOP = 8 * (12 * 512**2 + 4 * 512) + (2 * 32000 + 512) * 512


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (LAPTOP, "right, 58,212,352 parameters"),
        (PLAIN - 9 * 8 * 512 + 32000 * 512, "right"),
        (LAPTOP + 2 * 512, "right"),
        ("58,212,352", "right"),
        ("58.21M", "right, and rounded"),
        (58.2e6, "right, and rounded"),
        (PLAIN, "output head is missing"),
        (12 * 8 * 512**2, "12lh² alone"),
        (LAPTOP - 512 * 512, "table of positions is missing"),
        (LAPTOP - 32000 * 512, "output head is missing"),
        (LAPTOP + 9 * 8 * 512, "the biases are still in"),
        (LAPTOP + 8 * 8 * 512, "nearly: is it rounded, or is a small part"),
        (LAPTOP - 4 * 8 * 512, "are both norms there, and no bias?"),
        (12 * 512**2 + 4 * 512 + 64512 * 512, "one layer only"),
        (LAPTOP - 4 * 8 * 512**2, "two matrices of h × 4h"),
        (LAPTOP - 6 * 8 * 512**2, "four times as wide"),
        (58.212352, "not millions"),
        (10 * LAPTOP, "ten times too much"),
        (5, "too low. Count the layers and the tables apart"),
        ("many", "is no number"),
        (-1, "is not positive"),
    ],
)
def test_the_laptops_gpt_is_right_each_right_way_and_slips_are_named(answer, said: str) -> None:
    verdict = judge("01-a", answer, EXERCISES["01-a"], 0)
    assert said in verdict.text
    assert bool(verdict) is said.startswith("right")


def test_hints_come_in_steps() -> None:
    hints = [judge("01-a", 5, EXERCISES["01-a"], tries).text for tries in range(4)]
    assert len(set(hints)) == 3
    assert "12lh²" not in hints[0]
    assert "12lh² + 4lh" in hints[2] == hints[3]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda h, a, k, d: h * d * (a + 2 * k), "output is missing"),
        (lambda h, a, k, d: 4 * h * a * d, "some are shared"),
        (lambda h, a, k, d: h * d * (2 * a + k), "are two matrices"),
        (lambda h, a, k, d: 2 * h * (a + k), "head size is missing"),
        (lambda h, a, k, d: 7, "it returned 7, too little. How many columns"),
    ],
)
def test_slips_of_attention_are_named(wrong, said: str) -> None:
    def answer(hidden_size, num_heads, num_kv_heads, head_dim):
        return wrong(hidden_size, num_heads, num_kv_heads, head_dim)

    assert said in judge("01-b", answer, EXERCISES["01-b"], 0).text


@pytest.mark.parametrize("name", ["GPT-3 175B", "Mixtral-8x7B", "Llama-2-70b"])
def test_twice_the_model_is_not_twice_the_layers(name: str) -> None:
    counted = count_parameters(published.architecture(name))
    assert "twice the whole model" in check("01-e", (name, 2 * counted.total)).text
    inside = counted.attention + counted.mlp + counted.norm
    assert check("01-e", (name, counted.total + inside)).ok


def test_attention_is_tried_on_every_case() -> None:
    def right(hidden_size, num_heads, num_kv_heads, head_dim):
        return 2 * hidden_size * head_dim * (num_heads + num_kv_heads)

    def as_in_the_notebook(hidden_size, num_heads, num_kv_heads, head_dim):
        return 2 * hidden_size**2 + 2 * hidden_size * num_kv_heads * head_dim

    def never_grouped(hidden_size, num_heads, num_kv_heads, head_dim):
        return 4 * hidden_size**2

    def broken(hidden_size, num_heads, num_kv_heads, head_dim):
        return hidden_size / 0

    assert check("01-b", right).text == "right, in all 4 cases."
    assert "queries and output are taken as h × h" in (check("01-b", as_in_the_notebook).text)
    assert "this is 4h², a GPT's" in check("01-b", never_grouped).text
    assert "ZeroDivisionError" in check("01-b", broken).text
    assert "is no function" in check("01-b", 42).text
    assert check("01-b", lambda **_: None).ok is None


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (4e9 + 36e9 / 8, "right, 8.50 billion"),
        ("8.5B", "right"),
        (8_500_000_000, "right"),
        (5e9, "2/16 of everything"),
        (4.5e9, "experts that it meets"),
        (4e9, "outside the experts: add"),
        (6.25e9, "with one expert a layer"),
        (40e9, "this is the total"),
        (8.5, "give the number itself"),
        (85e9, "ten times too much"),
        (9e9, "too high. What does a token meet that is no expert?"),
    ],
)
def test_what_a_token_meets(answer, said: str) -> None:
    verdict = judge("01-c", answer, EXERCISES["01-c"], 0)
    assert said in verdict.text
    assert bool(verdict) is said.startswith("right")


def design(l: int, h: int, f: int, V: int = 128256, tied: bool = True) -> Transformer:
    return Transformer.llama(l, h, h // 64, 8, f, V, 8192, tied_embeddings=tied)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (design(20, 2048, 8192), "right: 1.48 billion parameters, 17.8 %"),
        (design(21, 2048, 8192), "right"),
        (design(98, 1024, 3072, tied=False), "right"),
        (design(16, 2048, 8192, tied=False), "more than a fifth"),
        (design(16, 2048, 8192), "17.6 % less than the budget"),
        (design(40, 2048, 8192), "more than the budget"),
        (design(20, 2048, 8192, 32000), "vocabulary should be 128,256"),
        (1.5e9, "this is no model"),
    ],
)
def test_any_design_that_keeps_to_the_budget_is_right(answer, said: str) -> None:
    verdict = judge("01-d", answer, EXERCISES["01-d"], 0)
    assert said in verdict.text
    assert bool(verdict) is said.startswith("right")


def test_the_pages_first_try_of_a_design_fails_by_its_tables() -> None:
    tried = Transformer.llama(16, 2048, 32, 8, 8192, 128256, 8192)
    assert "more than a fifth" in check("01-d", tried).text
    assert "num_layers=16" in cell("01_parameters", "exercise-d")


EIGHT = count_parameters(published.architecture("Llama-3.1-8B"))


LAYERS = EIGHT.attention + EIGHT.mlp + EIGHT.norm


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (EIGHT.total + LAYERS, "right: 15.0 billion, 1.87 times as many"),
        ("15.01B", "right"),
        (15e9, "right"),
        (2 * EIGHT.total, "twice the whole model"),
        (EIGHT.total, "the model as it is"),
        (2 * LAYERS, "the layers alone"),
        (LAYERS, "what is added"),
        (12e9, "too low. What is in the layers doubles"),
        ("deep", "is no number"),
    ],
)
def test_your_own_model_made_deeper(answer, said: str) -> None:
    verdict = judge("01-e", ("Llama-3.1-8B", answer), EXERCISES["01-e"], 0)
    assert said in verdict.text
    assert bool(verdict) is said.startswith("right")


def test_your_own_model_may_be_any_and_needs_a_number() -> None:
    gpt = Transformer.gpt(2, 64, 4, 100, 32)
    deeper = count_parameters(replace(gpt, num_layers=4)).total
    assert check("01-e", (gpt, deeper)).ok is True
    assert check("01-e", ("gpt2", None)).ok is None
    assert "did you mean 'Llama-3.1-8B'" in check("01-e", ("Lama-3.1-8B", 1)).text
    assert "give two things" in check("01-e", 15e9).text


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
