"""Draw a handle or a panel for a page and a phone, in the light and in the dark.

    .venv/bin/python tools/picture.py size_price            # as it begins
    .venv/bin/python tools/picture.py size_price share=0.25  # and after a change

Writes a sheet for each theme into artifacts/, which git ignores.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import sync_playwright

from llmtrain_course.kit.panel import Panel
from llmtrain_course.page import PANELS_AND_HANDLES
from tests.browser.lab import CHROMIUM, FLAGS

ARTIFACTS = Path(__file__).parents[1] / "artifacts"
THEMES = {"light": "#FFFFFF;color:#111111", "dark": "#1A1D21;color:#E6E9ED"}
"""Each theme's background and ink."""


def main() -> None:
    """Draw what the command line names."""
    name, *settings = sys.argv[1:] or ["size_price"]
    panel = PANELS_AND_HANDLES.get(f"handle:{name}") or PANELS_AND_HANDLES[name]
    ARTIFACTS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1120, "height": 900})
        for theme, look in THEMES.items():
            page.set_content(sheet(panel, dict(x.split("=", 1) for x in settings), theme, look))
            path = ARTIFACTS / f"{name}-{theme}.png"
            page.screenshot(path=path, full_page=True)
            print(path)
        browser.close()


def sheet(panel: Panel, changes: dict[str, str], theme: str, look: str) -> str:
    """Return a page with a row for each setting, as on a page and as on a phone."""
    rows = ""
    for written in [{}, changes] if changes else [{}]:
        boxes = ""
        for width, one in ((700, panel), (360, panel.on_telephone)):
            values = {**one.default} | {k: one.controls[k].read(v) for k, v in written.items()}
            answer = one.answer(values, one.default if written else None)
            boxes += f'<div style="width:{width}px">{answer.html or answer.problem}</div>'
        rows += f'<div style="display:flex;gap:20px;margin-bottom:20px">{boxes}</div>'
    shade = str(theme == "light").lower()
    return (
        f'<html data-theme="{theme}"><body data-jp-theme-light="{shade}" '
        f'style="font-family:system-ui;background:{look}">{rows}</body></html>'
    )


if __name__ == "__main__":
    main()
