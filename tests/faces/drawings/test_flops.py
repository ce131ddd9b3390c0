"""Chapter 02's pictures: areas and bars as large as the work."""

from dataclasses import replace

import numpy as np
import pytest

from llmtrain_course.flops.formulas import attention_row
from llmtrain_course.flops.pictures import (
    KEYS,
    MATRIX,
    QUERIES,
    RETURNED,
    SENTENCE,
    SMALL,
    TOKENS,
    VALUES,
    WORDS,
    passes,
    row_of_attention,
    share_of_peak,
    three_products,
    work_by_pass,
)
from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.layout import PAGE, PHONE
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
    picture = drawn(replace(passes(counted, layers), height=1000))  # rounding hardly shows
    unit = picture.area_of("MLP") / counted.mlp
    for part, word in WORDS.items():
        assert picture.area_of(word) / unit == pytest.approx(getattr(counted, part), rel=0.02)
    again = sum(picture.area_of(f"{word}, recomputed") for word in WORDS.values())
    assert again / unit == pytest.approx(counted.recomputed, rel=0.02)
    assert bool(picture.dashed) == (recompute != "full")  # what isn't done again
    widths = {round(x.width) for x in picture.titled("MLP") if x.words == "MLP"}
    assert max(widths) == 2 * min(widths)  # backward


def test_the_words_of_the_passes_are_what_is_drawn() -> None:
    assert "(scores)" in passes(count_flops(GPT3, 64, "selective"), 96).words
    assert "recomputed nothing" in passes(count_flops(GPT3, 64, "none"), 96).words
    long = count_flops(LLAMA, 1, "none", sequence_length=65536)
    assert "largest part of each pass is the scores" in passes(long, 32).words


@pytest.mark.parametrize("width", [PAGE, PHONE])
@every_recompute
def test_each_pass_has_its_name_and_its_work_below_it(recompute: str, width: int) -> None:
    counted = count_flops(LLAMA, 64, recompute, sequence_length=32768)
    picture = drawn(passes(counted, 32), width)
    names = [picture.text(name) for name in ("forward ↑", "recomputed", "backward ↓")]
    lefts = [box.left for box in picture.titled("MLP")]
    assert names[0].across == pytest.approx(min(lefts), abs=60)
    assert names[0].right < names[1].left < names[1].right < names[2].left
    assert {*picture.texts} >= {"67.5 PFLOP", "135 PFLOP"}
    work = units.flops(counted.recomputed) if counted.recomputed else "nothing"
    assert any(
        x.words == work and abs(x.across - names[1].across) < 1 for x in picture.of_kind("text")
    )


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
    picture = drawn(three_products(step, 24, PAGE))
    assert f"{24 * step} FLOP" in picture.texts
    [whole] = [x for x in picture.filled("none") if x.width > 300]
    bar = [x for x in picture.of_kind("rect") if x.top == whole.top and x is not whole]
    assert sum(x.width for x in bar) == pytest.approx(whole.width * step / 6)
    cells = [x for x in picture.of_kind("rect") if x.fill != "none" and x.width == x.height]
    lit = np.size(MATRIX) + np.shape(TOKENS)[1] + np.shape(MATRIX)[1]
    assert len(cells) == (lit if step else 0)


def test_the_numbers_in_the_cells_are_those_of_the_products() -> None:
    texts = [{*drawn(three_products(step, 24, PAGE)).texts} for step in range(7)]
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
    half, whole = (
        drawn(work_by_pass(counted, most)) for most in (2 * counted.total, counted.total)
    )
    unit = sum(x.width for x in whole.titled("MLP: ")) / counted.mlp
    for part, word in WORDS.items():
        wide = sum(x.width for x in whole.titled(f"{word}: "))
        assert wide == pytest.approx(unit * getattr(counted, part), abs=1)
    again = [x.width for x in whole.filled(COLORS["recomputed"]) if ":" in x.words]
    assert sum(again) == pytest.approx(unit * counted.recomputed, abs=1)
    mlp = [sum(x.width for x in picture.titled("MLP: ")) for picture in (half, whole)]
    assert mlp[1] == pytest.approx(2 * mlp[0], abs=1)
    assert ("recomputed nothing" in whole.words) == (recompute == "none")
    assert f"backward {units.flops(2 * counted.model / 3)}." in whole.words
    assert f"That's {units.flops(counted.total)} in all" in whole.words


