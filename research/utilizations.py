"""What share of the peak others reached, and how far an interval of it can be trusted.

Beside notebooks/03_duration.ipynb and 09_plan.ipynb. `measured_steps` and `whole_runs`
bring the tables of data/ to one form; `spread` makes an interval of them; `coverage`
judges each team by an interval that its own figures had no part in. The constants of
`duration` and `plan` are held to these by a test. `python -m research utilizations`
prints the table of coverage, and the constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from llmtrain_helpers import published
from llmtrain_helpers.flops import RECOMPUTE, Recompute, count_flops, gpt_flops
from llmtrain_helpers.model.names import shape_of_row
from llmtrain_helpers.model.tables import Row
from llmtrain_helpers.plan.options import Software
from llmtrain_helpers.plan.pace import CHIP_FAMILIES, Shares, of_family
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.results import Interval
from llmtrain_helpers.units import DAY

if TYPE_CHECKING:
    from pandas import DataFrame

COVERED = 0.85
"""The share of the known figures that an interval is made to hold."""

Span = tuple[float, float, float]
"""Low, likely and high."""

COLUMNS = ["source", "team", "witness", "kind", "software", "share", "bubble", "utilization"]

MEGATRON_CORE = (
    "Megatron-Core",
    "Megatron-Bridge (Megatron-Core + TE)",
    "NeMo/Megatron-Bridge (Megatron-Core + TE)",
    "Megatron-LM (Megatron-Core + TE)",
    "NeMo + Megatron-Core + TE",
    "NeMo",
)
"""The software that is Megatron-Core's, as the tables call it; all else is other."""


BRIDGE = {
    "LLAMA3_70B": "Llama-3.1-70B",
    "DeepSeekV3": "DeepSeek-V3",
    "GPT OSS 120B": "gpt-oss-120b",
    "Qwen3_30B_a3B": "Qwen3-30B-A3B",
}
"""What Megatron-Bridge calls models, and what `configs` does."""


def whose(software: str) -> Software:
    """Whose software it is, of what a table calls it, as a plan says it."""
    return "megatron-core" if software in MEGATRON_CORE else "other"


def measured_steps() -> DataFrame:
    """Single training steps that others measured: share of the peak, bubble, kind.

    `share` is exact FLOPs, recomputed ones included, over time and dense peak (HFU);
    `bubble` the (p − 1)/(vm) of the split, and `utilization` = share · (1 + bubble).
    A micro-batch that was not published is taken as 1, an interleaving as none.
    `witness` is who is left out when the rows are judged: the publication; of experts,
    which all come from one, the model.
    """
    from pandas import concat

    tables = [_by_software()]
    for name, team, select, constants in _STEPS:
        table = select(getattr(published, name)()).assign(**constants, source=name, team=team)
        d = table["num_gpus"] / (table["tensor_parallel"] * table["pipeline_parallel"])
        m = table["global_batch_size"] / (d / table["context_parallel"])
        m = (m / table["micro_batch_size"]).astype(float)
        v = table["interleave"].fillna(1).astype(float)
        table["bubble"] = (table["pipeline_parallel"] - 1).astype(float) / (m * v)
        rate = _flops_per_gpu(table).astype(float)
        table["share"] = rate / table["peak_flops"].astype(float)
        table["utilization"] = table["share"] * (1 + table["bubble"])
        table["witness"] = table["model"].replace(BRIDGE).where(_has_experts(table), name)
        table["software"] = table["software"].map(whose)
        tables.append(table[COLUMNS])
    return concat(tables, ignore_index=True)


def judged_steps() -> list[Row]:
    """The rows of `software_steps()` used to judge the model, each with its `shape`.

    A share `recompute_share` of a forward pass through the layers is recomputed.
    """
    steps = []
    for row in published.rows("software_steps"):
        if not row["usable"] or not {"kind", "sequence_length"} <= row.keys():
            continue
        named, s = row.get("model"), row["sequence_length"]
        shape = published.config_model(named, s) if named else shape_of_row(row)
        steps.append(Row(row | {"shape": shape}))
    return steps


