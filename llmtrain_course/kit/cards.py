"""The memory of a card: on every page the bytes that a plan counts, and its reserve."""

from __future__ import annotations

from llmtrain_helpers.plan.memory import RESERVES, card_bytes
from llmtrain_helpers.published import accelerator

RESERVE = RESERVES["one GPU"]
"""Bytes that a step on one GPU leaves free."""


def memory_of(chip: str) -> float:
    """The bytes of a card, as its driver shows them.

    >>> memory_of("H100")
    85520809984.0
    """
    return float(card_bytes(accelerator(chip)))


def capacity_of(chip: str) -> float:
    """The bytes of a card that a step on one GPU may fill: all but the reserve.

    >>> capacity_of("H100")
    82120809984.0
    """
    return memory_of(chip) - RESERVE
