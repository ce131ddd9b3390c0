"""Figures of chapter 05: number formats, and training in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from llmtrain_course.kit.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PURPLE,
    VERMILION,
    label_line,
    new_figure,
    styled,
)
from llmtrain_helpers.precision import FORMATS

COLORS = [BLUE, VERMILION, GREEN, PURPLE, BLACK]

BAND: Any = {"color": GREY, "alpha": 0.45, "linewidth": 11}
"""Of what lies beneath the others."""


@styled
def bit_layouts() -> Figure:
    """How many bits each format gives to sign, exponent and mantissa."""
    figure, axes = new_figure(
        "Exponent bits make the range, mantissa bits the precision", "bits", "format"
    )
    names = [*FORMATS][::-1]
    formats = [FORMATS[name] for name in names]
    starts = np.zeros(len(formats))
    parts = {
        "sign": [1] * len(formats),
        "exponent": [f.exponent_bits for f in formats],
        "mantissa": [f.mantissa_bits for f in formats],
    }
    for (part, sizes), color in zip(parts.items(), (BLACK, VERMILION, BLUE), strict=True):
        bars = axes.barh(names, sizes, left=starts, color=color, label=part)
        label = [f"{part} {n}" if n > 6 else f"{n}" for n in sizes]
        axes.bar_label(bars, label, label_type="center", color="white", fontsize=12)
        starts = starts + sizes
    axes.grid(visible=False)
    figure.set_size_inches(9, 3.4)
    return figure


@styled
def ranges() -> Figure:
    """From the smallest subnormal to the largest number, in powers of two."""
    figure, axes = new_figure(
        "bf16 reaches nearly as far as fp32; fp16 and fp8 do not", "power of two", "format"
    )
    names = [*FORMATS][::-1]
    formats = [FORMATS[name] for name in names]
    low = np.log2([f.min_subnormal for f in formats])
    normal = np.log2([f.min_normal for f in formats])
    high = np.log2([f.max for f in formats])
    pale: Any = {"color": BLUE, "alpha": 0.4, "label": "subnormal numbers"}
    axes.barh(names, normal - low, left=low, **pale)
    axes.barh(names, high - normal, left=normal, color=BLUE, label="normal numbers")
    for place, f in enumerate(formats):
        axes.text(high[place] + 3, place, f"{f.max:.3g}", va="center", fontsize=12)
    axes.axvline(0, color="black", linewidth=1)
    axes.set_xlim(-155, 165)
    axes.grid(visible=False)
    figure.set_size_inches(9, 3.4)
    return figure


@styled
def spacings(names: Sequence[str] = ("bf16", "fp16", "fp8_e4m3", "fp8_e5m2")) -> Figure:
    """The spacing, as a share of the number."""
    figure, axes = new_figure(
        "Between its limits a format is about equally precise", "number", "spacing / number"
    )
    numbers = 2.0 ** np.arange(-24, 17)
    for name, color in zip(names, COLORS, strict=False):
        number_format = FORMATS[name]
        inside = (numbers >= number_format.min_subnormal) & (numbers <= number_format.max)
        xs = numbers[inside]
        ys = number_format.spacing(xs) / xs
        axes.plot(xs, ys, color=color, label=name)
        label_line(axes, name, xs[-1], ys[-1], color)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    return figure


@styled
def losses(exact: Sequence[float], troubles: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Loss over the steps of `formulas.train_small_network`: a trouble, and its cure.

    A picture for each trouble, by its title; in each the run without rounding as a
    broad band, so that a line which lies on it is seen on it.
    """
    figure, places = plt.subplots(1, len(troubles), sharey=True, squeeze=False)
    for axes, (title, runs) in zip(places[0], troubles.items(), strict=True):
        axes.set_title(title)
        axes.set(xlabel="step")
        axes.plot(range(len(exact)), exact, label="fp32", **BAND)
        for (name, loss), color, dashes in zip(
            runs.items(), (VERMILION, BLUE), ("--", "-"), strict=False
        ):
            axes.plot(range(len(loss)), loss, color=color, linestyle=dashes, label=name)
            at = len(loss) * 3 // 8
            axes.text(at, 1.22 * loss[at], name, color=color)
        at = len(exact) * 9 // 20
        axes.text(at, 0.45 * exact[at], "fp32 (broad)", ha="right")
        axes.set_xticks([len(exact) * k // 4 for k in range(5)])
    places[0][0].set(ylabel="loss (mean squared error)", yscale="log")
    return figure
