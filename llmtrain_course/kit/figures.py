"""What the figures of all chapters share: their style, and their description in words.

Made for a projector: text of 14 points, lines of 2.5, five colours that reach 3:1 on
the card and that colour-blind eyes tell apart, labels at the lines instead of a legend.
They stand on the drawings' light card, in their ink.
"""

from __future__ import annotations

import os
import sys
from base64 import b64encode
from collections.abc import Callable, Sequence
from html import escape
from io import BytesIO
from typing import Any, TypeVar, cast

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PolyCollection
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from llmtrain_course.kit.drawing import CARD, EDGE, INK
from llmtrain_helpers.units import digits

BLUE, VERMILION, GREEN, PURPLE, BLACK = ("#0072B2", "#D55E00", "#00875F", "#B8578F", INK)
"""Okabe and Ito's colours; green and purple darkened until they reach 3:1 on the card."""

GRID, GREY = "#DDE0E5", "#75797F"
"""Of lines that stay behind."""

MARKERS = {BLUE: "o", VERMILION: "s", GREEN: "^", PURPLE: "D", BLACK: "v"}
HATCHES = {BLUE: "", VERMILION: "//", GREEN: "..", PURPLE: "xx", BLACK: ""}
"""Colour never alone: each has a marker and a hatch of its own."""

LIVE = "live"
"""The gid of texts that hold times of this machine: they are not told."""

