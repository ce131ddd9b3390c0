"""Chapter 01: formulas, figures, panel, exercises."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import ParameterCount, Transformer, count_parameters, gpt_parameters, units
from llmtrain_helpers.checks import show
from llmtrain_helpers.drawings import parameters as drawings, stack
from llmtrain_helpers.drawings.common import COLORS
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_helpers.exercises.common import judge
from llmtrain_helpers.figures import describe
from llmtrain_helpers.figures.parameters import formula_errors, shares_by_size
from llmtrain_helpers.panels import PANELS, parameters as panel_module
from llmtrain_helpers.panels.notebook import NotebookPanel

from .bad_values import BAD_COUNTS, assert_refused
from .panel_code import value_of

PAGE = Path(__file__).parents[1] / "notebooks" / "01_parameters.ipynb"

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


def test_a_count_past_what_a_float_holds_is_exact() -> None:
    assert gpt_parameters(1, 10**9 + 1, 1, 1) == 12 * (10**9 + 1) ** 2 + 15 * (10**9 + 1)


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
    traits = {name: draw(st.booleans()) for name in ("tied_embeddings", "qkv_bias", "qk_norm")}
    head = draw(st.sampled_from([None, 128]))
    return Transformer.llama(
        l,
        kv * group * d,
        kv * group,
        kv,
        f,
        V,
        s,
        head,
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


# --- the drawings


@pytest.mark.parametrize("name", [*exact_totals(), "GPT-3 175B", "MT-NLG 530B"])
def test_the_matrices_that_are_drawn_are_those_that_are_counted(name: str) -> None:
    model = published.architecture(name)
    counted = count_parameters(model)
    l, h, f = model.num_layers, model.hidden_size, model.intermediate_size
    d, a, k = model.head_dim, model.num_heads, model.num_kv_heads
    count = lambda matrices: sum(matrix.count for matrix in matrices)  # noqa: E731
    biases = model.qkv_bias * (a + 2 * k) * d + model.bias * h
    assert l * (count(drawings.attention(model)) + biases) == counted.attention
    experts, bias = max(model.num_experts, 1), model.bias * (f + h)
    mlps = experts * (count(drawings.mlp(model)) + bias) + model.num_experts * h
    assert l * mlps == counted.mlp
    *inside, last = drawings.norms(model)
    assert l * count(inside) + last.count == counted.norm
    assert count(drawings.tables(model)) == counted.embedding
    assert count(drawings.heads(model)) == counted.head


@pytest.mark.parametrize("name", ["GPT-3 175B", "Llama-3.1-8B", "Mixtral-8x7B"])
def test_the_flow_shows_every_matrix_with_its_size_and_tells_it(name: str) -> None:
    model = published.architecture(name)
    drawn = drawings.transformer(model, name)
    kinds = (drawings.attention, drawings.mlp, drawings.tables, drawings.heads)
    for matrix in [matrix for kind in kinds for matrix in kind(model)]:
        assert f">{matrix.size}</text>" in drawn.body
        assert matrix.size in drawn.words
        assert f'fill="{COLORS[matrix.part]}"' in drawn.body
    assert f"one of {model.num_layers} layers, open" in drawn.body
    assert f"{model.vocab_size:,} scores" in drawn.words
    assert ("again (tied)" in drawn.body) == model.tied_embeddings
    assert ("experts" in drawn.words) == bool(model.num_experts)


def rectangles(body: str, color: str) -> list[tuple[float, float]]:
    """Width and height of each rectangle of a colour."""
    pattern = rf'width="([\d.]+)" height="([\d.]+)" fill="{color}"'
    return [(float(w), float(h)) for w, h in re.findall(pattern, body)]


def test_the_sides_of_a_layers_matrices_are_to_scale() -> None:
    model = published.architecture("Llama-3.1-8B")
    drawn = drawings.transformer(model).body
    swatch = (12, 12)
    blue, red = (
        [side for side in rectangles(drawn, COLORS[part]) if side != swatch]
        for part in ("attention", "MLP")
    )
    unit = blue[0][0] / 4096
    sides = [*drawings.attention(model), *drawings.mlp(model)]
    for (wide, high), matrix in zip([*blue, *red], sides, strict=True):
        assert wide == pytest.approx(matrix.columns * unit, abs=0.15)
        assert high == pytest.approx(matrix.rows * unit, abs=0.15)


@given(transformers())
def test_areas_are_to_scale(model: Transformer) -> None:
    shares = count_parameters(model).shares()
    boxes = drawings.boxes(model)
    whole = sum(wide * high for _, _, wide, high in boxes.values())
    for part, word in drawings.PARTS.items():
        _, _, wide, high = boxes[word]
        assert wide * high / whole == pytest.approx(shares[part])


@given(transformers(), st.sampled_from(drawings.CHOICES))
def test_any_model_can_be_drawn_and_opened(model: Transformer, part: str) -> None:
    shown = drawings.areas(model, part)
    for matrix in drawings.opened(model, part):
        assert f">{matrix.size}</text>" in shown.body
        assert matrix.size in shown.words
    assert drawings.transformer(model).words.startswith("Drawing: A transformer.")
    for body in (shown.body, drawings.transformer(model).body):
        assert not re.search(r'(width|height)="-|nan|inf"', body)


def test_the_areas_tell_counts_shares_and_what_is_idle() -> None:
    told = drawings.areas(published.architecture("Mixtral-8x7B"), "MLP").words
    assert "46.7 billion parameters as areas" in told
    assert "attention 1.34 billion (2.87 %)" in told
    assert "Pale: experts that a token does not meet, 6 of 8 in a layer." in told
    assert "gate 4,096 × 14,336" in told
    with pytest.raises(ValueError, match="chosen='mpl' is unknown"):
        drawings.areas(published.architecture("gpt2"), "mpl")


@pytest.mark.parametrize("name", ["Mixtral-8x7B", "Qwen3-30B-A3B"])
def test_as_many_experts_are_full_as_a_token_meets(name: str) -> None:
    model = published.architecture(name)
    for layer in range(model.num_layers):
        chosen = drawings._chosen(model, layer)
        assert len(set(chosen)) == model.experts_per_token
        assert all(0 <= expert < model.num_experts for expert in chosen)
    drawn = drawings.areas(model, "MLP").body
    assert f"{model.experts_per_token} of {model.num_experts} for each token" in drawn


def test_what_changed_leaves_a_ghost_and_its_number() -> None:
    model = published.architecture("Llama-3.1-8B")
    wider = replace(model, num_kv_heads=32)
    plain = drawings.areas(model, "attention").body
    assert "stroke-dasharray" not in plain
    assert drawings.areas(model, "attention", model).body == plain
    shown = drawings.areas(model, "attention", wider).body
    assert "dashed: 8.84 billion" in shown
    assert "was 2.15 billion" in shown
    assert shown.count("<title>at the start</title>") == 2  # keys and values


# --- the panel

PANEL = PANELS["parameters"]


def test_the_panel_shows_sentence_picture_table_and_call() -> None:
    shown = PANEL.answer(PANEL.default).html
    order = ["175 billion parameters", "<svg", "<table", "count_parameters(Trans"]
    places = [shown.index(part) for part in order]
    assert places == sorted(places)
    assert "174,604,259,328" in shown
    assert "all but the last norm" in shown
    llama = PANEL.answer(PANEL.presets["Llama-3.1-8B"]).html
    assert "6,977,880,064: 13.1 % too few" in llama


BY_HAND = [
    name for name, values in PANEL.presets.items() if values["model"] == panel_module.BY_HAND
]


@pytest.mark.parametrize("name", BY_HAND)
def test_each_preset_shows_the_count_and_the_code_that_gives_it(name: str) -> None:
    model = published.architecture(name)
    shown = PANEL.answer(PANEL.presets[name]).html
    assert f"{count_parameters(model).total:,}" in shown
    assert drawings.areas(model).live() in shown
    assert value_of(shown) == count_parameters(model)


@pytest.mark.parametrize("name", BY_HAND)
def test_no_stop_of_a_slider_ends_in_a_refusal(name: str) -> None:
    """Whichever kind is chosen beside it."""
    preset = PANEL.presets[name]
    for control, it in PANEL.controls.items():
        for stop, kind in itertools.product(it.stops, ("GPT", "Llama")):
            changed = {**preset, control: stop, "kind": kind}
            assert not PANEL.answer(changed, preset).problem, (control, stop)


def test_two_or_three_sliders_and_the_rest_folded_if_it_applies() -> None:
    first = [name for name, it in PANEL.controls.items() if not it.more]
    sliders = ["num_layers", "hidden_size", "vocab_size"]
    assert first == ["model", "config", "part", *sliders]
    assert [name for name, it in PANEL.controls.items() if it.lead] == first[:2]
    assert sum(bool(it.stops) for it in PANEL.controls.values()) == 3
    gpt, llama = (set(PANEL.shown(PANEL.presets[n])) for n in ("gpt2", "Llama-3.1-8B"))
    assert gpt - llama == {"sequence_length"}
    assert {"num_kv_heads", "head_dim", "qk_norm"} <= llama - gpt
    assert "experts_per_token" in PANEL.shown(PANEL.presets["Mixtral-8x7B"])
    assert "experts_per_token" not in llama


def test_a_field_that_does_not_apply_does_not_change_the_count() -> None:
    for preset in map(PANEL.presets.get, BY_HAND):
        answer = PANEL.answer(preset).html
        for name in set(PANEL.controls) - set(PANEL.shown(preset)):
            value = not preset[name] if PANEL.controls[name].kind == "flag" else 3
            changed = PANEL.answer({**preset, name: value}).html
            assert changed.split("<pre")[0] == answer.split("<pre")[0], name


@pytest.mark.parametrize("part", drawings.CHOICES)
def test_an_opened_part_stands_in_the_sentence(part: str) -> None:
    shown = PANEL.render(**{**PANEL.presets["Llama-3.1-8B"], "part": part})
    said = shown.split("</p>")[0]
    assert "8.03 billion parameters" in said
    assert part == "whole model" or f"{part}: <b>" in said


def test_a_refusal_speaks_in_labels_and_offers_what_would_do() -> None:
    values = {**PANEL.presets["Llama-3.1-8B"], "num_kv_heads": 7}
    answer = PANEL.answer(values)
    assert "Key-value heads 7" in answer.problem
    assert ("Key-value heads: 8", {"num_kv_heads": 8}) in answer.offers


def test_a_change_leaves_the_state_before_as_a_ghost() -> None:
    before = PANEL.default
    after = {**before, "num_layers": 48}
    assert "dashed: 175 billion" in PANEL.answer(after, before).html
    opened = {**before, "part": "MLP"}
    assert "dashed:" not in PANEL.answer(opened, before).html


def test_cold_the_panel_leaves_pictures_that_a_sanitizer_keeps() -> None:
    cold = PANEL.still()
    for total in ("174,604,259,328", "8,030,261,248", "671,026,404,352"):
        assert total in cold
    assert "<svg" not in cold
    assert cold.count("<img alt=") == 3


def test_what_the_page_says_of_the_panel_is_what_it_shows() -> None:
    count = lambda preset, **changes: count_parameters(  # noqa: E731
        panel_module.Setting(**{**PANEL.presets[preset], **changes}).shaped
    )
    page = source("panel-answers")
    assert f"{units.count(count('GPT-3 175B', hidden_size=24576).total)}," in page
    assert f"{units.count(count('GPT-3 175B', num_layers=192).total)}," in page
    sizes = {k: count("Llama-3.1-8B", num_kv_heads=k).total for k in (32, 8, 1)}
    assert f"{units.count(sizes[32])} parameters" in page
    assert f"saves {(sizes[32] - sizes[8]) / 1e9:.2f} billion, 9 %" in page
    assert f"another {(sizes[8] - sizes[1]) / 1e9:.2f} billion, 3 %" in page
    text = panel_module.EXAMPLE
    more = text.replace('experts": 32', 'experts": 64')
    few, many = (
        count_parameters(panel_module.of_file(panel_module.PASTED, config))
        for config in (text, more)
    )
    told = [f"{x.total / 1e9:.1f}" for x in (few, many)]
    assert f"from {told[0]} to {told[1]} billion" in page
    assert f"still meets {units.count(few.active)}" in page
    assert units.count(few.active) == units.count(many.active)
    looks = {
        name: [kind.layer.mixer.window for kind in stack.kinds(config_model(name))]
        for name in ("gpt-oss-20b", "Gemma-3-1B")
    }
    assert looks == {"gpt-oss-20b": [128, 0], "Gemma-3-1B": [512, 0]}
    assert stack.in_order(config_model("gpt-oss-20b"))[:3] == [*(("A", 1), ("B", 1), ("A", 1))]
    assert stack.in_order(config_model("Gemma-3-1B"))[:2] == [("A", 5), ("B", 1)]


# --- any model


def config_model(name: str) -> Transformer:
    return published.config_model(name)


FILE = PANEL.presets[panel_module.PASTED]


@pytest.mark.parametrize("row", published.rows("configs"), ids=lambda row: row["name"])
def test_every_model_of_the_shelf_is_drawn_kind_by_kind(row) -> None:
    model = config_model(row["name"])
    shown = PANEL.answer({**PANEL.default, "model": row["name"]}).html
    assert f"{row['parameters']:,}" in shown
    assert stack.stack(model, row["name"]).live() in shown
    found = stack.kinds(model)
    assert sum(kind.how_many for kind in found) == model.num_layers
    assert sum(n for _, n in stack.in_order(model)) == model.num_layers
    layers = sum(kind.how_many * kind.parameters for kind in found)
    counted = count_parameters(model)
    inside = counted.attention + counted.mlp + counted.norm
    assert 0 <= inside - layers <= 4 * model.hidden_size
    assert not re.search(r'(width|height)="-|nan|inf"', shown)
    assert value_of(shown) == counted


def test_every_family_that_is_read_can_be_drawn() -> None:
    read = [r["name"] for r in published.rows("families") if r["read"] == "exact"]
    for family in read:
        model = Transformer.from_config({"model_type": family})
        shown = stack.stack(model, family)
        assert "of another kind" not in shown.words, family
        assert not re.search(r'(width|height)="-|nan|inf"', shown.body), family
        assert shown.height > 380
    long = Transformer.from_config({"model_type": "gemma3_text", "num_hidden_layers": 900})
    assert "900 layers, from first to last, one in 6 drawn" in stack.stack(long).body


@pytest.mark.parametrize("name", ["DeepSeek-V3", "Jamba-v0.1", "Gemma-3-1B", "gpt2"])
def test_the_areas_of_a_stack_are_to_scale(name: str) -> None:
    model = config_model(name)
    drawn = re.findall(
        r'width="([\d.]+)" height="([\d.]+)" fill="(#\w+)"[^>]*><title>(\w+)',
        "".join(stack._strip(model)),
    )
    found: dict[str, float] = {}
    for wide, high, color, word in drawn:
        full = "output head" if word == "output" else word
        assert color == COLORS[full]
        found[full] = found.get(full, 0) + float(wide) * float(high)
    for part, share in count_parameters(model).shares().items():
        area = found.get(drawings.PARTS[part], 0) / stack.ACROSS / stack.TALL
        assert area == pytest.approx(float(share), abs=0.004)


def test_a_pasted_file_is_read_and_leaves_the_state_before() -> None:
    shown = PANEL.answer(FILE).html
    assert "20.9 billion parameters" in shown
    more = {**FILE, "config": FILE["config"].replace('experts": 32', 'experts": 64')}
    assert "dashed: 20.9 billion" in PANEL.answer(more, FILE).html
    assert "dashed:" not in PANEL.answer(FILE, PANEL.default).html


def test_sizes_that_a_pasted_file_leaves_out_are_named() -> None:
    assert "Not in the text" not in PANEL.answer(FILE).html
    fewer = re.sub(r'\s*"num_hidden_layers": 24,', "", FILE["config"])
    shown = PANEL.answer({**FILE, "config": fewer}).html
    assert "family are counted: num_hidden_layers = 36." in shown


def test_a_side_that_no_outline_can_show_is_told() -> None:
    def shown(hidden_size: int) -> str:
        values = {**PANEL.default, "hidden_size": hidden_size}
        return PANEL.answer(values, PANEL.default).html

    for size in (1, 512, 1_000_000):
        assert "dashed: longest side 49,152" in shown(size)
    assert "longest side" not in shown(14336)


def test_layers_for_further_tokens_stand_beside_the_total() -> None:
    shown = PANEL.answer(PANEL.presets["DeepSeek-V3"]).html
    assert "Beside them: 11.6 billion to predict further tokens" in shown
    assert "in no sum" in shown
    assert "11,610,067,968" in shown


HOSTILE = {
    "nonsense": "The text 'nonsense' holds no JSON",
    " ": "Paste the text",
    "[1]": "The text [1] is no mapping",
    "[" * 100_000: "holds no JSON",
    "x" * 2_000_000: "is longer than 1,000,000 letters",
    "{}": "In the file, model_type=None is unknown",
    '{"model_type": "<script>"}': "model_type='<script>' is unknown",
    '{"model_type": "llama", "hidden_size": NaN}': "hidden_size=nan is not a finite",
    '{"model_type": "llama", "vocab_size": 1, "vocab_size": 2}': "contradicts",
    '{"model_type": "llama", "num_hidden_layers": 100000}': "at most 1,000 can be",
    '{"model_type": "gemma3", "text_config": {}}': "stands under text_config",
    '{"model_type": "gemma3_text", "num_hidden_layers": 1' + "0" * 400 + "}": "finite",
    "\ud800": "holds no JSON",
}


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:24].strip('"{ '))
def test_hostile_text_is_refused_and_the_last_picture_stays(text: str) -> None:
    answer = PANEL.answer({**FILE, "config": text})
    assert HOSTILE[text] in answer.problem
    assert (answer.html, answer.offers) == ("", ())
    assert len(answer.problem) < 400
    panel = NotebookPanel(PANEL)
    panel.set(**FILE)
    before = panel.output.value
    panel.controls["config"].value = text
    assert panel.output.value == before
    assert "llmtrain-old" in panel.output._dom_classes
    assert "<script>" not in panel.status.value


def test_what_the_page_says_of_deepseek_is_so() -> None:
    page, model = source("experts-reading"), config_model("DeepSeek-V3")
    counted, [(dense, _), (sparse, layer)] = count_parameters(model), model.layers
    h = model.hidden_size
    assert (dense, sparse) == (3, 58)
    assert f"{counted.total:,} parameters, and a token meets" in page
    assert f"meets {units.count(counted.active)}. Published" in page
    assert f"holds {units.count(layer.mlp.parameters(h))} parameters" in page
    met = layer.mlp.parameters(h) - layer.mlp.idle(h)
    assert f"meets {units.count(met)} of them" in page
    assert f"{units.count(layer.mixer.parameters(h))} parameters a layer" in page
    assert f"would have {units.count(4 * h * 128 * 128)}." in page
    copies = counted.prediction + counted.embedding + counted.head
    told = f"{units.count(counted.prediction)}, or {units.count(copies)} with its copies"
    assert f"{told} of embedding and head, which the 671 billion leave out" in page


def source(name: str) -> str:
    """A cell of the learner's page."""
    notebook = nbformat.read(PAGE, as_version=4)
    [cell] = [cell for cell in notebook.cells if cell.id == name]
    return str(cell.source)


