"""What GPUs send each other in a step. Beside notebooks/07_communication.ipynb.

Sources: Patarasuk and Yuan (2009) for the ring; Narayanan et al. (arXiv 2104.04473),
sections 3 and 4, for tensor and pipeline parallelism; Korthikanti et al. (arXiv
2205.05198), section 4.2, for sequence parallelism; Rajbhandari et al. (arXiv
1910.02054), section 7, for ZeRO; Liu et al. (arXiv 2310.01889) for the ring of keys and
values, Jacobs et al. (arXiv 2309.14509) for the all-to-all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from llmtrain_helpers.checks import (
    Number,
    Result,
    amount,
    at_most,
    broadcast,
    choice,
    count,
    counts,
    divides,
    flag,
    instance,
    is_array,
    one,
    quantity,
    refuse,
    single,
)
from llmtrain_helpers.flops import EVERY_RECOMPUTE
from llmtrain_helpers.model.transformer import Accelerator, Transformer
from llmtrain_helpers.results import Breakdown, greater, lesser, shared_out

CONTEXT = ["ring", "all-to-all"]
"""How context-parallel GPUs exchange: keys and values in a ring, or all to all."""

LATENCY = 45e-6
"""Seconds before the first byte of a collective moves: 31 to 56 µs were measured inside
nodes of A100, H100 and B200 (`published.collectives_measured`)."""

LINK_SHARE, NETWORK_SHARE = 0.7, 0.92
"""What a collective reaches of the links' bandwidth inside a node (0.69 measured on
A100; more where the switch adds up, 0.98 on H100), and of a node's network cards."""


NODE_BANDWIDTH = 400e9
"""Bytes/s that a node of eight GPUs sends, all its network cards together: eight of 400
Gbit/s, as in a DGX H100 (NVIDIA's datasheet). An assumption where the network is
another; only the prices of `advise` rest on it."""


@dataclass(frozen=True)
class Traffic(Breakdown):
    """Bytes that one GPU sends in a step, by what the split asks for.

    `tensor` or `sequence`, inside each layer; `context`, `expert`; `pipeline`, at a
    stage's border; `data`, gradients and weights between replicas.
    """

    tensor: Result
    sequence: Result
    context: Result
    expert: Result
    pipeline: Result
    data: Result


# --- collectives


def all_reduce_bytes(num_bytes: Number, data_parallel: Number) -> Result:
    """Bytes that each GPU sends in a ring all-reduce: 2(d − 1)/d times the buffer.

    Takes the bytes of the gradients on one GPU and d replicas; 0 for a single one.

    Source: Patarasuk and Yuan (2009): reduce-scatter and all-gather, (d − 1)/d each.

    >>> all_reduce_bytes(16e9, data_parallel=8)
    28000000000.0
    """
    size, d = quantity("num_bytes", num_bytes), count("data_parallel", data_parallel)
    broadcast(num_bytes=size, data_parallel=d)
    return 2 * (d - 1) * size / d


def all_reduce_seconds(num_bytes: Number, data_parallel: Number, bandwidth: Number) -> Result:
    """Seconds of that all-reduce at so many bytes/s, latency left out.

    The bandwidth is that of the narrowest place the ring passes, in one direction:
    inside a node a GPU's own link; over whole nodes the node's egress, all its network
    cards together, for what the ring carries leaves each node once, and its GPUs share
    the cards. Where only one GPU of a node takes part (tensor parallelism fills the
    node) it is that GPU's card, and its gradients are a share of the model's.

    Links by chip: `published.links()`. Measured over 32 B200: 382 of 400 GB/s
    (stas00/ml-engineering, network/README.md).

    >>> all_reduce_seconds(16e9, data_parallel=8, bandwidth=450e9) * 1e3
    62.22222222222222
    >>> all_reduce_seconds(16e9, data_parallel=128, bandwidth=8 * 50e9)  # 16 nodes
    0.079375
    """
    sent = all_reduce_bytes(num_bytes, data_parallel)
    w = quantity("bandwidth", bandwidth)
    broadcast(num_bytes=num_bytes, data_parallel=data_parallel, bandwidth=w)
    return sent / w


