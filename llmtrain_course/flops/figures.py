"""Figures of chapter 02: where 6 and 8 FLOPs for each parameter and token hold."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from llmtrain_course.kit.figures import (
    BLUE,
    GREEN,
    MARKERS,
    VERMILION,
    label_line,
    new_figure,
    styled,
)
from llmtrain_helpers.checks import Number
from llmtrain_helpers.flops import Recompute, gpt_flops
from llmtrain_helpers.parameters import gpt_parameters

LENGTHS = 2 ** np.arange(9, 17)
"""Sequence lengths from 512 to 65,536 tokens."""


def per_parameter_and_token(hidden_size: int, recompute: Recompute) -> NDArray[Any]:
    """The FLOPs per parameter and token over `LENGTHS`, for a GPT of h/128 layers."""
    shape: dict[str, Number] = {
        "num_layers": hidden_size // 128,
        "hidden_size": hidden_size,
        "vocab_size": 50_000,
        "sequence_length": LENGTHS,
    }
    flops = gpt_flops(**shape, batch_size=1, recompute=recompute)
    return flops / (LENGTHS * gpt_parameters(**shape))


@styled
def flops_per_parameter(hidden_sizes: Sequence[int] = (1024, 4096, 12288)) -> Figure:
    """FLOPs for each parameter and token over the sequence length, by hidden size."""
    figure, axes = new_figure(
        "At s = h, 6 and 8 are up to a seventh too low; beyond, far too low",
        "sequence length (tokens)",
        "FLOPs / (parameter · token)",
    )
    line_styles: dict[Recompute, str] = {"none": "-", "full": "--"}
    for h, color in zip(hidden_sizes, cycle((GREEN, VERMILION, BLUE)), strict=False):
        for recompute, dashes in line_styles.items():
            ys = per_parameter_and_token(h, recompute)
            visible = ys <= 20
            name = f"h = {h:,}, recompute {recompute}"
            [line] = axes.plot(LENGTHS[visible], ys[visible], color=color, label=name)
            line.set(linestyle=dashes, marker=MARKERS[color])
        label_line(axes, f"h = {h:,}", LENGTHS[visible][-1], ys[visible][-1], color)
    for level in (6, 8):
        axes.axhline(level, color="black", linewidth=1)
    axes.set(xscale="log", ylim=(4, 21), yticks=[6, 8, 12, 16, 20])
    axes.set_xticks([1024, 4096, 16384, 65536], ["1,024", "4,096", "16,384", "65,536"])
    axes.minorticks_off()
    axes.text(600, 18.5, "— nothing recomputed\n- - everything recomputed", va="center")
    return figure
