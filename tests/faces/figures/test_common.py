"""What all figures share: that they are seen, and what is told of them in words."""

from __future__ import annotations

import itertools
import os
import sys
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from pandas import DataFrame

from llmtrain_course import measure
from llmtrain_course.activations import figures as activations
from llmtrain_course.batch import figures as batch
from llmtrain_course.duration import figures as duration
from llmtrain_course.flops import figures as flops
from llmtrain_course.kit.figures import LIVE, describe, new_figure, show_in_notebooks
from llmtrain_course.measure import figures as measured
from llmtrain_course.parallelism import figures as parallelism
from llmtrain_course.parameters import figures as parameters
from llmtrain_course.precision import figures as precision
from llmtrain_helpers import published

# --- seen under any backend

DRAWN = """
import matplotlib.pyplot as plt
from llmtrain_course.precision.figures import bit_layouts
figure = bit_layouts()
plt.show()
"""


def test_a_figure_is_seen_whatever_backend_a_container_sets() -> None:
    notebook = new_notebook(cells=[new_code_cell(DRAWN)])
    client = NotebookClient(notebook, timeout=120)
    client.execute(env={**os.environ, "MPLBACKEND": "TkAgg"})
    kinds = [kind for output in notebook.cells[0].outputs for kind in output.data]
    assert "image/png" in kinds


@pytest.mark.parametrize(
    ("asked", "backend", "chosen"),
    [
        ("Agg", "agg", ["inline"]),
        ("TkAgg", "TkAgg", ["inline"]),
        ("TkAgg", "agg", ["inline"]),  # matplotlib's own retreat without a screen
        ("Agg", "svg", []),  # chosen by %matplotlib
    ],
)
def test_what_a_learner_chose_stays(
    monkeypatch: Any, asked: str, backend: str, chosen: list[str]
) -> None:
    taken: list[str] = []
    shell = SimpleNamespace(kernel=True, enable_matplotlib=taken.append)
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setenv("MPLBACKEND", asked)
    monkeypatch.setattr(mpl, "rcParams", {"backend": backend})
    show_in_notebooks()
    assert taken == chosen


# --- what a reader of the picture reads stands in the words


def lines_of(axes: Axes) -> list[str]:
    return describe(axes.figure).splitlines()


def empty() -> Axes:
    figure, axes = new_figure("A title", "tokens", "days")
    plt.close(figure)
    return axes


def test_title_axes_scale_and_chosen_ticks_are_told() -> None:
    axes = empty()
    assert lines_of(axes) == ["Figure: A title", "x: tokens; y: days"]
    axes.set_yscale("log")
    axes.set_xticks([1, 2], ["one", "two"])
    assert lines_of(axes)[1] == "x: tokens, one · two; y: days, log scale"
    axes.set(xlabel="", ylabel="")
    assert lines_of(axes)[1] == "x: one · two; y: names"


def test_guides_are_told_and_other_nameless_lines_are_not() -> None:
    axes = empty()
    axes.axhline(6)
    axes.axvline(0.5)
    axes.plot([1, 2], [3, 4])
    assert lines_of(axes)[2:] == ["- guide: y = 6, x = 0.500"]


def test_a_band_is_told_with_both_edges_at_both_ends() -> None:
    axes = empty()
    axes.fill_between([1, 2, 4], [10, 20, 40], [30, 60, 120], label="band")
    assert lines_of(axes)[2:] == ["- band: 10 to 30 at x = 1, 40 to 120 at x = 4"]


def test_what_is_written_is_told_but_for_names_and_times() -> None:
    axes = empty()
    axes.plot([1, 2], [3, 4], label="mine, estimated")
    for place, text in enumerate(["mine", "+10%", "two\nlines"]):
        axes.text(1, place, text)
    axes.text(1, 4, "57 ms", gid=LIVE)
    assert lines_of(axes)[3:] == ["- written: +10%, two, lines"]


def test_bars_and_dots_are_told() -> None:
    axes = empty()
    axes.bar(["a", "b"], [1, 2], label="part")
    axes.scatter([1, 2], [3, 4], label="dots")
    lines = lines_of(axes)
    assert "- part: a 1, b 2" in lines
    assert lines[2].endswith("least 3, greatest 4; 2 points")


# --- all figures

PARTS = {"weights": 5e9, "gradients": 1e9, "optimizer": 9e9, "activations": 7e9}
RUN = {
    "name": "mine",
    "num_gpus": 64,
    "tokens": 10**12,
    "active_parameters": 10**9,
    "peak_flops": 312e12,
    "days": 20.0,
}
RAMP = {"year": 2020, "parameters": 1e9, "batch_tokens_start": 1e5, "batch_tokens_end": 1e6}
OPERATORS = [
    measure.Operator("mm", phase, start, 1e-3, product)
    for start, phase in enumerate(measure.PHASES)
    for product in (True, False)
]

