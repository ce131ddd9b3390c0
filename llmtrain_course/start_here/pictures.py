"""The pictures of chapter 00: the machine, one token's way, real runs, the course."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, log10
from typing import NamedTuple

from llmtrain_course.kit.drawing import (
    CARD,
    COLORS,
    Drawing,
    Style,
    arrow,
    circle,
    ghost,
    line,
    rect,
    text,
)
from llmtrain_course.kit.lanes import Bars, Lane, Limit, Span
from llmtrain_course.kit.layout import PAGE, Picture
from llmtrain_course.kit.scale import Scale
from llmtrain_helpers import units
from llmtrain_helpers.published import share_of_run

BOLD: Style = {"font_weight": "bold"}
BOX: Style = {"stroke": "currentColor", "stroke_width": 1.5, "rx": 4}
QUIET, MODEL, TOKENS = COLORS["memory"], COLORS["weights"], COLORS["useful"]
FORWARD, BACKWARD = COLORS["weights"], COLORS["gradients"]


# --- the machine: GPUs × days = work, and the tokens that it pays for


class Layout(NamedTuple):
    """Where the parts of the machine stand."""

    width: int
    gpus: tuple[int, int, int]  # x, y, columns
    days: tuple[int, int, int]
    work: tuple[int, int]
    token: tuple[int, int]
    signs: tuple[tuple[str, int, int], ...]
    block: float  # from one block of tokens to the next
    lower: int  # how far the field of tokens stands below where it stands on a wide page


WIDE = Layout(
    700,
    (16, 0, 8),
    (192, 0, 10),
    (370, 26),
    (536, 26),
    (("×", 176, 70), ("=", 355, 70), ("÷", 523, 70), ("=", 20, 242)),
    16,
    0,
)
NARROW = Layout(
    400,
    (20, 0, 8),
    (204, 0, 10),
    (34, 166),
    (220, 166),
    (("×", 188, 66), ("=", 16, 210), ("÷", 203, 210), ("=", 20, 336)),
    8.5,
    94,
)
"""As on a page, and as on a telephone."""

BLOCK, COLUMNS, ROWS = 5e9, 40, 5
"""The tokens of a block, and how many blocks the field has, in columns that fill from below."""

FIRST, LAST, LEFT, TOP = 6, 14, 38, 196
"""The powers of ten of tokens at which the scale begins and ends; where it begins, and
where the field does."""


def machine(
    num_gpus: int,
    days: float,
    parameters: float,
    flops_per_gpu: float,
    flops_per_token: float,
    tokens: float,
    marks: Sequence[tuple[str, float]],
    before: float | None = None,
    chip: Sequence[str] = (),
    width: int = PAGE,
    targets: Sequence[tuple[str, float]] = (),
) -> Drawing:
    """GPUs and days as squares, the work they do, what a token takes, and a field of tokens.

    Takes the rate that each GPU reaches in FLOP/s, and the tokens. `marks` are tokens on
    the scale below the field, by name, `targets` those that are marked in the field;
    `before` the tokens of the picture before this one, which leave a dashed outline.
    `chip` says in two lines what each GPU does.
    """
    layout = WIDE if width >= PAGE else NARROW
    work = units.powers(num_gpus * flops_per_gpu * days * units.DAY)
    rate, each = units.powers(flops_per_gpu), units.edited(flops_per_token)
    size = units.short(parameters)
    svg = _squares(layout.gpus, num_gpus, "GPU", chip)
    svg += _squares(layout.days, ceil(days), "day")
    svg += _box(layout.work, 140, QUIET, work, "operations")
    svg += _box(layout.token, 150, MODEL, each, f"a token: 6 × {size}")
    for sign, left, top in layout.signs:
        svg += text(left, top, sign, 26, "middle", **BOLD)
    low = TOP + 16 * ROWS + 16 + 18 * (len(targets) + (layout is NARROW))
    field = _field(tokens, before, targets, layout.block) + _scale(tokens, marks, layout, low + 22)
    svg += f'<g transform="translate(0 {layout.lower})">{field}</g>'
    inside, below = (
        "; ".join(f"{name} {units.count(number, 2)}" for name, number in named)
        for named in (targets, marks)
    )
    words = (
        f"{units.plural(num_gpus, 'GPU')} × {units.digits(days)} days = {work} operations, each "
        f"GPU {rate} a second; ÷ {each} for a token (6 × {size} parameters) = "
        f"{units.count(tokens, 2)} tokens, as blocks of {units.count(BLOCK, 1)}. "
        f"Marked among them: {inside}; on a scale in powers of ten: {below}."
    )
    return Drawing(svg, layout.width, low + 66 + layout.lower, words)


def _box(place: tuple[int, int], width: int, fill: str, number: str, what: str) -> str:
    x, y = place
    svg = rect(x, y, width, 70, fill, what, rx=8)
    svg += text(x + width / 2, y + 32, number, 19, "middle", "white", **BOLD)
    return svg + text(x + width / 2, y + 54, what, 14.5, "middle", "white")


def _squares(place: tuple[int, int, int], number: int, what: str, below: Sequence[str] = ()) -> str:
    """A block of squares, at most four rows; each stands for one thing, or for several."""
    x, y, columns = place
    each = ceil(number / (4 * columns))
    drawn = ceil(number / each)
    squares = "".join(
        rect(x + 15 * (i % columns), y + 40 + 15 * (i // columns), 12, 12, QUIET, rx=2)
        for i in range(drawn)
    )
    notes = [*([f"a square: {units.plural(each, what)}"] if each > 1 else []), *below]
    low = y + 58 + 15 * ceil(drawn / columns)
    for i, note in enumerate(notes):
        squares += text(x, low + 20 * i, note, 15)
    return text(x, y + 30, units.plural(number, what), 16, **BOLD) + squares


def _field(
    tokens: float, before: float | None, targets: Sequence[tuple[str, float]], block: float
) -> str:
    """The tokens as blocks in a field that stays: twice as many are twice the blocks."""
    wide, high, whole = COLUMNS * block, 16 * ROWS, BLOCK * COLUMNS * ROWS
    svg = text(LEFT, TOP - 10, f"{units.count(tokens, 2)} tokens", 18, **BOLD)
    scale = f"a block: {units.count(BLOCK, 1)}{' tokens' if wide > 500 else ''}"
    if tokens > whole:
        scale = f"the field, {units.digits(tokens / whole, 2)} times"
    svg += text(LEFT + wide, TOP - 10, scale, 15, "end")
    svg += rect(LEFT, TOP, wide, high, QUIET, "the field", opacity=0.18)
    columns, rest = divmod(min(tokens, whole) / BLOCK, ROWS)
    svg += rect(LEFT, TOP, columns * block, high, TOKENS, "tokens") if columns else ""
    if rest:
        x = LEFT + columns * block
        svg += rect(x, TOP + high - 16 * rest, block, max(16 * rest, 1), TOKENS, "tokens")
    seams = "".join(f"M{LEFT + block * i:g} {TOP}v{high}" for i in range(1, COLUMNS))
    seams += "".join(f"M{LEFT} {TOP + 16 * i}h{wide:g}" for i in range(1, ROWS))
    svg += f'<path d="{seams}" stroke="{CARD}" stroke-width="2" fill="none"/>'
    y = TOP + high + 18
    if before and before != tokens:
        end = min(before, whole) / BLOCK / ROWS * block
        svg += ghost(LEFT, TOP - 2, max(end, 2), high + 4, "at the start")
        wide_enough = wide > 500  # the names of what is wanted
        down = y if wide_enough else y + 18 * len(targets)
        svg += text(LEFT + wide, down, "dashed: the start", 15, "end")
    for i, (name, number) in enumerate(targets):
        x = LEFT + min(number, whole) / BLOCK / ROWS * block
        after = number > whole
        left = x > LEFT + wide / 2
        if not after:
            svg += line(x, TOP - 6, x, y + 18 * i + 4, stroke_width=2.5)
        label = f"{name} {units.count(number, 2)}{'; further right' if after else ''}"
        svg += text(x - 6 if left else x + 6, y + 18 * i, label, 15, "end" if left else "start")
    return svg


def _place(tokens: float, width: float) -> float:
    """Where so many tokens lie on the scale, which ends at its ends."""
    part = (log10(tokens) - FIRST) / (LAST - FIRST)
    return LEFT + (width - LEFT - 20) * min(max(part, 0.0), 1.0)


def _scale(tokens: float, marks: Sequence[tuple[str, float]], layout: Layout, y: float) -> str:
    """A thin bar of the tokens in powers of ten, beside those that others trained on."""
    width = layout.width
    svg = rect(LEFT, y - 4, _place(tokens, width) - LEFT, 8, TOKENS, "tokens")
    svg += line(LEFT, y + 4, width - 20, y + 4)
    if tokens > 10.0**LAST:  # more than the scale has room for
        svg += arrow(width - 22, y, width - 2, y, stroke=TOKENS, stroke_width=4)
    names = {6: "million", 9: "billion", 12: "trillion"}
    for power in range(FIRST, LAST + 1):
        x = _place(10.0**power, width)
        svg += line(x, y + 4, x, y + (12 if power in names else 8))
        if power in names:
            svg += text(x, y + 28, f"1 {names[power]}", 14, "start" if power == FIRST else "middle")
    svg += text(width - 20, y + 28, "tokens", 14, "end")
    svg += text(LEFT, y - 10, "in powers of ten", 14)
    narrow = width < 500  # there the field's mark alone says where GPT-3 is
    for name, number in [
        mark for mark in marks if not (narrow and mark[1] < BLOCK * COLUMNS * ROWS)
    ]:
        x = _place(number, width)
        svg += line(x, y - 7, x, y + 4, stroke_width=2)
        svg += text(min(x + 24, width - 6), y - 10, name, 14, "end")
    return svg


# --- one token's way through the layers, forward and back


LAYERS = 4
"""How many layers the drawn stack has."""


class Way(NamedTuple):
    """Where the parts of a token's way stand."""

    width: int
    columns: tuple[int, int, int]
    column: int  # how wide each is
    middles: tuple[int, int, int, int]  # of what stands above
    token: tuple[int, int, str]  # x of the token and of its name, and its anchor
    error: tuple[int, int, int, str]  # the same, with y of its name at the top
    bar: tuple[int, int, int]  # x, y and length of all operations