def test_what_the_page_says_of_vocabularies_and_depths_is_so() -> None:
    page = source("questions")
    for name, told in {"70B": "3 %", "8B": "13 %"}.items():
        counted = count_parameters(published.architecture(f"Llama-3.1-{name}"))
        share = (counted.embedding + counted.head) / counted.total
        assert f"{round(100 * share)} %" == told
        assert told in page
    untied = replace(published.architecture("Llama-3.2-1B"), tied_embeddings=False)
    counted = count_parameters(untied)
    assert round(100 * 2 * counted.embedding / counted.total) == 35
    models = published.architectures().query("name.str.lower().str.startswith('llama')")
    big = models[models["parameters"] > 6e9]
    ratios = big["hidden_size"] / big["num_layers"]
    assert (int(ratios.min()), round(ratios.max())) == (102, 130)


# --- exercises

PLAIN = gpt_parameters(8, 512, 32000, 512)
LAPTOP = 8 * (12 * 512**2 + 4 * 512) + (2 * 32000 + 512) * 512


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (LAPTOP, "right, 58,212,352 parameters"),
        (PLAIN - 9 * 8 * 512 + 32000 * 512, "right"),
        (LAPTOP + 2 * 512, "right"),
        ("58,212,352", "right"),
        ("58.21M", "right, and rounded"),
        (58.2e6, "right, and rounded"),
        (PLAIN, "output head is missing"),
        (12 * 8 * 512**2, "12lh² alone"),
        (LAPTOP - 512 * 512, "table of positions is missing"),
        (LAPTOP - 32000 * 512, "output head is missing"),
        (LAPTOP + 9 * 8 * 512, "the biases are still in"),
        (LAPTOP + 8 * 8 * 512, "nearly: is it rounded, or is a small part"),
        (LAPTOP - 4 * 8 * 512, "are both norms there, and no bias?"),
        (12 * 512**2 + 4 * 512 + 64512 * 512, "one layer only"),
        (LAPTOP - 4 * 8 * 512**2, "two matrices of h × 4h"),
        (LAPTOP - 6 * 8 * 512**2, "four times as wide"),
        (58.212352, "not millions"),
        (10 * LAPTOP, "ten times too much"),
        (5, "too low. Count the layers and the tables apart"),
        ("many", "is no number"),
        (-1, "is not positive"),
    ],
)
def test_the_laptops_gpt_is_right_each_right_way_and_slips_are_named(answer, said: str) -> None:
    verdict = judge("01-a", answer, EXERCISES["01-a"], 0)
    assert said in verdict.text
    assert bool(verdict) is said.startswith("right")


