"""Families: transformers builds as many parameters as are read, or reading is refused.

`python -m tests.ground_truth.test_families` prints the table of all families.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections import Counter
from functools import cache
from random import Random
from typing import Any

import pytest

from llmtrain_helpers import Transformer, count_flops, count_parameters
from llmtrain_helpers.model.huggingface.families import FAMILIES

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.23")

from torch.utils.flop_counter import FlopCounterMode  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL  # noqa: E402

logging.getLogger("transformers").setLevel(logging.CRITICAL)

NOT_DECODERS = {
    # encoders with a head for language
    "bert",
    "bert-generation",
    "big_bird",
    "camembert",
    "data2vec-text",
    "electra",
    "ernie",
    "megatron-bert",
    "rembert",
    "roberta",
    "roberta-prelayernorm",
    "xmod",
    "roc_bert",
    "roformer",
    "xlm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xlnet",
    "reformer",
    # halves of models with an encoder
    "bart",
    "bigbird_pegasus",
    "blenderbot",
    "blenderbot-small",
    "marian",
    "mbart",
    "mvp",
    "pegasus",
    "plbart",
    "prophetnet",
    "trocr",
    "whisper",
    "musicgen",
    "musicgen_melody",
    # pictures and sound as well, or a helper of another model
    "git",
    "fuyu",
    "gemma3",
    "gemma3n",
    "gemma4",
    "gemma4_unified",
    "emu3",
    "got_ocr2",
    "mllama",
    "moshi",
    "moss_transcribe_diarize",
    "phi4_multimodal",
    "gemma4_assistant",
    "gemma4_unified_assistant",
    "llama4",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen4_exp",
    "dots3_note",
}
DECODERS = [family for family in CAUSAL if family not in NOT_DECODERS]
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")

every_family = pytest.mark.parametrize("family", FAMILIES)


# --- what transformers builds, and what is read


def config_of(file: dict[str, Any]) -> Any:
    return CONFIG_MAPPING[file["model_type"]].from_dict(dict(file))


def built(file: dict[str, Any]) -> Any:
    """The model on the meta device; None where transformers cannot make it."""
    try:
        with torch.device("meta"):
            return transformers.AutoModelForCausalLM.from_config(config_of(file))
    except Exception:
        return None


def size(net: Any) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


def verdict(file: dict[str, Any]) -> str:
    """exact, refused (in words), wrong, or unknown where transformers has no answer."""
    try:
        read = count_parameters(Transformer.from_config(file)).total
    except ValueError as error:
        in_words = type(error) is ValueError and "=" in str(error)
        return "refused" if in_words and len(str(error)) < 400 else "wrong words"
    net = built(file)
    if net is None:
        return "unknown"
    return "exact" if read == size(net) else f"wrong by {read - size(net):+,}"


@cache
def at_defaults(family: str) -> str:
    return verdict({"model_type": family})


SEEING = ["qwen2_vl", "qwen2_5_vl", "qwen2_5_omni_thinker", "qwen3_vl", "qwen3_vl_moe"]
SEEING += ["glm4v_moe", "granite_docling", "gemma3", "internvl", "kimi_k25", "llava"]


@pytest.mark.parametrize("family", SEEING)
def test_of_a_model_that_sees_or_hears_its_language_model_is_read(family: str) -> None:
    config = CONFIG_MAPPING[family]()
    text = config.text_config
    text.num_hidden_layers = 4
    if getattr(text, "layer_types", None):
        text.layer_types = text.layer_types[:4]
    with torch.device("meta"):
        net = transformers.AutoModelForMultimodalLM.from_config(config)
    parts = ("language_model.", "text_model.", "lm_head.")
    language = [x for name, x in net.named_parameters() if any(part in name for part in parts)]
    file = {"model_type": "sees", "text_config": {"model_type": text.model_type, **text.to_dict()}}
    file["tie_word_embeddings"] = config.tie_word_embeddings
    read = count_parameters(Transformer.from_config(file)).total
    assert read == sum(parameter.numel() for parameter in language)


def test_there_are_as_many_decoders_as_are_said() -> None:
    assert len(DECODERS) == 137
    assert {*FAMILIES} <= {*DECODERS}


@pytest.mark.parametrize("family", DECODERS)
def test_class_defaults_are_exact_or_refused(family: str) -> None:
    result = at_defaults(family)
    assert result in ("exact", "refused")
    assert result == "exact" or family not in FAMILIES or family in INCOMPLETE


INCOMPLETE = {"deepseek_v2", "dots1"}
"""Their class defaults leave open how many experts there are, or a token meets."""


def test_most_families_are_exact() -> None:
    counted = Counter(map(at_defaults, DECODERS))
    assert counted["exact"] >= 93
    assert counted["exact"] + counted["refused"] == len(DECODERS)


@every_family
def test_a_file_with_every_default_is_exact_or_refused(family: str) -> None:
    file = config_of({"model_type": family}).to_dict()
    assert verdict({**file, "model_type": family}) in ("exact", "refused")


# --- changed files

SKIPPED = re.compile(
    r"token_id|rope|dropout|_eps|epsilon|initializer|_act|activation|use_cache|dtype"
    r"|^(output|return|problem|chunk_size_f|architectures|id2label|label2id|_name|is_)"
    r"|loss_coef|^time_step_(min|max|floor|limit)|base_model|transformers_version"
)
OTHERS: dict[str, Any] = {
    **{"head_dim": 96, "first_k_dense_replace": 2, "sliding_window_pattern": 3},
    **{"full_attention_interval": 3, "num_experts": 4, "num_local_experts": 4},
    **{"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 4},
    **{"intermediate_size": 1000, "n_shared_experts": 3, "num_experts_per_tok": 2},
    **{"use_qk_norm": True, "qk_layernorm": True, "sliding_window": 64},
    **{"mamba_expand": 3, "hybrid_override_pattern": "M*-E", "n_embed": 512},
}
"""Keys that a class may take though it has no field for them."""


def fields_of(family: str) -> dict[str, Any]:
    defaults = {}
    for item in dataclasses.fields(CONFIG_MAPPING[family]):
        if not SKIPPED.search(item.name):
            missing = item.default is dataclasses.MISSING
            defaults[item.name] = None if missing else item.default
    return defaults


def changed(value: Any, dice: Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return dice.choice([2 * value, value // 2, value + 1, 3 * value, None])
    if isinstance(value, float):
        return 2 * value
    return dice.choice([8, True, None, 16])


def changed_file(family: str, seed: int) -> dict[str, Any]:
    """A file of few layers with one to three keys changed, always the same."""
    dice, fields = Random(f"{family} {seed}"), fields_of(family)
    file: dict[str, Any] = {"model_type": family}
    file |= {key: 8 for key in LAYERS if isinstance(fields.get(key), int)}
    keys = [*fields] if dice.random() < 0.8 else [*OTHERS]
    for key in dice.sample(keys, dice.choice([1, 1, 2, 3])):
        file[key] = changed(fields[key], dice) if key in fields else OTHERS[key]
    if dice.random() < 0.2:
        kinds = ["full_attention", "sliding_attention", "linear_attention", "conv"]
        pair = dice.sample(kinds, 2)
        file["layer_types"] = [pair[i % 3 == 1] for i in range(8)]
    if dice.random() < 0.2 and "mlp_layer_types" in fields:
        file["mlp_layer_types"] = [dice.choice(["dense", "sparse"]) for _ in range(8)]
    return file


@every_family
def test_changed_files_are_never_silently_wrong(family: str) -> None:
    for seed in range(10):
        file = changed_file(family, seed)
        assert not verdict(file).startswith("wrong"), file


def test_changed_files_are_many_and_often_exact() -> None:
    assert 10 * len(FAMILIES) >= 1000
    some = [changed_file(family, 0) for family in [*FAMILIES][::4]]
    assert sum(verdict(file) == "exact" for file in some) >= len(some) // 3


@every_family
def test_each_key_of_a_familys_files_is_read_as_transformers_reads_it(family: str) -> None:
    """Another number, none, null, a switch turned: a key that it did not know would do nothing."""
    row = FAMILIES[family]
    few = {key: 8 for key in LAYERS if key in row.defaults}
    for key in [*row.defaults, *row.aliases]:
        default = row.defaults[row.aliases.get(key, key)]
        if isinstance(default, bool):
            values: list[Any] = [not default, None]
        else:
            values = [12, 0, None] if default is None or isinstance(default, int) else [None]
        own = {} if row.role(row.aliases.get(key, key)) == "num_layers" else few
        for value in values:
            file = {"model_type": family, **own, key: value}
            assert not verdict(file).startswith("wrong"), file


@every_family
def test_windows_are_where_transformers_has_them(family: str) -> None:
    few = {"model_type": family, "num_hidden_layers": 8, "max_window_layers": 3}
    used = {"sliding_window": 64, "use_sliding_window": True}
    for file in ({"model_type": family}, few | used, few | used | {"use_sliding_window": False}):
        try:
            model, kinds = Transformer.from_config(file), config_of(file).layer_types
        except Exception:  # refused by either, or no class that tells kinds
            continue
        looks = ["sliding_attention", "chunked_attention"]
        mixers = [layer.mixer for n, layer in model.layers for _ in range(n)]
        windows = [mixer is not None and bool(mixer.window) for mixer in mixers]
        assert not kinds or windows == [kind in looks for kind in kinds]


# --- a file under another family's name


def test_relabelled_files_give_no_silent_error_where_a_key_tells() -> None:
    unnoticed = set()
    for family in FAMILIES:
        if at_defaults(family) != "exact":
            continue
        file = config_of({"model_type": family}).to_dict()
        truth = count_parameters(Transformer.from_config({"model_type": family})).total
        file["architectures"] = None
        for other in {*FAMILIES} - {family}:
            try:
                model = Transformer.from_config({**file, "model_type": other})
            except ValueError:
                continue
            if abs(count_parameters(model).total / truth - 1) > 1e-3:
                unnoticed.add((family, other))
    assert unnoticed <= UNTOLD


UNTOLD = {("bitnet", "arcee"), ("bitnet", "nanochat"), ("qwen3_5_text", "olmo_hybrid")}
"""Files that say nothing which the other family's would not."""


