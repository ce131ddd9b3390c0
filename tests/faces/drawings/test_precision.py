"""Chapter 05's drawings: to scale, inside their canvas, the same in words."""

import itertools
import math
import re
from html import unescape

import pytest

from llmtrain_helpers import FORMATS, RECIPES, model_state_bytes
from llmtrain_helpers.drawings.common import COLORS, Drawing
from llmtrain_helpers.drawings.precision import (
    NARROW,
    WIDTH,
    eight_bits,
    gradient_bars,
    number,
    on_a_gpu,
    parameter_bytes,
    power,
    slices,
    sum_line,
    update_lines,
)
from llmtrain_helpers.precision import fate_shares, gradient_fates, sum_of_ones, updated
from tests.pages import words

bf16, fp16, e4m3 = FORMATS["bf16"], FORMATS["fp16"], FORMATS["fp8_e4m3"]


def written(drawing: Drawing) -> list[str]:
    return re.findall(r"<text [^>]*>([^<]*)</text>", drawing.body)


def titled(drawing: Drawing, title: str) -> int:
    return drawing.body.count(f"<title>{title}</title>")


# --- eight bits


@pytest.mark.parametrize(("exponent", "fraction"), [(4, 0), (7, 3), (9, 4), (10, 7)])
def test_the_bits_and_their_factors_are_those_of_the_number(exponent: int, fraction: int) -> None:
    value = e4m3.normal(exponent, fraction)
    told = written(eight_bits(e4m3, value))
    digits = "".join(x for x in told if x in ("0", "1"))
    assert digits.startswith(f"0{exponent:04b}{fraction:03b}")
    assert power(exponent - 7) in told
    assert f"1 + {fraction}/8" in told
    assert f"= {number(value)}" in told
    assert f"to the next number: {number(e4m3.shifted(value, 1) - value)}" in told


def test_every_number_up_to_16_has_its_mark_and_spacing_doubles() -> None:
    body = eight_bits(e4m3, 6).body
    marks = re.findall(r'<line x1="([\d.]+)" y1="(?:229|224)" x2="\1"', body)
    places = [(float(x) - 30) / 40 for x in marks]
    assert len(places) == len(e4m3.between(0, 16))
    for low in (1, 2, 4, 8):
        inside = [x for x in places if low - 0.01 <= x < 2 * low - 0.01]
        assert len(inside) == 8
        steps = [b - a for a, b in itertools.pairwise(inside)]
        assert steps == pytest.approx([low / 8] * 7, abs=0.006)


def test_bits_that_flip_are_outlined() -> None:
    assert titled(eight_bits(e4m3, 6), "flipped") == 0
    drawn = eight_bits(e4m3, 8, before=7.5)  # 1001 111 and 1010 000
    assert titled(drawn, "flipped") == 5
    assert titled(drawn, "before") == 1


# --- updates


def drawn_updates(known, update: float, updates: int) -> Drawing:
    return update_lines(known, 1, update, updates, updated(known, 1, update, updates))


def test_each_update_is_a_dot_and_the_copy_stands_on_a_mark() -> None:
    drawn = drawn_updates(bf16, 0.003, 4)
    dots = re.findall(r'cx="([\d.]+)" cy="204.0"', drawn.body)
    assert [float(x) for x in dots] == pytest.approx(
        [30 + 640 * (0.005 + 0.003 * k) / 0.0875 for k in range(5)], abs=0.1
    )
    assert titled(drawn, "1.015625") == titled(drawn, "1") == 1
    assert "in bf16 alone it is 1. A main weight in fp32 is 1.012" in drawn.words
    assert "its bf16 copy 1.015625" in drawn.words


def test_a_format_with_more_fraction_has_more_marks() -> None:
    coarse, fine = (drawn_updates(x, 0.003, 0).body.count("<line") for x in (bf16, fp16))
    assert fine - coarse > 2 * 7 * len(bf16.between(0.995, 1.0825)) - 60


