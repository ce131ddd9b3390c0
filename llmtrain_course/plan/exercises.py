"""Exercises of chapter 09: memory, a measured step, a busy pipeline, a way to fit, a run."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from llmtrain_course.kit.exercise import (
    HINT,
    NOT_YET,
    TENFOLD,
    Answer,
    Design,
    Exercise,
    Grade,
    MultipleChoice,
    Numeric,
    Prediction,
    Question,
    design_of,
    entry,
    read_as,
)
from llmtrain_course.kit.kinds import FillIn
from llmtrain_course.parallelism.formulas import pipeline_schedule
from llmtrain_course.plan.formulas import map_plans
from llmtrain_course.plan.pictures import format_days
from llmtrain_helpers import units
from llmtrain_helpers.batch import data_parallel_size, global_batch_size
from llmtrain_helpers.checks import Result, choice, count
from llmtrain_helpers.duration import gpu_hours, seconds_from_iterations
from llmtrain_helpers.flops import EVERY_RECOMPUTE
from llmtrain_helpers.model.names import known_model
from llmtrain_helpers.plan.options import Changes
from llmtrain_helpers.plan.pace import STOPS
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.published import accelerator, architecture


def _format_days(number: float) -> str:
    return f"{units.digits(number)} days"


# --- plan-guess and plan-memory: the 70B in the plan of the 8B, and what that plan holds


@cache
def _page_plan(model: str = "Llama-3.1-8B") -> Plan:
    """The plan that the page begins with, for a model."""
    return plan_run(
        architecture(model, 8192),
        accelerator("H100"),
        64,
        10**12,
        512,
        recompute="none",
        zero_stage=3,
    )


def _why_no_fit() -> str:
    memory, small = _page_plan("Llama-3.1-70B").memory, _page_plan().memory
    states = memory.total - memory.activations - memory.transient
    factor = units.digits(memory.activations / small.activations, 2)
    return (
        f"ZeRO 3 leaves {units.gigabytes(states)} of the model's states on each GPU. "
        f"But the activations of one sequence need {units.gigabytes(memory.activations)}, "
        f"{factor}× as much as for the 8B, and they aren't sharded. There are 2.5× as many "
        f"layers, and they're 2× wider (keys, values and head grow less). The "
        f"loss needs {units.gigabytes(memory.transient)} more, half of it for the logits, and "
        "half for the embedding and head with their gradients, which ZeRO 3 gathers whole. So it "
        "doesn't fit."
    )


def _gathered(plan: Plan) -> Result:
    """What ZeRO 3 gathers for the loss, which is where these plans are fullest."""
    return plan.memory.transient - plan.memory.logits


def _memory(
    shared: float = 16, others: float = 1, gathered: float = 1, logits: float = 1
) -> Result:
    """The bytes on a GPU if so many share the states, so many the rest, and so much is gathered."""
    plan = _page_plan()
    of_sequence = plan.memory.activations + logits * plan.memory.logits
    return 16 * plan.parameters.total / shared + (of_sequence + gathered * _gathered(plan)) / others


def _memory_on_16() -> Result:
    """The bytes on a GPU of the page's plan with 16 of them, by the plan itself."""
    return _page_plan().replace(num_gpus=16).memory.total


# --- plan-tokens: how much the 70B can read


def _tokens_of_70b() -> float:
    """Tokens per parameter that 64 H100s can promise it in 30 days."""
    plan = map_plans(64)["Llama 3.1 70B"]
    return float(plan.first_run_tokens(30) / plan.parameters.total)


def _why_so_few() -> str:
    large, small = (_page_plan(f"Llama-3.1-{size}").parameters.total for size in ("70B", "8B"))
    times = f"{units.digits(large / small, 2)}×"
    return (
        f"The 70B is {times} as large, so each token needs about {times} as long. The 70B "
        f"therefore trains on that many fewer tokens, and shares them between {times} as many "
        f"parameters."
    )


# --- plan-stages: what a pipeline shares out


def _activations_of_first_stage() -> str:
    """The activations of the first of four stages beside those of one GPU with all layers."""
    share = pipeline_schedule(4, 8).in_flight(0) / 4
    return {0.25: "a quarter", 1: "the same", 4: "four times"}[share]


# --- plan-a: a measured step


def _computing_days() -> Result:
    """Computing days of 4 trillion tokens at 3.4 s a step."""
    return seconds_from_iterations(4e12, 1024, 4096, 3.4) / units.DAY


def _days_to_set_aside() -> float:
    return float(_computing_days() * STOPS[2])


# --- plan-b: a batch that keeps a pipeline busy

_STAGES, _GPUS, _MOST_IDLE = 8, 96, 0.1


