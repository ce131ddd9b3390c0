"""What all drawings share: colours and words of the parts, shapes, live and saved form.

One colour and one word for one thing, in every chapter. A drawing is made for a light
page; `NIGHT` says what becomes of its colours on a dark one. In both, text on each colour
reaches 4.5 : 1 and each colour 3 : 1 on its card; green, olive and brown differ in
lightness too.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from html import escape, unescape
from math import ceil, log10
from typing import Any, NamedTuple, TypedDict, Unpack

from llmtrain_helpers.checks import show

COLORS = {
    "attention": "#0067A5",
    "projections": "#0067A5",
    "MLP": "#B34700",
    "embedding": "#007050",
    "output head": "#3F3FB5",
    "norms": "#8D7300",
    "weights": "#0067A5",
    "gradients": "#B34700",
    "main gradients": "#6E3A1B",
    "main weights": "#3F3FB5",
    "optimizer": "#007050",
    "activations": "#96407A",
    "logits": "#8D7300",
    "recomputed": "#6A6A6A",
    "memory": "#5B6672",
    "idle": "#5B6672",
    "useful": "#007050",
    "saving": "#3F3FB5",
    "lost": "#B34700",
    "restarting": "#8D7300",
    "outages": "#96407A",
    "evaluation": "#0067A5",
    "matrix products": "#0067A5",
    "launching": "#6E3A1B",
    "tensor": "#96407A",
    "context": "#2E7A8C",
    "expert": "#A82433",
    "pipeline": "#3F3FB5",
    "data": "#B34700",
    "sign": "#44505C",
    "exponent": "#B34700",
    "fraction": "#0067A5",
}
"""The colour of each part, by its word."""


class StepPart(NamedTuple):
    """A part of a step's time: its name on a bar, in a sum of parts, as a cause; its colour."""

    name: str
    spent: str
    cause: str
    color: str


STEP_PARTS = {
    "matmuls": StepPart(
        "matrix products", "matrix products", "computing", COLORS["matrix products"]
    ),
    "memory": StepPart("trips to memory", "trips to memory", "trips to memory", COLORS["memory"]),
    "kernel_launch": StepPart("launching", "launching kernels", "launching", COLORS["launching"]),
    "tensor": StepPart(
        "tensor", "sent inside layers", "the sums of tensor parallelism", COLORS["tensor"]
    ),
    "context": StepPart(
        "context", "sent for shared sequences", "sending for shared sequences", COLORS["context"]
    ),
    "expert": StepPart("expert", "sent to experts", "sending to experts", COLORS["expert"]),
    "head": StepPart(
        "logits and loss", "logits and loss", "the last stage's logits", COLORS["logits"]
    ),
    "pipeline": StepPart(
        "pipeline", "sent between stages", "sending to the next stage", COLORS["pipeline"]
    ),
    "bubble": StepPart("waiting", "waiting of the pipeline", "stages that wait", COLORS["idle"]),
    "data": StepPart(
        "data", "sent between replicas, not hidden", "what replicas send", COLORS["data"]
    ),
    "optimizer": StepPart("update", "update", "the optimizer", COLORS["optimizer"]),
}
"""The parts of `plan.seconds.StepSeconds`, in its order."""

INK, CARD, EDGE, GREY = "#1A1D21", "#F6F7F9", "#C9CED6", "#5B6672"
"""The inks of a saved drawing: text, its card, the card's edge; and a quiet grey."""

NIGHT = {
    INK: "#E6E9ED",
    CARD: "#1A1D21",
    EDGE: "#3D444D",
    "#FFFFFF": "#1A1D21",
    "#000000": "#000000",
    "#0067A5": "#4E9FDB",
    "#B34700": "#E37E3C",
    "#007050": "#34AE84",
    "#96407A": "#C97DB3",
    "#8D7300": "#CDB240",
    "#6E3A1B": "#AF7A58",
    "#3F3FB5": "#8D8FF2",
    "#6A6A6A": "#A0A0A0",
    "#5B6672": "#8F9BA9",
    "#2E7A8C": "#6CC0D1",
    "#A82433": "#EA6C74",
    "#44505C": "#B0BAC6",
}
"""What becomes of a colour on a dark page: lighter, and the white on it dark."""

DARK = ':is(body[data-jp-theme-light="false"],html[data-theme="dark"],body.vscode-dark)'
"""CSS for a page in a dark theme: JupyterLab's, the course's site, VS Code's."""

_THEMES = (
    f"<style>{DARK} .wt .day{{display:none!important}}"
    f"{DARK} .wt .night{{display:inline!important}}</style>"
)
"""Shows the dark image on a dark page; where it is taken away, the light one stays."""

_CARD = f'rx="12" fill="{CARD}" stroke="{EDGE}"'

_PAINT = re.compile(r'(fill|stroke|color)="(#[0-9A-F]{6}|white)"')

FONT = "font-family:system-ui,sans-serif"


