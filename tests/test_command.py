"""The command line: a plan as a new user asks for it, and what is refused."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from llmtrain_helpers import (
    best_split,
    compute_optimal,
    frontier,
    loss,
    plan_run,
    published,
    shelf,
    units,
)
from llmtrain_helpers.__main__ import main
from llmtrain_helpers.command import FLAGS, TUNED, in_options
from llmtrain_helpers.model.huggingface.families import FAMILIES
from llmtrain_helpers.plan.pace import STOPS
from llmtrain_helpers.plan.run import Run
from tests.paths import ROOT

PLAN = "plan llama-3.1-8b --gpus 64 --chip h100 --tokens 1T --batch 512"
LLAMA = published.architecture("Llama-3.1-8B", sequence_length=8192)
CONFIG = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 5504,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
}


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]):
    """What a command prints, once it went well."""

    def run(command: str) -> str:
        assert main(shlex.split(command)) == 0
        console = capsys.readouterr()
        assert not console.err
        return console.out

    return run


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]):
    """The sentence with which a command is refused, with exit status 2."""

    def run(command: str) -> str:
        try:
            status = main(shlex.split(command))
        except SystemExit as left:
            status = left.code
        console = capsys.readouterr()
        assert (status, console.out) == (2, "")
        assert "Traceback" not in console.err
        return console.err

    return run


def numbers(text: str) -> dict:
    return json.loads(text, parse_constant=lambda name: pytest.fail(name))


def config_file(folder: Path, **changes: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({**CONFIG, **changes}), "utf-8")
    return path


# --- what is printed


def test_the_readme_shows_what_its_command_prints() -> None:
    readme = (ROOT / "llmtrain_helpers/README.md").read_text("utf-8")
    [(command, output)] = re.findall(r"```console\n\$ python -m (.*)\n((?:.*\n)*?)```", readme)
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-m", *shlex.split(command)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0
    assert done.stdout == output


def test_the_plan_in_the_readme_is_made_as_it_is_written_there() -> None:
    readme = (ROOT / "llmtrain_helpers/README.md").read_text("utf-8")
    [call] = re.findall(r"`(plan_run\(.*?\))`", readme)
    plan = eval(call, {"plan_run": plan_run})
    assert plan.run.sharding == "fsdp"
    assert plan.fits


def test_the_course_readme_plans_in_python_what_its_command_plans(printed) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    [call] = re.findall(r"(?m)^plan = (plan_run\(.*\))$", readme)
    [command] = re.findall(r"`llmtrain (plan .*)`", readme)
    plan = eval(call, {"plan_run": plan_run})
    days = f"{plan.days.likely:.0f} days expected, {plan.days.greatest:.0f} days to promise. Fits"
    assert days in " ".join(printed(command).split())


def test_what_was_left_out_is_the_fastest_and_the_first_line_says_so(printed) -> None:
    text = printed(PLAN)
    best = best_split(LLAMA, "H100", 64, 512, 1e12)
    split, run = best.split, best.run
    first = " ".join(text.split("\n\n")[0].split())
    assert first == (
        f"Sequences of 8,192 tokens, micro-batch {split.micro_batch_size}, tensor "
        f"{split.tensor_parallel}, pipeline {split.pipeline_parallel}, ZeRO {run.zero_stage}, "
        "nothing recomputed: chosen for you. To keep or change this, use: "
        f"--sequence 8192 --micro-batch {split.micro_batch_size} --tensor {split.tensor_parallel} "
        f"--pipeline {split.pipeline_parallel} --shard zero{run.zero_stage} --recompute none"
    )
    made = numbers(printed(f"{PLAN} --json"))
    assert {x: made["inputs"][x] for x in ("recompute", "zero_stage", "tensor_parallel")} == {
        "recompute": run.recompute,
        "zero_stage": run.zero_stage,
        "tensor_parallel": split.tensor_parallel,
    }
    assert made["days"]["likely"] == pytest.approx(best.days.likely)
    assert made["memory_bytes"]["total"] == best.memory.total


@pytest.mark.parametrize(
    "command",
    [
        "llama-3.1-8b --gpus 64 --chip h100 --tokens 1T",
        "llama-3.1-70b --gpus 64 --chip a100 --tokens 1T --batch 512 --tensor 8",
        "mixtral-8x7b --gpus 256 --chip h100 --tokens 1T --sequence 4k",
        "llama-3.1-8b --gpus 8 --chip h100 --tokens 1T --shard fsdp",
        "gpt2 --gpus 8 --chip a100 --tokens 1T --shard ddp",
    ],
)
def test_what_was_chosen_can_be_pasted(command: str, printed) -> None:
    text = printed(f"plan {command}")
    [line] = re.findall(r"^  (--.*)$", text, re.MULTILINE)
    assert not {*re.findall(r"--[a-z-]+", command)} & {*re.findall(r"--[a-z-]+", line)}
    again = printed(f"plan {command} {line}")
    assert "chosen;" not in again
    assert again == text.split("\n\n", 1)[1]
    made = numbers(printed(f"plan {command} --json"))
    assert made["chosen_options"] == line


GIVEN = {
    "--sequence 4k": ("sequence_length", 4000),
    "--batch 1,024": ("global_batch_size", 1024),
    "--micro-batch 2": ("micro_batch_size", 2),
    "--tensor 4": ("tensor_parallel", 4),
    "--pipeline 2": ("pipeline_parallel", 2),
    "--context 2": ("context_parallel", 2),
    "--shard FSDP": ("sharding", "fsdp"),
    "--shard zero2": ("zero_stage", 2),
    "--recompute Full": ("recompute", "full"),
    "--interleave 2": ("interleave", 2),
    "--uneven-stages yes": ("uneven_stages", True),
    "--format FP8": ("format", "fp8"),
    "--recipe amp": ("recipe", "amp"),
    "--attention eager": ("attention", "eager"),
    "--fused-mlp yes": ("fused_mlp", True),
    "--overlap no": ("overlap", False),
    "--compiled yes": ("compiled", True),
    "--price $2.50": ("price_per_gpu_hour", 2.5),
    "--tensor 1 --shard zero3 --keep-gradients yes": ("keep_gradients", True),
    "--keep-gradients yes": ("zero_stage", 3),  # of what is searched, the only one that has it
}


@pytest.mark.parametrize("option", GIVEN)
def test_what_is_given_stays(option: str, printed) -> None:
    command = f"plan llama-3.1-8b --gpus 64 --chip h100 --tokens 1T {shlex.join(option.split())}"
    made = numbers(printed(f"{command} --json"))
    name, value = GIVEN[option]
    assert made["inputs"][name] == value
    offered = re.findall(r"--[a-z-]+", made["chosen_options"])
    assert offered
    assert option.split()[0] not in offered


@pytest.mark.parametrize(
    ("chip", "block", "element"),
    [("b200", "MXFP8", "fp8"), ("gb300", "nvfp4", "fp4"), ("mi350x", "mxfp4", "fp4")],
)
def test_a_format_of_blocks_runs_at_the_peak_of_its_elements(
    chip: str, block: str, element: str, printed
) -> None:
    command = f"plan llama-3.1-8b --gpus 64 --chip {chip} --tokens 1T --format"
    made, plain = (numbers(printed(f"{command} {x} --json")) for x in (block, element))
    assert made["inputs"]["format"] == block.casefold()
    assert made["mfu_peak"] == plain["mfu_peak"]
    assert (made["days"], made["memory_bytes"]) == (plain["days"], plain["memory_bytes"])
    note = f"products with weights in {block.casefold()}"
    assert note in " ".join(printed(f"{command} {block}").split())


def test_where_all_is_given_nothing_is_said_to_be_chosen(printed) -> None:
    every = "--sequence 8192 --micro-batch 1 --tensor 1 --pipeline 1 --shard zero3"
    text = printed(f"{PLAN} {every} --recompute none --step-seconds 9.8")
    assert "chosen" not in text
    assert "your measured step" in text
    assert "Your step is taken" not in text


def test_full_recomputation_is_obeyed_where_none_would_be_faster(printed) -> None:
    text = printed(f"{PLAN} --recompute full")
    assert "everything recomputed" in text
    assert "nothing recomputed" not in text


def test_sequences_are_8192_tokens_or_the_files_maximum(tmp_path: Path, printed) -> None:
    path = config_file(tmp_path)
    for model, s in ((f"--config {path}", 2048), (path, 2048), ("mistral-7b-v0.1", 8192)):
        made = numbers(printed(f"plan {model} --gpus 32 --chip a100 --tokens 300B --json"))
        assert made["inputs"]["sequence_length"] == s


def test_days_make_tokens_of_which_the_run_takes_the_likely_number(printed) -> None:
    command = "plan llama-3.1-8b --gpus 8 --chip h100 --days 14"
    made = numbers(printed(f"{command} --json"))
    assert made["days"]["likely"] == pytest.approx(14, rel=1e-6)
    text = printed(command)
    assert re.search(r"With --days 14 it likely sees \d+ billion tokens", text)
    promised = made["inputs"]["tokens"] * 14 / made["first_run_days"]["greatest"]
    match = re.search(r"; promise (\d+) billion", text)
    assert match
    assert float(match[1]) == pytest.approx(promised / 1e9, rel=0.011)
    measured = printed(f"{command} --batch 512 --step-seconds 60")
    assert re.search(r"likely sees \d+ billion tokens, .*; promise \d+ billion", measured)


def test_a_measured_step_makes_the_days_and_its_split_is_named(printed) -> None:
    made = numbers(printed(f"{PLAN} --step-seconds 9.8 --json"))
    assert made["seconds_per_iteration"]["likely"] == pytest.approx(9.8)
    assert "We assume that you measured your step with these" in printed(
        f"{PLAN} --step-seconds 9.8"
    )


def test_a_measured_step_has_its_own_mfu_and_days_without_stops(printed) -> None:
    plan = best_split(LLAMA, "H100", 64, 512, 1e12).calibrated(9.8)
    made = numbers(printed(f"{PLAN} --step-seconds 9.8 --json"))
    assert made["step_mfu"] == pytest.approx(plan.flops.model / (9.8 * 64 * plan.run.peak))
    seconds = 9.8 * 1e12 / (512 * 8192)
    assert made["days_without_stops"]["likely"] == pytest.approx(seconds / 86400)
    assert made["beyond_published"] is False
    assert made["first_run_days"] == made["days"]
    text = " ".join(printed(f"{PLAN} --step-seconds 9.8").split())
    peak = f"{units.flops_per_second(plan.run.peak)}, the dense peak in bf16"
    sentence = f"{units.percent(made['step_mfu'])} of {peak} (MFU, attention counted); "
    assert sentence + f"{units.digits(seconds / 86400, 2)} days without overhead" in text
    assert "above any published" not in text


@pytest.mark.parametrize(
    "more", ["", " --format fp8", " --full --sequence 2k", " --step-seconds 9"]
)
def test_a_step_its_tokens_and_the_peak_of_its_mfu_are_printed(more: str, printed) -> None:
    command = f"plan llama-3.1-8b --gpus 8 --chip h100 --tokens 1B --batch 128{more}"
    made = numbers(printed(f"{command} --json"))
    step, rate = made["seconds_per_iteration"], made["tokens_per_second_per_gpu"]
    tokens = 128 * made["inputs"]["sequence_length"] / 8
    assert rate["least"] == pytest.approx(tokens / step["greatest"])
    assert rate["likely"] == pytest.approx(tokens / step["likely"])
    assert rate["greatest"] == pytest.approx(tokens / step["least"])
    format = "fp8" if "fp8" in more else "bf16"
    peak = published.accelerator("H100").peak(format)
    assert made["mfu_peak"] == {"flops_per_second": peak, "format": format}
    digits = 3 if "step" in more else 2
    ends = [units.duration(step[x], digits) for x in ("likely", "least", "greatest")]
    interval = "as measured" if ends[1] == ends[2] else "{} to {}".format(*ends[1:])
    named = f"{units.flops_per_second(peak)}, the dense peak in {format} (MFU"
    text = " ".join(printed(command).split())
    assert f"a step {ends[0]} {interval}; {units.percent(made['step_mfu'])} of {named}" in text
    assert ("step" in more) or f"{units.percent(made['mfu'])} of {named}" in text
    assert "of the peak (MFU" not in text
    likely, least, most = (
        f"{float(f'{rate[x]:.3g}'):,.10g}" for x in ("likely", "least", "greatest")
    )
    interval = "as measured" if least == most else f"{least} to {most}"
    assert f"tokens/s per GPU {likely} {interval}; " in text
    assert f"| a step | {ends[0]} |" in printed(f"{command} --markdown")


def test_a_step_faster_than_any_published_is_called_so(printed) -> None:
    assert numbers(printed(f"{PLAN} --step-seconds 4.3 --json"))["beyond_published"] is True
    assert "is above any published step (87%)" in " ".join(
        printed(f"{PLAN} --step-seconds 4.3").split()
    )


def test_the_json_holds_what_the_table_says_of_a_first_run_and_the_losses(printed) -> None:
    made, plan = numbers(printed(f"{PLAN} --json")), best_split(LLAMA, "H100", 64, 512, 1e12)
    assert made["first_run_days"]["greatest"] == pytest.approx(plan.first_run.greatest)
    assert made["days_without_stops"]["likely"] == pytest.approx(plan.days.likely / STOPS[1])
    assert made["beyond_published"] is None
    N = made["active_parameters"]
    laws = ("besiroglu", "hoffmann")
    assert made["worth"]["losses"] == {law: pytest.approx(loss(N, 1e12, law)) for law in laws}
    best = compute_optimal(6 * N * 1e12).tokens_per_parameter
    assert made["worth"]["best"] == pytest.approx(best)
    assert f"{units.digits(best, 2)} is best for this work" in printed(PLAN)


def test_without_a_model_days_are_told_by_what_they_train(printed) -> None:
    command = "plan --gpus 8 --chip h100 --days 14"
    front = frontier(published.accelerator("H100"), 8, 14, shelf())
    text = " ".join(printed(command).split())
    for point in (front.best, front.first_run):
        tokens = units.count(point.tokens.likely, 2)
        assert f"{point.name} on {tokens} tokens ({point.loss.likely:.2f} nats" in text
    made = numbers(printed(f"{command} --json"))
    assert made["best"] == made[front.best.name] == pytest.approx(front.best.outcome._asdict())
    shorter = numbers(printed(f"{command} --sequence 2k --json"))
    assert "for 14 days ($5.38 thousand), with" in printed(f"{command} --price 2")
    named = frontier(published.accelerator("H100"), 8, 14, shelf(2000))
    assert shorter["best"] == pytest.approx(named.best.outcome._asdict())


def test_the_help_ends_with_an_example_that_is_true(printed, capsys) -> None:
    with pytest.raises(SystemExit) as left:
        main(["plan", "--help"])
    assert left.value.code == 0
    *_, command, _, answer = capsys.readouterr().out.rstrip().splitlines()
    assert command.startswith("  python -m llmtrain_helpers plan ")
    assert answer.strip() in printed(command.removeprefix("  python -m llmtrain_helpers "))


def test_a_price_makes_a_cost_and_markdown_has_the_sources(printed) -> None:
    text = printed(f"{PLAN} --price 2 --markdown")
    assert "| cost |" in text
    assert "| source |" in text
    made = numbers(printed(f"{PLAN} --price 2 --json"))
    assert made["cost"]["likely"] == pytest.approx(2 * made["gpu_hours"]["likely"])


def test_a_plan_that_does_not_fit_says_what_would_change_it(printed) -> None:
    command = "plan llama-3.1-8b --gpus 8 --chip h100 --tokens 1T --tensor 1 --pipeline 1"
    command += " --shard ddp --micro-batch 4 --recompute none"
    text = printed(command)
    summary = " ".join(text.split())
    assert re.search(r"Does not fit: \d+ GB at the loss, \d+ GB too many; .* are logits", summary)
    assert "It would fit with --loss fused, --shard zero" in summary
    offered = text.split("These changes make it fit:\n")[1].splitlines()
    changes = dict(re.findall(r"(--[a-z-]+) (\S+)", " ".join(offered)))
    assert {"--micro-batch", "--shard"} <= {*changes}
    for option, value in changes.items():
        command = re.sub(rf" {option} \S+", "", command) + f" {option} {value}"
    assert " Fits: " in " ".join(printed(f"{command} --advise").split())
    assert "nothing needs to change" in printed(f"{command} --advise")


def test_where_nothing_helps_it_says_by_how_much(printed) -> None:
    command = "plan llama-3.1-405b --gpus 1 --chip t4 --tokens 1T --batch 1"
    text = printed(command)
    assert " short, even with:\n  --optimizer adamw_paged  " in text
    text = printed(f"{command} --optimizer adamw_paged")
    assert re.search(r"Nothing we tried makes it fit: each GPU is still .* short\.", text)
    [untried] = re.findall(r"^Not tried: (.*)\.$", text, re.MULTILINE)
    assert untried == "--sequence, --context, --keep-gradients, --fused-mlp, --recipe"


TRIED = {"--gpus", "--micro-batch", "--shard", "--recompute", "--tensor", "--pipeline"}
TRIED |= {"--experts", "--optimizer", "--loss", "--attention", "--offload", "--bits", "--recipe"}
NO_HELP = {"MODEL", "--chip", "--tokens", "--days", "--batch", "--format", "--overlap"}
NO_HELP |= {"--software", "--price", "--step-seconds", "--interleave", "--uneven-stages", "--full"}
NO_HELP |= {"--compiled"}
"""Options that are tried, and options with which the same GPU wouldn't need less."""


