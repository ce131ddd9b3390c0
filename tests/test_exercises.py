"""What the exercises of all chapters share, and the formulas that lead to the keys."""

from itertools import combinations

import numpy as np
import pytest

from llmtrain_helpers.checks import show
from llmtrain_helpers.exercises import EXERCISES, check
from llmtrain_helpers.exercises.common import NEAR, Function, Numeric, judge


def test_an_unknown_exercise_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="id='1a' is unknown"):
        check("1a", 3)


@pytest.mark.parametrize("id", EXERCISES)
def test_nothing_answered_yet(id: str) -> None:
    verdict = check(id, None)
    assert verdict.ok is None
    assert not verdict
    assert repr(verdict).startswith(f"○ {id}: no answer yet")


NUMERIC = [
    name for name, exercise in EXERCISES.items() if isinstance(exercise, Numeric)
]


@pytest.mark.parametrize("id", NUMERIC)
def test_a_numeric_key_is_right_and_one_per_cent_off_is_wrong(id: str) -> None:
    key = EXERCISES[id].key()
    assert EXERCISES[id].tolerance <= 0.005
    assert check(id, key).ok is True
    assert "✓" in repr(check(id, key))
    for off in (0.9, 0.99, 1.01, 1.1):
        assert check(id, key * off).ok is False


@pytest.mark.parametrize("id", NUMERIC)
def test_each_slip_is_named_exactly_and_in_three_digits(id: str) -> None:
    exercise = EXERCISES[id]
    for ratio, slip in exercise.slips.items():
        value = ratio * exercise.key()
        assert check(id, value).text == slip
        told = check(id, float(f"{value:.2e}"))
        assert told.text == slip or told.ok or told.text.startswith("nearly")


@pytest.mark.parametrize("id", NUMERIC)
def test_no_slip_lies_near_the_key_or_another_slip(id: str) -> None:
    exercise, key = EXERCISES[id], EXERCISES[id].key()

    def margin(value: float, share: float) -> float:
        return share * value if exercise.tolerance else min(0.5, NEAR * value)

    slips = [(ratio * key, text) for ratio, text in exercise.slips.items()]
    for value, _ in slips:
        assert abs(value - key) > margin(key, exercise.tolerance) + margin(value, NEAR)
    for (one, said), (other, told) in combinations(slips, 2):
        gap = abs(one - other)
        assert said == told or gap > margin(one, NEAR) + margin(other, NEAR)


@pytest.mark.parametrize("id", NUMERIC)
def test_what_is_near_a_slip_is_not_taken_for_it(id: str) -> None:
    for ratio, slip in EXERCISES[id].slips.items():
        for off in (0.9979, 1.0021):
            assert check(id, ratio * off * EXERCISES[id].key()).text != slip


def test_where_two_slips_fit_none_is_asserted() -> None:
    exercise = Numeric(lambda: 100, str, "h.", slips={1.2: "one.", 1.201: "other."})
    assert judge("x", 120.05, exercise, 0).text == "too high. h."
    assert exercise.judge(119.9) == (False, "one.")


@pytest.mark.parametrize("id", [name for name in NUMERIC if name[:2] != "00"])
def test_gib_and_factors_of_two_are_named_only_where_they_make_sense(id: str) -> None:
    key = EXERCISES[id].key()
    gib = "GiB" in check(id, key * 1.073741824).text
    assert gib == (id == "06-a")
    twice = "counted twice?" in check(id, 2 * key).text
    assert twice == (id in ("02-a", "02-c", "08-a"))


# --- the formulas as they are printed, and as the hints state them

l, h, V, s, B = 40, 6144, 50257, 1024, 512
P = 12 * l * h**2 * (1 + 13 / (12 * h) + (V + s) / (12 * l * h))
F = 96 * B * s * l * h**2 * (1 + s / (6 * h) + V / (16 * l * h))
X = F / 32.09 / 16
P_1T = 12 * 128 * 25600**2
P_1T *= 1 + 13 / (12 * 25600) + (51200 + 2048) / (12 * 128 * 25600)
F_530B = 72 * 280 * 2048 * 105 * 20480**2
F_530B *= 1 + 2048 / (6 * 20480) + 51200 / (12 * 105 * 20480)
MT_NLG = 2048 * 20480 * 105 * (34 + 5 * 128 * 2048 / 20480)

