"""What a script needs to answer a guess without Python: on the front page and in chapters."""

from __future__ import annotations

from typing import Any

from llmtrain_course.exercises import PREDICTIONS, predict
from llmtrain_course.kit.exercise import Verdict
from llmtrain_helpers import units


def judging(id: str) -> dict[str, Any]:
    """What a page's script needs to answer a guess as the package does, in its words.

    A pair of braces stands for what was written.
    """
    known = PREDICTIONS[id]
    told = {
        "answered": Verdict(id, True, "{}", mark="→").html(str),
        "refused": Verdict(id, None, "{}").html(str),
    }
    if known.options:
        options = {
            one: {"said": known.said(one), "text": known.reveal(one)} for one in known.options
        }
        return told | {"options": options}
    refused = {"words": "many", "comma": "2,5", "low": "-1"}
    return told | {
        "truth": known.truth(),
        "shown": known.unit(known.truth()),
        "why": known.why,
        "units": units.spellings(known.asked) if known.asked else [],
        "refusals": {
            name: predict(id, written).text.replace(written, "{}")
            for name, written in refused.items()
        },
    }
