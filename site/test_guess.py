"""Guesses are answered without Python, in the package's words.

make site-test
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from driver import CHAPTERS, SITE, judge_here
from playwright.sync_api import Browser, Page, expect

from llmtrain_course import cells as in_page, exercises
from llmtrain_course.exercises import PREDICTIONS

NUMBERS = [
    "0",
    "-2",
    "−3.5",
    "+7",
    "1e3",
    "2.5E-2",
    "1,024",
    "1,024.5",
    ".5",
    "5.",
    "1_000",
    "1e12",
]
NUMBERS += [f"{digit}e{power}" for digit in (1, 2.7, 6) for power in range(-4, 9)]
WORDS = ["soon", "three", "3,5", "3,5 years", "0,25%", "<b>", "don't", "-"]
LEFT = ["2**5", "1/64", "7 bananas", "2e99", "1e-50", "1e400", "5 lightyears", "9" * 80, "12,34,56"]
"""What people write: numbers, words that are none, and what is left to Python."""

ASK = """async asked => {
    const { answerGuess } = await import("../_static/guess.js?all");
    return asked.map(([id, written, first]) => answerGuess(id, written, first)?.html ?? null);
}"""


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Any:
    """A chapter; what it asks for is kept in `page.asked`."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.asked = []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    yield page
    page.context.close()


def numbers(id: str) -> list[str]:
    """List numbers about a guess's truth and far from it, in its unit and without."""
    truth = float(PREDICTIONS[id].truth())
    near = [f"{truth * share:.4g}" for share in (0.3, 0.51, 0.86, 0.9, 0.99, 1.01, 1.1, 1.6, 2, 9)]
    unit = PREDICTIONS[id].asked
    return [*NUMBERS, *near, *(f"{one} {unit}" for one in near), f"{near[0]}{unit}."]


def test_the_script_says_what_the_package_says(page: Page, address: str) -> None:
    """Of every guess, as the chapters' pages have been told of it."""
    guesses: dict[str, Any] = {}
    for name in CHAPTERS:
        html = (SITE / "notebooks" / f"{name}.html").read_text("utf-8")
        [data] = re.findall(r'<script[^>]* id="live-guesses"[^>]*>(.*?)</script>', html)
        guesses |= json.loads(data)
    assert guesses.keys() == PREDICTIONS.keys()
    page.goto(f"{address}/notebooks/{CHAPTERS[0]}.html")
    page.evaluate(
        "all => { document.getElementById('live-guesses').textContent = all; }", json.dumps(guesses)
    )
    for id, prediction in PREDICTIONS.items():
        answers = [*prediction.options] or [*numbers(id), *WORDS]
        asked = [(id, one, one) for one in answers]
        asked += [(id, one, answers[0 if prediction.options else 14]) for one in answers]
        for (_, written, first), html in zip(asked, page.evaluate(ASK, asked), strict=True):
            exercises._GUESSES.clear()
            in_page.guess(id, first)
            answer = json.loads(in_page.guess(id, written))["html"]
            as_text = answer.replace("&#x27;", "'").replace("&quot;", '"')
            assert html == as_text, (id, written, first)


