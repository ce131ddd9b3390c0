"""Chapter 12's panel: what each control changes, and what it refuses."""

import re
from dataclasses import replace
from itertools import product
from typing import Any

from hypothesis import given, strategies as st

from llmtrain_course.measure.clock import times
from llmtrain_course.measure.handles import SERIES, WAYS, Setting, recorded_series
from llmtrain_course.measure.recorded import product_rates, recorded_step
from llmtrain_course.measure.trace import recorded_trace
from llmtrain_course.panels import HANDLES, PANELS
from llmtrain_helpers import units
from tests.faces.svg import pictures
from tests.panel_code import text_of


def test_the_panel_says_what_the_page_says_of_its_tasks() -> None:
    presets = PANELS["measure"].presets

    def rate(preset: str, **changes: Any) -> float:
        values = {**presets[preset], **changes}
        step = values["micro_batch_size"], values["accumulation"]
        return Setting(**values).clock.throughput(*step)

    def verdict(preset: str, **changes: Any) -> str:
        values = {**presets[preset], **changes}
        step = values["micro_batch_size"], values["accumulation"]
        return Setting(**values).clock.experiments(*step).verdict

    for micro in (8, 16):
        assert f"{rate('A slow loader', micro_batch_size=micro):.1f}" == "50.0"
    assert verdict("A slow loader") == "data"
    assert verdict("A slow loader", loading=10) == "computing"
    assert verdict("A slow loader", loading=5) == "fixed costs"
    assert f"{rate('A slow link'):.1f}" == "33.3"
    assert f"{rate('A slow link', accumulation=8):.1f}" == "97.0"
    assert f"{rate('A slow link', micro_batch_size=64):.0f}" == "160"
    slow = rate("A slow neighbour")
    assert f"{rate('A slow neighbour', micro_batch_size=64) / slow:.2f}" == "1.09"
    assert f"{rate('A slow neighbour', accumulation=8) / slow:.2f}" == "1.05"
    causes = [verdict(name) for name in presets]
    assert causes == ["fixed costs", "data", "other GPUs", "other GPUs", "computing"]


def test_the_panel_says_what_no_change_gains_and_what_was_before() -> None:
    panel = PANELS["measure"]
    assert "no single change gains 10%" in text_of(panel.render(**panel.presets["Busy"]))
    before = panel.presets["A slow link"]
    assert "(dashed: 33.3)" in panel.render(before=before)


def named(values: dict[str, Any]) -> str:
    """The cause behind "mostly waits for", or nothing where other GPUs are not it."""
    html = PANELS["measure"].render(**values)
    match = re.search(r"mostly waits for <b>(.*?)</b>", html)
    return match[1] if match else ""


def test_the_panel_never_takes_a_neighbour_for_the_link_or_the_link_for_one() -> None:
    panel, seen = PANELS["measure"], set()
    tasks = {
        "the link": panel.presets["A slow link"],
        "a slow neighbour": panel.presets["A slow neighbour"],
    }
    sizes = [panel.controls[n].stops for n in ("micro_batch_size", "accumulation")]
    for cause, preset in tasks.items():
        for b, k in product(*sizes):
            step = {**preset, "micro_batch_size": b, "accumulation": k}
            verdict = named(step)
            assert verdict in ("", cause), (b, k)
            seen.add((verdict, b, k))
    assert ("a slow neighbour", 8, 8) in seen
    assert ("a slow neighbour", 16, 1) in seen
    assert ("the link", 8, 1) in seen


@given(*map(st.sampled_from, ([1, 8, 64], [1, 8, 64], [1, 20, 200], [100, 120, 200])))
def test_without_what_the_panel_names_a_step_is_faster(b, k, exchange, slowest):
    step = {**PANELS["measure"].presets["A slow neighbour"], "slowest": slowest}
    step |= {"micro_batch_size": b, "accumulation": k, "exchange": exchange}
    verdict, clock = named(step), Setting(**step).clock
    gone = {"the link": {"exchange": 0.0}, "a slow neighbour": {"slowest": 1.0}}
    if verdict:
        rates = {cause: replace(clock, **change).throughput(b, k) for cause, change in gone.items()}
        assert rates[verdict] > clock.throughput(b, k)
        if slowest == 100:
            assert verdict == "the link"


def test_accumulation_tells_a_link_from_a_neighbour() -> None:
    def gains(preset: str, micro: int) -> tuple[str, str]:
        values = {**PANELS["measure"].presets[preset], "micro_batch_size": micro}
        clock = Setting(**values).clock
        now, twice = clock.throughput(micro), clock.throughput(micro, 2)
        return f"{clock.throughput(2 * micro) / now:.2f}", f"{twice / now:.2f}"

    assert gains("A slow neighbour", 8) == ("1.27", "1.08")
    assert gains("A slow neighbour", 32) == ("1.09", "1.03")
    assert float(gains("A slow link", 8)[1]) > 1.5


def test_of_what_hides_the_last_parcel_stays() -> None:
    values = PANELS["measure"].presets["A small micro-batch"]
    step = values["micro_batch_size"], values["accumulation"]
    assert round(Setting(**values).clock.parts(*step).others, 9) == 0.005
    for preset in PANELS["measure"].presets.values():
        assert "0.0000" not in PANELS["measure"].render(**preset)


# --- handles


def test_the_products_are_covered_until_they_are_measured() -> None:
    [picture] = pictures(HANDLES["one_product"].render())
    assert picture.texts.count("?") == len(product_rates()) - 1  # the first one is measured
    assert "so we call it the peak" in text_of(HANDLES["one_product"].render(size=1024))


def test_the_measured_step_is_covered_at_first() -> None:
    ratio = f"{units.digits(recorded_step(256).ratio, 2)}× the prediction"
    assert ratio not in text_of(HANDLES["predicted_step"].render())
    assert ratio in text_of(HANDLES["predicted_step"].render(measured=True))


def test_what_is_reported_depends_on_what_is_timed() -> None:
    def median(left_out: int, repeats: int, series: str) -> float:
        return times(recorded_series(series)[: left_out + repeats], left_out).median

    assert len({median(x, n, s) for x in (0, 3) for n in (2, 20) for s in SERIES}) == 12
    assert 1.4 < median(3, 20, "second") / median(3, 20, "third") < 1.6


def test_no_gradient_travels_before_it_exists() -> None:
    for name in WAYS.values():
        trace = recorded_trace(name)
        [(begin, _)] = trace.phases["backward"]
        assert trace.exchange[0][0] > begin
    assert "doesn't compute gradients" in text_of(HANDLES["one_step"].render(moment=50))
    assert "one bucket" in text_of(HANDLES["one_step"].render(moment=180, way="after backward"))
    assert "66% of the sending" not in text_of(HANDLES["one_step"].render())
    assert "66% of the sending" in text_of(HANDLES["one_step"].render(moment=200))
