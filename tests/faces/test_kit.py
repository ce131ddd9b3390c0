"""Random descriptions at many widths: nothing's cut off, nothing touches, all can be read."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations, pairwise
from random import Random

import pytest

from llmtrain_course.kit.chart import (
    Area,
    Band,
    Chart,
    Column,
    Dot,
    Mark,
    Note,
    Path,
    Rule,
    stacked,
)
from llmtrain_course.kit.drawing import COLORS, NIGHT, rect
from llmtrain_course.kit.lanes import Bars, Lane, Limit, NumberLine, Point, Span, Timeline, bar
from llmtrain_course.kit.layout import (
    BESIDE,
    Below,
    Box,
    Diagram,
    Fact,
    Facts,
    NextTo,
    Picture,
    list_facts,
    patch,
    place_label,
    spread,
    text_width,
    wrapped,
)
from llmtrain_course.kit.scale import Scale
from llmtrain_helpers import units
from tests.faces.contrast import contrast
from tests.faces.svg import drawn

WIDTHS = (340, 360, 375, 430, 519, 520, 600, 680, 760, 900)
WORDS = (
    *("loss", "tokens", "GPUs", "memory per GPU", "gradients on their way", "MWMW 100%"),
    *("the law, beyond its runs", "sequences in a micro-batch", "1,024", "8 B200", "1.24 TB"),
)
INKS = [*dict.fromkeys(COLORS.values())]


def some_words(random: Random, most: int = 2) -> str:
    return " ".join(random.choice(WORDS) for _ in range(random.randint(1, most)))


def a_scale(random: Random, label: str = "") -> Scale:
    if random.random() < 0.5:
        low = 10.0 ** random.randint(-3, 9)
        return Scale(low, low * 10 ** random.randint(1, 6), label, units.size, log=True, grid=True)
    high = random.choice((1, 7, 60, 128e9, 4096, 0.3))
    return Scale(0, high, label, units.size, grid=random.random() < 0.5)


def between(random: Random, scale: Scale, beyond: float = 0) -> float:
    share = random.uniform(-beyond, 1 + beyond)
    if scale.log:
        return float(scale.low * (scale.high / scale.low) ** share)
    return scale.low + share * (scale.high - scale.low)


def a_chart(random: Random) -> Chart:
    x, y = a_scale(random, some_words(random)), a_scale(random, some_words(random))
    xs = sorted(between(random, x) for _ in range(20))
    marks: list[Mark] = []
    if random.random() < 0.3:
        layers = {
            f"{i} {some_words(random)}": [between(random, y) / 4 for _ in xs] for i in range(3)
        }
        marks += stacked(xs, layers, dict(zip(layers, INKS, strict=False)))
    for i in range(random.randint(0, 3)):
        points = [(a, between(random, y, 0.4)) for a in xs]
        end = [f"{i}", some_words(random)] if random.random() < 0.5 else []
        marks.append(Path(points, INKS[i], name="" if end else some_words(random), end=end))
    for _ in range(random.randint(0, 3)):
        value = between(random, x)
        marks.append(Rule(value, label=some_words(random), hidden=random.random() < 0.2))
    if random.random() < 0.5:
        marks.append(Rule(between(random, y), "y", name=some_words(random)))
    for i in range(random.randint(0, 5)):
        place = between(random, x, 0.1), between(random, y, 0.1)
        shape = random.choice(("dot", "ring", "cross", "diamond", "hollow"))
        marks.append(Dot(*place, INKS[i], shape=shape, name=some_words(random, 4)))
    if random.random() < 0.3:
        low, high = sorted((between(random, x), between(random, x)))
        marks.append(Band(low, high, INKS[0], label=some_words(random), name=some_words(random)))
    facts = [
        Fact(some_words(random), some_words(random, 1), random.choice(("", INKS[i])), rule=i == 2)
        for i in range(random.choice((0, 3, 5)))
    ]
    headline = [some_words(random, 1), some_words(random, 1)] if random.random() < 0.3 else []
    return Chart(x, y, marks, "a chart", facts, headline, broken=random.random() < 0.2)


def some_bars(random: Random) -> Bars:
    scale = a_scale(random, some_words(random))
    scale = Scale(0, scale.high, scale.label, units.size, grid=scale.grid)
    lanes = []
    for i in range(random.randint(1, 5)):
        sizes = {random.choice(WORDS): random.uniform(0, scale.high / 4) for _ in range(3)}
        lanes.append(
            bar(
                f"{i} {some_words(random)}",
                sizes,
                dict(zip(sizes, INKS, strict=False)),
                units.size if random.random() < 0.7 else None,
                note=random.choice(("", some_words(random))),
                previous=random.choice((None, scale.high / 2)),
                group=random.choice(("", "all of them")) if i else "",
            )
        )
    limits = [
        Limit(random.uniform(0, scale.high), some_words(random))
        for _ in range(random.randint(0, 3))
    ]
    heading, verdict = random.choice((("", ""), (some_words(random), some_words(random))))
    facts = [Fact(some_words(random), "1.2 s")] if random.random() < 0.2 else []
    return Bars(scale, lanes, "bars", limits, heading, verdict, facts)


def a_line(random: Random) -> NumberLine:
    scale = a_scale(random, random.choice(("", some_words(random))))
    points = [
        Point(between(random, scale), INKS[i], some_words(random), below=random.random() < 0.3)
        for i in range(random.randint(0, 4))
    ]
    return NumberLine(scale, points, "a line", heading=random.choice(("", some_words(random, 3))))


def a_picture(seed: int) -> Picture:
    random = Random(seed)
    kinds = (a_chart, a_chart, some_bars, some_bars, a_line)
    first = random.choice(kinds)(random)
    if seed % 5 == 0:
        second = random.choice(kinds)(random)
        return NextTo(first, second, "two") if seed % 2 else Below([first, second], "two")
    return first


@pytest.mark.parametrize("seed", range(120))
def test_any_description_is_whole_and_can_be_read_at_any_width(seed: int) -> None:
    picture = a_picture(seed)
    assert picture.drawing() == a_picture(seed).drawing()
    for width in WIDTHS[seed % 3 :: 3]:
        seen = drawn(picture, width)
        assert seen.width == width
        texts = seen.of_kind("text")
        assert all(box.size >= 14 for box in texts)
        for box in seen.boxes:
            assert -0.5 <= box.left <= box.right <= width + 0.5, (width, box)
            assert -0.5 <= box.top <= box.bottom <= seen.height + 0.5, (width, box)
        for one, two in combinations(texts, 2):
            assert not one.overlaps(two, 1), (width, one, two)
        assert seen.colors <= {*NIGHT, "none", "white", "currentColor"}


@pytest.mark.parametrize("color", INKS)
def test_words_in_a_bar_and_at_a_line_can_be_read_in_both_themes(color: str) -> None:
    """White in a bar by day, dark in it by night; a line's name in its colour on the card."""
    assert contrast("#FFFFFF", color) >= 4.5
    assert contrast(NIGHT["#FFFFFF"], NIGHT[color]) >= 4.5


