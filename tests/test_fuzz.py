"""Every formula, called with good and hostile values: right, or refused in words.

The formulas are found by walking the package's files, their arguments are read from the
signatures, so a new formula and a new argument come in by themselves.

* Any call: arguments drawn from good, extreme and hostile values. Some thousand calls by
  default, always the same ones; `make fuzz` makes 100,000, and `make fuzz FUZZ=7` so many.
* Numbers of each of NumPy's types, alone and in arrays: what comes of Python's own.
* One bad argument among good ones: a `ValueError` names it. What is bad follows from
  the argument's type and kind: a number is a count unless `KINDS` says otherwise. All of
  them, every time.

The values are in fuzz_values.py: an argument without a default needs a good one in
`GOOD`, whose first ones go together.
"""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations, product
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import llmtrain_course as course
import llmtrain_helpers as package
from llmtrain_helpers import (
    FORMATS,
    Accelerator,
    Interval,
    Layer,
    Mlp,
    NumberFormat,
    Plan,
    StepTime,
    Transformer,
    checks,
    plan_run,
    published,
    sweep,
)
from llmtrain_helpers.checks import show
from llmtrain_helpers.deprecated import OldName

from .fuzz_values import (
    A100,
    ABOUT,
    ARRAYS,
    BAD_FLAGS,
    BAD_NUMBERS,
    BAD_THINGS,
    BAD_WORDS,
    CHECKS,
    ELSEWHERE,
    EXCLUDING,
    EXTREME,
    FINDS,
    GOOD,
    HOSTILE,
    KINDS,
    LLAMA,
    MIXED,
    MIXTURE,
    NUMBERS,
    OF_ONE,
    OR_NOTHING,
    OUTCOMES,
    PASSED_ON,
    PLAN,
    SIGNED,
    SLOW,
    SPECIAL,
    SWEEP,
    TEXTS,
    TRUSTING,
)

CALLS = int(os.environ.get("FUZZ", 5000))

EMPTY = inspect.Parameter.empty

# --- what is called


def modules() -> list[ModuleType]:
    """Every module of formulas, found by walking the package's files, and the chapters'."""
    root, package_modules = Path(package.__path__[0]), []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        inner = any(f"{name}.".startswith(f"{module}.") for module in ELSEWHERE)
        if name and not inner:
            package_modules.append(import_module(f"llmtrain_helpers.{name}"))
    for path in sorted(Path(course.__path__[0]).glob("*/formulas.py")):
        package_modules.append(import_module(f"llmtrain_course.{path.parent.name}.formulas"))
    return package_modules


def formulas() -> dict[str, Callable[..., Any]]:
    """Public functions, and dataclasses that check what they are given, by name."""
    functions = {}
    for module in modules():
        short = module.__name__.partition(".")[2].removesuffix(".formulas")
        for name, each in vars(module).items():
            own = getattr(each, "__module__", "") == module.__name__ and not name.startswith("_")
            called = inspect.isfunction(each) or checks_itself(each)
            full = name if name in package.__all__ else f"{short}.{name}"
            if own and called and parameters(each) and full not in ELSEWHERE:
                functions[full] = each
    functions |= {f"published.{k}": f for k, f in vars(published).items() if looks_up(f)}
    functions |= {f"checks.{k}": check_of(getattr(checks, k)) for k in CHECKS}
    for thing in (LLAMA, Interval(1, 2, 3), StepTime(0.1, 160), FORMATS["fp16"], A100, PLAN, SWEEP):
        functions |= methods(thing)
    return functions


def check_of(check: Callable[[str, Any], Any]) -> Callable[..., Any]:
    return lambda value: check("value", value)


def checks_itself(kind: Any) -> bool:
    checked = hasattr(kind, "__post_init__") or hasattr(kind.__init__, "__wrapped__")
    return inspect.isclass(kind) and is_dataclass(kind) and checked


def looks_up(each: Any) -> bool:
    """Whether this is a public function of `published` that finds rows by an argument."""
    own = inspect.isfunction(each) and each.__module__ == published.__name__
    return (
        own and each.__name__[0] != "_" and bool({*parameters(each)} & {"name", "tokens", "path"})
    )


