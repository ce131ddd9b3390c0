"""What autograd saves is what the formulas say, byte by byte; the rest has a name."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode

from llmtrain_course.measure import CORES, measure_activations, saved_tensors
from llmtrain_course.measure.model import build, tokens
from llmtrain_helpers import Transformer, count_activations, gpt_activation_bytes
from llmtrain_helpers.flops import RECOMPUTE

from .shapes import SHAPES

OPTIONS = list(product(RECOMPUTE, CORES, [False, True]))


@pytest.mark.parametrize("name", SHAPES)
def test_every_part_of_every_shape(name: str) -> None:
    for options in OPTIONS:
        measured = measure_activations(SHAPES[name], 3, *options)
        assert measured == count_activations(SHAPES[name], 3, *options), options


@pytest.mark.parametrize(
    ("attention", "dropout", "expected"),
    [
        ("unfused", True, 114),
        ("unfused", False, 32 + 2 * 96 * 2048 / 12288),
        ("flash", True, 34),
        ("flash", False, 32),
    ],
)
def test_a_layer_of_gpt3(attention: str, dropout: bool, expected: float) -> None:
    l, h, a, s = 1, 12288, 96, 2048
    shape = Transformer.gpt(l, h, a, 50257, s)
    measured = measure_activations(shape, 1, "none", attention, dropout)
    assert measured.layers / (s * h) == expected
    if (attention, dropout) == ("unfused", True):
        assert measured.layers == gpt_activation_bytes(l, h, a, s, 1)


def test_a_layer_of_llama3_8b() -> None:
    b, s, h, a, k, d, f = 2, 8192, 4096, 32, 8, 128, 14336
    shape = Transformer.llama(1, h, a, k, f, 128256, s)
    measured = measure_activations(shape, b)
    assert measured.layers == s * b * (8 * h + 4 * a * d + 4 * k * d + 8 * f)


def left_out(shape: Transformer, b: int, attention: str = "flash") -> Counter[str]:
    sizes: Counter[str] = Counter()
    for tensor in saved_tensors(shape, b, "none", attention):
        sizes[tensor.left_out] += tensor.bytes
    del sizes[""]
    return sizes


@pytest.mark.parametrize("b", [1, 3])
def test_what_is_left_out_has_a_name_and_a_size(b: int) -> None:
    l, h, a, s = 2, 48, 4, 16
    the_rest = {"token ids": 2 * 8 * s * b, "the loss": 4}
    norms = {"norm statistics": 8 * s * b * (2 * l + 1)}
    logsumexp = {"logsumexp": 4 * a * b * s * l}
    shape = Transformer.gpt(l, h, a, 50, s)
    assert left_out(shape, b) == {**the_rest, **norms, **logsumexp}
    assert left_out(shape, b, "unfused") == {**the_rest, **norms}


def test_an_rms_norm_keeps_half_as_much_and_one_number_a_head() -> None:
    l, s, b = 2, 16, 3
    plain, normed = SHAPES["llama gqa"], SHAPES["llama qk norm"]
    assert left_out(plain, b)["norm statistics"] == 4 * s * b * (2 * l + 1)
    heads = 4 * s * b * l * (6 + 2)
    assert left_out(normed, b)["norm statistics"] == 4 * s * b * (2 * l + 1) + heads


def test_a_mixture_keeps_its_router_and_three_sorted_copies() -> None:
    l, h, s, b, experts, chosen = 2, 48, 16, 3, 4, 2
    copies = 3 * 2 * h * chosen  # what experts take in and give, and that weighted
    numbers = 2 * experts + 2 * chosen  # probabilities, and those of the chosen
    routing = left_out(SHAPES["experts"], b)["routing"]
    assert routing == l * s * b * (copies + numbers)


def test_tensors_say_where_they_are_kept() -> None:
    tensors = saved_tensors(SHAPES["gpt"], 1, attention="unfused")
    [softmax] = [t for t in tensors if t.part == "scores" and "layers.0" in t.module]
    assert softmax.module == "layers.0.attention.core"
    assert softmax.shape[-1] == 16
    assert {t.part for t in tensors if "layers" not in t.module} == {"embedding", "head"}


class Products(TorchDispatchMode):
    """Bytes that come out of every other matrix product of each layer, by torchtitan's rule.

    In the order of computing; a router's and experts' products do not count.
    """

    def __init__(self, net: torch.nn.Module) -> None:
        super().__init__()
        self.names = {weight.data_ptr(): name for name, weight in net.named_parameters()}
        self.counted: Counter[str] = Counter()
        self.saved = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func == torch.ops.aten.mm.default:
            kind, layer, *inside = self.names[args[1].data_ptr()].split(".")
            if kind == "layers" and not {"router", "experts"} & {*inside}:
                self.counted[layer] += 1
                self.saved += self.counted[layer] % 2 * result.nbytes
        return result


@pytest.mark.parametrize(
    "name", ["llama gqa", "experts", "latent", "latent, plain queries", "as DeepSeek-V3"]
)
def test_every_other_product_is_in_the_order_of_computing(name: str) -> None:
    shape, b = SHAPES[name], 3
    net = build(shape, "cpu", torch.bfloat16)
    with Products(net) as products, torch.no_grad():
        net.loss(*tokens(shape, b, "cpu"))
    values = 0  # what comes into a layer, and out of attention
    for how_many, layer in shape.layers:
        [mixer] = layer.mixers
        values += how_many * (shape.hidden_size + mixer.matrix("output", shape.hidden_size).rows)
    kept = count_activations(shape, b, "alternate").layers
    assert products.saved == kept - 2 * b * shape.sequence_length * values


def test_a_norm_in_plain_operations_keeps_two_copies_more() -> None:
    """As Hugging Face's Llama has it, in fp32: three copies, where its input is one."""
    x = torch.randn(32, 64, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.ones(64, dtype=torch.bfloat16, requires_grad=True)
    sizes: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        sizes[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        result = weight * wide.to(x.dtype)
    small = 4 * 32 + weight.nbytes  # a number a token, and the weights
    assert sum(sizes.values()) - small == pytest.approx(3 * result.nbytes, rel=0.05)
