"""What paper shows of a picture that moves: two of its settings, side by side.

A play goes as far as its middle and its end; any other picture stands beside itself with
one thing changed. `FRAMES` says so where another pair tells more.
"""

from __future__ import annotations

from html import escape

from markup import parse

from llmtrain_course.kit.panel import Control, Handle, Value, Values
from llmtrain_course.panels import HANDLES

FRAMES: dict[str, tuple[Values, Values]] = {
    "machine": ({}, {"num_gpus": 512}),
    "one_token": ({"step": 4}, {"step": 8}),
    "five_runs": ({}, {"percent": 50}),
    "count_and_rate": ({}, {"num_gpus": 1024}),
    "wider_or_deeper": ({"num_layers": 24}, {"hidden_size": 1536}),
    "into_a_llama": ({}, {"shared": True, "gated": True, "head": True}),
    "experts": ({}, {"num_experts": 16}),
    "attention_square": ({"causal": True}, {"causal": True, "window": 4}),
    "step_work": ({}, {"sequence_length": 32768}),
    "achieved": ({}, {"seconds": 20}),
    "gpus_and_days": ({}, {"num_gpus": 4096}),
    "eight_or_six": ({}, {"work": "8TP"}),
    "more_gpus": ({"num_gpus": 1536}, {"num_gpus": 1536, "way": "shared (PTD-P)"}),
    "promise": ({}, {"percent": 25}),
    "copied": ({}, {"tokens": True, "rate": True, "length": True}),
    "gpu_split": ({}, {"tensor": 8}),
    "four_gpus": ({"now": 60}, {"now": 60, "stages": 4}),
    "epoch": ({}, {"micro_batch": 10, "accumulation": 1}),
    "micro_batches": ({}, {"micro_batch": 4}),
    "batch_cost": ({}, {"batch": 1_000_000}),
    "eight_bits": ({}, {"exponent": 5}),
    "lost_update": ({"updates": 10}, {"updates": 10, "format": "fp16"}),
    "gradients": ({}, {"scale": 1024}),
    "stalled_sum": ({"ones": 4096}, {"ones": 4096, "format": "fp32"}),
    "parameter_bytes": ({}, {"recipe": "all in bf16"}),
    "slices": ({"stage": 1}, {"stage": 3}),
    "kept_layer": ({}, {"attention": "flash"}),
    "passes": ({}, {"passes": 8}),
    "neighbours": ({}, {"node": "are replicas"}),
    "ring": ({"turn": 7}, {"turn": 14}),
    "message": ({"size": 1.0}, {"size": 8192.0}),
    "time_line": ({}, {"messages": 1}),
    "month": ({}, {"tokens": 700_000_000_000}),
    "measured_step": ({}, {"seconds": 8}),
    "pipeline": ({}, {"micro_batches": 12}),
    "levers": ({}, {"zero_stage": 3}),
    "failure": ({}, {"restart": 5}),
    "many_nodes": ({}, {"chance": 2}),
    "save_interval": ({"minutes": 15}, {"minutes": 15, "write": 5}),
    "dates": ({}, {"step": "slow"}),
    "loss_terms": ({}, {"size": 4e9}),
    "size_price": ({}, {"share": 0.25}),
    "repeated": ({}, {"epochs": 40}),
    "predicted_step": ({"opened": 3}, {"opened": 3, "hidden_size": 64}),
    "timed_steps": ({}, {"left_out": 10, "repeats": 20}),
    "step_bytes": ({"measurement": True}, {"measurement": True, "hidden_size": 64}),
    "three_ways": ({}, {"model": "Llama-3.1-70B"}),
    "frozen_layer": ({}, {"learns": "all matrices", "adapters": "32 bits, dropout"}),
    "one_step": ({"moment": 220}, {"moment": 220, "way": "after backward"}),
}
"""What changes in each of two frames, where the rule's two tell less."""

TALL = 1.7
"""From this height over its width on, two drawings for a telephone fill too much of a page."""


def pair(name: str) -> tuple[Values, Values]:
    """The values of a handle's two frames."""
    handle = HANDLES[name]
    first, second = FRAMES.get(name) or by_rule(handle)
    return {**handle.default, **first}, {**handle.default, **second}


def by_rule(handle: Handle) -> tuple[Values, Values]:
    """The middle and the end of what plays; else the start, and the last control's other end."""
    for name, control in handle.controls.items():
        if control.play:
            last = control.field_state(handle.default[name], handle.setting(handle.default)).last
            return {name: control.stops[last // 2]}, {name: control.stops[last]}
    *_, (name, control) = handle.controls.items()
    return {}, {name: other_end(control, handle.default[name])}


def other_end(control: Control, value: Value) -> Value:
    """The end of a control where it does not stand."""
    if control.kind == "flag":
        return not value
    ends = (control.options or control.stops)[:: -1 if control.options else 1]
    return ends[0] if ends[0] != value else ends[-1]


def frames(name: str) -> str:
    """A handle's two settings, each with its picture and the sentence below it."""
    narrow = HANDLES[name].on_telephone
    drawn = [frame(narrow, values) for values in pair(name)]
    box = parse(drawn[0]).svg["viewbox"].split()
    if float(box[3]) < TALL * float(box[2]):
        return f'<div class="frames">{"".join(drawn)}</div>'
    drawn = [frame(HANDLES[name], values) for values in pair(name)]
    return f'<div class="frames stacked">{"".join(drawn)}</div>'


def setting_of(control: Control, value: Value) -> str:
    """Say what a control is set to, and nothing of a switch that is off."""
    if control.kind == "flag":
        return control.label if value else ""
    return (
        f"{control.label}: {control.zero}" if not value and control.zero else control.caption(value)
    )


def frame(handle: Handle, values: Values) -> str:
    """One setting: the picture, what is set, the sentence."""
    page = parse(handle.answer(values).html)
    captions = (
        setting_of(handle.controls[each], values[each]) for each in handle.visible_controls(values)
    )
    setting = " · ".join(filter(None, captions))
    sentences = "".join(f"<p>{words.decode_contents()}</p>" for words in page.select("p"))
    return (
        f'<div class="frame">{"".join(map(str, page.select("svg")))}'
        f'<p class="setting">{escape(setting)}</p>{sentences}</div>'
    )
