"""Tuning: what PyTorch counts, and what autograd keeps, is what the formulas say."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from llmtrain_course.measure import model as decoder
from llmtrain_helpers import Attention, Layer, Mlp, Transformer, Tuning, published
from llmtrain_helpers.activations import Keeping
from llmtrain_helpers.finetune import tuned_activations, tuned_flops, tuned_phases
from research import finetunes

from .adapters import Adapted, adapt
from .shapes import SHAPES

aten = torch.ops.aten
Sizes = tuple[int, int, int, int]


def scored(query: Any, key: Any, value: Any, *rest: Any, **options: Any) -> int:
    return int(sdpa_flop_count(query, key, value))


def scored_back(grad: Any, query: Any, key: Any, value: Any, *rest: Any, **options: Any) -> int:
    """Twice forward, as the formulas count it: flash attention's second look aside."""
    return 2 * int(sdpa_flop_count(query, key, value))


def thoroughly(part: Any, *inputs: Any) -> Any:
    """Reentrant recomputation, which goes through to the end of a layer."""
    return checkpoint(part, *inputs, use_reentrant=True)


KERNELS = {
    aten._scaled_dot_product_flash_attention_for_cpu: scored,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: scored_back,
}


def counted(shape: Transformer, tuning: Tuning, batch: int, recompute: str) -> int:
    """FLOPs of forward and backward by PyTorch's counter."""
    net = decoder.build(shape, "cpu", torch.float32, "flash", recompute=recompute)
    if not tuning.is_full:
        adapt(net, tuning.targets, tuning.rank, dtype=torch.float32)
        if recompute == "full":  # as transformers' enable_input_require_grads
            net.embedding.register_forward_hook(lambda m, x, y: y.requires_grad_(True))
    inputs = decoder.tokens(shape, batch, "cpu")
    with FlopCounterMode(display=False, custom_mapping=KERNELS) as counter:
        net.loss(*inputs).backward()
    return int(counter.get_total_flops())


