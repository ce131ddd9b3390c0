"""Chapter 09's pictures: as long as the days, the bytes and the turns of a plan."""

import pytest

from llmtrain_course.kit.chart import Area, Band, Path
from llmtrain_course.kit.drawing import COLORS, GREY
from llmtrain_course.kit.lanes import Limit, Span
from llmtrain_course.kit.layout import PAGE, PHONE, Picture
from llmtrain_course.parallelism.formulas import pipeline_schedule
from llmtrain_course.parallelism.pipeline import BACKWARD, FORWARD, pipeline_step
from llmtrain_course.plan.formulas import map_plans
from llmtrain_course.plan.pictures import Release, answers, decision_map, format_span, promise
from llmtrain_helpers import plan_run, published, units
from llmtrain_helpers.results import Interval
from research.utilizations import others_days
from tests.faces.marks import marks, title_of
from tests.faces.svg import Box, Picture as Drawn, drawn

LLAMA = published.architecture("Llama-3.1-8B", 8192)


LARGE = published.architecture("Llama-3.1-70B", 8192)


def plan_of(model=LLAMA, **changes):
    options = {"recompute": "none", "zero_stage": 3, "price_per_gpu_hour": 2.5}
    chip = published.accelerator("H100")
    return plan_run(model, chip, 64, 10**12, 512, **options).replace(**changes)


# --- a pipeline


def rows_of(p: int, m: int, v: int) -> tuple[Drawn, dict[str, list[Box]]]:
    """A pipeline's picture, and what's drawn in the rows of its stages, by what it is."""
    picture = drawn(pipeline_step(pipeline_schedule(p, m, interleave=v)))
    mean = picture.text("on average").top
    rows = [x for x in picture.of_kind("rect") if x.bottom < mean]
    kinds = {"forward": FORWARD, "backward": BACKWARD, "idle": GREY}
    return picture, {word: [x for x in rows if x.fill == fill] for word, fill in kinds.items()}


SHAPES = [(8, 8, 4), (4, 8, 1), (2, 3, 1), (4, 1, 1), (4, 12, 1), (4, 12, 3), (4, 8, 4), (3, 12, 2)]


@pytest.mark.parametrize(("p", "m", "v"), SHAPES)
def test_a_pipelines_turns_and_its_waiting_are_as_long_as_their_time(p, m, v) -> None:
    """A forward turn of a whole stage is as wide in every picture."""
    schedule = pipeline_schedule(p, m, interleave=v)
    picture, rows = rows_of(p, m, v)
    begin, unit = picture.text("time").left - 6, UNIT / v
    for word, backward in (("forward", False), ("backward", True)):
        turns = [turn for turn in schedule.turns if turn.backward == backward]
        for turn, box in zip(turns, rows[word], strict=True):  # stage by stage
            assert box.left == pytest.approx(begin + unit * turn.start, abs=0.2)
            assert box.width == pytest.approx(unit * (turn.end - turn.start - 0.07), abs=0.2)
    idle = sum(x.width for x in rows["idle"])
    assert idle == pytest.approx(unit * p * schedule.end * (p - 1) / (v * m + p - 1), rel=0.004)
    assert v == 1 or len({x.opacity for x in rows["forward"]}) == v


UNIT = drawn(pipeline_step(pipeline_schedule(1, 12))).width_of("forward, of all stages") / 12
"""Pixels of a forward turn of a whole stage."""


@pytest.mark.parametrize(("p", "m", "v"), SHAPES)
def test_the_mean_of_the_stages_is_what_works_and_what_waits(p, m, v) -> None:
    picture, _ = rows_of(p, m, v)
    forward, backward = (picture.width_of(f"{x}, of all stages") for x in ("forward", "backward"))
    assert (forward, backward) == pytest.approx((UNIT * m, 2 * UNIT * m), abs=0.2)
    [idle] = [x for x in picture.titled("idle") if x.top > picture.text("on average").top]
    share = (p - 1) / (v * m + p - 1)
    assert idle.width / (forward + backward + idle.width) == pytest.approx(share, rel=0.002)
    assert f"idle {units.share(share)} of the step" in picture.texts
    before = drawn(pipeline_step(pipeline_schedule(3, 4), pipeline_schedule(p, m, interleave=v)))
    [outline] = before.dashed
    assert (outline.width, outline.left - before.titled("forward,")[0].left) == pytest.approx(
        (idle.width, forward + backward), abs=0.3
    )


