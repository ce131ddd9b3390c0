"""What a reader reads in every panel as saved, in drawings beside them, in verdicts.

The files in `words` have a line for each sentence, title, row and picture; nothing of
places and colours. Nothing writes them: pages are written anew after a slip, and these
are edited by hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from llmtrain_helpers import (
    LAWS,
    OPTIMIZERS,
    compute_optimal,
    count_flops,
    frontier,
    lora_memory,
    plan_run,
    shelf,
)
from llmtrain_helpers.drawings import activations, budget, calendar, flops, stack, start_here
from llmtrain_helpers.drawings.common import Drawing
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS
from llmtrain_helpers.exercises.common import Numeric, judge
from llmtrain_helpers.panels import HANDLES, PANELS
from tests.faces.exercises.answers import ANSWERS
from tests.plan.cases import H100

WORDS = Path(__file__).parent / "words"
LLAMA = published.architecture("Llama-3.1-8B", 4096)


def laws() -> Drawing:
    ratios = {x: compute_optimal(5.76e23, x).tokens_per_parameter for x in ("kaplan", "besiroglu")}
    named = {LAWS[x].name: float(ratio) for x, ratio in ratios.items()}
    return budget.tokens_each(named, published.rows("tokens_per_parameter")[:12])


def ways() -> Drawing:
    one: Any = {"num_gpus": 1, "tokens": 1e9, "global_batch_size": 1, "recompute": "none"}
    memory = {
        name: plan_run(LLAMA, H100, **one, recipe=recipe).memory
        for name, recipe in OPTIMIZERS.items()
    }
    memory["LoRA"] = lora_memory(LLAMA, micro_batch_size=1)
    return budget.memory_of_ways(memory, {"24 GB": 24e9, "80 GB": 80e9})


DRAWINGS: dict[str, Callable[[], Drawing]] = {
    "the map of 00": lambda: start_here.course_map({"00": (4, 4), "03": (2, 5)}),
    "a stack of 01": lambda: stack.stack(published.architecture("Gemma-3-27B (text)")),
    "the peak of 02": lambda: flops.filled(count_flops(LLAMA, 64, "selective"), 1.4e14, 3.12e14),
    "gaps of 06": lambda: activations.segments([[6, 6, -8], [6, -6, 6, -2], [6, 6, -8]], 10),
    "stops of 09": calendar.stops_of_nodes,
    "the frontier of 10": lambda: budget.frontier_picture(frontier(H100, 64, 21, shelf()), "7.2B"),
    "laws of 10": laws,
    "ways of 12": ways,
}
"""What no panel shows, by its place in the course."""


@pytest.mark.parametrize("word", PANELS)
def test_a_panel_reads_as_it_is_held(word: str) -> None:
    panel = PANELS[word]
    told: list[str] = []
    for name in (next(iter(panel.presets)), *panel.stills):
        answer = panel.answer(panel.presets[name])
        told += [f"# {name}", *read(answer.html)]
        told += [f"button: {label}" for label, _ in answer.offers]
    assert told == held(word)


@pytest.mark.parametrize("name", HANDLES)
def test_a_handle_reads_as_it_is_held(name: str) -> None:
    lines = held("handles")
    begin = lines.index(f"# {name}") + 1
    assert [*read(HANDLES[name].render())] == lines[begin : begin + 5]


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_reads_as_it_is_held(name: str) -> None:
    drawing = DRAWINGS[name]()
    lines = held("drawings")
    begin = lines.index(f"# {name}") + 1
    assert [*read_picture(drawing.words, drawing.body)] == lines[begin : begin + 4]


@pytest.mark.parametrize("id", [*EXERCISES, *PREDICTIONS])
def test_an_exercise_reads_as_it_is_held(id: str) -> None:
    lines = held("exercises")
    begin = lines.index(f"# {id}") + 1
    told = [*(answered(id) if id in EXERCISES else guessed(id))]
    assert told == lines[begin : begin + len(told)]
    assert lines[begin + len(told) :][:1] in ([], [""])


def answered(id: str) -> Iterator[str]:
    """What is said to a right answer, to each slip, and to those who ask again."""
    exercise, known = EXERCISES[id], ANSWERS[id]
    yield judge(id, known.right[0], exercise, 0).text
    if isinstance(exercise, Numeric):
        yield from of_number(exercise)
        return
    yield from dict.fromkeys(judge(id, answer, exercise, 0).text for answer, _ in known.slips)
    yield from (f"hint: {hint}" for hint in exercise.hints() if hint)
    for question in exercise.again:
        assert isinstance(question.exercise, Numeric)
        yield judge(id, question.exercise.key(), exercise, 0, 1).text
        yield from of_number(question.exercise)


def of_number(exercise: Numeric) -> Iterator[str]:
    yield from (f"× {x:.5g}: {text}" for x, text in exercise.all_slips().items())
    yield from (f"hint: {hint}" for hint in exercise.hints() if hint)


def guessed(id: str) -> Iterator[str]:
    prediction = PREDICTIONS[id]
    truth = prediction.truth()
    guesses = [*prediction.options] if isinstance(truth, str) else [float(f"{truth:.3g}")]
    yield from map(prediction.reveal, guesses)


def held(name: str) -> list[str]:
    return (WORDS / f"{name}.txt").read_text("utf-8").splitlines()


def read(html: str) -> Iterator[str]:
    """An answer from top to bottom: sentences, titles of what is folded, rows, pictures."""
    kinds = r"<svg .*?</svg>|<p\b.*?</p>|<summary>.*?</summary>|<tr>.*?</tr>"
    for found in re.findall(kinds, html, re.DOTALL):
        if found.startswith("<svg"):
            words = re.findall(r'aria-label="(.*?)"', found)[0]
            yield from read_picture(unescape(words), found)
        elif found.startswith("<tr"):
            yield " | ".join(map(plain, re.findall(r"<t[dh].*?</t[dh]>", found)))
        else:
            title = found.startswith("<summary")
            yield f"[{plain(found)}]" if title else plain(found)


def read_picture(words: str, body: str) -> Iterator[str]:
    """Its words; what is written on it and told by a pointer; how many shapes it has."""
    yield words
    written = map(unescape, re.findall(r"<text.*?>(.*?)</text>", body))
    pointed = Counter(map(unescape, re.findall(r"<title>(.*?)</title>", body)))
    shapes = Counter(re.findall(r"<(rect|line|circle|poly\w+|path)\b", body))
    yield f"written: {' · '.join(written)}"
    yield f"pointed at: {' · '.join(f'{title} ({n})' for title, n in pointed.items())}".rstrip()
    yield f"shapes: {' · '.join(f'{n} {shape}' for shape, n in sorted(shapes.items()))}"


def plain(html: str) -> str:
    return unescape(re.sub(r"<.*?>", "", html, flags=re.DOTALL))
