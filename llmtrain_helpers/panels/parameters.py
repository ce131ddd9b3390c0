"""The panel of chapter 01: a model's shape, and where its parameters sit."""

from __future__ import annotations

from inspect import signature
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.architecture import Transformer
from llmtrain_helpers.checks import Result
from llmtrain_helpers.panels import common
from llmtrain_helpers.parameters import ParameterCount, count_parameters, gpt_parameters
from llmtrain_helpers.published import architecture

GPT, LLAMA = "GPT", "Llama"

_PRESETS = [
    "GPT-3 175B",
    "Llama-3.1-8B",
    "Mixtral-8x7B",
    "gpt2",
    "Llama-3.2-1B",
    "Llama-3.1-70B",
    "Llama-3.1-405B",
    "Qwen2.5-7B",
    "Qwen3-30B-A3B",
    "Megatron 1T",
]
_STILLS = ["Llama-3.1-8B", "Mixtral-8x7B"]

_LLAMA_ONLY = ["num_kv_heads", "head_dim", "intermediate_size", "num_experts"]
_LLAMA_ONLY += ["experts_per_token", "qkv_bias", "qk_norm"]


def parameters_panel() -> common.Panel:
    """The shape of a model in, its parameters part by part out."""
    presets = {name: shape_values(architecture(name)) for name in _PRESETS}
    title = "How many parameters?"
    panel = common.Panel(title, shape_controls(), render, presets, stills=_STILLS)

    def enable(_change: Any = None) -> None:
        for name in _LLAMA_ONLY:
            panel.controls[name].disabled = panel.controls["kind"].value == GPT

    panel.controls["kind"].observe(enable, "value")
    enable()
    return panel


def shape_controls() -> dict[str, Any]:
    """One control for each number of a model's shape."""
    return {
        "kind": common.dropdown("Kind of model", [GPT, LLAMA]),
        "num_layers": common.whole("Layers", 1, 1000),
        "hidden_size": common.whole("Hidden size", 1, 200_000, step=128),
        "num_heads": common.whole("Attention heads", 1, 1000),
        "num_kv_heads": common.whole("Key-value heads", 1, 1000),
        "head_dim": common.whole("Head size", 1, 10_000, step=8),
        "intermediate_size": common.whole("MLP size", 1, 1_000_000, step=128),
        "vocab_size": common.whole("Vocabulary", 1, 10_000_000, step=128),
        "sequence_length": common.whole("Sequence (tokens)", 1, 10_000_000, step=1024),
        "num_experts": common.whole("Experts", 0, 10_000),
        "experts_per_token": common.whole("Experts per token", 0, 10_000),
        "tied_embeddings": common.checkbox("Output head tied to embedding"),
        "qkv_bias": common.checkbox("Biases on queries, keys, values"),
        "qk_norm": common.checkbox("Norms on queries and keys"),
    }


def shape_values(model: Transformer) -> dict[str, Any]:
    """The values of the panel's controls that describe this model."""
    kind = GPT if model.layer_norm else LLAMA
    shape = {name: getattr(model, name) for name in Transformer.__dataclass_fields__}
    unseen = ["num_positions", "layer_norm", "gated_mlp", "bias"]
    return {"kind": kind} | {k: v for k, v in shape.items() if k not in unseen}


def render(kind: str, **shape: Any) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    model, code = build(kind, **shape)
    counted = count_parameters(model)
    formula = _by_formula(model)
    return "".join(
        [
            common.sentence(_sentence(counted, formula)),
            common.stacked_bars(_bars(counted, formula), units.count),
            common.table(
                ["part", "parameters", "share"], common.shares(counted, units.exact)
            ),
            common.call(code),
        ]
    )


def build(kind: str, **shape: Any) -> tuple[Transformer, str]:
    """The model that the controls describe, and the code that counts it."""
    make = Transformer.gpt if kind == GPT else Transformer.llama
    takes = signature(make).parameters
    wanted = {name: shape[name] for name in shape if name in takes}
    if kind == GPT:
        del wanted["intermediate_size"]
    told = [f"{k}={v!r}" for k, v in wanted.items() if v != takes[k].default]
    code = f"count_parameters(Transformer.{kind.lower()}({', '.join(told)}))"
    return make(**wanted), code


def _by_formula(model: Transformer) -> Result:
    l, h = model.num_layers, model.hidden_size
    return gpt_parameters(l, h, model.vocab_size, model.sequence_length)


def _sentence(counted: ParameterCount, formula: float) -> str:
    told = f"<b>{units.count(counted.total)} parameters</b>"
    if counted.active != counted.total:
        told += f", of which {units.count(counted.active)} are active for a token"
    off, side = counted.total - formula, "less" if formula < counted.total else "more"
    share = units.percent(abs(off) / counted.total)
    far = share if abs(off) > 0.001 * counted.total else units.exact(abs(off))
    return f"{told}. The GPT formula gives {far} {side}."


def _bars(counted: ParameterCount, formula: float) -> dict[str, dict[str, float]]:
    bars = {"This model": counted.parts()}
    if counted.active != counted.total:
        bars["Active for a token"] = {"active": counted.active}
    return bars | {"GPT formula": {"formula": formula}}
