"""The seconds of a step under a split. Goes with notebooks/08_parallelism.ipynb.

A model with one fitted constant, a layer's kernel launches; everything else is counted: FLOPs
at the chip's best measured share, trips to memory, communication. `splits.fit_kernel_launch`
fits it to measured steps, and a test checks it.

Sources: the rates of matrix products and collectives in data/matmul_measured.csv and
data/collectives_measured.csv; Narayanan et al. (arXiv 2104.04473), section 2.2, for the
bubble; Korthikanti et al. (arXiv 2205.05198) for the bytes of activations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from llmtrain_helpers.checks import Result, Size
from llmtrain_helpers.communication import (
    LATENCY,
    NETWORK_SHARE,
    CommunicationSeconds,
    Traffic,
    bandwidth_of,
    shared_blocks,
    traffic_seconds,
)
from llmtrain_helpers.flops import count_flops, expert_flops
from llmtrain_helpers.model import Accelerator
from llmtrain_helpers.parallelism import Split
from llmtrain_helpers.plan.memory import ends, kept_activations, offload_seconds, stage_parameters
from llmtrain_helpers.plan.run import Run
from llmtrain_helpers.plan.seconds import StepSeconds
from llmtrain_helpers.results import maximum, minimum, where
from llmtrain_helpers.tuning import tuned_parameters


class Kernels(NamedTuple):
    """Seconds to launch a layer's kernels in a forward pass, and bytes through memory per logit."""

    launch: float
    loss_bytes: int


KERNEL_LAUNCH = 0.64e-3
"""Seconds to launch a layer's kernels in a forward pass (backward is two), one by one.

Fitted to one team's layouts. Launches run alongside computing (see `layer_seconds`)."""

EAGER = Kernels(KERNEL_LAUNCH, loss_bytes=60)
"""Kernels one by one, as PyTorch runs them. The bytes are assumed: 15 reads and writes in fp32."""

COMPILED = Kernels(0.2e-3, loss_bytes=14)
"""Kernels fused by a compiler or a programmer: they launch in a third of the time and pass
over the logits once (we chose both values, and tested them on publications left out)."""

MEGATRON_CORE = Kernels(KERNEL_LAUNCH, loss_bytes=14)
"""Megatron-Core's: the loss is fused, and the layers launch one by one."""

SUSTAINED = {("H100", "H200", "H20", "H800", "GH200"): 0.9, ("B200", "B300", "GB200", "GB300"): 0.8}
"""The share of their best short matrix product that newer chips sustain, by start of name.

The more power a chip needs, the sooner it slows down. We chose tenths: on the newer of two
generations, the same software reaches 0.78 to 0.89 of what its best products promise
(`splits.by_generation`)."""

EXPERT_RATE = 0.5
"""The rate of the experts' products relative to large ones, because each expert only has a
few of the tokens. We chose it: with 1, the median error of published steps doubles."""

TRIPS = 2
"""Trips of a layer's activations to memory in a pass: each is written and read once (assumed)."""

OPTIMIZER_BYTES = 60
"""Bytes through memory for each parameter at the update: assumed, twice the 30 of a fused Adam.

That one reads the gradient, the fp32 weight and both moments, and writes the last three and
the 16-bit weight. Without an update no choice among measured splits is over 1% slower."""


def unknown_figures(run: Run) -> tuple[str, ...]:
    """What of a chip is not known that the model of a step wants, in words."""
    chip = run.accelerator
    rates = [chip.matmul_rate(x) for x in (run.number_format, run.wide_format)]
    figures = {
        "link": chip.link_bandwidth,
        "network": chip.network_bandwidth,
        "memory bandwidth": chip.bandwidth,
        "best matrix product": None if None in rates else rates[0],
    }
    return tuple(name for name, figure in figures.items() if figure is None)


def sustained_rate(chip: Accelerator, format: str) -> Result | None:
    """FLOP/s of a chip's best matrix product, as far as it can sustain them; None if unknown."""
    best = chip.matmul_rate(format)
    shares = (share for names, share in SUSTAINED.items() if chip.name.startswith(names))
    return None if best is None else best * next(shares, 1)


