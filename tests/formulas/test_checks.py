"""Bad input is refused where it enters."""

import inspect
import json
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

from llmtrain_helpers import (
    Accelerator,
    Attention,
    Transformer,
    best_checkpoint_interval,
    checks,
    count_activations,
    count_flops,
    data_parallel_bytes,
    duration,
    model_state_bytes,
)
from llmtrain_helpers.batch import StepTime, all_reduce_seconds, epoch_seconds
from llmtrain_helpers.checks import LARGEST, SMALLEST, show
from llmtrain_helpers.duration import tokens_in_time
from llmtrain_helpers.flops import achieved_flops_per_gpu, gpt_flops, utilization
from tests.bad_values import BAD_COUNTS, BAD_QUANTITIES, assert_refused


@pytest.mark.parametrize("bad", BAD_COUNTS, ids=show)
def test_count_refuses(bad) -> None:
    assert_refused(checks.count, "tokens", name="tokens", value=bad)


@pytest.mark.parametrize("bad", BAD_QUANTITIES, ids=show)
def test_quantity_refuses(bad) -> None:
    assert_refused(checks.quantity, "seconds", name="seconds", value=bad)


@pytest.mark.parametrize(
    "whole", [300_000_000_000, 300e9, np.int64(300e9), np.float64(300e9), np.array(300e9)]
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


class Pretender:
    """What has the dtype and the shape of an array, and is none."""

    def __init__(self, dtype: object, shape: object) -> None:
        self.dtype, self.shape = dtype, shape


@pytest.mark.parametrize("shape", [(), (2,), (2, 1), 8])
@pytest.mark.parametrize("dtype", [np.dtype("int64"), np.dtype("float32"), "int64", None, 8])
def test_what_only_has_the_dtype_of_an_array_is_refused(dtype: object, shape: object) -> None:
    for check in (checks.count, checks.quantity, checks.finite, checks.floats, checks.one):
        assert_refused(check, "num_layers", "num_layers", Pretender(dtype, shape))


@pytest.mark.parametrize("value", ["1e400", "-1e400"])
def test_what_is_more_than_a_float_holds_is_refused(value: str) -> None:
    large = np.longdouble(value)
    if np.isinf(large):
        pytest.skip("here NumPy's largest type is float64")
    for each in (large, np.array(large), np.array([1, large])):
        for check in (checks.count, checks.quantity, checks.finite, checks.floats):
            assert_refused(check, "num_layers", "num_layers", each)


def test_a_time_is_no_number() -> None:
    """`item` of one that counts nanoseconds is an int."""
    for each in (np.datetime64("2026-01-01", "ns"), np.timedelta64(8, "ns"), np.array(8, object)):
        assert_refused(checks.count, "num_layers", "num_layers", each)


def test_the_widest_floats_are_numbers() -> None:
    assert checks.count("num_layers", np.longdouble(96)) == 96
    assert type(checks.quantity("seconds", np.longdouble(2.5))) is float


@pytest.mark.parametrize("dtype", ["int64", "float64", "Int64", "Float64"])
def test_a_column_of_a_table_is_an_array(dtype: str) -> None:
    taken = checks.count("num_layers", pd.Series([12, 24], dtype=dtype))
    assert taken.tolist() == [12, 24]


def test_a_gap_in_a_column_is_refused() -> None:
    column = pd.Series([12, None], dtype="Int64")
    assert_refused(checks.count, "num_layers", name="num_layers", value=column)


def test_the_message_shows_the_first_bad_value_of_an_array() -> None:
    with pytest.raises(ValueError, match=r"num_heads=7\.0 .* by num_kv_heads=2 \(in an"):
        checks.divides("num_heads", np.array([4.0, 7.0]), "num_kv_heads", 2)
    with pytest.raises(ValueError, match=r"h=8\.0 is not divisible by a"):
        checks.divides("h", np.array([[6.0], [8.0]]), "a", np.array([1.0, 3.0]))


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


def test_a_list_is_told_how_to_go_in() -> None:
    with pytest.raises(ValueError, match=r"=\[1, 2\] isn't a number .* as a NumPy array"):
        checks.count("tokens", [1, 2])


def test_long_values_are_cut_short() -> None:
    assert len(checks.show("x" * 1000)) == 60
    assert checks.show(10**400) == "10^400"
    assert checks.show(-(10**400)) == "-10^400"


# --- the edges


def test_the_greatest_and_the_smallest_number_are_taken_and_none_beyond() -> None:
    for value in (LARGEST, 10**40, np.array([LARGEST])):
        assert checks.count("tokens", value) == value
    assert checks.quantity("seconds", SMALLEST) == SMALLEST
    assert checks.finite("share", -LARGEST) == -LARGEST
    for beyond in (np.nextafter(LARGEST, 1e41), 10**40 + 10**24, -1.0001e40):
        assert_refused(checks.finite, "share", name="share", value=beyond)
    below = np.nextafter(SMALLEST, 0)
    assert_refused(checks.quantity, "seconds", name="seconds", value=below)
    assert checks.amount("bytes", below) == below


@pytest.mark.parametrize("least", [0, 1, 2, 7])
def test_exactly_the_least_count_is_taken(least: int) -> None:
    assert checks.count("steps", least, least) == least
    assert checks.single("steps", least, least) == least
    assert checks.count("steps", np.array([least]), least).tolist() == [least]
    problem = "is not positive" if least == 1 else f"is less than {least}"
    with pytest.raises(ValueError, match=f"steps={least - 1} {problem}"):
        checks.count("steps", least - 1, least)


def test_amounts_begin_at_zero_shares_end_at_one_and_rates_begin_at_a_giga() -> None:
    assert checks.amount("bytes", 0) == 0
    assert_refused(checks.amount, "bytes", name="bytes", value=-1e-9)
    assert checks.share("utilization", 1) == 1
    assert_refused(checks.share, "utilization", name="utilization", value=1 + 1e-15)
    assert checks.rate("peak", 1e9) == 1e9
    with pytest.raises(ValueError, match=r"TFLOP/s\? Write 999999e12"):
        checks.rate("peak", 999_999)
    with pytest.raises(ValueError, match=r"TFLOP/s\?$"):
        checks.rate("peak", 1e6)


def test_at_most_takes_equals() -> None:
    checks.at_most("chosen", 8, "experts", 8)
    checks.at_most("chosen", np.array([8.0, 1.0]), "experts", 8)
    with pytest.raises(ValueError, match=r"^chosen=9 is more than experts=8$"):
        checks.at_most("chosen", 9, "experts", 8)


def test_a_text_of_60_letters_is_shown_whole_and_a_longer_one_cut() -> None:
    assert checks.show("x" * 58) == repr("x" * 58)
    assert checks.show("x" * 59) == "'" + "x" * 56 + "..."
    assert checks.show(10**40) == str(10**40)


def test_one_number_is_no_array() -> None:
    assert checks.one("memory", np.float64(80e9), checks.quantity) == 80e9
    assert checks.one("share", -0.5) == -0.5
    for several in (np.array([1.0]), pd.Series([1, 2]), pd.DataFrame([[1]])):
        assert_refused(checks.one, "memory=.* is an array", name="memory", value=several)


# --- arrays that go together


MODELS = Transformer.gpt(np.array([12, 24, 48]), 768, 12, 50257, 1024)
TWO, THREE = np.array([8, 16]), np.array([8, 16, 32])


def test_what_broadcasts_is_taken_whatever_the_order() -> None:
    shapes = [(), (3,), (2, 1), (1, 1), (1, 3), (4, 1, 1)]
    arrays = {f"x{i}": np.ones(shape) for i, shape in enumerate(shapes)}
    checks.broadcast(**arrays)
    checks.broadcast(**dict(reversed(arrays.items())))
    checks.broadcast(none=np.ones(0), one=np.ones(1))


@pytest.mark.parametrize(
    ("first", "second"), [((2,), (3,)), ((2, 3), (2, 1, 2)), ((0,), (2,)), ((2, 1), (3, 1))]
)
def test_what_does_not_broadcast_is_named_with_its_shapes(first, second) -> None:
    arrays = {"tokens": np.ones(first), "one": np.ones(1), "num_gpus": np.ones(second)}
    with pytest.raises(ValueError, match="tokens and num_gpus do not broadcast") as refusal:
        checks.broadcast(**arrays)
    assert f"shapes {first} and {second}" in str(refusal.value)
    with pytest.raises(ValueError, match="operands could not be broadcast"):
        np.ones(first) + np.ones(second)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (partial(gpt_flops, TWO, THREE, 9, 9, 9, "none"), "num_layers and hidden_size"),
        (partial(Transformer.gpt, 1, TWO, THREE, 9, 9), "hidden_size and num_heads"),
        (partial(Transformer.gpt, TWO, 8, 8, THREE, 9), "num_layers and vocab_size"),
        (partial(count_flops, MODELS, TWO, "none"), "batch_size and num_layers"),
        (partial(count_activations, MODELS, TWO), "micro_batch_size and num_layers"),
        (partial(achieved_flops_per_gpu, TWO, 1, THREE), "flops and num_gpus"),
        (partial(utilization, 1e9 * TWO, 1e12 * THREE), "flops_per_gpu and peak_flops"),
        (
            partial(duration.training_seconds, TWO, 1, 1, 1e9 * THREE, "none"),
            "tokens and flops_per_gpu",
        ),
        (partial(duration.gpu_hours, TWO, THREE), "seconds and num_gpus"),
        (partial(duration.cost, TWO, 1, THREE), "seconds and price_per_gpu_hour"),
        (partial(duration.cost, 1, TWO, THREE), "num_gpus and price_per_gpu_hour"),
        (partial(duration.energy, TWO, THREE, 1), "seconds and num_gpus"),
        (
            partial(duration.seconds_from_iterations, 100 * TWO, 1, 1, THREE),
            "tokens and seconds_per_iteration",
        ),
        (partial(duration.iterations, 100 * TWO, 1, THREE), "tokens and sequence_length"),
        (partial(duration.Interval(1, TWO, 99).times, THREE), "factor and likely"),
        (partial(duration.Interval, TWO, 99, 100 + THREE), "least and greatest"),
        (partial(epoch_seconds, TWO, 1, THREE), "num_samples and seconds_per_step"),
        (partial(epoch_seconds, 99, TWO, 1, THREE), "global_batch_size and epochs"),
        (partial(StepTime, TWO, THREE), "overhead and rate"),
        (partial(StepTime(1, TWO).seconds, THREE), "batch_size and rate"),
        (partial(StepTime(TWO, 1).throughput, THREE), "batch_size and overhead"),
        (partial(all_reduce_seconds, TWO, THREE, 1), "num_bytes and data_parallel"),
        (partial(all_reduce_seconds, TWO, 1, THREE), "num_bytes and bandwidth"),
        (partial(model_state_bytes, TWO, "bf16", 1, THREE), "parameters and data_parallel"),
    ],
    ids=lambda x: x.func.__name__ if isinstance(x, partial) else x,
)
def test_formulas_name_the_arguments_that_do_not_broadcast(call, named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named} do not broadcast: shapes"):
        call()


