"""Number formats against ml_dtypes and NumPy, recipes, ZeRO, and a small network's training."""

import math
import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_course.precision.formulas import (
    UpdatedWeight,
    between,
    fate_shares,
    fit_line,
    gradient_fates,
    gradient_window,
    half_spacing,
    neighbours,
    number_at,
    scale_and_store,
    shifted,
    split,
    sum_of_ones,
    train_small_network,
    update_weight,
)
from llmtrain_helpers import (
    FORMATS,
    RECIPES,
    NumberFormat,
    Recipe,
    model_state_bytes,
    published,
    smallest_data_parallel,
)
from llmtrain_helpers.checks import show
from llmtrain_helpers.precision import products_in
from tests.bad_values import assert_refused
from tests.pages import words

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
    number_format = FORMATS[name]
    assert (number_format.bits, number_format.max) == (bits, largest)
    assert (number_format.min_normal, number_format.min_subnormal) == (min_normal, min_subnormal)
    assert number_format.eps == eps


@every_format
def test_ml_dtypes_has_the_same_limits(name: str) -> None:
    info = ml_dtypes.finfo(INDEPENDENT[name])
    number_format = FORMATS[name]
    assert number_format.max == float(info.max)
    assert number_format.min_normal == float(info.smallest_normal)
    assert number_format.min_subnormal == float(info.smallest_subnormal)
    assert number_format.eps == float(info.eps)


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
    number_format = FORMATS[name]
    step = number_format.spacing(number_format.max)
    edges = number_format.max + step * np.array([0.25, 0.5, 0.51, 1, 2, 1e3])
    values = np.concatenate([edges, -edges, [np.inf, -np.inf, np.nan, 3e38]])
    assert_rounds_alike(name, np.clip(values, -3e38, 3e38).astype(np.float32))
    results = number_format.round(values[:-2], saturate=True)
    assert set(np.abs(results)) == {number_format.max}


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
    number_format = FORMATS[name]
    once = number_format.round(value, saturate=True)
    assert number_format.round(once, saturate=True) == once
    assert abs(once) <= number_format.max
    assert number_format.round(-value, saturate=True) == -once


def test_arrays_keep_their_shape_and_numbers_come_back_as_floats() -> None:
    assert FORMATS["bf16"].round(np.ones((2, 3))).shape == (2, 3)
    assert type(FORMATS["bf16"].round(1)) is float
    assert FORMATS["fp16"].spacing(np.array([1.0, 2048.0])).tolist() == [2**-10, 2]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bits": 17}, "bits=17 don't add up: sign 1 \\+ exponent 5 \\+ mantissa 10"),
        ({"exponent_bits": 1}, "exponent_bits=1 is less than 2"),
        ({"exponent_bits": 9}, "exponent_bits=9 is more than 8, what this can round"),
        ({"mantissa_bits": 24}, "mantissa_bits=24 is more than 23, what this can round"),
        ({"name": None}, "name=None isn't a str"),
        ({"mantissa_bits": 0}, "mantissa_bits=0 is not positive"),
        ({"mantissa_bits": 2.5}, "mantissa_bits=2.5 is not a whole number"),
        ({"infinities": "no"}, "infinities='no' is neither True nor False"),
    ],
)
def test_formats_that_do_not_add_up_are_refused(wrong, message: str) -> None:
    with pytest.raises(ValueError, match=message):
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


def test_a_main_weight_takes_updates_65_000_times_smaller_and_no_others() -> None:
    fp32 = FORMATS["fp32"]
    assert fp32.round(1 + 2**-25) == fp32.round(1 + 2**-24) == 1
    assert fp32.round(1 + 2**-24 * 1.001) > 1
    assert 2**-8 / 2**-24 == 65_536
    assert "65,000 times less than bf16 needs" in words("evidence/05_precision")