def methods(thing: Any) -> dict[str, Callable[..., Any]]:
    """Those of a thing that take something, its class's own ways to make one too."""
    own = {name for name, x in vars(type(thing)).items() if not isinstance(x, OldName)}
    attributes = {name: getattr(thing, name) for name in own if name[0] != "_"}
    called = {k: f for k, f in attributes.items() if inspect.ismethod(f) and parameters(f)}
    return {f"{type(thing).__name__}.{name}": f for name, f in called.items()}


@cache
def parameters(call: Callable[..., Any]) -> dict[str, Any]:
    """Each parameter's default, those that `**options` passes on included."""
    defaults = {}
    for name, each in inspect.signature(call).parameters.items():
        if each.kind is each.VAR_KEYWORD:
            defaults = {**parameters(plan_run), **defaults}
        else:
            defaults[name] = each.default
    return defaults


FORMULAS = formulas()


def test_every_formula_is_called() -> None:
    assert len(FORMULAS) > 120
    for name in package.__all__:
        each = getattr(package, name)
        assert name in FORMULAS or not (inspect.isfunction(each) or checks_itself(each))
    for name in ("Interval.times", "units.digits", "laws.outside", "model.recurrences.Mamba"):
        assert name in FORMULAS
    assert {*FORMULAS} >= TRUSTING


def test_the_tables_name_what_there_is() -> None:
    """Formulas, their arguments or the arguments of one, modules or what is in one."""
    own = {name: {*parameters(call)} for name, call in FORMULAS.items()}
    names = {*own, *(f"{name}.{argument}" for name in own for argument in own[name])}
    arguments = set().union(*own.values())
    given = {*GOOD, *KINDS, *PASSED_ON, *BAD_THINGS, *TEXTS, *ABOUT}
    assert not given - names - arguments
    assert not {*SLOW, *SPECIAL, *FINDS, *OF_ONE} - names
    assert all(map(exists, ELSEWHERE))


def exists(name: str) -> bool:
    """Whether the package has this module or what's in it, or a chapter has this formula."""
    home, _, inside = f"{package.__name__}.{name}".rpartition(".")
    if hasattr(import_module(home), inside):
        return True
    chapter = f"{course.__name__}.{name.partition('.')[0]}.formulas"
    there = name.count(".") and find_spec(chapter.removesuffix(".formulas")) and find_spec(chapter)
    if there and hasattr(import_module(chapter), inside):
        return True
    return hasattr(import_module(home), "__path__") and find_spec(f"{home}.{inside}") is not None


# --- what comes out


def wrong(result: Any, path: str = "") -> Iterator[str]:
    """Where a result holds what it should not: NaN, infinity, a negative, no number."""
    if isinstance(result, bool | np.bool_) or is_number(result):
        values = np.asarray(result, dtype=float)
        if not np.isfinite(values).all():
            yield f"{path} is not finite: {show(result)}"
        elif (values < 0).any() and path.rpartition(".")[2] not in SIGNED:
            yield f"{path} is negative: {show(result)}"
    elif isinstance(result, Mapping):
        for key, value in result.items():
            yield from wrong(value, f"{path}[{key}]")
    elif isinstance(result, list | tuple):
        for value in result[:3]:
            yield from wrong(value, path)
    elif is_dataclass(result):
        for name in {*(item.name for item in fields(result)), *properties(result)}:
            if name != "inputs":
                yield from wrong(getattr(result, name), f"{path}.{name}")
    elif not (result is None or np.asarray(result).dtype.kind == "U"):  # moments have names
        yield f"{path} is a {type(result).__name__}"


def properties(result: Any) -> list[str]:
    return [k for k, v in inspect.getmembers(type(result)) if isinstance(v, property)]


def names_an_argument(name: str, arguments: Collection[str], message: str) -> bool:
    """Whether a refusal names an argument, or what is inside one, or the outcome."""
    words = {*arguments, *filter(None, [name.rpartition(".")[2]])}
    for argument in words & {*ABOUT}:
        words |= {*inspect.signature(ABOUT[argument]).parameters}
    named = any(re.search(rf"\b{word}\b", message) for word in words)
    return named or any(outcome in message for outcome in OUTCOMES)


