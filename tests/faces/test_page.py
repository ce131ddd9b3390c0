"""Panels and exercises in a web page: the same as in the notebook, and nothing more."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from llmtrain_course import cells, page
from llmtrain_course.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_course.kit.panel import pace
from llmtrain_course.kit.state import State
from llmtrain_course.panels import HANDLES, PANELS
from tests.faces.kernel import restart
from tests.faces.svg import pictures
from tools.notebooks import chapters

CHAPTERS = chapters()

every_panel = pytest.mark.parametrize("word", PANELS)


# --- panels


def opened(word: str, *about: Any) -> dict[str, Any]:
    return dict(json.loads(page.opened(word, *about)))


def act(word: str, *deed: Any) -> dict[str, Any]:
    return dict(json.loads(page.act(word, *deed)))


@pytest.mark.parametrize(
    "text", ["[" * 7000, '{"a":' * 1500, "9" * 7000, "-" * 5000, "\0", "\ud800"], ids=ascii
)
def test_a_panel_outlives_any_text_in_a_field_or_a_link(text: str) -> None:
    for word, panel in PANELS.items():
        opened(word)
        for name in panel.controls:
            act(word, "write", name, text)
        page.follow(State(panel), f"{next(iter(panel.controls))}={text}")


@every_panel
def test_a_page_shows_what_its_state_says_after_each_deed(word: str) -> None:
    """Fields, picture, refusal, offers, advice."""
    state, answer = State(PANELS[word]), opened(word)
    agree(state, answer)
    for name, control in PANELS[word].controls.items():
        if control.kind != "number":
            continue
        if control.stops:
            state.write(name, control.stops[-1])
            agree(state, act(word, "slide", name, len(control.stops) - 1))
        for written in ("97", "a lot", "1e300"):
            state.write(name, written)
            answer = act(word, "write", name, written)
            agree(state, answer)
        if answer["set_all"]:
            state.set_all(**state.offers[0][1])
            agree(state, act(word, "set_all", 0))
        state.reset()
        agree(state, act(word, "reset"))
    for preset, values in PANELS[word].presets.items():
        state.set(**values)
        answer = act(word, "choose", preset)
        agree(state, answer)
        if answer["take"]:
            state.take(**state.advice[0][1])
            agree(state, act(word, "take", 0))


@pytest.mark.parametrize("name", HANDLES)
def test_a_page_shows_what_a_handles_state_says_at_every_stop(name: str) -> None:
    """And after what can't be read; nothing of it is in the address."""
    state, answer = State(HANDLES[name]), opened(f"handle:{name}")
    assert (answer["layout"]["presets"], answer["layout"]["small"]) == ([], True)
    for key, control in HANDLES[name].controls.items():
        assert answer["layout"]["controls"][key]["play"] == control.play
        for place, stop in enumerate(control.stops):
            state.write(key, stop)
            agree(state, act(f"handle:{name}", "slide", key, place))
        others = control.options or (False, True)
        for written in ("5", "a lot", "1e300") if control.stops else others:
            state.write(key, written)
            agree(state, act(f"handle:{name}", "write", key, written))


def agree(state: State, answer: dict[str, Any]) -> None:
    panel, setting = state.panel, state.panel.setting(state.values)
    assert (answer["html"], answer["old"], answer["preset"]) == (
        state.html,
        state.old,
        state.preset,
    )
    assert bool(answer["status"]) == bool(state.problem)
    assert escape(state.problem) in answer["status"]
    assert answer["set_all"] == [label for label, _ in state.offers]
    assert answer["take"] == [label for label, _ in state.advice]
    assert {*answer["fields"]} == {*panel.controls} - {*state.problems}
    for name, field in answer["fields"].items():
        control = panel.controls[name]
        expected = control.field_state(state.values[name], setting)
        assert str(field["text"]) == str(expected.text)
        assert field["shown"] == (name in panel.visible_controls(state.values))
        if expected.place is not None:
            assert (field["stop"], field["last"]) == (str(expected.place), expected.last)
            assert field["pace"] == pace(expected.last) <= 700


def test_a_page_may_have_a_handle_twice_and_each_has_its_own_state() -> None:
    first, second = (json.loads(page.opened("handle:ring", "", False, x)) for x in ("one", "two"))
    assert first == second
    moved = act("one", "slide", "gpus", 0)
    assert moved["fields"]["gpus"]["text"] == "2"
    assert act("two", "slide", "turn", 4)["fields"]["gpus"]["text"] == "8"
    with pytest.raises(ValueError, match="word='handle:rings' is unknown, did you mean"):
        page.opened("handle:rings")


