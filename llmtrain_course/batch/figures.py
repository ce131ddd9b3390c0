"""Figures of chapter 04: published batches, and throughput over the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from llmtrain_course.kit.figures import BLUE, VERMILION, label_line, new_figure, styled
from llmtrain_helpers.batch import StepTime

_OVER = {
    "year": ("The largest batches grew from 3 to over 60 million tokens", "year"),
    "parameters": ("Larger models tend to larger batches, without a rule", "parameters"),
}


@styled
def published_batches(runs: Sequence[Mapping[str, Any]], over: str) -> Figure:
    """Global batch in tokens over the "year" or the "parameters", ramps as lines.

    A run is a row of `published.batch_sizes()` with both columns.
    """
    title, xlabel = _OVER[over]
    figure, axes = new_figure(title, xlabel, "global batch (tokens)")
    xs = [float(run[over]) for run in runs]
    ends = [float(run["batch_tokens_end"]) for run in runs]
    for x, end, run in zip(xs, ends, runs, strict=True):
        start = float(run["batch_tokens_start"])
        axes.plot([x, x], [start, end], color=BLUE, linewidth=1.2, alpha=0.6)
    starts = [float(run["batch_tokens_start"]) for run in runs]
    axes.scatter(xs, starts, color=VERMILION, marker="_", s=90, label="at the start")
    axes.scatter(xs, ends, color=BLUE, marker="o", s=50, label="at the end")
    axes.set_yscale("log")
    if over == "parameters":
        axes.set_xscale("log")
    axes.text(0.02, 0.93, "● at the end   – at the start", transform=axes.transAxes)
    return figure


@styled
def throughput(sizes: Any, seconds: Any, step: StepTime) -> Figure:
    """Measured samples a second over the batch, and the model fitted to them."""
    figure, axes = new_figure(
        "Doubling gains a third at the half-rate batch, less and less beyond",
        "micro-batch (sequences)",
        "sequences / s",
    )
    sizes = np.asarray(sizes, dtype=float)
    fine = np.unique(np.geomspace(sizes.min(), sizes.max(), 60).round())
    axes.plot(fine, step.throughput(fine), color=BLUE, label="fitted: B / (t₀ + B/r)")
    measured = sizes / np.asarray(seconds, dtype=float)
    axes.scatter(sizes, measured, color=VERMILION, marker="s", label="measured", zorder=3)
    half = step.half_rate_batch
    axes.axvline(half, color="black", linewidth=1, linestyle="--")
    axes.text(half * 1.1, measured.min(), f"half-rate batch {half:.0f}", fontsize=12)
    axes.axhline(step.rate, color="black", linewidth=1, linestyle=":")
    axes.text(sizes.min(), step.rate * 1.06, f"r = {step.rate:,.0f}", fontsize=12)
    label_line(axes, "fitted", fine[-1], float(step.throughput(fine[-1])), BLUE)
    middle = len(sizes) // 2
    _name_below(axes, "measured", sizes[middle], measured[middle])
    _in_doublings(axes)
    return figure


def _name_below(axes: Axes, name: str, x: float, y: float) -> None:
    """The name of a series of points, to the right of one and below it."""
    place: dict[str, Any] = {"xytext": (10, -18), "textcoords": "offset points"}
    axes.annotate(name, (x, y), color=VERMILION, **place)


def _in_doublings(axes: Axes) -> None:
    """Both axes by powers of two, written as plain numbers."""
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
