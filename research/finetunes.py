"""Measured fine-tuning: what each row of data/ means, and how fast it was.

`shape` and `tuning` say what a row of data/finetune_measured.csv trained, by what its
publication's words mean (`research.memory` compares its memory); `pace` and `speed_ratios` are
about its speed, `nodes` about that of several nodes. `formula` is compared with what PyTorch
counted (data/finetune_counted.csv). `python -m research finetunes` prints the speed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from llmtrain_helpers import published
from llmtrain_helpers.finetune import TunedRecompute, tuned_activations, tuned_flops
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.plan.pace import Shares
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.tuning import Tuning
from research import utilizations

if TYPE_CHECKING:
    from pandas import DataFrame

NAMED = {
    "Mixtral-8x7B-Instruct-v0.1": "Mixtral-8x7B",
    "Llama-2-70b-hf": "Llama-2-70b",
    "Meta-Llama-3-8B": "Llama-3.1-8B",
    "llama-3-8b": "Llama-3.1-8B",
    "mistral-7b-v0.2": "Mistral-7B-v0.1",
    "mistral-7b": "Mistral-7B-v0.1",
    "phi-3": "Phi-3-mini-4k",
    "tiny-llama": "TinyLlama-1.1B",
    "Mistral-7B-v0.1-GPTQ": "Mistral-7B-v0.1",
    "Mixtral-8x7B-Instruct-v0.1-GPTQ": "Mixtral-8x7B",
    "Llama-2-70B-GPTQ": "Llama-2-70b",
    "Llama 3.3 70B": "Llama-3.1-70B",
    "gemma2-2b": "gemma-2-2b",
    "gemma2b": "gemma-2-2b",  # a slip of the table: its file is gemma2-2b's
    "gemma2-9b": "gemma-2-9b",
    "phi-1.5 1.3B": "phi-1.5",
    "StableLM Alpha 3B": "stablelm-base-alpha-3b",
}
"""Models that the sources call by a name that `published` doesn't know."""

TARGETS = {
    "q,v": ("q_proj", "v_proj"),
    "q,k,v,o": "attention",
    "q,k,v,o,c_attn": "attention",
    "q,k,v,o,mlp,head": ("all-linear", "lm_head"),
    "all matrices": "all-linear",
}
"""The targets of judged rows."""


@cache
def shape(model: str, sequence_length: int) -> Transformer:
    """The model that a row names, with the row's sequences."""
    return replace(published.config_model(NAMED.get(model, model)), sequence_length=sequence_length)


def tuning(row: Mapping[str, Any]) -> Tuning:
    """How a row's model is adapted, by what its publication's words mean.

    litgpt: all in 16 bits, logits in 16-bit chunks of 128 tokens, bitsandbytes as it was
    then. torchtune: 32-bit logits, in chunks and with fused norms where it says so. IBM:
    PEFT's adapters in 32 bits, transformers' loss; `foak` writes gradients over the logits
    and fuses norms, `liger` never has them whole; full training in bf16=True under FSDP
    keeps 32-bit weights (`amp`), any other is `pure_bf16`. What is not stated is as in `Tuning`.
    """
    kernels, who = row.get("kernels", ""), row["publication"]
    options: dict[str, Any] = {}
    adapters: dict[str, Any] = {}
    if who.startswith("litgpt"):
        options["loss_kernel"] = "chunked"
        adapters["adapter_bytes"] = 2
        if "Paged" in row["optimizer"]:
            options["optimizer"] = "adamw_paged"
    elif who.startswith("torchtune"):
        options["loss_kernel"] = "chunked" if "chunked CE" in kernels else "plain"
        options["fused"] = "compile" in kernels
        if "optimizer_in_bwd" in kernels:
            options["optimizer"] = "adamw_in_backward"
    else:
        plain, in_place, fused = "transformers", "in-place", "fused"
        loss = fused if "liger" in kernels else in_place if "foak" in kernels else plain
        options |= {"loss_kernel": loss, "fused": "foak" in kernels}
        adapters["autocast"] = "=True" in row["weight_type"]
        if "baseline" in kernels and row["num_gpus"] == 1:
            options["stream_bytes"] = 4
    if row["method"] == "full":
        float32_weights = "bf16=True" in row["weight_type"] and row["num_gpus"] > 1
        return Tuning.full("amp" if float32_weights else "pure_bf16", **options)
    options |= {**adapters, "rank": row["rank"], "dropout": row["dropout"]}
    options["targets"] = TARGETS[row["targets"]]
    if row["model"] == "gpt_bigcode-santacoder":  # its output matrix has another name
        options["targets"] = ("q_proj", "k_proj", "v_proj")
    if row["method"] == "lora":
        return Tuning.lora(**options)
    double = "no double quant" not in row["quantisation"]
    if who == "litgpt resource tables":
        double = "double quant" in row["quantisation"]
    keeps = who.startswith("litgpt")
    return Tuning.qlora(double_quantisation=double, keeps_inputs=keeps, **options)


