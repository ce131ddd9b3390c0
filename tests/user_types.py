"""What a user's type checker sees: mypy in `make lint`, pyright in `make types`.

A line that says `type: ignore` is a mistake, and both checkers have to find it.
"""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from llmtrain_helpers import (
    Accelerator,
    Interval,
    ParameterCount,
    Plan,
    Split,
    Transformer,
    Tuning,
    advise,
    calendar_days,
    communication_seconds,
    compute_optimal,
    count_activations,
    count_flops,
    count_parameters,
    expert_parameters,
    fewest_gpus,
    global_batch_size,
    gpt_activation_bytes,
    gpt_flops,
    gpt_parameters,
    gpu_hours,
    lora_parameters,
    loss,
    model_state_bytes,
    plan_run,
    published,
    step_traffic,
    steps_per_epoch,
    sweep,
    training_seconds,
    tuned_flops,
    tuned_memory,
    tuned_parameters,
    units,
)


def counts_and_rates() -> None:
    assert_type(gpt_parameters(96, 12288, 51200, 2048), int)
    assert_type(gpt_flops(96, 12288, 51200, 2048, 1536, "full"), int)
    assert_type(global_batch_size(1, gradient_accumulation_steps=8, data_parallel=4), int)
    assert_type(steps_per_epoch(1000, 32), int)
    assert_type(training_seconds(300e9, 175e9, 1024, 140e12, "full"), float)
    assert_type(gpu_hours(86400, 1024), float)
    assert_type(model_state_bytes(7.5e9, "bf16", 1, data_parallel=64).total, float)
    assert_type(loss(70e9, 1.4e12), float)
    assert_type(compute_optimal(5.76e23).parameters, float)


def models_and_chips() -> None:
    assert_type(Transformer.gpt(96, 12288, 96, 51200, 2048), Transformer)
    assert_type(published.architecture("gpt2"), Transformer)
    assert_type(published.accelerator("H100"), Accelerator)


def counts_of_a_model() -> None:
    model = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    assert_type(model.num_layers, int)
    assert_type(model.hidden_size, int)
    assert_type(model.head_dim, int)
    for how_many, layer in model.layers:
        assert_type(how_many, int)
        assert_type(layer.parameters(4096), int)
        assert_type([matrix.weights for matrix in layer.matrices(4096)], list[int])
    assert_type(count_parameters(model), ParameterCount)
    assert_type(count_parameters(model).total, int)
    assert_type(count_parameters(model).parts(), dict[str, int])
    assert_type(expert_parameters(model), int)
    assert_type(count_flops(model, 512, "none").model, int)
    assert_type(lora_parameters(model), int)
    tuning = Tuning.lora(8, dropout=0.1)
    assert_type(tuned_parameters(model, tuning).learning, int)
    assert_type(tuned_flops(model, tuning, 512, "none").total, int)


def bytes_and_seconds() -> None:
    model = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    chip = Accelerator("H100", 80e9, None, 700, {"bf16": 989e12}, 450e9, 50e9)
    assert_type(chip.memory, float)
    assert_type(chip.peak("bf16"), float)
    assert_type(chip.matmul_rate("bf16"), float | None)
    assert_type(count_activations(model, 1).parts(), dict[str, float])
    assert_type(tuned_memory(model, Tuning.qlora(8), 1, "full").total, float)
    split = Split(64, 1, 8, 2, 1, 4, 8)
    assert_type(split.layers(32), int)
    assert_type(split.bubble, float)
    traffic = step_traffic(model, 8e9, recompute="none", data_parallel=3)
    assert_type(traffic.data, float)
    seconds = communication_seconds(traffic, chip, data_parallel=3)
    if seconds:
        assert_type(seconds.data, float)


def plans() -> None:
    plan = plan_run("Llama-3.1-8B", "H100", 64, 10**12, 512, recompute="none")
    assert_type(plan, Plan)
    assert_type(plan.memory.total, float)
    assert_type(plan.run.tensor_parallel, int)
    assert_type(plan.split.data_parallel, int)
    assert_type(plan.fits, bool)
    assert_type(plan.mfu, float)
    assert_type(plan.days, Interval)
    assert_type(plan.days.likely, float)
    assert_type(plan.cost, Interval | None)
    assert_type(calendar_days(plan).useful_share, float)
    assert_type(plan_run(**plan.inputs), Plan)
    assert_type([plan.replace(**advice.change) for advice in advise(plan)], list[Plan])
    assert_type(plan.replace(shard="fsdp", sequence_length=4096), Plan)
    assert_type(plan.replace(shard="fsdp", offload="weights"), Plan)
    assert_type(fewest_gpus(plan_run("gpt2", "H100", 8, 10**9, 8, recompute="none")), Plan)


def texts() -> None:
    assert_type(units.duration(86400), str)
    assert_type(units.count(175_000_000_000), str)
    assert_type(units.read("7B"), float)


def arrays() -> None:
    sizes: NDArray[np.int64] = np.array([6144, 12288])
    assert_type(gpt_parameters(96, sizes, 51200, 2048), int | NDArray[Any])
    assert_type(training_seconds(300e9, 175e9, sizes, 140e12, "full"), float | NDArray[Any])


def mistakes() -> None:
    model = published.architecture("gpt2")
    plan_run(model, "H100", 8, 1e9, 8, recompute="none", offload="cpu")  # type: ignore[arg-type]
    model.num_layers.max()  # type: ignore[attr-defined]
    count_parameters(model).parts().total()  # type: ignore[attr-defined]
    len(count_parameters(model).total)  # type: ignore[arg-type]
    Tuning.lora(8, dropot=0.1)  # type: ignore[call-arg]
    Tuning.qlora(8).replace(optimizer="adam")  # type: ignore[arg-type]
    training_seconds("300B", 175e9, 1024, 140e12, "full")  # type: ignore[type-var]
    training_seconds(300e9, 175e9, 1024, 140e12, "ful")  # type: ignore[arg-type]
    gpt_flops(96, 12288, 51200, 2048, 1536, "all")  # type: ignore[arg-type]
    gpt_activation_bytes(96, 12288, 96, 2048, 1, recompute="ful")  # type: ignore[arg-type]
    plan_run("gpt2", "H100", 8, 10**9, 8, recompute="non")  # type: ignore[arg-type]
    plan = plan_run("gpt2", "H100", 8, 10**9, 8, recompute="none", shard="fsd")  # type: ignore[arg-type]
    plan.replace(uneven_stage=True)  # type: ignore[call-arg]
    plan.replace(optimizer="adam_8bit")  # type: ignore[arg-type]
    plan.replace(recipe="bf8")  # type: ignore[arg-type]
    sweep("gpt2", "H100", 8, 10**9, 8, recompute="none", software="mine")  # type: ignore[arg-type]
    plan_run("gpt2", "H100", 8, 10**9, 8, recompute="none", gpus=8)  # type: ignore[call-arg]