def test_labels_of_dots_keep_off_each_other_and_off_curves() -> None:
    x, y = Scale(0, 10, "x"), Scale(0, 10, "y")
    curve = Path([(0, 0), (10, 10)], INKS[0])
    dots = [Dot(4 + 0.3 * i, 4 + 0.3 * i, INKS[1], label=f"run {i}") for i in range(4)]
    seen = drawn(Chart(x, y, [curve, *dots], "dots"))
    labels = [box for box in seen.of_kind("text") if box.words.startswith("run ")]
    assert len(labels) == 4
    assert not any(one.overlaps(two, 1) for one, two in combinations(labels, 2))
    [line] = [box for box in seen.of_kind("polyline") if box.thick == 3]
    for box in labels:
        assert not any(
            box.left < px < box.right and box.top < py < box.bottom
            for (a, b), (c, d) in pairwise(line.outlines[0])
            for px, py in ((a + (c - a) * t / 50, b + (d - b) * t / 50) for t in range(51))
        )


def test_a_crowded_label_goes_where_it_covers_the_least() -> None:
    room = Box(0, 0, 300, 100)
    right = Box(100, 30, 300, 70)
    assert place_label(90, 50, "a name", [right], room)[2] != "start"
    assert place_label(290, 50, "a name", [], room)[2] == "end"


