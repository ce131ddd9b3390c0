"""What all panels share: they are data, read what people write, and refuse in words."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, make_dataclass, replace
from html import unescape
from typing import Any

import pytest

from llmtrain_course import panels
from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.panel import Control, Panel
from llmtrain_course.kit.state import OWN, State
from llmtrain_course.kit.widget import NotebookPanel
from llmtrain_course.panels import HANDLES, PANELS, in_notebook
from llmtrain_helpers import units
from tests.panel_code import code_of, value_of
from tests.printed import printed

every_panel = pytest.mark.parametrize("word", PANELS)

# --- data


BLOCKED = """
import sys
for name in ("numpy", "pandas", "matplotlib", "ipywidgets", "IPython", "termcolor"):
    sys.modules[name] = None
from llmtrain_course.panels import HANDLES, PANELS
print(*(f"{word}:{len(panel.render())}" for word, panel in (PANELS | HANDLES).items()))
"""


def test_every_panel_is_made_and_drawn_by_the_standard_library_alone() -> None:
    process = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, encoding="utf-8")
    sizes = dict(pair.split(":") for pair in process.stdout.split())
    assert set(sizes) == {*PANELS, *HANDLES}, process.stderr
    assert all(int(size) > 1000 for size in sizes.values())


@every_panel
def test_each_control_has_a_label_and_a_sentence_of_help(word: str) -> None:
    panel = PANELS[word]
    labels = [control.label for control in panel.controls.values()]
    assert len(set(labels)) == len(labels)
    for control in panel.controls.values():
        assert re.fullmatch(r"[^_]{3,}", control.label)
        assert re.fullmatch(r"[A-Z].{5,}[.]", control.help), control.label
        assert control.kind in ("number", "choice", "flag", "text")


@every_panel
def test_two_or_three_sliders_stand_first_and_their_stops_are_legal(word: str) -> None:
    controls = PANELS[word].controls.values()
    sliders = [control for control in controls if control.stops]
    assert 1 <= len([control for control in sliders if not control.more]) <= 3
    for control in sliders:
        assert list(control.stops) == sorted(set(control.stops))
        assert [control.read(stop) for stop in control.stops] == [*control.stops]


@every_panel
def test_presets_are_values_that_the_controls_take(word: str) -> None:
    panel = PANELS[word]
    assert set(panel.static_presets) < set(panel.presets)
    for values in panel.presets.values():
        assert set(values) == set(panel.controls)
        for name, control in panel.controls.items():
            assert control.read(values[name]) == values[name]
            assert control.kind != "choice" or values[name] in control.options


@pytest.mark.parametrize("word", ["flops", "activations", "plan"])
def test_models_of_the_shelf_are_there_and_each_is_drawn(word: str) -> None:
    panel = PANELS[word]
    options = panel.controls["model"].options
    assert {"DeepSeek-V3", "gpt-oss-20b", "Gemma-3-27B (text)"} <= {*options}
    assert ("Jamba-v0.1" in options) == (word == "flops")  # its scan is not counted
    for name in options:
        answer = panel.answer({**panel.default, "model": name})
        assert answer.html or "the positions of the model" in answer.problem, name


@every_panel
def test_drawing_is_pure(word: str) -> None:
    panel = PANELS[word]
    for values in panel.presets.values():
        assert panel.answer(values) == panel.answer(dict(values))
    assert panel.render() == panel.render(**panel.default)


@every_panel
def test_a_refusal_speaks_the_panels_language_and_offers_what_does(word: str) -> None:
    """Every number at its least and its most: a picture, or words without names."""
    panel = PANELS[word]
    for name, control in panel.controls.items():
        if control.kind != "number":
            continue
        for value in (control.least, min(control.most, 10**9), 97):
            if not control.least <= value <= control.most:
                continue
            values = {**panel.default, name: control.read(value)}
            answer = panel.answer(values)
            assert bool(answer.html) != bool(answer.problem)
            named = [n for n in panel.controls if "_" in n and n in answer.problem]
            assert not named, answer.problem
            for _, change in answer.offers:
                assert panel.answer({**values, **change}).html


MOST_CALLS = 30_000
"""Calls of Python functions in a redraw, 35 ms or less. Unlike seconds they're the same on a busy
machine; the panels here had 220,000 before they read each model once."""


@pytest.mark.parametrize(
    ("word", "left_out"),
    [("finetune", ()), ("parallelism", ()), ("budget", ("money", "days", "chip"))],
)
def test_a_stop_that_was_there_before_is_drawn_in_few_calls(word: str, left_out) -> None:
    """A third of each control's; on other GPUs chapter 11 searches for splits, once for each."""
    panel, calls = PANELS[word], 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    for name, control in panel.controls.items():
        for value in () if name in left_out else (control.stops or control.options)[::3]:
            values, calls = {**panel.default, name: value}, 0
            panel.answer(values)
            sys.setprofile(count)
            panel.answer(values)
            sys.setprofile(None)
            assert 100 < calls < MOST_CALLS, f"{control.label}: {value}"


