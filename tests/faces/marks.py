"""What a description says before it's laid out: its marks and spans, with the values they're at.

That each then stands where its axis says, at any width, is held for all of them by `test_kit`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from llmtrain_course.kit.chart import Mark
from llmtrain_course.kit.lanes import Limit, Point, Span
from llmtrain_course.kit.layout import Picture

M = TypeVar("M", bound=Mark | Span | Point | Limit)


def every(part: Any) -> Iterator[Any]:
    """The marks, spans, points and limits inside a description that aren't hidden."""
    if isinstance(part, Mark | Span | Point | Limit):
        if not part.hidden:
            yield part
    elif is_dataclass(part):
        for field in fields(part):
            yield from every(getattr(part, field.name))
    elif isinstance(part, list | tuple):
        for each in part:
            yield from every(each)


def title_of(part: Any) -> str:
    """What a pointer on it reads, or its name in the key, or its label."""
    words = (getattr(part, kind, "") for kind in ("title", "name", "label"))
    return next((each for each in words if isinstance(each, str) and each), "")


def marks(picture: Picture, kind: type[M], title: str = "") -> list[M]:
    """The marks of a kind whose title begins with these words."""
    each = [part for part in every(picture) if isinstance(part, kind)]
    return [part for part in each if title_of(part).startswith(title)]


def length(picture: Picture, title: str) -> float:
    """The lengths of all spans with exactly this title, in a row."""
    spans = [span for span in marks(picture, Span) if title_of(span) == title]
    return sum(span.end - span.start for span in spans)


def colored(picture: Picture, kind: type[M], color: str) -> list[M]:
    """The marks of a kind that have a colour."""
    return [part for part in marks(picture, kind) if part.color == color]