@every_panel
def test_a_link_brings_back_what_was_set(word: str) -> None:
    for preset in PANELS[word].presets.values():
        state = State(PANELS[word])
        state.set(**preset)
        link = page.address(state)
        if not link and dict(state.values) != dict(state.panel.default):
            continue  # too long for a link
        again = opened(word, link)
        assert again["html"] == state.html.replace(".0)", ")")  # 2.0 comes back as 2
        assert again["address"] == link
        assert again["status"] == (state.problem and again["status"])


@pytest.mark.parametrize("written", ["0.5%", "0.5 %", "0.1%", "1", "0.45", "33.7"])
def test_a_percentage_means_the_same_in_field_and_link(written: str) -> None:
    """What stands in the field is read as it is, and so is what stands in the link."""
    state = State(PANELS["duration"])
    state.write("percent", written)
    page_state, meant = page.view(state), state.values["percent"]
    page.follow(again := State(PANELS["duration"]), page_state["address"])
    assert again.values["percent"] == meant
    again.write("percent", page_state["fields"]["percent"]["text"])
    assert again.values["percent"] == meant
    page.follow(again, "percent=0.5")
    assert again.values["percent"] == 0.5
    page.follow(again, "percent=0.5%25")
    assert again.values["percent"] == 0.5


@every_panel
@pytest.mark.parametrize(
    "address",
    [
        "num_gpus=<img src=x onerror=alert(1)>",
        "num_gpus=1e400&tokens=nan",
        "model=None&chip=%00&recompute=",
        "=&&&%%%",
        "x=1",
        "percent=2&percent=-1",
        "a" * 100_000,
    ],
)
def test_a_hostile_link_is_told_in_words_and_sets_nothing(word: str, address: str) -> None:
    page_state = opened(word, address)
    assert page_state["html"] == PANELS[word].render() or page_state["status"]
    assert "<img src=x" not in json.dumps(page_state)
    assert len(page_state["status"]) < 1000


@every_panel
def test_no_text_field_brings_markup_into_the_page(word: str) -> None:
    opened(word)
    for name, control in PANELS[word].controls.items():
        if control.kind == "text":
            page_state = act(word, "write", name, '{"a": "<img src=x onerror=alert(1)>"}')
            assert "<img src=x" not in page_state["status"] + page_state["html"]


def test_what_is_no_panel_no_deed_and_no_choice_is_refused() -> None:
    with pytest.raises(ValueError, match="word"):
        page.opened("durations")
    opened("duration")
    with pytest.raises(ValueError, match="deed"):
        page.act("duration", "delete")
    page_state = act("duration", "write", "model", "GPT-5")
    assert "Model: 'GPT-5' isn't one of its choices." in page_state["status"].replace("&#x27;", "'")


def test_a_phone_has_a_drawing_of_its_own() -> None:
    wide, narrow = opened("start_here"), opened("start_here", "", True)
    [[page_wide], [telephone]] = (pictures(one["html"]) for one in (wide, narrow))
    assert page_wide.width > telephone.width
    assert page_wide.words == telephone.words


# --- exercises


def sources(path: Path) -> list[str]:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def judged(path: Path) -> list[tuple[str, str]]:
    """Each exercise and guess, behind the cells before it."""
    code = sources(path)
    asks = [i for i, one in enumerate(code) if re.search(r"^(check|predict)\(", one, re.M)]
    return [(json.dumps(code[:i]), code[i]) for i in asks]


BARE = """
import json, sys
for name in ("numpy", "pandas", "matplotlib", "ipywidgets", "IPython", "torch"):
    sys.modules[name] = None
from llmtrain_course.cells import run
def shows(before, source):
    return json.loads(run(before, source))["html"]
asked = json.load(sys.stdin)
print(json.dumps({word: [shows(*each) for each in those] for word, those in asked.items()}))
"""


@pytest.fixture(scope="module")
def outputs_by_chapter() -> dict[str, list[str]]:
    """What each exercise and guess of each chapter shows in a process without packages."""
    process = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", BARE],
        input=json.dumps({path.stem: judged(path) for path in CHAPTERS}),
        capture_output=True,
        encoding="utf-8",
    )
    assert process.returncode == 0, process.stderr
    return dict(json.loads(process.stdout))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_exercise_runs_where_only_the_standard_library_is(
    path: Path, outputs_by_chapter: dict[str, list[str]]
) -> None:
    outputs = outputs_by_chapter[path.stem]
    assert len(outputs) == len(judged(path)) > 0
    for html in outputs:
        assert html.count("○") == html.count("<p style") == 1, html


