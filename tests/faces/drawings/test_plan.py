"""Chapter 08's drawings: to scale, inside their canvas, the same in words."""

import re
from html import unescape

import pytest

from llmtrain_helpers import plan_run, units
from llmtrain_helpers.drawings.common import COLORS
from llmtrain_helpers.drawings.duration import INKS
from llmtrain_helpers.drawings.plan import STAGES, pipeline_steps, plan_at_a_glance, span_in_words
from llmtrain_helpers.evidence import published
from llmtrain_helpers.plan.schedule import pipeline_schedule
from llmtrain_helpers.results import Interval


def areas(body: str) -> dict[str, float]:
    """The area of the rectangles of each kind, in the rows of the stages."""
    found = {"forward": 0.0, "backward": 0.0, "idle": 0.0}
    pattern = (
        r'<rect x="[\d.]+" y="[\d.]+" width="([\d.]+)" height="([\d.]+)" '
        r'fill="(#\w+)"[^>]*><title>(forward|backward|idle)([^<%]*)</title>'
    )
    for wide, high, fill, word, _ in re.findall(pattern, body):
        kind = next((k for k, ink in INKS.items() if ink == fill), word)
        gap = 1 if float(high) > 31 and kind != "idle" else 0  # between two turns
        found[kind] += (float(wide) + gap) * float(high)
    return found


@pytest.mark.parametrize(("p", "m"), [(4, 8), (2, 3), (8, 16), (8, 96), (16, 64)])
def test_the_idle_share_is_summed_from_what_is_drawn(p: int, m: int) -> None:
    drawing = pipeline_steps(p, m)
    drawn = areas(drawing.body)
    share = drawn["idle"] / sum(drawn.values())
    assert share == pytest.approx((p - 1) / (m + p - 1), rel=0.02)
    assert f"idle {p - 1}/{m + p - 1} = " in drawing.body


def test_shares_of_the_step_add_up_and_follow_the_turns() -> None:
    found = pipeline_schedule(4, 8).shares()
    assert sum(found.values()) == pytest.approx(1)
    assert found["backward"] == pytest.approx(2 * found["forward"])
    longer = pipeline_schedule(4, 8, backward=3).shares()
    assert longer["idle"] == pytest.approx(found["idle"])


def test_a_cut_step_says_how_much_of_it_is_shown_and_that_it_waits_more() -> None:
    cut = pipeline_steps(16, 200)
    assert "8 of 16 stages are shown; all wait alike." in cut.body
    assert "64 of 200 micro-batches are shown: so short a step waits 19.0 %" in cut.body
    assert "idle 15/215 = 6.98 % of the step" in cut.body
    assert "more than the whole" in cut.words
    whole = pipeline_steps(4, 8)
    assert "All stages and all micro-batches are shown." in whole.body
    assert whole.body.count("<title>forward ") - 1 == 4 * 8  # and one in the sum
    assert "nothing is idle" in pipeline_steps(1, 8).body


def test_what_was_idle_before_is_outlined() -> None:
    assert "stroke-dasharray" not in pipeline_steps(4, 8).body
    assert "stroke-dasharray" not in pipeline_steps(4, 8, before=(4, 8)).body
    changed = pipeline_steps(4, 32, before=(4, 8))
    assert "dashed: idle 27.3 %" in changed.body


LLAMA = published.architecture("Llama-3.1-8B", 8192)


LARGE = published.architecture("Llama-3.1-70B", 8192)


def plan_of(model=LLAMA, **changes):
    options = {"recompute": "none", "zero_stage": 3, "price_per_gpu_hour": 2.5}
    chip = published.accelerator("H100")
    return plan_run(model, chip, 64, 10**12, 512, **options).but(**changes)


def widths(body: str) -> dict[str, float]:
    """The width of each part of the memory bar."""
    pattern = r'width="([\d.]+)" height="38" fill="(#\w+)"><title>([\w ]+): '
    return {word: float(wide) for wide, _, word in re.findall(pattern, body)}


def test_the_bar_of_memory_is_to_scale_in_the_courses_colours() -> None:
    plan = plan_of(zero_stage=1)
    drawn = widths(plan_at_a_glance(plan).body)
    parts = {k.replace("_", " "): v for k, v in plan.memory.parts().items() if v}
    parts["logits"] = parts.pop("transient")
    assert set(drawn) == set(parts)
    scale = (720 - 24) / (plan.memory.total * 1.02)
    for word, size in parts.items():
        assert drawn[word] == pytest.approx(scale * size - 1, abs=0.6), word
        assert f'fill="{COLORS[word]}"' in plan_at_a_glance(plan).body


def test_what_is_computed_again_is_no_logits() -> None:
    gpt3, a100 = published.architecture("GPT-3 175B"), published.accelerator("A100")
    split = {"tensor_parallel": 8, "pipeline_parallel": 8}
    piped = plan_run(gpt3, a100, 1024, 3 * 10**11, 1536, recompute="full", **split)
    assert "recomputed" in widths(plan_at_a_glance(piped).body)
    assert "logits" in widths(plan_at_a_glance(plan_of(recompute="full")).body)


