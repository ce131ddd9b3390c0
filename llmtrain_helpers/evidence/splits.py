"""Measured steps under many splits, each beside its plan: who orders them right?

Beside notebooks/07_communication.ipynb. `measured_splits` brings the tables of data/ to
plans, `judged` compares orders and seconds, `fitted_launching` finds the one constant
of `step` that is fitted. `python -m llmtrain_helpers splits` prints the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from llmtrain_helpers.evidence import published, utilizations
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.plan.step import LAUNCHING

if TYPE_CHECKING:
    from pandas import DataFrame

GROUP = (
    "release",
    "section",
    "num_layers",
    "hidden_size",
    "sequence_length",
    "accelerator",
    "num_gpus",
    "precision",
    "global_batch_size",
)
"""What splits must have in common to be compared."""


def measured_splits(*names: str) -> DataFrame:
    """Measured steps: `source`, `seconds`, the `plan`, `modelled` seconds, the `group`.

    Of `SOURCES`, all or the named ones; rows whose split does not come out even, or
    whose chip's links are unknown, are left out.
    """
    from pandas import DataFrame

    found = [row for name in names or SOURCES for row in _rows(name)]
    return DataFrame(found)


FITTED = "vtrain_a100_single_node"
"""The table to which `LAUNCHING` is fitted: it judges no seconds."""


def paces() -> dict[str, tuple[utilizations.Span, str]]:
    """What `plan.PACES` holds, computed from data/: steps against the model's.

    By kind low, likely and high, as `utilizations.spread` makes them, and how many
    steps lie in the interval that the others make.
    """
    groups = judged_steps().groupby("kind")
    found = {str(kind): _pace(rows) for kind, rows in groups}
    experts = found.pop("experts")
    return found | {f"{bits} experts": experts for bits in ("16-bit", "fp8")}


def _pace(rows: DataFrame) -> tuple[utilizations.Span, str]:
    low, likely, high = (round(float(pace), 2) for pace in utilizations.spread(rows))
    inside = utilizations.judged(rows)["inside"].sum()
    by = rows["witness"].nunique()
    who = "models" if rows["kind"].iloc[0] == "experts" else "teams"
    others = "the other" if by == 2 else "the others"
    told = f"{inside} of {len(rows)} steps of {by} {who}, each judged by {others}"
    return (low, likely, high), told


def judged_steps() -> DataFrame:
    """The splits that judge seconds: `kind`, `witness`, and the pace as `utilization`.

    A pace is what the model says over what was measured.
    """
    table = measured_splits(*(name for name in SOURCES if name != FITTED))
    table = table[table["plan"].map(_bits) != "fp4"]  # one model alone
    plans = table["plan"]
    experts = plans.map(lambda plan: plan.run.model.num_experts > 0)
    kind = (plans.map(_bits) + " dense").where(~experts, "experts")
    witness = table["source"].map(TEAMS).where(~experts, table["family"])
    pace = table["modelled"] / table["seconds"]
    return table.assign(kind=kind, witness=witness, utilization=pace.astype(float))


def _bits(plan: Plan) -> str:
    format = plan.run.format
    return format if format in {"fp4", "fp8"} else "16-bit"


TEAMS = {
    "vtrain_a100_single_node": "vTrain",
    "vtrain_a100_multi_node": "vTrain",
    "bloom_sweeps": "BigScience",
    "megatron_table1": "NVIDIA",
    "megatron_h100": "NVIDIA",
    "recomputation_runs": "NVIDIA",
    "llmfoundry_benchmarks": "MosaicML",
    "megatron_bridge": "NVIDIA",
}
"""Who measured each table."""


MANY_SPLITS = ("vtrain_a100_single_node", "vtrain_a100_multi_node", "bloom_sweeps")
"""The tables that try many splits of one model."""


def own_pace(held: float = 0.85) -> float:
    """How far a split lies from what a measured step of the same model foretells.

    A factor that so many of the pairs in a group of at least five splits keep to, in
    the middle over a source's groups, in the mean of sources. `plan.OWN_PACE` holds it.
    """
    import numpy as np

    found = []
    for source in MANY_SPLITS:
        groups = [rows for _, rows in measured_splits(source).groupby("group")]
        kept = [_apart(rows, held) for rows in groups if len(rows) >= 5]
        found.append(np.median(kept))
    return float(np.mean(found))


def _apart(rows: DataFrame, held: float) -> float:
    import numpy as np

    pace = (rows["modelled"] / rows["seconds"]).to_numpy(float)
    ratio = np.maximum.outer(pace, pace) / np.minimum.outer(pace, pace)
    return float(np.quantile(ratio[~np.eye(len(pace), dtype=bool)], held))


def fitted_launching() -> float:
    """The seconds of `step.LAUNCHING`, fitted to the single-node layouts of vTrain.

    The step is a + L·k: k passes over layers, on the slowest stage with its wait. The
    L whose median error over the layouts is least, by looking at all that make one of
    them exact.
    """
    import numpy as np

    table = measured_splits(FITTED)
    steps = [plan.step for plan in table["plan"]]
    waits = [1 + plan.split.bubble for plan in table["plan"]]
    k = np.array([s.launching * w for s, w in zip(steps, waits, strict=True)]) / LAUNCHING
    a = table["modelled"].to_numpy(float) - LAUNCHING * k
    t = table["seconds"].to_numpy(float)
    tried = (t - a) / k
    errors = [np.median(np.abs((a + L * k) / t - 1)) for L in tried]
    return float(tried[np.argmin(errors)])


def ranked(table: DataFrame) -> DataFrame:
    """How well the model orders the splits of a group of at least five.

    `correlation` of ranks (Spearman), how much slower than the best the split is that
    it puts `first`, and the best of its `first three`; one row a group.
    """
    from pandas import DataFrame

    groups = {key: rows for key, rows in table.groupby("group") if len(rows) >= 5}
    return DataFrame({key: _rank(rows) for key, rows in groups.items()}).T


def _rank(rows: DataFrame) -> dict[str, float]:
    seconds, modelled = rows["seconds"], rows["modelled"]
    taken = seconds[modelled.sort_values(kind="stable").index] / seconds.min() - 1
    return {
        "splits": len(rows),
        "correlation": seconds.rank().corr(modelled.rank()),
        "first": taken.iloc[0],
        "first three": taken.iloc[:3].min(),
    }


@cache
def _rows(source: str) -> tuple[dict[str, Any], ...]:
    chosen, fixed = SOURCES[source]
    known = (fixed | row for row in published.rows(source))
    return tuple(
        found for row in known for each in chosen(row) if (found := _planned(source, each))
    )


def _planned(source: str, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """A row with its plan; None where that is refused, or has no model of its step."""
    try:
        plan = _plan(row)
    except ValueError:
        return None
    if plan.step is None:
        return None
    batch = row["global_batch_size"] / plan.run.global_batch_size
    return {
        "source": source,
        "name": row["name"],
        "family": row.get("model", ""),
        "group": tuple(row.get(x) for x in GROUP),
        "seconds": row["seconds_per_iteration"] / batch,
        "modelled": plan.step.total,
        "plan": plan,
    }


def _plan(row: Mapping[str, Any]) -> Plan:
    """The plan of a measured row: one step of the batch that its replicas make."""
    split: dict[str, Any] = {name: int(row.get(name) or 1) for name in _SPLIT}
    model, b = row.get("shape") or _shape(row), int(row["micro_batch_size"])
    n = int(row["num_gpus"])
    t, p, c = (split[f"{x}_parallel"] for x in ("tensor", "pipeline", "context"))
    whole = n // (t * p * c) * b
    B = max(1, round(row["global_batch_size"] / whole)) * whole
    return plan_run(
        model,
        row.get("chip") or published.accelerator(row["accelerator"]),
        n,
        B * model.sequence_length,
        B,
        recompute=row["recompute"],
        micro_batch_size=b,
        **split,
        zero_stage=int(row.get("zero_stage") or 0),
        keep_gradients=True,
        attention=row.get("attention", "unfused"),
        format=row.get("format"),
        uneven_stages=True,
    )


_SPLIT = (
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "interleave",
    "expert_parallel",
)


def _shape(row: Mapping[str, Any]) -> Transformer:
    shape = ("num_layers", "hidden_size", "num_heads", "vocab_size", "sequence_length")
    return Transformer.gpt(*(row[name] for name in shape))


def _as_it_is(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield row


def _both(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The runs of the recomputation paper, once for each setting."""
    for again in ("full", "selective"):
        told = {"recompute": again, "seconds_per_iteration": row[f"seconds_{again}"]}
        yield {**row, **told}


