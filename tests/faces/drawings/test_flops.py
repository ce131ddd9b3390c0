"""Chapter 02's drawings: to scale, inside their canvas, the same in words."""

import re

import numpy as np
import pytest

from llmtrain_helpers import Transformer, achieved_flops_per_gpu, count_flops, units
from llmtrain_helpers.drawings.common import COLORS, Drawing
from llmtrain_helpers.drawings.flops import (
    MATRIX,
    RETURNED,
    SMALL,
    TOKENS,
    WORDS,
    filled,
    passes,
    past_peak,
    step_work,
    two_tokens,
)
from llmtrain_helpers.evidence import published
from llmtrain_helpers.flops import RECOMPUTE

every_recompute = pytest.mark.parametrize("recompute", RECOMPUTE)


GPT3 = published.architecture("GPT-3 175B")


LLAMA = published.architecture("Llama-3.1-8B", 8192)


def rectangles(drawing: Drawing) -> list[dict[str, str]]:
    """Each rectangle's attributes and title."""
    found = []
    for attributes, title in re.findall(r"<rect ([^>]*)>(?:<title>(.*?)</title>)?", drawing.body):
        pairs = dict(re.findall(r'([\w-]+)="([^"]*)"', attributes))
        found.append(pairs | {"title": title})
    return found


def area(drawing: Drawing, title: str) -> float:
    """Of all the rectangles of this title, in every pass."""
    return sum(
        float(one["width"]) * float(one["height"])
        for one in rectangles(drawing)
        if one["title"] == title
    )


@every_recompute
@pytest.mark.parametrize(("model", "layers"), [(GPT3, 96), (LLAMA, 32)], ids=["gpt", "llama"])
def test_the_areas_of_the_passes_are_to_scale(recompute, model, layers) -> None:
    counted = count_flops(model, 64, recompute)
    drawing = passes(counted, layers, height=1000)  # rounding to a tenth hardly shows
    scale = area(drawing, "MLP") / counted.mlp
    for part, word in WORDS.items():
        drawn, size = area(drawing, word), getattr(counted, part)
        assert drawn / scale == pytest.approx(size, rel=0.02)
    again = sum(area(drawing, f"{word}, recomputed") for word in WORDS.values())
    assert again / scale == pytest.approx(counted.recomputed, rel=0.02)
    assert ("not done again" in drawing.body) == (recompute != "full")


def test_backward_is_twice_as_wide_and_begins_at_the_top() -> None:
    drawing = passes(count_flops(GPT3, 64, "full"), 96)
    widths = {float(r["width"]) for r in rectangles(drawing) if r["title"] == "MLP"}
    assert max(widths) == 2 * min(widths)
    assert "backward begins at the top" in drawing.body


def test_the_words_of_the_passes_are_what_is_drawn() -> None:
    told = passes(count_flops(GPT3, 64, "full"), 96).words
    assert "forward 47.0 PFLOP, recomputed 46.9 PFLOP" in told
    assert "backward 94.1 PFLOP, twice as wide" in told
    assert "(scores)" in passes(count_flops(GPT3, 64, "selective"), 96).words
    assert "recomputed nothing" in passes(count_flops(GPT3, 64, "none"), 96).words
    long = count_flops(LLAMA, 1, "none", sequence_length=65536)
    assert "largest part of each is the scores" in passes(long, 32).words


def test_symbols_stand_in_the_picture_where_they_are_asked_for() -> None:
    counted = count_flops(GPT3, 64, "full")
    for size in ("4h² weights", "8h² weights", "hV weights"):
        assert size in passes(counted, 96, symbols=True).body
        assert size not in passes(counted, 96).body


@pytest.mark.parametrize(("layers", "told"), [(96, "2 × 48"), (105, "3 × 35")])
def test_layers_are_drawn_in_equal_groups(layers: int, told: str) -> None:
    body = passes(count_flops(GPT3, 64, "full"), layers).body
    assert f"{layers} layers, drawn as {told}" in body
    assert "13 layers<" in passes(count_flops(GPT3, 64, "full"), 13).body


@pytest.mark.parametrize("step", range(7))
def test_each_product_lights_the_token_that_passes_alone(step: int) -> None:
    drawing = two_tokens(step, 24)
    assert f">{24 * step} FLOP<" in drawing.body
    assert f'width="{80 * step}" height="28" fill="#' in drawing.body or not step
    lit = drawing.body.count('width="32" height="32" fill="#')
    assert lit == (12 + 3 + 4 if step else 0)


