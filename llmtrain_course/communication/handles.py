"""Chapter 07: handles of a ring, of message sizes, of sending beside computing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil

from llmtrain_course.communication.formulas import (
    BackwardOverlap,
    RingTurn,
    all_reduce_rates,
    backward_overlap,
    ring_turn,
)
from llmtrain_course.communication.pictures import (
    LONGEST,
    MIB,
    message_rates,
    milliseconds,
    ring_circle,
    time_line,
)
from llmtrain_course.kit import panel as common
from llmtrain_helpers import published, units
from llmtrain_helpers.communication import all_reduce_seconds

GRADIENTS = 16e9
"""Bytes of the gradients that go round: 8 billion parameters in 16 bits."""


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
    series = {name: all_reduce_rates(word) for name, (word, _) in MACHINES.items()}
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
    book=({"size": 1.0}, {"size": 8192.0}),
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
class TimeLine:
    """The last backward pass of an 8B on 64 H100, each of them a replica."""

    tokens: int = 2560
    messages: int = 8
    moment: int = LONGEST

    @property
    def last(self) -> BackwardOverlap:
        """That pass at the chip's peak, and its gradients by the eight cards of each node."""
        h100 = published.accelerator("H100")
        assert h100.network_bandwidth is not None
        egress = h100.gpus_per_node * h100.network_bandwidth
        return backward_overlap(
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
    book=({}, {"messages": 1}),
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
    book=({"turn": 7}, {"turn": 14}),
    title="A ring of GPUs",
    controls=_RING,
    settings={"start": Ring()},
    draw=draw_ring,
    narrow=partial(draw_ring, narrow=True),
)
