"""A plan in a terminal: `python -m llmtrain_helpers plan`, and the names that it knows.

Goes with notebooks/09_plan.ipynb and 11_budget.ipynb. Parses the options, lets `best_split`
choose those you left open, and prints the plan's report; every number comes from a formula.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from llmtrain_helpers import units
from llmtrain_helpers.budget import Point, frontier, most_tokens, shelf, usual_batch
from llmtrain_helpers.checks import quantity, single
from llmtrain_helpers.duration import gpu_hours
from llmtrain_helpers.frameworks import Reading, read_settings
from llmtrain_helpers.memory import kv_cache_bytes
from llmtrain_helpers.model import Accelerator, Transformer
from llmtrain_helpers.model.huggingface.families import FAMILIES
from llmtrain_helpers.model.names import (
    OWN,
    SEQUENCE,
    architecture,
    known_accelerator,
    known_model,
    model_names,
    own_accelerator,
)
from llmtrain_helpers.model.tables import find_row, names
from llmtrain_helpers.parallelism import SHARDS
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.advice import UNTRIED, Advice, advise
from llmtrain_helpers.plan.options import OPTIONS
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.report import RECOMPUTED, Line, Report, sharded, verdict, worth
from llmtrain_helpers.plan.run import OF_TUNING
from llmtrain_helpers.plan.search import best_split
from llmtrain_helpers.precision import RECIPES
from llmtrain_helpers.results import Interval
from llmtrain_helpers.tuning import TARGETS, Tuning, tuned_parameters

WIDTH = 100
"""Letters in a line."""

FLAGS = {
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
    "expert_tensor_parallel": "--expert-tensor",
    "interleave": "--interleave",
    "uneven_stages": "--uneven-stages",
    "shard": "--shard",
    "keep_gradients": "--keep-gradients",
    "recompute": "--recompute",
    "recipe": "--recipe",
    "optimizer": "--optimizer",
    "loss_kernel": "--loss",
    "offload": "--offload",
    "attention": "--attention",
    "fused_mlp": "--fused-mlp",
    "format": "--format",
    "overlap": "--overlap",
    "software": "--software",
    "compiled": "--compiled",
    "seconds_per_iteration": "--step-seconds",
    "price_per_gpu_hour": "--price",
}
"""Arguments of the formulas, and what they're called here."""

GROUPS = {"model": "run", "micro_batch_size": "split", "recompute": "memory", "format": "speed"}
"""Titles of the help, before these options."""

WORDS = {
    "num_gpus": ("N", ""),
    "accelerator": ("NAME", "h100, a100, mi300x, …, or a TOML file with the numbers of your own"),
    "days": ("D", "instead of tokens: as many as the run will likely get through"),
    "sequence_length": ("S", "tokens per sequence (8k is 8,000)"),
    "price_per_gpu_hour": ("P", "dollars per GPU-hour, for the cost"),
    "seconds_per_iteration": ("t", "seconds of a step that you measured with this split"),
}
"""Symbols and help lines that differ in a terminal."""

CHIP = {name: f"--{name.replace('_', '-')}" for name in OWN if name not in ("fp8", "fp4")}
"""The numbers of a chip of your own, with their options; other peaks need a file."""

OF_CHIP = """\
Instead of a known chip, or of its numbers: the dense peak in 16 bits (989e12, 989 TFLOP/s), what
a GPU sends one way in its node and out of it, and the share of the peak that the best matrix
product reaches, without which links and network don't count."""

OTHERWISE = {
    "sequence_length": f"{SEQUENCE}, or the model's maximum",
    "global_batch_size": "about 4 million tokens",
    "context_parallel": "1",
    "expert_tensor_parallel": "as --tensor, or 1 if that doesn't divide evenly",
    "interleave": "1",
    "format": "16 bits",
    "attention": "flash",
    "fused_mlp": "yes with Megatron-Core",
    "optimizer": "adamw_fused, or adamw when adapting a model",
    "loss_kernel": "whatever the software does",
    "offload": "none",
    "compiled": "the plan covers both, or does as Megatron-Core does",
}
"""Defaults as the help describes them; options of a split that aren't listed are searched."""

