"""Chapter 05's pictures: bits, marks and bytes are those of the formats and recipes."""

import math
import re

import ml_dtypes
import numpy as np
import pytest

from llmtrain_course.kit.chart import Column, Dot, Path
from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.lanes import Limit, Point, Span
from llmtrain_course.kit.layout import Picture
from llmtrain_course.precision.formulas import (
    EXAMPLE_GRADIENTS,
    between,
    fit_line,
    gradient_fates,
    gradient_window,
    number_at,
    shifted,
    sum_of_ones,
    update_by_update,
    update_weight,
)
from llmtrain_course.precision.pictures import (
    bytes_by_part,
    gradient_bars,
    number,
    number_of_bits,
    on_a_gpu,
    power,
    slices_of_gpus,
    sum_line,
    update_lines,
)
from llmtrain_helpers import FORMATS, RECIPES, model_state_bytes
from tests.faces.marks import length, marks
from tests.faces.svg import drawn

bf16, fp16, e4m3 = FORMATS["bf16"], FORMATS["fp16"], FORMATS["fp8_e4m3"]


# --- eight bits


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize(("exponent", "fraction"), [(0, 3), (1, 0), (7, 3), (10, 7), (15, 5)])
def test_the_bits_and_their_factors_are_those_of_the_number(
    sign: int, exponent: int, fraction: int
) -> None:
    place = 8 * exponent + fraction
    value = number_at(e4m3, -place if sign else place)
    texts = drawn(number_of_bits(e4m3, value)).texts
    bits = f"{sign}{exponent:04b}{fraction:03b}"
    assert "".join(x for x in texts if x in "01").startswith(bits)
    first = int(exponent > 0)  # a subnormal number has no 1 before its fraction
    scale = power(max(exponent, 1) - 7)
    assert {scale, f"{first} + {fraction}/8", f"= {number(value)}"} < {*texts}
    assert f"to the next number: {number(shifted(e4m3, value, 1) - value)}" in texts


def test_every_number_up_to_16_has_its_mark_and_spacing_doubles() -> None:
    picture = drawn(number_of_bits(e4m3, 6))
    unit, zero = picture.unit("8", "16", "across"), picture.text("8").across
    [_, axis] = [x for x in picture.of_kind("line") if x.width > 300]
    marks = [x for x in picture.of_kind("line") if not x.width and x.down == axis.top]
    places = sorted(8 + (x.left - zero) / unit for x in marks)
    assert places == pytest.approx(between(e4m3, 0, 16), abs=0.01)


@pytest.mark.parametrize("value", [6.0, -0.375, 0.0, 448.0, -448.0, 2.0**-9])
def test_a_click_on_a_bit_makes_the_number_with_that_bit_flipped(value: float) -> None:
    body = number_of_bits(e4m3, value).drawing().body
    made = [float(x) for x in re.findall(r'data-sets="value=([\d.e-]+)"', body)]
    own = int(np.float32(value).astype(ml_dtypes.float8_e4m3fn).view(np.uint8))
    bits = np.array([own ^ 1 << bit for bit in range(7, -1, -1)], np.uint8)
    flipped = bits.view(ml_dtypes.float8_e4m3fn).astype(float)
    assert made == [x for x in flipped if math.isfinite(x) and x != value]


def test_bits_that_flip_are_outlined() -> None:
    assert not drawn(number_of_bits(e4m3, 6)).dashed
    picture = drawn(number_of_bits(e4m3, 8, before=7.5))  # 1001 111 and 1010 000
    assert len(picture.titled("flipped")) == bin(0b1001111 ^ 0b1010000).count("1")
    before = marks(number_of_bits(e4m3, 8, before=7.5), Point, "before")
    assert [x.at for x in before] == [7.5, 7.5]  # among all numbers, and close up


# --- updates


def updates_of(number_format, update: float, updates: int) -> Picture:
    losses = {name: fit_line(number_format, name == "kept") for name in ("alone", "kept")}
    weights = update_by_update(number_format, 1, update, updates)
    return update_lines(number_format, update, weights, losses)


