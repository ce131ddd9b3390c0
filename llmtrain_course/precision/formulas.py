"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, exp, isfinite, isinf, isnan, ldexp, log2

from llmtrain_helpers.checks import (
    LARGEST,
    Count,
    Finite,
    Quantity,
    Whole,
    at_most,
    checked,
    finite,
    instance,
    numpy,
    one,
    quantity,
    refuse,
    single,
)
from llmtrain_helpers.precision import FORMATS, NumberFormat


def half_spacing(number_format: NumberFormat, weight: float) -> float:
    """Half the spacing above a weight, up to which an update is lost.

    >>> half_spacing(FORMATS["bf16"], 1), half_spacing(FORMATS["bf16"], -1)
    (0.00390625, 0.001953125)
    """
    instance("number_format", number_format, NumberFormat)
    w = float(number_format.round(one("weight", weight)))
    if not abs(w) <= number_format.max:
        refuse("weight", weight, f"is more than {number_format.name} holds: {number_format.max:g}")
    return (shifted(number_format, w, 1) - w) / 2


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

    >>> after = update_weight(FORMATS["bf16"], 1, 0.003, updates=1000)
    >>> after.direct, after.copy
    (1.0, 4.0)
    """
    return update_by_update(number_format, weight, update, updates)[-1]


def update_by_update(
    number_format: NumberFormat, weight: float, update: float, updates: int
) -> list[UpdatedWeight]:
    """List the weights of `update_weight` after 0, 1, 2 … updates.

    >>> [after.direct for after in update_by_update(FORMATS["bf16"], 1, 0.004, updates=2)]
    [1.0, 1.0078125, 1.015625]
    """
    instance("number_format", number_format, NumberFormat)
    n = single("updates", updates, least=0)
    at_most("updates", n, "what this goes through one by one", 100_000)
    start, step = one("weight", weight, finite), one("update", update, finite)
    direct, main = number_format.round(start), FORMATS["fp32"].round(start)
    weights = [UpdatedWeight(direct, main, number_format.round(main))]
    for _ in range(n):
        direct, main = number_format.round(direct + step), FORMATS["fp32"].round(main + step)
        weights.append(UpdatedWeight(direct, main, number_format.round(main)))
    return weights


@checked
def fit_line(
    number_format: NumberFormat, main_weights: bool = True, updates: Whole[int] = 1000
) -> list[float]:
    """Compute the loss of a line fitted to 16 points, before each update and after the last.

    The points are on y = 1.5x − 0.7, and gradient descent begins at y = 0. A pass uses the
    slope and the intercept in the format. An update is added to main weights in fp32, or
    without them to the numbers of the format. Returns the means of the squared errors.

    >>> alone, kept = (fit_line(FORMATS["bf16"], main) for main in (False, True))
    >>> alone[0] == kept[0], alone[-1] > 1000 * kept[-1]
    (True, True)
    """
    at_most("updates", updates, "what this goes through one by one", 10_000)
    kept, rate = FORMATS["fp32"] if main_weights else number_format, 0.0025
    xs, slope, intercept, losses = [k / 4 - 15 / 8 for k in range(16)], 0.0, 0.0, list[float]()
    for _ in range(updates + 1):
        a, b = number_format.round(slope), number_format.round(intercept)
        errors = [a * x + b - (1.5 * x - 0.7) for x in xs]
        losses.append(sum(error**2 for error in errors) / len(xs))
        by_slope = 2 * sum(error * x for error, x in zip(errors, xs, strict=True)) / len(xs)
        by_intercept = 2 * sum(errors) / len(xs)
        slope = kept.round(slope - rate * by_slope)
        intercept = kept.round(intercept - rate * by_intercept)
    return losses


def sum_of_ones(number_format: NumberFormat, ones: int) -> float:
    """Add ones in a format, one after the other.

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


@checked
def train_small_network(
    weights: NumberFormat,
    gradients: NumberFormat,
    master_copy: bool = True,
    loss_scale: Quantity[float] = 1.0,
    steps: Count[int] = 2000,
) -> list[float]:
    """The loss of a small network, step by step, with weights and gradients rounded.

    Two layers, 8 → 16 → 1 with tanh, learn a network of the same shape by gradient
    descent from 256 samples; always the same samples and the same start. The products
    are exact; rounded is what the formats store: the weights before each pass, and the
    gradients, scaled by `loss_scale`, after it. Without `master_copy` the update is
    added to the rounded weights and rounded again. Returns the mean squared errors.

    >>> losses = train_small_network(FORMATS["fp32"], FORMATS["fp32"])
    >>> losses[0] > 100 * losses[-1]
    True
    """
    np = numpy()
    at_most("steps", steps, "what a small network needs", 100_000)
    dice = np.random.default_rng(0)
    x = dice.normal(size=(256, 8))
    target = np.tanh(x @ dice.normal(size=(8, 16)) / 3) @ dice.normal(size=(16, 1))
    master = np.concatenate([dice.normal(size=8 * 16) / 3, dice.normal(size=16) / 4])
    tokens, rate = 64 * len(x), 64 * 0.05  # gradients as small as large models have
    losses = []
    for _ in range(steps):
        rounded = np.asarray(weights.round(master))
        first, second = rounded[:128].reshape(8, 16), rounded[128:].reshape(16, 1)
        hidden = np.tanh(x @ first)
        error = hidden @ second - target
        losses.append(float((error**2).mean()))
        back = error @ second.T * (1 - hidden**2)
        exact = np.concatenate([(x.T @ back).ravel(), (hidden.T @ error).ravel()]) / tokens
        stored = gradients.round(exact * loss_scale) / loss_scale
        master = master - rate * stored
        if not master_copy:  # then the rounded weights are all there is
            master = np.asarray(weights.round(master))
    return losses