@pytest.mark.parametrize("width", WIDTHS)
def test_names_of_dots_stay_on_the_plane_and_off_the_ends_of_lines(width: int) -> None:
    """So none crosses an axis or leaves the picture, and none stands on a line's name."""
    x, y = Scale(0, 10, "x", ticks=(0, 10)), Scale(0, 10, "y", ticks={0: "none", 10: "a lot"})
    corners = [(0.1, 5), (0.4, 9.9), (9.9, 5), (9.6, 0.1)]
    dots = [Dot(*place, INKS[1], label=f"name {i}") for i, place in enumerate(corners)]
    for end in ([], ["a line", "at its end"]):
        seen = drawn(Chart(x, y, [Path([(0, 5), (10, 5)], INKS[0], end=end), *dots], ""), width)
        names = [box for box in seen.of_kind("text") if box.words.startswith("name ")]
        others = [box for box in seen.of_kind("text") if box not in names]
        axis = next(box for box in seen.of_kind("line") if box.height > 200)
        assert len(names) == 4
        for name in names:
            assert axis.left < name.left < name.right < width - 7
            assert not any(name.overlaps(other, 1) for other in others)


def test_a_name_that_is_dragged_makes_way_for_the_others() -> None:
    scale = Scale(0, 10, "s")
    fixed = [Dot(5 + 0.2 * i, 5, INKS[1], label=f"run {i}") for i in range(3)]

    def places(at: float, label: str = "yours") -> list[Box]:
        own = Dot(at, 4.8, INKS[0], label=label, moves="size")
        seen = drawn(Chart(scale, scale, [own, *fixed], ""))
        assert not any(a.overlaps(b, 1) for a, b in combinations(seen.of_kind("text"), 2))
        return [box for box in seen.of_kind("text") if box.words.startswith("run ")]

    assert len(places(1)) == 3
    for at in (1, 4, 4.6, 5.1, 6, 9):
        assert places(at) == places(at, label="")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_line_that_somebody_drags_has_a_knob_on_it_below_its_label(width: int) -> None:
    scale = Scale(0, 10, "s")
    for value in (0, 2, 9.5):
        for picture in (
            Chart(scale, scale, [Rule(value, label="now", moves="moment")], ""),
            Bars(scale, [Lane("a lane", [Span(0, 4)])], "", [Limit(value, "now", moves="moment")]),
        ):
            seen = drawn(picture, width)
            [knob] = seen.of_kind("circle")
            assert 'data-moves="moment"' in picture.drawing(width).body
            uprights = [x for x in seen.of_kind("line") if x.width == 0 and x.height > 20]
            lines = [x for x in uprights if x.across == pytest.approx(knob.across, abs=0.1)]
            assert any(knob.top < line.top <= knob.bottom for line in lines)
            assert not any(knob.overlaps(label) for label in seen.of_kind("text"))


@pytest.mark.parametrize("seed", range(50))
def test_line_ends_are_apart_and_in_order(seed: int) -> None:
    random = Random(seed)
    places = sorted(random.uniform(0, 200) for _ in range(4))
    moved = spread(places, [40] * 4, 0, 220)
    assert all(b - a >= 40 - 1e-9 for a, b in pairwise(moved))
    assert 20 <= moved[0] <= moved[-1] <= 200
    assert spread([50, 150], [40, 40], 0, 220) == [50, 150]


def test_facts_stand_next_to_a_plane_from_a_width_on_and_below_it_before() -> None:
    chart = Chart(Scale(0, 1), Scale(0, 1), [Path([(0, 0), (1, 1)])], "", [Fact("a fact", "12")])
    below, beside = (drawn(chart, width) for width in (BESIDE - 1, BESIDE + 40))
    assert below.text("a fact").top > below.of_kind("polyline")[0].bottom
    assert beside.text("a fact").left > beside.of_kind("polyline")[0].right


@pytest.mark.parametrize("left", [100 + i / 7 for i in range(20)])
def test_what_is_as_wide_as_its_place_stays_on_one_line(left: float) -> None:
    fact, words = Fact("updates", "1.3 × the fewest", bold=True), "sequences in a micro-batch"
    one, other = (list_facts([it], left, 0, fact.width)[1] for it in (fact, Fact("updates")))
    assert one == other
    end = left + text_width(words)
    assert wrapped(words, end - left) == [words]