def problem(name: str, call: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """What is wrong with this call's outcome; nothing if it is as it should be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = call(**arguments)
            return "" if name in SPECIAL else "; ".join(wrong(result))
    except ValueError as error:
        message = str(error)
        plain = type(error) is ValueError and "\n" not in message and len(message) < 400
        in_words = plain and names_an_argument(name, parameters(call), message)
        return "" if in_words else f"{type(error).__name__}: {message[:300]}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"


# --- the calls


def drawn(formula: str, dice: Random) -> dict[str, Any]:
    """Arguments for a call: good ones, or extreme, often with one or two hostile."""
    signature = parameters(FORMULAS[formula])
    spoiled = 0 if formula in TRUSTING else min(dice.choice([0, 0, 1, 1, 2]), len(signature))
    hostile = dice.sample([*signature], spoiled)
    arguments, extreme = {}, formula not in TRUSTING and dice.random() < 0.15
    for name, default in signature.items():
        if formula in FINDS and name in ("model", "tokens"):
            continue
        if name in hostile:
            arguments[name] = dice.choice(HOSTILE)
        elif default is EMPTY or f"{formula}.{name}" in GOOD or dice.random() < 0.3:
            choices = good(formula, name, default)
            number = isinstance(choices[0], int | float) and choices[0] is not True
            arguments[name] = dice.choice(EXTREME if extreme and number else choices)
    return arguments


def good(formula: str, name: str, default: Any) -> list[Any]:
    own = f"{formula}.{name}"
    if own in GOOD or name in GOOD:
        return GOOD.get(own, GOOD.get(name, []))
    if default is None or isinstance(default, bool | str):
        return [default]
    return NUMBERS


@pytest.mark.parametrize("name", FORMULAS)
def test_every_call_is_right_or_refused_in_words(name: str) -> None:
    call, failures = FORMULAS[name], {}
    share = len(FORMULAS) * (10 if name.startswith("published") or name in SLOW else 1)
    for i in range(CALLS // share + 1):
        arguments = drawn(name, Random(f"{name} {i}"))
        fault = problem(name, call, arguments)
        if fault:
            call_text = ", ".join(f"{key}={show(value)}" for key, value in arguments.items())
            failures.setdefault(re.sub(r"[\d.]+", "", fault)[:60], f"{call_text}\n  {fault}")
    assert not failures, "\n".join(failures.values())


@pytest.mark.parametrize("e", [1, 2, 8])
@pytest.mark.parametrize("imbalance", [1, 1.5])
def test_plans_with_experts_are_right(e: int, imbalance: float) -> None:
    """On every split that comes out even; those are refused on whose GPUs experts do not."""
    run = {"model": MIXTURE, "accelerator": A100, "num_gpus": 64, "tokens": 10**12}
    run |= {"global_batch_size": 512, "recompute": "none", "keep_gradients": False}
    run |= {"expert_parallel": e, "imbalance": imbalance if e > 1 else 1}
    for t, p, c, stage in product((1, 2, 8), (1, 2, 16), (1, 2), (0, 1, 3)):
        ways = {"tensor_parallel": t, "pipeline_parallel": p, "context_parallel": c}
        split = {**run, **ways, "zero_stage": stage}
        message = problem("plan_run", plan_run, split)
        assert not message, f"{ways}, {stage}: {message}"
        even = 64 % (t * p * c) == 0 and 64 // p % e == 0
        assert bool(refusal(plan_run, split)) != even


@pytest.mark.parametrize(("together", "named"), EXCLUDING)
@pytest.mark.parametrize("call", [plan_run, sweep], ids=lambda call: call.__name__)
def test_what_excludes_each_other_is_refused(
    call: Callable[..., Any], together: dict[str, Any], named: str
) -> None:
    run = {"model": LLAMA, "accelerator": A100, "num_gpus": 64, "tokens": 10**12}
    run |= {"global_batch_size": 512, "recompute": "none", "micro_batch_size": 1}
    run |= {"tensor_parallel": 1, "pipeline_parallel": 1, "expert_parallel": 1}
    assert not refusal(call, run)
    assert names_an_argument("", {named}, refusal(call, {**run, **together}))


CHECKED = [name for name in FORMULAS if name not in TRUSTING]
"""Formulas that check what they are given."""


def good_call(formula: str) -> dict[str, Any]:
    """What a formula cannot do without, each the first of its good values."""
    signature = inspect.signature(FORMULAS[formula]).parameters
    needed = {k for k, each in signature.items() if each.default is EMPTY}
    needed -= {k for k, each in signature.items() if each.kind is each.VAR_KEYWORD}
    needed |= {k for k in signature if f"{formula}.{k}" in GOOD}
    return {k: good(formula, k, each.default)[0] for k, each in signature.items() if k in needed}


# --- numbers of NumPy's types


TYPES = ["int16", "int32", "int64", "uint8", "float16", "float32", "longdouble"]
"""Those that wrap around or round where Python's numbers do not, and one that holds more."""


@pytest.mark.parametrize("name", CHECKED)
def test_numbers_of_numpys_types_give_what_pythons_give(name: str) -> None:
    """Alone, in arrays of no dimension, of one, and in columns."""
    call, fitting, failures = FORMULAS[name], good_call(name), []
    for argument in inspect.signature(call).parameters.values():
        results = plain_numbers(name, fitting, argument)
        broadcasts = name != "sweep" and results  # there an array is many choices
        arrays = broadcasts and outcome(call, {**fitting, argument.name: np.array([*results])})
        for kind in TYPES[::3] if name in SLOW else TYPES:
            values = [value for value in results if holds(kind, value)]
            if not values:
                continue
            several = np.array(values, kind)
            forms = [several[0], several[0].reshape(())]
            forms += [several, several.reshape(-1, 1)] if arrays else []
            for form in forms:
                wanted = [results[value] for value in values[: form.size]]
                differs = unlike(call, {**fitting, argument.name: form}, wanted)
                if differs:
                    failures.append(f"{argument.name}={show(form)}, {kind}: {differs}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("name", CHECKED)
def test_all_numbers_may_be_in_the_narrowest_arrays(name: str) -> None:
    """Where all are, no Python number beside them widens a product."""
    call, plain = FORMULAS[name], good_call(name)
    arrays = dict(plain)
    for argument, value in plain.items():
        kind = next((kind for kind in ("uint8", "int16", "int64") if holds(kind, value)), None)
        narrow = {**arrays, argument: np.array([value], kind)}
        if kind and outcome(call, narrow):
            arrays = narrow
    wanted = outcome(call, plain)
    differs = unlike(call, arrays, [wanted]) if wanted else ""
    assert not differs, f"{arrays}: {differs}"


@pytest.mark.parametrize("name", CHECKED)
def test_arrays_that_do_not_go_together_are_refused_by_a_name(name: str) -> None:
    call, plain, failures = FORMULAS[name], good_call(name), []
    several: dict[str, Callable[[int], Any]] = {}
    for argument, value in plain.items():
        if is_number(value) and name != "sweep":
            repeated = partial(np.full, fill_value=np.ravel(value)[0])
            if outcome(call, {**plain, argument: repeated(2)}):
                several[argument] = repeated
    for one, other in combinations(several, 2):
        message = refusal(call, {**plain, one: several[one](2), other: several[other](3)})
        if message and not names_an_argument("", {one, other}, message):
            failures.append(f"{one} and {other}: {message}")
    assert not failures, "\n".join(failures)


def plain_numbers(
    formula: str, fitting: dict[str, Any], argument: inspect.Parameter
) -> dict[float, dict[str, Any]]:
    """The first four numbers that an argument takes, as Python has them, and what comes of each.

    Good ones, and some whose products overflow.
    """
    if argument.kind is argument.VAR_KEYWORD:
        return {}
    values = [*good(formula, argument.name, argument.default), 3, 100, 30_000, 2**31, 0.5]
    flat = [np.ravel(value).tolist() for value in values if is_number(value)]
    results: dict[float, dict[str, Any]] = {}
    for value in dict.fromkeys(float(x) for each in flat for x in each):
        result = outcome(FORMULAS[formula], {**fitting, argument.name: value})
        results |= {value: result} if result else {}
        if len(results) == (1 if formula in SLOW else 4):
            break
    return results


def holds(kind: str, value: Any) -> bool:
    """Whether a type of NumPy has this very number."""
    if not is_number(value) or np.ndim(value):
        return False
    limits = np.iinfo(kind) if np.dtype(kind).kind in "iu" else np.finfo(kind)
    within = float(limits.min) <= float(value) <= float(limits.max)
    return within and bool(float(np.array(value, kind)) == value)


def is_number(value: Any) -> bool:
    if isinstance(value, bool | np.str_) or getattr(value, "dtype", np.dtype(int)).kind == "U":
        return False  # a moment's name, or one of each plan
    return isinstance(value, int | float | np.generic | np.ndarray)


def outcome(call: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any] | None:
    """The numbers that come of a call; None if it is refused."""
    try:
        return numbers(call(**arguments))
    except ValueError:
        return None


def numbers(result: Any, path: str = "") -> dict[str, Any]:
    """The numbers in a result, by where they stand; those of its properties too."""
    if is_number(result) or isinstance(result, bool):
        return {path: result}
    inside: dict[Any, Any] = {}
    if isinstance(result, Mapping):
        inside = dict(result)
    elif isinstance(result, list | tuple):
        inside = dict(enumerate(result[:3]))
    elif is_dataclass(result):
        names = {*(item.name for item in fields(result)), *properties(result)} - {"inputs"}
        inside = {name: getattr(result, name) for name in sorted(names)}
    return {k: v for at, x in inside.items() for k, v in numbers(x, f"{path}.{at}").items()}


def unlike(
    call: Callable[..., Any], arguments: dict[str, Any], wanted: list[dict[str, Any]]
) -> str:
    """Where the numbers that come of a call are not the wanted ones, one after the other."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = numbers(call(**arguments))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    for path, value in got.items():
        expected = np.array([each[path] for each in wanted], float)
        many = np.ravel(np.asarray(value, float))
        if many.size not in (1, expected.size) or not np.allclose(many, expected, 1e-12, 0):
            return f"{path}={show(value)}, not {show(expected)}"
    return ""


# --- one bad argument


def bad_values(formula: str, argument: inspect.Parameter) -> list[Any]:
    """What this argument must refuse, by its type and, if it is a number, its kind."""
    own, typed, default = f"{formula}.{argument.name}", str(argument.annotation), argument.default
    kind = KINDS.get(own, KINDS.get(argument.name, "count"))
    first = good(formula, argument.name, default)[0]
    several = formula == "sweep" and re.search("Choices|Sequence", typed)  # or a list of them
    typed = "Number" if several and not isinstance(first, str) else typed
    if argument.name in BAD_THINGS:
        return BAD_THINGS[argument.name]
    if kind == "free" or "Mapping" in typed or "Callable" in typed:
        return []
    several_at_once = "Number|Result|Spread|Array"
    if re.search(rf"\b({several_at_once}|int|float)\b", typed) and "tuple" not in typed:
        kind = OR_NOTHING.get(kind, kind) if type(default) is int and default == 0 else kind
        bad = [*BAD_NUMBERS[kind]]
        if formula in OF_ONE or not re.search(several_at_once, typed):
            bad += ARRAYS
    elif typed.startswith("bool"):
        bad = BAD_FLAGS
    elif argument.name in TEXTS:
        bad = [value for value in BAD_WORDS if not isinstance(value, str)]
    elif isinstance(first, str):
        words = good(formula, argument.name, default)
        bad = [value for value in BAD_WORDS if not isinstance(value, str) or value not in words]
    elif isinstance(first, Transformer | Accelerator | Plan | Layer | Mlp | NumberFormat):
        others = (LLAMA, A100, PLAN, MIXED)
        bad = [*BAD_WORDS, *(thing for thing in others if not isinstance(thing, type(first)))]
    else:
        return []
    bad = [value for value in bad if not (several and isinstance(value, list | tuple))]
    may_be_none = default is None or "None" in typed or own in PASSED_ON
    return [value for value in bad if not (value is None and may_be_none)]


@pytest.mark.parametrize("name", CHECKED)
def test_a_bad_argument_is_refused_by_its_name(name: str) -> None:
    call, accepted = FORMULAS[name], []
    signature = inspect.signature(call).parameters
    fitting = good_call(name)
    message = problem(name, call, fitting)
    assert not message, message
    for argument in signature.values():
        for value in bad_values(name, argument):
            reason = refusal(call, {**fitting, argument.name: value})
            if not names_an_argument("", {argument.name}, reason):
                accepted.append(f"{argument.name}={show(value)}: {reason or 'accepted'}")
    assert not accepted, "\n".join(accepted)


def refusal(call: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """The words of a plain ValueError, in one line; else nothing, or what else came."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(**arguments)
    except ValueError as error:
        message = str(error)
        return (
            message
            if type(error) is ValueError and "\n" not in message and len(message) < 400
            else ""
        )
    except Exception as error:
        return type(error).__name__
    return ""
