"""Chapter 06's drawings: to scale, inside their canvas, the same in words."""

import re
from html import unescape
from itertools import pairwise

import pytest
from matplotlib.colors import to_hex

from llmtrain_helpers import Transformer, count_activations, step_timeline, units
from llmtrain_helpers.activations import MARKS
from llmtrain_helpers.drawings.activations import (
    KEPT,
    MOMENTS,
    kept_by_layer,
    memory_so_far,
    recomputation,
    segments,
    step_memory,
    there,
)
from llmtrain_helpers.drawings.common import COLORS
from llmtrain_helpers.evidence import published
from llmtrain_helpers.figures.activations import timeline

GPT2 = Transformer.gpt(12, 768, 12, 50257, 1024)


@pytest.mark.parametrize("layers", [1, 4, 6])
def test_recomputation_leaves_inputs_and_brings_back_one_layer(layers: int) -> None:
    moments = range(1, 2 * layers + 1)
    kept = [there(layers, time, again=False) for time in moments]
    assert [len(kinds) for kinds in kept] == [*range(1, layers + 1), *range(layers, 0, -1)]
    left = [there(layers, time, again=True) for time in moments]
    assert [kinds.count("again") for kinds in left] == [0] * layers + [1] * layers
    drawn = recomputation(layers, 2 * layers)
    shown = [re.findall(rf"<title>{kind}<", drawn.body) for kind in ("kept", "again")]
    assert len(shown[0]) == layers * (layers + 1) + 1  # and one in the key
    assert len(shown[1]) == layers + 1
    begun = recomputation(layers, 1)
    assert begun.body.count("<title>kept<") == 2
    assert f"moment 1 of {2 * layers}. If all is kept, 1 whole" in begun.words


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("mark", ["start", "forward", "loss", "backward", "update"])
def test_memory_is_drawn_up_to_the_moment(step: int, mark: str) -> None:
    shown = small()
    [now] = [x for x in shown.moments if (x.step, x.mark) == (step, mark)]
    drawn = memory_so_far(shown, now, 80e9, "an A100", 125e9)
    corners = [c for polygons in bands(drawn.body).values() for p in polygons for c in p]
    right = max(x for x, _ in corners)
    heights = [y for x, y in corners if x == right]
    assert (372 - min(heights)) / 310 * 125e9 == pytest.approx(now.total, rel=0.01)
    told = f"{MOMENTS[mark]}: {units.gigabytes(now.total)}"
    assert told in drawn.body
    assert "a smaller one" not in drawn.body
    assert ">a smaller one<" in memory_so_far(shown, now, 8e10, "x", 125e9, 4e10).body


def bands(body: str) -> dict[str, list[list[tuple[float, float]]]]:
    """The corners of each polygon, by its word."""
    found: dict[str, list[list[tuple[float, float]]]] = {}
    pattern = r'<polygon points="([^"]+)" fill="(#\w+)"[^>]*><title>([\w ]+)</title>'
    for points, color, word in re.findall(pattern, body):
        part = {"loss gradients": "logits"}.get(word, word)
        assert color == COLORS[part]
        corners = [tuple(map(float, point.split(","))) for point in points.split()]
        found.setdefault(word, []).append(corners)
    return found


def small(micro: int = 1, passes: int = 1, recompute: str = "none"):
    model = published.architecture("Llama-3.2-1B", 8192)
    return step_timeline(model, micro, "bf16_fp32_grads", recompute, 2, passes)


def gigabytes_a_pixel(body: str) -> float:
    """From the ticks of the axis."""
    ticks = re.findall(r'y="([\d.]+)"[^>]*text-anchor="end"[^>]*>([\d.]+) GB<', body)
    (low, less), (high, more) = ticks[0], ticks[-1]
    return (float(more) - float(less)) / (float(low) - float(high))


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("memory", [24e9, 80e9, 180e9])
def test_bands_are_to_one_scale_and_as_high_as_the_peak(passes, memory) -> None:
    line = small(2, passes)
    body = step_memory(line, memory).body
    found = bands(body)
    assert [*found] == [
        "weights",
        "main weights",
        "optimizer",
        "gradients",
        "activations",
        "loss gradients",
    ]
    scale = gigabytes_a_pixel(body)
    tops = [min(y for _, y in corners) for corners in found["loss gradients"]]
    base = max(y for _, y in found["weights"][0])
    assert (base - min(tops)) * scale == pytest.approx(line.peak.total / 1e9, rel=0.01)
    assert (max(tops) - min(tops)) * scale == pytest.approx(line.peak.logits / 2e9, rel=0.02)
    thick = re.search(r'y1="([\d.]+)"[^>]*stroke-width="3"', body)
    assert (base - float(thick[1])) * scale == pytest.approx(memory / 1e9, rel=0.01)


def test_bands_stand_on_each_other_and_fill_the_steps() -> None:
    found = bands(step_memory(small(1, 2), 80e9).body)
    stack = [corners for polygons in found.values() for corners in polygons]
    for below, above in pairwise(stack):
        half = len(above) // 2
        assert above[half:][::-1] == below[:half]
        assert [x for x, _ in above[:half]] == sorted(x for x, _ in above[:half])