TUNED = {"rank": "--lora", "bits": "--bits", "targets": "--targets", "full": "--full"}
"""The arguments that describe how a model is adapted, with their options."""

MODEL_SIZES = {
    "num_layers": "layers",
    "num_heads": "attention heads",
    "num_kv_heads": "key-value heads",
    "num_experts": "experts",
}
"""Model sizes that an error can mention, in words."""

NO_ARGUMENTS = {"model", "config", "sequence_length", "days", "seconds_per_iteration"}
NO_ARGUMENTS |= {*TUNED, *CHIP}
"""Options that aren't arguments of `best_split`, or not in the form that you write."""

TUNED_BATCH = 16
"""Sequences per GPU in a tuning step, if you don't give any."""


OF_A_SHELF = (
    *("num_gpus", "accelerator", "days", "sequence_length"),
    *("global_batch_size", "software", "price_per_gpu_hour", *CHIP),
)
"""Options that don't need a model; three of them go to `frontier`."""

EXAMPLE = """\
What's known: python -m llmtrain_helpers models, chips, and families.

For example: how many tokens can Llama 3.1 8B train on in two weeks on eight H100s?

  python -m llmtrain_helpers plan llama-3.1-8b --gpus 8 --chip h100 --days 14

  With --days 14 it likely sees 66 billion tokens, 44 billion to 98 billion; promise 44 billion.
"""
"""The end of a plan's help; a test compares its last line with the command's."""


class _Parser(argparse.ArgumentParser):
    """A parser that accepts each option once, by its full name."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog=f"python -m llmtrain_helpers {prog}", allow_abbrev=False, **options)

    def read(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Parse the options, by name."""
        words = [word.partition("=")[0] for word in arguments if word.startswith("--")]
        for word in words:
            if words.count(word) > 1:
                self.error(f"{word} appears {words.count(word)} times: give it once")
        return vars(self.parse_args(arguments))

    def error(self, message: str) -> NoReturn:
        """Print what's wrong and where to read more; exit with status 2."""
        self.exit(2, f"{message.removeprefix('argument ')}\nFor more, see {self.prog} --help\n")


def _number(text: str) -> int | float:
    try:
        return units.read(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem).removeprefix("text=")) from None


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _yes(text: str) -> bool:
    answers = {"yes": True, "no": False, "true": True, "false": False}
    if text.casefold() not in answers:
        raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no")
    return answers[text.casefold()]


def _reading(name: str) -> dict[str, Any]:
    """Return how to parse an argument of a plan, and its help line."""
    symbol, line = WORDS.get(name, ("", ""))
    if name not in OPTIONS:
        return {"type": _number, "metavar": symbol, "help": line}
    option = OPTIONS[name]
    kind: Callable[[str], object] = str if name == "accelerator" else str.casefold
    metavar = "WORD"
    if "Number" in option.type:
        kind, metavar = _number, option.help.symbol
    elif "bool" in option.type:
        kind, metavar = _yes, "yes|no"
    choices = ", ".join(RECIPES if name == "recipe" else option.choices)
    line = ": ".join(filter(None, [line or option.help.line, choices]))
    if name in OTHERWISE:
        line = f"{line}; else {OTHERWISE[name]}"
    return {"type": kind, "metavar": symbol or metavar, "help": line}


