"""The panel and the handles of chapter 11: what days and money can train."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from llmtrain_course.budget.formulas import (
    NODE,
    affordable_gpus,
    most_flops,
    plan_on_nodes,
    rough_frontier,
    smallest_share,
    tokens_for_size,
)
from llmtrain_course.budget.pictures import (
    epochs_worth,
    loss_against_size,
    price_of_size,
    stacked_terms,
)
from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.formulas import nearest_shape
from llmtrain_course.kit.handle import Shown, handle, slider
from llmtrain_course.kit.layout import PAGE
from llmtrain_helpers import units
from llmtrain_helpers.budget import Outcome, most_tokens, shelf
from llmtrain_helpers.checks import refuse
from llmtrain_helpers.laws import (
    LAWS,
    best_for_loss,
    compute_optimal,
    effective_tokens,
    loss,
    outside,
    over_training,
)
from llmtrain_helpers.model.names import known_model
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.published import accelerator

MOST_GPUS = 65536

_LAWS = {law.name: key for key, law in LAWS.items() if law.tells_loss}
"""The laws that tell a loss, as people call them."""

_chip = cache(accelerator)
"""A chip by its name, read once."""

_SHELF = shelf()
"""The shelf's shapes, by their names."""

_STOPS = {name: units.read(name) for name in _SHELF}
"""Their parameters in two digits, as people write them: where the slider stops."""


LIKELY, SLOW = "likely", "slow end"
"""The speed that others most likely reach, and the one that you can promise."""


@dataclass(frozen=True)
class Setting:
    """Days and money, a size of model or its name, the speed, the price and the law."""

    days: float = 21
    money: float = 80_640
    size: float = _STOPS["7.2B"]
    speed: str = LIKELY
    chip: str = "H100 SXM"
    price: float = 2.5
    law: str = LAWS["besiroglu"].name
    model: str = ""

    @cached_property
    def num_gpus(self) -> int:
        """Whole nodes of eight that the money keeps for the days."""
        affordable = float(affordable_gpus(self.money, self.days, self.price))
        n = int(affordable / NODE + 1e-9) * NODE
        if not n:
            few = units.digits(affordable, 2)
            problem = f"only pays for {few} GPUs for these days, but the minimum is a node, {NODE}"
            refuse("money", self.money, problem)
        return min(n, MOST_GPUS)

    @property
    def cost(self) -> float:
        """Dollars for those GPUs."""
        return self.num_gpus * self.days * 24 * self.price

    @property
    def promised(self) -> bool:
        """Whether the tokens are those that can be promised, at the slow end."""
        return self.speed == SLOW

    @cached_property
    def shapes(self) -> dict[str, Transformer]:
        """The shelf, and the own model where it is told by its name."""
        if not self.model.strip():
            return _SHELF
        return {**_SHELF, self.shape: known_model(self.model.strip())}

    @property
    def shape(self) -> str:
        """The own model's name, or the shape of the shelf whose size is nearest."""
        return self.model.strip() or nearest_shape(self.size, _SHELF)

    @cached_property
    def dots(self) -> list[Outcome]:
        """Every shape on the GPUs, by its size, the own one planned on just so many."""
        given = _chip(self.chip), self.num_gpus, self.days, self.shapes, _LAWS[self.law]
        dots = rough_frontier(*given, planned=self.shape, promised=self.promised)
        return sorted(dots, key=lambda dot: dot.parameters)

    @property
    def dot(self) -> Outcome:
        """The own shape among them."""
        return next(dot for dot in self.dots if dot.name == self.shape)

    @property
    def plan(self) -> Plan:
        """The plan of the own shape on just so many GPUs."""
        return plan_on_nodes(self.shapes[self.shape], _chip(self.chip), self.num_gpus)


_SETTINGS = {
    "64 H100s for three weeks": Setting(),
    "100,000 dollars in a month": Setting(30, 100_000, _STOPS["24B"]),
    "8 A100s for a month": Setting(30, 8640, _STOPS["4.2B"], LIKELY, "A100 80GB SXM", 1.5),
    "A large laboratory": Setting(54, 53_084_160, _STOPS["330B"]),
}

