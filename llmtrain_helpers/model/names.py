"""Models and chips by name, and from a `config.json`. Shared by all chapters.

Sources: those of the rows in `data/`, which each name their own.
"""

from __future__ import annotations

import json
import re
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from inspect import signature
from math import isfinite
from os import PathLike
from os.path import isfile
from pathlib import Path
from typing import Any, TypeAlias

from llmtrain_helpers import checks, units
from llmtrain_helpers.checks import Number, anywhere, count, refuse, shallow, show
from llmtrain_helpers.model.accelerator import Accelerator
from llmtrain_helpers.model.tables import Row, find_row, names, rows
from llmtrain_helpers.model.transformer import Transformer, of_length

PEAKS = ["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"]
"""The columns of `accelerators()` that hold dense peaks, in FLOP/s."""

BLOCKS = {"mxfp8": "fp8", "mxfp4": "fp4", "nvfp4": "fp4"}
"""Formats with a scale per block of numbers, and the format whose peak they reach."""

SEQUENCE = 8192
"""Tokens per sequence if you don't give any, because most models are first trained with about
this many. A table or a file only has the longest sequence that a model accepts, often more."""

CONFIG_LIMIT = 1_000_000
"""A config.json has a few thousand bytes; a larger file than this is something else."""


Model: TypeAlias = Transformer | str | PathLike[str]
"""A model: itself, its published name, or the path of its config.json."""

Chip: TypeAlias = Accelerator | str | PathLike[str]
"""An accelerator: itself, its name, or the path of a TOML file with its numbers."""

OWN = {
    **{"peak": "FLOP/s", "memory": "bytes", "bandwidth": "B/s", "links": "B/s", "network": "B/s"},
    **{"gpus_per_node": "GPUs", "matmul": "share", "fp8": "FLOP/s", "fp4": "FLOP/s"},
}
"""The numbers of a chip of your own, and their units; `peak` is the dense one in 16 bits, and
`matmul` the share of it that the best matrix product reaches."""

_FIELDS = {"links": "link_bandwidth", "network": "network_bandwidth", "matmul": "matmul_share"}


def known_model(model: Model, sequence_length: Number | None = None) -> Transformer:
    """Return the shape of a `Transformer`, a published name, or a `config.json`'s path.

    Without a `sequence_length`, a `Transformer` keeps its own, and a name or a file gets
    `SEQUENCE` tokens, or fewer if the model accepts fewer. More than that raises a
    ValueError if positions are learned, and otherwise a warning.

    >>> known_model("Llama-3.1-8B").sequence_length, known_model("gpt2").sequence_length
    (8192, 1024)
    """
    if isinstance(model, Transformer):
        return of_length(model, sequence_length)
    shape = longest_shape(model)
    longest = shape.sequence_length
    if sequence_length is None:
        return of_length(shape, min(SEQUENCE, longest))
    s = count("sequence_length", sequence_length)
    if anywhere(s > longest):
        if shape.num_positions:
            refuse("sequence_length", s, f"is more than the {longest:,} positions of {model}")
        warnings.warn(
            f"sequence_length={show(s)} is more than the {longest:,} tokens that we know "
            f"{model} takes: its positions may have to be stretched",
            stacklevel=3,
        )
    return of_length(shape, s)


def longest_shape(model: Model) -> Transformer:
    """Return a shape with the longest sequences in its table or file.

    A word is a path if it ends in .json or there's such a file, and otherwise a name.

    >>> longest_shape("Llama-3.1-8B").sequence_length
    131072
    """
    if isinstance(model, Transformer):
        return model
    if not isinstance(model, str | PathLike):
        refuse("model", model, "isn't a Transformer, a name or the path of a config.json")
    if isinstance(model, PathLike) or model.endswith(".json") or isfile(model):
        return Transformer.from_config(_read_file("model", Path(model)))
    return _published("model", model)


def known_accelerator(accelerator: Chip) -> Accelerator:
    """Return the chip for an `Accelerator`, its name in `published.accelerators()`, or a file.

    >>> known_accelerator("h100").name
    'H100 SXM'
    """
    if isinstance(accelerator, Accelerator):
        return accelerator
    if not isinstance(accelerator, str | PathLike):
        refuse("accelerator", accelerator, "isn't an Accelerator or the name of one")
    if isinstance(accelerator, str) and not accelerator.endswith(".toml"):
        return _chip(find_row("accelerator", accelerator, "accelerators"))
    numbers = _read_file("accelerator", Path(accelerator), "chip.toml")
    try:
        return own_accelerator(numbers)
    except ValueError as problem:  # write a key as the file does
        raise ValueError(f"in {accelerator}: {str(problem).replace('=', ' = ')}") from None


