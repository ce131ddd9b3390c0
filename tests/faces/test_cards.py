"""One card and one reserve, wherever a page judges whether a step fits."""

from typing import Any

import pytest

from llmtrain_course.activations.handles import Setting as Step
from llmtrain_course.exercises import check
from llmtrain_course.finetune.handles import Setting as Tuned
from llmtrain_course.kit.cards import RESERVE, capacity_of, memory_of
from llmtrain_course.panels import HANDLES, PANELS
from llmtrain_helpers import plan_run, published, units
from tests.faces.exercises.answers.measure import own
from tests.panel_code import text_of

CHIPS = ("A100 80GB SXM", "H100 SXM", "H200 SXM", "RTX 4090", "L4")


@pytest.mark.parametrize("chip", CHIPS)
def test_every_page_has_the_card_and_the_reserve_of_a_plan(chip: str) -> None:
    model = published.architecture("Llama-3.2-1B", 8192)
    plan = plan_run(model, chip, 1, 1e9, 8, recompute="full")
    assert memory_of(chip) == plan.card
    assert capacity_of(chip) == Step(chip=chip).capacity == plan.card - plan.reserve
    assert plan.reserve == RESERVE
    tuned = Tuned(chip=chip).plan
    assert (tuned.card, tuned.reserve) == (plan.card, plan.reserve)


@pytest.mark.parametrize("chip", CHIPS)
def test_each_panel_writes_the_bytes_of_that_card(chip: str) -> None:
    card, capacity = memory_of(chip), capacity_of(chip)
    words = {"precision": f"of {units.gigabytes(card)}:"}
    words |= {"activations": f"may fill {units.gigabytes(capacity)} of the {units.gigabytes(card)}"}
    words |= {"finetune": f"{units.gigabytes(card)}, of which {units.gigabytes(RESERVE)} stay"}
    for name, text in words.items():
        panel = PANELS[name]
        assert text in panel.render(**{**panel.default, "chip": chip}), name


@pytest.mark.parametrize(("micro", "verdict"), [(4, "fits"), (5, "tight"), (6, "doesn't fit")])
def test_panel_06_has_the_verdict_of_a_plan(micro: int, verdict: str) -> None:
    model = published.architecture("Llama-3.2-1B", 8192)
    recipe: Any = {"recompute": "full", "recipe": "bf16_fp32_grads", "micro_batch_size": micro}
    plan = plan_run(model, "A100-80", 1, 1e9, micro, **recipe)
    assert (plan.fits, plan.tight) == (verdict == "fits", verdict == "tight")
    html = PANELS["activations"].render(**{**PANELS["activations"].default, **recipe})
    assert f"<b>{units.gigabytes(plan.memory.total)}</b> at the peak" in html
    assert f"<b>{verdict}</b>. A step may fill" in html


def test_what_reaches_into_the_reserve_is_tight_on_every_page() -> None:
    spike = text_of(HANDLES["loss_spike"].render())
    assert f"of the card's {units.gigabytes(memory_of('RTX 4090'))} free" in spike
    tuned = Tuned(sequence_length=4096)
    assert tuned.plan.tight
    values = {**PANELS["finetune"].default, "sequence_length": 4096}
    assert "just fits" in PANELS["finetune"].render(**values)
    step = {"model": "gpt2", "sequence_length": 1024, "chip": "RTX 3090", "recipe": "amp"}
    step |= {"micro_batch_size": 25, "accumulation_steps": 1}
    html = PANELS["activations"].render(**{**PANELS["activations"].default, **step})
    assert "it is <b>tight</b>" in html


def test_exercises_have_that_card_too() -> None:
    card = units.gigabytes(memory_of("H100 SXM"))
    assert f"of {card}" in check("measure-d", own({})).text
    room = units.gigabytes(capacity_of("RTX 4090"))
    assert f"and a step can fill {room}" in check("finetune-b", "rank 8").text
