"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

from llmtrain_helpers.budget import Outcome, most_tokens, named_shapes, usual_batch
from llmtrain_helpers.checks import (
    Array,
    Count,
    Number,
    Quantity,
    cache_per_model,
    checked,
    choice,
    flag,
    floats,
    instance,
    numpy,
    one,
    quantity,
    refuse,
    single,
)
from llmtrain_helpers.laws import Law, coefficients, known_law, loss, loss_law
from llmtrain_helpers.memory import OFFLOAD_BANDWIDTH, bus_seconds
from llmtrain_helpers.model import Accelerator, Transformer
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.search import best_split

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[Any]


@checked
def affordable_gpus(
    money: Quantity[float | Array],
    days: Quantity[float | Array],
    price_per_gpu_hour: Quantity[float | Array],
) -> float | Array:
    """Compute how many GPUs a budget pays for over some days: M / (24·days·price).

    >>> affordable_gpus(80_640, 21, price_per_gpu_hour=2.5)
    64.0
    """
    return money / (24 * days * price_per_gpu_hour)


def most_flops(outcomes: Iterable[Outcome]) -> float:
    """The budget as 6ND, in FLOP: the maximum over the outcomes.

    At one budget small shapes have a smaller 6ND: more of their FLOP is attention.
    """
    return max(outcome.flops for outcome in outcomes)


def smallest_share(law: str | Law = "besiroglu") -> float:
    """The share of the best size below which no amount of text reaches the same loss.

    (1 + α/β)^(-1/α): there the size's own term of the loss is as large as both terms at
    the best size, and `over_training` grows beyond all bounds.

    >>> round(smallest_share(), 4)
    0.1464
    """
    *_, alpha, beta = coefficients(law)
    return float((1 + alpha / beta) ** (-1 / alpha))


def fitted_sizes(flops: float, law: str | Law = "besiroglu") -> tuple[float, float]:
    """Find the smallest and largest size that a law's own runs cover at this budget.

    Neither the size, nor its text C/(6N), nor the work lies more than a tenth beyond the
    runs behind the law; (inf, inf) where the work does, and a least size above the
    largest where no size has both.

    >>> low, high = fitted_sizes(1e21)
    >>> f"{low:.2g}, {high:.2g}"
    '3e+08, 1.8e+10'
    """
    fitted, flops = known_law(law).fitted, one("flops", flops, quantity)
    parameters, tokens, works = (
        fitted.get(name, (0.0, math.inf)) for name in ("parameters", "tokens", "flops")
    )
    if not works[0] / 1.1 <= flops <= 1.1 * works[1]:
        return math.inf, math.inf
    fewest = flops / (6 * 1.1 * tokens[1])
    most = 1.1 * flops / (6 * tokens[0]) if tokens[0] else math.inf
    return max(parameters[0] / 1.1, fewest), min(1.1 * parameters[1], most)


@checked
def tokens_for_size(
    parameters: Quantity[float | Array], flops: Quantity[float | Array]
) -> float | Array:
    """Compute the tokens that a budget of C FLOP leaves for N parameters: C/(6N).

    >>> tokens_for_size(70e9, 5.88e23)
    1400000000000.0
    """
    return flops / (6 * parameters)


@checked
def loss_terms(
    parameters: Quantity[float], tokens: Quantity[float], law: str | Law = "besiroglu"
) -> tuple[float, float]:
    """The terms of a loss above its floor E: A/N^α for the size, B/D^β for the text.

    >>> [round(term, 3) for term in loss_terms(70e9, 1.4e12)]
    [0.081, 0.075]
    """
    _, A, B, alpha, beta = coefficients(law)
    return A / parameters**alpha, B / tokens**beta


