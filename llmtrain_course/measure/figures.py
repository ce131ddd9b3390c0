"""Figures of chapter 12's evidence: times of this machine, so their words have no number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from llmtrain_course.kit.figures import (
    BLUE,
    GREEN,
    HATCHES,
    LIVE,
    MARKERS,
    VERMILION,
    label_line,
    new_figure,
    styled,
)
from llmtrain_course.measure import PHASES, DataParallel, StepProfile


@styled
def operators(profile: StepProfile) -> Figure:
    """The operators of a step in the order of time, matrix products apart."""
    figure, axes = new_figure("A training step on this machine, operator by operator", "ms", "")
    for row, phase in enumerate(reversed(PHASES)):
        for product, color in ((True, BLUE), (False, VERMILION)):
            spans = [
                (operator.start * 1e3, operator.seconds * 1e3)
                for operator in profile.operators
                if (operator.phase, operator.matrix_product) == (phase, product)
            ]
            style: Any = {"facecolor": color, "hatch": HATCHES[color]}
            axes.broken_barh(spans, (row - 0.3, 0.6), linewidth=0, **style)
    axes.set_yticks(range(len(PHASES)), PHASES[::-1])
    axes.set_ylim(-0.6, len(PHASES))
    label = f"■ matrix products, {100 * profile.matmul_share:.0f}% of the time"
    top: Any = {"va": "top", "transform": axes.transAxes}
    axes.text(0.02, 0.98, label, color=BLUE, gid=LIVE, **top)
    axes.text(0.6, 0.98, "▨ the rest", color=VERMILION, **top)
    axes.grid(visible=False, axis="y")
    figure.set_size_inches(9, 3.4)
    return figure


@styled
def throughputs(sizes: Sequence[int], curves: Mapping[str, Sequence[float]]) -> Figure:
    """Sequences a second over the batch, from the seconds of each curve."""
    figure, axes = new_figure(
        "A larger batch is almost free at first, and then no more",
        "batch (sequences)",
        "sequences / s",
    )
    for (name, seconds), color in zip(curves.items(), (BLUE, GREEN), strict=False):
        rates = [size / t for size, t in zip(sizes, seconds, strict=True)]
        axes.plot(sizes, rates, color=color, marker=MARKERS[color], label="_times")
        label_line(axes, name, sizes[-1], rates[-1], color)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    return figure


@styled
def exchange(result: DataParallel) -> Figure:
    """A process's pass through its share of the batch, and the averaging after it."""
    figure, axes = new_figure("What averaging the gradients costs here", "ms", "")
    times = {"average": result.all_reduce_seconds, "pass": result.pass_seconds}
    for (name, seconds), color in zip(times.items(), (VERMILION, BLUE), strict=True):
        style: Any = {"color": color, "hatch": HATCHES[color]}
        axes.broken_barh([(0, seconds * 1e3)], (list(times).index(name), 0.6), **style)
    axes.set_yticks([0.3, 1.3], [*times])
    axes.grid(visible=False, axis="y")
    figure.set_size_inches(9, 2.4)
    return figure
