"""The panel of chapter 08: a whole plan, its pipeline, and advice that can be taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from llmtrain_helpers import units
from llmtrain_helpers.drawings.common import STEP_PARTS
from llmtrain_helpers.drawings.plan import (
    at_first,
    idle_fraction,
    pipeline_steps,
    plan_at_a_glance,
    span_in_words,
)
from llmtrain_helpers.evidence.published import accelerator, architecture, read_config
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.panels import common, controls
from llmtrain_helpers.plan.advice import Advice, advise
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.plan.report import STACKS, rests_on
from llmtrain_helpers.plan.run import SOFTWARE
from llmtrain_helpers.results import Interval

_published = lru_cache(64)(architecture)
"""Shapes of the shelf: one redraw asks for the same one many times."""


@dataclass(frozen=True)
class Setting(controls.Split):
    """A split, what is trained with it, what it may take, and what was measured."""

    zero_stage: int = 3
    tokens: int = 10**12
    days: float = 30
    recipe: str = "bf16"
    price: float = 2.5
    software: str = "any"
    flops_per_gpu: float = 0
    seconds_per_iteration: float = 0
    config: str = ""

    @cached_property
    def shape(self) -> Transformer:
        """The shape of the published model, or of the file whose path is given."""
        path = self.config.strip()
        if path:
            return read_config(path, self.sequence_length)
        return _published(self.model, self.sequence_length)

    @property
    def shape_has_experts(self) -> bool:
        """Whether the model is a mixture; a config file that cannot be read is none."""
        try:
            return bool(self.shape.num_experts)
        except (ValueError, OSError):
            return False

    @property
    def format(self) -> str | None:
        """The peak that goes with the recipe: of 32 or 8 bits, or the chip's 16 bits."""
        if self.recipe == "fp8":
            return "fp8"
        if self.recipe != "fp32":
            return None
        return "tf32" if "tf32" in accelerator(self.chip).peaks else "fp32"


_SETTINGS = {
    "8B on 64 H100": Setting(),
    "A pipeline of 4 stages": Setting(pipeline_parallel=4, global_batch_size=128, zero_stage=1),
    "8B, not all sharded": Setting(zero_stage=2),
    "70B on 8 H100": Setting(
        "Llama-3.1-70B", num_gpus=8, tensor_parallel=8, zero_stage=1, recompute="full"
    ),
    "GPT-3, a measured rate": Setting(
        "GPT-3 175B",
        "A100 80GB SXM",
        num_gpus=1024,
        tensor_parallel=8,
        pipeline_parallel=8,
        zero_stage=1,
        recompute="full",
        global_batch_size=1536,
        sequence_length=2048,
        tokens=300 * 10**9,
        days=34,
        flops_per_gpu=140e12,
    ),
    "A mixture of experts": Setting(
        "Mixtral-8x7B", expert_parallel=8, zero_stage=1, recompute="full", tokens=300 * 10**9
    ),
    "A batch that does not divide": Setting(num_gpus=100),
}

