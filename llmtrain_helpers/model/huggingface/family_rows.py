"""The rows of `families`: what each `model_type` of a `config.json` means, a row each.

A row is a name and words. What it leaves out is as in a Llama, whose keys
`families` lists. This one, of a family that there is not, has every sign once:

mini                            the `model_type` of the files
MiniMoe                         class whose parameters are counted: MiniMoeForCausalLM
-head_dim                       -key: a Llama's key that these files do not have
hidden_size=2048                key=default: a key, and its value where it is left out
tie_word_embeddings=True
attention_bias=False
n_positions=1024
num_experts=8
num_experts_per_tok=2
layers_in_period=4
num_local_experts>num_experts   spelling>key: a second name for one of the keys
attention_bias+qkvo             key+letters: a key that brings these biases
hidden_act!relu2                key!value: the one value that is known of a key
n_positions:sequence_length     key:name: what a key stands for, where it does not say so
~norm_topk_prob                 ~key: a key that changes no matrix
.gated=no                       .trait=value: a trait of `families.Family`
.sinks                          .trait: the same as .trait=True
.norms=@three_with_experts      .trait=@rule: a function of `rules`, or of `makers`
.kinds=@full_every:layers_in_period:linear_attention   :value: what a rule is made with
linear_attention@lightning_attention                   kind@rule: what makes the mixer

A row with `^llama` behind its class begins with all the words of that row, which stands
above: a word of its own then takes the place of what it contradicts, and -key takes away
any key of that row.

Source: the configuration and modelling classes of Hugging Face transformers 5.23.
"""

