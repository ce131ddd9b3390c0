"""Figures of chapter 09: plans against runs, and sweeps as maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from llmtrain_course.kit.figures import BLUE, VERMILION, new_figure, styled


@styled
def shares_of_peak(table: Any) -> Figure:
    """The shares of the peak that runs reached, each in the interval of the others.

    A table as `utilizations.judged` returns: `low`, `likely`, `high`, `utilization`.
    """
    figure, axes = new_figure(
        "Most runs lie in the interval that other teams' runs make", "", "share of the peak (%)"
    )
    low, likely, high, real = (
        [100 * float(u) for u in table[name]] for name in ("low", "likely", "high", "utilization")
    )
    xs = range(len(table))
    style: Any = {"color": BLUE, "linewidth": 8, "alpha": 0.5}
    axes.vlines(xs, low, high, label="low to high", **style)
    for ends, name in ((low, "low"), (likely, "likely"), (high, "high")):
        axes.scatter(xs, ends, color=BLUE, marker="_", s=90, label=name)
    axes.scatter(xs, real, color=VERMILION, marker="D", label="reached", zorder=3)
    axes.set_ylim(0, 65)
    axes.set_xticks(xs, [*table.index], rotation=90, fontsize=12)
    axes.text(0.99, 0.93, "◆ reached", transform=axes.transAxes, ha="right")
    return figure


@styled
def sweep_maps(maps: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Sweeps on the same axes: micro-batch, and GPUs that share a copy of the model.

    `maps` holds for each name its plans or measurements, each with `micro_batch_size`,
    `gpus_a_copy`, `throughput` (tokens/s on a GPU: the marker's size, from the least of
    a map to its greatest) and `mfu` (its colour).
    """
    figure, places = plt.subplots(1, len(maps), sharex=True, sharey=True)
    for axes, (name, points) in zip(np.atleast_1d(places), maps.items(), strict=True):
        scatter = _draw_points(axes, name, points)
        axes.set_title(name, fontsize=13)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:.0f}")
        axes.margins(0.15)
        axes.set(xlabel="micro-batch", ylabel="GPUs for one copy")
        axes.label_outer()
    figure.colorbar(scatter, label="MFU (%)")
    return figure


def _draw_points(axes: Any, name: str, points: Sequence[Mapping[str, Any]]) -> Any:
    rates = np.array([float(point["throughput"]) for point in points])
    return axes.scatter(
        [point["micro_batch_size"] for point in points],
        [point["gpus_a_copy"] for point in points],
        s=40 + 460 * (rates - rates.min()) / np.ptp(rates),
        c=[100 * point["mfu"] for point in points],
        label=name,
        cmap="cividis",
        vmin=20,
        vmax=65,
        edgecolor="black",
        linewidth=0.5,
    )