def data_parallel_bytes(
    parameters: Number,
    data_parallel: Number,
    zero_stage: int = 0,
    passes: Number = 1,
    *,
    weight_bytes: Number = 2,
    gradient_bytes: Number = 2,
    keep_gradients: bool = False,
    keep_weights: bool = False,
    shard_size: Number | None = None,
) -> Result:
    """Bytes that each GPU sends to other replicas in a step, by ZeRO's stage.

    (d − 1)/d · P times, with k passes of accumulation, g and w bytes of a gradient and
    a weight:
    stage 0: 2g,  stage 1: g + w,  stage 2: kg + w,  stage 3: kg + 2kw
    With 16-bit values 2, 2, k + 1 and 3k times the weights. Whoever keeps whole
    gradients between the passes sends them once: g in place of kg, for the memory that
    stage 2 would have saved. Stage 3 is also what FSDP does; with `keep_weights` it
    does not let go of them between forward and backward (`reshard_after_forward=False`)
    and sends kg + kw.

    With `shard_size` q (FSDP's hybrid sharding) the states are spread over q replicas,
    and d/q such groups hold copies: inside one goes (q − 1)/q of the above, and across
    them once 2(d/q − 1)/(d/q) · gP/q.

    Takes P parameters on the GPU before sharding, d replicas; numbers or arrays.
    Returns bytes; ValueError for a stage that is not 0 to 3, or a q that divides not d.

    Source: arXiv 1910.02054, section 7, which has one pass: 2, 2, 2 and 3.

    >>> [data_parallel_bytes(8e9, 64, z, passes=8) / 1e9 for z in (0, 1, 2, 3)]
    [31.5, 31.5, 141.75, 378.0]
    """
    P, d, k = counts(parameters=parameters, data_parallel=data_parallel, passes=passes)
    q = d if shard_size is None else count("shard_size", shard_size)
    w, g = (amount("weight_bytes", weight_bytes), amount("gradient_bytes", gradient_bytes))
    broadcast(parameters=P, data_parallel=d, passes=k, weight_bytes=w, gradient_bytes=g)
    divides("data_parallel", d, "shard_size", q)
    kg = g if flag("keep_gradients", keep_gradients) else k * g
    gathered = 1 if flag("keep_weights", keep_weights) else 2
    sent = {0: 2 * g, 1: g + w, 2: kg + w, 3: kg + gathered * k * w}
    stage = single("zero_stage", zero_stage, least=0)
    if stage not in sent:
        refuse("zero_stage", stage, "is unknown. Known: 0, 1, 2, 3")
    inside = shared_out((q - 1) * P * sent[stage], q)
    return inside + shared_out(2 * (d - q) * g * P, d * q)


# --- a step


