"""The search: what comes first, where it leads, the keys, and what's fetched when.

make site-test
"""

from __future__ import annotations

import re

import pytest
from driver import AXE, TELEPHONE
from playwright.sync_api import Browser, Locator, Page, expect

CHAPTER = "notebooks/communication.html"


def results(page: Page, address: str, query: str) -> Locator:
    """Search on the search's own page, and wait for the first results."""
    page.goto(f"{address}/search.html?q={query}")
    links = page.locator(".pf-result-link")
    expect(links.first).to_be_visible()
    return links


def type_into_search(page: Page, address: str, text: str) -> Locator:
    """Open the search on a chapter with its keys, and type."""
    page.goto(f"{address}/{CHAPTER}")
    page.keyboard.press("Control+k")
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()
    page.keyboard.type(text)
    links = page.locator(".pf-result-link")
    expect(links.first).to_be_visible()
    return links


@pytest.mark.parametrize(
    ("query", "first", "target"),
    [
        ("all-reduce", "Glossary › all-reduce", "/notebooks/glossary.html#all-reduce"),
        ("ZeRO", "Glossary › ZeRO", "/notebooks/glossary.html#zero"),
        ("loss", "Glossary › loss", "/notebooks/glossary.html#loss"),
        ("plan_run", "Helpers: plan › plan_run", "/reference/plan.html#plan-run"),
        ("count_flops", "Helpers: flops › count_flops", "/reference/flops.html#count-flops"),
    ],
)
def test_what_is_called_so_comes_first(
    page: Page, address: str, query: str, first: str, target: str
) -> None:
    link = results(page, address, query).first
    expect(link).to_have_text(first)
    expect(link).to_have_attribute("href", target)


@pytest.mark.parametrize("query", ["ZeRO", "ring latency"])
def test_chapters_come_before_answers_and_evidence(page: Page, address: str, query: str) -> None:
    texts = results(page, address, query).all_text_contents()
    kinds = [re.match(r"\d\d ·|Evidence|Solutions|", text)[0] for text in texts]
    assert next(filter(None, kinds)).endswith("·")


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("collectives 353 rows", "Evidence"),
        ("answer budget-a", "Solutions"),
        ("half time room", "Teach"),
        ("software_steps", "data"),
    ],
)
def test_what_is_beside_the_chapters_is_found_too(
    page: Page, address: str, query: str, name: str
) -> None:
    assert any(name in text for text in results(page, address, query).all_text_contents())


def test_a_result_says_a_sentence_and_closes_the_dialog(page: Page, address: str) -> None:
    links = type_into_search(page, address, "small message latency")
    link = links.filter(has_text="07 · Communication › When is a message small?")
    excerpt = link.locator("xpath=ancestor::li[1]").locator(".pf-result-excerpt mark")
    expect(excerpt.first).to_have_text(re.compile("small|message|latency", re.I))
    link.click()
    expect(page.get_by_role("searchbox")).to_be_hidden()
    assert page.url.endswith("#when-is-a-message-small")


def test_the_keys_are_enough(page: Page, address: str) -> None:
    links = type_into_search(page, address, "plan_ru")
    page.keyboard.press("ArrowDown")
    expect(links.first).to_be_focused()
    page.keyboard.press("ArrowUp")
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/reference/plan.html#plan-run")


def test_keys_wait_for_the_results_of_all_that_was_typed(page: Page, address: str) -> None:
    links = type_into_search(page, address, "p")
    field = page.get_by_role("searchbox")
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 6})
    field.press_sequentially("lan_run", delay=20)
    page.keyboard.press("ArrowDown")
    expect(links.first).to_be_focused()
    expect(links.first).to_have_text("Helpers: plan › plan_run")
    field.fill("p")
    field.press_sequentially("lan_run", delay=20)
    page.keyboard.press("Enter")
    page.wait_for_url("**/reference/plan.html#plan-run")


@pytest.mark.parametrize(
    ("typed", "word"),
    [("comunication", "communication"), ("checkpiont", "checkpoint"), ("plan_run", None)],
)
def test_a_word_that_is_misspelled_is_put_right(
    page: Page, address: str, typed: str, word: str | None
) -> None:
    page.goto(f"{address}/search.html?q={typed}")
    expect(page.locator(".pf-result-link").first).to_be_visible()
    offer = page.locator(".search-near button")
    if word is None:
        expect(offer).to_be_hidden()
        return
    expect(offer).to_have_text(word)
    offer.click()
    expect(page.get_by_role("searchbox")).to_have_value(typed.replace(typed.split()[0], word))
    expect(page.locator(".pf-result-link").first).to_contain_text(re.compile(word, re.I))


def test_the_dialog_is_accessible_and_fits_a_telephone(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport=TELEPHONE, color_scheme="dark")
    type_into_search(page, address, "recipe")
    box = page.locator("dialog[open]").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= TELEPHONE["width"]
    page.evaluate(AXE.read_text("utf-8"))
    wrong = page.evaluate("axe.run('dialog[open]').then(found => found.violations)")
    assert [one["id"] for one in wrong] == []
    page.close()


def test_nothing_is_fetched_before_the_search_is_opened(page: Page, address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/{CHAPTER}", wait_until="networkidle")
    assert not any("pagefind" in url or "searchindex" in url for url in asked)
    page.locator(".search-button").click()
    expect(page.get_by_role("searchbox")).to_be_focused()
    assert any("pagefind" in url for url in asked)


def test_after_one_search_any_other_works_without_a_network(browser: Browser, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}/{CHAPTER}", wait_until="networkidle")
    page.evaluate("navigator.serviceWorker.ready.then(() => 0)")
    type_into_search(page, address, "ring")
    page.wait_for_function(KEPT)
    context.set_offline(True)
    expect(type_into_search(page, address, "checkpoint").first).to_contain_text("checkpoint")
    context.close()


KEPT = """async () => {
    const names = await (await fetch("../pagefind/files.json")).json();
    const stored = async name => (await (await caches.open(name)).keys()).map(one => one.url);
    const all = (await Promise.all((await caches.keys()).map(stored))).flat();
    return names.every(name => all.some(one => one.endsWith(name)));
}"""


def test_a_page_that_is_not_there_offers_the_search(page: Page, address: str) -> None:
    page.goto(f"{address}/404.html")
    page.get_by_label("Search for it").fill("gradient accumulation")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**/search.html?q=gradient+accumulation")
    expect(page.locator(".pf-result-link").first).to_be_visible()
