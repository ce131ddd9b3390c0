"""Chapter 06's pictures: as high and as long as what's counted."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex

from llmtrain_course.activations.figures import memory_bars
from llmtrain_course.activations.formulas import SAVED_TENSORS, resident_layers
from llmtrain_course.activations.pictures import (
    MOMENTS,
    kept_by_layer,
    layers_over_time,
    memory_at_loss,
    memory_of_steps,
    memory_so_far,
    places_of_trace,
    segments,
)
from llmtrain_course.activations.products import GRADIENT, W, X, three_products
from llmtrain_course.kit.chart import Area, Dot, Path, Rule
from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.lanes import Span
from llmtrain_helpers import Transformer, count_activations, published, step_timeline, units
from llmtrain_helpers.activations import MARKS
from tests.faces.marks import marks
from tests.faces.svg import drawn

LLAMA = published.architecture("Llama-3.2-1B", 8192)
LARGER = published.architecture("Llama-3.1-8B", 2048)


def small(micro: int = 1, passes: int = 1, recompute: str = "none"):
    return step_timeline(LLAMA, micro, "bf16", recompute, 2, passes)


@pytest.mark.parametrize("layers", [1, 4, 6])
def test_recomputation_leaves_inputs_and_brings_back_one_layer(layers: int) -> None:
    moments = range(1, 2 * layers + 1)
    kept, left = (
        [resident_layers(layers, time, recomputes=x) for time in moments] for x in (False, True)
    )
    assert [len(kinds) for kinds in kept] == [*range(1, layers + 1), *range(layers, 0, -1)]
    assert [kinds.count("again") for kinds in left] == [0] * layers + [1] * layers
    for now in moments:
        picture = drawn(layers_over_time(layers, now))
        for way, kind in ((kept, "kept"), (left, "again")):
            there_now = sum(kinds.count(kind) for kinds in way[:now])
            assert len(picture.titled(kind)) == there_now + 1  # and one in the key


@pytest.mark.parametrize("step", range(5))
@pytest.mark.parametrize("kept", [True, False])
def test_only_the_gradient_of_w_needs_what_forward_kept(step: int, kept: bool) -> None:
    picture = three_products(step, kept)
    x, w, gradient = (np.array(matrix) for matrix in (X, W, GRADIENT))
    whole = [x, w, x @ w, x.T, gradient, x.T @ gradient, gradient, w.T, gradient @ w.T]
    brought = [0, 0, 1, 3, 2, 3, 2, 4, 4]
    needs_x = (0, 3, 5)
    there = [
        matrix
        for i, matrix in enumerate(whole)
        if step >= brought[i] and (kept or not step or i not in needs_x)
    ]
    digits = [text for text in drawn(picture).texts if text.lstrip("−").isdigit()]
    assert [int(x.replace("−", "-")) for x in digits] == [
        int(number) for matrix in there for number in matrix.ravel()
    ]
    assert ("can't be computed" in picture.words) == (step >= 3 and not kept)
    assert bool(drawn(picture).dashed) == (step > 0 and not kept)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("mark", ["start", "forward", "loss", "first layer", "update"])
def test_memory_is_drawn_up_to_the_moment(step: int, mark: str) -> None:
    line = small()
    [now] = [x for x in line.moments if (x.step, x.mark) == (step, mark)]
    bands = marks(memory_so_far(line, now, 80e9, "an A100", 125e9, 40e9), Area)
    assert (bands[0].lower[-1], bands[-1].upper[-1]) == (0, now.total)


@pytest.mark.parametrize("micro", [1, 2, 3])
def test_measured_dots_lie_on_what_is_drawn(micro: int) -> None:
    """But where the drawing jumps, and at the update, whose operators need room themselves."""
    line = step_timeline(LLAMA, micro, "bf16", "none", 2)
    rows = [x for x in published.rows("memory_trace") if x["micro_batch_size"] == micro]
    measured = [*places_of_trace(rows)]
    picture = memory_so_far(line, line.moments[-1], 125e9, "a card", 130e9, 40e9, measured)
    top = marks(picture, Area)[5:][-1]
    dots = marks(picture, Dot)
    assert {(x.x, x.y) for x in dots} == {*measured}
    assert max(x.y for x in dots) == pytest.approx(line.peak.total, rel=0.002)
    for dot in dots:
        drawn_there = np.interp(dot.x, top.xs, top.upper)
        if dot.x % 1 not in map(pytest.approx, (0.27, 0.78, 0.88)):
            assert dot.y == pytest.approx(drawn_there, rel=0.06, abs=0.4e9), dot
    assert sum(x.y > 1.5 * line.moments[0].total for x in dots) > 10


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("memory", [24e9, 80e9, 180e9])
def test_bands_stand_on_each_other_and_are_as_high_as_the_peak(passes, memory) -> None:
    line = small(2, passes)
    picture = memory_of_steps(line, memory)
    bands = [x for x in marks(picture, Area) if x.title != "over the line"]
    assert all(band.color == COLORS.get(band.title, COLORS["logits"]) for band in bands)
    assert max(bands[-1].upper) == line.peak.total
    one, two = marks(picture, Area, "loss gradients")
    assert max(two.upper) - max(one.upper) == line.peak.logits / 2
    assert marks(picture, Rule, units.gigabytes(memory))[0].value == memory
    assert {*bands[0].lower} == {0}
    assert all(above.lower == below.upper for below, above in pairwise(bands))


def test_the_head_comes_at_the_end_of_forward() -> None:
    """With all layers computed again, nearly all that forward keeps is the head's."""
    line = small(recompute="full")
    assert line.head == count_activations(LLAMA, 1, "full").head
    [kept] = marks(memory_of_steps(line, 80e9), Area, "activations")
    thick = [(kept.upper[i] - kept.lower[i]) / 1e9 for i in (1, 2, 3)]
    assert thick == pytest.approx([0, 0.54, 4.81], abs=0.01)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (small(), "gradients of the log"),
        (small(1, 2), "gradients of the log"),
        (small(2), "gradients of the log"),  # close below the line of 70 GB
        (step_timeline(LARGER, 1, "pure_bf16", "full", 2), "all gradients"),
    ],
)
def test_the_callout_is_above_the_peak_and_off_the_line(line, text) -> None:
    picture = drawn(memory_of_steps(line, 70e9))
    callout, line = picture.text(text), max(picture.of_kind("line"), key=lambda x: x.thick)
    assert callout.bottom < min(band.top for band in picture.of_kind("polygon"))
    assert not callout.top < line.top < callout.bottom


