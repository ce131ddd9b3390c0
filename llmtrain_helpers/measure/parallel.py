"""Data parallelism by real processes: run by torchrun, one for each replica.

Behind `measure_data_parallel`. Every process has the same weights and its own share of
the batch; PyTorch averages their gradients with the gloo backend. They meet in a file
and talk over the loopback, so nothing is open to other machines. Needs PyTorch.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import functional as F  # noqa: N812
from torch.nn.parallel import DistributedDataParallel

from llmtrain_helpers.architecture import Transformer, keywords
from llmtrain_helpers.measure import DataParallel
from llmtrain_helpers.measure.model import Decoder, build, tokens


def launched(shape: Transformer, batch_size: int, processes: int) -> DataParallel:
    """What the processes found, as the first of them reports it."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        ends = ("hidden_size", "vocab_size", "sequence_length", "num_positions")
        said = {name: getattr(shape, name) for name in (*ends, "tied_embeddings")}
        said |= keywords(shape.layers)
        job = {"shape": said, "batch_size": batch_size, "folder": folder}
        command = [*_torchrun(folder, processes), "-m", __name__, json.dumps(job)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=300, env=_environment()
            )
        except subprocess.TimeoutExpired as error:
            raise RuntimeError("torchrun did not come to an end in 300 s") from error
    if done.returncode:
        raise RuntimeError(f"torchrun failed: {done.stderr.strip()[-300:]}")
    return DataParallel(**json.loads(done.stdout.strip().splitlines()[-1]))


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
    found = _compared(Transformer(**job["shape"]), job["batch_size"])
    if rank == 0:
        print(json.dumps(found), flush=True)
    dist.barrier()
    os._exit(0)  # gloo's threads abort now and then when they are torn down


def _compared(shape: Transformer, batch_size: int) -> dict[str, Any]:
    """Gradients averaged over the processes, beside those of the whole batch."""
    rank, d = dist.get_rank(), dist.get_world_size()
    inputs, targets = tokens(shape, batch_size, "cpu")
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


def _net(shape: Transformer) -> Decoder:
    """The same weights in every process, in fp64, so that rounding hides nothing."""
    torch.manual_seed(0)
    return build(shape, "cpu", torch.float64)


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