def _at_rate(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Rows that print a rate in place of seconds: FLOPs of the step over it."""
    counted = _plan(row).flops.total
    yield {**row, "seconds_per_iteration": counted / row["num_gpus"] / row["flops_per_gpu"]}


def _bloom(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Whole rows of more than a node; Jean Zay has 50 GB/s a node, no card for each."""
    needed = ("num_layers", "num_heads", "seconds_per_iteration", "micro_batch_size")
    if all(row.get(name) for name in needed) and row["num_gpus"] > 8:
        chip = published.accelerator(row["accelerator"])
        yield {**row, "chip": replace(chip, network_bandwidth=6.25e9)}


def _foundry(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """MPT in 16 bits and fp8, with flash attention; its heads are of 128 values."""
    tokens = row["global_batch_size"] * row["sequence_length"]
    heads = {1024: 16, 768: 12, 1536: 12, 2560: 20}.get(int(row["hidden_size"]))
    yield {
        **row,
        "num_heads": heads or int(row["hidden_size"]) // 128,
        "seconds_per_iteration": tokens / row["tokens_per_s"],
        "format": "fp8" if row["precision"].endswith("fp8") else "bf16",
    }


def _bridge(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Pre-training rows of models whose shape is known; nothing is recomputed."""
    name = _BRIDGE.get(row["model"])
    if name and row["task"] == "pre-training":
        model = published.config_model(name, row["sequence_length"])
        told = {"shape": model, "zero_stage": 1, "num_layers": row["model"]}
        tokens = row["tokens_per_s_per_gpu"] * row["num_gpus"]
        seconds = row["global_batch_size"] * row["sequence_length"] / tokens
        yield {**row, **told, "seconds_per_iteration": seconds}


_BRIDGE = {
    "LLAMA3_70B": "Llama-3.1-70B",
    "DeepSeekV3": "DeepSeek-V3",
    "GPT OSS 120B": "gpt-oss-120b",
    "Qwen3_30B_a3B": "Qwen3-30B-A3B",
}

_FULL = {"recompute": "full", "vocab_size": 51200}
_FLASH = {"recompute": "none", "attention": "flash"}

_Rows = Callable[[Mapping[str, Any]], Iterator[Mapping[str, Any]]]

SOURCES: dict[str, tuple[_Rows, dict[str, Any]]] = {
    "vtrain_a100_single_node": (_as_it_is, _FULL),
    "vtrain_a100_multi_node": (_as_it_is, _FULL),
    "bloom_sweeps": (_bloom, _FULL | {"vocab_size": 250880}),
    "megatron_table1": (_at_rate, _FULL | {"micro_batch_size": 1}),
    "megatron_h100": (_at_rate, _FLASH | {"micro_batch_size": 1}),
    "recomputation_runs": (_both, {}),
    "llmfoundry_benchmarks": (_foundry, _FLASH | {"vocab_size": 50368}),
    "megatron_bridge": (_bridge, _FLASH),
}
"""Each table: which of its rows, and what its columns do not say."""


def main() -> None:
    """Print, table by table, how well the model of a step orders measured splits."""
    print(f"{'':26}{'rows':>6}{'groups':>8}{'rank':>7}{'first':>8}{'of three':>10}")
    for name in SOURCES:
        table = measured_splits(name)
        result = ranked(table)
        if len(result):
            mean = result.mean()
            print(f"{name:26}{len(table):6}{len(result):8}", end="")
            print(f"{mean['correlation']:+7.2f}{mean['first']:8.1%}", end="")
            print(f"{mean['first three']:10.1%}")
    print(f"launching {fitted_launching() * 1e3:.2f} ms a layer and forward pass")
    for kind, (span, told) in paces().items():
        print(f"{kind:16} {span}  {told}")