def _by_software() -> DataFrame:
    """The steps of `software_steps`, with what is recomputed as its share of the layers."""
    from pandas import DataFrame

    steps = []
    for row in judged_steps():
        counted = count_flops(row["shape"], 1, "none")
        forward = (counted.total - counted.head) / 3  # through the layers
        flops = counted.total + row["recompute_share"] * forward
        s, n = row["sequence_length"], row["num_gpus"]
        if "tokens_per_s_per_gpu" in row:
            rate = row["tokens_per_s_per_gpu"] / s * flops
        elif "seconds_per_iteration" in row:
            rate = row["global_batch_size"] / n / row["seconds_per_iteration"] * flops
        else:
            rate = row["published_value"] * flops / counted.total
        p, t, c = (row[f"{way}_parallel"] for way in ("pipeline", "tensor", "context"))
        sequences = row.get("global_batch_size", n) * t * p * c / n  # of a replica
        m = max(sequences / row.get("micro_batch_size", 1), 1)
        bits = row["format"] if row["format"] in ("fp8", "fp4") else "16-bit"
        layers = "experts" if row["shape"].num_experts else "dense"
        steps.append(
            {
                "source": row["source_id"],
                "team": row["team"],
                "witness": row.get("model", row["source_id"]),
                "kind": f"{bits} {layers}{of_family(row['accelerator'])}",
                "software": whose(row["software"]),
                "accelerator": row["accelerator"],
                "share": rate / row["peak_flops"],
                "bubble": (p - 1) / (m * row.get("interleave", 1)),
            }
        )
    table = DataFrame(steps)
    return table.assign(utilization=table["share"] * (1 + table["bubble"]))[COLUMNS]


def _flops_per_gpu(table: Any) -> Any:
    """The rate of each GPU: as printed, or exact FLOPs over the seconds."""
    if "seconds" not in table:
        return table["flops_per_gpu"]
    shape = ("num_layers", "hidden_size", "vocab_size", "sequence_length")
    l, h, V, s = (table[name] for name in shape)
    B = table["global_batch_size"]
    by_setting: dict[str, Any] = {
        setting: gpt_flops(l, h, V, s, B, setting) for setting in RECOMPUTE
    }
    flops = by_setting["none"].copy()
    for setting, counted in by_setting.items():
        rows = (table["recompute"] == setting).to_numpy(dtype=bool)
        flops[rows] = counted[rows]
    return flops / (table["seconds"] * table["num_gpus"]).astype(float)


def _has_experts(table: DataFrame) -> Any:
    return table["kind"].str.endswith("experts")


def _of_both_settings(table: DataFrame) -> DataFrame:
    """The runs of the recomputation paper, once for each setting."""
    from pandas import concat

    return concat(
        [
            table.assign(seconds=table[f"seconds_{setting}"], recompute=setting)
            for setting in ("full", "selective")
        ]
    )


def _of_bloom(table: DataFrame) -> DataFrame:
    """Rows with shape and time; those of 8 GPUs print a batch that was another."""
    complete = table.dropna(subset=["num_layers", "seconds_per_iteration"])
    return _with_seconds(complete.query("num_gpus > 8"))


def _with_seconds(table: DataFrame) -> DataFrame:
    return table.assign(seconds=table["seconds_per_iteration"])


def _of_foundry(table: DataFrame) -> DataFrame:
    """Steps of llm-foundry, with the peak of fp8 for its fp8 rows."""
    fp8 = table["precision"].str.endswith("fp8")
    peaks = table["accelerator"].map(lambda chip: published.accelerator(chip).peaks)
    tokens = table["global_batch_size"] * table["sequence_length"]
    return table.assign(
        seconds=tokens / table["tokens_per_s"],
        peak_flops=[p["fp8" if x else "bf16"] for p, x in zip(peaks, fp8, strict=True)],
        kind=fp8.map({True: "fp8 dense", False: "16-bit dense"}),
    )


def _of_bridge(table: DataFrame) -> DataFrame:
    """Pre-training rows of Megatron-Bridge; fine-tuning has other FLOPs."""
    table = table.query("task == 'pre-training'")
    bits = table["format"].replace("bf16", "16-bit")
    chips = zip(table["accelerator"], table["format"], strict=True)
    return table.assign(
        kind=bits + " " + table["kind"],
        peak_flops=[published.accelerator(chip).peak(f) for chip, f in chips],
    )