@cache
def _fewest_micro_batches() -> int:
    """The least number of micro-batches that is enough, found by the schedule itself."""
    return next(
        micro_batches
        for micro_batches in range(1, 1000)
        if pipeline_schedule(_STAGES, micro_batches).idle <= _MOST_IDLE + 1e-9
    )


def _batch() -> Result:
    """The smallest global batch that keeps the pipeline busy enough."""
    d = data_parallel_size(_GPUS, pipeline_parallel=_STAGES)
    return global_batch_size(1, _fewest_micro_batches(), d)


# --- plan-c: which proposal

PROPOSALS: dict[str, Changes] = {
    "recompute": {"recompute": "full"},
    "CP 4": {"context_parallel": 4},
    "128 GPUs": {"num_gpus": 128},
    "4 stages": {"pipeline_parallel": 4, "zero_stage": 1},
}
"""What exercise plan-c offers, as changes of the plan."""

_BELIEFS = {
    "recompute": "You save the activations, but you add 33% more work, and another way adds none.",
    "CP 4": "Four GPUs share each sequence, so they also share its activations. Sending each "
    "other the keys and values is hidden behind the computing.",
    "128 GPUs": "ZeRO shards the states over more GPUs, but they were small already, and each "
    "GPU still stores the same activations.",
    "4 stages": "The first stage only needs 1/4 of the layers, but it stores up to four "
    "micro-batches, and it waits.",
}


def long_sequences() -> Plan:
    """The plan of plan-c: the page's 8B with sequences of 32,768 tokens."""
    return plan_run(
        architecture("Llama-3.1-8B", 32768),
        accelerator("H100"),
        64,
        5 * 10**11,
        128,
        recompute="none",
        zero_stage=3,
    )


def _proposal(name: str) -> Plan:
    return long_sequences().replace(**PROPOSALS[name])


def _longest_sequence(reserve: float = 1, states: float = 1, gathered: float = 1) -> float:
    """The tokens of a sequence with which that plan just fits: what a GPU keeps grows with them.

    `reserve`, `states` and `gathered` are 0 where somebody forgets them.
    """
    plan = long_sequences()
    grows = plan.memory.activations + plan.memory.logits
    of_states = plan.memory.total - grows - _gathered(plan)
    room = plan.card - reserve * plan.reserve - states * of_states - gathered * _gathered(plan)
    return float(plan.run.model.sequence_length * room / grows)


_LENGTH = Numeric(
    key=_longest_sequence,
    asked="tokens",
    unit=lambda number: f"{units.exact(int(number))} tokens, with nothing else changed",
    hint=(
        "Which of the bytes grow with the sequence, and which stay the same?",
        "States, embedding and head stay the same, and everything else is proportional to the "
        "sequence.",
    ),
    common_mistakes={
        _longest_sequence(states=0): "You've left out the states, which also need memory.",
        _longest_sequence(gathered=0): "You've left out what's gathered. Embedding and head are "
        "just as large for a short sequence.",
        _longest_sequence(states=0, gathered=0): "You've let everything grow with the "
        "sequence, but states, embedding and head stay the same.",
        _longest_sequence(reserve=0): "You've filled the card to its edge, but the reserve has to "
        "stay free.",
        _longest_sequence() / 1024: "That's in thousands. Give the tokens.",
    },
)


@cache
def _cheapest_proposal() -> str:
    """The proposal that fits with the fewest GPU-hours."""
    fitting = [name for name in PROPOSALS if _proposal(name).fits]
    return min(fitting, key=lambda name: float(_proposal(name).gpu_hours.likely))


def _sentence_on_proposal(name: str) -> str:
    """The reply to a proposal: its memory, its cost, and the belief behind it."""
    plan, original = _proposal(name), long_sequences()
    extra_cost = float(plan.gpu_hours.likely / original.gpu_hours.likely - 1)
    fits = "fits" if plan.fits else "doesn't fit"
    return (
        f"{'Right' if name == _cheapest_proposal() else 'No'}: each GPU needs "
        f"{units.gigabytes(plan.memory.total)}, "
        f"which {fits}, "
        f"at {100 * extra_cost:+.0f}% GPU-hours. {_BELIEFS[name]}"
    )


# --- plan-d: a plan of the learner's own

_ENTRIES = (
    "model",
    "chip",
    "gpus",
    "days",
    "tokens",
    "sequence",
    "batch",
    "micro",
    "tensor",
    "pipeline",
    "zero",
    "recompute",
)

_COMMON_LEAST, _NEAR = 20, 0.02
"""Tokens for each parameter (arXiv 2203.15556, Table 3); by how much a plan may miss."""


