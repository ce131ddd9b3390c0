"""Checks that refuse bad input where it enters, with a ValueError that says what's right.

Shared by all chapters. Each check takes an argument's name and its value, and returns the
value ready for arithmetic: a whole number as an exact Python int (also when it was
written `300e9` or `np.int64(96)`), any other number as a float, an array of numbers as
float64, in which integers can't wrap around. We recognise an array by its dtype, and only
import NumPy if there is one, or if a function needs it (`numpy`, `floats`).

A formula names its checks in the signature and is `checked`; a check of two arguments at
once (`divides`, `at_most`) is in its body.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import wraps
from itertools import accumulate
from types import ModuleType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Never,
    NoReturn,
    TypeAlias,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

Number: TypeAlias = Union[int, float, "NDArray[Any]"]
"""A single number, or an array of numbers that a formula broadcasts over."""

if TYPE_CHECKING:
    Result: TypeAlias = float
    Size: TypeAlias = int
else:
    Result = Size = Number
"""What a formula returns: a number when given numbers; a `Size` is a count, an int when given
ints. Given an array, both are arrays: type checkers aren't told, so that a user's code needs
no case for them."""

T = TypeVar("T")

_Word = TypeVar("_Word", bound=str)

LARGEST, SMALLEST = 1e40, 1e-40
"""Every count, rate or size of a real run is in between; the rest are mistakes or attacks."""

_PLAIN = frozenset([int, float])
"""The types of most numbers. They're checked first, because a plan checks thousands."""

_SINGLE = frozenset([int, float, str, bool, NoneType])
"""Types that are never arrays, so nobody has to look closer."""


def refuse(name: str, value: object, problem: str) -> NoReturn:
    """Raise the ValueError `name=value problem`, with a long value cut short."""
    raise ValueError(f"{name}={show(value)} {problem}")


def show(value: object) -> str:
    """The value as an error message prints it: at most 60 characters, and no address."""
    if type(value) is int and abs(value) > LARGEST:
        sign = "-" if value < 0 else ""
        return f"{sign}10^{int(abs(value).bit_length() * math.log10(2))}"
    try:
        text = " ".join(repr(value).split())  # arrays and tables fill several lines
        text = re.sub(r" at 0x[0-9A-Fa-f]+(?=>)", "", text)  # an address means nothing to people
    except KeyboardInterrupt:
        raise
    except BaseException:  # too deep, or a repr of its own that fails
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else f"{text[:57]}..."


def shallow(text: str, most: int = 100) -> str:
    """Return a JSON text if its brackets nest no deeper than this, or raise ValueError.

    A parser that calls itself more often crashes Python in a web page.

    >>> shallow('{"a": [1, "[["]}', most=2)
    '{"a": [1, "[["]}'
    """
    bare = re.sub(r'"[^"\\]*(?:\\.[^"\\]*)*"', "", text)
    depths = accumulate((letter in "[{") - (letter in "]}") for letter in bare)
    if max(depths, default=0) > most:
        raise ValueError(f"its brackets nest deeper than {most}")
    return text


def count(name: str, value: object, least: int = 1) -> Size:
    """A whole number of at least `least`, exact, or an array of such numbers.

    >>> count("tokens", 300e9)
    300000000000
    >>> count("num_layers", 2.5)
    Traceback (most recent call last):
    ...
    ValueError: num_layers=2.5 is not a whole number
    """
    if type(value) is int and least <= value <= LARGEST:
        return value
    number = finite(name, value)
    _require(name, number, _whole(number), "is not a whole number")
    problem = "is not positive" if least == 1 else f"is less than {least}"
    _require(name, number, number >= least, problem)
    return int(number) if isinstance(number, float) else number


def whole(name: str, value: object) -> Size:
    """A `count` that may be zero.

    >>> whole("seed", 0)
    0
    """
    return count(name, value, least=0)