def test_the_numbers_in_the_cells_are_those_of_the_products() -> None:
    def at(step: int) -> list[str]:
        return re.findall(r">([\d·+]+)</text>", two_tokens(step, 24).body)

    assert "13" not in at(0)
    assert {"13", "3·2", "2·3"} <= {*at(1)}
    assert {"3·1", "1·2", "7"} <= {*at(3)}
    assert {"2·1", "3·2"} <= {*at(5)}
    assert {"2+2", "3+4", "1+0"} <= {*at(6)}
    weights, tokens, returned = map(np.array, (MATRIX, TOKENS, RETURNED))
    assert np.array_equal([x.output for x in SMALL], tokens @ weights)
    assert np.array_equal([x.passed_on for x in SMALL], returned @ weights.T)
    assert np.array_equal(sum(np.array(x.gradient) for x in SMALL), tokens.T @ returned)


@every_recompute
@pytest.mark.parametrize("model", [GPT3, LLAMA], ids=["gpt", "llama"])
def test_the_bars_of_a_step_are_to_one_scale(recompute: str, model: Transformer) -> None:
    counted = count_flops(model, 64, recompute)
    drawing = step_work(counted, counted.total)
    wide = sum(float(r["width"]) for r in rectangles(drawing) if r["title"] and ":" in r["title"])
    assert wide == pytest.approx(450, abs=1)
    assert f"together {units.flops(counted.total)}" in drawing.words
    assert ("recomputed nothing" in drawing.words) == (recompute == "none")


def test_a_longer_step_leaves_the_outline_of_the_one_before() -> None:
    short, long = (count_flops(LLAMA, 8, "none", sequence_length=s) for s in (2048, 8192))
    assert step_work(long, long.total).body.count("at the start") == 0
    drawn = step_work(long, long.total, short)
    assert drawn.body.count("<title>at the start</title>") == 2
    assert drawn.body.count(">at the start</text>") == 1


def test_the_bar_is_filled_to_mfu_and_hfu() -> None:
    counted = count_flops(GPT3, 64, "full")
    X = achieved_flops_per_gpu(counted.total, 18.13, 64)
    drawing = filled(counted, X, 312e12, before=(0.3, 0.4))
    wide = {r["title"]: float(r["width"]) for r in rectangles(drawing) if r["title"]}
    own = sum(wide[word] for word in WORDS.values())
    assert own / 820 == pytest.approx(0.3897, abs=0.001)
    assert (own + wide["recomputed"]) / 820 == pytest.approx(0.5192, abs=0.001)
    assert wide["at the start"] == pytest.approx(0.4 * 820)
    assert "MFU 39.0 %" in drawing.body
    assert "HFU 51.9 %" in drawing.body
    assert "to 39.0 % (MFU)" in drawing.words
    assert "Before: 30.0 % and 40.0 %." in drawing.words


def test_nothing_recomputed_is_one_share() -> None:
    counted = count_flops(GPT3, 64, "none")
    drawing = filled(counted, 150e12, 312e12)
    assert "MFU 48.1 %: HFU is the same" in drawing.body
    assert "all that the GPUs did" not in drawing.body
    with pytest.raises(ValueError, match="more than the whole peak"):
        filled(counted, 350e12, 312e12)


def test_all_parts_have_the_colours_of_the_course() -> None:
    counted = count_flops(GPT3, 64, "full")
    drawn = [two_tokens(4, 24), step_work(counted, counted.total), passes(counted, 96)]
    drawn.append(filled(counted, 150e12, 312e12))
    fills = {r["fill"] for drawing in drawn for r in rectangles(drawing)}
    assert fills - {"none"} <= set(COLORS.values())


@pytest.mark.parametrize("seconds", [32.09, 12, 0.01])
def test_what_lies_past_the_peak_is_to_scale(seconds: float) -> None:
    counted = count_flops(published.architecture("Megatron 18.4B", 2048), 512, "full")
    rate = achieved_flops_per_gpu(counted.total, seconds, 16)
    drawn = past_peak(counted, rate, 312e12)
    own = sum(area(drawn, word) for word in [*WORDS.values(), "recomputed"])
    assert own == pytest.approx(820 * 46, rel=0.01)
    [mark] = re.findall(r'<line x1="([\d.]+)"[^>]* stroke-width="3"', drawn.body)
    assert float(mark) - 20 == pytest.approx(820 * 312e12 / rate, abs=0.1)
