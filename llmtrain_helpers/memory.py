"""A GPU's memory over time: one table of moments, for training and for tuning.

A step peaks at one of four moments: while the loss is differentiated, when backward enters
the last layer, when it leaves the first, and at the update. Between the two in the middle,
memory changes linearly (each layer frees its activations and adds its gradients), so the
ends are enough. Shared by chapters 06, 09 and 13.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import reduce
from typing import Literal, NamedTuple, TypeAlias, get_args

from llmtrain_helpers.checks import Result, Size, cache_per_model, choice, given, refuse
from llmtrain_helpers.deprecated import OldName
from llmtrain_helpers.model.layers import Layer
from llmtrain_helpers.model.transformer import Transformer, over_layers
from llmtrain_helpers.precision import Recipe
from llmtrain_helpers.results import Breakdown, divide, greatest, maximum, minimum, where

MomentName: TypeAlias = Literal["loss", "last layer", "first layer", "update"]

MOMENTS: list[MomentName] = [*get_args(MomentName)]
"""The moments of a step that can be the peak, in order."""

LossKernel: TypeAlias = Literal["transformers", "plain", "in-place", "chunked", "fused"]

LOSS_KERNELS: dict[LossKernel, int] = {
    "transformers": 14,
    "plain": 12,
    "in-place": 10,
    "chunked": 4,
    "fused": 0,
}
"""Bytes per logit at the peak of the loss, by kernel.

`transformers` is what its trainer does: 2 for the logits that it holds, and 4 each for their
fp32 copy, the log-probabilities and the gradient (counted); `plain` is the same if nobody
holds the logits; `in-place` is a kernel that overwrites the fp32 logits with the gradient,
plus the copy that shifting to the next token makes; `chunked` has 16-bit logits and their
log-probabilities; `fused` never has all the logits at once."""

Offload: TypeAlias = Literal["none", "optimizer", "weights"]
"""What the CPU stores and updates instead of the GPU: nothing; the optimizer's states and main
weights; or the weights too, which arrive layer by layer when they're needed."""

OFFLOAD: list[Offload] = [*get_args(Offload)]

OFFLOAD_BANDWIDTH = 25e9
"""Bytes/s between a GPU and its host, each way: the most anyone measured of the 31e9 of 16
lanes of PCIe 4 (ZaidQureshi/bam#54), with pinned memory. DeepSpeed didn't pin by default
until 2026 (its #8207), and a 7B's offload took others 8 to 9 times longer than this."""

CPU_ADAM = 0.257e-9
"""Seconds per parameter of AdamW on a node's two CPUs: the median of five, 0.22 to 0.30 ns
for 1 to 10 billion (Ren et al., arXiv 2101.06840, Table 4: DeepSpeed's CPU-Adam on a DGX-2)."""


@dataclass(frozen=True)
class Memory(Breakdown[Result]):
    """Bytes on a GPU at a moment of a step, part by part.

    `weights` include frozen ones; `main_gradients` and `main_weights` are as in chapter 05,
    sharded; `activations` are those of all micro-batches in flight; `transient` only exists at
    this moment: logits, the layer at work, gathered weights, the update's copy. `moment`
    names the moment, and `logits` are those in `transient`.
    """

    _not_parts = ("moment", "logits")

    weights: Result
    gradients: Result
    main_gradients: Result
    main_weights: Result
    optimizer: Result
    activations: Result
    transient: Result
    moment: str = ""
    logits: Result = 0

    phase = OldName("moment")


TunedMemory = Memory
"""Its older name, for a model that is tuned."""