WAY = Way(
    640,
    (150, 270, 388),
    116,
    (208, 386, 327, 445),
    (66, 50, "end"),
    (530, 546, 0, "start"),
    (150, 322, 354),
)
NARROW_WAY = Way(
    370,
    (92, 176, 260),
    80,
    (128, 258, 212, 306),
    (14, 30, "start"),
    (354, 366, 98, "end"),
    (14, 348, 342),
)
"""As on a page, and as on a telephone."""


def one_token(
    step: int, parameters: float, done: float, whole: float, width: int = PAGE
) -> Drawing:
    """A token on its way up a stack of layers, and its error on the way down.

    `step` counts layers: up to `LAYERS` forward, as many again backward. `done` are the
    operations so far, `whole` those of the whole way. Areas are to scale: backward has two
    columns, to learn and to pass the error on.
    """
    layout = WAY if width >= PAGE else NARROW_WAY
    up, down = min(step, LAYERS), max(step - LAYERS, 0)
    so_far = units.count(done, 2) if done else "none"
    before, half = layout.columns[0] - 12, layout.column / 2
    forth, back, learn, pass_on = layout.middles
    svg = text(forth, 24, "forward", 16, "middle", **BOLD)
    svg += text(forth, 44, "2 to guess", 15, "middle")
    svg += text(back, 24, "backward", 16, "middle", **BOLD)
    svg += text(learn, 44, "2 to learn", 15, "middle")
    svg += text(pass_on, 44, "2 to pass on", 15, "middle")
    if layout is WAY:
        svg += text(516, 44, "for each", 15) + text(516, 62, "parameter", 15)
    else:
        svg += text(learn, 64, "for each parameter", 15, "middle")
    for i in range(LAYERS):  # from the bottom
        y = 240 - 44 * i
        svg += text(before, y + 25, f"layer {i + 1}", 15, "end")
        went, came = i < up, i >= LAYERS - down
        back_again = ((came, BACKWARD, title) for title in ("to learn", "to pass on"))
        kinds = ((went, FORWARD, "forward"), *back_again)
        for x, (met, fill, title) in zip(layout.columns, kinds, strict=True):
            svg += rect(x, y, layout.column, 38, fill if met else "none", title, **BOX)
            svg += text(x + half, y + 25, "× +", 17, "middle", "white") if met else ""
    svg += _traveller(up, down, layout)
    svg += text(forth, 304, "in: the tokens so far", 15, "middle")
    if up == LAYERS:
        svg += text(before, 88, "out: a guess of the next token", 15)
    x, y, long = layout.bar
    svg += rect(x, y, long, 32, "none", "operations in all", **BOX)
    forward = long * min(done, whole / 3) / whole
    svg += rect(x, y, forward, 32, FORWARD, "forward") if forward else ""
    if down:
        svg += rect(x + long / 3, y, long * (done / whole - 1 / 3), 32, BACKWARD, "backward")
    if layout is WAY:
        svg += text(138, 343, "operations so far", 15, "end") + text(516, 344, so_far, 18, **BOLD)
    else:
        svg += text(x, y - 10, "operations so far", 15)
        svg += text(x + long, y - 10, so_far, 18, "end", **BOLD)
    words = (
        f"A token has gone up {units.plural(up, 'layer')} of {LAYERS}"
        + (f", and its error down {down}" if down else "")
        + f". Operations so far: {so_far} of {units.count(whole, 2)}, for "
        f"{units.short(parameters)} parameters. Forward takes 2 for each parameter, backward 2 "
        "to learn and 2 to pass the error on."
    )
    return Drawing(svg, layout.width, y + 46, words)


