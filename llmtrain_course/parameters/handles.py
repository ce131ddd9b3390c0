"""Chapter 01: the panel of a model's shape, and the handles of its stream, bricks and experts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from inspect import signature
from math import gcd
from typing import Any

from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.handle import Shown, handle, slider
from llmtrain_course.kit.layout import PAGE
from llmtrain_course.parameters import pictures as drawings
from llmtrain_course.parameters.stack import stack
from llmtrain_helpers import units
from llmtrain_helpers.checks import finite
from llmtrain_helpers.model.huggingface.configs import left_out
from llmtrain_helpers.model.tables import Row
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import (
    ParameterCount,
    count_parameters,
    gpt_parameters,
    norm_parameters,
)
from llmtrain_helpers.published import architecture, config_model, names, parse_config, rows

GPT, LLAMA = "GPT", "Llama"

BY_HAND, PASTED = "none: sliders, below", "a config.json, pasted"
"""Where the shape comes from, if not from the shelf of real models."""

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


@dataclass(frozen=True)
class Setting:
    """A shape by hand; or a real model, or a file's text."""

    model: str
    config: str
    num_layers: int
    hidden_size: int
    vocab_size: int
    kind: str
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    num_experts: int
    experts_per_token: int
    sequence_length: int
    tied_embeddings: bool
    qkv_bias: bool
    qk_norm: bool

    @classmethod
    def of(cls, name: str) -> Setting:
        """The setting by hand that describes a published model."""
        model = architecture(name)
        return cls(
            model=BY_HAND,
            config=EXAMPLE,
            num_layers=model.num_layers,
            hidden_size=int(model.hidden_size),
            vocab_size=int(model.vocab_size),
            kind=GPT if model.layer_norm else LLAMA,
            num_heads=model.num_heads,
            num_kv_heads=model.num_kv_heads,
            head_dim=model.head_dim,
            intermediate_size=model.intermediate_size,
            num_experts=model.num_experts,
            experts_per_token=model.experts_per_token or 2,
            sequence_length=int(model.sequence_length),
            tied_embeddings=model.tied_embeddings,
            qkv_bias=model.qkv_bias,
            qk_norm=model.qk_norm,
        )

    @property
    def by_hand(self) -> bool:
        """Whether the sliders say the shape."""
        return self.model == BY_HAND

    @property
    def gpt(self) -> bool:
        """Whether it is a GPT by hand."""
        return self.by_hand and self.kind != LLAMA

    @property
    def llama(self) -> bool:
        """Whether it is a Llama by hand."""
        return self.by_hand and self.kind == LLAMA

    @property
    def make(self) -> Callable[..., Transformer]:
        """What makes such a model."""
        return Transformer.gpt if self.kind == GPT else Transformer.llama

    @property
    def shape(self) -> dict[str, common.Value]:
        """The arguments of `make` that describe the shape by hand."""
        arguments = signature(self.make).parameters
        shape = {name: value for name, value in vars(self).items() if name in arguments}
        if self.kind == GPT:
            del shape["intermediate_size"]
            if self.hidden_size % self.num_heads:
                # heads of 128, or of what divides; the count does not depend on them
                shape["num_heads"] = self.hidden_size // gcd(self.hidden_size, 128)
        elif not self.num_experts:
            del shape["experts_per_token"]
        return shape

    @property
    def transformer(self) -> Transformer:
        """The model that the sliders describe."""
        return self.make(**self.shape)

    @property
    def counted(self) -> Transformer:
        """The model that is shown."""
        return self.transformer if self.by_hand else read_model(self.model, self.config)


_WIDTHS = [512, 768, *(1024 * k for k in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16))]
_WIDTHS += [20480, 24576, 25600, 32768]
_DEPTHS = [*range(1, 49), *range(50, 100, 2), *range(104, 257, 8)]
_VOCABULARIES = [256, 1000, 8192, 16384, 32000, 50257, 65536, 100_000, 128_256, 152_064]
_VOCABULARIES += [200_000, 256_000, 512_000]

_LLAMA_SIZE = common.Control(
    "Attention heads",
    "Number of attention heads.",
    most=1000,
    more=True,
    applies=lambda setting: setting.llama,
)
_LLAMA_FLAG = replace(_LLAMA_SIZE, kind="flag", most=1e12)

