"""Bad input is refused where it enters."""

import numpy as np
import pandas as pd
import pytest

from llmtrain_helpers import checks
from llmtrain_helpers.checks import show

from .bad_values import BAD_COUNTS, BAD_QUANTITIES, assert_refused


@pytest.mark.parametrize("bad", BAD_COUNTS, ids=show)
def test_count_refuses(bad) -> None:
    assert_refused(checks.count, "tokens", name="tokens", value=bad)


@pytest.mark.parametrize("bad", BAD_QUANTITIES, ids=show)
def test_quantity_refuses(bad) -> None:
    assert_refused(checks.quantity, "seconds", name="seconds", value=bad)


@pytest.mark.parametrize(
    "whole",
    [300_000_000_000, 300e9, np.int64(300e9), np.float64(300e9), np.array(300e9)],
)
def test_a_whole_number_is_an_exact_int_however_it_is_written(whole) -> None:
    taken = checks.count("tokens", whole)
    assert type(taken) is int
    assert taken == 300_000_000_000


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64", "float16", "float32"])
def test_arrays_become_float64_so_that_nothing_wraps_around(dtype: str) -> None:
    taken = checks.count("num_layers", np.array([100, 120], dtype=dtype))
    assert taken.dtype == np.float64
    assert (taken**4).tolist() == [100.0**4, 120.0**4]


@pytest.mark.parametrize("dtype", ["int64", "float64", "Int64", "Float64"])
def test_a_column_of_a_table_is_an_array(dtype: str) -> None:
    taken = checks.count("num_layers", pd.Series([12, 24], dtype=dtype))
    assert taken.tolist() == [12, 24]


def test_a_gap_in_a_column_is_refused() -> None:
    column = pd.Series([12, None], dtype="Int64")
    assert_refused(checks.count, "num_layers", name="num_layers", value=column)


def test_the_message_shows_the_first_bad_value_of_an_array() -> None:
    with pytest.raises(
        ValueError, match=r"num_heads=7\.0 .* by num_kv_heads=2 \(in an"
    ):
        checks.divides(num_heads=np.array([4.0, 7.0]), num_kv_heads=2)
    with pytest.raises(ValueError, match=r"h=8\.0 is not divisible by a"):
        checks.divides(h=np.array([[6.0], [8.0]]), a=np.array([1.0, 3.0]))


@pytest.mark.parametrize("bad", [1, 0, "yes", None, 1.0, np.array([True])], ids=show)
def test_flag_refuses(bad) -> None:
    assert_refused(checks.flag, "tied", name="tied", value=bad)


def test_flag_takes_numpys_too() -> None:
    assert checks.flag("tied", np.bool_(False)) is False


@pytest.mark.parametrize("bad", ["Full", "", None, 3, ["full"], "x" * 10**6], ids=type)
def test_choice_lists_the_known_names(bad) -> None:
    with pytest.raises(ValueError, match="Known: none, full") as caught:
        checks.choice("recompute", bad, ["none", "full"])
    assert len(str(caught.value)) < 300


def test_long_values_are_cut_short() -> None:
    assert len(checks.show("x" * 1000)) == 60
    assert checks.show(10**400) == "10^400"
    assert checks.show(-(10**400)) == "-10^400"
