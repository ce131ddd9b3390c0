"""Measured steps under many splits, each beside its plan: who orders them right?

Beside notebooks/08_parallelism.ipynb. `measured_splits` brings the tables of data/ to
plans, `ranked` compares orders and seconds, `fit_kernel_launch` finds the one constant
of `step` that is fitted. `python -m research splits` prints the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from llmtrain_helpers import published
from llmtrain_helpers.flops import EVERY_RECOMPUTE, count_flops
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.plan.options import SOFTWARE
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.plan.step import KERNEL_LAUNCH, SUSTAINED
from research import utilizations

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

    From all `SOURCES`, or from those that you name, without rows whose split doesn't divide
    evenly or whose chip's links are unknown. `software` is the one that made the step, as a
    plan calls it, and `by_software` has the seconds of the plan for that software.
    """
    from pandas import DataFrame

    return DataFrame([row for name in names or SOURCES for row in _rows(name)])


FITTED = "vtrain_a100_single_node"
"""The table to which `KERNEL_LAUNCH` is fitted: it judges no seconds."""


COVERED = 0.9
"""The share of known steps that an interval of paces is made to hold, publications alike."""


def paces() -> dict[tuple[str, str], tuple[utilizations.Span, str]]:
    """What `plan.pace.PACES` holds, computed from data/: steps against the model's.

    By dense or experts, and whose software: low, likely and high, and how many steps lie
    in the interval that the others make.
    """
    by_software = {}
    for (layers, software), rows in steps_by_software().items():
        spread_of = SPREADS[layers]
        low, likely, high = (round(float(pace), 2) for pace in spread_of(rows))
        inside = utilizations.judged(rows, spread_of)["inside"].sum()
        who = "models" if layers == "experts" else "publications"
        evidence = f"{inside} of {len(rows)} steps of {rows['witness'].nunique()} {who}"
        by_software[layers, software] = (
            (low, likely, high),
            f"{evidence}, each judged by the others",
        )
    return by_software


def judged_steps() -> DataFrame:
    """The steps that judge seconds: `kind`, `witness`, and the pace as `utilization`.

    A pace is what the model says over what was measured. A witness, who is left out, is
    a publication; of experts, which all come from NVIDIA's software, a model.
    """
    table = measured_splits(*(name for name in SOURCES if name != FITTED))
    table = table[table["plan"].map(_bits) != "fp4"]  # one model alone
    plans = table["plan"]
    experts = plans.map(lambda plan: plan.run.model.num_experts > 0)
    kind = (plans.map(_bits) + " dense").where(~experts, "experts")
    witness = table["publication"].where(~experts, table["family"])
    pace = table["modelled"] / table["seconds"]
    return table.assign(kind=kind, witness=witness, utilization=pace.astype(float))


def steps_by_software() -> dict[tuple[str, str], DataFrame]:
    """The steps that judge seconds, by kind (dense or experts) and by software.

    Where it is named, the model is told; of "any", which has all of them, it is not.
    """
    table = judged_steps()
    experts = table["kind"] == "experts"
    pace = (table["by_software"] / table["seconds"]).astype(float)
    own = table.assign(utilization=pace, compiled=1.0)
    named: dict[tuple[str, str], DataFrame] = {
        ("dense", software): own[~experts & (own["software"] == software)]
        for software in SOFTWARE
        if software != "any"
    }
    return {("dense", "any"): table[~experts], **named, ("experts", "any"): table[experts]}


def spread(rows: DataFrame) -> utilizations.Span:
    """Low, likely and high pace, each publication weighed alike.

    Likely is the median of the publications' own medians; low and high are a factor
    below and above, the least that holds `COVERED` of the weight of all rows. Where the
    kernels aren't named, a step may be as fast as with compiled ones.
    """
    pace = rows["utilization"]
    by_witness = pace.groupby(rows["witness"])
    likely = by_witness.median().median()
    above, below = pace * rows["compiled"] / likely, likely / pace
    factors = above.combine(below, max)
    order = factors.sort_values(kind="stable").index
    weight = (1 / by_witness.transform("size"))[order].cumsum() / by_witness.ngroups
    factor = factors[order][weight >= COVERED - 1e-9].iloc[0]
    return likely / factor, likely, likely * factor


SPREADS: dict[str, Callable[[DataFrame], utilizations.Span]] = {
    "dense": spread,
    "experts": utilizations.spread,
}
"""Who has a voice in an interval: a publication, or, of one publication, a row."""


SMALL = 3e9
"""Parameters of a model under which it's small."""

