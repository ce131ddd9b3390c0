"""What all drawings share: colours that are told apart, and a picture for each theme."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations

import pytest

from llmtrain_course.kit.drawing import (
    CARD,
    COLORS,
    DARK,
    EDGE,
    GREY,
    INK,
    NIGHT,
    Drawing,
    as_images,
    at_night,
    hatched,
    of_saved,
    rect,
    text,
)
from llmtrain_course.parallelism.grid import _ink, _shade
from tests.faces.contrast import contrast, lightness
from tests.faces.svg import Picture, drawn, parse

PARTS = sorted({*COLORS.values(), GREY})
SHADES = [_shade(stage, 16) for stage in range(16)]

DRAWING = Drawing(
    rect(0, 0, 50, 20, COLORS["MLP"], "an MLP", stroke="#FFFFFF")
    + text(25, 15, "a < b", fill="white")
    + f'<g color="white">{hatched(0, 0, 50, 20)}</g>'
    + text(60, 15, "beside it"),
    100,
    30,
    'An MLP, "a < b".',
)

# --- colours


@pytest.mark.parametrize("color", PARTS)
def test_text_on_a_part_and_the_part_on_its_card_are_seen_in_both_themes(color: str) -> None:
    assert contrast(color, "#FFFFFF") >= 4.5
    assert contrast(color, CARD) >= 3
    assert contrast(NIGHT[color], NIGHT["#FFFFFF"]) >= 4.5
    assert contrast(NIGHT[color], NIGHT[CARD]) >= 3
    assert contrast(NIGHT[color], "#111111") >= 3  # the page itself, where a drawing is live


@pytest.mark.parametrize("shade", SHADES)
def test_text_on_a_stage_is_seen_in_both_themes(shade: str) -> None:
    assert contrast(shade, _ink(shade)) >= 4.5
    assert contrast(at_night(shade), at_night(_ink(shade))) >= 4.5


def test_a_text_on_the_card_is_seen_in_both_themes() -> None:
    assert contrast(INK, CARD) >= 7
    assert contrast(NIGHT[INK], NIGHT[CARD]) >= 7


def test_green_olive_and_brown_are_told_apart_by_lightness() -> None:
    three = [COLORS[word] for word in ("optimizer", "norms", "launching")]
    for colors in (three, [NIGHT[color] for color in three]):
        for one, other in combinations(colors, 2):
            assert abs(lightness(one) - lightness(other)) >= 7


def test_parts_that_differ_by_day_differ_at_night() -> None:
    assert len({NIGHT[color] for color in PARTS}) == len(PARTS)


def test_a_stages_shades_keep_their_order_at_night() -> None:
    nights = [lightness(at_night(shade)) for shade in SHADES]
    assert nights == sorted(nights)


# --- saved: an image for each theme


class Images(HTMLParser):
    """The attributes of the saved images, by their class."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: dict[str, dict[str, str]] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag == "img":
            self.tags[values["class"]] = values


def themes() -> tuple[dict[str, str], dict[str, str]]:
    images = Images(DRAWING.saved()).tags
    assert [*images] == ["day", "night"]
    return images["day"], images["night"]


def picture(image: dict[str, str]) -> Picture:
    return parse(b64decode(image["src"].partition(",")[2]).decode())


def rules(html: str) -> str:
    return html.partition("<style>")[2].partition("</style>")[0]


def test_a_saved_drawing_is_two_images_with_the_same_words() -> None:
    for image in themes():
        assert image["alt"] == DRAWING.words
        assert "max-width:100%;height:auto" in image["style"]
    assert ["display:none" in image["style"] for image in themes()] == [False, True]


def test_the_page_says_which_image_shows_and_the_light_one_where_nobody_says() -> None:
    """A sanitizer takes the rules away; the dark image is hidden by its own style."""
    night = f"{DARK} .wt .night{{display:inline!important}}"
    assert rules(DRAWING.saved()) == f"{DARK} .wt .day{{display:none!important}}{night}"
    assert 'body[data-jp-theme-light="false"]' in DARK


def test_the_dark_image_has_the_same_shapes_in_other_colours() -> None:
    day, night = map(picture, themes())
    assert day.colors == {CARD, EDGE, INK, COLORS["MLP"], "#FFFFFF", "white", "currentColor"}
    changed = {x: x if x == "currentColor" else at_night(x) for x in day.colors} | {"": ""}
    assert [
        replace(box, fill=changed[box.fill], stroke=changed[box.stroke]) for box in day.boxes
    ] == [*night.boxes]
    assert {changed[color] for color in day.colors} == night.colors


def test_a_live_drawing_has_the_same_colours_as_the_saved_one() -> None:
    live = DRAWING.inline_svg()
    assert DRAWING.body in live
    boxes = drawn(DRAWING).boxes
    painted = {("fill", x.fill) for x in boxes} | {("stroke", x.stroke) for x in boxes}
    for kind, color in painted | {("color", "white")}:
        if color not in ("", "none", "currentColor"):
            assert f"{DARK} .wt [{kind}='{color}']{{{kind}:{at_night(color)}}}" in rules(live)


def test_a_live_drawing_becomes_the_saved_one_without_its_rules() -> None:
    assert (
        as_images(f"<p>a</p>{DRAWING.inline_svg()}<p>b</p>") == f"<p>a</p>{DRAWING.saved()}<p>b</p>"
    )


def test_a_saved_drawing_is_the_same_drawing_again() -> None:
    day, _ = themes()
    assert of_saved(day["src"], DRAWING.words) == DRAWING
    with pytest.raises(ValueError, match=r"^address=.* is no image that a drawing saved"):
        of_saved("data:image/svg+xml;base64,AAAA", "")