def test_an_option_that_could_help_is_tried_or_named(printed) -> None:
    """A new option has to be put into one of the three."""
    fixed = "--sequence 8192 --tensor 1 --pipeline 1 --experts 1 --expert-tensor 1"
    named = set()
    for command in (
        f"plan deepseek-v2 --gpus 1 --chip t4 --tokens 1T --batch 1 {fixed}",
        "plan llama-3.1-405b --gpus 1 --chip t4 --tokens 1T --lora 4096",
        "plan llama-3.1-405b --gpus 1 --chip t4 --tokens 1T --full",
    ):
        text = printed(command)
        untried = " ".join(text.partition("Not tried: ")[2].split()).removesuffix(".")
        assert numbers(printed(f"{command} --json"))["not_tried"] == untried.split(", ")
        named |= {*re.findall(r"--[a-z-]+", untried)}
    assert named <= {*FLAGS.values(), *TUNED.values()}
    assert named | TRIED | NO_HELP == {*FLAGS.values(), *TUNED.values()}
    assert numbers(printed(f"{PLAN} --json"))["not_tried"] == []


def test_models_and_chips_are_listed(printed) -> None:
    assert re.search(r"^DeepSeek-V3 +671 billion +[\d,]+$", printed("models"), re.MULTILINE)
    assert re.search(r"^H100 SXM +80.0 GB .* H100, H100-80", printed("chips"), re.MULTILINE)
    assert len(printed("models").splitlines()) == 2 + len(published.model_names())
    assert len(printed("chips").splitlines()) == 2 + len(published.names("accelerators"))
    assert {*FAMILIES} <= {*re.findall(r"[\w-]+", printed("families"))}
    for command, own in (("models", "--config"), ("chips", "--peak"), ("families", "--config")):
        last = printed(command).splitlines()[-1]
        assert last.startswith("Your own: plan ")
        assert own in last


