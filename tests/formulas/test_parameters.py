"""How many parameters: the formula, the count by parts, published totals."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import (
    ParameterCount,
    Transformer,
    count_parameters,
    gpt_parameters,
    published,
)
from tests.strategies import transformers

SHAPE = {"num_layers": 40, "hidden_size": 6144, "vocab_size": 50257, "sequence_length": 1024}


sizes = st.integers(1, 10**6)


# --- the published formula


def test_the_worked_cases_to_the_last_parameter() -> None:
    assert gpt_parameters(**SHAPE) == 18_437_658_624
    assert gpt_parameters(96, 12288, 51200, 2048) == 174_615_822_336
    assert gpt_parameters(**(SHAPE | {"sequence_length": 1048})) == 18_437_806_080


def test_the_ten_sizes_of_table_1_round_to_the_printed_ones() -> None:
    table = published.megatron_table1()
    for row in table.to_dict("records"):
        counted = gpt_parameters(**{name: row[name] for name in SHAPE})
        assert round(counted / 1e9, 1) == row["parameters"] / 1e9, row["name"]


@given(sizes, sizes, sizes, sizes)
def test_ints_stay_exact(l: int, h: int, V: int, s: int) -> None:
    counted = gpt_parameters(l, h, V, s)
    assert type(counted) is int
    assert counted == 12 * l * h * h + 13 * l * h + V * h + s * h


@pytest.mark.parametrize("name", SHAPE)
def test_broadcasting_equals_a_loop(name: str) -> None:
    values = np.array([1, 7, 64, 4096, 50257])
    swept = gpt_parameters(**(SHAPE | {name: values}))
    looped = [gpt_parameters(**(SHAPE | {name: int(value)})) for value in values]
    assert swept.tolist() == looped


def test_two_arrays_make_a_grid() -> None:
    layers, widths = np.arange(1, 4)[:, None], np.array([64, 128])
    assert gpt_parameters(layers, widths, 100, 32).shape == (3, 2)


@given(sizes, sizes, sizes, sizes, st.sampled_from(list(SHAPE)))
def test_more_of_anything_is_more_parameters(l, h, V, s, name: str) -> None:
    shape = dict(zip(SHAPE, (l, h, V, s), strict=True))
    assert gpt_parameters(**(shape | {name: shape[name] + 1})) > gpt_parameters(**shape)


# --- the count, part by part


def exact_totals() -> list[str]:
    return published.architectures().dropna(subset="parameters")["name"].tolist()


@pytest.mark.parametrize("name", exact_totals())
def test_real_models_to_the_last_parameter(name: str) -> None:
    row = published.architectures().set_index("name").loc[name]
    counted = count_parameters(published.architecture(name))
    assert counted.total == row["parameters"]
    assert type(counted.total) is int
    if row["num_experts"]:
        assert counted.active == row["active_parameters"]
    else:
        assert counted.active == counted.total


@given(transformers())
def test_parts_sum_to_the_total(model: Transformer) -> None:
    counted = count_parameters(model)
    assert sum(counted.parts().values()) == counted.total
    assert sum(counted.shares().values()) == pytest.approx(1)
    assert counted.active <= counted.total
    assert (counted.active < counted.total) == (model.num_experts > model.experts_per_token)
    assert all(type(part) is int and part >= 0 for part in counted.parts().values())


@given(sizes, st.integers(1, 64), st.integers(1, 512), sizes, sizes)
def test_on_gpts_the_count_is_the_formula_and_the_last_norm(l, a, d, V, s) -> None:
    h = a * d
    counted = count_parameters(Transformer.gpt(l, h, a, V, s))
    assert counted.total == gpt_parameters(l, h, V, s) + 2 * h


def test_counting_a_shape_of_arrays_equals_a_loop() -> None:
    layers = np.array([2, 30, 400])
    swept = count_parameters(Transformer.llama(layers, 64, 8, 2, 96, 100, 32))
    looped = [count_parameters(Transformer.llama(int(l), 64, 8, 2, 96, 100, 32)) for l in layers]
    assert swept.total.tolist() == [count.total for count in looped]
    assert swept.mlp.tolist() == [count.mlp for count in looped]


def test_a_tied_head_weighs_nothing_and_an_untied_one_the_embedding() -> None:
    tied, untied = (
        count_parameters(Transformer.gpt(2, 64, 4, 100, 32, tied_embeddings=tied))
        for tied in (True, False)
    )
    assert (tied.head, untied.head) == (0, 100 * 64)
    assert untied.total - tied.total == 6400


def test_counts_of_the_same_parts_are_equal() -> None:
    assert ParameterCount(1, 2, 3, 4, 5, 15) == ParameterCount(1, 2, 3, 4, 5, 15)
    assert ParameterCount(1, 2, 3, 4, 5, 15).total == 15


def test_what_the_count_leaves_out_of_other_families() -> None:
    """Exact totals of bigscience/bloom-560m and google/gemma-2-2b on the Hub."""
    bloom = gpt_parameters(24, 1024, 250_880, 2048) / 559_214_592 - 1
    assert round(100 * bloom, 1) == 0.4
    two_norms_more = 2 * 26 * 2304
    assert two_norms_more / 2_614_341_888 < 0.0001
