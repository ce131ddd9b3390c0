"""The pictures of chapter 00: the machine, one token's way, real runs, the course."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, prod
from typing import Any, NamedTuple

from llmtrain_course.kit.chart import Area, Chart, Dot, Mark, Path
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
from llmtrain_course.kit.layout import (
    BESIDE,
    PAGE,
    SMALL,
    Below,
    Diagram,
    Picture,
    Swatch,
    patch,
    wrapped,
)
from llmtrain_course.kit.scale import Scale
from llmtrain_helpers import units

BOLD: Style = {"font_weight": "bold"}
BOX: Style = {"stroke": "currentColor", "stroke_width": 1.5, "rx": 4}
QUIET, MODEL, TOKENS = COLORS["memory"], COLORS["weights"], COLORS["useful"]
LATE = COLORS["lost"]
FORWARD, BACKWARD = COLORS["weights"], COLORS["gradients"]


# --- the machine: GPUs × days = work, and the tokens that it pays for

BLOCK, COLUMNS, ROWS = 5e9, 40, 5
"""The tokens of a block, and how many blocks the field has, in columns that fill from below."""

FIRST, LAST = 1e6, 1e14
"""The tokens at which the scale below the field begins and ends."""

_TICKS = {1e6: "1 million", 1e9: "1 billion", 1e12: "1 trillion"}


@dataclass(frozen=True)
class _Blocks(Span):
    """As many blocks as it has tokens, column by column: twice as many are twice the blocks."""

    def draw(
        self, left: float, right: float, top: float, height: float, uprights: Sequence[float] = ()
    ) -> str:
        """Full columns, the one that's begun, and the gaps between blocks."""
        columns, rest = divmod(self.end / BLOCK, ROWS)
        wide, high = (right - left) / (columns + rest / ROWS), height / ROWS
        x, part = left + columns * wide, max(rest * high, 1)
        look: Style = {"opacity": self.opacity}
        svg = rect(left, top, x - left, height, self.color, self.title, **look) if columns else ""
        if rest:
            svg += rect(x, top + height - part, wide, part, self.color, self.title, **look)
        begun = int(columns) + (rest > 0)
        seams = "".join(f"M{left + wide * i:g} {top}v{height:g}" for i in range(1, begun))
        seams += "".join(f"M{left} {top + high * i:g}h{wide * begun:g}" for i in range(1, ROWS))
        return svg + f'<path d="{seams}" stroke="{CARD}" stroke-width="2" fill="none"/>'


def machine(
    num_gpus: int,
    days: float,
    parameters: float,
    flops_per_gpu: float,
    flops_per_token: float,
    tokens: float,
    marks: Mapping[str, float],
    before: float | None = None,
    targets: Mapping[str, float] | None = None,
) -> Picture:
    """GPUs and days as squares, the work they do, what a token takes, and a field of tokens.

    Takes the rate that each GPU reaches in FLOP/s, and the tokens. `marks` are tokens on
    the scale below the field, by name, `targets` those that are marked in the field;
    `before` the tokens of the picture before this one, which leave a dashed outline.
    """
    work = units.powers(num_gpus * flops_per_gpu * days * units.DAY)
    rate, each = units.powers(flops_per_gpu), units.edited(flops_per_token)
    size, inside = units.short(parameters), targets or {}
    product = (
        ("", partial(_squares, num_gpus, "GPU", 8)),
        ("×", partial(_squares, ceil(days), "day", 10)),
        ("=", partial(_box, QUIET, work, "operations", f"each GPU: {rate} per second")),
        ("÷", partial(_box, MODEL, each, f"a token: 6 × {size}", "")),
    )
    spent = Span(FIRST, tokens, TOKENS, title="tokens")
    scale = Bars(
        Scale(FIRST, LAST, ticks=_TICKS, log=True),
        [Lane("powers of ten", [spent], cuts=True)],
        limits=[Limit(number, name.removesuffix(" 405B")) for name, number in marks.items()],
        lane=16,
        phone_names=0,
    )
    wanted, others = (
        "; ".join(f"{name} {units.count(number, 2)}" for name, number in named.items())
        for named in (inside, marks)
    )
    words = (
        f"{units.plural(num_gpus, 'GPU')} × {units.digits(days)} days = {work} operations, each "
        f"GPU {rate} per second; ÷ {each} per token (6 × {size} parameters) = "
        f"{units.count(tokens, 2)} tokens, drawn as blocks of {units.count(BLOCK, 1)}. Marked on "
        f"them: {wanted}; on a scale in powers of ten: {others}."
    )
    row, field = Diagram(partial(_in_a_row, product)), _field(tokens, before, inside)
    return Below([row, field, scale], words, gap=8)