_CONTROLS = {
    "num_gpus": controls.GPUS,
    "tokens": controls.TOKENS,
    "micro_batch_size": replace(controls.MICRO_BATCH, stops=controls.doublings(1, 16)),
    "model": controls.COUNTED_MODEL,
    "recompute": controls.RECOMPUTED,
    "zero_stage": controls.ZERO_STAGE,
    "pipeline_parallel": replace(
        controls.PIPELINE_PARALLEL, help="GPUs that share the stack of layers."
    ),
    "days": common.Control(
        "Days you have",
        "The days that the run may take, stops included.",
        unit="days",
        least=0.1,
        most=100_000,
        whole=False,
    ),
    "chip": controls.CHIP,
    "tensor_parallel": replace(controls.TENSOR_PARALLEL, more=True),
    "context_parallel": controls.CONTEXT_PARALLEL,
    "expert_parallel": controls.EXPERT_PARALLEL,
    "gradients": controls.GRADIENTS,
    "global_batch_size": controls.BATCH,
    "sequence_length": controls.SEQUENCE,
    "recipe": replace(controls.RECIPE, more=True),
    "software": controls.choice(
        "Software",
        "Whose trains: NVIDIA's Megatron-Core, as in NeMo, somebody else's, or any.",
        SOFTWARE,
        more=True,
    ),
    "price": replace(
        controls.PRICE, help="Dollars for one GPU for one hour; 0 leaves the cost out.", least=0
    ),
    "flops_per_gpu": common.Control(
        "Measured rate",
        "What each GPU does in a second, recomputed work counted, as 400T; 0 if it is not known.",
        unit="FLOP/s",
        least=0,
        zero="not measured",
        most=1e17,
        whole=False,
        more=True,
        applies=lambda setting: not setting.seconds_per_iteration,
    ),
    "seconds_per_iteration": common.Control(
        "Measured step",
        "Seconds of one iteration in just this setting; 0 if it is not known.",
        unit="seconds",
        least=0,
        zero="not measured",
        most=1e6,
        whole=False,
        more=True,
        applies=lambda setting: not setting.flops_per_gpu,
    ),
    "config": common.Control(
        "or a config.json", "Path of a Hugging Face config file.", "text", more=True
    ),
}


def planned(setting: Setting) -> Plan:
    """The plan of a setting; a ValueError in words where it makes none."""
    if setting.flops_per_gpu and setting.seconds_per_iteration:
        raise ValueError("give flops_per_gpu or seconds_per_iteration, not both")
    model = setting.shape
    setting.check_replicas(model)
    plan = plan_run(
        model,
        accelerator(setting.chip),
        setting.num_gpus,
        setting.tokens,
        setting.global_batch_size,
        price_per_gpu_hour=setting.price or None,
        keep_gradients=setting.gradients == "whole",
        flops_per_gpu=setting.flops_per_gpu or None,
        format=setting.format,
        expert_parallel=setting.experts,
        recipe=setting.recipe,
        software=setting.software,
        **setting.mesh,
    )
    step = setting.seconds_per_iteration
    return plan.calibrated(step) if step else plan


def render(setting: Setting, before: Setting | None = None) -> common.Answer:
    """Sentence, pictures, tables and the call in code; and advice to be taken."""
    plan, days = planned(setting), setting.days
    old = planned(before) if before else None
    advice = advise(plan)
    offers = (*_fitting(advice), *_sooner(plan, days))
    pipeline = _pipeline(plan, old) if plan.split.pipeline_parallel > 1 else ""
    html = "".join(
        [
            common.sentence(_sentence(plan, days, old)),
            f"<div>{plan_at_a_glance(plan, days, old).live()}</div>",
            f"<div>{pipeline}</div>",
            common.folded("The numbers", _tables(plan)),
            common.folded("In code", common.call(_code(setting, plan))),
            f"<p>{_purpose(plan, days, advice, offers)}</p>",
        ]
    )
    return common.Answer(html, offers=offers)


def _pipeline(plan: Plan, old: Plan | None) -> str:
    turns, *before = (
        (x.split.pipeline_parallel, int(x.split.accumulation_steps)) for x in (plan, old) if x
    )
    backward = 3 if plan.run.recompute == "full" else 2
    return pipeline_steps(*turns, backward=backward, before=before[0] if before else ()).live()


def _sentence(plan: Plan, days: float, old: Plan | None) -> str:
    span = plan.days_with_stops
    result = f"<b>{span_in_words(span)}</b>"
    if old and old.days_with_stops != span:
        result += f" (dashed: {span_in_words(old.days_with_stops)})"
    held = units.gigabytes(plan.memory.total)
    result += f"; you have {days:g}. Each GPU holds <b>{held}</b>: "
    if plan.fits:
        return f"{result}<b>fits</b>, {units.gigabytes(plan.room)} free." + at_first(plan, days)
    if plan.tight:
        reserve = units.gigabytes(plan.reserve)
        left = f"{units.gigabytes(max(plan.room, 0))} free, where {reserve} should stay so"
        return f"{result}<b>tight</b>: it fits on paper only, with {left}."
    return f"{result}<b>does not fit</b>, {units.gigabytes(-plan.room)} too much."


