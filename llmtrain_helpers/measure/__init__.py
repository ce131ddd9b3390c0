"""Chapter 08: the formulas, held against PyTorch."""
from __future__ import annotations
from dataclasses import dataclass
@dataclass(frozen=True)
class Saved:
    part: str
    module: str
    shape: tuple[int, ...]
    bytes: int
    left_out: str = ""
