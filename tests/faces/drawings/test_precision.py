"""Chapter 05's drawings: to scale, inside their canvas, the same in words."""

import math
import re
from html import unescape
from itertools import pairwise

import numpy as np
import pytest

from llmtrain_helpers import FORMATS, RECIPES
from llmtrain_helpers.drawings.common import COLORS
from llmtrain_helpers.drawings.precision import (
    block_scales,
    distinct,
    factors,
    fates,
    loss_scale,
    number,
    number_bits,
    on_a_gpu,
    power,
    recipe_bytes,
    update_line,
    verdict,
)
from llmtrain_helpers.precision import gradient_window, updates_to_move
from tests.pages import words

bf16, fp16 = FORMATS["bf16"], FORMATS["fp16"]


def test_bits_factors_and_neighbours_are_drawn() -> None:
    drawn = number_bits(bf16, 0.1)
    for word in ("sign", "exponent", "fraction"):
        assert drawn.body.count(f'fill="{COLORS[word]}"') >= 2  # bits and their factor
    digits = "".join(re.findall(r'fill="#FFFFFF">([01])</text>', drawn.body))
    assert digits == "0011110111001101"
    assert digits == f"{int(np.float32(0.1).view(np.uint32)) + 2**15 >> 16:016b}"
    for told in ("2⁻⁴", "1.6015625", "123 − 127", "1 + 77/128", "0.1 was asked for"):
        assert f">{told}</text>" in drawn.body
    assert "neighbours are 0.099609375 and 0.10058594" in drawn.words


def test_the_product_of_the_factors_is_the_number() -> None:
    for known in FORMATS.values():
        for x in (0.1, -3.0, known.min_subnormal, known.max):
            sign, k, whole = known.split(x)
            told = [factor for _, factor, _ in factors(known, known.round(x))]
            assert told[0] == ("−" if sign else "+")
            scale = 2.0 ** (max(k, 1) - known.bias)
            digits = (k > 0) + whole / 2**known.mantissa_bits
            assert scale * digits * (-1) ** sign == known.round(x)
            assert told[1] == power(int(math.log2(scale)))
            assert told[2] == number(digits)


def test_bits_that_flip_are_outlined() -> None:
    assert "stroke-dasharray" not in number_bits(bf16, 1.0).body
    for steps, flipped in ((1, 1), (-1, 8)):  # as the page tells
        body = number_bits(bf16, 1.0, steps, before=(bf16, 1.0, 0)).body
        assert body.count("stroke-dasharray") == flipped
        assert f"{flipped} bit" in body
    assert "dashed" not in number_bits(bf16, 1.0, before=(fp16, 1.0, 0)).body


def test_a_number_that_is_too_large_or_subnormal_is_told() -> None:
    assert "infinity, for its largest is 65,504" in number_bits(fp16, 7e4).words
    assert "fp16 makes infinity of 70,000" in number_bits(fp16, 7e4, -1).body
    assert "70,000 lies farther right" in number_bits(fp16, 7e4).body
    assert "NaN, for its largest" in number_bits(FORMATS["fp8_e4m3"], -1e3).words
    assert "0: as 1 − 15" in number_bits(fp16, 1e-7).body
    assert "fp16 holds 0.5 exactly" in number_bits(fp16, 0.5).body


@pytest.mark.parametrize(
    ("name", "weight", "update", "told", "count"),
    [
        ("bf16", 1, 0.003, "stays 1: lost", 2),
        ("bf16", 1, 2**-8, "stays 1: lost", 2),
        ("bf16", 1, 0.004, "becomes 1.0078125: kept, rounded", 1),
        ("fp16", 1, 0.003, "kept, rounded", 1),
        ("bf16", 1, 5e-5, "stays 1: lost", 79),
        ("fp16", 1, 2**-10, "becomes 1.0009766: kept", 1),
        ("bf16", 0, 1e-9, "kept", 1),
        ("bf16", 1, 1e-8, "stays 1: lost", 0),
        ("bf16", -1, 0.001, "stays −1: lost", 2),
        ("fp8_e4m3", 400, 100, "overflows", 1),
    ],
)
def test_an_update_is_lost_or_kept(name, weight, update, told, count) -> None:
    known = FORMATS[name]
    assert told in verdict(known, weight, update)
    moved = updates_to_move(known, weight, update)
    assert moved == count
    assert known.round(weight + moved * update) != weight or not count
    assert count < 2 or known.round(weight + (moved - 1) * update) == weight
    assert told in update_line(known, weight, update).body


def test_the_update_before_is_dashed() -> None:
    assert "dashed" not in update_line(bf16, 1, 0.01).body
    changed = update_line(bf16, 1, 0.01, before=(bf16, 1, 0.002)).body
    assert "dashed: + 0.002" in changed
    assert "dashed" not in update_line(bf16, 1, 0.01, before=(fp16, 1, 0.002)).body


@pytest.mark.parametrize("name", ["fp16", "fp8_e5m2", "fp8_e4m3", "bf16"])
@pytest.mark.parametrize("scale", [1, 1024, 2.0**20])
def test_the_window_is_what_the_format_keeps(name: str, scale: float) -> None:
    known = FORMATS[name]
    low, high = gradient_window(known, scale)
    assert known.round(low * scale) == 0 < known.round(low * 1.001 * scale)
    assert math.isfinite(known.round(high * 0.999 * scale))
    assert not math.isfinite(known.round(high * 1.001 * scale))
    assert sum(fates(known, scale).values()) == pytest.approx(1)