class OwnPlan(Exercise):
    """A plan that fits with its reserve, and keeps its promise: the slow end of its days."""

    hint = (
        "Which factor of the time can you change?",
        "You need fewer days if you train on fewer tokens, use more GPUs or don't recompute.",
        "Multiply your tokens by the days you have, and divide by the days to promise.",
    )

    def grade(self, answer: Answer) -> Grade:
        """Grade the plan by the first condition that doesn't hold."""
        design = design_of(answer, _ENTRIES, "model=…, gpus=…")
        if any(design[name] is None for name in _ENTRIES):
            return NOT_YET
        plan = _own_plan(design)
        limit = entry(design, "days")
        needs, expected = units.gigabytes(plan.memory.total), format_days(plan.days.likely)
        latest = plan.first_run.greatest
        if not plan.fits:
            return False, _why_not(plan)
        if latest > limit * (1 + _NEAR):
            return False, (
                f"It fits, because each GPU needs {needs}, but it's late: {expected} expected, "
                f"{latest:.1f} to promise, and your limit is {limit:g}. {HINT}"
            )
        if latest < limit / 10:
            return False, (
                f"It fits, and you can promise it in {latest:.1f} of your {limit:g} days. Train "
                "on more tokens, or train a larger model."
            )
        few_tokens = ""
        tokens_each = float(plan.run.tokens / plan.parameters.active)
        if tokens_each < _COMMON_LEAST * (1 - _NEAR):
            few_tokens = (
                f" But that's {units.digits(tokens_each, 2)} tokens per parameter, and "
                f"{_COMMON_LEAST} is a common minimum. If you train from scratch, a smaller model "
                "would be better."
            )
        near = ", which is close enough" if latest > limit else ""
        return True, (
            f"Right: {expected} expected, {latest:.1f} to promise, and your limit is "
            f"{limit:g}{near}. "
            f"Each GPU needs {needs}, with {units.gigabytes(plan.free_memory)} free. Set aside "
            f"{units.about(gpu_hours(units.DAY * latest, plan.split.num_gpus))} "
            f"GPU-hours.{few_tokens}"
        )


def _why_not(plan: Plan) -> str:
    """Say how much too much a plan needs, which part is the largest, and what makes it smaller."""
    needs = f"Each GPU needs {units.gigabytes(plan.memory.total)} of its"
    needs = f"{needs} {units.gigabytes(plan.card)}"
    problem = f"{needs}, so it doesn't fit."
    if plan.tight:
        reserve = units.gigabytes(plan.reserve)
        problem = f"{needs}. That's tight, because {reserve} should stay free."
    activations = plan.memory.activations
    states = plan.memory.total - activations - plan.memory.transient
    if states >= activations:
        return (
            f"{problem} The largest part is the model's states, {units.gigabytes(states)}; "
            f"activations need {units.gigabytes(activations)}. "
            "Raise zero, gpus or tensor, or choose a smaller model."
        )
    ways = ["raise zero"] if plan.run.zero_stage < 3 else []
    several = plan.split.micro_batch_size > 1
    ways.append("lower micro or sequence" if several else "shorten the sequence")
    return (
        f"{problem} The largest part is activations, {units.gigabytes(activations)}; "
        f"the model's states need {units.gigabytes(states)}. "
        f"{', '.join(ways).capitalize()}, or recompute."
    )


_ENTRY_OF = {
    "·context_parallel": "",
    "num_gpus": "gpus",
    "global_batch_size": "batch",
    "micro_batch_size": "micro",
    "sequence_length": "sequence",
    "tensor_parallel": "tensor",
    "pipeline_parallel": "pipeline",
    "data_parallel": "replicas",
    "zero_stage": "zero",
}
"""The learner's words for the arguments of a plan, for its refusals."""


def _own_plan(design: Design) -> Plan:
    """The plan of a learner's dictionary; a ValueError in its words if none can be."""
    try:
        return _plan_of_design(design)
    except ValueError as error:
        problem = str(error)
        for argument, name in _ENTRY_OF.items():
            problem = re.sub(rf"\b{argument}\b", name, problem)
        raise ValueError(problem) from None


def _plan_of_design(design: Design) -> Plan:
    counts = ("gpus", "tokens", "sequence", "batch", "micro", "tensor", "pipeline")
    number = {name: entry(design, name, count) for name in counts}
    recompute = choice("recompute", design["recompute"], EVERY_RECOMPUTE)
    stage: Any = read_as("zero", design["zero"])  # refused by the plan if it is none
    return plan_run(
        known_model(design["model"], number["sequence"]),
        accelerator(design["chip"]),
        number["gpus"],
        number["tokens"],
        number["batch"],
        recompute=recompute,
        micro_batch_size=number["micro"],
        tensor_parallel=number["tensor"],
        pipeline_parallel=number["pipeline"],
        zero_stage=stage,
        keep_gradients=(number["pipeline"] > 1 and stage > 1) or None,
    )


