"""Chapter 05: formats against ml_dtypes and NumPy, recipes, ZeRO, training, panel."""

import json
import math
import re
from collections import Counter
from html import unescape
from itertools import pairwise
from time import perf_counter

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import (
    FORMATS,
    RECIPES,
    NumberFormat,
    Recipe,
    model_state_bytes,
    smallest_data_parallel,
    train_small_network,
)
from llmtrain_helpers.checks import show
from llmtrain_helpers.drawings.common import COLORS
from llmtrain_helpers.drawings.precision import (
    block_scales,
    distinct,
    factors,
    fates,
    loss_scale,
    number,
    number_bits,
    on_a_gpu,
    power,
    recipe_bytes,
    update_line,
    verdict,
)
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_helpers.exercises.precision import walked
from llmtrain_helpers.figures import describe
from llmtrain_helpers.figures.precision import bit_layouts, losses, ranges, spacings
from llmtrain_helpers.panels import PANELS, precision_panel
from llmtrain_helpers.precision import gradient_window, products_in, updates_to_move

from .bad_values import BAD_COUNTS, BAD_QUANTITIES, assert_refused

INDEPENDENT = {
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
    "fp8_e4m3": ml_dtypes.float8_e4m3fn,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
}
every_format = pytest.mark.parametrize("name", INDEPENDENT)


def every_value(name: str) -> np.ndarray:
    """Each number of an 8- or 16-bit format, as float32."""
    dtype = np.dtype(INDEPENDENT[name])
    bits = np.arange(2 ** (8 * dtype.itemsize), dtype=f"uint{8 * dtype.itemsize}")
    return bits.view(dtype).astype(np.float32)


