"""How fast others were, and how a measured step takes their place."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from llmtrain_helpers import Transformer, published
from llmtrain_helpers.plan.pace import PACES, PUBLISHED_SHARES, STOPS, UTILIZATIONS, of_family
from llmtrain_helpers.plan.report import rests_on
from llmtrain_helpers.plan.seconds import OWN_PACE
from llmtrain_helpers.results import Interval
from tests.bad_values import assert_refused
from tests.plan.cases import A100, H100, LLAMA, UNLINKED, plan_of

MIXTRAL = published.architecture("Mixtral-8x7B", sequence_length=4096)


def test_the_interval_spans_the_utilisations() -> None:
    plan = plan_of(utilizations=(0.2, 0.4, 0.5))
    at_peak = plan_of(flops_per_gpu=312e12).days.likely
    assert plan.days.likely == pytest.approx(at_peak / 0.4)
    assert plan.days.least == pytest.approx(at_peak / 0.5)
    assert plan.days.greatest == pytest.approx(at_peak / 0.2)
    assert plan.mfu == pytest.approx(0.4)


def test_a_rate_that_was_measured_has_the_bubble_in_it() -> None:
    plain, piped = (plan_of(flops_per_gpu=1e14, pipeline_parallel=p) for p in (1, 8))
    assert plain.seconds == piped.seconds


def test_the_split_shifts_what_others_reached() -> None:
    """Steps at others' pace of the model, and a run of as many of them with its stops."""
    paces, evidence = PACES["dense", "any"]
    for split in ({}, {"tensor_parallel": 8}, {"pipeline_parallel": 8}):
        plan = plan_of(**split)
        step, run, T = plan.seconds_per_iteration, plan.seconds, plan.step.total
        ratios = [T / s for s in (step.greatest, step.likely, step.least)]
        assert ratios == pytest.approx((*paces[:2], paces[2] / plan.step.compiled))
        assert plan.shares.evidence == evidence
        assert run == step.product(Interval(*STOPS)).times(plan.iterations)


@pytest.mark.parametrize("software", ["any", "megatron-core", "other"])
@pytest.mark.parametrize("format", ["bf16", "fp8"])
def test_whose_software_it_is_decides_the_pace(software, format) -> None:
    plan = plan_of(accelerator=H100, format=format, software=software)
    span, (paces, evidence) = plan.seconds_per_iteration, PACES["dense", software]
    ratios = [plan.step.total / s for s in (span.greatest, span.likely, span.least)]
    assert ratios == pytest.approx((*paces[:2], paces[2] / plan.step.compiled))
    assert (plan.step.compiled == 1) == (software == "megatron-core")
    assert plan.shares.evidence == evidence
    mixture = plan_of(model=MIXTRAL, accelerator=H100, software=software, format=format)
    assert mixture.shares.evidence == PACES["experts", "any"][1]


def test_a_name_makes_the_interval_narrower_and_nvidias_the_step_shorter() -> None:
    split = {"accelerator": H100, "tensor_parallel": 8}
    named = {"software": "other", "compiled": False}, {"software": "megatron-core"}
    spans = [plan_of(**name, **split).seconds_per_iteration for name in ({}, *named)]
    widths = [span.greatest / span.least for span in spans]
    assert widths == sorted(widths, reverse=True)
    assert spans[2].likely < 0.9 * spans[0].likely


def test_an_interval_covers_both_kernels_unless_one_is_named() -> None:
    """A small model's step, that of compiled kernels, and the fast end where nobody says."""
    small = {"model": Transformer.gpt(12, 768, 12, 50304, 1024), "zero_stage": 0}
    either, eager, compiled = (plan_of(**small, compiled=x) for x in (None, False, True))
    assert either.step.compiled == pytest.approx(compiled.step.total / eager.step.total)
    assert either.step.compiled < 0.7
    spans = [plan.seconds_per_iteration for plan in (either, eager, compiled)]
    assert spans[0].greatest == spans[1].greatest
    assert spans[0].likely == spans[1].likely
    assert spans[0].least == pytest.approx(spans[2].least)
    large = plan_of(model=published.architecture("Llama-2-70B", 4096), tensor_parallel=8)
    assert large.step.compiled > 0.9