@every_panel
def test_a_slider_of_the_default_never_runs_into_a_dead_end(word: str) -> None:
    """Each stop gives a picture, or a refusal with a way out."""
    panel = PANELS[word]
    for name, control in panel.controls.items():
        for stop in control.stops:
            answer = panel.answer({**panel.default, name: control.read(stop)})
            assert answer.html or answer.offers or "peak" in answer.problem


SHOWN: dict[str, Callable[[Any], list[str]]] = {
    "flops": lambda share: [f">HFU {units.percent(share)}<"],
    "duration": lambda days: [f"<b>{units.digits(days)} days</b>"],
    "activations": lambda peak: [f"<b>{units.gigabytes(peak.total)}</b> at the peak"],
    "plan": lambda plan: [
        f"<b>{units.gigabytes(plan.memory.total)}</b>",
        f">{units.duration(plan.seconds.likely)}<",
    ],
    "measure": lambda rate: [f"<b>{units.digits(rate)} sequences per second</b>"],
}
"""How an answer writes what its code gives; the other chapters' tests compare more."""


@every_panel
def test_the_code_of_an_answer_runs_as_it_is_copied(word: str) -> None:
    """With nothing but its own imports, at each preset that has an answer.

    A pasted file is read from where a learner keeps it, and no chip runs past its peak.
    """
    panel = PANELS[word]
    for html in (panel.answer(values).html for values in panel.presets.values()):
        if html and "runs past the peak" not in html and "config.json" not in code_of(html):
            value = value_of(html)
            assert value is not None
            assert all(text in html for text in SHOWN.get(word, lambda _: [])(value))


@every_panel
def test_a_saved_page_shows_three_settings_and_images_in_place_of_svg(word: str) -> None:
    html = PANELS[word].static_html()
    titles = re.findall(r"<h3>(.*?)</h3>", html)
    assert [unescape(name) for name in titles] == [
        next(iter(PANELS[word].presets)),
        *PANELS[word].static_presets,
    ]
    assert "<svg" not in html
    second = html.index("<h3>", html.index("<h3>") + 1)
    assert html.index("<details><summary>Two more settings</summary>") < second
    for image in re.findall(r"<img[^>]*>", html):
        assert re.search(r'alt="[^"]{40,}"', image)


# --- reading


PEOPLE = Control("Tokens", "In all.", unit="tokens", most=10**16)
SHARE = Control("Share", "Of it.", unit="%", least=0.1, most=100, whole=False)


@pytest.mark.parametrize(
    ("written", "value", "echo"),
    [
        ("7B", 7 * 10**9, "= 7 billion tokens"),
        ("300e9", 300 * 10**9, "= 300 billion tokens"),
        (" 15T ", 15 * 10**12, "= 15 trillion tokens"),
        ("8k", 8000, "= 8,000 tokens"),
        ("1,024", 1024, "= 1,024 tokens"),
        (512, 512, "= 512 tokens"),
        ("2T tokens", 2 * 10**12, "= 2 trillion tokens"),
        ("512 Tokens", 512, "= 512 tokens"),
    ],
)
def test_a_field_reads_what_people_write_and_says_it_back(written, value, echo) -> None:
    assert PEOPLE.read(written) == value
    assert type(PEOPLE.read(written)) is int
    assert PEOPLE.echo(value) == echo


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("many", "Tokens: 'many' isn't a number; write one from 1 to 10000T"),
        ("2,5", "commas group thousands"),
        ("2.5", "Tokens: '2.5' isn't a whole number."),
        ("0", "Tokens: '0' is outside 1 to"),
        ("1e17", "is outside"),
        ("", "isn't a number"),
        ("9" * 500, "isn't a number"),
    ],
)
def test_a_field_refuses_in_its_own_words(written: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) as caught:
        PEOPLE.read(written)
    assert len(str(caught.value)) < 200


