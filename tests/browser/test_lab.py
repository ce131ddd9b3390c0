"""The course in a real JupyterLab, walked by keyboard in a headless Chromium.

The quick half walks three pages in the light theme at 1280 pixels; where a browser is
required (`REQUIRE_BROWSER`, as in .ci/run) every page with a panel. `WALK=full` walks them
in both themes, at 1280 and at 800, and leaves pictures of page and panel in artifacts/.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from llmtrain_course.kit.panel import Values
from llmtrain_course.measure import torch_missing
from llmtrain_course.panels import HANDLES, PANELS
from llmtrain_helpers import units
from tests.paths import ROOT
from tools import glossary
from tools.lab import FIRST
from tools.notebooks import chapters

from . import lab

ARTIFACTS = ROOT / "artifacts"
PANEL = ".live-panel:not(.live-handle)"
"""A page's panel; its handles are small ones."""

FULL = os.environ.get("WALK") == "full"
REQUIRED = bool(os.environ.get("REQUIRE_BROWSER"))

pytestmark = pytest.mark.skipif(
    lab.CHROMIUM is None and not REQUIRED,
    reason="no Chromium on this machine: the browser test is left out",
)

PAGES = {
    path.stem.partition("_")[2]: path.name
    for path in chapters()
    if path.stem.partition("_")[2] in PANELS and not (torch_missing() and path.stem == "12_measure")
}
WALKED = [*PAGES] if FULL or REQUIRED else ["start_here", "parallelism", "plan"]
THEMES = ["JupyterLab Light", "JupyterLab Dark"] if FULL else ["JupyterLab Light"]
WIDTHS = [1280, 800] if FULL else [1280]


