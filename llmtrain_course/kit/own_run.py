"""The learner's own run, from page to page: `own_run()` reads it, `own_run(gpus=64)` saves it.

It's saved in `my_run.toml`, next to the notebooks, with a line per entry that was set.
What is not set there is the course's example. Where no file can be written, as in a web
page, the run lives as long as the kernel.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from llmtrain_course.kit.exercise import read_as
from llmtrain_course.kit.formulas import nearest_shape, rate_at, trainable_tokens
from llmtrain_helpers import units
from llmtrain_helpers.budget import usual_batch
from llmtrain_helpers.checks import choice, count, one, quantity, refuse, show
from llmtrain_helpers.duration import UTILIZATIONS
from llmtrain_helpers.model.names import known_accelerator, known_model
from llmtrain_helpers.model.tables import names
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.search import best_split

NAME, LARGEST = "my_run.toml", 10_000
"""The file next to the notebooks, and the maximum bytes it may have."""

Value = str | int | float

PRICES, PRICE = {"A100": 1.5}, 2.5
"""Default dollars per GPU-hour, by the first word of the chip, and for all others."""

BOM, RENAME = "\ufeff", "You can also rename the file to start a new one."

SET: dict[str, Value | None] = {}
"""Entries set, or taken back, in this kernel that couldn't be written to the file."""


@dataclass(frozen=True)
class OwnRun:
    """A run's GPUs, days and model, and what the chapters add; `dict(run)` has them by name.

    What isn't set, 0 here, follows from the rest once `own_run()` has read it: `tokens` are
    what its plan promises for the days, `batch` makes steps of about four million tokens,
    `tensor` and `pipeline` are the fastest split's, and `price`, in dollars per GPU-hour,
    is what the course assumes for the chip. `problems` are sentences about what was set
    and can't be understood.
    """

    model: str = "Llama-3.1-8B"
    chip: str = "A100 80GB SXM"
    gpus: int = 8
    days: float = 30
    tokens: int = 0
    sequence: int = 8192
    batch: int = 0
    tensor: int = 0
    pipeline: int = 0
    price: float = 1.5
    problems: tuple[str, ...] = field(default=(), compare=False)
    example: bool = field(default=True, compare=False)

    @property
    def shape(self) -> Transformer:
        """The model, trained on sequences of the run's length."""
        return known_model(self.model, self.sequence)

    @property
    def plan(self) -> Plan:
        """The fastest way to run it that fits, for its tokens, batch and split."""
        batch = self.batch or usual_batch(self.shape, self.gpus)
        ways = {"tensor_parallel": self.tensor, "pipeline_parallel": self.pipeline}
        split: Any = {name: number for name, number in ways.items() if number}
        return best_split(self.shape, self.chip, self.gpus, batch, self.tokens, **split)

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
            f"{units.count(self.tokens, 2)} tokens, {units.dollars(self.price)} per GPU-hour"
        )
        return "\n".join([text, *self.problems])


def _whole(name: str, value: object) -> int:
    return int(one(name, read_as(name, value), count))


def _amount(name: str, value: object) -> float:
    number = float(one(name, read_as(name, value), quantity))
    return int(number) if not number % 1 else number


def _model(name: str, value: object) -> str:
    if not isinstance(value, str):
        refuse(name, value, "isn't the name of a model")
    if value.encode("utf-8", "ignore").decode("utf-8") != value:
        refuse(name, value, "isn't a path in UTF-8: rename the file")
    try:
        known_model(value)
    except ValueError:
        near = _of_size(value)
        if not near:
            raise
        problem = f"is a size, not a name: the nearest published model is {near!r}"
        refuse(name, value, problem)
    return value


def _of_size(value: str) -> str:
    """Find the published model nearest to a size; empty for anything that isn't a size."""
    try:
        size = units.read(value)
    except ValueError:
        return ""
    return nearest_shape(size, {name: known_model(name) for name in names("architectures")})


def _chip(name: str, value: object) -> str:
    if not isinstance(value, str):
        refuse(name, value, "isn't the name of a chip")
    try:
        return known_accelerator(value).name
    except ValueError as error:
        raise ValueError(str(error).replace("accelerator=", "chip=", 1)) from None


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
"""The entries of a run, each with the check for its value."""


