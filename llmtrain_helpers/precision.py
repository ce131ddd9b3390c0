"""Chapter 05: how many bytes a parameter needs. Goes with notebooks/05_precision.ipynb.

Sources: IEEE 754 for fp32 and fp16; Micikevicius et al. (arXiv 2209.05433) for the two
fp8 formats; Micikevicius et al. (arXiv 1710.03740) for mixed precision; Rajbhandari et
al. (arXiv 1910.02054) for ZeRO; DeepSeek-AI (arXiv 2412.19437), section 3.3, for FP8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import copysign, frexp, inf, isnan, ldexp, nan
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard

from llmtrain_helpers.checks import (
    Amount,
    Count,
    Number,
    Quantity,
    Result,
    Whole,
    as_sizes,
    at_most,
    checked,
    choice,
    finite,
    flag,
    floats,
    numpy,
    refuse,
    single,
)
from llmtrain_helpers.results import Breakdown, divide

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@checked
@dataclass(frozen=True)
class NumberFormat:
    """A floating-point format: one sign bit, exponent bits e, mantissa bits m.

    A normal number is ±1.mantissa × 2^(exponent − bias), with bias 2^(e−1) − 1; below
    the smallest normal one, steps don't shrink any more (subnormals). With `infinities`
    False, the largest exponent also encodes numbers, and only its last mantissa is NaN,
    as in fp8 E4M3. If you give `bits`, they have to be 1 + e + m.

    >>> fp16 = NumberFormat("fp16", exponent_bits=5, mantissa_bits=10)
    >>> fp16.bits, fp16.max, fp16.eps
    (16, 65504.0, 0.0009765625)
    """

    name: str
    exponent_bits: int
    mantissa_bits: Count[int]
    infinities: bool = True
    bits: Whole[int] = 0

    def __post_init__(self) -> None:
        e, m = single("exponent_bits", self.exponent_bits, least=2), self.mantissa_bits
        at_most("exponent_bits", e, "what this can round", 8)
        at_most("mantissa_bits", m, "what this can round", 23)
        if self.bits not in (0, 1 + e + m):
            refuse("bits", self.bits, f"don't add up: sign 1 + exponent {e} + mantissa {m}")
        object.__setattr__(self, "exponent_bits", e)
        object.__setattr__(self, "bits", 1 + e + m)

    @property
    def bias(self) -> int:
        """The bias subtracted from the stored exponent: 2^(e−1) − 1."""
        return int(2 ** (self.exponent_bits - 1)) - 1

    @property
    def max(self) -> float:
        """The largest finite number."""
        top = self.bias + (0 if self.infinities else 1)
        missing = 1 if self.infinities else 2  # steps below 2^(top + 1)
        return float((2 - missing * self.eps) * 2.0**top)

    @property
    def min_normal(self) -> float:
        """The smallest number with all its mantissa bits: 2^(1 − bias)."""
        return 2.0 ** (1 - self.bias)

    @property
    def min_subnormal(self) -> float:
        """The smallest number above 0: 2^(1 − bias − m)."""
        return self.min_normal * self.eps

    @property
    def eps(self) -> float:
        """The step above 1: 2^−m."""
        return 2.0**-self.mantissa_bits

    def spacing(self, values: ArrayLike) -> Result:
        """The step from each of these values to its neighbour.

        >>> FORMATS["fp16"].spacing(2048.0), FORMATS["bf16"].spacing(1.0)
        (2.0, 0.0078125)
        """
        if _plain(values):
            return ldexp(1.0, self._step_at(float(finite("values", values))))
        np, x = numpy(), floats("values", values)
        finite("values", x)
        step = np.ldexp(1.0, self._step(x))
        return step if step.shape else float(step)

    def _step(self, x: NDArray[Any]) -> NDArray[Any]:
        """The exponent of the step at each x, as a power of two."""
        np = numpy()
        _, exponent = np.frexp(np.where(x == 0, self.min_normal, x))
        step: NDArray[Any] = np.maximum(exponent - 1, 1 - self.bias) - self.mantissa_bits
        return step

    def _step_at(self, x: float) -> int:
        """The exponent of the step at one number, without NumPy."""
        _, exponent = frexp(x or self.min_normal)  # f · 2^exponent, f from 1/2 to 1
        return max(exponent - 1, 1 - self.bias) - self.mantissa_bits

    def round(self, values: ArrayLike, saturate: bool = False) -> Result:
        """Round values to those that this format can store, in float64.

        To nearest, ties to even, in one rounding from float64. Past the maximum, returns
        infinity, or NaN in a format without infinities, or ±max with `saturate`. A
        single plain number doesn't need NumPy.

        >>> FORMATS["bf16"].round(1 + 2**-8), FORMATS["fp8_e4m3"].round(1000.0)
        (1.0, nan)
        """
        beyond = inf if self.infinities else nan
        if flag("saturate", saturate):
            beyond = self.max
        if _plain(values):
            # A whole number can be too large for a float; a float can be infinite, or NaN.
            whole = isinstance(values, int)
            return self._round_one(float(finite("values", values) if whole else values), beyond)
        np, x = numpy(), floats("values", values)
        step = self._step(x)
        with np.errstate(over="ignore"):  # what is beyond is dealt with below
            rounded = np.ldexp(np.rint(np.ldexp(x, -step)), step)
        result = np.where(abs(rounded) > self.max, np.copysign(beyond, x), rounded)
        return result if result.shape else float(result)

    def _round_one(self, x: float, beyond: float) -> float:
        """Round one number with Python's own rounding, which also breaks ties to even."""
        if isnan(x) or abs(x) >= 2 * self.max:
            return x if isnan(x) else copysign(beyond, x)
        step = self._step_at(x)
        rounded = ldexp(round(ldexp(x, -step)), step)
        return copysign(beyond if abs(rounded) > self.max else rounded, x)