def test_hints_come_in_steps() -> None:
    hints = [judge("01-a", 5, EXERCISES["01-a"], tries).text for tries in range(4)]
    assert len(set(hints)) == 3
    assert "12lh²" not in hints[0]
    assert "12lh² + 4lh" in hints[2] == hints[3]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda h, a, k, d: h * d * (a + 2 * k), "output is missing"),
        (lambda h, a, k, d: 4 * h * a * d, "some are shared"),
        (lambda h, a, k, d: h * d * (2 * a + k), "are two matrices"),
        (lambda h, a, k, d: 2 * h * (a + k), "head size is missing"),
        (lambda h, a, k, d: 7, "it returned 7, too little. How many columns"),
    ],
)
def test_slips_of_attention_are_named(wrong, said: str) -> None:
    def answer(hidden_size, num_heads, num_kv_heads, head_dim):
        return wrong(hidden_size, num_heads, num_kv_heads, head_dim)

    assert said in judge("01-b", answer, EXERCISES["01-b"], 0).text


@pytest.mark.parametrize("name", ["GPT-3 175B", "Mixtral-8x7B", "Llama-2-70b"])
def test_twice_the_model_is_not_twice_the_layers(name: str) -> None:
    counted = count_parameters(published.architecture(name))
    assert "twice the whole model" in check("01-e", (name, 2 * counted.total)).text
    inside = counted.attention + counted.mlp + counted.norm
    assert check("01-e", (name, counted.total + inside)).ok