# --- a chip of one's own

ANY_CHIP = "plan llama-3.1-8b --gpus 64 --tokens 1T --batch 512"
H200 = "--peak 989.5e12 --memory '141 GB' --bandwidth '4.8 TB/s' --links 450e9 --network '50 GB/s'"
TOML = """peak = "989.5 TFLOP/s"
memory = 141e9
bandwidth = "4.8 TB/s"
links = "450 GB/s"
network = 50e9
"""


def test_the_numbers_of_a_chip_of_ones_own_are_planned_as_those_of_a_known_one(
    printed, tmp_path: Path
) -> None:
    h200 = published.accelerator("H200")
    like = replace(h200, name="custom chip", power=None, shown_memory=None, matmul_shares={})
    best = best_split(LLAMA, like, 64, 512, 1e12)
    share = f"{h200.matmul_share!r}"
    path = tmp_path / "my.toml"
    path.write_text(f"{TOML}matmul = {share}\nfp8 = 1979e12\n", "utf-8")
    for chip in (f"{H200} --matmul {share}", f"--chip {path}"):
        made = numbers(printed(f"{ANY_CHIP} {chip} --json"))
        assert made["inputs"]["accelerator"] == "custom chip"
        assert made["days"]["likely"] == pytest.approx(best.days.likely)
        assert made["room_bytes"] == best.free_memory
    made = numbers(printed(f"{ANY_CHIP} --chip {path} --format fp8 --json"))
    assert made["mfu_peak"] == {"flops_per_second": 1979e12, "format": "fp8"}
    without = printed(f"{ANY_CHIP} {H200}")
    assert "Beware: we don't know the chip's best matrix product" in " ".join(without.split())
    command = f"plan --gpus 8 --days 14 --peak 990e12 --memory {85_520_809_984}"
    assert "8 custom chip for 14 days" in printed(command)