# --- small ones, computed

SIZES = {
    **{"hidden_size": 64, "num_layers": 4, "num_heads": 4, "num_kv_heads": 2},
    **{"head_dim": 16, "intermediate_size": 48, "vocab_size": 96, "num_experts": 4},
    **{"experts_per_token": 2, "expert_size": 24, "shared_size": 40, "window": 5},
    **{"shared_experts": 1, "q_rank": 12, "kv_rank": 8, "plain_dim": 8, "chunk": 6},
    **{"rotary_dim": 8, "value_dim": 16, "sequence_length": 32, "num_positions": 32},
    **{"first_dense": 1, "linear_num_key_heads": 2, "linear_num_value_heads": 4},
    **{"linear_key_head_dim": 8, "linear_value_head_dim": 8, "max_window_layers": 2},
    **{"moe_layer_end_index": 3, "word_embed_proj_dim": 64, "block_multiple_of": 8},
    **{"dense_intermediate_size": 56, "intermediate_size_mlp": 56},
    **{"linear_conv_kernel_dim": 4, "conv_L_cache": 3, "conv1d_width": 4},
}


def small_file(family: str) -> dict[str, Any]:
    row, raw = FAMILIES[family], fields_of(family)
    file: dict[str, Any] = {"model_type": family}
    for key, default in row.defaults.items():
        if row.role(key) in SIZES and not isinstance(default, bool):
            file[key] = SIZES[row.role(key)]
    if hasattr(CONFIG_MAPPING[family], "pad_token_id"):
        file["pad_token_id"] = 0
    if "num_key_value_heads" in raw and "num_key_value_heads" not in file:
        file["num_key_value_heads"] = 4
    for key in {"rotary_dim", "n_group", "topk_group"} & {*raw}:
        file[key] = 8 if key == "rotary_dim" else 1
    if family == "gpt_neo":
        file["attention_types"] = [[["global", "local"], 2]]
    return file