FORMULAS = {
    "00-a": ("", 8 * 300e9 * 175e9 / (512 * 140e12) / 86400),
    "00-c": ("A GiB is 2³⁰ bytes.", 80 * 2**30),
    "01-a": ("only enters in (V + s)h", 12 * l * h**2 + 13 * l * h + (V + s) * h),
    "01-a as printed": ("", P),
    "01-b": (
        "Weights: 4h² in attention, 8h² in the MLP. Biases: 4h and 5h. Norms: 4h.",
        4 * 1600**2 + 8 * 1600**2 + 4 * 1600 + 5 * 1600 + 4 * 1600,
    ),
    "01-b as printed": ("", 12 * 1600**2 * (1 + 13 / (12 * 1600))),
    "01-c": (
        "Queries and output are h×h; keys and values are h×(heads·d), with d = h / nu",
        lambda hidden_size, num_heads, num_kv_heads: (
            2 * hidden_size * hidden_size
            + 2 * hidden_size * (num_kv_heads * (hidden_size / num_heads))
        ),
    ),
    "01-d": ("", 12.88e9 / 46.7e9),
    "02-a": ("2 FLOPs for each row, each column", 2 * 2048 * 49152 * 12288),
    "02-b": (
        "12h² weights, 2 FLOPs each for every token, and 4s²h for the scores.",
        lambda hidden_size, sequence_length: (
            12 * hidden_size**2 * 2 * sequence_length
            + 4 * sequence_length**2 * hidden_size
        ),
    ),
    "02-c": ("full recomputation, divided by 32.09 s and 16 GPUs", X),
    "02-d": ("the FLOPs without recomputation, over", F_530B / 37.83 / 280 / 312e12),
    "03-a": (
        "8TP/(nX), in seconds; a day has 86,400",
        8 * 450e9 * P_1T / (3072 * 163e12) / 86400,
    ),
    "03-b": ("", 8 * 300e9 * P / (16 * X) / 86400),
    "03-c": (
        "GPUs, times days, times 24 hours, times the price",
        lambda num_gpus, days, price: num_gpus * days * 24 * price,
    ),
    "04-a": (
        "GPUs / (TP · PP) replicas, times micro-batch, accumulation and sequence.",
        16384 / (8 * 16) * 1 * 16 * 8192,
    ),
    "04-b": ("1000 samples in batches of 10, each batch in two", 1000 / 10 * 2),
    "04-c": (
        "Global batch over micro-batch and replicas; replicas are GPUs over the GPUs",
        lambda global_batch, micro_batch, gpus, model_parallel: (
            global_batch / micro_batch / (gpus / model_parallel)
        ),
    ),
    "05-a": ("(2 − 2⁻¹⁰) · 2¹⁵", (2 - 2**-10) * 2**15),
    "05-b": ("eps = 2⁻⁷; up to half of it is rounded away", 2**-7 / 2),
    "05-c": (
        "2 bytes of weights and 2 of gradients stay; 12 are shared out.",
        lambda parameters, replicas: (2 + 2 + 12 / replicas) * parameters,
    ),
    "06-a": ("sbhl(34 + 5as/h), with b = 1.", MT_NLG),
    "06-b": (
        "Two norms, attention and MLP take in 8h. Then 4ad + 4kd, and 8f.",
        lambda s, b, h, f, ad, kd: s * b * (8 * h + 4 * ad + 4 * kd + 8 * f),
    ),
    "06-c": (
        "1 − 2sbhl / sbhl(34 + 5as/h), as a share",
        1 - 2 * 2048 * 20480 * 105 / MT_NLG,
    ),
    "07-d": (
        "(p − 1)/m, with m the micro-batches that each replica works through.",
        lambda stages, batch, micro_batch, replicas: (
            (stages - 1) / (batch / micro_batch / replicas)
        ),
    ),
    "08-a": (
        "Forward 2·m·k·n, and backward one product for each of the two inputs.",
        2 * 512 * 1024 * 2048 + 2 * 2 * 512 * 1024 * 2048,
    ),
    "08-b": (
        "A mean and a scale, 4 bytes each, for each token and each norm.",
        2 * 4 * (8 * 1024) * (2 * 12),
    ),
    "08-d": (
        "2(d − 1)/d times the buffer, and 4 bytes for each gradient.",
        lambda parameters, replicas: 2 * (replicas - 1) / replicas * 4 * parameters,
    ),
}
"""What the hint says of it, and the same in Python."""


