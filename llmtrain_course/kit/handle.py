"""A handle as a function: the values of its controls in, a picture and a sentence out.

    @handle(
        "The price of another size",
        share=slider("Size", "The size, over the best one.", (0.5, 1, 2), unit="of the best"),
        book=({}, {"share": 0.25}),
    )
    def size_price(share: float = 1) -> Shown:
        return price_of_size(share), f"{units.digits(over_training(share), 3)} times the work."

The defaults are where it begins. A function with an argument `previous` gets the values
that it's compared with, or None. `panels.HANDLES` finds a handle by its function's name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import make_dataclass
from types import SimpleNamespace
from typing import Any, Protocol

from llmtrain_course.kit.drawing import Drawing
from llmtrain_course.kit.layout import PAGE
from llmtrain_course.kit.panel import Control, Handle, Values, pictured


class Drawable(Protocol):
    """A picture that can be drawn for a width: `kit.layout.Picture`, or one placed by hand."""

    def drawing(self, width: int = ...) -> Drawing:
        """Draw it."""


Shown = tuple[Drawable, str]
"""A picture, and the sentence below it, which may have <b>."""


class ByHand:
    """A diagram that no description gives: its function takes a width."""

    def __init__(self, draw: Callable[[int], Drawing]) -> None:
        self._draw = draw

    def drawing(self, width: int = PAGE) -> Drawing:
        """Draw it."""
        return self._draw(width)


def handle(
    title: str, book: tuple[Values, Values] | None = None, **controls: Control
) -> Callable[[Callable[..., Shown]], Handle]:
    """Make a handle of a function of its controls; `book` is what changes in print's two frames."""

    def made(function: Callable[..., Shown]) -> Handle:
        parameters = inspect.signature(function).parameters
        compares = "previous" in parameters
        defaults = {name: it.default for name, it in parameters.items() if name != "previous"}
        if [*defaults] != [*controls]:
            raise TypeError(f"{function.__name__}: arguments {[*defaults]}, controls {[*controls]}")
        fields = [(name, type(value), value) for name, value in defaults.items()]
        setting: Any = make_dataclass(function.__name__, fields, frozen=True)

        def drawn(values: Any) -> dict[str, Any]:
            return {name: it.drawn(getattr(values, name)) for name, it in controls.items()}

        def draw(now: Any, before: Any, width: int = PAGE) -> str:
            values = drawn(now)
            if compares:
                old = drawn(before) if before else None
                values["previous"] = old and SimpleNamespace(**old)
            picture, sentence = function(**values)
            return pictured(picture.drawing(width), sentence)

        return Handle(
            title=title, controls=controls, settings={"": setting()}, draw=draw, book=book
        )

    return made


def slider(
    label: str,
    help: str,
    stops: tuple[float, ...],
    *,
    unit: str = "",
    least: float | None = None,
    most: float | None = None,
    whole: bool | None = None,
    play: bool = False,
    between: bool = True,
    zero: str = "",
    reach: Callable[..., float] | None = None,
    applies: Callable[..., bool] = lambda setting: True,
) -> Control:
    """A number with a slider: from its first stop to its last, whole if all stops are."""
    return Control(
        label,
        help,
        unit=unit,
        least=min(stops) if least is None else least,
        most=max(stops) if most is None else most,
        whole=all(isinstance(stop, int) for stop in stops) if whole is None else whole,
        stops=stops,
        play=play,
        between=between,
        zero=zero,
        reach=reach,
        applies=applies,
    )


def flag(label: str, help: str) -> Control:
    """A box to tick."""
    return Control(label, help, "flag")
