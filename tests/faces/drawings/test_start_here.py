"""Chapter 00's pictures: as large as the tokens, the operations and the share that's done."""

from math import log10
from typing import Any

import pytest

from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.ids import CHAPTERS
from llmtrain_course.kit.layout import PAGE, PHONE
from llmtrain_course.panels import HANDLES
from llmtrain_course.start_here import pictures as drawings
from llmtrain_course.start_here.formulas import flops_on_the_way
from llmtrain_helpers import published, units
from llmtrain_helpers.published import share_of_run
from tests.faces.svg import Picture, drawn

MARKS = {"GPT-3": 300e9, "Llama 3.1 405B": 15.6e12}
WANTED = {"GPT-3 read": 300e9, "20 for each parameter:": 160e9}

every_width = pytest.mark.parametrize("width", [PAGE, PHONE])


def machine(
    num_gpus: int = 8, days: float = 30, tokens: float = 47e9, width: int = PAGE, **more: Any
) -> Picture:
    """The machine of eight A100 that train 8 billion parameters."""
    more = {"targets": WANTED, **more}
    sizes = num_gpus, days, 8e9, 109.2e12, 48e9, tokens
    return drawn(drawings.machine(*sizes, MARKS, **more), width)


@every_width
@pytest.mark.parametrize("n", [1, 32, 33, 16384])
def test_a_square_stands_for_one_gpu_or_for_as_many_as_it_says(n: int, width) -> None:
    picture = machine(n, 1, width=width)
    squares = [x for x in picture.filled(COLORS["memory"]) if x.width == x.height]
    captions = [x for x in picture.texts if x.startswith("a square: ")]
    each = int(captions[0].split()[2].replace(",", "")) if captions else 1
    assert len(squares) - 1 == -(-n // each)  # one is the day's
    assert len(squares) - 1 <= 32


@every_width
def test_twice_the_tokens_are_twice_the_field(width: int) -> None:
    def share(tokens: float) -> float:
        picture = machine(tokens=tokens, before=10e9, width=width)
        [field] = picture.titled("the field")
        filled = [x for x in picture.titled("tokens") if x.inside(field)]
        assert all(x.fill == COLORS["useful"] for x in filled)
        return sum(x.area for x in filled) / field.area

    assert [share(5e9 * n) for n in (0.5, 1, 5, 7.5, 15, 200)] == pytest.approx(
        [share(1e12) * n / 200 for n in (0.5, 1, 5, 7.5, 15, 200)], rel=0.007
    )
    assert share(1e12) == pytest.approx(share(1e14)) == pytest.approx(1)  # and it says so:
    assert "the field, 100 times" in machine(tokens=1e14, width=width).texts


def test_a_mark_stands_in_the_field_where_as_many_tokens_end() -> None:
    picture = machine(targets={"GPT-3 read": 300e9, "enough": 160e9})
    [field] = picture.titled("the field")
    uprights = [x for x in picture.of_kind("line") if x.height > field.height]
    places = sorted((x.left - field.left) / field.width for x in uprights)
    assert places == pytest.approx([0.16, 0.3], abs=0.001)
    beyond = machine(targets={"GPT-3 read": 300e9, "enough": 2e12})
    assert "enough 2.0 trillion →" in beyond.texts
    assert len(beyond.of_kind("line")) == len(picture.of_kind("line")) - 1
    assert machine().width_of("the field") == field.width


@every_width
@pytest.mark.parametrize("tokens", [1.0, 1e6, 1e9, 4e10, 1e13, 1e14, 1e20])
def test_the_bar_ends_on_the_scale(tokens: float, width: int) -> None:
    picture = machine(tokens=tokens, width=width)
    bar = picture.titled("tokens")[-1]
    trillion, billion = picture.text("1 trillion").across, picture.text("1 billion").across
    where = billion + (trillion - billion) / 3 * log10(tokens / 1e9)
    if 1e6 <= tokens <= 1e13:
        assert bar.right == pytest.approx(where, abs=0.3)
    assert ("→" in picture.texts) == (tokens > drawings.LAST)


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


@pytest.mark.parametrize("percent", [20, 35, 50])
def test_a_real_runs_bar_is_as_long_as_its_share(percent: int) -> None:
    handle = HANDLES["five_runs"]
    html = handle.render(percent=percent)
    late = 0
    for name in drawings.REAL_RUNS:
        row = published.run(name)
        work = 6 * row["tokens"] * row["active_parameters"]
        share = work / (row["gpu_hours"] * 3600 * row["peak_flops"])
        picture = drawn(drawings.real_runs({name: share}, percent / 100))
        tenth = picture.between("0%", "10%", "across") / 0.1
        assert picture.width_of(name) == pytest.approx(share * tenth, rel=0.005)
        [bar] = picture.titled(name)
        assert bar.fill == COLORS["lost" if share < percent / 100 else "useful"]
        late += share < percent / 100
    slowest = min(share_of_run(name) for name in drawings.REAL_RUNS)
    days = units.digits(30 * percent / 100 / slowest, 2)
    caption = (
        f"{late} of 5 runs would have been late"
        if late
        else "All five would have kept your promise"
    )
    assert caption in html
    assert not late or f"needed {days} days" in html


def test_the_map_has_every_chapter_and_says_what_is_done() -> None:
    plain = drawings.course_map({}).drawing()
    assert [row[0] for row in drawings.STOPS] == [f"{number:02}" for number in range(len(CHAPTERS))]
    assert all(title in plain.words for _, title, *_ in drawings.STOPS)
    assert "done)" not in plain.words
    course = drawings.course_map({"03": (2, 5), "05": (6, 6)}).drawing()
    assert [x.words for x in drawn(course).filled(COLORS["useful"])] == ["Precision"]
    assert {"2 of 5", "6 of 6"} < {*drawn(course).texts}
    assert [x.words for x in drawn(plain).dashed] == ["Fine-tuning"]
