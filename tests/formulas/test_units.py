"""Numbers as text for people."""

import math
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import units
from llmtrain_helpers.checks import LARGEST
from tests.bad_values import assert_refused
from tests.printed import printed


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.5402e14, "154 TFLOP/s"),
        (9.996e14, "1.00 PFLOP/s"),
        (999.4e12, "999 TFLOP/s"),
        (312e12, "312 TFLOP/s"),
        (0.25, "0.250 FLOP/s"),
        (0, "0 FLOP/s"),
        (-2e9, "-2.00 GFLOP/s"),
    ],
)
def test_rates(number: float, text: str) -> None:
    assert units.flops_per_second(number) == text


def test_gigabytes_and_gibibytes_say_which_they_are() -> None:
    assert units.gigabytes(275.4e9) == "275 GB"
    assert units.gibibytes(275.4e9) == "256 GiB"
    assert units.gibibytes(1023.6 * 2**30) == "1.00 TiB"
    assert units.gigabytes(16) == "16.0 B"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0123, "0.0123 s"),
        (0.9996, "1.00 s"),
        (1, "1.00 s"),
        (-5400, "-1.50 hours"),
        (32.09, "32.1 s"),
        (59.94, "59.9 s"),
        (59.97, "1.00 minutes"),
        (23.97 * 3600, "1.00 days"),
        (5400, "1.50 hours"),
        (33.9084 * 86400, "33.9 days"),
        (2078.3 * 86400, "2,080 days"),
        (100 * units.YEAR, "100 years"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert units.duration(seconds) == text


def test_the_units_are_what_they_are_elsewhere() -> None:
    assert (units.MINUTE, units.HOUR, units.DAY) == (60, 3600, 86400)
    assert units.YEAR == 31_557_600
    assert (units.GB, units.GiB) == (10**9, 1024**3)


def test_every_unit_of_time_begins_at_its_own_length() -> None:
    for length, text in ((units.MINUTE, "minutes"), (units.HOUR, "hours"), (units.DAY, "days")):
        assert units.duration(length) == f"1.00 {text}"
        assert text not in units.duration(0.99 * length)
    assert units.duration(10 * units.YEAR) == "10.0 years"
    assert units.duration(9.99 * units.YEAR) == "3,650 days"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (999, "999"),
        (1000, "1.00 thousand"),
        (-999, "-999"),
        (-1000, "-1.00 thousand"),
        (999.4, "999"),
        (999.5, "1.00 thousand"),
        (2.5, "2.50"),
        (1e6 - 1, "1.00 million"),
        (999.4e15, "999 quadrillion"),
        (1e18, "1,000 quadrillion"),
    ],
)
def test_words_begin_at_a_thousand(number: float, text: str) -> None:
    assert units.count(number) == text


def test_prefixes_begin_at_one_of_theirs() -> None:
    assert units.gigabytes(999) == "999 B"
    assert units.gigabytes(1000) == "1.00 kB"
    assert units.gibibytes(1023) == "1,020 B"
    assert units.gibibytes(1024) == "1.00 KiB"
    assert units.si(1e33, "B") == "1,000 QB"
    assert units.gibibytes(2**90) == "1,020 YiB"


def test_the_greatest_number_can_be_written_by_all() -> None:
    for name in ("exact", "count", "flops", "gibibytes", "duration", "percent"):
        assert getattr(units, name)(LARGEST)
        assert getattr(units, name)(-LARGEST).startswith("-")


def test_shares_dollars_and_ratios_have_their_sign_and_digits() -> None:
    assert units.dollars(-950) == "-$950"
    assert units.dollars(0) == "$0"
    assert units.percent(0) == "0%"
    assert units.ratio(-0.12345) == "-0.123"


def test_as_many_digits_as_are_asked_for() -> None:
    assert units.digits(33.9084, 5) == "33.908"
    assert units.digits(33.9084, significant=1) == "30"
    assert units.digits(0.1, 17) == "0.10000000000000001"
    for bad in (0, 18, 2.5, "3", np.array([3, 4])):
        assert_refused(units.digits, "significant", number=1.0, significant=bad)
    for bad in (None, 3, ["B"]):
        assert_refused(units.si, "unit", number=1.0, unit=bad)


def test_counts_in_words_and_in_full() -> None:
    assert units.count(1008038707200) == "1.01 trillion"
    assert units.count(96) == "96"
    assert units.exact(2**53 + 1) == "9,007,199,254,740,993"


NUMBERS = [0, 0.0962, 1, 16, 59.97, 999, 4096, 12480, 2.93e6, 480e6, 185220464640, 2.26e21, 2e28]


