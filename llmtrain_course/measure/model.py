"""A small decoder in PyTorch, made from a `Transformer`: what `measure` runs.

Written to be read, and to keep for backward what fused kernels keep: an RMSNorm its
input and one number a row, rotary positions nothing. Needs PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (everyone's name for it)
from torch.utils.checkpoint import checkpoint

from llmtrain_helpers.model import layers
from llmtrain_helpers.model.transformer import Transformer

EPS = 1e-5
DROPPED = 0.1
"""The share that dropout drops; no count depends on it."""


class Decoder(nn.Module):
    """The whole model: from tokens to logits, and to the loss."""

    def __init__(self, shape: Transformer, attention: str, dropout: bool, recompute: str) -> None:
        super().__init__()
        h, V = shape.hidden_size, shape.vocab_size
        self.embedding = nn.Embedding(V, h)
        nn.init.normal_(self.embedding.weight, std=0.02)
        if shape.num_positions:
            self.positions = nn.Embedding(shape.num_positions, h)
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(
            Layer(shape, kind, attention, dropout, recompute)
            for how_many, kind in shape.layers
            for _ in range(int(how_many))
        )
        self.norm = _norm(shape.final_norm, h)
        self.head = nn.Linear(h, V, bias=False)
        if shape.tied_embeddings:
            self.head.weight = self.embedding.weight
        self.recompute = recompute

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next token: from (batch, sequence) to (…, vocabulary)."""
        x = self.embedding(tokens)
        if hasattr(self, "positions"):
            x = x + self.positions.weight[: tokens.shape[1]]
        x = self.dropout(x)
        for layer in self.layers:
            x = recomputed_in_backward(layer, x) if self.recompute == "full" else layer(x)
        return self.head(self.norm(x))

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """The mean cross-entropy, from logits in fp32."""
        logits = self(tokens).float().flatten(0, 1)
        return F.cross_entropy(logits, targets.flatten())


class Layer(nn.Module):
    """Attention and MLP, each behind a norm and beside a residual connection."""

    def __init__(
        self, shape: Transformer, kind: layers.Layer, attention: str, dropout: bool, recompute: str
    ) -> None:
        super().__init__()
        h, each = shape.hidden_size, kind.norm_size
        self.attention_norm, self.mlp_norm = _norm(each, h), _norm(each, h)
        latent = isinstance(kind.mixer, layers.LatentAttention)
        mixer = LatentAttention if latent else Attention
        self.attention = mixer(shape, kind.mixer, attention, dropout, recompute)
        self.attention_dropout, self.mlp_dropout = Dropout(dropout), Dropout(dropout)
        mixed = isinstance(kind.mlp, layers.Experts)
        self.mlp = Experts(h, kind.mlp) if mixed else MLP(h, kind.mlp)

    def forward(self, x: Tensor) -> Tensor:
        """The residual stream, before and after this layer."""
        x = x + self.attention_dropout(self.attention(self.attention_norm(x)))
        return x + self.mlp_dropout(self.mlp(self.mlp_norm(x)))


class Attention(nn.Module):
    """Projections to queries, keys and values, the core between them, and back."""

    def __init__(
        self, shape: Transformer, kind: Any, attention: str, dropout: bool, recompute: str
    ) -> None:
        super().__init__()
        h, d = shape.hidden_size, kind.head_dim
        queries, keys = kind.num_heads * d, kind.num_kv_heads * d
        self.head_dim = d
        self.query = nn.Linear(h, queries, bias="q" in kind.biases)
        self.key = nn.Linear(h, keys, bias="k" in kind.biases)
        self.value = nn.Linear(h, keys, bias="v" in kind.biases)
        self.query_norm = RMSNorm(d) if kind.qk_norm else nn.Identity()
        self.key_norm = RMSNorm(d) if kind.qk_norm else nn.Identity()
        learned = shape.num_positions > 0
        self.rotary = nn.Identity() if learned else Rotary(shape.sequence_length, d)
        group = kind.num_heads // kind.num_kv_heads
        self.core = _core(attention)(shape.sequence_length, group, dropout)
        self.selective = recompute == "selective"
        self.output = nn.Linear(queries, h, bias="o" in kind.biases)

    def forward(self, x: Tensor) -> Tensor:
        """Each token's mixture of the tokens before it."""
        q, k, v = (
            project(x).unflatten(-1, (-1, self.head_dim))  # (batch, token, head, d)
            for project in (self.query, self.key, self.value)
        )
        q, k = self.rotary(self.query_norm(q)), self.rotary(self.key_norm(k))
        mixed = recomputed_in_backward(self.core, q, k, v) if self.selective else self.core(q, k, v)
        return self.output(mixed.flatten(2))


