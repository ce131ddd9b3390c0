"""Chapter 09: the panel of a whole plan with its offers; a month, a promise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Unpack

from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.drawing import STEP_PARTS
from llmtrain_course.kit.formulas import nearest_shape, published_model
from llmtrain_course.kit.handle import Shown, handle, slider
from llmtrain_course.kit.layout import PAGE
from llmtrain_course.parallelism.formulas import idle_share
from llmtrain_course.plan.formulas import (
    MOST_GPUS,
    in_time,
    map_models,
    map_plans,
    rounded_down,
    share_of_peak,
)
from llmtrain_course.plan.pictures import (
    TIMES,
    Release,
    answers,
    decision_map,
    format_days,
    promise,
)
from llmtrain_helpers import published, units
from llmtrain_helpers.duration import gpu_hours
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.advice import Advice, advise
from llmtrain_helpers.plan.options import SOFTWARE, Changes, Software
from llmtrain_helpers.plan.pace import STOPS
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.plan.report import STACKS, rests_on
from llmtrain_helpers.precision import RecipeName
from llmtrain_helpers.published import accelerator, read_config
from llmtrain_helpers.results import Interval
from research.utilizations import OtherRun, others_days


@dataclass(frozen=True)
class Setting(controls.Split):
    """A split, what is trained with it, what it may take, and what was measured."""

    zero_stage: int = 3
    tokens: int = 10**12
    days: float = 30
    recipe: RecipeName = "bf16"
    price: float = 2.5
    software: Software = "any"
    flops_per_gpu: float = 0
    seconds_per_iteration: float = 0
    config: str = ""

    @cached_property
    def shape(self) -> Transformer:
        """The shape of the published model, or of the file whose path is given."""
        path = self.config.strip()
        if path:
            return read_config(path, self.sequence_length)
        return published_model(self.model, self.sequence_length)

    @property
    def shape_has_experts(self) -> bool:
        """Whether the model is a mixture; a config file that cannot be read is none."""
        try:
            return bool(self.shape.num_experts)
        except (ValueError, OSError):
            return False

    @property
    def keeps_gradients(self) -> bool:
        """Whether gradients that ZeRO shards stay whole between passes."""
        return self.gradients == "whole" and self.zero_stage > 1

    @property
    def format(self) -> str | None:
        """The peak that goes with the recipe: of 32 or 8 bits, or the chip's 16 bits."""
        if self.recipe == "fp8":
            return "fp8"
        if self.recipe != "fp32":
            return None
        return "tf32" if "tf32" in accelerator(self.chip).peaks else "fp32"


