"""The drawings of chapter 00: prefixes, the whole question, and what a budget makes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log10
from typing import NamedTuple

from llmtrain_helpers import units
from llmtrain_helpers.drawings.common import (
    COLORS,
    Drawing,
    Style,
    arrow,
    fits,
    ghost,
    line,
    rect,
    text,
)
from llmtrain_helpers.duration import cost, flops_per_parameter, training_seconds
from llmtrain_helpers.evidence.published import accelerator, architecture, run
from llmtrain_helpers.parameters import count_parameters

WIDTH = 860

BOLD: Style = {"font_weight": "bold"}
QUIET = COLORS["memory"]

STEPS = [
    ("k", "kilo", "thousand", "10³"),
    ("M", "mega", "million", "10⁶"),
    ("G", "giga", "billion", "10⁹"),
    ("T", "tera", "trillion", "10¹²"),
    ("P", "peta", "quadrillion", "10¹⁵"),
    ("E", "exa", "quintillion", "10¹⁸"),
    ("Z", "zetta", "sextillion", "10²¹"),
]
"""Prefix, its name, the word for as many, and the power of ten."""


def examples() -> list[str]:
    """Something of each size, from a thousand to 10²¹, computed."""
    gpt3, small = architecture("GPT-3 175B"), architecture("gpt2")
    llama = count_parameters(architecture("Llama-3.1-8B")).total
    reads = run("GPT-3 175B")["sequence_length"]
    chip, cluster = accelerator("H100 SXM"), run("Llama 3.1 405B")["num_gpus"]
    tokens = run("GPT-3 175B")["tokens"]
    work = flops_per_parameter("none") * tokens * count_parameters(gpt3).total
    return [
        f"{units.exact(reads)} tokens: what GPT-3 reads at once",
        f"{units.count(count_parameters(small).total)} parameters: the smallest GPT-2",
        f"{units.count(llama)} parameters: Llama 3.1 8B (in such names B is billion)",
        f"{units.flops_per_second(accelerator('A100').peak('bf16'))}: operations a "
        "second that an A100 promises",
        f"{units.gigabytes(cluster * chip.memory)}: bytes of memory in {units.exact(cluster)} H100",
        f"{units.flops_per_second(cluster * chip.peak('bf16'))}: operations a second "
        f"that {units.exact(cluster)} H100 promise",
        f"{units.flops(work)}: operations that the training of GPT-3 takes",
    ]


def ladder() -> Drawing:
    """The prefixes from thousand to 10²¹ as stairs, with an example on each."""
    height = 44 * len(STEPS) + 64
    svg, words = text(20, 32, "Each stair is a thousand times the one below", 17, **BOLD), []
    for i, (step, example) in enumerate(zip(STEPS, examples(), strict=True)):
        letter, name, word, power = step
        y, width = height - 58 - 44 * i, 62 + 30 * i
        svg += rect(20, y, width, 40, QUIET, f"{name}, {word}", rx=3)
        svg += text(width - 2, y + 27, letter, 20, "end", "white", **BOLD)
        svg += text(width + 36, y + 17, f"{power}  {word}, {name}", 15, **BOLD)
        svg += text(width + 36, y + 35, example, 15.5)
        words.append(f"{letter} ({name}, {power}): {example}")
    stairs = "Stairs of prefixes, each a thousand times the one below."
    return Drawing(svg, WIDTH, height, f"{stairs} {'; '.join(words)}.")


_SUMS = [
    ["operations", "×", "parameters", "×", "tokens", "=", "work"],
    ["work", "÷ (", "GPUs", "×", "rate of each", ") =", "time"],
    ["hours", "×", "GPUs", "×", "price of a GPU-hour", "=", "money"],
]


def question(
    parameters: float, tokens: float, num_gpus: int, flops_per_gpu: float, price: float
) -> Drawing:
    """The question of the course in one picture: from a token's passes to money.

    Takes the four numbers of a run without recomputation, and dollars a GPU-hour.
    """
    given = (round(tokens), round(parameters), num_gpus, flops_per_gpu)
    seconds = training_seconds(*given, "none")
    values = {
        "operations": "6 (or 8)",
        "parameters": units.count(parameters),
        "tokens": units.count(tokens, 2),
        "work": units.flops(seconds * num_gpus * flops_per_gpu),
        "GPUs": units.exact(num_gpus),
        "rate of each": units.flops_per_second(flops_per_gpu),
        "time": units.duration(seconds),
        "price of a GPU-hour": units.dollars(price),
        "hours": f"{units.digits(seconds / 3600)} hours",
        "money": units.dollars(cost(seconds, num_gpus, price)),
    }
    svg = _passes()
    for row, cells in enumerate(_SUMS):  # one below the other; what comes out is filled
        for i, cell in enumerate(cells):
            x, y = 24 + 109 * i, 240 + 88 * row
            if i % 2:
                svg += text(x + 78, y + 42, cell, 22, "middle", **BOLD)
                continue
            fill = QUIET if i == 6 else "none"
            fill = COLORS["weights"] if cell == "parameters" else fill
            ink, edge = "white", Style(rx=8)
            if fill == "none":
                ink, edge = "currentColor", Style(rx=8, stroke="currentColor", stroke_width=1.5)
            size = 18 if fits(values[cell], 140, 18) else 15
            svg += rect(x - 8, y, 172, 64, fill, cell, **edge)
            svg += text(x + 78, y + 28, values[cell], size, "middle", ink, **BOLD)
            svg += text(x + 78, y + 50, cell, 15.5, "middle", ink)
    label = ", ".join(f"{name} {value}" for name, value in values.items())
    words = (
        "A token goes through the layers: forward, 2 operations for each parameter, "
        "to predict the next token; backward, 4, to find how each parameter should "
        "change; where a run recomputes, forward again, 2 more. Operations × "
        "parameters × tokens = work; work ÷ (GPUs × rate of each) = time; hours × GPUs "
        f"× price of a GPU-hour = money. Here: {label}."
    )
    return Drawing(svg, WIDTH, 508, words)


def _passes() -> str:
    """A token's way through the layers: forward, back, and perhaps forward again."""
    blue, orange, grey = (COLORS[x] for x in ("weights", "gradients", "recomputed"))
    svg = text(20, 24, "What one token costs, for each parameter", 17, **BOLD)
    for y in (58, 92, 126, 160):
        svg += rect(330, y, 200, 28, blue, "a layer of the model", rx=4)
        svg += text(430, y + 19, "a layer: parameters", 15.5, "middle", "white")
    svg += arrow(312, 188, 312, 58, stroke_width=4)
    svg += arrow(296, 188, 296, 58, stroke=grey, stroke_width=3, stroke_dasharray="6 4")
    svg += arrow(548, 58, 548, 188, stroke=orange, stroke_width=4)
    svg += text(430, 214, "in: the tokens so far", 15.5, "middle")
    svg += text(430, 46, "out: a guess of the next token", 15.5, "middle")
    for x, y, anchor, said, meaning in (
        (284, 80, "end", "forward: 2 operations", "predict the next token"),
        (284, 148, "end", "forward again: 2 more", "only if the run recomputes"),
        (566, 80, "start", "backward: 4 operations", "how should it change?"),
        (566, 148, "start", "6 in all, or 8", "with what is computed again"),
    ):
        svg += text(x, y, said, 16, anchor, **BOLD) + text(x, y + 20, meaning, 15.5, anchor)
    return svg