@pytest.mark.parametrize("check", [checks.at_most, checks.divides])
def test_pairs_name_the_arrays_that_do_not_broadcast(check) -> None:
    with pytest.raises(ValueError, match="heads and experts do not broadcast"):
        check("heads", TWO, "experts", THREE)


# --- checks in a signature


@checks.checked
def checked_formula(
    model: Transformer,
    tokens: checks.Count[float | checks.Array],
    seconds: checks.Quantity[float],
    num_gpus: checks.Count[float | checks.Array] | None = None,
    recompute: Literal["none", "full"] = "none",
    *,
    dropout: bool = "never",  # type: ignore[assignment]  # a default is not checked
) -> tuple[Any, ...]:
    """What has come in."""
    return tokens, seconds, num_gpus, recompute, dropout


GPT = Transformer.gpt(2, 64, 4, 99, 16)


def test_a_signature_checks_what_is_given_and_passes_it_on() -> None:
    assert checked_formula(GPT, 1e9, 2) == (10**9, 2, None, "none", "never")
    assert type(checked_formula(GPT, 1e9, seconds=2)[0]) is int
    tokens, *others = checked_formula(GPT, np.array([1, 2], "int8"), 2.5, np.int64(8), "full")
    assert tokens.dtype == np.float64
    assert others == [2.5, 8, "full", "never"]
    assert checks.unchecked(checked_formula)(GPT, "trusted", 2)[0] == "trusted"


