"""A plan as one page for the person who pays: each number, and what it's based on.

Goes with notebooks/11_budget.ipynb; `Plan.report` calls it. The sources are those of the
formulas, and of the speeds that others reached (`plan.UTILIZATIONS`, `plan.STOPS`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from llmtrain_helpers import units
from llmtrain_helpers.checks import Number, Result, at_most, instance, refuse, single
from llmtrain_helpers.duration import gpu_hours
from llmtrain_helpers.finetune import weight_bytes
from llmtrain_helpers.laws import Law, compute_optimal, known_law, loss, outside, times_the_least
from llmtrain_helpers.memory import OFFLOAD_BANDWIDTH, kv_cache_bytes
from llmtrain_helpers.model import Transformer
from llmtrain_helpers.plan.advice import OF_MOMENT, advise, check_one
from llmtrain_helpers.plan.memory import moments, offload_seconds, offloaded_bytes, unmeasured
from llmtrain_helpers.plan.pace import LONGEST, STOPS, WHOLE_RUNS, stops
from llmtrain_helpers.plan.run import Run
from llmtrain_helpers.precision import missing_format
from llmtrain_helpers.results import Interval
from llmtrain_helpers.tuning import Tuning, targeted, tuned_parameters

if TYPE_CHECKING:  # a plan has its report
    from llmtrain_helpers.plan.plan import Plan

HEAD = ("what", "number", "interval", "assumption", "source")
"""The columns of a report's table."""


@dataclass(frozen=True)
class Line:
    """A number of the report: the likely value, its interval, assumption and source."""

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
    """A page about a plan: `markdown` and `html` have the same words."""

    title: str
    summary: str
    lines: tuple[Line, ...]
    left_out: tuple[str, ...]

    @property
    def parts(self) -> dict[str, tuple[Line, ...]]:
        """Its lines under two headings: the run, and its price and worth."""
        first = [line.what for line in self.lines].index("days")
        return {"The run": self.lines[:first], "Its price and worth": self.lines[first:]}

    @property
    def markdown(self) -> str:
        """The page in Markdown."""
        page = f"# {_in_markdown(self.title)}\n\n{_in_markdown(self.summary)}\n\n"
        for name, lines in self.parts.items():
            cells = [map(_in_markdown, line.cells()) for line in lines]
            rows = [HEAD, ("---",) * len(HEAD), *cells]
            table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
            page += f"## {name}\n\n{table}\n\n"
        missing = "\n".join(f"* {text}" for text in self.left_out)
        return f"{page}## Not in these numbers\n\n{missing}\n"

    @property
    def html(self) -> str:
        """The page as one HTML file, for a browser or an email, with the run folded."""
        page = f'<h3 style="font-size:19px">{escape(self.title)}</h3>'
        page += f"<p><b>{escape(self.summary)}</b></p>"
        (run, machine), (price, worth) = self.parts.items()
        page += f"{_heading(price)}{_table(worth)}"
        page += f"<details><summary>{escape(run)}</summary>{_table(machine)}</details>"
        missing = "".join(f"<li>{escape(text)}</li>" for text in self.left_out)
        page += f"{_heading('Not in these numbers')}<ul>{missing}</ul>"
        style = f"{_FONT};max-width:900px;line-height:1.4"
        return f'<div style="{style}">{page}</div>'

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.markdown}


def _in_markdown(text: str) -> str:
    """Escape a text for one line of Markdown: pipes, backticks and tags lose their meaning."""
    return re.sub(r"[\\`*_~#$&<>|\[\]]", r"\\\g<0>", " ".join(text.split()))


_FONT = "font-family:system-ui,sans-serif;font-size:15px"
_TABLE = f"border-collapse:collapse;margin:10px 0px;{_FONT}"
_CELL = "text-align:left;vertical-align:top;padding:4px 14px 4px 0px"


def _heading(words: str) -> str:
    return f'<h4 style="font-size:16px">{escape(words)}</h4>'


def _table(lines: tuple[Line, ...]) -> str:
    rows = "".join(_row(line.cells(), "td") for line in lines)
    return f'<table style="{_TABLE}">{_row(HEAD, "th")}{rows}</table>'