GENERATIONS: tuple[tuple[str, ...], ...] = (("A100",), *SUSTAINED)
"""Chips by how their names begin, the oldest first."""


def by_kind(
    rows: DataFrame, spread_of: Callable[[DataFrame], utilizations.Span]
) -> Iterator[tuple[str, dict[str, float]]]:
    """How well others predict each kind of step in rows that make an interval together.

    By format or experts, by chip, and by the model's size.
    """
    judged = utilizations.judged(rows, spread_of)
    plans = judged["plan"]
    chip = plans.map(lambda plan: plan.run.accelerator.name)
    kinds = {kind: judged["kind"] == kind for kind in sorted(set(judged["kind"]))}
    for chips, name in zip(GENERATIONS, ("A100", "Hopper", "Blackwell"), strict=True):
        kinds[name] = chip.str.startswith(chips)
    small = plans.map(lambda plan: plan.parameters.total < SMALL)
    kinds |= {"small models": small, "large models": ~small}
    for kind, these in kinds.items():
        if these.sum() > 0:
            yield kind, utilizations.verdicts(judged[these])


def _bits(plan: Plan) -> str:
    format = plan.run.format
    return format if format in {"fp4", "fp8"} else "16-bit"


MANY_SPLITS = ("vtrain_a100_single_node", "vtrain_a100_multi_node", "bloom_sweeps")
"""The tables that try many splits of one model."""


_SPLIT = (
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "interleave",
    "expert_parallel",
)

SCALINGS = ("tensorwise", "rowwise")
"""How fp8's values are scaled, if a row says so: one factor per matrix, or one per row."""


SAME_IN_PAIRS = ("num_gpus", "global_batch_size", "micro_batch_size", "recompute_share", *_SPLIT)
"""What a pair that differs in fp8 alone has in common, beside its name."""


def fp8_gains() -> DataFrame:
    """Pairs of measured steps that differ in fp8 alone: how many times as fast it was.

    From `software_steps`, whose names say what a row changes, and the runs of
    `fp8_speedup` that are not among them. `gain` in tokens a second; `scaling`; and what
    the model of a step says of the same pair (`modelled`), where it knows both.
    """
    from pandas import DataFrame

    steps = utilizations.judged_steps()
    seconds = measured_splits("software_steps").set_index("name")["by_software"].to_dict()
    unquantised = {_unscaled(x): x for x in steps if x["format"] != "fp8"}
    pairs = []
    for row in steps:
        other = unquantised.get(_unscaled(row))
        if row["format"] != "fp8" or other is None:
            continue
        if any(row.get(name) != other.get(name) for name in SAME_IN_PAIRS):
            continue
        wider, narrower = seconds.get(other["name"]), seconds.get(row["name"])
        pairs.append(
            {
                "publication": row["source_id"],
                "scaling": next((x for x in SCALINGS if x in row["name"]), "not said"),
                "gain": _tokens_a_second(row) / _tokens_a_second(other),
                "modelled": wider / narrower if wider and narrower else None,
            }
        )
    for run in published.rows("fp8_speedup"):
        if run["kind"] == "run" and not any(x in run["name"] for x in SCALINGS):
            who = run["source"].partition(" ")[0]
            pairs.append({"publication": who, "scaling": "not said", "gain": run["speedup"]})
    return DataFrame(pairs)


def _unscaled(row: Mapping[str, Any]) -> str:
    """A row's name without its format and its scaling."""
    scaling = "|".join(("none", *SCALINGS))
    return re.sub(rf"(?<=, )({scaling}), |(?<=, )(fp8|bf16)\b", "", row["name"])


def _tokens_a_second(row: Mapping[str, Any]) -> float:
    """Tokens a second on a GPU, as published or from its seconds."""
    tokens = row["global_batch_size"] * row["sequence_length"] / row["num_gpus"]
    return float(tokens / _seconds(row))


def own_pace(covered: float = 0.85) -> float:
    """How far a split lies from what a measured step of the same model predicts.

    A factor that a share `covered` of the pairs in a group of at least five splits keep
    to: the median over a source's groups, the mean of sources. `plan.seconds.OWN_PACE` holds it.
    """
    import numpy as np

    of_sources = []
    for source in MANY_SPLITS:
        factors = []
        for _, rows in measured_splits(source).groupby("group"):
            if len(rows) < 5:
                continue
            pace = (rows["modelled"] / rows["seconds"]).to_numpy(float)
            ratio = np.maximum.outer(pace, pace) / np.minimum.outer(pace, pace)
            pairs = ratio[~np.eye(len(pace), dtype=bool)]  # of two different splits
            factors.append(float(np.quantile(pairs, covered)))
        of_sources.append(np.median(factors))
    return float(np.mean(of_sources))