def test_the_waterfall_tells_each_change() -> None:
    drawn = drawings.waterfall(("one", 100), {"more": 50, "less": -30}, "other")
    assert drawn.words == "one 100; more + 50, less − 30; other 120."
    assert drawn.body.count("<rect") == 4


def test_attention_is_tried_on_every_case() -> None:
    def right(hidden_size, num_heads, num_kv_heads, head_dim):
        return 2 * hidden_size * head_dim * (num_heads + num_kv_heads)

    def as_in_the_notebook(hidden_size, num_heads, num_kv_heads, head_dim):
        return 2 * hidden_size**2 + 2 * hidden_size * num_kv_heads * head_dim

    def never_grouped(hidden_size, num_heads, num_kv_heads, head_dim):
        return 4 * hidden_size**2

    def broken(hidden_size, num_heads, num_kv_heads, head_dim):
        return hidden_size / 0

    assert check("01-b", right).text == "right, in all 4 cases."
    assert "queries and output are taken as h × h" in (check("01-b", as_in_the_notebook).text)
    assert "this is 4h², a GPT's" in check("01-b", never_grouped).text
    assert "ZeroDivisionError" in check("01-b", broken).text
    assert "is no function" in check("01-b", 42).text
    assert check("01-b", lambda **_: None).ok is None


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (4e9 + 36e9 / 8, "right, 8.50 billion"),
        ("8.5B", "right"),
        (8_500_000_000, "right"),
        (5e9, "2/16 of everything"),
        (4.5e9, "experts that it meets"),
        (4e9, "outside the experts: add"),
        (6.25e9, "with one expert a layer"),
        (40e9, "this is the total"),
        (8.5, "give the number itself"),
        (85e9, "ten times too much"),
        (9e9, "too high. What does a token meet that is no expert?"),
    ],
)
def test_what_a_token_meets(answer, said: str) -> None:
    verdict = judge("01-c", answer, EXERCISES["01-c"], 0)
    assert said in verdict.text
    assert bool(verdict) is said.startswith("right")


