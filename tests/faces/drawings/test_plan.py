"""Chapter 08's drawings: to scale, inside their canvas, the same in words."""

import re
from html import unescape

import pytest

from llmtrain_helpers import plan_run, units
from llmtrain_helpers.drawings.common import COLORS
from llmtrain_helpers.drawings.plan import (
    BACKWARD,
    FORWARD,
    MICRO_BATCHES,
    NARROW,
    ROOM,
    STAGES,
    WIDE,
    answers,
    pipeline,
    price_of_fitting,
    promise,
    span_in_words,
)
from llmtrain_helpers.evidence import published
from llmtrain_helpers.evidence.utilizations import others_days
from llmtrain_helpers.plan.schedule import pipeline_schedule
from llmtrain_helpers.results import Interval

LLAMA = published.architecture("Llama-3.1-8B", 8192)


LARGE = published.architecture("Llama-3.1-70B", 8192)


def plan_of(model=LLAMA, **changes):
    options = {"recompute": "none", "zero_stage": 3, "price_per_gpu_hour": 2.5}
    chip = published.accelerator("H100")
    return plan_run(model, chip, 64, 10**12, 512, **options).but(**changes)


# --- a pipeline


def areas(p: int, m: int, v: int) -> dict[str, float]:
    """What is drawn in the rows of the stages, in widths of a whole row, by what it is."""
    rows = pipeline(p, m, v).body.partition("on average")[0]
    found = {"forward": 0.0, "backward": 0.0, "idle": 0.0}
    high = min(48, 216 / p) - 6
    for path, fill in re.findall(r'<path d="([^"]*)" fill="(#\w+)"', rows):
        word = {FORWARD: "forward", BACKWARD: "backward"}[fill]
        boxes = re.findall(r"h([\d.]+)v([\d.]+)H", path)
        found[word] += sum((float(wide) + 0.8) * float(tall) / high for wide, tall in boxes)
    idle = r'width="([\d.]+)" height="[\d.]+" fill="#\w+" opacity="0.18"><title>idle<'
    found["idle"] = sum(map(float, re.findall(idle, rows)))
    return found


SHAPES = [
    (8, 8, 4),
    (4, 8, 1),
    (2, 3, 1),
    (4, 1, 1),
    (4, 12, 1),
    (4, 4, 2),
    (4, 8, 4),
    (3, 12, 2),
    (3, 6, 3),
]


@pytest.mark.parametrize(("p", "m", "v"), SHAPES)
def test_the_idle_share_is_summed_from_what_is_drawn(p: int, m: int, v: int) -> None:
    drawn = areas(p, m, v)
    share = (p - 1) / (v * m + p - 1)
    assert drawn["idle"] / sum(drawn.values()) == pytest.approx(share, rel=0.02)
    assert drawn["backward"] == pytest.approx(2 * drawn["forward"], rel=0.02)
    assert f"idle {units.share(share)} of the step" in pipeline(p, m, v).body


def test_every_turn_of_every_piece_is_a_box() -> None:
    rows = pipeline(4, 12, 3).body.partition("on average")[0]
    paths = re.findall(r'<path d="([^"]*)" fill="#\w+" opacity="([\d.]+)"', rows)
    assert sum(path.count("z") for path, _ in paths) == 2 * 4 * 12 * 3
    assert len({shade for _, shade in paths}) == 3  # one for each piece


def test_one_scale_holds_for_all_pipelines() -> None:
    """A micro-batch's work is as wide in each; interleaving makes its waiting shorter."""
    few, many, pieces = (areas(*shape) for shape in ((4, 4, 1), (4, 8, 1), (4, 8, 2)))
    assert many["forward"] == pytest.approx(2 * few["forward"], rel=0.01)
    assert many["idle"] == pytest.approx(few["idle"], rel=0.01)
    assert pieces["forward"] == pytest.approx(many["forward"], rel=0.01)
    assert pieces["idle"] == pytest.approx(many["idle"] / 2, rel=0.02)


def test_the_column_says_what_each_stage_keeps() -> None:
    body = pipeline(4, 8).body
    assert re.findall(r">stage (\d)</text><text[^>]*>([\d.]+)<", body) == [
        ("1", "4"),
        ("2", "3"),
        ("3", "2"),
        ("4", "1"),
    ]
    assert ">5.5<" in pipeline(4, 8, 2).body
    assert ">4.33<" in pipeline(4, 12, 3).body  # no more digits than there is room for


