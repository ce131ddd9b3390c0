"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from llmtrain_helpers.activations import KEPT, Kept, Kernel, step_timeline
from llmtrain_helpers.batch import largest_batch
from llmtrain_helpers.checks import Number, Result, amount, flag, one, quantity, single
from llmtrain_helpers.flops import EveryRecompute
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.precision import Recipe


def kept_tensors(flash: bool = False, dropout: bool = True) -> list[Kept]:
    """The tensors of `KEPT` that are there: flash stores no scores, and without dropout no mask.

    >>> sum(kept.size for kept in kept_tensors(flash=True, dropout=False))
    32
    """
    stored = not flag("flash", flash)
    masked = flag("dropout", dropout)
    return [
        kept
        for kept in KEPT
        if (stored or not kept.scores)
        and (masked or (kept.operation != "dropout" and kept.tensor != "what dropout leaves"))
    ]


def bytes_kept(scores_to_hidden: Number, flash: bool = False, dropout: bool = True) -> Result:
    """Bytes that a GPT's layer keeps for each value of the hidden state: 34 + 5as/h.

    Takes as/h, the values of the scores for each of the hidden state. Flash attention
    takes away the term with as/h; without dropout 32 + 2as/h are left.

    >>> bytes_kept(96 * 2048 / 12288)  # GPT-3
    114.0
    """
    ratio = amount("scores_to_hidden", scores_to_hidden)
    kept = kept_tensors(flash, dropout)
    plain = sum(tensor.size for tensor in kept if not tensor.scores)
    return plain + sum(tensor.size for tensor in kept if tensor.scores) * ratio


def largest_micro_batch(
    model: Transformer,
    memory: Number,
    recipe: str | Recipe,
    recompute: EveryRecompute,
    accumulation_steps: int = 1,
    attention: Kernel = "flash",
) -> int:
    """The largest micro-batch whose first two steps stay within so many bytes.

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