def _parser() -> _Parser:
    parser = _Parser(
        "plan",
        usage="%(prog)s (MODEL | --config FILE) --gpus N --chip NAME (--tokens T | --days D) …\n"
        "       %(prog)s --from FILE --gpus N --chip NAME …: what your framework's file says\n"
        "       %(prog)s --gpus N --chip NAME --days D: what these GPUs can train",
        description="Print what a run needs, and whether it fits. Options that you leave out are\n"
        "chosen for you, as the first line shows. You can write 1T, 300B or 15e12.",
        epilog=EXAMPLE,
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=WIDTH),
    )
    for name, word in FLAGS.items():
        if name in GROUPS:
            group = parser.add_argument_group(GROUPS[name])
        if name == "model":
            group.add_argument("model", nargs="?", metavar=word, help="a published model's name")
            group.add_argument("--config", type=Path, metavar="FILE", help="a config.json instead")
            frameworks = "your settings for axolotl, LLaMA-Factory, DeepSpeed or torchtitan"
            group.add_argument("--from", type=Path, dest="path", metavar="FILE", help=frameworks)
        else:
            required = name == "num_gpus"
            group.add_argument(word, dest=name, required=required, **_reading(name))
    own = parser.add_argument_group("chip", OF_CHIP)
    for name, word in CHIP.items():
        own.add_argument(word, dest=name, metavar=OWN[name])
    tuned = parser.add_argument_group("adapting an existing model")
    full = "train all of its weights; --recipe, else amp: 16 bytes per parameter"
    tuned.add_argument("--full", action="store_const", const=True, help=full)
    for name, kind, metavar, meaning in (
        ("rank", _number, "R", "train adapters of this rank and freeze its weights"),
        ("bits", _number, "4|16", "bits of each frozen weight; else 16"),
        ("targets", _words, "WORDS", f"{', '.join(TARGETS)}, or q_proj,v_proj; else all-linear"),
    ):
        tuned.add_argument(TUNED[name], dest=name, type=kind, metavar=metavar, help=meaning)
    output = parser.add_argument_group("output")
    output.add_argument("--advise", action="store_true", help="show what would make it fit")
    form = output.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print all numbers, in SI units")
    form.add_argument("--markdown", action="store_true", help="print the report, with its sources")
    return parser


def plan(arguments: Sequence[str]) -> int:
    """Print the plan of a run; if there isn't one, print why and return 2."""
    options = _parser().read(arguments)
    switches = {name: options.pop(name) for name in ("advise", "json", "markdown")}
    path = options.pop("path")
    given = {name: value for name, value in options.items() if value is not None}
    file = None
    try:
        if path is not None:
            file = read_settings(path, given)
            given |= file.options
        if not {"model", "config", "tokens"} & {*given} and "days" in given and file is None:
            print(_trained(given, switches))
            return 0
        with warnings.catch_warnings(record=True) as cautions:
            warnings.simplefilter("always")
            name, model = _model(given)
        run, tokens = _planned(model, given)
        advice, page = advise(run), run.report(name)
        summary = page.summary.replace(verdict(run), verdict(run, _option))
        page = replace(page, summary=summary)
    except ValueError as problem:
        sentence = in_options(str(problem))
        if "config" in given:
            sentence = sentence.replace("MODEL ", "--config ", 1)
        if file is not None:
            sentence = f"with {path}: {sentence}"
        print(sentence, file=sys.stderr)
        return 2
    print(*(f"{in_options(str(x.message))}\n" for x in cautions), sep="", end="", file=sys.stderr)
    if switches["json"]:
        results = {} if file is None else {"from": _of_framework(file)}
        results |= _numbers(run, page, given, advice)
        print(json.dumps(results, indent=2, ensure_ascii=False))
        return 0
    if file is not None:
        print(*_read_as(_of_framework(file)), "", sep="\n")
    chosen, pasted = _chosen(run, given)
    if chosen:
        print(textwrap.fill(f"{chosen}: chosen for you. To keep or change this, use:", WIDTH))
        print(f"  {pasted}")
    opening = []
    if chosen and "seconds_per_iteration" in given:
        opening.append("We assume that you measured your step with these; if not, give your own.")
    if tokens is not None:
        opening.append(_in_time(run, given["days"], tokens))
    print(*(textwrap.fill(line, WIDTH) for line in opening), sep="\n", end="\n" if opening else "")
    if chosen or opening:
        print()
    print(page.markdown if switches["markdown"] else _table(page))
    if switches["advise"] or not run.fits:
        print("", *_advice(run, advice, given), sep="\n")
    return 0


def _model(given: Mapping[str, Any]) -> tuple[str, Transformer]:
    """Return the model, and what a report calls it."""
    name, config, s = (given.get(x) for x in ("model", "config", "sequence_length"))
    if name is None and config is not None:
        return f"the model of {config}", _of_file(config, s)
    if name is None or config is not None:
        raise ValueError(
            "give one model: a name that the command `models` lists, or --config FILE; "
            "or give only --days to see what these GPUs can train"
        )
    if name.endswith(".json"):
        return f"the model of {Path(name)}", _of_file(Path(name), s)
    name = _named("model", name, "models", "architectures", "configs")
    return name, known_model(name, s)