def _row(cells: tuple[str, ...], tag: str) -> str:
    html = ""
    for i, cell in enumerate(cells):
        bold = ";font-weight:600;white-space:nowrap" if i == 1 and tag == "td" else ""
        edge = "border-bottom:1px solid #9AA3AE"
        html += f'<{tag} style="{_CELL};{edge}{bold}">{escape(cell)}</{tag}>'
    return f"<tr>{html}</tr>"


def report(
    plan: Plan, name: str = "the model", law: str | Law | None = "besiroglu", trained_on: Number = 0
) -> Report:
    """Write one page about a plan, with each number's interval, assumption and source.

    `name` is the model's name. `law` predicts its loss; with None, the page doesn't mention
    one. `trained_on` counts the tokens that the model was trained on before this run: the
    loss is then that of one run over all of them, at best. Raises ValueError for a sweep of
    plans, or a law without a loss.
    """
    check_one(plan, "a report is about a single one")
    instance("name", name, str)
    run, days = plan.run, plan.days
    price = longer = ""
    a_day = None
    if run.price_per_gpu_hour is not None:
        a_day = gpu_hours(units.DAY, plan.split.num_gpus) * run.price_per_gpu_hour
        price = f" and {_dollars(a_day * days.likely)}"
    if run.tuning is None:
        slowest = plan.first_run.greatest
        money = "" if a_day is None else f" and {_dollars(a_day * slowest)}"
        longer = f", {units.digits(slowest, 2)} days{money} to promise"
    warning = ""
    if not (plan.counts_traffic or plan.measured or plan.split.num_gpus == 1):
        of_links = run.tuning is not None  # whose speeds are others', whatever the chip
        missing = " and ".join(x for x in plan.unknown if not of_links or x in ("link", "network"))
        warning = f" Beware: we don't know the chip's {missing}, so the days don't "
        warning += "include what this split sends. Measure a step."
    elif (share := _waits(plan)) > PRONOUNCED:
        senders = f"its GPUs wait for what {_senders(run)} send each other"
        warning = f" For {units.percent(share)} of a step {senders}{_in_nodes(plan)}."
    verb, time = "train", f"{units.digits(days.likely, 2)} days"
    if run.tuning is not None:
        verb, time = "tune", units.duration(days.likely * units.DAY)
    verb += "s" * (run.num_gpus == 1)
    summary = (
        f"{units.exact(run.num_gpus)} {run.accelerator.name} {verb} {name} on "
        f"{units.count(run.tokens)} tokens: "
        f"{time}{price} expected{longer}. {verdict(plan)}{warning}"
    )
    tokens_before = _tokens_before(trained_on)
    if law is None and tokens_before:
        refuse("trained_on", tokens_before, "needs a law, but law is None")
    # A law describes a model trained from scratch, not what tuning adds.
    quality = [] if law is None or run.tuning is not None else _quality(plan, law, tokens_before)
    lines = (*_work(plan), *_machine(plan), *_step(plan), *_time(plan), *quality, _serving(plan))
    parameters = units.count(plan.parameters.total)
    title = f"{name[:1].upper()}{name[1:]}: {parameters} parameters"
    return Report(title, summary, lines, LEFT_OUT)


PRONOUNCED = 0.1
"""The share of a step from which a report's summary mentions what it waits for (chosen)."""


def _waits(plan: Plan) -> Result:
    """The share of a step that waits for traffic; 0 if that's unknown."""
    return (plan.wait or 0.0) / plan.seconds_per_iteration.likely


def _in_nodes(plan: Plan) -> str:
    """How much less a step would wait with hybrid sharding, if that fits."""
    run = plan.run
    if run.sharding != "fsdp" or run.num_gpus <= run.accelerator.gpus_per_node:
        return ""
    hybrid = plan.replace(sharding="hsdp")
    return f", or {units.percent(_waits(hybrid))} if each node has all states (hsdp)" * hybrid.fits


def _senders(run: Run) -> str:
    """Those whose traffic a tuned step waits for."""
    wide = run.num_gpus > run.accelerator.gpus_per_node
    shared = run.tensor_parallel > 1
    return " and ".join(["nodes"] * wide + ["GPUs that share a matrix"] * shared)