def test_a_list_of_facts_is_as_wide_as_its_least_so_that_its_values_stay() -> None:
    def end(name: str) -> float:
        svg, _ = list_facts([Fact(name, "26 days")], 10, 0, 400, least=300)
        return max(float(x) for x in re.findall(r'<text x="([\d.]+)"', svg))

    assert end("expected") == end("to promise") == 310


def test_what_is_hidden_keeps_its_place() -> None:
    """So a picture is as high with it as without it."""

    def chart(hidden: bool) -> Chart:
        scale = Scale(0, 1, "x")
        marks = [
            Path([(0, 0), (1, 1)], name="a line"),
            Rule(0.5, label="now", hidden=hidden),
            Dot(0.2, 0.9, shape="ring", name="at the start", hidden=hidden),
        ]
        return Chart(scale, scale, marks, "", [Fact("before", "3", hidden=hidden)])

    for width in WIDTHS:
        assert chart(True).drawing(width).height == chart(False).drawing(width).height
    texts = drawn(chart(True)).texts
    assert not {"now", "at the start", "before"} & {*texts}
    assert {"now", "at the start", "before"} <= {*drawn(chart(False)).texts}


@pytest.mark.parametrize("log", [False, True])
def test_marks_stand_where_the_axis_says(log: bool) -> None:
    x = Scale(1, 1000, "x", log=log, ticks=(1, 100, 1000))
    y = Scale(0, 10, "y", ticks=(0, 5, 10))
    marks = [Dot(100, 5, INKS[0]), Column(1, 100, 5, INKS[1]), Rule(100, to=5, dash="2 2")]
    seen = drawn(Chart(x, y, marks, ""))
    [dot], [column], [rule] = seen.filled(INKS[0], "circle"), seen.filled(INKS[1]), seen.dashed
    assert (column.right, column.top) == pytest.approx((dot.across, dot.down), abs=0.2)
    assert (rule.left, rule.top) == pytest.approx((dot.across, dot.down), abs=0.2)
    assert abs(dot.across - seen.text("100").across) < 1
    middle = (seen.text("0").down + seen.text("10").down) / 2
    assert seen.text("5").down == pytest.approx(middle, abs=0.1)
    assert column.height == pytest.approx(230 / 2, abs=0.2)


def test_a_path_ends_at_the_edge_where_it_leaves_the_plane() -> None:
    scale = Scale(0, 1, "s", ticks=(0, 1))
    beyond = Path([(2, 0), (3, 1)])
    seen = drawn(Chart(scale, scale, [Path([(0, -1), (1, 2)], INKS[0]), beyond], "", height=300))
    [line] = seen.of_kind("polyline")
    assert line.height == pytest.approx(300, abs=0.2)
    [axis] = [box for box in seen.of_kind("line") if box.width > 300]
    assert line.width == pytest.approx(axis.width / 3, abs=0.2)


def test_parts_of_a_bar_end_where_its_scale_says() -> None:
    one = bar("run", {"weights": 16, "gradients": 8}, COLORS, units.gigabytes, previous=40)
    seen = drawn(Bars(Scale(0, 48, "GB", ticks=(0, 24, 48)), [one], ""))
    weights, gradients = seen.filled(COLORS["weights"])[0], seen.filled(COLORS["gradients"])[0]
    assert weights.width == pytest.approx(2 * gradients.width, rel=0.01)
    assert abs(gradients.right - seen.text("24").across) < 1
    [before] = seen.dashed
    assert before.width == pytest.approx(weights.width * 40 / 16, rel=0.01)


def test_a_number_line_puts_points_on_its_line() -> None:
    line = NumberLine(
        Scale(1, 100, log=True),
        [Point(10, INKS[0], "ten"), Point(12, INKS[1], "twelve")],
        "",
        spans=[Span(1, 10, INKS[2])],
    )
    seen = drawn(line)
    [ten], [span] = seen.filled(INKS[0], "circle"), seen.filled(INKS[2])
    assert ten.across == pytest.approx(span.right, abs=0.2)
    assert abs(ten.across - seen.text("10").across) < 1
    assert seen.text("ten").down > seen.text("twelve").down