def _named(argument: str, name: str, command: str, *tables: str) -> str:
    """Return the name as its table spells it; an error names the command that lists them all."""
    try:
        return str(find_row(argument, name, *tables)["name"])
    except ValueError as problem:
        raise ValueError(f"{problem} (all: python -m llmtrain_helpers {command})") from None


def _chip(given: Mapping[str, Any]) -> Accelerator:
    """Return the chip: by its name, from a file, or with numbers of your own."""
    name, numbers = given.get("accelerator"), {x: given[x] for x in CHIP if x in given}
    if name is None:
        return own_accelerator(numbers)
    if not name.endswith(".toml"):
        name = _named("accelerator", name, "chips", "accelerators")
    chip = known_accelerator(name)
    return own_accelerator(numbers, chip) if numbers else chip


def _of_file(path: Path, sequence_length: float | None) -> Transformer:
    """Return the model in a file; an error starts with the file's name."""
    try:
        return known_model(path, sequence_length)
    except ValueError as problem:
        sentence = str(problem)
        if sentence.startswith(("model=", "sequence_length=")):  # of all of it, or of ours
            raise
        sentence = sentence.removeprefix("config=").replace(" in families.FAMILIES", "")
        raise ValueError(f"in {path}: {sentence}") from None


def _of_framework(file: Reading) -> dict[str, Any]:
    """Return what was read in a framework's file, and the options that it makes."""
    pasted = []
    for name in [x for x in FLAGS | TUNED if x in file.options]:
        value: Any = file.options[name]
        text = {True: "yes", False: "no"}.get(value, value) if type(value) is bool else value
        text = ",".join(value) if name == "targets" else str(text)
        flag = (FLAGS | TUNED)[name]
        pasted += [text] if name == "model" else [flag] if name == "full" else [flag, text]
    return {
        "file": str(file.path),
        "framework": file.kind,
        "used": file.used,
        "defaults": file.defaults,
        "options": shlex.join(pasted),
        "unmapped": file.unmapped,
        "unknown": file.unknown,
        "no_effect": file.idle,
    }


def _read_as(results: Mapping[str, Any]) -> list[str]:
    """Say what became of the settings in a framework's file."""
    lines = [f"{results['file']}, read as a file of {results['framework']}:"]
    for what, line in (
        ("used", "used"),
        ("defaults", "by default"),
        ("unknown", "unknown, so not in the plan"),
        ("no_effect", "without effect on a plan"),
    ):
        names = results[what]
        each = [f"{x}: {names[x]}" for x in names] if isinstance(names, dict) else names
        if each:
            start = f"  {line}: {', '.join(each)}"
            lines.append(textwrap.fill(start, WIDTH, subsequent_indent="    "))
    if results["unmapped"]:
        lines += [
            "  not in the plan:",
            _columns([(f"    {x}", y) for x, y in results["unmapped"].items()]),
        ]
    return [*lines, "  as options instead of --from:", f"    {results['options']}"]


def _planned(model: Transformer, given: Mapping[str, Any]) -> tuple[Plan, Interval | None]:
    """Return the fastest plan with the given options, and the tokens if you gave days."""
    _check(given)
    n = given["num_gpus"]
    run = {name: value for name, value in given.items() if name not in NO_ARGUMENTS}
    run["accelerator"] = _chip(given)
    tuning = _tuning(given)
    if tuning is not None:
        run = {name: value for name, value in run.items() if name not in OF_TUNING}
        run |= {"tuning": tuning}
        run.setdefault("global_batch_size", TUNED_BATCH * n)
    run.setdefault("global_batch_size", usual_batch(model, n))
    fastest = best_split(model=model, **run)
    if "keep_gradients" in given and fastest.run.zero_stage < 2:
        chosen = f"{sharded(fastest.run)}, which was chosen"
        word = f"--shard {given['shard']}" if "shard" in given else chosen
        able = ", ".join(word for word, (stage, _) in SHARDS.items() if stage > 1)
        problem = f"--keep-gradients changes nothing with {word}: use it with --shard {able}"
        raise ValueError(problem)
    if "seconds_per_iteration" in given:
        fastest = fastest.calibrated(given["seconds_per_iteration"])
    if "days" not in given:
        return fastest, None
    tokens = most_tokens(fastest, given["days"])
    try:
        return fastest.replace(tokens=int(tokens.likely)), tokens
    except ValueError:
        raise ValueError(f"days={given['days']:g} allows more tokens than any run has") from None


