"""Chapter 02's pictures: areas and bars as large as the work."""

import numpy as np
import pytest

from llmtrain_course.flops.pictures import (
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
from llmtrain_course.kit.drawing import COLORS
from llmtrain_helpers import Transformer, achieved_flops_per_gpu, count_flops, published, units
from llmtrain_helpers.flops import RECOMPUTE
from tests.faces.svg import drawn

every_recompute = pytest.mark.parametrize("recompute", RECOMPUTE)


GPT3 = published.architecture("GPT-3 175B")


LLAMA = published.architecture("Llama-3.1-8B", 8192)


@every_recompute
@pytest.mark.parametrize(("model", "layers"), [(GPT3, 96), (LLAMA, 32)], ids=["gpt", "llama"])
def test_the_areas_of_the_passes_are_to_scale(recompute, model, layers) -> None:
    counted = count_flops(model, 64, recompute)
    picture = drawn(passes(counted, layers, height=1000))  # rounding to a tenth hardly shows
    unit = picture.area_of("MLP") / counted.mlp
    for part, word in WORDS.items():
        assert picture.area_of(word) / unit == pytest.approx(getattr(counted, part), rel=0.02)
    again = sum(picture.area_of(f"{word}, recomputed") for word in WORDS.values())
    assert again / unit == pytest.approx(counted.recomputed, rel=0.02)
    assert bool(picture.titled("not done again")) == (recompute != "full")
    widths = {round(x.width) for x in picture.titled("MLP") if x.words == "MLP"}
    assert max(widths) == 2 * min(widths)  # backward


def test_the_words_of_the_passes_are_what_is_drawn() -> None:
    assert "(scores)" in passes(count_flops(GPT3, 64, "selective"), 96).words
    assert "recomputed nothing" in passes(count_flops(GPT3, 64, "none"), 96).words
    long = count_flops(LLAMA, 1, "none", sequence_length=65536)
    assert "largest part of each is the scores" in passes(long, 32).words


def test_symbols_stand_in_the_picture_where_they_are_asked_for() -> None:
    counted = count_flops(GPT3, 64, "full")
    for symbols in (True, False):
        text = " ".join(drawn(passes(counted, 96, symbols=symbols)).texts)
        for size in ("4h² weights", "8h² weights", "hV weights"):
            assert (size in text) == symbols


@pytest.mark.parametrize("layers", [96, 105, 13])
def test_layers_are_drawn_in_equal_groups(layers: int) -> None:
    [caption] = [
        x for x in drawn(passes(count_flops(GPT3, 64, "full"), layers)).texts if "layers" in x
    ]
    count, _, groups = caption.partition(" layers")
    times, _, each = groups.removeprefix(", drawn as ").partition(" × ")
    assert int(count) == layers == int(times or layers) * int(each or 1)


@pytest.mark.parametrize("step", range(7))
def test_each_product_lights_the_token_that_passes_alone(step: int) -> None:
    picture = drawn(two_tokens(step, 24))
    assert f"{24 * step} FLOP" in picture.texts
    [whole] = [x for x in picture.filled("none") if x.width > 300]
    bar = [x for x in picture.of_kind("rect") if x.top == whole.top and x is not whole]
    assert sum(x.width for x in bar) == pytest.approx(whole.width * step / 6)
    cells = [x for x in picture.of_kind("rect") if x.fill != "none" and x.width == x.height]
    lit = np.size(MATRIX) + np.shape(TOKENS)[1] + np.shape(MATRIX)[1]
    assert len(cells) == (lit if step else 0)


def test_the_numbers_in_the_cells_are_those_of_the_products() -> None:
    texts = [{*drawn(two_tokens(step, 24)).texts} for step in range(7)]
    assert "13" not in texts[0]
    wanted = {1: "13 3·2 2·3", 3: "3·1 1·2 7", 5: "2·1 3·2", 6: "2+2 3+4 1+0"}
    assert all({*cells.split()} <= texts[step] for step, cells in wanted.items())
    weights, tokens, returned = map(np.array, (MATRIX, TOKENS, RETURNED))
    assert np.array_equal([x.output for x in SMALL], tokens @ weights)
    assert np.array_equal([x.passed_on for x in SMALL], returned @ weights.T)
    assert np.array_equal(sum(np.array(x.gradient) for x in SMALL), tokens.T @ returned)


@every_recompute
@pytest.mark.parametrize("model", [GPT3, LLAMA], ids=["gpt", "llama"])
def test_the_bars_of_a_step_are_to_one_scale(recompute: str, model: Transformer) -> None:
    counted = count_flops(model, 64, recompute)
    half, whole = (drawn(step_work(counted, most)) for most in (2 * counted.total, counted.total))
    unit = sum(x.width for x in whole.titled("MLP: ")) / counted.mlp
    for part, word in WORDS.items():
        wide = sum(x.width for x in whole.titled(f"{word}: "))
        assert wide == pytest.approx(unit * getattr(counted, part), abs=1)
    again = [x.width for x in whole.filled(COLORS["recomputed"]) if ":" in x.words]
    assert sum(again) == pytest.approx(unit * counted.recomputed, abs=1)
    mlp = [sum(x.width for x in picture.titled("MLP: ")) for picture in (half, whole)]
    assert mlp[1] == pytest.approx(2 * mlp[0], abs=1)
    assert ("recomputed nothing" in whole.words) == (recompute == "none")
    assert f"together {units.flops(counted.total)}" in whole.words


def test_the_bar_is_filled_to_mfu_and_hfu() -> None:
    counted = count_flops(GPT3, 64, "full")
    rate = achieved_flops_per_gpu(counted.total, 18.13, 64)
    picture = drawn(filled(counted, rate, 312e12, before=(0.3, 0.4)))
    whole = max(x.width for x in picture.filled("none"))
    own = sum(map(picture.width_of, WORDS.values()))
    assert own / whole == pytest.approx(0.3897, abs=0.001)
    assert (own + picture.width_of("recomputed")) / whole == pytest.approx(0.5192, abs=0.001)
    assert picture.width_of("at the start") == pytest.approx(0.4 * whole)
    assert "to 39.0 % (MFU)" in picture.words
    assert "Before: 30.0 % and 40.0 %." in picture.words


def test_nothing_recomputed_is_one_share() -> None:
    counted = count_flops(GPT3, 64, "none")
    [caption] = [x for x in drawn(filled(counted, 150e12, 312e12)).texts if "FU" in x]
    assert caption.startswith("MFU 48.1 %: HFU is the same")
    with pytest.raises(ValueError, match="more than the whole peak"):
        filled(counted, 350e12, 312e12)


def test_the_scores_are_hatched_and_what_is_recomputed_is_grey_in_every_picture() -> None:
    counted = count_flops(LLAMA, 64, "full", sequence_length=32768)
    pictures = [step_work(counted, counted.total), passes(counted, 96)]
    pictures += [filled(counted, 150e12, 312e12, unit=500), past_peak(counted, 400e12, 312e12, 500)]
    for picture in map(drawn, pictures):
        lines = [x for x in picture.of_kind("line") if x.opacity == 0.6]
        for box in picture.of_kind("rect"):
            hatched = any(x.inside(box) for x in lines)
            if box.words.startswith("scores") and box.fill == COLORS["attention"]:
                assert hatched
            if box.fill == COLORS["recomputed"] and box.words:
                assert not hatched
        assert picture.filled(COLORS["recomputed"])


@pytest.mark.parametrize("seconds", [32.09, 12, 0.01])
def test_what_lies_past_the_peak_is_to_scale(seconds: float) -> None:
    counted = count_flops(published.architecture("Megatron 18.4B", 2048), 512, "full")
    rate = achieved_flops_per_gpu(counted.total, seconds, 16)
    picture = drawn(past_peak(counted, rate, 312e12))
    words = [*WORDS.values(), "recomputed"]
    own, start = sum(map(picture.width_of, words)), min(x.left for x in picture.titled("proj"))
    [mark] = [x for x in picture.of_kind("line") if x.thick == 3]
    assert (mark.left - start) / own == pytest.approx(312e12 / rate, abs=0.001)