def test_lanes_put_their_names_above_them_where_they_are_too_long() -> None:
    lane = Lane("a name that is longer than a third", [Span(0, 1, INKS[0])], "1.2 s")
    scale = Scale(0, 1)
    wide, narrow = (drawn(Bars(scale, [lane], ""), width) for width in (900, 340))
    assert wide.text("a name").right < wide.filled(INKS[0])[0].left
    assert narrow.text("a name").bottom < narrow.filled(INKS[0])[0].top
    assert narrow.text("1.2 s").bottom < narrow.filled(INKS[0])[0].top
    both = Bars(Scale(0, 1), [replace(lane, name="a name")], "", phone_names=0.4)
    assert drawn(both, 340).text("a name").right < drawn(both, 340).filled(INKS[0])[0].left
    above = replace(both, phone_names=0.1)
    assert drawn(above, 340).text("a name").bottom < drawn(above, 340).filled(INKS[0])[0].top


def test_a_span_has_the_first_of_its_labels_that_fits() -> None:
    """And none in the page's ink without a rim, which slanted lines behind it need."""
    labels = "waits for the other GPUs", "waits"
    for end, label in ((10, labels[0]), (2, labels[1]), (0.5, "")):
        span = Span(0, end, label=labels, hatch=True, ink="currentColor")
        seen = drawn(Bars(Scale(0, 10), [Lane("", [span])], axis=False))
        assert seen.texts == ([label] if label else [])
        assert all(text.stroke for text in seen.of_kind("text"))


@pytest.mark.parametrize("words", WORDS)
def test_words_are_measured_as_wide_as_a_wide_font_makes_them(words: str) -> None:
    """DejaVu Sans, which a browser without a system font uses."""
    font = pytest.importorskip("matplotlib.textpath").TextPath((0, 0), words, size=14)
    assert font.get_extents().width <= text_width(words, 14) * 1.02


def test_a_note_stays_inside_the_plane() -> None:
    scale = Scale(0, 1)
    seen = drawn(Chart(scale, scale, [Note(1, 0.5, "a long note at the edge")], ""))
    assert seen.text("a long note").right <= seen.width - 14


def test_a_low_span_stands_on_its_lane_with_its_label_above_it() -> None:
    """So a part differs in more than its colour, in the lane and in the key."""
    parts = [
        Span(0, 4, INKS[0], name="work"),
        Span(4, 8, INKS[1], "lost", name="lost work", rise=0.5),
        Span(8, 12, INKS[2], "restart", name="restarts", rise=0.25),
    ]
    seen = drawn(Timeline(Scale(0, 12), [Lane("", parts)], "", lane=40))
    for color, high, rise in ((INKS[0], 40, 1), (INKS[1], 20, 0.5), (INKS[2], 10, 0.25)):
        in_lane, in_key = seen.filled(color)
        assert (in_lane.height, in_key.height) == pytest.approx((high, 14 * rise), abs=0.1)
        assert in_lane.bottom == seen.filled(INKS[0])[0].bottom
        assert in_key.bottom == seen.filled(INKS[0])[1].bottom
    assert seen.text("lost").inside(seen.filled(INKS[1])[0])
    assert seen.text("restart").bottom < seen.filled(INKS[2])[0].top


@pytest.mark.parametrize("limit", range(1, 12))
def test_a_label_in_a_span_keeps_off_a_limit(limit: int) -> None:
    span, line = Span(0, 12, INKS[0], "useful"), Limit(limit)
    for width in WIDTHS:
        seen = drawn(Bars(Scale(0, 12), [Lane("", [span])], "", [line]), width)
        label = seen.text("useful")
        assert label.inside(seen.filled(INKS[0])[0])
        [upright] = [box for box in seen.of_kind("line") if box.thick == 2]
        assert not label.left - 2 < upright.across < label.right + 2
    hidden = drawn(Bars(Scale(0, 12), [Lane("", [span])], "", [Limit(6, hidden=True)]))
    assert hidden.text("useful").across == pytest.approx(hidden.filled(INKS[0])[0].across)


def test_a_note_stands_below_the_key_and_facts_have_the_width_that_they_need() -> None:
    lane = Lane("", [Span(0, 12, INKS[0], name="useful")])
    for width in WIDTHS:
        seen = drawn(Bars(Scale(0, 12), [lane], "", note="Stops only. " * 9), width)
        lines = [box for box in seen.of_kind("text") if box.words.startswith(("Stops", "only"))]
        assert all(box.top > seen.text("useful").bottom for box in lines)
        assert all(box.right <= width - 14 for box in lines)
    facts = [Fact("useful", "46.0 days")], [Fact("useful", "46.0 minutes")]
    ends = {
        drawn(Bars(Scale(0, 12), [lane], facts=some, wide_facts=220)).filled(INKS[0])[0].right
        for some in facts
    }
    assert len(ends) == 1