STYLE: Any = {
    "font.size": 14,
    "axes.titlesize": 15,
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "hatch.color": "white",
    "lines.linewidth": 2.5,
    "lines.markersize": 7,
    "figure.figsize": (9, 4.5),
    "figure.dpi": 100,
    "figure.facecolor": CARD,
    "axes.facecolor": CARD,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
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
    place: dict[str, Any] = {"xytext": (9, 0), "textcoords": "offset points", "va": "center"}
    axes.annotate(text, (x, y), color=color, annotation_clip=False, **place)


class ShownFigure:
    """A figure as a notebook shows it: the picture on a card, with its words."""

    def __init__(self, figure: Figure) -> None:
        self.words = describe(figure)
        buffer = BytesIO()
        figure.savefig(buffer, format="png", dpi=figure.dpi)
        self._png = b64encode(buffer.getvalue()).decode()
        self._width = round(figure.get_figwidth() * figure.dpi)
        plt.close(figure)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        card = f"border:1px solid {EDGE};border-radius:12px;background-color:{CARD}"
        style = f"max-width:100%;height:auto;{card}"
        image = (
            f'<img alt="{escape(self.words)}" width="{self._width}" style="{style}" '
            f'src="data:image/png;base64,{self._png}">'
        )
        return {"text/html": image, "text/plain": self.words}


def show(figure: Figure) -> ShownFigure:
    """The figure for a notebook, to end a cell with: nothing is printed.

    Its description is the picture's alternative text, and what the tests compare.
    """
    return ShownFigure(figure)


def describe(figure: Figure) -> str:
    """A figure in words: title, axes, of each series the ends and the extremes, labels.

    It is the figure's description for those who do not see it, and the text that the
    tests compare: what a reader of the picture reads stands in it.
    """
    lines: list[str] = []
    for axes in figure.axes:
        title = axes.get_title(loc="left") or axes.get_title()
        lines += _axes(axes, title, first=not lines)
    return "\n".join(lines)


def _axes(axes: Axes, title: str, first: bool) -> list[str]:
    bars = [item for item in axes.containers if isinstance(item, BarContainer)]
    along = [_along(axis, bars) for axis in (axes.xaxis, axes.yaxis)]
    x, y = (label or ("names" if first else "the same") for label in along)
    lines = [f"{'Figure' if first else 'Beside it'}: {title}", f"x: {x}; y: {y}"]
    lines += [_line(line) for line in axes.lines if _named(line)]
    lines += [_shapes(item) for item in axes.collections if _named(item)]
    lines += [_bars(axes, series) for series in bars]
    return lines + _guides(axes) + _written(axes)


def _along(axis: Axis, bars: Sequence[BarContainer]) -> str:
    """An axis: its label, its scale, and the ticks that were chosen for it."""
    label, ticks = axis.get_label_text(), axis.get_majorticklabels()
    chosen = isinstance(axis.get_major_locator(), FixedLocator) and not bars
    named = " · ".join(tick.get_text() for tick in ticks) if chosen else ""
    scale = "log scale" if label and axis.get_scale() == "log" else ""
    return ", ".join(part for part in (label, scale, named) if part)


def _named(series: Any) -> bool:
    return not str(series.get_label()).startswith("_")


def _line(line: Any) -> str:
    return _series(line.get_label(), line.get_xdata(), line.get_ydata())


def _shapes(item: Any) -> str:
    """Points, or the edges of a band: what a collection holds."""
    if isinstance(item, PolyCollection):
        return f"- {item.get_label()}: {_band(item)}"
    points = item.get_offsets()
    return _series(item.get_label(), points[:, 0], points[:, 1])


def _band(band: Any) -> str:
    """A filled band in words: its lower and upper edge at both ends."""
    points = [tuple(point) for path in band.get_paths() for point in path.vertices]
    xs = [x for x, _ in points]
    edges = {end: [y for x, y in points if x == end] for end in (min(xs), max(xs))}
    return ", ".join(
        f"{_number(min(ys))} to {_number(max(ys))} at x = {_number(x)}" for x, ys in edges.items()
    )


def _series(name: str, xs: Sequence[float], ys: Sequence[float]) -> str:
    pairs = sorted(zip(map(float, xs), map(float, ys), strict=True))
    if len(pairs) == 1:
        return f"- {name}: {_number(pairs[0][1])} at x = {_number(pairs[0][0])}"
    ends = [f"{_number(y)} at x = {_number(x)}" for x, y in (pairs[0], pairs[-1])]
    values = sorted(y for _, y in pairs)
    spread = f"least {_number(values[0])}, greatest {_number(values[-1])}"
    return f"- {name}: {' to '.join(ends)}; {spread}; {len(pairs)} points"


def _number(number: float) -> str:
    """A small whole number as it is, any other in three digits."""
    small = abs(number) < 10_000 and float(number).is_integer()
    return f"{number:.0f}" if small else digits(number)


def _bars(axes: Axes, bars: BarContainer) -> str:
    lying = bars.orientation == "horizontal"
    ticks = axes.get_yticklabels() if lying else axes.get_xticklabels()
    sizes = [bar.get_width() if lying else bar.get_height() for bar in bars.patches]
    named = zip([tick.get_text() for tick in ticks], sizes, strict=True)
    label = ", ".join(f"{name} {_number(size)}" for name, size in named)
    return f"- {bars.get_label()}: {label}"


def _guides(axes: Axes) -> list[str]:
    """Lines from edge to edge of the picture."""
    places = []
    line: Any
    for line in axes.lines:
        ends = zip("xy", (line.get_xdata(), line.get_ydata()), strict=True)
        by_data = line.get_transform().contains_branch_seperately(axes.transData)
        if sum(by_data) == 1:
            label = zip(ends, by_data, strict=True)
            places += [f"{name} = {_number(at[0])}" for (name, at), data in label if data]
    return [f"- guide: {', '.join(places)}"] if places else []


def _written(axes: Axes) -> list[str]:
    """What stands in the picture, but for names of series and figures of the moment."""
    names = [str(series.get_label()) for series in (*axes.lines, *axes.collections)]
    texts = [text.get_text() for text in axes.texts if text.get_gid() != LIVE]
    notes = [t.replace("\n", ", ") for t in texts if not _begins_one(t, names)]
    return [f"- written: {', '.join(notes)}"] if notes else []


def _begins_one(text: str, names: Sequence[str]) -> bool:
    """Whether it is a series' name or begins it: "BLOOM" of "BLOOM, estimated"."""
    return any(name.startswith(text) for name in names)