def verdict(plan: Plan, say: Callable[[str, str], str] | None = None) -> str:
    """Say whether a plan fits: its peak, what's free or missing, and what would help there.

    `say` puts a change in words, by its name and its new value.

    >>> from llmtrain_helpers import plan_run
    >>> run = "Llama-3.1-8B", "H100", 64, 1e12, 512
    >>> print(verdict(plan_run(*run, recompute="full", shard="fsdp")))
    Fits: 23.2 GB at the loss, 62.3 GB free of the 85.5 GB that the card shows.
    """
    needs = f"{units.gigabytes(plan.memory.total)} at the {plan.phase}"
    free = f"{needs}, {units.gigabytes(plan.free_memory)} free of the {_card(plan)}"
    if plan.fits:
        return f"Fits: {free}."

    def said(name: str, value: Any) -> str:
        return say(name, value) if say else CHANGED[name](value)

    changes, best = _what_would_fit(plan)
    changed = ", ".join(said(*change) for change in changes.items())
    if plan.tight:
        reserve = f"of which {units.gigabytes(plan.reserve)} should stay free: measure one step"
        if plan.run.reserve is None:
            reserve = "and the allocator usually needs 2 to 8 GB more: measure one step"
        saved = units.gigabytes(plan.memory.total - best.memory.total)
        safe = f"; {changed} (−{saved}) would make it safe" if changes else ""
        return f"On the edge: {free}, {reserve}{safe}."
    over = f"Does not fit: {needs}, {units.gigabytes(-plan.free_memory)} too many"
    if plan.phase == "loss" and plan.run.loss != "fused":
        fused = moments(plan.run.replace(loss_kernel="fused"))
        at_loss = max(float(x.total) for x in fused if x.moment == "loss")
        logits = units.gigabytes(plan.memory.total - at_loss)
        over += f"; {logits} of them are logits: {said('loss_kernel', 'fused')} needs none"
    return f"{over}. It would fit with {changed}." if changes else f"{over}."


def _what_would_fit(plan: Plan) -> tuple[dict[str, Any], Plan]:
    """Find what would make a plan fit, if anything would: the advice, or a fused MLP.

    The lever of the peak is first if it's free, like a fused MLP, and enough by itself.
    """
    advice = advise(plan)
    last = advice[-1].plan
    changes = {name: x for step in advice for name, x in step.change.items()}
    free = all(step.extra_cost < 0.001 for step in advice)
    if plan.run.tuning is None and not (free and {*changes} <= {*OF_MOMENT[plan.phase]}):
        fused = plan.replace(fused_mlp=True)
        if fused.fits:
            return {"fused_mlp": True}, fused
    return (changes if last.fits else {}), last


def _card(plan: Plan) -> str:
    """The bytes of a card, and their source."""
    unknown = plan.run.accelerator.shown_memory is None
    return f"{units.gigabytes(plan.card)} that the {'vendor names' if unknown else 'card shows'}"


def _work(plan: Plan) -> list[Line]:
    """The work: parameters, tokens, FLOPs."""
    P, run = plan.parameters, plan.run
    shape = f"{run.model.num_layers} layers, hidden size {run.model.hidden_size:,}"
    active = f"; {units.count(P.active)} active" if P.active != P.total else ""
    counted = f"attention counted whole; {RECOMPUTED[run.recompute]}"
    if run.recompute != "none":
        counted += ": counted here, not in the MFU"
    batch = units.count(run.global_batch_size * run.model.sequence_length)
    each = f" in sequences of {units.exact(int(run.model.sequence_length))}"
    seen = "each seen once, " if run.tuning is None else "of all epochs, "
    learns = [] if run.tuning is None else [_what_learns(run.model, run.tuning)]
    return [
        Line("parameters", units.exact(P.total), "exact", shape + active, "notebook 01"),
        *learns,
        Line("tokens", units.count(run.tokens), "chosen", f"{seen}{batch} a step{each}", "yours"),
        Line("work", units.flops(plan.total_flops), "exact", counted, "notebook 02"),
    ]


