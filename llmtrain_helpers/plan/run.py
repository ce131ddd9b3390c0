"""A run as a value: what is trained, on what, how it's split, and what we assume.

`plan_run` makes one from its arguments; everything else in this folder takes it. The
sources are those of the formulas that use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Unpack

from llmtrain_helpers.activations import KERNELS, Kernel, check_alternate
from llmtrain_helpers.batch import accumulation_steps, data_parallel_size
from llmtrain_helpers.checks import (
    Result,
    Size,
    T,
    amount,
    anywhere,
    broadcast,
    choice,
    count,
    flag,
    instance,
    is_array,
    one,
    quantity,
    rate,
    refuse,
    show,
    single,
    unchecked,
)
from llmtrain_helpers.deprecated import OldName
from llmtrain_helpers.duration import checked_utilizations
from llmtrain_helpers.finetune import RECOMPUTED
from llmtrain_helpers.flops import EVERY_RECOMPUTE, EveryRecompute
from llmtrain_helpers.memory import LOSS_KERNELS, LossKernel, Offload, check_offload
from llmtrain_helpers.model import Accelerator, Transformer
from llmtrain_helpers.model.names import BLOCKS, known_accelerator, known_model
from llmtrain_helpers.parallelism import (
    CONTEXT,
    SHARDING,
    SHARDS,
    Context,
    Rule,
    ShardedAs,
    Split,
    expert_tensor_size,
    split_rules,
)
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.options import (
    EVERY_OPTIMIZER,
    SOFTWARE,
    Changes,
    EveryOptimizer,
    Software,
    check_names,
)
from llmtrain_helpers.plan.seconds import Pace
from llmtrain_helpers.precision import RECIPES, Recipe, RecipeName, known_recipe, missing_format
from llmtrain_helpers.results import maximum, minimum
from llmtrain_helpers.tuning import STATES, Tuning

SIZES = (
    "micro_batch_size",
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "interleave",
    "expert_parallel",
)
"""The arguments that describe how the work is split."""

NUMBERS = ("num_gpus", "tokens", "global_batch_size", *SIZES)
"""The arguments that are whole numbers, or arrays of them in a sweep."""

OPTIONAL = {
    "price_per_gpu_hour": quantity,
    "expert_tensor_parallel": count,
    "flops_per_gpu": rate,
    "reserve": amount,
    "keep_gradients": flag,
    "compiled": flag,
    "overlap": flag,
    "fused_mlp": flag,
}
"""The arguments that are checked unless they're None, each with its check."""

UNTUNED = (
    *("pipeline_parallel", "context_parallel", "interleave", "expert_parallel"),
    *("expert_tensor_parallel", "imbalance"),
    *("keep_gradients", "fused_mlp", "dropout", "uneven_stages", "software", "compiled"),
    *("overlap", "pace"),
)
"""Arguments that a tuned run doesn't change, either because we don't know their effect, or
because `Tuning` has its own (bytes, dropout, fused kernels)."""


OF_TUNING = ("optimizer", "recipe", "loss_kernel")
"""Options that are part of the tuning of a tuned run, and otherwise belong to the run."""


