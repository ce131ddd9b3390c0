"""Figures of chapter 03: days against the number of GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from llmtrain_course.kit.figures import (
    BLACK,
    BLUE,
    GREEN,
    MARKERS,
    PURPLE,
    VERMILION,
    label_line,
    new_figure,
    styled,
)
from llmtrain_helpers.duration import UTILIZATIONS, training_interval
from llmtrain_helpers.units import DAY

COLORS = [BLUE, VERMILION, GREEN, PURPLE, BLACK]


@styled
def days_by_gpus(runs: Sequence[Mapping[str, Any]]) -> Figure:
    """Estimated days over the number of GPUs, and the runs that really happened.

    A run is a row of `published.training_runs()` with `days` and `num_gpus`.
    """
    figure, axes = new_figure(
        "Twice the GPUs, half the days: the real runs lie near their lines", "GPUs", "days"
    )
    for run, color in zip(runs, cycle(COLORS), strict=False):
        n = int(run["num_gpus"])
        gpus = np.array([n / 4, n / 2, n, 2 * n, 4 * n]).round()
        work = (run["tokens"], run["active_parameters"], gpus, run["peak_flops"])
        span = training_interval(*work)
        likely = np.asarray(span.likely) / DAY
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
