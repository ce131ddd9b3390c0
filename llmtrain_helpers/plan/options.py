"""The options of a plan: the one list of their names, their types, and a line of help for each.

`plan_run` shows them in its signature and docstring, the command in its help. Their defaults
are those of `Run`, which has them checked.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import Parameter, signature
from types import NoneType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    TypedDict,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

from llmtrain_helpers.activations import Kernel
from llmtrain_helpers.checks import Number
from llmtrain_helpers.flops import EveryRecompute
from llmtrain_helpers.memory import LossKernel, Offload
from llmtrain_helpers.model.names import Chip, Model
from llmtrain_helpers.parallelism import Context, Shard, ShardedAs
from llmtrain_helpers.plan.seconds import Pace
from llmtrain_helpers.precision import Recipe, RecipeName
from llmtrain_helpers.tuning import Method, Optimizer, Tuning

Software: TypeAlias = Literal["any", "megatron-core", "other"]
"""Whose software trains: unknown; NVIDIA's Megatron-Core with Transformer Engine, as in
NeMo and Megatron-Bridge; anybody else's."""

SOFTWARE: list[Software] = [*get_args(Software)]


EveryOptimizer: TypeAlias = Literal[Optimizer, "muon"]
"""What updates the weights: the optimizers of `STATES`, and Muon, where all of them learn."""

EVERY_OPTIMIZER: list[EveryOptimizer] = [*get_args(EveryOptimizer)]


class Help(NamedTuple):
    """An option in words: a line, what else a docstring says, and its symbol in formulas."""

    line: str
    more: str = ""
    symbol: str = ""


class Sizes(TypedDict, total=False):
    """How long a sequence is, and how GPUs, batch and states are split."""

    sequence_length: Annotated[
        Number | None,
        Help(
            "tokens",
            "; by default a `Transformer`'s own, and for a name or a file 8,192, or fewer if the "
            "model takes fewer; a name with more than it takes is refused (learned positions), "
            "or gets a warning",
            symbol="s",
        ),
    ]
    micro_batch_size: Annotated[
        Number, Help("sequences that a replica works on at once", symbol="b")
    ]
    tensor_parallel: Annotated[Number, Help("GPUs that share each matrix", symbol="t")]
    pipeline_parallel: Annotated[
        Number,
        Help("GPUs that share the layers", ": stages, and m micro-batches in a step", symbol="p"),
    ]
    context_parallel: Annotated[Number, Help("GPUs that share a sequence", symbol="c")]
    interleave: Annotated[Number, Help("pieces of the model on each stage", symbol="v")]
    expert_parallel: Annotated[Number, Help("GPUs that share the experts", symbol="e")]
    zero_stage: Annotated[
        int | None,
        Help(
            "0 to 3, by default 0: optimizer states, gradients, weights are sharded, over all "
            "GPUs that hold the same"
        ),
    ]


