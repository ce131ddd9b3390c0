"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from llmtrain_helpers.checks import Array, Count, Whole, at_most, checked
from llmtrain_helpers.duration import PASSES


@checked
def flops_on_the_way(
    parameters: Count[float | Array], passed: Whole[int], num_layers: Count[int]
) -> float | Array:
    """FLOPs of one token that has passed some layers: 2 per parameter up, 4 on the way down.

    Takes the model's parameters, how many layers were passed (up to `num_layers` forward,
    as many again backward), and how many there are. ValueError for more than that.

    >>> flops_on_the_way(8e9, 4, 4), flops_on_the_way(8e9, 8, 4)
    (16000000000.0, 48000000000.0)
    """
    l = num_layers
    at_most("passed", passed, "2 · num_layers", 2 * l)
    up, down = min(passed, l), max(passed - l, 0)
    return parameters * (PASSES["forward"] * up + PASSES["backward"] * down) / l
