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

from llmtrain_helpers.checks import choice, refuse
from llmtrain_helpers.evidence import published
from llmtrain_helpers.measure import PHASES

Spans = list[tuple[float, float]]
"""Stretches of time, each from when to when in seconds, in order and apart."""

PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"}
"""The operators that are matrix products."""

COPIES = {"aten::copy_", "aten::cat", "aten::_foreach_copy_"}
"""Those that only bring numbers from one place to another."""

EXCHANGE = "gloo:"
"""How the names of events begin in which processes on CPUs exchange something."""


def joined(spans: Iterable[tuple[float, float]]) -> Spans:
    """The same time in stretches that do not touch.

    >>> joined([(3, 5), (0, 2), (1, 3), (7, 8)])
    [(0, 5), (7, 8)]
    """
    found: Spans = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def both(one: Spans, other: Spans) -> Spans:
    """The time that lies in both.

    >>> both([(0, 4), (6, 9)], [(3, 7)])
    [(3, 4), (6, 7)]
    """
    pairs = ((max(a, c), min(b, d)) for a, b in one for c, d in other)
    return joined((start, end) for start, end in pairs if start < end)


def but(one: Spans, other: Spans) -> Spans:
    """The time of one that is not in the other.

    >>> but([(0, 4)], [(1, 2), (3, 9)])
    [(0, 1), (2, 3)]
    """
    ends = [float("-inf"), *(x for pair in joined(other) for x in pair), float("inf")]
    return both(one, list(zip(ends[::2], ends[1::2], strict=True)))


def length(spans: Spans) -> float:
    """Seconds in all.

    >>> length([(0, 2), (5, 6)])
    3
    """
    return sum(end - start for start, end in spans)


@dataclass(frozen=True)
class Trace:
    """One step of a process, in seconds from its begin; what ran, by kind.

    `phases` are those of `PHASES`; `work` the operators on the process's own
    thread, in `products`, `copies` and `rest`; `exchange` the gradients on their way.
    """

    seconds: float
    phases: Mapping[str, Spans]
    work: Mapping[str, Spans]
    exchange: Spans

    @property
    def busy(self) -> Spans:
        """When any operator ran."""
        return joined(span for spans in self.work.values() for span in spans)

    @property
    def gaps(self) -> Spans:
        """When none did: Python, waiting, or nothing to do."""
        return but([(0.0, self.seconds)], self.busy)

    @property
    def hidden(self) -> float:
        """The share of the exchange during which this process computed something."""
        return length(both(self.exchange, self.busy)) / length(self.exchange)


def trace_of(found: Mapping[str, Any]) -> Trace:
    """A trace that came as JSON, in which a pair is a list."""
    kinds = {
        name: {kind: joined((a, b) for a, b in spans) for kind, spans in it.items()}
        for name, it in found.items()
        if name in ("phases", "work")
    }
    exchange = joined((a, b) for a, b in found["exchange"])
    return Trace(float(found["seconds"]), kinds["phases"], kinds["work"], exchange)


def recorded_trace(name: str) -> Trace:
    """A trace that lies in `data/`: gradients "beside" backward, or "after" it.

    >>> round(recorded_trace("beside").hidden, 2), recorded_trace("after").hidden
    (0.66, 0.0)
    """
    choice("name", name, ("beside", "after"))
    found: dict[str, Spans] = {}
    for row in published.rows("step_trace"):
        if row["trace"] == name:
            end = row["start"] + row["seconds"]
            found.setdefault(row["kind"], []).append((row["start"], end))
    [(_, seconds)] = found.pop("step")
    phases = {phase: found.pop(phase) for phase in PHASES}
    exchange = joined(found.pop("exchange"))
    return Trace(seconds, phases, {kind: joined(it) for kind, it in found.items()}, exchange)


def read_trace(path: str | PathLike[str], step: int = -1) -> Trace:
    """One of the recorded steps of a trace that `export_chrome_trace` wrote.

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
    return _of_step(timed, steps[step])


def _of_step(events: list[Any], step: Any) -> Trace:
    """What lies in this step: work on its thread, the exchange wherever it runs."""
    start, end = _start(step), _end(step)
    inside = [e for e in events if _start(e) < end and _end(e) > start]
    mine = [e for e in inside if e["tid"] == step["tid"]]

    def spans(some: Iterable[Any]) -> Spans:
        cut = ((max(_start(e), start), min(_end(e), end)) for e in some)
        return joined((a - start, b - start) for a, b in cut)

    return Trace(
        seconds=end - start,
        phases={name: spans(e for e in mine if e["name"] == name) for name in PHASES},
        work=_work([e for e in mine if e["name"].startswith("aten::")], spans),
        exchange=spans(e for e in inside if e["name"].startswith(EXCHANGE)),
    )


def _work(operators: list[Any], spans: Any) -> dict[str, Spans]:
    """Operators by kind; one that calls a product is a product while that runs."""
    products = spans(e for e in operators if e["name"] in PRODUCTS)
    copies = but(spans(e for e in operators if e["name"] in COPIES), products)
    rest = but(spans(operators), joined([*products, *copies]))
    return {"products": products, "copies": copies, "rest": rest}


def _start(event: Any) -> float:
    return float(event["ts"]) / 1e6


def _end(event: Any) -> float:
    return float(event["ts"] + event["dur"]) / 1e6