def counted_forward(file: dict[str, Any], batch_size: int, s: int) -> int:
    """FLOPs of matrix products in a forward pass, but for the rotary angles."""
    net = transformers.AutoModelForCausalLM.from_config(
        config_of(file), attn_implementation="eager", experts_implementation="eager"
    )
    tokens = torch.randint(96, (batch_size, s))
    with torch.no_grad(), FlopCounterMode(display=False, depth=None) as counter:
        net.float().eval()(input_ids=tokens, use_cache=False)
    parts = counter.get_flop_counts().items()
    angles = [p for name, p in parts if name.split(".")[-1].startswith("rotary")]
    return int(counter.get_total_flops() - sum(sum(p.values()) for p in angles))


LEFT_OUT = {
    **dict.fromkeys(["mamba", "falcon_mamba", "mamba2", "jamba", "bamba"], "the scan"),
    **dict.fromkeys(["falcon_h1", "granitemoehybrid", "nemotron_h"], "the scan"),
    **dict.fromkeys(["qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"], "delta rule"),
    **dict.fromkeys(["olmo_hybrid", "kimi_linear", "bailing_hybrid"], "delta rule"),
    "minimax": "lightning attention's blocks",
    **dict.fromkeys(["recurrent_gemma", "lfm2", "lfm3"], "the convolution"),
    "llama4_text": "transformers computes all experts",
    "dots1": "its class cannot be made so small",
}
COMPUTED = [family for family in FAMILIES if family not in LEFT_OUT]


