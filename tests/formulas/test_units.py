"""Numbers as text for people."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import units
from llmtrain_helpers.checks import LARGEST
from tests.bad_values import assert_refused


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
    assert units.percent(0) == "0 %"
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


@given(st.floats(min_value=1e-12, max_value=1e30))
def test_digits_keeps_three_significant_digits(number: float) -> None:
    read = float(units.digits(number).replace(",", ""))
    assert math.isclose(read, number, rel_tol=5.001e-3)


@given(st.floats(min_value=1, max_value=9e32))
def test_a_prefix_leaves_at_least_one_and_less_than_a_thousand(number: float) -> None:
    read = float(units.si(number, "FLOP").split()[0])
    assert 1 <= read < 1000
