"""Read a run from a framework's own file, for the command's `plan --from FILE`.

axolotl's and LLaMA-Factory's YAML, DeepSpeed's JSON and torchtitan's TOML. What each setting
means, and what the framework does without it, is in `data/framework_settings.csv`. A setting
is used, has no effect on a plan, or is named as one that a plan doesn't have: none is guessed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from os import PathLike
from os.path import isfile
from pathlib import Path
from typing import Any, NoReturn

from llmtrain_helpers.checks import instance, refuse, shallow, show, single
from llmtrain_helpers.model.tables import Row, find_row, rows
from llmtrain_helpers.plan.options import OPTIONS

LARGEST = 200_000
"""Bytes of a file: a larger one isn't a run's configuration."""

MARKS = {
    "axolotl": ("base_model",),
    "LLaMA-Factory": ("model_name_or_path",),
    "torchtitan": ("model.name",),
    "DeepSpeed": ("zero_optimization*", "train_batch_size", "train_micro_batch_size_per_gpu"),
}
"""The settings by which we recognise a framework's file."""

OTHERS = {"tokens": "days", "days": "tokens", "config": "model", "model": "config"}
"""Arguments that exclude each other."""

NAMES = (*OPTIONS, "rank", "bits", "targets", "full")
"""Arguments that are options of the command; the others only mean something together."""


