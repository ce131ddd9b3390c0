"""Data parallelism by real processes: run by torchrun, one for each replica.

Behind `measure_data_parallel` and its sisters. Every process has the same weights and
its own share of the batch; PyTorch averages their gradients with the gloo backend. They
meet in a file and talk over the loopback, so nothing is open to other machines. Needs
PyTorch.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import functional as F  # noqa: N812
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from llmtrain_helpers.measure import DataParallel
from llmtrain_helpers.measure.clock import Experiments, timed
from llmtrain_helpers.measure.model import Decoder, build, tokens
from llmtrain_helpers.measure.trace import Trace, read_trace, trace_of
from llmtrain_helpers.model.transformer import Transformer, keywords


def launched(shape: Transformer, batch_size: int, processes: int) -> DataParallel:
    """What the processes found, as the first of them reports it."""
    job = {"shape": _told(shape), "batch_size": batch_size, "what": "compared"}
    return DataParallel(**_reported(job, processes))


def traced(shape: Transformer, batch_size: int, overlap: bool) -> Trace:
    """The last step of the first of two processes, as a profiler saw it."""
    what = "beside" if overlap else "after"
    job = {"shape": _told(shape), "batch_size": batch_size, "what": what}
    return trace_of(_reported(job, 2))


def experiments(shape: Transformer, batch_size: int, delay: float) -> Experiments:
    """Throughput of a step over a slow link: as it is, and after each change."""
    job = {"shape": _told(shape), "batch_size": batch_size, "what": "slowed"}
    return Experiments(**_reported(job | {"delay": delay}, 2))


def _told(shape: Transformer) -> dict[str, Any]:
    """The keywords that make this shape again."""
    ends = ("hidden_size", "vocab_size", "sequence_length", "num_positions")
    said = {name: getattr(shape, name) for name in (*ends, "tied_embeddings")}
    return said | keywords(shape.layers)


def _reported(job: dict[str, Any], processes: int) -> dict[str, Any]:
    """What the first of so many processes prints, as JSON."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        job = job | {"folder": folder}
        command = [*_torchrun(folder, processes), "-m", __name__, json.dumps(job)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=300, env=_environment()
            )
        except subprocess.TimeoutExpired as error:
            raise RuntimeError("torchrun did not come to an end in 300 s") from error
    if done.returncode:
        raise RuntimeError(f"torchrun failed: {done.stderr.strip()[-300:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _torchrun(folder: str, processes: int) -> list[str]:
    """The command; they meet in a file, for torchrun's own port is open to all."""
    command = [sys.executable, "-m", "torch.distributed.run", "--rdzv-backend=c10d"]
    command += [f"--rdzv-endpoint={folder}/agent", "--rdzv-conf=store_type=file"]
    return [*command, f"--nproc-per-node={processes}"]


def _environment() -> dict[str, str]:
    """This machine's, with gloo on the loopback and no port of torchrun's."""
    names = {name for _, name in socket.if_nameindex()} & {"lo", "lo0"}
    loopback = {"GLOO_SOCKET_IFNAME": names.pop()} if names else {}
    return {**os.environ, **loopback, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def main() -> None:
    """One process's share of the work; the first compares and prints."""
    job = json.loads(sys.argv[1])
    rank, processes = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
    meeting = dist.FileStore(f"{job['folder']}/processes", processes)
    dist.init_process_group("gloo", store=meeting, rank=rank, world_size=processes)
    torch.set_num_threads(1)
    found = {"compared": _compared, "slowed": _slowed}.get(job["what"], _traced)(
        Transformer(**job["shape"]), job
    )
    if rank == 0:
        print(json.dumps(found), flush=True)
    dist.barrier()
    os._exit(0)  # gloo's threads abort now and then when they are torn down


def _compared(shape: Transformer, job: dict[str, Any]) -> dict[str, Any]:
    """Gradients averaged over the processes, beside those of the whole batch."""
    rank, d = dist.get_rank(), dist.get_world_size()
    inputs, targets = tokens(shape, job["batch_size"], "cpu")
    alone = _net(shape)
    _loss(alone, inputs, targets).backward()
    shared = DistributedDataParallel(_net(shape))
    mine = inputs.chunk(d)[rank], targets.chunk(d)[rank]
    _loss(shared, *mine).backward()
    averaged, whole = _flat(shared.module), _flat(alone)
    difference = (averaged - whole).abs().max() / whole.abs().max()
    return {
        "processes": d,
        "gradient_bytes": whole.nbytes,
        "largest_difference": float(difference),
        "pass_seconds": shortest(lambda: _loss(alone, *mine).backward()),
        "all_reduce_seconds": shortest(lambda: dist.all_reduce(whole)),
    }


BUCKETS = 4
"""Into how many parcels gradients are packed, about; each leaves when it is full."""


def _traced(shape: Transformer, job: dict[str, Any]) -> dict[str, Any]:
    """Four steps: one not watched, one to warm up the profiler, two that it keeps."""
    step = Step(shape, job["batch_size"], together=job["what"] == "beside")
    file = f"{job['folder']}/trace{dist.get_rank()}.json"
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=2),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(file),
    ) as profiler:
        for _ in range(4):
            step()
            profiler.step()
    return vars(read_trace(file))


