"""What was answered in the pages as they are saved: for the map of the course."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from llmtrain_course.kit import ids

LARGEST = 20_000_000
"""Bytes of a notebook that is still read."""

_PAGE = re.compile(r"\d\d_[a-z_]+\.ipynb")
_VERDICT = re.compile(r"^[✓→] ([\w-]+):", re.MULTILINE)
_COLOR = re.compile(r"\x1b\[\d+m")


def saved_answers(folder: Path) -> set[str]:
    """The exercises answered rightly, and the guesses made, in a folder's saved pages.

    A page that cannot be read counts as untouched. With `LLMTRAIN_RUN=example` nothing
    is read: the course as it is given out.
    """
    if os.environ.get("LLMTRAIN_RUN") == "example":
        return set()
    done: set[str] = set()
    try:
        pages = sorted(page for page in folder.iterdir() if _PAGE.fullmatch(page.name))
    except OSError:
        return done
    for page in pages:
        try:
            if page.stat().st_size <= LARGEST:
                done |= answered_in(page.read_text("utf-8"), page.stem[3:])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return done


def answered_in(text: str, chapter: str) -> set[str]:
    """Return the ids in a page's saved verdicts; those of another chapter don't count.

    An exercise that has moved counts on the page where it was, too.

    >>> answered_in('{"cells": [{"outputs": [{"text": ["✓ duration-a: right"]}]}]}', "duration")
    {'duration-a'}
    """
    verdicts = set[str]()
    for cell in json.loads(text)["cells"]:
        for output in cell.get("outputs", []):
            output_text = output.get("data", {}).get("text/plain", output.get("text", ""))
            words = _COLOR.sub("", "".join(output_text))
            verdicts.update(_VERDICT.findall(words))
    return {
        ids.current(id)
        for id in verdicts
        if chapter in (ids.chapter_of(ids.with_words(id)), ids.chapter_of(ids.current(id)))
    }
