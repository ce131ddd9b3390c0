"""One form for the answers of every exercise, right and wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answers:
    """Answers of an exercise, right and wrong.

    `right` are right in any words, `replies` with the words beside them; `common_mistakes`
    are wrong, and the words beside them say why; `unanswered` are neither.
    """

    right: Sequence[Any]
    common_mistakes: Sequence[tuple[Any, str]]
    replies: Sequence[tuple[Any, str]] = ()
    unanswered: Sequence[Any] = ()
