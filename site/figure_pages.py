"""A page for each figure that moves, for a post or a slide to link to or embed.

`figures/ring.html` has the picture, its caption, its source and its licence, and nothing
else; next to it is its preview, `figures/ring.png`.
"""

from __future__ import annotations

from pathlib import Path

import fonts
import metadata
from figures import FOLDER
from front_page import PARTS, citation
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markup import read
from markupsafe import Markup
from pdf import served

from llmtrain_course.kit import ids
from llmtrain_course.panels import HANDLES

PREVIEW = {"width": 900, "height": 900}
"""The window in which a preview is drawn, at twice its pixels."""


def write(site: Path) -> None:
    """Write a page and a preview for each handle of the finished chapters."""
    (site / FOLDER).mkdir()
    jinja = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
    )
    template, names = jinja.get_template("figure.html"), []
    for address in ("index.html", *(f"notebooks/{word}.html" for word in ids.CHAPTERS)):
        page = read(site / address)
        title = page.h1.get_text().rstrip("#").partition(":")[0]
        for handle in page.select(".live-handle"):
            name = str(handle["data-word"]).removeprefix("handle:")
            caption = handle.find_next_sibling("p", "live-caption")
            number = caption.b.extract().get_text()
            caption.select_one(".live-tools").decompose()
            for link in caption.select("a[href]"):
                link.unwrap()
            html = template.render(
                name=name,
                title=HANDLES[name].title,
                caption=" ".join(caption.get_text().split()),
                number=number,
                handle=Markup(handle),
                chapter="the first page" if address == "index.html" else title,
                page=address,
                typefaces=Markup(fonts.links("../")),
                style=Markup(fonts.style("../")),
                address=metadata.ADDRESS,
                parts=[part for part in PARTS if part != "guess"],
                **citation(),
            )
            own, preview = f"{FOLDER}/{name}.html", f"{FOLDER}/{name}.png"
            described = metadata.head(html, own, HANDLES[name].title, preview)
            text = html.replace("</head>", f"{described}</head>", 1)
            (site / FOLDER / f"{name}.html").write_text(text, "utf-8")
            names.append(name)
    preview_all(site, names)


def preview_all(site: Path, names: list[str]) -> None:
    """Take a picture of each figure as it begins."""
    with served(site) as (browser, address):
        page = browser.new_page(viewport=PREVIEW, device_scale_factor=2, java_script_enabled=False)
        for name in names:
            page.goto(f"{address}/{FOLDER}/{name}.html")
            page.locator("svg.wt.wide").screenshot(path=site / FOLDER / f"{name}.png")
