"""Files config.json as published or changed, and the parameters that their weights have."""

from typing import Any

FILES = {
    "gpt2": """{"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
        "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1,
        "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
        "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12,
        "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": null,
        "summary_first_dropout": 0.1, "summary_proj_to_labels": true,
        "summary_type": "cls_index", "summary_use_proj": true, "task_specific_params":
        {"text-generation": {"do_sample": true, "max_length": 50}},
        "vocab_size": 50257}""",
    "Llama-3.1-8B": """{"architectures": ["LlamaForCausalLM"], "attention_bias": false,
        "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001,
        "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
        "intermediate_size": 14336, "max_position_embeddings": 131072,
        "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "pretraining_tp": 1,
        "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
        "rope_type": "llama3"}, "rope_theta": 500000.0, "tie_word_embeddings": false,
        "torch_dtype": "bfloat16", "transformers_version": "4.43.0.dev0",
        "use_cache": true, "vocab_size": 128256}""",
    "Mistral-7B": """{"architectures": ["MistralForCausalLM"], "bos_token_id": 1,
        "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096,
        "initializer_range": 0.02, "intermediate_size": 14336,
        "max_position_embeddings": 32768, "model_type": "mistral",
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096,
        "tie_word_embeddings": false, "torch_dtype": "bfloat16",
        "transformers_version": "4.34.0.dev0", "use_cache": true,
        "vocab_size": 32000}""",
    "Mixtral-8x7B": """{"architectures": ["MixtralForCausalLM"],
        "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
        "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
        "intermediate_size": 14336, "max_position_embeddings": 32768,
        "model_type": "mixtral", "num_attention_heads": 32, "num_experts_per_tok": 2,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
        "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
        "router_aux_loss_coef": 0.02, "sliding_window": null,
        "tie_word_embeddings": false, "torch_dtype": "bfloat16",
        "transformers_version": "4.36.0.dev0", "use_cache": true,
        "vocab_size": 32000}""",
    "Qwen2.5-7B": """{"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0,
        "bos_token_id": 151643, "eos_token_id": 151643, "hidden_act": "silu",
        "hidden_size": 3584, "initializer_range": 0.02, "intermediate_size": 18944,
        "max_position_embeddings": 131072, "max_window_layers": 28,
        "model_type": "qwen2", "num_attention_heads": 28, "num_hidden_layers": 28,
        "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
        "sliding_window": 131072, "tie_word_embeddings": false,
        "torch_dtype": "bfloat16", "transformers_version": "4.40.1", "use_cache": true,
        "use_mrope": false, "use_sliding_window": false, "vocab_size": 152064}""",
    "Qwen3-8B": """{"architectures": ["Qwen3ForCausalLM"], "attention_bias": false,
        "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645,
        "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096,
        "initializer_range": 0.02, "intermediate_size": 12288,
        "max_position_embeddings": 40960, "max_window_layers": 36,
        "model_type": "qwen3", "num_attention_heads": 32, "num_hidden_layers": 36,
        "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null,
        "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": false,
        "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true,
        "use_sliding_window": false, "vocab_size": 151936}""",
    "Qwen3-30B-A3B": """{"architectures": ["Qwen3MoeForCausalLM"],
        "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 151643,
        "decoder_sparse_step": 1, "eos_token_id": 151645, "head_dim": 128,
        "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
        "intermediate_size": 6144, "max_position_embeddings": 40960,
        "max_window_layers": 48, "mlp_only_layers": [], "model_type": "qwen3_moe",
        "moe_intermediate_size": 768, "norm_topk_prob": true,
        "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8,
        "num_hidden_layers": 48, "num_key_value_heads": 4,
        "output_router_logits": false, "rms_norm_eps": 1e-06, "rope_scaling": null,
        "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": null,
        "tie_word_embeddings": false, "torch_dtype": "bfloat16",
        "transformers_version": "4.51.0", "use_cache": true,
        "use_sliding_window": false, "vocab_size": 151936}""",
    "Qwen3-Coder-30B-A3B": """{"architectures": ["Qwen3MoeForCausalLM"],
        "attention_dropout": 0.0, "decoder_sparse_step": 1, "eos_token_id": 151645,
        "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048,
        "initializer_range": 0.02, "intermediate_size": 5472,
        "max_position_embeddings": 262144, "max_window_layers": 28,
        "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 768,
        "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
        "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
        "output_router_logits": false, "qkv_bias": false, "rms_norm_eps": 1e-06,
        "rope_scaling": null, "rope_theta": 10000000, "router_aux_loss_coef": 0.0,
        "shared_expert_intermediate_size": 0, "sliding_window": null,
        "tie_word_embeddings": false, "torch_dtype": "bfloat16",
        "transformers_version": "4.52.3", "use_cache": true, "use_qk_norm": true,
        "use_sliding_window": false, "vocab_size": 151936}""",
}

PARAMETERS = {
    "gpt2": 124439808,
    "Llama-3.1-8B": 8030261248,
    "Mistral-7B": 7241732096,
    "Mixtral-8x7B": 46702792704,
    "Qwen2.5-7B": 7615616512,
    "Qwen3-8B": 8190735360,
    "Qwen3-30B-A3B": 30532122624,
    "Qwen3-Coder-30B-A3B": 30532122624,
}

