"""The scripts of `teaching/`, which is no package."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from tests.paths import ROOT


def load(name: str) -> ModuleType:
    """A script, as a module."""
    place = ROOT / "teaching" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"teaching_{name}", place)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module
