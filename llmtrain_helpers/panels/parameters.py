"""The panel of chapter 01: a model's shape, and where its parameters sit."""

from __future__ import annotations

import json
from html import escape
from inspect import signature
from math import gcd
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.drawings.parameters import CHOICES, PARTS, WHOLE, areas
from llmtrain_helpers.drawings.stack import stack
from llmtrain_helpers.evidence.published import (
    architecture,
    config_model,
    names,
    parse_config,
    rows,
)
from llmtrain_helpers.model.huggingface.configs import left_out
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.panels import common
from llmtrain_helpers.parameters import (
    ParameterCount,
    count_parameters,
    gpt_parameters,
    norm_parameters,
)

GPT, LLAMA = "GPT", "Llama"

BY_HAND, PASTED = "none: sliders, below", "a config.json, pasted"
"""Where the shape comes from, if not from the shelf of real models."""

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

_SHELF = ["DeepSeek-V3"]
"""Of the shelf of real files the one that a saved page shows."""

_WIDTHS = [512, 768, *(1024 * k for k in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16))]
_WIDTHS += [20480, 24576, 25600, 32768]
_DEPTHS = [*range(1, 49), *range(50, 100, 2), *range(104, 257, 8)]
_WORDS = [256, 1000, 8192, 16384, 32000, 50257, 65536, 100_000, 128_256, 152_064]
_WORDS += [200_000, 256_000, 512_000]


def _by_hand(values: common.Values) -> bool:
    return bool(values["model"] == BY_HAND)


def _llama(values: common.Values) -> bool:
    return _by_hand(values) and bool(values["kind"] == LLAMA)


def _gpt(values: common.Values) -> bool:
    return _by_hand(values) and not _llama(values)


def _mixed(values: common.Values) -> bool:
    return _llama(values) and values["num_experts"] > 0


def _size(label: str, help: str, most: float = 1e6, **more: Any) -> common.Control:
    return common.Control(label, help, most=most, applies=_by_hand, **more)


def _more(
    label: str, help: str, most: float = 1e6, applies: Any = _llama, **more: Any
) -> common.Control:
    return common.Control(label, help, most=most, more=True, applies=applies, **more)


_CONTROLS = {
    "model": common.choice(
        "Or from a file",
        "Shaped by hand, or read from a config.json: pasted, or a real one.",
        [BY_HAND, PASTED, *names("configs")],
        lead=True,
    ),
    "config": common.Control(
        "The file's text",
        "All of a config.json, as the Hugging Face Hub shows it.",
        "text",
        lines=9,
        lead=True,
        applies=lambda values: values["model"] == PASTED,
    ),
    "part": common.choice(
        "Open", "The part whose matrices are shown.", CHOICES, view=True, applies=_by_hand
    ),
    "num_layers": _size("Layers", "How many are stacked.", 1000, stops=tuple(_DEPTHS)),
    "hidden_size": _size(
        "Hidden size", "How many numbers stand for one token.", stops=tuple(_WIDTHS)
    ),
    "vocab_size": _size(
        "Vocabulary", "How many different tokens.", 1e7, unit="tokens", stops=tuple(_WORDS)
    ),
    "kind": common.choice("Kind", "GPT's, or Llama's.", [GPT, LLAMA], more=True, applies=_by_hand),
    "num_heads": _more("Attention heads", "Pieces of attention.", 1000),
    "num_kv_heads": _more("Key-value heads", "Heads of keys and values.", 1000),
    "head_dim": _more("Head size", "How many numbers a head has.", 10_000),
    "intermediate_size": _more("MLP size", "How wide the MLP is inside."),
    "num_experts": _more("Experts", "MLPs in a layer; 0: a single one.", 1000, least=0),
    "experts_per_token": _more("Experts a token meets", "Of them all.", 1000, _mixed),
    "sequence_length": _more("Positions", "Rows of their table.", 1e7, _gpt),
    "tied_embeddings": common.Control(
        "Head tied to embedding", "One matrix for both.", "flag", more=True, applies=_by_hand
    ),
    "qkv_bias": common.Control(
        "Biases on queries, keys, values", "As in Qwen2.", "flag", more=True, applies=_llama
    ),
    "qk_norm": common.Control(
        "Norms on queries and keys", "As in Qwen3.", "flag", more=True, applies=_llama
    ),
}


