"""Values that no argument should accept, and what every refusal must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

NO_NUMBERS: list[Any] = [None, True, "96", "", b"96", 1j, [96], (96,), {}, object(), int]

BAD_QUANTITIES: list[Any] = [
    *NO_NUMBERS,
    0,
    -1,
    0.0,
    -0.5,
    float("nan"),
    float("inf"),
    -float("inf"),
    10**400,
    -(10**400),
    1e300,
    np.float64("nan"),
    np.int64(-3),
    np.bool_(True),
    np.str_("96"),
    np.array([1.0, np.nan]),
    np.array([1, 0]),
    np.array([1, -2]),
    np.array([np.inf]),
    np.array(["96"]),
    np.array([True]),
    np.array([None]),
    np.array([1j]),
    np.datetime64("2026-01-01"),
    np.array("2026-01-01", "M8[D]"),
]

BAD_COUNTS: list[Any] = [*BAD_QUANTITIES, 0.5, 96.5, 1e-30, np.float64(2.5), np.array([1.5])]


def assert_refused(call: Callable[..., Any], argument: str, /, *given: Any, **values: Any) -> None:
    """The call is refused with a ValueError in words that names the argument."""
    with pytest.raises(ValueError, match=argument) as caught:
        call(*given, **values)
    assert type(caught.value) is ValueError
    assert len(str(caught.value)) < 400