def losses_of_sizes(
    sizes: Sequence[float], flops: Number, law: str | Law = "besiroglu"
) -> list[float]:
    """Compute the loss of several sizes at one budget of C FLOP: L(N, C/(6N)).

    `loss` and `tokens_for_size` in one, for curves of hundreds of points.

    >>> losses_of_sizes([70e9], 5.88e23) == [loss(70e9, 1.4e12)]
    True
    """
    (E, A, B, alpha, beta), C = coefficients(law), one("flops", flops, quantity)
    if not isinstance(sizes, (list, tuple)):
        refuse("sizes", sizes, "is no list of sizes")
    return [
        float(E + A / N**alpha + B / (C / (6 * N)) ** beta)
        for N in (one("sizes", size, quantity) for size in sizes)
    ]


NODE = 8
"""GPUs of a node, by which machines are counted here."""


def doubling_below(num_gpus: int) -> int:
    """Find the largest doubling of a node that doesn't exceed a number of GPUs.

    >>> doubling_below(632), doubling_below(8), doubling_below(5)
    (512, 8, 5)
    """
    n = single("num_gpus", num_gpus)
    return NODE << ((n // NODE).bit_length() - 1) if n > NODE else n


@cache_per_model
def usual_plan(model: Transformer, accelerator: Accelerator, num_gpus: int) -> Plan:
    """Find the best split of a model on some GPUs, with the usual batch for them.

    As `best_split` finds it with `usual_batch`; what was found once is remembered.

    >>> from llmtrain_helpers import shelf
    >>> h100 = Accelerator("H100", 80e9, peaks={"bf16": 989.5e12})
    >>> usual_plan(shelf()["69B"], h100, 64)
    <Plan: 199 days, 73.6 GB a GPU, fits>
    """
    return best_split(model, accelerator, num_gpus, usual_batch(model, num_gpus))


def plan_on_nodes(model: Transformer, accelerator: Accelerator, num_gpus: int) -> Plan:
    """Plan a model on any number of nodes, with the split of the next doubling below.

    With fewer sequences at once, where the batch does not come out even with them.

    >>> from llmtrain_helpers import shelf
    >>> h100 = Accelerator("H100", 80e9, peaks={"bf16": 989.5e12})
    >>> plan_on_nodes(shelf()["69B"], h100, 72).split.num_gpus
    72
    """
    n = single("num_gpus", num_gpus)
    plan = usual_plan(model, accelerator, doubling_below(n))
    if n == plan.split.num_gpus:
        return plan
    split, B = plan.split, usual_batch(model, n)
    ways = split.tensor_parallel * split.pipeline_parallel
    if n % ways:
        return usual_plan(model, accelerator, n)
    b = math.gcd(split.micro_batch_size, B * ways // n)
    return plan.replace(num_gpus=n, global_batch_size=B, micro_batch_size=b)


def rough_frontier(
    accelerator: Accelerator,
    num_gpus: int,
    days: float,
    shapes: Mapping[str, Transformer] | Sequence[Transformer],
    law: str | Law = "besiroglu",
    planned: str = "",
    promised: bool = False,
) -> list[Outcome]:
    """Compare a shelf's shapes at a budget, searching only on doublings of nodes.

    Each GPU is taken to be as fast as at the doubling below, where the splits are
    remembered, so that any number of nodes is answered at once; `planned` names a shape
    with a plan on just these GPUs. On a doubling it is what `frontier` finds, or its
    `promised`. ValueError as there.

    >>> from llmtrain_helpers import shelf
    >>> h100 = Accelerator("H100", 80e9, peaks={"bf16": 989.5e12})
    >>> least = min(rough_frontier(h100, 64, 21, shelf()), key=lambda outcome: outcome.loss)
    >>> least.name, round(least.loss, 3)
    ('24B', 2.068)
    """
    n, time, known_law = single("num_gpus", num_gpus), one("days", days, quantity), loss_law(law)
    models, outcomes = named_shapes(shapes), []
    choice("planned", planned, ["", *models])
    slow = flag("promised", promised)
    for name, model in models.items():
        plan_of, gpus = (plan_on_nodes, n) if name == planned else (usual_plan, doubling_below(n))
        plan = plan_of(model, accelerator, gpus)
        N = plan.parameters.active
        T = plan.first_run_tokens(time) if slow else most_tokens(plan, time).likely
        T = float(T) * n / gpus
        outcomes.append(Outcome(name, N, T, float(loss(N, T, known_law)), bool(plan.fits)))
    return outcomes


@checked
def parameters_for(flops: Quantity[float], tokens_per_parameter: Quantity[float]) -> float:
    """Compute the model size that uses up a compute at a ratio of tokens per parameter.

    √(C/6r), from C = 6ND and D = rN: FLOPs without recomputation.

    Source: arXiv 2001.08361 section 2.1 for C = 6ND; 20 tokens for each parameter is
    the rule that arXiv 2203.15556 is cited for.

    >>> f"{parameters_for(5.76e23, tokens_per_parameter=20):.3g}"
    '6.93e+10'
    """
    return float((flops / (6 * tokens_per_parameter)) ** 0.5)


@checked
def muon_overhead(
    hidden_size: Count[float], batch_tokens: Count[float], iterations: Count[float] = 5
) -> float:
    """The FLOPs that Muon adds, as a share of a step's: at most T·m/B.

    Each of T steps of Newton and Schulz multiplies the momentum of a matrix with
    itself; m is the smaller side, B the tokens in a step.

    Source: Jordan et al., Muon, kellerjordan.github.io/posts/muon, runtime analysis.

    >>> round(muon_overhead(16384, 16e6), 4)
    0.0051
    """
    return iterations * hidden_size / batch_tokens


@checked
def offload_seconds(
    parameters: Count[float],
    host_bandwidth: Quantity[float] = OFFLOAD_BANDWIDTH,
    num_gpus: Count[float] = 1,
) -> float:
    """Seconds per step to send gradients to the host and weights back: 4P/(n·b).

    The host keeps main weights and Adam's states and does the update; each of n GPUs
    sends its n-th of the 16-bit gradients, and gets as much of the weights. The
    update's own time comes on top, and part of both hides behind the backward pass.

    Source: Ren et al., ZeRO-Offload, arXiv 2101.06840, sections 3 and 4.

    >>> round(offload_seconds(8e9), 2)
    1.28
    """
    in_16_bits = 2 * parameters / num_gpus
    return float(bus_seconds(in_16_bits, in_16_bits, host_bandwidth))


# --- a law of one's own


def fit_law(
    parameters: ArrayLike,
    tokens: ArrayLike,
    loss: ArrayLike,
    name: str = "fitted",
    delta: float = 1e-3,
) -> Law:
    """Fit the law E + A/N^α + B/D^β that's closest to the losses of some runs.

    Least sum of Huber's function of ln L (δ = 0.001, as Hoffmann et al.), by steps of
    Gauss and Newton with weights, from 45 starts. It belongs to its runs: their text,
    tokenizer and schedule, and their range, which `fitted` holds: from the smallest to
    the largest in parameters, tokens and FLOP. ValueError for less than six different
    runs, for sizes, text or losses that are all alike (no telling the terms apart), for
    lengths that differ, and for anything not positive.

    Source: arXiv 2203.15556, section 3.3 and appendix D.2.

    >>> import numpy as np
    >>> N, D = np.logspace(8, 10, 12), np.logspace(11.5, 9.5, 12)
    >>> law = fit_law([*N, *N], [*D, *D[::-1]], 1.8 + 400 / np.array([*N, *N])**0.34
    ...     + 2000 / np.array([*D, *D[::-1]])**0.36)
    >>> round(law.E, 2), round(law.alpha, 2), round(law.beta, 2)
    (1.8, 0.34, 0.36)
    """
    np = numpy()
    columns = {"parameters": parameters, "tokens": tokens, "loss": loss}
    logs = [np.log(np.ravel(quantity(key, floats(key, value)))) for key, value in columns.items()]
    x, y, L = logs
    if not len(x) == len(y) == len(L) >= 6:
        refuse("loss", loss, "is not of at least six runs, one loss for each")
    for (key, value), log in zip(columns.items(), logs, strict=True):
        if log.min() == log.max():
            refuse(key, value, "is the same for all runs: no telling what it does")
    if np.unique(logs, axis=1).shape[1] < 6:
        refuse("loss", loss, "is not of at least six runs that differ")
    instance("name", name, str)
    d = one("delta", delta, quantity)
    # The sum has many hollows: α and β start low, middling and high, and E at so large
    # a share of the least loss.
    starts = [*product((0.2, 0.35, 0.5), (0.2, 0.35, 0.5), (0.2, 0.5, 0.7, 0.85, 0.95))]
    a, alpha, b, beta, e = _nearest(x, y, L, d, np.array(starts))
    sizes = {"parameters": x, "tokens": y, "flops": x + y + math.log(6)}
    ranges = {key: (math.exp(v.min()), math.exp(v.max())) for key, v in sizes.items()}
    E, A, B = (math.exp(value) for value in (e, a, b))
    return Law(name, "fitted here", E, A, B, float(alpha), float(beta), fitted=ranges)


def _nearest(x: Floats, y: Floats, L: Floats, delta: float, starts: Floats) -> Floats:
    """The ln A, α, ln B, β and ln E of the least sum that any of the starts leads to.

    Takes ln N, ln D and ln L of the runs, and for each start α, β and E as a share of the
    least loss. The steps are those of Gauss and Newton for the residuals of ln L, damped as
    by Levenberg and Marquardt: less after a step that helps, more after one that does not.
    All starts take them side by side, each with its own damping, until it has arrived.
    """
    np = numpy()

    def residuals(theta: Floats) -> tuple[Floats, Floats]:
        """ln of the law's loss less that of the run's, and each term's share of it."""
        a, alpha, b, beta, e = theta.T[:, :, None]
        terms = np.array([a - alpha * x, b - beta * y, 0 * x + e])
        top = terms.max(axis=0)  # taken out, lest the exponentials overflow
        parts = np.exp(terms - top)
        whole = parts.sum(axis=0)
        return top + np.log(whole) - L, parts / whole

    def huber(theta: Floats) -> Floats:
        exponents = theta[:, 1::2]
        limits = np.hstack([exponents > 0.01, exponents < 3, abs(theta) < 90])
        sensible: Floats = np.asarray(limits.all(axis=1))
        r = abs(residuals(np.where(sensible[:, None], theta, 1))[0])
        sums = np.where(r <= delta, r * r / 2, delta * (r - delta / 2)).sum(axis=1)
        result: Floats = np.where(sensible, sums, math.inf)
        return result

    # To begin with, the two other terms share evenly what is above E.
    alpha, beta, share = starts.T[:, :, None]
    e = np.log(share) + L.min()
    rest = np.log(np.exp(L) - np.exp(e)) - math.log(2)
    a, b = ((rest + slope).mean(axis=1, keepdims=True) for slope in (alpha * x, beta * y))
    theta = np.hstack([a, alpha, b, beta, e])
    damping, least = np.full(len(starts), 1e-2), huber(theta)
    going = np.arange(len(starts))
    for _ in range(300):
        r, (u, v, w) = residuals(theta[going])
        J = np.stack([u, -u * x, v, -v * y, w], axis=1)  # how ln of the loss changes with theta
        weighted = J * (delta / np.maximum(abs(r), delta))[:, None]  # runs far off count linearly
        H = weighted @ J.swapaxes(1, 2)
        ridge = damping[going, None] * (np.einsum("sii->si", H) + 1e-12)
        try:
            damped = H + ridge[:, :, None] * np.eye(5)
            tried = theta[going] - np.linalg.solve(damped, weighted @ r[:, :, None])[:, :, 0]
            reached = huber(tried)
        except np.linalg.LinAlgError:  # with more damping there is a step
            tried, reached = theta[going], np.full(len(going), math.inf)
        gained, better = least[going] - reached, reached < least[going]
        theta[going[better]], least[going[better]] = tried[better], reached[better]
        damping[going] = np.where(better, np.maximum(damping[going] / 4, 1e-12), 4 * damping[going])
        small = (gained > 0) & (gained < 1e-13 * least[going])
        going = going[~(small | (damping[going] > 1e9) | (least[going] < 1e-18))]
        if not len(going):
            break
    nearest: Floats = theta[least.argmin()]
    return nearest
