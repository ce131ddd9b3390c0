"""Chapter 13's exercises: the own run, whatever it is, and what is said to a guess."""

import pytest

from llmtrain_course.exercises import check, own_run, predict
from llmtrain_course.finetune.exercises import WAYS, adaptation_plan, dropout_ratio

pytestmark = pytest.mark.usefixtures("set_run")


@pytest.mark.parametrize(
    ("run", "way", "gpus", "texts"),
    [
        ({"model": "Llama-3.1-70B", "chip": "H100 SXM", "gpus": 64, "days": 14}, "lora", 8, 90_000),
        ({"model": "Llama-3.2-1B", "chip": "RTX 4090", "gpus": 1, "days": 3}, "qlora", 1, 80_000),
    ],
)
def test_another_run_of_ones_own_is_judged_by_its_own_machine(
    run: dict[str, object], way: str, gpus: int, texts: int
) -> None:
    answer = {"gpus": gpus, "way": way, "length": 2048, "texts": texts}
    before = check("finetune-d", answer).text
    own_run(**run)  # type: ignore[arg-type]
    verdict = check("finetune-d", answer)
    assert verdict.ok, verdict.text
    assert verdict.text != before


@pytest.mark.parametrize("gpus", [9, 16, 64])
def test_no_more_gpus_than_a_machine_has(gpus: int) -> None:
    own_run(gpus=64)
    verdict = check("finetune-d", {"gpus": gpus, "way": "lora", "length": 2048, "texts": 1000})
    assert not verdict.ok
    assert verdict.text.startswith(f"{gpus} GPUs are more than the 8 of one machine")
    assert "use at most 8 of yours" in verdict.text


def test_rows_longer_than_the_models_positions_are_refused_in_its_name() -> None:
    own_run(model="GPT-3 175B")
    reply = check("finetune-d", {"gpus": 8, "way": "lora", "length": 4096, "texts": 10**6}).text
    assert reply.startswith("GPT-3 175B only has positions for 2,048 tokens, so use shorter rows.")


@pytest.mark.parametrize("way", WAYS)
def test_the_plan_is_that_of_the_page(way: str) -> None:
    plan = adaptation_plan(way, 8, 4096, 1000)
    assert plan.run.tokens == 1000 * 800 * 3
    assert plan.run.tuning == WAYS[way]


def test_what_a_guess_is_told() -> None:
    assert dropout_ratio() == pytest.approx(1.27, abs=0.005)
    assert "but it's 'more'" in predict("finetune-kept", "half").text
    assert "1.14× as fast, so you're 32% too high" in predict("finetune-speed", 1.5).text
