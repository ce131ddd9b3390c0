"""A dot is where its axis says: one rule for every picture with an axis.

The axis is read from two of its numbers, so it can move and grow without touching a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log
from typing import NamedTuple

import pytest

from llmtrain_course.batch import pictures as batch
from llmtrain_course.batch.formulas import batch_cost
from llmtrain_course.batch.handles import bloom_steps
from llmtrain_course.budget import pictures as budget
from llmtrain_course.budget.formulas import tokens_for_size
from llmtrain_course.calendar import pictures as calendar
from llmtrain_course.communication import pictures as communication
from llmtrain_course.duration import pictures as duration
from llmtrain_course.duration.handles import published_runs
from llmtrain_course.finetune import pictures as finetune
from llmtrain_course.kit.drawing import Drawing
from llmtrain_course.measure import pictures as measure
from llmtrain_course.measure.clock import times
from llmtrain_course.plan import pictures as plan
from llmtrain_course.plan.formulas import map_plans
from llmtrain_course.precision import pictures as precision
from llmtrain_course.precision.formulas import fit_line, sum_of_ones, update_by_update
from llmtrain_helpers import FORMATS, over_training, plan_run, published
from llmtrain_helpers.budget import Outcome
from llmtrain_helpers.calendar import losses
from llmtrain_helpers.laws import loss
from research.finetunes import speed_ratios
from research.utilizations import others_days
from tests.faces.svg import Picture, drawn


class Axis(NamedTuple):
    """A direction, and two of its numbers as they're written and as they count."""

    way: str
    ticks: dict[str, float]
    law: Callable[[float], float] = float

    def place(self, picture: Picture, value: float) -> float:
        """The place of a value. The numbers are those lowest down, or furthest left."""
        far = "bottom" if self.way == "across" else "left"
        sign = -1 if self.way == "across" else 1
        ends = []
        for words in self.ticks:
            texts = [x for x in picture.of_kind("text") if x.words == words]
            ends.append(getattr(min(texts, key=lambda x: sign * getattr(x, far)), self.way))
        low, high = map(self.law, self.ticks.values())
        return ends[0] + (self.law(value) - low) / (high - low) * (ends[1] - ends[0])


Case = tuple[Drawing, str, list[tuple[Axis, float]]]

GPUS = Axis("across", {"100": 100, "10,000": 10_000}, log)
DAYS = Axis("down", {"1 day": 1, "1 year": 365.25}, log)
MORE_GPUS = Axis("across", {"384": 384, "1,536": 1536}, log)
MORE_DAYS = Axis("down", {"20": 20, "80": 80}, log)
TIMES = {"1": 1.0, "64": 64.0}
ONES = {"1,024": 1024.0, "3,072": 3072.0}
H100 = published.accelerator("H100")