@pytest.mark.parametrize(
    ("argument", "bad", "problem"),
    [
        ("model", "gpt2", "model='gpt2' isn't a Transformer"),
        ("tokens", 0, "tokens=0 is not positive"),
        ("seconds", np.array([1.0]), "seconds=.* is an array: here it must be one number"),
        ("num_gpus", 2.5, "num_gpus=2.5 is not a whole number"),
        ("num_gpus", THREE, "tokens and num_gpus do not broadcast: shapes"),
        ("recompute", "ful", "is unknown, did you mean 'full'. Known: none, full"),
        ("dropout", 1, "dropout=1 is neither True nor False"),
    ],
)
def test_a_signature_refuses_as_the_check_does(argument: str, bad: Any, problem: str) -> None:
    good = {"model": GPT, "tokens": TWO, "seconds": 1}
    assert_refused(checked_formula, problem, **{**good, argument: bad})


def test_a_checked_function_is_called_and_documented_like_any_other() -> None:
    assert [*inspect.signature(checked_formula).parameters][:2] == ["model", "tokens"]
    assert checked_formula.__doc__ == "What has come in."
    for wrong, problem in [
        (partial(checked_formula, GPT), "missing 2 required"),
        (partial(checked_formula, GPT, 1, 2, model=GPT), "multiple values for argument 'model'"),
        (partial(checked_formula, GPT, 1, 2, 3, "full", True), "takes from 3 to 5 positional"),
        (partial(checked_formula, GPT, 1, 2, gpus=8), "unexpected keyword argument 'gpus'"),
    ]:
        with pytest.raises(TypeError, match=problem):
            wrong()