def fit_kernel_launch() -> float:
    """The seconds of `step.KERNEL_LAUNCH`, fitted to the single-node layouts of vTrain.

    The step is a + √(C² + (L·k)²): C seconds of computing and k passes over layers, on the
    slowest stage with its wait. The L, in steps of 10 µs, with which the paces of the
    layouts differ least: the standard deviation of their logarithms.
    """
    import numpy as np

    table = measured_splits(FITTED)
    steps = [plan.step for plan in table["plan"]]
    waits = [1 + plan.split.bubble for plan in table["plan"]]
    C = np.array([(s.matmuls + s.memory) * w for s, w in zip(steps, waits, strict=True)])
    visible = np.array([s.kernel_launch * w for s, w in zip(steps, waits, strict=True)])
    k = np.sqrt((C + visible) ** 2 - C**2) / KERNEL_LAUNCH
    a = table["modelled"].to_numpy(float) - C - visible
    t = table["seconds"].to_numpy(float)
    candidates = np.arange(10, 101) * 1e-5
    spreads = [np.std(np.log((a + np.hypot(C, L * k)) / t)) for L in candidates]
    return float(candidates[np.argmin(spreads)])


def by_generation() -> dict[tuple[str, str], float]:
    """How much of its best product a newer chip reaches, over the older of the same publication.

    By publication and the newer generation: the median pace on it, without `step.SUSTAINED`,
    over that on the generation before. Dense models alone, by whose software they were.
    """
    table = judged_steps()
    table = table[table["kind"] != "experts"]
    pace = table["by_software"] / table["seconds"]
    chip = table["plan"].map(lambda plan: plan.run.accelerator.name)
    ratios: dict[tuple[str, str], float] = {}
    for name, (older, newer) in zip(("Hopper", "Blackwell"), pairwise(GENERATIONS), strict=True):
        medians = [
            SUSTAINED.get(chips, 1) * pace[rows].groupby(table["publication"][rows]).median()
            for chips in (older, newer)
            for rows in [chip.str.startswith(chips)]
        ]
        ratio = (medians[1] / medians[0]).dropna()
        ratios |= {(str(publication), name): float(x) for publication, x in ratio.items()}
    return ratios


def ranked(table: DataFrame) -> DataFrame:
    """How well the model orders the splits of a group of at least five.

    `correlation` of ranks (Spearman), how much slower than the best the split is that
    it puts `first`, and the best of its `first three`; one row a group.
    """
    from pandas import DataFrame

    groups: dict[Any, dict[str, float]] = {}
    for group, rows in table.groupby("group"):
        if len(rows) < 5:
            continue
        seconds, modelled = rows["seconds"], rows["modelled"]
        # The splits in the model's order, each by how much slower than the best it is.
        slower = seconds[modelled.sort_values(kind="stable").index] / seconds.min() - 1
        groups[group] = {
            "splits": len(rows),
            "correlation": seconds.rank().corr(modelled.rank()),
            "first": slower.iloc[0],
            "first three": slower.iloc[:3].min(),
        }
    return DataFrame(groups).T


@cache
def _rows(source: str) -> tuple[dict[str, Any], ...]:
    """The steps of a table beside their plans."""
    select, constants = SOURCES[source]
    steps = []
    lines = utilizations.judged_steps() if source == "software_steps" else published.rows(source)
    for row in (step for line in lines for step in select(constants | line)):
        try:
            plan = plan_of(row)
        except ValueError:  # the split does not come out even
            continue
        if plan.step is None:  # the chip's links are unknown
            continue
        batch = row["global_batch_size"] / plan.run.global_batch_size
        software = utilizations.whose(row["software"])
        compiled = None if software == "megatron-core" else row.get("layers_fused") == "yes"
        own = plan.replace(software=software, compiled=compiled)
        assert own.step is not None  # as little as the plan's own
        steps.append(
            {
                "source": source,
                "publication": row.get("source_id", source),
                "name": row["name"],
                "family": row.get("model", ""),
                "group": tuple(row.get(column) for column in GROUP),
                "seconds": row["seconds_per_iteration"] / batch,
                "modelled": plan.step.total,
                "compiled": plan.step.compiled,
                "software": software,
                "by_software": own.step.total,
                "plan": plan,
                "section": row.get("section", ""),
                "peak": row.get("peak_bytes", row.get("memory_bytes")),
                "stated": row.get("stated", True),
            }
        )
    return tuple(steps)