@every_format
def test_below_half_the_spacing_is_lost_and_at_half_the_last_bit_decides(name) -> None:
    number_format = FORMATS[name]
    weight = 1.0
    for _ in range(2**number_format.mantissa_bits):
        half, last_bit = number_format.spacing(weight) / 2, split(number_format, weight)[2] % 2
        assert number_format.round(weight + half * 0.999) == weight
        assert (number_format.round(weight + half) == weight) == (not last_bit)
        weight = shifted(number_format, weight, 1)


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
    assert math.isnan(train_small_network(bf16, fp8, loss_scale=2**20, steps=200)[-1])
    assert scaled[:200] == train_small_network(bf16, fp8, loss_scale=1024, steps=200)


def test_a_line_is_fitted_as_the_dtype_itself_fits_it() -> None:
    x = np.arange(16) / 4 - 15 / 8
    for main_weights, kept in ((True, np.float32), (False, ml_dtypes.bfloat16)):
        weights, losses = np.zeros(2, kept), []
        for _ in range(301):
            slope, intercept = weights.astype(ml_dtypes.bfloat16).astype(float)
            error = slope * x + intercept - (1.5 * x - 0.7)
            losses.append((error**2).mean())
            step = 0.0025 * 2 * np.array([(error * x).mean(), error.mean()])
            weights = (weights.astype(float) - step).astype(kept)
        ours = fit_line(FORMATS["bf16"], main_weights, 300)
        assert ours == pytest.approx(losses, rel=1e-9)


SMALL = {"weights": FORMATS["bf16"], "gradients": FORMATS["fp32"], "steps": 2}


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


def test_nvidias_checkpoints_agree_as_gib_rounded_up_and_not_as_gb() -> None:
    """They are printed as GB and TB; `du` prints GiB so, rounded up."""
    for row in STATES:
        size = re.search(r"checkpoint ~([\d.]+) (GB|TB)", row["name"])
        if size:
            binary = estimate(row) / 2 ** (30 if size[2] == "GB" else 40)
            digits = 0 if size[2] == "GB" else 1
            up = math.ceil(binary * 10**digits) / 10**digits
            assert up == float(size[1])
            decimal = estimate(row) / (1e9 if size[2] == "GB" else 1e12)
            assert decimal / float(size[1]) > 1.05


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
        with pytest.raises(ValueError, match=re.escape(f"too small for the {kept} bytes")):
            smallest_data_parallel(10**9, "bf16", stage, float(kept) - (stage == 0))


@pytest.mark.parametrize("name", ["parameters", "memory", "zero_stage"])
def test_replicas_are_sought_for_one_size_and_one_memory(name: str) -> None:
    good = {"parameters": 1e9, "recipe": "bf16", "zero_stage": 1, "memory": 16e9}
    for bad in (np.array([1e9, 2e9]), np.array([1]), None, -1):
        assert_refused(smallest_data_parallel, name, **(good | {name: bad}))


GOOD = {"parameters": 8e9, "recipe": "bf16", "zero_stage": 1, "data_parallel": 8}


@pytest.mark.parametrize("bad", [4, -1, 1.5, True, "1", None, np.array([1, 2])], ids=show)
def test_a_stage_is_0_to_3(bad) -> None:
    assert_refused(model_state_bytes, "zero_stage", **(GOOD | {"zero_stage": bad}))


def test_a_misspelt_recipe_gets_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'bf16_fp32_grads'"):
        model_state_bytes(8e9, "bf16_fp32_grad")
    for bad in (None, 16, ["bf16"]):
        assert_refused(model_state_bytes, "recipe", **(GOOD | {"recipe": bad}))


# --- bits and neighbours


def test_the_bits_are_those_of_ml_dtypes() -> None:
    for name, dtype in INDEPENDENT.items():
        number_format, width = FORMATS[name], 8 * np.dtype(dtype).itemsize
        kind, last = f"uint{width}", 2**width
        for bits in range(0, last, 1 if width == 8 else 97):
            value = float(np.array([bits], kind).view(dtype)[0])
            if not math.isnan(value):
                sign, exponent, mantissa = split(number_format, value)
                place = sign << number_format.exponent_bits | exponent
                assert place << number_format.mantissa_bits | mantissa == bits, (name, value)