def assert_rounds_alike(name: str, values: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        expected = values.astype(INDEPENDENT[name]).astype(np.float64)
        rounded = FORMATS[name].round(values)
    np.testing.assert_array_equal(rounded, expected)
    same = np.isnan(expected) | (np.signbit(rounded) == np.signbit(expected))
    assert same.all()


# --- formats


@pytest.mark.parametrize(
    ("name", "bits", "largest", "min_normal", "min_subnormal", "eps"),
    [
        ("fp32", 32, (2 - 2**-23) * 2.0**127, 2**-126, 2**-149, 2**-23),
        ("tf32", 19, (2 - 2**-10) * 2.0**127, 2**-126, 2**-136, 2**-10),
        ("bf16", 16, (2 - 2**-7) * 2.0**127, 2**-126, 2**-133, 2**-7),
        ("fp16", 16, 65504, 2**-14, 2**-24, 2**-10),
        ("fp8_e4m3", 8, 448, 2**-6, 2**-9, 2**-3),
        ("fp8_e5m2", 8, 57344, 2**-14, 2**-16, 2**-2),
    ],
)
def test_the_six_formats_exactly(name, bits, largest, min_normal, min_subnormal, eps) -> None:
    known = FORMATS[name]
    assert (known.bits, known.max) == (bits, largest)
    assert (known.min_normal, known.min_subnormal) == (min_normal, min_subnormal)
    assert known.eps == eps


@every_format
def test_ml_dtypes_has_the_same_limits(name: str) -> None:
    info = ml_dtypes.finfo(INDEPENDENT[name])
    known = FORMATS[name]
    assert known.max == float(info.max)
    assert known.min_normal == float(info.smallest_normal)
    assert known.min_subnormal == float(info.smallest_subnormal)
    assert known.eps == float(info.eps)


@every_format
def test_every_value_of_a_format_rounds_to_itself(name: str) -> None:
    assert_rounds_alike(name, every_value(name))


@every_format
def test_midpoints_and_their_neighbours_round_alike(name: str) -> None:
    finite = every_value(name)
    finite = np.unique(finite[np.isfinite(finite)])
    middle = (finite[:-1].astype(np.float64) + finite[1:]) / 2
    middle = middle.astype(np.float32)
    up, down = np.float32(np.inf), np.float32(-np.inf)
    for values in (middle, np.nextafter(middle, up), np.nextafter(middle, down)):
        assert_rounds_alike(name, values)


@every_format
def test_past_the_maximum(name: str) -> None:
    known = FORMATS[name]
    step = known.spacing(known.max)
    edges = known.max + step * np.array([0.25, 0.5, 0.51, 1, 2, 1e3])
    values = np.concatenate([edges, -edges, [np.inf, -np.inf, np.nan, 3e38]])
    assert_rounds_alike(name, np.clip(values, -3e38, 3e38).astype(np.float32))
    held = known.round(values[:-2], saturate=True)
    assert set(np.abs(held)) == {known.max}


@pytest.mark.parametrize("wide", ["bf16", "fp16"])
@pytest.mark.parametrize("name", ["fp8_e4m3", "fp8_e5m2"])
def test_every_16_bit_value_rounds_to_fp8_alike(wide: str, name: str) -> None:
    assert_rounds_alike(name, every_value(wide))


@given(st.floats(width=32, allow_nan=False))
def test_float32_is_fp32(value: float) -> None:
    assert FORMATS["fp32"].round(value) == value


def test_from_float64_there_is_one_rounding() -> None:
    """Through float32 first, this number would become a tie and go the other way."""
    value = 1 + 2**-8 + 2**-40
    assert FORMATS["bf16"].round(value) == 1 + 2**-7
    assert float(np.float32(value).astype(ml_dtypes.bfloat16)) == 1


@given(st.floats(allow_nan=False), st.sampled_from(list(FORMATS)))
def test_rounding_twice_is_rounding_once_and_keeps_order(value, name: str) -> None:
    known = FORMATS[name]
    once = known.round(value, saturate=True)
    assert known.round(once, saturate=True) == once
    assert abs(once) <= known.max
    assert known.round(-value, saturate=True) == -once


def test_arrays_keep_their_shape_and_numbers_come_back_as_floats() -> None:
    assert FORMATS["bf16"].round(np.ones((2, 3))).shape == (2, 3)
    assert type(FORMATS["bf16"].round(1)) is float
    assert FORMATS["fp16"].spacing(np.array([1.0, 2048.0])).tolist() == [2**-10, 2]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"bits": 17}, "bits=17 do not add up: sign 1 \\+ exponent 5 \\+ mantissa 10"),
        ({"exponent_bits": 1}, "exponent_bits=1 is less than 2"),
        ({"exponent_bits": 9}, "exponent_bits=9 is more than what this can round=8"),
        ({"mantissa_bits": 24}, "mantissa_bits=24 is more than what this can round=23"),
        ({"name": None}, "name=None is no str"),
        ({"mantissa_bits": 0}, "mantissa_bits=0 is not positive"),
        ({"mantissa_bits": 2.5}, "mantissa_bits=2.5 is not a whole number"),
        ({"infinities": "no"}, "infinities='no' is neither True nor False"),
    ],
)
def test_formats_that_do_not_add_up_are_refused(wrong, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        NumberFormat(**({"name": "x", "exponent_bits": 5, "mantissa_bits": 10} | wrong))
    assert NumberFormat("fp16", 5, 10, bits=16) == FORMATS["fp16"]


def test_the_widest_and_the_narrowest_format() -> None:
    widest, narrowest = NumberFormat("fp32", 8, 23), NumberFormat("tiny", 2, 1)
    assert widest == FORMATS["fp32"]
    assert [narrowest.round(x) for x in (0.6, 0.8, 1, 1.3, 2.9)] == [0.5, 1, 1, 1.5, 3]
    assert (narrowest.max, narrowest.min_normal, narrowest.min_subnormal) == (3, 1, 0.5)


def test_bits_written_as_floats_are_the_ints_that_they_are() -> None:
    same = NumberFormat("fp16", 5.0, np.int64(10))
    assert same == FORMATS["fp16"]
    assert type(same.bits) is type(same.mantissa_bits) is int
    assert same.spacing(2048.0) == 2


NO_VALUES = [None, True, "96", ["96"], [None], [[1], [1, 2]], {}, 1j, 10**400, np.bool_(1)]


@pytest.mark.parametrize("bad", NO_VALUES, ids=show)
def test_only_numbers_are_rounded_and_have_a_spacing(bad) -> None:
    assert_refused(FORMATS["fp16"].round, "values", values=bad)
    assert_refused(FORMATS["fp16"].spacing, "values", values=bad)


def test_what_is_not_finite_is_rounded_but_has_no_spacing() -> None:
    for bad in (math.inf, math.nan, [1, -math.inf]):
        assert_refused(FORMATS["fp16"].spacing, "values=.* finite", values=bad)
    assert FORMATS["fp16"].round([math.inf, -math.inf]).tolist() == [math.inf, -math.inf]
    assert FORMATS["fp16"].round(10**30) == math.inf
    assert_refused(FORMATS["fp16"].round, "saturate", values=1.0, saturate=1)


# --- what rounding does


@pytest.mark.parametrize(
    ("name", "stall"), [("fp16", 2048), ("bf16", 256), ("fp8_e4m3", 16), ("fp8_e5m2", 8)]
)
def test_a_sum_of_ones_stalls(name: str, stall: int) -> None:
    total, known = 0.0, FORMATS[name]
    for _ in range(3000):
        total = known.round(total + 1)
    assert total == stall


@pytest.mark.parametrize(("name", "lost"), [("fp16", 2**-11), ("bf16", 2**-8)])
def test_an_update_of_half_a_step_is_lost(name: str, lost: float) -> None:
    known = FORMATS[name]
    assert known.round(1 + lost) == 1
    assert known.round(1 + lost * 1.001) > 1
    assert known.round(1 - lost / 2) == 1
    assert known.round(1 - lost / 2 * 1.001) < 1


def test_a_main_weight_takes_updates_65_000_times_smaller_and_no_others() -> None:
    fp32 = FORMATS["fp32"]
    assert fp32.round(1 + 2**-25) == fp32.round(1 + 2**-24) == 1
    assert fp32.round(1 + 2**-24 * 1.001) > 1
    assert 2**-8 / 2**-24 == 65_536
    assert "65,000 times smaller than bf16 does (at 1, anything above" in page_of()


@every_format
def test_below_half_the_spacing_is_lost_and_at_half_the_last_bit_decides(name) -> None:
    known = FORMATS[name]
    weight = 1.0
    for _ in range(2**known.mantissa_bits):
        half, last_bit = known.spacing(weight) / 2, known.split(weight)[2] % 2
        assert known.round(weight + half * 0.999) == weight
        assert (known.round(weight + half) == weight) == (not last_bit)
        weight = known.shifted(weight, 1)


def test_fp16_flushes_at_2_to_the_minus_25() -> None:
    fp16 = FORMATS["fp16"]
    assert fp16.round(2**-25) == 0
    assert fp16.round(2**-25 * 1.001) == 2**-24
    assert fp16.round(2**-25 * 1024) / 1024 == 2**-25


def test_training_goes_astray_and_recovers() -> None:
    fp32, bf16, fp8 = (FORMATS[name] for name in ("fp32", "bf16", "fp8_e4m3"))
    good = train_small_network(fp32, fp32)[-1]
    without_copy = train_small_network(bf16, fp32, master_copy=False)
    assert without_copy[-1] > 10 * good
    assert without_copy[-1] == without_copy[-500]  # it stands still
    assert train_small_network(bf16, fp32)[-1] == pytest.approx(good, rel=0.01)
    assert train_small_network(bf16, fp8)[-1] > 10 * good
    scaled = train_small_network(bf16, fp8, loss_scale=1024)
    assert scaled[-1] == pytest.approx(good, rel=0.02)
    assert math.isnan(train_small_network(bf16, fp8, loss_scale=2**20)[-1])
    assert scaled == train_small_network(bf16, fp8, loss_scale=1024)


SMALL = {"weights": FORMATS["bf16"], "gradients": FORMATS["fp32"], "steps": 2}


@pytest.mark.parametrize("bad", [*BAD_QUANTITIES, np.array([1.0])], ids=show)
def test_the_loss_scale_is_one_positive_number(bad) -> None:
    assert_refused(train_small_network, "loss_scale", **SMALL, loss_scale=bad)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("weights", "bf16"),
        ("gradients", None),
        ("master_copy", 1),
        ("steps", 0),
        ("steps", 100_001),
        ("steps", np.array([2])),
    ],
)
def test_a_small_network_takes_formats_and_few_steps(name: str, bad) -> None:
    assert_refused(train_small_network, name, **(SMALL | {name: bad}))


def test_there_is_a_loss_for_every_step() -> None:
    assert len(train_small_network(**SMALL)) == 2
    assert len(train_small_network(FORMATS["bf16"], FORMATS["fp32"])) == 2000


# --- bytes for each parameter


def test_the_recipes_weigh_what_is_published() -> None:
    weights = {name: recipe.total for name, recipe in RECIPES.items()}
    assert weights == {
        "fp32": 16,
        "amp": 16,
        "bf16": 16,
        "bf16_fp32_grads": 18,
        "bf16_both_grads": 20,
        "pure_bf16": 8,
        "fp8": 13,
    }


def estimate(row) -> float:
    shared = (row["zero_stage"], row["data_parallel"])
    states = model_state_bytes(row["parameters"], row["recipe"], *shared)
    if row["parts"] == "all":
        return states.total
    return sum(states.parts()[part] for part in row["parts"].split("+"))


STATES = published.model_state_memory().to_dict("records")
BEYOND = [
    "DeepSpeed estimator t5-3b 2851M: ZeRO-2 no offload, 8 GPUs",
    "DeepSpeed estimator t5-3b 2851M: ZeRO-3 no offload, 8 GPUs, largest layer 32M",
    "BLOOM-176B checkpoint, du 2.3T",
    "Megatron 1T checkpoint 13.8 TB",
    "nanoGPT 124M ckpt.pt, wc -c",
]


