"""A plan as one page to take to whoever pays: each number, and what it rests on.

Beside notebooks/10_budget.ipynb; `Plan.report` calls it. The sources are those of the
formulas, and of what others reached (`plan.UTILIZATIONS`, `plan.STOPS`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from llmtrain_helpers import units
from llmtrain_helpers.checks import instance, refuse
from llmtrain_helpers.laws import Law, compute_optimal, known_law, loss, outside, times_the_least
from llmtrain_helpers.plan.plan import Plan, is_many
from llmtrain_helpers.results import Interval

HEAD = ("what", "number", "interval", "assumption", "source")
"""The columns of a report's table."""


@dataclass(frozen=True)
class Line:
    """A number of the report: likely, its interval, what it assumes, where from."""

    what: str
    number: str
    interval: str
    assumption: str
    source: str

    def cells(self) -> tuple[str, ...]:
        """Its five cells, in the order of `HEAD`."""
        return self.what, self.number, self.interval, self.assumption, self.source


@dataclass(frozen=True)
class Report:
    """A page about a plan: `markdown` and `html` hold the same words."""

    title: str
    summary: str
    lines: tuple[Line, ...]
    left_out: tuple[str, ...]

    @property
    def parts(self) -> dict[str, tuple[Line, ...]]:
        """Its lines under two headings: what runs, and what comes of it."""
        first = [line.what for line in self.lines].index("days")
        return {"The run": self.lines[:first], "Its price and worth": self.lines[first:]}

    @property
    def markdown(self) -> str:
        """The page in Markdown."""
        page = f"# {self.title}\n\n{self.summary}\n\n"
        for name, lines in self.parts.items():
            rows = [HEAD, ("---",) * len(HEAD), *(line.cells() for line in lines)]
            table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
            page += f"## {name}\n\n{table}\n\n"
        missing = "\n".join(f"* {text}" for text in self.left_out)
        return f"{page}## Not in these numbers\n\n{missing}\n"

    @property
    def html(self) -> str:
        """The page in HTML, for a browser or a mail; it needs no other file."""
        page = f"<h2>{escape(self.title)}</h2><p><b>{escape(self.summary)}</b></p>"
        for name, lines in self.parts.items():
            rows = "".join(_row(line.cells(), "td") for line in lines)
            table = f'<table style="{_TABLE}">{_row(HEAD, "th")}{rows}</table>'
            page += f"<h3>{escape(name)}</h3>{table}"
        missing = "".join(f"<li>{escape(text)}</li>" for text in self.left_out)
        page += f"<h3>Not in these numbers</h3><ul>{missing}</ul>"
        style = f"{_FONT};max-width:900px;line-height:1.4"
        return f'<div style="{style}">{page}</div>'

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.markdown}


_FONT = "font-family:system-ui,sans-serif;font-size:15px"
_TABLE = f"border-collapse:collapse;margin:10px 0px;{_FONT}"
_CELL = "text-align:left;vertical-align:top;padding:4px 14px 4px 0px"


def _row(cells: tuple[str, ...], tag: str) -> str:
    made = []
    for i, cell in enumerate(cells):
        bold = ";font-weight:600;white-space:nowrap" if i == 1 and tag == "td" else ""
        edge = "border-bottom:1px solid #9AA3AE"
        made.append(f'<{tag} style="{_CELL};{edge}{bold}">{escape(cell)}</{tag}>')
    return f"<tr>{''.join(made)}</tr>"


def report(plan: Plan, name: str = "the model", law: str | Law = "besiroglu") -> Report:
    """One page about a plan, with each number's interval, assumption and source.

    `name` is what the model is called, `law` the one that expects its loss. ValueError
    for a plan of many, or a law without a loss.
    """
    instance("plan", plan, Plan)
    instance("name", name, str)
    if is_many(plan):
        refuse("plan", plan, "is many: a report is about one")
    chip, n = plan.run.accelerator.name, plan.split.num_gpus
    title = f"{name[:1].upper()}{name[1:]}: {units.count(plan.parameters.total)}"
    days, money = plan.days_with_stops, plan.cost
    paid = f" for {_dollars(money.likely)}" if money else ""
    summary = (
        f"{units.exact(n)} {chip} train {name} on "
        f"{units.count(plan.run.tokens)} tokens in likely "
        f"{units.digits(days.likely, 2)} days{paid}. It {_fit(plan)}."
    )
    lines = (*_work(plan), *_machine(plan), *_time(plan), *_quality(plan, law))
    return Report(f"{title} parameters", summary, lines, LEFT_OUT)


def _fit(plan: Plan) -> str:
    if plan.fits:
        return "fits, with a reserve"
    return "fits without a reserve: measure a step first" if plan.tight else ("does not fit")


_AGAIN = {"none": "nothing recomputed", "full": "everything recomputed"}


