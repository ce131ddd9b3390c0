"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from dataclasses import dataclass

from llmtrain_helpers.activations import Kernel, step_timeline
from llmtrain_helpers.batch import largest_batch
from llmtrain_helpers.checks import (
    Count,
    Number,
    Result,
    amount,
    at_most,
    checked,
    flag,
    one,
    quantity,
    single,
)
from llmtrain_helpers.flops import EveryRecompute
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.precision import Recipe, RecipeName


@dataclass(frozen=True)
class SavedTensor:
    """A tensor that an operation stores, in bytes per hidden value.

    `scores` says that they are times as/h; `learns` that the operation has weights.
    """

    half: str
    operation: str
    tensor: str
    size: int
    scores: bool = False
    learns: bool = False


SAVED_TENSORS = [
    SavedTensor("norms", "norm", "its input", 2, learns=True),
    SavedTensor("attention", "Q, K and V", "their input", 2, learns=True),
    SavedTensor("attention", "scores Q·Kᵀ", "Q and K", 4),
    SavedTensor("attention", "softmax", "its result", 2, scores=True),
    SavedTensor("attention", "dropout", "its mask", 1, scores=True),
    SavedTensor("attention", "average of V", "what dropout leaves", 2, scores=True),
    SavedTensor("attention", "", "V", 2),
    SavedTensor("attention", "output matrix", "its input", 2, learns=True),
    SavedTensor("attention", "dropout", "its mask", 1),
    SavedTensor("norms", "norm", "its input", 2, learns=True),
    SavedTensor("MLP", "matrix up", "its input", 2, learns=True),
    SavedTensor("MLP", "GELU", "its input, 4h wide", 8),
    SavedTensor("MLP", "matrix down", "its input, 4h wide", 8, learns=True),
    SavedTensor("MLP", "dropout", "its mask", 1),
]
"""A GPT's layer from input to output (arXiv 2205.05198, section 4.1)."""


def saved_tensors(flash: bool = False, dropout: bool = True) -> list[SavedTensor]:
    """List the `SAVED_TENSORS` of a setting: no scores with flash, and no masks without dropout.

    >>> sum(kept.size for kept in saved_tensors(flash=True, dropout=False))
    32
    """
    stored = not flag("flash", flash)
    masked = flag("dropout", dropout)
    return [
        kept
        for kept in SAVED_TENSORS
        if (stored or not kept.scores)
        and (masked or (kept.operation != "dropout" and kept.tensor != "what dropout leaves"))
    ]


def bytes_kept(scores_to_hidden: Number, flash: bool = False, dropout: bool = True) -> Result:
    """Bytes that a GPT layer stores per hidden value: 34 + 5as/h.

    Takes as/h, the values of the scores for each of the hidden state. Flash attention
    takes away the term with as/h; without dropout 32 + 2as/h are left.

    >>> bytes_kept(96 * 2048 / 12288)  # GPT-3
    114.0
    """
    ratio = amount("scores_to_hidden", scores_to_hidden)
    kept = saved_tensors(flash, dropout)
    plain = sum(tensor.size for tensor in kept if not tensor.scores)
    return plain + sum(tensor.size for tensor in kept if tensor.scores) * ratio


def largest_micro_batch(
    model: Transformer,
    memory: Number,
    recipe: RecipeName | Recipe,
    recompute: EveryRecompute,
    accumulation_steps: int = 1,
    attention: Kernel = "flash",
) -> int:
    """Find the largest micro-batch whose first two steps fit into a number of bytes.

    Arguments as of `step_timeline`, one number each. Every moment grows by the same bytes
    with each sequence, and every pass from the second on is alike, so two short timelines
    tell all. ValueError if not even 1 fits.

    >>> gpt2 = Transformer.gpt(12, 768, 12, 50257, 1024)
    >>> largest_micro_batch(gpt2, 24e9, "amp", recompute="none")
    24
    """
    room, k = one("memory", memory, quantity), single("accumulation_steps", accumulation_steps)
    of_one, of_two = (
        step_timeline(
            model, b, recipe, recompute, accumulation_steps=min(k, 2), attention=attention
        ).moments
        for b in (1, 2)
    )
    sizes = [(x.total, y.total - x.total) for x, y in zip(of_one, of_two, strict=True)]
    return largest_batch(lambda b: all(x + (b - 1) * more <= room for x, more in sizes))


@checked
def resident_layers(num_layers: Count[int], time: Count[int], recomputes: bool) -> list[str]:
    """List what each layer has in memory, from the first up, at a moment counted from 1.

    >>> resident_layers(3, 4, recomputes=True)
    ['input', 'input', 'again']
    """
    l = num_layers
    at_most("num_layers", l, "what can be shown", 10_000)
    at_most("time", time, "2·num_layers", 2 * l)
    at = min(time, 2 * l + 1 - time)  # the layer that is at work
    kinds = ["input" if recomputes else "kept"] * at
    if recomputes and time > l:
        kinds[-1] = "again"
    return kinds