class Layout(NamedTuple):
    """Where the parts of the budget's picture stand."""

    width: int
    gpus: tuple[int, int, int]  # x, y, columns
    days: tuple[int, int, int]
    work: tuple[int, int]
    signs: tuple[tuple[int, int], tuple[int, int]]  # of × and =
    lower: int  # how far the scale stands below where it stands on a wide page


WIDE = Layout(WIDTH, (20, 0, 16), (372, 0, 14), (684, 44), ((334, 84), (660, 84)), 0)
NARROW = Layout(400, (20, 0, 16), (20, 156, 12), (224, 306), ((340, 84), (200, 350)), 256)
"""As on a page, and as on a telephone."""

FIRST, LAST = 6, 14
"""The powers of ten of tokens at which the scale begins and ends."""


def budget(
    num_gpus: int,
    days: float,
    flops_per_gpu: float,
    tokens: float,
    marks: Sequence[tuple[str, float]],
    before: float | None = None,
    chip: Sequence[str] = (),
    layout: Layout = WIDE,
) -> Drawing:
    """GPUs and days as squares, the work they do, and a bar of the tokens it pays for.

    Takes the rate that each GPU reaches in FLOP/s, and the tokens.
    `marks` are tokens to compare with, by name; `before` the tokens of the picture
    before this one, which leave a dashed outline. `chip` says in two lines whose rate
    it is.
    """
    work = units.flops(num_gpus * flops_per_gpu * days * units.DAY)
    rate = units.flops_per_second(flops_per_gpu)
    rows = ceil(min(num_gpus, 64) / 16)
    x, y, _ = layout.gpus
    svg = ""
    for i, said in enumerate(chip or [f"each does {rate}"]):
        svg += text(x, y + 62 + 18 * rows + 20 * i, said, 15.5)
    svg += _squares(layout.gpus, num_gpus, "GPU")
    svg += _squares(layout.days, ceil(days), "day")
    x, y = layout.work
    svg += rect(x, y, 156, 69, QUIET, "work", rx=8)
    svg += text(x + 78, y + 32, work, 18, "middle", "white", **BOLD)
    svg += text(x + 78, y + 55, "of work", 15.5, "middle", "white")
    for sign, place in zip("×=", layout.signs, strict=True):
        svg += text(*place, sign, 26, "middle", **BOLD)
    scale = _scale(marks, layout.width) + _bar(tokens, before, layout.width)
    svg += f'<g transform="translate(0 {layout.lower})">{scale}</g>'
    label = "; ".join(f"{name}: {units.count(number, 2)}" for name, number in marks)
    words = (
        f"{units.exact(num_gpus)} GPUs for {units.digits(days)} days, each at {rate}, "
        f"do {work} of work. A bar on a logarithmic scale: "
        f"{units.count(tokens, 2)} tokens. Marks: {label}."
    )
    return Drawing(svg, layout.width, 318 + layout.lower, words)