def test_a_hatched_span_has_its_colour_in_the_key_too() -> None:
    seen = drawn(Bars(Scale(0, 1), [Lane("", [Span(0, 1, INKS[0], name="out", hatch=True)])], ""))
    assert len(seen.filled(INKS[0])) == 2


def test_a_scale_stays_whatever_its_totals_are() -> None:
    """There's room for the longest of all settings."""

    def bars(total: str) -> Bars:
        lane = bar("run", {"weights": 16}, COLORS, total=total)
        return Bars(Scale(0, 48), [lane], "", longest_total="1,234 GB")

    short, long = (drawn(bars(total)).filled(COLORS["weights"])[0] for total in ("1", "1,234 GB"))
    assert short == long


def test_a_plane_stays_whatever_the_ends_of_its_lines_say() -> None:
    """There's room for the longest of all settings."""

    def right(end: str) -> float:
        path = Path([(0, 5), (10, 5)], INKS[0], end=("run", end))
        seen = drawn(Chart(Scale(0, 10), Scale(0, 10), [path], longest_end="1.3 ms, half"))
        return seen.of_kind("polyline")[0].right

    assert right("1 ms") == right("1.3 ms, half") > right("1.3 ms, half of its best")


@pytest.mark.parametrize("name", ["run", "a name that is longer than a third of all the room"])
def test_a_sign_stands_next_to_the_name_of_its_lane(name: str) -> None:
    lane = Lane(name, [Span(0, 1, INKS[0])], sign=patch(COLORS["context"], "adapter"))
    seen = drawn(Bars(Scale(0, 1), [lane], ""), 360)
    [sign], [bar] = seen.filled(COLORS["context"]), seen.filled(INKS[0])
    assert sign.right < bar.left or sign.bottom < bar.top
    assert abs(sign.down - seen.text(name[:6]).down) < 4


def test_a_limit_crosses_no_name_that_stands_above_its_lane() -> None:
    lanes = [Lane(f"{i} {'a long name ' * 2}", [Span(0, 1, INKS[0])], "1.2 s") for i in range(3)]
    seen = drawn(Bars(Scale(0, 2), lanes, "", [Limit(0.2, "now", "5 4")]), 340)
    assert len(seen.dashed) == 3
    for line, span in zip(seen.dashed, seen.filled(INKS[0]), strict=True):
        assert line.top < span.top < span.bottom < line.bottom
        assert not any(line.overlaps(box) for box in seen.of_kind("text"))


def test_a_points_label_lies_over_a_limit_and_where_it_has_more_room() -> None:
    label = "a label that fits on neither side of it"
    for at in (4, 6):
        lanes = [Lane("", [Point(at, label=label)])]
        seen = drawn(Bars(Scale(0, 10), lanes, "", [Limit(5, "now", "5 4")]), 340)
        [dot], words = seen.of_kind("circle"), seen.text(label)
        assert words.left > dot.right if at < 5 else words.right < dot.left
        svg = Bars(Scale(0, 10), lanes, "", [Limit(5, "now", "5 4")]).drawing(340).body
        assert svg.index("stroke-dasharray") < svg.index(label)
        assert "paint-order" in svg[svg.rindex("<text", 0, svg.index(label)) : svg.index(label)]


def test_labels_of_ticks_break_where_they_would_touch_and_none_is_left_out() -> None:
    names = {i: f"{i} GB\nlayer {i} again" for i in range(4)}
    x = Scale(-0.5, 3.5, ticks=names, wrap=True)
    wide, narrow = (drawn(Chart(x, Scale(0, 1), [], ""), width) for width in (900, 340))
    assert all(f"layer {i} again" in wide.texts for i in range(4))
    assert all({f"{i} GB", f"layer {i}", "again"} <= {*narrow.texts} for i in range(4))