STEPS = DataFrame({"tensor": [1, 2], "seconds": [3.0, 4.0], "modelled": [2.5, 3.0]})

FIGURES: dict[str, Any] = {
    "shares": lambda: parameters.shares_by_size(
        {n: published.architecture(n) for n in ("gpt2", "gpt2-xl")}
    ),
    "errors": lambda: parameters.formula_errors({"low": -0.4, "high": 0.1}),
    "flops": flops.flops_per_parameter,
    "days": lambda: duration.days_by_gpus([RUN, RUN | {"name": "yours"}]),
    "years": lambda: batch.published_batches([RAMP, RAMP], "year"),
    "sizes": lambda: batch.published_batches([RAMP, RAMP], "parameters"),
    "splits": lambda: parallelism.layouts({"mine": STEPS}, STEPS.to_dict("records")),
    "layouts": precision.bit_layouts,
    "ranges": precision.ranges,
    "spacings": precision.spacings,
    "losses": lambda: precision.losses([2, 1], {"bf16": {"alone": [2, 1.5]}}),
    "memory": lambda: activations.memory_bars({"1B": {"a": PARTS, "b": PARTS}}),
    "operators": lambda: measured.operators(measure.StepProfile(tuple(OPERATORS))),
    "times": lambda: measured.throughputs([1, 2], {"a": [1, 2], "b": [2, 3]}),
    "exchange": lambda: measured.exchange(measure.DataParallel(2, 8, 0.0, 1.0, 2.0)),
}


@pytest.fixture(params=FIGURES)
def figure(request: pytest.FixtureRequest) -> Figure:
    drawn: Figure = FIGURES[request.param]()
    plt.close(drawn)
    return drawn


def test_a_name_beside_a_line_has_the_lines_colour(figure: Figure) -> None:
    for axes in figure.axes:
        named = [line for line in axes.lines if line.get_label()[0] != "_"]
        for text in axes.texts:
            own = [a for a in named if a.get_label().startswith(text.get_text())]
            assert not own or text.get_color() in [line.get_color() for line in own]


def test_series_are_told_apart(figure: Figure) -> None:
    for axes in figure.axes:
        named = [line for line in axes.lines if line.get_label()[0] != "_"]
        looks = [(line.get_color(), line.get_linestyle()) for line in named]
        assert len(set(looks)) == len(named)
        faces = [
            (bars.patches[0].get_facecolor(), bars.patches[0].get_alpha())
            for bars in axes.containers
        ]
        assert len(set(faces)) == len(faces)


def test_stacked_bars_stand_on_one_another_and_have_a_key(figure: Figure) -> None:
    for axes in figure.axes:
        stacks = zip(*(bars.patches for bars in axes.containers), strict=True)
        for stack in stacks:
            for below, above in itertools.pairwise(stack):
                low, high = below.get_bbox(), above.get_bbox()
                lying = figure.axes[0].containers[0].orientation == "horizontal"
                ends = (low.x1, high.x0) if lying else (low.y1, high.y0)
                assert ends[0] == pytest.approx(ends[1])
    first = figure.axes[0]
    names = [bars.get_label() for bars in first.containers]
    key = first.get_legend()
    if names and first.containers[0].orientation == "vertical":
        assert [text.get_text() for text in key.get_texts()] == names[::-1]


def test_names_stand_where_their_ticks_are() -> None:
    axes = FIGURES["flops"]().axes[0]
    ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    assert [f"{x:,.0f}" for x, _ in ticks] == [label.get_text() for label in axes.get_xticklabels()]
    axes = FIGURES["memory"]().axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b"]


def test_times_stand_in_the_row_of_their_name() -> None:
    axes = FIGURES["exchange"]().axes[0]
    assert rows(axes) == {"average": 2000, "pass": 1000}  # ms
    axes = FIGURES["operators"]().axes[0]
    assert rows(axes) == {"forward": 1, "backward": 1001, "optimizer": 2001}


def rows(axes: Axes) -> dict[str, float]:
    """Where the last piece of each row ends, by the name beside the row."""
    ticks = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    names = {round(y, 3): label.get_text() for y, label in ticks}
    ends = {}
    for item in axes.collections:
        for path in item.get_paths():
            box = path.get_extents()
            ends[names[round((box.y0 + box.y1) / 2, 3)]] = box.x1
    return {name: pytest.approx(end) for name, end in ends.items()}