def test_what_is_over_the_line_is_paler_and_nothing_else() -> None:
    assert not marks(memory_of_steps(small(2), 80e9), Area, "over the line")
    picture = memory_of_steps(small(2), 40e9)
    [over] = marks(picture, Area, "over the line")
    assert ({*over.lower}, max(over.upper)) == ({40e9}, small(2).peak.total)
    assert "26.8 GB above the line" in picture.words


@pytest.mark.parametrize("passes", [1, 2])
def test_what_was_before_is_an_outline_to_the_same_scale(passes: int) -> None:
    """Next to other passes, it's only the old peak: its moments aren't the same."""
    old = small(4)
    [outline] = marks(memory_of_steps(small(1, passes), 80e9, before=(old, 40e9)), Path)
    ends = [y for _, y in outline.points]
    assert (bool(outline.dash), max(ends)) == (True, old.peak.total)
    assert (min(ends) == max(ends)) == (passes == 2)


@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("passes", [1, 4])
def test_the_logits_are_three_tensors_of_tokens_times_vocabulary(recompute, passes) -> None:
    b = 8 // passes
    line, before = small(b, passes, recompute), small(8)
    tensor = 4 * 8192 * b * LLAMA.vocab_size
    picture = memory_at_loss(line, before, 80e9, before.peak.total, "logits")
    bars = {lane.name: lane.items for lane in picture.lanes}
    for name in ("log-probabilities", "their gradient", "gradient of logits"):
        assert bars[name][0].end == tensor
    assert bars["stored by the layers"][0].end == count_activations(LLAMA, b, recompute).layers
    *whole, old = bars["in all"]
    assert whole[-1].end == pytest.approx(line.peak.total, rel=1e-12)
    assert (old.previous, old.end) == (True, pytest.approx(before.peak.total, rel=1e-12))
    assert [limit.value for limit in picture.limits] == [80e9]