@pytest.mark.parametrize(
    ("option", "name", "field", "value"),
    [
        ("--memory '96 GB'", "H100 SXM (your memory)", "memory", 96e9),
        ("--peak 800e12", "H100 SXM (your peak)", "peaks", 800e12),
        ("--bandwidth '3 TB/s'", "H100 SXM (your bandwidth)", "bandwidth", 3e12),
        ("--links 300e9", "H100 SXM (your links)", "link_bandwidth", 300e9),
        ("--network 25e9", "H100 SXM (your network)", "network_bandwidth", 25e9),
        ("--gpus-per-node 4", "H100 SXM (your gpus_per_node)", "gpus_per_node", 4),
        ("--matmul 70%", "H100 SXM (your matmul)", "matmul_share", 0.7),
    ],
)
def test_a_number_of_ones_own_changes_it_in_a_known_chip(
    option: str, name: str, field: str, value: float, printed
) -> None:
    h100 = published.accelerator("H100")
    number = {**h100.peaks, "bf16": value} if field == "peaks" else value
    like = replace(h100, **{"name": name, field: number})
    like = replace(like, shown_memory=None) if field == "memory" else like
    split = "--tensor 8 --pipeline 1 --micro-batch 1 --shard zero1 --recompute none"
    made = numbers(printed(f"{ANY_CHIP} --chip h100 {split} {option} --json"))
    plan = plan_run(LLAMA, like, 64, 1e12, 512, tensor_parallel=8, recompute="none", zero_stage=1)
    assert made["inputs"]["accelerator"] == name
    assert made["days"]["likely"] == pytest.approx(plan.days.likely)
    assert made["room_bytes"] == plan.free_memory
    assert made["days"] != numbers(printed(f"{ANY_CHIP} --chip h100 {split} --json"))["days"] or (
        field == "memory"
    )


