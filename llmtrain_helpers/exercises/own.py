"""The learner's own run, from page to page: `own_run()` reads it, `own_run(gpus=64)` keeps it.

It is kept in `my_run.toml`, beside the notebooks, a line for each thing that was set.
What is not set there is the course's example. Where no file can be written, as in a web
page, the run lives as long as the kernel.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.budget import nearest_shape, usual_batch
from llmtrain_helpers.checks import choice, count, one, quantity, refuse
from llmtrain_helpers.duration import UTILIZATIONS, rate_at, trainable_tokens
from llmtrain_helpers.exercises.common import read_as
from llmtrain_helpers.model.names import known_accelerator, known_model
from llmtrain_helpers.model.tables import names
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.search import best_split

NAME, LARGEST = "my_run.toml", 10_000
"""The file beside the notebooks, and the most bytes that it may have."""

Value = str | int | float

PRICES, PRICE = {"A100": 1.5}, 2.5
"""Dollars for a GPU-hour where none is set, by the first word of the chip; and of all others."""

SET: dict[str, Value] = {}
"""What was set in this kernel and could not be written to the file."""


@dataclass(frozen=True)
class OwnRun:
    """A run's GPUs, days and model, and what the chapters add; `dict(run)` has them by name.

    `tokens` are, where none are set, what a first run gets through in the days; `price`,
    in dollars a GPU-hour, is what the course assumes of the chip.
    `problems` are sentences about what was set and could not be understood.
    """

    model: str = "Llama-3.1-8B"
    chip: str = "A100 80GB SXM"
    gpus: int = 8
    days: float = 30
    tokens: int = 0
    sequence: int = 8192
    batch: int = 512
    tensor: int = 1
    pipeline: int = 1
    price: float = 1.5
    problems: tuple[str, ...] = field(default=(), compare=False)
    example: bool = field(default=True, compare=False)

    @property
    def shape(self) -> Transformer:
        """The model, trained on sequences of the run's length."""
        return known_model(self.model, self.sequence)

    def keys(self) -> list[str]:
        """The names of what a run has."""
        return [*CHECKS]

    def __getitem__(self, name: str) -> Value:
        value: Value = getattr(self, choice("name", name, CHECKS))
        return value

    def __repr__(self) -> str:
        text = (
            f"{'the example' if self.example else 'yours'}: {units.exact(self.gpus)} × "
            f"{self.chip} for {self.days:g} days, {self.model}, "
            f"{units.count(self.tokens, 2)} tokens, {units.dollars(self.price)} a GPU-hour"
        )
        return "\n".join([text, *self.problems])


def _whole(name: str, value: object) -> int:
    return int(one(name, read_as(name, value), count))


def _amount(name: str, value: object) -> float:
    number = float(one(name, read_as(name, value), quantity))
    return int(number) if not number % 1 else number


def _model(name: str, value: object) -> str:
    if not isinstance(value, str):
        refuse(name, value, "is no name of a model")
    try:
        known_model(value)
    except ValueError:
        near = _of_size(value)
        if not near:
            raise
        problem = f"is a size and no name: the nearest published model is {near!r}"
        refuse(name, value, problem)
    return value


def _of_size(value: str) -> str:
    """The published model that is nearest to a size; empty for what is no size."""
    try:
        size = units.read(value)
    except ValueError:
        return ""
    return nearest_shape(size, {name: known_model(name) for name in names("architectures")})


def _chip(name: str, value: object) -> str:
    if not isinstance(value, str):
        refuse(name, value, "is no name of a chip")
    return known_accelerator(value).name


CHECKS: dict[str, Callable[[str, object], Value]] = {
    "model": _model,
    "chip": _chip,
    "gpus": _whole,
    "days": _amount,
    "tokens": _whole,
    "sequence": _whole,
    "batch": _whole,
    "tensor": _whole,
    "pipeline": _whole,
    "price": _amount,
}
"""What a run has, each with the check that its value passes."""


