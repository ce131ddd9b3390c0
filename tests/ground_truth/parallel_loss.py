"""What a head that tensor parallelism shares holds at the loss: bytes of each logit."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.autograd.profiler import record_function
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import ColwiseParallel, loss_parallel, parallelize_module
from torch.profiler import ProfilerActivity, profile

from .processes import run_groups

TOKENS, HIDDEN, WORDS = 512, 64, 8192


def main(rank: int, many: int, meeting: str) -> dict[str, float]:
    """Join the group, take a step twice, and tell what the second one held."""
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=many)
    head = nn.Linear(HIDDEN, WORDS, bias=False, dtype=torch.bfloat16)
    places = {"input_layouts": Shard(0), "output_layouts": Shard(-1)}
    plan = ColwiseParallel(**places, use_local_output=False)
    mesh = init_device_mesh("cpu", (many,))
    head = parallelize_module(head, mesh, plan) if many > 1 else head
    state = torch.randn(TOKENS // many, HIDDEN, dtype=torch.bfloat16)
    words = torch.randint(0, WORDS, (TOKENS,))

    def step() -> None:
        with loss_parallel():
            logits = head(state.requires_grad_())
            loss = nn.functional.cross_entropy(logits.float(), words)
            with record_function("backward"):
                loss.backward()
        head.weight.grad = state.grad = None

    step()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watch:
        step()
    dist.barrier()
    return peaks(watch, TOKENS * WORDS // many)


def peaks(watch: profile, logits: int) -> dict[str, float]:
    """The most that was held before and after backward began, for each logit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        watch.export_chrome_trace(str(path))
        events = json.loads(path.read_text("utf-8"))["traceEvents"]
    [begin] = [e["ts"] for e in events if e.get("name") == "backward"]
    sizes = [(e["ts"], e["args"]["Bytes"]) for e in events if e["name"] == "[memory]"]
    total, most = 0, {"forward": 0.0, "backward": 0.0}
    for at, size in sorted(sizes):
        total += size
        part = "forward" if at < begin else "backward"
        most[part] = max(most[part], total / logits)
    return most


if __name__ == "__main__":
    run_groups(main)