def shape_values(model: Transformer) -> dict[str, Any]:
    """The values of the panel's controls that describe this model."""
    shape = {name: getattr(model, name, None) for name in _CONTROLS}
    shape["kind"], shape["part"] = (GPT if model.layer_norm else LLAMA), WHOLE
    shape["experts_per_token"] = model.experts_per_token or 2
    return shape | {"model": BY_HAND, "config": EXAMPLE}


def render(
    before: common.Values | None = None, *, model: str = BY_HAND, config: str = "", **shape: Any
) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    if model != BY_HAND:
        return _of_a_file(before, model, config)
    old = _model(before) if before and before["model"] == BY_HAND else None
    return _of_a_shape(before if old else None, old, **shape)


def _of_a_shape(
    before: common.Values | None, old: Any, *, kind: str, part: str, **shape: Any
) -> str:
    model, code = build(kind, **shape)
    counted = count_parameters(model)
    return "".join(
        [
            common.sentence(_sentence(counted, part) + _kept(before, kind, shape)),
            areas(model, part, old).live(),
            common.folded(EXACTLY, _table(counted) + _by_formula(model, counted)),
            common.folded("The same in code", common.call(code)),
        ]
    )


MOST_LAYERS = 1_000
"""Of a stack that is drawn."""

EXACTLY = "Part by part, exactly"


def _of_a_file(before: common.Values | None, name: str, config: str) -> str:
    """The answer for a model from the shelf, or for a file's text."""
    model = of_file(name, config)
    old = None
    if before and before["model"] == name == PASTED:
        old = of_file(name, before["config"])
    counted = count_parameters(model)
    unsaid = _unsaid(config) if name == PASTED else ""
    read = f"config_model({name!r})" if name != PASTED else 'read_config("config.json")'
    code = f"count_parameters(published.{read})"
    return "".join(
        [
            common.sentence(_sentence(counted, WHOLE) + _beside(counted)),
            unsaid,
            stack(model, "" if name == PASTED else name, old).live(),
            common.folded(EXACTLY, _table(counted) + _source(name)),
            common.folded("The same in code", common.call(code)),
        ]
    )


def of_file(name: str, config: str) -> Transformer:
    """A model of the shelf by its name, or the one that a pasted text describes.

    >>> of_file(PASTED, EXAMPLE).num_experts
    32
    """
    if name != PASTED:
        return config_model(name)
    if not config.strip():
        raise common.WordedError("Paste the text of a config.json: there is none yet.")
    try:
        model = parse_config(config)
    except ValueError as error:
        raise common.WordedError(_refused(config, str(error))) from None
    if model.num_layers > MOST_LAYERS:
        many = f"The file has {units.exact(model.num_layers)} layers"
        raise common.WordedError(f"{many}: at most {MOST_LAYERS:,} can be drawn.")
    return model


def _refused(config: str, problem: str) -> str:
    """Why a file is not read, by the names that stand in it."""
    where = "The text" if problem.startswith("config=") else "In the file,"
    told = problem.removeprefix("config=").replace(" in families.FAMILIES", "")
    told = f"{where} {told.rstrip('.')}."
    if "model_type=" in problem and '"text_config"' in config:
        told += " It is of more than text: paste what stands under text_config alone."
    return told


def _unsaid(config: str) -> str:
    """The sizes that a file leaves out, and what is counted for them."""
    found = left_out(json.loads(config))
    if not found:
        return ""
    told = ", ".join(f"{key} = {units.exact(size)}" for key, size in found.items())
    return (
        f"<p><b>Not in the text</b>, so the defaults of its family are counted: {escape(told)}.</p>"
    )


def _beside(counted: ParameterCount) -> str:
    """What is in no sum: layers that predict further tokens."""
    if not counted.prediction:
        return ""
    return (
        f" Beside them: {units.count(counted.prediction)} to predict further tokens, "
        "which the total leaves out."
    )


def _table(counted: ParameterCount) -> str:
    rows = common.shares(counted, units.exact)
    if counted.active != counted.total:
        share = units.percent(counted.active / counted.total)
        rows.append(["of these, met by a token", units.exact(counted.active), share])
    if counted.prediction:
        rows.append(["beside them, for further tokens", units.exact(counted.prediction), ""])
    return common.table(["part", "parameters", "share"], rows)


