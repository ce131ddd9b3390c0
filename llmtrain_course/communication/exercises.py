"""Exercises of chapter 07: what hides a ring, its seconds, buckets, two nodes, one's own GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from llmtrain_course.communication.formulas import ring_rate, ring_tokens
from llmtrain_course.communication.handles import LONGEST_SEQUENCE, Setting, enough_tokens
from llmtrain_course.communication.machine import exchange
from llmtrain_course.kit.exercise import (
    HINT,
    NOT_YET,
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
    unanswered,
)
from llmtrain_course.kit.kinds import FillIn
from llmtrain_course.parallelism.handles import CHIPS
from llmtrain_helpers import published, units
from llmtrain_helpers.checks import Result, count, quantity
from llmtrain_helpers.communication import (
    LATENCY,
    all_reduce_bytes,
    all_reduce_seconds,
    data_parallel_bytes,
)
from llmtrain_helpers.model import Accelerator
from llmtrain_helpers.model.names import known_accelerator, known_model
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.plan import Plan, plan_run

# --- communication-a: a 13B on four nodes of A100

_GRADIENTS, _REPLICAS, _EGRESS = 13e9 * 2, 32, 8 * 25e9


def _ring_seconds() -> Result:
    """Seconds of an all-reduce of the 13B's gradients."""
    return all_reduce_seconds(_GRADIENTS, _REPLICAS, _EGRESS)


# --- communication-tokens: what hides a ring on H100

_PEAK, _NODE = 989.5e12, 8 * 50e9

# --- communication-f: gradients in buckets of 25 MB

_BUCKET = 25e6


def _starting() -> float:
    """Milliseconds in which the messages of an 8B's gradients only start."""
    return 8e9 * 2 / _BUCKET * LATENCY * 1e3


# --- communication-g: the same batch on two nodes


