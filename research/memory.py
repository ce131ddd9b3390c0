"""Memory that others measured, next to the account of it: how near is a peak, and what fits?

`cases` brings the tables of data/ to one form: steps that ran, with their peak where it was
printed, and steps that ran out of memory. `errors` and `verdicts` sum them up by source, and
nothing of a source has a part in what judges it, except where its name says so (`IBM, partly
read off`). `reserves` says what a card needs beyond the allocator's peak.
`python -m research memory` prints it all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from statistics import median, quantiles
from typing import Any, NamedTuple

from llmtrain_helpers import published
from llmtrain_helpers.finetune import tuned_memory
from llmtrain_helpers.memory import Memory
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.plan.memory import RESERVES, card_bytes, memory_per_gpu, reserve_bytes
from llmtrain_helpers.plan.options import Changes
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.plan.run import Run
from llmtrain_helpers.precision import Recipe
from llmtrain_helpers.tuning import Tuning
from research import finetunes, splits

CARDS = {
    "A100 80GB": published.accelerator("A100 80GB SXM").shown_memory,
    "A100-SXM4-40GB": published.accelerator("A100 40GB SXM").shown_memory,
    "A10G 24GB": published.accelerator("A10").shown_memory,  # an A10G shows as many bytes
}
"""What the drivers show of the cards of rows that ran out of memory."""

VERDICTS = ("fits", "edge", "no")
"""What the account says of a step on its card: it fits with the reserve, without it, or not."""

UNSTATED = ("megatron_bridge", "megatron_h100")
"""Tables that don't print what was computed again."""


class Public(NamedTuple):
    """What somebody tried, with the options of a plan; layers are recomputed by default.

    `peak`, `kind` and `ran` are those of a `Case`.
    """

    model: Transformer | str
    chip: str
    num_gpus: int
    options: Mapping[str, Any]
    peak: float | None = None
    kind: str = "not stated"
    ran: bool = True

    @property
    def plan(self) -> Plan:
        """The plan of one step, with one micro-batch."""
        options = {"recompute": "full", **self.options}
        replicas = self.num_gpus // options.get("tensor_parallel", 1)
        batch = replicas * options.get("micro_batch_size", 1)
        return plan_run(self.model, self.chip, self.num_gpus, 1e9, batch, **options)


_QWEN = {"hidden_size": 5120, "num_hidden_layers": 64, "num_key_value_heads": 8}
_QWEN_2 = {**_QWEN, "intermediate_size": 27648, "num_attention_heads": 40, "vocab_size": 152064}
_QWEN_3 = {**_QWEN, "intermediate_size": 25600, "num_attention_heads": 64, "vocab_size": 151936}
QWEN_2 = Transformer.from_config({"model_type": "qwen2", **_QWEN_2}, 4096)
QWEN_3 = Transformer.from_config({"model_type": "qwen3", "head_dim": 128, **_QWEN_3}, 4096)
"""Qwen2.5-32B and Qwen3-32B, as their config.json files have them."""

_TUNED = {"tuning": Tuning.full("amp"), "zero_stage": 3, "sequence_length": 4096}
_FSDP = {"shard": "fsdp", "recipe": "amp", "keep_gradients": False}
_PURE = {"recipe": "pure_bf16", "recompute": "none", "micro_batch_size": 2}
_QLORA = {"tuning": Tuning.qlora(8), "sequence_length": 51974}
_LORA = Tuning.lora(8, ["q_proj", "v_proj"], adapter_bytes=2)
_META = "H100 SXM 96GB (500 W)"

