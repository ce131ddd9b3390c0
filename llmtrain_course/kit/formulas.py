"""Formulas that several chapters and your own run use, and no plan."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from llmtrain_helpers.budget import named_shapes
from llmtrain_helpers.checks import Count, Quantity, Rate, Share, checked, refuse, unchecked
from llmtrain_helpers.duration import training_seconds
from llmtrain_helpers.flops import Recompute
from llmtrain_helpers.model import Transformer
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.published import architecture


@lru_cache(256)
def published_model(name: str, sequence_length: int | None = None) -> Transformer:
    """Read a published model's shape, once, because one picture asks for it many times.

    The same object each time, so that what is cached for a model (`cache_per_model`) is
    counted once. ValueError as in `architecture`.

    >>> published_model("Llama-3.1-8B") is published_model("Llama-3.1-8B")
    True
    """
    return architecture(name, sequence_length)


@checked
def trainable_tokens(
    seconds: Quantity[float],
    parameters: Count[float],
    num_gpus: Count[float],
    flops_per_gpu: Rate[float],
    recompute: Recompute,
) -> float:
    """Compute the tokens that fit into a given time, the inverse of `training_seconds`.

    T = seconds · nX/(6P), or nX/(8P) with full recomputation; not rounded. Takes seconds,
    the active parameters, the rate that each GPU reaches in FLOP/s, and what is computed
    again. ValueError as in `training_seconds`.

    >>> f"{trainable_tokens(30 * 86400, 8e9, 8, 109.2e12, recompute='none'):.3g}"
    '4.72e+10'
    """
    return seconds / unchecked(training_seconds)(1, parameters, num_gpus, flops_per_gpu, recompute)


@checked
def rate_at(share_of_peak: Share[float], peak_flops: Rate[float]) -> float:
    """Compute a GPU's rate at this share of its peak, in FLOP/s: share · peak.

    >>> f"{rate_at(0.35, peak_flops=312e12):.4g}"
    '1.092e+14'
    """
    return share_of_peak * peak_flops


@checked
def nearest_shape(parameters: Quantity[float], shapes: Mapping[str, Transformer]) -> str:
    """Find the name of the shape with the nearest number of parameters, in ratio.

    >>> from llmtrain_helpers.budget import shelf
    >>> nearest_shape(8e9, shelf())
    '7.2B'
    """
    P = parameters
    sizes = {name: count_parameters(model).total for name, model in named_shapes(shapes).items()}
    if not sizes:
        refuse("shapes", shapes, "holds no shape")
    return min(sizes, key=lambda name: max(sizes[name] / P, P / sizes[name]))
