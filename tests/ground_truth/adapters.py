"""LoRA in ten lines, for where PEFT is not installed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

PEFT = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "o_proj",
    "query_down": "q_a_proj",
    "latent_down": "kv_a_proj_with_mqa",
    "latent_up": "kv_b_proj",
    "gate": "gate_proj",
    "up": "up_proj",
    "down": "down_proj",
    "head": "lm_head",
}
"""What PEFT calls the matrices of `measure.model`."""


class Adapted(nn.Module):
    """A frozen matrix, and beside it the two that learn, in a type of their own."""

    def __init__(self, base: nn.Linear, rank: int, dropout: float, dtype: Any) -> None:
        super().__init__()
        self.base, made = base, {"bias": False, "dtype": dtype, "device": base.weight.device}
        self.a = nn.Linear(base.in_features, rank, **made)
        self.b = nn.Linear(rank, base.out_features, **made)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """What both give, in the type of the frozen one."""
        result = self.base(x)
        more = self.b(self.a(self.dropout(x.to(self.a.weight.dtype)))) * 2.0
        return (result + more).to(result.dtype)


def adapt(
    net: nn.Module,
    targets: Collection[str],
    rank: int,
    dropout: float = 0,
    dtype: Any = torch.bfloat16,
    names: Mapping[str, str] = PEFT,
) -> nn.Module:
    """The model with all of its weights frozen, and adapters beside the targeted matrices."""
    net.requires_grad_(False)
    for parent in [*net.modules()]:
        for name, child in [*parent.named_children()]:
            targeted = isinstance(child, nn.Linear) and names.get(name, name) in targets
            if targeted and child.out_features > 1:  # a shared expert's share has no adapter
                setattr(parent, name, Adapted(child, rank, dropout, dtype))
    return net
