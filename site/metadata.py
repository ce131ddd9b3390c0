"""What those see of a page who find it or are sent it: description, picture, address.

Where the site and its source have addresses, two settings of the environment say so, and
all that needs them follows; without them it is left out.

    SITE_ADDRESS    https://somebody.example/course/
    SITE_SOURCE     https://code.example/somebody/course
"""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path

import fonts
from markup import parse

ADDRESS = os.environ.get("SITE_ADDRESS", "").rstrip("/")
SOURCE = os.environ.get("SITE_SOURCE", "").rstrip("/")

PICTURE = "_static/course.png"
"""What is shown of a page that somebody shares."""

LONGEST = 200
"""Letters of a description: what a list of results shows."""

LISTS = re.compile(
    r'<p [^>]*class="caption"[^>]*><span class="caption-text">(Worked answers|Evidence)</span></p>'
    r"\s*(<ul.*?</ul>)",
    re.DOTALL,
)
"""The lists in which each chapter's name comes again."""

LOST = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Not here</title>'
    '<meta name="viewport" content="width=device-width">{look}</head>'
    '<body style="margin:0;background:var(--paper);color:var(--ink);font:19px/1.5 var(--text)">'
    '<header class="masthead broad"><a class="brand" href="{home}">'
    '<img src="{home}_static/mark.svg" alt="">What will it take?</a></header>'
    '<main class="broad"><h1 style="font-family:var(--title)">This page isn\'t here</h1>'
    '<form action="{home}search.html"><label>Search for it '
    '<input type="search" name="q" required style="font:inherit;padding:6px 10px"></label> '
    '<button style="font:inherit;padding:6px 18px">Search</button></form><p>'
    '<a href="{home}" style="color:var(--accent)">To the first page</a> · '
    '<a href="{home}#chapters" style="color:var(--accent)">All chapters</a></p></main>'
    "</body></html>\n"
)


def describe(site: Path, description: str) -> None:
    """Describe each page, fold lists that repeat names, and write what search engines read."""
    pages = sorted(site.rglob("*.html"))
    for path in pages:
        page = path.read_text("utf-8")
        name = path.relative_to(site).as_posix()
        text = description if name == "index.html" else opening(page)
        page = LISTS.sub(fold, page)
        path.write_text(page.replace("</head>", f"{head(page, name, text)}</head>", 1), "utf-8")
    home = f"{ADDRESS or '.'}/"
    (site / "404.html").write_text(LOST.format(home=home, look=fonts.head(home)), "utf-8")
    (site / "robots.txt").write_text(robots(), "utf-8")
    if ADDRESS:
        names = [path.relative_to(site).as_posix() for path in pages]
        (site / "sitemap.xml").write_text(sitemap(names), "utf-8")


def opening(page: str) -> str:
    """The first sentences of a page, as many as fit."""
    article = parse(page).select_one("article p:not(.live-note)")
    text = " ".join(article.get_text().split()) if article else ""
    cut = text[:LONGEST].rpartition(". ")[0]
    return f"{cut}." if len(text) > LONGEST and cut else text[:LONGEST]


def head(page: str, name: str, description: str, picture: str = PICTURE) -> str:
    """The elements that describe a page; those that need an address where there is one."""
    title = re.search(r"<title>(.*?)</title>", page, re.DOTALL)[1].strip()
    properties = {"og:title": title, "og:type": "website", "og:description": escape(description)}
    if ADDRESS:
        properties |= {"og:url": f"{ADDRESS}/{name}", "og:image": f"{ADDRESS}/{picture}"}
    elements = [f'<meta property="{key}" content="{value}">' for key, value in properties.items()]
    if description and '<meta name="description"' not in page:
        elements.append(f'<meta name="description" content="{escape(description)}">')
    if ADDRESS:
        elements.append(f'<link rel="canonical" href="{ADDRESS}/{name}">')
    return "".join(elements)


def fold(match: re.Match[str]) -> str:
    """A list behind its title; open where it has the page that is shown."""
    title, items = match.groups()
    is_open = " open" if "current" in items else ""
    return f'<details class="live-list"{is_open}><summary>{title}</summary>{items}</details>'


def robots() -> str:
    """Say what programs may read, and where the list of pages is."""
    return "User-agent: *\nAllow: /\n" + (f"Sitemap: {ADDRESS}/sitemap.xml\n" if ADDRESS else "")


def sitemap(names: list[str]) -> str:
    """The list of pages."""
    listed = "".join(f"<url><loc>{ADDRESS}/{name}</loc></url>" for name in names)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="{space}">{listed}</urlset>\n'
