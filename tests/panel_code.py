"""What a panel's HTML tells: its text, its sentence, and its code, run as a learner would."""

from __future__ import annotations

import ast
import re
from html import unescape
from typing import Any


def text_of(html: str) -> str:
    """The text of a piece of HTML, without its tags."""
    return unescape(re.sub(r"<.*?>", "", html, flags=re.DOTALL))


def sentence_of(html: str) -> str:
    """The sentence below the picture of a handle."""
    [sentence] = re.findall(r"<p [^>]*>(.*?)</p>", html)
    return text_of(sentence)


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
