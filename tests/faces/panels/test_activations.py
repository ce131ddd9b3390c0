"""Chapter 06's panel: what each control changes, and what it refuses."""

import re

import pytest

from llmtrain_course.activations.handles import Setting
from llmtrain_course.activations.pictures import LEGEND, parts_at_peak
from llmtrain_course.panels import PANELS, activations_panel
from llmtrain_helpers import (
    Transformer,
    count_parameters,
    model_state_bytes,
    published,
    step_timeline,
    units,
)
from tests.faces.svg import pictures
from tests.panel_code import code_of, value_of

LLAMA = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)


def test_each_panel_still_says_something_else() -> None:
    html = activations_panel().static_html()
    for size in ("42.1 GB", "111 GB", "70.1 GB"):
        assert size in html
    settings = re.findall(r"<p>(Model .*?)</p>", html)
    assert settings[1] == (
        "Model Llama-3.2-1B · Sequence 8,192 tokens · Micro-batch 1 at a time · "
        "Passes per step 1 in a row · Recomputed none · "
        "Accelerator A100 80GB SXM · Attention unfused · "
        "Recipe bf16"
    )


@pytest.mark.parametrize(
    ("control", "value", "text"),
    [
        ("model", "gpt2", "sequences have 1,024 tokens here instead of 8,192"),
        ("sequence_length", "4,096", "29.7 GB"),
        ("sequence_length", 0, "Sequence: 0 is outside"),
        ("micro_batch_size", 3, "doesn't fit"),
        ("micro_batch_size", "2", r"66.8 GB</b> at the peak \(dashed: 42.1 GB\)"),
        ("accumulation_steps", 2, "44.5 GB"),
        ("accumulation_steps", 16, "pass 16"),
        ("recompute", "full", "<b>4</b>"),
        ("recompute", "selective", "Nothing to drop"),
        ("attention", "unfused", "111 GB"),
        ("recipe", "fp32", "51.7 GB"),
        ("chip", "RTX 3090", "doesn't fit</b>. A step may fill 22.4 GB of the 25.8 GB of RTX 3090"),
    ],
)
def test_the_panel_follows_each_control(control: str, value, text: str) -> None:
    panel = activations_panel()
    before = panel.html + panel.answer["status"]
    panel.act("write", control, value)
    html = panel.answer["status"] + panel.html
    assert html != before
    assert re.search(text, html)


@pytest.mark.parametrize("model", PANELS["activations"].controls["model"].options)
def test_every_model_can_be_chosen_and_nothing_is_shortened_in_silence(model) -> None:
    panel = PANELS["activations"]
    values = {**panel.default, "model": model}
    answer = panel.answer(values)
    rows = published.architecture(model).num_positions
    assert answer.html
    assert Setting(**values).length == (min(8192, rows) if rows else 8192)
    assert ("Shortened" in answer.html) == (0 < rows < 8192)
    assert f"architecture(&#x27;{model}&#x27;, {Setting(**values).length})" in answer.html


@pytest.mark.parametrize("name", PANELS["activations"].presets)
@pytest.mark.parametrize("passes", [1, 2, 16, 100])
def test_the_panels_code_gives_what_it_shows_for_as_many_passes(name, passes) -> None:
    """The call has the passes that the control says; the picture those it can show."""
    panel = activations_panel()
    panel.set(**{**panel.presets[name], "accumulation_steps": passes})
    assert f"accumulation_steps={passes}," in code_of(panel.html)
    size = units.gigabytes(value_of(panel.html).total)
    assert f"<b>{size}</b> at the peak" in panel.html
    label = {1: "update", 2: "pass 2", 16: "pass 16", 100: "pass 100"}[passes]
    assert label in pictures(panel.html)[0].texts


def test_key_and_table_have_the_parts_that_are_drawn() -> None:
    line = step_timeline(LLAMA, 1, "bf16_fp32_grads", "none")
    parts = parts_at_peak(line)
    states = model_state_bytes(count_parameters(LLAMA).total, "bf16_fp32_grads")
    assert sum(parts.values()) == line.peak.total
    assert parts["main weights"] == states.main_weights
    assert parts["weights"] == states.weights
    assert "main weights" not in parts_at_peak(step_timeline(LLAMA, 1, "amp", "none"))
    html = PANELS["activations"].render(model="Llama-3.1-8B")
    for part, size in parts.items():
        name = LEGEND.get(part, part)
        assert f">{name}</td>" in html
        key = f"{name} {units.gigabytes(size) if size else 0}"
        assert any(key in picture.texts for picture in pictures(html))
