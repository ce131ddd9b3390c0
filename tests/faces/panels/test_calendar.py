"""Chapter 10's panel: what each control changes, and what it refuses."""

import re

import pytest

from llmtrain_course.calendar.handles import BEST, Setting
from llmtrain_course.panels import HANDLES, PANELS
from llmtrain_helpers import calendar, calendar_days, plan_run, published, units
from llmtrain_helpers.units import DAY
from tests.faces.svg import pictures


def summary(preset: str, **changes: object) -> tuple[str, str, str]:
    """What the panel says: from stop to stop, the useful share, the days."""
    setting = Setting(**{**PANELS["calendar"].presets[preset], **changes})
    share = units.percent(1 / (1 + setting.days.losses.total))
    return units.duration(setting.mean), share, units.digits(setting.days.total)


def offers(preset: str, **changes: object) -> list[str]:
    values = {**PANELS["calendar"].presets[preset], **changes}
    return [sentence for sentence, _ in PANELS["calendar"].answer(values).offers]


def test_what_should_have_been_seen() -> None:
    first = "1,024 A100s for two months"
    assert [summary(first, num_gpus=n)[:2] for n in (1024, 2048, 4096)] == [
        ("1.56 days", "96.3%"),
        ("18.8 hours", "94.1%"),
        ("9.38 hours", "90.3%"),
    ]
    large = "16,384 H100s for eight weeks"
    assert offers(large)[0] == "Restart 3× faster: saves 6.78 days"
    assert offers(large)[1] == "33% fewer failures: saves 4.44 days"
    assert offers(large, restart=5)[0].startswith("Writes that block 10× shorter")
    by_hand = "Restarted by hand"
    assert summary(by_hand) == ("12.9 hours", "60.0%", "56.6")
    assert "Save at the best interval: saves 4.40 days" in offers(by_hand)
    assert summary(by_hand, save_every="1 day")[2] == "146"
    best = Setting(**{**PANELS["calendar"].presets[by_hand], "save_every": BEST})
    assert 16.5 < best.days.parts()["restarting"] < 17
    assert round(best.days.stops) == 97
    assert best.days.stops * 60 * best.restart > 1.15 * best.days.parts()["restarting"] * DAY


def test_the_panel_has_the_pages_days_of_computing_and_says_what_it_leaves_out() -> None:
    large = published.run_plan("Llama 3.1 405B", tokens=10e12, flops_per_gpu=400e12)
    bloom = published.run_plan("BLOOM-176B", num_gpus=1024, global_batch_size=2048)
    win = plan_run("Llama-3.1-8B", "H100", 64, 1e12, 512, recompute="none", zero_stage=3)
    for preset, plan in (
        ("64 H100s for a month", win),
        ("1,024 A100s for two months", bloom),
        ("16,384 H100s for eight weeks", large),
    ):
        days = PANELS["calendar"].presets[preset]["work_days"]
        assert days == round(calendar_days(plan).computing.likely), preset
    html = PANELS["calendar"].render()
    most = calendar.OUTAGES.greatest + calendar.EVALUATION.greatest
    assert f"add to that, up to {100 * most:.0f}% of all days in published runs" in html
    assert round(1 / most) == 5  # a fifth of all days


@pytest.mark.parametrize("preset", PANELS["calendar"].presets)
def test_sentence_strip_and_bar_tell_the_same_days(preset: str) -> None:
    for every in ("at its best interval", "3 hours"):
        values = {**PANELS["calendar"].presets[preset], "save_every": every}
        if answer := PANELS["calendar"].answer(values).html:
            [days] = re.findall(r"<b>([\d,.]+) days on the calendar", answer)
            texts = [text for picture in pictures(answer) for text in picture.texts]
            [whole] = [x for x in texts if x.startswith("the whole run: ")]
            assert whole.startswith(f"the whole run: {days} days on")
            [rows] = [x for x in texts if "days are shown" in x] or [f" of {days} days are shown"]
            assert f" of {days} days are shown" in rows


def test_a_panel_refuses_a_run_that_never_ends_in_its_own_words() -> None:
    panel = PANELS["calendar"]
    answer = panel.answer({**panel.default, "num_gpus": 131072, "failures": 50})
    assert "barely any work gets done" in answer.problem
    assert len(answer.offers) >= 2


def test_failures_and_outages_stay_where_they_are_when_the_step_changes() -> None:
    """More failures come between the same ones, and a slower run only goes on for longer."""

    def days_of(**values: object) -> list[str]:
        texts = pictures(HANDLES["dates"].render(**values))[0].texts
        return [words for words in texts if words[0].isdigit() and "✕" in words]

    def outages_of(step: str) -> list[tuple[float, float, float]]:
        picture = pictures(HANDLES["dates"].render(step=step))[0]
        return [(box.left, box.top, box.width) for box in picture.titled("outages")]

    fast, likely, slow = (days_of(step=x, failures=24) for x in ("fast", "as likely", "slow"))
    assert 0 < len(fast) < len(likely) <= len(slow)
    assert (fast, likely) == (slow[: len(fast)], slow[: len(likely)])
    few = days_of(step="slow", failures=10)
    assert 0 < len(few) < len(slow)
    assert {*few} <= {*slow}
    fast_ones, slow_ones = (outages_of(step) for step in ("fast", "slow"))
    first = slow_ones.index(fast_ones[1])
    assert fast_ones[:2] == slow_ones[first - 1 : first + 1]
