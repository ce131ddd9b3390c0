"""Panels that a link sets or the keyboard moves, and handles, with Python and without."""

from __future__ import annotations

import re
from functools import cache
from urllib.parse import urlencode

import cells
import markup
import prerender
import pytest
from driver import AXE, CHAPTERS, SITE, TELEPHONE, middle, painted, same, wait_for_panel
from playwright.sync_api import Browser, Locator, Page, expect

from llmtrain_course.kit.state import State
from llmtrain_course.panels import HANDLES, PANELS
from llmtrain_course.parameters.handles import PASTED


def test_a_link_carries_the_panel_and_a_wrong_one_is_told(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/duration.html?tokens=3e12&num_gpus=512")
    wait_for_panel(page)
    state = State(PANELS["duration"])
    state.set(tokens="3e12", num_gpus="512")
    assert same(page, state.html)
    assert page.input_value("#duration-num_gpus") == "512"
    page.fill("#duration-num_gpus", "1024")
    page.press("#duration-num_gpus", "Enter")
    page.wait_for_url("**/*tokens=3000000000000")
    page.goto(f"{address}/notebooks/duration.html?num_gpus=<img src=x onerror=alert(1)>&x=1")
    wait_for_panel(page)
    assert "isn't a number" in page.inner_text("#panel .live-status")
    assert page.locator(".live-panel img[src=x]").count() == 0
    assert same(page, State(PANELS["duration"]).html)


TYPED = """() => {
  const write = (name, text, event) => {
    const field = document.getElementById(`duration-${name}`);
    field.focus();
    field.value = text;
    field.dispatchEvent(new Event(event));
  };
  write("tokens", "3T", "change");
  write("num_gpus", "512", "change");
  write("percent", "4", "input");
}"""
"""Two fields are written, and somebody begins to type into a third before an answer comes."""


def test_what_is_written_while_an_answer_is_awaited_is_not_lost(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/duration.html?num_gpus=256")
    wait_for_panel(page)
    page.evaluate(TYPED)
    page.wait_for_function("() => !document.querySelector('#panel.live-busy')")
    state = State(PANELS["duration"])
    state.set(num_gpus="256")
    state.write("tokens", "3T")
    state.write("num_gpus", "512")
    assert same(page, state.html)
    assert page.input_value("#duration-percent") == "4"


def test_a_link_with_a_file_that_nests_deeply_is_told(page: Page, address: str) -> None:
    link = urlencode({"model": PASTED, "config": "[" * 7000})
    page.goto(f"{address}/notebooks/parameters.html?{link}")
    wait_for_panel(page)
    assert "nest deeper than 100" in page.inner_text("#panel .live-status")


def test_panels_are_handled_by_keyboard(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/duration.html")
    page.focus("#panel .live-start")
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel.live-on .live-answer svg", timeout=60_000)
    answer = page.locator("#panel .live-answer p").first
    before = answer.inner_text()
    for _ in range(5):  # Reset, the link, tokens, their slider
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.type") == "range":
            break
    page.keyboard.press("ArrowRight")
    expect(answer).not_to_have_text(before, use_inner_text=True)
    expect(page.locator("#panel .live-announcement")).not_to_be_empty()


PLACE = "<!-- handles -->"


@cache
def template() -> str:
    """A chapter without its handles, and a place for others before its panel."""
    soup = markup.parse((SITE / "notebooks" / "duration.html").read_text("utf-8"))
    for own in soup.select(".live-handle"):
        own.find_parent(class_="cell").decompose()
    soup.select_one("#panel").find_parent(class_="cell").insert_before(PLACE)
    return soup.decode(formatter=None)


def with_handles(page: Page, address: str, *names: str) -> Locator:
    """Open a page that has these handles before its panel, marked as a build marks them."""
    marked = []
    for at, name in enumerate(names):
        saved = f'<div class="output text_html">{HANDLES[name].static_html()}</div>'
        built = markup.parse(f'<div class="cell"><div class="cell_output">{saved}</div></div>')
        cells.mark_cell(built.div, at, f'handle("{name}")', True)
        prerender.draw(built)
        marked.append(str(built))
    text = template().replace(PLACE, "".join(marked))
    page.route("**/handles.html*", lambda route: route.fulfill(body=text, status=200))
    page.goto(f"{address}/notebooks/handles.html")
    page.evaluate("document.fonts.ready")
    return page.locator(".live-handle")


def test_a_handle_moves_at_once_and_without_python(page: Page, address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    handles = with_handles(page, address, "ring", "attention_square", "gpus_and_days")
    expect(handles.nth(0).locator("svg:visible")).to_have_count(1)
    handles.nth(0).get_by_label("Turn, slider").press("ArrowRight")
    expect(handles.nth(0).get_by_text("turn 4 of 14")).to_be_visible()
    handles.nth(1).get_by_label("Causal: no token looks ahead").check()
    expect(handles.nth(1).get_by_text("136 of 256 pairs")).to_be_visible()
    field = handles.nth(2).get_by_label("GPUs", exact=True)
    field.fill("4096")  # a stop, which is written 4,096
    field.press("Tab")
    expect(handles.nth(2).locator("p b", has_text="17.5 days")).to_be_visible()
    expect(field).to_have_value("4,096")
    assert not [url for url in asked if "pyodide" in url]


HEIGHTS = """async ([live, most]) => {
    const heights = [];
    for (const slider of live.querySelectorAll("input[type=range]")) {
        const [first, last] = [Number(slider.value), Number(slider.max)];
        const step = Math.max(1, Math.floor(last / most));
        for (let stop = 0; stop <= last; stop += step) {
            slider.value = stop;
            slider.dispatchEvent(new Event("input"));
            while (live.classList.contains("live-busy")) await new Promise(requestAnimationFrame);
            heights.push(live.getBoundingClientRect().height);
        }
        slider.value = first;
        slider.dispatchEvent(new Event("input"));
        while (live.classList.contains("live-busy")) await new Promise(requestAnimationFrame);
    }
    return heights;
}"""


def test_nothing_below_a_handle_moves_while_its_sliders_do(page: Page, address: str) -> None:
    """On a phone: its picture keeps its canvas, and there's room for its longest sentence."""
    page.set_viewport_size(TELEPHONE)
    jumps = {}
    for live, name in zip(with_handles(page, address, *HANDLES).all(), HANDLES, strict=True):
        live.scroll_into_view_if_needed()
        expect(live.locator(".live-answer[data-longest]")).to_have_count(1)
        page.wait_for_timeout(100)  # its pictures have come, and with them its longest sentence
        if heights := page.evaluate(HEIGHTS, [live.element_handle(), 5]):
            jumps[name] = max(heights) - min(heights)
    assert len(jumps) > 40
    assert {name for name, by in jumps.items() if by > 1} == set()


def test_each_handle_has_a_state_of_its_own_and_leaves_the_address_alone(
    page: Page, address: str
) -> None:
    one, other = with_handles(page, address, "ring", "ring").all()
    before = one.locator(".live-answer").inner_html()
    other.get_by_label("GPUs, slider").press("ArrowRight")
    expect(other.get_by_text("turn 3 of 30")).to_be_visible()
    assert one.locator(".live-answer").inner_html() == before
    assert other.get_by_label("Turn", exact=True).input_value() == "3"
    expect(other.get_by_label("Turn, slider")).to_have_attribute("max", "30")
    assert page.url == f"{address}/notebooks/handles.html"


def test_what_no_picture_shows_python_draws_and_goes_on_from_there(
    page: Page, address: str
) -> None:
    [machine] = with_handles(page, address, "machine").all()
    expected = State(HANDLES["machine"])
    for name, written in {"num_gpus": "64", "days": "90", "parameters": "70B"}.items():
        field = machine.locator(f"#handle-0-{name}")
        field.fill(written)
        field.press("Enter")
        expected.write(name, written)
        words = re.sub("<[^>]*>", " ", expected.html).split()
        expect(machine.locator(".live-answer")).to_contain_text(words[-1])
        expect(machine).not_to_have_class(re.compile("live-busy"))
        assert machine.locator(".live-answer").inner_html() == as_a_browser(page, expected.html)
    field.fill("a lot")
    field.press("Enter")
    expect(machine.locator(".live-status")).to_contain_text("isn't a number")
    assert field.input_value() == "a lot"
    machine.get_by_label("GPUs, slider").press("ArrowRight")
    expect(machine.locator("#handle-0-num_gpus")).to_have_value("128")


@pytest.mark.parametrize(
    ("chapter", "name", "control", "written"),
    [
        ("communication", "ring", "gpus", "a few"),
        ("communication", "ring", "gpus", "65"),
        ("communication", "ring", "gpus", "2.5"),
        ("communication", "ring", "turn", "-1"),
        ("duration", "gpus_and_days", "num_gpus", "1,000,000"),
        ("duration", "promise", "percent", "99"),
    ],
)
def test_what_a_field_refuses_is_said_without_python(
    page: Page, address: str, chapter: str, name: str, control: str, written: str
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/notebooks/{chapter}.html", wait_until="networkidle")
    figure = page.locator(f"#fig-{name}")
    field = figure.locator(f"input[type=text][id$={control}]")
    field.fill(written)
    field.press("Enter")
    state = State(HANDLES[name])
    state.write(control, written)
    assert state.problem
    expect(figure.locator(".live-status")).to_have_text(f"⚠ Not possible. {state.problem}")
    assert not any("pyodide" in url for url in asked)
    field.fill(HANDLES[name].controls[control].typed(state.values[control]))
    field.press("Enter")
    expect(figure.locator(".live-status")).to_have_text("")


def test_what_was_not_measured_is_drawn_as_the_nearest_and_the_field_says_so(
    page: Page, address: str
) -> None:
    [message] = with_handles(page, address, "message").all()
    field = message.locator("#handle-0-size")
    field.fill("500")
    field.press("Enter")
    expect(message.locator(".live-echo")).to_have_text("512 is the nearest")
    expect(field).to_have_value("500")
    expect(message.locator(".live-answer")).to_contain_text("A 512 MiB message")


def as_a_browser(page: Page, html: str) -> str:
    """HTML as a browser writes it down again."""
    again = """html => {
        const answer = document.createElement("div");
        answer.innerHTML = html;
        return answer.innerHTML;
    }"""
    return str(page.evaluate(again, html))


def test_a_handle_plays_to_its_end_when_told_and_can_be_paused(page: Page, address: str) -> None:
    page.clock.install(time=0)
    [ring] = with_handles(page, address, "ring").all()
    page.clock.pause_at(60_000)
    page.emulate_media(reduced_motion="reduce")
    turn = ring.get_by_label("Turn", exact=True)
    page.clock.run_for(3000)
    assert turn.input_value() == "3"  # it does not move by itself
    play = ring.locator(".live-play")
    play.focus()
    page.keyboard.press("Enter")
    expect(turn).to_have_value("0")  # from the beginning, whatever the picture showed
    page.keyboard.press("Enter")
    expect(play).to_have_text("Play")
    page.clock.run_for(3000)
    expect(turn).to_have_value("0")
    turn.fill("12")
    page.keyboard.press("Enter")
    expect(ring.get_by_text("turn 12 of 14")).to_be_visible()
    play.focus()
    page.keyboard.press("Enter")
    expect(turn).to_have_value("13")
    expect(ring).not_to_have_class(re.compile("live-busy"))
    page.clock.run_for(3000)
    answer = ring.locator(".live-answer")
    expect(answer).to_contain_text("Every GPU has every finished piece.")
    expect(play).to_have_text("Play")
    page.keyboard.press("Enter")  # once more, from the start
    expect(turn).to_have_value("0")


def test_a_hand_on_the_slider_takes_over_from_play(page: Page, address: str) -> None:
    page.clock.install(time=0)
    page.goto(f"{address}/notebooks/budget.html")
    page.clock.pause_at(60_000)
    live = page.locator('.live-handle[data-word="handle:repeated"]')
    live.get_by_role("button", name="Play").click()
    slider = live.locator("input[type=range]").first
    slider.press("End")
    page.clock.run_for(3000)
    expect(live.get_by_role("button", name="Play")).to_be_visible()
    expect(slider).to_have_value(slider.get_attribute("max"))
    assert "Error" not in live.inner_text()


@pytest.mark.parametrize(("width", "where"), [(1920, "beside"), (1366, "above"), (390, "below")])
def test_a_handles_controls_stand_beside_its_picture_where_it_keeps_its_size(
    page: Page, address: str, width: int, where: str
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    [square] = with_handles(page, address, "attention_square").all()
    controls, picture = (
        square.locator(f".live-{part}").bounding_box() for part in ("controls", "picture")
    )
    places = {
        "beside": controls["x"] + controls["width"] <= picture["x"],
        "above": controls["y"] + controls["height"] <= picture["y"],
        "below": picture["y"] < controls["y"] - 100,
    }
    assert [name for name, it_is in places.items() if it_is] == [where]
    before = square.bounding_box()["height"]
    expect(square.get_by_label("Window", exact=True)).not_to_be_visible()
    square.get_by_label("Causal: no token looks ahead").check()
    expect(square.get_by_text("136 of 256 pairs")).to_be_visible()
    expect(square.get_by_label("Window", exact=True)).to_be_visible()
    if width == 1366:  # nothing jumps; on a telephone a sentence may take a line more
        assert square.bounding_box()["height"] == before
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(AXE.read_text("utf-8"))
    run = """async () => (await axe.run({include: [[".live-handle"]]})).violations.flatMap(
        rule => rule.nodes.map(node => [rule.id, node.html.slice(0, 120)]))"""
    assert page.evaluate(run) == []


@pytest.mark.parametrize("word", ["ring", "machine", "time_line"])
def test_on_a_telephone_picture_and_slider_are_seen_together(
    browser: Browser, address: str, word: str
) -> None:
    context = browser.new_context(viewport=TELEPHONE)
    page = context.new_page()
    name = next(
        n for n in CHAPTERS if f"handle:{word}" in (SITE / f"notebooks/{n}.html").read_text("utf-8")
    )
    page.goto(f"{address}/notebooks/{name}.html")
    live = page.locator(f'.live-handle[data-word="handle:{word}"]')
    live.locator("input[type=range]").first.press("ArrowRight")
    top = live.locator(".live-answer")
    scroll = "scrollTo({{ top: scrollY + one.getBoundingClientRect().{}, behavior: 'instant' }})"
    top.evaluate(f"one => {scroll.format('top - 70')}")
    painted(page)
    picture = live.locator(".live-answer svg").first.bounding_box()
    assert picture["x"] >= 0
    assert picture["x"] + picture["width"] <= 390
    assert 0 <= picture["y"] < 250  # below what it says
    for slider in live.locator("input[type=range]").all():
        assert picture["y"] + 150 < slider.bounding_box()["y"] < 844
    live.evaluate(f"one => {scroll.format('bottom - innerHeight')}")
    painted(page)
    picture = live.locator(".live-answer svg").first.bounding_box()
    assert picture["y"] + picture["height"] <= live.locator(".live-controls").bounding_box()["y"]
    context.close()


DRAGGED = {
    name: control
    for name, handle in HANDLES.items()
    for control in re.findall(r'data-moves="([\w ]+)"', handle.answer(handle.default).html)
}
"""The handles in whose pictures one drags a mark, and the control that it moves, or two."""
ONE_WAY = {word: control for word, control in DRAGGED.items() if " " not in control}


def test_a_mark_is_dragged_to_the_nearest_stop(page: Page, address: str) -> None:
    handles = with_handles(page, address, *ONE_WAY)
    for live, (word, control) in zip(handles.all(), ONE_WAY.items(), strict=True):
        live.scroll_into_view_if_needed()
        expect(live.locator(f"[data-moves={control}]:visible").first).to_be_visible()
        sliders = live.locator("input[type=range]")
        slider = sliders
        if sliders.count() > 1:
            ranged = [key for key, it in HANDLES[word].controls.items() if it.kind == "number"]
            slider = sliders.nth(ranged.index(control))
        place, most = (int(slider.input_value()), int(slider.get_attribute("max")))
        for end in {0, most} - {place}:
            stop = {0: 1, most: most - 1}[end] if most > 2 else end
            there = drawn_at(live, slider, stop, control)
            x, y = drawn_at(live, slider, place, control)
            page.mouse.move(x + 3, y - 3)  # off its middle, as a hand takes it
            page.mouse.down()
            painted(page)
            page.mouse.move(there[0] + 3, there[1] - 3, steps=6)
            page.mouse.up()
            expect(slider).to_have_value(str(stop))
        page.mouse.move(10, 10)  # nothing is held any more
        painted(page)
        expect(slider).to_have_value(str(stop))


def drawn_at(live: Locator, slider: Locator, stop: int, control: str = "") -> tuple[float, float]:
    """Move the slider to a stop, and find where its mark stands then."""
    slider.fill(str(stop))
    expect(live).not_to_have_class(re.compile("live-busy"))
    mark = f"[data-moves={control}]" if control else "[data-moves]"
    return middle(live.locator(f"{mark}:visible").first)


def test_a_mark_on_a_plane_is_dragged_in_two_directions_at_once(page: Page, address: str) -> None:
    """Without Python: to the nearest stop of each control."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    [live] = with_handles(page, address, "decision").all()
    live.scroll_into_view_if_needed()
    sliders = live.locator("input[type=range]")
    size, tokens = (sliders.nth(at) for at in (0, 1))
    begun = [int(slider.input_value()) for slider in (size, tokens)]
    x, y = middle(live.locator("[data-moves]:visible").first)
    right, _ = drawn_at(live, size, begun[0] + 2)
    drawn_at(live, size, begun[0])
    _, low = drawn_at(live, tokens, begun[1] - 4)
    drawn_at(live, tokens, begun[1])
    page.mouse.move(x + 3, y - 3)
    page.mouse.down()
    painted(page)
    page.mouse.move(right + 3, low - 3, steps=6)
    page.mouse.up()
    expect(size).to_have_value(str(begun[0] + 2))
    expect(tokens).to_have_value(str(begun[1] - 4))
    spot = middle(live.locator("[data-moves]:visible").first)
    assert spot == pytest.approx((right, low), abs=1)
    assert not [url for url in asked if "pyodide" in url]


def test_a_bit_is_flipped_by_a_click_and_by_enter(page: Page, address: str) -> None:
    [live] = with_handles(page, address, "eight_bits").all()
    field = live.get_by_label("Number", exact=True)
    live.locator("[data-sets]:visible").last.click()
    expect(field).to_have_value("6.5")
    live.locator("[data-sets]:visible").first.focus()
    page.keyboard.press("Enter")
    expect(field).to_have_value("-6.5")
    expect(live.locator("[data-sets]:visible").first).to_be_focused()


def test_a_finger_drags_a_mark_and_the_page_stays(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport=TELEPHONE, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{address}/notebooks/calendar.html")
    live = page.locator(".live-handle:has([data-moves])").first
    live.scroll_into_view_if_needed()
    slider = live.locator("input[type=range]").first
    before, scrolled = int(slider.input_value()), page.evaluate("scrollY")
    x, y = middle(live.locator("[data-moves]:visible").first)
    finger = context.new_cdp_session(page)

    def touch(kind: str, *at: tuple[float, float]) -> None:
        points = [{"x": left, "y": top} for left, top in at]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        painted(page)

    touch("touchStart", (x + 8, y + 8))  # beside it
    for step in range(1, 9):
        touch("touchMove", (x + 8 - 12 * step, y + 8))
    touch("touchEnd")
    expect(slider).not_to_have_value(str(before))
    assert int(slider.input_value()) < before
    assert page.evaluate("scrollY") == scrolled
    context.close()