def own_accelerator(numbers: Mapping[str, object], chip: Accelerator | None = None) -> Accelerator:
    """Return a chip of your own with these `OWN` numbers, or a known one with some of its changed.

    A number can be written as `units` reads it. The chip's name says which are yours.

    >>> own_accelerator({"memory": "96 GB"}, known_accelerator("H100")).name
    'H100 SXM (your memory)'
    """
    checks.instance("numbers", numbers, Mapping)
    if chip is not None:
        checks.instance("chip", chip, Accelerator)
    own: dict[str, Any] = {}
    for name, value in numbers.items():
        if name not in OWN:
            raise ValueError(f"{show(name)} isn't a number of a chip. Known: {', '.join(OWN)}")
        if isinstance(value, str) and OWN[name] == "B/s" and re.search(r"b(ps|it|/s)", value):
            refuse(name, value, "is in bits: write bytes, such as 50 GB/s for 400 Gb/s")
        try:
            number = units.read_as(value, OWN[name]).number
        except ValueError as problem:
            raise ValueError(str(problem).replace("text=", f"{name}=", 1)) from None
        kinds = {"FLOP/s": checks.rate, "GPUs": checks.count, "share": checks.share}
        own[name] = kinds.get(OWN[name], checks.quantity)(name, number)
    if chip is None and not own.keys() >= {"peak", "memory"}:
        raise ValueError("give a known chip, or peak=X and memory=X of your own")
    if "links" in own and own.get("gpus_per_node") == 1:
        refuse("links", own["links"], "connects GPUs of a node, but gpus_per_node=1")
    whose = f"your {', '.join(own)}" if len(own) < 4 else f"{len(own)} numbers yours"
    name = f"{chip.name} ({whose})" if chip else "custom chip"
    chip = chip or Accelerator(name, 1e9, peaks={"bf16": 1e9})
    formats = {"peak": chip.training_format, "fp8": "fp8", "fp4": "fp4"}
    peaks = {**chip.peaks, **{formats[x]: own.pop(x) for x in formats if x in own}}
    peaks |= {x: peaks[y] for x, y in BLOCKS.items() if x in peaks}
    own = {_FIELDS.get(x, x): number for x, number in own.items()}
    own |= {"shown_memory": None} if "memory" in own else {}
    return replace(chip, name=name, peaks=peaks, **own)


def architecture(name: str, sequence_length: Number | None = None) -> Transformer:
    """Return the shape of a published model by its name in a table.

    Looks in `architectures()`, then in `configs()`. `sequence_length` is for training,
    in tokens, by default the model's maximum. Raises ValueError for an unknown name,
    and suggests the nearest.

    >>> architecture("Llama-3.1-8B", sequence_length=8192).num_kv_heads
    8
    """
    return _published("architecture", name, sequence_length)


def _published(argument: str, name: str, sequence_length: Number | None = None) -> Transformer:
    """Return the shape of this name; an error uses the name of the argument."""
    row = find_row(argument, name, "architectures", "configs")
    if "config" in row:
        return config_model(row["name"], sequence_length)
    s = row["max_sequence_length"] if sequence_length is None else sequence_length
    return shape_of_row({**row, "sequence_length": s})


def model_names() -> list[str]:
    """List the names that `architecture` knows, each once.

    >>> "DeepSeek-V3" in model_names()
    True
    """
    return [*dict.fromkeys([*names("architectures"), *names("configs")])]


def config_model(name: str, sequence_length: Number | None = None) -> Transformer:
    """Return the shape of a real model by its name in `configs()`.

    >>> config_model("DeepSeek-V3").num_experts
    256
    """
    row = find_row("config", name, "configs")
    config = {**json.loads(row["config"]), "model_type": row["family"]}
    return Transformer.from_config(config, sequence_length)


def accelerator(name: str) -> Accelerator:
    """Return an accelerator by its name in `accelerators()`, or by its name in papers.

    >>> accelerator("A100-80").peak("bf16")
    312000000000000.0
    >>> accelerator("H10")
    Traceback (most recent call last):
    ...
    ValueError: accelerator='H10' is unknown, did you mean 'H100 SXM' or 'H20' or 'A10'?
    """
    return _chip(find_row("accelerator", name, "accelerators"))


def _chip(row: Mapping[str, Any]) -> Accelerator:
    """Make the accelerator of a row, with its links and the best share of its peak."""
    blocks = {key: row[BLOCKS[key]] for key in row.get("block_formats", "").split(";") if key}
    return Accelerator(
        name=row["name"],
        memory=row["memory_bytes"],
        bandwidth=row.get("bandwidth_bytes_per_s"),
        power=row.get("power_watts"),
        peaks={key: row[key] for key in PEAKS if key in row} | blocks,
        shown_memory=row.get("shown_bytes"),
        **_links(row["name"]),
        **_matmul_shares(row["name"]),
    )


