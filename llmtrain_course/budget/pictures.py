"""Pictures of chapter 11: one budget's many models, prices of other sizes, laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import floor, log2, log10
from typing import Any

from llmtrain_course.budget.formulas import (
    fitted_sizes,
    loss_terms,
    losses_of_sizes,
    most_flops,
    smallest_share,
    tokens_for_size,
)
from llmtrain_course.kit.chart import Band, Chart, Column, Dot, Mark, Note, Path, Rule, stacked
from llmtrain_course.kit.drawing import COLORS, GREY
from llmtrain_course.kit.lanes import Bars, Lane, Limit, Point, bar
from llmtrain_course.kit.layout import Fact, Picture
from llmtrain_course.kit.scale import Scale
from llmtrain_helpers import units
from llmtrain_helpers.budget import Frontier, Outcome
from llmtrain_helpers.laws import Law, coefficients, compute_optimal, loss, over_training
from llmtrain_helpers.results import Breakdown

BLUE, RED, GREEN = COLORS["weights"], COLORS["gradients"], COLORS["optimizer"]
"""Parameters are blue as weights are, tokens vermilion, what is best green."""


# --- the loss of one budget, in three terms

_FLOOR, _CEILING = 1.7, 2.6
"""Where the axis of the loss begins and ends, at every setting."""

TERMS = {"floor": GREY, "too small": BLUE, "read too little": RED}
"""The terms of a loss, from the bottom up, and their colours."""


def stacked_terms(parameters: float, flops: float, began: float) -> Picture:
    """The floor, the size's term and the text's, stacked over all sizes of one budget.

    A line cuts at one size, with its terms beside it; a hollow dot is where it began.
    """
    bottom, *_ = coefficients("besiroglu")
    sizes = [10 ** (8 + k / 40) for k in range(161)]
    terms = [loss_terms(N, tokens_for_size(N, flops)) for N in sizes]
    layers = dict(
        zip(TERMS, [[bottom - _FLOOR] * len(sizes), *zip(*terms, strict=True)], strict=True)
    )
    tokens = float(tokens_for_size(parameters, flops))
    small, little = map(float, loss_terms(parameters, tokens))
    whole = bottom + small + little
    was = float(loss(began, tokens_for_size(began, flops)))
    marks: list[Mark] = [
        *(mark.unnamed() for mark in stacked(sizes, layers, TERMS, _FLOOR, opacity=0.75)),
        Dot(began, was, shape="ring", size=9, title="where it began", hidden=began == parameters),
        Rule(parameters, width=2.5),
        Dot(parameters, min(whole, _CEILING), GREEN, 8, title=f"loss {whole:.2f}", moves="size"),
        Note(parameters, 2.52, "above the picture", hidden=whole <= _CEILING),
    ]
    values = {"read too little": little, "too small": small, "floor": bottom}
    facts = [
        Fact(f"{units.size(parameters)} parameters", bold=True),
        Fact(f"{units.count(tokens, 2)} tokens", bold=True),
        *(Fact(x, f"{value:.3f}", TERMS[x], opacity=0.75) for x, value in values.items()),
        Fact("loss", f"{whole:.3f}", size=17, bold=True, rule=True),
        Fact("where it began", draw=marks[3].swatch().draw, hidden=began == parameters),
    ]
    words = (
        f"{units.flops(flops)} of work, spent on {units.size(parameters)} parameters and "
        f"{units.count(tokens, 2)} tokens: floor {bottom:.3f}, too small {small:.3f}, read too "
        f"little {little:.3f}, loss {whole:.3f}. Over all sizes, the sum forms a valley."
    )
    x = Scale(1e8, 1e12, "parameters", units.size, log=True)
    y = Scale(_FLOOR, _CEILING, "loss", "{:.1f}".format, (1.8, 2.0, 2.2, 2.4, 2.6))
    return Chart(x, y, marks, words, facts, height=280, broken=True)


# --- loss against size


def frontier_picture(front: Frontier, chosen: str = "") -> Picture:
    """The shapes of a frontier over their sizes, the law's curve, and the best.

    `chosen` is the name of a shape to point at.
    """
    dots = [point.outcome for point in front.points]
    return loss_against_size(dots, most_flops(dots), front.law, chosen)


def loss_against_size(
    dots: Sequence[Outcome],
    flops: float,
    law: str | Law = "besiroglu",
    chosen: str = "",
    before: Outcome | None = None,
) -> Picture:
    """Loss against size at one budget: the curve, the shapes, the best, the chosen.

    The green strip is where the loss is within 0.01 of the best, a diamond. A cross is a shape
    that does not fit, a ring one that would not answer where it must.
    """
    best = compute_optimal(flops, law)
    lowest = float(loss(best.parameters, best.tokens, law))
    logs = [log10(dot.parameters) for dot in dots]
    first, last = min(logs) - 0.2, max(logs) + 0.2
    bottom = floor(5 * (lowest - 0.05)) / 5  # in steps, so that a curve seems to sink
    own, tokens = next((x for x in dots if x.name == chosen), None), units.count(best.tokens)
    x = Scale(10**first, 10**last, "parameters, and tokens per parameter", log=True)
    x = x.with_ticks({N: f"{units.size(N)}\n{_each(N, flops)}" for N in x.labels})
    y = Scale(bottom, bottom + 0.5, "loss, nats per token", "{:.1f}".format)
    sizes = [10 ** (first + (last - first) * i / 400) for i in range(401)]
    curve = list(zip(sizes, losses_of_sizes(sizes, flops, law), strict=True))
    near = [N for N, value in curve if value <= lowest + 0.01]
    marks: list[Mark] = [
        *_curve(curve, *fitted_sizes(flops, law), y.high),
        *(_mark(dot) for dot in dots if x.holds(dot.parameters) and y.holds(dot.loss)),
        Dot(
            best.parameters,
            lowest,
            GREEN,
            shape="diamond",
            name=f"the law's best: {units.size(best.parameters)}, {tokens} tokens",
        ),
    ]
    if near:
        strip = f"within 0.01 of it: {units.size(near[0])} to {units.size(near[-1])}"
        marks.insert(0, Band(near[0], near[-1], GREEN, name=strip))
    if before and before != own:
        title = f"at the start: {before.name}"
        marks.append(
            Dot(
                before.parameters,
                before.loss,
                size=11,
                shape="ring",
                title=title,
                name="at the start",
                hidden=not y.holds(before.loss),
            )
        )
    if own:
        color = BLUE if own.fits else RED
        name = _own(own, y.holds(own.loss))
        marks.append(Dot(own.parameters, own.loss, color, 11, title=own.name, name=name))
    able = [dot for dot in dots if dot.fits and dot.answers]
    words = (
        f"Loss against size at one budget. The law's best: {units.size(best.parameters)} "
        f"parameters on {units.count(best.tokens)} tokens, loss {lowest:.3f}. "
        f"{len(able)} of {len(dots)} shapes fit"
    )
    if able:
        words += f", {able[0].name} to {able[-1].name}"
        low = min(able, key=lambda dot: dot.loss)
        words += f"; of them {low.name} ends lowest, at {low.loss:.3f}"
    if own:
        words += f". Yours: {own.name}, {units.count(own.tokens)} tokens, {own.loss:.3f}"
    return Chart(x, y, marks, f"{words}.", height=300)


def _each(parameters: float, flops: float) -> str:
    """Tokens for each parameter of a size, as its tick says them."""
    each = float(tokens_for_size(parameters, flops)) / parameters
    return units.size(each) if each >= 1e6 else units.digits(each, 1)


def _curve(
    curve: Sequence[tuple[float, float]], low: float, high: float, top: float
) -> Iterator[Path]:
    """The loss that the law expects of each size; dotted beyond the law's runs."""
    for within, group in groupby(pairwise(curve), lambda pair: low <= pair[1][0] <= high):
        pairs = [*group]
        points = [pairs[0][0], *(right for _, right in pairs)]
        if within:
            visible = any(value <= top for _, value in points)
            yield Path(points, BLUE, 6, name="the law" if visible else "")
        else:
            yield Path(points, BLUE, 3, "2 5", name="the law, beyond its runs")


