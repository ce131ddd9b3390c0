"""The text that people read in every panel, handle, picture and exercise, as plain text.

`make snapshots` writes it to `tests/words/`, one file per chapter, and a test compares. So
when a sentence changes, run the command and review the diff. There's nothing here about
places, shapes or colours: those can change without touching these files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

from llmtrain_course.activations import pictures as activations
from llmtrain_course.budget import pictures as budget
from llmtrain_course.calendar import pictures as calendar
from llmtrain_course.exercises import EXERCISES, PREDICTIONS
from llmtrain_course.kit import ids
from llmtrain_course.kit.cards import memory_of
from llmtrain_course.kit.drawing import Drawing
from llmtrain_course.kit.exercise import Numeric, grade
from llmtrain_course.kit.layout import Picture
from llmtrain_course.measure import pictures as measure
from llmtrain_course.panels import HANDLES, PANELS
from llmtrain_course.parameters import stack
from llmtrain_course.start_here import pictures as start_here
from llmtrain_helpers import (
    LAWS,
    OPTIMIZERS,
    calendar_days,
    compute_optimal,
    frontier,
    lora_memory,
    plan_run,
    published,
    shelf,
)
from tests.faces.exercises.answers import ANSWERS
from tests.panel_code import text_of
from tests.plan.cases import H100
from tools.notebooks import chapters

WORDS = Path(__file__).parent / "words"
PAGES = {path.stem[3:]: path.read_text("utf-8") for path in chapters()}
"""The text of each chapter's notebook, by the chapter's word."""
FRONT_PAGE = (Path(__file__).parents[1] / "site/front_page/page.html").read_text("utf-8")
LLAMA = published.architecture("Llama-3.1-8B", 4096)


def laws() -> Picture:
    ratios = {x: compute_optimal(5.76e23, x).tokens_per_parameter for x in ("kaplan", "besiroglu")}
    named = {LAWS[x].name: float(ratio) for x, ratio in ratios.items()}
    return budget.tokens_each(named, published.rows("tokens_per_parameter")[:12])


def glance() -> Picture:
    llama, h100 = published.architecture("Llama-3.1-8B", 8192), published.accelerator("H100")
    plan = plan_run(llama, h100, 64, 1e12, 512, recompute="none", zero_stage=3)
    return calendar.calendar_at_a_glance(calendar_days(plan), 30, "64 H100", 39)


def ways() -> Picture:
    one: Any = {"num_gpus": 1, "tokens": 1e9, "global_batch_size": 1, "recompute": "none"}
    memory = {
        name: plan_run(LLAMA, H100, **one, recipe=recipe).memory
        for name, recipe in OPTIMIZERS.items()
    }
    memory["LoRA"] = lora_memory(LLAMA, micro_batch_size=1)
    return budget.memory_of_ways(
        memory, {"24 GB": memory_of("RTX 4090"), "80 GB": memory_of("H100")}
    )


DRAWINGS: dict[str, dict[str, Callable[[], Drawing | Picture]]] = {
    "start_here": {"map": lambda: start_here.course_map({"00": (4, 4), "03": (2, 5)})},
    "parameters": {"stack": lambda: stack.stack(published.architecture("Gemma-3-27B (text)"))},
    "activations": {
        "gaps": lambda: activations.segments([[6, 6, -8], [6, -6, 6, -2], [6, 6, -8]], 10)
    },
    "calendar": {"glance": glance},
    "budget": {
        "frontier": lambda: budget.frontier_picture(frontier(H100, 64, 21, shelf()), "7.2B"),
        "laws": laws,
    },
    "measure": {"memory": measure.step_bytes},
    "finetune": {"ways": ways},
}
"""Pictures that no panel shows, by chapter."""


def snapshot(chapter: str) -> str:
    """Return everything a chapter says outside its page: a block per thing, a line per text."""
    blocks = [of_panel(chapter)] if chapter in PANELS else []
    blocks += [of_handle(name) for name in HANDLES if chapter_of(name) == chapter]
    blocks += [
        [f"# drawing {name}", draw().words] for name, draw in DRAWINGS.get(chapter, {}).items()
    ]
    blocks += [
        of_exercise(id) for id in [*EXERCISES, *PREDICTIONS] if ids.chapter_of(id) == chapter
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def chapter_of(handle: str) -> str:
    """Return the word of the chapter whose page shows a handle: the first, of the front page's."""
    if f'handle("{handle}"' in FRONT_PAGE:
        return "start_here"
    call = f'handle(\\"{handle}\\")'
    return next(word for word, page in PAGES.items() if call in page)


def of_panel(chapter: str) -> list[str]:
    panel, lines = PANELS[chapter], list[str]()
    for name in (next(iter(panel.presets)), *panel.static_presets):
        answer = panel.answer(panel.presets[name])
        lines += ["", f"# panel: {name}", *read(answer.html)]
        lines += [f"button: {label}" for label, _ in answer.offers]
    return lines[1:]


def of_handle(name: str) -> list[str]:
    return [f"# handle {name}", *read(HANDLES[name].render())]


def of_exercise(id: str) -> list[str]:
    return [f"# {id}", *(replies(id) if id in EXERCISES else revealed(id))]


def replies(id: str) -> Iterator[str]:
    """The replies to a right answer, to each common mistake and to the follow-ups; the hints."""
    exercise, answers = EXERCISES[id], ANSWERS[id]
    yield grade(id, answers.right[0], exercise, 0).text
    if isinstance(exercise, Numeric):
        yield from of_number(exercise)
        return
    yield from dict.fromkeys(
        grade(id, answer, exercise, 0).text for answer, _ in answers.common_mistakes
    )
    yield from (f"hint: {hint}" for hint in exercise.hints() if hint)
    for question in exercise.followups:
        assert isinstance(question.exercise, Numeric)
        yield grade(id, question.exercise.key(), exercise, 0, 1).text
        yield from of_number(question.exercise)


def of_number(exercise: Numeric) -> Iterator[str]:
    key = exercise.key()
    yield from (f"× {wrong / key:.5g}: {text}" for wrong, text in exercise.wrong_answers())
    yield from (f"hint: {hint}" for hint in exercise.hints() if hint)


def revealed(id: str) -> Iterator[str]:
    prediction = PREDICTIONS[id]
    truth = prediction.truth()
    guesses = [*prediction.options] if isinstance(truth, str) else [float(f"{truth:.3g}")]
    yield from map(prediction.reveal, guesses)


def read(html: str) -> Iterator[str]:
    """An answer from top to bottom: sentences, titles of folds, rows, pictures' alt text."""
    kinds = r"<svg .*?</svg>|<p\b.*?</p>|<summary>.*?</summary>|<tr>.*?</tr>"
    for part in re.findall(kinds, html, re.DOTALL):
        if part.startswith("<svg"):
            yield unescape(re.findall(r'aria-label="(.*?)"', part)[0])
        elif part.startswith("<tr"):
            yield " | ".join(map(text_of, re.findall(r"<t[dh].*?</t[dh]>", part)))
        else:
            title = part.startswith("<summary")
            yield f"[{text_of(part)}]" if title else text_of(part)


def main() -> None:
    """Write the snapshots of all chapters anew."""
    WORDS.mkdir(exist_ok=True)
    for chapter in ids.CHAPTERS:
        (WORDS / f"{chapter}.txt").write_text(snapshot(chapter), "utf-8")


if __name__ == "__main__":
    main()
