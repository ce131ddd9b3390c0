"""Exercises of chapter 06: bytes that a layer keeps, recomputation, the peak."""

from __future__ import annotations

from llmtrain_helpers import units
from llmtrain_helpers.activations import (
    count_activations,
    gpt_activation_bytes,
    step_timeline,
)
from llmtrain_helpers.architecture import Transformer
from llmtrain_helpers.checks import Result
from llmtrain_helpers.exercises.common import (
    GIBI,
    PERCENT,
    PREFIXES,
    Exercise,
    Function,
    Numeric,
    Word,
)


def _mt_nlg(recompute: str = "none") -> Result:
    return gpt_activation_bytes(105, 20480, 128, 2048, 1, recompute)


_LLAMA = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)


def _llama_layer(s: int, b: int, h: int, f: int, ad: int, kd: int) -> Result:
    """One layer's bytes; heads of size 1, for only their sums enter."""
    model = Transformer.llama(1, h, ad, kd, f, 1, s, head_dim=1)
    return count_activations(model, b).layers


def _saved() -> float:
    return float(1 - _mt_nlg("full") / _mt_nlg())


EXERCISES: dict[str, Exercise] = {
    "06-a": Numeric(
        key=_mt_nlg,
        unit=units.gigabytes,
        hint="sbhl(34 + 5as/h), with b = 1.",
        slips=PREFIXES
        | GIBI
        | {
            1 / 105: "this is one layer: there are 105.",
            34 / (34 + 5 * 128 * 2048 / 20480): "the scores are missing: + 5as/h.",
        },
    ),
    "06-b": Function(
        key=_llama_layer,
        cases=[
            {"s": 8192, "b": 1, "h": 4096, "f": 14336, "ad": 4096, "kd": 1024},
            {"s": 4096, "b": 2, "h": 8192, "f": 28672, "ad": 8192, "kd": 1024},
        ],
        hint="Two norms, attention and MLP take in 8h. Then 4ad + 4kd, and 8f.",
    ),
    "06-c": Numeric(
        key=_saved,
        unit=units.percent,
        hint="1 − 2sbhl / sbhl(34 + 5as/h), as a share between 0 and 1.",
        slips=PERCENT
        | {
            (1 - _saved())
            / _saved(): "this is what stays: what is saved is 1 minus it.",
        },
    ),
    "06-d": Word(
        key=lambda: step_timeline(_LLAMA, 4, "pure_bf16", "none").peak.mark,
        options={
            "forward": "no: after forward comes something that adds to it.",
            "loss": "right: all activations are there, and two tensors of logits more.",
            "backward": "no: by then the activations are gone; gradients have come.",
            "update": "no: the activations are gone; Adam's state comes here once.",
        },
    ),
}
