"""Chapter 07: the panel of who sends what to whom, and how long; its handles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from llmtrain_course.communication.formulas import SharedMlp, beside_backward
from llmtrain_course.communication.pictures import (
    LONGEST,
    MIB,
    message_rates,
    milliseconds,
    neighbour_grid,
    of_first_stage,
    ring_circle,
    sending,
    shared_matrices,
    spread_over_nodes,
    step_bar,
    time_line,
    who_sends,
)
from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.drawing import STEP_PARTS
from llmtrain_course.plan.handles import RECOMPUTED
from llmtrain_course.plan.pictures import parts_of
from llmtrain_helpers import published, units
from llmtrain_helpers.communication import (
    BesideBackward,
    RingTurn,
    all_reduce_seconds,
    bandwidth_of,
    ring_turn,
)
from llmtrain_helpers.flops import EveryRecompute
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.plan.seconds import StepSeconds


def _has_known_step(chip: str) -> bool:
    """Whether a chip's links, and its best rate of a matrix product, are known."""
    device = published.accelerator(chip)
    return bandwidth_of(device, 1) is not None and device.matmul_share is not None


CHIPS = tuple(filter(_has_known_step, published.names("accelerators")))
"""The chips whose step can be timed."""


@dataclass(frozen=True)
class Setting(controls.Split):
    """A split, and in how many pieces each stage of a pipeline is cut."""

    model: str = "Llama-3.1-70B"
    tensor_parallel: int = 8
    recompute: EveryRecompute = "full"
    global_batch_size: int = 256
    interleave: int = 1

    @property
    def pieces(self) -> int:
        """Pieces of each stage, where there is a pipeline."""
        return self.interleave if self.pipeline_parallel > 1 else 1

    @property
    def keeps_gradients(self) -> bool:
        """Whether gradients that could be sharded are kept whole between the passes."""
        return self.zero_stage > 1 and self.gradients == "whole"

    @property
    def step_tokens(self) -> int:
        """Tokens of one step, which is all that is planned here."""
        return self.global_batch_size * self.sequence_length


_SETTINGS = {
    "70B on 64 H100": Setting(),
    "GPT-3 on 512 A100": Setting(
        "GPT-3 175B",
        "A100 80GB SXM",
        num_gpus=512,
        pipeline_parallel=8,
        micro_batch_size=2,
        global_batch_size=1536,
        sequence_length=2048,
    ),
    "Little work for each": Setting(
        "Qwen2.5-7B",
        num_gpus=1024,
        tensor_parallel=1,
        recompute="none",
        global_batch_size=1024,
        sequence_length=2048,
    ),
    "A small model, cut fine": Setting(
        "Llama-3.2-1B",
        "A100 80GB SXM",
        num_gpus=8,
        recompute="none",
        micro_batch_size=4,
        global_batch_size=512,
        sequence_length=2048,
    ),
    "8B on 64 H100, of communication-b": Setting(
        "Llama-3.1-8B", recompute="none", global_batch_size=512
    ),
    "405B on 16,384 H100, of communication-c": Setting(
        "Llama-3.1-405B", num_gpus=16384, global_batch_size=2048
    ),
    "A mixture of experts": Setting(
        "Mixtral-8x7B", tensor_parallel=2, expert_parallel=4, global_batch_size=512
    ),
    "A split that does not divide": Setting(num_gpus=100),
}

_CONTROLS = {
    "tensor_parallel": replace(controls.TENSOR_PARALLEL, stops=controls.doublings(1, 16)),
    "pipeline_parallel": replace(controls.PIPELINE_PARALLEL, stops=controls.doublings(1, 32)),
    "num_gpus": replace(
        controls.GPUS,
        help="All GPUs of the run; those that the split leaves are replicas.",
        most=1_000_000,
        stops=controls.doublings(8, 16384),
    ),
    "model": controls.MODEL,
    "zero_stage": controls.ZERO_STAGE,
    "recompute": RECOMPUTED,
    "chip": controls.choice("Accelerator", "The chip, and its links.", CHIPS, more=True),
    "micro_batch_size": replace(
        controls.MICRO_BATCH, help="Sequences at once in a replica.", most=100_000, more=True
    ),
    "global_batch_size": controls.BATCH,
    "sequence_length": controls.SEQUENCE,
    "context_parallel": controls.CONTEXT_PARALLEL,
    "expert_parallel": controls.EXPERT_PARALLEL,
    "interleave": common.Control(
        "Pieces for each stage",
        "Pieces of the model that each GPU of a pipeline holds.",
        most=100,
        more=True,
        applies=lambda setting: setting.pipeline_parallel > 1,
    ),
    "gradients": controls.GRADIENTS,
}