_PLAIN: dict[str, Any] = {"kind": "16-bit dense", "model": "", "context_parallel": 1}
_ALONE = {"tensor_parallel": 1, "pipeline_parallel": 1, "interleave": 1}
_MEGATRON = _PLAIN | {"micro_batch_size": 1, "interleave": 1}
_A100_FULL = _PLAIN | {"interleave": 1, "recompute": "full"}

_STEPS: list[tuple[str, str, Callable[[DataFrame], DataFrame], dict[str, Any]]] = [
    ("megatron_table1", "NVIDIA", lambda table: table, _MEGATRON),
    ("megatron_h100", "NVIDIA", lambda table: table, _MEGATRON),
    ("recomputation_runs", "NVIDIA", _of_both_settings, _PLAIN),
    ("bloom_sweeps", "BigScience", _of_bloom, _A100_FULL | {"vocab_size": 250880}),
    ("vtrain_a100_multi_node", "vTrain", _with_seconds, _A100_FULL | {"vocab_size": 51200}),
    (
        "llmfoundry_benchmarks",
        "MosaicML",
        _of_foundry,
        {"model": "", "context_parallel": 1, "vocab_size": 50368} | _ALONE,
    ),
    ("megatron_bridge", "NVIDIA", _of_bridge, {}),
]
"""Each table, its team, a function that selects its rows, and what its columns do not say."""


def whole_runs() -> DataFrame:
    """Whole runs of dense models in 16 bits, stops included, by name.

    Those whose hours, or days and GPUs, are of the run alone, from its start to its end
    (`whole` in training_runs): not counted up from iterations, as Pythia's are, nor
    those of several stages, as Llama 3.1 8B's. Columns as of `measured_steps`.
    """
    runs = published.training_runs().set_index("name")
    runs = runs[runs["kind"].notna() & runs["whole"]]
    names = ("pipeline_parallel", "micro_batches", "interleave")
    p, m, v = (runs[name].fillna(1).astype(float) for name in names)
    table = runs[["team"]].assign(witness=runs["team"], bubble=(p - 1) / (m * v))
    table["share"] = [run_share(name) for name in runs.index]
    table["utilization"] = table["share"] * (1 + table["bubble"])
    return table


def run_share(name: str) -> float:
    """The share of the peak over a published run's GPU-hours, recomputed work counted.

    What it recomputed is known by its setting, or by the ratio of the HFU and MFU that
    it printed (PaLM recomputed a part of each layer: 1.25).

    >>> round(run_share("Llama 2 70B"), 2)
    0.46
    """
    run = published.run(name)
    plan = published.run_plan(name, utilizations=(1, 1, 1))
    ratio = run["hfu"] / run["mfu"] if {"hfu", "mfu"} <= run.keys() else 1
    return float(plan.gpu_hours.likely * ratio / published.hours_of(run))


DERIVED = ("GPT-3 175B", "OPT-175B")
"""Runs whose GPU-hours are an estimate themselves."""


class OtherRun(NamedTuple):
    """A published run, whether its hours are of the run alone, and a plan's days at its share."""

    name: str
    whole: bool
    days: float


def others_days(plan: Plan) -> list[OtherRun]:
    """The days of a plan if its GPUs were as busy as those of each published run.

    Of dense runs in 16 bits with a shape and GPU-hours, the fastest first; the plan is
    such a one too, and has no measured step.
    """
    at_peak = float(plan.days.likely * plan.hfu)
    runs = []
    for row in published.rows("training_runs"):
        hours, complete = published.hours_of(row), {"kind", "tokens"} <= row.keys()
        if hours and complete and row["name"] not in DERIVED:
            p, m, v = (row.get(x, 1) for x in ("pipeline_parallel", "micro_batches", "interleave"))
            share = run_share(row["name"]) * (1 + (p - 1) / (m * v))
            runs.append(OtherRun(row["name"], bool(row["whole"]), at_peak / share))
    return sorted(runs, key=lambda run: run.days)