class Stored(NamedTuple):
    """What a GPU stores during a step, in bytes: the rows of the table of moments.

    `gradients` and `main_gradients` are all of them, as backward leaves them. `earlier` is the
    share of them that earlier passes have left when a pass begins, 0 or 1; of `of_all` numbers
    that learn, `of_head` are the head's, whose gradients are there first. `others` are the
    activations of other micro-batches in flight, `layers` those of this one, `layer` what one
    layer keeps of it, `head` what the head does. `working` is what the layer at work in
    backward has beside it; `ends` the gathered embedding and head, `gathered` the gathered
    layers, `copy` the update's.
    """

    weights: Result
    gradients: Result
    main_gradients: Result
    main_weights: Result
    optimizer: Result
    earlier: Result
    of_head: Result
    of_all: Result
    others: Result
    layers: Result
    layer: Result
    head: Result
    logits: Result
    working: Result
    ends: Result = 0
    gathered: Result = 0
    copy: Result = 0

    def moments(self) -> tuple[Memory, ...]:
        """Return the memory at each of the four moments.

        |                              | loss | last layer | first layer | update |
        |------------------------------|------|------------|-------------|--------|
        | weights, optimizer           | all  | all        | all         | all    |
        | gradients    | earlier passes' | those or the head's | all   | all    |
        | activations of others        | all  | all        | all         |        |
        | of this micro-batch          | all  | all        | one layer   |        |
        | what the head keeps, logits  | all  |            |             |        |
        | the layer at work, layers gathered |  | all      | all         |        |
        | ends gathered                | all  | all        | all         |        |
        | the update's copy            |      |            |             | all    |
        """
        kept = self.others + self.layers
        at_work = self.working + self.ends + self.gathered
        left = self.earlier * self.of_all
        return (
            self._at("loss", left, kept + self.head, self.logits + self.ends, self.logits),
            self._at("last layer", maximum(left, self.of_head), kept, at_work),
            self._at("first layer", self.of_all, self.others + self.layer, at_work),
            self._at("update", self.of_all, 0, self.copy),
        )

    @property
    def states(self) -> Result:
        """Bytes of the model's states: weights, gradients and the optimizer's."""
        in_32_bits = self.main_gradients + self.main_weights
        return self.weights + self.gradients + in_32_bits + self.optimizer

    def offloaded(
        self, offload: Offload, zero_stage: int, at_work: Result, keep_gradients: bool = False
    ) -> Stored:
        """Return the same without anything that is offloaded to the CPU.

        The CPU has the main gradients, main weights, optimizer states and the update. From ZeRO 2
        on, gradients leave in each pass as soon as they're averaged, unless they're kept, so at
        most `at_work` bytes remain. Below that, they remain until the update.
        Source: Ren et al. (arXiv 2101.06840), section 4; DeepSpeed's `offload_optimizer` and
        `offload_param`; PyTorch's `CPUOffloadPolicy`, which does both.
        """
        if offload == "none":
            return self
        leave = zero_stage >= 2 and not keep_gradients
        return self._replace(
            weights=0 if offload == "weights" else self.weights,
            gradients=0 if leave else self.gradients,
            main_gradients=0,
            main_weights=0,
            optimizer=0,
            copy=0,
            working=self.working + leave * minimum(self.gradients, at_work),
        )

    def offload_seconds(
        self, offload: Offload, each: Recipe, passes: Size, sent: Size, on_node: Size
    ) -> Result:
        """Return the seconds that offload adds to a step (bus and update) if computing hides none.

        Gradients are `sent` this many times per step, and the new weights return; or else all
        weights arrive in forward and backward of each of the `passes`. A node's CPUs update the
        weights of `on_node` GPUs.
        """
        if offload == "none":
            return 0
        updated = divide(self.optimizer, each.optimizer)
        fetched = 2 * passes * self.weights if offload == "weights" else each.weights * updated
        return bus_seconds(sent * each.gradients * updated, fetched) + CPU_ADAM * on_node * updated

    def _at(
        self,
        moment: str,
        numbers: Result,
        activations: Result,
        transient: Result,
        logits: Result = 0,
    ) -> Memory:
        """Return the memory at a moment, with gradients for this many numbers."""
        return Memory(
            self.weights,
            divide(self.gradients, self.of_all) * numbers,  # first divided: arrays overflow
            divide(self.main_gradients, self.of_all) * numbers,
            self.main_weights,
            self.optimizer,
            activations,
            transient,
            moment,
            logits,
        )


def bus_seconds(
    sent: Result, fetched: Result, host_bandwidth: Result = OFFLOAD_BANDWIDTH
) -> Result:
    """Return the seconds for the bytes that a GPU sends to its host and receives from it.

    They don't overlap: gradients are sent before the update, and weights return after it.

    >>> bus_seconds(16e9, 16e9)
    1.28
    """
    return (sent + fetched) / host_bandwidth