@pytest.mark.parametrize("row", STATES, ids=lambda row: row["name"])
def test_published_model_states(row) -> None:
    off = abs(estimate(row) / row["num_bytes"] - 1)
    assert (off > 0.015) == (row["name"] in BEYOND)
    if row["name"] in BEYOND:
        assert len(row["note"]) > 20


def test_what_the_notes_say_explains_the_differences() -> None:
    zero_2, zero_3, bloom, trillion, nanogpt = (
        next(row for row in STATES if row["name"] == name) for name in BEYOND
    )
    P = zero_2["parameters"]
    assert pytest.approx(zero_2["num_bytes"], rel=0.001) == 4 * P + 16 * P / 8
    assert pytest.approx(zero_3["num_bytes"], rel=0.001) == 18 * P / 8 + 4 * 32e6
    assert round(14 * trillion["parameters"] / 1e12, 1) == 14.1
    tenths = bloom["num_bytes"] / 2**40 * 10  # what du rounds up to
    assert math.ceil(estimate(bloom) / 2**40 * 10) == pytest.approx(tenths)
    masks = 12 * 1024**2 * 4
    assert estimate(nanogpt) + masks == pytest.approx(nanogpt["num_bytes"], rel=0.001)


def test_what_was_weighed_is_told_from_what_was_multiplied() -> None:
    kinds = Counter(row["kind"] for row in STATES)
    assert kinds == {"computed": 18, "stated": 6, "measured": 3}
    for row in STATES:
        weighed = re.search(r"\b(du \S+|wc -c)$", row["name"])
        assert bool(weighed) == (row["kind"] == "measured"), row["name"]


def test_nvidias_checkpoints_agree_as_gib_rounded_up_and_not_as_gb() -> None:
    """They are printed as GB and TB; `du` prints GiB so, rounded up."""
    for row in STATES:
        told = re.search(r"checkpoint ~([\d.]+) (GB|TB)", row["name"])
        if told:
            binary = estimate(row) / 2 ** (30 if told[2] == "GB" else 40)
            digits = 0 if told[2] == "GB" else 1
            up = math.ceil(binary * 10**digits) / 10**digits
            assert up == float(told[1])
            decimal = estimate(row) / (1e9 if told[2] == "GB" else 1e12)
            assert decimal / float(told[1]) > 1.05


def test_more_published_runs_say_bf16_than_anything_else() -> None:
    assert published.training_runs()["precision"].mode().tolist() == ["bf16"]


def test_without_more_being_said_nothing_is_sharded() -> None:
    for stage in range(4):
        assert model_state_bytes(10, "bf16", stage).total == 160
    assert model_state_bytes(10, "bf16", data_parallel=8).total == 160


def test_zeros_own_example() -> None:
    totals = [model_state_bytes(7.5e9, "bf16", stage, 64).total for stage in range(4)]
    assert [round(total / 1e9, 1) for total in totals] == [120.0, 31.4, 16.6, 1.9]


@given(st.integers(1, 10**13), st.integers(1, 10**5), st.sampled_from(list(RECIPES)))
def test_sharding_more_weighs_less_and_parts_sum(P, d, recipe: str) -> None:
    stages = [model_state_bytes(P, recipe, stage, d) for stage in range(4)]
    totals = [states.total for states in stages]
    assert totals == sorted(totals, reverse=True)
    for states in stages:
        assert sum(states.parts().values()) == states.total
    assert totals[0] == P * RECIPES[recipe].total
    assert totals[3] == pytest.approx(totals[0] / d)
    assert type(totals[0]) is int


def test_megatrons_distributed_optimizer() -> None:
    for d in (1, 2, 8, 64):
        one = model_state_bytes(64, "bf16_fp32_grads", 1, d).total
        both = model_state_bytes(64, "bf16_both_grads", 1, d).total
        full = model_state_bytes(64, "fp32", 1, d).total
        assert one == 64 * 6 + 64 * 12 // d
        assert both == 64 * 4 + 64 * 16 // d
        assert full == 64 * 8 + 64 * 8 // d


def test_broadcasting_over_replicas_equals_a_loop() -> None:
    d = np.array([1, 8, 64])
    swept = model_state_bytes(7.5e9, "bf16", 1, d).total
    looped = [model_state_bytes(7.5e9, "bf16", 1, int(n)).total for n in d]
    assert swept.tolist() == looped


@given(st.integers(10**6, 10**12), st.integers(0, 3), st.floats(1e9, 1e12))
def test_the_smallest_number_of_replicas_that_fits(P, stage, memory) -> None:
    if model_state_bytes(P, "bf16", stage, 10**12).total > memory:
        with pytest.raises(ValueError, match="is too small for"):
            smallest_data_parallel(P, "bf16", stage, memory)
        return
    d = smallest_data_parallel(P, "bf16", stage, memory)
    assert model_state_bytes(P, "bf16", stage, d).total <= memory * (1 + 1e-9)
    if d > 1:
        assert model_state_bytes(P, "bf16", stage, d - 1).total > memory * (1 - 1e-9)


def test_states_that_fill_the_memory_to_the_last_byte_fit() -> None:
    assert smallest_data_parallel(10**9, "bf16", 0, 16e9) == 1
    assert smallest_data_parallel(10**9, "bf16", 3, 16e9) == 1
    assert smallest_data_parallel(10**9, "bf16", 3, 8e9) == 2
    assert smallest_data_parallel(10**9, "bf16", 1, 4e9 + 1e9) == 12
    for stage, kept in enumerate(["1.6e+10", "4e+09", "2e+09"]):  # memory as large
        with pytest.raises(ValueError, match=re.escape(f"too small for {kept} bytes")):
            smallest_data_parallel(10**9, "bf16", stage, float(kept) - (stage == 0))


@pytest.mark.parametrize("name", ["parameters", "memory", "zero_stage"])
def test_replicas_are_sought_for_one_size_and_one_memory(name: str) -> None:
    good = {"parameters": 1e9, "recipe": "bf16", "zero_stage": 1, "memory": 16e9}
    for bad in (np.array([1e9, 2e9]), np.array([1]), None, -1):
        assert_refused(smallest_data_parallel, name, **(good | {name: bad}))


GOOD = {"parameters": 8e9, "recipe": "bf16", "zero_stage": 1, "data_parallel": 8}


@pytest.mark.parametrize("name", ["parameters", "data_parallel"])
@pytest.mark.parametrize("bad", BAD_COUNTS, ids=show)
def test_bad_counts_are_refused(name: str, bad) -> None:
    assert_refused(model_state_bytes, name, **(GOOD | {name: bad}))


@pytest.mark.parametrize("bad", [4, -1, 1.5, True, "1", None, np.array([1, 2])], ids=show)
def test_a_stage_is_0_to_3(bad) -> None:
    assert_refused(model_state_bytes, "zero_stage", **(GOOD | {"zero_stage": bad}))