_CONTROLS = {
    "model": controls.choice(
        "Or from a file",
        "Shape it by hand, or read a config.json: one that you paste, or a real one.",
        [BY_HAND, PASTED, *names("configs")],
        lead=True,
    ),
    "config": common.Control(
        "The file's text, counted when you paste it or leave the box",
        "All of a config.json, as the Hugging Face Hub shows it.",
        "text",
        lines=13,
        lead=True,
        applies=lambda setting: setting.model == PASTED,
    ),
    "num_layers": common.Control(
        "Layers",
        "How many are stacked.",
        most=1000,
        stops=tuple(_DEPTHS),
        applies=lambda setting: setting.by_hand,
    ),
    "hidden_size": common.Control(
        "Hidden size",
        "How many numbers represent a token.",
        most=1e6,
        stops=tuple(_WIDTHS),
        applies=lambda setting: setting.by_hand,
    ),
    "vocab_size": common.Control(
        "Vocabulary",
        "How many different tokens there are.",
        unit="tokens",
        most=1e7,
        stops=tuple(_VOCABULARIES),
        applies=lambda setting: setting.by_hand,
    ),
    "kind": controls.choice(
        "Kind",
        "GPT's, or Llama's.",
        [GPT, LLAMA],
        more=True,
        applies=lambda setting: setting.by_hand,
    ),
    "num_heads": replace(
        _LLAMA_SIZE,
        help="Number of attention heads. A GPT's count doesn't depend on them.",
        applies=lambda setting: setting.by_hand,
    ),
    "num_kv_heads": replace(
        _LLAMA_SIZE, label="Key-value heads", help="Number of heads for keys and values."
    ),
    "head_dim": replace(_LLAMA_SIZE, label="Head size", help="Width of a head.", most=10_000),
    "intermediate_size": replace(
        _LLAMA_SIZE, label="MLP size", help="How wide the MLP is inside.", most=1e6
    ),
    "num_experts": replace(
        _LLAMA_SIZE, label="Experts", help="MLPs per layer. 0 means a single MLP.", least=0
    ),
    "experts_per_token": replace(
        _LLAMA_SIZE,
        label="Experts a token meets",
        help="Out of all of them.",
        applies=lambda setting: setting.llama and setting.num_experts > 0,
    ),
    "sequence_length": replace(
        _LLAMA_SIZE,
        label="Positions",
        help="Rows of the position table.",
        most=1e7,
        applies=lambda setting: setting.gpt,
    ),
    "tied_embeddings": common.Control(
        "Head tied to embedding",
        "One matrix for both.",
        "flag",
        more=True,
        applies=lambda setting: setting.by_hand,
    ),
    "qkv_bias": replace(_LLAMA_FLAG, label="Biases on queries, keys, values", help="As in Qwen2."),
    "qk_norm": replace(_LLAMA_FLAG, label="Norms on queries and keys", help="As in Qwen3."),
}


def render(setting: Setting, before: Setting | None = None, width: int = PAGE) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    model, count = setting.counted, count_parameters(setting.counted)
    previous = before.counted if before and before.model == setting.model else None
    result = _sentence(count)
    if setting.by_hand:
        result += _note_on_sizes(setting, before)
        picture = stack(model, "", previous)
        below, code = _note_on_formula(model, count), _shape_in_code(setting)
    else:
        name = setting.model
        if count.prediction:
            result += f" Another {units.count(count.prediction)} predict further tokens, "
            result += "and the total leaves them out."
        picture = stack(model, "" if name == PASTED else name, previous)
        below = _source(name)
        reading = 'read_config("config.json")' if name == PASTED else f"config_model({name!r})"
        code = f"count_parameters(published.{reading})"
    return "".join(
        [
            common.sentence(result),
            _defaults(setting.config) if setting.model == PASTED else "",
            picture.drawing(width).inline_svg(),
            common.folded("Part by part, exactly", _table(count) + below),
            common.folded("The same in code", common.call(code)),
        ]
    )


# --- a shape by hand


def _note_on_sizes(setting: Setting, before: Setting | None) -> str:
    """A note on the sizes that did not follow a Llama's hidden size."""
    if before is None or not (setting.llama and before.llama):
        return ""
    sizes = [(x.num_heads, x.head_dim, x.intermediate_size) for x in (before, setting)]
    if sizes[0] != sizes[1] or before.hidden_size == setting.hidden_size:
        return ""
    return " Heads and MLP still have their old sizes. You can change them under <i>More</i>."


