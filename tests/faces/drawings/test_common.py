"""What all drawings share: colours that are told apart, and a picture for each theme."""

from __future__ import annotations

import re
from base64 import b64decode
from html import unescape
from itertools import combinations

import pytest

from llmtrain_helpers.drawings.batch import _ink, _shade
from llmtrain_helpers.drawings.common import (
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
from llmtrain_helpers.panels import PANELS
from tests.faces.contrast import contrast, lightness
from tests.snapshots import DRAWINGS

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

PAINT = re.compile(r'(?:fill|stroke|color)="(.*?)"')


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


@pytest.mark.parametrize("name", PANELS)
def test_every_colour_of_a_chapters_drawings_is_known_in_the_dark(name: str) -> None:
    body = first(name) + "".join(draw().body for draw in DRAWINGS.get(name, {}).values())
    shades = {_shade(stage, stages) for stages in range(1, 17) for stage in range(stages)}
    assert {*PAINT.findall(body)} <= {*NIGHT, *shades, "white", "none", "currentColor"}


def first(word: str) -> str:
    """A panel's first setting, live."""
    panel = PANELS[word]
    return panel.answer(panel.default).html


# --- saved: an image for each theme


def images(html: str) -> dict[str, str]:
    """The saved images' tags, by their class."""
    return {tag.split('"')[1]: tag for tag in re.findall(r"<img.*?>", html)}


def svg(tag: str) -> str:
    return b64decode(re.findall(r"base64,([^\"]+)", tag)[0]).decode()


def test_a_saved_drawing_is_two_images_with_the_same_words() -> None:
    saved = DRAWING.saved()
    assert re.fullmatch(r'<div class="wt"><style>.*?</style>(<img .*?>){2}</div>', saved)
    day, night = images(saved)["day"], images(saved)["night"]
    for tag in (day, night):
        assert unescape(re.findall(r'alt="(.*?)"', tag)[0]) == DRAWING.words
        assert "max-width:100%;height:auto" in tag
    assert "display:none" in night
    assert "display" not in day


def test_the_page_says_which_image_shows_and_the_light_one_where_nobody_says() -> None:
    """A sanitizer takes the rules away; the dark image is hidden by its own style."""
    [rules] = re.findall(r"<style>(.*?)</style>", DRAWING.saved())
    shown = f"{DARK} .wt .night{{display:inline!important}}"
    assert rules == f"{DARK} .wt .day{{display:none!important}}{shown}"
    assert 'body[data-jp-theme-light="false"]' in DARK


def test_the_dark_image_has_the_same_shapes_in_other_colours() -> None:
    day, night = (svg(images(DRAWING.saved())[theme]) for theme in ("day", "night"))
    assert PAINT.sub("", day) == PAINT.sub("", night)
    assert {*PAINT.findall(day)} == {
        *(CARD, EDGE, INK, COLORS["MLP"], "#FFFFFF", "white", "currentColor")
    }
    assert [at_night(c) if c in NIGHT or c == "white" else c for c in PAINT.findall(day)] == (
        PAINT.findall(night)
    )


def test_a_live_drawing_has_the_same_colours_as_the_saved_one() -> None:
    live = DRAWING.live()
    [rules] = re.findall(r"<style>(.*?)</style>", live)
    assert DRAWING.body in live
    for kind, color in {*re.findall(r'(fill|stroke|color)="(#\w+|white)"', DRAWING.body)}:
        rule = f"{DARK} .wt [{kind}='{color}']{{{kind}:{at_night(color)}}}"
        assert rule in rules


def test_a_live_drawing_becomes_the_saved_one_without_its_rules() -> None:
    assert as_images(f"<p>a</p>{DRAWING.live()}<p>b</p>") == f"<p>a</p>{DRAWING.saved()}<p>b</p>"


def test_a_saved_drawing_is_the_same_drawing_again() -> None:
    day = images(DRAWING.saved())["day"]
    [address] = re.findall(r'src="(.*?)"', day)
    assert of_saved(address, DRAWING.words) == DRAWING
    with pytest.raises(ValueError, match=r"^address=.* is no image that a drawing saved"):
        of_saved("data:image/svg+xml;base64,AAAA", "")