def plan_of(row: Mapping[str, Any]) -> Plan:
    """The plan of a measured row: one step of the batch that its replicas make."""
    split: dict[str, Any] = {name: int(row.get(name) or 1) for name in _SPLIT}
    model, b = _shape(row), int(row["micro_batch_size"])
    n = int(row["num_gpus"])
    t, p, c = (split[f"{x}_parallel"] for x in ("tensor", "pipeline", "context"))
    sequences = n // (t * p * c) * b
    B = max(1, round(row["global_batch_size"] / sequences)) * sequences
    stage = int(row.get("zero_stage") or 0)
    return plan_run(
        model,
        row.get("chip") or _accelerator(row["accelerator"]),
        n,
        B * model.sequence_length,
        B,
        recompute=row["recompute"],
        micro_batch_size=b,
        **split,
        expert_tensor_parallel=row.get("expert_tensor_parallel"),
        zero_stage=stage,
        keep_gradients=stage > 1 or None,
        context=row.get("context", "ring"),
        sequence_parallel=row.get("sequence_parallel", True),
        attention=row.get("attention", "unfused"),
        format=row.get("format"),
        overlap=row.get("overlapped"),
        uneven_stages=True,
    )


_accelerator = cache(published.accelerator)

_config_model = cache(published.config_model)

_gpt = cache(Transformer.gpt)

_shapes: dict[str, Transformer] = {}
"""The shapes of rows by all that they say: one for equal rows, whose plans then count it once."""


def _shape(row: Mapping[str, Any]) -> Transformer:
    """The shape of a row: its own, or that of a GPT with its sizes."""
    own = row.get("shape")
    if own is not None:
        return _shapes.setdefault(repr(own), own)
    sizes = ("num_layers", "hidden_size", "num_heads", "vocab_size", "sequence_length")
    return _gpt(*(row[name] for name in sizes))


