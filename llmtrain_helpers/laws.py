"""Scaling laws: the loss of N parameters on D tokens, and the best way to split the work.

Goes with notebooks/11_budget.ipynb; work is C = 6ND.
Sources: Hoffmann et al. (arXiv 2203.15556), Besiroglu et al. (arXiv 2404.10102), and
those of each law in `LAWS`, which a test holds to data/scaling_laws.csv.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from llmtrain_helpers import units
from llmtrain_helpers.checks import (
    Array,
    Number,
    Quantity,
    Result,
    amount,
    anywhere,
    as_results,
    at_most,
    checked,
    choice,
    finite,
    instance,
    one,
    quantity,
    refuse,
)
from llmtrain_helpers.results import largest

Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Law:
    """A scaling law: a loss E + A/N^α + B/D^β, or the best N or D as a power of C.

    `size` and `text` are (p, q) of N = p·C^q and D = p·C^q, C in FLOP. `fitted` gives
    the range of the runs behind it (parameters, tokens or flops, least and most); beyond
    that range the law is a guess, see `outside`. `counts` says which parameters it means,
    and `note` where its own figures disagree. Anything that a law doesn't have is None.
    Raises ValueError for numbers that aren't positive, and for anything but pairs.
    """

    name: str
    source: str
    E: Result | None = None
    A: Result | None = None
    B: Result | None = None
    alpha: Result | None = None
    beta: Result | None = None
    size: Range | None = None
    text: Range | None = None
    fitted: Mapping[str, Range] = field(default_factory=dict)
    counts: str = "all parameters"
    note: str = ""

    def __post_init__(self) -> None:
        for name in ("name", "source", "counts", "note"):
            instance(name, getattr(self, name), str)
        for name in ("size", "text"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _pair(name, getattr(self, name), quantity))
        instance("fitted", self.fitted, Mapping)
        ranges = {}
        for name, ends in self.fitted.items():
            choice("fitted", name, ["parameters", "tokens", "flops"])
            ranges[name] = low, high = _pair(f"fitted[{name!r}]", ends, amount)
            at_most(f"the least of fitted[{name!r}]", low, "the most", high)
        object.__setattr__(self, "fitted", ranges)
        for name in ("E", "A", "B", "alpha", "beta"):
            if getattr(self, name) is not None:
                number = one(name, getattr(self, name), quantity)
                object.__setattr__(self, name, number)

    @property
    def tells_loss(self) -> bool:
        """Whether it gives a loss, and not just the best split of the work."""
        return None not in (self.E, self.A, self.B, self.alpha, self.beta)


def _pair(name: str, value: Sequence[object], check: Callable[[str, object], Result]) -> Range:
    """Check a pair of two numbers."""
    instance(name, value, tuple)
    if len(value) != 2:
        refuse(name, value, "isn't a pair of numbers")
    return one(name, value[0], check), one(name, value[1], check)


_CHINCHILLA = {"parameters": (57e6, 16.2e9), "tokens": (5e9, 5e11)}
_LLAMA = {"parameters": (40e6, 16e9), "flops": (6e18, 1e22)}
PF_DAY = 1e15 * 86400
"""FLOP in a petaflop/s-day, Kaplan's unit."""

