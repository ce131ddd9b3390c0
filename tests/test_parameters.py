"""Chapter 01: formulas, figures, panel, exercises."""

import random

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
from llmtrain_helpers.checks import show
from llmtrain_helpers.exercises import check
from llmtrain_helpers.figures import describe
from llmtrain_helpers.figures.parameters import formula_errors, shares_by_size
from llmtrain_helpers.panels import parameters as panel_module, parameters_panel

from .bad_values import BAD_COUNTS, assert_refused

SHAPE = {
    "num_layers": 40,
    "hidden_size": 6144,
    "vocab_size": 50257,
    "sequence_length": 1024,
}
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


def test_a_count_past_what_a_float_holds_is_exact() -> None:
    assert gpt_parameters(1, 10**9 + 1, 1, 1) == 12 * (10**9 + 1) ** 2 + 15 * (
        10**9 + 1
    )


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


@pytest.mark.parametrize("name", SHAPE)
@pytest.mark.parametrize("bad", BAD_COUNTS, ids=show)
def test_bad_input_is_refused(name: str, bad) -> None:
    assert_refused(gpt_parameters, name, **(SHAPE | {name: bad}))


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


@st.composite
def transformers(draw) -> Transformer:
    whole = st.integers(1, 500)
    kv, group, d = draw(whole), draw(whole), draw(whole)
    l, f, V, s = (draw(whole) for _ in range(4))
    if draw(st.booleans()):
        tied = draw(st.booleans())
        return Transformer.gpt(l, kv * group * d, kv * group, V, s, tied)
    chosen = draw(st.integers(0, 8))
    experts = draw(st.integers(chosen, 64)) if chosen else 0
    traits = {
        name: draw(st.booleans()) for name in ("tied_embeddings", "qkv_bias", "qk_norm")
    }
    head = draw(st.sampled_from([None, 128]))
    return Transformer.llama(
        *(l, kv * group * d, kv * group, kv, f, V, s, head),
        num_experts=experts,
        experts_per_token=chosen,
        **traits,
    )


@given(transformers())
def test_parts_sum_to_the_total(model: Transformer) -> None:
    counted = count_parameters(model)
    assert sum(counted.parts().values()) == counted.total
    assert sum(counted.shares().values()) == pytest.approx(1)
    assert counted.active <= counted.total
    assert (counted.active < counted.total) == (
        model.num_experts > model.experts_per_token
    )
    assert all(type(part) is int and part >= 0 for part in counted.parts().values())


@given(sizes, st.integers(1, 64), st.integers(1, 512), sizes, sizes)
def test_on_gpts_the_count_is_the_formula_and_the_last_norm(l, a, d, V, s) -> None:
    h = a * d
    counted = count_parameters(Transformer.gpt(l, h, a, V, s))
    assert counted.total == gpt_parameters(l, h, V, s) + 2 * h


def test_counting_a_shape_of_arrays_equals_a_loop() -> None:
    layers = np.array([2, 30, 400])
    swept = count_parameters(Transformer.llama(layers, 64, 8, 2, 96, 100, 32))
    looped = [
        count_parameters(Transformer.llama(int(l), 64, 8, 2, 96, 100, 32))
        for l in layers
    ]
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


# --- figures


def test_the_figure_of_shares_shows_what_was_counted() -> None:
    names = ["gpt2", "GPT-3 175B"]
    figure = shares_by_size({name: published.architecture(name) for name in names})
    gpt3 = count_parameters(published.architecture("GPT-3 175B"))
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
    assert lines["MLP"][-1] == pytest.approx(100 * gpt3.mlp / gpt3.total)
    assert "MLP: 45.5 at x = 124,000,000 to 66.4" in describe(figure)


def test_the_figure_of_errors_is_in_order() -> None:
    told = describe(formula_errors({"low": -0.4, "high": 0.1, "none": 0.0}))
    assert "high 10, none 0, low -40" in told


# --- the panel


def test_the_panel_shows_sentence_picture_table_and_call() -> None:
    shown = parameters_panel().output.value
    order = ["175 billion parameters", "<div", "<table", "count_parameters(Trans"]
    places = [shown.index(part) for part in order]
    assert places == sorted(places)
    assert "174,604,259,328" in shown