def _source(name: str) -> str:
    """Where a model of the shelf comes from, and what was published of it."""
    found = [row for row in rows("configs") if row["name"] == name]
    told = [str(row[key]) for row in found for key in ("source", "note") if key in row]
    return f"<p>{escape('. '.join(told))}.</p>" if told else ""


def _kept(before: common.Values | None, kind: str, shape: common.Values) -> str:
    """What did not follow a Llama's hidden size."""
    names = ("num_heads", "head_dim", "intermediate_size")
    if before is None or kind != LLAMA or before["kind"] != LLAMA:
        return ""
    same = all(before[name] == shape[name] for name in names)
    if not same or before["hidden_size"] == shape["hidden_size"]:
        return ""
    return " Heads and MLP kept their sizes: change them too, under <i>More</i>."


def _model(values: common.Values) -> Transformer:
    apart = ("part", "model", "config")
    return build(**{key: values[key] for key in values if key not in apart})[0]


def build(kind: str, **shape: Any) -> tuple[Transformer, str]:
    """The model that the controls describe, and the code that counts it."""
    make = Transformer.gpt if kind == GPT else Transformer.llama
    takes = signature(make).parameters
    wanted = {name: shape[name] for name in shape if name in takes}
    if kind == GPT:
        del wanted["intermediate_size"]
        wanted["num_heads"] = _heads(shape["hidden_size"], shape["num_heads"])
    elif not shape["num_experts"]:
        del wanted["experts_per_token"]
    told = [f"{k}={v!r}" for k, v in wanted.items() if v != takes[k].default]
    code = f"count_parameters(Transformer.{kind.lower()}({', '.join(told)}))"
    return make(**wanted), code


def _heads(hidden_size: int, num_heads: int) -> int:
    """A GPT's heads share out the hidden size: as many as were, or else of 128.

    Its count does not depend on them.
    """
    if hidden_size % num_heads == 0:
        return num_heads
    return hidden_size // gcd(hidden_size, 128)


def _sentence(counted: ParameterCount, part: str) -> str:
    whole = f"<b>{units.count(counted.total)} parameters</b>"
    for name, word in PARTS.items():
        if word == part:
            size, share = counted.parts()[name], units.percent(counted.shares()[name])
            return f"{word}: <b>{units.count(size)}</b>, {share} of {whole}."
    layers = counted.attention + counted.mlp
    told = f"{whole}, {units.percent(layers / counted.total)} in attention and MLP"
    if counted.active != counted.total:
        told += f"; a token meets <b>{units.count(counted.active)}</b> of them"
    return f"{told}."


def _by_formula(model: Transformer, counted: ParameterCount) -> str:
    """What the formula for a GPT makes of it, with 2048 positions if it has none."""
    l, h, s = model.num_layers, model.hidden_size, model.num_positions or 2048
    formula = gpt_parameters(l, h, model.vocab_size, s)
    off = float(formula / counted.total - 1)
    told = f"{units.percent(abs(off))} too {'many' if off > 0 else 'few'}"
    if formula == counted.total - norm_parameters(model):
        told = "all but the last norm"
    return f"<p>The formula for a GPT gives {units.exact(formula)}: {told}.</p>"


EXAMPLE = """{
  "model_type": "gpt_oss",
  "num_hidden_layers": 24,
  "hidden_size": 2880,
  "num_attention_heads": 64,
  "num_key_value_heads": 8,
  "head_dim": 64,
  "num_local_experts": 32,
  "num_experts_per_tok": 4,
  "intermediate_size": 2880,
  "sliding_window": 128,
  "vocab_size": 201088
}"""
"""A file to begin with: what gpt-oss-20b's says of its shape."""

_SHAPES = {name: shape_values(architecture(name)) for name in _PRESETS}
_FIRST = _SHAPES[_PRESETS[0]]
_SHAPES |= {name: {**_FIRST, "model": name} for name in _SHELF}
_SHAPES["a config.json, pasted"] = {**_FIRST, "model": PASTED}

PANEL = common.Panel(
    "How many parameters, and where?", _CONTROLS, _SHAPES, ("Llama-3.1-8B", "DeepSeek-V3"), render
)
