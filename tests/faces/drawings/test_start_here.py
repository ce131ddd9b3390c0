"""Chapter 00's pictures: as large as the tokens, the operations and the share that's done."""

from math import log2, log10
from typing import Any

import pytest

from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.ids import CHAPTERS
from llmtrain_course.start_here import pictures as drawings
from llmtrain_course.start_here.formulas import flops_on_the_way
from tests.faces.svg import Picture, drawn

MARKS = [("GPT-3", 300e9), ("Llama 3.1 405B", 15.6e12)]
WANTED = [("GPT-3 read", 300e9), ("20 for each parameter:", 160e9)]

every_layout = pytest.mark.parametrize("layout", [drawings.WIDE, drawings.NARROW])


def machine(num_gpus: int = 8, days: float = 30, tokens: float = 47e9, **more: Any) -> Picture:
    """The machine of eight A100 that train 8 billion parameters."""
    more = {"targets": WANTED, **more}
    return drawn(drawings.machine(num_gpus, days, 8e9, 109.2e12, 48e9, tokens, MARKS, **more))


@every_layout
@pytest.mark.parametrize("n", [1, 32, 33, 16384])
def test_a_square_stands_for_one_gpu_or_for_as_many_as_it_says(n: int, layout) -> None:
    picture = machine(n, 1, layout=layout)
    squares = [x for x in picture.of_kind("rect") if x.width == x.height and not x.words]
    captions = [x for x in picture.texts if x.startswith("a square: ")]
    each = int(captions[0].split()[2].replace(",", "")) if captions else 1
    assert len(squares) - 1 == -(-n // each)  # one is the day's
    assert len(squares) - 1 <= 32


@every_layout
def test_twice_the_tokens_are_twice_the_field(layout: drawings.Layout) -> None:
    def share(tokens: float) -> float:
        picture = machine(tokens=tokens, before=10e9, layout=layout)
        [field] = picture.titled("the field")
        filled = [x for x in picture.titled("tokens") if x.inside(field)]
        assert all(x.fill == COLORS["useful"] for x in filled)
        return sum(x.area for x in filled) / field.area

    assert [share(5e9 * n) for n in (0.5, 1, 5, 7.5, 15, 200)] == pytest.approx(
        [share(1e12) * n / 200 for n in (0.5, 1, 5, 7.5, 15, 200)]
    )
    assert share(1e12) == pytest.approx(share(1e14)) == pytest.approx(1)  # and it says so:
    assert "the field, 100 times" in machine(tokens=1e14, layout=layout).texts


def test_a_mark_stands_in_the_field_where_as_many_tokens_end() -> None:
    picture = machine(targets=[("GPT-3 read", 300e9), ("enough", 2e12)], tokens=300e9)
    [mark] = [x for x in picture.of_kind("line") if x.thick == 2.5]
    [field] = picture.titled("the field")
    assert mark.left == pytest.approx(field.left + 0.3 * field.width)
    assert "enough 2.0 trillion; further right" in picture.texts
    assert machine().width_of("the field") == field.width


@every_layout
@pytest.mark.parametrize("tokens", [1.0, 1e6, 1e9, 4e10, 1e13, 1e14, 1e20])
def test_the_bar_ends_on_the_scale(tokens: float, layout: drawings.Layout) -> None:
    picture = machine(tokens=tokens, layout=layout)
    bar = picture.titled("tokens")[-1]
    trillion, billion = picture.text("1 trillion").across, picture.text("1 billion").across
    where = billion + (trillion - billion) / 3 * log10(tokens / 1e9)
    if 1e6 <= tokens <= 1e13:
        assert bar.right == pytest.approx(where, abs=0.3)
    beyond = [x for x in picture.of_kind("line") if x.stroke == COLORS["useful"]]
    assert bool(beyond) == (tokens > 10**drawings.LAST)


@pytest.mark.parametrize("step", range(2 * drawings.LAYERS + 1))
def test_what_a_token_has_cost_is_filled_to_scale(step: int) -> None:
    done = float(flops_on_the_way(8e9, step, drawings.LAYERS))
    picture = drawn(drawings.one_token(step, 8e9, done, 48e9))
    up, down = min(step, 4), max(step - 4, 0)
    [whole] = picture.titled("operations in all")
    bar = [x for x in picture.of_kind("rect") if x.top == whole.top and x is not whole]
    assert sum(x.width for x in bar) / whole.width == pytest.approx(done / 48e9, abs=0.001)
    boxes = [x for x in picture.of_kind("rect") if x.fill != "none" and x not in bar]
    filled = [sum(x.words == word for x in boxes) for word in ("forward", "to learn", "to pass on")]
    assert filled == [up, down, down]
    assert ("its error" in picture.texts) == (down > 0)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_the_tank_is_as_full_as_the_count(share: float) -> None:
    def height(share: float) -> float:
        picture = drawn(drawings.count_and_rate(64, 30, 7e15, share * 3e23, 3e23, 4e7))
        return sum(x.height for x in picture.titled("done"))

    assert height(share) == pytest.approx(share * height(1.0))


def test_real_runs_lie_on_a_scale_of_doublings() -> None:
    ratios = [("a", 0.5), ("b", 1.0), ("c", 2.0), ("d", 100.0), ("e", 3.0)]
    picture = drawn(drawings.real_runs(ratios, 1e14))
    middle = picture.text("as reported").across
    doubling = picture.between("half", "twice", "across") / 2
    for name, ratio in ratios:
        [bar] = picture.titled(name)
        end = bar.left if ratio < 1 else bar.right
        targets = middle + doubling * log2(min(ratio, 4))
        assert end == pytest.approx(targets, abs=0.3) or ratio == 1
    assert len(picture.of_kind("polygon")) == 1  # the bar that goes on


def test_the_map_has_every_chapter_and_says_what_is_done() -> None:
    plain = drawings.course_map({})
    assert [row[0] for row in drawings.STOPS] == [f"{number:02}" for number in range(len(CHAPTERS))]
    assert all(title in plain.words for _, title, *_ in drawings.STOPS)
    assert "done)" not in plain.words
    course = drawings.course_map({"03": (2, 5), "05": (6, 6)})
    assert [x.words for x in drawn(course).filled(COLORS["useful"])] == ["Precision"]
    assert {"2 of 5", "6 of 6"} < {*drawn(course).texts}
    assert [x.words for x in drawn(plain).dashed] == ["Fine-tuning"]
