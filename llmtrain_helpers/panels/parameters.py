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


def _llama(values: common.Values) -> bool:
    return bool(values["kind"] == LLAMA)


def _size(
    label: str, help: str, most: float = 1_000_000, **more: Any
) -> common.Control:
    return common.Control(label, help, most=most, **more)


_WIDTHS = (768, *(1024 * k for k in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20)))

_CONTROLS = {
    "kind": common.choice("Kind of model", "GPT-2's kind, or Llama's.", [GPT, LLAMA]),
    "num_layers": _size(
        "Layers",
        "How many layers stand on each other.",
        1000,
        stops=tuple(range(1, 161)),
    ),
    "hidden_size": _size(
        "Hidden size", "How many numbers stand for one token.", stops=_WIDTHS
    ),
    "vocab_size": _size(
        "Vocabulary",
        "How many different tokens there are.",
        10_000_000,
        unit="tokens",
        stops=common.steps(1000, 500_000, 1, 2, 3, 5),
    ),
    "num_heads": _size("Attention heads", "Pieces of attention.", 1000, more=True),
    "num_kv_heads": _size(
        "Key-value heads", "Heads of keys and values.", 1000, more=True, applies=_llama
    ),
    "head_dim": _size(
        "Head size", "Width of a head.", 10_000, more=True, applies=_llama
    ),
    "intermediate_size": _size(
        "MLP size", "Width inside the MLP.", more=True, applies=_llama
    ),
    "sequence_length": _size(
        "Sequence", "Tokens seen at once.", 10_000_000, unit="tokens", more=True
    ),
    "num_experts": _size(
        "Experts",
        "MLPs to choose from; 0 is one.",
        10_000,
        least=0,
        more=True,
        applies=_llama,
    ),
    "experts_per_token": _size(
        "Experts per token",
        "How many each token passes.",
        10_000,
        least=0,
        more=True,
        applies=_llama,
    ),
    "tied_embeddings": common.Control(
        "Output head tied to embedding", "One matrix for both.", "flag", more=True
    ),
    "qkv_bias": common.Control(
        "Biases on queries, keys, values",
        "As in Qwen2.",
        "flag",
        more=True,
        applies=_llama,
    ),
    "qk_norm": common.Control(
        "Norms on queries and keys", "As in Qwen3.", "flag", more=True, applies=_llama
    ),
}


def shape_values(model: Transformer) -> dict[str, Any]:
    """The values of the panel's controls that describe this model."""
    kind = GPT if model.layer_norm else LLAMA
    shape = {name: getattr(model, name) for name in Transformer.__dataclass_fields__}
    unseen = ["num_positions", "layer_norm", "gated_mlp", "bias"]
    return {"kind": kind} | {k: v for k, v in shape.items() if k not in unseen}


def render(before: common.Values | None = None, *, kind: str, **shape: Any) -> str:
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


_SHAPES = {name: shape_values(architecture(name)) for name in _PRESETS}

PANEL = common.Panel(
    "How many parameters?",
    _CONTROLS,
    _SHAPES,
    ("Llama-3.1-8B", "Mixtral-8x7B"),
    render,
)