def _work(plan: Plan) -> list[Line]:
    """What is to be done: parameters, tokens, FLOPs."""
    P, model = plan.parameters, plan.run.model
    shape = f"{model.num_layers} layers, hidden size {model.hidden_size:,}"
    active = f"; {units.count(P.active)} active" if P.active != P.total else ""
    again = _AGAIN.get(plan.run.recompute, "scores recomputed")
    batch = plan.run.global_batch_size * model.sequence_length
    return [
        Line("parameters", units.exact(P.total), "exact", shape + active, "notebook 01"),
        Line(
            "tokens",
            units.count(plan.run.tokens),
            "chosen",
            f"each seen once, {units.count(batch)} a step",
            "yours",
        ),
        Line(
            "work",
            units.flops(plan.total_flops),
            "exact",
            f"attention counted whole, {again}",
            "notebook 02",
        ),
    ]


def _machine(plan: Plan) -> list[Line]:
    """The GPUs, their split, and what each holds."""
    s, chip = plan.split, plan.run.accelerator
    ways = f"tensor {s.tensor_parallel}, pipeline {s.pipeline_parallel}, "
    ways += f"replicas {s.data_parallel}, ZeRO {plan.run.zero_stage}"
    held, reserve = plan.memory.total, plan.reserve
    recipe = plan.run.recipe
    told = recipe if isinstance(recipe, str) else recipe.name
    return [
        Line("GPUs", f"{units.exact(s.num_gpus)} {chip.name}", "chosen", ways, "yours"),
        Line(
            "memory of a GPU",
            units.gigabytes(held),
            f"to {units.gigabytes(held + reserve)} with the reserve",
            f"of {units.gigabytes(chip.memory)}; recipe {told}, "
            f"sequences at once: {s.micro_batch_size}",
            "notebooks 05, 06, 08; reserve from measured peaks",
        ),
    ]


def _time(plan: Plan) -> list[Line]:
    """Days, GPU-hours, money, energy; at a rate of one's own the stops come on top."""
    days = plan.days_with_stops
    more = days.likely / plan.days.likely
    rests = f"{units.percent(plan.mfu)} of the peak (MFU), stops included"
    source = f"published runs: {plan.shares.evidence}"
    if plan.measured:
        own = "step" if plan.run.flops_per_gpu is None else "rate"
        rests = f"your measured {own}; stops add 8 to 50 %"
        source = "your step; stops of four published runs (notebook 08)"
    hours = plan.gpu_hours.times(more)
    return [
        _spanned("days", days, lambda x: units.digits(x, 2), rests, source),
        _spanned("GPU-hours", hours, _plain, "GPUs times days", "notebook 03"),
        *_paid(plan, more),
    ]


def _paid(plan: Plan, more: float) -> list[Line]:
    """Money and energy, where a price and the power are known."""
    price, made = plan.run.price_per_gpu_hour, []
    if plan.cost is not None:
        told, cost = f"{price:g} dollars a GPU-hour", plan.cost.times(more)
        made.append(_spanned("cost", cost, _dollars, told, "assumed, or your offer"))
    if plan.energy is not None:
        told = f"design power of {plan.run.accelerator.power:g} W, GPUs alone"
        hours = plan.energy.times(more / 3600)
        made.append(_spanned("energy", hours, _hours, told, "vendor's datasheet"))
    return made


def _hours(number: float) -> str:
    return units.si(number, "Wh")


def _dollars(amount: float) -> str:
    """In words: two dollar signs on a page are read as a formula."""
    return f"{_plain(amount)} dollars"


def _plain(number: float) -> str:
    """Three digits, and below a million without words: `5,760`, `8.88 million`."""
    three = float(f"{number:.3g}")
    return units.count(number) if three >= 1e6 else f"{three:,.10g}"


def _spanned(
    what: str, span: Interval, unit: Callable[[float], str], assumption: str, source: str
) -> Line:
    ends = f"{unit(span.least)} to {unit(span.greatest)}"
    return Line(what, unit(span.likely), ends, assumption, source)


def _quality(plan: Plan, law: str | Law) -> list[Line]:
    """What the model is expected to be worth, and what it could have been."""
    found = known_law(law)
    N, T = plan.parameters.active, plan.run.tokens
    others = [loss(N, T, x) for x in (found, *map(known_law, SAME_RUNS))]
    best = compute_optimal(6 * N * T, found)
    span = f"{min(others):.2f} to {max(others):.2f} by two fits of the same runs"
    told = outside(N, T, found) or "inside the runs of the law"
    number = f"{loss(N, T, found):.2f} nats a token"
    ratio = units.digits(best.tokens_per_parameter, 2)
    return [
        Line("loss expected", number, span, told, found.source),
        Line(
            "tokens a parameter",
            units.digits(T / N, 2),
            f"{ratio} is best for this work",
            f"{_times_the_least(N, T, found)} times the least work for its loss",
            found.source,
        ),
    ]


def _times_the_least(parameters: float, tokens: float, law: Law) -> str:
    times = float(times_the_least(parameters, tokens, law))
    return units.digits(times, 3 if times < 10 else 2)


SAME_RUNS = ("besiroglu", "hoffmann")
"""Two fits of the same runs: how far they differ is how sure a loss is, at least."""

LEFT_OUT = (
    "Trials before the run, and what is trained again after it: published projects "
    "spent a good part of their work there.",
    "People, storage, network, and power for cooling.",
    "Whether the text is good: no law of loss knows that, and it decides most.",
    "What it costs to use the model: a smaller one is cheaper each time it answers.",
)
"""What a report says that it leaves out."""