def step_parts(run: Run, sent: Traffic) -> StepSeconds | None:
    """Seconds of a step, part by part, without stops; `sent` is what a GPU of the stage sends."""
    model, chip, split = run.model, run.accelerator, run.split
    rate, wide_rate = (sustained_rate(chip, x) for x in (run.number_format, run.wide_format))
    bandwidth = chip.bandwidth
    if unknown_figures(run) or rate is None or wide_rate is None or bandwidth is None:
        return None
    t, c, p = split.tensor_parallel, split.context_parallel, split.pipeline_parallel
    m, b, v = split.accumulation_steps, split.micro_batch_size, split.interleave
    l = model.num_layers

    # A stage's layers and one micro-batch: products, trips to memory, kernel launches. Tokens
    # meet tokens, and the head its logits, in 16 bits also where the weights work in 8.
    counted = count_flops(model, 1, run.recompute)
    of_scores = counted.scores * (4 if run.recompute in ("selective", "full") else 3) / 3
    of_weights = counted.total - counted.head - of_scores + extra_flops(run, 1)
    here = split.layers(l) / l
    fused = run.fused_mlp is True  # `PACES` were found with what Megatron-Core fuses apart
    trips = TRIPS * run.layer_passes * kept_activations(run, model, "none", fused).layers / c
    matmuls = here * b * (of_weights / rate + of_scores / wide_rate) / (t * c)
    memory = here * trips / bandwidth
    computing = matmuls + memory

    # What travels, and what of it no computing hides.
    visible = travel_seconds(run, sent, matmuls, computing).visible
    tensor, context, expert = (
        visible["tensor"] + visible["sequence"],
        visible["context"],
        visible["expert"],
    )

    # The update: every parameter and its states through memory, a share of them with ZeRO.
    P = stage_parameters(model, ends(split)[0])
    replicas = run.sharing if run.zero_stage else 1
    update = OPTIMIZER_BYTES * P / replicas / bandwidth
    if run.offload != "none":  # it is the CPU's, and what it takes goes over the bus
        update = offload_seconds(run)

    def parts(kernels: Kernels) -> StepSeconds:
        """All parts with such kernels, which launch, and compute the loss."""
        alongside = layer_seconds(run, computing, here * launch_seconds(run, kernels))
        of_layers = alongside + (tensor + context + expert) / m
        # The logits and their loss, on a stage that may have a layer less.
        through_memory = kernels.loss_bytes * (model.sequence_length * model.vocab_size) / (t * c)
        head = b * (counted.head / (wide_rate * t * c) + through_memory / bandwidth)
        return StepSeconds(
            matmuls=m * matmuls,
            memory=m * memory,
            kernel_launch=m * (alongside - computing),
            tensor=tensor,
            context=context,
            expert=expert,
            head=m * maximum(head - spared_share(split, l) * of_layers, 0.0),
            pipeline=visible["pipeline"],
            bubble=(p - 1) / v * (of_layers + visible["pipeline"] / m),
            data=visible["data"],
            optimizer=update,
        )

    fast, slow = kernels_of(run)
    step = parts(slow)
    return step if fast is slow else replace(step, compiled=parts(fast).total / step.total)


def kernels_of(run: Run) -> tuple[Kernels, Kernels]:
    """The fastest and the slowest kernels that a run may have: the same, if it says which.

    Nobody but NVIDIA has published steps of experts that are judged.
    """
    if run.compiled is not None:
        of_run = COMPILED if run.compiled else EAGER
        return of_run, of_run
    if run.software == "megatron-core" or run.model.num_experts:
        return MEGATRON_CORE, MEGATRON_CORE
    return COMPILED, EAGER


def launch_seconds(run: Run, kernels: Kernels) -> Result:
    """Seconds to launch the kernels of all layers, forward and backward, for a micro-batch."""
    return kernels.launch * run.layer_passes * run.model.num_layers


