"""Guesses, exercises and changed cells, one page each."""

from __future__ import annotations

import re

import pytest
from driver import CHAPTERS, judge_here, start
from playwright.sync_api import Locator, Page, expect

from llmtrain_course.exercises import EXERCISES
from llmtrain_course.kit.ids import chapter_of

TURN = '[data-turn="{}"]'


def test_a_choice_is_made_by_buttons_asks_again_and_the_last_hint_leads_to_the_answer(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/notebooks/start_here.html")

    form = page.locator('.live-form[data-id="start_here-b"]')
    verdict = form.locator(".live-verdict")
    assert "“In a day they do 1.94 ZFLOP/s.”" in form.locator("label").nth(1).inner_text()
    form.locator("input[value=A]").check()
    form.get_by_role("button", name="Check").click()
    expect(verdict).to_contain_text("Here's a different question instead:")
    expect(form.locator("fieldset")).to_contain_text("“In a day they do 1.94 ZFLOP/s.”")
    page.reload()  # both questions are there again
    expect(form.locator("fieldset")).to_be_visible()
    form.locator("input[type=text]").fill("40.3 EFLOP")
    page.keyboard.press("Enter")
    expect(verdict).to_contain_text("✓ start_here-b")
    form.locator("summary").click()
    expect(form.locator("textarea")).to_have_value(re.compile('^answer = "40.3 EFLOP"  # '))
    form.locator("textarea").fill("answer = TP 2")
    form.get_by_role("button", name="Run", exact=True).click()
    expect(verdict).to_have_text('Line 1: put words in quotes, answer = "TP 2"')

    form = page.locator('.live-form[data-id="start_here-a"]')
    hints = set()
    for _ in range(3):
        form.locator("textarea").fill("check('start_here-a', '25 days')")
        form.locator("button").first.click()
        expect(form.locator(".live-verdict progress")).to_have_count(0)
        hints.add(form.locator(".live-verdict p").inner_text())
    assert len(hints) == 3
    page.locator('[data-id="start_here-a"] .live-verdict a').click()
    expect(page).to_have_url(f"{address}/notebooks/solutions/start_here.html#start_here-a")
    expect(page.locator('[id="start_here-a"]')).to_be_in_viewport()


CHOICES = {id: one for id, one in EXERCISES.items() if getattr(one, "options", None)}


@pytest.mark.parametrize("id", CHOICES)
def test_a_choice_stays_on_the_page_and_after_a_wrong_one_the_next_question_counts(
    page: Page, address: str, id: str
) -> None:
    options = {one: bool(CHOICES[id].grade(one)[0]) for one in CHOICES[id].options}
    wrong = next(one for one, ok in options.items() if not ok)
    right = next(one for one, ok in options.items() if ok)
    page.goto(f"{address}/notebooks/{chapter_of(id)}.html")
    judge_here(page)
    form = page.locator(f'.live-form[data-id="{id}"]')
    verdict, first, second = (form.locator(x) for x in (".live-verdict", *map(TURN.format, (0, 1))))
    sentences = first.inner_text()

    def answered(reply: str) -> bool:
        form.get_by_role("button", name="Check").click()
        expect(verdict).to_contain_text(reply)
        assert first.is_visible()
        assert first.inner_text() == sentences
        return bool(page.evaluate("id => JSON.parse(localStorage.llmtrain).done[id]", id))

    first.locator(f"input[value='{wrong}']").check()
    assert not answered(f"✗ {id}")
    if not CHOICES[id].followups:
        first.locator(f"input[value='{right}']").check()
        assert answered(f"✓ {id}")
        return
    [question] = CHOICES[id].followups
    expect(second).to_contain_text(question.text[1:])
    first.locator(f"input[value='{right}']").check()
    assert not answered("Right this time")
    second.locator("input").fill("9e30")
    assert not answered("Too high")
    expect(second).to_contain_text(question.text[1:])
    second.locator("input").fill(repr(question.exercise.key()))
    assert answered(f"✓ {id}")
    assert second.is_visible()


def test_options_have_buttons_and_long_ones_stand_each_on_its_own_line(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/notebooks/{CHAPTERS[0]}.html")
    judge_here(page)
    for id, column in (("start_here-b", True), ("start_here-d", False)):
        options = page.locator(f'.live-form[data-id="{id}"] label:has([type=radio])').all()
        lefts = {round(one.bounding_box()["x"]) for one in options}
        assert (len(lefts) == 1) == column, id
    form = page.locator('.live-form[data-id="start_here-d"]')
    assert form.locator("label:has([type=radio]):visible").count() == 5
    form.get_by_label("8B", exact=True).check()
    form.get_by_role("button", name="Check").click()
    expect(form.locator(".live-verdict")).to_contain_text("start_here-d: 8B gets")


def test_what_is_stored_comes_back_as_text_and_nonsense_is_left_out(
    page: Page, address: str
) -> None:
    store = """evil => {
        const cells = {};
        for (const form of document.querySelectorAll(".live-form")) {
            const source = form.querySelector("textarea")?.defaultValue;
            cells[form.dataset.id] = {source, written: 7, html: evil, told: evil};
        }
        const tries = "[".repeat(1e5) + "]".repeat(1e5);
        const text = JSON.stringify({cells, done: 3, guesses: {"duration-guess": {}}});
        localStorage.setItem("llmtrain", `${text.slice(0, -1)}, "tries": ${tries}}`);
    }"""
    evil = '<img class="evil" src="x" onerror="document.title = 1">'
    page.goto(f"{address}/notebooks/duration.html")
    page.evaluate(store, evil)
    page.reload()
    start(page)
    assert page.locator(".evil").count() == 0
    assert evil in page.locator(".live-verdict").all_inner_texts()


def test_no_script_of_anybody_elses_runs_in_a_page(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/duration.html")
    for put in ("innerHTML = '<img src=x onerror=\"document.title = 1\">'", "append(script)"):
        with page.expect_console_message(lambda line: "Content Security Policy" in line.text):
            page.evaluate(
                f"""() => {{
                    const script = document.createElement("script");
                    script.textContent = "document.title = 1";
                    document.querySelector(".live-note").{put};
                }}"""
            )
    missing = "() => performance.getEntriesByName(new URL('x', location)).length"
    page.wait_for_function(missing)  # the picture that isn't there was asked for, too
    assert page.title() != "1"
    page.wrong.clear()


def test_a_changed_cell_is_what_later_ones_rest_on(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/start_here.html")
    judge_here(page)
    for _ in range(2):
        page.locator(".live-open:visible").first.click()  # the next one is the first, then
    first, later = page.locator(".live-form[data-closed]:visible").all()

    def run(form: Locator, source: str) -> None:
        form.locator("textarea").fill(source)
        form.locator("textarea").press("Shift+Enter")

    run(first, "weeks = 6")
    expect(first.locator(".live-verdict")).to_have_text("It ran without printing anything.")
    run(later, "weeks * 7")
    expect(later.locator(".live-verdict")).to_have_text("42")
    run(first, "weeks = 7")
    expect(later.locator(".live-verdict")).to_have_text("49")  # it follows by itself


def test_a_cell_that_never_ends_can_be_stopped(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/{CHAPTERS[0]}.html")
    form = page.locator(".live-form:has(textarea):not([data-closed])").first
    form.locator("textarea").fill("while True: pass")
    form.locator("button").first.click()
    form.get_by_role("button", name="Stop it").click(timeout=60_000)
    form.locator("textarea").fill("6 * 7")
    form.locator("button").first.click()
    form.locator(".live-verdict pre").wait_for(timeout=60_000)
    assert form.locator(".live-verdict").inner_text().strip() == "42"


def test_what_was_saved_for_the_example_says_so_once_a_run_is_set(page: Page, address: str) -> None:
    """Until such a cell is run: "yours" in its saved picture is the example's."""
    note = page.get_by_text("This is still the course's example.")
    page.goto(f"{address}/notebooks/finetune.html")
    expect(page.locator(".live-open:visible").first).to_be_visible()
    expect(note).to_have_count(0)
    page.evaluate("""localStorage.setItem("llmtrain", JSON.stringify(
        {guesses: {}, run: {gpus: 64, days: 14, chip: "H100 SXM"}}))""")
    for chapter, cells in (("budget", 2), ("finetune", 1)):
        page.goto(f"{address}/notebooks/{chapter}.html")
        expect(note).to_have_count(cells)
        note.first.locator("xpath=ancestor::div[contains(@class, 'live-source')]").locator(
            ".live-open"
        ).click()
        expect(note.first).not_to_be_visible()
        verdict = page.locator("form[data-example] .live-verdict").first
        expect(verdict).to_contain_text("yours: 64 × H100 SXM for 14 days")