def _mark(dot: Outcome) -> Dot:
    """A shape: a dot where it fits, a cross where it does not, a ring elsewhere."""
    shape, name = "dot", "fits"
    if not dot.fits:
        shape, name = "cross", "does not"
    elif not dot.answers:
        shape, name = "hollow", "too large to answer there"
    title = f"{dot.name}, {units.count(dot.tokens)} tokens, loss {dot.loss:.3f}"
    color = BLUE if dot.fits else RED
    return Dot(dot.parameters, dot.loss, color, shape=shape, title=title, name=name)


def _own(dot: Outcome, visible: bool) -> str:
    """What the key says of the chosen shape."""
    if not dot.fits:
        return f"yours: {dot.name}, doesn't fit on these GPUs"
    off = "" if visible else ", off the top"
    return f"yours: {dot.name}{off}, {units.count(dot.tokens)} tokens, loss {dot.loss:.3f}"


# --- what another size costs


def price_of_size(chosen: float = 1) -> Picture:
    """Times the least work for the same loss, over the share of the best size.

    A dot is at the chosen share, with its price, or a cross where there is none. The
    curve is drawn as far from the best size, on both sides, as the chosen one is.
    """
    least, seen = smallest_share(), abs(log2(chosen)) + 1e-9
    prices = [
        (share, float(over_training(share)))
        for share in (2 ** (i / 80) for i in range(-280, 241))
        if share > least
    ]
    prices = [(share, times) for share, times in prices if times <= 8]
    first = prices[0][0]
    times = float(over_training(chosen)) if chosen > least else 8.0
    price = f"{units.digits(times, 3)} ×"
    marks: list[Mark] = [
        Band(1 / 16, least, GREY, label="never", opacity=0.18, hidden=chosen >= least),
        Note(first, 5.5, "over 8", anchor="end", hidden=chosen >= first),
        Path([point for point in prices if abs(log2(point[0])) <= seen], BLUE),
        Dot(1, 1, GREEN, 7, title="the best"),
        Rule(chosen, to=times, dash="4 4", hidden=chosen <= least or times > 8),
        Dot(chosen, 2, RED, 9, "cross", moves="share", hidden=chosen > least),
        Dot(
            chosen,
            min(times, 8),
            RED,
            9,
            label=price,
            title=f"{times:.2f}×",
            bold=True,
            letters=20,
            moves="share",
            hidden=chosen <= least,
        ),
    ]
    ends = f"{units.digits(times, 3)}× the minimum work" if chosen > least else "never"
    words = (
        f"Work to reach the same loss, relative to the minimum, by the share of the best "
        f"size. Selected: {units.digits(chosen, 2)} of the best size, {ends}."
    )
    shares = {2.0**k: f"{2**k}" if k >= 0 else f"1/{2**-k}" for k in range(-4, 4)}
    x = Scale(1 / 16, 8, "times the best size for that loss", ticks=shares, log=True, grid=True)
    y = Scale(
        1, 8, "times the least work for the same loss", ticks=(1, 2, 4, 8), log=True, grid=True
    )
    return Chart(x, y, marks, words)