def test_the_column_says_what_each_stage_keeps() -> None:
    def kept(v: int) -> list[str]:
        picture, _ = rows_of(4, 12, v)
        column = picture.text("keeps").right
        return [x.words for x in picture.of_kind("text") if abs(x.right - column) < 1][1:]

    assert kept(1) == ["4", "3", "2", "1"]
    assert kept(3)[1] == "4.33"  # no more digits than there is room for


# --- two answers


def ends(picture: Picture) -> dict[str, float]:
    """Where each part of the two bars ends: of days, and of memory in GB."""
    return {title_of(x).partition(":")[0]: x.end for x in marks(picture, Span)}


def test_the_bar_of_memory_is_to_scale_in_the_courses_colours() -> None:
    plan = plan_of(zero_stage=1)
    picture = answers(plan, 30)
    parts = {k.replace("_", " "): v for k, v in plan.memory.parts().items() if v}
    parts["logits"] = parts.pop("transient")  # nothing is gathered with ZeRO 1
    for word, size in parts.items():
        [bar] = marks(picture, Span, f"{word}: ")
        assert bar.end - bar.start == pytest.approx(size / 1e9), word
        assert bar.color == COLORS[word]


def test_what_passes_is_named_by_its_moment() -> None:
    gpt3, a100 = published.architecture("GPT-3 175B"), published.accelerator("A100")
    split = {"tensor_parallel": 8, "pipeline_parallel": 8}
    piped = plan_run(gpt3, a100, 1024, 3 * 10**11, 1536, recompute="full", **split)
    layer, loss = answers(piped, 30), answers(plan_of(recompute="full"), 30)
    assert (len(marks(layer, Span, "at work: ")), marks(layer, Span, "logits: ")) == (1, [])
    assert "memory of a GPU, at the last layer" in drawn(layer).texts
    sizes = {"logits": 8 * 8192 * LLAMA.vocab_size}
    sizes["gathered"] = 4 * (LLAMA.vocab_size * LLAMA.hidden_size) * 2
    for word, size in sizes.items():
        [bar] = marks(loss, Span, f"{word}: ")
        assert bar.end - bar.start == pytest.approx(size / 1e9)
    assert "memory of a GPU, at the loss" in drawn(loss).texts


@pytest.mark.parametrize(
    ("days", "text"),
    [(40, "✓ 39 days: in time"), (30, "○ 39 days: perhaps too late"), (26, "✗ 39 days: too late")],
)
def test_the_promise_is_held_against_the_days_there_are(days: int, text: str) -> None:
    picture = answers(plan_of(), days)
    assert {text, f"you have {days} days"} < {*drawn(picture).texts}
    assert marks(picture, Limit, "you have")[0].value == days


def test_what_is_far_too_late_says_how_many_times() -> None:
    texts = drawn(answers(plan_of(LARGE), 30)).texts
    assert any(x.startswith("✗ ") and x.endswith(" days: 10× your 30") for x in texts)
    assert "→" in texts
    assert "expected: the middle of other runs" in texts
    assert not any(x.startswith("to promise") for x in texts)  # the scale ends before it


def test_fitting_is_told_with_its_bytes() -> None:
    assert "✓ fits, 22.5 GB free" in drawn(answers(plan_of(), 30)).texts
    longer = plan_of(published.architecture("Llama-3.1-8B", 9216), zero_stage=2)
    assert "○ tight, 3.84 GB free" in drawn(answers(longer, 30)).texts
    assert "✗ 171 GB too much" in drawn(answers(plan_of(LARGE), 30)).texts


def test_the_reserve_ends_at_the_chips_line() -> None:
    plan = plan_of()
    picture = answers(plan, 30)
    [reserve], [line] = marks(picture, Span, "the reserve"), marks(picture, Limit, "the chip")
    assert reserve.end == line.value == plan.card / 1e9
    assert reserve.end - reserve.start == pytest.approx(plan.reserve / 1e9)


def test_the_bar_of_days_ends_with_the_promise() -> None:
    plan = plan_of()
    days = {"expected": plan.days.likely, "to promise": plan.first_run.greatest}
    assert ends(answers(plan, 40)).items() >= days.items()
    assert answers(plan, 40).words.startswith(
        "Expected: 26 days, the middle of other runs. To promise: 39 days, their slow end."
    )


