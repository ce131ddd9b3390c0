"""Chapter 12: the formulas, held against PyTorch. Beside notebooks/12_measure.ipynb.

Each function returns what the formula returns that it checks, so that confronting is
`formula == measured`. All need PyTorch, which the rest of the course does without:
`torch_missing` says how to get it. It is imported when a function is called.

Sources: PyTorch's own instruments (its FLOP counter, its hooks for saved tensors, its
dispatcher, its profiler), run on the small models of `measure.model`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from llmtrain_helpers.activations import ActivationCount, Kernel, Timeline
from llmtrain_helpers.checks import (
    amount,
    at_most,
    choice,
    divides,
    flag,
    instance,
    one,
    refuse,
    single,
)
from llmtrain_helpers.flops import RECOMPUTE, FlopCount
from llmtrain_helpers.model.layers import Attention, Experts, LatentAttention, Layer, Mlp
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import ParameterCount

if TYPE_CHECKING:
    from llmtrain_course.measure.clock import Experiments
    from llmtrain_course.measure.trace import Trace

TRAINABLE = ["fp32", "bf16", "bf16_fp32_grads", "bf16_both_grads", "pure_bf16"]
"""The recipes that can be run: those without autocast and without fp8."""

PHASES = ["forward", "backward", "optimizer"]
"""What a step consists of, in order."""


def torch_missing() -> str | None:
    """Explain how to install PyTorch, in one sentence; None if it's installed."""
    if find_spec("torch") is not None:
        return None
    return (
        "PyTorch is not installed: run `pip install 'torch>=2.13'` in this "
        "environment, then restart the kernel; the rest of the course works without it."
    )


def measure_parameters(model: Transformer) -> ParameterCount:
    """Count the parameters of the PyTorch model of this shape, part by part.

    Takes a `Transformer`, returns a `ParameterCount` of exact ints; on the meta device,
    so that no size is too large. ImportError without PyTorch, ValueError for a shape of
    arrays. Source: the sizes of `nn.Module.named_parameters`.
    """
    shape = _check_shape(model)
    return _torch_module("counting").parameters(shape)


def measure_flops(model: Transformer, batch_size: int, recompute: str) -> FlopCount:
    """Count the FLOPs of one iteration with PyTorch, forward and backward.

    Takes a `Transformer`, sequences a batch, and what is computed a second time:
    "none", "selective" or "full". Returns a `FlopCount` in FLOP, exact ints, attention
    dense and explicit. Errors as in `measure_parameters`, and ValueError for bad input.

    Source: torch.utils.flop_counter, and torch.utils.checkpoint without early stop.
    """
    shape, B = _check_shape(model), single("batch_size", batch_size)
    choice("recompute", recompute, RECOMPUTE)
    return _torch_module("counting").flops(shape, B, recompute)


@dataclass(frozen=True)
class SavedTensor:
    """A tensor that's stored for backward: where, how large, and under which part.

    `left_out` names what the formulas leave out (norm statistics, logsumexp, token ids,
    routing, the loss itself); it is empty for what they count.
    """

    part: str
    module: str
    shape: tuple[int, ...]
    bytes: int
    left_out: str


def saved_tensors(
    model: Transformer,
    micro_batch_size: int,
    recompute: str = "none",
    attention: str = "flash",
    dropout: bool = False,
) -> tuple[SavedTensor, ...]:
    """List what autograd saves for backward in a forward pass in bf16, tensor by tensor.

    Each storage once, in the order in which they are saved; weights and constant tables
    left out. Takes a shape, sequences, and the options of `count_activations`; bytes.
    Errors as in `measure_flops`.

    Source: torch.autograd.graph.saved_tensors_hooks, on the meta device. It has the
    CUDA kernels' sizes: statistics in fp32, masks of one byte.
    """
    shape, b = _check_shape(model), single("micro_batch_size", micro_batch_size)
    options = _options(recompute, attention, dropout)
    return _torch_module("counting").saved(shape, b, **options)


def measure_activations(
    model: Transformer,
    micro_batch_size: int,
    recompute: str = "none",
    attention: str = "flash",
    dropout: bool = False,
) -> ActivationCount:
    """Measure the bytes that autograd stores for backward, part by part.

    The sum of `saved_tensors` but for those that it marks as left out: norm statistics
    (8sb each LayerNorm, 4sb each RMSNorm), flash attention's logsumexp (4abs a layer),
    token ids (16sb), routing, and the loss. Takes and refuses what that does.
    """
    saved = saved_tensors(model, micro_batch_size, recompute, attention, dropout)
    names = ("norms", "attention", "scores", "mlp", "checkpoints", "embedding", "head")
    parts = dict.fromkeys(names, 0)
    for tensor in saved:
        parts[tensor.part] += 0 if tensor.left_out else tensor.bytes
    return ActivationCount(**parts)


