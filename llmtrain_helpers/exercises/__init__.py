"""The exercises: `check(id, answer)` tells whether an answer is right, and if not, why.

Answer keys are computed by the package, never typed; one module a chapter.
"""

from llmtrain_helpers.exercises import (
    activations,
    batch,
    duration,
    flops,
    measure,
    parameters,
    plan,
    precision,
    start_here,
)
from llmtrain_helpers.exercises.common import Exercise, Verdict, judge

EXERCISES: dict[str, Exercise] = {
    **start_here.EXERCISES,
    **parameters.EXERCISES,
    **flops.EXERCISES,
    **duration.EXERCISES,
    **batch.EXERCISES,
    **precision.EXERCISES,
    **activations.EXERCISES,
    **plan.EXERCISES,
    **measure.EXERCISES,
}


def check(id: str, answer: object) -> Verdict:
    """The verdict on an answer; shown as one sentence, true when the answer is right.

    `answer` is a number in SI base units, a word, or a function, as the exercise asks;
    None says that nothing is answered yet. An unknown id is a ValueError.

    >>> check("01-a", None)
    ○ 01-a: no answer yet. Put in yours and run the cell again.
    """
    return judge(id, answer, EXERCISES)


__all__ = ["EXERCISES", "Exercise", "Verdict", "check"]
