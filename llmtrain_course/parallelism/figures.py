"""Figures of chapter 08: measured steps and the model's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from llmtrain_course.kit.figures import (
    BLACK,
    BLUE,
    GREEN,
    MARKERS,
    PURPLE,
    VERMILION,
    label_line,
    styled,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_COLORS = [BLUE, VERMILION, GREEN, PURPLE, BLACK]


def by_tensor(
    steps: DataFrame, num_gpus: int, pipeline_parallel: int, micro_batch_size: int
) -> list[dict[str, Any]]:
    """Measured steps that differ in tensor parallelism alone, with their `tensor`."""
    wanted = (num_gpus, pipeline_parallel, micro_batch_size)
    rows: list[Any] = [
        {**row, "tensor": split.tensor_parallel}
        for row in steps.to_dict("records")
        for split in [row["plan"].split]
        if (split.num_gpus, split.pipeline_parallel, split.micro_batch_size) == wanted
    ]
    return sorted(rows, key=lambda row: float(row["tensor"]))


@styled
def layouts(series: Mapping[str, DataFrame], by_size: Sequence[Mapping[str, Any]]) -> Figure:
    """Measured seconds of steps over the model's; beside it one model by TP.

    A series has rows of `splits.measured_splits`; `by_size` are rows with `tensor`,
    `seconds` and `modelled` (see `by_tensor`).
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.1), dpi=90, width_ratios=[1.15, 1])
    left.set_title("Measured against modelled steps")
    left.set(xlabel="seconds of the model", ylabel="seconds measured")
    for color, (name, rows) in zip(_COLORS, series.items(), strict=False):
        x, y = rows["modelled"].to_numpy(float), rows["seconds"].to_numpy(float)
        left.scatter(x, y, s=10, color=color, marker=MARKERS[color], label=name)
    left.set_xscale("log")
    left.set_yscale("log")
    ends = [0.02, 200]
    left.plot(ends, ends, color=BLACK, linewidth=1)
    left.legend(fontsize=11, loc="upper left", markerscale=2.2, handletextpad=0.2)
    for axis in (left.xaxis, left.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    _by_tensor(right, by_size)
    return figure


def _by_tensor(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Measured and modelled seconds over the GPUs that share each matrix."""
    axes.set_title("A 3.6B on 64 A100s")
    axes.set(xlabel="tensor parallel", ylabel="seconds of a step")
    sizes = [float(row["tensor"]) for row in rows]
    for name, key, color in (("measured", "seconds", VERMILION), ("model", "modelled", BLUE)):
        ys = [float(row[key]) for row in rows]
        axes.plot(sizes, ys, color=color, marker=MARKERS[color], label=name)
        label_line(axes, name, sizes[-1], ys[-1], color)
    axes.set_xscale("log", base=2)
    axes.set_xlim(right=2.6 * max(sizes))
    axes.set_ylim(bottom=0)
    axes.set_xticks(sizes, [f"{size:.0f}" for size in sizes])
    axes.minorticks_off()