PUBLIC = {
    "llama-cookbook #234": Public("Llama-2-7b", "V100 16GB SXM2", 8, _TUNED, ran=False),
    "axolotl #2531": Public(QWEN_2, "H100 SXM", 8, _TUNED, ran=False),
    "torchtitan #1690, FSDP 8": Public(
        QWEN_3, _META, 8, _FSDP | {"micro_batch_size": 2}, 87.9e9, "reserved"
    ),
    "torchtitan #1690, FSDP 4, TP 8": Public(
        QWEN_3,
        _META,
        32,
        _FSDP | {"micro_batch_size": 16, "tensor_parallel": 8},
        46.7e9,
        "reserved",
    ),
    **{
        f"lightning-thunder #474, {layers} layers": Public(
            Transformer.llama(layers, 5120, 40, 40, 13824, 32000, 4096), "H100 SXM", 1, _PURE, peak
        )
        for layers, peak in {2: 11.3e9, 4: 18.4e9}.items()
    },
    "LLaMA-Factory #5545": Public("Llama-3.1-8B", "H100 SXM", 1, _QLORA, ran=False),
    **{
        f"torchtune #856, {s} tokens": Public(
            "Llama-3.1-8B", "RTX 4090", 1, {"tuning": _LORA, "sequence_length": s}, ran=s < 8192
        )
        for s in (2048, 4096, 8192)
    },
}
"""Public cases by the issue or the pull request that tells of them.

What they don't say is as their tool does it by default: layers are computed again, weights in
32 bits under autocast, torchtune's adapters on queries and values.
"""


@dataclass(frozen=True)
class Case:
    """A step that others ran, or tried to, and the account of its memory, in bytes.

    `peak` is what they measured, of a `kind` (allocated, reserved, shown, or as printed), and
    `driver` what the driver showed next to it: None where it wasn't printed. `stated` says
    whether they print what was computed again. `ways` is "one GPU" or "several".
    """

    name: str
    source: str
    estimate: Memory
    reserve: float
    card: float | None
    peak: float | None
    driver: float | None = None
    kind: str = "not stated"
    ran: bool = True
    stated: bool = True
    ways: str = "several"
    logits: str = "whole"

    @property
    def error(self) -> float:
        """The estimate over what was measured, less 1."""
        assert self.peak is not None
        return float(self.estimate.total / self.peak) - 1

    @property
    def verdict(self) -> str:
        """Whether the account says that it fits, on the edge or not."""
        assert self.card is not None
        free = self.card - self.estimate.total
        return "fits" if free >= self.reserve else "edge" if free >= 0 else "no"


def of_run(run: Run, name: str, source: str, peak: float | None, **options: Any) -> Case:
    """The case of a step of pre-training."""
    card, reserve = float(card_bytes(run.accelerator)), float(reserve_bytes(run))
    ways = "several" if run.num_gpus > 1 else "one GPU"
    return Case(name, source, memory_per_gpu(run), reserve, card, peak, ways=ways, **options)


def pretraining() -> Iterator[Case]:
    """Measured steps, each with its software, and the rows that ran out of memory.

    Gradients are sharded in each pass, as FSDP does it.
    """
    for step in splits.measured_splits().to_dict("records"):
        changes: Changes = {"keep_gradients": False}
        if step["software"] == "megatron-core":  # whose gradients are in 32 bits
            changes |= {"software": "megatron-core", "recipe": "bf16_fp32_grads"}
        if step["source"] == "llmfoundry_benchmarks":  # flash-attn's, on 16-bit logits
            changes |= {"loss_kernel": "chunked"}
        if step["section"] == "Rebalancing layers":
            changes |= {"recipe": BLOOM}
        yield of_run(
            step["plan"].run.replace(**changes),
            step["name"],
            step["publication"],
            step["peak"] if step["peak"] > 0 else None,
            kind="allocated" if step["source"] == "b200_steps_and_memory" else "not stated",
            stated=step["stated"] and step["source"] not in UNSTATED,
        )
    for row in published.rows("measured_memory"):
        if "tensor_parallel" in row:
            run = torchtitan(row).run
            yield of_run(run, row["name"], "torchtitan, memory", row["peak_bytes"], kind="reserved")
    for row in published.rows("bloom_sweeps"):
        if row.get("out_of_memory"):
            constants = splits.SOURCES["bloom_sweeps"][1]
            plan = splits.plan_of(constants | {"num_heads": 112} | row)  # as its neighbours have
            run = plan.run.replace(recipe=BLOOM)
            yield of_run(run, row["name"], "bloom_sweeps", None, ran=False)


def public() -> Iterator[Case]:
    """Cases that others described in a bug report or a pull request."""
    for name, each in PUBLIC.items():
        yield of_run(each.plan.run, name, "public cases", each.peak, kind=each.kind, ran=each.ran)


BLOOM = Recipe("BLOOM, bf16", 2, 6, 0, 4, 8)
"""Of BLOOM's sweeps from March 2022 on: DeepSpeed's optimizer keeps a copy of all gradients in
32 bits, whole on each GPU, beside those in 16."""