TUNINGS = [
    Tuning.full(),
    Tuning.lora(4, ["q_proj", "v_proj"]),
    Tuning.lora(3, ["o_proj"]),
    Tuning.lora(5, "attention"),
    Tuning.lora(2, "mlp"),
    Tuning.lora(4, ["down_proj"]),
    Tuning.lora(4, "all-linear"),
    Tuning.qlora(4, ["k_proj", "up_proj", "lm_head"]),
]
FAMILIES = ["llama gqa", "llama wide heads", "gpt", "experts"]
FAMILIES += ["shared expert", "gated shared expert"]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("tuning", TUNINGS, ids=lambda t: f"{t.method} {' '.join(t.targets)}")
def test_flops_are_those_of_the_counter(
    name: str, tuning: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = SHAPES[name]
    for reentrant, recompute in product([False, True], ["none", "full"]):
        if reentrant:
            monkeypatch.setattr(decoder, "recomputed_in_backward", thoroughly)
        how = tuning.replace(reentrant=reentrant)
        measured = counted(shape, how, 3, recompute)
        assert tuned_flops(shape, how, 3, recompute).total - measured == 0, (reentrant, recompute)
        monkeypatch.undo()


# --- activations, on the code that most people run


def llama(
    layers: int,
    h: int,
    f: int,
    heads: int,
    kv_heads: int,
    attention: str = "sdpa",
    family: str = "Llama",
    **options: Any,
) -> Any:
    transformers = pytest.importorskip("transformers", minversion="5.23")
    config = getattr(transformers, f"{family}Config")(
        num_hidden_layers=layers,
        hidden_size=h,
        intermediate_size=f,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        vocab_size=64,
        use_cache=False,
        attn_implementation=attention,
        **options,
    )
    return getattr(transformers, f"{family}ForCausalLM")(config).to(torch.bfloat16)


def saved(net: Any, batch: int, s: int, autocast: bool) -> int:
    """Bytes that autograd saves going through the layers, each storage once, no parameters."""
    constant = {p.untyped_storage().data_ptr() for p in net.parameters()}
    sizes: dict[int, int] = {}
    alive = []

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in constant:
            sizes[storage.data_ptr()] = storage.nbytes()
            alive.append(tensor)
        return tensor

    x = torch.zeros(batch, s, dtype=torch.long)
    with (
        saved_tensors_hooks(pack, lambda kept: kept),
        torch.autocast("cpu", torch.bfloat16, enabled=autocast),
    ):
        alive.append(net.model(x).last_hidden_state)
    return sum(sizes.values())


def kept_by(layers: int, shape: Sizes, tuning: Tuning, batch: int, **options: Any) -> int:
    """Bytes that the layers of a Llama keep for 24 tokens more of each sequence.

    Twice the tokens less once: without the 16-bit copies of weights under autocast.
    """
    autocast = not tuning.is_full and tuning.adapter_bytes == 4 and tuning.autocast
    net = llama(layers, *shape, **options)
    if not tuning.is_full:
        dtype = {2: torch.bfloat16, 4: torch.float32}[tuning.adapter_bytes]
        adapt(net, tuning.targets, tuning.rank, tuning.dropout, dtype, names={})
    once, twice = (saved(net.train(), batch, s, autocast) for s in (24, 48))
    return twice - once


KEPT = [
    ("full", Tuning.full(), 1),
    ("q, v", Tuning.lora(8, ["q_proj", "v_proj"], adapter_bytes=2), 1),
    ("attention", Tuning.lora(8, "attention", adapter_bytes=2), 1),
    ("mlp", Tuning.lora(8, "mlp", adapter_bytes=2), 1),
    ("all", Tuning.lora(8, "all-linear", adapter_bytes=2), 1),
    ("q, v, 32 bits", Tuning.lora(8, ["q_proj", "v_proj"], autocast=False), 1),
    ("all, 32 bits", Tuning.lora(8, "all-linear", autocast=False), 1),
    ("q, v, autocast", Tuning.lora(8, ["q_proj", "v_proj"]), 1),
    ("attention, autocast", Tuning.lora(8, "attention"), 1),
    ("all, autocast", Tuning.lora(8, "all-linear"), 1),
    ("q, v, dropout", Tuning.lora(8, ["q_proj", "v_proj"], adapter_bytes=2, dropout=0.05), 2),
    ("all, dropout", Tuning.lora(8, "all-linear", adapter_bytes=2, dropout=0.05), 2),
    ("all, autocast, dropout", Tuning.lora(8, "all-linear", dropout=0.05), 4),
]
"""The cases of Tuning, and the bytes of a dropout mask of that type on a CPU."""


@pytest.mark.parametrize(("name", "tuning", "mask"), KEPT, ids=[case[0] for case in KEPT])
@pytest.mark.parametrize("sizes", [(64, 160, 4, 2), (96, 128, 6, 6)])
def test_a_layer_keeps_what_autograd_saves(
    name: str, tuning: Tuning, mask: int, sizes: Sizes
) -> None:
    batch, (h, f, heads, kv_heads) = 2, sizes
    measured, counted = [], []
    for layers in (1, 2, 3):
        shape = Transformer.llama(layers, h, heads, kv_heads, f, 64, 24)
        measured.append(kept_by(layers, sizes, tuning, batch))
        counted.append(tuned_activations(shape, tuning, batch, mask_bytes=mask).layers)
    tables = 4 * 24 * h // heads  # of the rotation, once, where anything rotates going back
    [one, two, three] = [m - c for m, c in zip(measured, counted, strict=True)]
    assert three - two == 0
    assert two - one in (0, tables)
    final_norm = batch * 24 * (4 * h + 4 + 2 * h * tuning.is_full)
    token_ids = 8 * batch * 24
    assert two - final_norm - tables in (0, token_ids)


def test_a_norm_without_weights_keeps_its_input_in_32_bits() -> None:
    """OLMo's, a LayerNorm in fp32."""
    batch, (h, f, heads, kv_heads) = 2, (64, 160, 4, 4)
    own = {"family": "Olmo", "eos_token_id": 1}
    two, three = (kept_by(n, (h, f, heads, kv_heads), Tuning.full(), batch, **own) for n in (2, 3))
    layer = Layer(Attention(heads, kv_heads, h // heads), Mlp(f), norm_size=0)
    shape = Transformer(hidden_size=h, vocab_size=64, sequence_length=24, layers=[(1, layer)])
    assert three - two == tuned_activations(shape, Tuning.full(), batch).layers


EAGER = [case for case in KEPT if case[0] in ("full", "q, v", "attention", "mlp", "all, autocast")]


@pytest.mark.parametrize(("name", "tuning", "mask"), EAGER, ids=[case[0] for case in EAGER])
@pytest.mark.parametrize("sizes", [(64, 160, 4, 2), (96, 128, 6, 6)])
def test_eager_attention_keeps_its_softmax_in_32_bits_and_what_that_is_cast_to(
    name: str, tuning: Tuning, mask: int, sizes: Sizes
) -> None:
    """Of a layer, 48 tokens' more than 24 tokens': scores grow with the square."""
    batch, (h, f, heads, kv_heads) = 2, sizes

    def counted(layers: int, s: int) -> Any:
        shape = Transformer.llama(layers, h, heads, kv_heads, f, 64, s)
        return tuned_activations(shape, tuning, batch, attention="eager").layers

    two, three = (kept_by(layers, sizes, tuning, batch, attention="eager") for layers in (2, 3))
    short, long = (counted(3, s) - counted(2, s) for s in (24, 48))
    assert three - two == long - short


def test_eager_attention_that_drops_out_keeps_a_mask_too() -> None:
    """On a CPU a mask is as wide as what it masks: two bytes."""
    sizes, batch, heads = (64, 160, 4, 2), 2, 4
    kept = []
    for dropout in (0.0, 0.1):
        options = {"attention": "eager", "attention_dropout": dropout}
        one, two = (kept_by(n, sizes, Tuning.full(), batch, **options) for n in (2, 3))
        kept.append(two - one)
    without, with_it = (
        Keeping(kernel="eager", mask=2, dropout=drops).score() for drops in (False, True)
    )
    assert kept[1] - kept[0] == batch * heads * (48**2 - 24**2) * (with_it - without)


@pytest.mark.parametrize("row", published.rows("finetune_counted"), ids=lambda row: row["name"])
def test_the_table_has_what_is_counted_here(
    row: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    how, batch = finetunes.counted_tuning(row), row["micro_batch_size"]
    if row["quantity"] == "FLOPs":
        if how.reentrant:
            monkeypatch.setattr(decoder, "recomputed_in_backward", thoroughly)
        count = counted(finetunes.COUNTED[row["shape"]], how, batch, row["recompute"])
    else:
        below, both = (kept_by(layers, (64, 160, 4, 2), how, batch) for layers in (2, 3))
        count = both - below
    assert count == row["counted"]


# --- tensor parallelism


def split(net: nn.Module) -> None:
    """Split a model over a group as Megatron does it, and its adapters as PEFT does.

    Of an adapter the half on the side that's split is split too.
    """
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for path, module in [*net.named_modules()]:
        reads_parts = path.rpartition(".")[2] in ("output", "down")
        way = RowwiseParallel() if reads_parts else ColwiseParallel()
        if isinstance(module, Adapted):
            for half in (module.base, module.a if reads_parts else module.b):
                parallelize_module(half, mesh, way)
        elif isinstance(module, nn.Embedding):
            parallelize_module(module, mesh, RowwiseParallel())
        elif isinstance(module, nn.Linear) and not path.endswith((".base", ".a", ".b")):
            parallelize_module(module, mesh, way)


def local_bytes(tensor: Any) -> int:
    """Bytes that the first process of a group has of a tensor."""
    tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return int(tensor.nbytes)


SPLIT = [Tuning.full("pure_bf16"), Tuning.lora(5, "attention"), Tuning.lora(2, "mlp")]
SPLIT += [Tuning.lora(4, ["all-linear", "lm_head"], adapter_bytes=2)]


@pytest.mark.parametrize(
    ("name", "t"), [("llama", 4), ("llama gqa", 2), ("llama qkv bias", 2), ("llama qk norm", 1)]
)
@pytest.mark.parametrize("tuning", SPLIT, ids=lambda t: f"{t.method} {len(t.targets)}")
def test_a_gpu_has_its_part_of_weights_adapters_and_states(
    tuning: Tuning, name: str, t: int
) -> None:
    """One process stands for a group of t: what it has after an update of AdamW."""
    shape = replace(SHAPES[name], vocab_size=52)
    dist.init_process_group("fake", rank=0, world_size=t, store=FakeStore())
    try:
        net = decoder.build(shape, "cpu", torch.bfloat16, "flash")
        if not tuning.is_full:
            dtype = {2: torch.bfloat16, 4: torch.float32}[tuning.adapter_bytes]
            adapt(net, tuning.targets, tuning.rank, dtype=dtype)
        split(net)
        learning = [p for p in net.parameters() if p.requires_grad]
        update = torch.optim.AdamW(learning, foreach=False)
        for parameter in learning:
            parameter.grad = torch.zeros_like(parameter)
        update.step()
        weights = sum(map(local_bytes, net.parameters()))
        gradients = sum(local_bytes(p.grad) for p in learning)
        states = sum(
            local_bytes(x) for each in update.state.values() for x in each.values() if x.dim()
        )
    finally:
        dist.destroy_process_group()
    *_, memory = tuned_phases(shape, tuning, 1, "none", tensor_parallel=t)
    assert (weights, gradients, states) == (memory.weights, memory.gradients, memory.optimizer)