def planned(setting: Setting) -> Plan:
    """The plan of a setting; a ValueError in words where it makes none."""
    model = published.architecture(setting.model, setting.sequence_length)
    setting.check_replicas(model)
    return plan_run(
        model,
        published.accelerator(setting.chip),
        setting.num_gpus,
        setting.step_tokens,
        setting.global_batch_size,
        keep_gradients=setting.keeps_gradients,
        uneven_stages=True,
        expert_parallel=setting.experts,
        interleave=setting.pieces,
        **setting.mesh,
    )


def render(setting: Setting, before: Setting | None = None, narrow: bool = False) -> str:
    """Sentence, the GPUs, the step, the numbers, and the call in code."""
    plan, old = planned(setting), planned(before) if before else None
    pictures = who_sends(plan, narrow).inline_svg() + step_bar(plan, old, narrow).inline_svg()
    return "".join(
        [
            common.sentence(_sentence(plan, old)),
            f"<div>{pictures}</div>",
            common.folded("The numbers", _tables(plan)),
            common.folded("In code", common.call(_code(setting))),
        ]
    )


def _step(plan: Plan) -> StepSeconds:
    assert plan.step is not None  # only chips whose step is known can be chosen
    return plan.step


def _sentence(plan: Plan, old: Plan | None) -> str:
    step = _step(plan)
    result = f"A step takes <b>{units.seconds(step.total)}</b>"
    if old and _step(old).total != step.total:
        result += f" (dashed: {units.seconds(_step(old).total)})"
    visible = sum(part.visible for part in sending(plan).values())
    result += f", <b>{units.share(visible / step.total)}</b> of it sending that nothing hides"
    if step.bubble:
        result += f", {units.share(step.bubble / step.total)} waiting"
    size = units.gigabytes(plan.memory.total)
    memory = units.gigabytes(plan.run.accelerator.memory)
    if plan.fits or plan.tight:
        fits = "fits" if plan.fits else "tight"
        return f"{result}. A GPU holds {size} of {memory}: <b>{fits}</b>."
    return f"{result}. A GPU would need {size} and has {memory}: <b>does not fit</b>."


def _tables(plan: Plan) -> str:
    """What is sent, part by part; the step, piece by piece; what a GPU holds."""
    step = _step(plan)
    sent = [
        [
            name,
            units.gigabytes(part.sent),
            units.exact(part.others),
            units.seconds(part.seconds),
            units.seconds(part.visible) if part.visible else "0 s",
        ]
        for name, part in sending(plan).items()
    ]
    pieces = [
        [STEP_PARTS[name].name, units.seconds(seconds), units.share(seconds / step.total)]
        for name, seconds in step.parts().items()
        if seconds
    ]
    memory = [[name, units.gigabytes(size)] for name, size in parts_of(plan).items()]
    head = ["one GPU sends in a step", "bytes", "with others", "takes", "seen"]
    others = plan.seconds_per_iteration
    note = (
        "<p>Seconds of a model that leaves out what software loses: it compares splits. "
        "At the pace of others' software, whichever it is, the step takes "
        f"{units.seconds(others.least)} to {units.seconds(others.greatest)}.</p>"
    )
    return "".join(
        [
            common.table(head, sent) if sent else "<p>Nothing is sent.</p>",
            common.table(["the step", "", ""], pieces),
            note,
            common.table(["one GPU holds", ""], memory),
        ]
    )


def _code(setting: Setting) -> str:
    given = {
        **setting.mesh,
        "expert_parallel": setting.experts,
        "interleave": setting.pieces,
        "keep_gradients": setting.keeps_gradients,
    }
    options = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return (
        f"model = published.architecture({setting.model!r}, {setting.sequence_length})\n"
        f"chip = published.accelerator({setting.chip!r})\n"
        f"plan = plan_run(model, chip, {setting.num_gpus}, {setting.step_tokens}, "
        f"{setting.global_batch_size}, uneven_stages=True,\n    {options})\n"
        "plan.sent, plan.step"
    )


