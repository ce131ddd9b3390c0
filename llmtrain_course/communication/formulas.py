"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from dataclasses import dataclass

from llmtrain_helpers.checks import (
    Array,
    Count,
    Number,
    Result,
    as_sizes,
    at_most,
    broadcast,
    checked,
    count,
    instance,
    one,
    quantity,
    rate,
    refuse,
    single,
    unchecked,
)
from llmtrain_helpers.communication import LATENCY, all_reduce_bytes, all_reduce_seconds
from llmtrain_helpers.model import Accelerator
from llmtrain_helpers.model.tables import rows
from llmtrain_helpers.results import where


@dataclass(frozen=True)
class RingTurn:
    """A ring's all-reduce after some of its turns: what moved, and what each GPU holds.

    `moved` is the piece that each GPU handed to the next in the last turn (none at the
    start); `summed` how many GPUs' numbers each GPU has in each piece of its buffer.
    """

    gpus: int
    turn: int
    moved: tuple[int, ...]
    summed: tuple[tuple[int, ...], ...]

    @property
    def turns(self) -> int:
        """The number of turns in all: 2(n − 1)."""
        return 2 * (self.gpus - 1)

    @property
    def adds(self) -> bool:
        """Whether the pieces were added up (a reduce-scatter) rather than copied."""
        return 0 < self.turn < self.gpus

    def sent_bytes(self, num_bytes: float | Array) -> float | Array:
        """Bytes that each GPU has sent until now, of a buffer of so many bytes.

        >>> ring_turn(8, turn=3).sent_bytes(16e9)
        6000000000.0
        """
        return all_reduce_bytes(num_bytes, self.gpus) * self.turn / max(self.turns, 1)


def ring_turn(gpus: int, turn: int) -> RingTurn:
    """Return an all-reduce in a ring of up to 128 GPUs after a turn.

    There are 2(n − 1) turns, and 0 is the start. In the first n − 1 GPU i hands on piece
    i − k in turn k + 1, and the next one adds it; in the others the finished pieces go
    round. ValueError for numbers that are no counts, and turns that the ring does not have.

    >>> state = ring_turn(3, turn=1)
    >>> state.moved, state.summed
    ((0, 1, 2), ((1, 1, 2), (2, 1, 1), (1, 2, 1)))
    """
    n, turn = single("gpus", gpus), single("turn", turn, least=0)
    at_most("gpus", n, "what can be shown", 128)
    at_most("turn", turn, "the turns of this ring", 2 * (n - 1))
    adding, copying = min(turn, n - 1), max(turn - (n - 1), 0)

    def parts(gpu: int, piece: int) -> int:
        """How many GPUs' numbers are in a piece: it came in turn k, or has not come yet."""
        if (gpu - piece) % n < copying:
            return n
        k = (gpu - 1 - piece) % n
        return k + 2 if k < adding else 1

    back = turn - 1 if turn < n else turn - n - 1  # pieces behind its own that a GPU sends
    moved = tuple((i - back) % n for i in range(n)) if turn else ()
    summed = tuple(tuple(parts(gpu, piece) for piece in range(n)) for gpu in range(n))
    return RingTurn(n, turn, moved, summed)


@dataclass(frozen=True)
class BackwardOverlap:
    """Gradients that leave in equal messages while backward still computes.

    A message can leave once its layers are done and the message before it has left.
    `backward` and `sending` are seconds, of all layers and of all messages.
    """

    backward: float
    sending: float
    messages: int

    @property
    def spans(self) -> list[tuple[float, float]]:
        """The start and the arrival of each message."""
        each, end = self.sending / self.messages, 0.0
        spans = []
        for k in range(1, self.messages + 1):
            start = max(self.backward * k / self.messages, end)
            end = start + each
            spans.append((start, end))
        return spans

    @property
    def end(self) -> float:
        """The arrival of the last message."""
        return self.spans[-1][1]

    @property
    def starts(self) -> float:
        """Seconds of `sending` in which messages only begin: a `LATENCY` each.

        >>> round(BackwardOverlap(backward=6, sending=4, messages=1000).starts, 3)
        0.045
        """
        return self.messages * LATENCY

    @property
    def visible(self) -> float:
        """Seconds that sending adds to the step: at least the last message's.

        >>> BackwardOverlap(backward=6, sending=4, messages=4).visible
        1.0
        >>> BackwardOverlap(backward=4, sending=6, messages=4).visible
        3.0
        """
        return self.end - self.backward