def test_what_a_cell_needs_is_what_it_reads_and_no_more() -> None:
    before = ["from math import pi, e\nimport json", "x = 1\ny = x + 1", "x = 3"]
    assert cells.needed(before, "print(pi, y)") == "from math import pi\nx = 1\ny = x + 1"
    assert cells.needed(before, "x |= 4") == "x = 3"
    assert cells.needed(before, "def f(x):\n    y = x\n    return y\n\n\nf(2)") == ""
    assert cells.needed(before, "x = 5\nprint(x)") == ""
    assert cells.needed([*before, "x = ("], "print(x)") == "x = 3"


def test_a_cell_rests_on_earlier_ones_as_they_stand() -> None:
    before = json.dumps(["x = 6\nprint('not again')", "y = 7"])
    assert json.loads(cells.run(before, "x * y"))["html"] == "<pre>42</pre>"


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("6 * 7", "<pre>42</pre>"),
        ("print('<b>')", "<pre>&lt;b&gt;\n</pre>"),
        ("x = 0\n1 / x", "Line 2: ZeroDivisionError"),
        ("answer = ", "SyntaxError"),
        ("answer = TP 2  # one of", "Line 1: put words in quotes, answer = &quot;TP 2&quot;"),
        ("raise SystemExit", "SystemExit"),
        ("import numpy_that_is_not_there", "ModuleNotFoundError"),
        ("print('\\x1b[32mgreen\\x1b[0m')", "<pre>green\n</pre>"),
        ("", ""),
        ("x = 1", ""),
        ("print(1)\nimport sys; sys.stdout.close()\n2", "<pre>2</pre>"),
        (f"{'(' * 9999}1", "SyntaxError"),
    ],
    ids=lambda text: text[:40],
)
def test_a_cell_shows_what_it_would_in_a_notebook(source: str, output: str) -> None:
    html = json.loads(cells.run("[]", source))["html"]
    assert output in html
    assert bool(html) == bool(output)


@pytest.mark.parametrize(
    ("source", "quotes"),
    [
        ("answer = 22.4 days", True),
        ("answer = 415 TFLOP/s", True),
        ("answer = 7B", True),
        ("answer = 36.8%", True),
        ('answer = (36.8%, "sparse")', True),
        ("answer = (0.368, sparse peak)", True),
        ('my_run = {"gpus": 64 GPUs}', True),
        ('answer = (0.368, "sparse peak"', False),
        ("answer = 2 *", False),
        ("answer = (800e9 415e12)", False),
        ("answer = 300 000", False),
        ("answer = 08", False),
        ("for x in y\n    print(x)", False),
        ("def f(h, s)\n    return h", False),
        ("forward = 2 * s h", False),
        ("if x = 3: y = 2", False),
    ],
)
def test_a_line_that_is_no_python_hears_of_quotes_where_they_would_help(
    source: str, quotes: bool
) -> None:
    html = json.loads(cells.run("[]", source))["html"]
    assert html.startswith("<pre>Line 1: ")
    assert ("in quotes" in html) == quotes, html


def test_curly_quotes_are_answered_with_the_line_in_straight_ones() -> None:
    html = json.loads(cells.run("[]", "answer = “10.9B”  # parameters"))["html"]
    assert unescape(html) == '<pre>Line 1: Python needs straight quotes, answer = "10.9B"</pre>'


@pytest.mark.parametrize("error", ["ValueError", "GeneratorExit", "SystemExit"])
def test_a_cell_whose_repr_fails_is_told_its_line(error: str) -> None:
    source = f"class A:\n    def __repr__(self):\n        raise {error}('no')\n\n\nA()"
    assert json.loads(cells.run("[]", source))["html"].startswith(f"<pre>Line 3: {error}")


def test_an_earlier_cell_that_is_nested_too_deeply_is_left_out() -> None:
    before = json.dumps(["(" * 99_999, "x = \0", f"{'-' * 99_999}1"])
    assert json.loads(cells.run(before, "6"))["html"] == "<pre>6</pre>"


@pytest.mark.usefixtures("nothing_done")
@pytest.mark.parametrize(
    "source",
    [
        "exercises._TRIES['start_here-b'] = {1}",
        "exercises._TRIES['zz'] = [print]",
        "exercises._TRIES = None",
        "exercises._GUESSES = 7",
        "exercises._GUESSES['start_here-guess'] = type('A', (), {'__str__': exit})()",
    ],
)
def test_the_page_outlives_a_cell_that_spoils_what_is_kept(source: str) -> None:
    reply = json.loads(cells.run("[]", f"from llmtrain_course import exercises\n{source}"))
    assert reply["html"] == ""
    assert not reply.get("tries")