def stops() -> dict[str, float]:
    """A run's time over its steps' time, of each run that publishes both, by name.

    Four publish a rate beside their hours. Of OPT-175B and GLM-130B `interruptions` has the
    share of the days that the steps took; MosaicML's benchmark has the pace of MPT-7B.
    """
    rates: dict[str, tuple[float, Recompute]] = {
        "Llama 3.1 405B": (400e12, "none"),
        "BLOOM-176B": (150e12, "full"),
        "TinyLlama 1.1B": (0.56 * 312e12, "none"),
        "PaLM 540B": (0.462 * 275e12, "none"),
    }
    factors = {
        row["name"]: 1 / row["useful_share"]
        for row in published.rows("interruptions")
        if row["name"] in ("OPT-175B", "GLM-130B")
    }
    for name, (X, recompute) in rates.items():
        made = published.run_plan(name, flops_per_gpu=X, recompute=recompute)
        factors[name] = float(published.hours_of(published.run(name)) / made.gpu_hours.likely)
    run = published.run("MPT-7B")
    benchmark = next(x for x in published.rows("llmfoundry_benchmarks") if x["name"] == _OF_MPT_7B)
    tokens_a_second = benchmark["tokens_per_s"] / benchmark["num_gpus"] * run["num_gpus"]
    factors["MPT-7B"] = run["days"] * DAY * tokens_a_second / run["tokens"]
    return dict(sorted(factors.items(), key=lambda pair: pair[1]))


_OF_MPT_7B = "a100_40gb 7b, 2048 tokens, 128 GPUs, micro-batch 18, bf16"
"""The step of MPT-7B in `llmfoundry_benchmarks` on the most of its cards."""


def judged_runs() -> DataFrame:
    """Whole runs beside the interval of steps over stops, their own team left out of both."""
    from pandas import DataFrame

    runs, steps, factors = whole_runs(), groups(), stops()
    spans = []
    for name, team in runs["team"].items():
        kinds = f"steps, 16-bit dense{of_family(published.run(str(name))['accelerator'])}", NVIDIAS
        others = (steps[kind][steps[kind]["team"] != team] for kind in kinds)
        span = spread(next(rows for rows in others if len(rows)))
        spans.append(run_span(span, [x for of, x in factors.items() if _team(of) != team]))
    ends = DataFrame(spans, columns=["low", "likely", "high"], index=runs.index)
    inside = runs["utilization"].between(ends["low"], ends["high"])
    return runs.join(ends).assign(inside=inside)


def run_span(of_steps: Span, longer: Collection[float]) -> Span:
    """Shares of the peak over a whole run, from its steps' shares and how much longer runs take."""
    low, likely, high = of_steps
    at_peak = Interval(1 / high, 1 / likely, 1 / low)
    span = at_peak.product(Interval(min(longer), median(longer), max(longer)))
    return float(1 / span.greatest), float(1 / span.likely), float(1 / span.least)


NVIDIAS = "steps, 16-bit dense"
"""The steps that judge a run on a chip whose other steps are all its own team's."""


def _team(name: str) -> str | None:
    """The team of a published run; None for GLM-130B, of which no row of runs is complete."""
    return {x["name"]: x["team"] for x in published.rows("training_runs")}.get(name)


def model_utilizations() -> DataFrame:
    """The MFU over published runs, 6PT over GPU time and peak, by name; and `team`.

    Of runs in tier A that publish GPU-hours, or days and GPUs: stops are included, but
    for Pythia, whose hours are counted up from iterations. P are the active parameters;
    the peak is that of bf16 or fp16, for FP8 too.
    """
    runs = published.training_runs().query("tier == 'A'").set_index("name")
    runs = runs[runs.index.isin(published.reported_gpu_hours().index)]
    shares = [published.share_of_run(name) for name in runs.index]
    return runs[["team"]].assign(witness=runs["team"], utilization=shares)


def spread(table: DataFrame) -> Span:
    """Low, likely and high `utilization` of a table's rows.

    Likely is the median of the witnesses' own medians: whoever published two hundred
    rows has one voice, as who published two. Low and high are a factor f below and
    above, which holds `COVERED` of the rows: of n, the ⌈COVERED·(n + 1)⌉-th from within, or
    all of them where they are few.
    """
    shares = table["utilization"]
    likely = shares.groupby(table["witness"]).median().median()
    factors = sorted(max(x / likely, likely / x) for x in shares)
    f = factors[min(math.ceil(COVERED * (len(factors) + 1)), len(factors)) - 1]
    return likely / f, likely, likely * f