# --- text that is read again


def epochs_worth(worths: Sequence[float], epochs: int) -> Picture:
    """A column for each epoch: what that reading adds, over the first one's worth.

    `worths` holds what 1, 2, … epochs are worth together; those so far are filled.
    """
    added = [after - before for before, after in pairwise([0.0, *worths])]
    columns = [
        Column(
            i + 0.6,
            i + 1.4,
            share,
            GREEN if i < epochs else "none",
            title=f"reading {i + 1}: {share:.2f}",
            outline=True,
            opacity=1 if i < epochs else 0.45,
        )
        for i, share in enumerate(added)
    ]
    worth = units.digits(worths[epochs - 1], 2 if epochs < 7 else 3)
    readings = units.plural(epochs, "reading")
    words = (
        f"{readings} of one text are worth {worth} fresh ones. Each reading adds less than "
        f"the previous one."
    )
    ticks = (1, *range(10, len(added) + 1, 10))
    x = Scale(0, len(added) + 1, "reading", ticks=ticks)
    y = Scale(0, 1, "what each reading adds", "{:g}".format, (0, 0.5, 1), grid=True)
    headline = f"{worth} fresh texts", f"{readings}, together worth"
    return Chart(x, y, columns, words, headline=headline, height=210)


# --- tokens for each parameter: laws, and what was done