def test_what_was_at_the_loss_has_an_outline_only_where_it_changed() -> None:
    before = small(8)
    picture = memory_at_loss(small(8, recompute="full"), before, 80e9, before.peak.total, "logits")
    changed = [lane.name for lane in picture.lanes if any(span.previous for span in lane.spans)]
    assert changed == ["in all", "stored by the layers"]


def test_many_passes_are_two_and_a_gap_with_their_number() -> None:
    assert {"pass 1", "…", "pass 16"} <= {
        *drawn(memory_of_steps(small(1, 2), 8e10, passes=16)).texts
    }
    assert "…" not in drawn(memory_of_steps(small(1, 2), 80e9)).texts
    assert {*MOMENTS} == {*MARKS}


@pytest.mark.parametrize("chip", published.names("accelerators"))
def test_every_chips_name_has_room_next_to_its_line(chip: str) -> None:
    picture = drawn(memory_of_steps(small(), published.accelerator(chip).memory, chip))
    [name] = [x for x in picture.texts if chip.startswith(x.partition(", ")[2] or "no chip")]
    assert picture.text(name).right <= picture.width


def test_figures_and_drawings_have_one_colour_for_each_part() -> None:
    figure = memory_bars({"1B": {"8192 none": {"weights": 7.4e9, "activations": 16e9}}})
    for bars in figure.axes[0].containers:
        assert to_hex(bars.patches[0].get_facecolor()).upper() == COLORS[bars.get_label()].upper()


def test_the_drawing_of_a_layer_adds_up_to_the_formula() -> None:
    """Its rows make 34 and 5as/h, as the count by parts does."""
    assert sum(kept.size for kept in SAVED_TENSORS if not kept.scores) == 34
    assert sum(kept.size for kept in SAVED_TENSORS if kept.scores) == 5
    assert sum(kept.size for kept in SAVED_TENSORS if kept.learns) == 18
    gpt = Transformer.gpt(1, 768, 12, 50257, 1024)
    activations = count_activations(gpt, 1, "none", "unfused", dropout=True)
    by_half = {
        "attention": activations.attention,
        "MLP": activations.mlp,
        "norms": activations.norms,
    }
    for half, counted in by_half.items():
        rows = [kept.size for kept in SAVED_TENSORS if kept.half == half and not kept.scores]
        assert sum(rows) * 768 * 1024 == counted


@pytest.mark.parametrize(
    ("flash", "dropout", "whole"), [(False, True, 114), (True, True, 34), (True, False, 32)]
)
def test_bars_of_a_layer_are_to_scale_and_what_a_switch_takes_is_an_outline(
    flash, dropout, whole
) -> None:
    spans = marks(kept_by_layer(12288, 96, 2048, flash, dropout), Span)
    kept = [x.end for x in spans if not x.previous]
    gone = [x.end for x in spans if x.title == "no longer stored"]
    assert sum(kept) == whole
    sizes = sorted(kept.size * (16 if kept.scores else 1) for kept in SAVED_TENSORS)
    assert sorted(kept + gone) == sizes


def test_an_allocators_blocks_and_gaps_are_to_scale() -> None:
    picture = drawn(segments([[6, 6, -8], [6, -6, 6, -2], [6, 6, -8]], 10))
    blocks = picture.filled(COLORS["memory"])
    assert len(blocks) == picture.texts.count("6 in use") == 6
    gap = max(x.width for x in picture.filled("none") if not x.dashed)
    [request] = picture.titled("the request")
    assert (gap + 3) / (blocks[0].width + 3) == pytest.approx(8 / 6, rel=0.02)
    assert (request.width + 1) / (gap + 3) == pytest.approx(10 / 8, rel=0.02)
    assert "It doesn't fit: the widest gap is 8 MiB." in picture.texts
    assert "It fits: the widest gap is 8 MiB." in drawn(segments([[12, -8]], 8)).texts