def test_a_part_of_another_kind_has_slants_in_its_bar_its_column_and_the_key() -> None:
    """Not where it's too thin for them."""
    scale = Scale(0, 10)
    look = {"slants": "white", "name": "scores"}
    for thick, places in ((5, 2), (0.01, 1)):
        lanes = Bars(scale, [Lane("", [Span(0, thick, INKS[0], **look)])], axis=False)
        chart = Chart(scale, scale, [Column(0, thick, 5, INKS[0], **look)])
        for seen in (drawn(lanes), drawn(chart)):
            slants = [box for box in seen.of_kind("line") if box.opacity == 0.6]
            boxes = seen.filled(INKS[0])
            assert sum(any(x.inside(box) for x in slants) for box in boxes) == places
            assert "white" in seen.colors


def test_an_edge_keeps_stretches_apart_where_there_is_room_for_it() -> None:
    spans = [
        Span(0, 10, INKS[0], edge=True),
        Span(10, 10.01, INKS[0], edge=True),
        Span(10, 20, INKS[1], opacity=0.3, name="hidden", edge=True),
    ]
    seen = drawn(Timeline(Scale(0, 20), [Lane("", spans)]))
    assert [box.stroke for box in seen.filled(INKS[0])] == ["#FFFFFF", ""]
    assert [box.stroke for box in seen.filled(INKS[1])] == [INKS[1]] * 2  # also in the key
    assert {box.opacity for box in seen.boxes} == {1}


def test_a_column_has_its_label_in_it_where_there_is_room() -> None:
    scale = Scale(0, 10)
    sizes = {"wide": (6, 5), "narrow": (0.2, 5), "flat": (6, 0.3)}
    marks = [Column(0, x, y, INKS[0], label=name) for name, (x, y) in sizes.items()]
    assert [x for x in drawn(Chart(scale, scale, marks)).texts if x in sizes] == ["wide"]


@pytest.mark.parametrize("hidden", [(True, False), (False, True), (True, True)])
def test_a_label_of_the_key_is_hidden_where_all_its_marks_are(hidden: tuple[bool, bool]) -> None:
    lanes = [Lane("", [Span(0, 1, INKS[0], name="before", hidden=x)]) for x in hidden]
    assert ("before" in drawn(Bars(Scale(0, 1), lanes)).texts) != all(hidden)


def test_a_second_picture_can_stand_at_the_middle_of_the_first() -> None:
    chart = Chart(Scale(0, 1), Scale(0, 1), [], height=300)
    line = NumberLine(Scale(0, 1), [Point(0.5, INKS[0])])
    top, middle = (drawn(NextTo(chart, line, middle=middle)) for middle in (False, True))
    dots = [picture.filled(INKS[0], "circle")[0] for picture in (top, middle)]
    assert (top.width, top.height) == (middle.width, middle.height)
    assert dots[0].down < dots[1].down < middle.height / 2
    assert dots[0].across == dots[1].across


def test_a_point_can_be_its_label_alone() -> None:
    lane = Lane("", [Span(0, 1, INKS[0]), Point(1, label="for every product", shape="none")])
    seen = drawn(Bars(Scale(0, 4), [lane]))
    assert not seen.of_kind("circle")
    assert 0 < seen.text("for every product").left - seen.filled(INKS[0])[0].right < 20


def test_points_of_a_pile_stand_on_those_that_they_would_cover_and_their_names_above() -> None:
    points = [Point(x, INKS[0], name, f"at {x}") for x, name in ((1, ""), (1.1, "one"), (5, "two"))]
    lane = Lane("", points, piled=True, height=60)
    first, second, other = drawn(Bars(Scale(0, 6), [lane], "")).titled("at ", "circle")
    assert (first.down, first.bottom) == (other.down, pytest.approx(second.bottom + first.height))
    for width in WIDTHS:
        seen = drawn(Bars(Scale(0, 6), [lane], ""), width)
        for name, point in zip(("one", "two"), seen.titled("at ", "circle")[1:], strict=True):
            assert seen.text(name).bottom <= point.top
            assert abs(seen.text(name).across - point.across) < 1


def test_a_bar_that_is_longer_than_its_scale_is_cut_and_says_that_it_goes_on() -> None:
    def picture(end: float):
        spans = [Span(0, end, INKS[0], "part"), Span(end, end + 1.5, INKS[1])]
        lane = Lane("", spans, cuts=True)
        return drawn(Bars(Scale(0, 10), [lane], "", [Limit(3)]), 340)

    assert "→" not in picture(8).texts
    for long in (picture(12), picture(9)):
        assert long.texts.count("→") == 1
        assert long.text("→").right <= max(long.filled(ink)[0].right for ink in INKS[:2])
        cut = min(line.left for line in long.of_kind("line") if line.thick == 3)
        assert long.text("part").right < cut
    lane = Lane("", [Span(0, 12, INKS[0])])
    assert "→" not in drawn(Bars(Scale(0, 10), [lane], "")).texts