def test_a_step_has_no_stops_and_a_run_has() -> None:
    plan = plan_of(accelerator=UNLINKED)
    shares, work = UTILIZATIONS["16-bit dense"], plan.flops.total / (64 * 312e12)
    assert plan.shares is shares
    step, run = plan.seconds_per_iteration, plan.seconds
    longer = Interval(*(1 / u for u in reversed(shares.steps))).product(Interval(*STOPS))
    of_runs = (1 / longer.greatest, 1 / longer.likely, 1 / longer.least)
    for span, share, times in ((step, shares.steps, 1), (run, of_runs, plan.iterations)):
        low, likely, high = share
        assert span.least == pytest.approx(times * work / high)
        assert span.likely == pytest.approx(times * work / likely)
        assert span.greatest == pytest.approx(times * work / low)
    assert run.likely > plan.iterations * step.likely


KINDS = {
    "bf16": ("A100 80GB SXM", "16-bit"),
    "fp16": ("V100 32GB SXM2", "16-bit"),
    "tf32": ("A100 80GB SXM", "32-bit"),
    "fp8": ("H100 SXM", "fp8"),
    "fp4": ("GB200", "fp4"),
}


@pytest.mark.parametrize("format", KINDS)
def test_each_format_has_its_own_shares_dense_or_experts(format: str) -> None:
    name, bits = KINDS[format]
    chip = replace(published.accelerator(name), link_bandwidth=None)
    for model, kind in ((LLAMA, "dense"), (MIXTRAL, "experts")):
        plan = plan_of(model=model, accelerator=chip, format=format)
        assert plan.shares is UTILIZATIONS[f"{bits} {kind}"]


@pytest.mark.parametrize(("name", "format"), [("GB200", "fp4"), ("A100 80GB SXM", "tf32")])
def test_where_nobody_published_a_pace_a_split_shifts_nothing(name: str, format: str) -> None:
    """No steps of such a format were held against the model of a step."""
    plan = plan_of(accelerator=published.accelerator(name), format=format)
    assert plan.shares is UTILIZATIONS[f"{KINDS[format][1]} dense"]


@pytest.mark.parametrize("name", ["TPU v5p", "Trainium1", "MI325X"])
def test_a_chip_without_a_model_of_its_step_has_the_shares_of_its_like(name: str) -> None:
    chip = published.accelerator(name)
    plan = plan_of(accelerator=chip)
    assert plan.step is None
    assert plan.shares is UTILIZATIONS[f"16-bit dense{of_family(name)}"]


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("Gaudi 3", "16-bit dense", {}),
        ("Ascend 910C", "16-bit dense", {}),
        ("TPU v5p", "16-bit experts", {"model": MIXTRAL}),
        ("Trainium2", "fp8 dense", {"format": "fp8"}),
    ],
)
def test_a_plan_says_when_the_speeds_are_those_of_nvidias_chips(
    name: str, kind: str, options: dict[str, Any]
) -> None:
    plan, nvidias = plan_of(accelerator=published.accelerator(name), **options), UTILIZATIONS[kind]
    assert plan.shares.steps == nvidias.steps
    steps, _, whose = plan.shares.evidence.partition(", all on NVIDIA's chips: ")
    assert nvidias.evidence.startswith(steps)
    assert whose == f"our tables have none{of_family(name)}"
    assert rests_on(plan).startswith(f"a step: {plan.shares.evidence}; overhead of seven ")
    assert nvidias in UTILIZATIONS.values()
    assert "NVIDIA" not in nvidias.evidence


def test_what_nobody_published_is_not_called_nvidias() -> None:
    plan = plan_of(accelerator=published.accelerator("MI325X"), format="fp32")
    assert plan.shares.evidence == "untested: nobody has published such steps"


def test_fp8_does_not_halve_the_days_and_experts_are_slower() -> None:
    days = {f: plan_of(accelerator=H100, format=f).days for f in ("bf16", "fp8")}
    assert 1.1 < days["bf16"].likely / days["fp8"].likely < 1.5
    given = plan_of(accelerator=H100, format="fp8", utilizations=(0.1, 0.2, 0.3))
    assert given.shares.steps == (0.1, 0.2, 0.3)
    assert plan_of(model=MIXTRAL).mfu < 0.85 * plan_of().mfu
    unlinked = plan_of(model=MIXTRAL, accelerator=UNLINKED)
    assert unlinked.mfu < 0.5 * plan_of(accelerator=UNLINKED).mfu