COUNTED = {
    "llama": Transformer.llama(2, 48, 6, 2, 40, 50, 16),
    "experts": Transformer.llama(2, 48, 6, 2, 40, 50, 16, num_experts=4, experts_per_token=2),
    "wider llama": Transformer.llama(2, 64, 4, 2, 160, 64, 24),
}
"""The small models of data/finetune_counted.csv."""


def counted_tuning(row: Mapping[str, Any]) -> Tuning:
    """How the small model of a counted row is tuned."""
    options: dict[str, Any] = {"reentrant": bool(row.get("reentrant", 0))}
    if row["method"] == "full":
        return Tuning.full(**options)
    options |= {name: row[name] for name in ("dropout", "adapter_bytes") if name in row}
    options["autocast"] = bool(row.get("autocast", 1))
    return Tuning.lora(row["rank"], row["targets"].split(), **options)


def formula(row: Mapping[str, Any]) -> int:
    """What the formulas say of a row of data/finetune_counted.csv."""
    model, how, b = COUNTED[row["shape"]], counted_tuning(row), row["micro_batch_size"]
    if row["quantity"] == "FLOPs":
        return int(tuned_flops(model, how, b, row["recompute"]).total)
    [(_, layer)] = model.layers
    below, both = (  # of two layers the upper one, below which something learns
        tuned_activations(
            replace(model, layers=((l, layer),)), how, b, mask_bytes=row["mask_bytes"]
        )
        for l in (1, 2)
    )
    return int(both.layers - below.layers)


CHIPS = {
    "A100 80GB": "A100",
    "A100 (size not stated)": "A100",
    "A100": "A100",
    "RTX 4090 24GB": "RTX 4090",
    "H100 80GB": "H100",
}
"""The chips of rows with a speed, as they are known here."""


def speeds() -> DataFrame:
    """Rows that tell a speed in 16 bits: the share of the peak, recomputed work counted.

    `utilization` by `witness`, who published it; `kind` is the method. Of rows whose
    tokens/s are those of a GPU of one node, with whole matrices and full sequences of a known
    length, nothing offloaded, in 16 bits on a chip whose peak is known; those that their
    source's own arithmetic makes suspect are left out. Where targets are not stated, all
    matrices.
    """
    from pandas import DataFrame

    shares = []
    for row in published.rows("finetune_measured"):
        if not _tells_a_speed(row):
            continue
        s = row["sequence_length"]
        model = shape(row["model"], s)
        targets = TARGETS.get(row.get("targets", ""), "all-linear")
        how = Tuning.full() if row["method"] == "full" else Tuning.lora(row.get("rank", 8), targets)
        recompute: TunedRecompute = "full" if row.get("recompute", "").startswith("on") else "none"
        flops = tuned_flops(model, how, 1, recompute).total / s
        peak = published.accelerator(CHIPS[row["accelerator"]]).peak("bf16")
        witness = row["publication"].split()[0]
        share = row["tokens_per_s_per_gpu"] * flops / peak
        shares.append((row["name"], witness, row["method"], share))
    return DataFrame(shares, columns=["name", "witness", "kind", "utilization"])