def test_what_is_rarely_written_is_left_to_python(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/{CHAPTERS[0]}.html")
    asked = [("start_here-guess", one, one) for one in [*LEFT, "300 months", "26 GB"]]
    asked += [("start_here-guess", "3", "300 months")]
    assert page.evaluate(ASK, asked) == [None] * len(asked)


def test_a_guess_is_answered_at_once_and_counts_when_python_comes(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/{CHAPTERS[0]}.html")
    page.asked.clear()
    form = page.locator('form[data-id="start_here-guess"]')
    verdict = form.locator(".live-verdict")
    for written, answer in (
        ("", "You haven't written anything yet."),
        ("soon", "Your guess has to be a number"),
        ("-3", "Your guess has to be more than 0, and this is -3."),
        ("3.5", "You said 3.5. It's 26 years, so you're 7.5× too low."),
        ("40", "First you said 3.5, now you said 40. It's 26 years, so you're 52% too high."),
    ):
        form.locator("input").fill(written)
        form.locator("input").press("Enter")
        expect(verdict).to_contain_text(answer)
        assert form.get_attribute("data-id") not in verdict.inner_text()
    assert not [url for url in page.asked if "pyodide" in url]
    page.reload()
    expect(form.locator("input")).to_have_value("40")
    expect(verdict).to_contain_text("First you said 3.5, now you said 40")
    page.asked.clear()
    form.locator("input").fill("480 months")  # Python says it the same way
    form.locator("button").click()
    expect(verdict).to_contain_text("First you said 3.5, now you wrote 480 months")
    assert any("pyodide" in url for url in page.asked)
    kept = json.loads(page.evaluate("localStorage.llmtrain"))
    assert (kept["guesses"], kept["done"]) == (
        {"start_here-guess": "3.5"},
        {"start_here-guess": True},
    )
    assert (
        "How many years would that take you on eight A100s"
        in kept["cells"]["start_here-guess"]["question"]
    )
    assert len(kept["cells"]["start_here-guess"]["date"]) == len("2026-01-31")


def test_what_python_refuses_takes_no_guess_out_of_the_saved_notebook(
    browser: Browser, address: str
) -> None:
    page = browser.new_page()
    page.goto(f"{address}/notebooks/{CHAPTERS[0]}.html")
    judge_here(page)
    form = page.locator('form[data-id="start_here-guess"]')
    for written, answer in (("3", "→ You said 3. "), ("7 bananas", "○ ")):
        form.locator("input").fill(written)
        form.locator("button").click()
        expect(form.locator(".live-verdict")).to_contain_text(answer)
    kept = json.loads(page.evaluate("localStorage.llmtrain"))["cells"]["start_here-guess"]
    assert (kept["written"], kept["told"][:12]) == ("3", "→ You said 3")
    page.close()


def test_python_keeps_a_guess_that_was_answered_beside_it(page: Page, address: str) -> None:
    page.evaluate("localStorage.clear()")
    page.goto(f"{address}/notebooks/precision.html")
    form = page.locator(".live-form:has(textarea):not([data-closed])").first
    form.locator("button").first.click()  # starts Python
    expect(form.locator(".live-verdict")).to_contain_text("yet")
    guess = page.locator('form[data-id="precision-half"]')
    guess.locator("input").first.check()
    guess.locator("button").click()
    expect(guess.locator(".live-verdict")).to_contain_text("You said 'half'")
    form.locator("button").first.click()
    expect(form.locator(".live-verdict")).to_contain_text("yet")
    assert json.loads(page.evaluate("localStorage.llmtrain"))["guesses"] == {
        "precision-half": "half"
    }


def test_answers_kept_under_ids_with_a_number_are_still_there(page: Page, address: str) -> None:
    url = f"{address}/notebooks/start_here.html"
    page.goto(url)
    form = page.locator('form[data-id="start_here-guess"]')
    form.locator("input").fill("3")
    page.keyboard.press("Enter")
    expect(form.locator(".live-verdict")).to_contain_text("You said 3")
    kept = page.evaluate("localStorage.llmtrain")
    page.evaluate("text => localStorage.llmtrain = text", kept.replace("start_here-", "00-"))
    page.goto(url)
    expect(form.locator("input")).to_have_value("3")
    expect(form.locator(".live-verdict")).to_contain_text("You said 3")
    page.goto(f"{address}/index.html")
    expect(page.locator(".cards small").first).to_have_text(re.compile("1 of"))
    ids = "...['course', 'numbered', 'renamed'].map(data.pageData)"
    scripts = "['former', 'page_data'].map(one => import(`./_static/${one}.js`))"
    today = f"async text => {{ const [former, data] = await Promise.all({scripts});"
    today += f" return former.current(text ?? localStorage.llmtrain, {ids}); }}"
    assert page.evaluate(today) == kept
    moved = """{"done": {"07-b": true, "communication-d": true, "communication-a": true}}"""
    now = """{"done": {"parallelism-a": true, "parallelism-c": true, "communication-a": true}}"""
    assert page.evaluate(today, moved) == now
