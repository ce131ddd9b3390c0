"""Exercises in a web page: a learner's cell is run there, its results are stored.

The standard library, termcolor and the formulas serve, so that it runs in the browser.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from html import escape
from io import StringIO
from keyword import kwlist
from typing import Any

from llmtrain_course import exercises
from llmtrain_course.exercises import EXERCISES, PREDICTIONS, progress
from llmtrain_course.kit import own_run as own
from llmtrain_course.kit.exercise import Verdict
from llmtrain_course.kit.ids import chapter_of
from llmtrain_course.kit.layout import PAGE, PHONE, Picture
from llmtrain_helpers.checks import choice, shallow, show

# --- what a cell needs of the cells before it


def needed(before: Sequence[str], source: str) -> str:
    """The statements of earlier cells that this one rests on, in order.

    >>> needed(["import math", "x, y = 2, 3\\nprint(x)", "z = 5"], "print(x)")
    'x, y = 2, 3'
    """
    wanted, lines = _read_in(_statements(source)), list[str]()
    earlier = [(cell, statement) for cell in before for statement in _statements(cell)]
    for cell, statement in reversed(earlier):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            # Of an import only the names that are wanted: the others may not be there.
            statement.names = [name for name in statement.names if _alias(name) in wanted]
            if statement.names:
                lines.append(ast.unparse(statement))
                wanted = wanted - _bound(statement)
        elif wanted & _bound(statement):
            lines.append(ast.get_source_segment(cell, statement) or "")
            wanted = wanted - _bound(statement) | _read_in([statement])
    return "\n".join(reversed(lines))


def _statements(cell: str) -> list[ast.stmt]:
    """A cell's statements; none while it cannot be read, or is nested too deeply."""
    try:
        return ast.parse(cell).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _alias(name: ast.alias) -> str:
    return name.asname or name.name


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement gives."""
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {_alias(name) for name in statement.names}
    return {name for name, how in _names(statement) if how is ast.Store}


def _read_in(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that statements read before they give them; Python's own left out."""
    read, given = set[str](), set[str]()
    for statement in statements:
        own = _local_names(statement)
        read |= {name for name, how in _names(statement) if how is ast.Load} - given - own
        if isinstance(statement, ast.AugAssign):
            read |= _bound(statement) - given
        given |= _bound(statement)
    return {name for name in read if not hasattr(builtins, name)}


def _local_names(statement: ast.stmt) -> set[str]:
    """The names that a function keeps to itself: its arguments, and what it gives."""
    if not isinstance(statement, ast.FunctionDef):
        return set()
    arguments = {node.arg for node in ast.walk(statement) if isinstance(node, ast.arg)}
    return arguments | {name for name, how in _names(statement) if how is ast.Store}


def _names(tree: ast.AST) -> Iterator[tuple[str, type]]:
    """Each name in a statement, and whether it is read or given there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id, type(node.ctx)


# --- running it


def run(before: str, source: str) -> str:
    """Run a cell after what it needs of earlier ones; what it shows, as JSON.

    `before` has the earlier cells as they stand in the page, as JSON.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = StringIO()
    try:
        lines = needed(json.loads(before), source)
        with redirect_stdout(StringIO()):
            exec(compile(lines, "<before>", "exec"), names)
        with redirect_stdout(printed):
            value = _html(_last_value(source, names))
    except BaseException as error:  # whatever a learner's cell may raise
        value = _plain(_raised(error))
    output = "" if printed.closed else _plain(printed.getvalue())
    return json.dumps({"html": output + value, **kept()})


def guess(id: str, written: str) -> str:
    """What a guess is worth, as JSON."""
    verdict = exercises.predict(id, written.strip() or None)
    return json.dumps({"html": _html(verdict), **kept()})


def _raised(error: BaseException) -> str:
    """An error and its line in the learner's cell, without the page's own frames."""
    if isinstance(error, SyntaxError) and error.text:
        code = error.text.partition("#")[0].strip()
        if {*"“”„‘’"} & {*code}:
            straight = re.sub("[“”„]", '"', re.sub("[‘’]", "'", code))
            return f"Line {error.lineno}: Python needs straight quotes, {straight}"
        quotes = _has_bare_words(code) and error.msg.startswith("invalid")
        if quotes and (words := re.fullmatch(r"(\w+ =) ([\w ,.%/-]+)", code)):
            return f'Line {error.lineno}: put words in quotes, {words[1]} "{words[2]}"'
        advice = " Put words, and numbers with a unit, in quotes." if quotes else ""
        line = show(error.text.strip())
        return f"Line {error.lineno}: SyntaxError: {error.msg} in {line}.{advice}"
    problem = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, NameError) and len(error.name or "") == 1:
        problem += f'. Write a choice in quotes: "{error.name}"'
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == "<cell>"]
    return f"Line {lines[-1]}: {problem}" if lines else problem