def _tells_a_speed(row: Mapping[str, Any]) -> bool:
    return (
        "tokens_per_s_per_gpu" in row
        and "sequence_length" in row
        and row["method"] in ("full", "lora", "qlora")
        and row.get("packing") != "padded"
        and row["accelerator"] in CHIPS
        and row["num_gpus"] <= 8
        and not row.get("parallelism", "").startswith("TP")
        and "FP8" not in row.get("kernels", "")
        and row.get("offload", "") not in ("CPU (params, grads, optimizer)",)
        and "SUSPECT" not in row.get("note", "")
    )


def pace() -> Shares:
    """What `plan.pace.TUNED` holds, computed from data/: of one kind, for methods differ less."""
    rows = speeds()
    low, likely, high = (round(float(u), 2) for u in utilizations.spread(rows))
    verdicts = utilizations.judged(rows)
    witnesses = rows["witness"]
    evidence = (
        f"{verdicts['inside'].sum()} of {len(rows)} speeds of {witnesses.nunique()} publications, "
        f"each judged by the others; {witnesses.value_counts().max()} are of one"
    )
    return Shares((low, likely, high), evidence)


class Nodes(NamedTuple):
    """A measured step on several nodes, and two predictions of it from a step on one.

    `divided` splits that one's work among the GPUs; `waiting` adds what a plan's step waits for.
    """

    name: str
    training: str
    num_gpus: int
    seconds: float
    divided: float
    waiting: float
    plan: Plan


def nodes() -> list[Nodes]:
    """Steps of adapters and full training on several nodes, predicted from one node's.

    Each is compared with the same publication's step of that model and method on 8 GPUs.

    >>> [(step.name, step.num_gpus) for step in nodes()][:2]
    [('NA-005', 16), ('NA-006', 16)]
    """
    inside: dict[tuple[str, ...], tuple[float, Plan]] = {}
    across = []
    for row in published.rows("finetune_measured"):
        if row["publication"] not in BATCHES or row["num_gpus"] == 1:
            continue
        plan, pair = plan_of(row), (row["publication"], row["model"], row["method"])
        run = plan.run
        tokens = run.global_batch_size * run.model.sequence_length / run.num_gpus
        seconds = tokens / row["tokens_per_s_per_gpu"]
        if run.num_gpus == 8:
            inside[pair] = seconds, plan
            continue
        of_one, on_one = inside[pair]
        share = plan.flops.total / plan.split.num_gpus * 8 / on_one.flops.total
        waiting = (of_one - float(on_one.wait or 0)) * share + float(plan.wait or 0)
        what = f"{row['model']}, {'adapters' if row['method'] == 'lora' else 'all weights'}"
        step = Nodes(row["name"], what, run.num_gpus, seconds, of_one * share, waiting, plan)
        across.append(step)
    return across


BATCHES = {"NVIDIA NeMo AutoModel": 32, "ATorch (DLRover)": None}
"""The publications of several nodes, and their global batches: None for one pass a GPU."""


def plan_of(row: Mapping[str, Any]) -> Plan:
    """The plan of a row of `nodes`, with the network and the split that it names."""
    n, b = row["num_gpus"], row["micro_batch_size"]
    chip = published.accelerator(CHIPS[row["accelerator"]])
    if "800 Gb/s" in row["parallelism"]:
        chip = replace(chip, network_bandwidth=800e9 / 8 / 8)  # bits, and eight GPUs
    wide = 4 if row["weight_type"].startswith("fp32") else 2
    how = Tuning.full()
    if row["method"] == "lora":
        how = Tuning.lora(row["rank"], TARGETS[row["targets"]], weight_bytes=wide)
    batch = BATCHES[row["publication"]] or n * b
    return plan_run(
        shape(row["model"], row["sequence_length"]),
        chip,
        n,
        batch * row["sequence_length"],
        batch,
        recompute="full",
        tuning=how,
        micro_batch_size=b,
        tensor_parallel=2 if row["parallelism"].startswith("TP2") else 1,
        sequence_parallel="no sequence parallelism" not in row["note"],
        shard="fsdp",
    )


class SpeedRatio(NamedTuple):
    """How many times as fast a row is as one that differs in the method alone.

    `tokens` are those that a GPU has at once, pads included, at most.
    """

    publication: str
    model: str
    tokens: int
    times: float