def test_the_two_tensors_are_named_with_their_size() -> None:
    shown = step_memory(small(), 80e9)
    assert "two more tensors, 4.20 GB each" in shown.body
    assert "gradients of the log-probabilities and of the logits" in shown.body
    for named in ("gradient of the log-probabilities", "gradient of the logits"):
        assert named in shown.words
    assert units.gigabytes(4 * 8192 * 128256) == "4.20 GB"


@pytest.mark.parametrize(
    ("size", "recompute", "passes", "mark"),
    [(1, "none", 1, "loss"), (1, "none", 2, "loss"), (1, "full", 1, "update")],
)
def test_the_callout_stands_where_the_peak_is(size, recompute, passes, mark) -> None:
    model = published.architecture("Llama-3.1-8B", 2048)
    line = step_timeline(model, size, "pure_bf16", recompute, 2, passes)
    if mark == "loss":
        line = small(size, passes, recompute)
    assert line.peak.mark == mark
    shown = step_memory(line, 80e9).body
    assert ("two more tensors" in shown) == (mark == "loss")
    assert ("the peak: at the update" in shown) == (mark == "update")
    tops = [min(y for _, y in c) for polygons in bands(shown).values() for c in polygons]
    [written] = re.findall(r'y="([\d.]+)"[^>]*>(?:gradients of the log|all gradients)', shown)
    assert 0 < min(tops) - float(written) < 20


def test_the_callout_keeps_off_the_line_of_the_memory() -> None:
    line = small(2)  # its peak is close below the line
    shown = step_memory(line, 70e9).body
    [written] = re.findall(r'y="([\d.]+)"[^>]*>gradients of the log', shown)
    thick = re.search(r'y1="([\d.]+)"[^>]*stroke-width="3"', shown)
    assert float(written) < float(thick[1]) - 5
    assert "2 4" in shown  # a line leads down to the peak


def test_what_is_over_the_line_is_hatched_and_nothing_else() -> None:
    def slanted(memory: float) -> list[list[float]]:
        body = step_memory(small(2), memory).body
        path = re.search(r'<path d="([^"]+)"', body)
        pairs = re.findall(r"[ML]([\d.]+),([\d.]+)", path[1]) if path else []
        return [[float(y) for _, y in pairs], body]

    assert slanted(80e9)[0] == []
    heights, body = slanted(40e9)
    floor = float(re.search(r'y1="([\d.]+)"[^>]*stroke-width="3"', body)[1])
    assert heights
    assert max(heights) <= floor + 0.1
    assert "26.8 GB over the line" in step_memory(small(2), 40e9).words
    assert "under the line" in step_memory(small(), 80e9).words


def test_what_was_before_is_a_dashed_outline_to_the_same_scale() -> None:
    now, old = small(), small(4)
    assert "dashed" not in step_memory(now, 80e9).body
    assert "dashed" not in step_memory(now, 80e9, before=(now, 80e9)).body
    shown = step_memory(now, 80e9, before=(old, 40e9)).body
    assert "dashed: the start" in shown
    corners = re.search(r'<polyline points="([^"]+)"', shown)[1].split()
    heights = [float(corner.split(",")[1]) for corner in corners]
    scale = gigabytes_a_pixel(shown)
    assert (372 - min(heights)) * scale == pytest.approx(old.peak.total / 1e9, rel=0.01)
    assert shown.count("stroke-dasharray") == 2


def test_beside_other_passes_only_the_old_peak_is_dashed() -> None:
    """Moments of one pass say nothing about those of two."""
    old = small()
    shown = step_memory(small(1, 2), 80e9, before=(old, 80e9)).body
    corners = re.search(r'<polyline points="([^"]+)"', shown)[1].split()
    heights = {float(corner.split(",")[1]) for corner in corners}
    assert len(corners) == 2
    assert len(heights) == 1
    high = (372 - heights.pop()) * gigabytes_a_pixel(shown)
    assert high == pytest.approx(old.peak.total / 1e9, rel=0.01)


def test_the_head_comes_at_the_end_of_forward() -> None:
    """With all layers computed again, nearly all that forward keeps is the head's."""
    model = published.architecture("Llama-3.2-1B", 8192)
    line = step_timeline(model, 1, "bf16_fp32_grads", "full")
    assert line.head == count_activations(model, 1, "full").head
    shown = step_memory(line, 80e9).body
    band = next(x for x in re.findall(r"<polygon.*?</polygon>", shown) if "#96407A" in x)
    corners = re.search('points="([^"]+)"', band)[1].split()
    points = [tuple(map(float, corner.split(","))) for corner in corners]
    thick = [points[-1 - i][1] - points[i][1] for i in (1, 2, 3)]
    scale = gigabytes_a_pixel(shown)
    assert [x * scale for x in thick] == pytest.approx([0, 0.54, 4.81], abs=0.06)


def test_many_passes_are_two_and_a_gap_with_their_number() -> None:
    shown = step_memory(small(1, 2), 80e9, passes=16)
    assert ">pass 1</text>" in shown.body
    assert ">pass 16</text>" in shown.body
    assert ">…</text>" in shown.body
    assert "of 16 passes each" in shown.words
    assert ">…</text>" not in step_memory(small(1, 2), 80e9).body
    assert set(MOMENTS) == set(MARKS)