@pytest.fixture(scope="module", params=THEMES, ids=lambda theme: theme.split()[1])
def address(request, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    assert lab.CHROMIUM, "REQUIRE_BROWSER is set, and there is no Chromium"
    folder = tmp_path_factory.mktemp("lab")
    with lab.jupyterlab(folder, request.param) as served:
        yield served


@pytest.fixture(params=WIDTHS, ids=str)
def page(request, address: str) -> Iterator[lab.Page]:
    with lab.chromium() as browser:
        page = browser.new_page(viewport={"width": request.param, "height": 1000})
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        yield page
        assert not page.errors


def test_the_course_opens_at_its_first_page_and_asks_nothing(page: lab.Page, address: str) -> None:
    """Links say what the glossary says; that to the data shows them, as they are read."""
    page.goto(address)
    lab.wait_until_idle(page)
    assert page.url == address + FIRST
    expect(page.locator(".jp-FileBrowser-crumbs")).to_contain_text("notebooks")
    expect(page.get_by_text("Jupyter news")).to_have_count(0)
    link = page.locator(".jp-RenderedMarkdown a[href$='#GPU']").first
    expect(link).to_have_attribute("title", glossary.tooltip(glossary.entries()["GPU"]))
    page.locator(".jp-RenderedMarkdown a[href*='data/README.md']").first.click()
    expect(page.locator(".jp-MarkdownViewer h1").first).to_contain_text("The data")


@pytest.mark.parametrize("word", WALKED)
def test_a_page_is_walked_as_a_learner_does(
    page: lab.Page, address: str, word: str, request: pytest.FixtureRequest
) -> None:
    lab.open_notebook(page, address, PAGES[word])
    nothing_is_given_away(page)
    if FULL:
        lab.tall(page)
        picture(page, request, "page")
    lab.run_panel(page)
    panel = page.locator(PANEL)
    panel.scroll_into_view_if_needed()
    if word == "precision":  # where nothing is shared, replicas change nothing
        panel.get_by_label("Start from", exact=True).select_option("8B, ZeRO 1")
        page.wait_for_timeout(500)
    a_slider_redraws_while_it_moves(page, panel, word)
    fields_read_and_refuse(page, panel, word)
    picture(panel, request, "panel")
    errors = page.locator("[data-mime-type='application/vnd.jupyter.stderr']")
    assert errors.count() == 0


def nothing_is_given_away(page: lab.Page) -> None:
    """As saved: no guess is answered, and no exercise."""
    outputs = page.locator(".jp-OutputArea-output").all_inner_texts()
    assert not [text for text in outputs if "you said" in text or text.startswith("✓ 0")]


def a_slider_redraws_while_it_moves(page: lab.Page, panel: lab.Locator, word: str) -> None:
    """Arrow keys on the first slider: the answer changes, field and echo with it."""
    control = next(c for c in PANELS[word].controls.values() if c.stops)
    field, before = panel.get_by_label(control.label, exact=True), answer(page)
    slider = panel.locator("input[type=range]").first
    slider.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
        page.wait_for_timeout(60)
    page.wait_for_function(
        f"old => document.querySelector('{PANEL} .live-answer').innerHTML != old", arg=before
    )
    # keys still on their way would write over what is typed next
    place = int(slider.input_value())
    expect(field).to_have_value(control.typed(control.stops[place]), timeout=20_000)


def fields_read_and_refuse(page: lab.Page, panel: lab.Locator, word: str) -> None:
    """What people write is read; what is none is refused, and stays what it was."""
    control = next(c for c in PANELS[word].controls.values() if c.stops)
    field = panel.get_by_label(control.label, exact=True)
    field.fill("a lot")
    page.keyboard.press("Tab")
    page.wait_for_function(
        f"() => document.querySelector('{PANEL} .live-status').innerText"
        """.includes("isn't a number")"""
    )
    status = panel.locator(".live-status").inner_text()
    assert control.label in status
    assert "It's still " in status
    assert panel.locator(".live-old").count() == 0
    stop = control.stops[len(control.stops) // 2]
    field.fill(f"{stop:g}")
    page.keyboard.press("Tab")
    page.wait_for_function(
        f"() => !document.querySelector('{PANEL} .live-status').innerText"
        """.includes("isn't a number")"""
    )


def test_an_offer_is_taken_by_a_click(page: lab.Page, address: str) -> None:
    lab.open_notebook(page, address, PAGES["parallelism"])
    lab.run_panel(page)
    panel = page.locator(PANEL)
    presets = PANELS["parallelism"].presets.items()
    refused = next(name for name, values in presets if _refused("parallelism", values))
    panel.get_by_label("Start from", exact=True).select_option(refused)
    offer = panel.get_by_role("button", name="GPUs:").first
    wanted = offer.inner_text().partition(": ")[2]
    offer.click()
    page.wait_for_function(
        f"() => !document.querySelector('{PANEL} .live-status').innerText.trim()"
    )
    assert panel.get_by_label("GPUs", exact=True).input_value() == wanted


def test_a_config_json_is_pasted_into_parameters(page: lab.Page, address: str) -> None:
    """Over several lines; what is none is refused, and the picture stays.

    A pasted text is counted at once, and the emptied box keeps its height.
    """
    lab.open_notebook(page, address, PAGES["parameters"])
    lab.run_panel(page)
    panel = page.locator(PANEL)
    panel.get_by_label("Or from a file", exact=True).select_option("a config.json, pasted")
    text = panel.get_by_label("The file's text")
    height = text.bounding_box()["height"]
    text.fill("")
    assert text.bounding_box()["height"] == height
    pasted = '{"model_type": "llama", "num_hidden_layers": 5}'
    text.evaluate(
        "(box, text) => { box.value = text; box.dispatchEvent(new Event('paste')); }", pasted
    )
    page.wait_for_function(
        f"() => document.querySelector('{PANEL} .live-answer').innerHTML"
        ".includes('5 layers, from first to last')"
    )
    text.fill('{\n  "model_type": "llama",\n  "num_hidden_layers": 3\n}')
    page.keyboard.press("Tab")
    page.wait_for_function(
        f"() => document.querySelector('{PANEL} .live-answer').innerHTML"
        ".includes('3 layers, from first to last')"
    )
    text.fill('{"model_type": "gemma3", "text_config": {}}')
    page.keyboard.press("Tab")
    page.wait_for_function(
        f"() => document.querySelector('{PANEL} .live-status').innerText"
        ".includes('in text_config is unknown')"
    )
    assert panel.locator(".live-old").count() == 1
    assert "3 layers, from first to last" in answer(page)


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_a_saved_drawing_is_as_dark_as_the_page(tmp_path: Path, theme: str) -> None:
    """In a notebook that is trusted; in another the light image shows in any theme."""
    trusted, other = (tmp_path / "notebooks" / PAGES[x] for x in ("parameters", "flops"))
    with lab.jupyterlab(tmp_path, theme) as address, lab.chromium() as browser:
        lab.trust(tmp_path, theme, trusted)
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        lab.open_notebook(page, address, trusted.name)
        assert images_shown(page) == {"night" if "Dark" in theme else "day"}
        lab.open_notebook(page, address, other.name)
        assert images_shown(page) == {"day"}


def images_shown(page: lab.Page) -> set[str]:
    """Which of each drawing's two images is seen: one of the two, and the same in all."""
    drawings = page.locator(".jp-OutputArea-output .wt")
    expect(drawings.nth(2)).to_be_attached()
    images = drawings.evaluate_all(
        """drawings => drawings.filter(one => !one.closest("details:not([open])")).map(
            one => [...one.querySelectorAll("img")].filter(img => img.checkVisibility())
                .map(img => img.className).join())"""
    )
    return set(images)


@contextmanager
def notebook_of(
    folder: Path, *sources: str, slow: float = 1, touch: bool = False
) -> Iterator[lab.Page]:
    """A notebook with these cells in a JupyterLab, on a processor that many times slower."""
    path = folder / "lab" / "notebooks" / "faces.ipynb"
    with lab.jupyterlab(folder / "lab") as address, lab.chromium() as browser:
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
        page = browser.new_page(viewport={"width": 1366, "height": 768}, has_touch=touch)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        lab.open_notebook(page, address, path.name)
        if slow > 1:
            page.context.new_cdp_session(page).send(
                "Emulation.setCPUThrottlingRate", {"rate": slow}
            )
        lab.run_panel(page)
        yield page
        assert not [error for error in errors if LATE not in error]


KINDS = ["ring", "gradients", "size_price", "attention_square"]
"""Handles with every kind of control."""

LATE = "[anywidget] Failed to initialize model"
"""What anywidget says after two seconds, when its own way for messages ends."""

RING = 'from llmtrain_course import handle\nring = handle("ring")\nring'
PRICE = 'from llmtrain_course import handle\nprice = handle("size_price")\nprice'
MAP = 'from llmtrain_course import handle\nhandle("decision")'


def test_a_handle_is_moved_by_keyboard_and_played(tmp_path: Path) -> None:
    """Beside its picture in a wide window, above it in a narrow one; no other follows."""
    with notebook_of(tmp_path, RING, 'handle("ring")') as page:
        expect(page.locator(".live-handle.live-on")).to_have_count(2)
        ring, other = page.locator(".live-handle").all()
        untouched = other.locator(".live-answer").inner_html()

        first, second = ring.locator("input[type=range]").all()
        first.focus()
        page.keyboard.press("ArrowRight")
        expect(ring.get_by_text("turn 3 of 30")).to_be_visible(timeout=20_000)
        expect(ring.get_by_label("GPUs", exact=True)).to_have_value("16")
        second.focus()
        page.keyboard.press("ArrowRight")
        expect(ring.get_by_text("turn 4 of 30")).to_be_visible(timeout=20_000)

        page.wait_for_timeout(1500)
        turn = ring.get_by_label("Turn", exact=True)
        expect(turn).to_have_value("4")  # it does not move by itself
        ring.get_by_role("button", name="Play").focus()
        page.keyboard.press("Enter")
        expect(turn).not_to_have_value(re.compile("^[45]$"), timeout=20_000)
        page.keyboard.press("Enter")
        expect(ring.get_by_role("button", name="Play")).to_be_visible(timeout=20_000)
        page.wait_for_timeout(500)  # what was on its way
        paused = turn.input_value()
        page.wait_for_timeout(1500)
        expect(turn).to_have_value(paused)
        turn.fill("29")
        page.keyboard.press("Enter")
        ring.get_by_role("button", name="Play").click()
        expect(ring.get_by_text("Every GPU has every finished piece.")).to_be_visible(
            timeout=20_000
        )
        expect(ring.get_by_role("button", name="Play")).to_be_visible(timeout=20_000)

        assert other.locator(".live-answer").inner_html() == untouched
        assert beside(ring)
        assert ring.bounding_box()["height"] < 600  # picture and controls in one window
        page.set_viewport_size({"width": 800, "height": 768})
        page.wait_for_function("() => document.querySelector('.live-handle').clientWidth < 700")
        assert not beside(ring)
        assert ring.bounding_box()["height"] < 660


def test_a_mark_is_dragged_and_a_second_view_follows(tmp_path: Path) -> None:
    """And after the page is loaded again the kernel's state is still there."""
    with notebook_of(tmp_path, PRICE, "price") as page:
        expect(page.locator(".live-handle.live-on")).to_have_count(2)
        one, two = page.locator(".live-handle").all()
        field, same = (view.get_by_label("Size", exact=True) for view in (one, two))
        expect(field).to_have_value("1")
        x, y = center(one.locator("[data-moves]").first)
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x - 120, y, steps=5)
        page.mouse.up()
        expect(field).not_to_have_value("1", timeout=20_000)
        dragged = field.input_value()
        assert float(dragged) < 1
        expect(same).to_have_value(dragged)
        page.keyboard.press("Control+s")
        page.wait_for_timeout(1500)
        page.reload()
        lab.wait_until_idle(page)
        again = page.locator(".live-handle.live-on").first.get_by_label("Size", exact=True)
        expect(again).to_have_value(dragged, timeout=20_000)
        page.locator(".live-handle input[type=range]").first.focus()
        page.keyboard.press("ArrowRight")
        expect(again).not_to_have_value(dragged, timeout=20_000)


def test_a_bit_is_flipped_by_a_click_and_by_enter(tmp_path: Path) -> None:
    with notebook_of(tmp_path, 'from llmtrain_course import handle\nhandle("eight_bits")') as page:
        live = page.locator(".live-handle.live-on")
        field = live.get_by_label("Number", exact=True)
        expect(field).to_have_value("6")
        live.locator("[data-sets]").last.click()
        expect(field).to_have_value("6.5", timeout=20_000)
        live.locator("[data-sets]").first.focus()
        page.keyboard.press("Enter")
        expect(field).to_have_value("-6.5", timeout=20_000)
        expect(live.locator("[data-sets]").first).to_be_focused()
        page.keyboard.press("Enter")
        expect(field).to_have_value("6.5", timeout=20_000)


def test_a_finger_drags_a_mark_and_scrolls_the_page_elsewhere(tmp_path: Path) -> None:
    """Upwards too; below the mark is the page's. A tap plays."""
    with notebook_of(tmp_path, PRICE, RING, touch=True) as page:
        price, ring = page.locator(".live-handle.live-on").all()
        field = price.get_by_label("Size", exact=True)
        expect(field).to_have_value("1")
        x, y = center(price.locator("[data-moves]").first)
        swipe(page, x, y, -6, -14)
        expect(field).not_to_have_value("1", timeout=20_000)
        assert float(field.input_value()) < 1
        assert page.evaluate(SCROLLED) == 0
        dragged = field.input_value()
        swipe(page, x, y - 150, -6, -14)
        page.wait_for_function(f"() => {SCROLLED} > 50")
        expect(field).to_have_value(dragged)

        turn = ring.get_by_label("Turn", exact=True)
        first = turn.input_value()
        ring.get_by_role("button", name="Play").tap()
        expect(turn).not_to_have_value(first, timeout=20_000)
        ring.get_by_role("button", name="Pause").tap()


SCROLLED = "document.querySelector('.jp-WindowedPanel-outer').scrollTop"
"""How far the notebook is scrolled, in pixels."""


def center(place: lab.Locator) -> tuple[float, float]:
    """The middle of something in the window."""
    box = place.bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_mark_on_a_plane_is_dragged_to_the_side_and_up_by_mouse_and_finger(
    tmp_path: Path,
) -> None:
    with notebook_of(tmp_path, MAP, touch=True) as page:
        plane = page.locator(".live-handle.live-on")
        fields = [plane.get_by_label(name, exact=True) for name in ("Model", "Tokens")]
        size, tokens = map(expect, fields)
        size.to_have_value("8B")
        tokens.to_have_value("1T")
        x, y = center(plane.locator("[data-moves]"))
        page.mouse.move(x + 3, y - 3)  # off its middle, as a hand takes it
        page.mouse.down()
        page.mouse.move(x + 60, y + 90, steps=8)
        page.mouse.up()
        size.not_to_have_value("8B", timeout=20_000)
        tokens.not_to_have_value("1T")
        expect(plane).not_to_have_class(re.compile("live-busy"))
        dragged = [units.read(field.input_value()) for field in fields]
        assert dragged[0] > 8e9
        assert dragged[1] < 1e12
        expect(plane.locator(".live-answer")).to_contain_text(f"on {units.short(dragged[1])}")
        x, y = center(plane.locator("[data-moves]"))
        swipe(page, x, y, -8, 0)
        size.not_to_have_value(units.short(dragged[0]), timeout=20_000)
        tokens.to_have_value(units.short(dragged[1]))
        assert units.read(fields[0].input_value()) < dragged[0]
        assert page.evaluate(SCROLLED) == 0


def swipe(page: lab.Page, x: float, y: float, right: float, down: float) -> None:
    """A finger's way from there, in ten steps of that many pixels."""
    finger = page.context.new_cdp_session(page)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        places = [{"x": x, "y": y} for x, y in points]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})
        page.wait_for_timeout(40)

    touch("touchStart", (x, y))
    for step in range(1, 11):
        touch("touchMove", (x + right * step, y + down * step))
    touch("touchEnd")