def measure_step_memory(
    model: Transformer,
    micro_batch_size: int,
    recipe: str,
    recompute: str,
    steps: int = 2,
    accumulation_steps: int = 1,
    attention: str = "flash",
    dropout: bool = False,
    *,
    count_left_out: bool = False,
) -> Timeline:
    """Follow what is resident through real training steps on the CPU, part by part.

    Every living storage is followed, from the operator that makes it until PyTorch
    releases it. Left out, unless `count_left_out` puts them under activations: what
    `saved_tensors` marks, the token ids and constant tables, and what backward itself
    is working on. A tied head's gradient counts from the moment it is computed.

    Takes a small shape, a recipe by its name in `TRAINABLE`, and the arguments of
    `step_timeline`. Returns a `Timeline` in bytes. Adam has one step counter, not one a
    tensor. ImportError without PyTorch, ValueError for bad input.

    Source: torch's dispatcher and weak references to storages.
    """
    shape, b = _check_shape(model), single("micro_batch_size", micro_batch_size)
    choice("recipe", recipe, TRAINABLE)
    options = _options(recompute, attention, dropout) | {
        "steps": single("steps", steps),
        "accumulation_steps": single("accumulation_steps", accumulation_steps),
        "left_out": flag("count_left_out", count_left_out),
    }
    return _torch_module("memory").timeline(shape, b, recipe, **options)


def between_operators(timeline: Timeline) -> Timeline:
    """Reduce a timeline to the moments that `measure_step_memory` marks.

    They lie between operators, so what the layer in backward works on isn't there, and when
    backward has left the first layer, that layer's activations aren't either.
    """
    moments = (
        replace(m, working=0, activations=m.activations * (m.mark != "first layer"))
        for m in timeline.moments
    )
    return replace(timeline, moments=tuple(moments))


def step_seconds(
    model: Transformer,
    batch_sizes: Sequence[int],
    recipe: str = "fp32",
    recompute: str = "none",
    attention: str = "flash",
    repeats: int = 5,
) -> list[float]:
    """Measure the seconds of a training step on this CPU for each batch size.

    The median of `repeats` steps, after one to warm up. Source: time.perf_counter.
    """
    shape, n = _check_shape(model), single("repeats", repeats)
    options = (choice("recipe", recipe, TRAINABLE), *_variants(recompute, attention))
    sizes = [single("batch_sizes", size) for size in batch_sizes]
    timing = _torch_module("timing")
    return [timing.seconds_of(shape, B, *options, repeats=n) for B in sizes]


def training_step(
    model: Transformer,
    batch_size: int,
    recipe: str = "fp32",
    recompute: str = "none",
    attention: str = "flash",
) -> Callable[[], None]:
    """Return a training step on this CPU, which you can call as often as you like.

    A pass forward and backward, an update, and the gradients released, always with the
    same random tokens. Takes and refuses what `measure_step_memory` does.
    """
    shape, B = _check_shape(model), single("batch_size", batch_size)
    options = (choice("recipe", recipe, TRAINABLE), *_variants(recompute, attention))
    step: Callable[[], None] = _torch_module("timing").step_of(shape, B, *options)
    return step


@dataclass(frozen=True)
class Operator:
    """A call of an operator: its phase, its start and its duration.

    In seconds from the step's begin; `matrix_product` says whether it is one.
    """

    name: str
    phase: str
    start: float
    seconds: float
    matrix_product: bool


@dataclass(frozen=True)
class StepProfile:
    """The operators of one training step, in order."""

    operators: tuple[Operator, ...]

    @property
    def seconds(self) -> float:
        """Seconds of all operators together, without the time between them."""
        return sum(operator.seconds for operator in self.operators)

    @property
    def matmul_share(self) -> float:
        """The share of the operators' time spent on matrix products."""
        products = [o.seconds for o in self.operators if o.matrix_product]
        return sum(products) / self.seconds


def profile_step(
    model: Transformer,
    batch_size: int,
    recipe: str = "fp32",
    recompute: str = "none",
    attention: str = "flash",
) -> StepProfile:
    """List the operators that a training step on this CPU calls, with their durations.

    The third step, after what is made only once; operators that call others are left
    out in favour of these, but a matrix product stays whole. Returns a `StepProfile`.
    Errors as in `measure_step_memory`. Source: torch.profiler.
    """
    shape, B = _check_shape(model), single("batch_size", batch_size)
    options = (choice("recipe", recipe, TRAINABLE), *_variants(recompute, attention))
    return _torch_module("timing").step_profile(shape, B, *options)