def _tuning(given: Mapping[str, Any]) -> Tuning | None:
    """Return how the model is adapted, if an option says that it is."""
    options = {name: given[name] for name in TUNED if name in given}
    if not options:
        return None
    options |= {name: given[name] for name in OF_TUNING if name in given}
    rank, bits, full = (options.pop(name, None) for name in ("rank", "bits", "full"))
    if (rank is None) == (full is None):
        raise ValueError("say what to train: everything with --full, or adapters with --lora R")
    if bits not in (None, 4, 16):
        raise ValueError(f"--bits {units.short(bits)} is neither 4 nor 16")
    if full:
        odd = [TUNED[name] for name in ("bits", "targets") if given.get(name) is not None]
        if odd:
            raise ValueError(f"{odd[0]} is for adapters: give --lora R instead of --full")
        return Tuning.full(**options)
    if "recipe" in options:
        raise ValueError("--recipe is for training all weights: give --full instead of --lora R")
    make = Tuning.qlora if bits == 4 else Tuning.lora
    return make(single("rank", rank), **options)


def _check(given: Mapping[str, Any]) -> None:
    """Refuse options if one is missing, or one too many."""
    if "tokens" in given and "days" in given:
        raise ValueError("give --tokens or --days, not both: each sets the length of the run")
    if "tokens" not in given and "days" not in given:
        raise ValueError("say how long the run is: give --tokens T or --days D")
    if "seconds_per_iteration" in given:
        quantity("seconds_per_iteration", given["seconds_per_iteration"])
        if "global_batch_size" not in given:
            raise ValueError("give --batch with --step-seconds: a step's time depends on its batch")


# --- what GPUs and days can train, without a model


def _trained(given: Mapping[str, Any], switches: Mapping[str, bool]) -> str:
    """Return the shapes around the best that these GPUs can train in time, or all as JSON."""
    odd = [(FLAGS | TUNED)[x] for x in given if x not in OF_A_SHELF]
    odd += [f"--{x}" for x in ("advise", "markdown") if switches[x]]
    if odd:
        raise ValueError(f"{odd[0]} needs a model: give its name, or --config FILE")
    shapes = shelf(given["sequence_length"]) if "sequence_length" in given else shelf()
    chip = _chip(given)
    n, days = given["num_gpus"], given["days"]
    options = {x: given[x] for x in OF_A_SHELF[4:7] if x in given}
    front = frontier(chip, n, days, shapes, **options)
    best, first = front.best, front.first_run
    if switches["json"]:
        points = {"best": best, "first_run": first, **{x.name: x for x in front.points}}
        outcomes = {name: point.outcome._asdict() for name, point in points.items()}
        return json.dumps(outcomes, indent=2)

    def in_words(point: Point) -> str:
        tokens = units.count(point.tokens.likely, 2)
        return f"{point.name} on {tokens} tokens ({point.loss.likely:.2f} nats a token)"

    s = units.exact(int(best.plan.run.model.sequence_length))
    price = given.get("price_per_gpu_hour")
    cost = "" if price is None else f" ({units.dollars(gpu_hours(days * units.DAY, n) * price)})"
    summary = (
        f"{units.exact(n)} {chip.name} for {units.short(days)} days{cost}, with sequences of {s} "
        f"tokens. Of the {len(front.points)} Llama-like shapes, the one that fits with the lowest "
        f"loss is {in_words(best)}; at the slow end, to be promised, it is {in_words(first)}."
    )
    at = [point.name for point in front.points].index(best.name)
    rows = [("parameters", "tokens", "likely", "loss", "fits")]
    for x in front.points[max(at - 4, 0) : at + 5]:
        ends = f"{units.count(x.tokens.least, 2)} to {units.count(x.tokens.greatest, 2)}"
        likely, loss = units.count(x.tokens.likely, 2), f"{x.loss.likely:.2f} nats a token"
        rows.append((x.name, ends, likely, loss, "yes" if x.fits else "no"))
    last = f"To see a full plan, give a MODEL. The loss is from {front.law.source}."
    return f"{textwrap.fill(summary, WIDTH)}\n\n{_columns(rows)}\n\n{last}"


