"""Figures of chapter 09: sweeps as maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from llmtrain_course.kit.figures import styled


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
