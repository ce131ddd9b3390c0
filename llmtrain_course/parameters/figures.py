"""Figures of chapter 01: where the parameters sit, and where the formula errs."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from llmtrain_course.kit.figures import (
    BLUE,
    GREEN,
    HATCHES,
    MARKERS,
    VERMILION,
    label_line,
    new_figure,
    styled,
)
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import count_parameters


@styled
def shares_by_size(models: Mapping[str, Transformer]) -> Figure:
    """The share of embedding, attention and MLP over the size of the model."""
    counts = sorted((count_parameters(m) for m in models.values()), key=lambda c: c.total)
    figure, axes = new_figure(
        "A GPT that grows is more and more MLP and attention, two to one",
        "parameters",
        "share of the parameters (%)",
    )
    sizes = [float(count.total) for count in counts]
    for part, color in {"mlp": BLUE, "attention": VERMILION, "embedding": GREEN}.items():
        shares = [100 * count.shares()[part] for count in counts]
        name = part.upper() if part == "mlp" else part
        axes.plot(sizes, shares, color=color, marker=MARKERS[color], label=name)
        label_line(axes, name, sizes[-1], shares[-1], color)
    axes.set(xscale="log", ylim=(-2, 75), xlim=(8e7, 1.1 * sizes[-1]))
    return figure


@styled
def formula_errors(errors: Mapping[str, float]) -> Figure:
    """How far the GPT formula is off, as a share of the exact count, model by model."""
    figure, axes = new_figure(
        "On other shapes the GPT formula is off by up to two fifths and more",
        "formula against exact count (%)",
        "model",
    )
    ordered = dict(sorted(errors.items(), key=lambda item: item[1], reverse=True))
    sizes = [100 * error for error in ordered.values()]
    low = HATCHES[VERMILION]
    axes.barh(
        list(ordered),
        sizes,
        color=[BLUE if size >= 0 else VERMILION for size in sizes],
        hatch=["" if size >= 0 else low for size in sizes],
        label="formula against exact count (%)",
    )
    axes.axvline(0, color="black", linewidth=1)
    axes.set_xlim(min(sizes) - 8, max(sizes) + 8)
    for place, size in enumerate(sizes):
        side, away = ("left", 0.7) if size >= 0 else ("right", -0.7)
        label = f"{size:+.1f}%"
        axes.text(size + away, place, label, ha=side, va="center", fontsize=12)
    figure.set_size_inches(9, 0.36 * len(sizes) + 1.4)
    axes.grid(visible=False)
    return figure