PANEL = common.Panel(
    "Who sends what to whom?",
    _CONTROLS,
    _SETTINGS,
    ("A small model, cut fine", "Little work for each"),
    render,
    partial(render, narrow=True),
)


# --- the handles

GRADIENTS = 16e9
"""Bytes of the gradients that go round: 8 billion parameters in 16 bits."""


@dataclass(frozen=True)
class Neighbours:
    """A split of 64 H100 that train a 70B, and which of them share a node."""

    tensor_parallel: int = 8
    pipeline_parallel: int = 1
    node: str = "share matrices"

    @property
    def replicas(self) -> bool:
        """Whether a node holds replicas, and those that share matrices stand apart."""
        return self.node != "share matrices"

    @property
    def plan(self) -> Plan:
        """The plan of this split, with all layers computed again and ZeRO 1."""
        split = {name: getattr(self, name) for name in ("tensor_parallel", "pipeline_parallel")}
        return planned(replace(Setting(), **split))


def _draw_neighbours(
    setting: Neighbours, before: Neighbours | None = None, narrow: bool = False
) -> str:
    plan, most = setting.plan, sending(Neighbours().plan)["tensor"].sent
    old = before.plan if before else None
    picture = neighbour_grid(plan, most, old, replicas=setting.replicas, narrow=narrow)
    parts = of_first_stage(plan, spread_over_nodes(plan) if setting.replicas else sending(plan))
    if setting.tensor_parallel > 1 and not parts["tensor"].inside:
        far, near = (x["tensor"].seconds for x in (parts, sending(plan)))
        caption = (
            f"<b>The sums of the layers cross the network.</b> They take {units.seconds(far)}, "
        )
        caption += f"and took {units.seconds(near)} inside a node."
    elif setting.tensor_parallel > 1:
        sums = parts["tensor"].sent / sum(part.sent for part in parts.values())
        share = units.share(sums) if sums < 0.995 else "Over 99 %"
        caption = f"<b>{share} of its bytes are sums of the layers, and stay in the node.</b>"
        others = sum(x.sent for x in parts.values() if not x.inside)
        if others:
            rest = units.about(others, units.gigabytes)
            caption += f" The other {rest} need the network."
    else:
        caption = "Nobody shares a matrix. All that is sent are gradients and new weights"
        caption += ", and what passes from stage to stage." if len(parts) > 1 else "."
    return common.pictured(picture, caption)


NEIGHBOURS = common.Handle(
    title="Whom GPU 1 talks to",
    controls={
        "tensor_parallel": replace(_CONTROLS["tensor_parallel"], most=8, stops=(1, 2, 4, 8)),
        "pipeline_parallel": replace(_CONTROLS["pipeline_parallel"], most=8, stops=(1, 2, 4, 8)),
        "node": controls.choice(
            "GPUs of a node",
            "Whether a node holds GPUs that share matrices, or replicas.",
            ("share matrices", "are replicas"),
        ),
    },
    settings={"": Neighbours()},
    draw=_draw_neighbours,
    narrow=partial(_draw_neighbours, narrow=True),
)


MACHINES = {
    "8 H100": ("ND_H100", 8),
    "16 H100": ("nebius", 16),
    "8 B200": ("P6-B200, NCCL", 8),
    "32 B200": ("EFA v4", 32),
}
"""Measured series of all-reduces: a word of the source, and how many GPUs took part."""


@dataclass(frozen=True)
class Message:
    """An all-reduce of so many MiB."""

    size: float = 128

    @property
    def bytes(self) -> int:
        """Its bytes, those of the nearest stop: only there was measured."""
        return int(MIB * min(MESSAGE.controls["size"].stops, key=self._far))

    def _far(self, stop: float) -> float:
        return max(stop / self.size, self.size / stop)