def counts(**arguments: object) -> tuple[Size, ...]:
    """Apply `count` to several arguments at once, in their order; arrays must broadcast."""
    return _together(count, arguments)


def quantity(name: str, value: object) -> Result:
    """A positive, finite number, whole or not, or an array of such numbers.

    >>> quantity("seconds", 32.09)
    32.09
    >>> quantity("seconds", 0)
    Traceback (most recent call last):
    ...
    ValueError: seconds=0 is not positive
    """
    number = finite(name, value)
    _require(name, number, number >= SMALLEST, "is not positive")
    # NumPy's arrays can't hold a larger int, so it couldn't be combined with one.
    return float(number) if type(number) is int and number >= 2**63 else number


def amount(name: str, value: object, most: float = LARGEST) -> Result:
    """A finite number that's positive or zero.

    >>> amount("main_gradients", 0)
    0
    """
    number = finite(name, value, most)
    _require(name, number, number >= 0, "is negative")
    return number


def broadcast(**arguments: object) -> None:
    """Refuse named arrays if two of them don't broadcast against each other.

    >>> import numpy as np
    >>> broadcast(seconds=np.ones(3), num_gpus=np.ones((2, 1)), tokens=np.ones(4))
    Traceback (most recent call last):
    ...
    ValueError: seconds and tokens do not broadcast: shapes (3,) and (4,)
    """
    longest: dict[int, tuple[str, int]] = {}  # by axis, counted from the last
    for name, value in arguments.items():
        if type(value) in _PLAIN:
            continue
        for axis, size in enumerate(reversed(getattr(value, "shape", ()))):
            other, its_size = longest.setdefault(axis, (name, size))
            if its_size == 1:
                longest[axis] = name, size
            elif size not in (1, its_size):
                ours, its = (getattr(arguments[x], "shape", ()) for x in (name, other))
                raise ValueError(f"{other} and {name} do not broadcast: shapes {its} and {ours}")


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
    """Check for True or False, and nothing that merely looks like it."""
    if type(value).__name__ in ("bool", "bool_"):  # Python's, NumPy's
        return bool(value)
    refuse(name, value, "is neither True nor False")


def choice(name: str, value: object, choices: Iterable[_Word]) -> _Word:
    """Check for one of these names; the error lists them, and offers the nearest.

    >>> choice("recompute", "ful", ["none", "selective", "full"])
    Traceback (most recent call last):
    ...
    ValueError: recompute='ful' is unknown, did you mean 'full'? Known: none, selective, full
    """
    words = list(choices)
    if isinstance(value, str) and value in words:
        return value
    from difflib import get_close_matches  # only errors need it

    near = get_close_matches(show(value), words, n=1)
    offer = f", did you mean {near[0]!r}?" if near else "."
    refuse(name, value, f"is unknown{offer} Known: {', '.join(words)}")


def divides(name: str, whole: Number, divisor_name: str, divisor: Number) -> None:
    """Refuse a number that another one doesn't divide; the error names both.

    >>> divides("hidden_size", 770, "num_heads", 12)
    Traceback (most recent call last):
    ...
    ValueError: hidden_size=770 is not divisible by num_heads=12
    """
    if type(whole) is type(divisor) is int and divisor and whole % divisor == 0:
        return
    broadcast(**{name: whole, divisor_name: divisor})
    problem = f"is not divisible by {_named(divisor_name, divisor)}"
    arrays = is_array(whole) or is_array(divisor)
    holds = _whole(whole / divisor) if arrays else whole % divisor == 0
    _require(name, whole, holds, problem)


def at_most(name: str, value: Number, limit_name: str, limit: Number) -> None:
    """Refuse a number that's more than another one; the error names both.

    >>> at_most("experts_per_token", 9, "num_experts", 8)
    Traceback (most recent call last):
    ...
    ValueError: experts_per_token=9 is more than num_experts=8
    """
    if type(value) in _PLAIN and type(limit) in _PLAIN and value <= limit:
        return
    broadcast(**{name: value, limit_name: limit})
    _require(name, value, value <= limit, f"is more than {_named(limit_name, limit)}")