def check_offload(offload: object, zero_stage: int, optimizer: str, each: Recipe) -> Offload:
    """Check what is offloaded, and refuse it if the run can't offload it.

    The optimizer has to be an AdamW with its states on the GPU, and weights sharded.
    """
    what = choice("offload", offload, OFFLOAD)
    if what == "none":
        return what
    if optimizer not in ("adamw", "adamw_fused"):
        refuse("offload", what, f"isn't planned with optimizer={optimizer!r}, only with AdamW's")
    if each.optimizer == 0:
        refuse("offload", what, f"isn't planned with recipe={each.name!r}, which has no states")
    if what == "weights" and zero_stage < 3:
        problem = f"is for weights that are sharded, not for zero_stage={zero_stage}: write 3"
        refuse("offload", what, problem)
    return what


def fullest(moments: Iterable[Memory]) -> Memory:
    """Return the first moment with the most bytes; for arrays, element by element."""
    return reduce(_fuller, moments)


def _fuller(one: Memory, other: Memory) -> Memory:
    fuller = one.total >= other.total
    if isinstance(fuller, bool):
        return one if fuller else other
    names = [item.name for item in fields(Memory)]
    return Memory(
        **{name: where(fuller, getattr(one, name), getattr(other, name)) for name in names}
    )


def mlp_gradients(layer: Layer, hidden_size: Size) -> Size:
    """Count the values per token whose gradients a layer's MLP needs at once in backward.

    Two widths of the MLP, or one without a gate: the gradient of its product and those of the
    factors, minus the product itself, which is free by then. Experts count if chosen.
    """
    if layer.mlp is None:
        return 0
    matrices = layer.mlp.matrices(hidden_size)
    widths = 2 if any("gate" in m.name for m in matrices) else 1
    return widths * sum(m.active * m.rows for m in matrices if m.name.endswith("down"))


@cache_per_model
def widest_gradients(model: Transformer) -> Size:
    """Count these values in the layer of a model that has the most."""
    return greatest(mlp_gradients(kind, model.hidden_size) for kind in model.kinds)


def gradients_at_once(optimizer: str, learning: Size, largest: Size) -> Size:
    """Count the numbers with a gradient at once: all that learn, or the largest matrix.

    `adamw_in_backward` updates each matrix as soon as it has its gradient, and frees that.
    """
    return minimum(learning, largest) if optimizer == "adamw_in_backward" else learning


def copied_bytes(optimizer: str, weights: Result, main_weights: Result) -> Result:
    """Return the bytes that an update copies per number that learns.

    PyTorch's own AdamW (`adamw`) updates all numbers at once, using a copy (counted).
    """
    return (optimizer == "adamw") * (main_weights or weights)


def working_bytes(recompute: str, again: Result, gradients: Result) -> Result:
    """Return what the layer in backward needs for recomputed values and for gradients.

    Recomputed scores never overlap with the MLP's gradients: they come before or after them.
    A recomputed layer is in memory as a whole.
    """
    return maximum(again, gradients) if recompute == "selective" else again + gradients


def kv_cache_bytes(model: Transformer, tokens: Size = 1) -> Size:
    """Return the bytes of a sequence's keys and values in 16 bits, which a KV cache stores.

    Each layer keeps 2 · 2kd · min(tokens, window), for k key-value heads of size d, and latent
    attention kv_rank + rotary_dim instead of 2kd. A recurrence has a state that doesn't grow,
    which isn't counted. Source: DeepSeek-V2 (arXiv 2405.04434), Table 1.

    >>> kv_cache_bytes(Transformer.llama(32, 4096, 32, 8, 14336, 128256, 8192))  # Llama 3.1 8B
    131072
    """

    def numbers(layer: Layer) -> Size:
        ways = ((x.window, m) for x in layer.mixers for m in x.matrices(model.hidden_size))
        cached = ((w, m.columns) for w, m in ways if m.name in ("key", "value", "key_value_down"))
        return sum(minimum(tokens, w if given(w) else tokens) * columns for w, columns in cached)

    return 2 * over_layers(model, numbers)