@dataclass(frozen=True)
class Reading:
    """What a file says about a run, and what became of each of its settings.

    `options` are arguments, and `sources` says where each comes from: a setting, a default or
    the command line.
    """

    path: Path
    kind: str
    settings: Mapping[str, object]
    options: dict[str, object] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    unmapped: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)

    def set(self, argument: str, value: object, source: str) -> None:
        """Set an argument; refuse it if something else is in force."""
        other = argument if argument in self.options else OTHERS.get(argument, "")
        before = self.options.get(other)
        if before not in (None, "none") and (other != argument or before != value):
            if value == "none":  # what one setting leaves out, another one asks for
                return
            self.refuse(source, f"contradicts {self.sources[other]}")
        self.options[argument], self.sources[argument] = value, source

    def skip(self, name: str, reason: str) -> None:
        """Name a setting that can't be used."""
        self.used.pop(name, None)
        self.unmapped[name] = reason

    def refuse(self, setting: str, problem: str) -> NoReturn:
        """Refuse a setting, with its file and its name."""
        raise ValueError(f"in {self.path}: {setting} {problem}")

    def rows(self, *uses: str) -> list[Row]:
        """The framework's rows: of these uses, or of its settings."""
        table = [x for x in rows("framework_settings") if self.kind in x["framework"].split()]
        rules = ("set", "drop", "note")
        return [x for x in table if x["use"] in uses or not (uses or x["use"] in rules)]

    def read(self) -> None:
        """Sort the settings into those that are used and the others."""
        for name, value in self.settings.items():
            if value is None or value == {}:
                continue
            row = next((x for x in self.rows() if fnmatchcase(name, x["setting"])), None)
            if any(x["setting"].startswith(f"{name}.") for x in self.rows()):
                self.refuse(f"{name}: {show(value)}", "isn't a table of settings")
            if row is None:
                self.unknown.append(name)
            elif row["use"] == "none":
                self.idle.append(name)
            else:
                self.use(name, value, row)

    def use(self, name: str, value: object, row: Row) -> None:
        """Use a setting as its row says, or say why we can't."""
        setting, argument, use = f"{name}: {show(value)}", row.get("argument", ""), row["use"]
        words = dict(x.split("=") for x in row.get("values", "").split(";") if x)
        items = value if isinstance(value, list) and use == "word" else [value]
        meanings: list[Any] = [
            words.get(str(x), words.get("*")) if _is_plain(x) else None for x in items
        ]
        if value == "auto" and "auto" not in words:
            return self.skip(name, '"auto" is filled in when training starts')
        if use == "number" and meanings == [None]:
            number: Any = value if type(value) in (int, float) and _is_plain(value) else 0
            if number < 1 or number != int(number):
                self.refuse(setting, "isn't a whole number from 1 to 10^12")
            meanings = [int(number)]
        elif use == "text":
            if type(value) not in (str, int) or not _is_plain(value):
                self.refuse(setting, "isn't a word")
            meanings = [str(value)]
        elif use == "list":
            each = value.split(",") if type(value) is str else value
            if not isinstance(each, list) or not all(type(x) is str for x in each):
                self.refuse(setting, "isn't a list of words")
            meanings = [tuple("all-linear" if x == "all" else x.strip() for x in each)]
            if not {*meanings[0]} <= {*words}:
                return self.skip(name, row["note"])
        elif None in meanings:
            if use != "unmapped" and (use == "choice" or not all(type(x) is str for x in items)):
                self.refuse(setting, f"isn't one of {', '.join(words)}: a plan has no other")
            plans = ", ".join(dict.fromkeys(filter(None, words.values())))
            return self.skip(name, row.get("note", f"a plan has {plans}"))
        for meaning in filter(None, meanings):
            if argument == "model" and (meaning := model_of(str(value))) is None:
                return self.skip(name, "we don't know its shape, so give MODEL or --config FILE")
            self.set(argument, True if meaning == "yes" else meaning, setting)
            self.used[name] = show(value)
        if name not in self.used:
            self.idle.append(name)

    def fill(self) -> None:
        """Set what the file leaves open to the framework's defaults."""
        needless = {
            "passes": "global_batch_size" in self.options,
            "steps": bool({"tokens", "days"} & {*self.options}),
        }
        for row in self.rows():
            name, argument = row["setting"], row.get("argument")
            absent = self.settings.get(name) is None and argument not in self.options
            if "default" in row and absent and not needless.get(str(argument)):
                self.use(name, row["default"], row)
                self.idle[:] = [x for x in self.idle if x != name]
                self.defaults[name] = self.used.pop(name, show(row["default"]))

    def conclude(self) -> None:
        """Apply the rules about several settings; the first that fits sets an argument."""
        done = set()
        for row in self.rows("set", "drop", "note"):
            argument, tests = row["setting"], row.get("values", "").split()
            if argument in done or not all(map(self.holds, tests)):
                continue
            if row["use"] == "note":
                self.skip(argument, row["note"])
            elif row["use"] == "drop":
                name = self.sources.get(argument, "").partition(": ")[0]
                if argument in self.options and name in (*self.used, *self.defaults):
                    del self.options[argument]
                    self.defaults.pop(name, None)
                    if self.used.pop(name, None) and "note" in row:
                        self.unmapped[name] = row["note"]
                    elif name in self.settings:
                        self.idle.append(name)
            else:
                done.add(argument)
                value: Any = {"yes": True, "no": False}.get(row["default"], row["default"])
                value = (value,) if argument == "targets" else value
                asked = [self.sources.get(x.partition("=")[0], "") for x in tests]
                asked = [x for x in asked if x.partition(": ")[0] in self.used]
                asked += [
                    x for x in self.settings if x.startswith("fsdp_") and "fsdp_config.*" in tests
                ]
                if asked or argument not in self.options:
                    self.set(argument, value, " and ".join(asked[:3]) or f"{argument}: {value}")
                if argument in NAMES and not asked:
                    self.defaults.setdefault(argument, f"{self.options[argument]}")

    def holds(self, test: str) -> bool:
        """Whether an argument is set, or a setting is there: `mode`, `!mode`, `mode=full`."""
        name, equals, word = test.removeprefix("!").partition("=")
        value = self.options.get(name, self.settings.get(name))
        present = (x for x, value in self.settings.items() if value is not None)
        there = value is not None or any(fnmatchcase(x, name) for x in present)
        return (str(value) == word if equals else there) != test.startswith("!")


def _is_plain(value: Any) -> bool:
    """Whether a value is a text, a flag or a number of a usual size, so not NaN."""
    return type(value) in (str, bool) or (type(value) in (int, float) and abs(value) <= 1e12)