@pytest.mark.parametrize("unit", ["", *units.UNITS])
def test_what_is_printed_reads_back_as_itself_where_its_unit_is_asked(unit: str) -> None:
    for number in NUMBERS:
        for text, value in printed(number, unit).items():
            for written in (text, f"-{text}") if value else (text,):
                read = units.read_as(written, unit).number
                assert math.isclose(abs(read), value, rel_tol=0.0501), (written, unit, read)
                assert (read < 0) == written.startswith("-")


def test_a_letter_is_a_unit_where_one_of_its_kind_is_asked_and_a_power_elsewhere() -> None:
    for text, unit, number in (
        ("185220464640 B", "bytes", 185220464640),
        ("16B", "GB", 16e-9),
        ("80 G", "GB", 80),
        ("1.5T", "GB", 1500),
        ("208 m", "minutes", 208),
        ("208m", "s", 12480),
        ("3M", "s", 3_000_000),
        ("7B", "tokens", 7 * 10**9),
        ("7B", "", 7 * 10**9),
        ("5m", "tokens", 5_000_000),
    ):
        assert units.read_as(text, unit).number == number, (text, unit)


@given(st.floats(min_value=1e-12, max_value=1e30))
def test_digits_keeps_three_significant_digits(number: float) -> None:
    read = float(units.digits(number).replace(",", ""))
    assert math.isclose(read, number, rel_tol=5.001e-3)


@given(st.floats(min_value=1, max_value=9e32))
def test_a_prefix_leaves_at_least_one_and_less_than_a_thousand(number: float) -> None:
    read = float(units.si(number, "FLOP").split()[0])
    assert 1 <= read < 1000


# --- what people write


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1/64", 0.015625),
        ("64/8", 8),
        ("2**16", 65536),
        ("2^16", 65536),
        ("2 ** -6", 0.015625),
        ("2⁻⁶", 0.015625),
        ("4 · 2⁻⁷ / 2", 0.015625),
        ("24576 * 2**20", 24576 * 2**20),
        ("1e3 * 2.5", 2500),
        ("8/3/2", 8 / 6),
        ("-2**2", -4),
        (".35", 0.35),
        ("35 %", 0.35),
        ("35%", 0.35),
        ("28.8 %", 0.288),
        ("1,024", 1024),
        ("$50k", 50_000),
        (" 300 billion ", 300 * 10**9),
        ("12\u202f000 ", None),
    ],
)
def test_a_number_is_read_as_people_write_it(text: str, number: float | None) -> None:
    if number is None:
        assert_refused(units.read, "text", text=text)
        return
    assert units.read(text) == number
    assert type(units.read(text)) is type(number)


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("22.4 days", "days", 22.4),
        ("1 day", "hours", 24),
        ("3.96 s", "s", 3.96),
        ("3.96 sec.", "s", 3.96),
        ("360 ms", "s", 0.36),
        ("1/2 h", "minutes", 30),
        ("12 months", "years", 1),
        ("44.2 GB", "GB", 44.2),
        ("44.2GB", "bytes", 44_200_000_000),
        ("24 GiB", "bytes", 24 * 2**30),
        ("24576 MiB", "GiB", 24),
        ("2 TB", "GB", 2000),
        ("64 GPUs", "GPUs", 64),
        ("1 gpu", "GPUs", 1),
        ("8k tokens", "tokens", 8192 - 192),
        ("300 billion tokens", "tokens", 300 * 10**9),
        ("7B", "parameters", 7 * 10**9),
        ("154 TFLOP/s", "FLOP/s", 154 * 10**12),
        ("154 TFLOPS", "FLOP/s", 154 * 10**12),
        ("154 tflops", "FLOP/s", 154 * 10**12),
        ("3 TFLOPs", "FLOP", 3 * 10**12),
        ("35%", "share", 0.35),
        ("35 percent", "share", 0.35),
        ("35 %", "%", 35),
        ("3.4 times", "times", 3.4),
        ("5 thousand GPU-hours", "GPU-hours", 5000),
        ("$2.50", "dollars", 2.5),
        (2.5, "days", 2.5),
        ("22.4", "days", 22.4),
    ],
)
def test_a_unit_is_read_and_another_of_its_kind_converted(
    text: object, unit: str, number: float
) -> None:
    assert units.read_as(text, unit).number == number
    assert type(units.read_as(text, unit).number) is type(number)