def one(name: str, value: object, check: Callable[[str, object], Result] | None = None) -> Result:
    """A single number, not an array, that passes `check` (or is finite, if there's no check).

    >>> one("memory", 80e9, quantity)
    80000000000.0
    """
    if is_array(value):
        refuse(name, value, "is an array: here it must be one number")
    return check(name, value) if check else finite(name, value)


def single(name: str, value: object, least: int = 1) -> int:
    """A `count` that must be one number, not an array."""
    one(name, value)
    return int(count(name, value, least))


def finite(name: str, value: object, most: float = LARGEST) -> Result:
    """A number of either sign that's neither infinite nor NaN, or an array of such numbers.

    >>> finite("share", -0.128)
    -0.128
    """
    number = cast(Result, value)
    if type(number) in _PLAIN and -most <= number <= most:
        return number
    number = _number(name, value)
    problem = f"is not a finite number below {most:.2g}".replace("+", "")
    _require(name, number, abs(number) <= most, problem)
    return number


def floats(name: str, values: object) -> NDArray[Any]:
    """Turn numbers, or a list of them, into NumPy's float64; infinity and NaN are allowed.

    >>> floats("values", [1, 2.5])
    array([1. , 2.5])
    """
    np = numpy()
    try:
        array = np.asarray(values) if isinstance(values, (list, tuple)) else values
    except ValueError:  # lists of several lengths
        refuse(name, values, "isn't an array of numbers")
    whole = isinstance(array, int)  # infinity is allowed, but not an int too large for a float
    number = finite(name, array) if whole else _number(name, array)
    return cast("NDArray[Any]", np.asarray(number, dtype="float64"))


def numpy() -> ModuleType:
    """Import NumPy for the few functions that need it; where it's missing, they say so."""
    try:
        import numpy
    except ImportError as missing:
        raise ImportError("this needs NumPy: pip install numpy") from missing
    return numpy


def instance(name: str, value: T, kind: type) -> T:
    """Return the value, if it's of this class.

    >>> instance("model", "gpt2", dict)
    Traceback (most recent call last):
    ...
    ValueError: model='gpt2' isn't a dict
    """
    if not isinstance(value, kind):
        refuse(name, value, f"isn't {'an' if kind.__name__[0] in 'AEIOi' else 'a'} {kind.__name__}")
    return value


def is_array(value: object) -> TypeGuard[NDArray[Any]]:
    """Tell whether this is an array (or a column of a table) rather than one number."""
    return type(value) not in _SINGLE and getattr(value, "shape", ()) != ()


def given(size: Number) -> bool:
    """Tell whether a size is given: an array, or a number other than 0.

    >>> given(64), given(0)
    (True, False)
    """
    return is_array(size) or size != 0


def anywhere(condition: object) -> bool:
    """Tell whether a condition is true, or true somewhere in an array.

    >>> anywhere(True), anywhere(0 > 1)
    (True, False)
    """
    return bool(condition.any() if is_array(condition) else condition)


def as_sizes(*numbers: Number) -> tuple[Size, ...]:
    """Give checked counts back as they are, with the type that formulas calculate with."""
    return cast("tuple[Size, ...]", numbers)


def as_results(*numbers: Number) -> tuple[Result, ...]:
    """Give checked numbers back as they are, with the type that formulas calculate with."""
    return cast("tuple[Result, ...]", numbers)


# --- checks in a signature

Count = Annotated[T, count]
Whole = Annotated[T, whole]
Quantity = Annotated[T, quantity]
Amount = Annotated[T, amount]
Rate = Annotated[T, rate]
Share = Annotated[T, share]
Finite = Annotated[T, finite]
"""Arguments that have to pass the check of that name: `Count[int]` and `Quantity[float]` are
one number, `Quantity[float | Array]` is a number or an array."""