def test_the_fields_of_a_checked_dataclass_are_checked() -> None:
    @checks.checked
    @dataclass(frozen=True)
    class Machine:
        num_gpus: checks.Count[int]
        memory: checks.Quantity[checks.Result] = 80e9

    assert Machine(8.0) == Machine(num_gpus=8, memory=80e9)
    assert_refused(Machine, "num_gpus=0 is not positive", 0)
    assert_refused(Machine, "memory=-1 is not positive", 8, memory=-1)


# --- tables, and what NumPy is needed for


def test_a_whole_table_is_refused_in_a_short_sentence() -> None:
    table = pd.DataFrame({"num_gpus": [8, 16], "tokens": [1e9, 1e12]})
    with pytest.raises(ValueError, match="num_gpus is a DataFrame, not one") as caught:
        duration.gpu_hours(1, table)
    assert "\n" not in str(caught.value)
    assert_refused(Accelerator, "memory is a DataFrame", name="x", memory=table)
    assert "\n" not in show(table)


def test_floats_takes_numbers_lists_and_arrays_of_any_size() -> None:
    for values in (1, 1.0, [1, 2.5], (1,), np.int8(3), np.array([1, 2]), pd.Series([1])):
        taken = checks.floats("values", values)
        assert taken.dtype == np.float64
        assert taken.tolist() == np.asarray(values).tolist()
    assert checks.floats("values", 10**30) == 1e30
    assert np.isinf(checks.floats("values", [np.inf, -np.inf])).all()


@pytest.mark.parametrize(
    "bad",
    [None, True, "96", ["96"], [None], [True], [[1], [1, 2]], {}, 1j, 10**400, [10**400]],
    ids=show,
)
def test_floats_refuses_what_is_no_number(bad) -> None:
    assert_refused(checks.floats, "values", name="values", values=bad)