class Style(TypedDict, total=False):
    """How a shape or a text looks: attributes of SVG, with _ for the hyphen.

    `data_moves` names the control of a handle that a page moves where one drags the shape.
    """

    stroke: str
    stroke_width: float
    stroke_dasharray: str
    rx: float
    opacity: float
    fill_opacity: float
    font_weight: int | str
    font_style: str
    paint_order: str
    stroke_linejoin: str
    data_moves: str


@dataclass(frozen=True)
class Drawing:
    """SVG elements on a canvas, and the same in words.

    Lines and text take `currentColor`. `inline_svg()` is an element that follows the page,
    `saved()` an image on a card, light or dark as the page is; a notebook cell that ends
    in a drawing shows that.
    """

    body: str
    width: int
    height: int
    words: str

    def drawing(self, width: int = 0) -> Drawing:
        """Return the drawing, which has its width already: what a described picture gives."""
        return self

    def inline_svg(self) -> str:
        """Return an `<svg>` in the page's own ink, as wide as there is room.

        Up to a fifth more than drawn, as long as it is not too high; not below 82
        percent of its width, where words of 14 px would fall under 11.5.
        """
        wide = f"width:100%;min-width:{0.82 * self.width:.0f}px"
        role = "group" if "data-sets=" in self.body else "img"  # what can be clicked is found
        return self._svg(
            f'class="wt" role="{role}" aria-label="{escape(self.words)}" '
            f'style="{wide};max-width:{self._grown(480)}px;height:auto;{FONT}"',
            _night_rules(self.body) + self.body,
        )

    def saved(self) -> str:
        """An `<img>` with the words as its text, on a light card and on a dark one.

        The page's theme says which of the two shows: the light one where nobody says.
        """
        card = f'<rect x="1" y="1" width="{self.width - 2}" height="{self.height - 2}" {_CARD}/>'
        style = f'style="{FONT}" color="{INK}" width="{self.width}" height="{self.height}"'
        day = self._svg(style, card + self.body)
        night = _PAINT.sub(lambda paint: f'{paint[1]}="{at_night(paint[2])}"', day)
        images = self._image("day", day) + self._image("night", night, "display:none;")
        return f'<div class="wt">{_THEMES}{images}</div>'

    def _image(self, theme: str, svg: str, hidden: str = "") -> str:
        coded = b64encode(svg.encode()).decode()
        return (
            f'<img class="{theme}" alt="{escape(self.words)}" width="{self._grown(600)}" '
            f'style="{hidden}max-width:100%;height:auto" '
            f'src="data:image/svg+xml;base64,{coded}">'
        )

    def _grown(self, tallest: int) -> int:
        """Pixels across: a fifth more than drawn, as long as it grows no higher than that."""
        return int(self.width * max(1.0, min(1.2, tallest / self.height)))

    def _svg(self, attributes: str, body: str) -> str:
        box = f'viewBox="0 0 {self.width} {self.height}"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {box} {attributes}>{body}</svg>'

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        return {"text/html": self.saved(), "text/plain": self.words}


class LiveDrawing(Drawing):
    """A drawing of this machine's times: tests compare its words, and not its picture."""

    @classmethod
    def of(cls, drawing: Drawing) -> LiveDrawing:
        """Make a drawing a live one."""
        return cls(drawing.body, drawing.width, drawing.height, drawing.words)

    def saved(self) -> str:
        """Mark both images, so that they can be left out of a comparison."""
        return super().saved().replace("svg+xml;base64", "svg+xml;times=live;base64")


_LIVE = re.compile(
    r'<svg [^>]*viewBox="0 0 (\d+) (\d+)" [^>]*aria-label="([^"]*)"[^>]*>'
    r"(?:<style>.*?</style>)?(.*?)</svg>",
    re.DOTALL,
)


def keep_dollars(html: str) -> str:
    """Put each dollar sign of a text into its own element.

    JupyterLab typesets what's between two of them in one paragraph as a formula.

    >>> keep_dollars('<p title="$1">$2 to $3</p>')
    '<p title="$1"><span>$</span>2 to <span>$</span>3</p>'
    """
    return re.sub(r"\$(?![^<>]*>)", "<span>$</span>", html)


def as_images(html: str) -> str:
    """HTML with its live drawings as saved images, which a page's sanitizer keeps."""

    def image(drawing: re.Match[str]) -> str:
        width, height, words, body = drawing.groups()
        return Drawing(body, int(width), int(height), unescape(words)).saved()

    return _LIVE.sub(image, html)


_DAY = re.compile(
    rf'<svg [^>]*viewBox="0 0 (\d+) (\d+)"[^>]*><rect [^>]*{_CARD}/>(.*)</svg>', re.DOTALL
)


def of_saved(address: str, words: str) -> Drawing:
    """The drawing that a saved image of the day shows, by its address and its words."""
    drawn = _DAY.fullmatch(b64decode(address.partition(",")[2]).decode())
    if not drawn:
        raise ValueError(f"address={show(address)} is no image that a drawing saved")
    width, height, body = drawn.groups()
    return Drawing(body, int(width), int(height), words)


