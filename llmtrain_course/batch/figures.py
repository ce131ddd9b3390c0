"""Figures of chapter 04: published batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from llmtrain_course.kit.figures import BLUE, VERMILION, new_figure, styled

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