BAD_CHIPS = {
    "--peak 0 --memory 1e9": "--peak 0 is not positive",
    "--peak nan --memory 1e9": "--peak 'nan' isn't a number",
    "--peak 10^400 --memory 1e9": "--peak '10^400' is larger or smaller than any number",
    "--peak 1e15": "give a known chip, or --peak X and --memory X of your own",
    "--memory 1e9": "give a known chip, or --peak X and --memory X of your own",
    "--chip h100 --peak 989": "--peak 989 is below 10⁹ FLOP/s: a rate in TFLOP/s? Write 989e12",
    "--chip h100 --memory 141": "--memory 141 is below a megabyte: in GB? Write 141e9",
    "--chip h100 --memory '3 days'": "--memory '3 days': these are days; we asked for bytes",
    "--chip h100 --links -3": "--links -3 is not positive",
    "--chip h100 --links '450 GB'": "--links '450 GB': these are GB; we asked for B/s",
    "--chip h100 --network '400 Gb/s'": "--network '400 Gb/s' is in bits: write bytes, such as 50",
    "--chip h100 --network 400Gbps": "--network '400Gbps' is in bits",
    "--chip h100 --gpus-per-node 2.5": "--gpus-per-node 2.5 is not a whole number",
    "--chip h100 --gpus-per-node 1 --links 1e9": "connects GPUs of a node, but --gpus-per-node 1",
    "--chip h100 --matmul 75": "--matmul 75 is more than 1: a share, not a percentage",
    "--chip h100 --peak 1e15 --peak 2e15": "--peak appears 2 times",
    "--chip no.toml": "--chip 'no.toml' isn't a file: give the path of a chip.toml",
    "--peak 1e15 --memory 1e11 --format nvfp4": "no peak on custom chip. Known: bf16",
}