def test_a_bar_is_as_long_as_the_peak_and_filled_to_mfu_the_other_to_hfu() -> None:
    counted = count_flops(GPT3, 64, "full")
    rate = achieved_flops_per_gpu(counted.total, 18.13, 64)
    picture = drawn(share_of_peak(counted, rate, 312e12, (0.3, 0.4)))
    mfu, hfu = picture.titled("the peak")
    own = sum(map(picture.width_of, WORDS.values())) / 2  # in both
    assert own / mfu.width == pytest.approx(0.3897, abs=0.001)
    assert (own + picture.width_of("recomputed")) / hfu.width == pytest.approx(0.5192, abs=0.001)
    assert [x.width / mfu.width for x in picture.titled("at the start")] == pytest.approx(
        [0.3, 0.4], abs=0.001
    )
    assert [x.top for x in picture.titled("recomputed")] == [hfu.top]
    [mark] = [x for x in picture.of_kind("line") if x.thick == 3]
    assert mark.left == pytest.approx(mfu.right, abs=0.2)
    assert {"MFU 39.0%", "HFU 51.9%", "peak 312 TFLOP/s", "not used"} <= {*picture.texts}
    assert "fills 39.0% of it (MFU)" in picture.words
    assert "Before: 30.0% and 40.0%." in picture.words


def test_nothing_recomputed_is_one_share() -> None:
    picture = drawn(share_of_peak(count_flops(GPT3, 64, "none"), 150e12, 312e12))
    assert {"MFU 48.1%", "HFU 48.1%", "no work is repeated"} <= {*picture.texts}
    assert not picture.titled("recomputed")


def test_the_scores_are_hatched_and_what_is_recomputed_is_grey_in_every_picture() -> None:
    counted = count_flops(LLAMA, 64, "full", sequence_length=32768)
    pictures = [work_by_pass(counted, counted.total), passes(counted, 96)]
    pictures += [share_of_peak(counted, rate, 312e12) for rate in (150e12, 400e12)]
    for picture in map(drawn, pictures):
        lines = [x for x in picture.of_kind("line") if x.opacity == 0.6]
        peak = max((x.right for x in picture.titled("the peak")), default=picture.width)
        for box in picture.of_kind("rect"):
            hatched = any(x.inside(box) for x in lines)
            if box.words.startswith("scores") and box.fill == COLORS["attention"]:
                assert hatched
            if box.fill == COLORS["recomputed"] and box.words and box.right <= peak:
                assert not hatched
        assert picture.filled(COLORS["recomputed"])


@pytest.mark.parametrize("seconds", [32.09, 12, 0.01])
def test_what_lies_past_the_peak_is_to_scale(seconds: float) -> None:
    counted = count_flops(published.architecture("Megatron 18.4B", 2048), 512, "full")
    rate = achieved_flops_per_gpu(counted.total, seconds, 16)
    picture = drawn(share_of_peak(counted, rate, 312e12))
    [mark] = [x for x in picture.of_kind("line") if x.thick == 3]
    start, end = picture.titled("projections")[1].left, picture.titled("recomputed")[0].right
    assert (mark.left - start) / (end - start) == pytest.approx(312e12 / rate, abs=0.001)
    assert "more than the peak" in picture.texts
    assert "not used" not in picture.texts


@pytest.mark.parametrize("looks", QUERIES)
def test_a_token_mixes_the_values_of_those_that_it_sees(looks: str) -> None:
    seen = SENTENCE.index(looks) + 1
    scores = np.array(KEYS[:seen]) @ np.array(QUERIES[looks])
    shares = np.exp(scores / 2) / np.exp(scores / 2).sum()
    picture = row_of_attention(attention_row(QUERIES[looks], KEYS[:seen], VALUES[:seen]), looks, 3)
    spans = [lane.items[0] for lane in picture.lanes]
    assert [span.end for span in spans[:seen]] == pytest.approx(shares)
    assert all(span.hidden for span in spans[seen:])
    mix = ", ".join(f"{x:.1f}" for x in shares @ np.array(VALUES[:seen]))
    assert picture.verdict == f"the mix: ({mix})"
    assert [lane.total for lane in picture.lanes[seen:]] == ["not seen"] * (4 - seen)
