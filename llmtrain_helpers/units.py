"""Numbers as text for people: three significant digits, and always a unit.

Shared by all chapters. The formulas take and return SI base units (FLOP, FLOP/s,
bytes, seconds, tokens); only this module turns 1.54e14 into "154 TFLOP/s". Bytes are
written in GB (10^9) or GiB (2^30), and the text always says which: they differ by 7%.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from llmtrain_helpers.checks import at_most, instance, one, refuse, show, single

MINUTE, HOUR, DAY = 60, 3600, 86400
"""Seconds in each."""

YEAR = 365.25 * DAY
"""Seconds in a Julian year; a twelfth of it is the 30.4 days of a mean month."""

GB, GiB = 10**9, 2**30
"""Bytes in a gigabyte (SI) and in a gibibyte (IEC 80000-13)."""

_SI = ["", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q"]
_IEC = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"]
_SPANS = [(1, "s"), (MINUTE, "minutes"), (HOUR, "hours"), (DAY, "days"), (YEAR, "years")]
_WORDS = ["", " thousand", " million", " billion", " trillion", " quadrillion"]


def exact(number: float) -> str:
    """A count with all its digits, grouped by thousands.

    >>> exact(18437658624)
    '18,437,658,624'
    """
    return f"{round(one('number', number)):,}"


def count(number: float, significant: int = 3) -> str:
    """A count in words; use two digits for an estimate.

    >>> count(18437658624), count(300e9), count(96), count(47.3e9, 2)
    ('18.4 billion', '300 billion', '96', '47 billion')
    """
    number, significant = one("number", number), _checked(significant)
    if float(number).is_integer() and abs(number) < 10**significant:
        return f"{int(number)}"
    return _scaled(number, 1000, _WORDS, significant)


def powers(number: float) -> str:
    """A very large number as a power of ten; one below a quadrillion in words.

    >>> powers(2.26e21), powers(109.2e12)
    ('2.26 × 10²¹', '109 trillion')
    """
    number = one("number", number)
    if number < 10**15:
        return count(number)
    digits, power = f"{number:.2e}".split("e")
    return f"{digits} × 10{''.join('⁰¹²³⁴⁵⁶⁷⁸⁹'[int(x)] for x in str(int(power)))}"


def plural(number: float, noun: str) -> str:
    """A whole number of things, with the noun in the plural unless there's only one.

    >>> plural(1, "GPU"), plural(4096, "GPU"), plural(2, "pass")
    ('1 GPU', '4,096 GPUs', '2 passes')
    """
    instance("noun", noun, str)
    ending = "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{exact(number)} {noun}{'' if number == 1 else ending}"


def size(parameters: float) -> str:
    """The size of a model as people say it, in two digits.

    >>> size(480e6), size(7.06e9), size(1e12)
    ('480M', '7.1B', '1.0T')
    """
    return _scaled(one("parameters", parameters), 1000, ["", "k", "M", "B", "T"], 2)


def flops(number: float) -> str:
    """A number of floating-point operations: a count, not a rate.

    >>> flops(3.15e23)
    '315 ZFLOP'
    """
    return si(number, "FLOP")


def flops_per_second(number: float) -> str:
    """A rate of floating-point operations.

    >>> flops_per_second(154.02e12)
    '154 TFLOP/s'
    """
    return si(number, "FLOP/s")


def gigabytes(number: float) -> str:
    """Bytes in powers of 1000, as vendors and papers print them.

    >>> gigabytes(275.4e9), gigabytes(80 * 2**30)
    ('275 GB', '85.9 GB')
    """
    return si(number, "B")


def gibibytes(number: float) -> str:
    """Bytes in powers of 1024, as `nvidia-smi` and PyTorch's allocator count them.

    >>> gibibytes(275.4e9), gibibytes(80 * 2**30)
    ('256 GiB', '80.0 GiB')
    """
    return _scaled(number, 1024, [f" {prefix}B" for prefix in _IEC])


def si(number: float, unit: str) -> str:
    """A number with an SI prefix before any unit.

    >>> si(1.4e12, "J")
    '1.40 TJ'
    """
    instance("unit", unit, str)
    return _scaled(number, 1000, [f" {prefix}{unit}" for prefix in _SI])


def duration(seconds: float, significant: int = 3) -> str:
    """Seconds in the unit that people would use; use two digits for an estimate.

    >>> duration(2.93e6), duration(32.09), duration(5400), duration(2.93e6, 2)
    ('33.9 days', '32.1 s', '1.50 hours', '34 days')
    """
    seconds, significant = one("seconds", seconds), _checked(significant)
    if seconds < 0:
        return f"-{duration(-seconds, significant)}"
    length, name = _SPANS[0]
    for larger, its_name in _SPANS[1:]:
        start = 10 * larger if its_name == "years" else larger
        formatted = _rounded(seconds / length) * length  # 59.99 s would read 60.0 s
        if max(seconds, formatted) >= start:
            seconds, length, name = max(seconds, start), larger, its_name
    return f"{_digits(seconds / length, significant)} {name}"


def seconds(time: float) -> str:
    """A short time that comes from a model, in two digits, in ms or s.

    >>> seconds(47.8), seconds(0.0962), seconds(123.4), seconds(1.0)
    ('48 s', '96 ms', '120 s', '1.0 s')
    """
    time = one("time", time)
    return f"{_digits(1e3 * time, 2)} ms" if time < 0.0995 else f"{_digits(time, 2)} s"


def percent(share: float) -> str:
    """A share (1 is the whole) in percent.

    >>> percent(0.493658), percent(1.01), percent(-0.128)
    ('49.4%', '101%', '-12.8%')
    """
    return f"{_digits(100 * one('share', share))}%"


def share(part: float) -> str:
    """A share that comes from a model, in whole percent.

    >>> share(0.2663), share(0.004), share(0)
    ('27%', 'under 1%', '0%')
    """
    part = one("part", part)
    return "under 1%" if 0 < part < 0.005 else f"{100 * part:.0f}%"


def dollars(amount: float, significant: int = 3) -> str:
    """An amount of US dollars; use two digits for an estimate.

    >>> dollars(3_552_000 * 2.5), dollars(950), dollars(94521, 2)
    ('$8.88 million', '$950', '$95 thousand')
    """
    amount, significant = one("amount", amount), _checked(significant)
    sign = "-" if amount < 0 else ""
    return f"{sign}${_scaled(abs(amount), 1000, _WORDS, significant)}"


def about(number: float, unit: Callable[[float], str] = count) -> str:
    """A number that depends on an assumption: two digits, without trailing zeros.

    >>> about(37808), about(94521, dollars), about(1.02e9)
    ('38 thousand', '$95 thousand', '1 billion')
    """
    if not callable(unit):
        refuse("unit", unit, "isn't a function that writes a number in words")
    return edited(float(f"{one('number', number):.1e}"), unit)


def edited(number: float, unit: Callable[[float], str] = count) -> str:
    """A number in three digits as people write it, without trailing zeros.

    >>> edited(28e9, gigabytes), edited(31.5e9, gigabytes)
    ('28 GB', '31.5 GB')
    """
    if not callable(unit):
        refuse("unit", unit, "isn't a function that writes a number in words")
    written = unit(one("number", number))
    instance("unit", written, str)
    return _without_zeros(written)


def _without_zeros(text: str) -> str:
    """Remove trailing zeros after the point."""
    return re.sub(r"(\d)\.0+(?=\s|$)|(\.\d*[1-9])0+(?=\s|$)", r"\1\2", text)


def ratio(number: float) -> str:
    """An estimate divided by what was reported, to three decimals.

    >>> ratio(33.9084 / 34)
    '0.997'
    """
    return f"{one('number', number):.3f}"


def digits(number: float, significant: int = 3) -> str:
    """A number with this many significant digits, never in powers of ten.

    >>> digits(33.9084), digits(0.0123456), digits(1048.3), digits(0)
    ('33.9', '0.0123', '1,050', '0')
    """
    return _digits(one("number", number), _checked(significant))


def _checked(significant: int) -> int:
    """Check a number of digits: at most as many as a float can hold."""
    digits = single("significant", significant)
    at_most("significant", digits, "what a float holds", 17)
    return digits


def _digits(number: float, significant: int = 3) -> str:
    if number == 0:
        return "0"
    mantissa, exponent = f"{number:.{significant - 1}e}".split("e")
    whole, places = int(mantissa.replace(".", "")), significant - 1 - int(exponent)
    return f"{whole * 10**-places:,}" if places <= 0 else f"{whole / 10**places:,.{places}f}"


def read(text: object) -> float:
    """Read a number as people write it, exactly if it's whole; return a plain number as it is.

    k, M, B (or G), T, P, E, Z stand for 10³ to 10²¹, and so do thousand to quadrillion;
    commas group thousands; % is a hundredth; plain numbers can be combined with /, * and
    **. Anything else, including a unit, is a ValueError that says how to write it.

    >>> read("7B"), read("300e9"), read("15T"), read("8k"), read("1,024"), read("2.5")
    (7000000000, 300000000000, 15000000000000, 8000, 1024, 2.5)
    >>> read("1/64"), read("2**16"), read("4 * 2**-7 / 2")
    (0.015625, 65536, 0.015625)
    >>> read("2,5")
    Traceback (most recent call last):
    ...
    ValueError: text='2,5' isn't a number: commas group thousands (1,024), a point is 2.5
    """
    return read_as(text).number


@dataclass(frozen=True)
class Written:
    """A number that somebody wrote, in the unit that was asked for.

    `unit` is the one that was written after it, as in `UNITS` ("" for none). If
    that's another one than was asked for, `message` says how it was understood.
    """

    number: float
    unit: str = ""
    message: str = ""


def read_as(text: object, unit: str = "") -> Written:
    """Read a number as people write it, and convert it to the unit you ask for.

    text  what `read` takes, and a unit behind it: "22.4 days", "44.2 GB", "64 GPUs"
    unit  the name of one of `UNITS`; "" to read a number alone

    A number without a unit is taken to be in the unit you ask for. Whatever this module
    prints can be read back: if you ask for bytes, `16.0 B` is 16 bytes, not 16 billion.
    Raises ValueError if it isn't a number, or if its unit is of another kind (days aren't
    bytes). GB and GiB are different units.

    >>> read_as("22.4 days", "days").number, read_as("16 GiB", "bytes").number
    (22.4, 17179869184)
    >>> read_as("538 hours", "days").message
    "you wrote 538 hours, that's 22.4 days"
    >>> read_as("22.4 days", "bytes")
    Traceback (most recent call last):
    ...
    ValueError: text='22.4 days': these are days; we asked for bytes
    """
    instance("unit", unit, str)
    if unit not in UNITS and unit:
        refuse("unit", unit, "isn't a unit that can be read here")
    if not isinstance(text, str):
        return Written(one("text", text))
    written = _plain(text)
    match = re.fullmatch(_WRITTEN, written)
    if match is None and re.fullmatch(r"[\d,_]{61,}", text.strip()):
        refuse("text", text, "is larger than any number here")
    if match is None:
        refuse("text", text, f"isn't a number: {_hint(text)}")
    power, name = _behind(match["behind"], unit)
    several = re.search(r"[*/]", match["number"])
    if power is None or (several and power):
        if unit and power is None:
            problem = f"{match['behind'].strip()!r} isn't a unit we know; {_asked(unit)}"
            raise ValueError(f"text={show(text)}: {problem}")
        refuse("text", text, f"isn't a number: {_hint(text)}")
    over, under = _fraction(match["number"], power, text)
    name = name or ("dollars" if match["dollar"] and unit else "")
    if not unit and name == "%":
        under *= 100
    elif not unit and name:
        raise ValueError(f"text={show(text)}: give the number alone, without its unit")
    elif name and UNITS[name] != UNITS[unit]:
        problem = f"these are {_in_words(name)}; {_asked(unit)}"
        raise ValueError(f"text={show(text)}: {problem}")
    elif name:
        over, under = over * _FACTORS[name], under * _FACTORS[unit]
    number = one("text", over // under if over % under == 0 else over / under)
    if name in ("", unit) or UNITS[name] not in ("time", "memory"):  # TFLOP say it themselves
        return Written(number, name)
    formatted = count(number) if abs(number) >= 10**6 else digits(number)
    message = f"you wrote {written}, that's {_without_zeros(formatted)} {_in_words(unit)}"
    return Written(number, name, message)


def _plain(text: str) -> str:
    """The text in one line, with the characters of a keyboard; "" if it's too long."""
    if len(text) > 60:
        return ""
    text = re.sub(r"^\s*-\s*\$", "$-", text.translate(_SIGNS))
    text = re.sub("[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda match: f"**{match[0].translate(_RAISED)}", text)
    return " ".join(text.split())


def _behind(words: str, unit: str) -> tuple[int | None, str]:
    """The power of ten and the unit that the words after a number mean; None for neither."""
    words = words.strip()
    if not words:
        return 0, ""
    if name := _unit(words, unit):
        return 0, name
    size, _, rest = words.partition(" ")
    power = _POWERS.get(size.casefold())
    name = _unit(rest, unit) if rest else ""
    return (None, "") if power is None or (rest and not name) else (power, name)


def _unit(words: str, unit: str) -> str:
    """The unit that these words mean, or ""; "TFLOPS" is a rate, "TFLOPs" a count."""
    if name := _LETTERS.get(UNITS.get(unit, ""), {}).get(words):
        return name
    flops = re.fullmatch(r"([kMGTPEZYRQ]?)flop(s?)(?:(?:/| per )s(?:ec(?:ond)?)?)?", words, re.I)
    if flops:
        prefix = "k" if flops[1] in "kK" and flops[1] else flops[1].upper()
        rate = not words.casefold().endswith(("flop", "flops")) or words.endswith("FLOPS")
        if words.islower() and UNITS.get(unit) == "rate":  # "tflops" may be either
            rate = True
        return f"{prefix}FLOP/s" if rate else f"{prefix}FLOP"
    return _SPELLED.get(words.casefold().replace("-", " ").rstrip("."), "")


def _in_words(unit: str) -> str:
    """A unit as we write it after a number or after "these are"."""
    return {"s": "seconds", "%": "percent"}.get(unit, unit)


def _asked(unit: str) -> str:
    return f"we asked for {'a share' if unit == 'share' else _in_words(unit)}"


def _fraction(written: str, power: int, text: str) -> tuple[int, int]:
    """Multiply, divide and raise plain numbers, times a power of ten; return a fraction."""
    over: int = 10 ** max(power, 0)
    under: int = 10 ** max(-power, 0)
    for sign, base, raised in re.findall(_FACTOR, written):
        top, bottom = _decimal(base, text)
        exponent = int(raised or 1)
        if max(top.bit_length(), bottom.bit_length()) * abs(exponent) > _MOST_BITS:
            refuse("text", text, "is larger or smaller than any number here")
        negative = base.startswith("-")
        top, bottom = abs(top) ** abs(exponent), bottom ** abs(exponent)
        if (exponent < 0) != (sign == "/"):
            top, bottom = bottom, top
        over, under = over * (-top if negative else top), under * bottom
    if under == 0:
        refuse("text", text, "divides by zero")
    if over.bit_length() > under.bit_length() + _MOST_BITS:
        refuse("text", text, "is larger or smaller than any number here")
    return over, under


def _decimal(written: str, text: str) -> tuple[int, int]:
    """A decimal number as a fraction: its numerator, and a power of ten."""
    mantissa, _, exponent = re.sub("[,_+]", "", written).lower().partition("e")
    if abs(int(exponent or 0)) > _MOST_POWER:
        refuse("text", text, "is larger or smaller than any number here")
    whole, _, fraction = mantissa.partition(".")
    power = int(exponent or 0) - len(fraction)
    return int(whole + fraction) * 10 ** max(power, 0), 10 ** max(-power, 0)


def find_unit(words: str) -> str:
    """Find which of `UNITS` some words mean; "" if they don't mean any.

    >>> find_unit("seconds"), find_unit("in a row")
    ('s', '')
    """
    instance("words", words, str)
    return _unit(words, "")


def spellings(unit: str) -> list[str]:
    """How people write one of `UNITS`, in lower case.

    >>> spellings("times"), spellings("years")
    (['times', 'time', 'x'], ['years', 'year', 'yr', 'yrs'])
    """
    instance("unit", unit, str)
    if unit not in UNITS:
        refuse("unit", unit, "isn't a unit that can be read here")
    return [words for words, name in _SPELLED.items() if name == unit]


def short(number: float) -> str:
    """A number in few characters, such that `read` gets exactly this number back.

    >>> short(300_000_000_000), short(8192), short(2.5), short(12_500_000)
    ('300B', '8,192', '2.5', '12.5M')
    """
    x = one("number", number)
    for power, letter in ((12, "T"), (9, "B"), (6, "M")):
        written = f"{x / 10**power:.10g}{letter}"
        if abs(x) >= 10**power and "e" not in written and read(written) == x:
            return written
    return f"{x:,}" if float(x).is_integer() else f"{x:,.10g}"


def _hint(text: str) -> str:
    if re.fullmatch(r"\d+,\d{1,2} ?[A-Za-z%]*", text.strip()):
        return "commas group thousands (1,024), a point is 2.5"
    return "write 7B, 300e9, 15T, 8k, 1,024 or 2.5"


_NUMBER = r"[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d[\d_]*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_POWER = rf"{_NUMBER}(?: ?(?:\*\*|\^) ?[+-]?\d+)?"
_WRITTEN = (
    rf"(?P<dollar>\$?) ?(?P<number>{_POWER}(?: ?(?:\*(?!\*)|/) ?{_POWER})*)"
    r"(?P<behind> ?(?:[A-Za-zµ%][A-Za-z/. -]*)?)"
)
_FACTOR = rf"(^|[*/]) ?({_NUMBER})(?: ?(?:\*\*|\^) ?([+-]?\d+))?"
_MOST_BITS = 1000
"""The most bits that a power may have in its numerator, or in its denominator."""

_MOST_POWER = 99
"""The largest power of ten after an e: 1e99."""

_SIGNS = str.maketrans("−–·×\u00a0\u202f\u2009μ", "--**   µ")
_RAISED = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")

_POWERS = {"": 0, "k": 3, "m": 6, "b": 9, "g": 9, "t": 12, "p": 15, "e": 18}
_POWERS |= {"z": 21} | {word.strip(): 3 * i for i, word in enumerate(_WORDS) if i}
"""What people write after a number, and the power of ten that it means."""

_LENGTHS = {"minutes": MINUTE, "hours": HOUR, "days": DAY, "weeks": 7 * DAY}
_LENGTHS |= {"months": round(YEAR / 12), "years": round(YEAR)}

_OF_KIND: dict[str, dict[str, int]] = {
    "time": {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9}
    | {name: 10**9 * length for name, length in _LENGTHS.items()},
    "memory": {"bytes": 1}
    | {f"{prefix}B": 1000**i for i, prefix in enumerate(_SI) if i}
    | {f"{prefix}B": 1024**i for i, prefix in enumerate(_IEC) if i},
    "work": {f"{prefix}FLOP": 1000**i for i, prefix in enumerate(_SI)},
    "rate": {f"{prefix}FLOP/s": 1000**i for i, prefix in enumerate(_SI)},
    "bandwidth": {f"{prefix}B/s": 1000**i for i, prefix in enumerate(_SI)},
    "share": {"share": 100, "%": 1},
}
_THINGS = ["GPUs", "tokens", "parameters", "sequences", "passes", "steps", "nodes", "layers"]
_THINGS += ["stages", "times", "dollars", "GPU-hours"]
_OF_KIND |= {thing: {thing: 1} for thing in _THINGS}

UNITS = {unit: kind for kind, units in _OF_KIND.items() for unit in units}
"""The units that you can ask `read_as` for, and the kind of each."""

_FACTORS = {unit: factor for units in _OF_KIND.values() for unit, factor in units.items()}

_LETTERS = {"memory": {"B": "bytes", "b": "bytes", "G": "GB", "T": "TB"}, "time": {"m": "minutes"}}
"""Letters that mean a unit if you ask for its kind, and a power of ten otherwise."""

_SPELLED = {unit.casefold().replace("-", " "): unit for unit in UNITS}
_SPELLED |= {unit.casefold().replace("-", " ").removesuffix("s"): unit for unit in _THINGS}
_SPELLED |= {
    f"{unit[:-1]}{end}": unit
    for unit in ["days", "hours", "weeks", "months", "years"]
    for end in ("", "s")
}
_SPELLED |= dict.fromkeys(["sec", "secs", "second", "seconds"], "s")
_SPELLED |= dict.fromkeys(["min", "mins", "minute"], "minutes")
_SPELLED |= dict.fromkeys(["h", "hr", "hrs"], "hours") | {
    "d": "days",
    "yr": "years",
    "yrs": "years",
}
_SPELLED |= {"us": "µs", "byte": "bytes", "percent": "%", "per cent": "%", "pass": "passes"}
_SPELLED |= {"x": "times", "usd": "dollars", "params": "parameters", "param": "parameters"}
_SPELLED |= {"iterations": "steps", "iteration": "steps", "gpu h": "GPU-hours"}
"""Units as people write them, in lower case, with spaces instead of hyphens."""


def _rounded(number: float, significant: int = 3) -> float:
    """The absolute value, rounded to this many significant digits."""
    return abs(float(f"{number:.{significant - 1}e}"))


def _scaled(number: float, base: int, names: list[str], significant: int = 3) -> str:
    """The number over the largest power of `base` that leaves at least one."""
    number, power = one("number", number), 0
    while power < len(names) - 1 and _rounded(number / base ** (power + 1), significant) >= 1:
        power += 1
    return f"{_digits(number / base**power, significant)}{names[power]}"