# --- the numbers


def _tables(plan: Plan) -> str:
    """What is counted; and apart from it, what is estimated."""
    m = int(plan.split.accumulation_steps)
    idle = idle_fraction(plan.split.pipeline_parallel, m)
    counted = [
        ["parameters", units.exact(plan.parameters.total)],
        ["FLOPs of the run", units.flops(plan.total_flops)],
        ["iterations", units.count(round(plan.iterations))],
        ["micro-batches in a step", units.exact(m)],
        ["idle in a pipeline of equal stages, of the step", idle],
        ["sent to other replicas in a step", units.gigabytes(plan.traffic)],
        ["memory of a GPU", units.gigabytes(plan.memory.total)],
        ["to be kept free", units.gigabytes(plan.reserve)],
    ]
    spans = _spans(plan)
    if plan.measured:
        exact = [[name, likely] for name, _, likely, _ in spans]
        estimated = common.table(["at your rate", ""], exact)
        estimated += "<p>The calendar adds what stops the machines.</p>"
    else:
        estimated = common.table(["estimated", "least", "likely", "greatest"], spans)
        estimated += f"<p>Likely MFU {units.percent(plan.mfu)}. "
        estimated += f"The intervals: {rests_on(plan)}; {STACKS[plan.run.software]}.</p>"
        estimated += _step_by_parts(plan)
    return common.table(["counted", ""], counted) + estimated


def _spans(plan: Plan) -> list[list[str]]:
    """Time, GPU-hours, cost and energy: least, likely and greatest."""
    energy = plan.energy and plan.energy.times(1 / 3.6e6)
    known = {
        "a step, without stops": (plan.seconds_per_iteration, units.duration),
        "the run": (plan.seconds, units.duration),
        "GPU-hours": (plan.gpu_hours, units.count),
        "cost": (plan.cost, units.dollars),
        "energy (kWh)": (energy, units.count),
    }
    return [
        [name, *(unit(x) for x in (span.least, span.likely, span.greatest))]
        for name, (span, unit) in known.items()
        if isinstance(span, Interval)  # cost and energy may not be known
    ]


def _step_by_parts(plan: Plan) -> str:
    """What the model of a step says of this split, if it knows the chip: its larger parts."""
    if plan.step is None:
        return ""
    shares = plan.step.shares()
    rows = [
        [STEP_PARTS[name].spent, units.duration(float(seconds)), units.percent(shares[name])]
        for name, seconds in plan.step.parts().items()
        if shares[name] >= 0.001
    ]
    return common.table(["a step, if software loses nothing", "", "share"], rows)


# --- advice


def _purpose(
    plan: Plan, days: float, advice: Sequence[Advice], offers: Sequence[common.Offer]
) -> str:
    """What the offers are for; a word where there is nothing to advise."""
    if plan.fits:
        if not offers:
            return "It fits, and there is time: no advice."
        if plan.days_with_stops.greatest <= days:
            return "It fits, and there is time, but perhaps not for a first run:"
        return "It fits. To be in time at the slow end, too, one of these:"
    if not advice:
        return "Nothing that could be changed here would make it fit."
    order = "What helps, cheapest first; each takes those before it, too."
    if len(advice) == 1:
        order = "What helps at the lowest price."
    return f"{order} Then it {'fits' if advice[-1].plan.fits else 'still does not fit'}:"


def _fitting(advice: Sequence[Advice]) -> Iterator[common.Offer]:
    """What makes the plan fit, in order: each with those before it."""
    changes: dict[str, common.Value] = {}
    for one in advice:
        changes = {**changes, **one.change}
        labels = [f"{_CONTROLS[name].label} {value}" for name, value in one.change.items()]
        yield f"{' and '.join(labels)}: {_effect(one)}", changes