def _draw_message(setting: Message, before: Message | None = None, narrow: bool = False) -> str:
    series = {name: published.all_reduce_rates(word) for name, (word, _) in MACHINES.items()}
    size = setting.bytes
    taken = {
        name: float(all_reduce_seconds(size, gpus, series[name][size]))
        for name, (_, gpus) in MACHINES.items()
    }
    picture = message_rates(series, taken, size, narrow)
    first, last = min(taken.values()), max(taken.values())
    caption = f"A message of <b>{common_size(size)}</b> takes {units.seconds(first)} to "
    caption += f"{units.seconds(last)}."
    half = [name for name, rates in series.items() if rates[size] < max(rates.values()) / 2]
    caption += f" {_machines(len(half))} half of their best rate."
    return common.pictured(picture, caption)


def common_size(size: int) -> str:
    """The bytes of a message in MiB or GiB, as a slider says them."""
    return f"{size / MIB:g} MiB" if size < 1024 * MIB else f"{size / MIB / 1024:g} GiB"


def _machines(slow: int) -> str:
    if slow == len(MACHINES):
        return "None of the four reaches"
    return "All four reach" if not slow else f"{units.plural(slow, 'machine')} of 4 miss"


MESSAGE = common.Handle(
    title="Small messages and large ones",
    controls={
        "size": common.Control(
            "Message",
            "Bytes on each GPU that are added up.",
            unit="MiB",
            least=0.125,
            most=8192,
            whole=False,
            stops=tuple(2.0**k for k in range(-3, 14)),
        )
    },
    settings={"": Message()},
    draw=_draw_message,
    narrow=partial(_draw_message, narrow=True),
)


@dataclass(frozen=True)
class Matrices:
    """GPUs that share two matrices, and how many steps are done."""

    step: int = 0
    gpus: int = 2


def _of_matrices(mlp: SharedMlp, step: int) -> str:
    """What a step of the shared matrices did, with one of its sums."""
    column = [row[0] for row in mlp.first]
    product = " + ".join(f"{x} · {w}" for x, w in zip(mlp.token, column, strict=True))
    first, back = (
        [part(i)[0] for i in range(mlp.gpus)] for part in (mlp.partial, mlp.partial_error)
    )
    return (
        "Each GPU has the whole token, and only its share of the two matrices.",
        f"Forward. Each GPU computes hidden numbers, {product} = {mlp.hidden(0)[0]} first. "
        "<b>Nothing had to be sent.</b>",
        "Each GPU has all numbers of the result, but only a part of each sum. All are wrong.",
        f"<b>An all-reduce</b> adds the parts up, {_sum(first)}. Until then nobody can go on.",
        "Backward. The errors pass the second matrix, and again nothing is sent.",
        "The error of the token is there, in parts.",
        f"Backward, <b>a second all-reduce</b> adds up the errors, {_sum(back)}. "
        "Now the layer below can go on.",
    )[step]


def _sum(parts: Sequence[int]) -> str:
    return f"{' + '.join(map(str, parts))} = {sum(parts)}"


def _draw_matrices(setting: Matrices, before: Matrices | None = None, narrow: bool = False) -> str:
    mlp = SharedMlp(gpus=setting.gpus)
    caption = _of_matrices(mlp, setting.step)
    if setting.gpus == 1 and setting.step:
        caption = "One GPU has everything. It gets the same numbers, and waits for nobody."
    return common.pictured(shared_matrices(mlp, setting.step, narrow), caption)


SHARED_MATRICES = common.Handle(
    title="Two matrices on several GPUs",
    controls={
        "step": common.Control(
            "Step",
            "What is done: three steps forward, three steps back.",
            least=0,
            most=6,
            stops=tuple(range(7)),
            play=True,
        ),
        "gpus": common.Control("GPUs", "How many share the matrices.", most=2, stops=(1, 2)),
    },
    settings={"": Matrices()},
    draw=_draw_matrices,
    narrow=partial(_draw_matrices, narrow=True),
)


@dataclass(frozen=True)
class TimeLine:
    """The last backward pass of an 8B on 64 H100, each of them a replica."""

    tokens: int = 2560
    messages: int = 8
    moment: int = LONGEST

    @property
    def last(self) -> BesideBackward:
        """That pass at the chip's peak, and its gradients by the eight cards of each node."""
        h100 = published.accelerator("H100")
        egress = h100.gpus_per_node * h100.network_bandwidth
        return beside_backward(
            int(GRADIENTS / 2), self.tokens, h100.peak("bf16"), 64, egress, self.messages
        )

    @property
    def end(self) -> int:
        """The stop of the slider of time at which all has arrived."""
        return 10 * ceil(100 * self.last.end)