_FALCON = {"model_type": "falcon", "hidden_size": 64, "num_attention_heads": 8}
_FALCON |= {"num_hidden_layers": 2, "vocab_size": 96}
_BAILING = {
    **{"model_type": "bailing_hybrid", "hidden_size": 64, "num_attention_heads": 8},
    **{"num_hidden_layers": 7, "vocab_size": 96, "head_dim": 40, "pad_token_id": 0},
    **{"intermediate_size": 32, "moe_intermediate_size": 16, "num_experts": 4},
    **{"num_experts_per_tok": 2, "n_shared_experts": 1, "kv_lora_rank": 16},
    "layer_group_size": 6,
}
_QWEN = {
    **{"model_type": "qwen2_moe", "hidden_size": 64, "num_attention_heads": 8},
    **{"num_key_value_heads": 8, "num_hidden_layers": 6, "vocab_size": 96},
    **{"intermediate_size": 32, "moe_intermediate_size": 16, "num_experts": 4},
    **{"num_experts_per_tok": 2, "shared_expert_intermediate_size": 24},
}
_MELLUM = {
    **{"model_type": "mellum", "hidden_size": 64, "num_attention_heads": 8, "head_dim": 8},
    **{"num_key_value_heads": 4, "num_hidden_layers": 4, "vocab_size": 96},
    **{"intermediate_size": 32, "moe_intermediate_size": 16, "num_local_experts": 4},
    "num_experts_per_tok": 2,
}
_NEXT = {"model_type": "qwen3_next", "num_hidden_layers": 4, "vocab_size": 96}
_OLMO = {
    **{"model_type": "olmo_hybrid", "hidden_size": 64, "num_attention_heads": 8},
    **{"num_hidden_layers": 4, "vocab_size": 96, "intermediate_size": 32},
    **{"linear_conv_kernel_dim": 4, "pad_token_id": 0},
}
_OPT = {"model_type": "opt", "num_hidden_layers": 2, "vocab_size": 96}

BUILT: dict[str, tuple[dict[str, Any], int]] = {
    "falcon-40b": (
        {"model_type": "falcon", "hidden_size": 8192, "num_attention_heads": 128}
        | {"num_kv_heads": 8, "num_hidden_layers": 60, "new_decoder_architecture": True},
        41303293952,
    ),
    "a new Falcon with as many key-value heads": (
        _FALCON | {"new_decoder_architecture": True},
        105088,
    ),
    "an old Falcon whose key-value heads are read over": (
        _FALCON | {"multi_query": False, "num_kv_heads": 2},
        104832,
    ),
    "Kimi delta, heads as attention's": (_BAILING, 1071472),
    "Kimi delta, a size of its own": (_BAILING | {"linear_head_dim": 16}, 613984),
    "Kimi delta, heads of its own": (_BAILING | {"linear_num_heads": 3}, 593122),
    "Kimi delta, a kernel of its own": (_BAILING | {"linear_conv_kernel_dim": 5}, 1077232),
    "experts in every second layer": (_QWEN | {"decoder_sparse_step": 2}, 182656),
    "experts in every third layer": (_QWEN | {"decoder_sparse_step": 3}, 171584),
    "experts but in the second layer": (_QWEN | {"mlp_only_layers": [1]}, 204800),
    "experts in every second layer but one": (
        _QWEN | {"decoder_sparse_step": 2, "mlp_only_layers": [1]},
        171584,
    ),
    "a shared expert of no size, and its gate": (
        {"model_type": "qwen2_moe", "num_hidden_layers": 4, "vocab_size": 96}
        | {"shared_expert_intermediate_size": 0},
        2144225280,
    ),
    "attention and delta rule, as the file names them": (
        _NEXT | {"layer_types": ["linear_attention"] + ["full_attention"] * 3},
        6575156928,
    ),
    "OLMo's delta rule by the hidden size": (_OLMO, 133140),
    "OLMo's delta rule, heads of its own": (
        _OLMO | {"linear_num_key_heads": 2, "linear_num_value_heads": 4},
        188136,
    ),
    "OLMo's delta rule, sizes of its own": (
        _OLMO | {"linear_key_head_dim": 10, "linear_value_head_dim": 12},
        146196,
    ),
    "experts in the layer that the file names": (
        _MELLUM | {"mlp_layer_types": ["sparse", "dense", "dense", "dense"]},
        93056,
    ),
    "experts in no layer that the file names": (
        _MELLUM | {"mlp_layer_types": ["dense"] * 4},
        86656,
    ),
    "opt-350m, with norms after": (
        {"model_type": "opt", "vocab_size": 50272, "hidden_size": 1024, "ffn_dim": 4096}
        | {"num_hidden_layers": 24, "num_attention_heads": 16, "word_embed_proj_dim": 512}
        | {"max_position_embeddings": 2048, "do_layer_norm_before": False},
        331196416,
    ),
    "OPT without its last norm": (_OPT | {"_remove_final_layer_norm": True}, 15823872),
    "OPT with its last norm": (_OPT, 15825408),
}
"""Published files, and small ones of a few layers, with what transformers 5.23 builds of them."""
