"""Chapter 01's panel: what each control changes, and what it refuses."""

import itertools
import re

import pytest

from llmtrain_course.kit.widget import NotebookPanel
from llmtrain_course.panels import PANELS
from llmtrain_course.parameters import handles as panel_module, stack
from llmtrain_helpers import count_parameters, published, units
from tests.pages import cell
from tests.panel_code import value_of

PANEL = PANELS["parameters"]


GPT3 = PANEL.presets["GPT-3 175B"]


def test_the_panel_shows_sentence_picture_table_and_call() -> None:
    html = PANEL.answer(GPT3).html
    order = ["175 billion parameters", "<svg", "<table", "count_parameters(Trans"]
    places = [html.index(part) for part in order]
    assert places == sorted(places)
    assert "174,604,259,328" in html
    assert "all but the last norm" in html
    llama = PANEL.answer(PANEL.presets["Llama-3.1-8B"]).html
    assert "6,977,880,064, which is 13.1% too few" in llama


BY_HAND = [
    name for name, values in PANEL.presets.items() if values["model"] == panel_module.BY_HAND
]


@pytest.mark.parametrize("name", BY_HAND)
def test_each_preset_shows_the_count_and_the_code_that_gives_it(name: str) -> None:
    model = published.architecture(name)
    html = PANEL.answer(PANEL.presets[name]).html
    assert f"{count_parameters(model).total:,}" in html
    assert stack.stack(model).drawing().inline_svg() in html
    assert value_of(html) == count_parameters(model)


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
    assert first == ["model", "config", *sliders]
    assert [name for name, it in PANEL.controls.items() if it.lead] == first[:2]
    assert sum(bool(it.stops) for it in PANEL.controls.values()) == 3
    gpt, llama = (set(PANEL.visible_controls(PANEL.presets[n])) for n in ("gpt2", "Llama-3.1-8B"))
    assert gpt - llama == {"sequence_length"}
    assert {"num_kv_heads", "head_dim", "qk_norm"} <= llama - gpt
    assert "experts_per_token" in PANEL.visible_controls(PANEL.presets["Mixtral-8x7B"])
    assert "experts_per_token" not in llama


def test_a_field_that_does_not_apply_does_not_change_the_count() -> None:
    for preset in map(PANEL.presets.get, BY_HAND):
        answer = PANEL.answer(preset).html
        for name in set(PANEL.controls) - set(PANEL.visible_controls(preset)):
            value = not preset[name] if PANEL.controls[name].kind == "flag" else 3
            changed = PANEL.answer({**preset, name: value}).html
            assert changed.split("<pre")[0] == answer.split("<pre")[0], name


def test_a_refusal_speaks_in_labels_and_offers_what_would_do() -> None:
    values = {**PANEL.presets["Llama-3.1-8B"], "num_kv_heads": 7}
    answer = PANEL.answer(values)
    assert "Key-value heads 7" in answer.problem
    assert ("Key-value heads: 8", {"num_kv_heads": 8}) in answer.offers


def test_a_change_leaves_the_state_before_as_a_ghost() -> None:
    before = GPT3
    after = {**before, "num_layers": 48}
    assert "was 175 billion" in PANEL.answer(after, before).html


def test_cold_the_panel_leaves_pictures_that_a_sanitizer_keeps() -> None:
    cold = PANEL.static_html()
    for total in ("30,532,122,624", "8,030,261,248", "671,026,404,352"):
        assert total in cold
    assert "<svg" not in cold
    for theme in ("day", "night"):
        assert cold.count(f'<img class="{theme}" alt=') == 3


