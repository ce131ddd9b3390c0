"""What `units` prints of a number, whose unit somebody may be asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from llmtrain_helpers import units
from llmtrain_helpers.checks import LARGEST

IN_A_UNIT: dict[str, tuple[str, list[Callable[[float], str]]]] = {
    "time": ("s", [units.duration, units.seconds]),
    "memory": ("bytes", [units.gigabytes, units.gibibytes]),
    "work": ("FLOP", [units.flops]),
    "rate": ("FLOP/s", [units.flops_per_second]),
    "bandwidth": ("B/s", [partial(units.si, unit="B/s")]),
    "share": ("share", [units.percent]),
    "dollars": ("dollars", [units.dollars]),
}
"""What prints a kind of number with its unit, and the unit in which it takes them."""

BARE = [units.exact, units.count, units.powers, units.digits]
"""What prints a number alone, in the unit that is asked for."""


def printed(number: float, unit: str) -> dict[str, float]:
    """The texts of a number in one of `units.UNITS` or in none, and what each should read as."""
    kind = units.UNITS.get(unit, "")
    if kind not in IN_A_UNIT:
        whole = round(number)
        values = {one(whole): whole for one in [*BARE, units.size, units.short]}
        if unit and unit != "times":
            noun = "pass" if unit == "passes" else unit.removesuffix("s")
            values |= {units.plural(whole, noun): whole}
        return values | {units.digits(number): number, units.count(number): number}
    base, printers = IN_A_UNIT[kind]
    length = units.read_as(f"1 {unit}", base).number
    texts = {one(number) for one in BARE if one is not units.exact or number % 1 == 0}
    for one in printers if number * length < LARGEST else ():
        texts |= {one(number * length), units.edited(number * length, one)}
    return dict.fromkeys(texts, number)
