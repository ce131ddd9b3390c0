"""The controls of each handle, put into the page as its script makes them, and its longest
sentence, for which there's room.

A page is then laid out before the script comes, and nothing in it moves. They cannot be
used until they are the script's own.
"""

from __future__ import annotations

import json
from pathlib import Path

from markup import parse, read
from pdf import served
from pictures import FOLDER

CONTROLS = """() => [...document.querySelectorAll(".live-handle .live-controls")].map(one => {
    for (const input of one.querySelectorAll("input")) {
        input.setAttribute("value", input.value);
        input.toggleAttribute("checked", input.checked);
    }
    for (const option of one.querySelectorAll("option"))
        option.toggleAttribute("selected", option.selected);
    return one.outerHTML;
})"""
"""What the script has made of each handle; what is chosen stands in the elements."""


def add_controls(site: Path) -> None:
    """Put them into all pages that have handles."""
    with served(site) as (browser, address):
        asked = browser.new_page(service_workers="block")
        for path in sorted([*site.glob("notebooks/*.html"), site / "index.html"]):
            page = read(path)
            if handles := page.select(".live-handle"):
                asked.goto(f"{address}/{path.relative_to(site).as_posix()}")
                for handle, made in zip(handles, asked.evaluate(CONTROLS), strict=True):
                    controls = parse(made).div
                    controls["inert"] = ""
                    handle.insert(0, controls)
                    name = handle["data-word"].removeprefix("handle:")
                    drawn = (site / FOLDER / f"{name}.json").read_text("utf-8")
                    answer = handle.select_one(".live-answer")
                    answer["data-longest"] = json.loads(drawn)["longest"]
                path.write_text(str(page), "utf-8")