def test_what_was_idle_before_is_outlined() -> None:
    assert "stroke-dasharray" not in pipeline(4, 8).body
    assert "stroke-dasharray" not in pipeline(4, 8, before=pipeline_schedule(4, 8)).body
    assert pipeline(4, 12, before=pipeline_schedule(4, 8)).body.count("stroke-dasharray") == 1


@pytest.mark.parametrize("p", range(1, STAGES + 1))
@pytest.mark.parametrize("m", range(1, MICRO_BATCHES + 1))
@pytest.mark.parametrize("v", [1, 2, 3, 4])
def test_no_schedule_leaves_its_canvas(p: int, m: int, v: int) -> None:
    if p + m <= ROOM and (v == 1 or m % p == 0):
        drawing = pipeline(p, m, v, before=pipeline_schedule(4, 12))
        inside(drawing)
        assert drawing.body.count(">stage ") == p
        assert len(drawing.body) < 40_000


# --- two answers


def widths(body: str) -> dict[str, float]:
    """The width of each part of the memory bar."""
    pattern = r'width="([\d.]+)" height="30" fill="(#\w+)"><title>([\w ]+): '
    return {word: float(wide) for wide, _, word in re.findall(pattern, body)}


def test_the_bar_of_memory_is_to_scale_in_the_courses_colours() -> None:
    plan = plan_of(zero_stage=1)
    drawn = widths(answers(plan, 30).body)
    parts = {k.replace("_", " "): v for k, v in plan.memory.parts().items() if v}
    parts["logits"] = parts.pop("transient")
    assert set(drawn) == set(parts)
    scale = (WIDE.width - 32) / (1.6 * 80e9)
    for word, size in parts.items():
        assert drawn[word] == pytest.approx(scale * size, abs=0.1), word
        assert f'fill="{COLORS[word]}"' in answers(plan, 30).body


def test_what_is_computed_again_is_no_logits() -> None:
    gpt3, a100 = published.architecture("GPT-3 175B"), published.accelerator("A100")
    split = {"tensor_parallel": 8, "pipeline_parallel": 8}
    piped = plan_run(gpt3, a100, 1024, 3 * 10**11, 1536, recompute="full", **split)
    assert "recomputed" in widths(answers(piped, 30).body)
    assert "logits" in widths(answers(plan_of(recompute="full"), 30).body)


@pytest.mark.parametrize(
    ("days", "said"),
    [(36, "✓ 35 days: in time"), (30, "○ 35 days: perhaps too late"), (20, "✗ 35 days: too late")],
)
def test_the_promise_is_held_against_the_days_there_are(days: int, said: str) -> None:
    drawing = answers(plan_of(), days)
    assert f">{said}<" in drawing.body
    assert f">you have {days} days<" in drawing.body
    assert f"promise 35 days. You have {days} days." in drawing.words


def test_what_is_far_too_late_says_how_many_times() -> None:
    drawn = answers(plan_of(LARGE), 30).body
    assert re.search(r">✗ (\d+) days: 10 times your 30<", drawn)
    assert ">→<" in drawn
    assert ">most runs<" not in drawn  # the scale ends before them
    assert ">most runs<" in answers(plan_of(), 30).body


def test_a_plan_that_ends_on_the_last_day_as_people_write_it_is_in_time() -> None:
    latest = plan_of().first_run.greatest
    assert plan_of().in_time(latest / 1.0015)
    assert not plan_of().in_time(latest / 1.002)


def test_fitting_is_told_with_its_bytes() -> None:
    assert ">✓ fits, 21.2 GB free<" in answers(plan_of(), 30).body
    assert ">○ tight, 5.42 GB free<" in answers(plan_of(zero_stage=2), 30).body
    large = answers(plan_of(LARGE), 30)
    assert ">✗ 168 GB too much<" in large.body
    assert "168 GB too much." in large.words


def test_the_reserve_ends_at_the_chips_line() -> None:
    plan = plan_of()
    [(x, wide)] = re.findall(
        r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" [^>]*><title>the reserve<',
        answers(plan, 30).body,
    )
    edge = 16 + (WIDE.width - 32) / 1.6
    assert float(x) + float(wide) == pytest.approx(edge, abs=0.2)
    assert float(wide) / (edge - 16) == pytest.approx(plan.reserve / 80e9, abs=0.001)


