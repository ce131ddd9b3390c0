"""Drawings of chapter 11: products, steps predicted and measured, memory, a trace, a clock.

Lengths are to scale, and each handle has one scale for all of its settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from llmtrain_course.kit.drawing import (
    COLORS,
    GREY,
    Drawing,
    Style,
    circle,
    fits,
    ghost,
    hatched,
    line,
    rect,
    text,
)
from llmtrain_course.kit.lanes import Bars, Lane, Span, bar
from llmtrain_course.kit.layout import Picture
from llmtrain_course.kit.scale import Scale
from llmtrain_course.measure.clock import Experiments, StepClock, Times
from llmtrain_course.measure.recorded import WIDTHS, StepSpent, recorded_memory
from llmtrain_course.measure.trace import Spans, Trace
from llmtrain_helpers import units

ACROSS, NARROW = 600, 372
"""Pixels across: of a handle, and of any drawing on a telephone, with labels above its bars."""

# --- the rate of one product


def one_product(rates: Mapping[int, float], size: int, width: int = ACROSS) -> Drawing:
    """The rate of a product of two square matrices, for each size up to the chosen one."""
    left, base, high, most = 74 if width == ACROSS else 46, 292, 226, 120e9
    wide = (width - left - 10) / len(rates)
    svg = text(16, 24, "GFLOP/s", 15) + line(left, base, width - 8, base)
    for tick in range(0, 121, 20):
        y = base - high * tick * 1e9 / most
        svg += line(left, y, width - 8, y, opacity=0.2) + text(
            left - 8, y + 5, f"{tick}", 14, "end"
        )
    for place, (n, rate) in enumerate(rates.items()):
        x = left + wide * (place + 0.5)
        svg += text(x, base + 22, f"{n}", 15, "middle", font_weight=700 if n == size else 400)
        if n > size:
            svg += text(x, base - 12, "?", 18, "middle", GREY)
            continue
        up = high * rate / most
        color = COLORS["matrix products"] if n == size else COLORS["memory"]
        svg += rect(x - 0.36 * wide, base - up, 0.72 * wide, up, color, rx=3)
        label = units.digits(rate / 1e9)
        svg += text(x, base - up - 8, label, 15, "middle", font_weight=700)
    svg += text((left + width) / 2, base + 46, "rows and columns of each matrix", 15, "middle")
    now = units.flops_per_second(rates[size])
    words = f"Two matrices of {size} by {size} numbers are multiplied at {now}."
    return Drawing(svg, width, 350, words)


# --- a step, predicted and measured

_SPENT = {
    "products": ("its products", COLORS["matrix products"]),
    "others": ("all between them", COLORS["norms"]),
    "update": ("the update", COLORS["optimizer"]),
}


def predicted_step(step: StepSpent, opened: int, width: int = ACROSS) -> Drawing:
    """The predicted time of a step, and below it the parts of the measured one, so far open.

    The unit of the axis is the prediction, so that all widths have one scale.
    """
    at_the_left = width == ACROSS  # the labels: beside the bars, or above
    left, unit, top, row, high = (150, 86, 46, 58, 40) if at_the_left else (16, 61, 62, 64, 34)
    svg, x, foot = "", float(left), top + 4 * row + high
    for tick in range(6):
        at = left + unit * tick
        svg += line(at, 36, at, foot, opacity=0.15)
        svg += text(at, 24, f"{tick} ×" if tick else "0", 14, "middle")
    svg += _bar(left, top, unit, high, COLORS["memory"])
    svg += _label(left, top, "predicted", at_the_left, font_weight=700)
    svg += text(left + unit + 8, top + high / 2 + 6, _ms(step.ideal), 15)
    spent = step.parts()
    for place, (name, seconds) in enumerate(spent.items()):
        y, (label, color) = top + row * (place + 1), _SPENT[name]
        svg += _label(left, y, label, at_the_left)
        if place >= opened:
            svg += text(left + 12, y + high / 2 + 7, "?", 18, "start", GREY)
            continue
        wide = unit * seconds / step.ideal
        svg += (
            line(x, y - row + high, x, y, stroke_dasharray="3 3") if place and at_the_left else ""
        )
        svg += _bar(x, y, wide, high, color)
        svg += text(x + wide + 8, y + high / 2 + 6, _ms(seconds), 15)
        x += wide
    y = top + row * 4
    svg += _label(left, y, "measured", at_the_left, font_weight=700)
    if opened < len(spent):
        svg += text(left + 12, y + high / 2 + 7, "?", 18, "start", GREY)
        words = f"Predicted {_ms(step.ideal)}; of the measured step {opened} of 3 parts are open."
        return Drawing(svg, width, foot + 12, words)
    x = float(left)
    for name, seconds in spent.items():
        svg += _bar(x, y, unit * seconds / step.ideal, high, _SPENT[name][1])
        x += unit * seconds / step.ideal
    svg += text(x + 8, y + high / 2 + 6, _ms(step.total), 15, font_weight=700)
    parts = ", ".join(f"{_SPENT[name][0]} {_ms(seconds)}" for name, seconds in spent.items())
    words = f"Predicted {_ms(step.ideal)}, measured {_ms(step.total)}: {parts}."
    return Drawing(svg, width, foot + 12, words)


def _label(x: float, y: float, words: str, at_the_left: bool, **style: Unpack[Style]) -> str:
    """The label of a bar that begins here: beside it, or above."""
    if at_the_left:
        return text(x - 10, y + 26, words, 15, "end", **style)
    return text(x, y - 8, words, 15, **style)


def format_ratio(ratio: float) -> str:
    """Format how many times as much something is, in two digits."""
    return f"{units.digits(ratio, 2)} times"


def _bar(x: float, y: float, wide: float, high: float, color: str) -> str:
    return rect(x, y, wide, high, color, rx=2)


# --- the same step, thirty times


def timed_steps(series: Sequence[float], timing: Times, width: int = ACROSS) -> Drawing:
    """Steps one after another: those left out, those timed with their median, and the rest."""
    left, base, high, most = 64 if width == ACROSS else 42, 290, 250, 0.1
    each, svg = (width - left - 20) / len(series), text(8, 24, "ms", 15)
    svg += line(left, base, width - 10, base)
    for tick in range(0, 101, 20):
        y = base - high * tick / 1e3 / most
        svg += line(left, y, width - 10, y, opacity=0.2) + text(
            left - 8, y + 5, f"{tick}", 14, "end"
        )
    first, last = len(timing.warm_up), len(timing.warm_up) + len(timing.seconds)
    for place, seconds in enumerate(series):
        x, y = left + each * (place + 0.7), base - high * seconds / most
        if place < first:
            svg += circle(x, y, min(5, each / 2 - 1), "none", "left out", stroke="currentColor")
        elif place < last:
            svg += circle(x, y, min(6, each / 2), COLORS["weights"], f"{1e3 * seconds:.1f} ms")
        else:
            svg += circle(x, y, 3, GREY, "not timed")
    y, (start, end) = (base - high * timing.median / most, (left + each * x for x in (first, last)))
    svg += line(start, y, end, y, stroke=COLORS["gradients"], stroke_width=4)
    label, above = f"median {_ms(timing.median)}", max(timing.seconds)
    x = min(max((start + end) / 2, left + 70), width - 80)
    svg += text(x, base - high * above / most - 14, label, 16, "middle", font_weight=700)
    svg += text((left + width) / 2, base + 24, "step 1 to step 30", 15, "middle")
    svg += circle(left + 10, base + 48, 5, "none", stroke="currentColor")
    svg += text(left + 22, base + 53, "left out", 15) + circle(
        left + 120, base + 48, 6, COLORS["weights"]
    )
    svg += text(left + 132, base + 53, "timed", 15) + circle(left + 218, base + 48, 3, GREY)
    svg += text(left + 230, base + 53, "not timed", 15)
    words = f"{len(timing.seconds)} steps timed behind {first} left out: {label}."
    return Drawing(svg, width, 356, words)


# --- the memory of a step

_PART_LABELS = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "Adam",
    "activations": "activations",
    "logits": "logits",
}


def step_bytes() -> Picture:
    """The predicted peaks of the recorded steps, part by part, above what their process took."""
    colors = {label: COLORS[name] for name, label in _PART_LABELS.items()}
    lanes, sizes = [], []
    for width in WIDTHS:
        moment, process_bytes = recorded_memory(width)
        predicted, measured = units.gigabytes(moment.total), units.gigabytes(process_bytes)
        parts = {name: size for name, size in moment.parts().items() if size}
        group = f"hidden size {width}: {format_ratio(process_bytes / moment.total)} as much"
        lanes += [
            bar(
                "predicted",
                parts,
                colors,
                units.gigabytes,
                words=_PART_LABELS,
                group=group,
                labels=False,
            ),
            Lane(
                "measured",
                [Span(0, process_bytes, COLORS["memory"], title=f"measured {measured}")],
                measured,
                group=group,
            ),
        ]
        listed = ", ".join(
            f"{_PART_LABELS[name]} {units.gigabytes(size)}" for name, size in parts.items()
        )
        sizes.append(
            f"At hidden size {width}, {predicted} are predicted ({listed}), {measured} measured."
        )
    x = Scale(0, 500e6, "MB", lambda size: units.exact(size / 1e6))
    return Bars(x, lanes, " ".join(sizes), lane=20, gap=6)


# --- a step on the simulated clock

WIDE = 760
"""Pixels across of the panel's drawing on a page."""

