"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from llmtrain_course.kit.formulas import published_model
from llmtrain_helpers.checks import Result, Size, Whole, at_most, checked, refuse, single
from llmtrain_helpers.finetune import TunedRecompute, tuned_flops, tuned_phases
from llmtrain_helpers.model.layers import Mixer
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.tuning import Tuning, check_tuned, own_copies, sites, tuned_parameters


def tuned_states(model: Transformer, tuning: Tuning) -> dict[str, Result]:
    """Bytes of weights, gradients and states when tuning a model on one GPU.

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


def flops_ratio(recompute: TunedRecompute) -> float:
    """The FLOPs of training all weights of Llama 3.1 8B, relative to its adapters'.

    >>> f"{flops_ratio('none'):.2f}, with recomputation {flops_ratio('full'):.2f}"
    '1.49, with recomputation 1.25'
    """
    model = published_model("Llama-3.1-8B", 1)
    full, adapters = (
        tuned_flops(model, tuning, 1, recompute).total
        for tuning in (Tuning.full(), Tuning.lora(16))
    )
    return float(full / adapters)


class Placement(NamedTuple):
    """The place of a packed text: its row, and the tokens before it."""

    row: int
    start: int


def packed_rows(lengths: Sequence[int], row_length: int) -> tuple[Placement, ...]:
    """Pack each text, whole, into the first row that still has room for it (first fit).

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


NOTHING, INPUT, SAME, COPY, MASKED = (
    "nothing",
    "its input",
    "already stored",
    "a copy",
    "copy, mask",
)
"""What a matrix keeps: of its own input nothing, or all of it, or a copy, perhaps with a mask;
or one that is kept already."""


class SavedInput(NamedTuple):
    """The part of its input that a matrix saves for backward, and its bytes per token."""

    what: str
    size: Result


@checked
def saved_inputs(
    model: Transformer, tuning: Tuning, mask_bytes: Whole[Size] = 1
) -> dict[str, SavedInput]:
    """List the inputs that each matrix of a model's first kind of layer saves during tuning.

    One that learns keeps its input (2m bytes), a frozen one nothing. An adapter keeps the
    same input, or a copy of its own where it is in 32 bits or drops out, then with a mask.
    Matrices that read the same keep it once, and what attention gives is kept already. What
    operations without weights keep is not in it (`tuned_activations` has all).

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=4096)
    >>> saved = saved_inputs(llama, Tuning.lora(16, "attention", adapter_bytes=2))
    >>> saved["query"], saved["down"]
    (SavedInput(what='its input', size=8192), SavedInput(what='nothing', size=0))
    """
    check_tuned(model)
    mask = mask_bytes
    own, copy = own_copies(tuning)
    reads = tuning.is_full or (tuning.keeps_inputs and tuning.method == "qlora")
    drops = tuning.dropout > 0
    _, layer = model.layers[0]
    matrices = {}
    for part in layer.parts:
        saved: set[str] = set()
        for m, adapted, name, before in sites(part, model.hidden_size, tuning):
            if adapted and own:
                size = (copy + mask * drops) * m.active * m.rows
                matrices[m.name] = SavedInput(MASKED if drops else COPY, size)
            elif not (reads or adapted):
                matrices[m.name] = SavedInput(NOTHING, 0)
            elif name in saved or (isinstance(part, Mixer) and before):
                matrices[m.name] = SavedInput(SAME, 0)
            else:
                saved.add(name)
                matrices[m.name] = SavedInput(INPUT, 2 * m.active * m.rows)
    return matrices
