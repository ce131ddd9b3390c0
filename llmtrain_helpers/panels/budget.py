"""The panel of chapter 10: what days and money can train."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.budget import most_tokens, shelf, usual_batch
from llmtrain_helpers.checks import refuse
from llmtrain_helpers.drawings.budget import Dot, loss_against_size
from llmtrain_helpers.evidence.published import accelerator
from llmtrain_helpers.laws import LAWS, best_for_loss, compute_optimal, loss, outside
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.panels import common
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.search import best_split

MOST_GPUS = 65536
NODE = 8


def _preset(**changes: Any) -> dict[str, Any]:
    return {
        "days": 21,
        "money": 80_640,
        "size": _STOPS["7.2B"],
        "chip": "H100 SXM",
        "price": 2.5,
        "law": LAWS["besiroglu"].name,
    } | changes


_LAWS = {law.name: key for key, law in LAWS.items() if law.tells_loss}
"""The laws that tell a loss, as people call them."""


@cache
def _shapes() -> dict[str, Transformer]:
    return shelf()


_SIZES = {name: count_parameters(model).total for name, model in shelf().items()}
"""Parameters of the shelf's shapes, by their names."""

_STOPS = {name: units.read(name) for name in _SIZES}
"""The same in two digits, as people write them: where the slider stops."""

_PRESETS = {
    "64 H100 for three weeks": _preset(),
    "100,000 dollars in a month": _preset(days=30, money=100_000, size=_STOPS["24B"]),
    "8 A100 for a month": _preset(
        **{"days": 30, "money": 8640, "price": 1.5, "size": _STOPS["4.2B"]},
        **{"chip": "A100 80GB SXM"},
    ),
    "A large laboratory": _preset(days=54, money=53_084_160, size=_STOPS["330B"]),
}

_CONTROLS = {
    "money": common.Control(
        "Money",
        "Dollars for GPU-hours.",
        unit="dollars",
        least=100,
        most=10**10,
        stops=common.steps(2000, 10**8, 1, 1.5, 2, 3, 5, 7),
    ),
    "days": common.Control(
        "Days",
        "How long the GPUs are yours; fewer days, more GPUs for the same money.",
        unit="days",
        least=0.5,
        most=1000,
        whole=False,
        stops=(1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 120, 180, 365),
    ),
    "size": common.Control(
        "Your model",
        "Parameters of the model you would train; the nearest shape is taken.",
        unit="parameters",
        least=10**6,
        most=10**13,
        stops=tuple(_STOPS.values()),
    ),
    "chip": common.accelerators(more=True),
    "price": common.Control(
        "Price",
        "Dollars for one GPU for one hour; enter your own.",
        unit="dollars a GPU-hour",
        least=0.01,
        most=1e6,
        whole=False,
        more=True,
    ),
    "law": common.choice("Law", "Whose fit tells the loss.", [*_LAWS], more=True),
}


def gpus_for(money: float, days: float, price: float) -> int:
    """Whole nodes of eight that so much money keeps for so many days."""
    n = int(money / (24 * days * price * NODE) + 1e-9) * NODE
    if not n:
        paid = units.digits(money / (24 * days * price), 2)
        refuse("money", money, f"keeps {paid} GPUs for these days: the least is a node, {NODE}")
    return min(n, MOST_GPUS)


def nearest_shape(size: float) -> str:
    """The shape of the shelf whose size is nearest."""
    return min(_SIZES, key=lambda name: max(_SIZES[name] / size, size / _SIZES[name]))


_chip = cache(accelerator)
"""A chip by its name, read once."""


@cache
def split_of(chip: str, name: str, num_gpus: int) -> Plan:
    """The best split of a shape on so many GPUs."""
    model = _shapes()[name]
    batch = usual_batch(model, num_gpus)
    return best_split(model, _chip(chip), num_gpus, batch)


