"""Chapter 05's pictures: bits, marks and bytes are those of the formats and recipes."""

import math
from itertools import pairwise

import pytest

from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.precision.formulas import (
    EXAMPLE_GRADIENTS,
    between,
    gradient_fates,
    gradient_window,
    normal,
    shifted,
    sum_of_ones,
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
from tests.faces.svg import Picture, drawn

bf16, fp16, e4m3 = FORMATS["bf16"], FORMATS["fp16"], FORMATS["fp8_e4m3"]


# --- eight bits


@pytest.mark.parametrize(("exponent", "fraction"), [(4, 0), (7, 3), (9, 4), (10, 7)])
def test_the_bits_and_their_factors_are_those_of_the_number(exponent: int, fraction: int) -> None:
    value = normal(e4m3, exponent, fraction)
    texts = drawn(number_of_bits(e4m3, value)).texts
    assert "".join(x for x in texts if x in "01").startswith(f"0{exponent:04b}{fraction:03b}")
    assert {power(exponent - 7), f"1 + {fraction}/8", f"= {number(value)}"} < {*texts}
    assert f"to the next number: {number(shifted(e4m3, value, 1) - value)}" in texts


def test_every_number_up_to_16_has_its_mark_and_spacing_doubles() -> None:
    picture = drawn(number_of_bits(e4m3, 6))
    unit, zero = picture.unit("8", "16", "across"), picture.text("8").across
    [axis] = [x for x in picture.of_kind("line") if x.width > 300]
    marks = [x for x in picture.of_kind("line") if not x.width and x.down == axis.top]
    places = sorted(8 + (x.left - zero) / unit for x in marks)
    assert places == pytest.approx(between(e4m3, 0, 16), abs=0.01)


def test_bits_that_flip_are_outlined() -> None:
    assert not drawn(number_of_bits(e4m3, 6)).dashed
    picture = drawn(number_of_bits(e4m3, 8, before=7.5))  # 1001 111 and 1010 000
    assert len(picture.titled("flipped")) == bin(0b1001111 ^ 0b1010000).count("1")
    [before] = picture.titled("before", "circle")
    zero, unit = picture.text("8").across, picture.unit("8", "16", "across")
    assert before.across == pytest.approx(zero + unit * (7.5 - 8), abs=0.2)


# --- updates


def drawn_updates(number_format, update: float, updates: int) -> Picture:
    return drawn(
        update_lines(
            number_format, 1, update, updates, update_weight(number_format, 1, update, updates)
        )
    )


def test_each_update_is_a_dot_and_the_copy_stands_on_a_mark() -> None:
    picture = drawn_updates(bf16, 0.003, 4)
    assert len(picture.titled("after ", "circle")) == 5
    copy = picture.titled("1.015625", "circle")
    marks = [x.left for x in picture.of_kind("line") if abs(x.down - copy[0].down) < 1]
    assert min(abs(x - copy[0].across) for x in marks) < 0.2


def test_a_format_with_more_fraction_has_more_marks() -> None:
    for number_format in (bf16, fp16):
        picture = drawn_updates(number_format, 0.003, 0)
        [dot] = picture.titled("1", "circle")[:1]
        lines = [x for x in picture.of_kind("line") if x.down == dot.down and not x.width]
        marks = len(between(number_format, 0.995, 1.0825))
        assert len([x for x in lines if x.thick == 1]) == marks


@pytest.mark.parametrize("updates", [0, 1, 4])
def test_what_is_rounded_back_is_hatched_once_an_update_has_come(updates: int) -> None:
    picture = drawn_updates(bf16, 0.003, updates)
    back = [x for x in picture.filled("currentColor") if x.opacity < 1]
    assert len(back) == bool(updates)
    if back:  # half a mark below 1, and half a mark above, where marks are twice as far apart
        unit = picture.unit("1", "1.0625", "across")
        assert back[0].width == pytest.approx(unit * (2**-9 + 2**-8), abs=0.2)
        [update] = picture.filled(COLORS["gradients"])
        assert update.width == pytest.approx(unit * 0.003, abs=0.2)
        assert update.right < back[0].right  # less than half a mark: it is lost


# --- gradients


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp8_e4m3"])
@pytest.mark.parametrize("scale", [1, 1024, 2**24, 2**28])
def test_bars_show_what_becomes_of_the_gradients(name: str, scale: int) -> None:
    number_format = FORMATS[name]
    picture, fates = (
        drawn(gradient_bars(number_format, scale)),
        gradient_fates(number_format, scale),
    )
    window, *bars = [x for x in picture.of_kind("rect") if x.words]
    assert [x.words for x in bars] == [*fates.values()]
    assert len({x.fill for x in bars}) == len({*fates.values()})
    tallest = max(bars, key=lambda bar: bar.height).height
    decades = picture.between("2⁻⁴⁰", "2⁰", "across") / 40
    for k, bar in zip(fates, bars, strict=True):
        share = EXAMPLE_GRADIENTS[k] / max(EXAMPLE_GRADIENTS.values())
        assert bar.height == pytest.approx(tallest * share, abs=0.1)
        where = picture.text("2⁰").across + decades * (k + math.log2(scale))
        assert bar.across == pytest.approx(where, abs=0.6)
    assert bool(picture.dashed) == (scale > 1)  # where the bars began
    assert ("become 0" in picture.texts) == (name != "bf16")
    low, high = (math.log2(x) for x in gradient_window(number_format))
    for end, exponent in ((window.left, low), (window.right, high)):
        place = picture.text("2⁰").across + decades * exponent
        assert end == pytest.approx(place, abs=0.6) or not -46 < exponent < 34


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
    assert f"make {total:,}." in described.words
    assert f"one more makes {after:,}." in described.words
    picture = drawn(described)
    assert f"{total:,} + 1 → {after:,}" in picture.texts
    [dot], [one] = picture.titled("after one more", "circle"), picture.titled("+ 1")
    assert dot.across == pytest.approx(one.left if after == total else one.right, abs=0.1)
    [sum_] = [x for x in picture.of_kind("polyline") if x.thick == 4]
    [stall, end] = sum_.outlines[0][1:]
    assert end[1] == pytest.approx(stall[1], abs=0.1)  # level from where it stalls on
    assert bool(picture.titled("closer than can be drawn")) == (name == "fp32")


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
        picture = drawn(bytes_by_part(RECIPES[name], before))
        byte = picture.unit("4", "12", "across")
        pairs = zip(before.parts().values(), RECIPES[name].parts().values(), strict=True)
        changed = [was for was, now in pairs if was not in (0, now)]
        changed += [before.total] * (before.total != RECIPES[name].total)
        outlines = [byte * was for was in changed]
        assert [x.width for x in picture.dashed] == pytest.approx(outlines, abs=0.3)


# --- slices


@pytest.mark.parametrize("replicas", [2, 4, 8, 16])
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_together_the_gpus_have_every_slice_once_and_each_its_bytes(replicas, stage) -> None:
    whole = model_state_bytes(16_000, "bf16").parts()
    share = model_state_bytes(16_000, "bf16", stage, replicas).parts()
    picture = drawn(slices_of_gpus(whole, share, replicas, 160_000))
    [bar] = picture.titled("all states")
    unit = bar.width / sum(whole.values())
    for part, size in whole.items():
        left = picture.titled(f"{part}: left to the others")
        assert len(left) == (replicas if share[part] < size else 0)
        own = [x for x in picture.titled(part) if x not in left]
        [one] = [x for x in own if x.top == bar.top] or [None]
        assert (one.width if one else 0) == pytest.approx(unit * share[part], abs=0.2)
        if left:  # its slices are one below the other, without a gap, from top to bottom
            tops = [x.top for x in own if x != one]
            step = left[0].height / replicas
            assert tops[0] == pytest.approx(left[0].top, abs=0.11)
            assert [x.height for x in own if x != one] == pytest.approx([step] * replicas, abs=0.11)
            assert [b - a for a, b in pairwise(tops)] == pytest.approx(
                [step] * (replicas - 1), abs=0.21
            )
    [memory] = [x for x in picture.of_kind("line") if x.thick == 3]
    assert memory.left == pytest.approx(bar.left + unit * 160_000, abs=0.2)


# --- the panel's picture, and the page's table


def test_the_memory_line_stands_still_and_the_bar_ends_there_when_it_is_full() -> None:
    def gpu(size: float, before: float | None = None) -> Picture:
        parts = {"weights": size / 4, "optimizer": size * 3 / 4}
        return drawn(on_a_gpu({"weights": 2, "optimizer": 6}, parts, 80e9, before))

    def bar(size: float) -> float:
        return max(x.right for x in gpu(size).titled("optimizer") if x.height > 40)

    [line] = {x.left for y in (4e9, 90e9) for x in gpu(y).of_kind("line") if x.thick == 3}
    start = gpu(80e9).titled("weights")[0].left
    assert bar(80e9) == pytest.approx(line)
    assert bar(40e9) - start == pytest.approx((line - start) / 2, abs=0.2)
    assert any("far beyond" in x for x in gpu(200e9).texts)
    assert not any("far beyond" in x for x in gpu(150e9).texts)
    [outline] = gpu(40e9, 20e9).titled("at the start")
    assert outline.width == pytest.approx((line - start) / 4, abs=0.2)
    description = on_a_gpu({"weights": 2}, {"weights": 90e9}, 80e9).words
    assert "90.0 GB is more than its 80.0 GB" in description
