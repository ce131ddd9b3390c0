"""Shapes of both kinds, small and of odd sizes, that the formulas must be right for."""

from __future__ import annotations

from llmtrain_helpers import Attention, Experts, LatentAttention, Layer, Mlp, Transformer

gpt, llama = Transformer.gpt, Transformer.llama


def stack(*layers: tuple[int, Layer]) -> Transformer:
    return Transformer(hidden_size=48, vocab_size=50, sequence_length=16, layers=layers)


MLA, PLAIN_MLA = LatentAttention(4, 12, 8, 6, 4, 12), LatentAttention(3, 0, 8, 6, 4, 6)
GROUPED = Attention(6, 2, 8, qk_norm="head")
SHARED = Experts(Mlp(12), 4, 2, shared=Mlp(20))

SHAPES = {
    "gpt": gpt(2, 48, 4, 50, 16),
    "gpt untied": gpt(2, 48, 4, 50, 16, tied_embeddings=False),
    "gpt odd": gpt(3, 21, 3, 57, 11),
    "gpt one of each": gpt(1, 6, 1, 7, 5),
    "gpt wide mlp": gpt(2, 24, 2, 31, 9, intermediate_size=77),
    "gpt more positions": gpt(2, 32, 8, 40, 12, num_positions=20),
    "llama": llama(2, 48, 4, 4, 40, 50, 16),
    "llama gqa": llama(2, 48, 6, 2, 40, 50, 16),
    "llama mqa tied": llama(3, 40, 5, 1, 33, 29, 13, tied_embeddings=True),
    "llama wide heads": llama(2, 48, 6, 3, 40, 53, 17, head_dim=10),
    "llama qkv bias": llama(2, 32, 4, 2, 56, 41, 8, qkv_bias=True),
    "llama qk norm": llama(2, 48, 6, 2, 40, 50, 16, qk_norm=True),
    "llama all": llama(1, 36, 6, 2, 20, 37, 7, 8, True, True, True),
    "experts": llama(2, 48, 6, 2, 40, 50, 16, num_experts=4, experts_per_token=2),
    "experts all": llama(
        *(2, 32, 4, 2, 12, 64, 10), qk_norm=True, num_experts=7, experts_per_token=3
    ),
    "one expert": llama(1, 32, 4, 4, 12, 64, 10, num_experts=3, experts_per_token=1),
    "latent": stack((2, Layer(MLA, Mlp(40)))),
    "latent, plain queries": stack((1, Layer(PLAIN_MLA, Mlp(40)))),
    "shared expert": stack((2, Layer(GROUPED, SHARED))),
    "gated shared expert": stack(
        (1, Layer(GROUPED, Experts(Mlp(12), 5, 3, Mlp(9), shared_gate=True)))
    ),
    "as DeepSeek-V3": stack((1, Layer(MLA, Mlp(40))), (2, Layer(MLA, SHARED))),
}