def layer_seconds(run: Run, computing: Result, launches: Result) -> Result:
    """Seconds of layers whose kernels are launched alongside computing: √(computing² + launches²).

    With experts they add up, because first you have to know how many tokens each one gets.
    """
    if run.model.num_experts:
        return computing + launches
    alongside: Result = (computing**2 + launches**2) ** 0.5
    return alongside


def extra_flops(run: Run, sequences: Size) -> Result:
    """FLOPs equivalent to the extra time of experts' products, beyond the average ones.

    They run at `EXPERT_RATE`, and the GPU with the fullest experts has more of them.
    """
    if not run.model.num_experts:
        return 0
    of_experts = expert_flops(run.model, sequences, run.recompute)
    return of_experts * ((1 + run.excess) / EXPERT_RATE - 1)


def excess_flops(run: Run, sequences: Size) -> Result:
    """FLOPs that the GPU with the fullest experts has above the average, for these sequences."""
    if run.imbalance == 1:
        return 0
    return run.excess * expert_flops(run.model, sequences, run.recompute)


def spared_share(split: Split, num_layers: Size) -> Result:
    """The share of its layers that the last stage doesn't have if they're split unevenly.

    One layer, as BLOOM, Llama 3 405B and torchtitan do it: the head counts as one.
    """
    here = split.layers(num_layers)
    return (here * split.pipeline_parallel > num_layers) / here


def travel_seconds(
    run: Run, sent: Traffic, matmuls: Result, computing: Result
) -> CommunicationSeconds:
    """The traffic of a stage in a step, its calls, and the computing that hides it.

    `matmuls` and `computing` are the seconds of its layers for a micro-batch. Gradients
    overlap with the last backward pass, which is two thirds of a pass, or half of one that
    recomputes; from ZeRO 2 on, with every backward; ZeRO 3's weights also with forward. The
    new weights that ZeRO 1 and 2 gather after the update overlap with the next forward.
    """
    split = run.split
    t, p, m = split.tensor_parallel, split.pipeline_parallel, split.accumulation_steps
    replicas = split.data_parallel * split.context_parallel
    blocks = 2 * shared_blocks(run.model, split)
    all_reduces = m * split.layers(run.model.num_layers) * (run.layer_passes - 1) * blocks
    backward = computing * 2 / run.layer_passes
    overlap_seconds = {2: m * backward, 3: m * computing}.get(run.zero_stage, backward)
    calls = {
        "sequence" if run.sequence_parallel else "tensor": where(t > 1, all_reduces, 0),
        "pipeline": where(p > 1, m * 2 * split.interleave, 0),
        "data": where(replicas > 1, 1, 0),
    }
    behind = dict.fromkeys(run.overlapped_traffic, m * matmuls)
    seconds = traffic_seconds(sent, run.accelerator, split, calls, behind)
    assert seconds is not None  # the links are known here
    if run.model.num_experts:
        seconds = replace(seconds, expert=expert_seconds(run, sent.expert))
    if run.shard_size is not None:
        seconds = replace(seconds, data=hybrid_seconds(run, sent.data, replicas))
    of_weights = seconds.data * share_after_update(run)
    hidden = minimum(seconds.data - of_weights, overlap_seconds)
    hidden = hidden + minimum(of_weights, computing / run.layer_passes)
    return replace(seconds, behind=behind | {"data": hidden})


def hybrid_seconds(run: Run, sent: Result, replicas: Size) -> Result:
    """Seconds of replica traffic if each node has all states: inside the node, then across."""
    t, q = run.tensor_parallel, run.sharing
    of_nodes = replicas // q
    across = sent * share_across(run, of_nodes)
    chip, calls = run.accelerator, where(q > 1, 1, 0) + where(of_nodes > 1, 1, 0)
    in_node, over_nodes = bandwidth_of(chip, q, t), bandwidth_of(chip, of_nodes, q * t)
    assert in_node is not None  # the links are known here
    assert over_nodes is not None
    return (sent - across) / in_node + across / over_nodes + LATENCY * calls