def _shape_in_code(setting: Setting) -> str:
    """The call that counts the shape, without what is the default."""
    defaults = signature(setting.make).parameters
    arguments = [
        f"{name}={value!r}"
        for name, value in setting.shape.items()
        if value != defaults[name].default
    ]
    return f"count_parameters(Transformer.{setting.kind.lower()}({', '.join(arguments)}))"


def _note_on_formula(model: Transformer, count: ParameterCount) -> str:
    """A note on what the formula for a GPT gives, with 2048 positions if there are none."""
    l, h, s = model.num_layers, model.hidden_size, model.num_positions or 2048
    formula = gpt_parameters(l, h, model.vocab_size, s)
    off = float(formula / count.total - 1)
    verdict = f"{units.percent(abs(off))} too {'many' if off > 0 else 'few'}"
    if formula == count.total - norm_parameters(model):
        verdict = "all but the last norm"
    return f"<p>The formula for a GPT gives {units.exact(int(formula))}, which is {verdict}.</p>"


# --- a model from a file

MOST_LAYERS = 1_000
"""Of a stack that is drawn."""


def read_model(name: str, config: str) -> Transformer:
    """Read a published model by its name, or the one that a pasted text describes.

    >>> read_model(PASTED, EXAMPLE).num_experts
    32
    """
    if name != PASTED:
        return config_model(name)
    if not config.strip():
        raise common.WordedError("Paste the text of a config.json here.")
    try:
        model = parse_config(config)
    except ValueError as error:
        raise common.WordedError(_refusal(config, str(error))) from None
    if model.num_layers > MOST_LAYERS:
        layers = f"The file has {units.exact(model.num_layers)} layers"
        raise common.WordedError(f"{layers}, but we can draw {MOST_LAYERS:,} at most.")
    return model


def _refusal(config: str, problem: str) -> str:
    """Why a file is not read, by the names that stand in it."""
    where = "The text" if problem.startswith("config=") else "In the file,"
    reason = problem.removeprefix("config=").replace(" in families.FAMILIES", "").rstrip(".")
    return f"{where} {reason}."


def _defaults(config: str) -> str:
    """The sizes that a file leaves out, and what is counted for them."""
    defaults = left_out(json.loads(config))
    if not defaults:
        return ""
    sizes = {key: units.exact(finite(key, size)) for key, size in defaults.items()}
    words = ", ".join(f"{key} = {size}" for key, size in sizes.items())
    what = "so we count the defaults of its family"
    return f"<p><b>Not in the text</b>, {what}: {escape(words)}.</p>"


def _source(name: str) -> str:
    """Where a model of the shelf comes from, and what was published of it."""
    row = next((row for row in rows("configs") if row["name"] == name), Row())
    notes = [str(row[key]) for key in ("source", "note") if key in row]
    return f"<p>{escape('. '.join(notes))}.</p>" if notes else ""


# --- both


def _sentence(count: ParameterCount) -> str:
    layers = units.percent((count.attention + count.mlp) / count.total)
    result = f"<b>{units.count(count.total)} parameters</b>, {layers} in attention and MLP"
    if count.active != count.total:
        result += f"; a token meets <b>{units.count(count.active)}</b> of them"
    return f"{result}."


def _table(count: ParameterCount) -> str:
    rows = common.shares(count, units.exact)
    if count.active != count.total:
        share = units.percent(count.active / count.total)
        rows.append(["of these, met by a token", units.exact(count.active), share])
    if count.prediction:
        rows.append(["plus, for further tokens", units.exact(count.prediction), ""])
    return common.table(["part", "parameters", "share"], rows)


_BY_HAND = (
    "Llama-3.1-8B",
    "Qwen3-30B-A3B",
    "Mixtral-8x7B",
    "GPT-3 175B",
    "gpt2",
    "Llama-3.2-1B",
    "Llama-3.1-70B",
    "Llama-3.1-405B",
    "Qwen2.5-7B",
    "Megatron 1T",
)

_SETTINGS = {name: Setting.of(name) for name in _BY_HAND}
_SETTINGS["DeepSeek-V3"] = replace(_SETTINGS[_BY_HAND[0]], model="DeepSeek-V3")
_SETTINGS[PASTED] = replace(_SETTINGS[_BY_HAND[0]], model=PASTED)

PANEL = common.Panel(
    "How many parameters, and where?",
    _CONTROLS,
    _SETTINGS,
    ("Qwen3-30B-A3B", "DeepSeek-V3"),
    render,
)


