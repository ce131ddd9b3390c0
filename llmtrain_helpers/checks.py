"""Bad input is refused where it enters: a ValueError that says what would be right.

Shared by all chapters. Each function takes an argument's name and its value, and gives
the value back ready for arithmetic: a whole number as an exact Python int (also when it
was written `300e9` or `np.int64(96)`), any other number as a float, an array of numbers
as float64, in which integers cannot wrap around. NumPy is never imported: an array is
recognised by its dtype.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, Union

if TYPE_CHECKING:
    from numpy.typing import NDArray

Number: TypeAlias = Union[int, float, "NDArray[Any]"]
"""A single number, or an array of numbers that a formula broadcasts over."""

Result: TypeAlias = Any
"""What a formula returns: a number when given numbers, an array when given an array."""

LARGEST, SMALLEST = 1e40, 1e-40
"""No count, rate or size of any run lies outside; beyond is a slip or an attack."""


def refuse(name: str, value: object, problem: str) -> NoReturn:
    """Raise the ValueError `name=value problem`, with a long value cut short."""
    raise ValueError(f"{name}={show(value)} {problem}")


def show(value: object) -> str:
    """The value as an error message prints it: at most 60 characters."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST:
        sign = "-" if value < 0 else ""
        return f"{sign}10^{int(abs(value).bit_length() * math.log10(2))}"
    try:
        text = repr(value)
    except Exception:  # too deep, or a repr of its own that fails
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else f"{text[:57]}..."


def count(name: str, value: object, least: int = 1) -> Result:
    """A whole number of at least `least`, exact, or an array of such numbers.

    >>> count("tokens", 300e9)
    300000000000
    >>> count("num_layers", 2.5)
    Traceback (most recent call last):
    ...
    ValueError: num_layers=2.5 is not a whole number
    """
    number = _finite(name, value)
    _require(name, number, _whole(number), "is not a whole number")
    wanted = "is not positive" if least == 1 else f"is less than {least}"
    _require(name, number, number >= least, wanted)
    return int(number) if isinstance(number, float) else number


def counts(**arguments: object) -> tuple[Result, ...]:
    """`count` for several arguments at once, in their order."""
    return tuple(count(name, value) for name, value in arguments.items())


def quantity(name: str, value: object) -> Result:
    """A positive, finite number, whole or not, or an array of such numbers.

    >>> quantity("seconds", 32.09)
    32.09
    >>> quantity("seconds", 0)
    Traceback (most recent call last):
    ...
    ValueError: seconds=0 is not positive
    """
    number = _finite(name, value)
    _require(name, number, number >= SMALLEST, "is not positive")
    return number


def amount(name: str, value: object) -> Result:
    """A finite number that may be zero: a `quantity`, or none of it.

    >>> amount("main_gradients", 0)
    0
    """
    number = _finite(name, value)
    _require(name, number, number >= 0, "is negative")
    return number


def quantities(**arguments: object) -> tuple[Result, ...]:
    """`quantity` for several arguments at once, in their order."""
    return tuple(quantity(name, value) for name, value in arguments.items())


def rate(name: str, value: object) -> Result:
    """A rate in FLOP/s; one below 10⁹ was meant in tera, and the error says so.

    >>> rate("peak_flops", 312)
    Traceback (most recent call last):
    ...
    ValueError: peak_flops=312 is below 10⁹ FLOP/s: a rate in TFLOP/s? Write 312e12
    """
    number = quantity(name, value)
    tera = not is_array(number) and number < 1e6
    meant = f" Write {number:g}e12" if tera else ""
    problem = f"is below 10⁹ FLOP/s: a rate in TFLOP/s?{meant}"
    _require(name, number, number >= 1e9, problem)
    return number


def share(name: str, value: object) -> Result:
    """A share of a whole: above 0 and at most 1.

    >>> share("utilization", 45)
    Traceback (most recent call last):
    ...
    ValueError: utilization=45 is more than 1: a share, not a percentage
    """
    number = quantity(name, value)
    _require(name, number, number <= 1, "is more than 1: a share, not a percentage")
    return number


def flag(name: str, value: object) -> bool:
    """True or False, and nothing that merely looks like it."""
    if type(value).__name__ in ("bool", "bool_"):  # Python's, NumPy's
        return bool(value)
    refuse(name, value, "is neither True nor False")