def _what_learns(model: Transformer, tuning: Tuning) -> Line:
    """Which weights a tuned run changes, and how."""
    how = "all weights learn"
    if not tuning.is_full:
        frozen = "frozen in 4 bits" if tuning.method == "qlora" else "frozen"
        matrices = ", ".join(targeted(model, tuning))
        how = f"LoRA of rank {tuning.rank} on {matrices}; the rest {frozen}"
    learning = tuned_parameters(model, tuning).learning
    return Line("what learns", units.exact(learning), "exact", how, "notebook 13")


def sharded(run: Run) -> str:
    """How a run's replicas share its states, in one word.

    >>> from llmtrain_helpers import plan_run
    >>> plan = plan_run("gpt2", "A100", 8, 1e10, 512, recompute="none", shard="zero2")
    >>> sharded(plan.run), sharded(plan.replace(shard="ddp").run)
    ('ZeRO 2', 'DDP')
    """
    if run.sharding != "zero":
        return run.sharding.upper()
    return f"ZeRO {run.zero_stage}" if run.zero_stage else "DDP"


def _machine(plan: Plan) -> list[Line]:
    """The GPUs, their split, and the memory of each."""
    run, split, chip = plan.run, plan.split, plan.run.accelerator
    whole = " (each whole)" if split.expert_tensor < split.tensor_parallel else ""
    ways = f"tensor {split.tensor_parallel}, pipeline {split.pipeline_parallel}, "
    others = {
        "pieces of a stage": split.interleave,
        "context": split.context_parallel,
        f"experts{whole} on": split.expert_parallel,
    }
    ways += "".join(f"{what} {n}, " for what, n in others.items() if n > 1)
    ways += f"replicas {split.data_parallel}, {sharded(run)}"
    bytes_of = f"recipe {run.bytes_of.name}"
    if run.bytes_of.name == "fp32":
        bytes_of += ", activations in 4 bytes too (FSDP's mixed precision is amp)"
    sources = "notebooks 05, 06, 09; reserve from measured peaks"
    if run.tuning is not None:
        bytes_of = _recipe(plan, run.tuning) if run.tuning.is_full else run.tuning.method
        sources = "notebook 13; reserve from measured peaks"
    how = f"peak at the {plan.phase}, {run.loss} loss, {run.update}, {bytes_of}"
    if (run.recompute, run.attention) == ("selective", "flash"):
        how += ", and selective recomputation saves nothing: flash attention stores no scores"
    if run.attention != "flash":
        how += f", {run.attention} attention"
    if run.offload != "none":
        how += f", {units.gigabytes(offloaded_bytes(run))} on the CPU for each GPU"
    memory, nobody = plan.memory.total, " or ".join(unmeasured(run))
    wider = ""
    if nobody and run.reserve is None:
        wider = f"; the reserve is the wider one, because nobody has measured what {nobody} "
        wider += "needs beyond the peak"
    fused = {None: "", True: ", the MLP fused", False: ", the MLP not fused"}[run.fused_mlp]
    reserve = f"to {units.gigabytes(memory + plan.reserve)} with the reserve"
    how = f"of {_card(plan)}; {how}{fused}, sequences at once: {split.micro_batch_size}{wider}"
    return [
        Line("GPUs", f"{units.exact(split.num_gpus)} {chip.name}", "chosen", ways, "yours"),
        Line("memory of a GPU", units.gigabytes(memory), reserve, how, sources),
    ]


def _recipe(plan: Plan, tuning: Tuning) -> str:
    """The recipe of full tuning, its bytes, and those of the alternative."""
    other = tuning.replace(recipe="amp" if tuning.recipe == "pure_bf16" else "pure_bf16")
    used, instead = (units.short(round(sum(weight_bytes(x).values()), 1)) for x in (tuning, other))
    words = f"recipe {tuning.recipe}, {used} bytes a parameter"
    if missing_format(other.bytes_of, plan.run.accelerator.peaks):
        return f"{words}, products in {plan.run.number_format}"
    needed = units.gigabytes(plan.replace(tuning=other).memory.total)
    return f"{words} ({needed} with {instead}, {other.recipe})"