@pytest.mark.parametrize("model", ["gpt2", "Llama-3.2-1B", "Llama-3.1-405B"])
@pytest.mark.parametrize("micro", [1, 64, 10**6])
@pytest.mark.parametrize("passes", [1, 2])
def test_nothing_leaves_the_canvas_and_words_are_large(model, micro, passes) -> None:
    shape = published.architecture(model, 1024)
    line = step_timeline(shape, micro, "bf16_both_grads", "none", 2, passes)
    old = step_timeline(shape, 1, "pure_bf16", "full")
    for drawing in (
        step_memory(line, 80e9, "A100 80GB SXM", 5000, (old, 16e9)),
        kept_by_layer(shape.hidden_size, shape.num_heads, 1024 * passes**7),
        segments([[6, 6, -8]], 10),
    ):
        for x, y in re.findall(r"([\d.]+),([\d.]+)", drawing.body):
            assert 0 <= float(x) <= drawing.width
            assert 0 <= float(y) <= drawing.height
        assert "-0.0" not in drawing.body
        sizes = re.findall(r'font-size="([\d.]+)"', drawing.body)
        assert min(map(float, sizes)) >= 14
        assert drawing.words in unescape(drawing.saved())
        assert drawing.words in unescape(drawing.live())
        for x, size, anchor, words in re.findall(
            r'<text x="([\d.]+)"[^>]*font-size="([\d.]+)" text-anchor="(\w+)"[^>]*>'
            r"([^<]*)<",
            drawing.body,
        ):
            wide = 0.56 * float(size) * len(unescape(words))
            right = {"start": wide, "middle": wide / 2, "end": 0}[anchor]
            assert float(x) + right <= drawing.width + 20, words


@pytest.mark.parametrize("chip", published.names("accelerators"))
def test_every_chips_name_finds_room_beside_its_line(chip: str) -> None:
    body = step_memory(small(), published.accelerator(chip).memory, chip).body
    named = re.findall(r'<text x="624"[^>]*font-size="14"[^>]*>([^<]+)<', body)
    assert len(named) == 1
    assert chip.startswith(named[0])
    assert 0.56 * 14 * len(named[0]) <= 744 - 624


def test_figures_and_drawings_have_one_colour_for_each_part() -> None:
    figure = timeline(step_timeline(GPT2, 8, "bf16", "none"))
    for bars in figure.axes[0].containers:
        assert to_hex(bars.patches[0].get_facecolor()).upper() == COLORS[bars.get_label()].upper()


def test_the_drawing_of_a_layer_adds_up_to_the_formula() -> None:
    """Its rows make 34 and 5as/h, as the count by parts does."""
    assert sum(kept.size for kept in KEPT if not kept.scores) == 34
    assert sum(kept.size for kept in KEPT if kept.scores) == 5
    assert sum(kept.size for kept in KEPT if kept.learns) == 18
    gpt = Transformer.gpt(1, 768, 12, 50257, 1024)
    held = count_activations(gpt, 1, "none", "unfused", dropout=True)
    by_half = {"attention": held.attention, "MLP": held.mlp, "norms": held.norms}
    for half, counted in by_half.items():
        rows = [kept.size for kept in KEPT if kept.half == half and not kept.scores]
        assert sum(rows) * 768 * 1024 == counted
    assert ">114 bytes" in kept_by_layer(12288, 96, 2048).body
    assert "as/h = 16: 114." not in kept_by_layer(4096, 32, 2048 * 7).words


@pytest.mark.parametrize(
    ("flash", "dropout", "gone", "whole"),
    [(True, True, 3, 34), (False, False, 4, 64), (True, False, 5, 32)],
)
def test_what_a_switch_takes_away_is_an_outline(flash, dropout, gone, whole) -> None:
    drawn = kept_by_layer(12288, 96, 2048, flash, dropout)
    assert drawn.body.count("<title>no longer kept<") == gone
    assert f"{whole} bytes for each hidden value, of 114" in drawn.body


def test_bars_of_a_layer_are_to_scale() -> None:
    body = kept_by_layer(12288, 96, 2048).body
    bars = re.findall(rf'width="([\d.]+)" height="18" fill="{COLORS["activations"]}"', body)
    wide = [float(width) for width in bars]
    sizes = [kept.size * (16 if kept.scores else 1) for kept in KEPT]
    assert [w / wide[0] for w in wide] == pytest.approx(
        [size / sizes[0] for size in sizes], rel=0.02
    )


def test_an_allocators_gaps_are_told() -> None:
    shown = segments([[6, 6, -8], [6, -6, 6, -2], [6, 6, -8]], 10)
    assert "60 MiB reserved: 36 MiB in use, 24 MiB free" in shown.words
    assert "No: the widest gap has 8 MiB." in shown.body
    assert "Yes: the widest gap has 8 MiB." in segments([[12, -8]], 8).body
    assert "8 free" in shown.body
    assert shown.body.count("6 in use") == 6