class Assumptions(TypedDict, total=False):
    """What else a plan assumes."""

    expert_tensor_parallel: Annotated[
        Number | None,
        Help(
            "GPUs that share each expert's matrices",
            ", t or 1; by default t if e divides c·d, as Megatron-Core does it, or else 1: then "
            "each is whole, and e of all t·c·d GPUs share them",
            symbol="x",
        ),
    ]
    imbalance: Annotated[
        Number, Help("tokens of the fullest expert's GPU over the average: 1 to e")
    ]
    context: Annotated[Context, Help("how GPUs that share a sequence exchange keys and values")]
    sequence_parallel: Annotated[
        bool, Help("whether tensor-parallel GPUs share norms and dropout too")
    ]
    keep_gradients: Annotated[
        bool | None,
        Help(
            "whether gradients stay whole between passes, from ZeRO 2 on",
            "; with a pipeline it must be said, for frameworks differ",
        ),
    ]
    sharding: Annotated[
        ShardedAs | None,
        Help(
            "how states are sharded",
            '. "fsdp" is ZeRO 3 as PyTorch does it, with what is gathered, and with a pipeline a '
            'whole stage (see `Memory`); "hsdp" is the same inside each node, and nodes average '
            "gradients",
        ),
    ]
    shard: Annotated[
        Shard | None,
        Help("how states are sharded, in one word", ", in place of zero_stage and sharding"),
    ]
    recipe: Annotated[
        RecipeName | Recipe | None,
        Help(
            "bytes of a parameter",
            ', one of `RECIPES` or a `Recipe`; by default "bf16", or "amp" (16 bytes too) on a '
            "chip without bf16",
        ),
    ]
    optimizer: Annotated[
        EveryOptimizer | None,
        Help(
            "what updates the weights",
            ' (see `STATES`); by default "adamw_fused", as those of Megatron, DeepSpeed and '
            "torchtitan are. Muon has one state for the layers' matrices, Adam's two for the rest",
        ),
    ]
    loss_kernel: Annotated[
        LossKernel | None,
        Help(
            "how the loss is computed",
            ' (see `LOSS_KERNELS`); by default "in-place" with Megatron-Core, "transformers" with '
            'FSDP, else "plain"',
        ),
    ]
    offload: Annotated[
        Offload,
        Help(
            "what the CPU stores, and updates",
            '. "optimizer": AdamW\'s states, main weights and, from ZeRO 2 on, gradients, as '
            'ZeRO-Offload does it; "weights": these too, with ZeRO 3. What goes over the bus adds '
            "its time (see `OFFLOAD_BANDWIDTH`), and so does the update (`CPU_ADAM`)",
        ),
    ]
    attention: Annotated[Kernel, Help("the kernels", "; unfused ones keep the scores")]
    fused_mlp: Annotated[
        bool | None,
        Help(
            "whether the MLP's activation is fused and keeps less",
            "; by default with Megatron-Core alone",
        ),
    ]
    dropout: Annotated[bool, Help("whether there is dropout")]
    uneven_stages: Annotated[
        bool,
        Help(
            "layers need not divide: the last stage has one less",
            ", beside the head, and the others are rounded up",
        ),
    ]
    software: Annotated[
        Software,
        Help(
            "whose it is",
            ". Megatron-Core is NVIDIA's, with Transformer Engine, as in NeMo and "
            'Megatron-Bridge; "any" is the widest',
        ),
    ]
    compiled: Annotated[
        bool | None,
        Help(
            "whether kernels are compiled, or fused by hand",
            "; by default the interval covers both, and with Megatron-Core or experts as NVIDIA's",
        ),
    ]
    overlap: Annotated[
        bool | None,
        Help(
            "whether what layers send travels beside their products",
            "; by default what experts send does, and with Megatron-Core what tensor parallelism "
            "sends",
        ),
    ]
    format: Annotated[
        str | None,
        Help(
            "of the products with weights, as fp8",
            "; by default the chip's 16 bits, which the scores and the head always have",
        ),
    ]
    utilizations: Annotated[
        tuple[float, float, float] | None,
        Help("three shares of the peak over the whole run, in place of those that others reached"),
    ]
    stops: Annotated[
        tuple[float, float, float] | None,
        Help(
            "a run's time over its steps' time, least, likely and most",
            "; by default `STOPS`; 1 beside `flops_per_gpu` and `utilizations`, which are the "
            "whole run's, and for a model that is adapted, of which nobody publishes it",
        ),
    ]
    flops_per_gpu: Annotated[
        Number | None,
        Help("the whole run's rate with the bubble in it: t = T/(Bs) · F/(nX)", symbol="X"),
    ]
    pace: Annotated[Pace | None, Help("what `Plan.calibrated` makes of a measured step")]
    reserve: Annotated[
        Number | None,
        Help("bytes that must stay free", "; by default `RESERVES`, wider where nobody measured"),
    ]
    price_per_gpu_hour: Annotated[Number | None, Help("for the cost", ", in any currency")]
    tuning: Annotated[
        Tuning | None,
        Help(
            "how a model is adapted",
            " (`Tuning`); None: trained from nothing. Then bytes, optimizer, dropout and the "
            "other kernels are those of `tuning`, and what isn't known of it is refused",
        ),
    ]


