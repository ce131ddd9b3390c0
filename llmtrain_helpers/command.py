"""A plan in a terminal: `python -m llmtrain_helpers plan`, and the names that it knows.

Beside notebooks/08_plan.ipynb and 10_budget.ipynb. It reads options, asks `best_split` for
what was left open, and prints the plan's report; each number is that of a formula.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from llmtrain_helpers import units
from llmtrain_helpers.budget import most_tokens, usual_batch
from llmtrain_helpers.duration import gpu_hours
from llmtrain_helpers.flops import EVERY_RECOMPUTE
from llmtrain_helpers.model import Transformer
from llmtrain_helpers.model.names import architecture, known_accelerator, known_model, model_names
from llmtrain_helpers.model.tables import find_row, names
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.advice import Advice, advise
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.report import RECOMPUTED, Line, Report, sharded
from llmtrain_helpers.plan.run import SHARDS, SOFTWARE
from llmtrain_helpers.plan.search import best_split
from llmtrain_helpers.results import Interval

SEQUENCE = 8192
"""Tokens of a sequence where none are given: what most models are first trained on. A
file says the longest that a model takes, which is often more."""

WIDTH = 100
"""Letters in a line."""

OPTIONS = {
    "model": "MODEL",
    "num_gpus": "--gpus",
    "accelerator": "--chip",
    "tokens": "--tokens",
    "days": "--days",
    "sequence_length": "--sequence",
    "global_batch_size": "--batch",
    "micro_batch_size": "--micro-batch",
    "tensor_parallel": "--tensor",
    "pipeline_parallel": "--pipeline",
    "context_parallel": "--context",
    "expert_parallel": "--experts",
    "shard": "--shard",
    "keep_gradients": "--keep-gradients",
    "recompute": "--recompute",
    "software": "--software",
    "price_per_gpu_hour": "--price",
    "seconds_per_iteration": "--step-seconds",
}
"""Arguments of the formulas, and what they are called here."""

NO_ARGUMENTS = ("model", "config", "sequence_length", "days", "seconds_per_iteration")
"""Options that are no arguments of `best_split`, or not as they are given."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and where to read more; the exit status is 2."""
        self.exit(2, f"{message.removeprefix('argument ')}\n{self.prog} --help says more\n")


def _number(text: str) -> int | float:
    try:
        return units.read(text)  # type: ignore[no-any-return]
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem).removeprefix("text=")) from None


def _yes(text: str) -> bool:
    known = {"yes": True, "no": False, "true": True, "false": False}
    if text.casefold() not in known:
        raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no")
    return known[text.casefold()]


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m llmtrain_helpers plan",
        usage="%(prog)s (MODEL | --config FILE) --gpus N --chip NAME (--tokens T | --days D) …",
        description="What a run takes, and whether it fits. What is left out is chosen, and "
        "the first line says so; what is given stays. Numbers may be written 1T, 300B, 15e12.",
        epilog="Names of models and chips: python -m llmtrain_helpers models, and chips.",
    )
    parser.add_argument("model", nargs="?", metavar="MODEL", help="a published model by its name")
    parser.add_argument("--config", type=Path, metavar="FILE", help="or a config.json")

    def option(name: str, kind: Callable[[str], object], metavar: str, meaning: str) -> None:
        needed = name in ("num_gpus", "accelerator")
        word = OPTIONS[name]
        parser.add_argument(
            word, dest=name, type=kind, metavar=metavar, help=meaning, required=needed
        )

    option("num_gpus", _number, "N", "all of them")
    option("accelerator", str, "NAME", "h100, a100, mi300x, …")
    option("tokens", _number, "T", "of the whole run")
    option("days", _number, "D", "in place of tokens: as many as they likely pay for")
    option(
        "sequence_length", _number, "S", "tokens (8k is 8,000); else 8192, or the model's maximum"
    )
    option("global_batch_size", _number, "B", "sequences in a step; else about 4 million tokens")
    option("micro_batch_size", _number, "b", "sequences that a replica works on at once")
    option("tensor_parallel", _number, "t", "GPUs that share each matrix")
    option("pipeline_parallel", _number, "p", "GPUs that share the layers")
    option("context_parallel", _number, "c", "GPUs that share a sequence; else 1")
    option("expert_parallel", _number, "e", "GPUs that share the experts")
    option("shard", str.casefold, "WORD", f"of states: {', '.join(SHARDS)}")
    option("keep_gradients", _yes, "yes|no", "whole between passes, from zero2 on")
    option("recompute", str.casefold, "WORD", ", ".join(EVERY_RECOMPUTE))
    option("software", str.casefold, "WORD", f"whose it is: {', '.join(SOFTWARE)}")
    option("price_per_gpu_hour", _number, "P", "dollars, for the cost")
    option("seconds_per_iteration", _number, "t", "of a step that you measured with this split")
    parser.add_argument("--advise", action="store_true", help="what would make it fit")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="all numbers, in SI units")
    form.add_argument("--markdown", action="store_true", help="the report, with each source")
    return parser