def _plain(values: object) -> TypeGuard[int | float]:
    """Tell whether this is a single number of Python's own."""
    return isinstance(values, float) or type(values) is int


FORMATS = {
    number_format.name: number_format
    for number_format in (
        NumberFormat("fp32", exponent_bits=8, mantissa_bits=23),
        NumberFormat("tf32", exponent_bits=8, mantissa_bits=10),
        NumberFormat("bf16", exponent_bits=8, mantissa_bits=7),
        NumberFormat("fp16", exponent_bits=5, mantissa_bits=10),
        NumberFormat("fp8_e4m3", exponent_bits=4, mantissa_bits=3, infinities=False),
        NumberFormat("fp8_e5m2", exponent_bits=5, mantissa_bits=2),
    )
}
"""The formats of training, by name; tf32 is stored in 32 bits and has 19."""


@checked
@dataclass(frozen=True)
class Recipe(Breakdown[Result]):
    """Bytes per parameter in training with Adam, part by part.

    `weights` and `gradients` are those that forward and backward use; `main_gradients`
    and `main_weights` are second copies in fp32; `optimizer` is Adam's two moments.
    """

    name: str
    weights: Amount[float]
    gradients: Amount[float]
    main_gradients: Amount[float]
    main_weights: Amount[float]
    optimizer: Amount[float]

    _not_parts = ("name",)


RecipeName: TypeAlias = Literal[
    "fp32", "amp", "bf16", "bf16_fp32_grads", "bf16_both_grads", "pure_bf16", "fp8"
]

_BYTES: dict[RecipeName, tuple[float, float, float, float, float]] = {
    "fp32": (4, 4, 0, 0, 8),
    "amp": (4, 4, 0, 0, 8),  # autocast: 16-bit copies come and go
    "bf16": (2, 2, 0, 4, 8),
    "bf16_fp32_grads": (2, 4, 0, 4, 8),  # Megatron: 32-bit gradients only
    "bf16_both_grads": (2, 2, 4, 4, 8),
    "pure_bf16": (2, 2, 0, 0, 4),
    "fp8": (1, 4, 0, 4, 4),  # DeepSeek-V3: moments in bf16
}

RECIPES = {name: Recipe(name, *sizes) for name, sizes in _BYTES.items()}
"""The usual recipes, by name. `fp8` is from arXiv 2412.19437, section 3.3: weights
in fp8 for the products, gradients and master weights in fp32, moments in bf16."""

