"""A profiler's trace, read: what ran when, and what travelled beside it.

A trace is a JSON file of events, each with a name, a thread, a start and a length in
microseconds; Chrome's viewer and this module read the same file. Needs no PyTorch.

Source: PyTorch's `torch.profiler.profile.export_chrome_trace`, and its documentation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from llmtrain_course.measure import PHASES
from llmtrain_helpers import published
from llmtrain_helpers.checks import choice, refuse

Spans = list[tuple[float, float]]
"""Stretches of time, each from when to when in seconds, in order and apart."""

PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"}
"""The operators that are matrix products."""

COPIES = {"aten::copy_", "aten::cat", "aten::_foreach_copy_"}
"""Those that only bring numbers from one place to another."""

EXCHANGE = "gloo:"
"""How the names of events begin in which processes on CPUs exchange something."""


def union(spans: Iterable[tuple[float, float]]) -> Spans:
    """The time of all spans, in stretches that do not touch.

    >>> union([(3, 5), (0, 2), (1, 3), (7, 8)])
    [(0, 5), (7, 8)]
    """
    stretches: Spans = []
    for start, end in sorted(spans):
        if stretches and start <= stretches[-1][1]:
            stretches[-1] = stretches[-1][0], max(end, stretches[-1][1])
        else:
            stretches.append((start, end))
    return stretches


def overlap(one: Spans, other: Spans) -> Spans:
    """The stretches of time that lie in both of two sets of stretches.

    >>> overlap([(0, 4), (6, 9)], [(3, 7)])
    [(3, 4), (6, 7)]
    """
    pairs = ((max(a, c), min(b, d)) for a, b in one for c, d in other)
    return union((start, end) for start, end in pairs if start < end)


def difference(one: Spans, other: Spans) -> Spans:
    """The stretches of time in one set of stretches that are not in the other.

    >>> difference([(0, 4)], [(1, 2), (3, 9)])
    [(0, 1), (2, 3)]
    """
    ends = [float("-inf"), *(x for pair in union(other) for x in pair), float("inf")]
    return overlap(one, list(zip(ends[::2], ends[1::2], strict=True)))


def length(spans: Spans) -> float:
    """Seconds that all the stretches of time last together.

    >>> length([(0, 2), (5, 6)])
    3
    """
    return sum(end - start for start, end in spans)


@dataclass(frozen=True)
class Trace:
    """A step of one process, in seconds from its begin: what ran, by kind.

    `phases` are those of `PHASES`; `work` the operators on the process's own
    thread, in `products`, `copies` and `rest`; `exchange` the gradients on their way.
    """

    seconds: float
    phases: Mapping[str, Spans]
    work: Mapping[str, Spans]
    exchange: Spans

    @property
    def busy(self) -> Spans:
        """The stretches of time in which any operator ran."""
        return union(span for spans in self.work.values() for span in spans)

    @property
    def hidden(self) -> float:
        """The share of the exchange during which this process computed something."""
        return length(overlap(self.exchange, self.busy)) / length(self.exchange)

    @staticmethod
    def until(spans: Spans, moment: float) -> Spans:
        """What of some stretches of time is over at a moment, or under way.

        >>> Trace.until([(0, 2), (3, 5), (6, 7)], 4)
        [(0, 2), (3, 4)]
        """
        return overlap(spans, [(0.0, moment)])


def trace_of(report: Mapping[str, Any]) -> Trace:
    """A trace that came as JSON, in which a pair is a list."""

    def spans(pairs: Iterable[Iterable[float]]) -> Spans:
        return union((start, end) for start, end in pairs)

    return Trace(
        seconds=float(report["seconds"]),
        phases={name: spans(pairs) for name, pairs in report["phases"].items()},
        work={name: spans(pairs) for name, pairs in report["work"].items()},
        exchange=spans(report["exchange"]),
    )


def recorded_trace(name: str) -> Trace:
    """A trace that lies in `data/`: gradients "beside" backward, or "after" it.

    >>> round(recorded_trace("beside").hidden, 2), recorded_trace("after").hidden
    (0.66, 0.0)
    """
    choice("name", name, ("beside", "after"))
    kinds: dict[str, Spans] = {}
    for row in published.rows("step_trace"):
        if row["trace"] == name:
            end = row["start"] + row["seconds"]
            kinds.setdefault(row["kind"], []).append((row["start"], end))
    [(_, seconds)] = kinds.pop("step")
    phases = {phase: kinds.pop(phase) for phase in PHASES}
    exchange = union(kinds.pop("exchange"))
    return Trace(seconds, phases, {kind: union(spans) for kind, spans in kinds.items()}, exchange)


def read_trace(path: str | PathLike[str], step: int = -1) -> Trace:
    """A recorded step, read from a trace file that `export_chrome_trace` wrote.

    Phases are those that the program names itself, by `record_function`. ValueError
    for a file that is no trace, or holds no such step.
    """
    try:
        events = json.loads(Path(path).read_text("utf-8"))["traceEvents"]
        timed = [event for event in events if event.get("ph") == "X"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"path={str(path)!r} is no trace: {error}") from error
    steps = [e for e in timed if e["name"].startswith("ProfilerStep#")]
    steps.sort(key=_start)
    if not -len(steps) <= step < len(steps):
        refuse("step", step, f"is not there: the trace holds {len(steps)} steps")
    begin, finish = _start(steps[step]), _end(steps[step])
    inside = [e for e in timed if _start(e) < finish and _end(e) > begin]

    def spans(events: Iterable[Any]) -> Spans:
        """The events' time within the step, in seconds from its begin."""
        cut = ((max(_start(e), begin), min(_end(e), finish)) for e in events)
        return union((start - begin, end - begin) for start, end in cut)

    # work is what runs on the step's own thread; gradients travel on another
    thread = [e for e in inside if e["tid"] == steps[step]["tid"]]
    operators = [e for e in thread if e["name"].startswith("aten::")]
    # an operator that calls a product is a product while that runs
    products = spans(e for e in operators if e["name"] in PRODUCTS)
    copies = difference(spans(e for e in operators if e["name"] in COPIES), products)
    rest = difference(spans(operators), union([*products, *copies]))
    return Trace(
        seconds=finish - begin,
        phases={name: spans(e for e in thread if e["name"] == name) for name in PHASES},
        work={"products": products, "copies": copies, "rest": rest},
        exchange=spans(e for e in inside if e["name"].startswith(EXCHANGE)),
    )


def _start(event: Any) -> float:
    return float(event["ts"]) / 1e6


def _end(event: Any) -> float:
    return float(event["ts"] + event["dur"]) / 1e6
