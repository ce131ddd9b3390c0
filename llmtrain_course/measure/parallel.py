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

from llmtrain_course.measure import DataParallel
from llmtrain_course.measure.clock import Experiments, timed
from llmtrain_course.measure.model import Decoder, build, tokens
from llmtrain_course.measure.trace import Trace, read_trace, trace_of
from llmtrain_helpers.model.transformer import Transformer, keywords


def compare_gradients(shape: Transformer, batch_size: int, processes: int) -> DataParallel:
    """Compare the gradients of processes with those of the whole batch, and time both."""
    return DataParallel(**_report("compare", shape, batch_size, processes))


def trace_step(shape: Transformer, batch_size: int, overlap: bool) -> Trace:
    """Trace the last step of the first of two processes with a profiler."""
    return trace_of(_report("trace", shape, batch_size, overlap=overlap))


def experiments(shape: Transformer, batch_size: int, delay: float) -> Experiments:
    """Throughput of a step over a slow link: as it is, and after each change."""
    return Experiments(**_report("slow link", shape, batch_size, delay=delay))


def _report(
    task: str, shape: Transformer, batch_size: int, processes: int = 2, **options: float
) -> dict[str, Any]:
    """What the first of so many processes prints, as JSON."""
    ends = ("hidden_size", "vocab_size", "sequence_length", "num_positions", "tied_embeddings")
    arguments = {name: getattr(shape, name) for name in ends} | keywords(shape.layers)
    job = {"task": task, "shape": arguments, "batch_size": batch_size, **options}
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # they meet in a file, for torchrun's own port is open to all
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--rdzv-backend=c10d",
            f"--rdzv-endpoint={folder}/agent",
            "--rdzv-conf=store_type=file",
            f"--nproc-per-node={processes}",
            "-m",
            __name__,
            json.dumps({**job, "folder": folder}),
        ]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=300,
                env=_environment(),
            )
        except subprocess.TimeoutExpired as error:
            raise RuntimeError("torchrun did not come to an end in 300 s") from error
    if done.returncode:
        raise RuntimeError(f"torchrun failed: {done.stderr.strip()[-300:]}")
    report: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return report


def _environment() -> dict[str, str]:
    """This machine's environment, with gloo on the loopback and no port of torchrun's."""
    names = {name for _, name in socket.if_nameindex()} & {"lo", "lo0"}
    loopback = {"GLOO_SOCKET_IFNAME": names.pop()} if names else {}
    return {**os.environ, **loopback, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def main() -> None:
    """A process's share of the work; the first process compares and prints."""
    job = json.loads(sys.argv[1])
    rank, processes = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
    meeting = dist.FileStore(f"{job['folder']}/processes", processes)
    dist.init_process_group("gloo", store=meeting, rank=rank, world_size=processes)
    torch.set_num_threads(1)
    report = _TASKS[job["task"]](Transformer(**job["shape"]), job)
    if rank == 0:
        print(json.dumps(report), flush=True)
    dist.barrier()
    os._exit(0)  # gloo's threads abort now and then when they are torn down


def _compare(shape: Transformer, job: dict[str, Any]) -> dict[str, Any]:
    """Gradients averaged over the processes, beside those of the whole batch."""
    rank, d = dist.get_rank(), dist.get_world_size()
    inputs, targets = tokens(shape, job["batch_size"], "cpu")
    whole = _net(shape)
    _loss(whole, inputs, targets).backward()
    replica = DistributedDataParallel(_net(shape))
    part = inputs.chunk(d)[rank], targets.chunk(d)[rank]
    _loss(replica, *part).backward()
    averaged, gradients = _flat_gradients(replica.module), _flat_gradients(whole)
    difference = (averaged - gradients).abs().max() / gradients.abs().max()
    return {
        "processes": d,
        "gradient_bytes": gradients.nbytes,
        "largest_difference": float(difference),
        "pass_seconds": shortest_seconds(lambda: _loss(whole, *part).backward()),
        "all_reduce_seconds": shortest_seconds(lambda: dist.all_reduce(gradients)),
    }


BUCKETS = 4
"""The number of buckets for gradients, about; each is sent once it's full."""


def _trace(shape: Transformer, job: dict[str, Any]) -> dict[str, Any]:
    """Four steps: one not watched, one to warm up the profiler, two that it keeps."""
    step = Step(shape, job["batch_size"], overlap=job["overlap"])
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

    def __init__(self, shape: Transformer, batch: int, overlap: bool = True) -> None:
        net = _net(shape, torch.float32)
        size = sum(p.nbytes for p in net.parameters()) / BUCKETS / 2**20
        self.net = DistributedDataParallel(net, bucket_cap_mb=size)
        self.optimizer = torch.optim.AdamW(net.parameters())
        self.inputs, self.targets = tokens(shape, batch, "cpu")
        self.overlap = overlap

    def __call__(self) -> None:
        """Forward, backward, the exchange, the update."""
        exchange = nullcontext() if self.overlap else self.net.no_sync()
        with record_function("forward"), exchange:
            loss = _loss(self.net, self.inputs, self.targets)
        with record_function("backward"):
            loss.backward()
        if not self.overlap:
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


def _measure_slow_link(shape: Transformer, job: dict[str, Any]) -> dict[str, Any]:
    """Measure sequences per second over a link on which each parcel takes `delay` longer."""

    def delay(future: Any) -> Any:
        sleep(job["delay"])
        return future.value()[0]

    def exchange(bucket: Any) -> Any:
        share = bucket.buffer() / dist.get_world_size()
        return dist.all_reduce(share, async_op=True).get_future().then(delay)

    def rate(batch: int, without_exchange: bool = False) -> float:
        step = Step(shape, batch)
        # a lambda, for PyTorch reads a hook's annotations, and as text knows none
        step.net.register_comm_hook(None, lambda state, bucket: exchange(bucket))
        with step.net.no_sync() if without_exchange else nullcontext():
            return batch / timed(step, warm_up=2, repeats=5).median

    b = job["batch_size"]
    now = rate(b)
    return {
        "as_it_is": now,
        "same_data": now,  # it is there already
        "one_gpu": rate(b, without_exchange=True),
        "doubled": rate(2 * b),
    }


_TASKS: dict[str, Callable[[Transformer, dict[str, Any]], dict[str, Any]]] = {
    "compare": _compare,
    "trace": _trace,
    "slow link": _measure_slow_link,
}
"""What processes can be started for, by its name in a job."""


def _net(shape: Transformer, dtype: Any = torch.float64) -> Decoder:
    """A model with the same weights in every process, in fp64 so that rounding hides nothing."""
    torch.manual_seed(0)
    kernel = "unfused" if dtype == torch.float64 else "flash"
    return build(shape, "cpu", dtype, kernel)


def _loss(net: Any, inputs: Any, targets: Any) -> Any:
    return F.cross_entropy(net(inputs).flatten(0, 1), targets.flatten())


def _flat_gradients(net: Decoder) -> Any:
    return torch.cat([p.grad.flatten() for p in net.parameters()])


def shortest_seconds(run: Callable[[], Any]) -> float:
    """The shortest of five runs that all processes begin together."""
    seconds = []
    for _ in range(5):
        dist.barrier()
        start = perf_counter()
        run()
        seconds.append(perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