def test_a_misspelt_recipe_gets_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'bf16_fp32_grads'"):
        model_state_bytes(8e9, "bf16_fp32_grad")
    for bad in (None, 16, ["bf16"]):
        assert_refused(model_state_bytes, "recipe", **(GOOD | {"recipe": bad}))


@pytest.mark.parametrize("bad", [b for b in BAD_QUANTITIES if show(b) not in ("0", "0.0")])
def test_a_recipe_of_ones_own(bad) -> None:
    own = Recipe("mine", 2, 0, 0, 0, 2)
    assert own.weights == 2
    assert model_state_bytes(10, own).total == 40
    with pytest.raises(ValueError, match="optimizer"):
        Recipe("mine", 2, 2, 0, 0, bad)


# --- bits and neighbours


def test_the_bits_are_those_of_ml_dtypes() -> None:
    for name, dtype in INDEPENDENT.items():
        known, width = FORMATS[name], 8 * np.dtype(dtype).itemsize
        kind, last = f"uint{width}", 2**width
        for bits in range(0, last, 1 if width == 8 else 97):
            value = float(np.array([bits], kind).view(dtype)[0])
            if not math.isnan(value):
                sign, exponent, mantissa = known.split(value)
                place = sign << known.exponent_bits | exponent
                assert place << known.mantissa_bits | mantissa == bits, (name, value)


def test_what_is_no_finite_number_has_the_largest_exponent() -> None:
    assert FORMATS["fp16"].split(math.inf) == (0, 31, 0)
    assert FORMATS["fp16"].split(-1e9) == (1, 31, 0)
    assert FORMATS["fp16"].split(math.nan)[1:] == (31, 512)
    assert FORMATS["fp8_e4m3"].split(1e9) == (0, 15, 7)
    assert_refused(FORMATS["fp16"].split, "value", value="1")
    assert_refused(FORMATS["fp16"].split, "value", value=None)


@every_format
def test_neighbours_are_the_next_in_the_list_of_all_values(name: str) -> None:
    finite = every_value(name)
    finite = np.unique(finite[np.isfinite(finite)]).astype(float).tolist()
    for i in range(1, len(finite) - 1, 1 if len(finite) < 300 else 53):
        around = finite[i - 1], finite[i + 1]
        assert FORMATS[name].neighbours(finite[i]) == around


def test_going_up_and_down_ends_at_the_largest() -> None:
    fp16 = FORMATS["fp16"]
    assert fp16.shifted(0.1, 0) == fp16.round(0.1)
    assert fp16.shifted(0.0, -1) == -fp16.min_subnormal
    assert fp16.shifted(-fp16.min_subnormal, 2) == fp16.min_subnormal
    assert fp16.shifted(65504.0, 5) == 65504
    assert_refused(fp16.shifted, "value=70000.* more than fp16 holds", value=7e4, steps=1)


@given(st.floats(allow_nan=False), st.sampled_from(list(FORMATS)))
def test_one_number_without_numpy_is_rounded_as_in_an_array(value, name: str) -> None:
    known = FORMATS[name]
    for saturate in (False, True):
        one = known.round(value, saturate)
        [same] = known.round(np.array([value]), saturate)
        assert one == same or (math.isnan(one) and math.isnan(same))
        assert math.copysign(1, one) == math.copysign(1, same)
    if abs(value) < 1e39:
        assert known.spacing(value) == known.spacing(np.array([value]))[0]


def test_around_zero_the_spacing_is_the_smallest_number() -> None:
    for known in FORMATS.values():
        assert known.spacing(0.0) == known.spacing(np.zeros(1))[0] == (known.min_subnormal)


# --- figures and drawings


def test_the_figures_show_the_formats() -> None:
    assert "mantissa: fp8_e5m2 2, fp8_e4m3 3, fp16 10" in describe(bit_layouts())
    assert "normal numbers: fp8_e5m2 29.8" in describe(ranges())
    assert "bf16: " in describe(spacings())
    told = describe(losses([3.0, 2.0, 0.5], {"One": {"mine": [3.0, 2.0, 1.0]}}))
    assert told.startswith("Figure: One")
    assert "fp32: 3 at x = 0 to 0.500 at" in told
    assert "mine: 3 at x = 0 to 1 at" in told


def test_the_band_of_fp32_is_broader_than_what_lies_on_it() -> None:
    figure = losses([3.0, 2.0], {"One": {"a": [3.0, 2.0], "b": [3.0, 1.0]}, "Two": {}})
    first, second = figure.axes
    assert [line.get_linewidth() for line in first.lines] == [11, 2.5, 2.5]
    assert len({line.get_color() for line in first.lines}) == 3
    assert len(second.lines) == 1


bf16, fp16 = FORMATS["bf16"], FORMATS["fp16"]


def test_bits_factors_and_neighbours_are_drawn() -> None:
    drawn = number_bits(bf16, 0.1)
    for word in ("sign", "exponent", "fraction"):
        assert drawn.body.count(f'fill="{COLORS[word]}"') >= 2  # bits and their factor
    digits = "".join(re.findall(r'fill="#FFFFFF">([01])</text>', drawn.body))
    assert digits == "0011110111001101"
    assert digits == f"{int(np.float32(0.1).view(np.uint32)) + 2**15 >> 16:016b}"
    for told in ("2⁻⁴", "1.6015625", "123 − 127", "1 + 77/128", "0.1 was asked for"):
        assert f">{told}</text>" in drawn.body
    assert "neighbours are 0.099609375 and 0.10058594" in drawn.words


def test_the_product_of_the_factors_is_the_number() -> None:
    for known in FORMATS.values():
        for x in (0.1, -3.0, known.min_subnormal, known.max):
            sign, k, whole = known.split(x)
            told = [factor for _, factor, _ in factors(known, known.round(x))]
            assert told[0] == ("−" if sign else "+")
            scale = 2.0 ** (max(k, 1) - known.bias)
            digits = (k > 0) + whole / 2**known.mantissa_bits
            assert scale * digits * (-1) ** sign == known.round(x)
            assert told[1] == power(int(math.log2(scale)))
            assert told[2] == number(digits)


def test_bits_that_flip_are_outlined() -> None:
    assert "stroke-dasharray" not in number_bits(bf16, 1.0).body
    for steps, flipped in ((1, 1), (-1, 8)):  # as the page tells
        body = number_bits(bf16, 1.0, steps, before=(bf16, 1.0, 0)).body
        assert body.count("stroke-dasharray") == flipped
        assert f"{flipped} bit" in body
    assert "dashed" not in number_bits(bf16, 1.0, before=(fp16, 1.0, 0)).body


