"""Drawings of chapter 11: three counts, a step by the clock, two recorded traces.

Lengths are to scale: of a count, what was measured and what the formula says; of a step
and a trace, time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    svg, words = "", []
    for row, (name, instrument, unit) in enumerate(_COUNTS):
        now, computed = measured[row], formula[row]
        old = before[row].total if before else now.total
        scale = _BAR / max(now.total, computed.total, old)
        y, count = 26 + 118 * row, f"{unit(now.total)} {name}"
        svg += text(_LEFT, y, count, 17, font_weight=700)
        svg += text(_LEFT + _BAR, y, f"by {instrument}", 15, "end")
        svg += _bar_of_parts(y + 14, 34, now, scale)
        if old != now.total:
            svg += ghost(_LEFT, y + 12, old * scale, 38, "at the start")
        svg += _bar_of_parts(y + 52, 16, computed, scale, named=False)
        svg += text(_LEFT - 10, y + 37, "measured", 14, "end")
        svg += text(_LEFT - 10, y + 65, "formula", 14, "end")
        verdict = "says the same" if now == computed else "differs"
        words.append(f"{count}, by {instrument}; the formula {verdict}.")

    # the colours of parts that are often too narrow for their names
    for place, name in enumerate(("embedding", "norms", "scores", "head")):
        x, y, (word, color) = _LEFT + 150 * place, 368, _PARTS[name]
        svg += rect(x, y, 18, 18, color)
        if name == "scores":
            svg += f'<g color="#FFFFFF">{hatched(x, y, 18, 18, 6)}</g>'
        svg += text(x + 26, y + 14, word, 15)
    return Drawing(svg, _WIDE, 400, " ".join(words))


def _bar_of_parts(y: float, high: float, whole: Breakdown, scale: float, named: bool = True) -> str:
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

_LOADER, _GPU, _SLOWEST, _LINK, _FLOOR = 48, 110, 160, 210, 254
"""The heights of the four lanes, and of the line below them."""

_HIGH = 36
_TIME = 640


def step_by_the_clock(
    clock: StepClock, micro_batch_size: int, accumulation: int = 1, before: Sequence[Any] = ()
) -> Drawing:
    """Two steps: the loader, this GPU and the slowest, the link; and four changes.

    `before` are the three arguments of the last picture, drawn as outlines.
    """
    b, k = micro_batch_size, accumulation
    old_clock, *old_size = before or (clock, b, k)
    parts, was = clock.parts(b, k), old_clock.parts(*old_size).total
    scale = _TIME / (2 * max(parts.total, was))
    step = parts.total * scale
    svg = "".join(
        text(_LEFT - 12, y + 23, name, 15, "end")
        for name, y in [
            ("loader", _LOADER),
            ("this GPU", _GPU),
            ("slowest", _SLOWEST),
            ("link", _LINK),
        ]
    )
    svg += line(_LEFT, _FLOOR, _LEFT + _TIME, _FLOOR)
    for number in (0, 1):
        start = x = _LEFT + number * step
        wide = clock.loading * b * k * scale
        svg += rect(x, _LOADER, wide, _HIGH, COLORS["memory"], rx=3)
        svg += _inside(x, _LOADER, wide, f"data of step {number + 2}", "data")

        # this GPU: its passes, then waiting for others, the update, and waiting for data
        svg += _passes(x, _GPU, parts.passes * scale, k)
        x += parts.passes * scale
        svg += _waiting(x, _GPU, parts.others * scale, "waits for others", "waits")
        x += parts.others * scale
        svg += rect(x, _GPU, parts.update * scale, _HIGH, COLORS["optimizer"], rx=3)
        svg += _inside(x, _GPU, parts.update * scale, "update")
        x += parts.update * scale
        svg += _waiting(x, _GPU, parts.data * scale, "waits for data", "waits")

        svg += _passes(start, _SLOWEST, parts.passes * clock.slowest * scale, k)
        x, wide = start + clock.exchange_begins(b, k) * scale, clock.exchange * scale
        svg += rect(x, _LINK, wide, _HIGH, COLORS["gradients"], rx=3)
        svg += _inside(x, _LINK, wide, "gradients")
        svg += line(start, 46, start, _FLOOR + 5, stroke_dasharray="2 3")
    svg += line(_LEFT + 2 * step, 46, _LEFT + 2 * step, _FLOOR + 5)
    svg += text(_LEFT, 28, f"a step: {_ms(parts.total)}", 20, font_weight=700)
    if was != parts.total:
        svg += ghost(_LEFT, _FLOOR + 10, was * scale, 12, "a step at the start")
        svg += text(_LEFT + was * scale + 8, _FLOOR + 21, f"dashed: {_ms(was)}", 14)
    found = clock.experiments(b, k)
    svg += _bars(found, old_clock.experiments(*old_size))

    spent = {
        "passes": parts.passes,
        "waiting for other GPUs": parts.others,
        "update": parts.update,
        "waiting for data": parts.data,
    }
    times = ", ".join(f"{name} {_ms(seconds)}" for name, seconds in spent.items())
    gains = ", ".join(
        f"{label} × {getattr(found, name) / found.as_it_is:.2f}"
        for name, label in _CHANGES.items()
        if name != "as_it_is"
    )
    words = (
        f"A step of {_ms(parts.total)} with {k} × {b} sequences: {times}. "
        f"{units.digits(found.as_it_is)} sequences a second; {gains}."
    )
    return Drawing(svg, _WIDE, 504, words)


def _ms(seconds: float) -> str:
    return f"{units.digits(seconds * 1e3)} ms"


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


_CHANGES = {
    "as_it_is": "as it is",
    "same_data": "the same data again",
    "alone": "this GPU alone",
    "doubled": "micro-batch doubled",
    "four_passes": "four times the passes",
}


def _bars(found: Experiments, known: Experiments) -> str:
    """Sequences a second, as it is and after each change, and how much that gains."""
    scale = 360 / max(*vars(found).values(), *vars(known).values())
    svg = text(_LEFT, 312, "sequences a second, after one change", 15, font_weight=700)
    for row, (name, label) in enumerate(_CHANGES.items()):
        y, rate, old = 326 + 34 * row, getattr(found, name), getattr(known, name)
        color = COLORS["weights"] if name == "as_it_is" else COLORS["memory"]
        svg += text(244, y + 19, label, 15, "end")
        svg += rect(254, y, rate * scale, 26, color, rx=3)
        if found != known:
            svg += ghost(254, y - 1, old * scale, 28, "at the start")
        gain = "" if name == "as_it_is" else f", × {rate / found.as_it_is:.2f}"
        end = 262 + max(rate, old) * scale
        svg += text(end, y + 19, f"{units.digits(rate)}{gain}", 15, font_weight=600)
    return svg


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
    svg, words, y = "", [], 24
    for name, trace in traces.items():
        title = f"{_TITLES.get(name, name)}: a step of {_ms(trace.seconds)}"
        svg += text(_LEFT, y, title, 17, font_weight=700)
        for phase, spans in trace.phases.items():
            for start, end in spans:
                x, wide = _LEFT + start * scale, (end - start) * scale
                svg += rect(x, y + 12, wide, 26, _PHASES[phase], phase, stroke="#FFFFFF")
                svg += _inside(x, y + 7, wide, phase)
        for kind, spans in trace.work.items():
            svg += _strip(y + 44, 34, spans, scale, *_KINDS[kind])
        svg += _strip(y + 84, 34, trace.exchange, scale, "gradients", COLORS["gradients"])
        for down, lane in ((29, "phases"), (66, "operators"), (106, "gradients")):
            svg += text(_LEFT - 12, y + down, lane, 14, "end")
        svg += line(_LEFT, y + 124, _LEFT + trace.seconds * scale, y + 124)
        share = (
            f"{100 * trace.hidden:.0f} % of the exchange beside computing, "
            f"{100 * (1 - trace.hidden):.0f} % while the process waits"
        )
        svg += text(_LEFT, y + 141, share, 15)
        spent = ", ".join(
            f"{phase} {_ms(sum(end - start for start, end in spans))}"
            for phase, spans in trace.phases.items()
        )
        words.append(f"{title[:1].upper()}{title[1:]}, {spent}; {share}.")
        y += 176
    operators = [*_KINDS.values(), ("optimizer", _PHASES["optimizer"])]
    for place, (name, color) in enumerate(operators):
        x = _LEFT + 160 * place
        svg += rect(x, y, 18, 18, color, rx=3) + text(x + 26, y + 14, name, 15)
    return Drawing(svg, _WIDE, y + 30, " ".join(words))


def _strip(y: float, high: float, spans: Spans, scale: float, name: str, color: str) -> str:
    """Stretches of one kind, as one path with a title."""
    pieces = "".join(
        f"M{_LEFT + start * scale:.1f} {y}h{max((end - start) * scale, 0.4):.1f}"
        f"v{high}h-{max((end - start) * scale, 0.4):.1f}z"
        for start, end in spans
    )
    return f'<path d="{pieces}" fill="{color}"><title>{name}</title></path>'
