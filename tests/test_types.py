"""Types that a user's checker sees: none is hidden behind `Any`, and all are true."""

from __future__ import annotations

import builtins
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType, UnionType
from typing import Any, Union, get_args, get_origin

import pytest

import llmtrain_helpers as package
from tests import user_types


class _Foreign(type):
    """A class of another package, imported for type checkers only; what is in it is its own."""

    def __getitem__(cls, inside: object) -> type:
        return cls

    def __or__(cls, other: Any) -> Any:
        return Union[cls, other]  # noqa: UP007

    def __ror__(cls, other: Any) -> Any:
        return Union[other, cls]  # noqa: UP007


class Foreign(metaclass=_Foreign):
    """Stands for any of them."""


class Names(dict[str, Any]):
    """A module's names; those that it only has for type checkers are foreign."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, Foreign)


def has_any(hint: object) -> bool:
    """Whether `Any` is in a type, however deep; that of NumPy's arrays is NumPy's."""
    inside = hint if isinstance(hint, list) else get_args(hint)
    return hint is Any or any(map(has_any, inside))


def hiding(annotated: Any, names: dict[str, Any]) -> list[str]:
    """The arguments of a function, or the fields of a class, whose type has `Any`."""
    hidden = []
    for name, hint in inspect.get_annotations(annotated).items():
        kind = eval(hint, {}, Names(names)) if isinstance(hint, str) else hint
        if not name.startswith("_") and has_any(kind):
            hidden.append(name)
    return hidden


def functions_of(owner: type | ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions of a module, or methods and properties of a class, by name."""
    for name, value in vars(owner).items():
        for attribute in ("__func__", "fget", "func"):  # of a classmethod, of properties
            value = getattr(value, attribute, value)
        if not name.startswith("_") and inspect.isfunction(inspect.unwrap(value)):
            yield name, inspect.unwrap(value)


def any_in(module: ModuleType) -> Iterator[str]:
    """What is public in a module and has `Any` in its signature."""
    names = vars(module)
    for name, function in functions_of(module):
        if function.__module__ == module.__name__ and hiding(function, names):
            yield name
    for kind in names.values():
        own = inspect.isclass(kind) and kind.__module__ == module.__name__
        if own and not kind.__name__.startswith("_"):
            yield from (f"{kind.__name__}.{name}" for name in hiding(kind, names))
            for name, method in functions_of(kind):
                if hiding(method, names):
                    yield f"{kind.__name__}.{name}"


def modules() -> Iterator[ModuleType]:
    """All modules of the package, but for those that only refuse, or run."""
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if info.name.split(".")[1] not in ("exercises", "panels", "__main__"):
            yield import_module(info.name)


def test_no_signature_hides_a_type_behind_any() -> None:
    hidden = [f"{module.__name__}.{name}" for module in modules() for name in any_in(module)]
    assert not hidden


def test_a_hidden_type_is_noticed() -> None:
    module = ModuleType("module")
    source = """
from __future__ import annotations
from typing import Any
Result = Any
class Shape:
    size: int
    layers: dict[str, Result]
    @property
    def total(self) -> Result: ...
    @classmethod
    def of(cls, config: DataFrame) -> Shape: ...
def bytes_of(parameters: int, _memory: Any = None) -> list[Result]: ...
def share(sizes: NDArray[Any], total: int | None) -> float: ...
"""
    exec(source, vars(module))
    assert [*any_in(module)] == ["bytes_of", "Shape.layers", "Shape.total"]


@pytest.mark.parametrize(
    "name",
    [
        "counts_and_rates",
        "models_and_chips",
        "counts_of_a_model",
        "bytes_and_seconds",
        "plans",
        "texts",
        "arrays",
    ],
)
def test_what_a_users_checker_sees_is_so(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    wrong = []

    def at_run_time(value: object, kind: type | UnionType) -> None:
        kinds = get_args(kind) if isinstance(kind, UnionType) else [kind]
        kinds = [*kinds, int] if float in kinds else kinds  # for a checker an int is a float
        if not isinstance(value, tuple(get_origin(kind) or kind for kind in kinds)):
            wrong.append((value, kind))

    monkeypatch.setattr(user_types, "assert_type", at_run_time)
    getattr(user_types, name)()
    assert not wrong