def _has_bare_words(code: str) -> bool:
    """Whether a line that isn't Python has words, or a number with a unit, without quotes."""
    bare = re.sub(r"\"[^\"]*\"|'[^']*'|\b\d[\d.]*e[+-]?\d+\b", "0", code.replace("FLOP/s", "FLOPs"))
    several = re.findall(r"[\w.]+(?: +[\w.%]+)+|\d\w*[A-Za-z]\w*|\d%(?! *\w)", bare)
    words = [x for x in several if re.search("[A-Za-z%]", x) and not {*x.split()} & {*kwlist}]
    return bool(words) and not re.search("[*/+^]|^(def|for|if|while|return) ", bare)


def _last_value(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line, where that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body else None
    exec(compile(tree, "<cell>", "exec"), names)
    if not isinstance(last, ast.Expr):
        tail = ast.Module([last] if last else [], [])
        exec(compile(tail, "<cell>", "exec"), names)
        return None
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)


def _html(value: Any) -> str:
    """A value as a notebook shows it: its own HTML, or its repr; nothing of None."""
    if value is None:
        return ""
    if isinstance(value, Verdict):
        return value.html(_solution)
    if isinstance(value, Picture):
        return "".join(_form(value, form, width) for form, width in _FORMS.items())
    if hasattr(value, "_repr_mimebundle_"):
        return str(value._repr_mimebundle_()["text/html"])
    return _plain(repr(value))


_FORMS = {"wide": PAGE, "narrow": PHONE}
"""The forms of a picture, of which a window shows one, by the class that its style knows."""


def _form(picture: Picture, form: str, width: int) -> str:
    drawn = picture.drawing(width).inline_svg()
    return drawn.replace('class="wt"', f'class="wt {form}"', 1)


def _solution(id: str) -> str:
    """Where a page finds the worked answer to an exercise."""
    return f"solutions/{chapter_of(id)}.html#{id}"


def _plain(text: str) -> str:
    """Text as HTML, line by line; the colours of a terminal left out."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return f"<pre>{escape(text)}</pre>" if text else ""


# --- what is kept from one visit to the next


def kept() -> dict[str, Any]:
    """What was answered and guessed, where each exercise stands, and the own run.

    Nothing where a cell has spoiled that: what was kept before it stays.
    """
    try:
        tries, guesses = _tries(exercises._TRIES), dict(exercises._GUESSES)
        return {
            "tries": tries,
            "hints": _counts(exercises._HINTS, 99),
            "turns": _counts(exercises._TURNS),
            "guesses": {id: str(answer) for id, answer in guesses.items()},
            "done": {id: True in tries[id] for id in tries} | dict.fromkeys(guesses, True),
            "run": dict(own.SET),
            "progress": repr(progress()),
        }
    except BaseException:  # whatever a learner's guess may raise
        return {}


def restore(stored: str) -> None:
    """Take up what an earlier visit kept; what does not fit is left out."""
    try:
        earlier = json.loads(shallow(stored))
        tries, guesses = _tries(dict(earlier.get("tries", {}))), dict(earlier["guesses"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return
    exercises._TRIES.update(tries)
    exercises._HINTS.update(_counts(earlier.get("hints"), 99))
    exercises._TURNS.update(_counts(earlier.get("turns")))
    own.SET.update(_run(earlier.get("run")))
    for id, answer in guesses.items():
        if id in PREDICTIONS and isinstance(answer, str) and _is_a_guess(id, answer):
            exercises._GUESSES[id] = answer


def _run(stored: Any) -> dict[str, own.Value]:
    """The entries of a run that pass their checks."""
    entries = dict[str, own.Value]()
    for name, value in stored.items() if isinstance(stored, Mapping) else ():
        with suppress(ValueError):
            entries[name] = own.CHECKS[choice("name", name, own.CHECKS)](name, value)
    return entries


def _tries(marks: Mapping[str, Any]) -> dict[str, list[bool]]:
    """What is a list of marks, of an exercise that there is."""
    return {
        id: [bool(mark) for mark in tried]
        for id, tried in marks.items()
        if id in EXERCISES and isinstance(tried, list)
    }


def _counts(stored: Any, most: int = 9) -> dict[str, int]:
    """What is a number from 1 to a most, of an exercise that there is."""
    items = stored.items() if isinstance(stored, Mapping) else ()
    return {id: n for id, n in items if id in EXERCISES and type(n) is int and 0 < n <= most}


def _is_a_guess(id: str, answer: str) -> bool:
    """Whether a prediction takes it: of a first guess that it refuses none gets free."""
    try:
        PREDICTIONS[id].reveal(answer)
    except ValueError:
        return False
    return True