def test_a_number_that_is_too_large_or_subnormal_is_told() -> None:
    assert "infinity, for its largest is 65,504" in number_bits(fp16, 7e4).words
    assert "fp16 makes infinity of 70,000" in number_bits(fp16, 7e4, -1).body
    assert "70,000 lies farther right" in number_bits(fp16, 7e4).body
    assert "NaN, for its largest" in number_bits(FORMATS["fp8_e4m3"], -1e3).words
    assert "0: as 1 − 15" in number_bits(fp16, 1e-7).body
    assert "fp16 holds 0.5 exactly" in number_bits(fp16, 0.5).body


@pytest.mark.parametrize(
    ("name", "weight", "update", "told", "count"),
    [
        ("bf16", 1, 0.003, "stays 1: lost", 2),
        ("bf16", 1, 2**-8, "stays 1: lost", 2),
        ("bf16", 1, 0.004, "becomes 1.0078125: kept, rounded", 1),
        ("fp16", 1, 0.003, "kept, rounded", 1),
        ("bf16", 1, 5e-5, "stays 1: lost", 79),
        ("fp16", 1, 2**-10, "becomes 1.0009766: kept", 1),
        ("bf16", 0, 1e-9, "kept", 1),
        ("bf16", 1, 1e-8, "stays 1: lost", 0),
        ("bf16", -1, 0.001, "stays −1: lost", 2),
        ("fp8_e4m3", 400, 100, "overflows", 1),
    ],
)
def test_an_update_is_lost_or_kept(name, weight, update, told, count) -> None:
    known = FORMATS[name]
    assert told in verdict(known, weight, update)
    moved = updates_to_move(known, weight, update)
    assert moved == count
    assert known.round(weight + moved * update) != weight or not count
    assert count < 2 or known.round(weight + (moved - 1) * update) == weight
    assert told in update_line(known, weight, update).body


def test_the_update_before_is_dashed() -> None:
    assert "dashed" not in update_line(bf16, 1, 0.01).body
    changed = update_line(bf16, 1, 0.01, before=(bf16, 1, 0.002)).body
    assert "dashed: + 0.002" in changed
    assert "dashed" not in update_line(bf16, 1, 0.01, before=(fp16, 1, 0.002)).body


@pytest.mark.parametrize("name", ["fp16", "fp8_e5m2", "fp8_e4m3", "bf16"])
@pytest.mark.parametrize("scale", [1, 1024, 2.0**20])
def test_the_window_is_what_the_format_keeps(name: str, scale: float) -> None:
    known = FORMATS[name]
    low, high = gradient_window(known, scale)
    assert known.round(low * scale) == 0 < known.round(low * 1.001 * scale)
    assert math.isfinite(known.round(high * 0.999 * scale))
    assert not math.isfinite(known.round(high * 1.001 * scale))
    assert sum(fates(known, scale).values()) == pytest.approx(1)


def test_fp16_keeps_from_2_to_the_minus_25_to_65520() -> None:
    assert gradient_window(fp16) == (2**-25, 65520)
    assert gradient_window(fp16, 2**10) == (2**-35, 65520 / 1024)


def test_a_scale_moves_the_window_and_the_one_before_is_dashed() -> None:
    plain = loss_scale(fp16, 1e-8, 1)
    assert "10⁻⁸ comes back as 0, at S = 1" in plain.words
    assert "47 % become 0, 53 % are kept" in plain.words
    moved = loss_scale(fp16, 1e-8, 1024, before=(fp16, 1))
    assert "kept: above 2⁻³⁵ and below 63.984" in moved.body
    assert moved.body.count("stroke-dasharray") == 1
    assert "stroke-dasharray" not in plain.body
    assert "overflow" in loss_scale(fp16, 1e-8, 2**22).words
    assert "overflow" not in loss_scale(fp16, 1e-8, 2**21).words  # as the page tells
    assert "100 % are kept." in loss_scale(bf16, 1e-8, 1).words


def test_an_outlier_spoils_all_under_one_scale_and_its_block_under_three() -> None:
    drawn = block_scales()
    told = re.findall(r"(\d+) of 24 numbers become 0", drawn.words)
    lost = [int(n) for n in told]
    assert lost == [14, 3]
    assert drawn.body.count("<title>becomes 0</title>") == sum(lost)
    kept = drawn.body.count(f'fill="{COLORS["activations"]}"')
    assert kept == 2 * 24 - sum(lost)
    assert drawn.body.count("<title>kept</title>") == kept + 1 + 3  # and the frames


def test_neighbours_are_told_apart_however_large() -> None:
    for known, x in ((FORMATS["fp32"], 3.3e38), (bf16, 2e30), (FORMATS["fp32"], 1e-30)):
        near = [known.shifted(x, k) for k in (-2, -1, 0, 1, 2)]
        assert len(set(distinct(near))) == 5


def test_a_cell_is_a_byte_in_its_parts_colour() -> None:
    for name, recipe in RECIPES.items():
        body = recipe_bytes([name]).body
        for part, size in recipe.parts().items():
            color = COLORS[part.replace("_", " ")]
            assert body.count(f'fill="{color}"') == size + 1  # and one in the key
        assert f">{recipe.total}</text>" in body
        assert f"{recipe.total} bytes." in recipe_bytes([name]).words


def test_the_memory_line_stands_still() -> None:
    def drawn(size: float, before: float | None = None) -> str:
        parts = {"weights": size / 4, "optimizer": size * 3 / 4}
        return on_a_gpu({"weights": 2, "optimizer": 6}, parts, 80e9, before).body

    lines = {re.findall(r'<line x1="380"[^>]*width="3"/>', drawn(x))[0] for x in (4e9, 90e9)}
    assert len(lines) == 1
    assert "far beyond" in drawn(200e9)
    assert "far beyond" not in drawn(150e9)
    assert "dashed: 20.0 GB" in drawn(40e9, 20e9)
    bars = re.findall(r'y="136" width="([\d.]+)" height="54"', drawn(80e9))
    assert sum(map(float, bars)) == pytest.approx(340)  # up to the line
    told = on_a_gpu({"weights": 2}, {"weights": 90e9}, 80e9).words
    assert "90.0 GB is more than its 80.0 GB" in told


EVERYWHERE = [1e-30, -0.1, 0.1, 1.0, 3.14159265, 399.0, 65504.0, 1e6, 0.0]
EVERYWHERE += [1e40, -3.3e38, 2.5e30]


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_leaves_the_canvas(name: str) -> None:
    known = FORMATS[name]
    drawings = [number_bits(known, x, k) for x in EVERYWHERE for k in (-8, 0, 8)]
    drawings += [update_line(known, w, d) for w in (-400, 0, 1, 0.3) for d in (1e-9, 0.01, 100)]
    drawings += [loss_scale(known, g, 2.0**k) for g in (1e-12, 1e4) for k in (0, 12, 40)]
    drawings += [recipe_bytes(), block_scales()]
    for drawing in drawings:
        for place in re.findall(
            r'<rect x="([-\d.]+)" y="([-\d.]+)" width="([-\d.]+)"', drawing.body
        ):
            x, y, wide = map(float, place)
            assert 0 <= x <= x + wide <= drawing.width
            assert 0 <= y <= drawing.height
        for x, size, place, words in re.findall(
            r'<text x="([-\d.]+)" y="[-\d.]+" font-size="([\d.]+)" '
            r'text-anchor="(\w+)"[^>]*>([^<]*)<',
            drawing.body,
        ):
            assert float(size) >= 14
            room = 0.56 * float(size) * len(words)
            left = float(x) - room * {"start": 0, "middle": 0.5, "end": 1}[place]
            assert -6 <= left <= left + room <= drawing.width + 6, words
        assert drawing.words in unescape(drawing.saved())