# --- handles


_ON_THE_WAY = (
    "A word is looked up: <b>its row of the embedding</b> is where the stream begins.",
    "Attention reads the stream, and three matrices turn it into <b>a query, a key and a "
    "value</b>.",
    "The query of “sat” meets the keys so far. The better a key fits, <b>the more of that "
    "token's value</b> gets added.",
    "Another matrix returns the mixture to the stream, where it's <b>added</b>.",
    "The MLP reads the stream, which already includes attention's part. One matrix expands it to "
    "<b>4× as many numbers</b>.",
    "A second matrix shrinks them to the old number, and they're also <b>added</b>.",
    "All the other layers do the same, each with <b>its own matrices</b>.",
    "At the top the stream is compared with the embedding again: <b>a score for each token</b>.",
)


@handle(
    "One token's vector on its way past attention and MLP, and the parameters it meets there.",
    step=slider(
        "Step",
        "Where the token is, from its look-up to the scores.",
        tuple(range(drawings.STEPS)),
        play=True,
    ),
)
def stream(step: int = 0) -> Shown:
    """How far a token has come past a layer of GPT-2 XL."""
    return drawings.stream(architecture("gpt2-xl"), step), _ON_THE_WAY[step]


def gpt2(hidden_size: int, num_layers: int) -> ParameterCount:
    """The parameters of a GPT with GPT-2's tables, part by part."""
    heads = 1  # of any size: they share the same matrices
    return count_parameters(Transformer.gpt(num_layers, hidden_size, heads, 50257, 1024))


@handle(
    "The parameters of a GPT that you make wider or deeper, part by part.",
    hidden_size=slider(
        "Hidden size",
        "How many numbers represent a token: the side of each square.",
        (384, 768, 1152, 1536),
    ),
    num_layers=slider("Layers", "How many bricks are stacked.", (6, 12, 18, 24)),
    book=({"num_layers": 24}, {"hidden_size": 1536}),
)
def wider_or_deeper(hidden_size: int = 768, num_layers: int = 12, previous: Any = None) -> Shown:
    """What a GPT's hidden size and its layers do to its parameters."""
    now, shape = gpt2(hidden_size, num_layers), (hidden_size, num_layers)
    start = (previous.hidden_size, previous.num_layers) if previous else shape
    if start == shape:
        text = f"{num_layers} layers, each of 12 squares of {hidden_size:,} × "
        text += f"{hidden_size:,}: <b>{units.count(now.total)}</b> in all."
        return drawings.bricks(now, shape), text
    old = gpt2(*start)
    layers = _times((now.attention + now.mlp) / (old.attention + old.mlp))
    text = f"Parameters compared with the start: <b>{layers}</b> in the layers, "
    text += f"{_times(now.embedding / old.embedding)} in the tables."
    return drawings.bricks(now, shape, start), text


def _times(ratio: float) -> str:
    """Write the ratio in two digits.

    >>> _times(3.998), _times(1)
    ('4× as many', 'as many as before')
    """
    rounded = float(units.digits(ratio, 2))
    if rounded == 1:
        return "as many as before"
    return f"{units.short(rounded if rounded % 1 else int(rounded))}× as many"


@handle(
    "A router sends each token to a few experts: parameters in memory, and those a token meets.",
    num_experts=slider("Experts", "Number of MLPs per layer.", (2, 4, 6, 8, 12, 16)),
    experts_per_token=slider(
        "Met by a token",
        "How many of its experts a layer sends each token to.",
        (1, 2, 4, 8, 16),
        reach=lambda setting: setting.num_experts,
    ),
    token=slider("Token", "Which token of the sentence we follow.", tuple(range(1, 8)), play=True),
    book=({}, {"num_experts": 16}),
)
def experts(num_experts: int = 8, experts_per_token: int = 2, token: int = 7) -> Shown:
    """How many of Mixtral's experts a token meets; no more than there are."""
    active = min(experts_per_token, num_experts)
    mixtral = Setting.of("Mixtral-8x7B")
    model = replace(mixtral, num_experts=num_experts, experts_per_token=active).transformer
    counted = count_parameters(model)
    text = (
        f"A token meets {active} of {units.plural(num_experts, 'expert')} "
        f"in a layer, and <b>{units.percent(counted.active / counted.total)}</b> of all "
        "parameters."
    )
    return drawings.experts(model, token - 1), text