@pytest.fixture
def nothing_done() -> None:
    restart()


def chosen(id: str, option: str) -> str:
    source = f"from llmtrain_course.exercises import check\ncheck({id!r}, {option!r})"
    return cells.run("[]", source)


@pytest.mark.usefixtures("nothing_done")
def test_what_is_done_is_kept_and_taken_up_again() -> None:
    id = next(iter(PREDICTIONS))
    assert "→" in json.loads(cells.guess(id, "30"))["html"]
    reply = json.loads(chosen("start_here-b", "A"))
    assert reply["done"] == {"start_here-b": False, id: True}
    kept = json.dumps(reply)
    restart()
    cells.restore(kept)
    assert cells.kept()["tries"] == {"start_here-b": [False]}
    assert "First you said 30, now you said 31" in json.loads(cells.guess(id, "31"))["html"]


@pytest.mark.usefixtures("nothing_done")
@pytest.mark.parametrize(
    "stored",
    [
        "",
        "no json",
        "[]",
        "{}",
        "null",
        '{"tries": 1, "guesses": 2}',
        '{"tries": {"start_here-a": "x", "zz": [1]}, "guesses": {"zz": "1"}}',
        '{"tries": {}, "guesses": {"start_here-guess": []}}',
        '{"tries": {}, "guesses": {"start_here-guess": "nan"}}',
        "[" * 100_000,
        f'{{"tries": {"[" * 100_000}{"]" * 100_000}, "guesses": {{}}}}',
    ],
    ids=lambda stored: stored[:60],
)
def test_what_a_browser_has_kept_wrongly_is_left_out(stored: str) -> None:
    cells.restore(stored)
    assert cells.kept()["done"] == {}


def test_an_empty_guess_says_so() -> None:
    id = next(iter(PREDICTIONS))
    assert "No guess yet" in json.loads(cells.guess(id, "  "))["html"]
    assert set(EXERCISES) & {"start_here-a", "measure-d"}


# --- verdicts in the page


@pytest.mark.usefixtures("nothing_done")
def test_a_verdict_in_a_page_links_to_the_pages_solutions() -> None:
    source = "from llmtrain_course.exercises import check\ncheck('duration-a', 12)"
    reply = [json.loads(cells.run("[]", source)) for _ in range(3)]
    assert "<a href" not in reply[1]["html"]
    assert '<a href="solutions/duration.html#duration-a">the solutions</a>' in reply[2]["html"]
    assert reply[2]["hints"] == {"duration-a": 3}


@pytest.mark.usefixtures("nothing_done")
def test_hints_and_the_question_that_is_asked_now_are_kept() -> None:
    wrong = json.loads(chosen("start_here-b", "A"))
    assert wrong["turns"] == {"start_here-b": 1}
    check("duration-a", 12)
    kept = json.dumps(cells.kept())
    restart()
    cells.restore(kept)
    assert "Right this time" in json.loads(chosen("start_here-b", "B"))["html"]
    assert EXERCISES["duration-a"].hints()[1].casefold() in check("duration-a", 12).text.casefold()


@pytest.mark.usefixtures("nothing_done")
@pytest.mark.parametrize(
    "spoilt",
    [
        {"hints": {"duration-a": -1}, "turns": {"start_here-b": "1"}},
        {
            "hints": {"duration-a": True, "zz": 1},
            "turns": {"duration-a": 10**400, "start_here-b": 1.5},
        },
        {"hints": [], "turns": None},
        {"hints": {"duration-a": {}}, "turns": 3},
    ],
    ids=str,
)
def test_hints_that_were_kept_wrongly_are_left_out(spoilt: dict[str, object]) -> None:
    cells.restore(json.dumps({"tries": {}, "guesses": {}, **spoilt}))
    assert (cells.kept()["hints"], cells.kept()["turns"]) == ({}, {})
    assert check("start_here-b", "B").ok


@pytest.mark.usefixtures("nothing_done")
def test_a_turn_that_an_exercise_does_not_have_is_its_last() -> None:
    cells.restore(
        json.dumps({"tries": {}, "guesses": {}, "turns": {"start_here-b": 9, "start_here-a": 5}})
    )
    assert "The new question still stands:" in check("start_here-b", "B").text
    assert check("start_here-a", "22.6 days").ok