# --- words


def in_options(sentence: str) -> str:
    """Rewrite an error with the command's options instead of a formula's arguments.

    >>> in_options("num_gpus=63 is not divisible by tensor_parallel·pipeline_parallel=8")
    '--gpus 63 is not divisible by --tensor·--pipeline 8'
    """
    sentence = sentence.replace("zero_stage=0", "--shard ddp")
    sentence = re.sub(r"\bzero_stage=(\d)", r"--shard zero\1", sentence)
    sentence = re.sub(r"\bsharding='(\w+)'", r"--shard \1", sentence)
    sentence = sentence.replace("keep_gradients=True", "keep_gradients=yes")
    sentence = sentence.replace(") or False (", ") or no (")
    if re.match(r"num_layers=\d+ is not divisible", sentence):
        sentence += ": --uneven-stages yes rounds up"
    sizes = rf"(^)?\b({'|'.join(MODEL_SIZES)})=(\d+)( is not| is)?\b"
    sentence = re.sub(sizes, _of_model, sentence)
    words = {**FLAGS, **TUNED, **CHIP, "data_parallel": "replicas"}
    worded = re.sub(rf"\b({'|'.join(words)})(?=[=·])", lambda match: words[match[1]], sentence)
    return re.sub(r"(--[a-z-]+|MODEL)=", r"\1 ", worded)


def _of_model(match: re.Match[str]) -> str:
    """Put a size of the model in words, because no option is called num_layers."""
    start, name, size, verb = match.groups()
    whose = "the" if start is None else "The"
    verb = {None: "", " is": " are", " is not": " aren't"}[verb]
    return f"{whose} model's {size} {MODEL_SIZES[name]}{verb}"


def _chosen(plan: Plan, given: Mapping[str, Any]) -> tuple[str, str]:
    """Return what was chosen, in words and as options to paste; empty if nothing was."""
    run, count, batch = plan.run, units.exact, plan.run.global_batch_size
    s, way = int(run.model.sequence_length), (run.zero_stage, run.sharding)
    shard = next(word for word, states in SHARDS.items() if states == way)
    chosen: dict[str, tuple[str, int | str]] = {
        "sequence_length": (f"sequences of {count(s)} tokens", s),
        "global_batch_size": (f"{count(batch)} sequences a step", batch),
        "micro_batch_size": (f"micro-batch {count(run.micro_batch_size)}", run.micro_batch_size),
        "tensor_parallel": (f"tensor {count(run.tensor_parallel)}", run.tensor_parallel),
        "pipeline_parallel": (f"pipeline {count(run.pipeline_parallel)}", run.pipeline_parallel),
        "shard": (sharded(run), shard),
        "recompute": (RECOMPUTED[run.recompute], run.recompute),
    }
    if run.model.num_experts:
        e = run.expert_parallel
        chosen["expert_parallel"] = (f"experts on {units.plural(e, 'GPU')}", e)
    rest = {name: both for name, both in chosen.items() if name not in given}
    words = ", ".join(word for word, _ in rest.values())
    pasted = " ".join(f"{FLAGS[name]} {value}" for name, (_, value) in rest.items())
    return f"{words[:1].upper()}{words[1:]}", pasted