_CONTROLS = {
    "money": common.Control(
        "Money",
        "Dollars for GPU-hours.",
        unit="dollars",
        least=100,
        most=10**10,
        stops=controls.steps(2000, 10**8, 1, 1.5, 2, 3, 5, 7),
    ),
    "days": common.Control(
        "Days",
        "How long you have the GPUs. Fewer days buy more GPUs for the same money.",
        unit="days",
        least=0.5,
        most=1000,
        whole=False,
        stops=controls.DAYS_OF_USE,
    ),
    "size": common.Control(
        "Your model",
        "Parameters of the model you'd train. We use the nearest shape.",
        unit="parameters",
        least=10**6,
        most=10**13,
        stops=tuple(_STOPS.values()),
    ),
    "speed": controls.choice(
        "Speed", "The likely speed, or the slow end, which is what you can promise.", (LIKELY, SLOW)
    ),
    "chip": controls.CHIP,
    "price": controls.PRICE,
    "law": controls.choice("Law", "Whose fit predicts the loss.", _LAWS, more=True),
    "model": common.Control(
        "or by its name",
        "A published model, such as Llama-3.1-8B, or the path of a config.json.",
        "text",
        more=True,
    ),
}


def render(setting: Setting, before: Setting | None = None, width: int = PAGE) -> common.Answer:
    """The panel's answer: sentence, picture, the plan of the point, and the call."""
    law, dots, own = _LAWS[setting.law], setting.dots, setting.dot
    best = min((dot for dot in dots if dot.fits), key=lambda dot: dot.loss, default=None)
    flops = most_flops(dots)
    began = before.dot if before else None
    picture = loss_against_size(dots, flops, law, own.name, began).drawing(width)
    code = (
        f"frontier(published.accelerator({setting.chip!r}), {setting.num_gpus}, "
        f"{setting.days:g}, shelf(), law={law!r}, price_per_gpu_hour={setting.price:g})"
        f"{'.promised()' if setting.promised else ''}"
    )
    html = "".join(
        [
            common.sentence(_sentence(setting, own, best)),
            f"<p>{_money_left(setting)}{_worth(own, flops, law)}</p>",
            picture.inline_svg(),
            common.folded("The plan of your model", _table(setting, own)),
            common.folded("In code", common.call(code)),
        ]
    )
    return common.Answer(html, offers=tuple(_offers(own, best)))


def _sentence(setting: Setting, own: Outcome, best: Outcome | None) -> str:
    gpus = f"{units.exact(setting.num_gpus)} GPUs for {units.digits(setting.days)} days"
    result = f"<b>{gpus}</b> cost {units.dollars(setting.cost)}. "
    if best is None:
        return result + "None of the shapes fits on them."
    result += f"Of the shapes that fit, <b>{best.name}</b> on "
    result += f"{units.count(best.tokens)} tokens ends lowest, at {best.loss:.3f}. "
    if own.name == best.name:
        return result + "That's your model."
    if not own.fits:
        return result + f"Yours, {own.name}, doesn't fit."
    if not setting.model and abs(own.parameters / setting.size - 1) > 0.05:
        result += f"On the shelf, {own.name} is closest to {units.short(setting.size)}. "
    more = own.loss - best.loss
    above = f"{more:.3f} above" if more >= 0.001 else "less than 0.001 above"
    return f"{result}Yours, {own.name} on {units.count(own.tokens)}, ends {above}."


def _money_left(setting: Setting) -> str:
    """What whole machines leave of the money, where it is a hundredth or more."""
    left = setting.money - setting.cost
    if left < 0.01 * setting.money:
        return ""
    most = setting.num_gpus == MOST_GPUS
    why = "That's the most GPUs we allow" if most else f"Whole machines of {NODE}"
    return f"{why}, so {units.dollars(left)} are left. "


def _worth(own: Outcome, flops: float, law: str) -> str:
    """What the size costs, and where the law is asked for more than it knows."""
    times = units.digits(own.parameters / compute_optimal(flops, law).parameters, 2)
    cheapest = best_for_loss(own.loss, law)
    work = cheapest.parameters * cheapest.tokens / (own.parameters * own.tokens)
    result = f"{own.name} is {times}× the law's best size for this work"
    if work < 0.99:
        result += f". A model of {units.count(cheapest.parameters)} would reach the same loss "
        result += f"with {units.digits(100 * (1 - work), 2)}% less work"
    stretched = outside(own.parameters, own.tokens, law)
    return f"{result}. The law is stretched: {stretched}." if stretched else f"{result}."


def _offers(own: Outcome, best: Outcome | None) -> list[common.Offer]:
    """Offers of two shapes: the best one, and one of half its size, cheaper to use."""
    if best is None:
        return []
    half = nearest_shape(best.parameters / 2, _SHELF)
    reasons = {best.name: "the lowest loss here", half: "a smaller one, cheap to use"}
    return [
        (f"Your model: {name}, {why}", {"size": _STOPS[name], "model": ""})
        for name, why in reasons.items()
        if name != own.name and name in _STOPS
    ]