ROWS = """
llama Llama ~attention_probs_dropout_prob ~hidden_dropout ~hidden_dropout_prob
    ~layer_norm_eps ~layer_norm_epsilon ~norm_topk_prob
    ~original_max_position_embeddings ~qk_norm ~qkv_bias ~router_jitter_noise
    ~use_qk_norm .null_is_default .any_kinds
gpt2 GPT2LMHeadModel ^llama -num_hidden_layers -hidden_size -num_attention_heads
    -num_key_value_heads -head_dim -intermediate_size -max_position_embeddings
    vocab_size=50257 tie_word_embeddings=True n_layer=12 n_embd=768 n_head=12
    n_inner=None n_positions=1024 hidden_size>n_embd max_position_embeddings>n_positions
    num_attention_heads>n_head num_hidden_layers>n_layer .norm_size=2 .gated=no
    .bias=qkvom .dense_size=@four_times_hidden_size .any_act ~attn_pdrop ~embd_pdrop
    ~scale_attn_weights ~summary_type
mistral Mistral ^llama num_key_value_heads=8 intermediate_size=14336
    max_position_embeddings=131072 sliding_window=4096 .kinds=@sliding_if_window
mixtral Mixtral ^mistral num_local_experts=8 num_experts_per_tok=2 sliding_window=None
    num_experts>num_local_experts
qwen2 Qwen2 ^mistral num_key_value_heads=32 intermediate_size=22016 vocab_size=151936
    max_position_embeddings=32768 use_sliding_window=False max_window_layers=28
    layer_types=None .bias=qkv .kinds=@sliding_from_max_window_layers
qwen3 Qwen3 ^qwen2 head_dim=128 .bias='' .qk_norm=head
qwen3_moe Qwen3Moe ^qwen3 -max_window_layers -layer_types num_hidden_layers=24
    hidden_size=2048 num_key_value_heads=4 intermediate_size=6144 num_local_experts=128
    num_experts_per_tok=8 moe_intermediate_size=768 num_experts>num_local_experts
    .kinds=@sliding_if_window head_dim=None
afmoe Afmoe hidden_size=2048 num_attention_heads=16 head_dim=128 intermediate_size=6144
    vocab_size=200192 max_position_embeddings=16384 num_dense_layers=1
    moe_intermediate_size=1408 num_experts=64 num_experts_per_tok=6 num_shared_experts=2
    global_attn_every_n_layers=4 attention_bias=False sliding_window=1024
    layer_types=None attention_bias+qkvo .norms=4 .qk_norm=head .gate=values
    .kinds=@full_every:global_attn_every_n_layers .sparse=@experts_after_first_dense
    .score_correction ~mup_enabled ~route_scale
apertus Apertus intermediate_size=14336 vocab_size=131072 max_position_embeddings=65536
    attention_bias=False attention_bias+qkvo .gated=no .qk_norm=head .mlp_more=2
    hidden_act!xielu
arcee Arcee hidden_size=2560 intermediate_size=18432 max_position_embeddings=4096
    attention_bias=False mlp_bias=False attention_bias+qkvo mlp_bias+m .gated=no
    hidden_act!relu2
aria_text AriaText intermediate_size=4096 attention_bias=False mlp_bias=False
    moe_num_experts=8 moe_topk=2 moe_num_shared_experts=2 attention_bias+qkvo mlp_bias+s
axk1 AXK1 -num_key_value_heads -head_dim num_hidden_layers=61 hidden_size=7168
    num_attention_heads=64 intermediate_size=18432 vocab_size=163840
    max_position_embeddings=32768 attention_bias=False q_lora_rank=1536 kv_lora_rank=512
    qk_nope_head_dim=128 qk_rope_head_dim=64 v_head_dim=128 n_routed_experts=192
    num_experts_per_tok=8 moe_intermediate_size=2048 n_shared_experts=1
    mlp_layer_types=None first_k_dense_replace=1 moe_layer_freq=1
    num_local_experts>n_routed_experts attention_bias+a .norms=@three_with_experts
    .sparse=@experts_after_first_dense_by_moe_layer_freq ~head_dim ~n_group
    ~norm_topk_prob ~num_key_value_heads ~qk_head_dim ~rope_interleave
    ~routed_scaling_factor
bailing_hybrid BailingHybrid -num_key_value_heads num_hidden_layers=42 hidden_size=2560
    head_dim=128 intermediate_size=6144 vocab_size=157184 max_position_embeddings=262144
    num_experts=512 num_experts_per_tok=8 moe_intermediate_size=768 n_shared_experts=1
    kv_lora_rank=512 qk_nope_head_dim=128 qk_rope_head_dim=64 v_head_dim=128
    attention_bias=False layer_group_size=6 short_conv_kernel_size=4
    linear_head_dim=None linear_num_heads=None linear_conv_kernel_dim=None
    first_k_dense_replace=2 layer_types=None mlp_layer_types=None
    num_local_experts>num_experts model_max_length>max_position_embeddings
    num_experts_per_token>num_experts_per_tok num_shared_experts>n_shared_experts
    attention_bias!False .kinds=@full_every:layer_group_size:linear_attention
    .attention_kinds=full_attention full_attention@latent_attention_with_head_gates
    linear_attention@kimi_delta_attention_full_rank .sparse=@experts_after_first_dense
    tie_word_embeddings!False ~n_group ~norm_topk_prob ~num_expert_group
    ~num_key_value_heads ~num_nextn_predict_layers ~qk_head_dim ~routed_scaling_factor
bamba Bamba num_key_value_heads=8 intermediate_size=14336 vocab_size=128000
    max_position_embeddings=262144 attention_bias=False mlp_bias=False
    attn_layer_indices=None mamba_n_heads=128 mamba_n_groups=1 mamba_d_state=256
    mamba_d_conv=4 mamba_expand=2 mamba_conv_bias=True mamba_proj_bias=False
    attention_bias+qkvo mlp_bias+m .kinds=@full_in_attn_layer_indices
    linear_attention@mamba2 ~mamba_chunk_size ~mamba_d_head ~time_step_limit
    ~z_loss_coefficient
beam Beam num_hidden_layers=52 hidden_size=5120 num_attention_heads=48
    num_key_value_heads=8 head_dim=128 intermediate_size=20480 vocab_size=151936
    max_position_embeddings=8192 attention_bias=False sliding_window=512
    layer_types=None num_experts=256 num_experts_per_tok=8 moe_intermediate_size=2560
    mlp_layer_types=None attention_bias+qkvo .norms=4 .qk_norm=head .gate=values
    .mixer_more=@one_per_head .kinds=@full_every_sixth_and_last
    .sparse=@experts_from_layer:3 ~final_logit_softcapping ~n_group ~norm_topk_prob
    ~routed_scaling_factor
biogpt BioGpt -num_key_value_heads -head_dim num_hidden_layers=24 hidden_size=1024
    num_attention_heads=16 intermediate_size=4096 vocab_size=42384
    max_position_embeddings=1024 tie_word_embeddings=True .norm_size=2 .gated=no
    .bias=qkvom .positions=2 ~attention_probs_dropout_prob ~hidden_dropout_prob
    ~layerdrop ~scale_embedding
bitnet BitNet -head_dim num_hidden_layers=30 hidden_size=2560 num_attention_heads=20
    num_key_value_heads=5 intermediate_size=6912 vocab_size=128256 attention_bias=False
    attention_bias+qkvo .inner_norms .any_act hidden_act!relu2
bloom Bloom -num_hidden_layers -num_attention_heads -num_key_value_heads -head_dim
    -intermediate_size -max_position_embeddings hidden_size=64 vocab_size=250880
    tie_word_embeddings=True n_layer=2 n_head=8 num_hidden_layers>n_layer
    num_attention_heads>n_head n_embed>hidden_size .norm_size=2 .gated=no .bias=qkvom
    .embedding_norm=2 .dense_size=@four_times_hidden_size
    ~apply_residual_connection_post_layernorm ~slow_but_exact
codegen CodeGen -num_hidden_layers -hidden_size -num_attention_heads
    -num_key_value_heads -head_dim -intermediate_size -max_position_embeddings
    vocab_size=50400 n_layer=28 n_embd=4096 n_head=16 n_inner=None n_positions=2048
    max_position_embeddings>n_positions hidden_size>n_embd num_attention_heads>n_head
    num_hidden_layers>n_layer n_positions:sequence_length .norm_size=2 .norms=1
    .parallel .gated=no .bias=mh .dense_size=@four_times_hidden_size ~attn_pdrop
    ~embd_pdrop ~rotary_dim
cohere Cohere num_hidden_layers=40 hidden_size=8192 num_attention_heads=64
    intermediate_size=22528 vocab_size=256000 max_position_embeddings=8192
    tie_word_embeddings=True attention_bias=False use_qk_norm=False attention_bias+qkvo
    .norms=1 .parallel .qk_norm=each .qk_norm_if=use_qk_norm ~layer_norm_eps
    ~logit_scale
cohere2 Cohere2 num_hidden_layers=40 hidden_size=8192 num_attention_heads=64
    intermediate_size=22528 vocab_size=256000 max_position_embeddings=8192
    tie_word_embeddings=True attention_bias=False sliding_window=4096 layer_types=None
    sliding_window_pattern=4 attention_bias+qkvo .norms=1 .parallel
    .kinds=@full_every:sliding_window_pattern ~layer_norm_eps ~logit_scale
cohere2_moe Cohere2Moe ^cohere2 head_dim=128 num_experts=8 num_experts_per_tok=2
    num_shared_experts=0 first_k_dense_replace=0 mlp_layer_types=None
    prefix_dense_intermediate_size=None prefix_dense_sliding_window_pattern=1
    .kinds=@cohere2_moe_kinds .sparse=@experts_after_first_dense
    .dense_size=@prefix_dense_or_intermediate_size ~norm_topk_prob
    ~shared_expert_combination_strategy
ctrl CTRLLMHeadModel -num_hidden_layers -hidden_size -num_attention_heads
    -num_key_value_heads -head_dim -intermediate_size -max_position_embeddings
    vocab_size=246534 tie_word_embeddings=True n_layer=48 n_embd=1280 n_head=16 dff=8192
    n_positions=256 max_position_embeddings>n_positions hidden_size>n_embd
    num_attention_heads>n_head num_hidden_layers>n_layer n_positions:sequence_length
    .norm_size=2 .gated=no .bias=qkvomh ~embd_pdrop
cwm Cwm num_hidden_layers=64 hidden_size=6144 num_attention_heads=48
    num_key_value_heads=8 head_dim=128 intermediate_size=21504 vocab_size=128256
    max_position_embeddings=131072 mlp_bias=False sliding_window=8192 layer_types=None
    mlp_bias+m .kinds=@full_first_of_every:4
deepseek_v2 DeepseekV2 -num_key_value_heads -head_dim vocab_size=102400
    attention_bias=False mlp_bias=False q_lora_rank=1536 kv_lora_rank=512
    qk_nope_head_dim=128 qk_rope_head_dim=64 v_head_dim=128 n_routed_experts=64
    num_experts_per_tok=None moe_intermediate_size=1407 n_shared_experts=2
    first_k_dense_replace=0 num_experts>n_routed_experts attention_bias+a mlp_bias+ms
    moe_layer_freq!1 .sparse=@experts_after_first_dense ~head_dim ~n_group
    ~norm_topk_prob ~num_key_value_heads ~qk_head_dim ~routed_scaling_factor
deepseek_v3 DeepseekV3 -num_key_value_heads -head_dim num_hidden_layers=61
    hidden_size=7168 num_attention_heads=128 intermediate_size=18432 vocab_size=129280
    max_position_embeddings=4096 attention_bias=False q_lora_rank=1536 kv_lora_rank=512
    qk_nope_head_dim=128 qk_rope_head_dim=64 v_head_dim=128 n_routed_experts=256
    num_experts_per_tok=8 moe_intermediate_size=2048 n_shared_experts=1
    first_k_dense_replace=3 num_local_experts>n_routed_experts attention_bias+a
    .sparse=@experts_after_first_dense ~head_dim ~n_group ~norm_topk_prob
    ~num_key_value_heads num_nextn_predict_layers=0 moe_layer_freq!1 ~qk_head_dim
    ~rope_interleave ~routed_scaling_factor
diffllama DiffLlama num_hidden_layers=16 hidden_size=2048 intermediate_size=8192
    attention_bias=False attention_bias+qkvo .differential
    .mixer_more=@four_vectors_of_head_dim ~lambda_std_dev
dots1 Dots1 num_hidden_layers=62 hidden_size=4608 num_key_value_heads=32
    intermediate_size=10944 vocab_size=152064 attention_bias=False n_routed_experts=None
    num_experts_per_tok=None moe_intermediate_size=1408 n_shared_experts=None
    first_k_dense_replace=0 max_window_layers=62 sliding_window=4096 layer_types=None
    num_local_experts>n_routed_experts attention_bias+qkvo .qk_norm=head
    .kinds=@sliding_from_max_window_layers .sparse=@experts_after_first_dense
    ~n_group ~norm_topk_prob ~routed_scaling_factor
ernie4_5 Ernie4_5 num_hidden_layers=18 hidden_size=1024 num_attention_heads=16
    num_key_value_heads=2 head_dim=128 intermediate_size=3072 vocab_size=103424
    max_position_embeddings=131072 tie_word_embeddings=True use_bias=False
    use_bias+qkvom
ernie4_5_moe Ernie4_5_Moe num_hidden_layers=28 hidden_size=2560 num_attention_heads=20
    num_key_value_heads=4 intermediate_size=12288 vocab_size=103424
    max_position_embeddings=131072 tie_word_embeddings=True use_bias=False
    moe_num_experts=64 moe_k=6 moe_intermediate_size=1536 moe_num_shared_experts=2
    moe_layer_start_index=1 moe_layer_end_index=-1 moe_layer_interval=1
    num_experts>moe_num_experts num_experts_per_tok>moe_k use_bias+qkvomsh
    .sparse=@experts_between_moe_layer_indices .score_correction
exaone4 Exaone4 num_key_value_heads=32 intermediate_size=16384 vocab_size=102400
    sliding_window=4096 layer_types=None sliding_window_pattern=4 .qk_norm=head
    .kinds=@full_every_sliding_window_pattern_if_window
exaone_moe ExaoneMoe ^exaone4 num_experts=64 num_experts_per_tok=8
    moe_intermediate_size=1024 num_shared_experts=1 first_k_dense_replace=1
    mlp_layer_types=None .sparse=@experts_after_first_dense ~n_group ~norm_topk_prob
    ~routed_scaling_factor
falcon Falcon -num_key_value_heads -head_dim -intermediate_size hidden_size=4544
    num_attention_heads=71 vocab_size=65024 tie_word_embeddings=True num_kv_heads=None
    ffn_hidden_size=None bias=False multi_query=True new_decoder_architecture=False
    parallel_attn=True num_ln_in_parallel_attn=None n_embed>hidden_size bias+qkvom
    .norm_size=2 .norms=@falcon_norms .parallel=parallel_attn .gated=no
    .dense_size=@four_times_hidden_size full_attention@falcon_attention
falcon_h1 FalconH1 num_key_value_heads=8 intermediate_size=14336 vocab_size=128000
    max_position_embeddings=8192 attention_bias=False mlp_bias=False mamba_d_ssm=1024
    mamba_n_heads=128 mamba_n_groups=1 mamba_d_state=256 mamba_d_conv=4 mamba_expand=2
    mamba_conv_bias=True mamba_proj_bias=False projectors_bias=False
    mamba_rms_norm=False attention_bias+qkvo mlp_bias+m .stack=@attention_beside_mamba2
    ~embedding_multiplier ~mamba_chunk_size ~mamba_d_head ~mamba_norm_before_gate
    ~ssm_in_multiplier ~ssm_multipliers ~ssm_out_multiplier ~time_step_limit
falcon_mamba FalconMamba -num_attention_heads -num_key_value_heads -head_dim
    -max_position_embeddings hidden_size=768 vocab_size=50280 tie_word_embeddings=True
    state_size=16 expand=2 conv_kernel=4 use_bias=False use_conv_bias=True
    time_step_rank=auto intermediate_size=None .norms=1 .kinds=linear_attention
    linear_attention@mamba .mlp=no ~layer_norm_epsilon ~residual_in_fp32
flex_olmo FlexOlmo vocab_size=100352 max_position_embeddings=4096 attention_bias=False
    num_experts=7 num_experts_per_tok=5 num_local_experts>num_experts
    attention_bias+qkvo .qk_norm=each ~norm_topk_prob
flint Flint num_hidden_layers=49 hidden_size=2048 num_key_value_heads=4 head_dim=128
    intermediate_size=6144 vocab_size=150144 max_position_embeddings=262144
    attention_bias=False sliding_window=513 layer_types=None num_experts=256
    num_experts_per_tok=6 moe_intermediate_size=512 shared_expert_intermediate_size=1024
    mlp_only_layers=[0,1] decoder_sparse_step=1 attention_bias+qkvo .qk_norm=head .sinks
    .kinds=@flint_kinds .sparse=@experts_by_decoder_sparse_step ~norm_topk_prob
gemma Gemma num_hidden_layers=28 hidden_size=3072 num_attention_heads=16
    num_key_value_heads=16 head_dim=256 intermediate_size=24576 vocab_size=256000
    max_position_embeddings=8192 tie_word_embeddings=True attention_bias=False
    attention_bias+qkvo
gemma2 Gemma2 ^gemma num_hidden_layers=26 hidden_size=2304 num_attention_heads=8
    num_key_value_heads=4 intermediate_size=9216 sliding_window=4096 layer_types=None
    .norms=4 .kinds=@full_every:2 ~attn_logit_softcapping ~final_logit_softcapping
    ~query_pre_attn_scalar
gemma3_text Gemma3 ^gemma2 vocab_size=262208 max_position_embeddings=131072
    sliding_window_pattern=6 .qk_norm=head .kinds=@full_every:sliding_window_pattern
glm Glm num_hidden_layers=40 num_key_value_heads=2 head_dim=128 intermediate_size=13696
    vocab_size=151552 max_position_embeddings=131072 attention_bias=True
    attention_bias+qkv
glm4 Glm4 ^glm .norms=4
glm4_moe Glm4Moe num_hidden_layers=46 num_attention_heads=96 num_key_value_heads=8
    intermediate_size=10944 vocab_size=151552 max_position_embeddings=131072
    attention_bias=False use_qk_norm=False first_k_dense_replace=1 n_routed_experts=128
    num_experts_per_tok=8 moe_intermediate_size=1408 n_shared_experts=1
    num_local_experts>n_routed_experts attention_bias+qkv .rounds_head_dim .qk_norm=head
    .qk_norm_if=use_qk_norm .sparse=@experts_after_first_dense ~n_group ~norm_topk_prob
    num_nextn_predict_layers=0 ~routed_scaling_factor
glm4_moe_lite Glm4MoeLite -num_key_value_heads -head_dim num_hidden_layers=47
    hidden_size=2048 num_attention_heads=20 intermediate_size=10240 vocab_size=154880
    max_position_embeddings=202752 attention_bias=False q_lora_rank=768 kv_lora_rank=512
    qk_nope_head_dim=192 qk_rope_head_dim=64 v_head_dim=256 n_routed_experts=64
    num_experts_per_tok=4 moe_intermediate_size=1536 n_shared_experts=1
    mlp_layer_types=None num_local_experts>n_routed_experts head_dim>qk_rope_head_dim
    attention_bias+a .sparse=@experts_from_layer:1 ~n_group ~norm_topk_prob
    ~num_key_value_heads ~qk_head_dim ~rope_interleave ~routed_scaling_factor
gpt-sw3 GPT2LMHeadModel -num_hidden_layers -hidden_size -num_attention_heads
    -num_key_value_heads -head_dim -intermediate_size -max_position_embeddings
    vocab_size=50257 tie_word_embeddings=True n_layer=12 n_embd=768 n_head=12
    n_inner=None n_positions=1024 hidden_size>n_embd max_position_embeddings>n_positions
    num_attention_heads>n_head num_hidden_layers>n_layer .norm_size=2 .gated=no
    .bias=qkvom .dense_size=@four_times_hidden_size ~attn_pdrop ~embd_pdrop
    ~scale_attn_weights ~summary_type
gpt_bigcode GPTBigCode -num_hidden_layers -hidden_size -num_attention_heads
    -num_key_value_heads -head_dim -intermediate_size -max_position_embeddings
    vocab_size=50257 tie_word_embeddings=True n_layer=12 n_embd=768 n_head=12
    n_inner=None n_positions=1024 multi_query=True hidden_size>n_embd
    max_position_embeddings>n_positions num_attention_heads>n_head
    num_hidden_layers>n_layer .norm_size=2 .gated=no .bias=qkvom
    .dense_size=@four_times_hidden_size full_attention@bigcode_attention ~attn_pdrop
    ~embd_pdrop ~num_key_value_heads ~scale_attn_weights
gpt_neo GPTNeo -num_hidden_layers -num_attention_heads -num_key_value_heads -head_dim
    hidden_size=2048 intermediate_size=None vocab_size=50257 tie_word_embeddings=True
    num_layers=24 num_heads=16 window_size=256 attention_layers=None
    num_attention_heads>num_heads num_hidden_layers>num_layers .norm_size=2 .gated=no
    .bias=om .positions=0 .kinds=@gpt_neo_kinds .dense_size=@four_times_hidden_size
gpt_neox GPTNeoX -num_key_value_heads -head_dim num_hidden_layers=44 hidden_size=6144
    num_attention_heads=64 intermediate_size=24576 vocab_size=50432 attention_bias=True
    use_parallel_residual=True attention_bias+qkvo .bias=m .norm_size=2
    .parallel=use_parallel_residual .gated=no
gpt_neox_japanese GPTNeoXJapanese -num_key_value_heads -head_dim -intermediate_size
    hidden_size=2560 tie_word_embeddings=True intermediate_multiple_size=4 .norm_size=2
    .gated=no .dense_size=@multiple_of_hidden_size .more=@output_bias_of_last_layer
gpt_oss GptOss num_hidden_layers=36 hidden_size=2880 num_attention_heads=64
    num_key_value_heads=8 head_dim=64 intermediate_size=2880 vocab_size=201088
    max_position_embeddings=131072 attention_bias=True sliding_window=128
    layer_types=None num_local_experts=128 num_experts_per_tok=4
    num_experts>num_local_experts experts_per_token>num_experts_per_tok
    attention_bias+qkvo .bias=er .sinks .kinds=@full_every:2 ~swiglu_limit
gptj GPTJ ^codegen
granite Granite attention_bias=False mlp_bias=False attention_bias+qkvo mlp_bias+m
    ~attention_multiplier ~embedding_multiplier ~logits_scaling ~residual_multiplier
granite_swa GraniteSWA num_hidden_layers=24 hidden_size=2560 num_attention_heads=20
    num_key_value_heads=4 intermediate_size=8192 vocab_size=100352
    max_position_embeddings=8192 tie_word_embeddings=True attention_bias=False
    mlp_bias=False sliding_window=128 layer_types=None attention_bias+qkvo mlp_bias+m
    .sinks .kinds=@full_first_of_every:4 ~attention_multiplier ~embedding_multiplier
    ~layer_rope_theta ~logits_scaling ~residual_multiplier
granitemoe GraniteMoe attention_bias=False num_local_experts=8 num_experts_per_tok=2
    attention_bias+qkvo ~attention_multiplier ~embedding_multiplier ~logits_scaling
    ~residual_multiplier
granitemoe_swa GraniteMoeSWA ^granitemoe shared_intermediate_size=0 sliding_window=128
    layer_types=None .sinks .kinds=@full_first_of_every:4 ~layer_rope_theta
granitemoehybrid GraniteMoeHybrid ^granitemoe shared_intermediate_size=1024
    layer_types=None mamba_n_heads=128 mamba_n_groups=1 mamba_d_state=256 mamba_d_conv=4
    mamba_expand=2 mamba_conv_bias=True mamba_proj_bias=False
    layers_block_type>layer_types .kinds=linear_attention linear_attention@mamba2
    .dense_size=@value_of:shared_size ~mamba_chunk_size ~mamba_d_head ~time_step_limit
granitemoeshared GraniteMoeShared ^granitemoe shared_intermediate_size=0
helium Helium num_hidden_layers=24 hidden_size=2560 num_attention_heads=20
    num_key_value_heads=20 head_dim=128 intermediate_size=7040 vocab_size=48000
    max_position_embeddings=4096 attention_bias=False mlp_bias=False attention_bias+qkv
    mlp_bias+m full_attention@helium_attention
hy_v3 HYV3 num_hidden_layers=80 num_attention_heads=64 num_key_value_heads=8
    head_dim=128 intermediate_size=13312 vocab_size=120832
    max_position_embeddings=131072 attention_bias=False mlp_bias=False num_experts=192
    num_experts_per_tok=8 num_shared_experts=1 moe_intermediate_size=1536
    mlp_layer_types=None num_local_experts>num_experts attention_bias+qkvo mlp_bias+ms
    num_shared_experts!1 .qk_norm=head .sparse=@experts_from_layer:1
    ~enable_moe_fp32_combine
hyperclovax HyperCLOVAX ^granite use_post_norm=True .norms=@four_if_use_post_norm
internlm3 Llama num_hidden_layers=48 num_key_value_heads=2 head_dim=128
    intermediate_size=10240 vocab_size=128512 max_position_embeddings=32768
    attention_bias=False mlp_bias=False qkv_bias>attention_bias bias>mlp_bias
    attention_bias+qkvo mlp_bias+m
iquestcoder Llama num_hidden_layers=80 hidden_size=5120 num_attention_heads=40
    num_key_value_heads=8 head_dim=128 intermediate_size=27648 vocab_size=76800
    max_position_embeddings=131072 attention_bias=False mlp_bias=False
    attention_bias+qkvo mlp_bias+m
jais2 Jais2 hidden_size=3328 num_attention_heads=26 intermediate_size=26624
    vocab_size=150272 max_position_embeddings=8192 attention_bias=True mlp_bias=True
    attention_bias+qkvo mlp_bias+m .norm_size=2 .gated=no hidden_act!relu2
jamba Jamba num_key_value_heads=8 intermediate_size=14336 vocab_size=65536
    max_position_embeddings=262144 num_experts=16 num_experts_per_tok=2
    expert_layer_period=2 expert_layer_offset=1 attn_layer_period=8 attn_layer_offset=4
    mamba_d_state=16 mamba_d_conv=4 mamba_expand=2 mamba_dt_rank=auto
    mamba_conv_bias=True mamba_proj_bias=False num_local_experts>num_experts
    .kinds=@jamba_kinds linear_attention@mamba_with_norms .sparse=@jamba_experts
    ~use_mamba_kernels
kimi_linear KimiLinear -num_key_value_heads -head_dim num_hidden_layers=27
    hidden_size=2304 intermediate_size=9216 vocab_size=163840
    max_position_embeddings=1048576 num_experts=256 num_experts_per_tok=8
    moe_intermediate_size=1024 n_shared_experts=1 q_lora_rank=None kv_lora_rank=512
    qk_nope_head_dim=128 qk_rope_head_dim=64 v_head_dim=128 attention_bias=False
    linear_head_dim=128 linear_num_heads=32 linear_conv_kernel_dim=4 layer_types=None
    mlp_layer_types=None first_k_dense_replace=1 num_local_experts>num_experts
    model_max_length>max_position_embeddings num_experts_per_token>num_experts_per_tok
    num_shared_experts>n_shared_experts attention_bias+a .kinds=@kimi_linear_kinds
    .attention_kinds=full_attention linear_attention@kimi_delta_attention
    .sparse=@experts_after_first_dense tie_word_embeddings!False ~head_dim ~n_group
    ~norm_topk_prob ~num_expert_group ~num_key_value_heads ~qk_head_dim
    ~routed_scaling_factor
kolibri1 Kolibri1 -intermediate_size num_hidden_layers=50 hidden_size=2560
    num_attention_heads=48 num_key_value_heads=4 head_dim=128 vocab_size=128000
    max_position_embeddings=262144 sliding_window=513 layer_types=None
    num_local_experts=384 num_experts_per_tok=6 moe_intermediate_size=512
    shared_expert_intermediate_size=512 num_experts>num_local_experts .norms=4
    .qk_norm=head .kinds=@full_every:5 ~norm_topk_prob
laguna Laguna num_hidden_layers=40 hidden_size=2048 num_attention_heads=48
    num_key_value_heads=8 head_dim=128 intermediate_size=8192 vocab_size=100352
    max_position_embeddings=131072 attention_bias=False sliding_window=512
    layer_types=None num_experts=256 num_experts_per_tok=8 moe_intermediate_size=512
    shared_expert_intermediate_size=512 mlp_layer_types=None attention_bias+qkvo
    gating!True .qk_norm=head .gate=heads .sparse=@experts_from_layer:1
    .score_correction ~moe_routed_scaling_factor ~num_attention_heads_per_layer
lfm2 Lfm2 hidden_size=2560 num_key_value_heads=8 intermediate_size=12288
    vocab_size=65536 max_position_embeddings=128000 tie_word_embeddings=True
    conv_bias=False conv_L_cache=3 block_multiple_of=256 block_ffn_dim_multiplier=1.0
    block_auto_adjust_ff_dim=True full_attn_idxs=None layer_types=None
    tie_embedding>tie_word_embeddings block_ff_dim>intermediate_size .qk_norm=head
    .kinds=@lfm2_kinds conv@short_convolution .dense_size=@lfm2_intermediate_size
    ~norm_eps
lfm3 Lfm3 num_hidden_layers=24 hidden_size=2048 num_attention_heads=16
    num_key_value_heads=4 head_dim=128 intermediate_size=7680 vocab_size=128000
    max_position_embeddings=128000 tie_word_embeddings=True attention_bias=False
    conv_bias=False conv_L_cache=7 use_sandwich_norm=True use_attention_gate=True
    sliding_window=256 layer_types=None attention_bias+qkvo use_attention_gate!True
    use_sandwich_norm!True .norms=4 .qk_norm=head .gate=heads .kinds=@lfm3_kinds
    conv@short_convolution ~norm_eps
llama4_text Llama4 num_hidden_layers=48 hidden_size=5120 num_attention_heads=40
    num_key_value_heads=8 head_dim=128 intermediate_size=8192 vocab_size=202048
    max_position_embeddings=131072 attention_bias=False num_local_experts=16
    num_experts_per_tok=1 intermediate_size_mlp=16384 moe_layers=None
    interleave_moe_layer_step=1 attention_chunk_size=8192 layer_types=None
    no_rope_layer_interval=4 attention_bias+qkvo .kinds=@llama4_kinds
    .attention_kinds=full_attention,chunked_attention .sparse=@llama4_experts
    .dense_size=@value_of:intermediate_size_mlp .always_shared ~attn_temperature_tuning
    ~router_jitter_noise ~use_qk_norm
mamba Mamba ^falcon_mamba
mamba2 Mamba2 -num_attention_heads -num_key_value_heads -intermediate_size
    -max_position_embeddings num_hidden_layers=64 head_dim=64 vocab_size=32768
    state_size=128 expand=2 conv_kernel=4 use_bias=False use_conv_bias=True
    num_heads=128 n_groups=8 num_heads:state_heads .norms=1 .kinds=linear_attention
    linear_attention@plain_mamba2 .mlp=no ~layer_norm_epsilon ~residual_in_fp32
    ~time_step_limit ~time_step_rank
mellum Mellum num_hidden_layers=28 hidden_size=2304 num_key_value_heads=4 head_dim=128
    intermediate_size=7168 vocab_size=98304 max_position_embeddings=131072
    attention_bias=False sliding_window=1024 layer_types=None num_local_experts=64
    num_experts_per_tok=8 moe_intermediate_size=896 mlp_layer_types=None
    num_experts>num_local_experts attention_bias+qkvo .qk_norm=head ~norm_topk_prob
minicpm3 MiniCPM3 -num_key_value_heads -head_dim num_hidden_layers=62 hidden_size=2560
    num_attention_heads=40 intermediate_size=6400 vocab_size=73448
    max_position_embeddings=32768 tie_word_embeddings=True attention_bias=False
    mlp_bias=False q_lora_rank=768 kv_lora_rank=256 qk_nope_head_dim=64
    qk_rope_head_dim=32 v_head_dim=None mlp_bias+m full_attention@minicpm3_attention
    ~dim_model_base ~head_dim ~num_key_value_heads ~qk_head_dim ~scale_emb
minimax MiniMax num_key_value_heads=8 intermediate_size=14336
    max_position_embeddings=131072 num_local_experts=8 num_experts_per_tok=2
    layer_types=None sliding_window=None block_size=256 num_experts>num_local_experts
    .kinds=@full_and_linear_in_turn linear_attention@lightning_attention
    ~router_jitter_noise
minimax_m2 MiniMaxM2 num_hidden_layers=62 hidden_size=3072 num_attention_heads=48
    num_key_value_heads=8 head_dim=128 intermediate_size=1536 vocab_size=200064
    max_position_embeddings=196608 num_local_experts=256 num_experts_per_tok=8
    num_experts>num_local_experts .qk_norm=each ~router_jitter_noise
minimax_m3_vl_text MiniMaxM3VL num_hidden_layers=60 hidden_size=6144
    num_attention_heads=64 num_key_value_heads=4 head_dim=128 intermediate_size=3072
    vocab_size=200064 max_position_embeddings=524288 num_local_experts=128
    num_experts_per_tok=4 shared_intermediate_size=3072 dense_intermediate_size=12288
    mlp_layer_types=None layer_types=None num_experts>num_local_experts .qk_norm=head
    .attention_kinds=full_attention .dense_size=@value_of:dense_intermediate_size
    ~index_head_dim ~index_n_heads ~rotary_dim ~routed_scaling_factor
    ~router_jitter_noise ~swiglu_limit
ministral3 Ministral3 num_hidden_layers=34 num_key_value_heads=8 head_dim=128
    intermediate_size=14336 vocab_size=131072 max_position_embeddings=262144
    sliding_window=None .kinds=@sliding_if_window
mpt Mpt -num_hidden_layers -hidden_size -num_attention_heads -num_key_value_heads
    -head_dim -intermediate_size -max_position_embeddings vocab_size=50368
    tie_word_embeddings=True d_model=2048 n_heads=16 n_layers=24 max_seq_len=2048
    num_attention_heads>n_heads hidden_size>d_model num_hidden_layers>n_layers .gated=no
    .dense_size=@four_times_hidden_size ~attn_config ~expansion_ratio
    ~layer_norm_epsilon ~logit_scale
nanochat NanoChat num_hidden_layers=12 hidden_size=768 num_attention_heads=6
    intermediate_size=8192 vocab_size=50304 attention_bias=False attention_bias+qkvo
    .norm_size=0 .gated=no hidden_act!relu2 ~final_logit_softcapping ~rms_norm_eps
nemotron_h NemotronH -num_hidden_layers num_key_value_heads=8 head_dim=128
    intermediate_size=21504 vocab_size=131072 max_position_embeddings=4096
    attention_bias=False mlp_bias=False use_bias=False use_conv_bias=True
    layers_block_type=None ssm_state_size=128 mamba_num_heads=128 mamba_head_dim=64
    n_groups=8 conv_kernel=4 expand=2 n_routed_experts=8 num_experts_per_tok=2
    moe_intermediate_size=7688 moe_shared_expert_intermediate_size=7688
    n_shared_experts=1 layer_types>layers_block_type num_local_experts>n_routed_experts
    .gated=no .stack=@one_part_a_layer tie_word_embeddings!False ~layer_norm_epsilon
    ~mamba_hidden_act ~mamba_ssm_cache_dtype ~moe_shared_expert_overlap
    ~mtp_layers_block_type ~n_group ~norm_topk_prob ~residual_in_fp32
    ~routed_scaling_factor ~time_step_limit ~use_mamba_kernels
olmo Olmo vocab_size=50304 attention_bias=False attention_bias+qkvo .norm_size=0
    ~clip_qkv
olmo2 Olmo2 vocab_size=50304 attention_bias=False attention_bias+qkvo .qk_norm=each
olmo3 Olmo3 vocab_size=50304 attention_bias=False sliding_window=4096 layer_types=None
    attention_bias+qkvo .qk_norm=each .kinds=@full_every:4
olmo_hybrid OlmoHybrid hidden_size=3840 num_attention_heads=30 vocab_size=100352
    max_position_embeddings=65536 attention_bias=False layer_types=None
    linear_num_key_heads=None linear_num_value_heads=None linear_key_head_dim=None
    linear_value_head_dim=None linear_conv_kernel_dim=4 attention_bias+qkvo
    .qk_norm=each .kinds=@olmo_hybrid_kinds linear_attention@olmo_gated_delta_net
    ~linear_allow_neg_eigval
olmoe Olmoe ^flex_olmo -head_dim num_hidden_layers=16 hidden_size=2048
    num_attention_heads=16 intermediate_size=2048 vocab_size=50304 num_experts=64
    num_experts_per_tok=8 ~clip_qkv
openai-gpt OpenAIGPTLMHeadModel -num_hidden_layers -hidden_size -num_attention_heads
    -num_key_value_heads -head_dim -intermediate_size -max_position_embeddings
    vocab_size=40478 tie_word_embeddings=True n_layer=12 n_embd=768 n_head=12
    n_positions=512 max_position_embeddings>n_positions hidden_size>n_embd
    num_attention_heads>n_head num_hidden_layers>n_layer .norm_size=2 .final_norm=0
    .gated=no .bias=qkvom .dense_size=@four_times_hidden_size ~afn ~attn_pdrop
    ~embd_pdrop ~summary_type
opt OPT -num_key_value_heads -head_dim -intermediate_size num_hidden_layers=12
    hidden_size=768 num_attention_heads=12 vocab_size=50272 tie_word_embeddings=True
    ffn_dim=3072 enable_bias=True do_layer_norm_before=True
    _remove_final_layer_norm=False layer_norm_elementwise_affine=True
    word_embed_proj_dim=None enable_bias+qkvom layer_norm_elementwise_affine!True
    .norm_size=2 .final_norm=@opt_final_norm .gated=no .positions=2
    .embedding_size=@word_embed_proj_dim_if_narrower ~layerdrop
persimmon Persimmon -num_key_value_heads -head_dim num_hidden_layers=36
    num_attention_heads=64 intermediate_size=16384 vocab_size=262144
    max_position_embeddings=16384 qk_layernorm=True .norm_size=2 .gated=no .bias=qkvom
    .qk_norm=head .qk_norm_if=qk_layernorm .qk_norm_size=2
phi Phi -head_dim num_hidden_layers=24 hidden_size=2048 intermediate_size=8192
    vocab_size=51200 qk_layernorm=False .norm_size=2 .norms=1 .parallel .gated=no
    .bias=qkvomh .qk_norm=head .qk_norm_if=qk_layernorm .qk_norm_size=2 ~embd_pdrop
phi3 Phi3 hidden_size=3072 intermediate_size=8192 vocab_size=32064
    max_position_embeddings=4096 sliding_window=None .kinds=@sliding_if_window
    ~embd_pdrop ~original_max_position_embeddings
phimoe Phimoe num_key_value_heads=8 intermediate_size=6400 vocab_size=32064
    max_position_embeddings=131072 num_local_experts=16 num_experts_per_tok=2
    attention_bias=False lm_head_bias=False sliding_window=None attention_bias+qkvo
    lm_head_bias+h .norm_size=2 .kinds=@sliding_if_window ~input_jitter_noise
    ~rms_norm_eps ~router_jitter_noise
qwen2_moe Qwen2Moe num_hidden_layers=24 hidden_size=2048 num_attention_heads=16
    num_key_value_heads=16 intermediate_size=5632 vocab_size=151936
    max_position_embeddings=32768 num_experts=60 num_experts_per_tok=4
    moe_intermediate_size=1408 shared_expert_intermediate_size=5632 mlp_only_layers=None
    decoder_sparse_step=1 qkv_bias=True use_sliding_window=False max_window_layers=28
    sliding_window=4096 layer_types=None qkv_bias+qkv
    .kinds=@sliding_every_second_below_max_window_layers
    .sparse=@experts_by_decoder_sparse_step .shared_gate ~norm_topk_prob
qwen3_5_moe_text Qwen3_5Moe -intermediate_size num_hidden_layers=40 hidden_size=2048
    num_attention_heads=16 num_key_value_heads=2 head_dim=256 vocab_size=248320
    max_position_embeddings=32768 linear_conv_kernel_dim=4 linear_key_head_dim=128
    linear_value_head_dim=128 linear_num_key_heads=16 linear_num_value_heads=32
    layer_types=None full_attention_interval=4 num_experts=256 num_experts_per_tok=8
    moe_intermediate_size=512 shared_expert_intermediate_size=512 .qk_norm=head
    .gate=values .kinds=@full_every:full_attention_interval:linear_attention
    .attention_kinds=full_attention linear_attention@gated_delta_net .shared_gate
qwen3_5_text Qwen3_5 num_attention_heads=16 num_key_value_heads=4 head_dim=256
    intermediate_size=12288 vocab_size=248320 max_position_embeddings=32768
    linear_conv_kernel_dim=4 linear_key_head_dim=128 linear_value_head_dim=128
    linear_num_key_heads=16 linear_num_value_heads=32 layer_types=None
    full_attention_interval=4 .qk_norm=head .gate=values
    .kinds=@full_every:full_attention_interval:linear_attention
    .attention_kinds=full_attention linear_attention@gated_delta_net
qwen3_next Qwen3Next ^qwen3_5_moe_text num_hidden_layers=48 intermediate_size=5632
    vocab_size=151936 num_experts=512 num_experts_per_tok=10 mlp_only_layers=None
    decoder_sparse_step=1 .sparse=@experts_by_decoder_sparse_step ~norm_topk_prob
recurrent_gemma RecurrentGemma -max_position_embeddings num_hidden_layers=26
    hidden_size=2560 num_attention_heads=10 intermediate_size=7680 vocab_size=256000
    tie_word_embeddings=True attention_bias=False lru_width=None conv1d_width=4
    attention_window_size=2048 block_types=[recurrent,recurrent,attention]
    sliding_window>attention_window_size attention_bias+qkv .bias=om
    .kinds=@recurrent_gemma_kinds linear_attention@gated_recurrence
    .dense_size=@half_of_intermediate_size
seed_oss SeedOss num_hidden_layers=64 num_attention_heads=80 num_key_value_heads=8
    head_dim=128 intermediate_size=27648 vocab_size=155136
    max_position_embeddings=524288 attention_bias=True mlp_bias=False
    attention_out_bias=False attention_bias+qkv attention_out_bias+o mlp_bias+m
smollm3 SmolLM3 num_hidden_layers=36 hidden_size=2048 num_attention_heads=16
    num_key_value_heads=4 vocab_size=128256 max_position_embeddings=32768
    tie_word_embeddings=True attention_bias=False mlp_bias=False
    use_sliding_window=False no_rope_layer_interval=4 sliding_window=None
    layer_types=None attention_bias+qkvo mlp_bias+m .kinds=@smollm3_kinds
solar_open SolarOpen -intermediate_size num_hidden_layers=48 num_attention_heads=64
    num_key_value_heads=8 head_dim=128 vocab_size=196608 max_position_embeddings=131072
    attention_bias=False n_routed_experts=128 num_experts_per_tok=8
    moe_intermediate_size=1280 n_shared_experts=1 num_local_experts>n_routed_experts
    attention_bias+qkv ~n_group ~norm_topk_prob ~routed_scaling_factor
stablelm StableLm -head_dim hidden_size=2560 num_key_value_heads=32
    intermediate_size=6912 vocab_size=50304 max_position_embeddings=4096
    use_qkv_bias=False qk_layernorm=False use_parallel_residual=False use_qkv_bias+qkv
    .norm_size=2 .norms=@one_if_use_parallel_residual .parallel=use_parallel_residual
    .qk_norm=each .qk_norm_if=qk_layernorm
starcoder2 Starcoder2 -head_dim num_hidden_layers=30 hidden_size=3072
    num_attention_heads=24 num_key_value_heads=2 intermediate_size=12288
    vocab_size=49152 max_position_embeddings=4096 tie_word_embeddings=True use_bias=True
    sliding_window=None use_bias+qkvom .norm_size=2 .gated=no .kinds=@sliding_if_window
    ~norm_epsilon
vaultgemma VaultGemma num_hidden_layers=26 hidden_size=2304 num_attention_heads=8
    num_key_value_heads=4 head_dim=256 intermediate_size=9216 vocab_size=256000
    max_position_embeddings=8192 tie_word_embeddings=True attention_bias=False
    sliding_window=4096 layer_types=None attention_bias+qkvo .kinds=@full_every:2
    ~attn_logit_softcapping ~final_logit_softcapping ~query_pre_attn_scalar
xglm XGLM -num_hidden_layers -hidden_size -num_attention_heads -num_key_value_heads
    -head_dim -intermediate_size vocab_size=256008 tie_word_embeddings=True d_model=1024
    attention_heads=16 num_layers=24 ffn_dim=4096 num_attention_heads>attention_heads
    hidden_size>d_model num_hidden_layers>num_layers .norm_size=2 .gated=no .bias=qkvom
    ~layerdrop ~scale_embedding
youtu Youtu -num_key_value_heads -head_dim hidden_size=2048 num_attention_heads=16
    intermediate_size=6144 vocab_size=128256 max_position_embeddings=131072
    tie_word_embeddings=True attention_bias=False q_lora_rank=1536 kv_lora_rank=512
    qk_nope_head_dim=128 qk_rope_head_dim=64 v_head_dim=128 attention_bias+a ~head_dim
    ~num_key_value_heads ~qk_head_dim ~rope_interleave
"""