def _step(plan: Plan) -> list[Line]:
    """Seconds of a step, and the tokens per second of each GPU."""
    run, digits = plan.run, 3 if plan.measured else 2
    if run.utilizations is not None:
        source = rests_on(plan)
    else:
        source = "your step" if plan.measured else f"{plan.shares.evidence} (notebook 09)"
    tokens = units.count(run.global_batch_size * run.model.sequence_length)
    seconds = partial(units.duration, significant=digits)
    share = f"{_share(plan, plan.step_mfu)}, without overhead{_offload(plan)}"
    if plan.wait:
        waits = units.duration(plan.wait, significant=2)
        share += f"; {waits} of it for what {_senders(run)} send each other, none of it hidden"
    rate = f"{tokens} tokens a step, over {units.plural(plan.split.num_gpus, 'GPU')}"
    return [
        _interval("a step", plan.seconds_per_iteration, seconds, share, source),
        _interval("tokens/s per GPU", plan.gpu_throughput, _plain, rate, source),
    ]


def _offload(plan: Plan) -> str:
    """What offload adds to a step if no rate is given, and at which bandwidth."""
    run = plan.run
    if run.offload == "none" or plan.measured or run.utilizations is not None:
        return ""
    seconds = units.duration(offload_seconds(run), significant=2)
    rate = f"{OFFLOAD_BANDWIDTH / 1e9:.0f} GB/s to and from the CPU, and its AdamW"
    return f"; {seconds} for offload, none of it hidden: {rate}; others' took up to 9 times as long"


def _time(plan: Plan) -> list[Line]:
    """Days, GPU-hours, money and energy: the steps times the overhead."""
    run, days = plan.run, plan.days
    assumption = f"{_share(plan, plan.mfu)}, overhead included"
    if run.tuning is not None:
        assumption = f"{_share(plan, plan.mfu)}, full sequences, without overhead"
        if run.tuning.method == "qlora" and run.micro_batch_size * run.model.sequence_length < FEW:
            assumption += "; few tokens at once: there 4 bits took others up to twice as long"
    elif run.utilizations is None:
        assumption += f"; {STACKS[run.software]}{_bubble_alone(plan)}"
    assumption += "".join(f"; {note}" for note in _notes(run))
    source = rests_on(plan)
    if plan.measured:
        assumption = _own_speed(plan)
        source = f"your step; {_of_stops(run)} (notebook 09)"
        if stops(run) == (1, 1, 1):
            source = "your rate, taken for the whole run"
    hours = days.times(gpu_hours(units.DAY, plan.split.num_gpus))
    lines = [
        _interval("days", days, lambda x: units.digits(x, 2), assumption, source),
        *_first_run(plan),
        _interval("GPU-hours", hours, _plain, "GPUs times days", "notebook 03"),
    ]
    if run.price_per_gpu_hour is not None:
        price = f"{run.price_per_gpu_hour:g} dollars a GPU-hour"
        money = hours.times(run.price_per_gpu_hour)
        lines.append(_interval("cost", money, _dollars, price, "assumed, or your offer"))
    watts = run.accelerator.power
    if watts is not None:
        power = f"design power of {watts:g} W, GPUs alone"
        watt_hours = partial(units.si, unit="Wh")
        energy = hours.times(watts)
        lines.append(_interval("energy", energy, watt_hours, power, "vendor's datasheet"))
    return lines


def rests_on(plan: Plan) -> str:
    """The basis of a plan's days: other steps, and the overhead of published runs.

    Raises ValueError for a sweep of plans.
    """
    check_one(plan, "a report is about a single one")
    if plan.run.utilizations is not None:
        return "yours: the shares of the peak that you gave"
    if plan.run.tuning is not None:
        return plan.shares.evidence
    return f"a step: {plan.shares.evidence}; {_of_stops(plan.run)}; {WHOLE_RUNS}"


def _of_stops(run: Run) -> str:
    """The source of a run's overhead."""
    seven = stops(run) == STOPS
    return "overhead of seven published runs" if seven else "the overhead that you gave"


def _notes(run: Run) -> list[str]:
    """Notes on a run's products, the traffic that overlaps with them, and long sequences."""
    notes = []
    if run.model.sequence_length > LONGEST:
        notes.append(f"texts of over {LONGEST:,} tokens took others nearly twice as long")
    if run.number_format != run.wide_format:
        notes.append(f"products with weights in {run.format}")
    if run.overlap is not None:
        notes.append(f"what layers send {'hides behind' if run.overlap else 'adds to'} products")
    if run.compiled is not None:
        notes.append(f"kernels that are {'compiled' if run.compiled else 'launched one by one'}")
    return notes