def _in_time(plan: Plan, days: float, tokens: Interval) -> str:
    """Say how many tokens so many days allow, and how many to promise."""
    ends = f"{units.count(tokens.least, 2)} to {units.count(tokens.greatest, 2)}"
    likely = units.count(tokens.likely, 2)
    sentence = f"With --days {units.short(days)} it likely sees {likely} tokens, {ends}"
    if plan.run.tuning is not None:
        return f"{sentence}."
    return f"{sentence}; promise {units.count(plan.first_run_tokens(days), 2)}."


def _table(report: Report) -> str:
    """Return the report's summary and its numbers, with their intervals and assumptions."""
    cells = [(line.what, line.number, _rests_on(line)) for line in report.lines]
    return f"{textwrap.fill(report.summary, WIDTH)}\n\n{_columns(cells)}"


def _rests_on(line: Line) -> str:
    """Return a number's interval and its assumption; if you chose it, only the assumption."""
    return line.assumption if line.interval == "chosen" else f"{line.interval}; {line.assumption}"


def _columns(cells: Sequence[Sequence[str]]) -> str:
    """Align rows in columns; the last column wraps."""
    *widths, _ = (max(map(len, column)) for column in zip(*cells, strict=True))
    rows = []
    for *row, last in cells:
        start = "".join(f"{cell:{width}}  " for cell, width in zip(row, widths, strict=True))
        below = " " * len(start)
        filled = textwrap.fill(last, WIDTH, initial_indent=start, subsequent_indent=below)
        rows.append(filled or start.rstrip())
    return "\n".join(rows)


def _advice(plan: Plan, advice: Sequence[Advice], given: Mapping[str, Any]) -> list[str]:
    """Say what would make a plan fit, one change per line, or how much is still missing."""
    if plan.fits:
        return ["It fits: nothing needs to change."]
    lines = [
        (_change(step), f"{units.gigabytes(step.saved)} less on a GPU, GPU-hours {_more(step)}")
        for step in advice
        if step.change
    ]
    last = advice[-1].plan
    if last.fits:
        return ["These changes make it fit:", _columns(lines)]
    missing = units.gigabytes(last.reserve - last.free_memory)
    nothing = f"Nothing we tried makes it fit: each GPU is still {missing} short"
    sentences = [f"{nothing}, even with:", _columns(lines)] if lines else [f"{nothing}."]
    untried = f"Not tried: {', '.join(_untried(plan, given))}."
    return [*sentences, textwrap.fill(untried, WIDTH, break_on_hyphens=False)]


def _untried(plan: Plan, given: Mapping[str, Any]) -> list[str]:
    """List options that could reduce a plan's memory but weren't tried with other values."""
    words, tuning = FLAGS | TUNED, plan.run.tuning
    searched = {"tensor_parallel", "pipeline_parallel"} - {*given}
    if tuning is None:
        dense = {"expert_parallel", "expert_tensor_parallel"} - {*given}
        return [words[x] for x in UNTRIED if x not in searched | dense]
    fewer = ["--lora instead of --full"] if tuning.is_full else ["--lora", "--targets"]
    return ["--sequence", *fewer]


def _change(step: Advice) -> str:
    return f"  {' '.join(_option(name, value) for name, value in step.change.items())}"


def _option(name: str, value: object) -> str:
    """Write a change of a plan as an option: `--loss fused`."""
    if name == "method":
        return "--bits 4"
    return in_options(f"{name}={'yes' if value is True else value}")


def _more(step: Advice) -> str:
    share = float(step.extra_cost)
    if abs(share) < 0.0005:
        return "as before"
    return f"{units.percent(abs(share))} {'more' if share > 0 else 'fewer'}"