def test_a_measured_step_takes_the_place_of_others_and_has_its_overhead_on_top() -> None:
    picture = answers(plan_of().calibrated(7.2), 30)
    days, steps = ends(picture), 7.2 * plan_of().iterations / units.DAY
    assert (days["expected"], days["to promise"]) == pytest.approx((1.3 * steps, 1.64 * steps))
    words = "26 days, with the usual overhead. To promise: 33 days, with the worst overhead."
    assert words in picture.words


def test_estimates_have_two_digits_and_one_unit() -> None:
    assert format_span(Interval(21.17, 24.6, 28.6)) == "21 to 29 days"
    assert format_span(Interval(0.8, 1.0, 2.5)) == "19 hours to 2.5 days"
    assert format_span(Interval(5, 5, 5)) == units.duration(5 * units.DAY, 2) == "5.0 days"


# --- a promise


def test_each_published_run_is_a_dot_at_its_days_and_fades_after_a_measured_step() -> None:
    plan = plan_of()
    others = others_days(plan)
    measured, rough = (drawn(promise(x, others, 30)) for x in (plan.calibrated(7.5), plan))
    for picture in (measured, rough):
        dots = [picture.titled(f"{run.name}: ", "circle")[0] for run in others]
        assert {dot.opacity < 1 for dot in dots} == {picture is measured}
    assert "to promise: 34 days" in measured.texts
    assert "to promise: 39 days" in rough.texts


# --- the decision


@pytest.mark.parametrize(("num_gpus", "days"), [(8, 14), (64, 30), (512, 90)])
def test_the_map_draws_what_the_days_allow_and_where_nothing_fits(num_gpus, days) -> None:
    plans, releases = map_plans(num_gpus), [Release("GPT-3 175B", 1.746e11, 3e11)]
    picture = decision_map(plans, "14B", 10**12, days, 2.5, releases)
    fitting = [plan for plan in plans.values() if plan.fits]
    for word, part in (("to promise", "greatest"), ("expected", "likely")):
        [line] = marks(picture, Path, f"{days} days, {word}")
        first, *inner, last = line.points
        assert inner == [
            pytest.approx((plan.parameters.total, 1e12 * days / getattr(plan.days, part)), rel=1e-9)
            for plan in fitting
        ]
        for outer, edge in ((first, inner[0]), (last, inner[-1])):  # as many FLOPs
            assert outer[0] * outer[1] == pytest.approx(edge[0] * edge[1])
    [blue] = marks(picture, Area)
    bands = marks(picture, Band, "doesn't fit")
    assert len(bands) == (len(fitting) < len(plans))
    sizes = [plan.parameters.total for plan in plans.values()]
    for band in bands:
        assert sizes[len(fitting) - 1] < band.low == blue.xs[-1] < sizes[len(fitting)]
    [ray] = marks(picture, Path, "20 tokens per parameter")
    assert all(tokens == 20 * size for size, tokens in ray.points)


def test_the_maps_canvas_is_the_same_whatever_is_decided() -> None:
    releases = [Release("LLM360 K2 65B", 65.3e9, 1.4e12)]
    for width in (PAGE, PHONE):
        heights = {
            drawn(decision_map(map_plans(n), name, tokens, days, 2.5, releases), width).height
            for n, days in ((8, 14), (512, 90))
            for name, tokens in (("1.9B", 2 * 10**10), ("Llama 3.1 405B", 15 * 10**11))
        }
        assert len(heights) == 1


# --- memory


def test_a_plans_canvas_is_the_same_whatever_is_in_its_memory() -> None:
    """Parts that aren't there keep their places in the key."""
    plans = [
        *(plan_of(num_gpus=n) for n in (8, 512)),  # a batch at once has no gradients left
        *(plan_of(**ways) for ways in ({"recipe": "bf16_both_grads"}, {"zero_stage": 1})),
        plan_of(LARGE, tensor_parallel=8, micro_batch_size=2),
    ]
    for width in (PAGE, PHONE):
        assert len({drawn(answers(plan, 30), width).height for plan in plans}) == 1
    few, both = (drawn(answers(plan, 30)) for plan in plans[1:3])
    assert "gradients 0 B" in few.texts
    assert {"gradients 251 MB", "main gradients 502 MB", "reserve"} < {*both.texts}