def _traveller(up: int, down: int, layout: Way) -> str:
    """The token as a dot with an arrow behind it; its error, once it comes down."""
    bottom, (x, at, anchor) = 286, layout.token
    top = bottom - 44 * up
    svg = arrow(x, bottom + 4, x, top + 12, stroke=FORWARD, stroke_width=3) if up else ""
    svg += circle(x, top, 9, FORWARD, "the token") + text(at, top + 5, "token", 15, anchor)
    if down:
        start, end = bottom - 44 * LAYERS, bottom - 44 * (LAYERS - down)
        x, at, y, anchor = layout.error
        svg += arrow(x, start, x, end - 11, stroke=BACKWARD, stroke_width=3)
        svg += circle(x, end, 9, BACKWARD, "its error")
        svg += text(at, y or end + 5, "its error", 15, anchor)
    return svg


# --- runs that really happened

REAL_RUNS = ("Pythia 12B", "LLaMA-1 65B", "Llama 2 7B", "Llama 2 70B", "BLOOM-176B")
"""Runs on A100 whose GPU-hours are published."""


def real_runs(assumed: float = 0.35) -> Picture:
    """The share of the peak that each of five runs reached, beside the one that's assumed."""
    shares = {name: share_of_run(name) for name in REAL_RUNS}
    lanes = [
        Lane(name, [Span(0, share, TOKENS, title=name)], units.percent(share))
        for name, share in shares.items()
    ]
    x = Scale(0, 0.6, "of its peak, over the whole run", lambda share: f"{100 * share:.0f} %")
    listed = ", ".join(f"{name} {units.percent(share)}" for name, share in shares.items())
    words = f"The share of its peak that each A100 reached, over whole runs: {listed}."
    limit = Limit(assumed, f"we assumed {units.share(assumed)}", "5 4", bold=True)
    return Bars(x, lanes, words, [limit], lane=26)


