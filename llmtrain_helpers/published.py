"""The evidence: published data as pandas tables, shapes and accelerators.

Every row of `data/` names its source; `data/README.md` explains each column. All
columns are in SI base units. The tables are copies, so you can change them as you like.
"""

from __future__ import annotations

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


def accelerators() -> DataFrame:
    """GPUs and TPUs: memory, bandwidth, power, and dense peaks by number format."""
    return _table("accelerators")


def links() -> DataFrame:
    """Bytes per second that one GPU sends inside its node and out of it, by chip."""
    return _table("links")


def architectures() -> DataFrame:
    """Shapes of published models, with their exact totals if published."""
    return _table("architectures")


def configs() -> DataFrame:
    """Values in the config.json files of real models, with the totals of their weights."""
    return _table("configs")


def families() -> DataFrame:
    """Decoders of Hugging Face transformers at their defaults, and what we read from them."""
    return _table("families")


def megatron_table1() -> DataFrame:
    """Ten GPTs from 1.7 billion to 1 trillion parameters (arXiv 2104.04473 Table 1)."""
    return _table("megatron_table1")


def megatron_h100() -> DataFrame:
    """Nine GPTs on up to 6,144 H100s (Megatron-LM, 2024)."""
    return _table("megatron_h100")


def megatron_training_days() -> DataFrame:
    """Days of training, from rates: arXiv 2104.04473, Table 2 and two examples."""
    return _table("megatron_training_days")


def recomputation_runs() -> DataFrame:
    """Four GPTs with full and with selective recomputation (arXiv 2205.05198)."""
    return _table("recomputation_runs")


def training_runs() -> DataFrame:
    """Real runs: model, hardware, and the known rates and times."""
    return _table("training_runs")


def small_runs() -> DataFrame:
    """Scripts for one node of eight GPUs: a timed iteration, and the time they plan."""
    return _table("small_runs")


def parallel_layouts() -> DataFrame:
    """How published runs split their GPUs, and whether they print DP themselves."""
    return _table("parallel_layouts")


def batch_sizes() -> DataFrame:
    """Global batches of published runs in tokens, at the start and at the end."""
    return _table("batch_sizes")


def critical_batch() -> DataFrame:
    """Data on the critical batch: beyond it, tokens grow more than steps shrink.

    At that batch, a run needs 2× the fewest steps and 2× the fewest tokens (McCandlish et
    al., arXiv 1812.06162, equation 2.11).
    """
    return _table("critical_batch")


def cpu_throughput() -> DataFrame:
    """Seconds of a training step of three tiny GPTs, by batch, on one CPU thread."""
    return _table("cpu_throughput")


def measured_passes() -> DataFrame:
    """Seconds of a pass of three tiny GPTs, by micro-batch, without an update."""
    return _table("measured_passes")


def step_times() -> DataFrame:
    """Seconds of each of thirty training steps of a small GPT, in three series."""
    return _table("step_times")


def cpu_steps() -> DataFrame:
    """Products and steps of a small GPT on one CPU thread: seconds, and memory used."""
    return _table("cpu_steps")


def step_trace() -> DataFrame:
    """A profiler's record of two training steps in one process."""
    return _table("step_trace")


def memory_trace() -> DataFrame:
    """Peak memory in two training steps of a 1B model, layer by layer."""
    return _table("memory_trace")


def fp8_speedup() -> DataFrame:
    """Pairs in bf16 and in fp8: peaks, matrix products, runs."""
    return _table("fp8_speedup")


def model_state_memory() -> DataFrame:
    """Published bytes of model states: measured, stated or computed, and the recipe."""
    return _table("model_state_memory")


def activation_formulas() -> DataFrame:
    """Bytes that a GPT layer stores, as formulas (arXiv 2205.05198 Table 2)."""
    return _table("activation_formulas")


def recomputation_overheads() -> DataFrame:
    """Time that recomputation adds and memory that it saves (arXiv 2205.05198)."""
    return _table("recomputation_overheads")


def measured_memory() -> DataFrame:
    """Peaks of GPU memory that others measured."""
    return _table("measured_memory")


def finetune_measured() -> DataFrame:
    """Peaks of memory and throughput of full fine-tuning, LoRA and 4-bit LoRA."""
    return _table("finetune_measured")


