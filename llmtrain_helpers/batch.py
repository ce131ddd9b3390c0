"""Chapter 04: what a step processes. Goes with notebooks/04_batch.ipynb.

Sources: Narayanan et al. (arXiv 2104.04473), section 3, for the split of the GPUs;
Patarasuk and Yuan (2009), "Bandwidth optimal all-reduce algorithms", for the ring;
McCandlish et al. (arXiv 1812.06162) for what a larger batch buys.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llmtrain_helpers.checks import (
    Array,
    Count,
    Exact,
    Quantity,
    Result,
    anywhere,
    broadcast,
    checked,
    count,
    divides,
    floats,
    numpy,
    quantity,
    refuse,
    unchecked,
)
from llmtrain_helpers.communication import (
    all_reduce_bytes as all_reduce_bytes,
    all_reduce_seconds as all_reduce_seconds,
    data_parallel_bytes as data_parallel_bytes,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@checked
def data_parallel_size(
    num_gpus: Count[Exact | Array],
    tensor_parallel: Count[Exact | Array] = 1,
    pipeline_parallel: Count[Exact | Array] = 1,
    context_parallel: Count[Exact | Array] = 1,
) -> Exact | Array:
    """The copies of the model that work side by side: n / (TP·PP·CP).

    Takes whole numbers or arrays; ValueError if the split doesn't divide the GPUs.

    Source: arXiv 2104.04473 section 3 (n = p·t·d), with context parallelism added.

    >>> data_parallel_size(16384, tensor_parallel=8, pipeline_parallel=16)
    128
    """
    n, t, p, c = num_gpus, tensor_parallel, pipeline_parallel, context_parallel
    split = "tensor_parallel·pipeline_parallel·context_parallel"
    divides("num_gpus", n, split, t * p * c)
    return n // (t * p * c)


@checked
def global_batch_size(
    micro_batch_size: Count[Exact | Array],
    gradient_accumulation_steps: Count[Exact | Array],
    data_parallel: Count[Exact | Array],
) -> Exact | Array:
    """Sequences that go into one update: micro-batch × accumulation × data parallelism.

    >>> global_batch_size(2, gradient_accumulation_steps=4, data_parallel=128)
    1024
    """
    return micro_batch_size * gradient_accumulation_steps * data_parallel


@checked
def accumulation_steps(
    global_batch_size: Count[Exact | Array],
    micro_batch_size: Count[Exact | Array],
    data_parallel: Count[Exact | Array],
) -> Exact | Array:
    """Micro-batches that each replica processes before an update: B / (b·d).

    Raises ValueError if that isn't a whole number.

    >>> accumulation_steps(1536, micro_batch_size=1, data_parallel=24)
    64
    """
    B, b, d = global_batch_size, micro_batch_size, data_parallel
    divides("global_batch_size", B, "micro_batch_size·data_parallel", b * d)
    return B // (b * d)


@checked
def batch_tokens(
    batch_size: Count[Exact | Array], sequence_length: Count[Exact | Array]
) -> Exact | Array:
    """A batch in tokens: sequences × tokens per sequence.

    >>> batch_tokens(15360, sequence_length=4096)  # DeepSeek-V3, after its ramp
    62914560
    """
    return batch_size * sequence_length


@checked
def steps_per_epoch(
    num_samples: Count[Exact | Array],
    global_batch_size: Count[Exact | Array],
    drop_last: bool = False,
) -> Exact | Array:
    """Updates in one pass over the samples: N / B, rounded up, or down if `drop_last`.

    Raises ValueError if `drop_last` leaves no step at all.

    >>> steps_per_epoch(1003, 10), steps_per_epoch(1003, 10, drop_last=True)
    (101, 100)
    """
    N, B = num_samples, global_batch_size
    steps = N // B if drop_last else -(-N // B)
    if anywhere(steps < 1):
        refuse("num_samples", N, f"leaves no full batch of global_batch_size={B}")
    return steps


@checked
def epoch_seconds(
    num_samples: Count[float | Array],
    global_batch_size: Count[float | Array],
    seconds_per_step: Quantity[float | Array],
    epochs: Count[float | Array] = 1,
    drop_last: bool = False,
) -> float | Array:
    """Seconds of training: epochs × steps per epoch × seconds per step.

    The global batch and the seconds already include the number of devices.

    >>> epoch_seconds(1000, 10, seconds_per_step=0.5, epochs=3)
    150.0
    """
    steps = unchecked(steps_per_epoch)(num_samples, global_batch_size, drop_last)
    return epochs * steps * seconds_per_step


@checked
@dataclass(frozen=True)
class StepTime:
    """A model of a step's seconds: a fixed overhead t₀, and a rate r in samples/s.

    t(B) = t₀ + B / r. `half_rate_batch`, t₀·r, is the batch at which throughput is half of
    r. Below it, doubling the batch nearly doubles the throughput; above it, barely.

    >>> step = StepTime(overhead=0.1, rate=160.0)
    >>> step.half_rate_batch, step.seconds(16), step.throughput(16)
    (16.0, 0.2, 80.0)
    """

    overhead: Quantity[Result]
    rate: Quantity[Result]

    @checked
    def seconds(self, batch_size: Count[float | Array]) -> float | Array:
        """Seconds of a step with this many samples: t₀ + B / r."""
        B = batch_size
        broadcast(batch_size=B, overhead=self.overhead, rate=self.rate)
        return self.overhead + B / self.rate

    def throughput(self, batch_size: float | Array) -> float | Array:
        """Samples per second: B / (t₀ + B / r)."""
        return count("batch_size", batch_size) / self.seconds(batch_size)

    @property
    def half_rate_batch(self) -> Result:
        """The batch that reaches half the rate: t₀·r."""
        return self.overhead * self.rate


@checked
def critical_batch(loss: Quantity[float]) -> float:
    """The critical batch in tokens at a loss in nats, as one paper fitted it.

    B_c = 2.1e8 · L^(−1/0.21), from models of up to 1.5 billion parameters. It rises as
    the loss falls.

    Source: arXiv 2001.08361 equation 1.4.

    >>> [f"{critical_batch(loss) / 1e6:.2f}" for loss in (3.0, 2.0)]
    ['1.12', '7.74']
    """
    return float(2.1e8 * loss ** (-1 / 0.21))


def fit_step_time(batch_sizes: ArrayLike, seconds: ArrayLike) -> StepTime:
    """Fit a `StepTime` to measured steps, minimizing relative errors.

    Least squares of (t₀ + B/r)/t − 1, so that short steps count as much as long ones.
    Takes arrays of sizes (samples) and seconds. Raises ValueError if the data don't support
    a fit: fewer than three sizes, an overhead or a rate that isn't positive, or no
    saturation (the largest size is below the half-rate batch).

    >>> import numpy as np
    >>> sizes = np.array([1, 2, 4, 8, 16, 32, 64])
    >>> round(fit_step_time(sizes, 0.1 + sizes / 160).half_rate_batch, 6)
    16.0
    """
    np = numpy()
    B = np.atleast_1d(floats("batch_sizes", batch_sizes))
    count("batch_sizes", B)
    t = np.atleast_1d(floats("seconds", seconds))
    quantity("seconds", t)
    if B.ndim != 1:
        refuse("batch_sizes", B.shape, "is not the shape of a single row")
    if B.shape != t.shape:
        refuse("seconds", t.shape, f"is not of the shape of batch_sizes, {B.shape}")
    if len(np.unique(B)) < 3:
        refuse("batch_sizes", B.tolist(), "are fewer than three different sizes")
    # t₀·(1/t) + (1/r)·(B/t) = 1, as closely as possible: linear in t₀ and in 1/r.
    columns = np.stack([1 / t, B / t], axis=1)
    (overhead, slope), *_ = np.linalg.lstsq(columns, np.ones_like(t), rcond=None)
    for name, value in {"overhead": overhead, "seconds per sample": slope}.items():
        if value <= 0:
            refuse(name, float(value), "didn't come out positive, so there is no fit")
    step = StepTime(overhead, 1 / slope)
    if B.max() < step.half_rate_batch:
        half = math.ceil(step.half_rate_batch)
        problem = f"end below the half-rate batch, {half}, so no saturation is visible"
        refuse("batch_sizes", B.tolist(), problem)
    return step


@checked
def largest_batch(fits: Callable[[int], bool], limit: Count[int] = 2**20) -> int:
    """Find the largest batch that fits, by doubling, as you would on a GPU.

    Doubles from 1 until `fits(batch)` is false, then narrows it down to the exact number.
    Takes a predicate that's true up to some size. Returns `limit` if everything fits, and
    raises ValueError if not even 1 does.

    >>> largest_batch(lambda batch: batch * 3.5e9 < 80e9)
    22
    """
    if not callable(fits):
        refuse("fits", fits, "isn't a function of a batch size")
    if not fits(1):
        raise ValueError("not even a batch of 1 fits")
    good = 1
    while good < limit and fits(min(2 * good, limit)):
        good = min(2 * good, limit)
    bad = min(2 * good, limit)  # this one failed, unless good is the limit
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good
