"""Figures of chapter 03: ratios before and after, days against the number of GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from llmtrain_helpers.duration import UTILIZATIONS, training_interval
from llmtrain_helpers.figures.common import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    MARKERS,
    PURPLE,
    VERMILION,
    label_line,
    new_figure,
    styled,
)
from llmtrain_helpers.units import DAY

COLORS = [BLUE, VERMILION, GREEN, PURPLE, BLACK]


@styled
def days_by_gpus(runs: Sequence[Mapping[str, Any]]) -> Figure:
    """Estimated days over the number of GPUs, and the runs that really happened.

    A run is a row of `published.training_runs()` with `days` and `num_gpus`.
    """
    figure, axes = new_figure(
        "Twice the GPUs, half the days: the real runs lie near their lines",
        "GPUs",
        "days",
    )
    for run, color in zip(runs, cycle(COLORS), strict=False):
        n = int(run["num_gpus"])
        gpus = np.array([n / 4, n / 2, n, 2 * n, 4 * n]).round()
        work = (run["tokens"], run["active_parameters"], gpus, run["peak_flops"])
        span = training_interval(*work)
        likely = span.likely / DAY
        axes.plot(gpus, likely, color=color, label=f"{run['name']}, estimated")
        band: Any = {"color": color, "alpha": 0.15, "lw": 0}
        band["label"] = f"{run['name']}, band"
        axes.fill_between(gpus, span.least / DAY, span.greatest / DAY, **band)
        name = f"{run['name']}, reported"
        marks: Any = {"color": color, "marker": MARKERS[color], "s": 90}
        axes.scatter([n], [run["days"]], label=name, **marks)
        label_line(axes, run["name"], n / 4, likely[0], color)
    low, middle, high = (f"{u:.0%}" for u in UTILIZATIONS)
    axes.set_xlabel(f"GPUs, at {middle} of their peak (bands: {low} to {high})")
    axes.set(xscale="log", yscale="log")
    axes.set_xlim(2, 6e5)
    return figure


@styled
def before_and_after(
    before: Sequence[float], after: Sequence[float], examples: Sequence[bool]
) -> Figure:
    """Each estimate over the paper's days, by 8TP and with every product counted.

    `examples` tells which rows are worked examples, which used 8TP in the paper too.
    """
    figure, axes = new_figure(
        "Count attention too, and the paper's twelve set-ups meet it",
        "estimate over the paper's days",
        "",
    )
    for row in zip(before, after, strict=True):
        axes.plot(row, [1, 0], color=GREY, lw=1, label="_row")
    groups = [("Table 2", BLUE, False), ("worked examples", VERMILION, True)]
    for name, color, kind in groups:
        for told, ratios, height in (("8TP", before, 1), ("exact", after, 0)):
            xs = [
                x for x, one in zip(ratios, examples, strict=True) if bool(one) is kind
            ]
            marks: Any = {"color": color, "marker": MARKERS[color], "s": 90}
            label = f"{name}, {told}"
            axes.scatter(xs, [height] * len(xs), label=label, zorder=3, **marks)
    _dressed(axes, after, examples)
    return figure


def _dressed(axes: Any, after: Sequence[float], examples: Sequence[bool]) -> None:
    """The line at 1, and names beside the points."""
    axes.axvline(1, color=BLACK, lw=1.5, label="_one")
    last = max(x for x, one in zip(after, examples, strict=True) if one)
    axes.set_yticks([1, 0], ["by 8TP/(nX)", "counted exactly"])
    axes.set_ylim(-0.5, 1.35)
    place: Any = {"ha": "right", "va": "top"}
    axes.text(
        last + 0.001, -0.16, "two worked examples:\n8TP in the paper too", **place
    )
    axes.texts[-1].set_color(VERMILION)