def tokens_each(laws: Mapping[str, float], models: Sequence[Mapping[str, Any]]) -> Picture:
    """Laws' best tokens a parameter above released models, over the years.

    A model is a row of `published.rows("tokens_per_parameter")`.
    """
    x = Scale(0.1, 1e5, "tokens per parameter", "{:,.10g}".format, log=True, grid=True)
    lanes = [
        Lane(
            "",
            [Point(ratio, GREEN, f"{_brief(name)}: {units.digits(ratio, 2)}", name)],
            group="the laws' optimum, at Chinchilla's work",
            height=12,
        )
        for name, ratio in laws.items()
    ]
    kinds = {True: ("dense", BLUE), False: ("experts, by active ones", COLORS["activations"])}
    by_year = sorted(models, key=lambda row: int(row["year"]))
    for year, rows in groupby(by_year, lambda row: str(row["year"])):
        points = []
        for row in rows:
            kind, color = kinds[row["kind"] == "dense"]
            ratio, name = float(row["tokens_per_parameter"]), str(row["name"])
            points.append(Point(ratio, color, title=name, name=kind))
        lanes.append(Lane(year, points, group="what was trained", bold=True, height=18))
    ratios = sorted(float(row["tokens_per_parameter"]) for row in models)
    low, high = units.digits(ratios[0], 2), units.digits(ratios[-1], 2)
    best = ", ".join(f"{name} {units.digits(ratio, 2)}" for name, ratio in laws.items())
    words = f"Tokens per parameter. Laws: {best}. {len(models)} released models: {low} to {high}."
    return Bars(x, lanes, words, [Limit(20, "20", "4 4", width=1.5, bold=True)])


def _brief(law: str) -> str:
    """A law's name without what the axis says."""
    return law.removesuffix(" tokens per parameter")


# --- memory of ways to train

WAYS = {"adam": "Adam", "adam_8bit": "Adam, 8 bits", "adafactor": "Adafactor"}
"""Names of optimizers as people write them."""

_WORDS = {"main_weights": "main weights", "transient": "logits"}


def memory_of_ways(ways: Mapping[str, Breakdown[float]], limits: Mapping[str, float]) -> Picture:
    """Bars of bytes, stacked from named parts, against the memory of some cards."""
    named = {WAYS.get(name, name.replace("muon", "Muon")): way for name, way in ways.items()}
    longest = max(way.total for way in named.values())
    bars = [
        bar(
            name,
            {part: float(x) for part, x in way.parts().items() if x},
            COLORS,
            units.gigabytes,
            words=_WORDS,
            labels=False,
        )
        for name, way in named.items()
    ]
    cards = [Limit(memory, card, "5 4") for card, memory in limits.items() if memory <= longest]
    totals = ", ".join(f"{name} {units.gigabytes(way.total)}" for name, way in named.items())
    scale = Scale(0, longest)
    return Bars(scale, bars, f"Bytes at the peak: {totals}.", cards, axis=False)