def torchtitan(row: Mapping[str, Any]) -> Plan:
    """The plan of a row of data/measured_memory.csv, which are torchtitan's own.

    Its `selective` keeps every other product, and a pipeline has as many passes as stages.
    """
    name = row["model"].replace("Llama 3.1 ", "Llama-3.1-")
    t, p, c = (int(row[f"{way}_parallel"]) for way in ("tensor", "pipeline", "context"))
    interleave = 2 if "Interleaved" in row["setup"] else 1
    passes, d = interleave * p, row["num_gpus"] // (t * p * c)
    model = published.architecture(name, row["sequence_length"])
    batch = int(d * row["local_batch_size"])
    return plan_run(
        model,
        "H100 SXM 96GB (500 W)",
        row["num_gpus"],
        batch * model.sequence_length,
        batch,
        recompute={"selective": "alternate"}.get(row["recompute"], row["recompute"]),
        micro_batch_size=int(row["local_batch_size"] // passes),
        tensor_parallel=t,
        pipeline_parallel=p,
        context_parallel=c,
        interleave=interleave,
        uneven_stages=True,
        keep_gradients=passes > 1,
        recipe="amp",
        shard="fsdp",
    )


def tuning() -> Iterator[Case]:
    """Each judged row of data/finetune_measured.csv."""
    for row in published.rows("finetune_measured"):
        if "judged" in row:
            yield of_tuning(row)


def of_tuning(row: Mapping[str, Any]) -> Case:
    """The case of a row of data/finetune_measured.csv."""
    ways = "one GPU" if row["num_gpus"] == 1 else "several"
    return Case(
        row["name"],
        source_of(row),
        estimate(row),
        RESERVES[ways],
        CARDS.get(row["accelerator"]),
        row.get("peak_bytes"),
        row.get("shown_bytes"),
        kind=row.get("memory_kind", "not stated"),
        ran=row["status"] == "ok",
        ways=ways,
        logits="fused" if "liger" in row.get("kernels", "") else "whole",
    )


def estimate(row: Mapping[str, Any]) -> Memory:
    """The peak of a row's step, part by part."""
    gpus = row["num_gpus"]
    passes = int(row["batch"].removeprefix("grad_accum ")) if "accum" in row.get("batch", "") else 1
    if row.get("batch", "").startswith("global batch"):
        passes = int(row["batch"].split()[-1]) // (row["micro_batch_size"] * gpus)
    model = finetunes.shape(row["model"], row["sequence_length"])
    if row["publication"].startswith("litgpt"):  # which loads a tied head as a copy
        model = replace(model, tied_embeddings=False)
    return tuned_memory(
        model,
        finetunes.tuning(row),
        row["micro_batch_size"],
        "full" if row["recompute"].startswith("on") else "none",
        accumulation_steps=max(passes, 1),
        zero_stage=3 if gpus > 1 else 0,
        data_parallel=gpus,
    )


def source_of(row: Mapping[str, Any]) -> str:
    """Whose row it is; IBM's apart where bytes were read off rows of that kind."""
    who: str = row["publication"]
    if not who.startswith("fms"):
        return who
    kernels = row.get("kernels", "")
    in_place = "foak" in kernels and "liger" not in kernels
    sharded = row["num_gpus"] > 1 and row["method"] != "full"
    return "IBM, partly read off" if in_place or sharded or "baseline" in kernels else "IBM"


@cache
def cases() -> tuple[Case, ...]:
    """All of them, pre-training first and public cases last."""
    return (*pretraining(), *tuned_cases(), *public())


@cache
def tuned_cases() -> tuple[Case, ...]:
    """The rows of fine-tuning alone."""
    return tuple(tuning())


Key = Callable[[Case], object]


class Error(NamedTuple):
    """How far the account is from so many measured peaks: the median size, its sign, near ones."""

    rows: int
    size: float
    sign: float
    within: float


def errors(
    cases: Iterable[Case], by: Key = attrgetter("source"), near: float = 0.15
) -> dict[Any, Error]:
    """By source: rows, the median error's size, its sign, and the share within `near`."""
    groups: dict[object, list[float]] = {}
    for case in cases:
        if case.peak is not None:
            groups.setdefault(by(case), []).append(case.error)
    return {
        name: Error(
            len(values),
            median(map(abs, values)),
            median(values),
            sum(abs(error) <= near for error in values) / len(values),
        )
        for name, values in groups.items()
    }


def verdicts(cases: Iterable[Case], by: Key = attrgetter("source")) -> dict[Any, dict[str, int]]:
    """By source: how many of the steps with a card fit, are on the edge, or do not fit."""
    groups: dict[object, dict[str, int]] = {}
    for case in cases:
        if case.card is not None:
            counts = groups.setdefault(by(case), dict.fromkeys(VERDICTS, 0))
            counts[case.verdict] += 1
    return groups


class Reserve(NamedTuple):
    """Bytes beyond the allocator's peak in so many rows: a quarter had less, half, a tenth more."""

    rows: int
    firm: float
    likely: float
    most: float


def reserves(by: Key = attrgetter("ways", "logits")) -> dict[Any, Reserve]:
    """What the driver showed beyond the allocator's peak, by kind: IBM's rows alone have both.

    Cache that the allocator would give back is in it, so `firm` is what most runs exceed.
    """
    groups: dict[object, list[float]] = {}
    for case in tuned_cases():
        if case.driver and case.peak:
            groups.setdefault(by(case), []).append(case.driver - case.peak)
    by_kind = {}
    for kind, over in groups.items():
        firm, most = quantiles(over, n=4)[0], quantiles(over, n=10)[-1]
        by_kind[kind] = Reserve(len(over), firm, median(over), most)
    return by_kind


@cache
def litgpt_held(method: str, several: bool) -> float:
    """Times the count that litgpt's runs of a method held, in the middle, on one GPU or several.

    >>> f"{litgpt_held('qlora', False):.1f}, {litgpt_held('lora', True):.1f}"
    '1.2, 2.2'
    """
    return float(
        median(
            row["peak_bytes"] / estimate(row).total  # of a few rows: a panel waits for it
            for row in published.rows("finetune_measured")
            if "judged" in row and "peak_bytes" in row and source_of(row).startswith("litgpt")
            if row["method"] == method and (row["num_gpus"] > 1) == several
        )
    )


def main() -> None:
    """Print errors and verdicts by source, and reserves by kind."""
    print(f"{'':24}{'kind':12}{'peaks':>6}{'error':>8}{'sign':>8}{'within 10%':>13}", end="")
    print(f"{'ran: fits':>11}{'edge':>6}{'no':>5}{'out: fits':>11}{'edge':>6}{'no':>5}")
    for source in dict.fromkeys(case.source for case in cases()):
        _line(source, [case for case in cases() if case.source == source])
    for name, chosen in {
        "stated": [case for case in cases() if case.stated],
        "recomputation unstated": [case for case in cases() if not case.stated],
        "all": cases(),
    }.items():
        _line(name, chosen)
    print()
    for kind, reserve in (reserves() | reserves(attrgetter("ways"))).items():
        firm, likely, most = (f"{size / 1e9:5.1f}" for size in reserve[1:])
        name = kind if isinstance(kind, str) else f"{kind[0]}, {kind[1]} logits"
        print(f"{name:24}{reserve.rows:4} rows, beyond the peak{firm}, {likely} to{most} GB")
    print()
    for name, why in finetunes.AGAINST_ITSELF.items():
        print(f"{name} says what cannot be: {why}")


def _line(name: str, chosen: Sequence[Case]) -> None:
    """Print a line of the table."""
    kinds = dict.fromkeys(case.kind for case in chosen if case.peak)
    print(f"{name:24}{' '.join(kinds) if len(kinds) < 2 else 'several':12}", end="")
    for error in errors(chosen, lambda case: "", 0.1).values():
        print(f"{error.rows:6}{error.size:8.1%}{error.sign:+8.1%}{error.within:13.0%}", end="")
    print("" if kinds else " " * 35, end="")
    for ran, width in ((True, 11), (False, 11)):
        counts = verdicts((case for case in chosen if case.ran == ran), lambda case: "")
        fits, edge, no = counts.get("", dict.fromkeys(VERDICTS, 0)).values()
        print(f"{fits:{width}}{edge:6}{no:5}", end="")
    print()