def _below(num_gpus: int) -> int:
    """The largest doubling of a node that is no more: whose split stands for it."""
    return int(NODE * 2 ** ((num_gpus // NODE).bit_length() - 1))


def _plan(chip: str, name: str, n: int) -> Plan:
    """The plan of a shape on any number of nodes: the split of the doubling below.

    With fewer sequences at once, where the batch does not come out even with them.
    """
    plan = split_of(chip, name, _below(n))
    if n == _below(n):
        return plan
    s, batch = plan.split, usual_batch(_shapes()[name], n)
    ways = s.tensor_parallel * s.pipeline_parallel
    if n % ways:
        return split_of(chip, name, n)
    b = math.gcd(s.micro_batch_size, batch * ways // n)
    return plan.but(num_gpus=n, global_batch_size=batch, micro_batch_size=b)


def dots_of(chip: str, n: int, days: float, law: str, own: str = "") -> list[Dot]:
    """Every shape of the shelf on n GPUs: as fast as at the doubling below, each GPU.

    `own` is planned on n GPUs themselves.
    """
    dots = []
    for name, P in _SIZES.items():
        plan = split_of(chip, name, _below(n)) if name != own else _plan(chip, own, n)
        T = float(most_tokens(plan, days).likely) * n / plan.split.num_gpus
        dots.append(Dot(name, P, T, float(loss(P, T, law)), bool(plan.fits)))
    return dots


def render(
    before: common.Values | None = None,
    *,
    money: float,
    days: float,
    size: float,
    chip: str,
    price: float,
    law: str,
) -> common.Answer:
    """The panel's answer: sentence, picture, the plan of the point, and the call."""
    n, law = gpus_for(money, days, price), _LAWS[law]
    chosen = nearest_shape(size)
    dots = dots_of(chip, n, days, law, chosen)
    own = next(dot for dot in dots if dot.name == chosen)
    able = [dot for dot in dots if dot.fits]
    best = min(able, key=lambda dot: dot.loss) if able else None
    flops = max(6 * dot.parameters * dot.tokens for dot in dots)
    picture = loss_against_size(dots, flops, law, own.name, _dot_of(before))
    html = "".join(
        [
            common.sentence(_sentence(n, days, price, own, best, size)),
            f"<p>{_left(money, n, days, price)}{_worth(own, flops, law)}</p>",
            picture.live(),
            common.folded("The plan of your model", _table(chip, own, n, days, price)),
            common.folded("In code", _code(chip, n, days, price, law)),
        ]
    )
    return common.Answer(html, offers=tuple(_offers(own, best)))


def _dot_of(values: common.Values | None) -> Dot | None:
    """The chosen shape of the values before."""
    if values is None:
        return None
    n = gpus_for(values["money"], values["days"], values["price"])
    own = nearest_shape(values["size"])
    dots = dots_of(values["chip"], n, values["days"], _LAWS[values["law"]], own)
    return next(dot for dot in dots if dot.name == own)


def _sentence(
    n: int, days: float, price: float, own: Dot, best: Dot | None, wanted: float = 0
) -> str:
    paid = units.dollars(n * days * 24 * price)
    told = f"<b>{units.exact(n)} GPUs for {units.digits(days)} days</b> cost {paid}. "
    if best is None:
        return told + "None of the shapes fits on them."
    told += f"Of the shapes that fit, <b>{best.name}</b> on "
    told += f"{units.count(best.tokens)} tokens ends lowest, at {best.loss:.3f}. "
    if own.name == best.name:
        return told + "That is yours."
    if not own.fits:
        return told + f"Yours, {own.name}, does not fit."
    more = f"{own.loss - best.loss:.3f} above"
    if wanted and abs(own.parameters / wanted - 1) > 0.05:
        told += f"On the shelf {own.name} comes nearest to {units.short(wanted)}. "
    return told + f"Yours, {own.name} on {units.count(own.tokens)}, ends {more}."


def _left(money: float, n: int, days: float, price: float) -> str:
    """What whole machines leave of the money, where it is a hundredth or more."""
    left = money - n * days * 24 * price
    if left < 0.01 * money:
        return ""
    why = f"Whole machines of {NODE}" if n < MOST_GPUS else "No more GPUs than these"
    return f"{why}; {units.dollars(left)} are left. "


def _worth(own: Dot, flops: float, law: str) -> str:
    """What the size costs, and where the law is asked for more than it knows."""
    share = units.digits(own.parameters / compute_optimal(flops, law).parameters, 2)
    least = best_for_loss(own.loss, law)
    work = least.parameters * least.tokens / (own.parameters * own.tokens)
    told = f"{own.name} is {share} times the law's best size for this work"
    if work < 0.99:
        told += f"; a model of {units.count(least.parameters)} would reach its loss "
        told += f"with {units.digits(100 * work, 2)} % of it"
    far = outside(own.parameters, own.tokens, law)
    return f"{told}. The law is stretched: {far}." if far else f"{told}."


def _offers(own: Dot, best: Dot | None) -> list[common.Offer]:
    """To take the best shape; or half of it, which is cheaper to use."""
    if best is None:
        return []
    names = [*_SIZES]
    half = nearest_shape(best.parameters / 2)
    told = {best.name: "the lowest loss here", half: "a smaller one, cheap to use"}
    return [
        (f"Your model: {name}, {why}", {"size": _STOPS[name]})
        for name, why in told.items()
        if name != own.name and name in names
    ]


def _table(chip: str, own: Dot, n: int, days: float, price: float) -> str:
    plan = _plan(chip, own.name, n)
    span, s = most_tokens(plan, days), plan.split
    ends = f"{units.count(span.least)} to {units.count(span.greatest)}"
    ways = f"TP {s.tensor_parallel}, PP {s.pipeline_parallel}, "
    ways += f"{units.exact(s.data_parallel)} replicas, ZeRO {plan.run.zero_stage}"
    fit = f"{'fits' if plan.fits else 'does not fit'} with a reserve of "
    fit += units.gigabytes(plan.reserve)
    at_peak = plan.run.peak * n * days * units.DAY
    rows = [
        ["rate, in 6ND", units.percent(6 * own.parameters * own.tokens / at_peak)],
        ["tokens, likely", units.count(span.likely)],
        ["tokens, slow end to fast end", ends],
        ["tokens for each parameter", units.digits(own.tokens / own.parameters, 2)],
        ["split", ways],
        ["recomputed", plan.run.recompute],
        ["batch", f"{plan.run.global_batch_size} sequences of 4,096 tokens"],
        ["memory of a GPU", f"{units.gigabytes(plan.memory.total)}, {fit}"],
        ["GPU-hours", units.count(24 * n * days)],
        ["cost", units.dollars(24 * n * days * price)],
    ]
    return common.table(["", own.name], rows)


def _code(chip: str, n: int, days: float, price: float, law: str) -> str:
    return common.call(
        f"frontier(published.accelerator({chip!r}), {n}, {days:g}, shelf(), "
        f"law={law!r}, price_per_gpu_hour={price:g})"
    )


PANEL = common.Panel(
    "What will you train?",
    _CONTROLS,
    _PRESETS,
    ("100,000 dollars in a month", "8 A100 for a month"),
    render,
)