@dataclass(frozen=True)
class DataParallel:
    """The results of several processes that shared a batch.

    `largest_difference` is that between their averaged gradients and those of the whole
    batch, as a share of the largest gradient; `gradient_bytes` of one process;
    `pass_seconds` of its forward and backward without the exchange.
    """

    processes: int
    gradient_bytes: int
    largest_difference: float
    pass_seconds: float
    all_reduce_seconds: float


def measure_data_parallel(model: Transformer, batch_size: int, processes: int = 2) -> DataParallel:
    """Compare the averaged gradients of processes sharing a batch with the whole batch's.

    Starts so many processes on this machine under torchrun, which talk by gloo;
    gradients in fp64. Takes a small shape, and a batch that the processes
    divide. Errors as in `measure_step_memory`; RuntimeError if they cannot start.

    Source: torch.distributed, DistributedDataParallel.
    """
    shape, B = _check_shape(model), single("batch_size", batch_size)
    d = single("processes", processes)
    at_most("processes", d, "most", 16)
    divides("batch_size", B, "processes", d)
    return _torch_module("parallel").compare_gradients(shape, B, d)


def trace_data_parallel(model: Transformer, batch_size: int, overlap: bool = True) -> Trace:
    """Trace a step of one of two processes with PyTorch's profiler.

    Gradients travel beside backward, in parcels (*buckets*) that leave when they are
    full, or with `overlap=False` after it, all in one. Takes a small shape and the
    sequences of each process. Errors as in `measure_data_parallel`.

    Source: torch.profiler, and DistributedDataParallel over gloo.
    """
    shape, B = _check_shape(model), single("batch_size", batch_size)
    return _torch_module("parallel").trace_step(shape, B, flag("overlap", overlap))


def measure_slow_link(model: Transformer, batch_size: int, delay: float) -> Experiments:
    """Run the three experiments with two processes that are joined by a slow link.

    Each parcel of gradients is `delay` seconds longer on its way. Takes a small shape
    and the sequences of each process; the data is there already. Errors as in
    `measure_data_parallel`. Source: a communication hook of DistributedDataParallel.
    """
    shape, B = _check_shape(model), single("batch_size", batch_size)
    seconds = one("delay", delay, amount)
    return _torch_module("parallel").experiments(shape, B, seconds)


CORES: list[Kernel] = ["unfused", "flash"]
"""The attention kernels that the PyTorch model has; eager attention is transformers' own."""


def _variants(recompute: object, attention: object) -> tuple[str, str]:
    """What is computed again and how attention is computed, where both are known."""
    return (choice("recompute", recompute, RECOMPUTE), choice("attention", attention, CORES))


def _options(recompute: object, attention: object, dropout: object) -> dict[str, Any]:
    """The options of a forward pass, checked."""
    names = ("recompute", "attention")
    variants = dict(zip(names, _variants(recompute, attention), strict=True))
    return {**variants, "dropout": flag("dropout", dropout)}


def _check_shape(model: Transformer) -> Transformer:
    """Return the shape if PyTorch can build it; a ValueError if it can't."""
    instance("model", model, Transformer)
    for name, value in model.numbers().items():
        if not isinstance(value, bool | str):
            single(name, value, least=0)
    for _, layer in model.layers:
        _check_layer(layer)
    if not model.num_positions and model.head_dim % 2:
        refuse("head_dim", model.head_dim, "is odd: rotary positions turn pairs")
    return model


def _check_layer(layer: Layer) -> None:
    """Refuse what the PyTorch model has no counterpart of."""
    mixer, mlp = layer.mixer, layer.mlp
    plain = isinstance(mixer, LatentAttention) and not mixer.gate
    if isinstance(mixer, Attention):
        own = (mixer.num_heads, mixer.num_kv_heads, mixer.head_dim)
        norms = "head" if mixer.qk_norm else ""
        plain = mixer == Attention(*own, biases=mixer.biases, qk_norm=norms)
    expert = mlp.expert if isinstance(mlp, Experts) else mlp
    whole = isinstance(expert, Mlp) and not (expert.norm or expert.more)
    whole = whole and not getattr(mlp, "more", 0) and layer.norms == 2
    if not plain or not whole or layer.parallel or layer.beside or not layer.norm_size:
        refuse("layers", layer, "has a part that the PyTorch model here does not have")


class TorchMissingError(ImportError):
    """PyTorch is not installed; a notebook shows the sentence and no traceback."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback."""
        return [str(self)]


def require_torch() -> None:
    """Stop if PyTorch is missing, with a sentence on how to install it."""
    missing = torch_missing()
    if missing:
        raise TorchMissingError(missing)


def _torch_module(module: str) -> Any:
    """A module of this folder that imports PyTorch."""
    require_torch()
    return import_module(f"{__name__}.{module}")