def test_a_kind_that_is_untested_says_so_and_is_wider() -> None:
    widths = {k: s.steps[2] / s.steps[0] for k, s in PUBLISHED_SHARES.items()}
    untested = [k for k, s in PUBLISHED_SHARES.items() if s.evidence.startswith("untested")]
    assert set(untested) == {
        "fp4 dense",
        "32-bit dense",
        "fp4 experts",
        "32-bit experts",
        "16-bit dense on AMD",
        "16-bit dense on Trainium",
        "fp8 dense on Gaudi",
        "fp8 dense on TPU",
    }
    for kind in untested:
        assert widths[kind] > max(w for k, w in widths.items() if k not in untested)


def test_a_measured_step_foretells_other_splits_with_its_own_interval() -> None:
    plan = plan_of(zero_stage=1)
    t = 1.3 * plan.step.total
    other = plan.calibrated(t).replace(tensor_parallel=8)
    step = other.seconds_per_iteration
    assert step.likely == pytest.approx(1.3 * other.step.total)
    assert step.greatest / step.likely == pytest.approx(OWN_PACE)
    assert step.likely / step.least == pytest.approx(OWN_PACE)
    seconds = plan.calibrated(t).replace(recompute="full").seconds_per_iteration
    assert seconds.greatest / seconds.likely == pytest.approx(OWN_PACE)
    others = other.replace(pace=None).seconds_per_iteration
    assert step.greatest / step.least < others.greatest / others.least
    assert other.seconds == step.product(Interval(*STOPS)).times(other.iterations)
    many = plan.calibrated(t).replace(tensor_parallel=np.array([1, 8]))
    assert many.seconds_per_iteration.likely[1] == pytest.approx(step.likely)
    for bad in (0.5, "fast", np.array([1.0])):
        assert_refused(plan.replace, "pace=", pace=bad)


# --- bad values


def test_a_measured_step_takes_the_place_of_other_peoples_runs() -> None:
    plan = plan_of(pipeline_parallel=4)
    measured = plan.calibrated(30.0)
    assert measured.seconds_per_iteration.likely == pytest.approx(30)
    of_steps, run = plan.iterations * 30, measured.seconds
    assert (run.least, run.likely, run.greatest) == pytest.approx([x * of_steps for x in STOPS])
    assert measured.days_of_steps.likely == pytest.approx(of_steps / 86400)
    given = plan_of(pipeline_parallel=4, utilizations=(0.3, 0.4, 0.5)).calibrated(30.0)
    assert given.seconds == measured.seconds
    unlinked = plan_of(accelerator=UNLINKED, pipeline_parallel=4).calibrated(30.0)
    assert unlinked.run.pace is None
    assert unlinked.seconds.likely == pytest.approx(plan.iterations * 30 * STOPS[1])


@pytest.mark.parametrize("chip", [H100, UNLINKED], ids=["links known", "links unknown"])
def test_a_step_that_cannot_be_is_refused_by_its_name(chip) -> None:
    """One second for half a million tokens of an 8B on 64 GPUs is thrice their peak."""
    plan = plan_of(accelerator=chip, zero_stage=3, recompute="full")
    at_peak = plan.flops.total / (64 * plan.run.peak)
    assert plan.calibrated(at_peak).seconds_per_iteration.likely == pytest.approx(at_peak)
    for seconds in (0.99 * at_peak, 1e-9, 1e12, np.array([1e3, 1e-3])):
        with pytest.raises(ValueError, match=r"^seconds_per_iteration="):
            plan.calibrated(seconds)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model": MIXTRAL}, "was measured with a different model"),
        ({"model": replace(LLAMA, sequence_length=4096)}, "was measured with a different model"),
        ({"accelerator": A100}, "was measured with a different accelerator"),
        ({"format": "fp8"}, "was measured in bf16, not in fp8"),
        ({"software": "other"}, "is of software='any', not 'other'"),
        ({"compiled": True}, "is of compiled=None, not True"),
        ({"flops_per_gpu": 1e14}, "give only one of them"),
        ({"utilizations": (0.3, 0.4, 0.5)}, "give only one of them"),
    ],
    ids=["model", "length", "chip", "format", "software", "kernels", "rate", "utilizations"],
)
def test_a_measured_step_holds_for_what_it_was_measured_with(changes, problem) -> None:
    measured = plan_of(accelerator=H100).calibrated(20.0)
    with pytest.raises(ValueError, match=problem):
        measured.replace(**changes)
    assert measured.replace(**changes, pace=None).run.pace is None


def test_a_speed_comes_from_one_source() -> None:
    with pytest.raises(ValueError, match=r"utilizations=.* and flops_per_gpu: give only one"):
        plan_of(utilizations=(0.3, 0.4, 0.5), flops_per_gpu=1e14)