def test_a_field_that_takes_fractions() -> None:
    assert SHARE.read("2.5") == SHARE.read("2.5 %") == SHARE.read("2.5%") == 2.5
    pace = Control("Loading", "For each.", unit="ms per sequence", whole=False)
    assert pace.read("5 ms") == pace.read("5ms a sequence") == pace.read("5") == 5
    with pytest.raises(ValueError, match="'ms' isn't a number"):
        pace.read("ms")
    assert SHARE.echo(2.5) == "= 2.5%"


ALL = {word: panel.controls for word, panel in (PANELS | HANDLES).items()}
FIELDS = [
    (word, name)
    for word, controls in ALL.items()
    for name, control in controls.items()
    if control.kind == "number"
]


@pytest.mark.parametrize(("word", "name"), FIELDS)
def test_a_field_takes_what_is_printed_of_its_values_in_any_unit_of_its_kind(
    word: str, name: str
) -> None:
    control = ALL[word][name]
    words = (*control.unit.split(" ")[:1], control.label)
    unit = next(filter(None, map(units.find_unit, words)), "")
    for value in control.stops or (control.least, control.most):
        for text in (control.caption(value).removeprefix(control.label), control.typed(value)):
            assert control.read(text) == pytest.approx(value), text
        for text in printed(value, unit):
            rounded = units.read_as(text, unit).number
            if control.least <= rounded <= control.most and not (control.whole and rounded % 1):
                assert control.read(text) == pytest.approx(rounded, rel=1e-5), text


def test_another_unit_of_a_fields_kind_is_converted_and_one_of_another_kind_is_named() -> None:
    days = Control("Days", "As many as you have.", least=0.1, whole=False)
    assert days.read("12 hours") == 0.5
    assert days.read("2 weeks") == 14
    write = Control("Write", "Seconds.", unit="s", least=0, whole=False)
    assert (write.read("5 ms"), write.read("5 m"), write.read("208 min")) == (0.005, 300, 12480)
    price = Control("Price", "Yours.", unit="dollars per GPU-hour", whole=False)
    assert price.read("$2.50 a GPU-hour") == price.read("2.5 dollars per GPU-hour") == 2.5
    assert Control("Size", "Of a message.", unit="MiB").read("4194304 B") == 4
    with pytest.raises(ValueError, match=r"^Write: these are GB; we asked for seconds\.$"):
        write.read("5 GB")
    with pytest.raises(ValueError, match=r"^Write: '1 hour' is outside 0 to 300 s\.$"):
        replace(write, most=300).read("1 hour")


def test_the_nearest_stop_is_nearest_in_ratio() -> None:
    control = Control("GPUs", "All.", stops=(1, 10, 100))
    assert [control.nearest_stop(x) for x in (2, 4, 31, 40, 10**6)] == [0, 1, 1, 2, 2]


def test_stops_are_round() -> None:
    assert controls.steps(0.5, 20, 1, 2, 5) == (0.5, 1, 2, 5, 10, 20)
    assert controls.doublings(4, 32) == (4, 8, 16, 32)


# --- in a notebook


def made(draw: Any = None, **controls: Control) -> NotebookPanel:
    def plain(setting: Any, before: Any = None, width: int = 0) -> str:
        return f"<b>{asdict(setting)}</b> before {before and asdict(before)}"

    setting = make_dataclass("Setting", controls, frozen=True)
    first = setting(*(control.stops[0] for control in controls.values()))
    last = setting(*(control.stops[-1] for control in controls.values()))
    settings = {"first": first, "a": last, "b": last}
    return NotebookPanel(Panel("Title", controls, settings, ("a", "b"), draw or plain))