@pytest.mark.parametrize("number_format", [bf16, fp16])
@pytest.mark.parametrize("update", [0.003, 0.004])
def test_a_weight_and_its_fit_are_where_their_updates_have_brought_them(
    number_format, update: float
) -> None:
    both = updates_of(number_format, update, 1000).pictures[0]
    weight, fit = both.first, both.second
    after = update_weight(number_format, 1, update, 1000)
    paper, alone, main = marks(weight, Path)
    assert paper.points == [(0, 1), (1000, pytest.approx(1 + 1000 * update))]
    assert alone.points[-1] == (1000, after.direct)
    assert main.points[-1] == (1000, pytest.approx(1 + 1000 * update, rel=1e-5))
    assert [x.y for x in marks(weight, Dot)] == [after.copy, after.direct]
    assert all(x.x == 1000 for x in marks(fit, Dot))
    lost, kept = (x.points for x in marks(fit, Path))
    assert (lost[0], lost[-1][1] > 100 * kept[-1][1]) == (kept[0], True)
    assert lost[70:] == [(x, lost[-1][1]) for x, _ in lost[70:]]  # it stands still


def test_a_format_with_more_fraction_has_more_marks() -> None:
    for number_format in (bf16, fp16):
        line = updates_of(number_format, 0.003, 0).pictures[1]
        assert [*line.minor] == between(number_format, 0.994, 1.02)


@pytest.mark.parametrize("updates", [0, 1, 4])
def test_what_is_rounded_back_is_hatched_once_an_update_has_come(updates: int) -> None:
    spans = marks(updates_of(bf16, 0.003, updates), Span)
    back = [(x.start, x.end) for x in spans if x.hatch]
    # half a mark below 1, and half a mark above, where marks are twice as far apart
    assert back == ([(1 - 2**-9, 1 + 2**-8)] if updates else [])
    if back:
        [update] = [x for x in spans if not x.hatch]
        assert (update.start, update.end) == (1, 1.003)
        assert update.color == COLORS["gradients"]


# --- gradients


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp8_e4m3"])
@pytest.mark.parametrize("scale", [1, 1024, 2**24, 2**28])
def test_bars_show_what_becomes_of_the_gradients(name: str, scale: int) -> None:
    number_format = FORMATS[name]
    described, fates = gradient_bars(number_format, scale), gradient_fates(number_format, scale)
    picture = drawn(described)
    window, *bars = marks(described, Column)
    assert [x.title for x in bars] == [*fates.values()]
    assert len({x.color for x in bars}) == len({*fates.values()})
    for k, bar in zip(fates, bars, strict=True):
        assert bar.high == EXAMPLE_GRADIENTS[k] / max(EXAMPLE_GRADIENTS.values())
        assert (bar.left + bar.right) / 2 == pytest.approx(k + math.log2(scale))
    assert bool(picture.dashed) == (scale > 1)  # where the bars began
    assert ("become 0" in picture.texts) == (name != "bf16")
    ends = map(math.log2, gradient_window(number_format))
    for end, exponent in zip((window.left, window.right), ends, strict=True):
        assert end == pytest.approx(exponent) or not -46 < exponent < 34


# --- a sum


@pytest.mark.parametrize(
    ("name", "ones", "total", "after"),
    [
        ("bf16", 1024, 256, 256),
        ("bf16", 128, 128, 129),
        ("fp16", 4096, 2048, 2048),
        ("fp8_e4m3", 64, 16, 16),
        ("fp32", 4096, 4096, 4097),
    ],
)
def test_the_sum_ends_at_the_number_of_ones_or_where_it_stalls(name, ones, total, after) -> None:
    number_format = FORMATS[name]
    assert sum_of_ones(number_format, ones) == total
    described = sum_line(number_format, ones, total)
    assert f"give {total:,}." in described.words
    assert f"adding another 1 gives {after:,}." in described.words
    assert f"{total:,} + 1 → {after:,}" in drawn(described).texts
    [dot], [one] = marks(described, Point, "after one more"), marks(described, Span, "+ 1")
    assert (dot.at, one.start, one.end) == (after, total, total + 1)
    sum_ = marks(described, Path)[-1]
    stall, end = sum_.points[1:]
    assert end == (ones, total) == (ones, stall[1])  # level from where it stalls on
    assert bool(marks(described, Span, "closer than can be drawn")) == (name == "fp32")