_LOADER, _GPU, _SLOWEST, _LINK, _FLOOR = 48, 110, 160, 210, 254
"""The heights of the four lanes, and of the line below them."""

_HIGH = 36


def step_by_the_clock(
    clock: StepClock,
    micro_batch_size: int,
    accumulation: int = 1,
    before: Sequence[Any] = (),
    width: int = WIDE,
) -> Drawing:
    """Two steps: the loader, this GPU and the slowest, the link; and four changes.

    `before` are the three arguments of the last picture, drawn as outlines.
    """
    b, k = micro_batch_size, accumulation
    old_clock, *old_size = before or (clock, b, k)
    parts, was = clock.parts(b, k), old_clock.parts(*old_size).total
    left = 100 if width == WIDE else 78
    right = width - (20 if width == WIDE else 10)
    scale = (right - left) / (2 * max(parts.total, was))
    step = parts.total * scale
    svg = "".join(
        text(left - 12, y + 23, name, 15, "end")
        for name, y in [
            ("loader", _LOADER),
            ("this GPU", _GPU),
            ("slowest", _SLOWEST),
            ("link", _LINK),
        ]
    )
    svg += line(left, _FLOOR, right, _FLOOR)
    for number in (0, 1):
        start = x = left + number * step
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
        buckets = clock.buckets(b, k)
        if not number:
            leaving = min(start + buckets[0][0] * scale, right - 80)
            svg += text(leaving, _LINK - 4, "gradients", 14)
        for begin, end in buckets:
            x, wide = start + begin * scale, (end - begin) * scale
            svg += rect(x, _LINK, wide, _HIGH, COLORS["gradients"], rx=3, stroke="#FFFFFF")
        svg += line(start, 46, start, _FLOOR + 5, stroke_dasharray="2 3")
    svg += line(left + 2 * step, 46, left + 2 * step, _FLOOR + 5)
    svg += text(left, 28, f"a step: {_ms(parts.total)}", 20, font_weight=700)
    if was != parts.total:
        svg += ghost(left, _FLOOR + 10, was * scale, 12, "a step at the start")
        svg += text(left + was * scale + 8, _FLOOR + 21, f"dashed: {_ms(was)}", 14)
    experiments = clock.experiments(b, k)
    svg += _bars(experiments, old_clock.experiments(*old_size), width)

    spent = {
        "passes": parts.passes,
        "waiting for other GPUs": parts.others,
        "update": parts.update,
        "waiting for data": parts.data,
    }
    times = ", ".join(f"{name} {_ms(seconds)}" for name, seconds in spent.items())
    gains = ", ".join(
        f"{label} × {getattr(experiments, name) / experiments.as_it_is:.2f}"
        for name, label in _CHANGES.items()
        if name != "as_it_is"
    )
    words = (
        f"A step of {_ms(parts.total)} with {k} × {b} sequences: {times}. "
        f"{units.digits(experiments.as_it_is)} sequences a second; {gains}."
    )
    return Drawing(svg, width, 504 if width == WIDE else 590, words)


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
    "one_gpu": "this GPU alone",
    "doubled": "micro-batch doubled",
    "four_passes": "four times the passes",
}