def design(l: int, h: int, f: int, V: int = 128256, tied: bool = True) -> Transformer:
    return Transformer.llama(l, h, h // 64, 8, f, V, 8192, tied_embeddings=tied)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (design(20, 2048, 8192), "right: 1.48 billion parameters, 17.8 %"),
        (design(21, 2048, 8192), "right"),
        (design(98, 1024, 3072, tied=False), "right"),
        (design(16, 2048, 8192, tied=False), "more than a fifth"),
        (design(16, 2048, 8192), "17.6 % less than the budget"),
        (design(40, 2048, 8192), "more than the budget"),
        (design(20, 2048, 8192, 32000), "vocabulary should be 128,256"),
        (1.5e9, "this is no model"),
    ],
)
def test_any_design_that_keeps_to_the_budget_is_right(answer, said: str) -> None:
    verdict = judge("01-d", answer, EXERCISES["01-d"], 0)
    assert said in verdict.text
    assert bool(verdict) is said.startswith("right")


def test_the_pages_first_try_of_a_design_fails_by_its_tables() -> None:
    tried = Transformer.llama(16, 2048, 32, 8, 8192, 128256, 8192)
    assert "more than a fifth" in check("01-d", tried).text
    assert "num_layers=16" in source("exercise-d")


EIGHT = count_parameters(published.architecture("Llama-3.1-8B"))
LAYERS = EIGHT.attention + EIGHT.mlp + EIGHT.norm


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (EIGHT.total + LAYERS, "right: 15.0 billion, 1.87 times as many"),
        ("15.01B", "right"),
        (15e9, "right"),
        (2 * EIGHT.total, "twice the whole model"),
        (EIGHT.total, "the model as it is"),
        (2 * LAYERS, "the layers alone"),
        (LAYERS, "what is added"),
        (12e9, "too low. What is in the layers doubles"),
        ("deep", "is no number"),
    ],
)
def test_your_own_model_made_deeper(answer, said: str) -> None:
    verdict = judge("01-e", ("Llama-3.1-8B", answer), EXERCISES["01-e"], 0)
    assert said in verdict.text
    assert bool(verdict) is said.startswith("right")


def test_your_own_model_may_be_any_and_needs_a_number() -> None:
    gpt = Transformer.gpt(2, 64, 4, 100, 32)
    deeper = count_parameters(replace(gpt, num_layers=4)).total
    assert check("01-e", (gpt, deeper)).ok is True
    assert check("01-e", ("gpt2", None)).ok is None
    assert "did you mean 'Llama-3.1-8B'" in check("01-e", ("Lama-3.1-8B", 1)).text
    assert "give two things" in check("01-e", 15e9).text


def test_guesses_are_told_how_far_they_were_and_why() -> None:
    guess = PREDICTIONS["01-guess"]
    assert guess.truth() == 50257 * 12288
    told = guess.reveal("20B")
    assert "you said 20B; it is 618 million: 32 times too much" in told
    assert "0.354 % of the model" in told
    assert "31.0 % of the model" in told
    told = [PREDICTIONS["01-llama"].reveal(x) for x in ("right", "too many", "Too few")]
    assert [("and so it is" in text) for text in told] == [False, False, True]
    assert len({text.split(".")[1] for text in told}) == 3


def outputs(cell) -> list:
    return cell.get("outputs", [])


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