def _as_it_is(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield row


def _both(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The runs of the recomputation paper, once for each setting."""
    for setting in ("full", "selective"):
        seconds = row[f"seconds_{setting}"]
        yield {**row, "recompute": setting, "seconds_per_iteration": seconds}


def _at_rate(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Rows that print a rate in place of seconds: FLOPs of the step over it."""
    counted = plan_of(row).flops.total
    yield {**row, "seconds_per_iteration": counted / row["num_gpus"] / row["flops_per_gpu"]}


def _bloom(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Whole rows of more than a node; Jean Zay has 50 GB/s a node, no card for each."""
    needed = ("num_layers", "num_heads", "seconds_per_iteration", "micro_batch_size")
    if all(row.get(name) for name in needed) and row["num_gpus"] > 8:
        chip = _accelerator(row["accelerator"])
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
    name = utilizations.BRIDGE.get(row["model"])
    if name and row["task"] == "pre-training":
        tokens = row["tokens_per_s_per_gpu"] * row["num_gpus"]
        yield {
            **row,
            "shape": _config_model(name, row["sequence_length"]),
            "zero_stage": 3 if row.get("fsdp") else 1,
            "model": name,
            "num_layers": name,  # keeps one model's splits in a group of their own
            "seconds_per_iteration": row["global_batch_size"] * row["sequence_length"] / tokens,
        }


def _simumax(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A few layers of a known model on a node of B200, sharded with nothing overlapped."""
    model = _config_model(row["model"], row["sequence_length"])
    layers, remaining = [], row["num_layers"]
    for how_many, layer in model.layers:
        depth = min(how_many, remaining)
        layers += [(depth, layer)] if depth else []
        remaining -= depth
    ways = row["tensor_parallel"] * row["pipeline_parallel"] * row["context_parallel"]
    yield {
        **row,
        "shape": replace(model, layers=tuple(layers)),
        "global_batch_size": row["micro_batches"] * row["num_gpus"] // ways,
    }


def _of_software(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Steps of known software, with everything that a plan needs."""
    if not all(row.get(name) for name in ("micro_batch_size", "global_batch_size")):
        return
    chip = _accelerator(_CARDS.get(row["team"], row["accelerator"]))
    if row["num_gpus"] <= chip.gpus_per_node:  # a node alone needs no network
        chip = replace(chip, network_bandwidth=chip.network_bandwidth or chip.link_bandwidth)
    network = row.get("network_bandwidth", chip.network_bandwidth)
    step = {
        **row,
        "chip": replace(chip, network_bandwidth=network),
        "section": row["note"] if "note" in row else row["source_id"],
        "precision": f"{row['software']} {row.get('version')} {row['format']}",
        "recompute": _nearest(row.get("recompute"), row["recompute_share"]),
        "stated": "recompute" in row,
        "overlapped": False if "no overlap of tensor" in row.get("note", "") else None,
        "context": "all-to-all" if "Ulysses" in row["software"] else "ring",
    }
    yield {**step, "seconds_per_iteration": _seconds(step)}


_CARDS = {"Meta PyTorch": "H100 SXM 96GB (500 W)"}
"""Teams whose cards are their own."""


def _nearest(recompute: str | None, share: float) -> str:
    """The setting of a plan that comes nearest to a share of the layers' work."""
    if recompute in EVERY_RECOMPUTE:
        return recompute
    return "full" if share > 0.8 else "alternate" if share > 0.2 else "none"


def _seconds(row: Mapping[str, Any]) -> float:
    """A step's seconds: as published, from tokens a second, or from a rate of the model's FLOPs."""
    tokens = row["global_batch_size"] * row["sequence_length"] / row["num_gpus"]
    if "seconds_per_iteration" in row:
        return float(row["seconds_per_iteration"])
    if "tokens_per_s_per_gpu" in row:
        return float(tokens / row["tokens_per_s_per_gpu"])
    flops_per_token = count_flops(row["shape"], 1, "none").total / row["sequence_length"]
    return float(tokens * flops_per_token / row["published_value"])


_FULL = {"recompute": "full", "vocab_size": 51200}
_BEFORE_2022 = {"sequence_parallel": False}  # it came with arXiv 2205.05198
_FLASH = {"recompute": "none", "attention": "flash"}

_SIMUMAX = {
    "micro_batch_size": 1,
    "zero_stage": 1,
    "context": "all-to-all",
    "format": "bf16",
    "overlapped": False,
}

_Rows = Callable[[Mapping[str, Any]], Iterator[Mapping[str, Any]]]

SOURCES: dict[str, tuple[_Rows, dict[str, Any]]] = {
    "vtrain_a100_single_node": (_as_it_is, _FULL),
    "vtrain_a100_multi_node": (_as_it_is, _FULL),
    "bloom_sweeps": (_bloom, _FULL | _BEFORE_2022 | {"vocab_size": 250880}),
    "megatron_table1": (_at_rate, _FULL | _BEFORE_2022 | {"micro_batch_size": 1}),
    "megatron_h100": (_at_rate, _FLASH | {"micro_batch_size": 1}),
    "recomputation_runs": (_both, {}),
    "llmfoundry_benchmarks": (_foundry, _FLASH | {"vocab_size": 50368}),
    "megatron_bridge": (_bridge, _FLASH),
    "b200_steps_and_memory": (_simumax, _FLASH | _SIMUMAX),
    "software_steps": (_of_software, {"attention": "flash"}),
}
"""For each table, a function that makes steps from a row, and what its columns leave out."""


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
    print(f"overhead {fit_kernel_launch() * 1e3:.2f} ms a layer and forward pass")
    print(f"two splits of one model: 85% of pairs within a factor of {own_pace():.2f}")
    print(f"{'':28}{'pace':20}{'rows':>6}{'by':>4}{'inside':>8}{'alike':>7}", end="")
    print(f"{'width':>7}{'error':>7}{'alike':>7}")
    spans = paces()
    for (layers, software), rows in steps_by_software().items():
        spread_of, (span, _) = SPREADS[layers], spans[layers, software]
        verdicts = utilizations.verdicts(utilizations.judged(rows, spread_of))
        print(f"{layers + ', ' + software:28}{' to '.join(map(str, span)):20}", end="")
        print(_in_columns(verdicts))
        for kind, verdicts in by_kind(rows, spread_of):
            print(f"{'  ' + kind + ', ' + software:48}{_in_columns(verdicts)}")


def _in_columns(verdicts: Mapping[str, float]) -> str:
    """Numbers of verdicts under the heading that `main` prints."""
    counts = f"{verdicts['rows']:6}{verdicts['witnesses']:4}"
    shares = f"{verdicts['inside']:8.0%}{verdicts['inside, alike']:7.0%}{verdicts['width']:7.2f}"
    return f"{counts}{shares}{verdicts['error']:7.0%}{verdicts['error, alike']:7.0%}"
