"""What all panels share, and what a reader reads in each: labels, presets, bars."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from llmtrain_helpers import panels, units
from llmtrain_helpers.panels import common
from llmtrain_helpers.panels.common import BLUE, GREY, PALETTE

# --- the bars, the table, and the sentences

ROWS = {"mine": {"weights": 3e9, "logits": 1e9}, "memory": {"memory": 8e9}}


def bars(html: str) -> list[tuple[str, str, str]]:
    """Name, width and colour of each piece, in order."""
    style = r'<div title="([^"]*)" style="width:([\d.]+)%;background-color:(#\w+)'
    return re.findall(style, html)


def test_bars_have_one_scale_a_number_each_and_colours_with_a_key() -> None:
    shown = common.stacked_bars(ROWS, units.gigabytes)
    assert "mine: 4.00 GB<" in shown
    assert "memory: 8.00 GB<" in shown
    assert bars(shown) == [
        ("weights", "37.50", PALETTE[0]),
        ("logits", "12.50", PALETTE[1]),
        ("memory", "100.00", GREY),
    ]
    key = re.findall(r"color:(#\w+);font-size:20px\">■</span> (\w+)", shown)
    assert key == [(PALETTE[0], "weights"), (PALETTE[1], "logits")]


def test_a_piece_is_named_where_there_is_room() -> None:
    rows = {"a": {"wide": 91.0, "narrow": 9.0}, "b": {"none": 0.0, "one": 1.0}}
    shown = common.stacked_bars(rows, units.digits)
    assert ">wide</div>" in shown
    assert ">narrow</div>" not in shown
    assert [name for name, *_ in bars(shown)] == ["wide", "narrow", "one"]


def test_bars_of_one_piece_need_no_key() -> None:
    shown = common.stacked_bars({"a": {"x": 1.0}, "b": {"y": 2.0}}, units.digits)
    assert "■" not in shown
    colours = [("x", "50.00", BLUE), ("y", "100.00", GREY)]
    assert bars(shown) == colours


def test_thin_bars_keep_the_colours() -> None:
    shown = common.thin_bars(ROWS | {"memory": {"weights": 8e9}}, units.gigabytes)
    assert [(name, width) for name, width, _ in bars(shown)] == [
        ("weights", "37.50"),
        ("logits", "12.50"),
        ("weights", "100.00"),
    ]
    assert bars(shown)[2][2] == bars(shown)[0][2] == PALETTE[0]
    assert ">mine</span>" in shown
    assert ">4.00 GB</span>" in shown


def test_a_table_has_its_head_first_and_figures_to_the_right() -> None:
    shown = common.table(["part", "size"], [["a < b", "1"]])
    cells = re.findall(r"<(t[hd]) [^>]*align:(\w+)\">(.*?)</", shown)
    assert cells == [
        ("th", "left", "part"),
        ("th", "right", "size"),
        ("td", "left", "a &lt; b"),
        ("td", "right", "1"),
    ]


def test_a_refusal_a_result_and_a_call_say_what_they_are() -> None:
    assert "⚠ Not possible:</b> x &lt; 1" in common.warning("x < 1")
    assert "font-size:20px" in common.sentence("<b>7</b> days")
    assert "The same in code:" in common.call("f(1 < 2)")
    assert ">f(1 &lt; 2)</pre>" in common.call("f(1 < 2)")


# --- each panel's labels and presets, once more

PANELS: dict[str, list[Any]] = {
    "flops": [
        "Model | Sequence (tokens) | Batch (sequences) | GPUs | Seconds an iteration | "
        "Recomputed | Accelerator | Number format",
        "Megatron 18.4B | 1024 | 512 | 16 | 32.09 | full | A100 80GB SXM | bf16",
        "GPT-3 175B | 2048 | 64 | 64 | 18.13 | full | A100 80GB SXM | bf16",
        "GPT-3 175B | 2048 | 64 | 64 | 13.75 | selective | A100 80GB SXM | bf16",
        "Megatron 18.4B | 2048 | 512 | 16 | 32.09 | full | A100 80GB SXM | bf16",
    ],
    "duration": [
        "Model | Tokens (billions) | GPUs | Share of the peak (%) | Recomputed | "
        "Accelerator | Number format | Dollars a GPU-hour",
        "GPT-3 175B | 300.0 | 1024 | 44.9 | full | A100 80GB SXM | bf16 | 2.0",
        "Llama-2-70b | 2000.0 | 2048 | 43.0 | none | A100 80GB SXM | bf16 | 2.0",
        "Llama-3.1-405B | 15600.0 | 16384 | 38.0 | none | H100 SXM | bf16 | 2.0",
        "Mixtral-8x7B | 1000.0 | 256 | 35.0 | none | H100 SXM | bf16 | 2.0",
    ],
    "batch": [
        "GPUs | Tensor parallel | Pipeline parallel | Context parallel | Micro-batch | "
        "Accumulation | Sequence (tokens) | Tokens (billions)",
        "16384 | 8 | 16 | 1 | 1 | 16 | 8192 | 15600.0",
        "384 | 4 | 12 | 1 | 2 | 128 | 2048 | 366.0",
        "8 | 1 | 1 | 1 | 8 | 8 | 1024 | 10.0",
        "100 | 8 | 1 | 1 | 1 | 1 | 2048 | 300.0",
    ],
    "precision": [
        "Model | Recipe | ZeRO stage | Replicas (data parallel) | Accelerator",
        "Llama-3.1-8B | bf16_fp32_grads | 1 | 8 | A100 80GB SXM",
        "Llama-3.1-8B | bf16_fp32_grads | 0 | 8 | A100 80GB SXM",
        "Llama-3.1-70B | bf16 | 3 | 64 | H100 SXM",
        "gpt2-xl | amp | 0 | 1 | RTX 3090",
    ],
    "activations": [
        "Model | Sequence (tokens) | Micro-batch | Micro-batches a step | Recomputed | "
        "Attention | Recipe | Accelerator",
        "Llama-3.2-1B | 8192 | 1 | 1 | none | flash | bf16_fp32_grads | A100 80GB SXM",
        "Llama-3.2-1B | 8192 | 1 | 1 | none | unfused | bf16_fp32_grads | "
        "A100 80GB SXM",
        "Llama-3.2-1B | 8192 | 4 | 1 | full | flash | bf16_fp32_grads | A100 80GB SXM",
        "Llama-3.1-8B | 8192 | 1 | 1 | none | flash | bf16_fp32_grads | A100 80GB SXM",
        "gpt2 | 1024 | 12 | 4 | none | flash | amp | RTX 3090",
    ],
    "plan": [
        "Model | or a config.json | Sequence (tokens) | Accelerator | GPUs | "
        "Tensor parallel | Pipeline stages | Context parallel | ZeRO stage | "
        "Gradients between passes | Tokens (billions) | Batch (sequences) | "
        "Micro-batch | Recipe | Recomputed | $ a GPU-hour",
        "Llama-3.1-8B |  | 8192 | H100 SXM | 64 | 1 | 1 | 1 | 3 | sharded | 1000.0 | "
        "512 | 1 | bf16_fp32_grads | none | 2.5",
        "Llama-3.1-8B |  | 8192 | H100 SXM | 64 | 1 | 1 | 1 | 3 | sharded | 1000.0 | "
        "512 | 2 | bf16_fp32_grads | none | 2.5",
        "GPT-3 175B |  | 2048 | A100 80GB SXM | 1024 | 8 | 8 | 1 | 1 | sharded | "
        "300.0 | 1536 | 1 | bf16_fp32_grads | full | 2.5",
        "Llama-3.1-70B |  | 8192 | H100 SXM | 8 | 8 | 1 | 1 | 1 | sharded | 1000.0 | "
        "512 | 1 | bf16_fp32_grads | full | 2.5",
    ],
}
"""The controls' labels, and under them each preset's values."""


def panel_of(name: str) -> common.Panel:
    panel: common.Panel = getattr(panels, f"{name}_panel")()
    return panel


@pytest.mark.parametrize("name", PANELS)
def test_labels_and_presets_are_what_the_reader_is_told(name: str) -> None:
    panel = panel_of(name)
    labels, *presets = PANELS[name]
    controls = panel.controls.values()
    assert " | ".join(control.description for control in controls) == labels
    shown = []
    for preset in panel.presets:
        panel.preset.value = preset
        shown.append(" | ".join(str(value) for value in panel.values().values()))
        assert panel.preset.value == preset
    assert shown == presets


SHAPE = """Kind of model | Layers | Hidden size | Attention heads | Key-value heads |
Head size | MLP size | Vocabulary | Sequence (tokens) | Experts | Experts per token |
Output head tied to embedding | Biases on queries, keys, values |
Norms on queries and keys"""


def test_the_labels_of_a_shape() -> None:
    controls = panel_of("parameters").controls.values()
    labels = " | ".join(control.description for control in controls)
    assert labels == " ".join(SHAPE.split())


BARS = {
    "parameters": ["This model: 175 billion", "GPT formula: 175 billion"],
    "flops": ["Achieved: 154 TFLOP/s", "Peak: 312 TFLOP/s"],
    "batch": [
        "This batch: 16.8 million",
        "Llama 3.1 405B: 16.0 million",
        "DeepSeek LLM 67B: 18.9 million",
        "DeepSeek LLM 7B: 9.44 million",
    ],
    "precision": ["Model states on each GPU: 60.2 GB", "Memory: 80.0 GB"],
    "activations": ["At the peak: 42.1 GB", "Memory: 80.0 GB"],
}


@pytest.mark.parametrize("name", BARS)
def test_the_bars_bear_their_numbers(name: str) -> None:
    shown = unescape(panel_of(name).output.value)
    assert re.findall(r'margin:4px 0px">([^<]*)<', shown) == BARS[name]


@pytest.mark.parametrize("name", ["parameters", *PANELS])
def test_reset_and_the_stills_begin_with_the_first_preset(name: str) -> None:
    panel = panel_of(name)
    first, before = next(iter(panel.presets)), panel.output.value
    panel.preset.value = [*panel.presets][-1]
    assert panel.output.value != before
    panel.reset.click()
    assert (panel.preset.value, panel.output.value) == (first, before)
    told = re.findall(r"<h4>(.*?)</h4>", panel.still())
    assert len(told) == len(set(told)) == 3
    assert unescape(told[0]) == first


def test_a_control_begins_where_it_says_and_steps_evenly() -> None:
    assert common.whole("Layers", 1, 10).min == 1
    even = common.whole("Hidden size", 1, 1000, step=128)  # 128, 256, … by the arrows
    assert (even.min, even.max, even.step) == (0, 1000, 128)
    share = common.number("Share", 0, 100, step=0.5)
    assert (share.min, share.max, share.step) == (0, 100, 0.5)