@pytest.mark.parametrize("family", COMPUTED)
def test_forward_flops_are_the_operator_counters(family: str) -> None:
    file = small_file(family)
    model = Transformer.from_config(file, sequence_length=16)
    assert count_flops(model, 2, "none").total == 3 * counted_forward(file, 2, 16)


def test_flops_of_many_families_are_computed() -> None:
    assert len(COMPUTED) >= 40


# --- what a token meets


def active(net: Any, chosen: int, experts: int) -> int:
    """Parameters without those of the experts that a token does not meet."""
    total = 0
    for name, parameter in net.named_parameters():
        of_experts = re.search(r"\bexperts\.(?!.*shared)", name.split("shared")[0])
        idle = of_experts and parameter.shape[0] == experts
        total += parameter.numel() * chosen // experts if idle else parameter.numel()
    return total


MIXTURES = [
    family
    for family, row in FAMILIES.items()
    if any(row.role(key) == "num_experts" for key in row.defaults) and family not in INCOMPLETE
]


@pytest.mark.parametrize("family", MIXTURES)
def test_active_parameters(family: str) -> None:
    model = Transformer.from_config({"model_type": family})
    net = built({"model_type": family})
    met = active(net, model.experts_per_token, model.num_experts)
    assert count_parameters(model).active == met < size(net)


# --- the table


def table() -> str:
    """Each family, whether it is exact or refused, and its parameters."""
    lines = []
    for family in DECODERS:
        result = at_defaults(family)
        net = built({"model_type": family})
        total = f"{size(net):,}" if net is not None else "cannot be built"
        lines.append(f"{family:24}{result:10}{total:>20}")
    counted = Counter(line.split()[1] for line in lines)
    return "\n".join([*lines, f"{len(lines)} families: {dict(counted)}"])


if __name__ == "__main__":
    print(table())