def plan(arguments: Sequence[str]) -> int:
    """Print the plan of a run; 2 with one sentence where there is none."""
    options = vars(_parser().parse_args(arguments))
    shown = {name: options.pop(name) for name in ("advise", "json", "markdown")}
    given = {name: value for name, value in options.items() if value is not None}
    try:
        name, model = _model(given.get("model"), given.get("config"))
        found, tokens = _planned(model, given)
        advice = advise(found)
    except ValueError as problem:
        sentence = in_options(str(problem))
        if "config" in given:
            sentence = sentence.replace("MODEL ", "--config ", 1)
        print(sentence, file=sys.stderr)
        return 2
    report = found.report(name)
    if shown["json"]:
        print(json.dumps(_numbers(found, report, given, advice), indent=2, ensure_ascii=False))
        return 0
    opening = [_chosen(found, given)]
    if opening[0] and "seconds_per_iteration" in given:
        opening.append("Your step is taken as one of just this: where it was another, say which.")
    if tokens is not None:
        opening.append(_in_time(given["days"], tokens))
    print(*(textwrap.fill(line, WIDTH) for line in opening if line), "", sep="\n")
    print(report.markdown if shown["markdown"] else _table(report))
    if shown["advise"] or not found.fits:
        print("", *_advice(found, advice), sep="\n")
    return 0


def _model(name: str | None, config: Path | None) -> tuple[str, Transformer]:
    """The model, and what a report calls it."""
    if name is None and config is not None:
        return f"the model of {config}", known_model(config)
    if name is None or config is not None:
        raise ValueError(
            "give one model: its name, of those that the command models lists, or --config FILE"
        )
    if name.endswith(".json"):
        return _model(None, Path(name))
    name = find_row("model", name, "architectures", "configs")["name"]
    return name, architecture(name)


def _planned(model: Transformer, given: Mapping[str, Any]) -> tuple[Plan, Interval | None]:
    """The fastest plan with all that is given; and the tokens, where days were."""
    if ("tokens" in given) == ("days" in given):
        raise ValueError("give one of --tokens, of the whole run, and --days")
    if "seconds_per_iteration" in given and "global_batch_size" not in given:
        raise ValueError("give --batch beside --step-seconds: a step is as long as its batch")
    s = given.get("sequence_length", min(SEQUENCE, model.sequence_length))
    model, n = replace(model, sequence_length=s), given["num_gpus"]
    run = {name: value for name, value in given.items() if name not in NO_ARGUMENTS}
    run.setdefault("global_batch_size", usual_batch(model, n))
    found = best_split(model=model, **run)
    if "seconds_per_iteration" in given:
        found = found.calibrated(given["seconds_per_iteration"])
    if "days" not in given:
        return found, None
    tokens = most_tokens(found, given["days"])
    return found.but(tokens=int(tokens.likely)), tokens


# --- words


def in_options(sentence: str) -> str:
    """A refusal with the options of a command in place of a formula's arguments.

    >>> in_options("num_gpus=63 is not divisible by tensor_parallel·pipeline_parallel=8")
    '--gpus 63 is not divisible by --tensor·--pipeline 8'
    """
    sentence = re.sub(r"\bzero_stage=(\d)", r"--shard zero\1", sentence)
    words = {**OPTIONS, "data_parallel": "replicas"}
    worded = re.sub(rf"\b({'|'.join(words)})(?=[=·])", lambda match: words[match[1]], sentence)
    return re.sub(r"(--[a-z-]+|MODEL)=", r"\1 ", worded)


def _chosen(plan: Plan, given: Mapping[str, Any]) -> str:
    """What was chosen, and the options that change it; nothing where all was given."""
    run, count = plan.run, units.exact
    words = {
        "sequence_length": f"sequences of {count(int(run.model.sequence_length))} tokens",
        "global_batch_size": f"{count(run.global_batch_size)} sequences a step",
        "micro_batch_size": f"micro-batch {count(run.micro_batch_size)}",
        "tensor_parallel": f"tensor {count(run.tensor_parallel)}",
        "pipeline_parallel": f"pipeline {count(run.pipeline_parallel)}",
        "shard": sharded(run),
        "recompute": RECOMPUTED[run.recompute],
    }
    if run.model.num_experts:
        words["expert_parallel"] = f"experts on {units.plural(run.expert_parallel, 'GPU')}"
    left = {name: word for name, word in words.items() if name not in given}
    if not left:
        return ""
    options = ", ".join(OPTIONS[name] for name in left)
    said = ", ".join(left.values())
    return f"{said[:1].upper()}{said[1:]}: chosen, change with {options}."


def _in_time(days: float, tokens: Interval) -> str:
    ends = f"{units.count(tokens.least, 2)} to {units.count(tokens.greatest, 2)}"
    likely = units.count(tokens.likely, 2)
    return f"With --days {units.short(days)} it likely sees {likely} tokens, {ends}."


def _table(report: Report) -> str:
    """The report's summary and its numbers, each with its interval and what it assumes."""
    cells = [(line.what, line.number, _rests_on(line)) for line in report.lines]
    return f"{textwrap.fill(report.summary, WIDTH)}\n\n{_columns(cells)}"