Exact = TypeVar("Exact", int, float)
"""If all of these arguments are ints, the formula returns an int, otherwise a float."""

Array = TypeVar("Array", Never, "NDArray[Any]")
"""If one of the arguments is an array, the formula returns an array."""

_F = TypeVar("_F", bound=Callable[..., Any])

_Check: TypeAlias = Callable[[str, Any], Any]


def checked(function: _F) -> _F:
    """Make a function check its arguments as their annotations say.

    `Count` and the like are checks of this module; a `bool` has to pass `flag`, a `Literal`
    has to be one of its choices, and for a class the argument has to be an instance of it.
    Arrays have to broadcast. A default isn't checked, and neither is None if the annotation
    allows it. For a dataclass, the fields are checked.

    >>> @checked
    ... def gpu_hours(seconds: Quantity[float], num_gpus: Count[float]) -> float:
    ...     return seconds * num_gpus / 3600
    >>> gpu_hours(86400, num_gpus=0)
    Traceback (most recent call last):
    ...
    ValueError: num_gpus=0 is not positive
    """
    if isinstance(function, type):
        kind = cast(Any, function)
        kind.__init__ = checked(kind.__init__)
        return function
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    checks: dict[str, _Check] = {}

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if not checks:  # the first call: now whatever the annotations mention is imported
            checks.update(_checks_of(function))
        values = {**dict(zip(names, arguments, strict=False)), **named}
        if len(values) < len(arguments) + len(named):  # too many of them, or one twice
            return function(*arguments, **named)  # Python's own TypeError
        for name, check in checks.items():
            if name in values:
                values[name] = check(name, values[name])
        if len(values) > 1 and not _SINGLE.issuperset(map(type, values.values())):
            broadcast(**{name: values[name] for name in checks if name in values})
        return function(**values)

    return cast(_F, call)


def unchecked(function: _F) -> _F:
    """Return the function without its checks, for callers whose arguments have passed them."""
    return cast(_F, getattr(function, "__wrapped__", function))


def _checks_of(function: Callable[..., Any]) -> dict[str, _Check]:
    """Read the check of each argument that has one from the annotations."""
    written, names = function.__annotations__, cast(Any, function).__globals__
    hints = {
        name: eval(hint, names) if isinstance(hint, str) else hint for name, hint in written.items()
    }
    checks = {name: _check_of(hint) for name, hint in hints.items() if name != "return"}
    return {name: check for name, check in checks.items() if check}


def _check_of(hint: Any) -> _Check | None:
    """Find the check that an annotation asks for; None if it asks for none."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType) and NoneType in inside:
        kinds = [kind for kind in inside if kind is not NoneType]
        check = _check_of(kinds[0]) if len(kinds) == 1 else None
        return _or_none(check) if check else None
    if origin is Annotated:
        kind, check = inside
        return (lambda name, value: one(name, value, check)) if kind in (int, float) else check
    if origin is Literal:
        return lambda name, value: choice(name, value, inside)
    if hint is bool:
        return flag
    if isinstance(hint, type) and hint not in (int, float, object):
        return lambda name, value: instance(name, value, hint)
    return None


def _or_none(check: _Check) -> _Check:
    return lambda name, value: None if value is None else check(name, value)


# --- counts that are kept with a model


def cache_per_model(function: _F) -> _F:
    """Cache a count for each model that it's called with; calls with an array aren't cached.

    Many plans of one model ask for the same counts. The cache goes by identity, because
    equal models can differ in what a count depends on (an attention window).
    """

    @wraps(function)
    def answer(model: Any, *arguments: Any, **named: Any) -> Any:
        values = (*arguments, *named.values())
        key = (function, values, (*named,), (*map(type, values),))
        try:
            answers = _answers_of(model)
            count = answers.get(key)  # looked up once, because hashing a split is slow
            if count is None:
                count = answers[key] = function(model, *arguments, **named)
            return count
        except TypeError:  # an array has no hash
            return function(model, *arguments, **named)

    return cast(_F, answer)


_MODELS, _ANSWERS = 256, 16_384
"""How many models are cached, and how many answers for each."""

_cache: dict[int, tuple[object, dict[Any, Any]]] = {}
"""The cached models by identity, each with its answers."""


def _answers_of(model: object) -> dict[Any, Any]:
    """Return a model's cached answers; the oldest model makes room for a new one."""
    cached = _cache.get(id(model))
    if cached is None:
        hash(model)  # fails if it holds arrays
        if len(_cache) >= _MODELS:
            _cache.pop(next(iter(_cache)))
        cached = _cache[id(model)] = model, {}
    answers = cached[1]
    if len(answers) >= _ANSWERS:
        answers.clear()
    return answers


