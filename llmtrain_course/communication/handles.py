"""Chapter 07: handles of a ring, messages, overlap and FSDP; the panel of your own machine."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from llmtrain_course.communication import pictures
from llmtrain_course.communication.formulas import (
    BackwardOverlap,
    all_reduce_rates,
    backward_overlap,
    ring_rate,
    ring_turn,
)
from llmtrain_course.communication.fsdp import ShardedStep, layers_in_time, sharded_step
from llmtrain_course.communication.machine import exchange, step_lanes
from llmtrain_course.communication.pictures import milliseconds
from llmtrain_course.kit import controls, layout, panel as common
from llmtrain_course.kit.formulas import published_model
from llmtrain_course.kit.handle import ByHand, Shown, handle, slider
from llmtrain_course.parallelism import handles as parallelism
from llmtrain_helpers import published, units
from llmtrain_helpers.communication import LATENCY, all_reduce_seconds
from llmtrain_helpers.model.transformer import of_length
from llmtrain_helpers.plan.plan import Plan

GRADIENTS = 16e9
"""Bytes of the gradients that go round: 8 billion parameters in 16 bits."""

# --- small messages and large ones

MACHINES = {
    "8 H100s": ("ND_H100", 8),
    "16 H100s": ("nebius", 16),
    "8 B200s": ("P6-B200, NCCL", 8),
    "32 B200s": ("EFA v4", 32),
}
"""Measured series of all-reduces: a word of the source, and how many GPUs took part."""

MIB = 2**20
_SIZES = tuple(2.0**k for k in range(-3, 14))
"""MiB of the messages that were measured."""


@handle(
    "The measured seconds of one all-reduce on four machines, by its size.",
    size=slider("Message", "Bytes per GPU that are added up.", _SIZES, unit="MiB", between=False),
    book=({"size": 1.0}, {"size": 8192.0}),
)
def message(size: float = 128) -> Shown:
    """Show an all-reduce of so many MiB on four machines."""
    num_bytes = int(MIB * size)
    series = {name: all_reduce_rates(word) for name, (word, _) in MACHINES.items()}
    seconds = {
        name: float(all_reduce_seconds(num_bytes, gpus, series[name][num_bytes]))
        for name, (_, gpus) in MACHINES.items()
    }
    first, last = (units.seconds(end(seconds.values())) for end in (min, max))
    slow = sum(rates[num_bytes] < max(rates.values()) / 2 for rates in series.values())
    reach = f"{slow} of the four reach less than half their best rate."
    if slow in (0, len(MACHINES)):
        way = "less than half their best rate" if slow else "half their best rate or more"
        reach = f"All four reach {way}."
    caption = f"A <b>{_mebibytes(num_bytes)}</b> message needs {first} to {last}. {reach}"
    return pictures.message_rates(series, seconds, num_bytes), caption


def _mebibytes(size: int) -> str:
    """The bytes of a message in MiB or GiB, as a slider says them."""
    return f"{size / MIB:g} MiB" if size < 1024 * MIB else f"{size / MIB / 1024:g} GiB"


# --- sending under computing


def last_backward(tokens: int, messages: int) -> BackwardOverlap:
    """The last backward pass of an 8B on 64 H100s, each a replica, and its gradients' messages.

    At the chip's peak; the eight cards of each node send.
    """
    h100 = published.accelerator("H100")
    rates = h100.peak("bf16"), 64, ring_rate(h100, 64)
    return backward_overlap(int(GRADIENTS / 2), tokens, *rates, messages)


@handle(
    "One step's timeline: backward on one lane, the messages with its gradients on the other.",
    tokens=slider(
        "Tokens",
        "Tokens per GPU in its last backward pass.",
        (256, 512, 1024, 1536, 2048, 2560, 3072, 3584, 4096),
        unit="tokens",
    ),
    messages=slider(
        "Messages",
        "How many messages the gradients are split into.",
        (1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    ),
    moment=slider(
        "Time",
        "How much of the time to the last message's arrival is drawn.",
        tuple(range(0, 101, 5)),
        unit="%",
        play=True,
    ),
    book=({}, {"messages": 1}),
)
def time_line(tokens: int = 2560, messages: int = 8, moment: int = 100) -> Shown:
    """What of the gradients hides behind the last backward pass, and what's exposed."""
    last = last_backward(tokens, messages)
    now = last.end * (moment / 100)
    caption = f"Backward needs {milliseconds(last.backward)}, and sending needs "
    caption += f"{milliseconds(last.sending)}. "
    if moment < 100:
        arrived = sum(end <= now for _, end in last.spans)
        caption += f"Messages that have arrived: {arrived} of {messages}."
        return pictures.time_line(last, now), caption
    caption += f"<b>{milliseconds(last.visible)} are exposed.</b> "
    if messages == 1:
        caption += "A single message has to wait for the last layer, so none of it is hidden."
    elif last.backward >= last.sending:
        caption += "All messages but the last are hidden."
    elif last.backward >= last.sending - last.starts:
        caption += f"Starting so many messages costs {milliseconds(last.starts)}, so they queue."
    else:
        caption += "The messages queue, because there are too few tokens to hide them."
    return pictures.time_line(last, now), caption