def _rests_on(line: Line) -> str:
    """A number's interval and assumption; that it was chosen is no news to who gave it."""
    return line.assumption if line.interval == "chosen" else f"{line.interval}; {line.assumption}"


def _columns(cells: Sequence[Sequence[str]]) -> str:
    """Rows of words under one another; the last column takes the lines that it needs."""
    *widths, _ = (max(map(len, column)) for column in zip(*cells, strict=True))
    rows = []
    for *row, last in cells:
        start = "".join(f"{cell:{width}}  " for cell, width in zip(row, widths, strict=True))
        below = " " * len(start)
        filled = textwrap.fill(last, WIDTH, initial_indent=start, subsequent_indent=below)
        rows.append(filled or start.rstrip())
    return "\n".join(rows)


def _advice(plan: Plan, advice: Sequence[Advice]) -> list[str]:
    """What would make a plan fit, one line a change; or by how much nothing does."""
    if plan.fits:
        return ["It fits: nothing needs to change."]
    lines = [
        (_change(step), f"{units.gigabytes(step.saved)} less on a GPU, GPU-hours {_more(step)}")
        for step in advice
    ]
    last = advice[-1].plan if advice else plan
    if last.fits:
        return ["What would make it fit, one after the other:", _columns(lines)]
    missing = units.gigabytes(last.reserve - last.room)
    nothing = f"Nothing that is tried here makes it fit: {missing} a GPU are missing"
    return [f"{nothing}, even with:", _columns(lines)] if advice else [f"{nothing}."]


def _change(step: Advice) -> str:
    written = " ".join(in_options(f"{name}={value}") for name, value in step.change.items())
    return f"  {written}"


def _more(step: Advice) -> str:
    share = float(step.dearer)
    if abs(share) < 0.0005:
        return "as before"
    return f"{units.percent(abs(share))} {'more' if share > 0 else 'fewer'}"


def _numbers(
    plan: Plan, report: Report, given: Mapping[str, Any], advice: Sequence[Advice]
) -> dict[str, Any]:
    """A plan as JSON has it: SI units, but days and hours, which say so."""
    days = plan.days_with_stops
    hours = days.times(gpu_hours(units.DAY, plan.split.num_gpus))
    price, watts = plan.run.price_per_gpu_hour, plan.run.accelerator.power
    plain = {k: x for k, x in plan.inputs.items() if isinstance(x, str | int | float)}
    return {
        "title": report.title,
        "summary": report.summary,
        "chosen": _chosen(plan, given),
        "inputs": {
            **plain,
            "accelerator": plan.run.accelerator.name,
            "sequence_length": plan.run.model.sequence_length,
            "data_parallel": plan.split.data_parallel,
        },
        "parameters": plan.parameters.total,
        "active_parameters": plan.parameters.active,
        "iterations": float(plan.iterations),
        "flops": float(plan.total_flops),
        "seconds_per_iteration": _ends(plan.seconds_per_iteration),
        "days": _ends(days),
        "gpu_hours": _ends(hours),
        "cost": None if price is None else _ends(hours.times(price)),
        "energy_joules": None if watts is None else _ends(hours.times(units.HOUR * watts)),
        "mfu": float(plan.mfu),
        "memory_bytes": {**plan.memory.parts(), "total": plan.memory.total},
        "reserve_bytes": float(plan.reserve),
        "room_bytes": float(plan.room),
        "fits": bool(plan.fits),
        "advice": [
            {
                "change": dict(step.change),
                "saved_bytes": float(step.saved),
                "dearer": float(step.dearer),
                "fits": bool(step.plan.fits),
            }
            for step in advice
        ],
    }


def _ends(numbers: Interval) -> dict[str, float]:
    return {
        "least": float(numbers.least),
        "likely": float(numbers.likely),
        "greatest": float(numbers.greatest),
    }


# --- what is known


def models(arguments: Sequence[str]) -> int:
    """Print the models that a plan knows by name, with parameters and longest sequence."""
    _Parser(prog="python -m llmtrain_helpers models").parse_args(arguments)
    rows = [("model", "parameters", "longest sequence", "or")]
    for name in model_names():
        model = architecture(name)
        size = units.count(count_parameters(model).total)
        also = _also(find_row("model", name, "architectures", "configs"))
        rows.append((name, size, units.exact(int(model.sequence_length)), also))
    print(_columns(rows))
    return 0


def chips(arguments: Sequence[str]) -> int:
    """Print the accelerators that a plan knows by name, with memory and dense peak."""
    _Parser(prog="python -m llmtrain_helpers chips").parse_args(arguments)
    rows = [("chip", "memory", "dense peak in 16 bits", "or")]
    for name in names("accelerators"):
        chip = known_accelerator(name)
        peak = units.flops_per_second(chip.peak(chip.training_format))
        also = _also(find_row("chip", name, "accelerators"))
        rows.append((name, units.gigabytes(chip.memory), peak, also))
    print(_columns(rows))
    return 0


def _also(row: Mapping[str, Any]) -> str:
    """The other names of a row."""
    return ", ".join(row.get("aliases", "").split(";"))