# --- the page


def page_of(folder: str = "") -> str:
    root = published.data_folder().parent / "notebooks" / folder
    cells = json.loads((root / "05_precision.ipynb").read_text("utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells)


def test_the_table_of_formats_is_that_of_the_package() -> None:
    for name, known in FORMATS.items():
        cells = [known.bits, known.exponent_bits, known.mantissa_bits]
        cells += [number(known.max), power(int(math.log2(known.min_subnormal)))]
        cells += [power(int(math.log2(known.eps)))]
        row = " | ".join(map(str, [name, *cells]))
        assert f"| {row} |" in page_of(), row


def test_what_the_page_says_of_the_edges_of_formats() -> None:
    fp8, fp32 = FORMATS["fp8_e4m3"], FORMATS["fp32"]
    assert fp8.round(2**-10) == 0 < fp8.round(2**-10 * 1.001)
    assert "nothing above 448, and 0 from $2^{-10}$ down" in page_of()
    assert 1 - bf16.max / fp32.max == pytest.approx(1 / 256, rel=1e-4)
    assert "it lacks a 256th" in page_of()
    for known in FORMATS.values():  # F = 1 below the smallest normal number
        small = 2.0 ** (1 - known.bias) * 1 / 2**known.mantissa_bits
        assert small == known.min_subnormal
        assert known.spacing(small) == known.spacing(known.min_normal)
    for page in (page_of(), page_of("evidence")):
        assert "some 14 bits" in page
        assert "H800" in page


def test_what_the_page_says_of_runs_and_of_training() -> None:
    speedups = published.fp8_speedup().query("kind == 'run'")["speedup"]
    assert (round(speedups.min(), 1), round(speedups.max(), 1)) == (0.9, 1.7)
    peaks = published.accelerator("A100").peaks
    assert (peaks["bf16"], peaks["tf32"]) == (312e12, 156e12)
    fp32 = FORMATS["fp32"]
    ratio = train_small_network(bf16, fp32, master_copy=False)[-1]
    ratio /= train_small_network(fp32, fp32)[-1]
    assert round(ratio) == 11  # "eleven times"
    outliers = page_of("evidence")  # a hundredfold one does no harm
    assert "A hundredfold outlier does no harm" in outliers
    assert page_of().count("0.9 to 1.7 times") == page_of().count("eleven times") == 1


# --- panel

PANEL = PANELS["precision"]


def told(preset: str, **values: object) -> str:
    return PANEL.answer({**PANEL.presets[preset], **values}).html


@pytest.mark.parametrize(
    ("preset", "values", "said"),
    [
        ("A number in bf16", {}, "<b>0.0977 % off</b>: bf16 has no 0.1"),
        ("A number in bf16", {"steps": -2}, "<b>2 places below</b> the number stored for 0.1, and"),
        ("A number in bf16", {"number": 0.5}, "<b>Exact</b>: 0.5 is one"),
        ("A number in bf16", {"format": "fp16", "number": 70000}, "more than fp16 holds"),
        ("A number in bf16", {"format": "fp16", "number": 1e-6}, "subnormal"),
        ("A number in bf16", {"format": "fp16", "number": 1e-9}, "less than half of fp16"),
        (
            "An update that is lost",
            {},
            "what is below half the spacing, 0.003906, is rounded away.",
        ),
        (
            "An update that is lost",
            {"update": 2**-8},
            "exactly half the spacing is a tie; this one goes to 1.",
        ),
        ("An update that is lost", {}, "the tie decides: here</td>"),
        ("An update that is lost", {"weight": 1.0078125}, "kept</td>"),
        ("A number in bf16", {"number": 1e39}, "<b>infinity</b>: 10³⁹ is more"),
        (
            "An update that is lost",
            {"update": 0.005},
            "<b>Kept, rounded</b>: bf16 has not quite this sum, and stores the nearest "
            "that it has, 1.0078125.",
        ),
        ("An update that is lost", {"update": 1}, "<b>Kept</b>: bf16 has the sum, 2."),
        (
            "An update that is lost",
            {"format": "fp8_e4m3", "weight": 400, "update": 100},
            "<b>Overflow</b>: 384 + 100 in fp8_e4m3 overflows, for the largest number "
            "of fp8_e4m3 is 448.",
        ),
        ("A gradient that vanishes", {}, "<b>Lost</b>: in fp16 at S = 1 whatever"),
        ("A gradient that vanishes", {"loss_scale": 4}, "1.49 × 10⁻⁸"),
        ("A gradient that vanishes", {"loss_scale": 4}, "<b>Kept, with few digits</b>"),
        ("A gradient that vanishes", {"loss_scale": 4096}, "with few digits</b>"),
        ("A gradient that vanishes", {"loss_scale": 8192}, "all of fp16's digits</b>"),
        (
            "A gradient that vanishes",
            {"loss_scale": 2**22},
            "<b>Step skipped</b>: the largest gradients of the picture overflow, "
            "0.074 % of them. The one you chose: <b>Kept, with all",
        ),
        (
            "A gradient that vanishes",
            {"gradient": 1e4, "loss_scale": 8},
            '0px"><b>Step skipped</b>: in fp16 at S = 8 whatever is past',
        ),
        ("8B, no sharding", {}, "<b>128 GB</b>"),
        ("8B, no sharding", {"recipe": "bf16_both_grads"}, "161 GB"),
        ("8B, no sharding", {"recipe": "bf16_fp32_grads"}, "<b>145 GB</b>"),
        ("8B, no sharding", {"recipe": "fp8", "chip": "H100 SXM"}, "<b>104 GB</b>"),
        ("8B, no sharding", {"recipe": "pure_bf16"}, "fits"),
        ("8B, no sharding", {"zero_stage": 1}, "fits"),
        ("8B, no sharding", {"model": "gpt2"}, "1.99 GB"),
        ("8B, no sharding", {"chip": "MI300X"}, "fits"),
        ("8B, no sharding", {"data_parallel": 64}, "with any number of replicas"),
        ("70B, ZeRO 3", {"data_parallel": 8}, "15 replicas would do"),
        ("70B, ZeRO 3", {"zero_stage": 2}, "with any number of replicas"),
    ],
)
def test_the_panel_follows_each_control(preset: str, values: dict, said: str) -> None:
    assert said in told(preset, **values)


@pytest.mark.parametrize(
    ("recipe", "chip", "needed"),
    [
        ("fp8", "A100 80GB SXM", "fp8"),
        ("bf16", "V100 32GB SXM2", "bf16"),
        ("pure_bf16", "T4", "bf16"),
    ],
)
def test_a_recipe_that_the_chip_cannot_compute_is_refused(
    recipe: str, chip: str, needed: str
) -> None:
    start = PANEL.presets["8B, no sharding"]
    answer = PANEL.answer({**start, "recipe": recipe, "chip": chip})
    assert f"Recipe {recipe!r} computes in {needed}, and the" in answer.problem
    assert f"{chip} knows no {needed}." in answer.problem
    assert ("Recipe: fp32", {"recipe": "fp32"}) in answer.offers
    assert answer.offers[0] == ("Accelerator: H100 SXM", {"chip": "H100 SXM"})
    assert needed not in {change.get("recipe") for _, change in answer.offers}
    for _, change in answer.offers:
        shown = PANEL.answer({**start, "recipe": recipe, "chip": chip, **change})
        assert "model states" in shown.html


@pytest.mark.parametrize("written", ["2**13", "2^13", " 2 ^ 13 ", "8,192", 8192])
def test_a_loss_scale_is_read_as_a_power_of_two_too(written: object) -> None:
    control = PANEL.controls["loss_scale"]
    assert control.read(written) == 8192
    for wrong in ("2**41", "3**2", "2^", "2**-1"):
        with pytest.raises(ValueError, match="Loss scale S"):
            control.read(wrong)


def test_a_large_loss_scale_is_shown_as_the_power_that_the_picture_names() -> None:
    control = PANEL.controls["loss_scale"]
    for stop in control.stops:
        assert control.read(control.write(stop)) == stop
    assert control.write(2**22) == "2^22"
    assert [control.write(x) for x in (8192, 3_000_000)] == ["8,192", "3M"]
    panel = precision_panel()
    panel.controls["look"].value = "a loss scale"
    panel.controls["loss_scale"].value = "2**22"
    assert panel.controls["loss_scale"].input.value == "2^22"
    shown = unescape(panel.output.value)
    assert "at S = 2²²" in shown
    assert "scaled by 2²²" in shown
    assert "at S = 4,194,304" not in shown


def test_words_in_the_drawing_of_bits_keep_apart() -> None:
    body = number_bits(bf16, 1.0, -1, before=(bf16, 1.0, 0)).body
    places = re.findall(
        r'<text x="([\d.]+)" y="([\d.]+)" font-size="([\d.]+)" '
        r'text-anchor="(\w+)"[^>]*>([^<]*)<',
        body,
    )
    ends: dict[str, list[tuple[float, float]]] = {}
    for x, y, size, anchor, words in places:
        wide = 0.62 * float(size) * len(words)  # as wide as broad fonts are
        left = float(x) - wide * {"start": 0, "middle": 0.5, "end": 1}[anchor]
        ends.setdefault(y, []).append((left, left + wide))
    for row in ends.values():
        row.sort()
        for (_, end), (start, _) in pairwise(row):
            assert start - end > 8


def test_the_sum_on_the_page_stalls_where_it_says() -> None:
    [code] = re.findall(r"```python\n(.*?)```", page_of(), re.DOTALL)
    names: dict = {"FORMATS": FORMATS}
    exec(code, names)
    assert names["total"] == 256
    assert "# 256.0" in code


def test_a_recipe_says_what_its_products_need() -> None:
    known = {name: products_in(name) for name in RECIPES}
    assert known.pop("fp8") == "fp8"
    assert {name for name, needed in known.items() if not needed} == {"fp32", "amp"}
    assert {known[name] for name in known if "bf16" in name} == {"bf16"}


def test_a_number_past_all_names_is_written_by_its_power_of_ten() -> None:
    panel = precision_panel()
    field = panel.controls["number"]
    for said, shown in (("1e39", "1e39"), (-(10**39), "-1e39"), ("3.4e38", "3.4e38")):
        field.value = said
        assert (field.input.value, field.echo.value) == (shown, "")
    assert "round(3.4e+38)" in unescape(panel.output.value)
    field.value = "1e50"
    assert "Number: '1e50' lies outside -1e40 to 1e40" in unescape(panel.status.value)


def test_steps_begin_anew_at_another_number_or_format() -> None:
    panel = precision_panel()
    steps = panel.controls["steps"]
    steps.value = 3
    assert "<b>3 places above</b>" in panel.output.value
    panel.controls["number"].value = "a lot"  # refused: nothing has changed
    assert steps.value == 3
    panel.controls["number"].value = 1
    assert (steps.value, steps.input.value, steps.slider.value) == (0, "0", 8)
    assert "<b>Exact</b>" in panel.output.value
    steps.value = -1
    panel.controls["format"].value = "fp16"
    assert panel.values()["steps"] == 0
    panel.set(number=2, steps=5)  # by code both may be said at once
    assert "<b>5 places above</b>" in panel.output.value


def test_the_stops_at_which_updates_are_kept_are_those_of_the_page() -> None:
    def first(**values: object) -> float:
        stops = PANEL.controls["update"].stops
        shown = ((d, told("An update that is lost", update=d, **values)) for d in stops)
        return next(d for d, html in shown if "<b>Lost" not in html)

    assert (first(), first(format="fp16")) == (0.005, 0.0005)
    assert "bf16 keeps 0.005" in page_of()
    assert "fp16 0.0005" in page_of()


def test_the_scales_at_which_a_gradient_comes_back_are_those_of_the_page() -> None:
    scales = PANEL.controls["loss_scale"].stops
    kept = [s for s in scales if fp16.round(1e-8 * s) > 0]
    whole = [s for s in scales if 1e-8 * s >= fp16.min_normal]
    over = [s for s in scales if fates(fp16, s)["overflow"]]
    assert (kept[0], whole[0], over[0]) == (4, 8192, 2**22)


def test_the_bits_that_flip_from_1_are_those_of_the_page() -> None:
    for steps, flipped in ((1, "1 bit flipped"), (-1, "8 bits flipped")):
        values = {**PANEL.default, "number": 1, "steps": steps}
        assert flipped in PANEL.render(before=PANEL.default, **values)
    assert "one bit flips" in page_of()
    assert "eight do" in page_of()


def test_few_controls_are_shown_at_once() -> None:
    for values in PANEL.presets.values():
        shown = PANEL.shown(values)
        assert len(shown) <= 6
        assert len([n for n in shown if PANEL.controls[n].stops]) <= 1


def test_another_view_begins_its_own_ghosts() -> None:
    panel = precision_panel()
    panel.controls["look"].value = "an update"
    assert "dashed" not in panel.output.value
    panel.controls["update"].value = 0.01
    assert "dashed: + 0.002" in panel.output.value
    panel.controls["steps"].slider.value += 1  # hidden, and about something else
    assert "<b>Kept" in panel.output.value


def test_the_panel_redraws_quickly() -> None:
    for values in PANEL.presets.values():
        start = perf_counter()
        for _ in range(20):
            PANEL.render(before=PANEL.default, **values)
        assert (perf_counter() - start) / 20 < 0.05


# --- exercises


def text_of(id: str, answer: object) -> str:
    verdict = check(id, answer)
    assert verdict.ok is False
    return verdict.text


def test_05_a_takes_every_right_way() -> None:
    for answer in (15.5, "15.5", (2 - 2**-4) * 2**3, NumberFormat("x", 3, 4).max):
        assert check("05-a", answer).ok, answer
    assert ml_dtypes.finfo(ml_dtypes.float8_e3m4).max == 15.5


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (31, "one too high"),
        (16, "one place past"),
        (30, "without infinity"),
        (240, "swapped"),
        (57344, "E5M2"),
        (7.75, "one too low"),
        (8, "all ones"),
        (1.9375, "factor alone"),
        (248, "bias is missing"),
        (15.0, "the exponent is right. The last place is 2 ** -m, and m is 4."),
        (15.75, "m is 4, not 5"),
        (12, "too low"),
    ],
)
def test_05_a_names_the_slips(answer: float, said: str) -> None:
    assert said in text_of("05-a", answer)