@cache
def _links(name: str) -> dict[str, Any]:
    """The bandwidths of a chip's links and its GPUs per node, if they're known."""
    columns = ("link_bandwidth", "network_bandwidth", "gpus_per_node")
    row = next((row for row in rows("links") if row["name"] == name), Row())
    return {column: row[column] for column in columns if column in row}


SAME_SILICON = {
    "A100 40GB SXM": "A100 80GB SXM",
    "H100 SXM 96GB (500 W)": "H100 SXM",
    "H200 SXM": "H100 SXM",
    "H800 SXM": "H100 SXM",
}
"""Chips that only differ in memory or links from one whose products were measured."""


@cache
def _matmul_shares(name: str) -> dict[str, Any]:
    """The best measured shares of the dense peaks: in 16 bits, and in other formats."""
    best: dict[str, float] = {
        row["format"]: row["flops_per_s"] / row["peak_flops"]
        for chip in (SAME_SILICON.get(name, name), name)  # its own rows come first
        for row in rows("matmul_measured")
        if row["accelerator"] == chip and row["kind"] == "best shape found"
    }
    return {"matmul_share": best.pop("bf16", None), "matmul_shares": best}


def read_config(path: str | PathLike[str], sequence_length: Number | None = None) -> Transformer:
    """Read the shape in a Hugging Face `config.json`; see `Transformer.from_config`.

    Raises ValueError if the file doesn't exist, is too large, isn't JSON or has an unknown
    family, and if a key has two values or one that isn't finite. Never executes anything,
    and reads at most a megabyte.
    """
    if not isinstance(path, str | PathLike):
        refuse("path", path, "isn't the path of a file")
    return Transformer.from_config(_read_file("path", Path(path)), sequence_length)


def parse_config(
    config: str | Mapping[str, object], sequence_length: Number | None = None
) -> Transformer:
    """Read the shape in a `config.json`'s text or dict, with the errors of `read_config`.

    >>> parse_config('{"model_type": "gpt2"}') == parse_config({"model_type": "gpt2"})
    True
    """
    if isinstance(config, Mapping):
        return Transformer.from_config(config, sequence_length)
    if not isinstance(config, str):
        refuse("config", config, "is neither the text of a config.json nor a dict")
    if len(config) > CONFIG_LIMIT:
        refuse("config", config[:20], f"is longer than {CONFIG_LIMIT:,} characters")
    return Transformer.from_config(_parsed("config", config, config), sequence_length)


def _read_file(argument: str, path: Path, kind: str = "config.json") -> Any:
    try:
        path = path.expanduser()
        if not path.is_file():
            refuse(argument, str(path), f"isn't a file: give the path of a {kind}")
        with path.open("rb") as file:
            content = file.read(CONFIG_LIMIT + 1)
    except (OSError, RuntimeError) as error:  # unreadable, or a ~ without a user
        refuse(argument, str(path), f"can't be read: {str(error)[:80]}")
    if len(content) > CONFIG_LIMIT:
        refuse(argument, str(path), f"is too large for a {kind}: over {CONFIG_LIMIT:,} bytes")
    return _parsed(argument, str(path), content, kind)


def _parsed(name: str, source: str, content: str | bytes, kind: str = "config.json") -> Any:
    """Parse a JSON or TOML text; a ValueError names its source."""
    try:
        if kind.endswith("toml") and isinstance(content, bytes):
            return tomllib.loads(shallow(str(content, "utf-8")))
        text = shallow(content) if isinstance(content, str) else content
        return json.loads(text, object_pairs_hook=_read_object)
    except (ValueError, RecursionError) as error:
        refuse(name, source, f"isn't {kind[-4:].upper()} that can be read: {str(error)[:120]}")


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Read an object of a JSON file; each key has to have one value, and no NaN."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if isinstance(value, float) and not isfinite(value):
            refuse(key, value, "is not a finite number")
        if values.setdefault(key, value) != value:
            refuse(key, value, f"contradicts {key}={show(values[key])} in the same file")
    return values


def shape_of_row(row: Mapping[str, object]) -> Transformer:
    """Make the shape in a row of a table; its kind is gpt, llama or nemo."""
    kind = row["kind"]
    traits = {"layer_norm": kind != "llama", "gated_mlp": kind == "llama", "bias": kind == "gpt"}
    columns = signature(Transformer).parameters.keys() & row.keys()
    words: dict[str, Any] = {**traits, **{column: row[column] for column in columns}}
    return Transformer(**words)