def read_settings(path: str | PathLike[str], options: Mapping[str, object]) -> Reading:
    """Read a framework's file, and fill in what the options of the command leave open.

    They're arguments by name, with `num_gpus`. A ValueError explains what's wrong with the file,
    or which option contradicts it.
    """
    if not isinstance(path, str | PathLike):
        refuse("path", path, "isn't the path of a file")
    instance("options", options, Mapping)
    num_gpus = single("num_gpus", options.get("num_gpus"))
    file = _recognised(Path(path))
    file.read()
    _take_over(file)
    for argument, value in options.items():
        same = model_of(str(value)) if argument == "model" else None
        file.set(argument, same or value, f"{argument}={show(value)}")
    if "full" in options:
        file.set("adapter", "full", "--full")
    elif "rank" in options and file.options.get("adapter") in (None, "full"):
        file.set("adapter", "lora", f"rank={show(options['rank'])}")
    file.fill()
    _batch(file, num_gpus)
    file.conclude()
    for argument in {*file.options} - ({*NAMES} - {*options}):
        del file.options[argument]
    return file


def model_of(written: str) -> str | None:
    """Return the published model of this name, if we know its shape.

    >>> model_of("meta-llama/Meta-Llama-3-8B-Instruct")
    'Llama-3.1-8B'
    """
    name = instance("written", written, str).rpartition("/")[2].removeprefix("Meta-")
    name = re.sub(r"(-(instruct|chat|hf|base|it|2507))+(?=-v|$)", "", name, flags=re.IGNORECASE)
    for spelling in (name, name.removesuffix("-v0.1"), name.removesuffix("-v1.0")):
        try:
            return str(find_row("model", spelling, "architectures", "configs")["name"])
        except ValueError:
            continue
    return None


# --- from text to settings


def _recognised(path: Path) -> Reading:
    """Read a file's settings, and recognise its framework."""
    nested = _parsed(path)
    if not isinstance(nested, dict):
        raise ValueError(f"{path} isn't a table of settings")
    try:
        settings = _once([*_flat(nested)])
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None
    for kind, marks in MARKS.items():
        if any(fnmatchcase(name, mark) for name in settings for mark in marks):
            return Reading(path, kind, settings)
    offer = "; ".join(f"{kind} has {marks[0].strip('*')}" for kind, marks in MARKS.items())
    raise ValueError(f"{path} isn't a file of a framework that we know ({offer})")


def _parsed(path: Path) -> Any:
    """Parse a file by its ending."""
    if path.suffix not in (".toml", ".json", ".yaml", ".yml"):
        raise ValueError(f"{path}: the path ends in neither .yaml, .yml, .json nor .toml")
    try:
        with path.open("rb") as file:
            written = file.read(LARGEST + 1)
        if len(written) > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} bytes")
        text = shallow(written.decode("utf-8-sig"))
        if path.suffix == ".toml":
            return tomllib.loads(text)
        if path.suffix == ".json":
            return json.loads(text, object_pairs_hook=_once)
        return _yaml(text)
    except ImportError:
        install = 'pip install "llmtrain-helpers[yaml]"'
        raise ValueError(f"{path} can't be read without PyYAML: {install}") from None
    except UnicodeDecodeError:
        problem = "it isn't text in UTF-8"
    except RecursionError:
        problem = "it's nested too deeply"
    except OSError as error:
        problem = f"{error.strerror} at this path"
    except Exception as error:  # each parser has its own
        problem = " ".join(str(error).split())[:160]
    raise ValueError(f"{path} can't be read: {problem}")


def _yaml(text: str) -> Any:
    """Parse YAML without its aliases, and without a name that is there twice."""
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise ValueError("it has an alias (*name): write the value itself")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            _once([(key.value, None) for key, _ in node.value])
            return super().construct_mapping(node, deep)

    return yaml.load(text, Loader)