def test_05_b_takes_every_right_way() -> None:
    for answer in (2**-6, "0.015625", 0.0156, 4 * 2**-7 / 2, bf16.spacing(6) / 2):
        assert check("05-b", answer).ok, answer
    assert bf16.round(6 + 2**-6) == 6 < bf16.round(6 + 2**-6 * 1.001)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (2**-5, "whole spacing"),
        (2**-8, "at a weight of 1"),
        (2**-7, "the spacing at 1"),
        (2**-9, "for fp16"),
        (6 * 2**-8, "doubles at each power"),
        (0.3, "too high"),
    ],
)
def test_05_b_names_the_slips(answer: float, said: str) -> None:
    assert said in text_of("05-b", answer)


def test_05_c_tells_why_of_each_change() -> None:
    assert check("05-c", "S = 2**16").ok
    assert check("05-c", "s = 2**16").ok
    assert "becomes 0" in text_of("05-c", "S = 2**10")
    assert "overflows" in text_of("05-c", "S = 2**24")
    assert "they save updates" in text_of("05-c", "main weights")
    for name, scale in (("S = 2**10", 2**10), ("S = 2**16", 2**16), ("S = 2**24", 2**24)):
        low, high = gradient_window(fp16, scale)
        assert check("05-c", name).ok == (low < 2**-38 and high > 2**-3)