_TERM, _SQUARES, _BOX = 110, 150, 138
"""Pixels that a term of the product is high, and across its squares or its box."""


def _in_a_row(
    product: Sequence[tuple[str, Callable[[float, float], str]]],
    left: float,
    top: float,
    width: float,
) -> tuple[str, float]:
    """Terms with their signs before them, in as many rows as it takes."""
    svg, x, y, room = "", left, top, 24
    for i, (sign, draw) in enumerate(product):
        wide = _SQUARES if i < 2 else _BOX
        if x + wide > left + width:
            x, y = left, y + _TERM
        svg += text(x + room / 2, y + 60, sign, 26, "middle", **BOLD) if sign else ""
        x += room if sign else 0
        svg += draw(x, y)
        x += wide
    return svg, y + _TERM


def _box(fill: str, number: str, what: str, note: str, x: float, y: float) -> str:
    svg = rect(x, y + 12, _BOX, 70, fill, what, rx=8)
    svg += text(x, y + 102, note, SMALL) if note else ""
    svg += text(x + _BOX / 2, y + 44, number, 19, "middle", "white", **BOLD)
    return svg + text(x + _BOX / 2, y + 66, what, SMALL, "middle", "white")


def _squares(number: int, what: str, columns: int, x: float, y: float) -> str:
    """A block of squares, at most four rows; each stands for one thing, or for several."""
    each = ceil(number / (4 * columns))
    squares = "".join(
        rect(x + 15 * (i % columns), y + 26 + 15 * (i // columns), 12, 12, QUIET, rx=2)
        for i in range(ceil(number / each))
    )
    note = f"a square: {units.plural(each, what)}" if each > 1 else ""
    svg = text(x, y + 16, units.plural(number, what), 16, **BOLD) + squares
    return svg + text(x, y + 102, note, SMALL) if note else svg


def _field(tokens: float, before: float | None, targets: Mapping[str, float]) -> Picture:
    """The tokens as blocks in a field that stays, with what's wanted marked in it.

    The first target has its label above it; the others, which may move, are in the key.
    """
    whole = BLOCK * COLUMNS * ROWS
    unchanged = before is None or before == tokens
    items = [
        _Blocks(0, whole, QUIET, title="the field", opacity=0.18),
        _Blocks(0, min(tokens, whole), TOKENS, title="tokens"),
        Span(0, before or 0, title="at the start", previous=True, hidden=unchanged),
    ]
    times = f"the field, {units.digits(tokens / whole, 2)} times"
    block = f"a block: {units.count(BLOCK, 1)}"
    swatches = [
        patch(TOKENS, times if tokens > whole else block)._replace(longest=block),
        Swatch(lambda x, y: ghost(x + 2, y, 14, 14), "the start", unchanged),
    ]
    limits = list[Limit]()
    for name, number in targets.items():
        label, dash = f"{name} {units.count(number, 2)}", "5 4" if limits else ""
        beyond = number > whole
        limits.append(Limit(number, "" if dash else label, dash, hidden=beyond))
        if dash:
            label += " →" if beyond else ""
            swatches.append(Swatch(_dashed, label))
    heading = f"= {units.count(tokens, 2)} tokens"
    lane = Lane("", items)
    return Bars(Scale(0, whole), [lane], "", limits, heading, lane=80, axis=False, extra=swatches)


def _dashed(x: float, y: float) -> str:
    return line(x + 9, y, x + 9, y + 14, stroke_width=2, stroke_dasharray="5 4")


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
        svg += text(before, 82, "out: a guess of the next token", 15)
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
        f"{units.short(parameters)} parameters. Forward costs 2 per parameter, and backward "
        f"costs 2 to learn and 2 to pass the error on."
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


def real_runs(shares: Mapping[str, float], promised: float) -> Picture:
    """The share of the peak that each run reached, and the one that's promised to drag."""
    lanes = [
        Lane(
            name,
            [Span(0, share, TOKENS if share >= promised else LATE, title=name)],
            f"{units.percent(share)}{', late' if share < promised else ''}",
        )
        for name, share in shares.items()
    ]
    x = Scale(0, 0.6, "of its peak, over the whole run", lambda share: f"{100 * share:.0f}%")
    listed = ", ".join(f"{name} {units.percent(share)}" for name, share in shares.items())
    words = f"The share of its peak that each A100 reached over a whole run: {listed}."
    limit = Limit(
        promised, f"you promise {units.share(promised)}", width=3, bold=True, moves="percent"
    )
    return Bars(x, lanes, words, [limit], lane=26, longest_total="39.3%, late")


# --- the map of published runs, and what lies within reach

ACROSS, UP = (2e7, 1.2e12), (1e9, 1e14)
"""Parameters and tokens at the ends of the map's axes."""

NAMED = (
    *("GPT-3 175B", "Pythia 12B", "Llama 3.1 405B", "PaLM 540B", "Chinchilla 70B"),
    *("Llama 3.1 8B", "SmolLM2 135M", "Qwen3 0.6B", "Falcon 40B"),
)
"""Runs whose names stand on the map; on a phone there's room for the first four."""


def size_of(run: Mapping[str, Any]) -> str:
    """A published run's parameters (of a mixture the active ones) and its tokens, in words."""
    active = " active" if run["kind"] == "experts" else ""
    parameters = units.count(run["active_parameters"])
    return f"{parameters}{active} parameters, {units.count(run['tokens'])} tokens"


def within_reach(
    runs: Sequence[Mapping[str, Any]],
    nearest: Mapping[str, Any],
    P: float,
    T: float,
    width: int = PAGE,
) -> Drawing:
    """Published runs by parameters and tokens, your dot, and the line of as much work as yours.

    What lies below the line takes less work. `nearest` is the run that the sentence names.
    """
    wide, work = width >= PAGE, P * T
    ends = (min(max(work / end, ACROSS[0]), ACROSS[1]) for end in reversed(UP))
    line = [(x, work / x) for x in (ACROSS[0], *ends, ACROSS[1])]
    xs, tokens = zip(*line, strict=True)
    marks: list[Mark] = [Area(xs, [UP[0]] * 4, tokens, MODEL, 0.12, "within reach")]
    marks.append(Path(line, MODEL))
    for run in runs:
        name, place = run["name"], (run["active_parameters"], run["tokens"])
        fill, edge = (TOKENS, TOKENS) if prod(place) <= work else (CARD, QUIET)
        label = name if name in NAMED[: None if wide else 4] else ""
        marks.append(Dot(*place, fill, 5, label=label, title=f"{name}: {size_of(run)}", edge=edge))
    place = nearest["active_parameters"], nearest["tokens"]
    marks.append(Dot(*place, size=9, shape="hollow", title="the nearest to yours"))
    off = " ↑" if UP[1] < T else " ↓" if UP[0] > T else ""  # the axis
    you = f"{'your model' if wide else 'you'}{off}"
    yours = Dot(P, T, MODEL, 10, label=you, bold=True, edge=MODEL)
    marks.append(replace(yours, moves="parameters num_gpus", clip=False))
    words = (
        f"{len(runs)} published runs by parameters and tokens, in powers of ten, and your model on "
        "a line. What lies below the line takes less work than your GPUs do in these days."
    )
    write = partial(units.count, significant=1) if wide else units.short
    x, y = Scale(*ACROSS, "parameters", write, log=True), Scale(*UP, "tokens", write, log=True)
    return Chart(x, y, marks, words, height=430 if wide else 215).drawing(width)


# --- the course


STOPS = (
    ("00", "Start here", "what will it take?"),
    ("01", "Parameters", "how many are there, and where?"),
    ("02", "FLOPs", "how much work, and how fast is it done?"),
    ("03", "Duration", "how many days, and at what price?"),
    ("04", "Batch", "how many sequences in one step?"),
    ("05", "Precision", "what does a parameter weigh?"),
    ("06", "Activations", "what does a step store in memory?"),
    ("07", "Communication", "what do GPUs send each other?"),
    ("08", "Parallelism", "how do you cut a model for many GPUs?"),
    ("09", "Plan", "will it fit, and how long will it take?"),
    ("10", "Calendar", "when will it really be done?"),
    ("11", "Budget", "what should you train?"),
    ("12", "Measure", "is it true on this machine?"),
    ("13", "Fine-tuning", "what does it take to adapt a model?"),
)
"""The chapters in the order in which they are walked, each with its question."""

ASIDE, NEEDS = "13", "needs only 06 and 09"
"""The chapter next to the course, and what it needs."""


def course_map(done: Mapping[str, tuple[int, int]]) -> Picture:
    """The chapters as a path, and of each how many exercises and guesses are done, of how many.

    On a phone they stand below each other.
    """
    words = []
    for chapter, title, question in STOPS:
        passed, whole = done.get(chapter, (0, 0))
        note = f" ({NEEDS})" if chapter == ASIDE else ""
        words.append(f"{chapter} {title}{note}: {question}")
        words += [f"({passed} of {whole} done)"] if passed else []
    return Diagram(partial(_map, done), f"The course as a path. {' '.join(words)}")


def _map(
    done: Mapping[str, tuple[int, int]], left: float, top: float, width: float
) -> tuple[str, float]:
    columns = 3 if width > BESIDE else 1
    gap, height = 16, 84 if columns > 1 else 54
    wide, svg, y = (width - gap * (columns - 1)) / columns, "", top
    for i, (chapter, title, question) in enumerate(STOPS):
        x, y = left + (wide + gap) * (i % columns), top + (height + gap) * (i // columns)
        passed, whole = done.get(chapter, (0, 0))
        fill = TOKENS if passed == whole else MODEL
        ink = "white" if passed else "currentColor"
        box, state = BOX, f"{passed} of {whole}" if passed else ""
        if chapter == ASIDE:
            box = {**BOX, "stroke_dasharray": "6 4"}
            svg += text(x + wide + gap, y + 22, NEEDS, SMALL) if columns > 1 else ""
            state = state or NEEDS * (columns == 1)
        elif i % columns:
            svg += arrow(x - gap + 1, y + height / 2, x - 2, y + height / 2)
        elif i and columns == 1:
            svg += arrow(x + 20, y - gap + 1, x + 20, y - 2)
        svg += rect(x, y, wide, height, fill if passed else "none", title, **box)
        svg += text(x + 10, y + 22, f"{chapter} {title}", 16, fill=ink, **BOLD)
        for row, words in enumerate(wrapped(question, wide - 16, SMALL)):
            svg += text(x + 10, y + 44 + 20 * row, words, SMALL, fill=ink)
        svg += text(x + wide - 8, y + 22, state, SMALL, "end", ink)
    return svg, y + height