def own_run(**changes: Value | None) -> OwnRun:
    """Return your own run; `own_run(gpus=64, days=14)` changes and saves some of it.

    model       a published model, or the path of a config.json
    chip        a published accelerator
    gpus, days  how many, and for how long
    tokens      to train on; by default, as many as the plan can promise for these days
    sequence    tokens per sequence; by default 8,192, or the model's longest
    batch       sequences per step; by default, about four million tokens
    tensor      GPUs that share each matrix; pipeline: stages; by default the fastest split's
    price       dollars per GPU-hour; by default 1.50 for an A100 and 2.50 for other chips

    A change is written to `my_run.toml` in the first `notebooks/` at or above the working
    folder, where all other lines and comments stay as they are; None takes back what was
    set. Nothing is written without a change. With LLMTRAIN_RUN=example in the environment
    there's the example alone. A file that can't be read is never written to: `own_run()`
    explains what's wrong and uses the example, a change is a ValueError. So is what isn't
    part of a run, or can't be computed.

    >>> own_run(gpus="many")
    Traceback (most recent call last):
    ...
    ValueError: gpus='many' isn't a number: write 7B, 300e9, 15T, 8k, 1,024 or 2.5
    """
    checked = {
        choice("name", name, CHECKS): value if value is None else CHECKS[name](name, value)
        for name, value in changes.items()
    }
    path, text, written, problems = None, "", dict[str, Any](), list[str]()
    if not _example_only():
        try:
            path = _path()
            text, written = _read(path)
        except OSError as error:
            path, problems = None, [_unwritable(error)]
        except ValueError as error:
            if changes:
                raise ValueError(f"{error} Nothing has been changed.") from None
            problems = [f"{error} Until then, we use the example."]
    changed = SET | checked
    kept, more = _understood(text, written | changed)
    try:
        run = _computed(kept)
    except ValueError as error:
        if changes:
            listed = ", ".join(f"{name}={show(value)}" for name, value in changes.items())
            raise ValueError(f"{listed} can't be computed: {error}") from None
        more.append(f"Your settings can't be computed, so we use the example: {error}.")
        kept, run = {}, _computed({})
    if changes:
        problems = _keep(path, text, changed) or problems
    return replace(run, problems=(*problems, *more), example=not kept)


def _computed(kept: Mapping[str, Value]) -> OwnRun:
    """The run with all that follows from what was set; ValueError if that's beyond numbers."""
    run = OwnRun(**kept)  # type: ignore[arg-type]
    sequence = kept.get("sequence") or known_model(run.model).sequence_length
    run = replace(run, sequence=int(sequence))
    price = kept.get("price") or PRICES.get(run.chip.split()[0], PRICE)
    batch = run.batch or usual_batch(run.shape, run.gpus)
    run = _planned(replace(run, batch=batch, price=float(price)))
    count("tokens", run.tokens)
    repr(run)  # what it shows has to be computable too
    return run


def _planned(run: OwnRun) -> OwnRun:
    """The run with its best split, and the tokens to promise at the slow end of its days.

    Where no split comes out even or fits, the tokens are those of 6TP at the slow end of
    published runs.
    """
    plan = None
    try:
        plan = replace(run, tokens=run.tokens or 10**12).plan
    except ValueError:  # no split comes out even
        run = replace(run, tensor=run.tensor or 1, pipeline=run.pipeline or 1)
    else:
        split = plan.split
        run = replace(run, tensor=split.tensor_parallel, pipeline=split.pipeline_parallel)
    if run.tokens:
        return run
    if plan and plan.fits:
        return replace(run, tokens=int(plan.first_run_tokens(run.days)))
    chip, size = known_accelerator(run.chip), count_parameters(run.shape).active
    rate = rate_at(UTILIZATIONS[0], chip.peak(chip.training_format))
    tokens = trainable_tokens(run.days * units.DAY, size, run.gpus, rate, "none")
    return replace(run, tokens=int(tokens))


def _understood(text: str, entries: Mapping[str, Any]) -> tuple[dict[str, Value], list[str]]:
    """The entries that pass their checks, and a sentence about each one that doesn't."""
    kept, problems = dict[str, Value](), list[str]()
    for name, value in entries.items():
        if value is None:
            continue
        try:
            kept[name] = CHECKS[choice("name", name, CHECKS)](name, value)
        except ValueError as error:
            pattern = rf"""^\ufeff?[ \t]*["']?{re.escape(name)}\b"""
            line = re.search(pattern, text, re.MULTILINE)
            number = text.count("\n", 0, line.start()) + 1 if line else 0
            place = f", line {number}" if line else ""
            problems.append(f"{NAME}{place}: {error}. Until you fix that, it has no effect.")
    return kept, problems


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    """The file and what it sets; a ValueError says what's wrong in which line."""
    if not path.is_file():
        return "", {}
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"{NAME} has more than {LARGEST:,} bytes. {RENAME}")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"{NAME}, line {line}, isn't UTF-8: save the file as UTF-8."
        raise ValueError(f"{problem} {RENAME}") from None
    try:
        return text, tomllib.loads(text.removeprefix(BOM))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{NAME}{_mistake(text, error)} {RENAME}") from None