GPUS = Control("GPUs", "All of them.", most=10**6, stops=(8, 16, 32))


def test_a_slider_moves_the_field_and_redraws() -> None:
    panel = made(num_gpus=GPUS)
    panel.act("slide", "num_gpus", 1)
    field = panel.answer["fields"]["num_gpus"]
    assert (panel.values(), field["text"], field["echo"]) == ({"num_gpus": 16}, "16", "")
    assert panel.html == "<b>{'num_gpus': 16}</b> before {'num_gpus': 8}"
    assert panel.state.preset == OWN
    panel.act("reset")
    assert panel.values() == {"num_gpus": 8}
    assert panel.state.preset == "first"


def test_what_is_typed_stays_as_it_is_and_the_slider_goes_near() -> None:
    panel = made(num_gpus=GPUS)
    panel.act("write", "num_gpus", "1k")
    field = panel.answer["fields"]["num_gpus"]
    assert (panel.values(), field["text"], field["stop"]) == ({"num_gpus": 1000}, "1,000", "2")
    assert "1000" in panel.html


def test_arriving_at_a_preset_by_hand_keeps_the_comparison() -> None:
    panel = made(num_gpus=GPUS)
    panel.act("slide", "num_gpus", 2)
    assert panel.state.preset == "a"
    assert panel.html == "<b>{'num_gpus': 32}</b> before {'num_gpus': 8}"


def test_reset_goes_back_to_the_preset_that_was_chosen() -> None:
    panel = in_notebook("measure")
    panel.act("reset")
    assert panel.state.preset == "A small micro-batch"
    panel.act("choose", "A slow link")
    panel.act("write", "accumulation", 8)
    assert panel.state.preset == OWN
    panel.act("reset")
    assert panel.state.preset == "A slow link"
    assert "dashed" not in panel.html


def test_that_controls_were_changed_is_said_while_it_is_so_and_is_no_choice() -> None:
    panel = made(num_gpus=GPUS)
    assert panel.about["presets"] == ["first", "a", "b", OWN]
    panel.act("write", "num_gpus", 16)
    assert panel.answer["preset"] == OWN == "changed by you"
    panel.act("choose", "a")
    assert (panel.values(), panel.answer["preset"]) == ({"num_gpus": 32}, "a")
    with pytest.raises(ValueError, match="preset='changed by you' is unknown"):
        panel.act("choose", OWN)


def test_mending_a_refusal_keeps_the_comparison() -> None:
    state = State(PANELS["parallelism"])
    state.write("tensor_parallel", "4")
    state.write("tensor_parallel", "3")
    assert state.problem
    label, mended = state.offers[0]
    state.set_all(**mended)
    assert not state.problem, label
    assert "dashed: 46 s" in state.html


def test_what_cannot_be_read_is_told_and_stays_as_it_was() -> None:
    panel = made(num_gpus=GPUS)
    before = panel.html
    panel.act("write", "num_gpus", "a lot")
    assert "GPUs: &#x27;a lot&#x27; isn&#x27;t a number" in panel.answer["status"]
    assert "It&#x27;s still 8." in panel.answer["status"]
    assert panel.html == before
    assert not panel.state.old
    assert panel.values() == {"num_gpus": 8}
    assert panel.answer["unread"] == ["num_gpus"]  # what was written stays in its field
    panel.act("write", "num_gpus", "16")
    assert (panel.answer["status"], panel.answer["unread"]) == ("", [])
    assert not panel.state.old