LAWS = {
    "besiroglu": Law(
        "Besiroglu 2024",
        "arXiv 2404.10102",
        1.8172,
        482.01,
        2085.43,
        0.3478,
        0.3658,
        fitted=_CHINCHILLA,
        note="the runs of Hoffmann 2022, read off its figure and fitted again",
    ),
    "hoffmann": Law(
        "Hoffmann 2022, unrounded",
        "arXiv 2203.15556, TeX source",
        1.6934,
        406.4,
        410.7,
        0.33917084,
        0.2849083,
        fitted=_CHINCHILLA,
        note="59 tokens a parameter at its own budget, where its other two methods "
        "and its model have 20",
    ),
    "hoffmann_printed": Law(
        "Hoffmann 2022, as printed",
        "arXiv 2203.15556 Eq. 10",
        1.69,
        406.4,
        410.7,
        0.34,
        0.28,
        fitted=_CHINCHILLA,
        note="rounded to two figures: 93 tokens a parameter at its own budget",
    ),
    "muennighoff": Law(
        "Muennighoff 2023",
        "arXiv 2305.16264",
        1.869,
        520.8,
        1487.7,
        0.3526596,
        0.3526596,
        fitted={"parameters": (10e6, 9e9), "tokens": (0.0, 900e9)},
    ),
    "twenty": Law(
        "twenty tokens a parameter",
        "arXiv 2203.15556 Table 3, rounded",
        size=(120**-0.5, 0.5),
        fitted=_CHINCHILLA,
        note="a round number for 20.0 to 21.6 in that table",
    ),
    "llama3": Law(
        "Llama 3 2024",
        "arXiv 2407.21783 Figure 3",
        text=(0.299, 0.537),
        fitted=_LLAMA,
        note="16.3 trillion tokens at 3.8e25 FLOP; the paper says 16.55",
    ),
    "llama3_printed": Law(
        "Llama 3 2024, as printed",
        "arXiv 2407.21783 section 3.2.1",
        text=(0.29, 0.53),
        fitted=_LLAMA,
        note="rounded: 10.5 trillion tokens at 3.8e25 FLOP; the paper says 16.55",
    ),
    "deepseek": Law(
        "DeepSeek LLM 2024",
        "arXiv 2401.02954 Eq. 4",
        size=(0.1715 / 6, 0.5243),
        fitted={"flops": (1e17, 3e20)},
        counts="a sixth of the FLOP a token, attention included",
    ),
    "porian": Law(
        "Porian 2024, tuned",
        "arXiv 2406.19146",
        size=(0.1189, 0.497),
        fitted={"parameters": (5e6, 9e8), "flops": (1.25e16, 2.56e19)},
        counts="all parameters but the embedding",
    ),
    "kaplan": Law(
        "Kaplan 2020",
        "arXiv 2001.08361 Table 6",
        size=(1.3e9 / PF_DAY**0.73, 0.73),
        fitted={"parameters": (768, 1.5e9), "tokens": (2.2e7, 2.3e10)},
        counts="parameters without embeddings",
        note="its printed tokens, 2e10·C^0.27, make 6ND 1.81 times C: here D = C/(6N)",
    ),
}
"""Laws by name. The first is the default: the corrected fit of the best-known runs."""


@dataclass(frozen=True)
class Optimum:
    """The best parameters and tokens for this much work, according to a law.

    `outside` describes how far this is beyond the runs that the law was fitted to.
    """

    parameters: Result
    tokens: Result
    outside: str = ""

    @property
    def tokens_per_parameter(self) -> Result:
        """Tokens per parameter: D/N."""
        return self.tokens / self.parameters


def known_law(law: str | Law) -> Law:
    """Return a law by its name in `LAWS`, or the given law itself."""
    return law if isinstance(law, Law) else LAWS[choice("law", law, LAWS)]


def loss_law(law: str | Law) -> Law:
    """Return a law that gives a loss, by name or as it is; the error lists such laws."""
    chosen = known_law(law)
    if not chosen.tells_loss:
        others = ", ".join(key for key, x in LAWS.items() if x.tells_loss)
        name = law if isinstance(law, str) else chosen.name
        refuse("law", name, f"gives a best size but no loss. These laws do: {others}")
    return chosen


def coefficients(law: str | Law) -> tuple[float, float, float, float, float]:
    """E, A, B, α and β of a law that gives a loss.

    >>> coefficients("besiroglu")
    (1.8172, 482.01, 2085.43, 0.3478, 0.3658)
    """
    chosen = loss_law(law)
    terms = chosen.E, chosen.A, chosen.B, chosen.alpha, chosen.beta
    return cast(tuple[float, float, float, float, float], terms)


