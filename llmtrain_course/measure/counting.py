"""What a model has, computes and keeps, counted on the meta device: sizes, no values.

Behind `measure_parameters`, `measure_flops` and `saved_tensors`. Needs PyTorch.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import set_checkpoint_early_stop
from torch.utils.flop_counter import FlopCounterMode

from llmtrain_course.measure import SavedTensor
from llmtrain_course.measure.ledger import Entry, Ledger, storage_key
from llmtrain_course.measure.model import Experts, build, tokens
from llmtrain_helpers.flops import FlopCount
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import ParameterCount


def parameters(shape: Transformer) -> ParameterCount:
    """Every parameter of the PyTorch model, under the part that it belongs to."""
    net = build(shape)
    parts = dict.fromkeys(["embedding", "attention", "mlp", "norm", "head"], 0)
    for name, parameter in net.named_parameters():  # a tied one comes once
        parts[_part_of_parameter(name)] += parameter.numel()
    mixtures = [m for m in net.modules() if isinstance(m, Experts)]
    idle = [expert for m in mixtures for expert in m.experts[m.chosen :]]
    unmet = sum(p.numel() for expert in idle for p in expert.parameters())
    return ParameterCount(**parts, active=sum(parts.values()) - unmet)


def _part_of_parameter(name: str) -> str:
    if "norm" in name:
        return "norm"
    within = _within_layer(name).split(".")[0]
    return "embedding" if within == "positions" else within


def _within_layer(name: str) -> str:
    """A module's or parameter's name without the layer: `attention.query.weight`."""
    return name.split(".", 2)[-1] if name.startswith("layers.") else name


def flops(shape: Transformer, batch_size: int, recompute: str) -> FlopCount:
    """The parts as counted without recomputation; what that adds to the total."""
    parts = dict.fromkeys(["projections", "scores", "mlp", "head"], 0)
    for name, flops in _flops_by_module(shape, batch_size, "none").items():
        parts[_part_of_flops(name)] += flops
    total = _flops_by_module(shape, batch_size, recompute).total()
    return FlopCount(**parts, recomputed=total - sum(parts.values()))


def _part_of_flops(module: str) -> str:
    within = _within_layer(module)
    if within.startswith("attention"):
        return "scores" if ".core" in within else "projections"
    return within.split(".")[0].removesuffix("_dropout")


def _flops_by_module(shape: Transformer, batch_size: int, recompute: str) -> Counter[str]:
    """FLOPs of forward and backward by PyTorch's counter, for each module that has any.

    Recomputation goes through to the end of what is recomputed; by default PyTorch
    stops once it has what backward needs, which leaves out a layer's last product.
    """
    net, inputs = build(shape, recompute=recompute), tokens(shape, batch_size, "meta")
    with set_checkpoint_early_stop(False), FlopCounterMode(display=False) as counter:
        meter = Meter(counter, net)
        net.loss(*inputs).backward()
        meter.read("")
    return +meter.by_module


class Meter:
    """Reads a FLOP counter whenever another module takes over, forward and backward.

    A module takes over as it is called, and in backward as the gradient of its output
    is there; until the next one does, what is counted is its own.
    """

    def __init__(self, counter: Any, net: nn.Module) -> None:
        self.counter, self.total, self.running = counter, 0, ""
        self.by_module: Counter[str] = Counter()
        for name, module in net.named_modules():
            if not any(module.children()) or name.endswith(".core"):
                self._attach(name, module)

    def _attach(self, name: str, module: nn.Module) -> None:
        def read(*_: Any) -> None:
            self.read(name)

        def called(module: Any, inputs: Any, output: Any) -> None:
            output.register_hook(read)

        module.register_forward_pre_hook(read)
        module.register_forward_hook(called)

    def read(self, name: str) -> None:
        """Book what was counted since the last reading, and go on with this module."""
        total = self.counter.get_total_flops()
        self.by_module[self.running] += total - self.total
        self.total, self.running = total, name


def saved(
    shape: Transformer, micro_batch_size: int, recompute: str, attention: str, dropout: bool
) -> tuple[SavedTensor, ...]:
    """List what autograd saves in a forward pass, each storage once, without parameters."""
    net = build(shape, "meta", torch.bfloat16, attention, dropout, recompute)
    inputs = tokens(shape, micro_batch_size, "meta")
    constant = {storage_key(t) for t in (*net.parameters(), *net.buffers())}
    ledger, storages = Ledger(), dict[int, SavedTensor]()

    def pack(tensor: Any) -> Any:
        key = storage_key(tensor)
        if key not in constant and key not in storages:
            entry = ledger.live.get(key) or Entry.of(tensor)
            where = ledger.modules[-1] if ledger.modules else "loss"
            storages[key] = _saved(entry, where)
        return tensor

    with ledger, ledger.name_modules(net), saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = net.loss(*inputs)  # holds what is saved, so that no key comes twice
    del loss
    return tuple(storages.values())


def _saved(entry: Entry, where: str) -> SavedTensor:
    part = _PARTS.get(_within_layer(where).split(".")[0], "head")
    by_scores = entry.operator in ("_softmax", "native_dropout")
    if ".core" in where and by_scores:
        part = "scores"
    return SavedTensor(part, where, entry.shape, entry.bytes, entry.left_out)


_PARTS = {
    "": "checkpoints",  # the model itself saves only what its layers start from
    "embedding": "embedding",
    "dropout": "embedding",
    "attention_norm": "norms",
    "mlp_norm": "norms",
    "attention": "attention",
    "attention_dropout": "attention",
    "mlp": "mlp",
    "mlp:experts": "mlp",
    "mlp_dropout": "mlp",
}
"""Under which part of the formula falls what a module saves; the rest is the head."""