OPTIMIZERS = {
    recipe.name: recipe
    for recipe in (
        Recipe("adam", 2, 2, 0, 4, 8),
        Recipe("adam_8bit", 2, 2, 0, 4, 2 + 2 * 4 / 2048),
        Recipe("adafactor", 2, 2, 0, 4, 0),  # one sum per row and column: about h of h²
        Recipe("muon", 2, 2, 0, 4, 4),
    )
}
"""Optimizers as recipes for `plan_run`: bytes of weights, gradients, main gradients,
main weights and states. Adam has two states per parameter; in 8 bits they need a byte each,
plus 4 bytes per 2,048; Adafactor without momentum only has sums over rows and columns; Muon
has one momentum (embedding and head still use Adam, so they have two).

Sources: Dettmers et al. (arXiv 2110.02861) for 8-bit Adam, Shazeer and Stern (arXiv 1804.04235)
for Adafactor, Jordan et al. (kellerjordan.github.io/posts/muon) for Muon."""


@dataclass(frozen=True)
class ModelStateBytes(Breakdown[Result]):
    """Bytes of a model's states on one GPU, without activations."""

    weights: Result
    gradients: Result
    main_gradients: Result
    main_weights: Result
    optimizer: Result


@checked
def model_state_bytes(
    parameters: Count[Number],
    recipe: RecipeName | Recipe,
    zero_stage: Whole[int] = 0,
    data_parallel: Count[Number] = 1,
) -> ModelStateBytes:
    """Bytes of weights, gradients and optimizer on each GPU, with ZeRO's sharding.

    Stage 0 stores everything on every GPU. Stage 1 shards optimizer, main weights, and main
    gradients that are a second copy, over d replicas; stage 2 also shards the gradients,
    and stage 3 the weights. Takes P parameters on the GPU before sharding, and a `Recipe`
    or its name in `RECIPES`; numbers or arrays. Exact ints if d divides. Raises
    ValueError for an unknown recipe or a stage that isn't 0 to 3.

    Source: arXiv 1910.02054, section 3 and Figure 1.

    >>> round(model_state_bytes(7.5e9, "bf16", 1, data_parallel=64).total / 1e9, 1)
    31.4
    """
    if zero_stage > 3:
        refuse("zero_stage", zero_stage, "is unknown. Known: 0, 1, 2, 3")
    (P, d), parts = as_sizes(parameters, data_parallel), {}
    for name, size in known_recipe(recipe).parts().items():
        sharded = zero_stage >= {"weights": 3, "gradients": 2}.get(name, 1)
        parts[name] = divide(P * size, d) if sharded else P * size
    return ModelStateBytes(**parts)


@checked
def smallest_data_parallel(
    parameters: Count[float], recipe: RecipeName | Recipe, zero_stage: int, memory: Quantity[float]
) -> int:
    """Count the replicas needed until the model's states fit in each GPU's memory.

    d = ⌈sharded / (memory − unsharded)⌉, in bytes. Raises ValueError if the states
    that ZeRO leaves on every GPU are already too large, and says how large they are.

    >>> smallest_data_parallel(70e9, "bf16", zero_stage=3, memory=80e9)
    14
    """
    P, M = parameters, memory
    on_one, on_two = (model_state_bytes(P, recipe, zero_stage, d).total for d in (1, 2))
    if on_one <= M:
        return 1
    sharded = 2 * (on_one - on_two)  # a second GPU takes half of it off the first
    whole = on_one - sharded
    if whole >= M:
        refuse("memory", M, f"is too small for the {whole:.4g} bytes that aren't sharded")
    return -int(-sharded // (M - whole))


def known_recipe(recipe: object) -> Recipe:
    """Return the recipe of this name, or the given recipe itself.

    >>> known_recipe("bf16").total
    16
    """
    if isinstance(recipe, Recipe):
        return recipe
    return RECIPES[choice("recipe", recipe, RECIPES)]


def products_in(recipe: RecipeName | Recipe) -> str:
    """Return the format that a recipe's products need; "" if any is fine.

    >>> products_in("fp8"), products_in("bf16_fp32_grads"), products_in("amp")
    ('fp8', 'bf16', '')
    """
    name = known_recipe(recipe).name
    return next((format for format in ("fp8", "bf16") if format in name), "")


def missing_format(recipe: RecipeName | Recipe, formats: Iterable[str]) -> str:
    """Return the format that a recipe needs and a chip doesn't have; "" if there isn't one.

    >>> missing_format("fp8", ["fp16", "bf16"]), missing_format("bf16", ["fp16", "bf16"])
    ('fp8', '')
    """
    needed = products_in(recipe)
    if not isinstance(formats, (list, tuple, set, frozenset, Mapping)):
        refuse("formats", formats, "isn't a list of formats")
    return "" if needed == "" or needed in list(formats) else needed