def test_keys_in_a_face_are_the_faces_and_with_ctrl_they_are_labs(tmp_path: Path) -> None:
    """A letter in a list adds no cell; what's saved has no widget's state."""
    with notebook_of(
        tmp_path, "from llmtrain_course.panels import plan_panel\nplan_panel()"
    ) as page:
        panel = page.locator(PANEL)
        for place in ("select", "input[type=range]", "button"):
            panel.locator(place).first.focus()
            for key in "abxdd":
                page.keyboard.press(key)
        page.wait_for_timeout(500)
        assert page.locator(".jp-Cell").count() == 1
        panel.locator("input[type=range]").first.focus()
        page.keyboard.press("Control+s")
        page.wait_for_timeout(1500)
        notebook = nbformat.read(tmp_path / "lab" / "notebooks" / "faces.ipynb", 4)
        assert "widgets" not in notebook.metadata
        [output] = notebook.cells[0].outputs
        assert "<img" in output.data["text/html"]


@pytest.mark.skipif(not lab.AXE.exists(), reason="make site installs axe-core")
def test_axe_finds_nothing_in_a_face_in_any_theme(tmp_path: Path) -> None:
    """Lists, flags, fields, sliders and Play, a refusal, and all folds open."""
    cells = [f'from llmtrain_course import handle\nhandle("{name}")' for name in KINDS]
    cells += [
        f"from llmtrain_course.panels import {word}_panel\n{word}_panel()"
        for word in ("start_here", "precision", "plan")
    ]
    with notebook_of(tmp_path, *cells) as page:
        expect(page.locator(".live-panel.live-on")).to_have_count(len(cells))
        refused = page.locator(PANEL).last.locator("input[type=text]").first
        refused.fill("a lot")
        refused.blur()
        expect(page.locator(PANEL).last.locator(".live-status")).to_contain_text("isn't a number")
        for theme in ("Light", "Dark", "Dark High Contrast"):
            lab.choose_theme(page, f"JupyterLab {theme}")
            violations, measured = lab.axe(page, ".live-panel")
            assert not violations, theme
            assert measured > 100, theme


