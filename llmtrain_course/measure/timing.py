"""How long real steps take on this machine, and which operators take it.

Behind `step_seconds` and `profile_step`, and the record. Needs PyTorch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from llmtrain_course.measure import PHASES, Operator, StepProfile
from llmtrain_course.measure.clock import timed
from llmtrain_course.measure.model import build, tokens
from llmtrain_course.measure.trace import PRODUCTS
from llmtrain_course.measure.training import DTYPES, Trainer
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.precision import RECIPES, RecipeName

VIEWS = {
    "view",
    "as_strided",
    "reshape",
    "unflatten",
    "_unsafe_view",
    "alias",
    "detach",
    "t",
    "transpose",
    "permute",
    "expand",
    "select",
    "slice",
    "split",
    "unsqueeze",
    "empty",
    "empty_like",
    "empty_strided",
    "resize_",
    "to",
}
"""Those that move and compute nothing: another look at a tensor, or room for one."""


def trainer_of(
    shape: Transformer, recipe: RecipeName, device: str, recompute: str, attention: str
) -> Trainer:
    """A model of this shape with its copies on a device, ready to train."""
    dtype = DTYPES[int(RECIPES[recipe].weights)]
    net = build(shape, device, dtype, attention, recompute=recompute)
    return Trainer(net, recipe)


def seconds_of(
    shape: Transformer,
    batch_size: int,
    recipe: RecipeName,
    recompute: str,
    attention: str,
    device: str = "cpu",
    repeats: int = 5,
) -> float:
    """The median of some steps, after one that warms up and makes Adam's state."""
    trainer = trainer_of(shape, recipe, device, recompute, attention)
    inputs = tokens(shape, batch_size, device)
    trainer.step(*inputs)
    return median_seconds(lambda: trainer.step(*inputs), device, repeats)


def step_of(
    shape: Transformer, batch_size: int, recipe: RecipeName, recompute: str, attention: str
) -> Callable[[], None]:
    """A step on this CPU, with its tokens."""
    trainer = trainer_of(shape, recipe, "cpu", recompute, attention)
    return partial(trainer.step, *tokens(shape, batch_size, "cpu"))


def median_seconds(run: Any, device: str, repeats: int) -> float:
    """Seconds from a device that is idle to one that is idle again."""
    wait = torch.cuda.synchronize if device == "cuda" else None
    return timed(run, warm_up=0, repeats=repeats, wait=wait).median


def step_profile(
    shape: Transformer, batch_size: int, recipe: RecipeName, recompute: str, attention: str
) -> StepProfile:
    """The operators of the third step: what is made once is there by then."""
    trainer = trainer_of(shape, recipe, "cpu", recompute, attention)
    inputs = tokens(shape, batch_size, "cpu")
    for _ in range(2):
        trainer.step(*inputs)
    with quiet(), profile(activities=[ProfilerActivity.CPU]) as watched:
        with record_function("forward"):
            loss = trainer.net.loss(*inputs)
        with record_function("backward"):
            loss.backward()
        with record_function("optimizer"):
            trainer.update()
    return StepProfile(tuple(_operators(watched.events())))


@contextmanager
def quiet() -> Iterator[None]:
    """Keep off stderr what C++ writes: the profiler reports its start and stop there."""
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


def _operators(events: Any) -> Iterator[Operator]:
    """List what computes within each phase, in order; seconds from the first phase."""
    phases = [event for event in events if event.name in PHASES]
    phases.sort(key=_start)
    for phase in phases:
        for event in _computing_operators(phase):
            name = event.name.removeprefix("aten::")
            start, seconds = _start(event) - _start(phases[0]), _duration(event)
            yield Operator(name, phase.name, start, seconds, event.name in PRODUCTS)


def _computing_operators(event: Any) -> Iterator[Any]:
    """Find the operators that don't spend most of their time calling others.

    What calls a matrix product never stands for it, however long it was held up.
    """
    children = sorted(event.cpu_children, key=_start)
    called = sum(_duration(child) for child in children)
    itself = event.name.startswith("aten::") and called < _duration(event) / 2
    if event.name in PRODUCTS or (itself and not any(map(_multiplies, children))):
        if event.name.removeprefix("aten::") not in VIEWS:
            yield event
        return
    for child in children:
        yield from _computing_operators(child)


def _multiplies(event: Any) -> bool:
    """Whether it is a matrix product, or calls one."""
    return event.name in PRODUCTS or any(map(_multiplies, event.cpu_children))


def _start(event: Any) -> float:
    return float(event.time_range.start) / 1e6


def _duration(event: Any) -> float:
    return float(event.time_range.elapsed_us()) / 1e6