NEED_NUMPY = [
    "FORMATS['bf16'].round([1.0])",
    "FORMATS['bf16'].spacing([1.0])",
    "fit_step_time([1, 2, 4], [1, 2, 4])",
    "from llmtrain_course.precision.formulas import train_small_network; "
    "train_small_network(FORMATS['bf16'], FORMATS['bf16'])",
    "sweep(Transformer.gpt(2, 64, 1, 100, 8), Accelerator('x', 1e9, peaks={'bf16': "
    "1e14}), 8, 1e6, 8, recompute='none')",
]


@pytest.mark.parametrize("call", NEED_NUMPY)
def test_without_numpy_the_few_that_need_it_say_so(call: str) -> None:
    code = f"""
import sys
sys.modules["numpy"] = None
from llmtrain_helpers import *
gpt_parameters(96, 12288, 51200, 2048)
try:
    {call}
except ImportError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert result.stdout == "this needs NumPy: pip install numpy\n", result.stderr


def test_what_is_kept_with_a_model_is_not_given_to_its_equal() -> None:
    """Two models that are equal may differ in a window, and a count sees it."""
    windowed, whole = (
        Transformer.from_config({"model_type": "mistral", "sliding_window": w})
        for w in (4096, None)
    )
    assert windowed == whole
    few, all_of_them = (
        count_flops(model, 1, "none", "causal", 32768).scores for model in (windowed, whole)
    )
    assert few < all_of_them
    first_count = count_flops(windowed, 1, "none", "causal", 32768)
    assert first_count is count_flops(windowed, 1, "none", "causal", 32768)
    with pytest.raises(ValueError, match="dropout=1 is neither"):
        [count_activations(whole, 1, dropout=x) for x in (True, 1)]
    many = count_flops(whole, np.array([1, 2]), "none").total
    assert many[1] == 2 * count_flops(whole, 1, "none").total


@pytest.mark.parametrize("deep", ["[" * 101, '{"a":' * 101, '["\\"[", [' + "[" * 99, "[[]," * 101])
def test_a_text_that_nests_too_deeply_is_no_json(deep: str) -> None:
    with pytest.raises(ValueError, match="nest deeper than 100"):
        checks.shallow(deep)
    assert checks.shallow(json.dumps(deep)) == json.dumps(deep)
    assert checks.shallow("[[]]," * 101)


def test_a_quantity_that_no_array_holds_is_a_float() -> None:
    """So that it goes together with one; a count stays exact."""
    assert type(checks.quantity("flops", 10**39)) is float
    assert type(checks.quantity("flops", 2**62)) is int
    assert checks.count("tokens", 10**39) == 10**39
    assert tokens_in_time(10**39, np.array([1.0, 2.0]), 1).tolist() == [1e39, 5e38]
    assert best_checkpoint_interval(np.array([8.0, 16.0]), 10**39).dtype == np.float64


def test_arrays_inside_a_part_or_a_sharding_go_together() -> None:
    two, three = np.array([8, 16]), np.array([8, 16, 24])
    words = "^num_heads and head_dim do not broadcast"
    assert_refused(Attention, words, num_heads=two, num_kv_heads=8, head_dim=three)
    words = "^parameters and shard_size do not broadcast"
    assert_refused(data_parallel_bytes, words, 1e9 * two, 48, shard_size=three)


def test_a_limit_in_words_comes_after_its_number() -> None:
    """`name=value` is for arguments alone: nobody has an argument called ZeRO's last stage."""
    with pytest.raises(ValueError, match=r"^steps=9 is more than num_layers \+ 2=8$"):
        checks.at_most("steps", 9, "num_layers + 2", 8)
    with pytest.raises(ValueError, match=r"^steps=90000 is more than 10,000, what is shown$"):
        checks.at_most("steps", 90_000, "what is shown", 10_000)
    with pytest.raises(ValueError, match=r"^whole=9 is not divisible by 2, the GPUs of a node$"):
        checks.divides("whole", 9, "the GPUs of a node", 2)