# --- a ring, one turn at a time


def _turns(gpus: int) -> int:
    """How many turns a ring has."""
    return ring_turn(gpus, 0).turns


@handle(
    "A ring all-reduce, turn by turn: each GPU sends only to the next one.",
    gpus=slider("GPUs", "How many GPUs are in the ring.", (2, 3, 4, 8, 16, 64)),
    turn=slider(
        "Turn",
        "How often each GPU has passed a piece to the next.",
        tuple(range(_turns(64) + 1)),
        play=True,
        reach=lambda setting: _turns(setting.gpus),
    ),
    book=({"turn": 7}, {"turn": 14}),
)
def ring(gpus: int = 8, turn: int = 3) -> Shown:
    """The ring after a turn, and what that turn did; a turn that it doesn't have is its last."""
    turns = _turns(gpus)
    state = ring_turn(gpus, min(turn, turns))
    each, now, in_all = (
        units.edited(ring_turn(gpus, x).sent_bytes(GRADIENTS), units.gigabytes)
        for x in (1, state.turn, turns)
    )
    sent = f"GPU 1 has sent <b>{now}</b> of {in_all}."
    if not state.turn:
        does = f"Each GPU has its own gradients, cut into {gpus} pieces."
        sent = f"By the end, each GPU will have sent <b>{in_all}</b>."
    elif state.turn < gpus - 1:
        does = f"Each GPU passes a {each} piece to the next one, which adds it to its own."
    elif state.turn == gpus - 1:
        does = "Each GPU now owns one finished piece, the sum over all GPUs."
    elif state.turn < turns:
        does = f"The finished {each} pieces are passed round, without any more adding."
    else:
        does = "Every GPU has every finished piece."
    return ByHand(partial(pictures.ring_circle, state, GRADIENTS)), f"{does} {sent}"


# --- a layer comes, works and goes

LAYERS = 4
_PIECES = 4 * LAYERS + LAYERS - 1
"""Layers that are drawn, and their pieces of work: the last layer is fetched once."""


def four_layers(tokens: int) -> ShardedStep:
    """A step of four layers of Llama 3.1 8B on 64 H100s whose weights are sharded.

    At the chip's peak; the eight cards of each node send 16-bit weights and gradients.
    """
    h100 = published.accelerator("H100")
    model = published.architecture("Llama-3.1-8B")
    P = int(model.layers[0][1].parameters(model.hidden_size))
    half = all_reduce_seconds(P, 64, ring_rate(h100, 64))  # of an all-reduce of 2P bytes
    fetch = float(half + LATENCY)
    return sharded_step(LAYERS, fetch, 2 * P * tokens / h100.peak("bf16"))


@handle(
    "FSDP at work: each layer's weights arrive, compute and leave again.",
    tokens=slider(
        "Tokens",
        "Tokens that each GPU trains on per step.",
        (1024, 1536, 2048, 2560, 3072, 4096),
        unit="tokens",
    ),
    moment=slider(
        "Moment", "How many pieces of work are done.", tuple(range(_PIECES + 1)), play=True
    ),
    book=({}, {"tokens": 1024}),
)
def sharded_layers(tokens: int = 4096, moment: int = _PIECES) -> Shown:
    """Where each layer's weights are while a step goes on, and when the GPU has to wait."""
    step = four_layers(tokens)
    now = step.work[moment - 1].end if moment else 0.0
    waits = f"The GPU waits {milliseconds(step.waiting)} of the {milliseconds(step.end)} step."
    return layers_in_time(step, now), f"{_what_ends(step, moment)} <b>{waits}</b>"


def _what_ends(step: ShardedStep, moment: int) -> str:
    """What's true once the last piece of work is done."""
    if not moment:
        return "Each GPU stores 1/64 of every layer."
    done = step.work[moment - 1]
    layer = f"Layer {done.layer}"
    if done.kind == "forward" and done.layer == LAYERS:
        return (
            f"{layer} has done its forward pass, and isn't dropped because backward needs it next."
        )
    return (
        layer
        + {
            "fetch": " is complete on this GPU, because the others have sent their 63/64.",
            "forward": " has done its forward pass, and the 63/64 are dropped.",
            "backward": " has done its backward pass, and the 63/64 are dropped again.",
            "scatter": "'s gradients are summed, and this GPU stores its 1/64 of them.",
        }[done.kind]
    )


# --- the panel: the ring and FSDP on a machine of your own

STAGES = {"nothing": 0, "the optimizer (ZeRO 1)": 1, "everything (FSDP)": 3}
"""What replicas shard, and the stage of ZeRO that does it."""

LONGEST_SEQUENCE, MOST_TOKENS = 8192, 65536
"""Tokens of the longest sequence, and the most tokens of a pass."""


