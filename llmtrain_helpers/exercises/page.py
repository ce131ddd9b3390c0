"""Exercises in a web page: a learner's cell is run there, and what is done is kept.

The standard library, termcolor and the formulas serve, so that it runs in the browser.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from html import escape
from io import StringIO
from typing import Any

from llmtrain_helpers import exercises
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS, progress

# --- what a cell needs of the cells before it


def needed(before: Sequence[str], source: str) -> str:
    """The statements of earlier cells that this one rests on, in order.

    >>> needed(["import math", "x, y = 2, 3\\nprint(x)", "z = 5"], "print(x)")
    'x, y = 2, 3'
    """
    wanted, kept = _read_in(_statements(source)), list[str]()
    earlier = [(cell, one) for cell in before for one in _statements(cell)]
    for cell, statement in reversed(earlier):
        part = _part(statement, wanted)
        if part is not None:
            kept.append(_written(cell, part))
            wanted = wanted - _bound(part) | _read_in([part])
    return "\n".join(reversed(kept))


def _statements(cell: str) -> list[ast.stmt]:
    """A cell's statements; none while it cannot be read."""
    try:
        return ast.parse(cell).body
    except SyntaxError:
        return []


def _part(statement: ast.stmt, wanted: set[str]) -> ast.stmt | None:
    """What of a statement gives a wanted name; of an import, only those names."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        names = [n for n in statement.names if (n.asname or n.name) in wanted]
        statement.names = names
        return statement if names else None
    return statement if wanted & _bound(statement) else None


def _written(cell: str, statement: ast.stmt) -> str:
    """A statement as it was written; an import with the names that are left."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return ast.unparse(statement)
    return ast.get_source_segment(cell, statement) or ""


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement gives."""
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {name.asname or name.name for name in statement.names}
    return {name for name, how in _names(statement) if how is ast.Store}


def _read_in(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that statements read before they give them; Python's own left out."""
    read, given = set[str](), set[str]()
    for statement in statements:
        own = _inside(statement)
        read |= {n for n, how in _names(statement) if how is ast.Load} - given - own
        if isinstance(statement, ast.AugAssign):
            read |= _bound(statement) - given
        given |= _bound(statement)
    return {name for name in read if not hasattr(builtins, name)}


def _inside(statement: ast.stmt) -> set[str]:
    """The names that a function keeps to itself: its arguments, and what it gives."""
    if not isinstance(statement, ast.FunctionDef):
        return set()
    arguments = {node.arg for node in ast.walk(statement) if isinstance(node, ast.arg)}
    return arguments | {name for name, how in _names(statement) if how is ast.Store}


def _names(tree: ast.AST) -> Iterator[tuple[str, type]]:
    """Each name in it, and whether it is read or given there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id, type(node.ctx)


# --- running it


def run(before: str, source: str) -> str:
    """Run a cell after what it needs of earlier ones; what it shows, as JSON.

    `before` has the earlier cells as they stand in the page, as JSON.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    told = StringIO()
    try:
        lines = needed(json.loads(before), source)
        with redirect_stdout(StringIO()):
            exec(compile(lines, "<before>", "exec"), names)
        with redirect_stdout(told):
            value = _last_value(source, names)
    except BaseException as error:  # whatever a learner's cell may raise
        value = _Raised(error)
    return json.dumps({"html": _plain(told.getvalue()) + _html(value), **kept()})


def guess(id: str, written: str) -> str:
    """What a guess is worth, as JSON."""
    verdict = exercises.predict(id, written.strip() or None)
    return json.dumps({"html": _html(verdict), **kept()})


def chosen(id: str, option: str) -> str:
    """The verdict on a choice, as JSON."""
    return json.dumps({"html": _html(exercises.check(id, option)), **kept()})


class _Raised:
    """What a cell raised, as a page shows it."""

    def __init__(self, error: BaseException) -> None:
        told = "".join(traceback.format_exception_only(error)).strip()
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f.lineno for f in frames if f.filename == "<cell>"]
        self.told = f"Line {lines[-1]}: {told}" if lines else told

    def __repr__(self) -> str:
        return self.told


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
    if value is None:
        return ""
    if hasattr(value, "_repr_mimebundle_"):
        return str(value._repr_mimebundle_()["text/html"])
    return _plain(repr(value))


def _plain(text: str) -> str:
    """Text as it is; the colours of a terminal left out."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return f"<pre>{escape(text)}</pre>" if text else ""


# --- what is kept from one visit to the next


def kept() -> dict[str, Any]:
    """What was answered and guessed, and where each exercise stands."""
    tries, guesses = exercises._TRIES, exercises._GUESSES
    done = {id: True in tries[id] for id in tries}
    return {
        "tries": tries,
        "guesses": {id: str(said) for id, said in guesses.items()},
        "done": done | dict.fromkeys(guesses, True),
        "progress": repr(progress()),
    }


def restore(told: str) -> None:
    """Take up what an earlier visit kept; what does not fit is left out."""
    try:
        earlier = json.loads(told)
        tries, guesses = dict(earlier["tries"]), dict(earlier["guesses"])
    except (ValueError, TypeError, KeyError):
        return
    for id, was in tries.items():
        if id in EXERCISES and isinstance(was, list):
            exercises._TRIES[id] = [bool(one) for one in was]
    for id, said in guesses.items():
        if id in PREDICTIONS and isinstance(said, str):
            exercises._GUESSES[id] = said
