"""Chapter 03: how long a run takes. Goes with notebooks/03_duration.ipynb.

Sources: Narayanan et al. (arXiv 2104.04473), section 5.1, equations 3 and 4, for
8TP/(nX); the utilisations are those of the published runs in data/training_runs.csv.
"""

from __future__ import annotations

from llmtrain_helpers.checks import (
    Array,
    Count,
    Number,
    Quantity,
    Rate,
    as_results,
    at_most,
    checked,
    one,
    quantity,
    refuse,
    share,
    unchecked,
)
from llmtrain_helpers.flops import Recompute
from llmtrain_helpers.results import Interval
from llmtrain_helpers.units import HOUR

UTILIZATIONS = (0.25, 0.35, 0.48)
"""MFU over whole runs, mostly with stops: low, likely and high of fourteen published
runs (`utilizations.model_utilizations`); twelve lie in the interval of the other teams' runs.
"""


@checked
def training_seconds(
    tokens: Count[float | Array],
    parameters: Count[float | Array],
    num_gpus: Count[float | Array],
    flops_per_gpu: Rate[float | Array],
    recompute: Recompute,
) -> float | Array:
    """Seconds of a run, from the rate that each GPU achieves.

    full:            8TP / (nX)
    none, selective: 6TP / (nX)

    Takes T tokens, P parameters (the active ones of a mixture of experts), n GPUs and
    X FLOP/s achieved by each, which count recomputation if there is any; numbers or arrays.
    The attention scores are left out, so it's 1 to 3% too low for large models, and 4 to
    10% or more for small ones. Raises ValueError for anything that isn't positive, and for
    an X below 10⁹ FLOP/s (probably in tera).

    Source: arXiv 2104.04473 equation 4 (8TP); 6TP without the second forward pass.

    >>> t = training_seconds(300e9, 175e9, 1024, flops_per_gpu=140e12, recompute="full")
    >>> round(t / 86400, 1)
    33.9
    """
    T, P, n, X = tokens, parameters, num_gpus, flops_per_gpu
    return unchecked(flops_per_parameter)(recompute) * T * P / (n * X)


PASSES = {"forward": 2, "backward": 4, "again": 2}
"""FLOPs of each pass over the model, per parameter and token; the forward
pass is repeated if everything is recomputed."""


@checked
def flops_per_parameter(recompute: Recompute) -> int:
    """FLOPs of training per parameter and token: 8 with full recomputation, else 6.

    >>> flops_per_parameter("none"), flops_per_parameter("full")
    (6, 8)
    """
    recomputes = recompute == "full"
    return sum(flops for name, flops in PASSES.items() if recomputes or name != "again")


@checked
def iterations(
    tokens: Count[float | Array],
    global_batch_size: Count[float | Array],
    sequence_length: Count[float | Array],
) -> float | Array:
    """The iterations needed to process the tokens: T / (B·s), not rounded.

    Takes T tokens, B sequences a batch over all GPUs, s tokens a sequence; numbers or
    arrays. Raises ValueError unless all are positive and whole and T fills a batch.

    >>> iterations(300e9, global_batch_size=512, sequence_length=1024)
    572204.58984375
    """
    T, B, s = tokens, global_batch_size, sequence_length
    at_most("one batch, global_batch_size·sequence_length", B * s, "tokens", T)
    return T / (B * s)


@checked
def seconds_from_iterations(
    tokens: Count[float | Array],
    global_batch_size: Count[float | Array],
    sequence_length: Count[float | Array],
    seconds_per_iteration: Quantity[float | Array],
) -> float | Array:
    """Seconds of a run, from a measured iteration: T / (B·s) times its seconds.

    This is exact: nothing is left out, and you need no rate or peak.

    >>> t = seconds_from_iterations(300e9, 512, 1024, seconds_per_iteration=32.09)
    >>> round(t / 86400, 2)
    212.52
    """
    return unchecked(iterations)(tokens, global_batch_size, sequence_length) * seconds_per_iteration