def test_fp16_keeps_from_2_to_the_minus_25_to_65520() -> None:
    assert gradient_window(fp16) == (2**-25, 65520)
    assert gradient_window(fp16, 2**10) == (2**-35, 65520 / 1024)


def test_a_scale_moves_the_window_and_the_one_before_is_dashed() -> None:
    plain = loss_scale(fp16, 1e-8, 1)
    assert "10⁻⁸ comes back as 0, at S = 1" in plain.words
    assert "47 % become 0, 53 % are kept" in plain.words
    moved = loss_scale(fp16, 1e-8, 1024, before=(fp16, 1))
    assert "kept: above 2⁻³⁵ and below 63.984" in moved.body
    assert moved.body.count("stroke-dasharray") == 1
    assert "stroke-dasharray" not in plain.body
    assert "overflow" in loss_scale(fp16, 1e-8, 2**22).words
    assert "overflow" not in loss_scale(fp16, 1e-8, 2**21).words  # as the page tells
    assert "100 % are kept." in loss_scale(bf16, 1e-8, 1).words


def test_an_outlier_spoils_all_under_one_scale_and_its_block_under_three() -> None:
    drawn = block_scales()
    told = re.findall(r"(\d+) of 24 numbers become 0", drawn.words)
    lost = [int(n) for n in told]
    assert lost == [14, 3]
    assert drawn.body.count("<title>becomes 0</title>") == sum(lost)
    kept = drawn.body.count(f'fill="{COLORS["activations"]}"')
    assert kept == 2 * 24 - sum(lost)
    assert drawn.body.count("<title>kept</title>") == kept + 1 + 3  # and the frames


def test_neighbours_are_told_apart_however_large() -> None:
    for known, x in ((FORMATS["fp32"], 3.3e38), (bf16, 2e30), (FORMATS["fp32"], 1e-30)):
        near = [known.shifted(x, k) for k in (-2, -1, 0, 1, 2)]
        assert len(set(distinct(near))) == 5


def test_a_cell_is_a_byte_in_its_parts_colour() -> None:
    for name, recipe in RECIPES.items():
        body = recipe_bytes([name]).body
        for part, size in recipe.parts().items():
            color = COLORS[part.replace("_", " ")]
            assert body.count(f'fill="{color}"') == size + 1  # and one in the key
        assert f">{recipe.total}</text>" in body
        assert f"{recipe.total} bytes." in recipe_bytes([name]).words


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


EVERYWHERE = [1e-30, -0.1, 0.1, 1.0, 3.14159265, 399.0, 65504.0, 1e6, 0.0]
EVERYWHERE += [1e40, -3.3e38, 2.5e30]


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_leaves_the_canvas(name: str) -> None:
    known = FORMATS[name]
    drawings = [number_bits(known, x, k) for x in EVERYWHERE for k in (-8, 0, 8)]
    drawings += [update_line(known, w, d) for w in (-400, 0, 1, 0.3) for d in (1e-9, 0.01, 100)]
    drawings += [loss_scale(known, g, 2.0**k) for g in (1e-12, 1e4) for k in (0, 12, 40)]
    drawings += [recipe_bytes(), block_scales()]
    for drawing in drawings:
        for place in re.findall(
            r'<rect x="([-\d.]+)" y="([-\d.]+)" width="([-\d.]+)"', drawing.body
        ):
            x, y, wide = map(float, place)
            assert 0 <= x <= x + wide <= drawing.width
            assert 0 <= y <= drawing.height
        for x, size, place, text in re.findall(
            r'<text x="([-\d.]+)" y="[-\d.]+" font-size="([\d.]+)" '
            r'text-anchor="(\w+)"[^>]*>([^<]*)<',
            drawing.body,
        ):
            assert float(size) >= 14
            room = 0.56 * float(size) * len(text)
            left = float(x) - room * {"start": 0, "middle": 0.5, "end": 1}[place]
            assert -6 <= left <= left + room <= drawing.width + 6, text
        assert drawing.words in unescape(drawing.saved())


def test_the_table_of_formats_is_that_of_the_package() -> None:
    for name, known in FORMATS.items():
        cells = [known.bits, known.exponent_bits, known.mantissa_bits]
        cells += [number(known.max), power(int(math.log2(known.min_subnormal)))]
        cells += [power(int(math.log2(known.eps)))]
        row = " | ".join(map(str, [name, *cells]))
        assert f"| {row} |" in words("05_precision"), row


def test_words_in_the_drawing_of_bits_keep_apart() -> None:
    body = number_bits(bf16, 1.0, -1, before=(bf16, 1.0, 0)).body
    places = re.findall(
        r'<text x="([\d.]+)" y="([\d.]+)" font-size="([\d.]+)" '
        r'text-anchor="(\w+)"[^>]*>([^<]*)<',
        body,
    )
    ends: dict[str, list[tuple[float, float]]] = {}
    for x, y, size, anchor, text in places:
        wide = 0.62 * float(size) * len(text)  # as wide as broad fonts are
        left = float(x) - wide * {"start": 0, "middle": 0.5, "end": 1}[anchor]
        ends.setdefault(y, []).append((left, left + wide))
    for row in ends.values():
        row.sort()
        for (_, end), (start, _) in pairwise(row):
            assert start - end > 8