def at_night(color: str) -> str:
    """A colour as it is on a dark page: one of no table is mixed with white.

    >>> at_night("#0067A5"), at_night("#1172AC")
    ('#4E9FDB', '#70AACD')
    """
    color = "#FFFFFF" if color == "white" else color
    if color in NIGHT:
        return NIGHT[color]
    parts = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(x + 0.4 * (255 - x)):02X}" for x in parts)


def _night_rules(body: str) -> str:
    """CSS for the colours of a live drawing where the page is dark."""
    rules = (
        f"{DARK} .wt [{kind}='{color}']{{{kind}:{at_night(color)}}}"
        for kind, color in sorted(set(_PAINT.findall(body)))
    )
    return f"<style>{''.join(rules)}</style>"


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str = "none",
    title: str = "",
    **style: Unpack[Style],
) -> str:
    """A rectangle; `title` is what a pointer over it reads."""
    words = f"<title>{escape(title)}</title>" if title else ""
    place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
    return f'<rect {place} fill="{fill}"{_style(style)}>{words}</rect>'


def switch(shapes: str, control: str, value: object, label: str) -> str:
    """Shapes that set a control of their handle when they're clicked, or by Enter."""
    about = f'tabindex="0" role="button" aria-label="{escape(label)}"'
    return f'<g data-sets="{escape(f"{control}={value}")}" {about}>{shapes}</g>'


def text(
    x: float,
    y: float,
    words: str,
    size: float = 15,
    anchor: str = "start",
    fill: str = "currentColor",
    **style: Unpack[Style],
) -> str:
    """Words at a place: `anchor` is start, middle or end."""
    place = f'x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" text-anchor="{anchor}"'
    return f'<text {place} fill="{fill}"{_style(style)}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, **style: Unpack[Style]) -> str:
    """A line in the page's ink, 1.5 wide unless told otherwise."""
    line_style: Style = {"stroke": "currentColor", "stroke_width": 1.5, **style}
    ends = f'x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"'
    return f"<line {ends}{_style(line_style)}/>"


def arrow(x1: float, y1: float, x2: float, y2: float, **style: Unpack[Style]) -> str:
    """A line with a head at its end; horizontal or vertical."""
    back = 7 if (x2 + y2) > (x1 + y1) else -7
    wings = (
        [(x2 - 5, y2 - back), (x2 + 5, y2 - back)]
        if x1 == x2
        else [(x2 - back, y2 - 5), (x2 - back, y2 + 5)]
    )
    points = " ".join(f"{_n(x)},{_n(y)}" for x, y in [wings[0], (x2, y2), wings[1]])
    ink = style.get("stroke", "currentColor")
    head = f'<polyline points="{points}" fill="none" stroke="{ink}" stroke-width="1.5"/>'
    return line(x1, y1, x2, y2, **style) + head


def hatched(x: float, y: float, width: float, height: float, step: float = 8, ink: str = "") -> str:
    """Slanted lines over a rectangle: what is idle, over, or not there; `ink` is their colour."""
    lines = []
    offset = step
    while offset < width + height:
        x1, y1 = x + min(offset, width), y + max(0.0, offset - width)
        x2, y2 = x + max(0.0, offset - height), y + min(offset, height)
        lines.append(line(x1, y1, x2, y2, stroke_width=1, opacity=0.6))
        offset += step
    svg = "".join(lines)
    return f'<g color="{ink}">{svg}</g>' if ink else svg


def circle(x: float, y: float, r: float, fill: str, title: str = "", **style: Unpack[Style]) -> str:
    """A dot; `title` is what a pointer over it reads."""
    words = f"<title>{escape(title)}</title>" if title else ""
    place = f'cx="{x:.1f}" cy="{y:.1f}" r="{r:g}"'
    return f'<circle {place} fill="{fill}" {_style(style).strip()}>{words}</circle>'


def ghost(x: float, y: float, width: float, height: float, title: str = "") -> str:
    """The outline of what stood here before a change."""
    return rect(x, y, width, height, title=title, stroke="currentColor", stroke_dasharray="5 4")


def fits(words: str, width: float, size: float = 15) -> bool:
    """Whether words of this size find room, at some 0.56 of it a letter."""
    return 0.56 * size * len(words) <= width


def round_step(longest: float, most: float) -> float:
    """The step of an axis: 1, 2 or 5 times a power of ten, `most` times in all.

    >>> round_step(40, 6.5), round_step(0.35, 6)
    (10.0, 0.1)
    """
    size = 10.0 ** (ceil(log10(longest)) - 1)
    return next(m * size for m in (0.2, 0.5, 1, 2, 5) if longest / (m * size) <= most)


def _style(style: Style) -> str:
    pairs = {key.replace("_", "-"): value for key, value in style.items()}
    return "".join(f' {key}="{value}"' for key, value in pairs.items())


def _n(number: float) -> str:
    return f"{number:.1f}".rstrip("0").rstrip(".")
