"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from llmtrain_helpers.checks import Number, Result, at_most, counts, single
from llmtrain_helpers.duration import PASSES


def flops_on_the_way(parameters: Number, passed: int, num_layers: int) -> Result:
    """FLOPs of one token that has passed so many layers: 2 a parameter up, 4 on the way down.

    Takes the model's parameters, how many layers were passed (up to `num_layers` forward,
    as many again backward), and how many there are. ValueError for more than that.

    >>> flops_on_the_way(8e9, 4, 4), flops_on_the_way(8e9, 8, 4)
    (16000000000.0, 48000000000.0)
    """
    (P,) = counts(parameters=parameters)
    layers, passed = single("num_layers", num_layers), single("passed", passed, least=0)
    at_most("passed", passed, "2 · num_layers", 2 * layers)
    up, down = min(passed, layers), max(passed - layers, 0)
    return P * (PASSES["forward"] * up + PASSES["backward"] * down) / layers
