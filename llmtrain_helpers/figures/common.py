"""What the figures of all chapters share: their style, and their description in words.

Made for a projector: text of 14 points, lines of 2.5, five colours that reach 3:1 on
white and that colour-blind eyes tell apart, labels at the lines instead of a legend.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from llmtrain_helpers.units import digits

BLUE, VERMILION, GREEN, PURPLE, BLACK = (
    "#0072B2",
    "#D55E00",
    "#00875F",
    "#B8578F",
    "#000000",
)
"""Okabe and Ito's colours; green and purple darkened until they reach 3:1 on white."""

MARKERS = {BLUE: "o", VERMILION: "s", GREEN: "^", PURPLE: "D", BLACK: "v"}
HATCHES = {BLUE: "", VERMILION: "//", GREEN: "..", PURPLE: "xx", BLACK: ""}
"""Colour never alone: each has a marker and a hatch of its own."""

STYLE: Any = {
    "font.size": 14,
    "axes.titlesize": 15,
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E0E0E0",
    "hatch.color": "white",
    "lines.linewidth": 2.5,
    "lines.markersize": 7,
    "figure.figsize": (9, 4.5),
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
}


def show_in_notebooks() -> None:
    """In a notebook, have figures under their cells, whatever MPLBACKEND asks for.

    Containers often set it, and most of what it may name shows nothing there. What was
    chosen later, by `%matplotlib`, stays.
    """
    ipython = sys.modules.get("IPython")
    shell: Any = ipython and ipython.get_ipython()
    asked = os.environ.get("MPLBACKEND", "").lower()
    backend = str(matplotlib.rcParams["backend"]).lower()
    if hasattr(shell, "kernel") and backend in (asked, "agg"):  # agg: without a screen
        shell.enable_matplotlib("inline")


show_in_notebooks()

Draw = TypeVar("Draw", bound=Callable[..., Figure])


def styled(draw: Draw) -> Draw:
    """Decorate a function that draws: all that it draws is in the course's style."""
    return cast(Draw, cast(Any, plt.rc_context(STYLE))(draw))


def new_figure(title: str, xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    """An empty figure; axis labels carry the unit. Call it in a `styled` function."""
    figure, axes = plt.subplots()
    axes.set_title(title)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    return figure, axes


def label_line(axes: Axes, text: str, x: float, y: float, color: str) -> None:
    """Write a line's name beside its last point, in its colour."""
    place: dict[str, Any] = {
        "xytext": (9, 0),
        "textcoords": "offset points",
        "va": "center",
    }
    axes.annotate(text, (x, y), color=color, annotation_clip=False, **place)


def describe(figure: Figure) -> str:
    """A figure in words: title, axes, and of each series the ends and the extremes.

    It is the figure's description for those who do not see it, and the text that the
    tests compare.
    """
    lines: list[str] = []
    for axes in figure.axes:
        title = axes.get_title(loc="left") or axes.get_title()
        if not title:  # a colour bar
            continue
        first = not lines
        lines.append(f"{'Figure' if first else 'Beside it'}: {title}")
        ylabel = axes.get_ylabel() or ("names" if first else "the same")
        lines.append(f"x: {axes.get_xlabel() or 'names'}; y: {ylabel}")
        lines += [_line(series) for series in axes.lines if _named(series)]
        lines += [_points(series) for series in axes.collections if _named(series)]
        bars = [item for item in axes.containers if isinstance(item, BarContainer)]
        lines += [_bars(axes, series) for series in bars]
    return "\n".join(lines)


def _named(series: Any) -> bool:
    return not str(series.get_label()).startswith("_")


def _line(line: Any) -> str:
    return _series(line.get_label(), line.get_xdata(), line.get_ydata())


def _points(points: Any) -> str:
    offsets, shades = points.get_offsets(), points.get_array()
    told = _series(points.get_label(), offsets[:, 0], offsets[:, 1])
    if shades is None:
        return told
    return f"{told}; colour {_told(shades.min())} to {_told(shades.max())}"


def _series(name: str, xs: Sequence[float], ys: Sequence[float]) -> str:
    pairs = sorted(zip(map(float, xs), map(float, ys), strict=True))
    if len(pairs) == 1:
        return f"- {name}: {_told(pairs[0][1])} at x = {_told(pairs[0][0])}"
    ends = [f"{_told(y)} at x = {_told(x)}" for x, y in (pairs[0], pairs[-1])]
    values = sorted(y for _, y in pairs)
    spread = f"least {_told(values[0])}, greatest {_told(values[-1])}"
    return f"- {name}: {' to '.join(ends)}; {spread}; {len(pairs)} points"


def _told(number: float) -> str:
    """A small whole number as it is, any other in three digits."""
    small = abs(number) < 10_000 and float(number).is_integer()
    return f"{number:.0f}" if small else digits(number)


def _bars(axes: Axes, bars: BarContainer) -> str:
    lying = bars.orientation == "horizontal"
    ticks = axes.get_yticklabels() if lying else axes.get_xticklabels()
    sizes = [bar.get_width() if lying else bar.get_height() for bar in bars.patches]
    named = zip([tick.get_text() for tick in ticks], sizes, strict=True)
    told = ", ".join(f"{name} {_told(size)}" for name, size in named)
    return f"- {bars.get_label()}: {told}"