ALIKE = (
    *("publication", "model", "sequence_length", "micro_batch_size", "batch", "packing"),
    *("recompute", "accelerator", "num_gpus", "parallelism", "offload", "seconds_of"),
)
"""What two rows have in common where only the method differs; and their kernels."""


@cache
def speed_ratios(method: str, than: str) -> tuple[SpeedRatio, ...]:
    """How many times as fast a method is as another, in rows that are else alike.

    Of rows of one node that say how texts are laid into sequences, without those that their
    source's own arithmetic makes suspect. Adapters sit on the same matrices.

    >>> slowest = min(speed_ratios("lora", "full"), key=lambda ratio: ratio.times)
    >>> f"{slowest.model}: {slowest.times:.2f}"
    'Mistral-7B-v0.1: 1.05'
    """
    rows = [row for row in published.rows("finetune_measured") if _says_how(row)]
    ours, others = ([row for row in rows if row["method"] == name] for name in (method, than))
    return tuple(
        SpeedRatio(
            row["publication"],
            row["model"],
            row["sequence_length"] * row["micro_batch_size"],
            _seconds_a_token(other) / _seconds_a_token(row),
        )
        for row in ours
        for other in others
        if _alike(row, other)
    )


def times_as_long_in_4_bits(tokens: float) -> float:
    """How many times as long as 16 bits the slowest measured pair took, of so many tokens or more.

    >>> [round(times_as_long_in_4_bits(tokens), 1) for tokens in (1024, 2048, 8192)]
    [2.1, 1.2, 1.1]
    """
    pairs = speed_ratios("qlora", "lora")
    most = max(pair.tokens for pair in pairs)
    return 1 / min(pair.times for pair in pairs if pair.tokens >= min(tokens, most))


def _says_how(row: Mapping[str, Any]) -> bool:
    """Whether a row has a speed of one node, and says what its sequences hold."""
    suspect = "SUSPECT" in row.get("note", "") or row["name"] in AGAINST_ITSELF
    timed = row["num_gpus"] <= 8 and bool({"tokens_per_s_per_gpu", "seconds"} & {*row})
    return "packing" in row and timed and not suspect


def _alike(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two rows differ in the method alone."""
    same = all(row.get(name) == other.get(name) for name in ALIKE)
    targets = "full" in (row["method"], other["method"]) or row.get("targets") == other.get(
        "targets"
    )
    return same and targets and _kernels(row) == _kernels(other)


def _kernels(row: Mapping[str, Any]) -> str:
    """A row's kernels, without IBM's word for 4 bits."""
    kernels: str = row.get("kernels", "")
    return kernels.replace("baseline-peft-bnb", "none").replace(
        "accelerated-peft-bnb-foak", "foak-fast-kernels"
    )


def _seconds_a_token(row: Mapping[str, Any]) -> float:
    """Seconds for a token, or for the same work where only that is told."""
    if "tokens_per_s_per_gpu" in row:
        return 1 / float(row["tokens_per_s_per_gpu"])
    return float(row["seconds"])


AGAINST_ITSELF = {
    "LG-021": "full AdamW in 7.0 bytes a parameter, where weights, gradients and states are 8",
    "LG-024": "full AdamW in 5.1 bytes a parameter",
    "LG-034": "full AdamW in 4.5 bytes a parameter",
}
"""Judged rows that say what cannot be at once: they count as the errors that they are."""


def main() -> None:
    """Print the share of the peak that tuning reached."""
    share, table = pace(), utilizations.coverage({"16-bit tuning": speeds()})
    ends = ", ".join(map(str, share.steps))
    print(f"speed: {ends} of the peak; {share.evidence}")
    [span] = table.to_dict("records")
    print(f"  {span['inside, alike']:.0%} with each publication alike,", end="")
    print(f" at a width of {span['width without']:.2f}")
    for step in nodes():
        print(f"{step.name}, {step.num_gpus} GPUs: {step.seconds:.2f} s measured;", end="")
        print(f" {step.divided / step.seconds - 1:+.1%} divided,", end="")
        print(f" {step.waiting / step.seconds - 1:+.1%} with what it waits for")
