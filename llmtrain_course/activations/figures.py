"""Figures of chapter 06: what a step holds, over lengths and over time."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.figures import new_figure, styled
from llmtrain_helpers.activations import Timeline
from llmtrain_helpers.units import GB

HATCHES = {"weights": "", "gradients": "/", "optimizer": ".", "activations": "x", "logits": "-"}
"""The parts of a step's memory, and a hatch for each beside its colour."""


@styled
def memory_bars(models: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Figure:
    """Bytes by part, for each model and each setting, stacked.

    `models` holds for each model's name the settings by their label, and for each the
    parts with their bytes.
    """
    figure, places = plt.subplots(1, len(models))
    for axes, (name, settings) in zip(np.atleast_1d(places), models.items(), strict=True):
        bottom = np.zeros(len(settings))
        for part in next(iter(settings.values())):
            sizes = np.array([parts[part] for parts in settings.values()]) / GB
            style = {"color": COLORS[part], "hatch": HATCHES[part]}
            axes.bar([*settings], sizes, bottom=bottom, label=part, **style)
            bottom = bottom + sizes
        axes.set(title=name, xlabel="tokens, recomputed", ylabel="GB")
        axes.tick_params(axis="x", rotation=90, labelsize=11)
        axes.grid(visible=False, axis="x")
    np.atleast_1d(places)[0].legend(fontsize=12, loc="upper left", reverse=True)
    figure.set_size_inches(9, 4.8)
    return figure


@styled
def timeline(line: Timeline) -> Figure:
    """What is resident from mark to mark, stacked part by part."""
    figure, axes = new_figure(
        "The peak stands where the loss is differentiated", "moment", "GB resident"
    )
    xs = range(len(line.moments))
    labels = [f"{moment.step} {moment.mark}" for moment in line.moments]
    bottom = np.zeros(len(labels))
    for part, hatch in HATCHES.items():
        sizes = np.array([getattr(moment, part) for moment in line.moments]) / GB
        axes.bar(xs, sizes, bottom=bottom, width=0.85, color=COLORS[part], hatch=hatch, label=part)
        bottom = bottom + sizes
    axes.set_xticks(xs, labels, rotation=90, fontsize=11)
    axes.grid(visible=False, axis="x")
    axes.legend(fontsize=12, loc="upper left", ncols=5, reverse=True, columnspacing=1)
    axes.set_ylim(top=1.2 * bottom.max())
    return figure