class LatentAttention(nn.Module):
    """Multi-head latent attention: keys and values out of a few numbers a token."""

    def __init__(
        self, shape: Transformer, kind: Any, attention: str, dropout: bool, recompute: str
    ) -> None:
        super().__init__()
        h, a, r, c = shape.hidden_size, kind.num_heads, kind.q_rank, kind.kv_rank
        self.sizes = (kind.plain_dim, kind.rotary_dim, kind.value_dim)
        self.split = (c, kind.rotary_dim)
        if r:
            self.query_down = nn.Linear(h, r, bias=kind.bias)
            self.query_norm = RMSNorm(r)
        self.query = nn.Linear(r or h, a * kind.head_dim, bias=False)
        self.latent_down = nn.Linear(h, sum(self.split), bias=kind.bias)
        self.latent_norm = RMSNorm(c)
        self.latent_up = nn.Linear(c, a * (kind.plain_dim + kind.value_dim), bias=False)
        self.rotary = Rotary(shape.sequence_length, kind.rotary_dim)
        self.core = _core(attention)(shape.sequence_length, 1, dropout)
        self.selective = recompute == "selective"
        self.output = nn.Linear(a * kind.value_dim, h, bias=kind.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Each token's mixture of the tokens before it."""
        plain, rotary, value = self.sizes
        query_latent = self.query_norm(self.query_down(x)) if self.query_norms else x
        q = self.query(query_latent).unflatten(-1, (-1, plain + rotary))
        latent, key = self.latent_down(x).split(self.split, -1)
        both = self.latent_up(self.latent_norm(latent))
        k, v = both.unflatten(-1, (-1, plain + value)).split((plain, value), -1)
        key = self.rotary(key.unsqueeze(2)).expand(-1, -1, k.shape[2], -1)
        k = torch.cat([k, key], -1)
        q = torch.cat([q[..., :plain], self.rotary(q[..., plain:])], -1)
        v = v.contiguous()  # so that what both came from need not stay
        mixed = recomputed_in_backward(self.core, q, k, v) if self.selective else self.core(q, k, v)
        return self.output(mixed.flatten(2))

    @property
    def query_norms(self) -> bool:
        """Whether queries come over few numbers too."""
        return hasattr(self, "query_norm")


class Unfused(nn.Module):
    """softmax(QKᵀ/√d)·V with its s² scores stored, in products that counters see.

    Queries that share a key-value head stand below one another, so that keys and values
    are never repeated.
    """

    def __init__(self, s: Any, group: int, dropout: bool) -> None:
        super().__init__()
        unseen = torch.full((s, s), float("-inf")).triu(diagonal=1)
        self.register_buffer("unseen", unseen.repeat(group, 1), persistent=False)
        self.dropout = Dropout(dropout)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention's result from Q, K and V; all are (batch, token, head, d)."""
        b, _, kv_heads, d = k.shape
        grouped = q.unflatten(2, (kv_heads, -1)).permute(0, 2, 3, 1, 4)
        rows = grouped.reshape(b * kv_heads, -1, d)
        keys, values = (t.transpose(1, 2).flatten(0, 1) for t in (k, v))
        scores = torch.baddbmm(self.unseen, rows, keys.mT, alpha=d**-0.5)
        mixed = self.dropout(scores.softmax(-1)) @ values
        mixed = mixed.view(*grouped.shape[:-1], v.shape[-1]).permute(0, 3, 1, 2, 4)
        return mixed.reshape(*q.shape[:-1], v.shape[-1])


class Flash(nn.Module):
    """Attention in one kernel, without stored scores: Q, K, V and the result remain."""

    def __init__(self, s: Any, group: int, dropout: bool) -> None:
        super().__init__()
        self.dropout_rate = DROPPED if dropout else 0.0

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention's result from Q, K and V; all are (batch, token, head, d)."""
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if q.shape[-1] != v.shape[-1]:  # no kernel of PyTorch's knows two sizes
            return _FlashOfTwo.apply(q, k, v).transpose(1, 2)
        if q.is_cuda:
            mixed = F.scaled_dot_product_attention(
                q, k, v, dropout_p=self.dropout_rate, is_causal=True, enable_gqa=True
            )
        else:  # the CPU's kernel knows no dropout, which keeps no byte here anyway
            kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
            mixed = kernel(q, k, v, 0.0, True)[0]
        return mixed.transpose(1, 2)


class _FlashOfTwo(torch.autograd.Function):
    """Attention with two head sizes that keeps what a fused kernel keeps."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Keeps Q, K, V and the result."""
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed = mixed.transpose(1, 2).contiguous().transpose(1, 2)  # as it goes on
        ctx.save_for_backward(q, k, v, mixed)
        return mixed

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        """The gradients of Q, K and V, by computing it again."""
        with torch.enable_grad():
            q, k, v = (t.detach().requires_grad_() for t in ctx.saved_tensors[:3])
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return torch.autograd.grad(mixed, (q, k, v), grad)


def _core(attention: str) -> Any:
    return Unfused if attention == "unfused" else Flash


class MLP(nn.Module):
    """GELU between two matrices, or silu(gate)·up before the second."""

    def __init__(self, h: Any, kind: Any) -> None:
        super().__init__()
        f = kind.intermediate_size
        if kind.gated:
            self.gate = nn.Linear(h, f, bias=kind.bias)
        self.up = nn.Linear(h, f, bias=kind.bias)
        self.down = nn.Linear(f, h, bias=kind.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Each token by itself, through f values and back to h."""
        if hasattr(self, "gate"):
            return self.down(F.silu(self.gate(x)) * self.up(x))
        return self.down(F.gelu(self.up(x)))


class Experts(nn.Module):
    """A router that sends each token to its best few of many MLPs, and one for all."""

    def __init__(self, h: Any, kind: Any) -> None:
        super().__init__()
        self.chosen = kind.experts_per_token
        self.router = nn.Linear(h, kind.num_experts, bias=kind.router_bias)
        each = [MLP(h, kind.expert) for _ in range(kind.num_experts)]
        self.experts = nn.ModuleList(each)
        self.shared = MLP(h, kind.shared) if kind.shared else None
        self.gate = nn.Linear(h, 1, bias=False) if kind.shared_gate else None

    def forward(self, x: Tensor) -> Tensor:
        """The chosen experts' results, weighted by the router's probabilities."""
        tokens = x.flatten(0, 1)
        weights, chosen = self.router(tokens).softmax(-1).topk(self.chosen)
        order = chosen.flatten().argsort()  # tokens sorted by expert
        source = order // self.chosen
        parts = tokens[source].split(self._loads(chosen))
        outputs = [expert(part) for expert, part in zip(self.experts, parts, strict=True)]
        weighted = torch.cat(outputs) * weights.flatten()[order, None]
        mixed = torch.zeros_like(tokens).index_add(0, source, weighted).view(x.shape)
        if self.shared is None:
            return mixed
        shared = self.shared(x)
        return mixed + (shared * self.gate(x).sigmoid() if self.gate else shared)

    def _loads(self, chosen: Tensor) -> list[int]:
        """Tokens of each expert; on the meta device, without values, an even share."""
        n = len(self.experts)
        if chosen.is_meta:
            return [(chosen.numel() + i) // n for i in range(n)]
        loads: list[int] = chosen.flatten().bincount(minlength=n).tolist()
        return loads


class Dropout(nn.Module):
    """Dropout with a mask of one byte a value, as on CUDA (F.dropout has two here)."""

    def __init__(self, dropout: bool) -> None:
        super().__init__()
        self.on = dropout

    def forward(self, x: Tensor) -> Tensor:
        """The values that came in, some of them dropped."""
        return torch.native_dropout(x, DROPPED, True)[0] if self.on else x


class RMSNorm(nn.Module):
    """x / rms(x) · weight, in fp32 inside, as one operator."""

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        """Normed along the last dimension."""
        if x.is_cuda:  # fused there; elsewhere PyTorch would keep each step's result
            return F.rms_norm(x, self.weight.shape, self.weight, EPS)
        return _RMSNorm.apply(x, self.weight)


class _RMSNorm(torch.autograd.Function):
    """Keeps its input and one number a row."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        """Each row over its root mean square, times the weight."""
        scale = x.float().square().mean(-1, keepdim=True).add(EPS).rsqrt()
        ctx.save_for_backward(x, weight, scale)
        return (x * scale).to(x.dtype) * weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of input and weight."""
        x, weight, scale = ctx.saved_tensors
        normed, inner = x * scale, (grad * weight).float()
        along = (inner * normed).mean(-1, keepdim=True)
        of_weight = (grad * normed).flatten(0, -2).sum(0)
        of_x = scale * (inner - normed * along)
        return of_x.to(x.dtype), of_weight.to(weight.dtype)


class Rotary(nn.Module):
    """Turns pairs of a head's values by an angle that grows with the position."""

    def __init__(self, sequence_length: Any, head_dim: Any) -> None:
        super().__init__()
        speeds = 10_000.0 ** -(torch.arange(0, head_dim, 2) / head_dim)
        angles = torch.outer(torch.arange(sequence_length), speeds)[:, None]
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, token, head, d), turned."""
        return _Rotate.apply(x, self.cos, self.sin)


class _Rotate(torch.autograd.Function):
    """Keeps nothing: the gradient is turned back by the same tables."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Queries or keys, turned by the tables' angles."""
        ctx.tables = cos, sin
        return _rotate(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        """The gradient, turned back by the tables' angles."""
        cos, sin = ctx.tables
        return _rotate(grad, cos, -sin), None, None


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def _norm(each: int, size: Any) -> nn.Module:
    return nn.LayerNorm(size, EPS) if each == 2 else RMSNorm(size)


def recomputed_in_backward(part: nn.Module, *inputs: Tensor) -> Tensor:
    """Run a part that only keeps its inputs and is computed again for backward."""
    return checkpoint(part, *inputs, use_reentrant=False)


def build(
    shape: Transformer,
    device: str = "meta",
    dtype: Any = torch.bfloat16,
    attention: str = "unfused",
    dropout: bool = False,
    recompute: str = "none",
) -> Decoder:
    """The model of this shape on a device; on "meta" it has sizes and no values."""
    with torch.device(device):
        return Decoder(shape, attention, dropout, recompute).to(dtype)


def tokens(shape: Transformer, batch_size: int, device: str) -> tuple[Tensor, Tensor]:
    """Random tokens and targets, always the same."""
    size = (2, batch_size, shape.sequence_length)
    dice = None if device == "meta" else torch.Generator(device).manual_seed(0)
    inputs, targets = torch.randint(shape.vocab_size, size, generator=dice, device=device)
    return inputs, targets
