"""Old names of public attributes still work for one release, and warn."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest

import llmtrain_helpers
from llmtrain_helpers import Tuning, advise
from llmtrain_helpers.deprecated import OldName
from tests.fuzz_values import PLAN
from tests.plan.cases import H100, plan_of

ADVICE = advise(PLAN.replace(num_gpus=8, micro_batch_size=64))[-1]

THINGS = [PLAN, PLAN.run, PLAN.memory, Tuning.lora(16), ADVICE, plan_of(accelerator=H100).step]
"""An object of each class that has an old name."""

OLD_NAMES = [
    (thing, name)
    for thing in THINGS
    for name, value in vars(type(thing)).items()
    if isinstance(value, OldName)
]


def classes() -> Iterator[type]:
    """Every class of the package."""
    for module in walk_packages(llmtrain_helpers.__path__, "llmtrain_helpers."):
        if not module.name.endswith((".exercises", ".panels", ".__main__")):
            yield from (x for x in vars(import_module(module.name)).values() if inspect.isclass(x))


def test_every_class_with_an_old_name_is_tested() -> None:
    renamed = {x for x in classes() if any(isinstance(y, OldName) for y in vars(x).values())}
    assert renamed == {*map(type, THINGS)}


@pytest.mark.parametrize(
    ("thing", "old"), OLD_NAMES, ids=[f"{type(x).__name__}.{old}" for x, old in OLD_NAMES]
)
def test_an_old_name_warns_and_answers_as_the_new_one(thing: Any, old: str) -> None:
    new = inspect.getattr_static(thing, old).new
    with pytest.warns(DeprecationWarning, match=rf"\.{old} is now \w+\.{new}$"):
        value = getattr(thing, old)
    assert value == getattr(thing, new)