@pytest.mark.parametrize("options", BAD_CHIPS)
def test_a_chip_that_cannot_be_is_refused_by_its_option(options: str, refused) -> None:
    assert BAD_CHIPS[options] in refused(f"{ANY_CHIP} {options}")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("peak = 0\nmemory = 1e11", "peak = 0 is not positive"),
        ("peak = nan\nmemory = 1e11", "peak = nan is not a finite number"),
        ("peak = inf\nmemory = 1e11", "peak = inf is not a finite number"),
        ("peak = true\nmemory = 1e11", "peak = True is not a number"),
        ("peak = [1]\nmemory = 1e11", "peak = [1] isn't a number"),
        ("peak = 1979-05-27\nmemory = 1e11", "is not a number"),
        (f"peak = 1{'0' * 400}\nmemory = 1e11", "peak = 1"),
        (f"peak = 1{'0' * 5000}\nmemory = 1e11", "isn't TOML that can be read"),
        ("peak = 1e15", "in PATH: give a known chip, or peak = X and memory = X of your own"),
        ("peak = 1e15\nmemory = 1e11\nwatts = 3", "'watts' isn't a number of a chip. Known: peak"),
        ("peak = 1e15\npeak = 2e15", "isn't TOML that can be read: Cannot overwrite a value"),
        ("peak: 3", "isn't TOML that can be read"),
        ("a = " + "[" * 10**5, "isn't TOML that can be read"),
        ("\x00", "isn't TOML that can be read"),
        ("#" * 1_000_001, "is too large for a chip.toml: over 1,000,000 bytes"),
    ],
)
def test_a_damaged_file_of_a_chip_is_refused(
    content: str, problem: str, tmp_path: Path, refused, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text(content, "utf-8")
    message = refused(f"{ANY_CHIP} --chip my.toml")
    assert problem.replace("PATH", "my.toml") in message
    assert "my.toml" in message


def test_the_help_has_groups_and_fits_two_screens(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 100
    titles = ("run", "split", "memory", "speed", "chip", "adapting an existing model", "output")
    assert [x for x in lines if x.endswith(":") and not x.startswith(" ")][1:] == [
        f"{title}:" for title in titles
    ]
    assert max(map(len, lines[2:])) <= 100


# --- what is refused


HOSTILE = {
    "plan llama-3.1-8b --gpus 8 --chip h1000 --tokens 1T": "--chip 'h1000' is unknown, did you",
    "plan llama-9 --gpus 8 --chip h100 --tokens 1T": "MODEL 'llama-9' is unknown, did you mean",
    "plan gpt2 --gpus 0 --chip h100 --tokens 1T": "--gpus 0 is not positive",
    "plan gpt2 --gpus -8 --chip h100 --tokens 1T": "--gpus -8 is not positive",
    "plan gpt2 --gpus 2.5 --chip h100 --tokens 1T": "--gpus 2.5 is not a whole number",
    "plan gpt2 --gpus 8 --chip h100 --tokens nan": "--tokens: 'nan' isn't a number",
    "plan gpt2 --gpus 8 --chip h100 --tokens inf": "--tokens: 'inf' isn't a number",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1e99": "--tokens: ",
    "plan gpt2 --gpus 8 --chip h100 --tokens 2,5": "commas group thousands",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1e4": "is more than --tokens 10000",
    "plan gpt2 --gpus 8 --chip h100": "say how long the run is: give --tokens T or",
    "plan gpt2 --gpus 8 --chip h100 --tokens 10^400": "'10^400' is larger or smaller than any",
    "plan gpt2 --gpu 8 --gpus 64 --chip h100 --tokens 1T": "unrecognized arguments: --gpu 8",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --gpus 64": "--gpus appears 2 times: give it",
    "plan gpt2 --gpus=8 --chip h100 --tokens 1T --gpus 8": "--gpus appears 2 times",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --shard ddp --keep-gradients no": (
        "--keep-gradients changes nothing with --shard ddp: use it with --shard zero2, zero3, "
    ),
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --shard zero1 --keep-gradients yes": (
        "--keep-gradients yes changes nothing with --shard zero1: gradients are sharded from"
    ),
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --pipeline 2 --shard zero2": (
        "say --keep-gradients yes (whole between the passes of a step, as FSDP can) or no ("
    ),
    "plan mixtral-8x7b --gpus 64 --chip h100 --tokens 1T --keep-gradients no": (
        "--keep-gradients changes nothing with ZeRO 1, which was chosen"
    ),
    "plan mixtral-8x7b --gpus 64 --chip h100 --tokens 1T --shard hsdp --experts 8": (
        "is not planned with --shard hsdp"
    ),
    "plan gpt2 --gpus 8 --chip h100 --tokens 1B --price 1e39": "--price 1e+39 is too much: a run",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1B --price 1e39 --json": "--price 1e+39 is too much",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1e39": "is too many: a run has at most 1e+36 FLOPs",
    "plan gpt2 --gpus 8 --chip h100 --days 1e20": "--days 1e+20 allows more tokens than any",
    "plan gpt2 --gpus 16 --chip h100 --tokens 1B --pipeline 16": (
        "--pipeline 16 is more than the model's 12 layers"
    ),
    "plan mixtral-8x7b --gpus 16 --chip h100 --tokens 1B --experts 16": (
        "The model's 8 experts aren't divisible by --experts 16"
    ),
    "plan gpt2 --gpus 8 --chip h100 --tokens 1B --step-seconds 0": "--step-seconds 0 is not pos",
    "plan --gpus 8 --chip h100 --days 3 --tensor 2": "--tensor needs a model: give its name",
    "plan --gpus 8 --chip h100 --days 3 --markdown": "--markdown needs a model",
    "plan --gpus 8 --chip h100 --days 1e-9": "--days 1e-09 is less than one step",
    "plan --gpus 8 --chip h1000 --days 3": "--chip 'h1000' is unknown, did you",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1B --step-seconds 3": "give --batch with",
    "plan gpt2 --gpus 7 --chip h100 --tokens 1B --batch 8": "by --micro-batch·replicas=7",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1B --days 3": "--tokens or --days, not both",
    "plan gpt2 --gpus 8 --chip h100 --days 0": "--days 0 is not positive",
    "plan gpt2 --gpus 8 --tokens 1B": "give a known chip, or --peak X and --memory X of your own",
    "plan --gpus 8 --chip h100 --tokens 1B": "give one model: a name",
    "plan gpt2 --config x --gpus 8 --chip h100 --tokens 1B": "give one model: a name",
    "plan --config no.json --gpus 8 --chip h100 --tokens 1B": "--config 'no.json' isn't a file",
    "plan no.json --gpus 8 --chip h100 --tokens 1B": "MODEL 'no.json' isn't a file",
    "plan gpt2 --gpus 63 --chip h100 --tokens 1T --tensor 2": "63 is not divisible by --tensor",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1B --sequence 0": "--sequence 0 is not positive",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1B --sequence 2k": "--sequence 2000 is more than",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --batch 4M": "--batch 4000000 is more than 976,562",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --shard fspd": "--shard 'fspd' is unknown, did",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --recompute ful": "--recompute 'ful' is unknown",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --pipeline 2 --shard zero3": "--keep-gradients",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --keep-gradients 3": "neither yes nor no",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --price 0": "--price 0 is not positive",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --batch 8 --step-seconds 1e-9": "1e-09 is less",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --experts 2": "--experts 2 has no experts",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --pipeline 8": (
        "The model's 12 layers aren't divisible by --pipeline 8: --uneven-stages yes rounds up"
    ),
    "plan gpt2 --gpus 8 --chip a100 --tokens 1T --format fp8": "--format 'fp8' has no peak on A100",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --format nvfp4": (
        "--format 'nvfp4' has no peak on H100 SXM. Known: fp32, tf32, fp16, bf16, fp8"
    ),
    "plan gpt2 --gpus 8 --chip mi355x --tokens 1T --format nvfp4": "no peak on MI355X",
    "plan gpt2 --gpus 8 --chip b200 --tokens 1T --format mxfp8 --full": (
        "--format 'mxfp8' is not planned with tuning"
    ),
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --recipe fp7": "--recipe 'fp7' is unknown. Known: ",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --what": "unrecognized arguments: --what",
    "plan gpt2 --gpus 8 --chip h100 --tokens 1T --json --markdown": "not allowed with",
    "plan --gpus 8 --peak 1e15 --days 3": "give a known chip, or --peak X and --memory X of your",
    "families all": "unrecognized arguments: all",
    "models all": "unrecognized arguments: all",
}