# --- the numbers of a format, in their order


def split(number_format: NumberFormat, value: float) -> tuple[int, int, int]:
    """Split a number into sign, exponent and mantissa as this format stores it: whole numbers.

    What is stored is (−1)^sign × 2^(exponent − bias) × (1 + mantissa/2^m), or with
    an exponent of 0, a subnormal, (−1)^sign × 2^(1 − bias) × mantissa/2^m. Infinity
    and NaN have the largest exponent. Takes one number, and rounds it first.

    >>> split(FORMATS["fp16"], -1.5), split(FORMATS["bf16"], 0.1)
    ((1, 15, 512), (0, 123, 77))
    """
    instance("number_format", number_format, NumberFormat)
    x = number_format.round(value if type(value) is float else one("value", value))
    e, m = number_format.exponent_bits, number_format.mantissa_bits
    sign = int(copysign(1, x) < 0)
    if isinf(x):
        return sign, 2**e - 1, 0
    if isnan(x):  # the usual, quiet one; without infinities there is only the last
        return sign, 2**e - 1, 2 ** (m - 1) if number_format.infinities else 2**m - 1
    return sign, *divmod(_place(number_format, abs(x)), 2**m)


def neighbours(number_format: NumberFormat, value: float) -> tuple[float, float]:
    """Find the nearest numbers of this format below and above a value's rounded one.

    >>> neighbours(FORMATS["bf16"], 1.0)
    (0.99609375, 1.0078125)
    """
    return shifted(number_format, value, -1), shifted(number_format, value, 1)


def shifted(number_format: NumberFormat, value: float, steps: int) -> float:
    """Find the number of this format that's some places above a value's rounded one.

    Ends at ±max, or where the value has none: ValueError for what is not finite.

    >>> shifted(FORMATS["fp16"], 0.0, 1) == FORMATS["fp16"].min_subnormal
    True
    """
    instance("number_format", number_format, NumberFormat)
    x = number_format.round(one("value", value, finite))
    if abs(x) > number_format.max or isnan(x):
        refuse("value", value, f"is more than {number_format.name} holds: {number_format.max:g}")
    # Counted from 0, down as well as up, the numbers of a format have whole places.
    last = _place(number_format, number_format.max)
    place = _signed_place(number_format, x) + single("steps", steps, least=-int(LARGEST))
    return number_at(number_format, min(max(place, -last), last))


@checked
def between(number_format: NumberFormat, low: Finite[float], high: Finite[float]) -> list[float]:
    """List the numbers of this format from one to another, both included where it has them.

    >>> between(FORMATS["fp8_e4m3"], 3.6, 5)
    [3.75, 4.0, 4.5, 5.0]
    """
    if low > high:
        refuse("low", low, f"is above high={high}")
    if max(abs(low), abs(high)) > number_format.max:
        refuse("high", high, f"is more than {number_format.name} holds: {number_format.max:g}")
    first, last = (_signed_place(number_format, x) for x in (low, high))
    first += number_at(number_format, first) < low
    last -= number_at(number_format, last) > high
    if last - first > 10_000:
        refuse("high", high, f"lies {last - first} numbers of {number_format.name} away")
    return [number_at(number_format, place) for place in range(first, last + 1)]


def _signed_place(number_format: NumberFormat, x: float) -> int:
    """The place of what this makes of a number, counted from 0 up or down."""
    rounded = number_format.round(x)
    return int(copysign(_place(number_format, abs(rounded)), rounded))


@checked
def number_at(number_format: NumberFormat, place: Finite[int]) -> float:
    """The number so many places above 0, or below it: what the bits after the sign make as one.

    ValueError for a place that those bits don't have. The last ones may hold no number of
    the format's own: infinity or NaN stands there, and this goes on past the largest one.

    >>> number_at(FORMATS["fp8_e4m3"], 126), number_at(FORMATS["fp8_e4m3"], -1)
    (448.0, -0.001953125)
    """
    last = 2 ** (number_format.exponent_bits + number_format.mantissa_bits) - 1
    if place % 1 or abs(place) > last:
        refuse("place", place, f"isn't a whole number from {-last} to {last}")
    return copysign(_number(number_format, int(abs(place))), place)


def _place(number_format: NumberFormat, x: float) -> int:
    """The place of a stored number above 0, counted from 0 upwards."""
    step = int(log2(number_format.spacing(x)))
    passed = step + number_format.mantissa_bits - (1 - number_format.bias)  # powers of two below
    return int(ldexp(x, -step)) + int(passed * 2**number_format.mantissa_bits)


def _number(number_format: NumberFormat, place: int) -> float:
    """The number at this place, counted from 0 upwards."""
    e, mantissa = divmod(place, 2**number_format.mantissa_bits)
    whole = mantissa + (2**number_format.mantissa_bits if e else 0)
    return ldexp(whole, max(e, 1) - number_format.bias - number_format.mantissa_bits)