def test_a_key_has_room_for_the_longest_label_of_all_settings() -> None:
    def height(words: str, longest: str) -> float:
        keyed = [patch(ink, words + ink)._replace(longest=longest) for ink in INKS]
        return drawn(Bars(Scale(0, 9), [Lane("", [])], "", extra=keyed), 360).height

    assert height("1 ", "") < height("1,234 GB of memory ", "")
    assert height("1 ", "1,234 GB of memory #123456") == height("1,234 GB of memory ", "")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_lane_can_be_a_plane_over_the_axis_of_the_others(width: int) -> None:
    hill = Area([2, 6], [0, 0], [4, 1], INKS[0])
    lanes = [Lane("a lane", [Span(2, 6, INKS[1])]), Lane("kept", [hill], y=Scale(0, 4), height=80)]
    seen = drawn(Timeline(Scale(0, 8, ticks=(0, 8)), lanes), width)
    [polygon], [span] = seen.of_kind("polygon"), seen.filled(INKS[1])
    assert (polygon.left, polygon.right) == pytest.approx((span.left, span.right), abs=0.1)
    assert polygon.height == pytest.approx(80)
    assert polygon.top == pytest.approx(seen.text("4").down, abs=3)
    assert seen.text("kept").right < seen.text("4").left < seen.text("4").right < span.left


def test_a_span_can_be_as_high_as_several_lanes() -> None:
    items = [Span(0, 1, INKS[0]), Span(1, 2, INKS[1], lanes=2)], [Span(0, 1, INKS[0])]
    seen = drawn(Timeline(Scale(0, 3), [Lane(f"{i}", lane) for i, lane in enumerate(items)]))
    [both], (first, second) = seen.filled(INKS[1]), seen.filled(INKS[0])
    assert (both.top, both.bottom) == (first.top, second.bottom)


def test_a_tight_label_needs_no_more_than_its_letters() -> None:
    for tight in (False, True):
        span = Span(0, 1, INKS[0], "12", tight=tight)
        seen = drawn(Timeline(Scale(0, 32), [Lane("", [span])], axis=False))
        assert seen.texts == (["12"] if tight else [])
        assert all(box.inside(seen.filled(INKS[0])[0]) for box in seen.of_kind("text"))


@pytest.mark.parametrize("width", WIDTHS)
def test_counts_have_a_column_between_the_names_and_the_lanes(width: int) -> None:
    lanes = [Lane("stage", count="keeps")]
    lanes += [Lane(f"{i}", [Span(0, 1, INKS[i])], count=f"{4.33 * i:.3g}") for i in (1, 2)]
    seen = drawn(Timeline(Scale(0, 1), lanes, axis=False), width)
    for i, count in ((1, "4.33"), (2, "8.66")):
        [bar] = seen.filled(INKS[i])
        assert seen.text(f"{i}").right < seen.text("keeps").left
        assert seen.text("keeps").right == pytest.approx(seen.text(count).right)
        assert seen.text(count).right < bar.left
        assert seen.text(count).down == pytest.approx(bar.down, abs=2)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_diagram_and_facts_share_a_picture_and_stay_in_their_halves(width: int) -> None:
    def square(left: float, top: float, width: float) -> tuple[str, float]:
        return rect(left, top, width, width, INKS[0]), top + width

    facts = Facts([Fact("a heading of a few words", bold=True), Fact("weights", "16 GB", INKS[1])])
    seen = drawn(NextTo(Diagram(square), facts, "both", share=0.6), width)
    [square_], words = seen.filled(INKS[0]), seen.of_kind("text")
    assert square_.width == square_.height
    assert {"weights", "16 GB"} < {*seen.texts}
    if width >= BESIDE + 28:
        assert square_.width == pytest.approx(0.6 * (width - 2 * 14 - 28), abs=0.1)
        assert all(square_.right + 27 < box.left < box.right < width for box in words)
    else:
        assert square_.width == width - 28
        assert all(square_.bottom < box.top < box.bottom < seen.height for box in words)