@checked
def loss(
    parameters: Quantity[float | Array],
    tokens: Quantity[float | Array],
    law: str | Law = "besiroglu",
) -> float | Array:
    """The loss that a law predicts, in nats per token: L = E + A/N^α + B/D^β.

    Takes N parameters and D tokens, each seen once (see `effective_tokens`); numbers or
    arrays. `outside` tells you if the sizes are beyond its runs. You can't compare the
    losses of two laws, or of different text or tokenizers. Raises ValueError for a law
    without a loss.

    Source: arXiv 2203.15556 Eq. 10; the default's coefficients, arXiv 2404.10102.

    >>> round(loss(70e9, 1.4e12), 3)
    1.974
    """
    E, A, B, alpha, beta = coefficients(law)
    L: float | Array = E + A / parameters**alpha + B / tokens**beta
    return L


@checked
def compute_optimal(flops: Quantity[Number], law: str | Law = "besiroglu") -> Optimum:
    """Split C FLOP into parameters and tokens in the best way, C = 6ND.

    If a law has a loss, N = (αA/(βB))^(1/(α+β)) · (C/6)^(β/(α+β)) and D = C/(6N), where
    both terms fall equally fast. Otherwise this is the published power of C. Numbers
    or arrays.

    Source: arXiv 2203.15556 Eq. 4, and that of each law.

    >>> best = compute_optimal(5.76e23)
    >>> f"{best.parameters:.3g}, {best.tokens:.3g}", round(best.tokens_per_parameter)
    ('7.22e+10, 1.33e+12', 18)
    """
    law, (C,) = known_law(law), as_results(flops)
    if law.tells_loss:
        _, A, B, alpha, beta = coefficients(law)
        shape = (alpha * A / (beta * B)) ** (1 / (alpha + beta))
        N = shape * (C / 6) ** (beta / (alpha + beta))
    elif law.size:
        N = law.size[0] * C ** law.size[1]
    elif law.text:
        N = C / (6 * law.text[0] * C ** law.text[1])
    else:
        refuse("law", law.name, "has neither a loss nor a best size")
    D = C / (6 * N)
    return Optimum(N, D, outside(N, D, law))


@checked
def best_for_loss(loss: Quantity[Number], law: str | Law = "besiroglu") -> Optimum:
    """Find the parameters and tokens that reach a loss with the least work.

    At that point both terms fall equally fast, αA/N^α = βB/D^β, and split what's above E:
    A/N^α = (L - E)·β/(α+β), B/D^β = (L - E)·α/(α+β). The work is 6ND. Raises ValueError
    for a loss at E or below. Numbers or arrays.

    >>> f"{best_for_loss(loss(7.24e9, 1.03e12)).parameters:.3g}"
    '1.64e+10'
    """
    (E, A, B, alpha, beta), (L,) = coefficients(law), as_results(loss)
    gap = L - E
    if anywhere(gap <= 0):
        refuse("loss", loss, f"is out of reach: every model stays above {E:.4g}")
    try:
        N = (A * (alpha + beta) / (gap * beta)) ** (1 / alpha)
        D = (B * (alpha + beta) / (gap * alpha)) ** (1 / beta)
    except OverflowError:
        refuse("loss", loss, "needs a model too large for a float")
    quantity("FLOP for this loss", finite("loss, in FLOP", 6 * N * D, 1e300))
    return Optimum(N, D, outside(N, D, law))


@checked
def times_the_least(
    parameters: Quantity[float], tokens: Quantity[float], law: str | Law = "besiroglu"
) -> float:
    """Divide the work of a run by the least work that reaches its loss: 1 at the best size.

    >>> round(times_the_least(7.24e9, 1.03e12), 2)
    1.41
    """
    least = best_for_loss(loss(parameters, tokens, law), law)
    return float(parameters * tokens / (least.parameters * least.tokens))


