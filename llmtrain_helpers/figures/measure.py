"""Figures of chapter 11: times of this machine, so that no number is in their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from llmtrain_helpers.figures.common import (
    BLACK,
    BLUE,
    GREEN,
    GRID,
    HATCHES,
    LIVE,
    MARKERS,
    VERMILION,
    label_line,
    new_figure,
    styled,
)
from llmtrain_helpers.measure import PHASES, DataParallel, StepProfile
from llmtrain_helpers.measure.clock import Times, times
from llmtrain_helpers.units import digits


@styled
def operators(profile: StepProfile) -> Figure:
    """The operators of a step in the order of time, matrix products apart."""
    figure, axes = new_figure("A training step on this machine, operator by operator", "ms", "")
    for row, phase in enumerate(reversed(PHASES)):
        for product, color in ((True, BLUE), (False, VERMILION)):
            spans = [
                (operator.start * 1e3, operator.seconds * 1e3)
                for operator in profile.operators
                if (operator.phase, operator.matrix_product) == (phase, product)
            ]
            style: Any = {"facecolor": color, "hatch": HATCHES[color]}
            axes.broken_barh(spans, (row - 0.3, 0.6), linewidth=0, **style)
    axes.set_yticks(range(len(PHASES)), PHASES[::-1])
    axes.set_ylim(-0.6, len(PHASES))
    label = f"■ matrix products, {100 * profile.matmul_share:.0f} % of the time"
    top: Any = {"va": "top", "transform": axes.transAxes}
    axes.text(0.02, 0.98, label, color=BLUE, gid=LIVE, **top)
    axes.text(0.6, 0.98, "▨ the rest", color=VERMILION, **top)
    axes.grid(visible=False, axis="y")
    figure.set_size_inches(9, 3.4)
    return figure


@styled
def step_times(series: Mapping[int, Sequence[float]], warm_up: int) -> Figure:
    """Seconds of steps one after another, by series, with the median of each."""
    figure, axes = new_figure("The same step on the same machine, three times over", "step", "ms")
    known = {name: times(seconds, warm_up) for name, seconds in series.items()}
    places = _apart({name: 1e3 * one.median for name, one in known.items()}, 7)
    for (name, one), color in zip(known.items(), (BLUE, VERMILION, GREEN), strict=False):
        taken = [1e3 * seconds for seconds in series[name]]
        style: Any = {"color": color, "marker": MARKERS[color], "s": 36}
        axes.scatter(range(1, len(taken) + 1), taken, label=f"series {name}", **style)
        axes.plot([warm_up + 1, len(taken)], 2 * [1e3 * one.median], color=color)
        label = f"{digits(1e3 * one.median)} ms ± {digits(50 * one.spread, 2)} %"
        label = f"series {name}: {label}"
        label_line(axes, label, len(taken), places[name], color)
    axes.axvspan(0.5, warm_up + 0.5, color=GRID, zorder=0)
    axes.text(warm_up + 0.8, 96, "◂ warm-up", color=BLACK, va="center")
    axes.set_ylim(0, 104)
    return figure


@styled
def loader_shares(waits: Mapping[str, float], alone: Times) -> Figure:
    """What share of the time a step waits for its loader, loader by loader.

    The words say which half prevails; the per cent, and the median of the step `alone`
    with its spread, are of this machine, and not told.
    """
    figure, axes = new_figure("A step behind its loader, on this machine", "% of a step's time", "")
    label = f"the step alone: {1e3 * alone.median:.2g} ms ± {50 * alone.spread:.0f} %"
    axes.text(101, 2.05, label, ha="right", gid=LIVE)
    for row, (name, share) in enumerate(reversed([*waits.items()])):
        wait = 100 * min(max(share, 0), 1)
        does = {VERMILION: (0, wait), BLUE: (wait, 100 - wait)}
        for color, span in does.items():
            style: Any = {"facecolor": color, "hatch": HATCHES[color], "linewidth": 0}
            axes.broken_barh([span], (row, 0.4), **style)
        most = "waits for data" if wait > 50 else "computes"
        axes.text(0, row + 0.48, f"{name} loader: most of the time the step {most}")
        axes.text(101, row + 0.2, f"{wait:.0f} %", color=VERMILION, va="center", gid=LIVE)
    axes.text(0, 2.05, "▨ waits for data", color=VERMILION)
    axes.text(30, 2.05, "■ computes", color=BLUE)
    axes.set_xlim(0, 100)
    axes.set_ylim(-0.2, 2.4)
    axes.set_yticks([])
    axes.grid(visible=False)
    figure.set_size_inches(9, 3.4)
    return figure


def _apart(values: Mapping[int, float], least: float) -> dict[int, float]:
    """Places for labels, each at least so far above the one below it."""
    found: dict[int, float] = {}
    below = float("-inf")
    for name, value in sorted(values.items(), key=lambda pair: pair[1]):
        found[name] = below = max(value, below + least)
    return found


@styled
def throughputs(sizes: Sequence[int], curves: Mapping[str, Sequence[float]]) -> Figure:
    """Sequences a second over the batch, from the seconds of each curve."""
    figure, axes = new_figure(
        "A larger batch is almost free at first, and then no more",
        "batch (sequences)",
        "sequences / s",
    )
    for (name, seconds), color in zip(curves.items(), (BLUE, GREEN), strict=False):
        rates = [size / t for size, t in zip(sizes, seconds, strict=True)]
        axes.plot(sizes, rates, color=color, marker=MARKERS[color], label="_times")
        label_line(axes, name, sizes[-1], rates[-1], color)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    return figure


@styled
def exchange(shared: DataParallel) -> Figure:
    """A process's pass through its share of the batch, and the averaging after it."""
    figure, axes = new_figure("What averaging the gradients costs here", "ms", "")
    times = {"average": shared.all_reduce_seconds, "pass": shared.pass_seconds}
    for (name, seconds), color in zip(times.items(), (VERMILION, BLUE), strict=True):
        style: Any = {"color": color, "hatch": HATCHES[color]}
        axes.broken_barh([(0, seconds * 1e3)], (list(times).index(name), 0.6), **style)
    axes.set_yticks([0.3, 1.3], [*times])
    axes.grid(visible=False, axis="y")
    figure.set_size_inches(9, 2.4)
    return figure
