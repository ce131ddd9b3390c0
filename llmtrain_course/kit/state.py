"""The values set in a panel and its answers, the same for every face.

The standard library alone. A face draws a `State`, and hands on what people do: write into
a field, move a slider, take an offer.
"""

from __future__ import annotations

from collections.abc import Iterator

from llmtrain_course.kit.panel import Offer, Panel, Value, Values

OWN = "changed by you"
"""The name of the preset while the controls agree with none; it can't be chosen."""


class State:
    """The values of a panel's controls, the last picture, and what was refused.

    A field that cannot be read keeps its complaint, and its last value, with which all
    others go on. `html` is the last picture; where the values make none, it is an `old`
    one. `problem` says both; `offers` fix it, `advice` stands behind the picture.
    """

    def __init__(self, panel: Panel) -> None:
        self.panel = self._wide = panel
        self.values: dict[str, Value] = {}
        self.problems: dict[str, str] = {}  # of fields that could not be read
        self.html = self.problem = self._impossible = ""
        self.offers: tuple[Offer, ...] = ()
        self.advice: tuple[Offer, ...] = ()
        self._start: Values | None = None  # what later pictures are held against
        self._seen: Values = {}
        self._last_preset = next(iter(panel.presets))
        self.set(**panel.default)

    def write(self, name: str, written: Value) -> None:
        """Take what the learner wrote; if it can't be read, the old value stays."""
        self._read(name, written)
        if name in self.problems:
            self._tell()
            return
        values = dict(self.values)
        for other, control in self.panel.controls.items():
            # what is about a control begins again when that one has changed
            if any(values[x] != self._seen.get(x, values[x]) for x in control.about):
                self._read(other, self.panel.default[other])
        self.refresh()

    def set(self, **values: Value) -> None:
        """Set several controls and start over, without an earlier picture for comparison."""
        self._start = None
        self.set_all(**values)

    def set_all(self, **values: Value) -> None:
        """Set several controls instead of what was refused, keeping the comparison."""
        for name, value in values.items():
            self._read(name, value)
        self.refresh()

    def take(self, **values: Value) -> None:
        """Set several controls, and hold the picture against what was there before."""
        self._start = dict(self.values)
        self.set_all(**values)

    def reset(self) -> None:
        """Back to the preset that was there last."""
        self.set(**self.panel.presets[self._last_preset])

    def draw_for(self, narrow: bool) -> None:
        """Draw as for a phone, or as for a page; the comparison stays."""
        self.panel = self._wide.on_telephone if narrow else self._wide
        self.refresh()

    @property
    def preset(self) -> str:
        """The preset that the controls agree with, or `OWN`."""
        names = self.panel.presets
        return next((name for name in names if self.panel.is_preset(name, self.values)), OWN)

    def _read(self, name: str, written: Value) -> None:
        self.problems.pop(name, None)
        try:
            self.values[name] = self.panel.controls[name].read(written)
        except ValueError as error:
            self.problems[name] = str(error)

    def refresh(self) -> None:
        """Ask for the picture of the values, or for why there is none."""
        values = self._seen = dict(self.values)
        preset = self.preset
        if preset != OWN:
            self._last_preset = preset
        leads = [name for name, control in self.panel.controls.items() if control.lead]
        if self._start and any(values[name] != self._start[name] for name in leads):
            # another view is held against where it began, not against the last one
            self._start = None
        answer = self.panel.answer(values, self._start)
        self._impossible = answer.problem
        self._tell()
        if self.old:
            self.offers, self.advice = answer.offers, ()
            return
        self.html, self.offers = answer.html, ()
        self.advice, self._start = answer.offers, self._start or values

    @property
    def old(self) -> bool:
        """Whether the picture is an old one, for the values make none."""
        return bool(self._impossible)

    def _tell(self) -> None:
        self.problem = " ".join(filter(None, [*self._complaints(), self._impossible]))

    def _complaints(self) -> Iterator[str]:
        """Of each field that could not be read: why, and what it stays."""
        for name, problem in self.problems.items():
            control, value = self.panel.controls[name], self.values[name]
            if control.kind != "number" or isinstance(value, str):
                kept = str(value)
            else:
                kept = control.typed(value)
            yield f"{problem} It's still {kept}."