@dataclass(frozen=True, eq=False)
class Run:
    """The checked arguments of `plan_run`, and the split of the GPUs that follows from them.

    `replace` varies it. Raises ValueError for a split that doesn't divide evenly, and for
    bad input of any kind.
    """

    model: Transformer
    accelerator: Accelerator
    num_gpus: Size
    tokens: Size
    global_batch_size: Size
    recompute: EveryRecompute
    micro_batch_size: Size = 1
    tensor_parallel: Size = 1
    pipeline_parallel: Size = 1
    context_parallel: Size = 1
    interleave: Size = 1
    expert_parallel: Size = 1
    expert_tensor_parallel: Size | None = None
    imbalance: Result = 1
    context: Context = "ring"
    sequence_parallel: bool = True
    zero_stage: int = 0
    keep_gradients: bool | None = None
    sharding: ShardedAs = "zero"
    recipe: RecipeName | Recipe | None = None
    optimizer: EveryOptimizer | None = None
    loss_kernel: LossKernel | None = None
    offload: Offload = "none"
    attention: Kernel = "flash"
    fused_mlp: bool | None = None
    dropout: bool = False
    uneven_stages: bool = False
    software: Software = "any"
    compiled: bool | None = None
    overlap: bool | None = None
    format: str | None = None
    utilizations: tuple[float, float, float] | None = None
    stops: tuple[float, float, float] | None = None
    flops_per_gpu: Result | None = None
    pace: Pace | None = None
    reserve: Result | None = None
    price_per_gpu_hour: Result | None = None
    tuning: Tuning | None = None
    split: Split = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", known_model(self.model))
        object.__setattr__(self, "accelerator", known_accelerator(self.accelerator))
        for name in NUMBERS:
            object.__setattr__(self, name, count(name, getattr(self, name)))
        imbalance = one("imbalance", self.imbalance, quantity)
        if imbalance < 1:
            refuse("imbalance", self.imbalance, "is less than 1")
        e = self.expert_parallel
        if imbalance > 1 and not anywhere(e >= imbalance):
            refuse("imbalance", imbalance, f"is more than expert_parallel={show(e)}")
        object.__setattr__(self, "imbalance", imbalance)
        stage = single("zero_stage", self.zero_stage, least=0)
        object.__setattr__(self, "zero_stage", stage)
        if choice("sharding", self.sharding, SHARDING) != "zero" and stage != 3:
            refuse("zero_stage", stage, "isn't what FSDP does: with FSDP, write 3")
        if self.sharding == "hsdp":
            problem = "is not planned with sharding='hsdp': experts spread over nodes, states not"
            if anywhere(self.expert_parallel > 1):
                refuse("expert_parallel", self.expert_parallel, problem)
            if self.expert_tensor_parallel is not None:
                refuse("expert_tensor_parallel", self.expert_tensor_parallel, problem)
        if choice("recompute", self.recompute, EVERY_RECOMPUTE) == "alternate":
            for layer in self.model.kinds:
                check_alternate(layer)
        choice("attention", self.attention, KERNELS)
        choice("context", self.context, CONTEXT)
        choice("software", self.software, SOFTWARE)
        for name in ("sequence_parallel", "dropout", "uneven_stages"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))
        self._check_recipe()
        chip = self.accelerator
        chip.peak(chip.training_format if self.format is None else self.format)
        if self.utilizations is not None:
            checked_utilizations(self.utilizations)
        if self.stops is not None:
            object.__setattr__(self, "stops", checked_stops(self.stops))
        self._check_speed()
        for name, check in OPTIONAL.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check(name, getattr(self, name)))
        arrays = {name: getattr(self, name) for name in (*NUMBERS, *OPTIONAL)}
        P = count_parameters(self.model)
        broadcast(**vars(self.accelerator), model=P.total, **arrays)
        if self.tuning is not None:
            self._check_tuning()
        check_offload(self.offload, stage, self.update, self.bytes_of)
        if self.offload == "weights" and anywhere(self.pipeline_parallel > 1):
            problem = "isn't planned with a pipeline, which gathers its whole stage"
            refuse("offload", self.offload, problem)
        if self.keep_gradients and stage < 2:
            problem = (
                f"changes nothing with zero_stage={stage}: gradients are sharded from ZeRO 2 on"
            )
            refuse("keep_gradients", True, problem)
        object.__setattr__(self, "split", self._split())

    def _check_recipe(self) -> None:
        """Refuse a recipe that's unknown, or whose format the chip doesn't have."""
        tuning = self.tuning
        if tuning is not None:
            instance("tuning", tuning, Tuning)
            for name in OF_TUNING:
                if getattr(self, name) is not None:
                    problem = f"is part of the tuning: write Tuning.full({name}=…), without it here"
                    refuse(name, getattr(self, name), problem)
        recipe = self.bytes_of
        missing = missing_format(recipe, self.accelerator.peaks)
        if missing:
            problem = f"needs products in {missing}, which {self.accelerator.name} doesn't have"
            refuse("recipe", recipe.name, f"{problem}: amp goes with any format")
        if self.loss_kernel is not None:
            choice("loss_kernel", self.loss_kernel, LOSS_KERNELS)
        if self.optimizer is not None:
            choice("optimizer", self.optimizer, EVERY_OPTIMIZER)
            if recipe.optimizer == 0 and self.optimizer not in [x for x, n in STATES.items() if n]:
                problem = f"changes nothing with recipe={recipe.name!r}, which has no states"
                refuse("optimizer", self.optimizer, problem)

    def _check_tuning(self) -> None:
        """Refuse anything about an adapted model that hasn't been counted or measured."""
        for name in NUMBERS:
            if is_array(getattr(self, name)):
                refuse(name, getattr(self, name), "is an array: with tuning it must be one number")
        for name in UNTUNED:
            value, plain = getattr(self, name), DEFAULTS[name]
            if not (value is plain or value == plain):
                refuse(name, value, f"is not planned with tuning: leave it at {plain!r}")
        choice("recompute", self.recompute, RECOMPUTED)
        if self.number_format not in ("bf16", "fp16"):
            refuse("format", self.format, "is not planned with tuning: only 16 bits are")

    def _check_speed(self) -> None:
        """Refuse two sources of a run's speed, and a step measured with other settings."""
        sources = ("utilizations", "flops_per_gpu", "pace")
        speeds = [name for name in sources if getattr(self, name) is not None]
        if len(speeds) > 1:
            other = " and ".join(speeds[1:])
            refuse(speeds[0], getattr(self, speeds[0]), f"and {other}: give only one of them")
        pace = self.pace
        if pace is None:
            return
        instance("pace", pace, Pace)
        if pace.format != self.number_format:
            refuse("pace", pace, f"was measured in {pace.format}, not in {self.number_format}")
        if pace.software != self.software:
            refuse("pace", pace, f"is of software={pace.software!r}, not {self.software!r}")
        if pace.compiled is not self.compiled:
            refuse("pace", pace, f"is of compiled={pace.compiled}, not {self.compiled}")
        for name in ("model", "accelerator"):
            then, current = getattr(pace, name), getattr(self, name)
            if then is not current and then != current:
                refuse("pace", pace, f"was measured with a different {name}")

    def _split(self) -> Split:
        """Split the GPUs and the batch; refuse a split that doesn't divide evenly."""
        n, B, b = self.num_gpus, self.global_batch_size, self.micro_batch_size
        t, p, c = self.tensor_parallel, self.pipeline_parallel, self.context_parallel
        v, e, x = self.interleave, self.expert_parallel, self.expert_tensor_parallel
        for rule in self.rules():
            rule.check(*rule[1:])
        piped = anywhere(p > 1)
        if self.zero_stage > 1 and piped and self.keep_gradients is None:
            problem = (
                "with a pipeline: say keep_gradients=True (whole between the passes of a "
                "step, as FSDP can) or False (sharded in each); DeepSpeed refuses both"
            )
            refuse("zero_stage", self.zero_stage, problem)
        d = unchecked(data_parallel_size)(n, t, p, c)
        m = unchecked(accumulation_steps)(B, b, d)
        if self.optimizer == "adamw_in_backward" and anywhere(m > 1):
            problem = f"has no step of several passes: here are {show(m)} micro-batches"
            refuse("optimizer", self.optimizer, f"{problem}, whose gradients add up")
        return Split(n, b, t, p, c, d, m, v, e, expert_tensor_size(t, c, d, e, x))

    def rules(self, **sizes: int) -> Iterator[Rule]:
        """The rules for its split, with some of its sizes changed."""
        names = ("num_gpus", "global_batch_size", *SIZES, "expert_tensor_parallel")
        ways = (*names, "context", "sequence_parallel", "uneven_stages")
        split: Any = {name: getattr(self, name) for name in ways}
        return split_rules(self.model, **(split | sizes))

    @cached_property
    def number_format(self) -> str:
        """The format of matrix products: that asked for, without blocks, or the chip's 16 bits."""
        asked = self.accelerator.training_format if self.format is None else self.format
        return BLOCKS.get(asked, asked)

    @property
    def wide_format(self) -> str:
        """The format of scores and head: the chip's 16 bits, even if the weights use fewer."""
        narrow = self.number_format in ("fp8", "fp4")
        wide = self.accelerator.training_format
        return wide if narrow and wide in self.accelerator.peaks else self.number_format

    @property
    def peak(self) -> Result:
        """The chip's dense peak in that format, in FLOP/s."""
        return self.accelerator.peak(self.number_format)

    @cached_property
    def shard_size(self) -> Size | None:
        """GPUs of a node that share the states with hybrid sharding; None for all replicas."""
        if self.sharding != "hsdp":
            return None
        replicas = self.split.data_parallel * self.split.context_parallel
        return minimum(replicas, maximum(self.accelerator.gpus_per_node // self.tensor_parallel, 1))

    @cached_property
    def sharing(self) -> Size:
        """GPUs over which ZeRO shards."""
        every = self.split.data_parallel * self.split.context_parallel
        return every if self.shard_size is None else self.shard_size

    @property
    def expert_copies(self) -> Size:
        """GPUs over which ZeRO shards the experts: those that have the same ones."""
        return self.sharing * self.split.tensor_parallel // self.split.expert_ways

    @property
    def layer_passes(self) -> int:
        """A layer's work on a micro-batch, in forward passes: backward is two of them."""
        return 4 if self.recompute == "full" else 3

    @property
    def mlp_is_fused(self) -> bool:
        """Whether the MLP's activation stores less: as given, or as the software does it."""
        by_default = self.software == "megatron-core"
        return by_default if self.fused_mlp is None else self.fused_mlp

    @property
    def loss(self) -> LossKernel:
        """How the loss is computed: as given, or as the software does it.

        Megatron-Core does it in place; PyTorch holds the logits with FSDP, or else frees them.
        """
        if self.tuning is not None:
            return self.tuning.loss_kernel
        of_pytorch: LossKernel = "plain" if self.sharding == "zero" else "transformers"
        by_default = "in-place" if self.software == "megatron-core" else of_pytorch
        return self.loss_kernel or by_default

    @property
    def update(self) -> EveryOptimizer:
        """The optimizer: as given, or AdamW in one kernel, without a copy."""
        return self.optimizer or "adamw_fused" if self.tuning is None else self.tuning.optimizer

    @property
    def overlapped_traffic(self) -> tuple[str, ...]:
        """Name the traffic that overlaps with the layers' products: see `overlap`."""
        if self.overlap is None:
            of_tensors = self.software == "megatron-core"
            return ("context", "expert", *(("tensor", "sequence") if of_tensors else ()))
        return ("context", "expert", "tensor", "sequence") if self.overlap else ("context",)

    beside_products = OldName("overlapped_traffic")

    @property
    def excess(self) -> Result:
        """How much more the fullest expert's GPU has than the average, as a share; 0 on one GPU."""
        return minimum(self.imbalance, self.expert_parallel) - 1

    @cached_property
    def bytes_of(self) -> Recipe:
        """Bytes per parameter that learns, part by part; 16 by default."""
        if self.tuning is not None:
            return self.tuning.bytes_of
        if self.recipe is not None:
            return known_recipe(self.recipe)
        return RECIPES["amp" if missing_format("bf16", self.accelerator.peaks) else "bf16"]

    def replace(self, **changes: Unpack[Changes]) -> Run:
        """Return the run with some arguments changed, including those of its tuning."""
        check_names("replace", changes, Changes.__annotations__)
        new: dict[str, Any] = {**changes}
        if "sequence_length" in new:
            s = new.pop("sequence_length")
            new["model"] = known_model(new.get("model", self.model), s)
        tuning = new.get("tuning", self.tuning)
        if isinstance(tuning, Tuning):  # anything else is refused by the run itself
            tuned = {name: new.pop(name) for name in (*OF_TUNING, "method") if name in new}
            new |= {"tuning": tuning.replace(**tuned)} if tuned else {}
        return replace(self, **spelt_out(new))

    but = OldName("replace")

    def if_even(self, **changes: Unpack[Changes]) -> Run | None:
        """Return the run with some arguments changed; None if it's refused."""
        try:
            return self.replace(**changes)
        except ValueError:
            return None


def checked_stops(stops: object) -> tuple[float, float, float]:
    """Check three ascending factors by which a run can take longer than its steps.

    >>> checked_stops((1, 1.1, 0.9))
    Traceback (most recent call last):
    ...
    ValueError: stops=(1, 1.1, 0.9) is not 1 or more, ascending: least, likely, most
    """
    if not isinstance(stops, tuple) or len(stops) != 3:
        refuse("stops", stops, "isn't a triple: least, likely, most")
    least, likely, most = (float(one("stops", x, quantity)) for x in stops)
    if not 1 <= least <= likely <= most:
        refuse("stops", stops, "is not 1 or more, ascending: least, likely, most")
    return least, likely, most


DEFAULTS = {item.name: item.default for item in fields(Run) if item.default is not MISSING}
DEFAULTS |= dict.fromkeys(("sequence_length", "zero_stage", "sharding", "shard"))
"""The default of each option. Three describe how states are sharded: without them, ZeRO 0."""


def spelt_out(arguments: Mapping[str, T]) -> dict[str, T]:
    """Replace `shard` by the two arguments of `plan_run` that it stands for.

    If one of these three is None, it's left out.

    >>> spelt_out({"num_gpus": 8, "shard": "fsdp", "zero_stage": None})
    {'num_gpus': 8, 'zero_stage': 3, 'sharding': 'fsdp'}
    """
    ways = ("zero_stage", "sharding", "shard")
    options = {name: x for name, x in arguments.items() if name not in ways or x is not None}
    shard = options.pop("shard", None)
    if shard is None:
        return options
    for name in ways[:2]:
        if name in options:
            refuse("shard", shard, f"also sets {name}: leave one of them out")
    spelt: dict[str, Any] = dict(zip(ways, SHARDS[choice("shard", shard, SHARDS)], strict=False))
    return {**options, **spelt}