def _numbers(
    plan: Plan, report: Report, given: Mapping[str, Any], advice: Sequence[Advice]
) -> dict[str, Any]:
    """Turn a plan into JSON: in SI units, except for days and hours, whose keys say so."""
    days = plan.days
    hours = days.times(gpu_hours(units.DAY, plan.split.num_gpus))
    price, watts = plan.run.price_per_gpu_hour, plan.run.accelerator.power
    chosen, pasted = _chosen(plan, given)
    measured, tuning = plan.measured, plan.run.tuning
    learning = None if tuning is None else tuned_parameters(plan.run.model, tuning).learning
    plain = {k: x for k, x in plan.inputs.items() if isinstance(x, str | int | float)}
    return {
        "title": report.title,
        "summary": report.summary,
        "chosen": chosen,
        "chosen_options": pasted,
        "inputs": {
            **plain,
            "recipe": None if tuning is not None and not tuning.is_full else plan.run.bytes_of.name,
            "optimizer": plan.run.update,
            "loss_kernel": plan.run.loss,
            "accelerator": plan.run.accelerator.name,
            "sequence_length": plan.run.model.sequence_length,
            "data_parallel": plan.split.data_parallel,
        },
        "parameters": plan.parameters.total,
        "active_parameters": plan.parameters.active,
        "tuning": None if tuning is None else {**asdict(tuning), "learning": learning},
        "iterations": float(plan.iterations),
        "flops": float(plan.total_flops),
        "seconds_per_iteration": _ends(plan.seconds_per_iteration),
        "tokens_per_second_per_gpu": _ends(plan.gpu_throughput),
        "days": _ends(days),
        "days_without_stops": _ends(plan.days_of_steps),
        "first_run_days": _ends(plan.first_run),
        "gpu_hours": _ends(hours),
        "cost": None if price is None else _ends(hours.times(price)),
        "energy_joules": None if watts is None else _ends(hours.times(units.HOUR * watts)),
        "mfu": float(plan.mfu),
        "step_mfu": float(plan.step_mfu),
        "mfu_peak": {"flops_per_second": float(plan.run.peak), "format": plan.run.number_format},
        "beyond_published": plan.beyond_published if measured else None,
        "worth": asdict(worth(plan)) if tuning is None else None,
        "memory_bytes": {**plan.memory.parts(), "total": plan.memory.total},
        "memory_peak_at": plan.phase or None,
        "reserve_bytes": float(plan.reserve),
        "room_bytes": float(plan.free_memory),
        "fits": bool(plan.fits),
        "kv_bytes_per_token": kv_cache_bytes(plan.run.model),
        "advice": [
            {
                "change": dict(step.change),
                "saved_bytes": float(step.saved),
                "dearer": float(step.extra_cost),
                "fits": bool(step.plan.fits),
            }
            for step in advice
        ],
        "not_tried": _untried(plan, given) if advice and not advice[-1].plan.fits else [],
    }


def _ends(numbers: Interval) -> dict[str, float]:
    return {name: float(number) for name, number in vars(numbers).items()}


# --- what is known


def models(arguments: Sequence[str]) -> int:
    """Print the models that a plan knows by name, with parameters and longest sequence."""
    _Parser("models").read(arguments)
    rows = [("model", "parameters", "longest sequence", "or")]
    for name in model_names():
        model = architecture(name)
        size = units.count(count_parameters(model).total)
        also = _also(find_row("model", name, "architectures", "configs"))
        rows.append((name, size, units.exact(int(model.sequence_length)), also))
    print(f"{_columns(rows)}\nYour own: plan --config FILE, a config.json of one of the families.")
    return 0


def chips(arguments: Sequence[str]) -> int:
    """Print the accelerators that a plan knows by name, with memory and dense peak."""
    _Parser("chips").read(arguments)
    rows = [("chip", "memory", "dense peak in 16 bits", "or")]
    for name in names("accelerators"):
        chip = known_accelerator(name)
        peak = units.flops_per_second(chip.peak(chip.training_format))
        also = _also(find_row("chip", name, "accelerators"))
        rows.append((name, units.gigabytes(chip.memory), peak, also))
    print(f"{_columns(rows)}\nYour own: plan --peak 989e12 --memory 141e9 …, or --chip my.toml.")
    return 0


def families(arguments: Sequence[str]) -> int:
    """Print the families of models whose config.json a plan reads."""
    _Parser("families").read(arguments)
    print(textwrap.fill(", ".join(sorted(FAMILIES)), WIDTH, break_on_hyphens=False))
    print("Your own: plan --config FILE, whose model_type is one of these; others are refused.")
    return 0


def _also(row: Mapping[str, Any]) -> str:
    """Return the other names of a row."""
    return ", ".join(row.get("aliases", "").split(";"))
