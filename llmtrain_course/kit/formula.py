"""Formulas in words of a question, such as `"8 * T * P / (n * X)"`: parsed, never executed.

A mistake of an exercise is the wrong formula itself, over the question's own values.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from llmtrain_helpers.checks import refuse

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sqrt": math.sqrt,
    "log": math.log,
    "ceil": math.ceil,
    "floor": math.floor,
    "min": min,
    "max": max,
}


def evaluate(formula: str, values: Mapping[str, float]) -> float:
    """Compute a formula of +, −, ·, /, ** and a few functions over some values by name.

    ValueError for anything else in it: another name, an attribute, a string.

    >>> evaluate("sqrt(C / (6 * each))", {"C": 6e20, "each": 25})
    2000000000.0
    """
    result: float = _compute(_parsed(formula), formula, values)
    return result


@lru_cache(maxsize=1024)
def _parsed(formula: str) -> ast.expr:
    try:
        return ast.parse(formula, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        return refuse("formula", formula, "isn't a formula: write it as you would in Python")


def _compute(node: ast.expr, formula: str, values: Mapping[str, float]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in values:
            return values[name]
        case ast.Name(id=name):
            return refuse(
                "formula", formula, f"uses the name {name}, but it can only use {', '.join(values)}"
            )
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_compute(operand, formula, values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            sides = _compute(left, formula, values), _compute(right, formula, values)
            return _OPERATORS[type(op)](*sides)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_compute(x, formula, values) for x in arguments))
    return refuse("formula", formula, f"contains {ast.unparse(node)}, which a formula can't use")


Mistakes = Mapping[str | float, str]
"""Wrong answers and the reply to each: as a formula over the question's values and its
`key`, such as `"key / 10"`, or as a number."""


def wrong_answers(
    mistakes: Mistakes, values: Mapping[str, float], key: float
) -> list[tuple[float, str]]:
    """Return each wrong answer as a number, with its reply."""
    names = {**values, "key": key}
    return [
        (evaluate(wrong, names) if isinstance(wrong, str) else wrong, reply)
        for wrong, reply in mistakes.items()
    ]
