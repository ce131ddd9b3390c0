"""The options of a plan: the only list of their names, types and help lines.

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
"""The software that trains: unknown; NVIDIA's Megatron-Core with Transformer Engine, as in
NeMo and Megatron-Bridge; or any other."""

SOFTWARE: list[Software] = [*get_args(Software)]


EveryOptimizer: TypeAlias = Literal[Optimizer, "muon"]
"""The optimizers: those of `STATES`, and Muon if all weights learn."""

EVERY_OPTIMIZER: list[EveryOptimizer] = [*get_args(EveryOptimizer)]


class Help(NamedTuple):
    """An option in words: a help line, the rest of its docstring, and its symbol in formulas."""

    line: str
    more: str = ""
    symbol: str = ""


class Sizes(TypedDict, total=False):
    """The sequence length, and how GPUs, batch and states are split."""

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
        Number, Help("sequences that a replica processes at once", symbol="b")
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
            "0 to 3, by default 0: optimizer states, gradients, weights are sharded over all "
            "GPUs that have the same ones"
        ),
    ]


class Assumptions(TypedDict, total=False):
    """The other assumptions of a plan."""

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
        bool, Help("whether tensor-parallel GPUs also split norms and dropout")
    ]
    keep_gradients: Annotated[
        bool | None,
        Help(
            "whether gradients stay whole between passes, from ZeRO 2 on",
            "; with a pipeline you have to say, because frameworks differ",
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
        Help("how states are sharded, in one word", ", instead of zero_stage and sharding"),
    ]
    recipe: Annotated[
        RecipeName | Recipe | None,
        Help(
            "bytes per parameter",
            ', one of `RECIPES` or a `Recipe`; by default "bf16", or "amp" (16 bytes too) on a '
            "chip without bf16",
        ),
    ]
    optimizer: Annotated[
        EveryOptimizer | None,
        Help(
            "the optimizer",
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
            "what the CPU stores and updates",
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
            "whether the last stage has one layer less, if layers don't divide evenly",
            ", next to the head, and the others are rounded up",
        ),
    ]
    software: Annotated[
        Software,
        Help(
            "the training software",
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
            "whether the layers' communication overlaps with their products",
            "; by default what experts send does, and with Megatron-Core what tensor parallelism "
            "sends",
        ),
    ]
    format: Annotated[
        str | None,
        Help(
            "number format of the products with weights, such as fp8",
            "; by default the chip's 16 bits, which the scores and the head always have",
        ),
    ]
    utilizations: Annotated[
        tuple[float, float, float] | None,
        Help("three shares of the peak over the whole run, instead of other runs' shares"),
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
    pace: Annotated[Pace | None, Help("a measured step, made by `Plan.calibrated`")]
    reserve: Annotated[
        Number | None,
        Help("bytes to leave free", "; by default `RESERVES`, wider if nobody measured"),
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
    """The arguments of `plan_run` after model, chip, GPUs, tokens, batch and recomputation."""


class SearchOptions(Options, total=False):
    """The options of a split search: it searches those that you leave out."""

    recompute: Annotated[EveryRecompute, Help("what backward recomputes", " (every other product)")]


class Inputs(SearchOptions, total=False):
    """Every argument of `plan_run`."""

    model: Annotated[Model, Help("a `Transformer`, a published name, or the path of a config.json")]
    accelerator: Annotated[Chip, Help("an `Accelerator`, or its name")]
    num_gpus: Annotated[Number, Help("all of them", symbol="n")]
    tokens: Annotated[Number, Help("of the whole run", symbol="T")]
    global_batch_size: Annotated[Number, Help("sequences in a step", symbol="B")]


class Changes(Inputs, total=False):
    """Everything that you can change in a plan: its inputs, and how its tuning freezes weights."""

    method: Method


# --- the same in words


class Option(NamedTuple):
    """An option: its type as written, its choices if it has any, and its words."""

    type: str
    choices: tuple[str, ...]
    help: Help

    @property
    def words(self) -> str:
        """The option in words, including its choices."""
        choices = [f'"{choice}"' for choice in self.choices]
        listed = f"{', '.join(choices[:-1])} or {choices[-1]}" if choices else ""
        line = ": ".join(filter(None, [self.help.line, listed]))
        return ", ".join(filter(None, [self.help.symbol, line])) + self.help.more


def _option(written: str) -> Option:
    """Make an option from its annotation."""
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
    """Format an argument for a docstring: its name in one column, its words in another."""
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