def backward_overlap(
    parameters: Number,
    tokens: Number,
    flops_per_gpu: Number,
    data_parallel: Number,
    bandwidth: Number,
    messages: int = 1,
) -> BackwardOverlap:
    """Overlap the last backward pass with the ring's all-reduce of 16-bit gradients.

    Backward takes 4PT/X for T tokens on a GPU of X FLOP/s, the ring 2(d − 1)/d · 2P/W and a
    `LATENCY` for each message. Of many replicas both are equally long at T = X/W tokens,
    whatever the model. ValueError for what is not positive, and more than 1,000 messages.

    >>> last = backward_overlap(8e9, 4096, 989.5e12, 64, 400e9, messages=8)
    >>> round(last.backward, 3), round(last.sending, 3), round(last.visible, 3)
    (0.132, 0.079, 0.01)
    """
    P, T = (one(x, y, count) for x, y in [("parameters", parameters), ("tokens", tokens)])
    X = one("flops_per_gpu", flops_per_gpu, rate)
    m = single("messages", messages)
    at_most("messages", m, "what is worth showing", 1000)
    d, W = single("data_parallel", data_parallel), one("bandwidth", bandwidth, quantity)
    ring = 2 * all_reduce_seconds(P, d, W)  # of 2 bytes each
    return BackwardOverlap(float(4 * P * T / X), float(ring + m * LATENCY), m)


@checked
def ring_rate(accelerator: Accelerator, gpus: Count[Number]) -> Result:
    """Bytes/s of a ring's bottleneck, at the vendor's rates: W.

    A GPU's links if the ring stays in a node, and otherwise all the cards of a node.
    ValueError for numbers that are no counts, and links that are not known.

    >>> h100 = Accelerator("H100", 80e9, link_bandwidth=450e9, network_bandwidth=50e9)
    >>> ring_rate(h100, 8), ring_rate(h100, 16)
    (450000000000.0, 400000000000.0)
    """
    link, card = accelerator.link_bandwidth, accelerator.network_bandwidth
    if link is None or card is None:
        refuse("accelerator", accelerator.name, "has links that are not known")
    broadcast(gpus=gpus, **vars(accelerator))
    [n], node = as_sizes(gpus), accelerator.gpus_per_node
    return where(n <= node, link, node * card)


@checked
def ring_tokens(accelerator: Accelerator, gpus: Count[Number]) -> Result:
    """Tokens per pass from which a ring is hidden, at the chip's peak: T = X/W.

    Backward of P parameters takes 4PT/X seconds, their gradients 4P/W (see `ring_rate`).

    >>> h100 = Accelerator("H100", 80e9, None, None, {"bf16": 989.5e12}, 450e9, 50e9)
    >>> ring_tokens(h100, 64)
    2473.75
    """
    X = accelerator.peak(accelerator.training_format)
    return X / unchecked(ring_rate)(accelerator, gpus)


def all_reduce_rates(source: str) -> dict[int, float]:
    """Bytes/s of one measured series of all-reduces, by the bytes of the buffer.

    The first series whose source has this word, from 100 kB on; ValueError where none has.

    >>> round(all_reduce_rates("ND_H100")[2**33] / 1e9)
    479
    """
    instance("source", source, str)
    all_reduces = [row for row in rows("collectives_measured") if row["collective"] == "all-reduce"]
    sources = sorted({row["source"] for row in all_reduces if source in row["source"]})
    if not sources:
        refuse("source", source, "isn't a source of measured all-reduces")
    series = [row for row in all_reduces if row["source"] == sources[0] and row["message_bytes"]]
    sizes = {int(row["message_bytes"]): float(row["bus_bytes_per_s"]) for row in series}
    return {size: sizes[size] for size in sorted(sizes) if size > 1e5}
