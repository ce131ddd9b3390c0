"""What a script needs to answer a guess without Python: on the front page and in chapters."""

from __future__ import annotations

from typing import Any

from llmtrain_course.exercises import PREDICTIONS, predict
from llmtrain_course.kit.exercise import Verdict
from llmtrain_helpers import units


def guess_data(id: str) -> dict[str, Any]:
    """Collect what a page's script needs to answer a guess as the package does, in its words.

    A pair of braces stands for what was written.
    """
    prediction = PREDICTIONS[id]
    verdicts = {
        "answered": Verdict(id, True, "{}", mark="→").html(str),
        "refused": Verdict(id, None, "{}").html(str),
    }
    if prediction.options:
        options = {
            option: {"echo": prediction.echo(option), "text": prediction.reveal(option)}
            for option in prediction.options
        }
        return verdicts | {"options": options}
    refused = {"words": "many", "comma": "2,5", "low": "-1"}
    return verdicts | {
        "truth": prediction.truth(),
        "formatted": prediction.unit(prediction.truth()),
        "why": prediction.why,
        "units": units.spellings(prediction.asked) if prediction.asked else [],
        "refusals": {
            name: predict(id, written).text.replace(written, "{}")
            for name, written in refused.items()
        },
    }