def _once(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Make a table of pairs whose names are all different."""
    names = [name for name, _ in pairs]
    if len({*map(str, names)}) < len(names):
        raise ValueError(f"{next(x for x in names if names.count(x) > 1)} is there twice")
    return dict(pairs)


def _flat(nested: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Name each setting by its way through the tables: `zero_optimization.stage`."""
    for name, value in nested.items():
        if not isinstance(name, str) or not name.isprintable() or len(before + name) > 200:
            raise ValueError(f"{show(name)} isn't the name of a setting")
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


# --- what several settings say together


def _take_over(file: Reading) -> None:
    """Take over what DeepSpeed's own settings say, in a file that this one names, or in it."""
    name = str(file.options.get("file", ""))
    if name:
        places = [file.path.parent / name, *(x / name for x in file.path.resolve().parents)]
        other_path = next((x for x in places if isfile(x)), None)
        if other_path is None:
            file.options["missing"] = True
            return file.skip("deepspeed", "there's no such file, so give --shard and --offload")
        other = _recognised(other_path)
    elif inside := {x[10:]: y for x, y in file.settings.items() if x.startswith("deepspeed.")}:
        other = Reading(file.path, "DeepSpeed", inside)
        file.unknown[:] = [x for x in file.unknown if not x.startswith("deepspeed.")]
    else:
        return
    if other.kind != "DeepSpeed":
        file.refuse(f"deepspeed: {name}", "isn't a file of DeepSpeed")
    other.read()
    for batch in ("micro_batch_size", "global_batch_size", "passes"):
        other.options.pop(batch, None)  # the trainer's are in force
    if "optimizer" in other.options and file.options.pop("optimizer", None):
        file.skip("optimizer" if "optimizer" in file.used else "optim", "DeepSpeed's is in force")
    for argument, value in {"shard": "ddp", **other.options, "zero": True}.items():
        file.set(argument, value, f"deepspeed {other.sources.get(argument, 'by default')}")
    for mine, theirs in ((file.used, other.used), (file.unmapped, other.unmapped)):
        auto = [x for x in theirs if other.settings[x] == "auto"]  # this file has their values
        mine |= {f"deepspeed {x}": y for x, y in theirs.items() if x not in auto}
    for names, others in ((file.unknown, other.unknown), (file.idle, other.idle)):
        names.extend(f"deepspeed {x}" for x in others)


def _batch(file: Reading, num_gpus: int) -> None:
    """Set the batch from its micro-batches, and the tokens from the number of steps."""
    options: dict[str, Any] = file.options
    sources = file.sources
    micro: Any = options.get("micro_batch_size")
    whole: Any = options.get("global_batch_size")
    ways = [options.setdefault(f"{x}_parallel", 1) for x in ("tensor", "pipeline", "context")]
    passes, replicas = options.get("passes"), options.get("replicas", 1)
    shards = options.get("shards", "rest")
    parts = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    open_in_file = {*parts} & {*file.unmapped}  # filled in when training starts
    d, rest = divmod(num_gpus, max(1, int(ways[0] * ways[1] * ways[2])))
    if file.kind == "axolotl" and shards != "rest":  # each of its shards has some of the experts
        replicas *= options.get("expert_parallel", 1)
    if rest or d % replicas or shards not in ("rest", d / replicas):
        split = " × ".join(str(x) for x in (*ways, replicas, shards) if x not in (1, "rest"))
        file.refuse(f"--gpus {num_gpus}", f"isn't what the file splits them into: {split}")
    if file.kind == "torchtitan" and "micro_batch_size=" not in sources["micro_batch_size"]:
        inside = options.get("pipeline_micro_batch", 1) if ways[1] > 1 else micro
        if micro % inside:
            file.refuse(sources["micro_batch_size"], f"isn't a multiple of {inside}")
        passes = micro // inside
        options["micro_batch_size"] = micro = inside
    if micro and passes:
        batch = [sources["micro_batch_size"], sources.get("passes"), f"{d} replicas"]
        file.set("global_batch_size", micro * passes * d, " and ".join(filter(None, batch)))
    elif "train_batch_size" in file.used and not micro and not open_in_file:
        if whole % (d * (passes or 1)):
            file.refuse(sources["global_batch_size"], f"isn't a multiple of the {d} replicas")
        micro = whole // (d * (passes or 1))
        file.set("micro_batch_size", micro, sources["global_batch_size"])
    elif "gradient_accumulation_steps" in file.used and not (micro or whole):
        file.skip("gradient_accumulation_steps", "without a micro-batch it doesn't say a batch")
    each: list[Any] = [options.get(x) for x in ("steps", "global_batch_size", "sequence_length")]
    if None not in each:
        file.set("tokens", each[0] * each[1] * each[2], sources["steps"])
        for name in {"num_epochs", "num_train_epochs"} & {*file.unmapped}:
            file.idle.append(name)
            del file.unmapped[name]
