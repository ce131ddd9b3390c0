"""The panel of chapter 05: bytes of a model's states against a GPU's memory."""

from __future__ import annotations

from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.panels import common
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.precision import (
    RECIPES,
    ModelStateBytes,
    model_state_bytes,
    smallest_data_parallel,
)
from llmtrain_helpers.published import accelerator, architecture


def _preset(*values: Any) -> dict[str, Any]:
    names = ["model", "recipe", "zero_stage", "data_parallel", "chip"]
    return dict(zip(names, values, strict=True))


_A100 = "A100 80GB SXM"

_PRESETS = {
    "8B, ZeRO 1": _preset("Llama-3.1-8B", "bf16_fp32_grads", 1, 8, _A100),
    "8B, no sharding": _preset("Llama-3.1-8B", "bf16_fp32_grads", 0, 8, _A100),
    "70B, ZeRO 3": _preset("Llama-3.1-70B", "bf16", 3, 64, "H100 SXM"),
    "GPT-2 XL on a small card": _preset("gpt2-xl", "amp", 0, 1, "RTX 3090"),
}


_CONTROLS = {
    "model": common.models(),
    "recipe": common.choice(
        "Recipe", "Which number formats the copies have.", [*RECIPES]
    ),
    "zero_stage": common.choice(
        "ZeRO stage",
        "What replicas share out instead of each keeping it.",
        [0, 1, 2, 3],
    ),
    "data_parallel": common.Control(
        "Replicas",
        "Copies of the model that train side by side.",
        most=1_000_000,
        stops=common.doublings(1, 4096),
    ),
    "chip": common.accelerators(),
}


def render(
    before: common.Values | None = None,
    *,
    model: str,
    recipe: str,
    zero_stage: int,
    data_parallel: int,
    chip: str,
) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    P = count_parameters(architecture(model)).total
    states = model_state_bytes(P, recipe, zero_stage, data_parallel)
    memory = accelerator(chip).memory
    bars = {"Model states on each GPU": states.parts(), "Memory": {"memory": memory}}
    sharing = f"zero_stage={zero_stage}, data_parallel={data_parallel}"
    return "".join(
        [
            common.sentence(_sentence(states, memory, P, recipe, zero_stage)),
            common.stacked_bars(bars, units.gigabytes),
            common.table(["part", "on each GPU", "a parameter"], _rows(states, P)),
            common.call(f"model_state_bytes({P}, {recipe!r}, {sharing})"),
        ]
    )


def _sentence(
    states: ModelStateBytes, memory: Any, P: Any, recipe: str, stage: int
) -> str:
    told = f"<b>{units.gigabytes(states.total)}</b> of model states on each GPU of "
    told += f"{units.gigabytes(memory)}: "
    if states.total <= memory:
        return f"{told}<b>fits</b>, {units.gigabytes(memory - states.total)} left."
    try:
        enough = smallest_data_parallel(P, recipe, stage, memory)
    except ValueError:
        return f"{told}<b>does not fit</b>, with any number of replicas at this stage."
    return f"{told}<b>does not fit</b>; {units.exact(enough)} replicas would do."


def _rows(states: ModelStateBytes, P: int) -> list[list[str]]:
    sizes = [*states.parts().items(), ("total", states.total)]
    return [
        [common.WORDS.get(name, name), units.gigabytes(x), f"{units.digits(x / P)} B"]
        for name, x in sizes
    ]


PANEL = common.Panel(
    "What does a parameter weigh?",
    _CONTROLS,
    _PRESETS,
    ("8B, no sharding", "70B, ZeRO 3"),
    render,
)
