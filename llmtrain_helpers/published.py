"""The evidence: published data as pandas tables, shapes and accelerators.

Every row of `data/` names its source; `data/README.md` explains each column. All
columns are in SI base units. The tables are copies, so you can change them as you like.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Unpack

from llmtrain_helpers.checks import refuse
from llmtrain_helpers.duration import whole_run_share
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.model import Transformer
from llmtrain_helpers.model.names import (
    CONFIG_LIMIT as CONFIG_LIMIT,
    PEAKS as PEAKS,
    accelerator as accelerator,
    architecture as architecture,
    config_model as config_model,
    model_names as model_names,
    parse_config as parse_config,
    read_config as read_config,
    shape_of_row,
)
from llmtrain_helpers.model.tables import (
    Row as Row,
    data_folder as data_folder,
    find_row,
    names as names,
    rows as rows,
    table_lines,
)
from llmtrain_helpers.plan.options import Inputs
from llmtrain_helpers.plan.plan import Plan, plan_run

if TYPE_CHECKING:
    from pandas import DataFrame, Series

TABLES = {
    "accelerators": "GPUs and TPUs: memory, bandwidth, power, and dense peaks by number format.",
    "links": "Bytes per second that one GPU sends inside its node and out of it, by chip.",
    "architectures": "Shapes of published models, with their exact totals if published.",
    "configs": "Values in the config.json files of real models, with the totals of their weights.",
    "framework_settings": "What settings in files of training frameworks mean in a plan.",
    "family_rows": "How we read the config.json of 105 families of decoders, a row each.",
    "families": "Decoders of transformers at their defaults, and what we read from them.",
    "megatron_table1": "GPTs of 1.7 billion to 1 trillion parameters (arXiv 2104.04473).",
    "megatron_h100": "Nine GPTs on up to 6,144 H100s (Megatron-LM, 2024).",
    "megatron_training_days": "Days of training, from rates (arXiv 2104.04473, Table 2).",
    "recomputation_runs": "Four GPTs with full and selective recomputation (arXiv 2205.05198).",
    "training_runs": "Real runs: model, hardware, and the known rates and times.",
    "small_runs": "Scripts for one node of eight GPUs: a timed iteration, and the time they plan.",
    "parallel_layouts": "How published runs split their GPUs, and whether they print DP.",
    "batch_sizes": "Global batches of published runs in tokens, at the start and at the end.",
    "critical_batch": "The critical batch: beyond it, tokens grow more than steps shrink.",
    "cpu_throughput": "Seconds of a training step of three tiny GPTs, by batch, on one CPU thread.",
    "measured_passes": "Seconds of a pass of three tiny GPTs, by micro-batch, without an update.",
    "step_times": "Seconds of each of thirty training steps of a small GPT, in three series.",
    "cpu_steps": "Products and steps of a small GPT on one CPU thread: seconds, and memory used.",
    "step_trace": "A profiler's record of two training steps in one process.",
    "memory_trace": "Peak memory in two training steps of a 1B model, layer by layer.",
    "fp8_speedup": "Pairs in bf16 and in fp8: peaks, matrix products, runs.",
    "model_state_memory": "Published bytes of model states, with the recipe.",
    "activation_formulas": "Bytes that a GPT layer stores, as formulas (arXiv 2205.05198 Table 2).",
    "recomputation_overheads": "What recomputation costs and saves (arXiv 2205.05198).",
    "measured_memory": "Peaks of GPU memory that others measured.",
    "finetune_measured": "Peaks of memory and throughput of full fine-tuning, LoRA and 4-bit LoRA.",
    "finetune_counted": "FLOPs and stored bytes of tuning, counted with PyTorch on small models.",
    "generation_shares": "The share of a reinforcement-learning step spent generating answers.",
    "bloom_sweeps": "Splits and micro-batches tried before BLOOM was trained.",
    "llmfoundry_benchmarks": "Throughput of GPTs of 125M to 70B parameters, with FSDP.",
    "vtrain_a100_multi_node": "Steps of two GPTs split over 64 and 512 A100s (arXiv 2312.12391).",
    "vtrain_a100_single_node": "Steps of small GPTs split over 2 to 8 A100s (arXiv 2312.12391).",
    "collectives_measured": "All-reduces, all-gathers and all-to-alls by size, measured.",
    "matmul_measured": "Rates of matrix products, by shape and for the best shape of a chip.",
    "megatron_bridge": "Throughput of NVIDIA's recipes, H100 to GB300, 16 to 4 bits per number.",
    "b200_steps_and_memory": "Steps and peaks of Megatron on eight B200s, also simulated.",
    "software_steps": "Measured steps of 17 publications, by software.",
    "interruptions": "What stopped published runs, how often, and the useful share of their time.",
    "llama3_causes": "The 419 unexpected stops of Llama 3.1 405B (arXiv 2407.21783 Table 5).",
    "checkpoints": "Sizes of published checkpoints, and how long a write blocks training.",
    "prices_energy": "Prices, power, data-centre overheads, and the cost of whole projects.",
    "scaling_laws": "Scaling laws for the loss and the best split of work, with their runs.",
    "loss_runs": "Final losses of 683 small models, by parameters and tokens: rows to fit.",
    "tokens_per_parameter": "Released models: parameters, and tokens that they were trained on.",
}
"""What each table of `data/` has; a function of its name returns a copy of it.