class Options(Sizes, Assumptions, total=False):
    """What `plan_run` takes beside a run's model, chip, GPUs, tokens, batch and recomputation."""


class SearchOptions(Options, total=False):
    """What a search of splits takes: those that aren't given are searched."""

    recompute: Annotated[
        EveryRecompute, Help("what backward computes again", " (every other product)")
    ]


class Inputs(SearchOptions, total=False):
    """Every argument of `plan_run`."""

    model: Annotated[Model, Help("a `Transformer`, a published name, or the path of a config.json")]
    accelerator: Annotated[Chip, Help("an `Accelerator`, or its name")]
    num_gpus: Annotated[Number, Help("all of them", symbol="n")]
    tokens: Annotated[Number, Help("of the whole run", symbol="T")]
    global_batch_size: Annotated[Number, Help("sequences in a step", symbol="B")]


class Changes(Inputs, total=False):
    """What can be changed of a plan: its inputs, and how its tuning freezes weights."""

    method: Method


# --- the same in words


class Option(NamedTuple):
    """An option: its type as it's written, its choices if there are any, and its words."""

    type: str
    choices: tuple[str, ...]
    help: Help

    @property
    def words(self) -> str:
        """The option in words, its choices among them."""
        choices = [f'"{choice}"' for choice in self.choices]
        listed = f"{', '.join(choices[:-1])} or {choices[-1]}" if choices else ""
        line = ": ".join(filter(None, [self.help.line, listed]))
        return ", ".join(filter(None, [self.help.symbol, line])) + self.help.more


def _option(written: str) -> Option:
    """An option out of its annotation."""
    kind, help = get_args(eval(written))
    inside, *others = get_args(kind | None)
    listed = get_origin(inside) is Literal and others == [NoneType]  # one of a list, or None
    choices = get_args(inside) if listed else ()
    return Option(written[len("Annotated[") : written.index(", Help(")], choices, help)


OPTIONS = {
    name: _option(written.__forward_arg__) for name, written in Inputs.__annotations__.items()
}
"""Every argument of `plan_run`, in words."""

_F = TypeVar("_F", bound=Callable[..., Any])


def with_options(defaults: Mapping[str, object]) -> Callable[[_F], _F]:
    """Show each of the options in a function's signature, and every argument in its docstring."""

    def decorate(function: _F) -> _F:
        own = signature(function)
        parameters = [x for x in own.parameters.values() if x.kind is not Parameter.VAR_KEYWORD]
        for name in Options.__annotations__:
            kind, default = OPTIONS[name].type, defaults[name]
            option = Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            parameters.append(option)
        cast(Any, function).__signature__ = own.replace(parameters=parameters)
        lines = "\n".join(_explained(each.name) for each in parameters)
        function.__doc__ = (function.__doc__ or "").replace("    (see `Options`)", lines)
        return function

    return decorate


def _explained(name: str) -> str:
    """An argument as a docstring has it: its name in a column, its words in another."""
    start = f"    {name:24}"
    below = " " * len(start)
    return textwrap.fill(
        f"{start}{OPTIONS[name].words}", 98, subsequent_indent=below, break_on_hyphens=False
    )


def check_names(caller: str, names: Iterable[str], choices: Collection[str]) -> None:
    """Refuse a keyword that isn't one of the choices, as Python does, and offer the nearest."""
    for name in names:
        if name not in choices:
            from difflib import get_close_matches  # only errors need it

            near = get_close_matches(name, choices, n=1)
            offer = f". Did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{caller}() got an unexpected keyword argument {name!r}{offer}")
