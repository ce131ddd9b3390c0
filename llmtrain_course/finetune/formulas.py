"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from llmtrain_helpers.checks import Result, at_most, refuse, single
from llmtrain_helpers.finetune import tuned_phases
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.tuning import Tuning, tuned_parameters


def tuned_states(model: Transformer, tuning: Tuning) -> dict[str, Result]:
    """Bytes of weights, gradients and states of a model that is tuned on one GPU.

    Of adapters all three are one part; activations, and what is there for a moment, come
    on top (`tuned_memory`).

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=4096)
    >>> states = tuned_states(llama, Tuning.qlora(16))
    >>> {name: f"{size / 1e9:.2f} GB" for name, size in states.items()}
    {'weights': '5.70 GB', 'adapters': '0.67 GB'}
    """
    *_, update = tuned_phases(model, tuning, 1, "full")
    if tuning.is_full:
        return {name: update.parts()[name] for name in ("weights", "gradients", "optimizer")}
    ours = tuning.bytes_of.weights * tuned_parameters(model, tuning).learning
    adapters = ours + update.gradients + update.optimizer
    return {"weights": update.weights - ours, "adapters": adapters}


class Placement(NamedTuple):
    """Where a text stands when texts are packed: its row, and the tokens before it."""

    row: int
    start: int


def packed_rows(lengths: Sequence[int], row_length: int) -> tuple[Placement, ...]:
    """Each text in the first row that still has room for it, and whole: first fit.

    A row is a sequence of `row_length` tokens. ValueError for a longer text, and for none.

    >>> packed_rows([1500, 900, 400], row_length=2048)
    (Placement(row=0, start=0), Placement(row=1, start=0), Placement(row=0, start=1500))
    """
    capacity = single("row_length", row_length)
    if not isinstance(lengths, (list, tuple)):
        refuse("lengths", lengths, "are no list of texts")
    filled: list[int] = []
    places = []
    for length in lengths:
        tokens = single("lengths", length)
        at_most("lengths", tokens, "row_length", capacity)
        row = next((i for i, used in enumerate(filled) if used + tokens <= capacity), len(filled))
        if row == len(filled):
            filled.append(0)
        places.append(Placement(row, filled[row]))
        filled[row] += tokens
    return tuple(places) or refuse("lengths", lengths, "is empty")
