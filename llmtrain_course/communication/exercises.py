"""Exercises of chapter 07: what hides a ring, and its seconds."""

from __future__ import annotations

from llmtrain_course.kit.exercise import Exercise, Numeric, Prediction
from llmtrain_course.kit.kinds import FillIn
from llmtrain_helpers import units
from llmtrain_helpers.checks import Result
from llmtrain_helpers.communication import all_reduce_bytes, all_reduce_seconds

# --- communication-a: a 13B on four nodes of A100

_GRADIENTS, _REPLICAS, _EGRESS = 13e9 * 2, 32, 8 * 25e9


def _ring_seconds() -> Result:
    """Seconds of an all-reduce of the 13B's gradients."""
    return all_reduce_seconds(_GRADIENTS, _REPLICAS, _EGRESS)


# --- communication-tokens: what hides a ring on H100

_PEAK, _NODE = 989.5e12, 8 * 50e9

EXERCISES: dict[str, Exercise] = {
    "communication-tokens": FillIn(
        key=lambda: _PEAK / _NODE,
        hint=(
            "Set the two times equal, 4PT/X = 4P/W, and solve for T.",
            "The parameters P drop out, and the 4 as well.",
        ),
        common_mistakes={
            "this is the other way round: faster GPUs need more tokens.": lambda: _NODE / _PEAK,
            "the 4 stands on both sides, and drops out.": lambda: _PEAK / _NODE / 4,
            "one 4 is left over: it stands on both sides.": lambda: 4 * _PEAK / _NODE,
            "this has one card alone: W is what the node's eight let out.": lambda: (
                8 * _PEAK / _NODE
            ),
        },
    ),
    "communication-a": Numeric(
        key=_ring_seconds,
        asked="s",
        unit=lambda number: f"{units.digits(number)} s",
        hint=(
            "Two numbers: what a GPU sends, and how fast the node lets it out.",
            "A GPU sends nearly twice its gradients; a node has 8 cards.",
        ),
        common_mistakes={
            "2 * (d - 1) / d * g / (W / 8)": "eight times too long: the node's 8 cards carry "
            "eight rings at once.",
            "2 * (d - 1) / d * g / 300e9": "this is NVLink's rate: the ring has to leave the "
            "nodes.",
            "2 * (d - 1) / d * g / (8 * 300e9)": "this is the rate of a node's links together, "
            "and it leaves nodes.",
            "2 * (d - 1) / d * 2 * g / W": "twice too long: gradients have 16 bits here, 2 bytes.",
            "2 * (d - 1) / d * g / (2 * W)": "half of it: an A100's node has cards of 25 GB/s, "
            "not H100's 50. Or: 2 bytes a gradient; once to add up, once to go round.",
            "g / W": "half: the ring goes round twice, to add up and to hand out.",
            "2 * g / W": "nearly: of d pieces each GPU sends d − 1, twice.",
            "2 * (4 - 1) / 4 * g / W": "this takes 4 nodes for 4 replicas: there are 32.",
            "key / 4": "a quarter: each node's cards carry the whole buffer, not a share.",
            "1000 * key": "these are milliseconds: give seconds.",
            "W * key": "these are the bytes; divide them by the node's rate.",
        },
        values={"d": _REPLICAS, "g": _GRADIENTS, "W": _EGRESS},
    ),
}


# --- predictions


def _longer() -> float:
    """An all-reduce over 512 GPUs beside one over 16, nodes sending alike."""
    return float(all_reduce_bytes(16e9, 512) / all_reduce_bytes(16e9, 16))


PREDICTIONS: dict[str, Prediction] = {
    "communication-guess": Prediction(
        truth=_longer,
        unit=lambda ratio: f"{units.digits(ratio)} times",
        asked="times",
        why="Each GPU sends 2(d − 1)/d of its buffer: 1.875 times it with 16 GPUs, "
        "1.996 with 512. There are more turns, but the pieces get smaller. Below you see it.",
    )
}
