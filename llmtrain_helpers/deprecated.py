"""Old names of public attributes: each warns, and goes with the next release."""

from __future__ import annotations

from typing import Any
from warnings import warn


class OldName:
    """An attribute's old name, in the class that has it under a new one.

    It can be read, but a dataclass doesn't count it as a field.
    """

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, old: str) -> None:
        self.message = f"{owner.__name__}.{old} is now {owner.__name__}.{self.new}"

    def __get__(self, thing: object, owner: type) -> Any:
        if thing is None:
            return self
        warn(self.message, DeprecationWarning, stacklevel=2)
        return getattr(thing, self.new)
