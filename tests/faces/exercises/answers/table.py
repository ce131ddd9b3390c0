"""One form for the answers of every exercise, right and wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answers:
    """Answers of an exercise, with words of the verdict beside `told` and `common_mistakes`.

    `right` are right in any words, `told` in these words; `common_mistakes` are wrong, and each
    is told why; `unanswered` are neither.
    """

    right: Sequence[Any]
    common_mistakes: Sequence[tuple[Any, str]]
    told: Sequence[tuple[Any, str]] = ()
    unanswered: Sequence[Any] = ()