def tuned_wait(run: Run, sent: Traffic) -> Result | None:
    """Seconds that a tuned step waits for other GPUs, beyond what measured speeds include.

    Those are of whole matrices on one node. So it's all that tensor-parallel GPUs send, and
    how much longer replicas take to send over the network than over the links: 0 on one
    node. Nothing hides it, as where adapters were tuned on one node and on several
    (`research.finetunes.nodes`). None if the chip's links or network are unknown, and 0 if
    the run has a speed of its own.
    """
    if run.tuning is None or run.utilizations is not None or run.flops_per_gpu is not None:
        return 0.0
    chip, t, d, q = run.accelerator, run.tensor_parallel, run.split.data_parallel, run.sharing
    if run.num_gpus <= chip.gpus_per_node:
        if t == 1:
            return 0.0
        if chip.network_bandwidth is None:  # nothing goes there
            chip = replace(chip, network_bandwidth=chip.link_bandwidth)
            run = run.replace(accelerator=chip)
    in_node = bandwidth_of(chip, 1)
    if in_node is None:
        return None
    alone = travel_seconds(run, sent, 0.0, 0.0)
    leaves, group = sent.data, (d, t)
    if q < d and q * t <= chip.gpus_per_node:  # each node has all states
        leaves, group = bytes_across(run), (d // q, q * t)
    over_nodes = bandwidth_of(chip, *group)
    assert over_nodes is not None
    return alone.tensor + alone.sequence + leaves / over_nodes - leaves / in_node


def bytes_across(run: Run) -> Result:
    """Bytes of gradients that a GPU of a tuned run sends to those with the same share of states."""
    if run.tuning is None or run.sharing == run.split.data_parallel:
        return 0.0
    d, q = run.split.data_parallel, run.sharing
    learning = tuned_parameters(run.model, run.tuning, run.tensor_parallel).learning
    return 2 * run.bytes_of.gradients * learning * (d - q) / (d * q)


def expert_seconds(run: Run, sent: Result) -> Result:
    """Seconds of expert traffic: over the links, and to each other node only once.

    Of a token's k copies, (r − 1)(1 − (1 − 1/r)^k) go to other nodes if the experts are
    spread over r nodes and are all equally likely.
    """
    e, k, chip = run.expert_parallel, run.model.experts_per_token, run.accelerator
    r = maximum(e * run.split.expert_stride / chip.gpus_per_node, 1)
    copies = maximum(k * (e - 1) / e, 1e-30)
    across = sent * minimum((r - 1) * (1 - (1 - 1 / r) ** k) / copies, 1.0)
    in_node, card = bandwidth_of(chip, 1), chip.network_bandwidth
    assert in_node is not None  # the links are known here
    assert card is not None
    return sent / in_node + across / (card * NETWORK_SHARE)


def share_across(run: Run, nodes: Size) -> Result:
    """The share of replica traffic that leaves the node with hybrid sharding.

    2(r − 1)/r · g/q per parameter leaves it, with r nodes of q GPUs each; inside, every pass
    sends (q − 1)/q times two gathers of weights and one reduction of gradients.
    """
    q, passes = run.sharing, run.split.accumulation_steps
    weights, gradients = run.bytes_of.weights, run.bytes_of.gradients
    averaged = gradients if run.keep_gradients else passes * gradients
    inside = (q - 1) * (averaged + 2 * passes * weights)
    across = 2 * (nodes - 1) / nodes * gradients
    return across / maximum(inside + across, 1e-30)


def share_after_update(run: Run) -> Result:
    """The share of replica traffic that is new weights, gathered after the update."""
    if run.zero_stage not in (1, 2):
        return 0.0
    averaged = run.zero_stage == 2 and not run.keep_gradients
    passes = run.split.accumulation_steps if averaged else 1
    weights, gradients = run.bytes_of.weights, run.bytes_of.gradients
    return weights / (weights + passes * gradients)