def choice(name: str, value: object, known: Iterable[str]) -> str:
    """One of the known names; the error lists them, and offers the nearest.

    >>> choice("recompute", "ful", ["none", "selective", "full"])
    Traceback (most recent call last):
    ...
    ValueError: recompute='ful' is unknown, did you mean 'full'? Known: none, selective, full
    """  # noqa: E501
    from difflib import get_close_matches  # only errors need it

    known = list(known)
    if isinstance(value, str) and value in known:
        return value
    near = get_close_matches(show(value), known, n=1)
    offer = f", did you mean {near[0]!r}?" if near else "."
    refuse(name, value, f"is unknown{offer} Known: {', '.join(known)}")


def divides(**arguments: Number) -> None:
    """Refuse two named numbers of which the second does not divide the first.

    >>> divides(hidden_size=770, num_heads=12)
    Traceback (most recent call last):
    ...
    ValueError: hidden_size=770 is not divisible by num_heads=12
    """
    (name, whole), (divisor_name, divisor) = arguments.items()
    problem = f"is not divisible by {_named(divisor_name, divisor)}"
    arrays = is_array(whole) or is_array(divisor)
    holds = _whole(whole / divisor) if arrays else whole % divisor == 0
    _require(name, whole, holds, problem)


def at_most(**arguments: Any) -> None:
    """Refuse two named numbers of which the first is more than the second.

    >>> at_most(experts_per_token=9, num_experts=8)
    Traceback (most recent call last):
    ...
    ValueError: experts_per_token=9 is more than num_experts=8
    """
    (name, value), (limit_name, limit) = arguments.items()
    _require(name, value, value <= limit, f"is more than {_named(limit_name, limit)}")


def single(name: str, value: object, least: int = 1) -> int:
    """A `count` that must be one number, not an array."""
    if is_array(value):
        refuse(name, value, "is an array: here it must be one number")
    return int(count(name, value, least))


def instance(name: str, value: Any, kind: type) -> None:
    """Refuse what is not of this class.

    >>> instance("model", "gpt2", dict)
    Traceback (most recent call last):
    ...
    ValueError: model='gpt2' is no dict
    """
    if not isinstance(value, kind):
        refuse(name, value, f"is no {kind.__name__}")


def is_array(value: object) -> bool:
    """Whether this is an array (or a column of a table) rather than one number."""
    return getattr(value, "shape", ()) != ()


def _named(name: str, value: Number) -> str:
    return name if is_array(value) else f"{name}={show(value)}"


def _whole(number: Result) -> Any:
    """Whether there is no fraction; of an array by rounding, which is faster."""
    return number == number.round() if is_array(number) else number % 1 == 0


def _finite(name: str, value: object) -> Result:
    number = _number(name, value)
    _require(name, number, abs(number) <= LARGEST, "is not a finite number below 1e40")
    return number


def _number(name: str, value: Any) -> Result:
    """The value as int, float or float64 array."""
    if hasattr(value, "dtype") and not is_array(value):
        value = value.item()
    if hasattr(value, "dtype"):
        return _array(name, value)
    if isinstance(value, (list, tuple)):
        refuse(name, value, "is no number (several at once go in as a NumPy array)")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        refuse(name, value, "is not a number")
    return value


def _array(name: str, value: Any) -> NDArray[Any]:
    """A read-only float64 copy of an array, or of a column without its index."""
    if type(value).__name__ in ("matrix", "MaskedArray"):
        refuse(name, value, "is no plain array")
    if getattr(value.dtype, "kind", "O") not in "iuf":
        raise ValueError(f"{name} is an array of {value.dtype}, not of numbers")
    if hasattr(value, "to_numpy"):
        array: NDArray[Any] = value.to_numpy("float64", copy=True, na_value=math.nan)
    else:
        array = value.astype("float64")
    array.setflags(write=False)
    return array


def _require(name: str, value: Number, holds: Any, problem: str) -> None:
    """Refuse the value, or the first of an array's, for which `holds` is false."""
    if not is_array(value):
        if not (holds.all() if is_array(holds) else holds):
            refuse(name, value, problem)
    elif not holds.all():
        first = (value + 0 * holds)[~holds].tolist()[0]  # as broadcast as `holds` is
        refuse(name, first, f"{problem} (in an array)")
