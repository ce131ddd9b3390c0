"""A step with fully sharded data: each layer is fetched, used and dropped, and a picture of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.lanes import Lane, Limit, Span, Timeline
from llmtrain_course.kit.layout import INK, Picture
from llmtrain_course.kit.scale import Scale
from llmtrain_helpers import units

Kind = Literal["fetch", "forward", "backward", "scatter"]


@dataclass(frozen=True)
class Work:
    """What one layer's weights or gradients do from `start` to `end`, in seconds."""

    kind: Kind
    layer: int
    start: float
    end: float


@dataclass(frozen=True)
class ShardedStep:
    """A step of one pass, as the pieces of work of one GPU, in the order in which they end."""

    layers: int
    work: Sequence[Work]

    @property
    def end(self) -> float:
        """When the last gradients are summed."""
        return self.work[-1].end

    @property
    def computing(self) -> list[Work]:
        """The forward and backward passes of the layers, in their order."""
        return [w for w in self.work if w.kind in ("forward", "backward")]

    @property
    def waits(self) -> list[tuple[float, float]]:
        """When the GPU doesn't compute: from and to."""
        ends = [0.0, *(w.end for w in self.computing)]
        starts = [*(w.start for w in self.computing), self.end]
        return [(one, other) for one, other in zip(ends, starts, strict=True) if other > one]

    @property
    def waiting(self) -> float:
        """Seconds of it in all."""
        return sum(to - since for since, to in self.waits)

    def whole(self, layer: int) -> list[tuple[float, float]]:
        """When the GPU has room for all of a layer: from its fetching until it's dropped."""
        spans: list[tuple[float, float]] = []
        for w in (w for w in self.work if w.layer == layer and w.kind != "scatter"):
            if w.kind == "fetch":
                spans.append((w.start, w.end))
            else:  # the last layer's span reaches to the end of backward
                spans[-1] = spans[-1][0], w.end
        return spans


def sharded_step(layers: int, fetch: float, forward: float) -> ShardedStep:
    """Schedule a step in which each layer's weights are fetched one layer ahead.

    Backward computes twice as long as forward. Weights and gradients of a layer have equal
    bytes, so that summing takes as long as fetching. One link does one thing at a time, in
    the order in which it's asked: a layer is asked for when the one before it begins to
    compute. The last layer stays whole between forward and backward. Source: PyTorch's
    FSDP (arXiv 2304.11277, sections 3 and 4).

    >>> step = sharded_step(layers=2, fetch=1, forward=3)
    >>> step.end, step.waits
    (20.0, [(0.0, 1.0), (19.0, 20.0)])
    """
    work, link, gpu = list[Work](), 0.0, 0.0
    begins = 0.0  # when a layer begins to compute, and the next one is asked for

    def use_link(kind: Kind, layer: int, asked: float) -> float:
        start = max(link, asked)
        work.append(Work(kind, layer, start, start + fetch))
        return start + fetch

    for layer in range(1, layers + 1):
        link = use_link("fetch", layer, begins)
        begins, gpu = max(gpu, link), max(gpu, link) + forward
        work.append(Work("forward", layer, begins, gpu))
    ready = 0.0  # when the layer of this turn is whole: the last one still is
    for layer in range(layers, 0, -1):
        begins = max(gpu, ready)
        gpu = begins + 2 * forward
        work.append(Work("backward", layer, begins, gpu))
        if layer > 1:
            ready = link = use_link("fetch", layer - 1, begins)
        link = use_link("scatter", layer, gpu)
    return ShardedStep(layers, sorted(work, key=lambda w: w.end))


# --- its picture

LONGEST = 0.025
"""Seconds of the axis: no setting of the handle takes longer."""

_KINDS: dict[Kind, Span] = {
    "fetch": Span(0, 0, COLORS["weights"], name="fetches its weights", rise=0.45),
    "forward": Span(0, 0, COLORS["useful"], name="forward"),
    "backward": Span(0, 0, COLORS["activations"], name="backward"),
    "scatter": Span(0, 0, COLORS["data"], name="sums up its gradients", rise=0.45),
}
_WHOLE = Span(0, 0, INK, name="whole, not in use yet", rise=0.1)
_WAITS = Span(0, 0, hatch=True, name="waits", title="waits")


def layers_in_time(step: ShardedStep, now: float) -> Picture:
    """A lane for each layer, and one for the GPU, up to a moment: what's to come is pale."""
    lanes = [
        Lane(f"layer {layer}", [*_of_layer(step, layer, now)], height=34)
        for layer in range(1, step.layers + 1)
    ]
    computes = [*_drawn(step.computing, now)]
    idle = replace(_WAITS, name="")
    waits = [replace(idle, start=a, end=min(b, now), hidden=a >= now) for a, b in step.waits]
    lanes.append(Lane("the GPU", [*computes, *waits], height=26))
    ms = units.digits(1e3 * step.end, 2), units.digits(1e3 * step.waiting, 2)
    words = (
        f"{step.layers} layers over the time of a step of {ms[0]} ms. Each is fetched just before "
        "it computes and dropped after it, in forward and again in backward; then its gradients "
        f"are summed. The GPU waits for {ms[1]} ms."
    )
    return Timeline(
        Scale(0, LONGEST, "ms", lambda s: f"{1e3 * s:.0f}", (0, 0.005, 0.01, 0.015, 0.02, 0.025)),
        lanes,
        words,
        [Limit(now, moves="moment")],
        phone_names=0,
        extra=[span.swatch() for span in (*_KINDS.values(), _WHOLE, _WAITS)],
    )


def _of_layer(step: ShardedStep, layer: int, now: float) -> Iterator[Span]:
    for start, end in step.whole(layer):
        yield replace(_WHOLE, start=start, end=min(end, now), name="", hidden=start >= now)
    yield from _drawn([w for w in step.work if w.layer == layer], now)


def _drawn(work: Sequence[Work], now: float) -> Iterator[Span]:
    """Each piece pale, and full as far as it has come."""
    for w in work:
        kind = _KINDS[w.kind]
        title = f"layer {w.layer} {kind.name}"
        yield replace(kind, start=w.start, end=w.end, opacity=0.2, name="", title=title)
        done = min(w.end, now)
        yield replace(kind, start=w.start, end=done, name="", title=title, hidden=w.start >= now)
