"""Parameters and FLOPs: what PyTorch counts is what the formulas say, as integers."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from llmtrain_course.exercises import check
from llmtrain_course.measure import (
    counting,
    measure_flops,
    measure_parameters,
    model,
    saved_tensors,
)
from llmtrain_helpers import Transformer, count_flops, count_parameters, gpt_flops, published
from llmtrain_helpers.flops import RECOMPUTE

from .shapes import SHAPES

every_shape = pytest.mark.parametrize("name", SHAPES)


@every_shape
def test_parameters_part_by_part(name: str) -> None:
    measured = measure_parameters(SHAPES[name])
    assert measured == count_parameters(SHAPES[name])
    assert all(type(part) is int for part in measured.parts().values())


@pytest.mark.parametrize(
    "name", ["gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "Llama-3.1-8B", "Mixtral-8x7B"]
)
def test_published_totals(name: str) -> None:
    table = published.architectures().set_index("name")
    shape = published.architecture(name)
    measured = measure_parameters(shape)
    assert measured.total == table.loc[name, "parameters"]
    assert measured == count_parameters(shape)


@every_shape
def test_flops_part_by_part(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes without recomputation, which give the parts, are measured once for all three."""
    monkeypatch.setattr(counting, "_flops_by_module", cache(counting._flops_by_module))
    for recompute in RECOMPUTE:
        measured = measure_flops(SHAPES[name], 3, recompute)
        assert measured == count_flops(SHAPES[name], 3, recompute), recompute
        assert all(type(part) is int for part in measured.parts().values())


@pytest.mark.parametrize("recompute", RECOMPUTE)
def test_flops_of_the_worked_case(recompute: str) -> None:
    l, h, V, s = 4, 6144, 50257, 1024  # the 18.4B run, with a tenth of its layers
    shape = Transformer.gpt(l, h, 48, V, s)
    measured = measure_flops(shape, 512, recompute).total
    assert measured == gpt_flops(l, h, V, s, 512, recompute)


def test_by_default_pytorch_stops_recomputing_early(monkeypatch: Any) -> None:
    monkeypatch.setattr(counting, "set_checkpoint_early_stop", lambda _: counting_as_is())
    l, h, V, s, B = 2, 48, 50, 16, 3
    early = measure_flops(Transformer.gpt(l, h, 4, V, s), B, "full").total
    assert early == 88 * B * s * l * h**2 + 16 * B * s**2 * l * h + 6 * B * s * h * V


def counting_as_is() -> Any:
    from contextlib import nullcontext

    return nullcontext()


def test_both_ways_of_attention_compute_the_same() -> None:
    import torch

    for name in ("gpt odd", "llama all", "experts all", "as DeepSeek-V3"):
        losses = []
        for attention in ("unfused", "flash"):
            torch.manual_seed(0)
            net = model.build(SHAPES[name], "cpu", torch.float32, attention)
            losses.append(net.loss(*model.tokens(SHAPES[name], 2, "cpu")))
        torch.testing.assert_close(*losses)


def test_our_rms_norm_and_rotary_have_the_gradients_of_pytorchs_own() -> None:
    import torch
    from torch.nn import functional

    torch.manual_seed(0)
    x = torch.randn(3, 5, 2, 8, requires_grad=True)
    norm = model.RMSNorm(8)
    wanted = functional.rms_norm(x, (8,), norm.weight, model.EPS)
    for ours, theirs in zip(
        grads(norm(x), x, norm.weight), grads(wanted, x, norm.weight), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-4)
    rotary = model.Rotary(5, 8)
    first, second = x.chunk(2, dim=-1)
    cos, sin = rotary.cos, rotary.sin
    wanted = torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
    torch.testing.assert_close(grads(rotary(x), x), grads(wanted, x))


def grads(result: Any, *inputs: Any) -> Any:
    import torch

    weighted = (result * torch.arange(result.numel()).view(result.shape)).sum()
    return torch.autograd.grad(weighted, inputs)


def test_the_model_learns() -> None:
    import torch

    from llmtrain_course.measure.training import Trainer

    torch.manual_seed(0)
    shape = SHAPES["llama gqa"]
    inputs, _ = model.tokens(shape, 2, "cpu")
    for recipe in ("fp32", "bf16", "bf16_fp32_grads", "bf16_both_grads"):
        dtype = torch.float32 if recipe == "fp32" else torch.bfloat16
        net = model.build(shape, "cpu", dtype, "flash", recompute="full")
        trainer = Trainer(net, recipe)
        first = net.loss(inputs, inputs).item()
        for _ in range(30):
            trainer.step(inputs, inputs)
        assert net.loss(inputs, inputs).item() < 0.98 * first, recipe


def test_adam_is_pytorchs() -> None:
    import torch

    from llmtrain_course.measure import training

    weight = torch.randn(7, 5, requires_grad=True)
    ours, moments = weight.detach().clone(), [torch.zeros(7, 5) for _ in range(2)]
    adam = torch.optim.Adam([weight], training.RATE, (training.MEAN, training.SQUARE))
    for number in range(1, 6):
        weight.grad = torch.randn(7, 5)
        training.adam(ours, weight.grad, (moments[0], moments[1]), number)
        adam.step()
    torch.testing.assert_close(ours, weight.detach())


def test_the_answers_of_08_are_what_pytorch_shows() -> None:
    data = torch.randn(1024, 512, device="meta")
    up = torch.randn(512, 2048, device="meta", requires_grad=True)
    down = torch.randn(2048, 512, device="meta", requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        (torch.nn.functional.gelu(data @ up) @ down).sum().backward()
    assert check("measure-a", counter.get_total_flops()).ok
    tensors = saved_tensors(Transformer.gpt(12, 768, 12, 50257, 1024), 8)
    statistics = [
        t.bytes
        for t in tensors
        if t.module.startswith("layers") and t.left_out == "norm statistics"
    ]
    assert sum(statistics) == 2 * 4 * (8 * 1024) * (2 * 12)  # the evidence says so


def test_flash_attention_computes_one_product_more_going_back() -> None:
    """10Bs²lh where the formulas count 8: the scores once more, says PyTorch."""
    B, a, s, d = 2, 4, 64, 16
    shape = (B, a, s, d)
    forward = sdpa_flop_count(shape, shape, shape)
    backward = sdpa_backward_flop_count(shape, shape, shape, shape)
    assert forward == 4 * B * s**2 * a * d
    assert backward == 10 * B * s**2 * a * d
    layer = count_flops(Transformer.gpt(1, a * d, a, 1, s), B, "none")
    assert layer.scores == forward + 8 * B * s**2 * a * d