def _named(name: str, value: Number) -> str:
    """Write a limit as `name=value`, or as its number followed by a description in words."""
    if is_array(value):
        return name
    if re.fullmatch(r"\w+( ?[·+] ?\w+)*", name):
        return f"{name}={show(value)}"
    return f"{value:,}, {name}"


def _whole(number: Number) -> Any:
    """Tell whether a number is whole; an array is rounded, which is faster."""
    return number == number.round() if is_array(number) else number % 1 == 0


def _together(check: Callable[[str, object], T], arguments: dict[str, object]) -> tuple[T, ...]:
    checked = {name: check(name, value) for name, value in arguments.items()}
    broadcast(**checked)
    return tuple(checked.values())


def _number(name: str, value: Any) -> Result:
    """The value as int, float or float64 array."""
    if is_array(value):
        return cast(Result, _array(name, value))
    if hasattr(value, "dtype"):
        return _scalar(name, value)
    if isinstance(value, (list, tuple)):
        refuse(name, value, "isn't a number (several at once go in as a NumPy array)")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        refuse(name, value, "is not a number")
    return value


def _scalar(name: str, value: Any) -> int | float:
    """Turn a NumPy number, or an array without dimensions, into a Python number."""
    try:
        numeric = getattr(value.dtype, "kind", "f") in "iuf"  # the `item` of a time can be an int
        number = value.item()
        plain: int | float = number if type(number) in _PLAIN else float(number)
    except Exception:  # it has a dtype, but isn't a number
        numeric = False
    if not numeric:
        refuse(name, value, "is not a number")
    if math.isinf(plain) and number != plain:
        refuse(name, value, "is too large for a float")
    return plain


def _array(name: str, value: Any) -> NDArray[Any]:
    """A read-only float64 copy of an array, or of a column without its index."""
    if type(value).__name__ in ("matrix", "MaskedArray"):
        refuse(name, value, "isn't a plain array")
    dtype: Any = getattr(value, "dtype", None)  # a whole table has none
    if getattr(dtype, "kind", "O") not in "iuf":
        kind = f"an array of {dtype}" if dtype else f"a {type(value).__name__}"
        raise ValueError(f"{name} is {kind}, not one number or an array of numbers")
    np = numpy()
    try:
        with np.errstate(over="ignore"):
            array: NDArray[Any] = np.array(value, "float64")
        beyond = np.isinf(array) & np.isfinite(value) if dtype.itemsize > 8 else False
    except Exception:  # it has a dtype and a shape, but isn't an array
        refuse(name, value, "isn't a plain array")
    if array.shape != value.shape:
        refuse(name, value, "isn't a plain array")
    if np.any(beyond):
        refuse(name, value, "is too large for a float (in an array)")
    array.setflags(write=False)
    return array


def _require(name: str, value: Number, holds: Any, problem: str) -> None:
    """Refuse the value, or the first one in an array, for which `holds` is false."""
    if not is_array(value):
        if not (holds.all() if is_array(holds) else holds):
            refuse(name, value, problem)
    elif not holds.all():
        first = (value + 0 * holds)[~holds].tolist()[0]  # as broadcast as `holds` is
        refuse(name, first, f"{problem} (in an array)")