def _mistake(text: str, error: Exception) -> str:
    """Where a file isn't TOML, and what would be right there."""
    if isinstance(error, RecursionError):
        return ": its brackets nest too deeply."
    at = re.search(r"at (?:line (\d+)|end of document)", str(error))
    if not at:
        return f" can't be read: {show(str(error))}."
    number = int(at[1]) if at[1] else text.rstrip().count("\n") + 1
    line = text.removeprefix(BOM).split("\n")[number - 1].strip()
    advice = "a line needs a name, = and a value, such as gpus = 64."
    if "overwrite" in str(error):
        advice = "that's set twice, so keep one of the two lines."
    elif "\\" in line:
        advice = "write a path with / instead of \\."
    elif words := re.fullmatch(
        r"""(\w+) *= *["'“”]?([^"'“”=\[{]*[a-zA-Z][^"'“”=]*)["'“”]?""", line
    ):
        advice = f'words need straight quotes, {words[1]} = "{words[2].strip()}".'
    return f", line {number}, {show(line)}: {advice}"


def _keep(path: Path | None, text: str, changes: Mapping[str, Value | None]) -> list[str]:
    """Write what was changed; a sentence if that can't be, and it lives in the kernel."""
    try:
        if path:
            _write(path, _edited(text, changes))
    except OSError as error:
        SET.update(changes)
        return [_unwritable(error)]
    if path:
        SET.clear()
    else:
        SET.update(changes)
    return []


def _unwritable(error: OSError) -> str:
    cause = error.strerror or error
    return (
        f"{NAME} can't be read or written ({cause}), so your settings only last until the "
        f"kernel ends."
    )


def _edited(text: str, changes: Mapping[str, Value | None]) -> str:
    """The file with these entries set, or taken out for None, and all else as it was."""
    at = table.start() if (table := re.search(r"^[ \t]*\[", text, re.MULTILINE)) else len(text)
    top, tables = text[:at], text[at:]
    end = "\r\n" if "\r\n" in text else "\n"
    for name, value in changes.items():
        line = "" if value is None else f"{name} = {_toml(value)}"
        old = re.search(_ENTRY.format(name=name), top, re.MULTILINE)
        if old:
            comment = "  ".join(filter(None, (line, old[2])))
            top = top[: old.end(1)] + (comment + end if comment else "") + top[old.end() :]
        elif line:
            top += ("" if top in ("", BOM) or top.endswith("\n") else end) + line + end
    edited = top + tables
    wanted = {**tomllib.loads(text.removeprefix(BOM)), **changes}
    try:
        same = _entries(tomllib.loads(edited.removeprefix(BOM))) == _entries(wanted)
    except (ValueError, RecursionError):
        same = False
    if not same or len(edited.encode("utf-8")) > LARGEST:
        listed = " and ".join(changes)
        raise ValueError(f"{NAME} contains more than one line per entry, so set {listed} there.")
    return edited


_ENTRY = r"""^(\ufeff?)[ \t]*["']?{name}["']?[ \t]*=(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^"'#\n])*?"""
_ENTRY += r"[ \t]*(#[^\r\n]*)?(?:\r?\n|\Z)"
"""A line that sets an entry: what's before it, and its comment."""


def _toml(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _entries(values: Mapping[str, Any]) -> list[str]:
    """Entries in a form that can be compared: NaN isn't even equal to itself."""
    return sorted(repr(entry) for entry in values.items() if entry[1] is not None)


def _write(path: Path, text: str) -> None:
    """Write the file as a whole; OSError if that can't be, and the old one is still there."""
    path = Path(os.path.realpath(path))
    if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        new.write_bytes(text.encode("utf-8"))
        if path.exists():
            new.chmod(path.stat().st_mode)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _example_only() -> bool:
    """Return whether no file is to be read or written."""
    asked = os.environ.get("LLMTRAIN_RUN", "")
    if asked not in ("", "example"):
        choice("LLMTRAIN_RUN", asked, ["example"])
    return asked == "example" or sys.platform == "emscripten"


def _path() -> Path:
    """Return the file in the working folder, or next to the notebooks at or above it."""
    cwd = Path.cwd()
    notebooks = next((folder for folder in (cwd, *cwd.parents) if folder.name == "notebooks"), cwd)
    return cwd / NAME if (cwd / NAME).is_file() else notebooks / NAME