At the critical batch, a run needs 2× the fewest steps and 2× the fewest tokens (McCandlish et
al., arXiv 1812.06162, equation 2.11).
"""


def __getattr__(name: str) -> Callable[[], DataFrame]:
    """Return the function that copies a table of `TABLES`: `published.links()`."""
    if name not in TABLES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _function(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *TABLES})


def reported_gpu_hours() -> Series[float]:
    """GPU-hours of the published runs by name; if unpublished, days times GPUs."""
    from pandas import Series

    hours = {row["name"]: hours_of(row) for row in rows("training_runs")}
    return Series({name: reported for name, reported in hours.items() if reported})


def hours_of(row: Row) -> float:
    """GPU-hours of a run, or its days times its GPUs; 0 if neither is published."""
    counted = 24 * row.get("days", 0) * row.get("num_gpus", 0)
    return float(row.get("gpu_hours", counted))


def run(name: str) -> Row:
    """The row of a run in `training_runs()`, by name; gaps are left out.

    >>> run("BLOOM-176B")["accelerator"]
    'A100-80'
    """
    return find_row("run", name, "training_runs")


def share_of_run(name: str) -> float:
    """The MFU over a published run, from the GPU-hours that it reported.

    ValueError for a run whose tokens or hours are unknown.

    >>> round(share_of_run("Llama 3.1 8B"), 3)
    0.139
    """
    row = run(name)
    if not (hours_of(row) and {"tokens", "peak_flops"} <= row.keys()):
        refuse("run", name, "has no share: its tokens or its GPU-hours were not published")
    work = (row["tokens"], row["active_parameters"])
    return float(whole_run_share(*work, hours_of(row), row["peak_flops"]))


def run_model(name: str) -> Transformer:
    """The shape of a published run, without a position table, by its name.

    Out of the run's own row, or else of `configs()`. It has the run's number of parameters
    within 0.1%. ValueError for a run whose shape is in neither.

    >>> run_model("BLOOM-176B").num_layers
    70
    """
    row = run(name)
    if "kind" in row:
        return shape_of_row(row)
    if row["name"] not in names("configs"):
        refuse("run", name, "has no shape here, neither in its row nor among configs()")
    return config_model(row["name"], row.get("sequence_length"))


def run_plan(name: str, **options: Unpack[Inputs]) -> Plan:
    """The plan of a published run, to hold against what it reported.

    On its chip, with its tokens, and what it recomputed where that is known; on one GPU
    where their number is not, which GPU-hours do not depend on; one sequence on each,
    for time does not depend on the batch without a pipeline. `options` are arguments of
    `plan_run`, and come first. ValueError for a run without a shape or tokens.

    >>> round(run_plan("Llama 2 70B").gpu_hours.likely / 1e6, 2)
    1.94
    """
    model, row = run_model(name), run(name)
    if "tokens" not in row:
        refuse("run", name, "has no plan: its tokens were not published")
    chip, n = accelerator(row["accelerator"]), row.get("num_gpus", 1)
    inputs: Inputs = {
        "model": model,
        # How it was split is not known, so that nothing is said of what it sent.
        "accelerator": replace(chip, link_bandwidth=None, network_bandwidth=None),
        "num_gpus": n,
        "tokens": row["tokens"],
        "global_batch_size": n,
        "recompute": row["recompute"] if row["recompute"] in RECOMPUTE else "none",
    }
    return plan_run(**(inputs | options))


@cache
def _function(name: str) -> Callable[[], DataFrame]:
    def table() -> DataFrame:
        return _read_table(name).copy()

    table.__name__ = table.__qualname__ = name
    table.__doc__ = TABLES[name]
    return table


@cache
def _read_table(name: str) -> DataFrame:
    from pandas import read_csv

    table_lines(name)  # which refuses a damaged file
    path = data_folder() / f"{name}.csv"
    # Nullable columns keep whole numbers whole beside a gap.
    return read_csv(path, encoding="utf-8-sig", dtype_backend="numpy_nullable")