def test_what_is_no_finite_number_has_the_largest_exponent() -> None:
    assert split(FORMATS["fp16"], math.inf) == (0, 31, 0)
    assert split(FORMATS["fp16"], -1e9) == (1, 31, 0)
    assert split(FORMATS["fp16"], math.nan)[1:] == (31, 512)
    assert split(FORMATS["fp8_e4m3"], 1e9) == (0, 15, 7)
    assert_refused(split, "value", number_format=FORMATS["fp16"], value="1")
    assert_refused(split, "value", number_format=FORMATS["fp16"], value=None)


@every_format
def test_neighbours_are_the_next_in_the_list_of_all_values(name: str) -> None:
    finite = every_value(name)
    finite = np.unique(finite[np.isfinite(finite)]).astype(float).tolist()
    for i in range(1, len(finite) - 1, 1 if len(finite) < 300 else 53):
        around = finite[i - 1], finite[i + 1]
        assert neighbours(FORMATS[name], finite[i]) == around


def test_going_up_and_down_ends_at_the_largest() -> None:
    fp16 = FORMATS["fp16"]
    assert shifted(fp16, 0.1, 0) == fp16.round(0.1)
    assert shifted(fp16, 0.0, -1) == -fp16.min_subnormal
    assert shifted(fp16, -fp16.min_subnormal, 2) == fp16.min_subnormal
    assert shifted(fp16, 65504.0, 5) == 65504
    assert_refused(
        shifted, "value=70000.* more than fp16 holds", number_format=fp16, value=7e4, steps=1
    )


@given(st.floats(allow_nan=False), st.sampled_from(list(FORMATS)))
def test_one_number_without_numpy_is_rounded_as_in_an_array(value, name: str) -> None:
    number_format = FORMATS[name]
    for saturate in (False, True):
        one = number_format.round(value, saturate)
        [same] = number_format.round(np.array([value]), saturate)
        assert one == same or (math.isnan(one) and math.isnan(same))
        assert math.copysign(1, one) == math.copysign(1, same)
    if abs(value) < 1e39:
        assert number_format.spacing(value) == number_format.spacing(np.array([value]))[0]


def test_around_zero_the_spacing_is_the_smallest_number() -> None:
    for number_format in FORMATS.values():
        assert (
            number_format.spacing(0.0)
            == number_format.spacing(np.zeros(1))[0]
            == (number_format.min_subnormal)
        )


def test_a_recipe_says_what_its_products_need() -> None:
    needs = {name: products_in(name) for name in RECIPES}
    assert needs.pop("fp8") == "fp8"
    assert {name for name, needed in needs.items() if not needed} == {"fp32", "amp"}
    assert {needs[name] for name in needs if "bf16" in name} == {"bf16"}


# --- bad values


@pytest.mark.parametrize(("name", "ours"), [("bf16", ml_dtypes.bfloat16), ("fp16", np.float16)])
@pytest.mark.parametrize("update", [0.0002, 0.003, 0.004, 0.00439, -0.001])
def test_updates_leave_a_weight_where_the_dtype_itself_leaves_it(name, ours, update) -> None:
    direct, main = ours(1), np.float32(1)
    for updates in range(1, 12):
        direct = ours(np.float64(direct) + update)
        main = np.float32(np.float64(main) + update)
        after = update_weight(FORMATS[name], 1, update, updates)
        assert after == UpdatedWeight(float(direct), float(main), float(ours(main)))
    assert update_weight(FORMATS[name], 1, update, 0) == UpdatedWeight(1, 1, 1)


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp8_e4m3", "fp8_e5m2"])
def test_ones_stall_where_they_are_added_one_by_one(name: str) -> None:
    number_format, total = FORMATS[name], 0.0
    for ones in range(1, 3000):
        total = number_format.round(total + 1)
        assert sum_of_ones(number_format, ones) == total, ones
    stalls = {"bf16": 256, "fp16": 2048, "fp8_e4m3": 16, "fp8_e5m2": 8}
    assert total == stalls[name]
    assert sum_of_ones(FORMATS["fp32"], 10**9) == 2**24