def _on_nodes(nodes: int) -> Plan:
    """A step of the 8B with FSDP on so many nodes of H100s, 16,384 tokens in all."""
    return Setting(num_gpus=8 * nodes, tokens=16384 // (8 * nodes)).plan


def _exposed(nodes: int) -> str:
    """What's exposed of what a GPU sends on so many nodes, in words."""
    sent = exchange(_on_nodes(nodes))
    exposed = units.seconds(sent.visible) if sent.visible > 1e-6 else "nothing"
    return f"{exposed} of the {units.seconds(sent.seconds)} of sending"


_TOO_FEW, _SLOW, _TURNS, _TWICE = (
    "too few tokens per GPU",
    "the network is slower than the links",
    "the ring has more turns",
    "twice the GPUs send twice as much",
)


def _gathered() -> float:
    """GB that each of 16 GPUs sends in a step of one pass of the 8B with FSDP."""
    size = count_parameters(published.architecture("Llama-3.1-8B")).total
    return float(data_parallel_bytes(size, 16, 3) / 1e9)


_SENT = Numeric(
    key=_gathered,
    asked="GB",
    unit=lambda number: f"{units.digits(number)} GB",
    hint=(
        "FSDP sends all the weights twice and all the gradients once.",
        "Each time, a GPU sends 15/16 of them, at 2 bytes per weight or gradient.",
    ),
    common_mistakes={
        "2 * 15 / 16 * P": "That's an all-reduce. FSDP gathers the weights a second time, for "
        "backward.",
        "15 / 16 * P": "That's one gather, but FSDP gathers the weights twice and sums the "
        "gradients once.",
        "3 * P": "Almost. Each GPU already has its own 1/16, so it sends the other 15.",
        "key / 2": "That's 2× too low, because 16 bits are 2 bytes.",
        "3 * 7 / 8 * P": "That's what it was on 8 GPUs, but now there are 16.",
        "1e9 * key": "That's in bytes. Give GB.",
        "2 * key": "That's 2× too high, because gradients are only summed into shards, which is "
        "half an all-reduce.",
    },
    values={"P": 2 * 8.030261248},
)

# --- communication-h: one's own GPUs

_NEAR = 0.1
"""How far from the two right numbers an answer may lie, as a share."""


def _own_plan(design: Design, chip: Accelerator, gpus: int) -> tuple[Plan, int]:
    """A step of a learner's model with FSDP, and its longest sequence on this page."""
    longest = min(int(known_model(design["model"]).sequence_length), LONGEST_SEQUENCE)
    model = known_model(design["model"], longest)
    plan = plan_run(model, chip, gpus, gpus * longest, gpus, recompute="none", zero_stage=3)
    return plan, longest


def _wrong_rates(chip: Accelerator, gpus: int) -> Iterator[tuple[str, float]]:
    """Bytes/s that aren't those of the ring's narrowest place, each with the reply to it."""
    link, card, node = chip.link_bandwidth, chip.network_bandwidth, chip.gpus_per_node
    assert link is not None
    assert card is not None
    if gpus <= node:
        for rate in (card, node * card):
            yield "Your ring stays in one node, so W is the rate of a GPU's links.", rate
    else:
        yield "Your ring leaves the node, so W is the rate of all its cards.", link
        yield "You've used a single card, but a node's cards carry the ring together.", card
    yield "A node's links don't add up, because the ring uses one after the other.", node * link


class OwnTokens(Exercise):
    """The tokens of a pass that hide what FSDP sends, for a learner's model, chip and GPUs.

    Right is X/W at the peak, the panel's number, and whatever lies between them.
    """

    hint = (
        "T = X/W, which doesn't depend on the model or the batch.",
        "X is your chip's peak. W is a GPU's links if all your GPUs are in one node, and all the "
        "cards of a node otherwise.",
        "You can also read it off the panel if you set your model, chip and GPUs there.",
    )

    def grade(self, answer: Answer) -> Grade:
        """Whether so many tokens hide it, or with which rate they were computed."""
        if unanswered(answer):
            return NOT_YET
        names = ("model", "gpus", "chip", "sequence", "tokens")
        return next(self._grades(design_of(answer, names, "model=…, chip=…")))

    def _grades(self, design: Design) -> Iterator[Grade]:
        """The replies in their order: no ring, right, a common mistake, or off."""
        gpus, sequence = (int(entry(design, name, count)) for name in ("gpus", "sequence"))
        tokens = float(entry(design, "tokens", quantity))
        chip = known_accelerator(design["chip"])
        if gpus == 1:
            yield False, "A single GPU doesn't have to send anything, so use at least two."
        if chip not in map(published.accelerator, CHIPS):
            yield False, f"We don't know the links of {chip.name}. Use another chip."
        at_peak = float(ring_tokens(chip, gpus))
        panel = enough_tokens(*_own_plan(design, chip, gpus))
        least, most = sorted([at_peak, panel])
        if least * (1 - _NEAR) <= tokens <= most * (1 + _NEAR):
            needed = units.plural(-(-panel // sequence), "sequence")
            reached = f"the panel, which counts what GPUs and links really reach, {panel:,}"
            needs = f"Your sequences have {sequence:,} tokens, so a pass needs {needed}."
            yield True, f"Right: X/W gives {at_peak:,.0f} at the peak, and {reached}. {needs}"
        X = at_peak * ring_rate(chip, gpus)
        for reply, rate in _wrong_rates(chip, gpus):
            if abs(tokens * rate / X - 1) < _NEAR:
                yield False, reply
        if abs(tokens * at_peak - 1) < _NEAR:
            yield False, "That's the other way round: divide FLOP/s by bytes/s."
        if abs(tokens / (2 * at_peak) - 1) < _NEAR:
            yield False, "That's 2× too high. Use the dense peak, without sparsity."
        yield False, f"That's too {'high' if tokens > most else 'low'}. {HINT}"


EXERCISES: dict[str, Exercise] = {
    "communication-tokens": FillIn(
        key=lambda: _PEAK / _NODE,
        hint=(
            "Set the two times equal, 4PT/X = 4P/W, and solve for T.",
            "The parameters P and the 4 both drop out.",
        ),
        common_mistakes={
            "That's the other way round, because faster GPUs need more tokens.": lambda: (
                _NODE / _PEAK
            ),
            "The 4 is on both sides, so it drops out.": lambda: _PEAK / _NODE / 4,
            "You've only dropped one 4, but it's on both sides.": lambda: 4 * _PEAK / _NODE,
            "You've used a single card. W is the bandwidth of all eight cards in the node.": (
                lambda: 8 * _PEAK / _NODE
            ),
        },
    ),
    "communication-a": Numeric(
        key=_ring_seconds,
        asked="s",
        unit=lambda number: f"{units.digits(number)} s",
        hint=(
            "You need two numbers: how much a GPU sends, and how fast the node can send it.",
            "A GPU sends its gradients almost twice, and all 8 cards of a node do the sending.",
        ),
        common_mistakes={
            "2 * (d - 1) / d * g / (W / 8)": "That's 8× too long, because the node's 8 cards "
            "carry eight rings at once.",
            "2 * (d - 1) / d * g / 300e9": "That's NVLink's rate, but the ring has to leave the "
            "nodes.",
            "2 * (d - 1) / d * g / (8 * 300e9)": "That's the combined rate of a node's links, but "
            "the ring has to leave the nodes.",
            "2 * (d - 1) / d * 2 * g / W": "That's 2× too long, because gradients have 16 bits "
            "here, which is 2 bytes.",
            "2 * (d - 1) / d * g / (2 * W)": "That's 2× too short. The cards of an A100 node send "
            "25 GB/s, not 50 as with H100s. Or have you left out "
            "that a gradient needs 2 bytes, or that the ring "
            "runs twice?",
            "g / W": "That's about 2× too short, because the ring runs twice, once to add up and "
            "once "
            "to hand out.",
            "2 * g / W": "Almost. Of d pieces, each GPU sends d − 1, twice.",
            "2 * (4 - 1) / 4 * g / W": "You've counted 4 nodes as 4 replicas, but there are 32.",
            "key / 4": "That's 4× too short, because each node's cards carry the whole buffer, "
            "not a part of it.",
            "1000 * key": "That's in milliseconds. Give seconds.",
            "W * key": "That's the bytes. Divide them by the node's rate.",
        },
        values={"d": _REPLICAS, "g": _GRADIENTS, "W": _EGRESS},
    ),
    "communication-f": Numeric(
        key=_starting,
        asked="ms",
        unit=lambda number: f"{units.digits(number)} ms",
        hint=(
            "How many buckets are there? Each one starts once.",
            "Divide 16 GB of gradients by 25 MB, and multiply by 45 µs.",
        ),
        common_mistakes={
            "key / 2": "That's 2× too low, because a gradient in 16 bits needs 2 bytes.",
            "2 * key": "That's 2× too high, because a gradient in 16 bits needs 2 bytes, not 4.",
            "g / b": "That's how many messages there are. Each needs 45 µs to start.",
            "g / 25 / 2**20 * 45e-3": "Almost. You've used MiB, but the buckets are 25 MB.",
            "8 * key": "That's 8× too high, because MB are bytes, not bits.",
            "45e-3": "That's one message, but 16 GB fill a lot of 25 MB buckets.",
            "key / 1e3": "That's in seconds. Give ms.",
            "1e3 * key": "That's in microseconds. Give ms.",
        },
        values={"g": 8e9 * 2, "b": _BUCKET},
    ),
    "communication-g": MultipleChoice(
        key=lambda: _TOO_FEW,
        options={
            _TOO_FEW: "Right: each GPU processes 1,024 tokens per pass instead of 2,048, so it "
            "computes for half the time but sends as much as before. On one node "
            f"{_exposed(1)} is exposed, and on two nodes {_exposed(2)}.",
            _SLOW: "It is for a single GPU, 50 instead of 450 GB/s. But the ring leaves a node "
            "through eight cards at once, so sending takes "
            f"{units.seconds(exchange(_on_nodes(2)).seconds)} instead of "
            f"{units.seconds(exchange(_on_nodes(1)).seconds)}. You don't lose half to that.",
            _TURNS: "It does, 15 per gather instead of 7, but the pieces are half the size, so "
            "each GPU sends about as much as before, and at this message size latency "
            "doesn't matter.",
            _TWICE: "All GPUs together do, but each of them sends 15/16 of everything instead of "
            "7/8.",
        },
        followups=[
            Question(
                "the model has 8.03 billion parameters, in 16 bits. How many GB does each of the "
                "16 GPUs send in such a step of one pass, with FSDP?",
                _SENT,
            )
        ],
    ),
    "communication-h": OwnTokens(),
}


# --- predictions


def _longer() -> float:
    """Compare an all-reduce over 512 GPUs with one over 16, whose nodes send at the same rate."""
    return float(all_reduce_bytes(16e9, 512) / all_reduce_bytes(16e9, 16))


PREDICTIONS: dict[str, Prediction] = {
    "communication-guess": Prediction(
        truth=_longer,
        unit=lambda ratio: f"{units.digits(ratio)} times",
        asked="times",
        why="Each GPU sends 2(d − 1)/d of its buffer, which is 1.875 times its size with 16 GPUs "
        "and 1.996 times with 512. There are more turns, but each piece is smaller.",
    )
}