@dataclass(frozen=True)
class Setting:
    """Replicas of a model, one on each GPU, and what each one works on before an update."""

    model: str = "Llama-3.1-8B"
    chip: str = "H100 SXM"
    num_gpus: int = 64
    tokens: int = 1024
    sharded: str = "everything (FSDP)"
    passes: int = 1

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence: 8,192, or what the model was trained on if it's less."""
        return min(int(published_model(self.model).sequence_length), LONGEST_SEQUENCE)

    @property
    def split(self) -> parallelism.Setting:
        """The same as a split of chapter 08: replicas only, with sequences of equal length."""
        sequences = ceil(self.tokens / self.longest)
        if self.tokens % sequences:
            parts = f"{sequences} equal sequences of up to {self.longest:,}"
            raise ValueError(f"tokens={self.tokens} can't be split into {parts}")
        return parallelism.Setting(
            self.model,
            self.chip,
            self.num_gpus,
            tensor_parallel=1,
            zero_stage=STAGES[self.sharded],
            recompute="none",
            micro_batch_size=sequences,
            global_batch_size=sequences * self.passes * self.num_gpus,
            sequence_length=self.tokens // sequences,
        )

    @property
    def plan(self) -> Plan:
        """The plan of a step, as chapter 08's panel makes it."""
        return parallelism.planned(self.split)


def enough_tokens(plan: Plan, longest: int = LONGEST_SEQUENCE) -> int:
    """The fewest tokens of a pass that hide all that replicas send, in steps of 64.

    Beyond the `longest` sequence a pass has several of them.
    """
    model, split = plan.run.model, plan.split
    stops = [*range(64, longest, 64), *range(longest, MOST_TOKENS + 1, longest)]

    def hides(tokens: int) -> bool:
        sequences, passes = max(tokens // longest, 1), split.accumulation_steps * split.num_gpus
        one = plan.replace(
            model=of_length(model, tokens // sequences),
            tokens=passes * tokens,
            micro_batch_size=sequences,
            global_batch_size=passes * sequences,
        )
        return bool(exchange(one).visible < 1e-6)

    first: int = stops[bisect_left(stops[:-1], True, key=hides)]
    return first


_CONTROLS = {
    "tokens": common.Control(
        "Tokens",
        "Tokens that each GPU processes in a pass, in sequences of up to 8,192.",
        unit="tokens",
        most=MOST_TOKENS,
        stops=(512, 1024, 1536, 2048, 3072, 4096, 8192, 16384),
    ),
    "passes": common.Control(
        "Passes", "Passes of each GPU before an update.", most=64, stops=controls.doublings(1, 16)
    ),
    "num_gpus": replace(
        controls.GPUS,
        help="GPUs of the run, each with its own replica.",
        most=100_000,
        stops=controls.doublings(2, 4096),
    ),
    "sharded": controls.choice("Sharded", "What's sharded over the GPUs.", (*STAGES,)),
    "model": controls.COUNTED_MODEL,
    "chip": controls.choice("Accelerator", "The chip, and its links.", parallelism.CHIPS),
}


def render(setting: Setting, before: Setting | None = None, width: int = layout.PAGE) -> str:
    """Sentence, a step on a time line, memory, and the call in code."""
    plan, old = setting.plan, before.plan if before else None
    picture = step_lanes(plan, old).drawing(width)
    return "".join(
        [
            common.sentence(_sentence(setting, plan)),
            f"<div>{picture.inline_svg()}</div>",
            common.folded("In code", common.call(parallelism.code(setting.split))),
        ]
    )


def _sentence(setting: Setting, plan: Plan) -> str:
    """What each GPU sends, how much of it is exposed, and how many tokens would hide it."""
    step, sent = plan.step, exchange(plan)
    assert step is not None  # only chips whose step is known can be chosen
    if not sent.sent:
        return "A single GPU doesn't have to send anything."
    enough = enough_tokens(plan, setting.longest)
    sends = f"Each GPU sends <b>{units.gigabytes(sent.sent)}</b> in {units.seconds(sent.seconds)}"
    if sent.visible < 1e-6:
        return f"{sends}, and <b>all of it is hidden</b>, as it is from {enough:,} tokens on."
    share = f"{units.share(sent.visible / step.total)} of the step"
    sends += f". <b>{units.seconds(sent.visible)} of that are exposed</b>, {share}."
    return f"{sends} From {enough:,} tokens on, all of it is hidden."


PANEL = common.Panel(
    "What's exposed on your machine?",
    _CONTROLS,
    {
        "8B on 64 H100s": Setting(),
        "8B on 8 A100s": Setting(chip="A100 80GB SXM", num_gpus=8, tokens=8192, passes=8),
        "3B on 16 A100s": Setting("Llama-3.2-3B", "A100 80GB SXM", 16, 2048, passes=4),
        "70B on 512 H100s": Setting("Llama-3.1-70B", num_gpus=512, tokens=2048),
        "8B on 64 H100s, nothing sharded": Setting(sharded="nothing"),
    },
    ("70B on 512 H100s", "8B on 64 H100s, nothing sharded"),
    render,
)