@pytest.mark.parametrize("command", HOSTILE)
def test_what_cannot_be_is_refused_in_a_sentence(command: str, refused) -> None:
    message = refused(command)
    assert HOSTILE[command] in message
    assert len(message.splitlines()) <= 2


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("layers: 32", "isn't JSON that can be read"),
        ("[1]", "isn't a mapping"),
        ("{}", "model_type=None is unknown"),
        (
            '{"model_type": "gemma3", "text_config": {}}',
            "model_type=None in text_config is unknown",
        ),
        ('{"model_type": "llama", "hidden_size": NaN}', "is not a finite number"),
        ("[" * 10**5, "isn't JSON that can be read"),
    ],
)
def test_a_file_that_is_no_config_is_refused(
    content: str, problem: str, tmp_path: Path, refused
) -> None:
    path = tmp_path / "config.json"
    path.write_text(content, "utf-8")
    message = refused(f"plan --config {path} --gpus 8 --chip h100 --tokens 1B")
    assert problem in message
    assert re.search(r"/config\.json|\.\.\. isn't JSON", message)
    assert "FAMILIES" not in message
    assert problem in refused(f"plan {path} --gpus 8 --chip h100 --tokens 1B")


@pytest.mark.parametrize(
    ("command", "other"),
    [
        ("plan llama-9 --gpus 8 --chip h100 --tokens 1T", "models"),
        ("plan xyzzy --gpus 8 --chip h100 --tokens 1T", "models"),
        ("plan gpt2 --gpus 8 --chip h1000 --tokens 1T", "chips"),
    ],
)
def test_an_unknown_name_is_sent_to_the_list_of_names(command: str, other: str, refused) -> None:
    assert f"(all: python -m llmtrain_helpers {other})" in refused(command)


def test_a_folder_is_no_config(tmp_path: Path, refused, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # an error cuts a long path short
    message = refused("plan --config . --gpus 8 --chip h100 --tokens 1B")
    assert message.startswith("--config '.' isn't a file: give the path of a config.json")


def test_a_refusal_in_a_terminal_has_no_traceback() -> None:
    command = [sys.executable, "-m", "llmtrain_helpers", "plan", "gpt2", "--gpus", "0"]
    command += ["--chip", "h100", "--tokens", "1T"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "--gpus 0 is not positive\n"


def test_options_are_arguments_of_a_plan_by_shorter_names() -> None:
    more = {"model", "accelerator", "sequence_length", "days", "shard", "seconds_per_iteration"}
    assert {*FLAGS} <= {*Run.__dataclass_fields__} | more
    assert in_options("zero_stage=3 with a pipeline") == "--shard zero3 with a pipeline"
    assert in_options("two tokens=2 and tokens") == "two --tokens 2 and tokens"


def test_whose_software_it_is_goes_to_the_plan(printed) -> None:
    spans = {
        software: json.loads(printed(f"{PLAN} --json --software {software}"))["days"]
        for software in ("megatron-core", "other")
    }
    assert spans["megatron-core"] != spans["other"]
