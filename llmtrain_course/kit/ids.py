"""The ids of exercises: a chapter's word and the exercise's own, as in plan-c.

They used to begin with the chapter's number, and some have moved to another chapter.
Learners keep notebooks, and browsers keep answers, that have the old ids: `current` gives
such an id its present form. Standard library only.
"""

from __future__ import annotations

import re

CHAPTERS = (
    *("start_here", "parameters", "flops", "duration", "batch", "precision", "activations"),
    *("communication", "parallelism", "plan", "calendar", "budget", "measure", "finetune"),
)
"""The chapters' words, in the order of their pages."""

NUMBERED = (
    *("start_here", "parameters", "flops", "duration", "batch", "precision", "activations"),
    *("communication", "plan", "calendar", "budget", "measure", "finetune"),
)
"""The chapter that each number stood for in an id. This doesn't change any more: a
chapter that gets another number keeps the ids it had."""

RENAMED = {
    "communication-b": "parallelism-a",
    "communication-c": "parallelism-b",
    "communication-d": "parallelism-c",
    "communication-e": "parallelism-b",
    "communication-share": "parallelism-share",
    "batch-guess": "parallelism-guess",
}
"""Exercises and guesses that have moved to another page or have another letter now."""

_FORMER = re.compile(r"(?<![\w-])(\d\d)-([a-z]+)(?![\w-])")
_MOVED = re.compile(rf"(?<![\w-])({'|'.join(RENAMED)})(?![\w-])")
_ID = re.compile(r"([a-z_]+)-[a-z]+")


def current(text: str) -> str:
    """Replace the old ids in a text by those of today.

    >>> current('check("08-c", answer)')
    'check("plan-c", answer)'
    >>> current("07-b and communication-b")
    'parallelism-a and parallelism-a'
    """
    return _MOVED.sub(lambda match: RENAMED[match[1]], with_words(text))


def with_words(text: str) -> str:
    """Replace numbers at the beginning of ids by their chapters' words, and nothing else.

    >>> with_words("07-b and communication-b")
    'communication-b and communication-b'
    """
    return _FORMER.sub(_with_word, text)


def _with_word(former: re.Match[str]) -> str:
    number = int(former[1])
    return f"{NUMBERED[number]}-{former[2]}" if number < len(NUMBERED) else former[0]


def chapter_of(id: str) -> str:
    """Return the chapter that an id belongs to, and "" if there's no such chapter.

    >>> chapter_of("plan-c"), chapter_of("nobody-a")
    ('plan', '')
    """
    match = _ID.fullmatch(id)
    return match[1] if match and match[1] in CHAPTERS else ""


def part_of(id: str) -> str:
    """Return an id without its chapter: the letter of an exercise, or its word.

    >>> part_of("plan-c"), part_of("start_here-guess")
    ('c', 'guess')
    """
    return id.rpartition("-")[2]


def page_of(chapter: str) -> str:
    """Return the name of a chapter's notebook, without its ending.

    >>> page_of("plan")
    '09_plan'
    """
    return f"{CHAPTERS.index(chapter):02}_{chapter}"


def place(id: str) -> int:
    """Return where an id's chapter stands in the course, to sort by."""
    return CHAPTERS.index(chapter_of(id))