def _table(setting: Setting, own: Outcome) -> str:
    n, days, plan = setting.num_gpus, setting.days, setting.plan
    tokens, split, length = most_tokens(plan, days), plan.split, plan.run.model.sequence_length
    at_peak = plan.run.peak * n * days * units.DAY
    ways = (
        f"TP {split.tensor_parallel}, PP {split.pipeline_parallel}, "
        f"{units.exact(split.data_parallel)} replicas, ZeRO {plan.run.zero_stage}"
    )
    fit = f"{'fits' if plan.fits else 'does not fit'} with a reserve of "
    fit += units.gigabytes(plan.reserve)
    rows = [
        ["rate, in 6ND", units.percent(own.flops / at_peak)],
        ["tokens, likely", units.count(tokens.likely)],
        [
            "tokens, slow end to fast end",
            f"{units.count(tokens.least)} to {units.count(tokens.greatest)}",
        ],
        ["tokens per parameter", units.digits(own.tokens / own.parameters, 2)],
        ["split", ways],
        ["recomputed", plan.run.recompute],
        ["batch", f"{plan.run.global_batch_size} sequences of {length:,} tokens"],
        ["memory per GPU", f"{units.gigabytes(plan.memory.total)}, {fit}"],
        ["GPU-hours", units.count(24 * n * days)],
        ["cost", units.dollars(setting.cost)],
    ]
    return common.table(["", own.name], rows)


PANEL = common.Panel(
    "What will you train?",
    _CONTROLS,
    _SETTINGS,
    ("100,000 dollars in a month", "8 A100s for a month"),
    render,
)


# --- handles


@handle(
    "The loss of one compute budget in three terms, by model size.",
    size=slider(
        "Size",
        "Parameters of the model. The work decides the tokens.",
        (1e8, 3e8, 6e8, 1e9, 2e9, 4e9, 7e9, 1e10, 2e10, 4e10, 7e10, 1e11, 3e11, 1e12),
        unit="parameters",
        whole=True,
    ),
    flops=slider(
        "Work",
        "FLOPs that the GPUs can do in your days.",
        (10**21, 10**22, 10**23, 10**24),
        unit="FLOP",
    ),
    book=({}, {"size": 4e9}),
)
def loss_terms(size: float = 1e9, flops: float = 1e22, previous: Any = None) -> Shown:
    """Three terms at one size, and how far above the lowest loss it ends."""
    best = compute_optimal(flops)
    least = float(loss(best.parameters, best.tokens))
    above = float(loss(size, tokens_for_size(size, flops))) - least
    picture = stacked_terms(size, flops, previous.size if previous else size)
    if above < 0.01:
        caption = "<b>The bottom of the valley.</b> No other size ends more than 0.01 lower."
        return picture, caption
    better = "A larger model with less text"
    if size >= best.parameters:
        better = "A smaller model with more text"
    caption = f"<b>{above:.2f} above the lowest.</b> {better} would end lower for the same work."
    return picture, caption


@handle(
    "The work that another model size needs for the same loss.",
    share=slider(
        "Size",
        "The model's size, relative to the best one for the same loss.",
        (0.1, 0.125, 0.15, 0.2, 0.25, 0.35, 0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8),
        unit="of the best",
    ),
    book=({}, {"share": 0.25}),
)
def size_price(share: float = 1.0) -> Shown:
    """How much more work a size takes to the same loss than the best one."""
    picture = price_of_size(share)
    if share < smallest_share():
        caption = "<b>Never.</b> A model this small can't reach this loss on any amount of text."
        return picture, caption
    if share == 1:
        caption = "<b>The cheapest way to this loss.</b> Every other size needs more work."
        return picture, caption
    times = float(over_training(share))
    size, work = units.digits(share, 2), units.digits(times, 3)
    text = units.digits(times / share, 3)
    caption = f"<b>{work}× the work.</b> At {size}× the size, the model has to train on {text}× "
    return picture, f"{caption}the text to reach the same loss."


_MOST_EPOCHS = 60


@handle(
    "What each further reading of the same text is worth.",
    epochs=slider(
        "Readings",
        "How often the model reads the same text.",
        (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 50, _MOST_EPOCHS),
        play=True,
    ),
    book=({}, {"epochs": 40}),
)
def repeated(epochs: int = 4) -> Shown:
    """What each further reading of the same text adds."""
    worths = [float(effective_tokens(1.0, k)) for k in range(1, _MOST_EPOCHS + 1)]
    picture = epochs_worth(worths, epochs)
    if epochs == 1:
        return picture, "In the first reading, everything is new."
    added = worths[epochs - 1] - worths[epochs - 2]
    return picture, f"The last reading taught {units.share(added)} of what the first one did."