def finetune_counted() -> DataFrame:
    """FLOPs and stored bytes of tuning, counted with PyTorch on small models."""
    return _table("finetune_counted")


def generation_shares() -> DataFrame:
    """The share of a reinforcement-learning step spent generating answers."""
    return _table("generation_shares")


def bloom_sweeps() -> DataFrame:
    """Splits and micro-batches tried before BLOOM was trained."""
    return _table("bloom_sweeps")


def llmfoundry_benchmarks() -> DataFrame:
    """Throughput of GPTs from 125 million to 70 billion parameters, with FSDP."""
    return _table("llmfoundry_benchmarks")


def vtrain_a100_multi_node() -> DataFrame:
    """Steps of two GPTs under many splits of 64 and 512 A100s (arXiv 2312.12391)."""
    return _table("vtrain_a100_multi_node")


def vtrain_a100_single_node() -> DataFrame:
    """Steps of small GPTs under every split of 2, 4 and 8 A100s (arXiv 2312.12391)."""
    return _table("vtrain_a100_single_node")


def collectives_measured() -> DataFrame:
    """All-reduces, all-gathers and all-to-alls that others measured, by size."""
    return _table("collectives_measured")


def matmul_measured() -> DataFrame:
    """Rates of matrix products, by shape and for the best shape of a chip."""
    return _table("matmul_measured")


def megatron_bridge() -> DataFrame:
    """Throughput of NVIDIA's recipes, H100 to GB300, 16 to 4 bits per number."""
    return _table("megatron_bridge")


def b200_steps_and_memory() -> DataFrame:
    """Steps and memory peaks of Megatron on eight B200s, measured and simulated."""
    return _table("b200_steps_and_memory")


def software_steps() -> DataFrame:
    """Measured steps of 17 publications, by software."""
    return _table("software_steps")


def interruptions() -> DataFrame:
    """What stopped published runs, how often, and the useful share of their time."""
    return _table("interruptions")


def llama3_causes() -> DataFrame:
    """The 419 unexpected stops of Llama 3.1 405B (arXiv 2407.21783 Table 5)."""
    return _table("llama3_causes")


def checkpoints() -> DataFrame:
    """Sizes of published checkpoints, and how long a write blocks training."""
    return _table("checkpoints")


def prices_energy() -> DataFrame:
    """Prices, power, data-centre overheads, and the cost of whole projects."""
    return _table("prices_energy")


def scaling_laws() -> DataFrame:
    """Scaling laws for the loss and the best split of work, with the runs behind them."""
    return _table("scaling_laws")


def loss_runs() -> DataFrame:
    """Final losses of 683 small models, by parameters and tokens: rows to fit."""
    return _table("loss_runs")


def tokens_per_parameter() -> DataFrame:
    """Released models: their parameters, and the tokens that they were trained on."""
    return _table("tokens_per_parameter")


def reported_gpu_hours() -> Series[float]:
    """GPU-hours of the published runs by name; if unpublished, days times GPUs."""
    from pandas import Series

    hours = {row["name"]: hours_of(row) for row in rows("training_runs")}
    return Series({name: reported for name, reported in hours.items() if reported})


def judged_steps() -> list[Row]:
    """The rows of `software_steps()` used to judge the model, each with its `shape`.

    A share `recompute_share` of a forward pass through the layers is recomputed.
    """
    needed = {"kind", "sequence_length"}
    judged = (row for row in rows("software_steps") if row["usable"] and needed <= row.keys())
    return [Row(row | {"shape": _shape_of_step(row)}) for row in judged]


def _shape_of_step(row: Row) -> Transformer:
    """The shape in a row of `software_steps`: the named model's, or its own."""
    if "model" in row:
        return config_model(row["model"], row["sequence_length"])
    return shape_of_row(row)


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
def _read_table(name: str) -> DataFrame:
    from pandas import read_csv

    table_lines(name)  # which refuses a damaged file
    path = data_folder() / f"{name}.csv"
    # Nullable columns keep whole numbers whole beside a gap.
    return read_csv(path, encoding="utf-8-sig", dtype_backend="numpy_nullable")


def _table(name: str) -> DataFrame:
    return _read_table(name).copy()
