"""One of several real processes that do collectives in a ring, and by gloo.

Run by `test_collectives`: each sends to the next one only and counts its bytes; beside
it PyTorch's own collective does the same.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from .processes import run_groups

SIZE = 48


class Ring:
    """This process in a ring: what it sends to the next one is counted."""

    def __init__(self) -> None:
        self.rank, self.many = dist.get_rank(), dist.get_world_size()
        self.sent = 0

    def pass_on(self, values: torch.Tensor) -> torch.Tensor:
        """Send to the next process; what came from the one before."""
        came = torch.empty_like(values)
        going = dist.isend(values.contiguous(), (self.rank + 1) % self.many)
        dist.recv(came, (self.rank - 1) % self.many)
        going.wait()
        self.sent += values.nbytes
        return came

    def scatter(self, whole: torch.Tensor) -> torch.Tensor:
        """Of the sum over all processes the piece that is this one's."""
        pieces = list(whole.clone().chunk(self.many))
        for turn in range(self.many - 1):
            came = self.pass_on(pieces[(self.rank - turn - 1) % self.many])
            pieces[(self.rank - turn - 2) % self.many] += came
        return pieces[self.rank]

    def gather(self, own: torch.Tensor) -> torch.Tensor:
        """The pieces of all processes, in order."""
        pieces: dict[int, torch.Tensor] = {self.rank: own}
        for turn in range(self.many - 1):
            came = self.pass_on(pieces[(self.rank - turn) % self.many])
            pieces[(self.rank - turn - 1) % self.many] = came
        return torch.cat([pieces[i] for i in range(self.many)])


def main(rank: int, many: int, meeting: str) -> dict[str, Any]:
    """Scatter, gather and all-reduce, both ways."""
    store = dist.FileStore(meeting, many)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=many)
    mine = torch.arange(float(SIZE)) * (rank + 1)
    results: dict[str, Any] = {"bytes": mine.nbytes}

    whole = mine.clone()
    dist.all_reduce(whole)
    ring = Ring()
    piece = ring.scatter(mine)
    results["scatter"] = [ring.sent, torch.equal(piece, whole.chunk(many)[rank])]

    pieces = [torch.empty_like(piece) for _ in range(many)]
    dist.all_gather(pieces, piece)
    ring = Ring()
    everything = ring.gather(piece)
    results["gather"] = [ring.sent, torch.equal(everything, torch.cat(pieces))]

    ring = Ring()
    results["all-reduce"] = [0, torch.equal(ring.gather(ring.scatter(mine)), whole)]
    results["all-reduce"][0] = ring.sent
    dist.barrier()
    return results


if __name__ == "__main__":
    run_groups(main)