def own_run(**changes: Value) -> OwnRun:
    """Your own run; `own_run(gpus=64, days=14)` sets some of it, and keeps that.

    model       a published model, or the path of a config.json
    chip        a published accelerator
    gpus, days  how many, and for how long
    tokens      what the run reads; without it what a first run gets through in these days
    sequence    tokens in a sequence; without it 8,192, or the model's longest
    batch       sequences in a step
    tensor      GPUs that share each matrix; pipeline: stages
    price       dollars for a GPU-hour; without it 1.50 for an A100 and 2.50 for any other

    A change is written to `my_run.toml` in the first `notebooks/` at or above the working
    folder; None takes back what was set. Nothing is written without a change. With
    LLMTRAIN_RUN=example in the environment there is the example alone. ValueError for
    what is no entry of a run, or cannot be.

    >>> own_run(gpus="many")
    Traceback (most recent call last):
    ...
    ValueError: gpus='many' is no number: write 7B, 300e9, 15T, 8k, 1,024 or 2.5
    """
    kept, problems = _kept()
    for name, value in changes.items():
        choice("name", name, CHECKS)
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = CHECKS[name](name, value)
    if changes:
        problems = _keep(kept)
    known: dict[str, Any] = {**kept, "problems": tuple(problems), "example": not kept}
    run = OwnRun(**known)
    sequence = kept.get("sequence") or known_model(run.model).sequence_length
    run = replace(run, sequence=int(sequence))
    price = kept.get("price") or PRICES.get(run.chip.split()[0], PRICE)
    return replace(run, tokens=run.tokens or _promised(run), price=float(price))


def _promised(run: OwnRun) -> int:
    """The tokens of a first run: at the low end of the shares that published runs reached.

    Fewer where the plan's steps are slower than 6TP says, as those of small models on
    long texts: what its best split gets through.
    """
    chip, shape = known_accelerator(run.chip), run.shape
    size = count_parameters(shape).active
    rate = rate_at(UTILIZATIONS[0], chip.peak(chip.training_format))
    tokens = trainable_tokens(run.days * units.DAY, size, run.gpus, rate, "none")
    try:
        plan = best_split(shape, chip, run.gpus, usual_batch(shape, run.gpus))
    except ValueError:  # no split comes out even
        return int(tokens)
    return int(min(tokens, plan.first_run_tokens(run.days)) if plan.fits else tokens)


def _kept() -> tuple[dict[str, Value], list[str]]:
    """What was set, and a sentence about each thing that could not be understood."""
    if _example_alone():
        return {**SET}, []
    path = _path()
    try:
        written = _read(path) if path.is_file() else {}
    except (OSError, ValueError) as error:
        return {**SET}, [f"{NAME} cannot be read, so the example stands in: {error}"]
    kept, problems = dict[str, Value](), list[str]()
    for name, value in (written | SET).items():
        try:
            kept[name] = CHECKS[choice("name", name, CHECKS)](name, value)
        except ValueError as error:
            problems.append(f"{NAME}: {error}. The example stands in for it.")
    return kept, problems


def _read(path: Path) -> dict[str, Value]:
    if path.stat().st_size > LARGEST:
        raise ValueError(f"it has more than {LARGEST:,} bytes")
    return tomllib.loads(path.read_text("utf-8"))


def _keep(kept: Mapping[str, Value]) -> list[str]:
    """Write what was set; a sentence where that cannot be."""
    if not _example_alone():
        values = {name: kept[name] for name in CHECKS if name in kept}
        lines = (f"{name} = {json.dumps(x, ensure_ascii=False)}\n" for name, x in values.items())
        try:
            _path().write_text("".join(lines), "utf-8")
        except OSError as error:
            SET.update(kept)
            return [f"{NAME} cannot be written ({error.strerror}): kept until the kernel ends."]
        SET.clear()
        return []
    SET.clear()
    SET.update(kept)
    return []


def _example_alone() -> bool:
    """Whether no file is to be read or written."""
    asked = os.environ.get("LLMTRAIN_RUN", "")
    if asked not in ("", "example"):
        choice("LLMTRAIN_RUN", asked, ["example"])
    return asked == "example" or sys.platform == "emscripten"


def _path() -> Path:
    """The file in the working folder, or beside the notebooks at or above it."""
    here = Path.cwd()
    beside = next((folder for folder in (here, *here.parents) if folder.name == "notebooks"), here)
    return here / NAME if (here / NAME).is_file() else beside / NAME
