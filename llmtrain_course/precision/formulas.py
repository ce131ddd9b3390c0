"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, isfinite

from llmtrain_helpers.checks import at_most, finite, instance, one, quantity, refuse, single
from llmtrain_helpers.precision import FORMATS, NumberFormat


def half_spacing(number_format: NumberFormat, weight: float) -> float:
    """Half the way from a weight up to the next number: what is lost of an update.

    >>> half_spacing(FORMATS["bf16"], 1), half_spacing(FORMATS["bf16"], -1)
    (0.00390625, 0.001953125)
    """
    instance("number_format", number_format, NumberFormat)
    w = float(number_format.round(one("weight", weight)))
    if not abs(w) <= number_format.max:
        refuse("weight", weight, f"is more than {number_format.name} holds: {number_format.max:g}")
    return (number_format.shifted(w, 1) - w) / 2


@dataclass(frozen=True)
class UpdatedWeight:
    """A weight after equal updates, in a low-precision format and with a main weight.

    `direct` was rounded to the format after each update. `main` is in fp32, and `copy` is
    `main` rounded to the format.
    """

    direct: float
    main: float
    copy: float


def update_weight(
    number_format: NumberFormat, weight: float, update: float, updates: int
) -> UpdatedWeight:
    """Apply equal updates to a weight, once directly and once with a main weight in fp32.

    >>> after = update_weight(FORMATS["bf16"], 1, 0.003, updates=4)
    >>> after.direct, after.copy
    (1.0, 1.015625)
    """
    instance("number_format", number_format, NumberFormat)
    n = single("updates", updates, least=0)
    at_most("updates", n, "what this goes through one by one", 100_000)
    start, step = one("weight", weight, finite), one("update", update, finite)
    direct, main = number_format.round(start), FORMATS["fp32"].round(start)
    for _ in range(n):
        direct, main = number_format.round(direct + step), FORMATS["fp32"].round(main + step)
    return UpdatedWeight(direct, main, number_format.round(main))


def sum_of_ones(number_format: NumberFormat, ones: int) -> float:
    """Add so many ones in a format, one after the other.

    The sum stops where 1 is half the way to the next number.

    >>> sum_of_ones(FORMATS["bf16"], 1000), sum_of_ones(FORMATS["fp16"], 10_000)
    (256.0, 2048.0)
    """
    instance("number_format", number_format, NumberFormat)
    ones = single("ones", ones, least=0)
    stall = 2 / number_format.eps  # there the next number is 2 away
    return float(number_format.round(min(ones, stall)))


def gradient_window(number_format: NumberFormat, scale: float = 1.0) -> tuple[float, float]:
    """The window of gradients that a format stores at this loss scale: its lower and upper end.

    Half the smallest number of the format, over the scale, and half a step past its
    largest, over the scale: for fp16 2⁻²⁵/S and 65520/S.

    >>> gradient_window(FORMATS["fp16"], 1024) == (2**-35, 65520 / 1024)
    True
    """
    instance("number_format", number_format, NumberFormat)
    scale = one("scale", scale, quantity)
    beyond = number_format.max + number_format.spacing(number_format.max) / 2
    return number_format.min_subnormal / 2 / scale, beyond / scale


def scale_and_store(number_format: NumberFormat, value: float, scale: float) -> float:
    """Scale a value, store it in a format, and divide it again.

    >>> fp16 = FORMATS["fp16"]
    >>> [scale_and_store(fp16, 2.0**-26, scale) for scale in (1, 1024)] == [0, 2.0**-26]
    True
    """
    instance("number_format", number_format, NumberFormat)
    scale = one("scale", scale, quantity)
    return float(number_format.round(finite("value·scale", one("value", value) * scale))) / scale


EXAMPLE_GRADIENTS = {k: exp(-(((k + 24) / 6) ** 2) / 2) for k in range(-42, -5)}
"""A drawn example of a model's gradients: how many are of each power of two."""


def gradient_fates(number_format: NumberFormat, scale: float) -> dict[int, str]:
    """The fate of a gradient of each power of two: "lost", "kept" or "too large".

    >>> fates = gradient_fates(FORMATS["fp16"], 1024)
    >>> fates[-36], fates[-35 + 1], fates[-6]
    ('lost', 'kept', 'kept')
    """
    backs = {k: scale_and_store(number_format, 2.0**k, scale) for k in EXAMPLE_GRADIENTS}
    return {
        k: "lost" if back == 0 else "kept" if isfinite(back) else "too large"
        for k, back in backs.items()
    }


def fate_shares(number_format: NumberFormat, scale: float) -> dict[str, float]:
    """The shares of the example's gradients that are lost, kept, and too large.

    >>> round(fate_shares(FORMATS["fp16"], 1)["lost"], 2)
    0.47
    """
    shares = {"lost": 0.0, "kept": 0.0, "too large": 0.0}
    for k, fate in gradient_fates(number_format, scale).items():
        shares[fate] += EXAMPLE_GRADIENTS[k] / sum(EXAMPLE_GRADIENTS.values())
    return shares