# --- gradients


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp8_e4m3"])
@pytest.mark.parametrize("scale", [1, 1024, 2**24, 2**28])
def test_bars_show_what_becomes_of_the_gradients(name: str, scale: int) -> None:
    known = FORMATS[name]
    drawn, fates = gradient_bars(known, scale), [*gradient_fates(known, scale).values()]
    for fate in ("lost", "kept", "too large"):
        assert titled(drawn, fate) == fates.count(fate)
    assert drawn.body.count("<polyline") == (scale > 1)  # where the bars began
    assert ("become 0" in written(drawn)) == (name != "bf16")


def test_the_bars_move_and_the_window_stands() -> None:
    def frame(scale: int) -> list[str]:
        return re.findall(r'<rect [^>]*fill-opacity="0.13"', gradient_bars(fp16, scale).body)

    assert frame(1) == frame(2**20)
    assert "47 % lost, 53 % kept" in gradient_bars(fp16, 1).words
    assert fate_shares(fp16, 2**28)["too large"] > 0.02


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
    known = FORMATS[name]
    assert sum_of_ones(known, ones) == total
    drawn = sum_line(known, ones, total)
    assert f"make {total:,}." in drawn.words
    assert f"one more makes {after:,}." in drawn.words
    x, y = 74 + 330 * ones / 4096, 232 - 200 * total / 4096
    assert f'cx="{x:.1f}" cy="{y:.1f}" r="8"' in drawn.body


# --- a parameter's bytes


@pytest.mark.parametrize("name", RECIPES)
def test_a_cell_is_a_byte_in_its_parts_colour(name: str) -> None:
    recipe = RECIPES[name]
    drawn = parameter_bytes(recipe, RECIPES["fp32"])
    for part, size in recipe.parts().items():
        word = part.replace("_", " ")
        assert titled(drawn, word) == 2 * size  # in its row, and in the row of all
        assert drawn.body.count(f'fill="{COLORS[word]}"') == 2 * size
    assert f"together {recipe.total}." in drawn.words
    assert str(recipe.total) in written(drawn)
    assert ("before" in drawn.body) == (recipe.parts() != RECIPES["fp32"].parts() and name != "amp")


@pytest.mark.parametrize("width", [WIDTH, NARROW])
@pytest.mark.parametrize("name", RECIPES)
def test_the_outline_of_all_bytes_surrounds_what_their_row_was(name: str, width: int) -> None:
    for before in RECIPES.values():
        if before.total in (RECIPES[name].total, 0):
            continue
        was = bars(parameter_bytes(before, before, width))
        low = max(y for _, y, *_ in was)  # the row of all stands below
        row = [bar for bar in was if bar[1] == low]
        assert len(row) == before.total
        left, right = row[0][0], row[-1][0] + row[-1][2]
        outlines = bars(parameter_bytes(RECIPES[name], before, width), "before")
        [(x, y, wide, high)] = [bar for bar in outlines if bar[1] > low - 10]
        assert (x, x + wide) == (left - 2, right + 2)
        assert (y, y + high) == (low - 3, low + row[0][3] + 3)


def bars(drawing: Drawing, title: str = "[^<]*") -> list[tuple[float, ...]]:
    """Where the rectangles with a title stand, and how wide and high they are."""
    place = r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"[^>]*>'
    found = re.findall(f"{place}<title>{title}</title>", drawing.body)
    return [tuple(map(float, numbers)) for numbers in found]


# --- slices


@pytest.mark.parametrize("replicas", [2, 4, 8, 16])
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_together_the_gpus_have_every_slice_once_and_each_its_bytes(replicas, stage) -> None:
    whole = model_state_bytes(16_000, "bf16").parts()
    held = model_state_bytes(16_000, "bf16", stage, replicas).parts()
    drawn = slices(whole, held, replicas, 160_000)
    for part, size in whole.items():
        left = titled(drawn, f"{part}: left to the others")
        assert left == (replicas if held[part] < size else 0)
    widths = re.findall(r'y="302" width="([\d.]+)" height="34" fill="#', drawn.body)
    assert sum(map(float, widths)) == pytest.approx(
        640 * sum(held.values()) / sum(whole.values()), abs=0.3
    )
    # the slices of a part that is shared out lie one below the other, without a gap
    tops = re.findall(
        r'y="([\d.]+)" width="[\d.]+" height="[\d.]+" fill="#007050"><title>optimizer<', drawn.body
    )[:replicas]
    if stage:
        places = [float(y) for y in tops]
        steps = [b - a for a, b in itertools.pairwise(places)]
        assert steps == pytest.approx([95 / replicas] * (replicas - 1), abs=0.11)


