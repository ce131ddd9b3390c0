"""Tuning: what PyTorch counts, and what autograd keeps, is what the formulas say."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from llmtrain_helpers import Transformer, Tuning
from llmtrain_helpers.finetune import tuned_flops
from llmtrain_helpers.measure import model as decoder

from .adapters import adapt
from .shapes import SHAPES

aten = torch.ops.aten


def scored(query: Any, key: Any, value: Any, *rest: Any, **options: Any) -> int:
    return int(sdpa_flop_count(query, key, value))


def scored_back(grad: Any, query: Any, key: Any, value: Any, *rest: Any, **options: Any) -> int:
    """Twice forward, as the formulas count it: flash attention's second look aside."""
    return 2 * int(sdpa_flop_count(query, key, value))


KERNELS = {
    aten._scaled_dot_product_flash_attention_for_cpu: scored,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: scored_back,
}


def counted(shape: Transformer, tuning: Tuning, batch: int, recompute: str) -> int:
    """FLOPs of forward and backward by PyTorch's counter."""
    net = decoder.build(shape, "cpu", torch.float32, "flash", recompute=recompute)
    if not tuning.is_full:
        adapt(net, tuning.targets, tuning.rank, dtype=torch.float32)
        if recompute == "full":  # as transformers' enable_input_require_grads
            net.embedding.register_forward_hook(lambda m, x, y: y.requires_grad_(True))
    inputs = decoder.tokens(shape, batch, "cpu")
    with FlopCounterMode(display=False, custom_mapping=KERNELS) as counter:
        net.loss(*inputs).backward()
    return int(counter.get_total_flops())


TUNINGS = [
    Tuning.full(),
    Tuning.lora(4, ["q_proj", "v_proj"]),
    Tuning.lora(3, ["o_proj"]),
    Tuning.lora(5, "attention"),
    Tuning.lora(2, "mlp"),
    Tuning.lora(4, ["down_proj"]),
    Tuning.lora(4, "all-linear"),
    Tuning.qlora(4, ["k_proj", "up_proj", "lm_head"]),
]
FAMILIES = ["llama gqa", "llama wide heads", "gpt", "experts"]
FAMILIES += ["shared expert", "gated shared expert"]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("tuning", TUNINGS, ids=lambda t: f"{t.method} {' '.join(t.targets)}")
def test_flops_are_those_of_the_counter(
    name: str, tuning: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    def thoroughly(part: Any, *inputs: Any) -> Any:
        return checkpoint(part, *inputs, use_reentrant=True)

    shape = SHAPES[name]
    for reentrant, recompute in product([False, True], ["none", "full"]):
        if reentrant:
            monkeypatch.setattr(decoder, "again", thoroughly)
        how = tuning.but(reentrant=reentrant)
        measured = counted(shape, how, 3, recompute)
        assert tuned_flops(shape, how, 3, recompute).total - measured == 0, (reentrant, recompute)
        monkeypatch.undo()
