"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from llmtrain_helpers.budget import Outcome
from llmtrain_helpers.checks import Number, Result, broadcast, one, quantities, quantity, refuse
from llmtrain_helpers.laws import Law, known_law, loss_law

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[Any]


def affordable_gpus(money: Number, days: Number, price_per_gpu_hour: Number) -> Result:
    """The GPUs that so much money keeps for so many days: M / (24·days·price).

    >>> affordable_gpus(80_640, 21, price_per_gpu_hour=2.5)
    64.0
    """
    M, price = quantities(money=money, price_per_gpu_hour=price_per_gpu_hour)
    t = quantity("days", days)
    broadcast(money=M, days=t, price_per_gpu_hour=price)
    return M / (24 * t * price)


def most_flops(outcomes: Iterable[Outcome]) -> float:
    """The budget as 6ND, in FLOP: the largest among the outcomes.

    At one budget small shapes have a smaller 6ND: more of their FLOP is attention.
    """
    return max(outcome.flops for outcome in outcomes)


def smallest_share(law: str | Law = "besiroglu") -> float:
    """The share of the best size below which no text is enough for the same loss.

    (1 + α/β)^(-1/α): there the size's own term of the loss is as large as both terms at
    the best size, and `over_training` grows beyond all bounds.

    >>> round(smallest_share(), 4)
    0.1464
    """
    law = loss_law(law)
    return float((1 + law.alpha / law.beta) ** (-1 / law.alpha))


def sizes_known(flops: float, law: str | Law = "besiroglu") -> tuple[float, float]:
    """The least and the largest size that a law's own runs cover at this budget.

    Neither the size, nor its text C/(6N), nor the work lies more than a tenth beyond the
    runs behind the law; (inf, inf) where the work does, and a least size above the
    largest where no size has both.

    >>> low, high = sizes_known(1e21)
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


def tokens_for_size(parameters: Number, flops: Number) -> Result:
    """The tokens that a budget of C FLOP leaves to a model of N parameters: C/(6N).

    >>> tokens_for_size(70e9, 5.88e23)
    1400000000000.0
    """
    N, C = quantities(parameters=parameters, flops=flops)
    broadcast(parameters=N, flops=C)
    return C / (6 * N)


def losses_of_sizes(
    sizes: Sequence[float], flops: Number, law: str | Law = "besiroglu"
) -> list[float]:
    """The loss of each of many sizes at one budget of C FLOP: L(N, C/(6N)).

    `loss` and `tokens_for_size` in one, for curves of hundreds of points.

    >>> from llmtrain_helpers import loss
    >>> losses_of_sizes([70e9], 5.88e23) == [loss(70e9, 1.4e12)]
    True
    """
    form, C = loss_law(law), one("flops", flops, quantity)
    if not isinstance(sizes, (list, tuple)):
        refuse("sizes", sizes, "is no list of sizes")
    return [
        float(form.E + form.A / N**form.alpha + form.B / (C / (6 * N)) ** form.beta)
        for N in (one("sizes", size, quantity) for size in sizes)
    ]