@checked
def outside(
    parameters: Quantity[Number], tokens: Quantity[Number], law: str | Law = "besiroglu"
) -> str:
    """Describe how far this is beyond the runs of a law; empty if it isn't.

    >>> outside(70e9, 1.4e12)
    '4.3 times the parameters, 2.8 times the tokens of its largest runs'
    """
    N, D = parameters, tokens
    sizes: dict[str, Number] = {"parameters": N, "tokens": D, "flops": 6 * N * D}
    over, under = [], []
    for key, value in sizes.items():
        low, high = known_law(law).fitted.get(key, (0, math.inf))
        name = {"flops": "FLOP"}.get(key, key)
        # Up to 10% beyond the runs counts as inside.
        if anywhere(value > 1.1 * high):
            over.append(f"{_times(largest(value) / high)} the {name}")
        if anywhere(value < low / 1.1):
            under.append(f"{_times(-largest(-value) / low)} the {name}")
    phrases = []
    if over:
        phrases.append(f"{', '.join(over)} of its largest runs")
    if under:
        phrases.append(f"{', '.join(under)} of its smallest runs")
    return "; ".join(phrases)


def _times(ratio: float) -> str:
    """Write a ratio with two digits, or in words if it's extreme."""
    if ratio > 1e9:
        return "over a billion times"
    return "under a billionth of" if ratio < 1e-9 else f"{units.digits(ratio, 2)} times"


@checked
def compute_for_loss(
    parameters: Quantity[float | Array], loss: Quantity[float | Array], law: str | Law = "besiroglu"
) -> float | Array:
    """The FLOP needed to train this many parameters to this loss.

    D = (B / (L - E - A/N^α))^(1/β), C = 6ND. At any budget, half the best size needs
    1.26× the best C, and a quarter 4.5× (see `over_training`). Raises ValueError if a
    model of this size can't reach the loss on any amount of text. Numbers or arrays.

    >>> best = compute_optimal(1e21)
    >>> target = loss(best.parameters, best.tokens)
    >>> round(compute_for_loss(best.parameters / 2, target) / 1e21, 2)
    1.26
    """
    (E, A, B, alpha, beta), N = coefficients(law), parameters
    gap = loss - E - A / N**alpha
    if anywhere(gap <= 0):
        least = largest(E + A / N**alpha)
        refuse("loss", loss, f"is out of reach: on endless text, this size gets to {least:.4g}")
    try:
        D = (B / gap) ** (1 / beta)
    except OverflowError:
        refuse("loss", loss, "needs more tokens than fit in a float")
    return quantity("FLOP for this loss", finite("loss, in FLOP", 6 * N * D, 1e300))


@checked
def over_training(share: Quantity[float | Array], law: str | Law = "besiroglu") -> float | Array:
    """The multiple of the best compute that a model needs at this share of the best size.

    For the same loss: x·((1 - a·x^-α)/(1 - a))^(-1/β), a = β/(α+β), at any budget,
    because both terms of the loss scale with it in the same way. Raises ValueError if
    the model is too small to get there at all.

    >>> [round(over_training(x), 2) for x in (0.25, 0.5, 1, 2)]
    [4.47, 1.26, 1.0, 1.15]
    """
    (_, _, _, alpha, beta), x = coefficients(law), share
    a = beta / (alpha + beta)
    remaining = (1 - a * x**-alpha) / (1 - a)
    if anywhere(remaining <= 0):
        refuse("share", share, "of the best size never reaches the same loss")
    times: float | Array = x * remaining ** (-1 / beta)
    return times


REPEATS = 15.387756
"""R_D* of Muennighoff et al.: the value of repeated epochs decays as exp(-R/R_D*)."""


@checked
def effective_tokens(
    tokens: Quantity[float | Array], epochs: Quantity[float | Array]
) -> float | Array:
    """Convert tokens that are seen several times into the fresh tokens they're worth.

    U·(1 + R*·(1 - exp(-R/R*))) with U different tokens and R = epochs - 1 repeats: four
    epochs are worth 3.7, forty are worth 15, and no number is worth more than 16.4.
    Raises ValueError for less than one epoch. Numbers or arrays.

    Source: arXiv 2305.16264 Eq. 5; R* = 15.4 from its repository (datablations).

    >>> [round(effective_tokens(1.0, n), 1) for n in (1, 4, 8, 40)]
    [1.0, 3.7, 6.6, 15.2]
    """
    at_most("one epoch", 1, "epochs", epochs)
    worth: float | Array = 1 + REPEATS * (1 - math.e ** (-(epochs - 1) / REPEATS))
    return tokens * worth