def step_traffic(
    model: Transformer,
    parameters: Number,
    micro_batch_size: Number = 1,
    accumulation_steps: Number = 1,
    *,
    recompute: str,
    tensor_parallel: Number = 1,
    sequence_parallel: bool = True,
    pipeline_parallel: Number = 1,
    interleave: Number = 1,
    context_parallel: Number = 1,
    context: str = "ring",
    expert_parallel: Number = 1,
    expert_parameters: Number = 0,
    imbalance: Number = 1,
    data_parallel: Number = 1,
    value_bytes: Number = 2,
    zero_stage: int = 0,
    weight_bytes: Number = 2,
    gradient_bytes: Number = 2,
    keep_gradients: bool = False,
    keep_weights: bool = False,
    shard_size: Number | None = None,
) -> Traffic:
    """Bytes that one GPU sends in a step of m passes, part by part.

    Of l/p layers, with y bytes of a value, b sequences of s tokens:
    tensor     m · l/p · 4 · 2(t − 1)/t · ybsh/c, 6 in place of 4 with full
               recomputation; the same as `sequence` with sequence parallelism
    context    m · l/p · 3(c − 1)/c · 2ybs·kd/t in a ring,
               m · l/p · 4(a + k)d(c − 1)/c · 2ybs/(ct) by all-to-all, over 2
    expert     m · l/p · 4(e − 1)/e · ybs·top_k·h/(ct), 6 with full recomputation,
               times the `imbalance`: the fullest GPU's tokens over the average
    pipeline   m · 2v · ybsh/c, over t with sequence parallelism; one less than 2v on
               the two ends, where a pipeline of two has no middle
    data       `data_parallel_bytes` over the d·c ways that hold the same weights; an
               e-th of these hold the same experts

    `parameters` are those on the GPU before sharding, `expert_parameters` those of them
    that are its experts'; the last six arguments are those of `data_parallel_bytes`.
    Logits and embedding, split over the vocabulary, send as much as one layer and are
    left out. ValueError where a split does not divide.

    Source: arXiv 2104.04473 sections 3.2 and 4.1; 2205.05198 section 4.2.2; 2310.01889;
    2309.14509 section 3.

    >>> model = Transformer.gpt(96, 12288, 96, 51200, 2048)
    >>> sent = step_traffic(model, 3e9, 1, 24, recompute="full", tensor_parallel=8,
    ...     pipeline_parallel=8, data_parallel=16)
    >>> sent.sequence / 1e9, sent.pipeline / 1e9, sent.data / 1e9
    (152.202903552, 0.301989888, 11.25)
    """
    given = locals()
    instance("model", model, Transformer)
    ways = _ways(**{name: given[name] for name in WAYS})
    sizes = {x: given[x] for x in given if x.endswith(("parameters", "_bytes"))}
    broadcast(**sizes, **ways, **model.numbers())
    _come_out_even(model, ways)
    times = 6 if choice("recompute", recompute, EVERY_RECOMPUTE) == "full" else 4
    shared = flag("sequence_parallel", sequence_parallel)
    c, m = ways["context_parallel"], ways["accumulation_steps"]
    values = ways["micro_batch_size"] * (model.sequence_length // c) * model.hidden_size
    sent = m * amount("value_bytes", value_bytes)
    layers = _on_a_stage(model, ways)
    in_layers = sent * layers * _all_reduced(values, times, ways["tensor_parallel"])
    uneven = one("imbalance", imbalance, quantity)
    return Traffic(
        tensor=in_layers * (1 - shared),
        sequence=in_layers * shared,
        context=sent * layers * _for_context(model, ways, context),
        expert=sent * layers * _to_experts(model, ways, times * values, shared, uneven),
        pipeline=sent * _over_borders(values, ways, shared),
        data=_between_replicas(parameters, ways, given),
    )


_SHARDING = [
    "zero_stage",
    "weight_bytes",
    "gradient_bytes",
    "keep_gradients",
    "keep_weights",
    "shard_size",
]
"""What `data_parallel_bytes` wants to know beside the split."""

WAYS = [
    "micro_batch_size",
    "accumulation_steps",
    "tensor_parallel",
    "pipeline_parallel",
    "interleave",
    "context_parallel",
    "expert_parallel",
    "data_parallel",
]
"""The sizes of a split that decide what is sent."""


def _ways(**sizes: Number) -> dict[str, Any]:
    """The sizes of a split, checked."""
    found = {name: count(name, size) for name, size in sizes.items()}
    broadcast(**found)
    return found


def _come_out_even(model: Transformer, ways: Mapping[str, Any]) -> None:
    """Heads, sequence and experts that the split divides."""
    t, c, e = (ways[f"{x}_parallel"] for x in ("tensor", "context", "expert"))
    divides("num_heads", model.num_heads, "tensor_parallel", t)
    divides("sequence_length", model.sequence_length, "context_parallel", c)
    divides_experts(model, e, ways["data_parallel"])
    at_most("pipeline_parallel", ways["pipeline_parallel"], "num_layers", model.num_layers)


def divides_experts(model: Transformer, expert_parallel: Any, replicas: Any) -> None:
    """ValueError where experts, or replicas, do not come out even over the GPUs."""
    e = expert_parallel
    if (e > 1).any() if is_array(e) else e > 1:
        if not model.num_experts:
            refuse("expert_parallel", e, "has no experts to spread: the model is dense")
        divides("num_experts", model.num_experts, "expert_parallel", e)
        divides("data_parallel", replicas, "expert_parallel", e)


def _on_a_stage(model: Transformer, ways: Mapping[str, Any]) -> Result:
    """Layers of a GPU: v pieces, each rounded up."""
    p, v = ways["pipeline_parallel"], ways["interleave"]
    return v * -(-model.num_layers // (p * v))


def _between_replicas(
    parameters: Number, ways: Mapping[str, Any], given: Mapping[str, Any]
) -> Result:
    """What goes between the GPUs that hold the same weights; c of them a replica.

    Of experts that are spread over e replicas, an e-th hold the same.
    """
    same, e = ways["data_parallel"] * ways["context_parallel"], ways["expert_parallel"]
    P = count("parameters", parameters)
    E = amount("expert_parameters", given["expert_parameters"])
    at_most("expert_parameters", E, "parameters", P)
    sharding = {name: given[name] for name in _SHARDING}
    sharding |= {"passes": ways["accumulation_steps"]}
    sent = data_parallel_bytes(P, same, **sharding)
    spread = (e > 1).any() if is_array(e) else e > 1
    if not spread or not (is_array(E) or E):
        return sent
    all_over, there = (data_parallel_bytes(greater(E, 1), d, **sharding) for d in (same, same // e))
    return sent + (E > 0) * (there - all_over)


def _all_reduced(values: Result, times: int, t: Result) -> Result:
    """Values that a layer sends in so many all-reduces over t GPUs."""
    return shared_out(times * 2 * (t - 1) * values, t)


def _for_context(model: Transformer, ways: Mapping[str, Any], context: str) -> Result:
    """Values that a layer sends to share a sequence: in a ring, or by all-to-all."""
    c, t, b = (ways[x] for x in ("context_parallel", "tensor_parallel", "micro_batch_size"))
    a, k = model.num_heads, model.num_kv_heads
    everything = (c - 1) * b * model.sequence_length * model.head_dim
    if choice("context", context, CONTEXT) == "ring":
        return shared_out(6 * k * everything, c * t)
    return shared_out(4 * (a + k) * everything, c * c * t)


def _to_experts(
    model: Transformer, ways: Mapping[str, Any], values: Result, shared: bool, uneven: Result
) -> Result:
    """Values that a layer sends to the chosen experts and back."""
    e, t = ways["expert_parallel"], ways["tensor_parallel"]
    sent = (e - 1) * values * model.experts_per_token
    even = shared_out(sent, e * t if shared else e)
    return even * uneven if is_array(uneven) or uneven != 1 else even


def _over_borders(values: Result, ways: Mapping[str, Any], shared: bool) -> Result:
    """Values that a stage sends in a pass, forward and back; ends once less."""
    p, v, t = (ways[x] for x in ("pipeline_parallel", "interleave", "tensor_parallel"))
    sends = (p > 1) * (2 * v - (p == 2))
    return shared_out(sends * values, t if shared else 1)


# --- seconds


@dataclass(frozen=True)
class CommunicationSeconds(Breakdown):
    """Seconds of a step's traffic, part by part, as if each part were alone.

    `behind` are seconds of computing beside which a part can travel: what is longer
    than that is `visible`, as seconds that the step takes more.
    """

    _beside = ("behind",)

    tensor: Result
    sequence: Result
    context: Result
    expert: Result
    pipeline: Result
    data: Result
    behind: Mapping[str, Result]

    @property
    def visible(self) -> dict[str, Result]:
        """The seconds of each part that no computing hides."""
        hidden = {name: self.behind.get(name, 0) for name in self.parts()}
        return {x: greater(s - hidden[x], 0 * s) for x, s in self.parts().items()}


def communication_seconds(
    traffic: Traffic,
    accelerator: Accelerator,
    *,
    tensor_parallel: Number = 1,
    pipeline_parallel: Number = 1,
    context_parallel: Number = 1,
    expert_parallel: Number = 1,
    data_parallel: Number = 1,
    calls: Mapping[str, Number] | None = None,
    behind: Mapping[str, Number] | None = None,
) -> CommunicationSeconds | None:
    """How long that takes: bytes over bandwidth, and a latency for each call.

    GPUs are numbered through the nodes: tensor-parallel ones are neighbours, then
    context, then data; a pipeline's stages lie farthest apart. A group inside one node
    uses the links, a ring over nodes all network cards of its GPUs there, a message
    across a border its GPU's own card (`bandwidth_of`). `calls` counts the collectives
    or messages of a part in a step, at `LATENCY` each. `behind` is the computing
    beside which a part travels, in seconds (see `CommunicationSeconds.visible`):
    nothing, where it is not given.

    Returns seconds; None where the accelerator's links are unknown. ValueError for bad
    sizes, and for parts that `Traffic` does not have.

    >>> h100 = Accelerator("H100", 80e9, link_bandwidth=450e9, network_bandwidth=50e9)
    >>> sent = Traffic(0, 50e9, 0, 0, 0, 16e9)
    >>> taken = communication_seconds(sent, h100, tensor_parallel=8, data_parallel=16,
    ...     behind={"data": 0.3})
    >>> round(taken.sequence, 3), round(taken.data, 3), round(taken.visible["data"], 3)
    (0.159, 0.348, 0.048)
    """
    instance("traffic", traffic, Traffic)
    instance("accelerator", accelerator, Accelerator)
    ways = _ways(t=tensor_parallel, p=pipeline_parallel)
    ways |= _ways(c=context_parallel, e=expert_parallel, d=data_parallel)
    calls, behind = _of_parts("calls", calls), _of_parts("behind", behind)
    rates = _rates(accelerator, **ways)
    if rates is None:
        return None
    seconds = {
        name: sent / rates[name] + LATENCY * calls.get(name, 0)
        for name, sent in traffic.parts().items()
    }
    return CommunicationSeconds(**seconds, behind=behind)


def _rates(
    accelerator: Accelerator, t: Result, p: Result, c: Result, e: Result, d: Result
) -> dict[str, Any] | None:
    """Bytes/s of each part of the traffic; None where the links are unknown."""
    if None in (accelerator.link_bandwidth, accelerator.network_bandwidth):
        return None
    tensor = bandwidth_of(accelerator, t)
    return {
        "tensor": tensor,
        "sequence": tensor,
        "context": bandwidth_of(accelerator, c, t),
        "expert": bandwidth_of(accelerator, e, t * c, ring=False),
        "pipeline": bandwidth_of(accelerator, p, t * c * d, ring=False),
        "data": bandwidth_of(accelerator, d * c, t),
    }


def _of_parts(name: str, given: Mapping[str, Number] | None) -> dict[str, Any]:
    """Numbers by part of the traffic, checked."""
    found = dict(given or {})
    for part, value in found.items():
        choice(name, part, [field.name for field in fields(Traffic)])
        found[part] = amount(f"{name}[{part!r}]", value)
    return found


def bandwidth_of(
    accelerator: Accelerator, size: Result, stride: Result = 1, ring: bool = True
) -> Any:
    """Bytes/s at which one GPU of a group sends, latency left out; None if unknown.

    A group has `size` GPUs, each `stride` places from the next. Inside a node it is
    `LINK_SHARE` of the link. Over nodes a ring leaves each of them once, and its GPUs
    there share their cards, at `NETWORK_SHARE`; what is no ring (all-to-all, a border
    of a pipeline) leaves by the GPU's own card.

    >>> h100 = Accelerator("H100", 80e9, link_bandwidth=450e9, network_bandwidth=50e9)
    >>> [bandwidth_of(h100, size) / 1e9 for size in (8, 16)]
    [315.0, 315.0]
    >>> bandwidth_of(h100, 16, stride=8) / 1e9  # one GPU of each node: its own card
    46.0
    """
    link, card = accelerator.link_bandwidth, accelerator.network_bandwidth
    if link is None or card is None:
        return None
    node = accelerator.gpus_per_node
    neighbours = greater(node / stride, 1) if ring else 1
    fast, slow = link * LINK_SHARE, card * neighbours * NETWORK_SHARE
    inside = size * stride <= node
    return inside * fast + (1 - inside) * lesser(slow, fast)


@dataclass(frozen=True)
class Exchange:
    """One part of a step's traffic: bytes, how many it is shared with, and seconds.

    `inside` says whether its group stays in one node. `seconds` are those of sending;
    `visible` those that the step takes longer.
    """

    sent: float
    others: int
    inside: bool
    seconds: float
    visible: float


def exchanges(
    traffic: Traffic,
    accelerator: Accelerator,
    visible: Mapping[str, float],
    *,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    context_parallel: int = 1,
    expert_parallel: int = 1,
    data_parallel: int = 1,
) -> dict[str, Exchange]:
    """What one GPU sends in a step, part by part, with whom and how long.

    `visible` are the seconds of each part that the step takes longer. What sequence
    parallelism sends counts as `tensor`; parts without bytes are left out. ValueError
    for an accelerator whose links are not known.

    >>> h100 = Accelerator("H100", 80e9, link_bandwidth=450e9, network_bandwidth=50e9)
    >>> sent = Traffic(0, 50e9, 0, 0, 0, 16e9)
    >>> parts = exchanges(sent, h100, {"tensor": 0.2, "data": 0}, tensor_parallel=8,
    ...     data_parallel=16)
    >>> [(name, x.others, x.inside, round(x.seconds, 3)) for name, x in parts.items()]
    [('tensor', 7, True, 0.2), ('data', 15, False, 0.348)]
    """
    t, c, d = tensor_parallel, context_parallel, data_parallel
    taken = communication_seconds(
        traffic,
        accelerator,
        tensor_parallel=t,
        pipeline_parallel=pipeline_parallel,
        context_parallel=c,
        expert_parallel=expert_parallel,
        data_parallel=d,
    )
    if taken is None:
        raise ValueError(f"the links of {accelerator.name} are not known")
    sent = traffic.parts() | {"tensor": traffic.tensor + traffic.sequence}
    seconds = taken.parts() | {"tensor": taken.tensor + taken.sequence}
    groups = {  # how many GPUs take part, and over how many neighbours they are spread
        "tensor": (t, t),
        "context": (c, t * c),
        "expert": (expert_parallel, t * c * expert_parallel),
        "pipeline": (min(pipeline_parallel, 3), t * c * d * pipeline_parallel),
        "data": (d * c, t * c * d),
    }  # a stage talks to two others at the most: the one before it and the one behind
    return {
        name: Exchange(
            sent[name],
            size - 1,
            bool(span <= accelerator.gpus_per_node),
            max(seconds[name], visible.get(name, 0)),
            visible.get(name, 0),
        )
        for name, (size, span) in groups.items()
        if sent[name]
    }


def ring(gpus: int) -> list[list[list[int]]]:
    """An all-reduce in a ring, turn by turn: whose numbers are in each piece of each GPU.

    Counts how many GPUs' numbers each GPU has in each piece of the buffer, at the start
    and after each of 2(n − 1) turns. Source: Patarasuk and Yuan (2009).

    >>> ring(2)
    [[[1, 1], [1, 1]], [[1, 2], [2, 1]], [[2, 2], [2, 2]]]
    """
    state = [[1] * gpus for _ in range(gpus)]
    states = [[row[:] for row in state]]
    for turn in range(2 * (gpus - 1)):
        adds = turn < gpus - 1
        back = turn if adds else turn - gpus  # which piece is sent on
        sent = [((i - back) % gpus, state[i][(i - back) % gpus]) for i in range(gpus)]
        for i, (piece, parts) in enumerate(sent):
            to = state[(i + 1) % gpus]
            to[piece] = to[piece] + parts if adds else parts
        states.append([row[:] for row in state])
    return states