@pytest.mark.parametrize("name", panel_module._PRESETS)
def test_each_preset_shows_the_count_and_the_code_that_gives_it(name: str) -> None:
    panel = parameters_panel()
    panel.preset.value = name
    total = count_parameters(published.architecture(name)).total
    assert f"{total:,}" in panel.output.value
    code = panel.output.value.split("<pre")[1].split(">", 1)[1].split("</pre>")[0]
    names = {"count_parameters": count_parameters, "Transformer": Transformer}
    assert eval(code.replace("&#x27;", "'"), names).total == total


def test_a_changed_control_redraws_and_leaves_the_preset() -> None:
    panel = parameters_panel()
    before = panel.output.value
    panel.controls["num_layers"].value += 1
    assert panel.output.value != before
    assert panel.preset.value == "your own"
    panel.reset.click()
    assert panel.output.value == before
    assert panel.preset.value == "GPT-3 175B"


def test_an_error_is_shown_in_the_formulas_words_and_the_panel_goes_on() -> None:
    panel = parameters_panel()
    panel.controls["num_heads"].value = 7
    assert "hidden_size=12288 is not divisible by num_heads=7" in panel.output.value
    panel.controls["num_heads"].value = 96
    assert "175 billion" in panel.output.value


def test_controls_that_a_gpt_does_not_have_are_greyed_out() -> None:
    panel = parameters_panel()
    assert panel.controls["num_kv_heads"].disabled
    panel.preset.value = "Llama-3.1-8B"
    assert not panel.controls["num_kv_heads"].disabled


def test_random_settings_never_break_the_panel() -> None:
    panel, dice = parameters_panel(), random.Random(1)
    for _ in range(300):
        name = dice.choice(list(panel.controls))
        control = panel.controls[name]
        if hasattr(control, "options"):
            control.value = dice.choice(control.options)
        elif isinstance(control.value, bool):
            control.value = not control.value
        else:
            control.value = dice.choice([control.min, control.max, 1, 8, 64, 4096])
        shown = panel.output.value
        refused = "Not possible:</b>" in shown and "=" in shown.split("possible:")[1]
        assert ("count_parameters(Transformer." in shown) != refused


def test_cold_the_panel_leaves_its_stills_and_a_short_text() -> None:
    bundle = parameters_panel()._repr_mimebundle_()
    assert bundle["text/plain"] == "Panel: How many parameters?"
    cold = bundle["text/html"]
    for total in ("174,604,259,328", "8,030,261,248", "46,702,792,704"):
        assert total in cold
    assert "<svg" not in cold


# --- exercises


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (18_437_658_624, "right, 18,437,658,624 parameters"),
        (18_437_806_080, "s = 1048"),
        (12 * 40 * 6144**2, "12lh² alone"),
        (184_376_586_240, "ten times too much"),
        (18.437658624, "not billions"),
        (5, "too low"),
        ("18B", "is not a number"),
        (-1, "is not positive"),
    ],
)
def test_the_check_names_the_slip(answer, said: str) -> None:
    verdict = check("01-a", answer)
    assert said in verdict.text
    assert bool(verdict) is said.startswith("right")


def test_a_function_is_tried_on_every_case() -> None:
    def never_grouped(hidden_size, num_heads, num_kv_heads):
        return 4 * hidden_size**2

    def broken(hidden_size, num_heads, num_kv_heads):
        return hidden_size / 0

    assert "num_kv_heads=8 it returned" in check("01-c", never_grouped).text
    assert "ZeroDivisionError" in check("01-c", broken).text
    assert "is no function" in check("01-c", 42).text
    assert check("01-c", lambda **_: None).ok is None


def test_every_llama_of_the_data_differs_from_a_gpt_in_four_ways_at_least() -> None:
    for row in published.architectures().query("kind == 'llama'").to_dict("records"):
        model = published.architecture(row["name"])
        ways = [
            model.gated_mlp,
            model.num_kv_heads < model.num_heads,
            not model.tied_embeddings,
            model.num_positions == 0,
            not (model.bias or model.qkv_bias),
            not model.layer_norm,
        ]
        assert sum(ways) >= 4, row["name"]
        assert row["name"] != "Llama-3.1-8B" or all(ways)


def test_what_the_count_leaves_out_of_other_families() -> None:
    """Exact totals of bigscience/bloom-560m and google/gemma-2-2b on the Hub."""
    bloom = gpt_parameters(24, 1024, 250_880, 2048) / 559_214_592 - 1
    assert round(100 * bloom, 1) == 0.4
    two_norms_more = 2 * 26 * 2304
    assert two_norms_more / 2_614_341_888 < 0.0001
