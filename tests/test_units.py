"""Numbers as text for people."""

import math

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import units
from llmtrain_helpers.checks import show

from .bad_values import NO_NUMBERS


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


def test_counts_in_words_and_in_full() -> None:
    assert units.count(1008038707200) == "1.01 trillion"
    assert units.count(96) == "96"
    assert units.exact(2**53 + 1) == "9,007,199,254,740,993"


BAD = [*NO_NUMBERS, pd.NA, math.nan, math.inf, -math.inf, 10**400]


@pytest.mark.parametrize("bad", BAD, ids=show)
@pytest.mark.parametrize(
    "write",
    [
        units.exact,
        units.count,
        units.flops,
        units.flops_per_second,
        units.gigabytes,
        units.gibibytes,
        units.duration,
        units.percent,
        units.dollars,
        units.ratio,
        units.digits,
    ],
)
def test_what_is_no_finite_number_is_refused(write, bad) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        write(bad)


@given(st.floats(min_value=1e-12, max_value=1e30))
def test_digits_keeps_three_significant_digits(number: float) -> None:
    read = float(units.digits(number).replace(",", ""))
    assert math.isclose(read, number, rel_tol=5.001e-3)


@given(st.floats(min_value=1, max_value=9e32))
def test_a_prefix_leaves_at_least_one_and_less_than_a_thousand(number: float) -> None:
    read = float(units.si(number, "FLOP").split()[0])
    assert 1 <= read < 1000