def _bubble_alone(plan: Plan) -> str:
    """Note that only the bubble of a split counts if chip data are missing."""
    if not plan.unknown:
        return ""
    return f"; of the split its bubble alone, for want of the chip's {', '.join(plan.unknown)}"


def _share(plan: Plan, mfu: Result) -> str:
    """A share of the peak, which peak that is, and how it's counted."""
    peak = f"{units.flops_per_second(plan.run.peak)}, the dense peak in {plan.run.number_format}"
    return f"{units.percent(mfu)} of {peak} (MFU, attention counted)"


def _own_speed(plan: Plan) -> str:
    """The results of a measured step or rate: share of the peak, days, overhead."""
    own = "step" if plan.run.flops_per_gpu is None else "rate"
    alone = f"{units.digits(plan.days_of_steps.likely, 2)} days without overhead"
    low, _, high = (units.share(longer - 1).removesuffix("%") for longer in stops(plan.run))
    speed = f"your measured {own}: {_share(plan, plan.step_mfu)}; {alone}"
    speed += f", which adds {low} to {high}%" if high != "0" else ""
    if not plan.beyond_published:
        return speed
    share = units.percent(plan.step_mfu * plan.flops.total / plan.flops.model)
    share += "" if plan.run.recompute == "none" else " with what is recomputed"
    most = units.share(plan.highest_published or 0)
    return f"{speed}. {share} is above any published step ({most}): was it of the whole batch?"


def _first_run(plan: Plan) -> list[Line]:
    """The days to promise: the slow end, until you measure a step."""
    if plan.measured or plan.run.tuning is not None:
        return []
    days, end = units.digits(plan.first_run.greatest, 2), "the slow end of the days above"
    return [Line("days to promise", days, "until a step is measured", end, "our caution")]


@dataclass(frozen=True)
class Worth:
    """The predicted quality of a plan's model, and what the same work could have reached.

    `loss` is from a law and `losses` from two fits of the same runs, in nats per token; tokens
    per active parameter, and how many are `best` for this work, 6NT; `times_the_least` is
    this work over the least for the same loss.
    """

    loss: float
    losses: dict[str, float]
    tokens_per_parameter: float
    best: float
    times_the_least: float


def worth(plan: Plan, law: str | Law = "besiroglu", trained_on: Number = 0) -> Worth:
    """Predict the quality of a plan's model by a law, including tokens it saw before.

    Raises ValueError for a sweep of plans, a law without a loss, and bad input of any kind.

    >>> from llmtrain_helpers import plan_run
    >>> plan = plan_run("Llama-3.1-8B", "H100", 64, 1e12, 512, recompute="none")
    >>> round(worth(plan).loss, 2), round(worth(plan).best)
    (2.08, 20)
    """
    check_one(plan, "only a single plan has a worth")
    fit = known_law(law)
    N, T = plan.parameters.active, plan.run.tokens + _tokens_before(trained_on)
    return Worth(
        loss=float(loss(N, T, fit)),
        losses={name: float(loss(N, T, known_law(name))) for name in SAME_RUNS},
        tokens_per_parameter=float(T / N),
        best=float(compute_optimal(6 * N * T, fit).tokens_per_parameter),
        times_the_least=float(times_the_least(N, T, fit)),
    )


def _tokens_before(trained_on: Number) -> int:
    """Check the tokens that a model was trained on before a run."""
    tokens = single("trained_on", trained_on, least=0)
    at_most("trained_on", tokens, "the tokens that there are", 10**20)
    return tokens


