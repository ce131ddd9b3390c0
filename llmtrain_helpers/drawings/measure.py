"""Drawings of chapter 11: three counts, a step by the clock, two recorded traces.

Lengths are to scale: of a count, what was measured and what the formula says; of a step
and a trace, time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.drawings.common import COLORS, Drawing, fits, ghost, hatched, line, rect, text
from llmtrain_helpers.measure.clock import Experiments, StepClock
from llmtrain_helpers.measure.trace import Spans, Trace
from llmtrain_helpers.results import Breakdown

_WIDE = 760
_LEFT = 100

# --- three counts of one model

_COUNTS = [
    ("parameters", "sizes of tensors", units.exact),
    ("FLOPs of a step", "FLOP counter", units.exact),
    ("bytes kept for backward", "hooks of autograd", units.exact),
]
_PARTS = {
    "embedding": ("embedding", COLORS["embedding"]),
    "attention": ("attention", COLORS["attention"]),
    "projections": ("projections", COLORS["attention"]),
    "scores": ("scores", COLORS["attention"]),
    "mlp": ("MLP", COLORS["MLP"]),
    "norm": ("norms", COLORS["norms"]),
    "norms": ("norms", COLORS["norms"]),
    "head": ("output head", COLORS["output head"]),
    "recomputed": ("again", COLORS["recomputed"]),
    "checkpoints": ("layers' inputs", COLORS["recomputed"]),
}
_BAR = 630


def instruments(
    measured: Sequence[Breakdown], formula: Sequence[Breakdown], before: Sequence[Breakdown] = ()
) -> Drawing:
    """Parameters, FLOPs and kept bytes: as an instrument shows them, and as computed.

    Three `Breakdown`s each, in this order; `before` are those of the last picture,
    drawn as outlines to the same scale.
    """
    svg, words = [], []
    for row, (name, instrument, unit) in enumerate(_COUNTS):
        now, label = measured[row], formula[row]
        old = before[row].total if before else now.total
        verdict = "the formula says the same" if now == label else "the formula differs"
        scale = _BAR / max(now.total, label.total, old)
        y = 26 + 118 * row
        svg.append(_heading(y, f"{unit(now.total)} {name}", f"by {instrument}"))
        svg.append(_stack(y + 14, 34, now, scale))
        if old != now.total:
            svg.append(ghost(_LEFT, y + 12, old * scale, 38, "at the start"))
        svg.append(_stack(y + 52, 16, label, scale, named=False))
        svg.append(text(_LEFT - 10, y + 37, "measured", 14, "end"))
        svg.append(text(_LEFT - 10, y + 65, "formula", 14, "end"))
        words.append(f"{unit(now.total)} {name}, by {instrument}; {verdict}.")
    svg.append(_parts_key(368))
    return Drawing("".join(svg), _WIDE, 400, " ".join(words))


def _parts_key(y: float) -> str:
    """The colours of parts that are often too narrow for their names."""
    shapes = ""
    for place, name in enumerate(("embedding", "norms", "scores", "head")):
        x, (word, color) = _LEFT + 150 * place, _PARTS[name]
        shapes += rect(x, y, 18, 18, color)
        if name == "scores":
            shapes += f'<g color="#FFFFFF">{hatched(x, y, 18, 18, 6)}</g>'
        shapes += text(x + 26, y + 14, word, 15)
    return shapes


def _heading(y: float, first: str, then: str) -> str:
    words = text(_LEFT, y, first, 17, font_weight=700)
    return words + text(_LEFT + _BAR, y, then, 15, "end")


def _stack(y: float, high: float, whole: Breakdown, scale: float, named: bool = True) -> str:
    """A bar from parts, each in its colour; the scores are slanted."""
    shapes, x = "", float(_LEFT)
    for name, size in whole.parts().items():
        wide, (word, color) = size * scale, _PARTS[name]
        shapes += rect(x, y, wide, high, color, word)
        if name == "scores" and wide > 4:
            shapes += f'<g color="#FFFFFF">{hatched(x, y, wide, high, 10)}</g>'
        if named and name != "scores" and fits(word, wide - 6, 14):
            shapes += text(x + wide / 2, y + 22, word, 14, "middle", "#FFFFFF")
        x += wide
    return shapes


# --- a step on the simulated clock

_LANES = {"loader": 48, "this GPU": 110, "slowest": 160, "link": 210}
_HIGH = 36
_TIME = 640


def step_by_the_clock(
    clock: StepClock, micro_batch_size: int, accumulation: int = 1, before: Sequence[Any] = ()
) -> Drawing:
    """Two steps: the loader, this GPU and the slowest, the link; and four changes.

    `before` are the three arguments of the last picture, drawn as outlines.
    """
    now = (clock, micro_batch_size, accumulation)
    old = tuple(before) or now
    step, was = (one.parts(b, k).total for one, b, k in (now, old))
    scale = _TIME / (2 * max(step, was))
    svg = [_of_lanes(), *_two_steps(*now, step, scale)]
    if was != step:
        svg.append(_old_step(was, scale))
    found, known = (one.experiments(b, k) for one, b, k in (now, old))
    svg += _bars(found, known)
    return Drawing("".join(svg), _WIDE, 504, _step_words(*now, found))


def _of_lanes() -> str:
    names = [text(_LEFT - 12, y + 23, name, 15, "end") for name, y in _LANES.items()]
    floor = max(_LANES.values()) + _HIGH + 8
    return "".join(names) + line(_LEFT, floor, _LEFT + _TIME, floor)


def _two_steps(clock: StepClock, b: int, k: int, step: float, scale: float) -> Iterator[str]:
    """Two equal steps side by side, with the marks between them."""
    floor = max(_LANES.values()) + _HIGH + 8
    for number in (0, 1):
        x = _LEFT + number * step * scale
        yield _loader(clock, b, k, x, scale, number + 2)
        yield _gpu(clock, b, k, x, scale)
        slowest = clock.parts(b, k).passes * clock.slowest
        yield _passes(x, _LANES["slowest"], slowest * scale, k)
        yield _link(clock, b, k, x, scale)
        yield line(x, 46, x, floor + 5, stroke_dasharray="2 3")
    label = f"a step: {_ms(step)}"
    yield line(_LEFT + 2 * step * scale, 46, _LEFT + 2 * step * scale, floor + 5)
    yield text(_LEFT, 28, label, 20, font_weight=700)


def _ms(seconds: float) -> str:
    return f"{units.digits(seconds * 1e3)} ms"


def _loader(clock: StepClock, b: int, k: int, x: float, scale: float, number: int) -> str:
    wide = clock.loading * b * k * scale
    shapes = rect(x, _LANES["loader"], wide, _HIGH, COLORS["memory"], rx=3)
    label = f"data of step {number}"
    return shapes + _inside(x, _LANES["loader"], wide, label, "data")


def _gpu(clock: StepClock, b: int, k: int, x: float, scale: float) -> str:
    """Passes, then waiting for others, the update, and waiting for data."""
    parts, y = clock.parts(b, k), _LANES["this GPU"]
    shapes = _passes(x, y, parts.passes * scale, k)
    x += parts.passes * scale
    shapes += _waiting(x, y, parts.others * scale, "waits for others", "waits")
    x += parts.others * scale
    shapes += rect(x, y, parts.update * scale, _HIGH, COLORS["optimizer"], rx=3)
    shapes += _inside(x, y, parts.update * scale, "update")
    x += parts.update * scale
    return shapes + _waiting(x, y, parts.data * scale, "waits for data", "waits")


def _passes(x: float, y: float, wide: float, k: int) -> str:
    """A box for each pass, or one for all where they are too thin."""
    shapes = rect(x, y, wide, _HIGH, COLORS["activations"], rx=3)
    if k == 1 or wide / k <= 8:
        return shapes + _inside(x, y, wide, "1 pass" if k == 1 else f"{k} passes")
    for i in range(k):
        at = x + wide * i / k
        shapes += line(at, y, at, y + _HIGH, stroke="#FFFFFF") if i else ""
        shapes += _inside(at, y, wide / k, "pass")
    return shapes


def _link(clock: StepClock, b: int, k: int, x: float, scale: float) -> str:
    y, wide = _LANES["link"], clock.exchange * scale
    x += clock.exchange_begins(b, k) * scale
    shapes = rect(x, y, wide, _HIGH, COLORS["gradients"], rx=3)
    return shapes + _inside(x, y, wide, "gradients")


def _inside(x: float, y: float, wide: float, *words: str) -> str:
    """The first of the words that finds room in a box."""
    label = next((word for word in words if fits(word, wide - 4, 14)), "")
    if not label:
        return ""
    return text(x + wide / 2, y + 23, label, 14, "middle", "#FFFFFF")


def _waiting(x: float, y: float, wide: float, *reasons: str) -> str:
    """Time in which a GPU does nothing: hatched, with its reason if it fits."""
    if wide < 1:
        return ""
    outline = rect(x, y, wide, _HIGH, stroke="currentColor", title=reasons[0])
    label = next((words for words in reasons if fits(words, wide, 14)), "")
    return hatched(x, y, wide, _HIGH) + outline + text(x + wide / 2, y - 6, label, 14, "middle")


def _old_step(was: float, scale: float) -> str:
    floor = max(_LANES.values()) + _HIGH + 8
    shapes = ghost(_LEFT, floor + 10, was * scale, 12, "a step at the start")
    label = f"dashed: {_ms(was)}"
    return shapes + text(_LEFT + was * scale + 8, floor + 21, label, 14)


_CHANGES = {
    "as_it_is": "as it is",
    "same_data": "the same data again",
    "alone": "this GPU alone",
    "doubled": "micro-batch doubled",
    "four_passes": "four times the passes",
}


def _bars(found: Experiments, known: Experiments) -> Iterator[str]:
    """Sequences a second, as it is and after each change, and how much that gains."""
    rates = {name: getattr(found, name) for name in _CHANGES}
    scale = 360 / max(*rates.values(), *vars(known).values())
    yield text(_LEFT, 312, "sequences a second, after one change", 15, font_weight=700)
    for row, (name, label) in enumerate(_CHANGES.items()):
        y, rate = 326 + 34 * row, rates[name]
        color = COLORS["weights"] if name == "as_it_is" else COLORS["memory"]
        yield text(244, y + 19, label, 15, "end")
        yield rect(254, y, rate * scale, 26, color, rx=3)
        if found != known:
            yield ghost(254, y - 1, getattr(known, name) * scale, 28, "at the start")
        gain = "" if name == "as_it_is" else f", × {rate / found.as_it_is:.2f}"
        wide = max(rate, getattr(known, name)) * scale
        label = f"{units.digits(rate)}{gain}"
        yield text(262 + wide, y + 19, label, 15, font_weight=600)


def _step_words(clock: StepClock, b: int, k: int, found: Experiments) -> str:
    """The picture in words."""
    parts = clock.parts(b, k)
    label = {"passes": parts.passes, "waiting for other GPUs": parts.others}
    label |= {"update": parts.update, "waiting for data": parts.data}
    lanes = ", ".join(f"{name} {_ms(seconds)}" for name, seconds in label.items())
    changes = ", ".join(
        f"{label} × {getattr(found, name) / found.as_it_is:.2f}"
        for name, label in list(_CHANGES.items())[1:]
    )
    return (
        f"A step of {_ms(parts.total)} with {k} × {b} sequences: {lanes}. "
        f"{units.digits(found.as_it_is)} sequences a second; {changes}."
    )


# --- traces that were recorded

_KINDS = {
    "products": ("matrix products", COLORS["weights"]),
    "rest": ("other operators", COLORS["norms"]),
    "copies": ("copies", COLORS["memory"]),
}
_PHASES = {
    "forward": COLORS["activations"],
    "backward": COLORS["activations"],
    "optimizer": COLORS["optimizer"],
}
_TITLES = {"beside": "gradients travel beside backward", "after": "gradients travel after backward"}


def lanes(traces: Mapping[str, Trace]) -> Drawing:
    """Recorded steps to one scale: phases, operators by kind, and what travels."""
    scale = _TIME / max(trace.seconds for trace in traces.values())
    svg: list[str] = []
    words = []
    for row, (name, trace) in enumerate(traces.items()):
        svg += _of_trace(24 + 176 * row, name, trace, scale)
        words.append(_trace_words(name, trace))
    svg.append(_key(24 + 176 * len(traces)))
    height = 24 + 176 * len(traces) + 30
    return Drawing("".join(svg), _WIDE, height, " ".join(words))


def _of_trace(y: float, name: str, trace: Trace, scale: float) -> Iterator[str]:
    label = f"{_TITLES.get(name, name)}: a step of {_ms(trace.seconds)}"
    yield text(_LEFT, y, label, 17, font_weight=700)
    for phase, spans in trace.phases.items():
        for start, end in spans:
            x, wide = _LEFT + start * scale, (end - start) * scale
            yield rect(x, y + 12, wide, 26, _PHASES[phase], phase, stroke="#FFFFFF")
            yield _inside(x, y + 7, wide, phase)
    for kind, spans in trace.work.items():
        yield _strip(y + 44, 34, spans, scale, *_KINDS[kind])
    yield _strip(y + 84, 34, trace.exchange, scale, "gradients", COLORS["gradients"])
    for at, words in ((29, "phases"), (66, "operators"), (106, "gradients")):
        yield text(_LEFT - 12, y + at, words, 14, "end")
    yield line(_LEFT, y + 124, _LEFT + trace.seconds * scale, y + 124)
    yield text(_LEFT, y + 141, _share(trace), 15)


def _strip(y: float, high: float, spans: Spans, scale: float, name: str, color: str) -> str:
    """Stretches of one kind, as one path with a title."""
    pieces = "".join(
        f"M{_LEFT + start * scale:.1f} {y}h{max((end - start) * scale, 0.4):.1f}"
        f"v{high}h-{max((end - start) * scale, 0.4):.1f}z"
        for start, end in spans
    )
    return f'<path d="{pieces}" fill="{color}"><title>{name}</title></path>'


def _share(trace: Trace) -> str:
    return (
        f"{100 * trace.hidden:.0f} % of the exchange beside computing, "
        f"{100 * (1 - trace.hidden):.0f} % while the process waits"
    )


def _key(y: float) -> str:
    """The colours of the operators."""
    shapes = ""
    optimizer = ("optimizer", _PHASES["optimizer"])
    for place, (name, color) in enumerate([*_KINDS.values(), optimizer]):
        x = _LEFT + 160 * place
        shapes += rect(x, y, 18, 18, color, rx=3) + text(x + 26, y + 14, name, 15)
    return shapes


def _trace_words(name: str, trace: Trace) -> str:
    spent = ", ".join(
        f"{phase} {_ms(sum(end - start for start, end in spans))}"
        for phase, spans in trace.phases.items()
    )
    title = _TITLES.get(name, name)
    return (
        f"{title[:1].upper()}{title[1:]}: a step of {_ms(trace.seconds)}, {spent}; {_share(trace)}."
    )