# --- a parameter's bytes


@pytest.mark.parametrize("name", RECIPES)
def test_a_cell_is_a_byte_in_its_parts_colour(name: str) -> None:
    recipe, start = RECIPES[name], RECIPES["fp32"]
    described = bytes_by_part(recipe, start)
    picture = drawn(described)
    cells = [x for x in picture.of_kind("rect") if x.words != "before"]
    for part, size in recipe.parts().items():
        word = part.replace("_", " ")
        own = [x for x in cells if x.words == word]
        assert len(own) == 2 * size  # in its row, and in the row of all
        assert {x.fill for x in own} <= {COLORS[word]}
    assert len({round(x.width, 1) for x in cells}) == 1
    assert f"together {recipe.total}." in described.words
    assert bool(picture.dashed) == (recipe.parts() != start.parts() and name != "amp")
    assert picture.texts.count("none") == [*recipe.parts().values()].count(0)


@pytest.mark.parametrize("name", RECIPES)
def test_outlines_are_as_long_as_what_was(name: str) -> None:
    for before in RECIPES.values():
        spans = marks(bytes_by_part(RECIPES[name], before), Span)
        pairs = zip(before.parts().values(), RECIPES[name].parts().values(), strict=True)
        changed = [was for was, now in pairs if was not in (0, now)]
        changed += [before.total] * (before.total != RECIPES[name].total)
        assert [x.end - x.start for x in spans if x.previous] == changed


# --- slices


@pytest.mark.parametrize("replicas", [2, 4, 8, 16])
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_together_the_gpus_have_every_slice_once_and_each_its_bytes(replicas, stage) -> None:
    whole = model_state_bytes(16_000, "bf16").parts()
    share = model_state_bytes(16_000, "bf16", stage, replicas).parts()
    picture = slices_of_gpus(whole, share, replicas, 160_000)
    assert marks(picture, Span, "all states")[0].end == sum(whole.values())
    for part, size in whole.items():
        left = marks(picture, Column, f"{part}: on the others")
        assert len(left) == (replicas if share[part] < size else 0)
        assert length(picture, part) == share[part]
        own = [x for x in marks(picture, Column, part) if x not in left]
        there = [share[part]] * (replicas if size else 0)
        assert [x.high - x.low for x in own] == pytest.approx(there)
        if left:  # its slices are one below the other, without a gap, from top to bottom
            assert own[0].high == left[0].high
            assert [x.low for x in own] == pytest.approx([*(x.high for x in own[1:]), left[0].low])
    assert [x.value for x in marks(picture, Limit)] == [160_000]


# --- the panel's picture, and the page's table


def test_the_memory_line_stands_still_and_the_bar_ends_there_when_it_is_full() -> None:
    def gpu(size: float, before: float | None = None) -> Picture:
        parts = {"weights": size / 4, "optimizer": size * 3 / 4}
        return on_a_gpu({"weights": 2, "optimizer": 6}, parts, 80e9, before)

    def far(size: float) -> bool:
        return any("far beyond" in x for x in drawn(gpu(size)).texts)

    for size in (4e9, 90e9):
        picture = gpu(size)
        assert [x.value for x in marks(picture, Limit)] == [80e9]
        assert marks(picture, Span, "optimizer")[-1].end == size
        assert picture.pictures[-1].x.high == gpu(80e9).pictures[-1].x.high
    assert (far(150e9), far(200e9)) == (False, True)
    assert length(gpu(40e9, 20e9), "at the start") == 20e9
    description = on_a_gpu({"weights": 2}, {"weights": 90e9}, 80e9).words
    assert "90.0 GB is more than its 80.0 GB" in description