@every_format
def test_bits_make_the_number_that_splits_into_them(name: str) -> None:
    number_format = FORMATS[name]
    for x in (1, 1.5, number_format.max, number_format.min_normal):
        _, exponent, mantissa = split(number_format, x)
        place = exponent * 2**number_format.mantissa_bits + mantissa
        assert number_at(number_format, place) == number_format.round(x)
        assert number_at(number_format, -place) == -number_format.round(x)
    with pytest.raises(ValueError, match="place"):
        number_at(number_format, 2 ** (number_format.bits - 1))


def test_between_two_numbers_stand_all_that_the_format_has() -> None:
    e4m3 = FORMATS["fp8_e4m3"]
    every = {float(x) for x in np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)}
    for low, high in ((0, 16), (-1.1, 0.3), (3.6, 3.7), (440, 448)):
        assert between(e4m3, low, high) == sorted(x for x in every if low <= x <= high)
    assert len([x for x in between(e4m3, 8, 16) if x < 16]) == 8  # as the page tells
    with pytest.raises(ValueError, match="low"):
        between(e4m3, 2, 1)
    with pytest.raises(ValueError, match="high"):
        between(FORMATS["fp32"], 1, 2)
    with pytest.raises(ValueError, match="448"):
        between(e4m3, 1, 1000)


def test_the_example_gradients_meet_the_edges_of_fp16() -> None:
    fp16 = FORMATS["fp16"]
    for scale in (1, 4, 2**20, 2**28):
        low, high = gradient_window(fp16, scale)
        for k, fate in gradient_fates(fp16, scale).items():
            truth = "lost" if 2.0**k <= low else "kept" if 2.0**k < high else "too large"
            assert fate == truth
        assert sum(fate_shares(fp16, scale).values()) == pytest.approx(1)
    assert round(fate_shares(fp16, 1)["lost"], 2) == 0.47
    assert fate_shares(fp16, 1024)["lost"] == pytest.approx(0.03895, rel=1e-3)
    assert fate_shares(FORMATS["bf16"], 1)["kept"] == pytest.approx(1)
    assert fate_shares(fp16, 2**24)["too large"] > 0 == fate_shares(fp16, 2**18)["too large"]
    assert fate_shares(fp16, 2**28)["too large"] > 0.02


@every_format
def test_an_update_of_half_the_way_to_the_next_number_is_the_first_that_may_arrive(name) -> None:
    number_format = FORMATS[name]
    for weight in (1.0, -1.0, 0.02, 6.0):
        start = number_format.round(weight)
        half = half_spacing(number_format, weight)
        assert (
            number_format.round(start + 0.999 * half)
            == start
            < number_format.round(start + 1.001 * half)
        )


def test_the_window_is_where_scaling_gives_back_something() -> None:
    fp16 = FORMATS["fp16"]
    low, high = gradient_window(fp16, 1024)
    assert scale_and_store(fp16, low, 1024) == 0 < scale_and_store(fp16, 1.01 * low, 1024)
    assert scale_and_store(fp16, 0.999 * high, 1024) < math.inf == scale_and_store(fp16, high, 1024)


# --- bad values


@pytest.mark.parametrize("bad", [None, -1])
def test_a_recipe_of_ones_own(bad) -> None:
    own = Recipe("mine", 2, 0, 0, 0, 2)
    assert own.weights == 2
    assert model_state_bytes(10, own).total == 40
    with pytest.raises(ValueError, match="optimizer"):
        Recipe("mine", 2, 2, 0, 0, bad)
