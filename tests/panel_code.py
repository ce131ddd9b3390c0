"""The code that a panel shows, run as a learner would who copies it."""

from __future__ import annotations

import ast
import re
from html import unescape
from typing import Any


def code_of(html: str) -> str:
    """The code of an answer, as it is read on the screen."""
    match = re.search(r"<pre[^>]*>(.*?)</pre>", html, re.DOTALL)
    assert match, html[:200]
    return unescape(match[1])


def value_of(html: str) -> Any:
    """What the last line of an answer's code gives, with nothing but its imports."""
    *steps, last = ast.parse(code_of(html)).body
    assert isinstance(last, ast.Expr)
    names: dict[str, Any] = {}
    exec(compile(ast.Module(steps, []), "<panel>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<panel>", "eval"), names)