_SETTINGS = {
    "8B on 64 H100s": Setting(),
    "A pipeline of 4 stages": Setting(pipeline_parallel=4, global_batch_size=128, zero_stage=1),
    "A 7B, not all sharded": Setting("Mistral-7B-v0.1", num_gpus=16, zero_stage=1),
    "70B on 8 H100s": Setting(
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
    "A batch that doesn't divide": Setting(num_gpus=100),
}

RECOMPUTED = replace(
    controls.RECOMPUTED,
    help="What you recompute to save memory. Alternate means every other product.",
    options=("none", "alternate", "full"),
)
"""Without `selective`: these plans have flash attention, which has its saving already."""

_CONTROLS = {
    "num_gpus": controls.GPUS,
    "tokens": controls.TOKENS,
    "days": common.Control(
        "Days you have",
        "The days that the run may last, including overhead.",
        unit="days",
        least=0.1,
        most=100_000,
        whole=False,
        stops=controls.DAYS_OF_USE,
    ),
    "model": controls.COUNTED_MODEL,
    "zero_stage": controls.ZERO_STAGE,
    "recompute": RECOMPUTED,
    "chip": controls.CHIP,
    "micro_batch_size": replace(controls.MICRO_BATCH, more=True),
    "pipeline_parallel": replace(
        controls.PIPELINE_PARALLEL, help="GPUs that share the stack of layers.", more=True
    ),
    "tensor_parallel": replace(controls.TENSOR_PARALLEL, more=True),
    "context_parallel": controls.CONTEXT_PARALLEL,
    "expert_parallel": controls.EXPERT_PARALLEL,
    "gradients": controls.GRADIENTS,
    "global_batch_size": controls.BATCH,
    "sequence_length": controls.SEQUENCE,
    "recipe": replace(controls.RECIPE, more=True),
    "software": controls.choice(
        "Software",
        "Whose software trains: NVIDIA's Megatron-Core (as in NeMo), someone else's, or any.",
        SOFTWARE,
        more=True,
    ),
    "price": replace(
        controls.PRICE, help="Dollars per GPU-hour. Enter 0 to leave out the cost.", least=0
    ),
    "flops_per_gpu": common.Control(
        "Measured rate",
        "FLOPs per second and GPU, recomputed work included, such as 400T. 0 if you don't know.",
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
        "Seconds per iteration with exactly these settings. 0 if you don't know.",
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
        keep_gradients=setting.keeps_gradients,
        flops_per_gpu=setting.flops_per_gpu or None,
        stops=STOPS if setting.flops_per_gpu else None,  # it's measured while the machines run
        format=setting.format,
        expert_parallel=setting.experts,
        recipe=setting.recipe,
        software=setting.software,
        **setting.mesh,
    )
    step = setting.seconds_per_iteration
    return plan.calibrated(step) if step else plan


def render(setting: Setting, before: Setting | None = None, width: int = PAGE) -> common.Answer:
    """Sentence, picture, tables and the call in code; and advice to be taken."""
    plan, days = planned(setting), setting.days
    previous = planned(before) if before else None
    # It has no controls for these.
    advice = advise(plan, fixed=("loss_kernel", "attention", "optimizer", "offload"))
    offers = (*_offers_that_fit(advice), *_offers_in_time(plan, days))
    html = "".join(
        [
            common.sentence(_sentence(plan, days, previous)),
            answers(plan, days, previous).drawing(width).inline_svg(),
            f"<p>{_money(plan)}</p>",
            '<div style="display:flex;flex-wrap:wrap;column-gap:32px">',
            common.folded("The numbers", _tables(plan)),
            common.folded("In code", common.call(_code(setting, plan))),
            "</div>",
            f"<p>{_purpose(plan, days, advice, offers)}</p>",
        ]
    )
    return common.Answer(html, offers=offers)


def _days(plan: Plan) -> str:
    """The days to promise."""
    return format_days(plan.first_run.greatest)


def _sentence(plan: Plan, days: float, previous: Plan | None) -> str:
    """The two answers: the days expected and to promise, and whether a GPU's memory is enough."""
    result = _expected_and_promised(plan)
    if previous and _days(previous) != _days(plan):
        result += f" (dashed: {_days(previous)})"
    memory = units.gigabytes(plan.memory.total)
    result += f"; you have {days:,g} days. Each GPU needs <b>{memory}</b> at the {plan.phase}: it "
    if plan.fits:
        return f"{result}<b>fits</b>, with {units.gigabytes(plan.free_memory)} free."
    if plan.tight:
        reserve, free = (units.gigabytes(x) for x in (plan.reserve, max(plan.free_memory, 0)))
        return f"{result}is <b>tight</b>, with {free} free, but {reserve} should stay free."
    return f"{result}<b>doesn't fit</b>, because {units.gigabytes(-plan.free_memory)} are missing."


def _expected_and_promised(plan: Plan) -> str:
    """The two times of a plan, in the one order and the words of all its faces."""
    return f"<b>{format_days(plan.days.likely)}</b> expected, <b>{_days(plan)}</b> to promise"


def _money(plan: Plan) -> str:
    """The money to set aside for the promise: a GPU that waits costs as much."""
    hours = gpu_hours(plan.first_run.greatest * units.DAY, plan.split.num_gpus)
    text = f"Set aside {units.about(hours)} GPU-hours"
    price = plan.run.price_per_gpu_hour
    if price is None:
        return f"{text}."
    return f"{text}: {units.about(hours * price, units.dollars)} at {units.dollars(price)} each."


# --- the numbers


def _tables(plan: Plan) -> str:
    """What is counted; and apart from it, what is estimated."""
    m = int(plan.split.accumulation_steps)
    idle = units.percent(idle_share(plan.split.pipeline_parallel, m))
    counted = [
        ["parameters", units.exact(plan.parameters.total)],
        ["FLOPs of the run", units.flops(plan.total_flops)],
        ["iterations", units.count(round(plan.iterations))],
        ["micro-batches per step", units.exact(m)],
        ["idle share of the step, if the stages are equal", idle],
        ["sent to other replicas per step", units.gigabytes(plan.traffic)],
        [f"memory of a GPU, at the {plan.phase}", units.gigabytes(plan.memory.total)],
        ["reserved, to stay free", units.gigabytes(plan.reserve)],
    ]
    estimated = common.table(["estimated", "at best", *TIMES], _spans(plan))
    if plan.measured:
        estimated += "<p>The step is yours, and the overhead comes from seven published runs.</p>"
    else:
        estimated += f"<p>Expected MFU {units.percent(plan.mfu)}. "
        estimated += f"The intervals: {rests_on(plan)}; {STACKS[plan.run.software]}.</p>"
        estimated += _step_by_parts(plan)
    return common.table(["counted", ""], counted) + estimated


def _spans(plan: Plan) -> list[list[str]]:
    """Time, GPU-hours, cost and energy: least, likely and greatest."""
    energy = plan.energy and plan.energy.times(1 / 3.6e6)
    intervals = {
        "a step": (plan.seconds_per_iteration, units.duration),
        "the run": (plan.seconds, units.duration),
        "GPU-hours": (plan.gpu_hours, units.count),
        "cost": (plan.cost, units.dollars),
        "energy (kWh)": (energy, units.count),
    }
    return [
        [name, *(unit(x) for x in (span.least, span.likely, span.greatest))]
        for name, (span, unit) in intervals.items()
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
    return common.table(["a step, if software cost nothing", "", "share"], rows)


# --- advice


def _purpose(
    plan: Plan, days: float, advice: Sequence[Advice], offers: Sequence[common.Offer]
) -> str:
    """Say what the offers are for, or why there are none."""
    if plan.fits:
        if in_time(plan, days):
            return "It fits, and it's in time, so there's nothing to change."
        return (
            "It fits. To finish in time:"
            if offers
            else "It fits, but nothing we can offer would finish in time."
        )
    if not offers:
        return "Nothing you can change here would make it fit."
    order = "Here's what helps, cheapest first. Each offer includes the ones above it."
    if len(advice) == 1:
        order = "Here's the cheapest change that helps."
    fits = "fits" if advice[-1].plan.fits else "still doesn't fit"
    return f"{order} Then the run {fits}:"


def _offers_that_fit(advice: Sequence[Advice]) -> Iterator[common.Offer]:
    """The changes that make the plan fit, in order: each with those before it."""
    changes: dict[str, Any] = {}
    for one in filter(lambda one: one.change, advice):
        changes = {**changes, **one.change}
        labels = [f"{_CONTROLS[name].label} {value}" for name, value in one.change.items()]
        yield f"{' and '.join(labels)}: {_effect(one)}", changes


def _effect(advice: Advice) -> str:
    """The savings and the price of an advice."""
    effects = [f"saves {units.gigabytes(advice.saved)} on each GPU"]
    more_gpus, same_hours = "num_gpus" in advice.change, abs(advice.extra_cost) < 0.001
    if not same_hours:
        sign = "+" if advice.extra_cost > 0 else ""
        effects.append(f"{sign}{units.percent(advice.extra_cost)} GPU-hours")
    if advice.sent > 0:
        effects.append(f"sends {units.gigabytes(advice.sent)} more per step")
    if more_gpus:
        effects.append(f"{_days(advice.plan)} to promise")
        if same_hours:
            effects.append("the same GPU-hours")
    elif same_hours and advice.sent <= 0:
        effects.append("free")
    return ", ".join(effects)


def _offers_in_time(plan: Plan, days: float) -> Iterator[common.Offer]:
    """The offers for a plan that fits and is late: fewer tokens, or more GPUs."""
    if not plan.fits or in_time(plan, days):
        return
    tokens = rounded_down(plan.first_run_tokens(days))
    if _plan_in_time(plan, days, tokens=tokens):
        each = f"{units.digits(tokens / plan.parameters.active, 2)} per parameter"
        yield f"Tokens {units.short(tokens)}: in time, {each}", {"tokens": tokens}
    for n in (plan.split.num_gpus * 2**k for k in range(1, 6)):
        faster = _plan_in_time(plan, days, num_gpus=n)
        if faster:
            yield f"GPUs {n}: {_days(faster)} to promise, {_price(plan, faster)}", {"num_gpus": n}
            return


def _price(plan: Plan, other: Plan) -> str:
    """GPU-hours of another plan beside this one's, as far as that is known."""
    extra_cost = float(other.gpu_hours.likely / plan.gpu_hours.likely) - 1
    hours = "the same GPU-hours"
    if abs(extra_cost) >= 0.01:
        hours = f"{'+' if extra_cost > 0 else ''}{units.digits(100 * extra_cost, 2)}% GPU-hours"
    # at a given rate, or over unknown links, the seconds do not follow the split
    modelled = plan.step is not None and plan.run.flops_per_gpu is None
    return f"{hours} if {'the network keeps up' if modelled else 'each stays as fast'}"


def _plan_in_time(plan: Plan, days: float, **change: Unpack[Changes]) -> Plan | None:
    """The plan with this change, if it can be, fits and ends in time."""
    try:
        other = plan.replace(**change)
    except ValueError:  # the batch does not divide, or no batch is left
        return None
    return other if other.fits and in_time(other, days) else None


# --- code


def _code(setting: Setting, plan: Plan) -> str:
    options = {**setting.mesh, "recipe": setting.recipe}
    if setting.experts > 1:
        options["expert_parallel"] = setting.experts
    options["keep_gradients"] = setting.keeps_gradients
    options["price_per_gpu_hour"] = setting.price or None
    if setting.software != "any":
        options["software"] = setting.software
    if setting.format:
        options["format"] = setting.format
    if plan.run.flops_per_gpu is not None:
        options |= {"flops_per_gpu": float(plan.run.flops_per_gpu), "stops": plan.run.stops}
    written = ", ".join(f"{name}={value!r}" for name, value in options.items())
    path, step = setting.config.strip(), setting.seconds_per_iteration
    model = f"read_config({path!r}" if path else f"architecture({setting.model!r}"
    call = (
        f"plan_run(model, chip, {setting.num_gpus}, "
        f"{common.in_code(setting.tokens)}, {setting.global_batch_size},"
        f"\n    {written})"
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
    ("A pipeline of 4 stages", "70B on 8 H100s"),
    render,
)


# --- handles


DAYS, PRICE = Setting().days, Setting().price
"""The month that the page plans for, and dollars for an hour of its GPUs."""


def plan_of_month(model: str, tokens: int, num_gpus: int) -> Plan:
    """A plan on H100, with ZeRO 3 and nothing recomputed, all else as the page has it."""
    return planned(Setting(model, num_gpus=num_gpus, tokens=tokens))


@handle(
    "A model, its tokens and its GPUs: is the run done in time, and does it fit?",
    model=controls.choice(
        "Model", "One of three model sizes.", ("Llama-3.2-1B", "Llama-3.1-8B", "Llama-3.1-70B")
    ),
    tokens=replace(
        controls.TOKENS, least=10**9, stops=controls.steps(10**10, 10**13, 1, 1.5, 2, 3, 5, 7)
    ),
    num_gpus=replace(controls.GPUS, most=512, stops=controls.doublings(8, 512)),
    book=({}, {"tokens": 700_000_000_000}),
)
def month(
    model: str = "Llama-3.1-8B", tokens: int = 10**12, num_gpus: int = 64, previous: Any = None
) -> Shown:
    """The days and the bytes of a model, tokens and GPUs, against a month and a chip."""
    plan = plan_of_month(model, tokens, num_gpus)
    before = plan_of_month(**vars(previous)) if previous else None
    return answers(plan, DAYS, before), _sentence(plan, DAYS, None)


@cache
def _others() -> tuple[OtherRun, ...]:
    """What the page's plan would have taken at the rates of published runs."""
    return tuple(others_days(planned(Setting())))


@handle(
    "The days that other teams' utilization would mean for this plan.",
    software=controls.choice(
        "Software", "Whose software trains: NVIDIA's, someone else's, or any.", SOFTWARE
    ),
    seconds=slider(
        "Your step",
        "Seconds that you measured per step. 0 if you haven't.",
        (0, 5, 5.5, 6, 6.5, 7, 7.5, 8, 8.5, 9, 9.5, 10, 11, 12),
        unit="s",
        most=15,
        zero="not measured",
    ),
    book=({}, {"seconds": 8}),
)
def measured_step(software: Software = "any", seconds: float = 0) -> Shown:
    """The days that may be promised for the page's plan, without and with a measured step."""
    estimate, others = planned(Setting(software=software)), _others()
    plan = estimate.calibrated(seconds) if seconds else estimate
    picture = promise(plan, others, DAYS)
    times = _expected_and_promised(plan)
    if seconds:
        share = units.share(share_of_peak(plan, plan.days_of_steps.likely))
        return picture, f"{times}. While they compute, your GPUs reach {share} of their peak."
    faster = sum(run.days <= plan.first_run.greatest for run in others)
    share = units.share(share_of_peak(plan, plan.first_run.greatest))
    return picture, (
        f"{times}. {faster} of {len(others)} published runs would have kept that promise, but "
        f"your GPUs have to reach {share} of their peak."
    )


# --- the decision

_SIZES = tuple(
    int(units.read(units.size(count_parameters(model).total))) for model in map_models().values()
)
"""The models' parameters as people write them."""

_TOKENS = (
    *(10**9 * billions for billions in (10, 20, 50, 100, 150, 200, 300, 500, 760)),
    *controls.steps(10**12, 1.5e13, 1, 1.5, 2, 3, 5, 7),
)
"""What may be promised of the 8B is among them."""


@cache
def _releases() -> tuple[Release, ...]:
    """Published dense models and their tokens."""
    rows = [row for row in published.rows("tokens_per_parameter") if row["kind"] == "dense"]
    return tuple(Release(row["name"], row["parameters"], row["tokens"]) for row in rows)


@handle(
    "Model sizes against tokens, and what your GPUs can do in your days.",
    size=slider("Model", "Parameters of the model. We use the nearest of twelve shapes.", _SIZES),
    tokens=replace(controls.TOKENS, least=10**10, most=5 * 10**13, stops=_TOKENS),
    num_gpus=replace(controls.GPUS, least=8, most=MOST_GPUS, stops=(8, 64, 512)),
    days=slider("Days", "The days you have.", (14, 30, 90), least=1, most=1000, whole=False),
    book=({}, {"tokens": 760 * 10**9}),
)
def decision(
    size: int = 8 * 10**9, tokens: int = 10**12, num_gpus: int = 64, days: float = 30
) -> Shown:
    """What may be promised of a model on so many tokens, on the plane of all models and tokens."""
    plans, name = map_plans(num_gpus), nearest_shape(size, map_models())
    plan, picture = plans[name], decision_map(plans, name, tokens, days, PRICE, _releases())
    near = "" if size in _SIZES else f" (The nearest of the twelve shapes is {name}.)"
    if not plan.fits:
        *_, largest = (each for each, other in plans.items() if other.fits)
        gpus = units.plural(num_gpus, "GPU")
        text = f"<b>It doesn't fit on {gpus}.</b> The largest of these models that fits is "
        return picture, f"{text}{largest}.{near}"
    share = tokens / plan.run.tokens
    if in_time(plan, days / share):
        text = "<b>You can promise this.</b> Even if you're as slow as the slow runs, it's in time."
        return picture, f"{text}{near}"
    verdict = "Too late"
    if plan.days.likely * share <= days:
        verdict = "You can expect this, but not promise it"
    most = units.count(plan.first_run_tokens(days), 2)
    return picture, f"<b>{verdict}.</b> In {days:g} days, you can promise {most} tokens.{near}"
