"""A plan from a framework's own file: `plan --from FILE`."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from llmtrain_helpers import published
from llmtrain_helpers.__main__ import main
from llmtrain_helpers.command import FLAGS, TUNED
from llmtrain_helpers.frameworks import model_of

AXOLOTL = """\
base_model: NousResearch/Meta-Llama-3.1-8B-Instruct
sequence_len: 4096
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_8bit
gradient_checkpointing: true
num_epochs: 3
learning_rate: 2e-5
"""
LORA = (
    AXOLOTL + "adapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_modules: [q_proj, v_proj]\n"
)
FSDP = AXOLOTL.replace("adamw_8bit", "adamw_torch") + "fsdp_config:\n  fsdp_offload_params: true\n"
FACTORY = """\
model_name_or_path: meta-llama/Llama-3.2-1B
finetuning_type: full
per_device_train_batch_size: 4
max_steps: 500
bf16: true
"""
TITAN = """\
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 8192
steps = 1000
[parallelism]
tensor_parallel_degree = 2
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
"""
ZERO: dict[str, Any] = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 4,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}},
}
ON = "--gpus 8 --chip h100"
TOKENS = f"{ON} --tokens 100M"
FILES = {
    "axolotl.yaml": (AXOLOTL, TOKENS),
    "lora.yml": (LORA, TOKENS),
    "fsdp.yaml": (FSDP, TOKENS),
    "factory.yaml": (FACTORY, ON),
    "titan.toml": (TITAN, ON),
    "zero.json": (json.dumps(ZERO), f"{TOKENS} --sequence 4096 llama-3.1-8b"),
}


@pytest.fixture
def plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """What `plan` prints for a file with this text, or the sentence that refuses it."""

    def run(text: str | bytes, name: str, options: str, status: int = 0) -> str:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        assert main(["plan", "--from", str(path), *shlex.split(options)]) == status
        console = capsys.readouterr()
        if status:
            assert not console.out
            assert console.err.count("\n") == 1
            assert str(path) in console.err
        return console.err if status else console.out

    return run


@pytest.fixture
def made(plan):
    """What a file makes: the options, and what became of its settings."""

    def run(text: str, name: str, options: str) -> tuple[dict[str, str], dict[str, Any]]:
        results = json.loads(plan(text, name, f"{options} --json"))["from"]
        words = shlex.split(results["options"].replace("--full", "--full yes"))
        first = ["MODEL"] if words and not words[0].startswith("--") else []
        pairs = dict(zip((first + words)[::2], (first + words)[1::2], strict=True))
        return pairs, results

    return run


def zero(**changes: Any) -> str:
    return json.dumps({**ZERO, **changes})


@pytest.mark.parametrize(("name", "text", "options"), [(k, *v) for k, v in FILES.items()])
def test_the_options_instead_of_the_file_give_the_same_plan(
    name: str, text: str, options: str, plan, capsys: pytest.CaptureFixture[str]
) -> None:
    results = json.loads(plan(text, name, f"{options} --json"))
    pasted = results.pop("from")["options"]
    assert main(["plan", *shlex.split(f"{pasted} {options} --json")]) == 0
    assert json.loads(capsys.readouterr().out) == results
    assert pasted in plan(text, name, options)


def test_axolotls_settings_are_used_or_named(made) -> None:
    options, results = made(AXOLOTL + "typo: 3\nsample_packing: true\n", "a.yaml", TOKENS)
    assert options == {
        "MODEL": "Llama-3.1-8B", "--sequence": "4096", "--batch": "64", "--micro-batch": "2",
        "--tensor": "1", "--pipeline": "1", "--context": "1", "--experts": "1", "--shard": "ddp",
        "--recompute": "full", "--recipe": "pure_bf16", "--optimizer": "adamw_8bit",
        "--attention": "flash", "--full": "yes",
    }  # fmt: skip
    assert [*results["used"]] == [
        *("base_model", "sequence_len", "micro_batch_size", "gradient_accumulation_steps"),
        *("optimizer", "gradient_checkpointing"),
    ]
    assert results["unknown"] == ["typo"]
    assert results["no_effect"] == ["learning_rate", "sample_packing"]
    reason = "the data's size isn't in the file, so give --tokens or --days"
    assert results["unmapped"] == {"num_epochs": reason}
    assert results["defaults"]["bf16"] == "'auto'"
    assert results["defaults"]["shard"] == "ddp"


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ("lora_dropout: 0", {"--lora": "16", "--bits": "16", "--targets": "q_proj,v_proj"}),
        ("load_in_4bit: true", {"--bits": "4"}),
        ("lora_target_linear: true", {"--targets": "all-linear"}),
        ("fsdp_config: {reshard_after_forward: false}", {"--shard": "zero2"}),
        ("fsdp: [full_shard, auto_wrap]", {"--shard": "fsdp"}),
        ("fsdp_config: {version: 2}\ndp_replicate_size: 2", {"--shard": "hsdp"}),
        ("tensor_parallel_size: 2", {"--tensor": "2", "--batch": "32"}),
        ("cut_cross_entropy: true", {"--loss": "fused"}),
        ("attn_implementation: eager", {"--attention": "eager"}),
        ("deepspeed: {zero_optimization: {stage: 1}}", {"--shard": "zero1"}),
    ],
)
def test_more_of_axolotls_settings(more: str, options: dict[str, str], made) -> None:
    pairs, _ = made(f"{LORA}{more}\n", "a.yaml", TOKENS)
    assert {name: pairs.get(name) for name in options} == options


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("load_in_8bit: true", "4 or 16 bits"),
        ("lora_dropout: 0.05", "no dropout"),
        ("rl: dpo", "one model"),
        ("lora_target_modules: [q_proj, in_proj]", "doesn't have all of these matrices"),
        ("optimizer: lion", "a plan has adamw, "),
        ("flex_attn_compile_kwargs: {dynamic: false, mode: max}", "single kernels"),
        ("deepspeed: ds/zero3.json", "no such file"),
        ("torch_compile: true", "isn't planned when a model is adapted"),
        ("activation_offloading: legacy", "doesn't offload activations"),
        ("gradient_checkpointing: offload", "doesn't offload activations"),
        ("bf16: false", "frozen weights have 32 bits"),
        ("base_model: someone/thing", "give MODEL or --config"),
    ],
)
def test_what_a_plan_doesnt_have_is_named_with_the_reason(setting: str, reason: str, made) -> None:
    name = setting.partition(":")[0]
    text = "".join(x + "\n" for x in LORA.splitlines() if not x.startswith(f"{name}:"))
    model = "llama-3.1-8b" if name == "base_model" else ""
    _, results = made(f"{text}{setting}\n", "a.yaml", f"{TOKENS} {model}")
    assert any(reason in why for why in results["unmapped"].values())
    assert name not in results["used"] or name == "gradient_checkpointing"


def test_axolotls_recipe_depends_on_what_shards(made, tmp_path: Path) -> None:
    assert made(AXOLOTL, "a.yaml", TOKENS)[0]["--recipe"] == "pure_bf16"
    options, _ = made(FSDP, "a.yaml", TOKENS)
    assert (options["--recipe"], options["--offload"]) == ("amp", "weights")
    text = FSDP.replace("fsdp_config:\n  fsdp_offload_params: true", "deepspeed: zero.json")
    other = tmp_path / "zero.json"
    other.write_text(zero(train_micro_batch_size_per_gpu="auto"), "utf-8")
    options, results = made(text, "a.yaml", TOKENS)
    assert (options["--recipe"], options["--shard"]) == ("bf16", "zero3")
    assert "deepspeed bf16.enabled" in results["used"]
    assert "deepspeed train_micro_batch_size_per_gpu" not in results["unmapped"]


def test_llama_factorys_settings_and_defaults(made) -> None:
    options, results = made(FACTORY, "f.yaml", ON)
    assert options == {
        "MODEL": "Llama-3.2-1B", "--tokens": str(500 * 32 * 2048), "--sequence": "2048",
        "--batch": "32", "--micro-batch": "4", "--tensor": "1", "--pipeline": "1",
        "--context": "1", "--shard": "ddp", "--recompute": "full", "--recipe": "amp",
        "--attention": "flash", "--full": "yes",
    }  # fmt: skip
    assert results["defaults"]["cutoff_len"] == "2048"
    assert results["defaults"]["disable_gradient_checkpointing"] == "False"
    lora, results = made("model_name_or_path: a/Llama-3.2-1B\nquantization_bit: 4", "f.yml", TOKENS)
    assert (lora["--lora"], lora["--bits"], lora["--targets"]) == ("8", "4", "all-linear")
    assert (lora["--micro-batch"], lora["--batch"]) == ("8", "64")
    assert results["defaults"]["finetuning_type"] == "'lora'"


def test_torchtitans_settings_and_defaults(made) -> None:
    options, results = made(TITAN, "t.toml", ON)
    assert options == {
        "MODEL": "Llama-3.1-8B", "--tokens": str(1000 * 4 * 8192), "--sequence": "8192",
        "--batch": "4", "--micro-batch": "1", "--tensor": "2", "--pipeline": "1",
        "--context": "1", "--experts": "1", "--shard": "fsdp", "--recompute": "alternate",
        "--recipe": "amp", "--optimizer": "adamw_fused", "--compiled": "no",
    }  # fmt: skip
    assert results["defaults"]["training.dtype"] == "'float32'"
    bare = '[model]\nname = "llama3"\nflavor = "70B"\n'
    options, results = made(bare, "t.toml", f"{ON} --tensor 8")
    assert options["--tokens"] == str(10_000 * 8 * 2048)
    assert "--recompute" not in options
    assert "every n-th" in results["unmapped"]["activation_checkpoint.selective_ac_option"]


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ("data_parallel_shard_degree = 1", {"--shard": "ddp"}),
        ("data_parallel_replicate_degree = 2", {"--shard": "hsdp"}),
        ('fsdp_reshard_after_forward = "never"', {"--shard": "zero2"}),
        ("[quantize.linear.float8]\nprecompute = true", {"--format": None}),
        ('[compile]\nenable = true\ncomponents = ["loss"]', {"--compiled": None}),
        ("[compile]\nenable = true", {"--compiled": "yes"}),
        ("[training.x]\n[job]\ndescription = '1'", {"--micro-batch": "1"}),
    ],
)
def test_more_of_torchtitans_settings(more: str, options: dict[str, Any], made) -> None:
    text = TITAN.replace("tensor_parallel_degree = 2", f"tensor_parallel_degree = 2\n{more}")
    if "shard_degree" in more:
        text = text.replace(
            "shard_degree = 1", "shard_degree = 1\ndata_parallel_replicate_degree = 4"
        )
    pairs, _ = made(text, "t.toml", ON)
    assert {name: pairs.get(name) for name in options} == options


def test_the_gpus_are_those_that_the_file_splits(made, plan) -> None:
    text = LORA + "dp_shard_size: 4\nfsdp_config: {version: 2}\n"
    assert "--gpus 8 isn't what the file splits them into: 4" in plan(text, "a.yaml", TOKENS, 2)
    options, _ = made(
        f"{AXOLOTL}dp_shard_size: 4\nexpert_parallel_size: 2\n".replace(
            "base_model: NousResearch/Meta-Llama-3.1-8B-Instruct",
            "base_model: Qwen/Qwen3-30B-A3B\nreinit_weights: true",
        ),
        "a.yaml",
        TOKENS,
    )
    assert (options["--experts"], options["--batch"]) == ("2", "64")
    assert "--full" not in options


def test_a_pipeline_of_torchtitan_splits_its_local_batch(made) -> None:
    text = TITAN.replace("tensor_parallel_degree", "pipeline_parallel_degree")
    text = text.replace("local_batch_size = 1", "local_batch_size = 8")
    options, _ = made(text, "t.toml", f"{ON} --keep-gradients no")
    assert (options["--batch"], options["--micro-batch"]) == ("32", "1")
    assert options["--shard"] == "zero2"


@pytest.mark.parametrize(
    ("offload", "stage", "option", "reason"),
    [
        ({"offload_optimizer": "cpu"}, 2, "optimizer", ""),
        ({"offload_optimizer": "cpu", "offload_param": "cpu"}, 3, "weights", ""),
        ({"offload_optimizer": "cpu", "offload_param": "cpu"}, 2, "optimizer", "below stage 3"),
        ({"offload_optimizer": "cpu"}, 0, None, "not in force at stage 0"),
        ({"offload_param": "cpu"}, 3, None, "only along with the optimizer"),
        ({"offload_optimizer": "nvme"}, 3, None, "host's memory only"),
        ({"offload_optimizer": "none"}, 3, None, ""),
    ],
)
def test_offload_counts_only_where_deepspeed_has_it_in_force(
    offload: dict[str, str], stage: int, option: str | None, reason: str, made
) -> None:
    devices = {name: {"device": device} for name, device in offload.items()}
    text = zero(zero_optimization={"stage": stage, **devices})
    options, results = made(text, "z.json", f"{TOKENS} --sequence 4096 llama-3.1-8b")
    assert options.get("--offload") == option
    reasons = " ".join(results["unmapped"].values())
    assert reason in reasons if reason else not reasons


def test_deepspeeds_batch_fits_the_gpus(made, plan) -> None:
    options = f"{TOKENS} --sequence 4096 llama-3.1-8b"
    pairs, _ = made(zero(), "z.json", options)
    assert (pairs["--batch"], pairs["--micro-batch"], pairs["--shard"]) == ("64", "2", "zero3")
    pairs, _ = made('{"train_batch_size": 64}', "z.json", options)
    assert (pairs["--batch"], pairs["--micro-batch"], pairs["--recipe"]) == ("64", "8", "fp32")
    sentence = plan(zero(train_batch_size=128), "z.json", options, 2)
    for word in ("train_batch_size: 128", "train_micro_batch_size_per_gpu: 2", "8 replicas"):
        assert word in sentence
    assert "multiple of the 8" in plan('{"train_batch_size": 12}', "z.json", options, 2)
    auto = zero(gradient_accumulation_steps="auto", bf16={"enabled": "auto"})
    pairs, results = made(auto, "z.json", options)
    assert {"--batch", "--recipe"}.isdisjoint(pairs)
    assert "filled in when training starts" in results["unmapped"]["bf16.enabled"]


@pytest.mark.parametrize(
    ("text", "name", "options", "words"),
    [
        (AXOLOTL, "a.yaml", "--micro-batch 4", ("--micro-batch 4", "micro_batch_size: 2")),
        (AXOLOTL, "a.yaml", "--batch 512", ("--batch 512", "gradient_accumulation_steps: 4")),
        (AXOLOTL, "a.yaml", "llama-2-7b", ("MODEL 'llama-2-7b'", "base_model: ")),
        (AXOLOTL, "a.yaml", "--config x.json", ("config=", "base_model: ")),
        (LORA, "a.yaml", "--full", ("--full contradicts adapter: 'lora'",)),
        (LORA, "a.yaml", "--lora 8", ("--lora 8", "lora_r: 16")),
        (FSDP, "a.yaml", "--shard ddp", ("--shard 'ddp'", "fsdp_config.")),
        (FACTORY, "f.yaml", "--days 3", ("--days 3", "max_steps: 500")),
        (TITAN, "t.toml", "--tensor 4", ("--tensor 4", "tensor_parallel_degree: 2")),
        (TITAN.replace("_degree = 2", "_degree = 3"), "t.toml", "", ("--gpus 8", ": 3")),
        (AXOLOTL + "batch_size: 8", "a.yaml", "", ("batch_size: 8", "micro_batch_size: 2")),
        (AXOLOTL + "flash_attention: true\neager_attention: true", "a.yaml", "", ("contradicts",)),
    ],
)
def test_what_contradicts_the_file_is_refused(
    text: str, name: str, options: str, words, plan
) -> None:
    length = "" if name[0] in "ft" else "--tokens 1B"
    sentence = plan(text, name, f"{ON} {length} {options}", 2)
    for word in words:
        assert word in sentence


def test_what_agrees_with_the_file_or_is_open_in_it_can_be_given(made) -> None:
    options, _ = made(AXOLOTL, "a.yaml", f"{TOKENS} --micro-batch 2 --batch 64 LLAMA-3.1-8B")
    assert {"--micro-batch", "--batch", "MODEL"}.isdisjoint(options)
    options, _ = made(AXOLOTL, "a.yaml", f"{TOKENS} --recipe amp --shard zero1 --tensor 2")
    assert options["--batch"] == "32"
    assert made(AXOLOTL, "a.yaml", f"{TOKENS} --lora 8")[0]["--bits"] == "16"
    text = AXOLOTL.replace("NousResearch/Meta-Llama-3.1-8B-Instruct", "a/b")
    _, results = made(text, "a.yaml", f"{TOKENS} qwen3-8b")
    assert "base_model" in results["unmapped"]


HOSTILE: dict[str, tuple[str, str | bytes, str]] = {
    "a wrong type": ("a.yaml", AXOLOTL.replace("4096", "[1]"), "sequence_len: [1]"),
    "a text for a number": ("a.yaml", AXOLOTL.replace("4096", "4k"), "sequence_len: '4k'"),
    "a flag for a number": ("a.yaml", AXOLOTL.replace("4096", "true"), "sequence_len: True"),
    "less than one": ("a.yaml", AXOLOTL.replace("4096", "-1"), "sequence_len: -1"),
    "a half": ("a.yaml", AXOLOTL.replace("4096", "0.5"), "sequence_len: 0.5"),
    "and a half": ("a.yaml", AXOLOTL.replace("4096", "4096.5"), "sequence_len: 4096.5"),
    "not a number": ("z.json", '{"train_batch_size": NaN}', "train_batch_size: nan"),
    "infinity": ("a.yaml", AXOLOTL.replace("4096", ".inf"), "sequence_len: inf"),
    "10^400": ("a.yaml", AXOLOTL.replace("4096", "1" + "0" * 400), "sequence_len: 10^400"),
    "10^5000": ("a.yaml", AXOLOTL.replace("4096", "1" * 5000), "can't be read: Exceeds"),
    "hexadecimal": ("t.toml", TITAN.replace("8192", "0x" + "f" * 9000), "training.seq_len: 10^"),
    "a number for a flag": ("a.yaml", AXOLOTL + "flash_attention: 3", "flash_attention: 3"),
    "a stage": ("z.json", zero(zero_optimization={"stage": True}), "stage: True isn't one of"),
    "an adapter": ("a.yaml", AXOLOTL + "adapter: dora", "adapter: 'dora'"),
    "a list for a table": ("z.json", zero(zero_optimization=[3]), "zero_optimization: [3]"),
    "a list of tables": ("a.yaml", LORA.replace("[q_proj, v_proj]", "[{a: b}]"), "modules: ["),
    "a list as the file": ("a.yaml", "- base_model\n", "isn't a table of settings"),
    "nothing": ("a.yaml", "", "isn't a table of settings"),
    "brackets": ("z.json", "[" * 5000 + "]" * 5000, "nest deeper than 100"),
    "depth": ("a.yaml", "".join(" " * i + "a:\n" for i in range(600)), "it's nested too deeply"),
    "an alias": ("a.yaml", "a: &x 1\nb: *x\n", "it has an alias"),
    "laughs": ("a.yaml", "a: &a [x]\nb: &b [*a,*a]\nc: [*b,*b]", "it has an alias"),
    "a name twice in YAML": ("a.yaml", AXOLOTL + "seed: 1\nseed: 2", "seed is there twice"),
    "a name twice in JSON": ("z.json", '{"a": 1, "a": 2}', "a is there twice"),
    "a name twice in TOML": ("t.toml", "a = 1\na = 2", "can't be read"),
    "one name in two ways": ("a.yaml", "a.b: 1\na: {b: 2}", "a.b is there twice"),
    "a name that isn't a text": ("a.yaml", AXOLOTL + "3: 4", "3 isn't the name of a setting"),
    "a name with escapes": ("z.json", r'{"\u001b[2J": 1}', "isn't the name of a setting"),
    "an object": ("a.yaml", "a: !!python/object/apply:os.getcwd []", "can't be read"),
    "2 MB": ("a.yaml", AXOLOTL + "# " + "x" * 2_000_000, "more than 200,000 bytes"),
    "UTF-16": ("a.yaml", AXOLOTL.encode("utf-16"), "it isn't text in UTF-8"),
    "another ending": ("a.ini", AXOLOTL, "ends in neither"),
    "another file": ("config.json", '{"model_type": "llama"}', "isn't a file of a framework"),
    "not JSON": ("z.json", '{"a": CONFIG}', "can't be read"),
    "a path of zeros": ("a.yaml", AXOLOTL + 'deepspeed: "\\0"', "isn't|--shard"),
    "another's file": ("a.yaml", AXOLOTL + "deepspeed: a.yaml", "isn't a file of DeepSpeed"),
}


@pytest.mark.parametrize(("name", "text", "words"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_in_one_sentence(name: str, text, words: str, plan) -> None:
    if "zeros" in words or "--shard" in words:
        assert "there's no such file" in plan(text, name, TOKENS)
        return
    sentence = plan(text, name, f"{TOKENS} --sequence 4096", 2)
    assert any(word in sentence for word in words.split("|"))


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path, capsys) -> None:
    (tmp_path / "a.yaml").mkdir()
    for name, reason in {"a.yaml": "Is a directory", "b.yaml": "No such file"}.items():
        assert main(["plan", "--from", str(tmp_path / name), *shlex.split(TOKENS)]) == 2
        assert f"{tmp_path / name} can't be read: {reason}" in capsys.readouterr().err


def test_without_pyyaml_one_sentence_says_what_to_install(plan, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert 'pip install "llmtrain-helpers[yaml]"' in plan(AXOLOTL, "a.yaml", TOKENS, 2)
    plan(TITAN, "t.toml", ON)


def test_a_refusal_of_the_plan_says_which_file_its_options_are_from(plan) -> None:
    text = AXOLOTL.replace("adamw_8bit", "muon")
    assert "muon" in plan(text, "a.yaml", TOKENS, 2)


SETTINGS = published.rows("framework_settings")


def test_the_table_uses_arguments_that_the_command_has() -> None:
    inside = {x["argument"] for x in SETTINGS if x["use"] == "set"}
    asked = " ".join(x.get("values", "") for x in SETTINGS if x["use"] in ("set", "drop", "note"))
    by_hand = {"file", "passes", "steps", "replicas", "shards", "pipeline_micro_batch"}
    for row in SETTINGS:
        argument = row.get("argument", "")
        assert argument in {"", *FLAGS, *TUNED, *by_hand, *inside} or argument in asked, row
        assert row["use"] in (
            *("number", "word", "choice", "text", "list", "unmapped", "none"),
            *("set", "drop", "note"),
        )
        assert row["use"] not in ("unmapped", "note") or row["note"], row


@pytest.mark.parametrize(
    ("written", "shape"),
    [
        ("meta-llama/Llama-2-13b-chat-hf", "Llama-2-13b"),
        ("meta-llama/Llama-2-13b-hf", "Llama-2-13b"),
        ("mistralai/Mixtral-8x22B-Instruct-v0.1", "Mixtral-8x22B"),
        ("mistralai/Mistral-7B-Instruct-v0.3", None),  # its vocabulary is another
        ("Qwen/Qwen3-4B-Instruct-2507", "Qwen3-4B"),
        ("Qwen/Qwen2.5-32B-Instruct", "Qwen2.5-32B"),
        ("google/gemma-2-9b-it", "gemma-2-9b"),
        ("microsoft/phi-1_5", "phi-1.5"),
        ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "TinyLlama-1.1B"),
    ],
)
def test_a_hubs_name_is_that_of_a_shape_or_unknown(written: str, shape: str | None) -> None:
    assert model_of(written) == shape