def _squares(place: tuple[int, int, int], number: int, what: str) -> str:
    """A block of squares, at most four rows; each stands for one thing, or for several."""
    x, y, columns = place
    each = ceil(number / (4 * columns))
    shown = ceil(number / each)
    fill = COLORS["weights"] if what == "GPU" else QUIET
    squares = "".join(
        rect(x + 18 * (i % columns), y + 44 + 18 * (i // columns), 15, 15, fill, rx=2)
        for i in range(shown)
    )
    many = units.plural(number, what)
    note = f", {units.exact(each)} a square" if each > 1 else ""
    return text(x, y + 30, many + note, 16, **BOLD) + squares


def _place(tokens: float, width: float) -> float:
    """Where so many tokens lie on the scale, which ends at its ends."""
    part = (log10(tokens) - FIRST) / (LAST - FIRST)
    return 20 + (width - 40) * min(max(part, 0.0), 1.0)


def _scale(marks: Sequence[tuple[str, float]], width: float) -> str:
    """The logarithmic scale under the bar, and above it the marks, dotted lines with names."""
    svg = line(20, 268, width - 20, 268)
    names = {6: "million", 9: "billion", 12: "trillion"}
    for power in range(FIRST, LAST + 1):
        x = _place(10.0**power, width)
        svg += line(x, 268, x, 276 if power in names else 272)
        if power in names:
            anchor = "start" if power == FIRST else "middle"
            svg += text(x, 294, f"1 {names[power]}", 15.5, anchor)
    svg += text(width - 20, 294, "tokens", 15.5, "end")
    largest_first = sorted(marks, key=lambda mark: -mark[1])
    for i, (name, tokens) in enumerate(largest_first):
        x, y = _place(tokens, width), 150 + 18 * i
        svg += line(x, y - 4, x, 268, stroke_width=1.5, stroke_dasharray="3 3")
        # the name stands to the left, where no lower line crosses it
        left = x > width / 4
        svg += text(x - 6 if left else x + 6, y + 4, name, 15, "end" if left else "start")
    return svg


def _bar(tokens: float, before: float | None, width: float) -> str:
    """The tokens as a bar, their number in it or behind it; dashed: before."""
    end = _place(tokens, width)
    svg = rect(20, 228, end - 20, 36, COLORS["weights"], "tokens", rx=3)
    label = f"{units.count(tokens, 2)} tokens"
    if end > min(240, 0.45 * width):
        svg += text(end - 10, 252, label, 17, "end", "white", **BOLD)
    else:
        svg += text(end + 10, 252, label, 17, **BOLD)
    was = _place(before, width) if before else end
    if abs(was - end) > 1:
        svg += ghost(20, 226, was - 20, 40, "at the start")
    return svg
