"""Figures of chapter 06: what a step holds, over lengths."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.figures import styled
from llmtrain_helpers.units import GB

HATCHES = {"weights": "", "gradients": "/", "optimizer": ".", "activations": "x"}
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