def judged(table: DataFrame, spread_of: Callable[[DataFrame], Span] = spread) -> DataFrame:
    """Each row with the interval that all other witnesses make, and whether it lies inside."""
    table = table.copy()
    witness = table["witness"]
    spans = {name: spread_of(table[witness != name]) for name in witness.unique()}
    low, likely, high = zip(*table["witness"].map(spans), strict=True)
    table = table.assign(low=low, likely=likely, high=high)
    if "compiled" in table:  # of a step whose kernels nobody named
        table["high"] /= table["compiled"]
    table["inside"] = table["utilization"].between(table["low"], table["high"])
    return table


ERRORS = ("error", "error, alike")
"""Median errors: by rows, and with each witness weighed alike."""


def verdicts(judged: DataFrame) -> dict[str, float]:
    """How well the others foretell each judged row: by rows, and each witness weighed alike.

    The share `inside`, the median `width` (greatest over least) of a witness's interval,
    and the median `error` of its middle.
    """
    error = (judged["utilization"] / judged["likely"] - 1).abs()
    by_witness = judged.assign(error=error, width=judged["high"] / judged["low"]).groupby("witness")
    return {
        "rows": len(judged),
        "witnesses": by_witness.ngroups,
        "inside": judged["inside"].mean(),
        "inside, alike": by_witness["inside"].mean().mean(),
        "width": by_witness["width"].median().median(),
        "error": error.median(),
        "error, alike": by_witness["error"].median().median(),
    }


def coverage(tables: Mapping[str, DataFrame] | None = None) -> DataFrame:
    """How many figures lie in the interval that the others make, kind by kind."""
    from pandas import DataFrame

    rows = {}
    for name, table in (groups() if tables is None else tables).items():
        low, likely, high = spread(table)
        row: dict[str, Any] = {
            "rows": len(table),
            "witnesses": table["witness"].nunique(),
            "low": low,
            "likely": likely,
            "high": high,
            "width": high / low,
            # one witness alone has nobody to be judged by
            **dict.fromkeys(("inside", "width without", "inside, alike", *ERRORS)),
        }
        if row["witnesses"] > 1:
            rows_judged = judged(table)
            summary = verdicts(rows_judged)
            row["inside"], row["width without"] = rows_judged["inside"].sum(), summary["width"]
            row |= {name: summary[name] for name in ("inside, alike", *ERRORS)}
        rows[name] = row
    return DataFrame.from_dict(rows, orient="index")


def groups() -> dict[str, DataFrame]:
    """The groups of rows that make an interval together, by name."""
    steps: Any = measured_steps()
    kinds = steps["kind"].where(~_has_experts(steps), "experts")
    return {
        **{f"steps, {kind}": steps[kinds == kind] for kind in sorted(set(kinds))},
        "whole runs, 16-bit dense": whole_runs(),
        "whole runs, by 6PT": model_utilizations(),
    }


def groups_by_software() -> dict[str, DataFrame]:
    """The rows of dense models on NVIDIA's chips, by kind and by whose software."""
    steps: Any = measured_steps()
    return {
        f"{kind}, {software}": rows
        for (kind, software), rows in steps.groupby(["kind", "software"])
        if kind in ("16-bit dense", "fp8 dense")
    }


def shares() -> dict[str, Shares]:
    """What `plan.pace.PUBLISHED_SHARES` holds, computed from data/.

    Experts are pooled over 16 bits and fp8, where their shares are alike. A kind that
    one team's software alone has measured, or nobody, is untested: it takes the widest factor
    of the tested ones on top of its own.
    """
    steps = _spans_of_steps()
    table: Any = coverage()
    experts = _in_words(table.loc["steps, experts"], "models")
    few = table.loc["steps, fp4 dense", "rows"]
    evidence = {
        "16-bit dense": _in_words(table.loc["steps, 16-bit dense"], "publications"),
        "fp8 dense": _in_words(table.loc["steps, fp8 dense"], "publications"),
        "fp4 dense": f"untested: {few:.0f} steps, all of NVIDIA's software",
        **{
            kind: _in_words(table.loc[f"steps, {kind}"], "publications")
            for kind in steps
            if kind.endswith(tuple(CHIP_FAMILIES.values()))
        },
        "16-bit experts": experts,
        "fp8 experts": experts,
    }
    return {kind: Shares(_rounded(span), evidence.get(kind, NONE)) for kind, span in steps.items()}