def cases() -> Iterator[tuple[str, Case]]:
    """The pictures, each with the title of its dot and where that belongs."""
    you = duration.RunDays("your run", 8, 32)
    curve = duration.days_against_gpus(you, published_runs())
    for run in (you, *published_runs()):
        yield "03", (curve, f"{run.name}:", [(GPUS, run.num_gpus), (DAYS, run.days)])
    slower = duration.more_gpus(1536, [*duration.WAYS])
    for way, days in (("fetched", (90, 74, 74)), ("shared", (84, 43, 23))):
        for n, it in zip((384, 768, 1536), days, strict=True):
            yield "03", (slower, f"{way}: {it} days on {n:,}", [(MORE_GPUS, n), (MORE_DAYS, it)])
    shares = {"one": 0.48, "other": 0.3, "third": 0.14}
    kept = duration.promise(shares, 0.1, {})
    for name, share in shares.items():
        yield "03", (kept, name, [(Axis("across", {"0%": 0, "60%": 0.6}), share)])

    for critical in (5e5, 1e6, 4e6):
        cost = batch_cost(2e6, critical)
        right, up = (Axis(way, TIMES, log) for way in ("across", "down"))
        bought = batch.batch_cost_curve(cost, 2e6, critical)
        yield "04", (bought, "your batch", [(right, cost.updates), (up, cost.samples)])
    tried = batch.step_by_micro_batch(bloom_steps(), 1, 86e9)
    took = bloom_steps()[0].measured
    yield "04", (tried, "measured", [(Axis("down", {"0": 0, "150": 150}), took)])

    e4m3, bf16 = FORMATS["fp8_e4m3"], FORMATS["bf16"]
    for value in (0.125, 6.0, 15.0):
        bits = precision.number_of_bits(e4m3, value)
        yield "05", (bits, f"{value:g}", [(Axis("across", {"0": 0, "16": 16}), value)])
    fits = dict.fromkeys(("alone", "kept"), fit_line(bf16))
    for update, where in ((0.003, 1), (0.004, 2)):
        weights = update_by_update(bf16, 1, update, 500)
        lines = precision.update_lines(bf16, update, weights, fits)
        both = [
            (Axis("across", {"250": 250, "750": 750}), 500),
            (Axis("down", {"6": 6, "3": 3}), where),
        ]
        yield "05", (lines, f"{where}", both)
    for ones in (128, 1024, 4000):
        total = sum_of_ones(bf16, ones)
        both = [(Axis("across", ONES), ones), (Axis("down", ONES), total)]
        yield "05", (precision.sum_line(bf16, ones, total), f"{total:,.0f}", both)

    for power in (17, 25, 30):
        rates = {x: {2**power: 450e9, 2**33: 900e9} for x in ("it", *"abc")}
        sent = communication.message_rates(rates, dict.fromkeys(rates, 0.001), 2**power)
        size = Axis("across", {"1 MiB": 2**20, "1 GiB": 2**30}, log)
        rate = Axis("down", {"0": 0, "800": 800e9})
        yield "07", (sent, "it", [(size, 2**power), (rate, 450e9)])

    llama = published.architecture("Llama-3.1-8B", 8192)
    rough = plan_run(llama, H100, 64, 10**12, 512, recompute="none", zero_stage=3)
    others = others_days(rough)
    kept = plan.promise(rough.calibrated(7.5), others, 30)
    days = Axis("across", {"20": 20, "40": 40})
    for run in others[:-1]:  # the last one is beyond the scale
        yield "09", (kept, f"{run.name}: ", [(days, run.days)])
    sizes, tokens = Axis("across", {"1.0B": 1e9, "100B": 1e11}, log), {"100B": 1e11, "10T": 1e13}
    for name, text in (("Llama 3.1 8B", 10**11), ("24B", 3 * 10**12), ("Llama 3.1 405B", 10**10)):
        plans = map_plans(64)
        releases = [plan.Release("a model", 3e9, 2e12)]
        drawn = plan.decision_map(plans, name, text, 30, 2.5, releases)
        own = (sizes, plans[name].parameters.total), (Axis("down", tokens, log), text)
        yield "09", (drawn, "yours", [*own])

    hours = Axis("across", {"1 min": 1, "1 h": 60}, log)
    lost = Axis("down", {"0%": 0, "80%": 0.8})
    for minutes in (5, 15, 120):
        valley = calendar.valley(60 * minutes, 40, 10_045.7, 600)
        share = float(losses(60 * minutes, 40, 10_045.7, 600).total)
        yield "10", (valley, "you", [(hours, minutes), (lost, share)])

    sizes = Axis("across", {"1.0B": 1e9, "100B": 1e11}, log)
    ends = Axis("down", {"1.8": 1.8, "2.6": 2.6})
    for size in (1e9, 9.05e9, 5e10):
        terms = budget.stacked_terms(size, 1e22, 1e9)
        least = float(loss(size, tokens_for_size(size, 1e22)))
        yield "11", (terms, "loss ", [(sizes, size), (ends, least)])
    dots = [Outcome(f"it{x}", 10**x, 1e9, 2.25 + x / 100, True) for x in (8, 9, 10, 11)]
    shapes = budget.loss_against_size(dots, 1e21)
    for dot in dots:
        right = Axis("across", {"100M": 1e8, "10B": 1e10}, log), dot.parameters
        up = Axis("down", {"2.2": 2.2, "2.4": 2.4}), dot.loss
        yield "11", (shapes, f"{dot.name},", [right, up])
    for share in (0.25, 0.5, 2, 4):
        price = float(over_training(share))
        right = Axis("across", {"1/8": 1 / 8, "8": 8}, log), share
        up = Axis("down", {"1": 1, "8": 8}, log), price
        yield "11", (budget.price_of_size(share), f"{price:.2f}×", [right, up])
    rows = published.rows("tokens_per_parameter")
    read = budget.tokens_each({"mine": 20.0}, rows)
    each = Axis("across", {"1": 1, "1,000": 1000}, log)
    yield "11", (read, "mine", [(each, 20)])
    for row in rows[::9]:
        yield "11", (read, str(row["name"]), [(each, float(row["tokens_per_parameter"]))])

    seconds = [row["seconds"] for row in published.rows("step_times") if row["series"] == 1]
    timed = measure.timed_steps(seconds, times(seconds[:20], 5))
    for taken in seconds[5:9]:
        title = f"{1e3 * taken:.1f} ms"
        yield "12", (timed, title, [(Axis("down", {"0": 0, "80": 80}), 1e3 * taken)])

    ratios = speed_ratios("lora", "full")
    speeds = finetune.speeds_of_pairs("adapters or all weights", 2)
    faster = Axis("down", {"0.5": 0.5, "3": 3}, log)
    for ratio in ratios[::7]:
        title = f"{ratio.model}, {ratio.tokens:,} tokens: {ratio.times:.2f}×"
        yield "13", (speeds, title, [(faster, ratio.times)])


CASES = [*cases()]


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[chapter for chapter, _ in CASES])
def test_a_dot_is_where_its_axis_says(case: Case) -> None:
    drawing, title, places = case
    picture = drawn(drawing)
    shapes = [x for x in picture.boxes if x.kind in ("circle", "rect") and not x.dashed]
    dot = next(x for x in shapes if x.words.startswith(title))
    for axis, value in places:
        assert getattr(dot, axis.way) == pytest.approx(axis.place(picture, value), abs=1.7), axis