@pytest.mark.parametrize("name", FORMULAS)
def test_the_formula_as_printed_and_as_in_the_hint_is_right(name: str) -> None:
    told, formula = FORMULAS[name]
    assert told in EXERCISES[name[:4]].hint
    assert check(name[:4], formula).ok is True, check(name[:4], formula).text


def test_no_formula_of_a_hint_goes_unseen() -> None:
    hints = {
        name: exercise.hint
        for name, exercise in EXERCISES.items()
        if isinstance(exercise, Numeric | Function)
    }
    seen = {name for name, (told, _) in FORMULAS.items() if told}
    silent = {"00-a", "01-d", "03-b", "07-a", "07-b", "07-c"}
    assert seen - {"01-a as printed", "01-b as printed"} == set(hints) - silent
    for name in silent:
        assert not set("²³·×/+−⁻") & set(hints[name])


def test_an_exact_count_takes_what_rounds_to_it_and_a_rounding() -> None:
    key = EXERCISES["01-a"].key()
    for answer in (key, 18437658624.000004, key + 0.4, np.float64(key)):
        assert check("01-a", answer).text == "right, 18,437,658,624 parameters."
    for rounded in (18.44e9, 18.438e9, 18_437_700_000):
        verdict = check("01-a", rounded)
        assert verdict.ok is True
        assert verdict.text.endswith(
            "rounded: exactly it is 18,437,658,624 parameters."
        )
    for wrong in (18.4e9, 18.43e9, key + 1, key * 1.0005):
        assert check("01-a", wrong).ok is False
        assert check("01-a", wrong).text.startswith("nearly")
    assert "rounded; please" in check("01-a", 18.4e9).text
    assert "18,437,658,624" not in check("01-a", 18.4e9).text
    assert check("04-b", 199.9).ok is True
    assert check("04-b", 199.6).ok is False


@pytest.mark.parametrize("id", NUMERIC)
@pytest.mark.parametrize(
    "bad", [0, -1, float("nan"), "34", [34], True, 10**400], ids=show
)
def test_what_is_no_number_gets_a_sentence_and_no_traceback(id: str, bad) -> None:
    verdict = check(id, bad)
    assert verdict.ok is False
    assert len(repr(verdict)) < 200


class Hostile:
    """An answer that fails at whatever is done with it."""

    def __repr__(self) -> str:
        raise RuntimeError("x" * 5000)

    __getattr__ = __eq__ = __float__ = __bool__ = __call__ = __repr__


def raising(**_: object) -> None:
    raise ValueError("x" * 5000)


@pytest.mark.parametrize("id", EXERCISES)
@pytest.mark.parametrize(
    "answer",
    [Hostile(), [], {}, np.zeros(3), lambda **_: Hostile(), raising, exit],
    ids=type,
)
def test_an_answer_may_be_anything_at_all(id: str, answer) -> None:
    verdict = check(id, answer)
    assert verdict.ok is False
    assert len(repr(verdict)) < 400


def test_another_order_of_operations_is_as_right() -> None:
    assert check(
        "03-c", lambda num_gpus, days, price: days * num_gpus * (price * 24)
    ).ok
    seconds = lambda num_gpus, days, price: days * 86400 * num_gpus * (price / 3600)  # noqa: E731
    assert check("03-c", seconds).ok


def test_a_slip_is_named_only_where_it_fits() -> None:
    key = EXERCISES["01-a"].key()
    assert "last LayerNorm" in check("01-a", key + 2 * 6144).text
    assert check("01-a", key * 1.03).text.startswith("too high")
    assert "GB (10⁹ bytes) where GiB" in check("00-c", 80e9).text


def test_a_choice_is_judged_by_its_option() -> None:
    assert check("00-b", "rate").ok is True
    assert "a count has no" in check("00-b", "count").text
    assert "Known: rate, count" in check("00-b", "speed").text
    assert check("00-b", 3).ok is False
