"""Chapter 06's exercises: what they say beside right and wrong, and its predictions."""

import pytest

from llmtrain_course.activations.exercises import own_plan
from llmtrain_course.exercises import PREDICTIONS
from llmtrain_helpers import plan_run, published
from llmtrain_helpers.activations import count_activations
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.precision import model_state_bytes
from llmtrain_helpers.published import architecture
from tests.faces.exercises.answers.activations import MINE
from tests.notebooks.chapters.test_activations import LLAMA, small


def test_the_changes_of_06_c_fit_where_four_sequences_do_not() -> None:
    assert small(2, 2).peak.total < 80e9 < small(4).peak.total
    assert small(4, 1, "full").peak.total < 80e9


@pytest.mark.parametrize("recompute", RECOMPUTE)
@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_06_d_counts_as_the_plan_of_07_does(recompute: str, zero: int) -> None:
    design = MINE | {"recompute": recompute, "zero": zero}
    options = {"recompute": recompute, "zero_stage": zero, "micro_batch_size": 2}
    chip = published.accelerator(MINE["chip"])
    plan = plan_run(LLAMA, chip, 8, 1e12, 32, **options)  # two passes
    assert plan.memory.total == own_plan(design, 2).memory.total


def test_twice_the_sequence_keeps_80_of_114_bytes_four_times() -> None:
    assert PREDICTIONS["activations-guess"].truth() == pytest.approx(2 * 194 / 114)


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
def test_the_peak_of_06_d_adds_up_by_hand(recompute: str, zero_stage: int) -> None:
    """Sharded states, activations, and the logits with what ZeRO 3 gathers at the loss."""
    model = architecture("Llama-3.2-1B", 4096)
    design = {"model": "Llama-3.2-1B", "gpus": 8, "chip": "H100", "sequence": 4096}
    design |= {"zero": zero_stage, "recompute": recompute}
    P = count_parameters(model).total
    states = model_state_bytes(P, "bf16", zero_stage, 8).total
    activations = count_activations(model, 2, recompute).total
    logits = 8 * 2 * 4096 * model.vocab_size
    ends = (zero_stage == 3) * 2 * 2 * 2048 * model.vocab_size  # its matrix is tied
    peak = own_plan(design, 2).memory
    assert peak.moment == "loss"
    assert peak.total == states + activations + logits + ends