def test_who_moves_a_face_without_a_kernel_is_told(tmp_path: Path) -> None:
    with notebook_of(tmp_path, PRICE) as page:
        page.locator(".lm-MenuBar-itemLabel", has_text="Kernel").click()
        page.locator(".lm-Menu-itemLabel:text-is('Restart Kernel…')").click()
        page.locator(".jp-Dialog button:has-text('Restart')").click()
        page.wait_for_timeout(3000)
        page.locator(".live-handle input[type=range]").first.focus()
        page.keyboard.press("ArrowRight")
        status = page.locator(".live-handle .live-status")
        expect(status).to_contain_text("run this cell again", timeout=20_000)
        expect(page.locator(".live-handle .live-answer svg")).to_be_visible()


def test_every_face_moves_in_a_browser_that_is_twenty_times_slower(tmp_path: Path) -> None:
    """anywidget drops all messages of a face that takes over two seconds to start."""
    names = [*HANDLES][::10]
    cells = [f'from llmtrain_course import handle\nhandle("{name}")' for name in names]
    with notebook_of(tmp_path, *cells, slow=20) as page:
        faces = page.locator(".live-handle.live-on")
        expect(faces).to_have_count(len(names), timeout=240_000)
        for face in faces.all():
            before = face.locator(".live-answer").inner_html()
            control = face.locator("input[type=range], select, input[type=checkbox]").first
            kind = control.evaluate("one => one.type")
            if kind == "range":
                place, last = int(control.input_value()), int(control.get_attribute("max") or 0)
                control.fill(str(place + 1 if place < last else place - 1))
            elif kind == "checkbox":
                control.click()
            else:
                control.select_option(
                    index=1 if control.evaluate("it => it.selectedIndex") == 0 else 0
                )
            page.wait_for_function(
                "([face, before]) => face.querySelector('.live-answer').innerHTML !== before",
                arg=[face.element_handle(), before],
                timeout=180_000,
            )


def beside(panel: lab.Locator) -> bool:
    """Whether a panel's controls stand beside its picture."""
    controls = panel.locator("input[type=range]").first
    picture = panel.locator(".live-answer svg").first
    return controls.bounding_box()["x"] + 20 < picture.bounding_box()["x"]


def _refused(word: str, values: Values) -> bool:
    return bool(PANELS[word].answer(values).problem)


def answer(page: lab.Page) -> str:
    return page.locator(f"{PANEL} .live-answer").inner_html()


def picture(place: lab.Locator | lab.Page, request: pytest.FixtureRequest, kind: str) -> None:
    """A picture in artifacts/, named by theme, width and page."""
    if FULL or kind == "panel":
        ARTIFACTS.mkdir(exist_ok=True)
        name = request.node.name.partition("[")[2].rstrip("]").replace("/", "-")
        place.screenshot(path=ARTIFACTS / f"{name}-{kind}.png")
