"""The chip that a model is trained on: its memory, peaks and links. Shared by all chapters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from llmtrain_helpers.checks import (
    Result,
    Size,
    count,
    instance,
    is_array,
    quantity,
    rate,
    refuse,
    share,
)

_RATES = ("bandwidth", "power", "link_bandwidth", "network_bandwidth", "shown_memory")


@dataclass(frozen=True)
class Accelerator:
    """A GPU or TPU: memory in bytes, bandwidth in bytes/s, power in watts, peaks in FLOP/s.

    `link_bandwidth` and `network_bandwidth` are the bytes/s that one GPU sends, one way,
    inside its node of `gpus_per_node` and out of it; `matmul_share` is the best measured
    share of its dense peak for a matrix product, and `matmul_shares` maps formats to
    theirs if it's different. `shown_memory` is the bytes that its driver shows, in case
    the vendor's GB are rounded. Anything unknown is None.

    `peaks` maps a number format (fp32, tf32, bf16, fp16, fp8, fp4) to the dense peak, the
    one without structured sparsity: twice that is what many datasheets print.

    >>> chip = Accelerator("A100", 80e9, 2.039e12, 400, {"bf16": 312e12})
    >>> chip.peak("bf16")
    312000000000000.0
    >>> chip.peak("fp8")
    Traceback (most recent call last):
    ...
    ValueError: format='fp8' has no peak on A100. Known: bf16
    """

    name: str
    memory: Result
    bandwidth: Result | None = None
    power: Result | None = None
    peaks: Mapping[str, Result] = field(default_factory=dict, hash=False)
    link_bandwidth: Result | None = None
    network_bandwidth: Result | None = None
    gpus_per_node: Size = 8
    matmul_share: Result | None = None
    matmul_shares: Mapping[str, Result] = field(default_factory=dict, hash=False)
    shown_memory: Result | None = None

    def __post_init__(self) -> None:
        instance("name", self.name, str)
        object.__setattr__(self, "memory", quantity("memory", self.memory))
        if not is_array(self.memory) and self.memory < 1e6:
            meant = f"Write {self.memory:g}e9"
            refuse("memory", self.memory, f"is below a megabyte: in GB? {meant}")
        others = {"gpus_per_node": count, "matmul_share": share}
        for name in (*_RATES, *others):
            if getattr(self, name) is not None or name == "gpus_per_node":
                checked = others.get(name, quantity)(name, getattr(self, name))
                object.__setattr__(self, name, checked)
        if not isinstance(self.peaks, Mapping):
            refuse("peaks", self.peaks, "isn't a mapping of formats to FLOP/s")
        peaks = {str(key): rate(f"peaks[{key!r}]", x) for key, x in self.peaks.items()}
        object.__setattr__(self, "peaks", peaks)
        if not isinstance(self.matmul_shares, Mapping):
            refuse("matmul_shares", self.matmul_shares, "isn't a mapping of formats to shares")
        shares = {
            str(key): share(f"matmul_shares[{key!r}]", x) for key, x in self.matmul_shares.items()
        }
        object.__setattr__(self, "matmul_shares", shares)

    def peak(self, format: str) -> Result:
        """The dense peak for a number format, in FLOP/s; raises ValueError if there isn't one."""
        if not isinstance(format, str) or format not in self.peaks:
            formats = ", ".join(self.peaks) or "none"
            refuse("format", format, f"has no peak on {self.name}. Known: {formats}")
        return self.peaks[format]

    def matmul_rate(self, format: str) -> Result | None:
        """FLOP/s of the best matrix product in a number format; None if it's unknown.

        >>> chip = Accelerator("H100", 80e9, peaks={"fp8": 2e15}, matmul_share=0.8,
        ...     matmul_shares={"fp8": 0.7})
        >>> chip.matmul_rate("fp8")
        1400000000000000.0
        """
        peak = self.peak(format)
        best = self.matmul_shares.get(format, self.matmul_share)
        return None if best is None else peak * best

    @property
    def training_format(self) -> str:
        """The format that models are trained in: bf16, or fp16 if it doesn't have bf16."""
        return "bf16" if "bf16" in self.peaks else "fp16"