# --- the course


STOPS = (
    ("00", "Start here", "what do GPUs and", "days make?"),
    ("01", "Parameters", "how many are there,", "and where?"),
    ("02", "FLOPs", "how much work is there,", "how fast is it done?"),
    ("03", "Duration", "how many days,", "at what price?"),
    ("04", "Batch", "how many texts at once,", "and on which GPUs?"),
    ("05", "Precision", "what does a parameter", "weigh?"),
    ("06", "Activations", "what must a step", "remember?"),
    ("07", "Communication", "what do GPUs tell", "each other?"),
    ("08", "Plan", "will it fit, and how long", "will it take?"),
    ("09", "Calendar", "when is it really", "done?"),
    ("10", "Budget", "what should you", "train?"),
    ("11", "Measure", "is it true on", "this machine?"),
    ("12", "Fine-tuning", "what does it take", "to adapt a model?"),
)
"""The chapters in the order in which they are walked, each with its question in two lines;
the last one stands beside the course, below the chapter that it follows."""

BESIDE, NEEDS = "12", ("it stands beside the course", "and needs 06 and 08 only")


def course_map(done: Mapping[str, tuple[int, int]]) -> Drawing:
    """The chapters as a path, and of each how many exercises and guesses are done, of how many."""
    svg, words = "", []
    for i, (chapter, title, first, second) in enumerate(STOPS):
        x, y = 20 + 210 * (i % 4), 16 + 104 * (i // 4)
        passed, whole = done.get(chapter, (0, 0))
        fill = TOKENS if passed == whole else MODEL
        ink = "white" if passed else "currentColor"
        box, note = BOX, ""
        if chapter == BESIDE:
            box, note = {**BOX, "stroke_dasharray": "6 4"}, f" ({' '.join(NEEDS)})"
            svg += arrow(x + 98, y - 15, x + 98, y - 1)
            svg += text(x + 210, y + 40, NEEDS[0], 14) + text(x + 210, y + 60, NEEDS[1], 14)
        svg += arrow(x - 13, y + 44, x - 1, y + 44) if i % 4 else ""
        svg += rect(x, y, 196, 88, fill if passed else "none", title, **box)
        svg += text(x + 10, y + 25, f"{chapter} {title}", 16, fill=ink, **BOLD)
        svg += text(x + 10, y + 50, first, 14, fill=ink)
        svg += text(x + 10, y + 70, second, 14, fill=ink)
        state = f"{passed} of {whole}" if passed else ""
        svg += text(x + 188, y + 81, state, 14, "end", ink)
        description = f"{chapter} {title}{note}: {first} {second} {state and f'({state} done)'}"
        words.append(description.strip())
    return Drawing(svg, 860, 428, f"The course as a path. {' '.join(words)}")