def test_the_bar_of_days_ends_with_the_promise() -> None:
    plan = plan_of()
    drawn = re.findall(
        r'<rect x="([\d.]+)" y="50" width="([\d.]+)" height="30" fill="#0067A5" '
        r'opacity="[\d.]+"><title>([\w ]+): to',
        answers(plan, 40).body,
    )
    scale = (WIDE.width - 32) / (1.6 * 40)
    ends = {word: (float(x) + float(wide) - 16) / scale for x, wide, word in drawn}
    assert ends == pytest.approx(
        {
            "the fastest runs": plan.days.least,
            "most runs": plan.days.greatest,
            "a first run": plan.first_run.greatest,
        },
        abs=0.02,
    )
    assert plan.first_run.greatest == plan.rough.greatest / units.DAY


def test_a_measured_step_takes_the_place_of_others_and_has_its_stops_on_top() -> None:
    drawing = answers(plan_of().calibrated(7.2), 30)
    assert "runs" not in drawing.body
    assert ">computing<" in drawing.body
    assert "20 days of computing, with stops 21 to 30 days; promise 30 days." in drawing.words


def test_the_plan_before_is_outlined() -> None:
    assert "stroke-dasharray" not in answers(plan_of(), 30).body
    moved = answers(plan_of(LARGE), 30, before=plan_of())
    assert moved.body.count("stroke-dasharray") == 2


def test_estimates_have_two_digits_and_one_unit() -> None:
    assert span_in_words(Interval(21.17, 24.6, 28.6)) == "21 to 29 days"
    assert span_in_words(Interval(0.8, 1.0, 2.5)) == "19 hours to 2.5 days"
    assert span_in_words(Interval(5, 5, 5)) == units.duration(5 * units.DAY, 2) == "5.0 days"


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
@pytest.mark.parametrize("days", [0.5, 1, 30, 5000])
@pytest.mark.parametrize("layout", [WIDE, NARROW], ids=["wide", "narrow"])
def test_nothing_leaves_the_canvas(plan, days, layout) -> None:
    for before in (None, PLANS[1]):
        inside(answers(plan, days, before, layout))
    inside(price_of_fitting(plan, PLANS[1], layout))


# --- a promise


def test_each_published_run_is_a_dot_at_its_days() -> None:
    plan = plan_of()
    others = others_days(plan)
    drawing = promise(plan, plan, others, 30)
    dots = re.findall(r'<circle cx="([\d.]+)"[^>]*><title>([^:]+): ', drawing.body)
    assert [name for _, name in dots] == [run.name for run in others]
    for (x, _), run in zip(dots[:-1], others[:-1], strict=True):
        assert (float(x) - 176) / 448 * 75 == pytest.approx(run.days, abs=0.02)
    assert float(dots[-1][0]) == 624  # beyond the scale
    inside(drawing)


def test_a_measured_step_makes_what_others_took_fade() -> None:
    plan = plan_of()
    others = others_days(plan)
    measured = promise(plan.calibrated(7.5), plan, others, 30)
    assert '"0.25"' in measured.body
    assert ">yours: 7.50 s<" in measured.body
    assert ">31 days<" in measured.body
    assert "your step" not in promise(plan, plan, others, 30).body
    [step] = re.findall(r'<rect x="([\d.]+)"[^>]*><title>your step<', measured.body)
    days = 7.5 * plan.iterations / units.DAY
    assert (float(step) + 3 - 176) / 448 * 75 == pytest.approx(days, abs=0.02)
    inside(measured)


# --- the price of fitting


def test_the_price_is_held_against_the_start() -> None:
    start = plan_of(LARGE, tensor_parallel=8, zero_stage=1, micro_batch_size=2)
    dearer = start.but(zero_stage=2, recompute="alternate")
    drawing = price_of_fitting(dearer, start)
    assert ">+6.07 %<" in drawing.body
    assert ">509 GB sent to other replicas in a step<" in drawing.body
    [more] = re.findall(r'width="([\d.]+)" height="30" fill="#\w+"><title>more<', drawing.body)
    assert float(more) / ((WIDE.width - 32) / 1.6) == pytest.approx(0.0607, abs=0.001)
    assert ">as at the start<" in price_of_fitting(start, start).body


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