def _draw_time_line(setting: TimeLine, before: TimeLine | None = None, narrow: bool = False) -> str:
    last = setting.last
    caption = f"Backward takes {milliseconds(last.backward)}, the gradients "
    caption += f"{milliseconds(last.sending)}. <b>{milliseconds(last.visible)} show.</b> "
    if setting.messages == 1:
        caption += "A single message waits for the last layer, so nothing of it hides."
    elif last.backward >= last.sending:
        caption += "All hide but the last message."
    elif last.backward >= last.sending - last.starts:
        caption += f"To begin so many messages takes {milliseconds(last.starts)}, so they queue."
    else:
        caption += "The messages queue. There are too few tokens to hide them."
    picture = time_line(last, min(setting.moment, setting.end), narrow)
    return common.pictured(picture, caption)


TIME_LINE = common.Handle(
    title="Sending beside computing",
    controls={
        "tokens": common.Control(
            "Tokens of the pass",
            "Tokens that each GPU has in its last backward pass.",
            unit="tokens",
            least=256,
            most=4096,
            stops=(256, 512, 1024, 1536, 2048, 2560, 3072, 3584, 4096),
        ),
        "messages": common.Control(
            "Messages",
            "In how many messages the gradients leave.",
            most=512,
            stops=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
        ),
        "moment": common.Control(
            "Time",
            "How many milliseconds of the pass are drawn.",
            unit="ms",
            least=0,
            most=LONGEST,
            stops=tuple(range(0, LONGEST + 1, 10)),
            play=True,
            reach=lambda setting: setting.end,
        ),
    },
    settings={"": TimeLine()},
    draw=_draw_time_line,
    narrow=partial(_draw_time_line, narrow=True),
)


@dataclass(frozen=True)
class Ring:
    """A ring of GPUs, and how many of its turns are done."""

    gpus: int = 8
    turn: int = 3

    @property
    def state(self) -> RingTurn:
        """The ring after this turn; a turn that it does not have is its last one."""
        return ring_turn(self.gpus, min(self.turn, self.turns))

    @property
    def turns(self) -> int:
        """How many turns it has."""
        return ring_turn(self.gpus, 0).turns


_RING = {
    "gpus": common.Control(
        "GPUs", "How many GPUs stand in the ring.", least=2, most=64, stops=(2, 3, 4, 8, 16, 64)
    ),
    "turn": common.Control(
        "Turn",
        "How often each GPU has handed a piece to the next one.",
        least=0,
        most=126,
        stops=tuple(range(127)),
        play=True,
        reach=lambda setting: setting.turns,
    ),
}


def draw_ring(setting: Ring, before: Ring | None = None, narrow: bool = False) -> str:
    """The ring after a turn, and what that turn did."""
    state = setting.state
    n, turn, turns = state.gpus, state.turn, state.turns
    each, now, in_all = (
        units.edited(ring_turn(n, x).sent_bytes(GRADIENTS), units.gigabytes)
        for x in (1, turn, turns)
    )
    sent = f"GPU 1 has sent <b>{now}</b> of {in_all}."
    if not turn:
        does = f"Each GPU holds its own gradients, cut into {n} pieces."
        sent = f"By the end each will have sent <b>{in_all}</b>."
    elif turn < n - 1:
        does = f"Each GPU hands a piece of {each} to the next one, which adds it to its own."
    elif turn == n - 1:
        does = "Each GPU owns one finished piece: the sum over all."
    elif turn < turns:
        does = f"The finished pieces of {each} go round; nothing is added any more."
    else:
        does = "Every GPU has every finished piece."
    return common.pictured(ring_circle(state, GRADIENTS, narrow), f"{does} {sent}")


RING = common.Handle(
    title="A ring of GPUs",
    controls=_RING,
    settings={"start": Ring()},
    draw=draw_ring,
    narrow=partial(draw_ring, narrow=True),
)