class Step:
    """A training step of this process; gradients travel beside backward, or after."""

    def __init__(self, shape: Transformer, batch: int, together: bool = True) -> None:
        net = _net(shape, torch.float32)
        size = sum(p.nbytes for p in net.parameters()) / BUCKETS / 2**20
        self.net = DistributedDataParallel(net, bucket_cap_mb=size)
        self.optimizer = torch.optim.AdamW(net.parameters())
        self.inputs, self.targets = tokens(shape, batch, "cpu")
        self.together = together

    def __call__(self) -> None:
        """Forward, backward, the exchange, the update."""
        with record_function("forward"), self._exchange():
            loss = _loss(self.net, self.inputs, self.targets)
        with record_function("backward"):
            loss.backward()
        if not self.together:
            self._average()
        with record_function("optimizer"):
            self.optimizer.step()
            self.optimizer.zero_grad()

    def _average(self) -> None:
        """All gradients in one parcel, there and back."""
        gradients = [parameter.grad for parameter in self.net.parameters()]
        parcel = torch.cat([g.flatten() for g in gradients]) / dist.get_world_size()
        dist.all_reduce(parcel)
        shares = parcel.split([g.numel() for g in gradients])
        for gradient, share in zip(gradients, shares, strict=True):
            gradient.copy_(share.view_as(gradient))

    def _exchange(self) -> Any:
        return nullcontext() if self.together else self.net.no_sync()


def _slowed(shape: Transformer, job: dict[str, Any]) -> dict[str, Any]:
    """Sequences a second over a link on which each parcel is `delay` on its way."""

    def late(done: Any) -> Any:
        sleep(job["delay"])
        return done.value()[0]

    def sent(bucket: Any) -> Any:
        share = bucket.buffer() / dist.get_world_size()
        return dist.all_reduce(share, async_op=True).get_future()

    def rate(batch: int, alone: bool = False) -> float:
        step = Step(shape, batch)
        step.net.register_comm_hook(None, lambda state, bucket: sent(bucket).then(late))
        with step.net.no_sync() if alone else nullcontext():
            return batch / timed(step, warm_up=2, repeats=5).median

    b = job["batch_size"]
    now = rate(b)
    changed = {"alone": rate(b, alone=True), "doubled": rate(2 * b)}
    return {"as_it_is": now, "same_data": now, **changed}  # its data is there already


def _net(shape: Transformer, dtype: Any = torch.float64) -> Decoder:
    """The same weights in every process, in fp64, so that rounding hides nothing."""
    torch.manual_seed(0)
    kernel = "unfused" if dtype == torch.float64 else "flash"
    return build(shape, "cpu", dtype, kernel)


def _loss(net: Any, inputs: Any, targets: Any) -> Any:
    return F.cross_entropy(net(inputs).flatten(0, 1), targets.flatten())


def _flat(net: Decoder) -> Any:
    return torch.cat([p.grad.flatten() for p in net.parameters()])


def shortest(run: Callable[[], Any]) -> float:
    """The shortest of five times, begun together."""
    taken = []
    for _ in range(5):
        dist.barrier()
        start = perf_counter()
        run()
        taken.append(perf_counter() - start)
    return min(taken)


if __name__ == "__main__":
    main()
