"""What is said of a page where it is found, with an address and without.

make site-test
"""

from __future__ import annotations

from collections.abc import Iterator

import metadata
import pytest
from bs4 import BeautifulSoup
from driver import SITE


def test_with_an_address_pages_have_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "ADDRESS", "https://somebody.example/course")
    head = metadata.head("<title>A page</title>", "notebooks/a.html", "About it")
    assert '<link rel="canonical" href="https://somebody.example/course/notebooks/a.html">' in head
    assert 'content="https://somebody.example/course/_static/course.png"' in head
    own = metadata.head("<title>A figure</title>", "figures/a.html", "It", "figures/a.png")
    assert 'content="https://somebody.example/course/figures/a.png"' in own
    assert (SITE / metadata.PICTURE).is_file()
    assert "<loc>https://somebody.example/course/a.html</loc>" in metadata.sitemap(["a.html"])
    assert "Sitemap: https://somebody.example/course/sitemap.xml" in metadata.robots()


def test_lists_that_repeat_names_are_folded_but_for_the_one_that_is_read() -> None:
    assert [*lists("notebooks/duration.html")] == [("Worked answers", False), ("Evidence", False)]
    assert ("Worked answers", True) in lists("notebooks/solutions/duration.html")


def lists(name: str) -> Iterator[tuple[str, bool]]:
    """The folded lists of a page's contents, and whether each is open."""
    page = BeautifulSoup((SITE / name).read_text("utf-8"), "html.parser")
    for one in page.select("details.live-list"):
        yield one.summary.get_text(), one.has_attr("open")