def _quality(plan: Plan, law: str | Law, trained_on: int) -> list[Line]:
    """The lines about the model's predicted quality."""
    fit, value = known_law(law), worth(plan, law, trained_on)
    N, T = plan.parameters.active, plan.run.tokens + trained_on
    losses = [value.loss, *value.losses.values()]
    least = value.times_the_least
    times = units.digits(least, 3 if least < 10 else 2)
    low, high = (f"{x:.2f}" for x in (min(losses), max(losses)))
    ends = f"{'the same' if low == high else f'{low} to {high}'} by two fits of the same runs"
    assumption = outside(N, T, fit) or "inside the runs of the law"
    if trained_on:
        assumption = f"as one run with the {units.count(trained_on)} before, at best; {assumption}"
    tokens, best = (units.digits(x, 2) for x in (value.tokens_per_parameter, value.best))
    best, times = f"{best} is best for this work", f"{times} times the least work for its loss"
    return [
        Line("loss expected", f"{value.loss:.2f} nats a token", ends, assumption, fit.source),
        Line("tokens a parameter", tokens, best, times, fit.source),
    ]


def _serving(plan: Plan) -> Line:
    """The memory to use the model: its weights, and the keys and values of one sequence."""
    s, weights = int(plan.run.model.sequence_length), 2 * plan.parameters.total
    cache, each = (kv_cache_bytes(plan.run.model, tokens) for tokens in (s, 1))
    parts = f"{units.gigabytes(weights)} of weights in 16 bits, and keys and values of one sequence"
    parts += f" of {units.exact(s)} tokens: {'up to ' if cache < s * each else ''}"
    parts += f"{units.exact(each)} bytes per token"
    memory, source = units.gigabytes(weights + cache), "arXiv 2405.04434 Table 1"
    return Line("memory to serve it", memory, "without workspace", parts, source)


def _interval(
    what: str, numbers: Interval, unit: Callable[[float], str], assumption: str, source: str
) -> Line:
    exact = numbers.least == numbers.greatest  # then it's a step or rate of one's own
    ends = "as measured" if exact else f"{unit(numbers.least)} to {unit(numbers.greatest)}"
    return Line(what, unit(numbers.likely), ends, assumption, source)


def _plain(number: float) -> str:
    """Write three digits, and no words below a million: `5,760`, `8.88 million`."""
    three = float(f"{number:.3g}")
    return units.count(number) if three >= 1e6 else f"{three:,.10g}"


def _dollars(amount: float) -> str:
    """Write dollars in words, because two dollar signs on a page would start a formula."""
    return f"{_plain(amount)} dollars"


RECOMPUTED = {
    "none": "nothing recomputed",
    "selective": "scores recomputed",
    "alternate": "every other product recomputed",
    "full": "everything recomputed",
}
"""What's recomputed, in words."""

CHANGED: dict[str, Callable[[Any], str]] = {
    "zero_stage": lambda stage: f"ZeRO {stage}",
    "micro_batch_size": lambda b: f"{b} at once",
    "recompute": lambda what: RECOMPUTED[what],
    "num_gpus": lambda n: f"{n:,} GPUs",
    "tensor_parallel": lambda t: f"tensor {t}",
    "fused_mlp": lambda _: "the MLP's activation fused",
    "loss_kernel": lambda kernel: f"a {kernel} loss",
    "attention": lambda kernel: f"{kernel} attention",
    "optimizer": str,
    "offload": lambda what: f"{'optimizer' if what == 'optimizer' else 'all states'} on the CPU",
    "method": lambda method: "frozen weights in 4 bits",
    "recipe": lambda recipe: f"recipe {recipe}",
}
"""What advice changes, in words."""

STACKS = {
    "any": "whose software is not said",
    "megatron-core": "Megatron-Core",
    "other": "not Megatron-Core",
}
"""Whose software trains, in words."""

FEW = 2048
"""Tokens in a pass below which 4-bit weights are slow: with up to 1,304 litgpt's runs of 3.6 to
13 billion parameters took 1.4 to 2 times as long as in 16 bits, IBM's with 8,192 and more
about as long."""

SAME_RUNS = ("besiroglu", "hoffmann")
"""Two fits of the same runs; their difference is the least uncertainty of a loss."""

LEFT_OUT = (
    "Trials before the run, and what is trained again after it: published projects "
    "spent a good part of their work there.",
    "People, storage, network, and power for cooling.",
    "Whether the text is good: no law of loss knows that, and it decides most.",
    "What it costs to use the model: a smaller one is cheaper each time it answers.",
)
"""What a report says it leaves out."""
