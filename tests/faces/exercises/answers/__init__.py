"""Right answers and slips of every exercise, a file a chapter."""

from tests.faces.exercises.answers import (
    activations,
    batch,
    budget,
    calendar,
    communication,
    duration,
    finetune,
    flops,
    measure,
    parallelism,
    parameters,
    plan,
    precision,
    start_here,
)
from tests.faces.exercises.answers.table import Answers

CHAPTERS = [start_here, parameters, flops, duration, batch, precision, activations]
CHAPTERS += [communication, parallelism, plan, calendar, budget, measure, finetune]

ANSWERS: dict[str, Answers] = {
    id: answers for chapter in CHAPTERS for id, answers in chapter.ANSWERS.items()
}
