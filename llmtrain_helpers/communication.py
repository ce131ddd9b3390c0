"""What GPUs send each other in a step. Goes with notebooks/07_communication.ipynb.

Sources: Patarasuk and Yuan (2009) for the ring; Narayanan et al. (arXiv 2104.04473),
sections 3 and 4, for tensor and pipeline parallelism; Korthikanti et al. (arXiv
2205.05198), section 4.2, for sequence parallelism; Rajbhandari et al. (arXiv
1910.02054), section 7, for ZeRO; Liu et al. (arXiv 2310.01889) for the ring of keys and
values, Jacobs et al. (arXiv 2309.14509) for the all-to-all; Megatron-Core's guide to mixtures
(NVIDIA/Megatron-LM, megatron/core/transformer/moe/README.md) for whole experts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from llmtrain_helpers.checks import (
    Amount,
    Array,
    Count,
    Number,
    Quantity,
    Result,
    Size,
    Whole,
    amount,
    anywhere,
    as_results,
    as_sizes,
    at_most,
    broadcast,
    checked,
    choice,
    divides,
    given,
    instance,
    is_array,
    refuse,
    unchecked,
)
from llmtrain_helpers.flops import EveryRecompute
from llmtrain_helpers.model import Accelerator, Transformer
from llmtrain_helpers.model.layers import Experts
from llmtrain_helpers.parallelism import Context, Split, expert_rules, expert_tensor_size
from llmtrain_helpers.results import Breakdown, divide, maximum, minimum, where

LATENCY = 45e-6
"""Seconds before the first byte of a collective moves: 31 to 56 µs were measured inside
nodes of A100s, H100s and B200s (`published.collectives_measured`)."""

LINK_SHARE, NETWORK_SHARE = 0.7, 0.92
"""The share of the links' bandwidth that a collective reaches inside a node (0.69 measured
on A100; more if the switch adds up, 0.98 on H100), and of a node's network cards (at most
0.92, between nodes of B200, 400 GB/s each): `published.collectives_measured`."""


NODE_BANDWIDTH = 400e9
"""Bytes/s that a node of eight GPUs sends, all its network cards together: eight of 400
Gbit/s, as in a DGX H100 (NVIDIA's datasheet). For other networks it's an assumption, and
only the prices of `advise` depend on it."""


@dataclass(frozen=True)
class Traffic(Breakdown[Result]):
    """Bytes that one GPU sends in a step, by the kind of parallelism that needs them.

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


@checked
def all_reduce_bytes(
    num_bytes: Quantity[float | Array], data_parallel: Count[float | Array]
) -> float | Array:
    """Bytes that each GPU sends in a ring all-reduce: 2(d − 1)/d times the buffer.

    Takes the bytes of the gradients on one GPU and d replicas; a single one sends 0.

    Source: Patarasuk and Yuan (2009): reduce-scatter and all-gather, (d − 1)/d each.

    >>> all_reduce_bytes(16e9, data_parallel=8)
    28000000000.0
    """
    return 2 * (data_parallel - 1) * num_bytes / data_parallel


@checked
def all_reduce_seconds(
    num_bytes: Quantity[float | Array],
    data_parallel: Count[float | Array],
    bandwidth: Quantity[float | Array],
) -> float | Array:
    """Seconds of a ring all-reduce at a bandwidth in bytes/s, without latency.

    The bandwidth is that of the narrowest place that the ring passes, in one direction.
    Inside a node it's a GPU's own link. Between whole nodes it's all the network cards of a
    node together, because the ring leaves each node once and its GPUs share the cards. If
    only one GPU of a node takes part (because tensor parallelism fills the node), it's that
    GPU's card, and its gradients are a share of the model's.

    Links by chip: `published.links()`. Measured over 32 B200: 382 of 400 GB/s
    (stas00/ml-engineering, network/README.md).

    >>> all_reduce_seconds(16e9, data_parallel=8, bandwidth=450e9) * 1e3
    62.22222222222222
    >>> all_reduce_seconds(16e9, data_parallel=128, bandwidth=8 * 50e9)  # 16 nodes
    0.079375
    """
    return unchecked(all_reduce_bytes)(num_bytes, data_parallel) / bandwidth


@checked
def data_parallel_bytes(
    parameters: Count[float | Array],
    data_parallel: Count[float | Array],
    zero_stage: Whole[int] = 0,
    passes: Count[float | Array] = 1,
    *,
    weight_bytes: Amount[float | Array] = 2,
    gradient_bytes: Amount[float | Array] = 2,
    keep_gradients: bool = False,
    keep_weights: bool = False,
    shard_size: Count[float | Array] | None = None,
) -> float | Array:
    """Bytes that each GPU sends to other replicas in a step, by ZeRO's stage.

    (d − 1)/d · P times, with k passes of accumulation, g and w bytes of a gradient and
    a weight:
    stage 0: 2g,  stage 1: g + w,  stage 2: kg + w,  stage 3: kg + 2kw
    With 16-bit values that's 2, 2, k + 1 and 3k times the weights. If you keep whole
    gradients between the passes, they're sent once (g instead of kg), but you lose the
    memory that stage 2 would have saved. FSDP does the same as stage 3; with `keep_weights`
    it keeps the weights between forward and backward (`reshard_after_forward=False`) and
    sends kg + kw.

    With `shard_size` q (FSDP's hybrid sharding) the states are spread over q replicas, and
    d/q such groups hold copies. Inside a group (q − 1)/q of the above is sent, and between
    groups, once, 2(d/q − 1)/(d/q) · gP/q.

    Takes P parameters on the GPU before sharding, d replicas; numbers or arrays.
    Returns bytes. Raises ValueError if the stage isn't 0 to 3, or if q doesn't divide d.

    Source: arXiv 1910.02054, section 7, which has one pass: 2, 2, 2 and 3.

    >>> [data_parallel_bytes(8e9, 64, z, passes=8) / 1e9 for z in (0, 1, 2, 3)]
    [31.5, 31.5, 141.75, 378.0]
    """
    if zero_stage > 3:
        refuse("zero_stage", zero_stage, "is unknown. Known: 0, 1, 2, 3")
    P, d, k, w, g = parameters, data_parallel, passes, weight_bytes, gradient_bytes
    q = d if shard_size is None else shard_size
    divides("data_parallel", d, "shard_size", q)
    # Gradients that aren't kept whole are averaged again in every pass.
    averaged = g if keep_gradients else k * g
    # Stage 3 gathers the weights before forward, and again before backward unless it keeps them.
    gathered = 1 if keep_weights else 2
    sent = [2 * g, g + w, averaged + w, averaged + gathered * k * w][zero_stage]
    across = divide(2 * (d - q) * g * P, d * q)  # 0 if one group contains all replicas
    return divide((q - 1) * P * sent, q) + across


# --- a step


@checked
def step_traffic(
    model: Transformer,
    parameters: Count[Number],
    micro_batch_size: Count[Number] = 1,
    accumulation_steps: Count[Number] = 1,
    *,
    recompute: EveryRecompute,
    tensor_parallel: Count[Number] = 1,
    sequence_parallel: bool = True,
    pipeline_parallel: Count[Number] = 1,
    interleave: Count[Number] = 1,
    context_parallel: Count[Number] = 1,
    context: Context = "ring",
    expert_parallel: Count[Number] = 1,
    expert_tensor_parallel: Count[Number] | None = None,
    expert_parameters: Amount[Number] = 0,
    imbalance: Quantity[float] = 1,
    data_parallel: Count[Number] = 1,
    value_bytes: Amount[Number] = 2,
    zero_stage: Whole[int] = 0,
    weight_bytes: Amount[Number] = 2,
    gradient_bytes: Amount[Number] = 2,
    keep_gradients: bool = False,
    keep_weights: bool = False,
    shard_size: Count[Number] | None = None,
) -> Traffic:
    """Bytes that one GPU sends in a step of m passes, part by part.

    For l/p layers, y bytes per value and b sequences of s tokens:
    tensor     m · l/p · 4 · 2(t − 1)/t · ybsh/c, 6 instead of 4 with full
               recomputation; as `sequence`, with sequence parallelism, 5 and 7: backward
               gathers the input of each block again; half of it if the MLP is whole
               experts, each on one GPU, and no MLP that all tokens share
    context    m · l/p · 3(c − 1)/c · 2ybs·kd/t in a ring, 4 instead of 3 with full
               recomputation; m · l/p · 4(a + k)d(c − 1)/c · ybs/(ct) by all-to-all, 6
    expert     m · l/p · 4(e − 1)/e · ybs·top_k·h/(ct), 6 with full recomputation,
               times the `imbalance`: the fullest GPU's tokens over the average
    pipeline   m · 2v · ybsh/c, over t with sequence parallelism; one less than 2v on
               the two ends, where a pipeline of two has no middle
    data       `data_parallel_bytes` over the d·c ways that hold the same weights; of
               experts over t·c·d/(e·x), with x GPUs that share each of them

    `parameters` are those on the GPU before sharding, and `expert_parameters` are the ones
    of its experts. x is `expert_tensor_parallel`, by default t if e divides c·d, else 1; the
    last six arguments are those of `data_parallel_bytes`. Logits and embedding, split over the
    vocabulary, send as much as one layer and are left out. Raises ValueError if a split doesn't
    divide.

    Source: arXiv 2104.04473 sections 3.2 and 4.1; 2205.05198 section 4.2.2; 2310.01889;
    2309.14509 section 3.

    >>> model = Transformer.gpt(96, 12288, 96, 51200, 2048)
    >>> sent = step_traffic(model, 3e9, 1, 24, recompute="full", tensor_parallel=8,
    ...     pipeline_parallel=8, data_parallel=16)
    >>> sent.sequence / 1e9, sent.pipeline / 1e9, sent.data / 1e9
    (177.570054144, 0.301989888, 11.25)
    """
    b, m, t, p = as_sizes(micro_batch_size, accumulation_steps, tensor_parallel, pipeline_parallel)
    v, c, e, d = as_sizes(interleave, context_parallel, expert_parallel, data_parallel)
    P, E, y = as_results(parameters, expert_parameters, value_bytes)
    l, s, h, a = model.num_layers, model.sequence_length, model.hidden_size, model.num_heads
    [x] = as_sizes(expert_tensor_size(t, c, d, e, expert_tensor_parallel))
    split = Split(t * p * c * d, b, t, p, c, d, m, v, e, x)
    if any(map(is_array, (P, E, y, l, s, h, a, *vars(split).values()))):
        sizes = {
            x: size for x, size in {**vars(split), **model.numbers()}.items() if x != "num_gpus"
        }
        broadcast(parameters=P, expert_parameters=E, value_bytes=y, **sizes)
    at_most("imbalance", imbalance, "expert_parallel", e)
    divides("num_heads", a, "tensor_parallel", t)
    divides("sequence_length", s, "context_parallel", c)
    for rule in expert_rules(
        model, t, c, d, e, None if expert_tensor_parallel is None else x, sequence_parallel
    ):
        rule.check(*rule[1:])
    at_most("pipeline_parallel", p, "num_layers", l)

    # Forward and backward have two all-reduces each, or two trips to the experts and
    # back; full recomputation goes forward once more.
    recomputes = recompute == "full"
    rounds = 6 if recomputes else 4
    scattered = sequence_parallel
    values = b * (s // c) * h
    of_a_step = m * y  # bytes of one value, all m passes
    in_layers = of_a_step * split.layers(l)

    # An all-reduce, or the gather and the scatter that replace it with sequence
    # parallelism: the same bytes. A block's input is then stored in parts, and
    # backward gathers it again for the gradients of the weights.
    halves = 2 * rounds + (2 if scattered else 0)
    blocks = shared_blocks(model, split)
    reduced = in_layers * divide(halves * (t - 1) * values, t) * blocks

    # In a ring all keys and values pass each GPU: forward, and with their gradients
    # backward. All-to-all also sends queries and the output of attention, but a
    # GPU sends each of the others only the c-th of its own share.
    others = (c - 1) * b * s * model.head_dim
    if context == "ring":
        passed = 8 if recomputes else 6
        exchanged = divide(passed * model.num_kv_heads * others, c * t)
    else:
        divides("num_heads", a, "tensor_parallel·context_parallel", t * c)
        heads = a + model.num_kv_heads
        exchanged = divide(rounds * heads * others, c * c * t)

    # With sequence parallelism a GPU sends only its own t-th of the values.
    routed = (e - 1) * (rounds * values) * model.experts_per_token
    to_experts = divide(routed, e * t if scattered else e) * imbalance

    # A middle stage sends activations on and gradients back for each of its v pieces;
    # a pipeline of two has only ends, which have one border less.
    borders = where(p > 1, 2 * v - where(p == 2, 1, 0), 0)

    def between(parameters: Result, replicas: Result) -> Result:
        """Bytes between the GPUs that have the same weights."""
        [sent] = as_results(
            unchecked(data_parallel_bytes)(
                parameters,
                replicas,
                zero_stage,
                m,
                weight_bytes=weight_bytes,
                gradient_bytes=gradient_bytes,
                keep_gradients=keep_gradients,
                keep_weights=keep_weights,
                shard_size=shard_size,
            )
        )
        return sent

    # The c GPUs of each replica have the same weights, and so many of all have the same experts.
    at_most("expert_parameters", E, "parameters", P)
    data, copies = between(P, d * c), t * c * d // split.expert_ways
    if anywhere(copies != d * c) and given(E):
        some = maximum(E, 1)
        data = data + where(E > 0, between(some, copies) - between(some, d * c), 0)

    return Traffic(
        tensor=0 * reduced if scattered else reduced,
        sequence=reduced if scattered else 0 * reduced,
        context=in_layers * exchanged,
        expert=in_layers * to_experts,
        pipeline=of_a_step * divide(borders * values, t if scattered else 1),
        data=data,
    )


def shared_blocks(model: Transformer, split: Split) -> Result:
    """The share of a layer's two blocks that tensor-parallel GPUs reduce, averaged over layers.

    Whole experts don't reduce anything, because a GPU sends them its own tokens. An MLP that
    all tokens share is split as usual.

    >>> mixture = Transformer.llama(2, 64, 4, 4, 32, 99, 8, num_experts=4, experts_per_token=1)
    >>> [shared_blocks(mixture, Split(8, 1, 2, 1, 1, 4, 1, 1, 4, x)) for x in (2, 1)]
    [1, 0.5]
    """
    if not model.num_experts or not anywhere(split.expert_tensor != split.tensor_parallel):
        return 1
    alone = sum(
        how_many
        for how_many, layer in model.layers
        if isinstance(layer.mlp, Experts) and layer.mlp.shared is None
    )
    without = 1 - alone / (2 * model.num_layers)
    return where(split.expert_tensor == split.tensor_parallel, 1, without)


# --- seconds


@dataclass(frozen=True)
class CommunicationSeconds(Breakdown[Result]):
    """Seconds of a step's traffic, part by part, as if each part were alone.

    `behind` has the seconds of computing that a part can hide behind. If it takes longer
    than that, the rest is `visible`: the step gets longer by as much.
    """

    _not_parts = ("behind",)

    tensor: Result
    sequence: Result
    context: Result
    expert: Result
    pipeline: Result
    data: Result
    behind: Mapping[str, Result]

    @property
    def visible(self) -> dict[str, Result]:
        """The seconds of each part that aren't hidden behind computing."""
        hidden = {name: self.behind.get(name, 0) for name in self.parts()}
        return {x: maximum(s - hidden[x], 0 * s) for x, s in self.parts().items()}


@checked
def communication_seconds(
    traffic: Traffic,
    accelerator: Accelerator,
    *,
    tensor_parallel: Count[Number] = 1,
    pipeline_parallel: Count[Number] = 1,
    context_parallel: Count[Number] = 1,
    expert_parallel: Count[Number] = 1,
    expert_tensor_parallel: Count[Number] | None = None,
    data_parallel: Count[Number] = 1,
    calls: Mapping[str, Number] | None = None,
    behind: Mapping[str, Number] | None = None,
) -> CommunicationSeconds | None:
    """Seconds of a step's traffic: bytes over bandwidth, and a latency for each call.

    GPUs are numbered through the nodes: tensor-parallel ones are neighbours, then
    context, then data; a pipeline's stages lie farthest apart. A group inside one node
    uses the links, a ring over nodes all network cards of its GPUs there, a message
    across a border its GPU's own card (`bandwidth_of`). `calls` counts the collectives
    or messages of a part in a step, at `LATENCY` each. `behind` has the seconds of
    computing that a part can hide behind (see `CommunicationSeconds.visible`): none, unless
    you give them.

    Returns seconds, or None if the accelerator's links are unknown. Raises ValueError for
    bad sizes, and for parts that `Traffic` doesn't have.

    >>> h100 = Accelerator("H100", 80e9, link_bandwidth=450e9, network_bandwidth=50e9)
    >>> sent = Traffic(0, 50e9, 0, 0, 0, 16e9)
    >>> taken = communication_seconds(sent, h100, tensor_parallel=8, data_parallel=16,
    ...     behind={"data": 0.3})
    >>> round(taken.sequence, 3), round(taken.data, 3), round(taken.visible["data"], 3)
    (0.159, 0.348, 0.048)
    """
    t, p, c = as_sizes(tensor_parallel, pipeline_parallel, context_parallel)
    e, d = as_sizes(expert_parallel, data_parallel)
    [x] = as_sizes(expert_tensor_size(t, c, d, e, expert_tensor_parallel))
    split = Split(t * p * c * d, 1, t, p, c, d, 1, 1, e, x)
    numbers = {
        "traffic": _by_part("traffic", traffic.parts()),
        "calls": _by_part("calls", {} if calls is None else calls),
        "behind": _by_part("behind", {} if behind is None else behind),
    }
    broadcast(
        tensor_parallel=t,
        pipeline_parallel=p,
        context_parallel=c,
        expert_parallel=e,
        data_parallel=d,
        **({} if expert_tensor_parallel is None else {"expert_tensor_parallel": x}),
        **vars(accelerator),
        **{f"{name}[{x!r}]": n for name, parts in numbers.items() for x, n in parts.items()},
    )
    sent = Traffic(**numbers["traffic"])
    return traffic_seconds(sent, accelerator, split, numbers["calls"], numbers["behind"])


def _by_part(name: str, numbers: Mapping[str, Number]) -> dict[str, Result]:
    """Check numbers by the part of the traffic that they belong to."""
    instance(name, numbers, Mapping)
    for part in numbers:
        choice(name, part, [field.name for field in fields(Traffic)])
    return {part: amount(f"{name}[{part!r}]", value) for part, value in numbers.items()}


def traffic_seconds(
    traffic: Traffic,
    accelerator: Accelerator,
    split: Split,
    calls: Mapping[str, Result],
    behind: Mapping[str, Result],
) -> CommunicationSeconds | None:
    """Seconds of a step's traffic under a `Split`, part by part: see `communication_seconds`.

    >>> h100 = Accelerator("H100", 80e9, link_bandwidth=450e9, network_bandwidth=50e9)
    >>> sent = Traffic(0, 50e9, 0, 0, 0, 0)
    >>> round(traffic_seconds(sent, h100, Split(8, 1, 8, 1, 1, 1, 1), {}, {}).sequence, 3)
    0.159
    """
    if accelerator.link_bandwidth is None or accelerator.network_bandwidth is None:
        return None
    t, p = split.tensor_parallel, split.pipeline_parallel
    c, e, d = split.context_parallel, split.expert_parallel, split.data_parallel
    neighbours = _bandwidth(accelerator, t)
    rates = {
        "tensor": neighbours,
        "sequence": neighbours,
        "context": _bandwidth(accelerator, c, t),
        "expert": _bandwidth(accelerator, e, split.expert_stride, ring=False),
        "pipeline": _bandwidth(accelerator, p, t * c * d, ring=False),
        "data": _bandwidth(accelerator, d * c, t),
    }
    seconds = {
        name: sent / rates[name] + LATENCY * calls.get(name, 0)
        for name, sent in traffic.parts().items()
    }
    return CommunicationSeconds(**seconds, behind=behind)


@checked
def bandwidth_of(
    accelerator: Accelerator, size: Count[Number], stride: Count[Number] = 1, ring: bool = True
) -> Result | None:
    """Bytes/s that one GPU of a group sends, without latency; None if unknown.

    A group has `size` GPUs, each `stride` places from the next. Inside a node it is
    `LINK_SHARE` of the link. Between nodes, a ring leaves each of them once, and its GPUs
    there share their cards, at `NETWORK_SHARE`; anything else (all-to-all, a pipeline's
    border) uses the GPU's own card.

    >>> h100 = Accelerator("H100", 80e9, link_bandwidth=450e9, network_bandwidth=50e9)
    >>> [bandwidth_of(h100, size) / 1e9 for size in (8, 16)]
    [315.0, 315.0]
    >>> bandwidth_of(h100, 16, stride=8) / 1e9  # one GPU of each node: its own card
    46.0
    """
    broadcast(size=size, stride=stride, **vars(accelerator))
    if accelerator.link_bandwidth is None or accelerator.network_bandwidth is None:
        return None
    n, places = as_sizes(size, stride)
    return _bandwidth(accelerator, n, places, ring)


def _bandwidth(accelerator: Accelerator, size: Size, stride: Size = 1, ring: bool = True) -> Result:
    """`bandwidth_of` for sizes that have been checked, and links that are known."""
    link, card = accelerator.link_bandwidth, accelerator.network_bandwidth
    assert link is not None
    assert card is not None
    node = accelerator.gpus_per_node
    neighbours = maximum(node / stride, 1) if ring else 1
    fast, slow = link * LINK_SHARE, card * neighbours * NETWORK_SHARE
    return where(size * stride <= node, fast, minimum(slow, fast))