@pytest.mark.parametrize(
    ("days", "said"), [(30, "✓ in time"), (25, "○ perhaps"), (20, "✗ too late")]
)
def test_the_interval_is_held_against_the_days_there_are(days: int, said: str) -> None:
    drawing = plan_at_a_glance(plan_of(), days)
    assert f"{said}: you have {days} days" in drawing.body
    assert f"there are {days} days" in drawing.words
    assert "you have" not in plan_at_a_glance(plan_of()).body


def test_fitting_is_told_with_its_bytes() -> None:
    assert "✓ fits, 21.2 GB free" in plan_at_a_glance(plan_of()).body
    assert "○ tight: " in plan_at_a_glance(plan_of(zero_stage=2)).body
    large = plan_at_a_glance(plan_of(LARGE))
    assert "✗ 168 GB too much" in large.body
    assert "168 GB too much." in large.words


def test_a_known_rate_has_its_stops_on_top() -> None:
    drawing = plan_at_a_glance(plan_of(flops_per_gpu=420e12), 30)
    assert "24.9 days of computing; with stops 27 to 37 days" in drawing.body
    assert "420 TFLOP/s each" in drawing.body
    assert "GPU-hours" in drawing.body
    assert "of computing; with stops" in drawing.body


def test_a_thin_line_goes_on_to_where_a_first_run_may_end() -> None:
    plan = plan_of()
    drawn = plan_at_a_glance(plan, 30)
    [end] = re.findall(r'<line x1="([\d.]+)" y1="162"', drawn.body)
    [month] = re.findall(r'<line x1="([\d.]+)" y1="148"', drawn.body)
    days = plan.rough.greatest / units.DAY
    assert (float(end) - 24) / (float(month) - 24) == pytest.approx(days / 30, 0.01)
    assert plan.first_run.greatest == days
    assert "A first run: up to 35 days." in drawn.words
    assert ">○ a first run<" in drawn.body
    assert ">✓ a first run<" in plan_at_a_glance(plan, 40).body
    assert ">a first run<" in plan_at_a_glance(plan).body
    known = plan_of(flops_per_gpu=420e12)
    assert "a first run" not in plan_at_a_glance(known, 30).body
    assert known.first_run.greatest == known.days_with_stops.greatest
    shared = plan_of(tensor_parallel=8)  # slower than any run of chapter 03
    assert "a first run" not in plan_at_a_glance(shared, 30).body


def test_the_plan_before_is_outlined() -> None:
    assert "stroke-dasharray" not in plan_at_a_glance(plan_of(), 30).body
    moved = plan_at_a_glance(plan_of(LARGE), 30, before=plan_of())
    assert moved.body.count("stroke-dasharray") == 2


def test_estimates_have_two_digits_and_one_unit() -> None:
    assert span_in_words(Interval(21.17, 24.6, 28.6)) == "21 to 29 days"
    assert span_in_words(Interval(0.8, 1.0, 2.5)) == "19 hours to 2.5 days"
    assert span_in_words(Interval(5, 5, 5)) == units.duration(5 * units.DAY, 2) == "5.0 days"
    assert units.about(37808, lambda x: f"{x / 1e3:.1f} thousand") == "38 thousand"


PLANS = [
    plan_of(),
    plan_of(LARGE),
    plan_of(LARGE, tensor_parallel=8, zero_stage=0, recompute="full"),
    plan_of(recipe="bf16_both_grads", zero_stage=0),
    plan_of(flops_per_gpu=420e12),
    plan_of(price_per_gpu_hour=None),
    plan_of(tokens=10**16),
    plan_of(tokens=10**8),
]


@pytest.mark.parametrize("plan", PLANS, ids=repr)
@pytest.mark.parametrize("days", [None, 1, 30, 5000])
def test_nothing_leaves_the_canvas(plan, days) -> None:
    for drawing in (plan_at_a_glance(plan, days), plan_at_a_glance(plan, days, before=PLANS[1])):
        inside(drawing)


@pytest.mark.parametrize("p", [1, 2, 8, 9, 64])
@pytest.mark.parametrize("m", [1, 7, 96, 4096])
def test_no_schedule_leaves_its_canvas(p: int, m: int) -> None:
    drawing = pipeline_steps(p, m, before=(4, 8))
    inside(drawing)
    assert drawing.body.count(">stage ") == min(p, STAGES)
    assert len(drawing.body) < 60_000


def inside(drawing) -> None:
    rects = r'<rect x="([\d.-]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"'
    for place in re.findall(rects, drawing.body):
        x, y, wide, high = map(float, place)
        assert 0 <= x <= x + wide <= drawing.width
        assert 0 <= y <= y + high <= drawing.height
    texts = r'<text x="([\d.]+)" y="([\d.]+)" font-size="([\d.]+)" '
    texts += r'text-anchor="(\w+)"[^>]*>([^<]*)<'
    for x, y, size, anchor, told in re.findall(texts, drawing.body):
        assert float(size) >= 14
        wide = 0.56 * float(size) * len(unescape(told))
        left = float(x) - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        assert left >= -8, told
        assert left + wide <= drawing.width + 8, told
        assert float(y) <= drawing.height
    assert drawing.words in unescape(drawing.saved())