MINE = {"model": "Llama-3.1-8B", "gpus": 8, "chip": "A100 80GB SXM"}
MINE |= {"recipe": "bf16", "zero_stage": 1, "gigabytes": 44.17}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"gigabytes": 44},
        {"gigabytes": "44.2", "gpus": "8"},
        {"gigabytes": (4 + 12 / 8) * 8.03},
        {"recipe": "bf16_fp32_grads", "zero_stage": 2, "gigabytes": 32.1},
        {"recipe": "fp8", "chip": "H100 SXM", "zero_stage": 1, "gigabytes": 48.2},
        {"model": "Llama-3.1-70B", "gpus": 64, "zero_stage": 3, "gigabytes": 17.6},
        {"model": "gpt2", "zero_stage": 0, "gigabytes": 1.99},
        {"model": "gpt2", "recipe": "fp32", "chip": "V100 32GB SXM2"}
        | {"zero_stage": 0, "gigabytes": 1.99},
    ],
)
def test_05_d_takes_any_design_that_holds(change: dict) -> None:
    verdict = check("05-d", MINE | change)
    assert verdict.ok, verdict.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gigabytes": 128.5}, "that is stage 0, not stage 1"),
        ({"gigabytes": 16.06}, "that is stage 3, not stage 1"),
        ({"gigabytes": 41.1}, "this is in GiB"),
        ({"gigabytes": 44.2e9}, "looks like bytes"),
        ({"gigabytes": 70}, "70 GB is too much"),
        ({"gigabytes": 5}, "5 GB is too little"),
        ({"gpus": 64, "zero_stage": 3, "gigabytes": 16.06}, "the weights alone"),
        ({"zero_stage": 0, "gigabytes": 128.5}, "less than a third free"),
        ({"zero_stage": 2, "gigabytes": 30.1}, "stage 1 already does"),
        ({"recipe": "pure_bf16"}, "small updates are lost"),
        ({"chip": "V100 32GB SXM2"}, "knows no bf16"),
        ({"recipe": "fp8"}, "knows no fp8"),
        ({"recipe": "bf17"}, "did you mean 'bf16'"),
        (
            {"recipe": "bf16_fp32_grads"},
            "this is for recipe bf16: put in the bytes of bf16_fp32_grads.",
        ),
        ({"zero_stage": 4}, "Known: 0, 1, 2, 3"),
        ({"model": "Llama-3.1-70B", "zero_stage": 3, "gigabytes": 141}, "No stage does"),
        ({"model": "Llama-9"}, "Llama-9"),
        ({"gigabytes": "heavy"}, "is no number"),
    ],
)
def test_05_d_says_what_does_not_hold(change: dict, said: str) -> None:
    assert said in text_of("05-d", MINE | change)


@pytest.mark.parametrize("recipe", RECIPES)
def test_05_d_hints_at_the_sums_of_the_recipe_that_was_chosen(recipe: str) -> None:
    exercise = EXERCISES["05-d"]
    *first, last = exercise.hints_for(MINE | {"recipe": recipe})
    assert first == list(exercise.hints()[:-1])
    [sums] = re.findall(f"With recipe {recipe}: (.*) bytes a parameter", last)
    for stage, told in enumerate(sums.split(", ")):
        for d in (2, 8, 64):
            weighs = model_state_bytes(64, recipe, stage, d).total / 64
            assert eval(told, {"d": d}) == weighs, (told, d)
    assert exercise.hints_for(None) == exercise.hints()
    if recipe == "amp":
        assert sums == "16, 8 + 8/d, 4 + 12/d, 16/d"
        assert "$8 + 8/d$" in page_of()


def test_05_d_waits_for_every_entry() -> None:
    assert check("05-d", MINE | {"gigabytes": None}).ok is None
    assert "leaves out gpus, chip" in text_of("05-d", {"model": "gpt2"})
    assert "is no dict" in text_of("05-d", 44)


def test_the_prediction_names_the_belief() -> None:
    prediction = PREDICTIONS["05-guess"]
    assert prediction.truth() == "one"
    assert walked("bf16") == 1
    assert walked("fp32") == pytest.approx(4, rel=1e-4)
    assert "on paper" in prediction.reveal("four")
    assert "all are alike" in prediction.reveal("In between")
    assert "and so it is" in prediction.reveal("one")
