"""A panel in a notebook: a widget that the same modules draw as in a page, with the kernel
as their source.

`face/` has the modules. `anywidget` takes them to the front end, of which they use `render`,
`get`, `send` and `on`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import anywidget
import traitlets

from llmtrain_course.kit import protocol
from llmtrain_course.kit.panel import Panel, Value, Values
from llmtrain_course.kit.state import State

FACE = Path(__file__).parent / "face"
MODULES = ("elements", "drag", "face", "kernel")
"""What a face is made of, each below those that it imports."""


def _joined() -> str:
    """Return the modules as one, for a front end that imports a single text."""
    text = "\n".join((FACE / f"{name}.js").read_text("utf-8") for name in MODULES)
    return re.sub(r"^import .*;\n|^export (?!default)", "", text, flags=re.MULTILINE)


def _style() -> str:
    """Return how it looks, with a notebook's theme."""
    return "".join((FACE / f"{name}.css").read_text("utf-8") for name in ("face", "lab"))


class NotebookPanel(anywidget.AnyWidget):
    """A panel's or a handle's controls, and its answer; `set` and `values` are for code."""

    _esm, _css = _joined(), _style()
    about = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)
    address = traitlets.Unicode().tag(sync=True)

    def __init__(self, panel: Panel) -> None:
        self.panel, self.state = panel, State(panel)
        address = uuid4().hex  # from the first message on: a later one may be lost
        super().__init__(
            model_id=address,
            address=address,
            about=protocol.layout(panel),
            answer=protocol.view(self.state),
        )
        self.on_msg(self._receive)

    def act(self, *deed: Any) -> None:
        """Do what the learner does in a face: `act("write", "gpus", "16")`, `act("take", 0)`."""
        protocol.act(self.state, *deed)
        self._show()

    def set(self, **values: Value) -> None:
        """Set several controls and start over, comparing nothing."""
        self.state.set(**values)
        self._show()

    def begin_again(self) -> None:
        """Go back to the preset that was there last."""
        self.state.reset()
        self._show()

    def values(self) -> dict[str, Value]:
        """Return what the controls say now."""
        return dict(self.state.values)

    @property
    def presets(self) -> dict[str, Values]:
        """The panel's presets, by name."""
        return {**self.panel.presets}

    @property
    def html(self) -> str:
        """What it answers."""
        return self.state.html

    def static_html(self) -> str:
        """Return the panel for a page without a kernel."""
        return self.panel.static_html()

    def _show(self, asked: str = "") -> None:
        self.answer = {**protocol.view(self.state), "id": asked}

    def _receive(self, widget: Any, message: dict[str, Any], buffers: Any) -> None:
        """Answer a view: what's to be shown after a deed, or where marks are."""
        asked = message["id"]
        try:
            if "marks" in message:
                self.send({"id": asked, "marks": protocol.marks(self.state, message["marks"])})
                return
            protocol.act(self.state, *message["deed"])
            self._show(asked)
        except ValueError as error:
            self.send({"id": asked, "error": str(error)})

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle: Any = super()._repr_mimebundle_(**options)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        data["text/plain"] = self.panel.words
        data["text/html"] = self.static_html()
        return bundle