def test_a_bad_field_does_not_stop_the_others() -> None:
    """Each keeps its own complaint until it can be read."""
    state, mended = State(PANELS["plan"]), State(PANELS["plan"])
    state.write("tokens", "lots")
    state.write("days", "a month")
    state.write("num_gpus", "128")
    mended.write("num_gpus", "128")
    assert "Tokens: 'lots' isn't a number" in state.problem
    assert "It's still 1T." in state.problem
    assert "Days you have: 'a month' isn't a number" in state.problem
    assert (state.html, state.old, state.advice) == (mended.html, False, mended.advice)
    state.write("days", "20")
    assert "a month" not in state.problem
    assert "you have 20" in state.html
    state.write("num_gpus", "100")  # no plan: now the picture is an old one
    assert "'lots' isn't a number" in state.problem
    assert "not divisible by 100 replicas" in state.problem
    assert state.old
    assert state.offers
    state.set_all(**state.offers[0][1])
    assert not state.old
    state.write("tokens", "2T")
    assert (state.problem, state.problems) == ("", {})


def test_a_refusal_has_buttons_that_mend_it() -> None:
    def even(setting: Any, before: Any = None, width: int = 0) -> str:
        if setting.num_gpus % 8:
            raise ValueError(f"num_gpus={setting.num_gpus} is not divisible by 8")
        return "a picture"

    panel = made(even, num_gpus=GPUS)
    panel.act("write", "num_gpus", "100")
    assert "GPUs 100 is not divisible by 8." in panel.answer["status"]
    offered = panel.answer["set_all"]
    assert offered == ["GPUs: 96", "GPUs: 104"]
    panel.act("set_all", 0)
    assert panel.values() == {"num_gpus": 96}
    assert not panel.answer["set_all"]
    assert panel.html == "a picture"


def test_advice_stands_behind_the_picture_and_keeps_what_was_before() -> None:
    def fewer(setting: Any, before: Any = None, width: int = 0) -> Any:
        n = setting.num_gpus
        offers = ((f"half: {n // 2}", {"num_gpus": 8}),) if n > 8 else ()
        return common.Answer(f"{n} before {before and before.num_gpus}", offers=offers)

    panel = made(fewer, num_gpus=GPUS)
    assert not panel.answer["take"]
    panel.set(num_gpus=16)
    assert panel.html == "16 before None"
    assert (panel.answer["take"], panel.answer["set_all"]) == (["half: 8"], [])
    panel.act("take", 0)
    assert panel.html == "8 before 16"
    assert not panel.answer["take"]
    panel.set(num_gpus=16)
    panel.act("write", "num_gpus", "a lot")
    assert len(panel.answer["take"]) == 1  # the picture is still that of 16
    assert "<ol><li>half: 16</li></ol>" in panel.static_html()  # its last preset has 32


def test_controls_that_do_not_apply_are_gone() -> None:
    other = Control("Other", "For many.", stops=(1, 2), applies=lambda x: x.num_gpus > 8)
    panel = made(num_gpus=GPUS, other=other)
    assert not panel.answer["fields"]["other"]["shown"]
    panel.act("write", "num_gpus", 16)
    assert panel.answer["fields"]["other"]["shown"]


@every_panel
def test_the_notebook_shows_the_panel_and_leaves_it_for_a_page(word: str) -> None:
    panel = getattr(panels, f"{word}_panel")()
    assert panel.values() == dict(PANELS[word].default)
    assert panel.html == PANELS[word].render()
    bundle = panel._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data["text/plain"] == f"Panel: {PANELS[word].title}"
    assert data["text/html"] == PANELS[word].static_html()
    for name, preset in panel.presets.items():
        panel.act("choose", name)
        assert panel.values() == dict(preset)


# --- tables


def test_a_table_has_its_head_first_and_figures_to_the_right() -> None:
    html = common.table(["part", "size"], [["a < b", "1"]])
    cells = re.findall(r"<(t[hd]) [^>]*align:(\w+)\">(.*?)</", html)
    assert cells == [
        ("th", "left", "part"),
        ("th", "right", "size"),
        ("td", "left", "a &lt; b"),
        ("td", "right", "1"),
    ]


def test_a_refusal_a_result_and_a_call_say_what_they_are() -> None:
    assert "⚠ Not possible.</b> x &lt; 1" in common.warning("x < 1")
    assert "font-size:20px" in common.sentence("<b>7</b> days")
    assert ">f(1 &lt; 2)</pre>" in common.call("f(1 < 2)")
    assert common.in_code(300 * 10**9) == "300e9"
    assert common.in_code(1_500_000) == "1500000"