@checked
def whole_run_share(
    tokens: Count[float],
    parameters: Count[float],
    gpu_hours: Quantity[float],
    peak_flops: Rate[float],
) -> float:
    """The MFU over a whole run, from its GPU-hours: 6TP / (3600 · hours · peak).

    Takes T tokens, the active parameters, the hours of all GPUs together and the dense
    peak of one in FLOP/s. If the result is above 1, one of them isn't what it was in the run.

    >>> round(whole_run_share(2e12, 69e9, gpu_hours=1_720_320, peak_flops=312e12), 3)
    0.429
    """
    T, P = tokens, parameters
    reached = flops_per_parameter("none") * T * P / (gpu_hours * HOUR * peak_flops)
    quantity("tokens·parameters/(gpu_hours·peak_flops)", reached)
    return reached


@checked
def training_interval(
    tokens: Count[Number],
    parameters: Count[Number],
    num_gpus: Count[Number],
    peak_flops: Rate[Number],
    utilizations: tuple[float, float, float] = UTILIZATIONS,
) -> Interval:
    """Seconds of a run if you only know the chip: 6TP / (n·u·peak).

    Takes the dense peak in FLOP/s, and three utilisations u (MFU), ascending: low,
    likely, high. The defaults are those of published runs, which include stops and
    whatever they recomputed. Returns an `Interval` in seconds.

    >>> span = training_interval(300e9, 175e9, num_gpus=1024, peak_flops=312e12)
    >>> [round(t / 86400) for t in (span.least, span.likely, span.greatest)]
    [24, 33, 46]
    """
    at_peak = unchecked(training_seconds)(tokens, parameters, num_gpus, peak_flops, "none")
    quantity("tokens·parameters/(num_gpus·peak_flops)", at_peak)
    return over_utilizations(at_peak, utilizations)


@checked
def over_utilizations(
    seconds_at_peak: Quantity[Number], utilizations: tuple[float, float, float]
) -> Interval:
    """Seconds at three ascending utilisations, from the seconds at the peak.

    >>> over_utilizations(120.0, (0.25, 0.4, 0.5))
    Interval(least=240.0, likely=300.0, greatest=480.0)
    """
    low, likely, high = checked_utilizations(utilizations)
    (t,) = as_results(seconds_at_peak)
    return Interval(t / high, t / likely, t / low)


def checked_utilizations(utilizations: tuple[float, float, float]) -> tuple[float, float, float]:
    """Check that three shares of the peak ascend: low, likely, high.

    >>> checked_utilizations((0.5, 0.4, 0.3))
    Traceback (most recent call last):
    ...
    ValueError: utilizations=(0.5, 0.4, 0.3) is not ascending: low, likely, high
    """
    if not isinstance(utilizations, tuple) or len(utilizations) != 3:
        refuse("utilizations", utilizations, "isn't a triple: low, likely, high")
    low, likely, high = (one("utilizations", u, share) for u in utilizations)
    if not low <= likely <= high:
        refuse("utilizations", utilizations, "is not ascending: low, likely, high")
    return low, likely, high


@checked
def tokens_in_time(
    tokens: Quantity[float | Array], days: Quantity[float | Array], limit: Quantity[float | Array]
) -> float | Array:
    """The tokens that a run processes within a limit, if all take `days`: T·limit/days.

    >>> tokens_in_time(1e12, days=40, limit=30)
    750000000000.0
    """
    return tokens * limit / days


@checked
def gpu_hours(seconds: Quantity[float | Array], num_gpus: Count[float | Array]) -> float | Array:
    """Hours of all GPUs together: t·n / 3600.

    >>> gpu_hours(86400, num_gpus=1024)
    24576.0
    """
    return seconds * num_gpus / HOUR


@checked
def cost(
    seconds: Quantity[float | Array],
    num_gpus: Count[float | Array],
    price_per_gpu_hour: Quantity[float | Array],
) -> float | Array:
    """The cost of the GPU-hours, in the currency of the price.

    >>> cost(86400, num_gpus=1024, price_per_gpu_hour=2)
    49152.0
    """
    return unchecked(gpu_hours)(seconds, num_gpus) * price_per_gpu_hour


@checked
def energy(
    seconds: Quantity[float | Array],
    num_gpus: Count[float | Array],
    watts_per_gpu: Quantity[float | Array],
) -> float | Array:
    """Energy of the GPUs alone, in joules: t·n·W; 3.6 million joules are a kWh.

    With the design power (TDP) it's an upper bound for the chips; hosts, network and
    cooling come on top.

    >>> energy(3600, num_gpus=1000, watts_per_gpu=400) / 3.6e6  # kWh
    400.0
    """
    return seconds * num_gpus * watts_per_gpu
