"""A ledger of every living tensor's memory: how large, and which operator made it.

What is alive is what PyTorch has not released: no sampling, no allocator. Needs
PyTorch.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True)
class Entry:
    """A storage of PyTorch's: its bytes, and how it came about.

    `operator` is the name in ATen, with `output` saying which of its results this is;
    `module` the part of the model that ran it; `backward` whether gradients were being
    computed, and not a part of the model once more.
    """

    bytes: int
    shape: tuple[int, ...]
    whole_numbers: bool
    operator: str
    output: int
    module: str
    backward: bool

    @classmethod
    def of(
        cls,
        tensor: Any,
        operator: str = "",
        output: int = 0,
        module: str = "",
        backward: bool = False,
    ) -> Entry:
        """The entry of a tensor's storage."""
        return cls(
            bytes=tensor.untyped_storage().nbytes(),
            shape=tuple(tensor.shape),
            whole_numbers=tensor.dtype in (torch.int64, torch.int32),
            operator=operator,
            output=output,
            module=module,
            backward=backward,
        )

    @property
    def left_out(self) -> str:
        """Why the formulas leave it out: the name of what it is, or nothing."""
        if self.whole_numbers:
            return "token ids"
        if (self.operator, self.output) in _ONE_A_ROW:
            return _ONE_A_ROW[self.operator, self.output]
        if self.shape == ():
            return "the loss"
        # a mixture of experts itself, or its router; what an expert makes counts
        routes = self.module.endswith((".mlp.router", ".mlp:experts"))
        return "routing" if routes else ""


_ONE_A_ROW = {
    ("native_layer_norm", 1): "norm statistics",
    ("native_layer_norm", 2): "norm statistics",
    ("rsqrt", 0): "norm statistics",  # of our RMSNorm
    ("_scaled_dot_product_flash_attention_for_cpu", 1): "logsumexp",
}
"""Results that hold one number for each row of many."""


class Ledger(TorchDispatchMode):
    """While entered, its `live` holds each storage that was made and is not freed."""

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int, Entry] = {}
        self.modules: list[str] = []
        self.backward = False

    @property
    def in_backward(self) -> bool:
        """Whether gradients are being computed, and not a part of the model once more."""
        return self.backward and not self.modules

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator and enter what it made."""
        result = op(*args, **(kwargs or {}))
        several = isinstance(result, (tuple, list))
        for output, tensor in enumerate(result if several else [result]):
            if isinstance(tensor, Tensor):
                self._enter(tensor, op.overloadpacket.__name__, output)
        return result

    def _enter(self, tensor: Any, operator: str, output: int) -> None:
        storage = tensor.untyped_storage()
        key = storage_key(tensor)
        if key in self.live:  # a view, or a result in place
            return
        module = self.modules[-1] if self.modules else ""
        self.live[key] = Entry.of(tensor, operator, output, module, self.in_backward)
        weakref.finalize(storage, self.live.pop, key, None).atexit = False

    @contextmanager
    def name_modules(self, net: nn.Module) -> Iterator[None]:
        """Note which part of this model runs, innermost first."""
        hooks = []
        for name, module in net.named_modules():
            name += ":experts" if hasattr(module, "experts") else ""
            hooks.append(module.register_forward_pre_hook(_push_hook(self.modules, name)))
            hooks.append(module.register_forward_hook(_pop_hook(self.modules)))
        yield
        for hook in hooks:
            hook.remove()


def storage_key(tensor: Any) -> int:
    """What tells one storage from another, on any device, as long as it lives."""
    return int(tensor.untyped_storage()._cdata)


def _push_hook(stack: list[str], name: str) -> Any:
    return lambda module, inputs: stack.append(name)


def _pop_hook(stack: list[str]) -> Any:
    def pop(module: Any, inputs: Any, output: Any) -> None:
        stack.pop()

    return pop
