"""What test_fuzz.py gives the formulas, what they must refuse, and which are left out."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from llmtrain_helpers import (
    FORMATS,
    LAWS,
    RECIPES,
    Accelerator,
    Experts,
    Interval,
    Layer,
    Mlp,
    Transformer,
    Tuning,
    plan_run,
    published,
    shelf,
    step_traffic,
    sweep,
)

from .bad_values import BAD_COUNTS, BAD_QUANTITIES, NO_NUMBERS

LLAMA = Transformer.llama(32, 4096, 32, 8, 14336, 128256, 8192)
MIXTURE = Transformer.llama(16, 512, 8, 8, 1024, 32000, 1024, num_experts=8, experts_per_token=2)
GPTS = Transformer.gpt(np.array([12, 24, 48]), 768, 12, 50257, 1024)
MIXED = Layer(None, Experts(Mlp(64), 8, 2, Mlp(32)))
A100 = Accelerator("A100", 80e9, 2e12, 400, {"bf16": 312e12, "fp16": 312e12})
H100 = Accelerator("H100", 80e9, link_bandwidth=450e9, network_bandwidth=50e9)
PACE = (
    plan_run(LLAMA, published.accelerator("A100"), 64, 10**12, 512, recompute="none")
    .calibrated(30.0)
    .run.pace
)
PLAN = plan_run(LLAMA, A100, 64, 10**12, 512, recompute="none")
SPREAD = plan_run(
    MIXTURE, A100, 64, 10**12, 512, recompute="none", expert_parallel=8, imbalance=1.2, zero_stage=1
)
SWEEP = sweep(LLAMA, A100, [64], 10**12, 512, recompute="full")

EXTREME: list[Any] = [1e40, int(1e40), 1e-40, 1, 2, np.array([1e40, 1.0]), 10**39 + 1]
"""What is barely taken; many at once, for what comes out of their products."""

NUMBERS: list[Any] = [1, 2, 8, 64, 1024, 16.0, np.int64(4), np.array([8, 16])]
HOSTILE: list[Any] = [
    None,
    True,
    False,
    "7B",
    "",
    b"8",
    "none",
    [],
    (),
    {},
    {"a": 1},
    object(),
    int,
    *(0, -1, 0.5, -0.0, 1e-41, 1e-40, 1e40, 1.1e40, 10**40, 10**400, -(10**400), 5e-324),
    *(math.nan, math.inf, -math.inf, 1e300, 2**63, 312, 1 + 2j, Decimal(8), Fraction(8)),
    [8, 16],
    (1, 2, 3),
    ["8"],
    [[1], [1, 2]],
    {8},
    range(3),
    lambda *given: 8,
    np.bool_(True),
    np.float64("nan"),
    np.int8(-3),
    np.datetime64("2026-01-01"),
    np.datetime64("2026-01-01", "ns"),
    np.timedelta64(8, "ns"),
    np.longdouble("1e400"),
    np.array(["1e400", "1"], "longdouble"),
    SimpleNamespace(dtype=np.dtype("int64"), shape=(2,)),
    SimpleNamespace(dtype=np.dtype("int64"), shape=()),
    np.array(8),
    np.array(8, object),
    np.array([]),
    np.array([8]),
    np.array([[8], [16]]),
    np.arange(1, 4),
    np.array([8, 0]),
    np.array([1, np.nan]),
    np.array([2.5]),
    np.array([1e41]),
    np.array([2**62, 2**62]),
    np.array([100, 120], "int8"),
    np.array([1e40, 1e-40]),
    np.array(["8"]),
    np.array([None]),
    np.array([True]),
    np.array([1j]),
    np.ma.array([8, 16]),
    np.ones((2, 1, 3)),
    np.array([[8, 16]]).T,
    pd.Series([8, 16]),
    pd.Series([8, None], dtype="Int64"),
    pd.Series(["8", "16"]),
    pd.DataFrame({"x": [8, 16], "y": [1, 2]}),
    pd.NA,
    pd.NaT,
    pd.Index([8, 16]),
    "ful",
    "bf17",
    "gpt3",
    "A101",
    "FULL",
    "x" * 10**5,
    "x\ny",
    "\x00",
    LLAMA,
    GPTS,
    A100,
    PLAN,
    RECIPES["fp8"],
    FORMATS["bf16"],
    Interval(1, 2, 3),
]
GOOD: dict[str, list[Any]] = {
    "model": [LLAMA, MIXTURE, LLAMA, MIXTURE, Transformer.gpt(12, 768, 12, 50257, 1024), GPTS],
    "accelerator": [A100],
    "run": [PLAN.run],
    "plan": [PLAN, PLAN.replace(zero_stage=3), PLAN.replace(num_gpus=8), SPREAD],
    "num_gpus": [8, 64, 512.0, np.array([64, 128])],
    "num_heads": [8, 16],
    "num_kv_heads": [2, 8],
    "layers": [None, LLAMA.layers, [(1, LLAMA.layers[0][1]), (2, MIXED)]],
    "mixer": [LLAMA.layers[0][1].mixer],
    "mlp": [LLAMA.layers[0][1].mlp, None],
    "expert": [LLAMA.layers[0][1].mlp],
    "hidden_size": [64, 4096, np.array([64, 128])],
    "intermediate_size": [256, 14336.0],
    "head_dim": [64],
    "vocab_size": [50257, 128256],
    "sequence_length": [128, 1024],
    "tokens": [1e12, 10**11, np.array([10**12, 10**13])],
    "global_batch_size": [512, 1024.0],
    "num_experts": [0, 8],
    "experts_per_token": [0, 2],
    "num_positions": [None, 1024],
    "batch_sizes": [[1, 2, 4, 8], np.array([8, 16, 32, 64])],
    "seconds": [10.0, 86400, np.array([3600.0, 1e6])],
    "fit_step_time.seconds": [[0.11, 0.12, 0.14, 0.2], np.array([2, 3, 5, 9.0])],
    "fits": [lambda batch: batch <= 100],
    "recompute": ["none", "selective", "full"],
    "recipe": [*RECIPES, RECIPES["bf16"]],
    "zero_stage": [0, 1, 2, 3],
    "attention": ["flash", "unfused", "eager"],
    "count_flops.attention": ["dense", "causal"],
    "tuned_flops.attention": ["dense", "causal"],
    "tuned_flops.recompute": ["none", "full"],
    "tuned_activations.recompute": ["none", "full"],
    "mask_bytes": [1, 2],
    "longest_sequence.recompute": ["none", "full"],
    "longest_sequence.model": [LLAMA],
    "longest_sequence.reserve": [0, 2e9],
    "tuning_tokens.tokens_each": [800],
    "tuning_tokens.padded_to": [None, 2048],
    "tuned_phases.recompute": ["none", "full"],
    "tuned_memory.recompute": ["none", "full"],
    "flops_per_gpu": [140e12, np.array([1e14, 1.5e14])],
    "peak_flops": [312e12, 989e12],
    "span": [Interval(1, 1.3, 2.0), Interval(2, 2, 2)],
    "utilizations": [(0.3, 0.4, 0.5)],
    "stops": [(1, 1.1, 1.5), (1, 1, 1)],
    "format": ["bf16"],
    "name": ["mine"],
    "model.names.architecture.name": ["Llama-3.1-8B", "gpt2"],
    "model.names.accelerator.name": ["A100", "h100 sxm"],
    "published.run_model.name": ["Llama 2 70B", "BLOOM-176B"],
    "published.run_plan.name": ["Llama 2 70B", "BLOOM-176B"],
    "memory": [80e9],
    "shown_memory": [None, 85.5e9],
    "peaks": [{"bf16": 312e12}],
    "weights": [2, 4.0],
    "gradients": [2, 1.5],
    "precision.train_small_network.weights": [FORMATS["bf16"]],
    "precision.train_small_network.steps": [2, 3.0],
    "precision.train_small_network.gradients": [FORMATS["fp32"], FORMATS["fp8_e4m3"]],
    "Accelerator.peak.format": ["bf16", "fp16"],
    "micro_batch_size": [1, 2, 4.0],
    "tensor_parallel": [1, 2, 8],
    "pipeline_parallel": [1, 2, 4],
    "context_parallel": [1, 2],
    "utilization.flops_per_gpu": [140e12],
    "batch.batches_near.tokens": [1e6],
    "duration.nearest_run.tokens": [1e12],
    "duration.nearest_run.parameters": [70e9],
    "exponent_bits": [5, 8],
    "mantissa_bits": [10, 7],
    "bits": [0, 16],
    "steps": [2, 3.0],
    "least": [1.0],
    "likely": [2, np.array([2.0, 3.0])],
    "greatest": [4],
    "unit": ["FLOP"],
    "significant": [3, 17],
    "units.read_as.unit": ["days", "bytes", ""],
    "mapping": [{"model_type": "gpt2"}, {"model_type": "llama", "head_dim": 8}],
    "path": ["nowhere.json"],
    "frameworks.read_settings.options": [{"num_gpus": 8}],
    "config": ['{"model_type": "gpt2"}', {"model_type": "llama"}],
    "saturate": [True, False],
    "failures_per_node_day": [0.005, 0.016, np.array([0.002, 0.01])],
    "calendar_days.failures_per_node_day": [0.005, Interval(0.002, 0.005, 0.016)],
    "checkpoint_interval": [3600, 600.0],
    "calendar_days.checkpoint_interval": [None, 3600, np.array([600, 3600.0])],
    "checkpoint_seconds": [40, 5.0, np.array([1, 60.0])],
    "calendar_days.checkpoint_seconds": [40.0, Interval(0.6, 40.0, 150.0)],
    "mean_time_between_failures": [1e5, 36_000.0, np.array([1e4, 1e6])],
    "restart_seconds": [1800, 0, np.array([600, 7200.0])],
    "calendar_days.restart_seconds": [1800, 0, Interval(600, 1800, 7200)],
    "outages": [0, 0.05, Interval(0.0, 0.05, 0.25)],
    "evaluation": [0, 0.006, Interval(0, 0.006, 0.01)],
    "best_checkpoint_interval.form": ["daly", "young"],
    "goodput.form": ["exact", "first order"],
    "spare_nodes.failures_per_node_day": [0.005],
    "certainty": [0.99, 0.5],
    "compute_seconds": [1e6, 86400],
    "calendar.simulate_run.checkpoint_interval": [3600],
    "calendar.simulate_run.checkpoint_seconds": [40, 0],
    "calendar.simulate_run.mean_time_between_failures": [1e5],
    "calendar.simulate_run.restart_seconds": [1800, 0],
    "seed": [0, 7],
    "law": [*LAWS, *LAWS.values()],
    "shapes": [{"8B": LLAMA}, shelf(512)],
    "sizes": [[1e9, 70e9]],
    "formats": [["fp16", "bf16"], ("fp8",)],
    "parameters": [7e9, 10**9, np.array([1e9, 7e9])],
    "loss": [2.3, np.array([2.5, 3.0])],
    "share": [0.5, 2, np.array([0.3, 1.0])],
    "epochs": [1, 4.0, np.array([1.0, 40.0])],
    "flops": [1e20, 5.76e23, np.array([1e19, 1e24])],
    "days": [21, 30.0],
    "money": [1e5, np.array([1e5, 2e6])],
    "rank": [8, 16],
    "targets": [("query", "value"), ["mlp"]],
    "lengths": [[300, 900], (512,)],
    "row_length": [1024],
    "Tuning.method": ["lora", "qlora"],
    "Tuning.rank": [8, 64],
    "Tuning.targets": ["all-linear", ["q_proj", "v_proj"], ("mlp", "lm_head")],
    "Tuning.dropout": [0, 0.05],
    "Tuning.recipe": [None],
    "Tuning.weight_bytes": [2],
    "Tuning.adapter_bytes": [4, 2],
    "Tuning.wide_bytes": [2],
    "Tuning.stream_bytes": [None, 2, 4],
    "Tuning.optimizer": ["adamw", "adamw_8bit"],
    "Tuning.loss_kernel": ["transformers", "fused"],
    "plan_run.tuning": [None],
    "Run.tuning": [None],
    "tuning": [Tuning.lora(8), Tuning.full(), Tuning.qlora(16, "attention", dropout=0.1)],
    "best_split.num_gpus": [8, 64],
    "best_split.tokens": [1e12],
    "frontier.num_gpus": [8, 64],
    "frontier.law": ["besiroglu", LAWS["hoffmann"]],
    "frontier.global_batch_size": [None, 512],
    "frontier.serving_memory": [None, 24e9],
    "budget.fit_law.parameters": [np.logspace(8, 10, 8), [1e8, 2e8, 3e8, 1e9, 2e9, 3e9]],
    "budget.fit_law.tokens": [np.logspace(11, 9.5, 8), [1e9, 9e9, 4e9, 2e10, 3e10, 7e9]],
    "budget.fit_law.loss": [np.linspace(3.5, 2.5, 8), [3.5, 3.2, 3.1, 2.8, 2.7, 2.9]],
    "Law.source": ["here"],
    "text": [None],
    "fitted": [{"parameters": (1e6, 1e9)}],
    "number_format": [FORMATS["bf16"], FORMATS["fp8_e4m3"]],
    "weight": [1.0, -0.37],
    "update": [0.001, 1e-9],
    "num_layers": [12, 2],
    "start_here.flops_on_the_way.passed": [0, 3],
    "time": [3],
    "recomputes": [True, False],
    "keep_gradients": [False, True],
    "plan_run.keep_gradients": [None, False, True],
    "Run.keep_gradients": [None, False, True],
    "parallelism.exchanges.accelerator": [H100, A100],
    "communication.bandwidth_of.accelerator": [H100, A100],
    "communication_seconds.accelerator": [H100, A100],
    "parallelism.exchanges.traffic": [step_traffic(LLAMA, 8 * 10**9, recompute="none")],
    "noun": ["GPU", "pass"],
    "visible": [{"tensor": 0.2}, {}],
    "values": [1.5, [1, 2.5], np.array([1e-9, 3e38])],
    "counted": [lambda layer: layer.norms],
    "size": [8, 64],
    "Law.size": [None, (0.1, 0.5)],
    "expert_parallel": [1, 2, 8],
    "expert_tensor_parallel": [None],
    "imbalance": [1, 1.5],
    "sequence_parallel": [True, False],
    "uneven_stages": [False, True],
    "software": ["any", "megatron-core", "other"],
    "overlap": [None, False, True],
    "compiled": [None, False, True],
    "dropout": [False, True],
    "promised": [False, True],
    "fused_mlp": [None, False, True],
    "offload": ["none", "optimizer", "weights"],
    "interleave": [1, 2, 4],
    "sharding": ["zero", "fsdp"],
    "shard": ["fsdp", "ddp", "zero1", "zero2", "zero3"],
    "plan_run.zero_stage": [None, 0, 1, 2, 3],
    "plan_run.sharding": [None, "zero", "fsdp"],
    "context": ["ring", "all-to-all"],
    "pace": [PACE],
    "model.layers.pairs.attention": ["dense", "causal"],
    "Transformer.layers": [LLAMA.layers, None, [(1, LLAMA.layers[0][1]), (2, MIXED)]],
    "Experts.num_experts": [8],
    "Experts.experts_per_token": [2],
    "communication_seconds.traffic": [step_traffic(LLAMA, 8 * 10**9, recompute="none")],
    "model.names.config_model.name": ["Llama-3.1-8B"],
    "model.names.own_accelerator.numbers": [{"peak": 1e15, "memory": "141 GB"}],
    "model.names.own_accelerator.chip": [None, published.accelerator("A100")],
    "smallest_data_parallel.parameters": [10**9],
}
"""Values that an argument is meant to take, where they are no `NUMBERS`; those of one
formula alone after its name and a dot."""

ABOUT = {
    "model": Transformer,
    "plan": plan_run,
    "name": lambda config, run, architecture, accelerator: None,
    "mapping": lambda config, model_type: None,
    "config": lambda config, model_type: None,
    "layers": lambda num_layers: None,
    "seconds_per_iteration": lambda flops_per_gpu: None,
}
"""What a refusal may name in place of an argument: what is inside it."""

EXCLUDING: list[tuple[dict[str, Any], str]] = [
    ({"sharding": "fsdp", "zero_stage": 1}, "zero_stage"),
    ({"pipeline_parallel": 2, "zero_stage": 3}, "keep_gradients"),
    ({"interleave": 2, "pipeline_parallel": 1}, "interleave"),
    ({"model": LLAMA, "expert_parallel": 2}, "expert_parallel"),
    ({"model": MIXTURE, "expert_parallel": 3}, "expert_parallel"),
    ({"model": MIXTURE, "expert_parallel": 8, "pipeline_parallel": 16}, "expert_parallel"),
    ({"model": MIXTURE, "expert_tensor_parallel": 2}, "expert_tensor_parallel"),
    ({"model": LLAMA, "expert_tensor_parallel": 1}, "expert_tensor_parallel"),
    ({"micro_batch_size": 16, "global_batch_size": 8}, "micro_batch_size"),
    ({"tokens": 1e6, "global_batch_size": 1024}, "tokens"),
]
"""Arguments of a plan that do not go together, and the one that a refusal names."""

OUTCOMES = [
    "not even a batch of 1 fits",
    "is too small for the model and one token",
    "no fit",
    "comes out even",
    "plans fits",
    "fit on any number",
    "is more than the whole peak",
    "FLOP for this loss",
]
"""Refusals that are about what came out, not about an argument."""

SIGNED = {"room", "free_memory", "extra_cost", "sent", "saved"}
"""What may be negative."""

FINDS = {"frontier"}
"""What finds model and tokens itself, though `plan_run`, which gets its options,
takes them."""

SPECIAL = {"NumberFormat.round", "precision.neighbours", "precision.shifted"}
SPECIAL |= {"precision.scale_and_store", "precision.update_weight", "precision.sum_of_ones"}
SPECIAL |= {"precision.update_by_update", "precision.fit_line", "precision.number_at"}
SPECIAL |= {"precision.between", "budget.fitted_sizes"}
SPECIAL |= {"precision.train_small_network", "units.read", "units.read_as"}
SPECIAL |= {"checks.finite", "checks.one"}
"""What may come back infinite, NaN or negative: a format's own, a training gone astray,
a budget that no run had, and what somebody wrote."""

ELSEWHERE = {
    "published": "its lookups are called, tables take no numbers",
    **dict.fromkeys(["command", "__main__"], "read what a terminal gives: test_command"),
    **dict.fromkeys(["exercises", "panels"], "old places of the course"),
    "checks": "those of CHECKS are called",
    "flops.attention_row": "takes matrices in rows: test_flops spoils them",
    "flops.token_products": "takes a matrix in rows: test_flops spoils it",
    "plan.options": "says what arguments there are: test_options",
    "model.huggingface": "reads a file's text: from_config, and test_families spoils files",
    "model.one_kind": "the inside of Transformer, which is called",
    "model.layers.numbers": "yields what is inside a shape",
    "model.names.shape_of_row": "takes a row of a table",
    "model.tables": "finds rows: those of names are called",
    **dict.fromkeys(
        ["memory", "plan.memory", "plan.pace", "plan.step"], "get what plan_run checked"
    ),
}
"""Modules and functions that are not called here one by one, and why."""

UNCHECKED = [
    "activations.check_alternate",
    "activations.largest_layer",
    "activations.kept",
    "activations.kept_bytes",
    "activations.tokens_outside",
    "finetune.keeping",
    "finetune.tuned_stored",
    "budget.most_flops",
    "parameters.parameters_per_gpu",
    "parallelism.neighbours",
    "parallelism.replicas_first",
    "parallelism.ring_at",
    "communication.traffic_seconds",
    "plan.advice.check_one",
    "plan.plan.check_size",
    "plan.plan.run_flops",
    "plan.plan.run_traffic",
    "plan.report.sharded",
    "plan.report.verdict",
    "tuning.own_copies",
    "communication.shared_blocks",
    "parallelism.all_of",
    "parallelism.expert_rules",
    "parallelism.expert_tensor_size",
    "parallelism.fewest_replicas",
    "parallelism.needs_experts",
    "parallelism.one_or_all",
    "plan.run.spelt_out",
    "parallelism.split_rules",
    "plan.search.least_prices",
    "plan.search.layouts",
    "plan.search.step_price",
    "results.greatest",
    "tuning.check_rank",
    "tuning.check_tuned",
    "tuning.flows_into",
    "tuning.matrix_weights",
    "tuning.needs_input",
    "tuning.sites",
    "tuning.tuned_layers",
]
ELSEWHERE |= dict.fromkeys(UNCHECKED, "called by what has checked: takes all it is given")

CHECKS = ["count", "quantity", "amount", "rate", "share", "flag", "finite", "one", "single"]

SLOW = {"budget.fit_law", "frontier", "shelf", "best_split", "parallelism.pipeline_schedule"}
SLOW |= {"budget.usual_plan", "budget.plan_on_nodes", "budget.rough_frontier"}
SLOW |= {"precision.train_small_network", "longest_sequence"}
"""Called a tenth as often."""

TRUSTING = {
    "model.layers.pairs",
    "model.transformer.over_layers",
    "results.maximum",
    "results.largest",
    "results.minimum",
    "results.divide",
    "results.where",
}
"""They get what a formula has checked already: called with good values alone."""

# --- what an argument must refuse

NOT_FINITE: list[Any] = [math.nan, math.inf, -math.inf, 10**400, -(10**400)]
NOT_FINITE += [np.float64("nan"), np.array([1.0, np.nan]), np.array([np.inf])]
NO_ARRAYS: list[Any] = [np.array([text]) for text in ("96", True, None, 1j)]
NO_ARRAYS += [np.bool_(True), np.str_("96"), np.datetime64("2026-01-01")]
NEGATIVE: list[Any] = [-1, -0.5, np.int64(-3), np.array([1, -2])]
BROKEN: list[Any] = [0.5, 96.5, 1e-30, np.float64(2.5), np.array([1.5])]
BAD_BOUNDS: list[Any] = [*NO_NUMBERS, *NOT_FINITE, *NO_ARRAYS, *NEGATIVE]
BAD_NUMBERS: dict[str, list[Any]] = {
    "count": BAD_COUNTS,
    "whole": [*BAD_BOUNDS, *BROKEN, 1e300],
    "quantity": BAD_QUANTITIES,
    "amount": [*BAD_BOUNDS, 1e300],
    "bound": BAD_BOUNDS,
    "number": [*NO_NUMBERS, *NO_ARRAYS],
    "finite": [*NO_NUMBERS, *NOT_FINITE, *NO_ARRAYS, 1e300],
    "share": [*BAD_QUANTITIES, 1.5, 45, np.array([0.5, 2])],
    "rate": [*BAD_QUANTITIES, 140, 312.0, 1e8],
}
OR_NOTHING = {"count": "whole", "quantity": "amount"}
"""What kind a number is of that is zero unless it is given."""

ARRAYS: list[Any] = [np.array([8, 16]), pd.Series([8, 16])]
"""Where one number is wanted."""

BAD_FLAGS: list[Any] = [None, 0, 1, "yes", np.array([True, False])]
BAD_WORDS: list[Any] = [None, True, 8, "", "ful", ["full"], object()]
TEXTS = {"name", "unit", "note", "noun", "source", "counts", "text"}
"""Words that may be any, but words."""

BAD_THINGS: dict[str, list[Any]] = {
    "peaks": [None, 8, "bf16", ["bf16"], {"bf16": 0}, {"bf16": "2"}, {"bf16": 312}],
    "batch_sizes": [None, "8", [1, 0, 2, 4], [1.5, 2, 4, 8], [1, 2, 4, "8"]],
    "shapes": [None, 8, {"8B": 8}, [LLAMA, 8]],
    "sizes": [None, 8, "8B", [0], [math.nan]],
    "formats": [None, 8, "fp8"],
    "calls": [8, "data", {"data": -1}, {"date": 1}],
    "behind": [8, "data", {"data": -1}, {"date": 1}],
    "targets": [8, None, ["querry"], [8]],
    "lengths": [8, None, [], [0], ["a"], [2048]],
    "span": [None, 1.3, (1, 2, 3), "wide", Interval(0, 1, 2)],
    "utilizations": [0.3, (0.3, 0.4), [0.3, 0.4, 0.5], (0.5, 0.4, 0.3), (30, 40, 50)],
    "stops": [1.3, (1, 1.2), [1, 1.2, 1.5], (1.5, 1.2, 1), (0.9, 1, 1.1), (1, 1.2, float("nan"))],
    "layers": [8, "8", [8], [(0, MIXED)], [(1, 8)]],
}
"""Of what is neither a number nor a word."""

NAMES: dict[str, str] = {
    "quantity": """
        seconds seconds_per_pass seconds_per_step seconds_per_iteration seconds_at_peak
        compute_seconds compute_days days
        repair_days failures_per_node_day mean_time_between_failures checkpoint_interval
        best_checkpoint_interval.checkpoint_seconds money price_per_gpu_hour watts_per_gpu
        power bandwidth link_bandwidth network_bandwidth host_bandwidth num_bytes memory
        shown_memory serving_memory overhead update scale rate loss flops share imbalance
        tokens_per_parameter loss_scale delta critical A B E alpha beta
        gpu_hours
        duration.tokens_in_time.tokens duration.tokens_in_time.limit
        batch.batch_cost.global_batch_size budget.tokens_for_size.parameters loss.parameters
        loss.tokens
        compute_for_loss.parameters effective_tokens.tokens lora_memory.weight_bytes
        kit.nearest_shape.parameters laws.outside.parameters laws.outside.tokens
        laws.times_the_least.parameters laws.times_the_least.tokens
        budget.loss_terms.parameters budget.loss_terms.tokens
        duration.nearest_run.parameters duration.nearest_run.tokens batch.batches_near.tokens
        effective_tokens.epochs tuning_tokens.epochs
        """,
    "amount": """
        checkpoint_seconds restart_seconds outages evaluation factor weight_bytes
        gradient_bytes expert_parameters weights gradients main_gradients main_weights
        optimizer step_traffic.value_bytes reserve scores_to_hidden Tuning.dropout
        """,
    "whole": """
        qk_norm_size norms norm_size final_norm LatentAttention.q_rank zero_stage
        Transformer.num_experts Transformer.experts_per_token kernel_size low_rank turn
        start_here.flops_on_the_way.passed precision.update_weight.updates
        precision.sum_of_ones.ones precision.update_by_update.updates mask_bytes
        precision.fit_line.updates
        """,
    "bound": "least likely greatest",
    "share": "certainty matmul_share share_of_peak hfu",
    "rate": "flops_per_gpu peak_flops",
    "finite": """
        number amount value weight units.seconds.time units.share.part units.duration.seconds
        units.percent.share units.size.parameters precision.shifted.steps
        precision.between.low precision.between.high precision.update_weight.update
        precision.update_by_update.update precision.number_at.place
        """,
    "number": "precision.split.value",
    "free": "units.read.text units.read_as.text model.names.read_config.sequence_length",
}
KINDS = {name: kind for kind, names in NAMES.items() for name in names.split()}
"""The kind of a number by its name, or by its formula's and its own: a count if not here."""

PASSED_ON = {"num_experts", "experts_per_token", "qkv_bias", "qk_norm"}
PASSED_ON = {f"Transformer.llama.{name}" for name in PASSED_ON}
"""To `Transformer`, where None stands for what is not given."""

OF_ONE = {"spare_nodes", "smallest_data_parallel", "parallelism.pipeline_schedule"}
OF_ONE |= {"calendar.simulate_run"}
OF_ONE |= {"tuned_memory", "longest_sequence"}
"""Formulas that take one number each, no arrays."""