NONE = "untested: nobody has published such steps"
"""The evidence of a kind without rows."""


def _spans_of_steps() -> dict[str, Span]:
    """The spread of steps for every kind, wider where it is untested."""
    kinds = ("16-bit dense", "fp8 dense", "fp4 dense", "experts")
    rows = groups()
    dense, fp8, fp4, experts = (spread(rows[f"steps, {kind}"]) for kind in kinds)
    factor = max(span[2] / span[1] for span in (dense, fp8, experts))
    fewer = fp4[1] / fp8[1]  # of a peak twice as high
    in_fp4 = (experts[0] * fewer, experts[1] * fewer, experts[2] * fewer)
    own = {name.removeprefix("steps, "): table for name, table in rows.items()}
    of_families = {
        kind: spread(table) if table["witness"].nunique() > 1 else _wider(spread(table), factor)
        for kind, table in own.items()
        if kind.endswith(tuple(CHIP_FAMILIES.values()))
    }
    return {
        **of_families,
        "16-bit dense": dense,
        "fp8 dense": fp8,
        "fp4 dense": _wider(fp4, factor),
        "32-bit dense": _wider(dense, factor),
        "16-bit experts": experts,
        "fp8 experts": experts,
        "fp4 experts": _wider(in_fp4, factor),
        "32-bit experts": _wider(experts, factor),
    }


def _wider(span: Span, factor: float) -> Span:
    low, likely, high = span
    return low / factor, likely, min(high * factor, 1.0)


def _rounded(span: Span) -> Span:
    low, likely, high = (round(float(u), 2) for u in span)
    return low, likely, high


def _in_words(row: Any, witnesses: str) -> str:
    """How many steps of a row of `coverage` lie inside, as the evidence says it."""
    if row["witnesses"] == 1:
        return f"untested: {row['rows']:.0f} steps, all of one publication"
    inside = f"{row['inside']:.0f} of {row['rows']:.0f} steps"
    others = "the other" if row["witnesses"] == 2 else "the others"
    return f"{inside} of {row['witnesses']:.0f} {witnesses}, each judged by {others}"


def main() -> None:
    """Print how many published figures lie in the interval that the others make, and `shares`."""
    table: Any = coverage(groups() | groups_by_software())
    print(f"{'':32}{'rows':>6}{'by':>4}{'low':>7}{'likely':>8}{'high':>7}{'width':>7}", end="")
    print(f"{'inside, left out':>18}{'alike':>7}{'width':>7}{'error':>7}{'alike':>7}")
    for name, row in table.iterrows():
        print(f"{name:32}{row['rows']:6.0f}{row['witnesses']:4.0f}", end="")
        print(f"{row['low']:7.3f}{row['likely']:8.3f}{row['high']:7.3f}{row['width']:7.2f}", end="")
        if row["witnesses"] == 1:
            print(f"{'untested':>18}")
            continue
        inside = f"{row['inside']:.0f} = {row['inside'] / row['rows']:.0%}"
        print(f"{inside:>18}{row['inside, alike']:7.0%}{row['width without']:7.2f}", end="")
        print("".join(f"{row[name]:7.0%}" for name in ERRORS))
    print()
    for name, share in shares().items():
        print(f"{name:32}{' '.join(f'{u:.2f}' for u in share.steps)}: {share.evidence}")
    print()
    print("a run's time over its steps':", ", ".join(f"{x} {y:.2f}" for x, y in stops().items()))
    verdict = verdicts(judged_runs())
    print(
        f"days by steps and stops: {verdict['inside']:.0%} of {verdict['rows']} whole runs inside, "
        f"{verdict['width']:.2f} wide, error {verdict['error']:.0%}"
    )