def _effect(advice: Advice) -> str:
    """What an advice saves and what it costs."""
    effects = [f"saves {units.gigabytes(advice.saved)} on each GPU"]
    more_gpus, same_hours = "num_gpus" in advice.change, abs(advice.dearer) < 0.001
    if not same_hours:
        sign = "+" if advice.dearer > 0 else ""
        effects.append(f"{sign}{units.percent(advice.dearer)} GPU-hours")
    if advice.sent > 0:
        effects.append(f"sends {units.gigabytes(advice.sent)} more a step")
    if more_gpus:
        days = advice.plan.days_with_stops.likely
        effects.append(f"takes {units.duration(days * units.DAY, 2)}")
        if same_hours:
            effects.append("the same GPU-hours")
    elif same_hours and advice.sent <= 0:
        effects.append("free")
    return ", ".join(effects)


def _sooner(plan: Plan, days: float) -> Iterator[common.Offer]:
    """Offers for a plan that fits: fewer tokens, or more GPUs, to end in time even if slow."""
    late = plan.days_with_stops.greatest / days
    if plan.fits and late <= 1 < plan.first_run.greatest / days:
        tokens = units.rounded_down(plan.first_run_tokens(days))
        yield f"Tokens {units.short(tokens)}: in time even as a first run", {"tokens": tokens}
    if not plan.fits or late <= 1:
        return
    tokens = units.rounded_down(plan.run.tokens / late)
    if _in_time(plan, days, tokens=tokens):
        each = f"{units.digits(tokens / plan.parameters.active, 2)} for each parameter"
        yield f"Tokens {units.short(tokens)}: in time, {each}", {"tokens": tokens}
    for n in (plan.split.num_gpus * 2**k for k in range(1, 6)):
        faster = _in_time(plan, days, num_gpus=n)
        if faster:
            span = span_in_words(faster.days_with_stops)
            yield f"GPUs {n}: {span}, {_price(plan, faster)}", {"num_gpus": n}
            return


def _price(plan: Plan, other: Plan) -> str:
    """GPU-hours of another plan beside this one's, as far as that is known."""
    dearer = float(other.gpu_hours.likely / plan.gpu_hours.likely) - 1
    hours = "the same GPU-hours"
    if abs(dearer) >= 0.01:
        hours = f"{'+' if dearer > 0 else ''}{units.digits(100 * dearer, 2)} % GPU-hours"
    # at a given rate, or over unknown links, the seconds do not follow the split
    known = plan.step is not None and plan.run.flops_per_gpu is None
    return f"{hours} if {'the network keeps up' if known else 'each stays as fast'}"


def _in_time(plan: Plan, days: float, **change: int) -> Plan | None:
    """The plan with this change, if it can be, fits and ends in time."""
    try:
        other = plan.but(**change)
    except ValueError:  # the batch does not divide, or no batch is left
        return None
    return other if other.fits and other.days_with_stops.greatest <= days else None


# --- code


def _code(setting: Setting, plan: Plan) -> str:
    given = {**setting.mesh, "recipe": setting.recipe}
    if setting.experts > 1:
        given["expert_parallel"] = setting.experts
    given["keep_gradients"] = setting.gradients == "whole"
    given["price_per_gpu_hour"] = setting.price or None
    if setting.software != "any":
        given["software"] = setting.software
    if setting.format:
        given["format"] = setting.format
    if plan.run.flops_per_gpu is not None:
        given["flops_per_gpu"] = plan.run.flops_per_gpu
    options = ", ".join(f"{name}={value!r}" for name, value in given.items())
    path, step = setting.config.strip(), setting.seconds_per_iteration
    model = f"read_config({path!r}" if path else f"architecture({setting.model!r}"
    call = (
        f"plan_run(model, chip, {setting.num_gpus}, "
        f"{common.in_code(setting.tokens)}, {setting.global_batch_size},"
        f"\n    {options})"
    )
    if step:
        call = f"plan = {call}\nplan = plan.calibrated({step:g})"
    return (
        f"model = published.{model}, {setting.sequence_length})\n"
        f"chip = published.accelerator({setting.chip!r})\n{call}"
    )


PANEL = common.Panel(
    "What will your run take?",
    _CONTROLS,
    _SETTINGS,
    ("A pipeline of 4 stages", "70B on 8 H100"),
    render,
)