def _bars(experiments: Experiments, start: Experiments, width: int) -> str:
    """Sequences a second, as it is and after each change, and how much that gains."""
    at_the_left = width == WIDE  # the labels: beside the bars, or above
    left, first, row, longest = (254, 326, 34, 360) if at_the_left else (16, 344, 52, 232)
    scale = longest / max(*vars(experiments).values(), *vars(start).values())
    svg = text(
        100 if at_the_left else left,
        312,
        "sequences a second, after one change",
        15,
        font_weight=700,
    )
    for place, (name, label) in enumerate(_CHANGES.items()):
        y, rate, old = first + row * place, getattr(experiments, name), getattr(start, name)
        color = COLORS["weights"] if name == "as_it_is" else COLORS["memory"]
        svg += _label(left, y - 7 if at_the_left else y, label, at_the_left)
        svg += rect(left, y, rate * scale, 26, color, rx=3)
        if experiments != start:
            svg += ghost(left, y - 1, old * scale, 28, "at the start")
        gain = "" if name == "as_it_is" else f", × {rate / experiments.as_it_is:.2f}"
        end = left + 8 + max(rate, old) * scale
        svg += text(end, y + 19, f"{units.digits(rate)}{gain}", 15, font_weight=600)
    return svg


# --- a trace that was recorded

