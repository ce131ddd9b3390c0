"""The controls that several panels have, each defined once, and the split they share.

A panel that shows one in another place, or with another slider, takes it with
`dataclasses.replace`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypedDict

from llmtrain_course.kit.formulas import published_model
from llmtrain_course.kit.panel import Control, Value
from llmtrain_helpers import published
from llmtrain_helpers.flops import RECOMPUTE, EveryRecompute
from llmtrain_helpers.model.layers import Attention, LatentAttention
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.precision import RECIPES


def choice(
    label: str,
    help: str,
    options: Iterable[Value],
    *,
    more: bool = False,
    view: bool = False,
    lead: bool = False,
    applies: Callable[..., bool] = lambda setting: True,
) -> Control:
    """A list to choose from."""
    return Control(
        label,
        help,
        "choice",
        options=tuple(options),
        more=more,
        view=view,
        lead=lead,
        applies=applies,
    )


def steps(first: float, last: float, *mantissas: float) -> tuple[float, ...]:
    """A slider's stops: so many round numbers in every power of ten.

    >>> steps(10, 300, 1, 2, 5)
    (10, 20, 50, 100, 200)
    """
    powers = range(-9, 20)
    numbers = sorted(m * 10**k if k >= 0 else m / 10**-k for k in powers for m in mantissas)
    return tuple(x for x in numbers if first <= x <= last)


def doublings(first: int, last: int) -> tuple[int, ...]:
    """A slider's stops: powers of two.

    >>> doublings(1, 16)
    (1, 2, 4, 8, 16)
    """
    return tuple(2**k for k in range(40) if first <= 2**k <= last)


# --- what is trained


def _has_only_attention(name: str) -> bool:
    """Whether all mixers of a model are attention: of others no activations are counted."""
    layers = published_model(name).layers
    mixers = [mixer for _, layer in layers for mixer in layer.mixers]
    return all(isinstance(mixer, Attention | LatentAttention) for mixer in mixers)


MODEL = choice("Model", "A published model, whose shape we know.", published.model_names())

COUNTED_MODEL = choice(
    MODEL.label, MODEL.help, [name for name in published.model_names() if _has_only_attention(name)]
)
"""The published models whose activations can be counted."""

TOKENS = Control(
    "Tokens",
    "Tokens that the run trains on in all.",
    unit="tokens",
    most=10**16,
    stops=steps(10**9, 10**14, 1, 1.5, 2, 3, 5, 7),
)

SEQUENCE = Control(
    "Sequence", "Tokens in each training sequence.", unit="tokens", most=10_000_000, more=True
)

BATCH = Control(
    "Batch",
    "Sequences in one iteration, over all GPUs.",
    unit="sequences",
    most=10_000_000,
    more=True,
)

RECOMPUTED = choice("Recomputed", "What's recomputed to save memory.", RECOMPUTE)

RECIPE = choice("Recipe", "The number formats of the copies.", RECIPES)

# --- the machines

GPUS = Control("GPUs", "All GPUs of the run.", most=10_000_000, stops=doublings(1, 65536))

CHIP = choice(
    "Accelerator",
    "The chip: its memory and its dense peaks.",
    published.names("accelerators"),
    more=True,
)

PRICE = Control(
    "Price",
    "Dollars per GPU-hour. Enter your own price.",
    unit="dollars per GPU-hour",
    least=0.01,
    most=1e6,
    whole=False,
    more=True,
)

DAYS_OF_USE = (1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 120, 180, 365)
"""Where a slider of days stops."""

SHARE_OF_PEAK = Control(
    "Share of the peak",
    "Percentage of its dense peak that each GPU reaches. 35 is usual.",
    unit="%",
    least=0.1,
    most=100,
    whole=False,
)

# --- the split

MICRO_BATCH = Control(
    "Micro-batch", "Sequences processed at once per GPU.", unit="at a time", most=1_000_000
)

TENSOR_PARALLEL = Control("Tensor parallel", "GPUs that share each matrix.", most=1_000)

PIPELINE_PARALLEL = Control("Pipeline stages", "Groups of layers, one after the other.", most=1_000)

CONTEXT_PARALLEL = Control(
    "Context parallel", "GPUs that share each sequence.", most=1_000, more=True
)

EXPERT_PARALLEL = Control(
    "Expert parallel",
    "GPUs over which the experts are spread.",
    most=1_000,
    more=True,
    applies=lambda setting: setting.shape_has_experts,
)

ZERO_STAGE = choice("ZeRO stage", "What replicas shard instead of each storing it.", (0, 1, 2, 3))

GRADIENTS = choice(
    "Gradients between passes",
    "What ZeRO 2 and 3 do with gradients between the passes of a step.",
    ("sharded", "whole"),
    more=True,
    applies=lambda setting: setting.zero_stage > 1,
)


class Mesh(TypedDict):
    """The arguments of `plan_run` that a split's controls give as they are."""

    recompute: EveryRecompute
    micro_batch_size: int
    tensor_parallel: int
    pipeline_parallel: int
    context_parallel: int
    zero_stage: int


@dataclass(frozen=True)
class Split:
    """A model on GPUs, and how they share it: what the panels of 08 and 09 both set."""

    model: str = "Llama-3.1-8B"
    chip: str = "H100 SXM"
    num_gpus: int = 64
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    context_parallel: int = 1
    expert_parallel: int = 1
    zero_stage: int = 1
    gradients: str = "sharded"
    recompute: EveryRecompute = "none"
    micro_batch_size: int = 1
    global_batch_size: int = 512
    sequence_length: int = 8192

    @property
    def shape_has_experts(self) -> bool:
        """Whether the model is a mixture of experts."""
        return bool(published_model(self.model).num_experts)

    @property
    def experts(self) -> int:
        """Over how many GPUs experts are spread, of a model that has them."""
        return self.expert_parallel if self.shape_has_experts else 1

    @property
    def mesh(self) -> Mesh:
        """What `plan_run` takes as it is, in the order in which code shows it."""
        return {
            "recompute": self.recompute,
            "micro_batch_size": self.micro_batch_size,
            "tensor_parallel": self.tensor_parallel,
            "pipeline_parallel": self.pipeline_parallel,
            "context_parallel": self.context_parallel,
            "zero_stage": self.zero_stage,
        }

    def check_replicas(self, model: Transformer) -> None:
        """Refuse a split that makes no whole replicas, or ones that cannot share a batch.

        `plan_run` refuses them too; here in an order and in words that name what can be
        changed in a panel.
        """
        n, b, B = self.num_gpus, self.micro_batch_size, self.global_batch_size
        if model.num_heads % self.tensor_parallel:
            heads = f"the model's {model.num_heads} attention heads"
            raise ValueError(f"tensor_parallel={self.tensor_parallel} doesn't divide {heads}")
        ways = {
            "tensor_parallel": self.tensor_parallel,
            "pipeline_parallel": self.pipeline_parallel,
            "context_parallel": self.context_parallel,
        }
        each = math.prod(ways.values())
        if n % each:
            product = " × ".join(f"{name}={size}" for name, size in ways.items() if size > 1)
            whole = f" = {each}" if "×" in product else ""
            raise ValueError(
                f"num_gpus={n} don't form whole replicas, because each one needs {product}{whole}"
            )
        if B % (b * (n // each)):
            raise ValueError(
                f"global_batch_size={B} is not divisible by {n // each:,} replicas, which "
                f"num_gpus={n} form, times micro_batch_size={b}"
            )
