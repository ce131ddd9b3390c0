"""What a model is: a stack of layers, each of a mixer and an MLP. And its chip."""

from typing import TYPE_CHECKING, Any

from llmtrain_helpers.model.accelerator import Accelerator as Accelerator
from llmtrain_helpers.model.layers import (
    Attention as Attention,
    Experts as Experts,
    LatentAttention as LatentAttention,
    Layer as Layer,
    Mlp as Mlp,
)
from llmtrain_helpers.model.parts import Matrix as Matrix, Mixer as Mixer, Part as Part
from llmtrain_helpers.model.transformer import Transformer as Transformer

if TYPE_CHECKING:
    from llmtrain_helpers.model.recurrences import Recurrence as Recurrence


def __getattr__(name: str) -> Any:
    """`Recurrence`, imported on its first use: few models have one."""
    if name != "Recurrence":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from llmtrain_helpers.model.recurrences import Recurrence

    return Recurrence