_KINDS = {
    "products": ("products", COLORS["weights"]),
    "rest": ("other operators", COLORS["norms"]),
    "copies": ("copies", COLORS["memory"]),
}
_PHASES = {
    "forward": COLORS["activations"],
    "backward": COLORS["pipeline"],
    "optimizer": COLORS["optimizer"],
}


def one_step(trace: Trace, until: float, longest: float, width: int = ACROSS) -> Drawing:
    """A recorded step up to a moment: its phases, its operators by kind, and what travels."""
    left = 92
    scale = (width - left - 14) / longest
    svg, x = "", left + until * scale
    lanes = {"phase": 44, "operators": 106, "gradients": 176}
    for name, y in lanes.items():
        svg += text(left - 10, y + 27, name, 15, "end")
        svg += line(left, y + 44, width - 10, y + 44, opacity=0.3)
    for phase, spans in trace.phases.items():
        for start, end in trace.until(spans, until):
            wide = (end - start) * scale
            svg += rect(left + start * scale, 46, wide, 38, _PHASES[phase], phase)
            if fits(phase, wide - 6, 15):
                svg += text(left + (start + end) / 2 * scale, 70, phase, 15, "middle", "#FFFFFF")
    [(start, _)] = trace.phases["optimizer"]
    if until > start:
        svg += text(x - 5, 42, "update", 14, "end")
    for kind, title_and_color in _KINDS.items():
        svg += _strip(left, 108, 38, trace.until(trace.work[kind], until), scale, *title_and_color)
    buckets = trace.until(trace.exchange, until)
    for number, (start, end) in enumerate(buckets, start=1):
        svg += rect(left + start * scale, 178, (end - start) * scale, 38, COLORS["gradients"], rx=3)
        middle = left + (start + end) / 2 * scale
        svg += text(middle, 202, f"{number}", 15, "middle", "#FFFFFF") if end - start > 5e-3 else ""
    if not buckets:
        side = "start" if x < 2 / 3 * width else "end"
        label = "nothing on its way yet" if width == ACROSS else "nothing yet"
        svg += text(x + (8 if side == "start" else -8), 202, label, 15, side)
    for tick in range(0, 201, 50):
        at = left + tick / 1e3 * scale
        svg += text(at, 244, f"{tick} ms" if tick else "0", 14, "middle")
    svg += line(x, 30, x, 226, stroke_width=2)
    svg += text(min(x, width - 40), 22, f"{1e3 * until:.0f} ms", 16, "middle", font_weight=700)
    named = [*_KINDS.values(), ("gradients on their way", COLORS["gradients"])]
    last = (352, 264) if width == ACROSS else (14, 290)
    places = ((14, 264), (112, 264), (262, 264), last)
    for (x, y), (name, color) in zip(places, named, strict=True):
        svg += rect(x, y, 16, 16, color, rx=3) + text(x + 22, y + 14, name, 15)
    done = ", ".join(
        f"{kind} {_ms(sum(b - a for a, b in trace.until(spans, until)))}"
        for kind, spans in trace.work.items()
    )
    many = units.plural(len(buckets), "parcel")
    words = f"After {_ms(until)} of the step: {done}; {many} set out."
    return Drawing(svg, width, last[1] + 28, words)


def _strip(
    left: float, y: float, high: float, spans: Spans, scale: float, name: str, color: str
) -> str:
    """Stretches of one kind, as one path with a title."""
    pieces = "".join(
        f"M{left + start * scale:.1f} {y}h{max((end - start) * scale, 0.4):.1f}"
        f"v{high}h-{max((end - start) * scale, 0.4):.1f}z"
        for start, end in spans
    )
    return f'<path d="{pieces}" fill="{color}"><title>{name}</title></path>'