EXERCISES: dict[str, Exercise] = {
    "plan-memory": FillIn(
        key=_memory_on_16,
        unit=lambda size: f"{units.gigabytes(size)} on each GPU",
        hint=(
            "Which of the four are sharded?",
            "Each GPU stores the activations of its own sequence, and gathers the whole "
            "embedding and head.",
        ),
        common_mistakes={
            "You've sharded the activations as well, but each GPU works on its own sequence and "
            "stores all of them.": lambda: _memory(others=16),
            "You've sharded nothing. With ZeRO 3, each GPU stores 1/16 of the states.": (
                lambda: _memory(shared=1)
            ),
            "You've divided by 64 GPUs, but only 16 are left.": lambda: _memory(shared=64),
            "Those are only the states. Add activations, logits and what's gathered.": (
                lambda: _page_plan().parameters.total
            ),
            "You've left out what's gathered: at the loss each GPU has the whole embedding and "
            "head, with their gradients.": lambda: _memory(gathered=0),
            "You've sharded embedding and head as well, but at the loss they're gathered whole.": (
                lambda: _memory(gathered=1 / 16)
            ),
            "You've left out the logits: at the loss, each GPU stores two tables of them for its "
            "own sequence.": lambda: _memory(logits=0),
        },
    ),
    "plan-a": Numeric(
        key=_days_to_set_aside,
        asked="days",
        unit=_format_days,
        hint=(
            "First compute the number of steps, then their days, and then add the overhead.",
            "Divide the tokens by the tokens per step, which are 1,024 sequences of 4,096.",
        ),
        common_mistakes={
            **TENFOLD,
            "86400 * key": "Those are seconds. Divide by 86,400.",
            "24 * key": "Those are hours. Divide by 24.",
            "key / 128": "You've divided by 128, but the step was measured on all 128 GPUs.",
            "1024 * key": "You've counted one sequence per step, but there are 1,024.",
            "4096 * key": "You've counted sequences instead of tokens, but each is 4,096 tokens "
            "long.",
            _computing_days(): "Those are only the days of the steps. Add the overhead.",
            _computing_days()
            * STOPS[0]: f"You've added the smallest overhead of the seven runs, but the worst was "
            f"{units.share(STOPS[2] - 1)}.",
            _computing_days() * (STOPS[2] - 1): "That's only the overhead. Add the steps.",
            _computing_days()
            / (2 - STOPS[2]): f"You've treated the overhead as a share of the whole run, but it's "
            f"{units.share(STOPS[2] - 1)} on top of them.",
        },
    ),
    "plan-b": Numeric(
        key=_batch,
        asked="sequences",
        unit=lambda number: f"{units.exact(number)} sequences",
        tolerance=0,
        hint=(
            "How many micro-batches does each replica need?",
            "(p − 1)/(m + p − 1) of the step is idle, and that has to be 10%.",
        ),
        common_mistakes={
            "8 * key": "You've counted every GPU as a replica, but eight GPUs share each replica.",
            63: "Those are the micro-batches of one replica, but there are twelve replicas.",
            12
            * 70: "You've used 10% of the useful time, (p − 1)/m, but the idle share of the step "
            "is (p − 1)/(m + p − 1).",
            12 * 72: "You've used p instead of p − 1, but a stage doesn't wait for itself.",
            70: "Those are the micro-batches of one replica, for 10% of the useful time.",
            12 * 62: "One micro-batch fewer leaves slightly more than 10% of the step idle.",
            12 * 9: "You've also divided by the number of stages, (p − 1)/(p·m), but every stage "
            "waits for p − 1 turns.",
        },
    ),
    "plan-c": MultipleChoice(
        key=_cheapest_proposal,
        options={name: _sentence_on_proposal(name) for name in PROPOSALS},
        followups=[
            Question(
                "Of the 233 GB, 2.01 GB are states and 4.20 GB are the gathered embedding and "
                "head, and the plan may fill 80.4 GB. If you only change the length of the "
                "sequences, how many tokens long can they be so that it just fits?",
                _LENGTH,
            )
        ],
    ),
    "plan-d": OwnPlan(),
}

PREDICTIONS: dict[str, Prediction] = {
    "plan-guess": Prediction(
        truth=lambda: _page_plan("Llama-3.1-70B").memory.total / 1e9,
        unit=lambda number: f"{units.digits(number)} GB",
        asked="GB",
        why=_why_no_fit(),
    ),
    "plan-tokens": Prediction(
        truth=_tokens_of_70b,
        asked="tokens",
        unit=lambda number: f"{units.digits(number, 2)} tokens per parameter",
        why=_why_so_few(),
    ),
    "plan-stages": Prediction(
        truth=_activations_of_first_stage,
        options={
            "a quarter": "For one micro-batch, that's true, but the stage starts more of them "
            "before the first one is back.",
            "the same": "It stores 1/4 of the layers for four micro-batches at once.",
            "four times": "It stores four micro-batches, but each one only for 1/4 of the layers.",
        },
        why="Watch the column “keeps” while you change the number of stages.",
    ),
}