# --- the panel's picture, and all of them


def test_the_memory_line_stands_still() -> None:
    def drawn(size: float, before: float | None = None) -> str:
        parts = {"weights": size / 4, "optimizer": size * 3 / 4}
        return on_a_gpu({"weights": 2, "optimizer": 6}, parts, 80e9, before).body

    lines = {re.findall(r'<line x1="380"[^>]*width="3"/>', drawn(x))[0] for x in (4e9, 90e9)}
    assert len(lines) == 1
    assert "far beyond" in drawn(200e9)
    assert "far beyond" not in drawn(150e9)
    assert "dashed: 20.0 GB" in drawn(40e9, 20e9)
    bars = re.findall(r'y="136" width="([\d.]+)" height="54"', drawn(80e9))
    assert sum(map(float, bars)) == pytest.approx(340)  # up to the line
    told = on_a_gpu({"weights": 2}, {"weights": 90e9}, 80e9).words
    assert "90.0 GB is more than its 80.0 GB" in told


def everything() -> list[Drawing]:
    drawings = [
        eight_bits(e4m3, e4m3.normal(e, f), before=6.0) for e in range(4, 11) for f in range(8)
    ]
    drawings += [
        drawn_updates(known, update, updates)
        for known in (bf16, fp16)
        for update in (0.0002, 0.003, 0.005)
        for updates in (0, 4, 10)
    ]
    for name in ("fp16", "bf16", "fp8_e4m3"):
        drawings += [gradient_bars(FORMATS[name], 4**k) for k in range(0, 15, 2)]
        drawings += [
            sum_line(FORMATS[name], n, sum_of_ones(FORMATS[name], n)) for n in (1, 256, 1024, 4096)
        ]
    drawings += [parameter_bytes(recipe, RECIPES["fp32"]) for recipe in RECIPES.values()]
    whole = model_state_bytes(8e9, "bf16").parts()
    drawings += [
        slices(whole, model_state_bytes(8e9, "bf16", stage, d).parts(), d, 80e9)
        for stage in range(4)
        for d in (2, 4, 8, 16)
    ]
    return drawings


def test_nothing_leaves_the_canvas() -> None:
    for drawing in everything():
        for place in re.findall(
            r'<rect x="([-\d.]+)" y="([-\d.]+)" width="([-\d.]+)"', drawing.body
        ):
            x, y, wide = map(float, place)
            assert 0 <= x <= x + wide <= drawing.width
            assert 0 <= y <= drawing.height
        for x, size, place, told in re.findall(
            r'<text x="([-\d.]+)" y="[-\d.]+" font-size="([\d.]+)" '
            r'text-anchor="(\w+)"[^>]*>([^<]*)<',
            drawing.body,
        ):
            assert float(size) >= 14
            room = 0.56 * float(size) * len(told)
            left = float(x) - room * {"start": 0, "middle": 0.5, "end": 1}[place]
            assert -6 <= left <= left + room <= drawing.width + 6, told
        assert drawing.words in unescape(drawing.saved())


def test_the_table_of_formats_is_that_of_the_package() -> None:
    for name in ("fp32", "bf16", "fp16", "fp8_e4m3"):
        known = FORMATS[name]
        cells = [known.exponent_bits, known.mantissa_bits]
        cells += [number(known.max, 2 if known.max > 1e6 else 8), power(int(math.log2(known.eps)))]
        row = " | ".join(map(str, [name, *cells]))
        assert f"| {row} |" in words("05_precision"), row