def test_what_the_page_says_of_the_panel_is_what_it_shows() -> None:
    count = lambda preset, **changes: count_parameters(  # noqa: E731
        panel_module.Setting(**{**PANEL.presets[preset], **changes}).transformer
    )
    page = cell("01_parameters", "panel-answers")
    sizes = {k: count("Llama-3.1-8B", num_kv_heads=k).total for k in (32, 8, 1)}
    assert f"{units.count(sizes[32])} parameters" in page
    assert f"saves {(sizes[32] - sizes[8]) / 1e9:.2f} billion, or 9%" in page
    assert f"another {(sizes[8] - sizes[1]) / 1e9:.2f} billion, or 3%" in page
    text = panel_module.EXAMPLE
    more = text.replace('experts": 32', 'experts": 64')
    few, many = (
        count_parameters(panel_module.read_model(panel_module.PASTED, config))
        for config in (text, more)
    )
    totals = [f"{x.total / 1e9:.1f}" for x in (few, many)]
    assert f"from {totals[0]} to {totals[1]} billion" in page
    assert f"still uses {units.count(few.active)}" in page
    assert units.count(few.active) == units.count(many.active)
    oss, gemma = (published.config_model(name) for name in ("gpt-oss-20b", "Gemma-3-1B"))
    assert [kind.layer.mixer.window for kind in stack.kinds(oss)] == [128, 0]
    assert [kind.layer.mixer.window for kind in stack.kinds(gemma)] == [512, 0]
    assert stack.layer_runs(oss)[:3] == [("A", 1), ("B", 1), ("A", 1)]
    assert stack.layer_runs(gemma)[:2] == [("A", 5), ("B", 1)]


FILE = PANEL.presets[panel_module.PASTED]


@pytest.mark.parametrize("row", published.rows("configs"), ids=lambda row: row["name"])
def test_every_model_of_the_shelf_is_drawn_kind_by_kind(row) -> None:
    model = published.config_model(row["name"])
    html = PANEL.answer({**PANEL.default, "model": row["name"]}).html
    assert f"{row['parameters']:,}" in html
    assert stack.stack(model, row["name"]).drawing().inline_svg() in html
    kinds = stack.kinds(model)
    assert sum(kind.how_many for kind in kinds) == model.num_layers
    assert sum(n for _, n in stack.layer_runs(model)) == model.num_layers
    layers = sum(kind.how_many * kind.parameters for kind in kinds)
    counted = count_parameters(model)
    inside = counted.attention + counted.mlp + counted.norm
    assert 0 <= inside - layers <= 4 * model.hidden_size
    assert value_of(html) == counted


def test_a_pasted_file_is_read_and_leaves_the_state_before() -> None:
    html = PANEL.answer(FILE).html
    assert "20.9 billion parameters" in html
    more = {**FILE, "config": FILE["config"].replace('experts": 32', 'experts": 64')}
    assert "was 20.9 billion" in PANEL.answer(more, FILE).html
    assert ", was " not in PANEL.answer(FILE, PANEL.default).html


def test_sizes_that_a_pasted_file_leaves_out_are_named() -> None:
    assert "Not in the text" not in PANEL.answer(FILE).html
    fewer = re.sub(r'\s*"num_hidden_layers": 24,', "", FILE["config"])
    html = PANEL.answer({**FILE, "config": fewer}).html
    assert "count the defaults of its family: num_hidden_layers = 36." in html


HOSTILE = {
    "nonsense": "The text 'nonsense' isn't JSON",
    " ": "Paste the text",
    "[1]": "The text [1] isn't a mapping",
    "[" * 100_000: "isn't JSON",
    "x" * 2_000_000: "is longer than 1,000,000 characters",
    "{}": "In the file, model_type=None is unknown",
    '{"model_type": "<script>"}': "model_type='<script>' is unknown",
    '{"model_type": "llama", "hidden_size": NaN}': "hidden_size=nan is not a finite",
    '{"model_type": "llama", "vocab_size": 1, "vocab_size": 2}': "contradicts",
    '{"model_type": "llama", "num_hidden_layers": 100000}': "we can draw 1,000 at most",
    '{"model_type": "gemma3", "text_config": {}}': "model_type=None in text_config is unknown",
    '{"model_type": "gemma3_text", "num_hidden_layers": 1' + "0" * 400 + "}": "finite",
    "\ud800": "isn't JSON",
}


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:24].strip('"{ '))
def test_hostile_text_is_refused_and_the_last_picture_stays(text: str) -> None:
    answer = PANEL.answer({**FILE, "config": text})
    assert HOSTILE[text] in answer.problem
    assert (answer.html, answer.offers) == ("", ())
    assert len(answer.problem) < 400
    panel = NotebookPanel(PANEL)
    panel.set(**FILE)
    before = panel.html
    panel.act("write", "config", text)
    assert panel.html == before
    assert panel.state.old
    assert "<script>" not in panel.answer["status"]
