"""A plan of tuning in a terminal: `plan MODEL … --lora R`, or `--full`."""

import json
import re
from typing import Any

import pytest

from llmtrain_helpers import Tuning, plan_run, published
from llmtrain_helpers.__main__ import main

ONE = "plan llama-3.1-8b --gpus 1 --chip h100 --tokens 24M --sequence 2048 --batch 16"
SPLIT = "--micro-batch 2 --tensor 1 --pipeline 1 --shard zero1 --recompute full"


def output_of(command: str, capsys: Any, status: int = 0) -> str:
    assert main(command.split()) == status
    out, err = capsys.readouterr()
    return str(err if status else out)


@pytest.mark.parametrize(
    ("options", "tuning"),
    [
        ("--lora 16", Tuning.lora(16)),
        ("--lora 16 --bits 16", Tuning.lora(16)),
        ("--lora 8 --bits 4 --targets q_proj,v_proj", Tuning.qlora(8, ["q_proj", "v_proj"])),
        ("--full --optimizer adamw_8bit", Tuning.full(optimizer="adamw_8bit")),
        ("--full --recipe PURE_BF16", Tuning.full("pure_bf16")),
        ("--full --recipe bf16", Tuning.full("bf16")),
        ("--lora 8 --targets mlp --loss fused", Tuning.lora(8, "mlp", loss_kernel="fused")),
    ],
)
def test_options_make_the_tuning_that_they_say(options: str, tuning: Tuning, capsys: Any) -> None:
    made = json.loads(output_of(f"{ONE} {SPLIT} {options} --json", capsys))
    model = published.architecture("Llama-3.1-8B", sequence_length=2048)
    split = {"micro_batch_size": 2, "zero_stage": 1, "recompute": "full"}
    plan = plan_run(model, "H100", 1, 24e6, 16, tuning=tuning, **split)  # type: ignore[arg-type]
    assert made["memory_bytes"]["total"] == pytest.approx(plan.memory.total)
    assert made["flops"] == plan.total_flops
    assert made["memory_peak_at"] == plan.phase
    assert made["tuning"]["method"] == tuning.method
    assert made["tuning"]["rank"] == tuning.rank
    assert made["tuning"]["recipe"] == made["inputs"]["recipe"] == tuning.recipe
    assert made["worth"] is None


def test_without_them_nothing_is_tuned(capsys: Any) -> None:
    made = json.loads(output_of(f"{ONE} {SPLIT} --json", capsys))
    assert made["tuning"] is None
    assert made["memory_peak_at"] == "loss"
    words = {"optimizer": "muon", "loss_kernel": "chunked"}
    other = json.loads(output_of(f"{ONE} {SPLIT} --optimizer Muon --loss chunked --json", capsys))
    assert {name: other["inputs"][name] for name in words} == words
    assert {made["inputs"][name] for name in words} == {"adamw_fused", "plain"}
    assert other["memory_bytes"]["optimizer"] < 0.6 * made["memory_bytes"]["optimizer"]
    assert made["worth"]["loss"] > 0


def test_what_is_left_out_is_chosen_and_the_table_says_what_learns(capsys: Any) -> None:
    command = "plan llama-3.1-8b --gpus 8 --chip h100 --tokens 72M --lora 16 --bits 4"
    output = " ".join(output_of(command, capsys).split())
    assert "128 sequences a step" in output
    assert "8 H100 SXM tune Llama-3.1-8B on 72.0 million tokens: " in output
    assert (
        "LoRA of rank 16 on q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj" in output
    )
    assert "in 4 bits" in output


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--bits 4", "say what to train: everything with --full, or adapters with --lora R"),
        ("--full --lora 8", "say what to train: everything with --full, or adapters with --lora R"),
        ("--lora 8 --bits 8", "--bits 8 is neither 4 nor 16"),
        ("--full --bits 4", "--bits is for adapters: give --lora R instead of --full"),
        ("--lora 0", "--lora 0 is not positive"),
        ("--lora 1e9", "--lora 1000000000 is more than 4,096, the rank of the largest adapted"),
        ("--lora 8 --targets q_pro", "--targets 'q_pro' is unknown, did you mean 'q_proj'?"),
        ("--lora 8 --loss liger", "--loss 'liger' is unknown"),
        ("--loss liger", "--loss 'liger' is unknown"),
        ("--full --optimizer muon", "--optimizer 'muon' is unknown"),
        ("--optimizer adamw_in_backward", "has no step of several passes: here are 64 micro-batch"),
        ("--lora 8 --pipeline 2", "--pipeline 2 is not planned with tuning: leave it at 1"),
        ("--lora 8 --recipe amp", "--recipe is for training all weights: give --full instead"),
        ("--full --recipe fp8", "--recipe 'fp8' isn't planned with tuning, only amp, pure_bf16"),
    ],
)
def test_what_does_not_go_is_refused_in_options(options: str, sentence: str, capsys: Any) -> None:
    command = "plan llama-3.1-8b --gpus 8 --chip h100 --tokens 72M"
    assert sentence in output_of(f"{command} {options}", capsys, 2)


def test_attention_matrices_on_several_gpus_and_nodes_are_planned(capsys: Any) -> None:
    command = "plan llama-3.1-8b --gpus 16 --chip h100 --tokens 72M --lora 8 --tensor 2"
    output = " ".join(output_of(f"{command} --attention eager --sequence 512", capsys).split())
    assert "eager attention" in output
    assert "tensor 2, pipeline 1, replicas 8" in output
    assert "for what nodes and GPUs that share a matrix send each other" in output
    assert "measured what tensor parallelism in tuning or tuning across nodes needs" in output
    stored = f"{command} --attention eager --sequence 8192 --recompute none --micro-batch 1"
    offered = output_of(stored, capsys).split("These changes make it fit:\n")[1]
    assert offered.split()[:2] == ["--attention", "flash"]


def test_a_search_shares_no_matrix_of_a_tuned_model_unless_that_is_needed(capsys: Any) -> None:
    command = "plan llama-3.1-70b --gpus 8 --chip h100 --tokens 10M --batch 128"
    for tuned in ("--lora 16", "--full --recipe pure_bf16 --optimizer adamw_8bit --loss fused"):
        plan = json.loads(output_of(f"{command} --sequence 4096 {tuned} --json", capsys))
        assert plan["fits"]
        assert plan["inputs"]["tensor_parallel"] == 1
    alone = json.loads(output_of(f"{command} --lora 16 --shard ddp --json", capsys))
    assert alone["fits"]
    assert alone["inputs"]["tensor_parallel"] == 4


def test_a_70b_in_full_on_a_node_is_told_what_makes_it_fit(capsys: Any) -> None:
    command = (
        "plan llama-3.1-70b --full --gpus 8 --chip h100 --tokens 10M --sequence 4096 --batch 8"
    )
    offered = output_of(command, capsys).split("These changes make it fit:\n")[1]
    options = " ".join(re.findall(r"--[a-z]+ \w+", offered))
    assert options == "--optimizer adamw_8bit --recipe pure_bf16"
    assert "Fits: " in output_of(f"{command} {options}", capsys)
    one = "plan llama-3.1-70b --lora 16 --gpus 1 --chip h100 --tokens 10M"
    assert "\n  --bits 4  " in output_of(one, capsys)
    assert "Fits: " in output_of(f"{one} --bits 4", capsys)


def test_a_shelf_is_not_tuned(capsys: Any) -> None:
    message = output_of("plan --gpus 8 --chip h100 --days 7 --lora 8", capsys, 2)
    assert message == "--lora needs a model: give its name, or --config FILE\n"