def test_what_was_understood_is_said_only_where_it_was_converted() -> None:
    assert units.read_as("538 hours", "days").message == "you wrote 538 hours, that's 22.4 days"
    assert units.read_as("41.2 GiB", "GB").message == "you wrote 41.2 GiB, that's 44.2 GB"
    assert units.read_as("60 s", "minutes").message == "you wrote 60 s, that's 1 minutes"
    assert units.read_as("24 GiB", "bytes").message.endswith("that's 25.8 billion bytes")
    for text, unit in (
        ("22.4 days", "days"),
        ("35%", "share"),
        ("7B", "tokens"),
        (3, "s"),
        ("3 TFLOP", "FLOP"),
    ):
        assert units.read_as(text, unit).message == ""


@pytest.mark.parametrize(
    ("text", "unit", "problem"),
    [
        ("22.4 days", "bytes", "these are days; we asked for bytes"),
        ("44.2 GB", "days", "these are GB; we asked for days"),
        ("10 s", "GPUs", "these are seconds; we asked for GPUs"),
        ("8 tokens", "parameters", "these are tokens; we asked for parameters"),
        ("35%", "days", "these are percent; we asked for days"),
        ("3 days", "share", "these are days; we asked for a share"),
        ("154 TFLOP/s", "FLOP", "these are TFLOP/s; we asked for FLOP"),
        ("$5", "days", "these are dollars; we asked for days"),
        ("22.4 days", "", "give the number alone, without its unit"),
        ("7 bananas", "days", "'bananas' isn't a unit we know; we asked for days"),
        ("7 bananas", "", "isn't a number: write"),
        ("1/64k", "tokens", "isn't a number: write"),
        ("1/0", "", "divides by zero"),
        ("2,5", "days", "a point is 2.5"),
        ("GB", "GB", "isn't a number"),
        ("", "days", "isn't a number"),
    ],
)
def test_another_kind_of_unit_is_refused_by_name(text: str, unit: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^text={re.escape(repr(text))}.*{re.escape(problem)}"):
        units.read_as(text, unit)


@pytest.mark.parametrize(
    "text",
    [
        *("10**400", "2**10**9", "9**999", "1e9**99", "(2)**3", "2**(3)", "1e400", "2**1.5"),
        *("nan", "inf", "7*8**", "10**250*10**250", "10**250*10**250/3", "__import__('os')"),
        *(f"{'9' * 50}**9", "2**" * 19 + "2", "1," * 29 + "1", "2 3"),
    ],
)
def test_a_monster_is_refused_quickly(text: str) -> None:
    begin = time.perf_counter()
    assert_refused(units.read, "text", text=text)
    assert time.perf_counter() - begin < 0.1


ENDLESS = ["9**999999999", "9**-999999999", "1/9**999999999", "1e999999999", "1e-999999999"]


@pytest.mark.parametrize("text", ENDLESS)
def test_a_power_that_nobody_could_wait_for_is_refused_before_it_is_computed(text: str) -> None:
    """In a process of its own, because it would never come back."""
    code = f"from llmtrain_helpers import units\nunits.read({text!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=20
    )
    assert f"ValueError: text={text!r} is larger or smaller than any number here" in done.stderr


@pytest.mark.parametrize("text", ["10^400", "1e400", "10**4000", "1e-400", "1" + "0" * 400])
def test_a_number_beyond_all_others_is_not_called_no_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"is larger (or smaller )?than any number here"):
        units.read(text)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(-9, 9))
def test_arithmetic_is_pythons(a: int, b: int, c: int) -> None:
    assert units.read(f"{a}/{b}") == pytest.approx(a / b)
    assert units.read(f"{a}*{b}") == a * b
    bounded = 1e-40 < (a / b) * 2.0**c < 1e40
    assert bounded
    assert units.read(f"{a} / {b} * 2**{c}") == pytest.approx(a / b * 2.0**c)


def test_estimates_have_two_digits() -> None:
    assert [units.seconds(x) for x in (47.8, 1, 0.0962, 0.0002, 99.7)] == [
        *("48 s", "1.0 s", "96 ms", "0.20 ms", "100 s")
    ]
    shares = [units.share(x) for x in (0, 0.004, 0.006, 0.266)]
    assert shares == ["0%", "under 1%", "1%", "27%"]


def test_an_estimate_is_told_in_two_digits() -> None:
    numbers = (47.34e9, 1.249e12, 999e6, 999.9e6, 860, 12_400)
    texts = ["47 billion", "1.2 trillion", "1.0 billion", "1.0 billion", "860", "12 thousand"]
    assert [units.count(number, 2) for number in numbers] == texts
