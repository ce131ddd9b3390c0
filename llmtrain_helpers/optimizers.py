"""Optimizers smaller than Adam, and states kept on the host. Shared by chapters 10 and 12.

Sources: Dettmers et al. (arXiv 2110.02861) for 8-bit Adam, Shazeer and Stern (arXiv
1804.04235) for Adafactor, Jordan et al. (kellerjordan.github.io/posts/muon) for Muon, Ren
et al. (arXiv 2101.06840) for what is kept on the host.
"""

from __future__ import annotations

from llmtrain_helpers.checks import Count, Quantity, checked
from llmtrain_helpers.precision import Recipe

OPTIMIZERS = {
    recipe.name: recipe
    for recipe in (
        Recipe("adam", 2, 2, 0, 4, 8),
        Recipe("adam_8bit", 2, 2, 0, 4, 2 + 2 * 4 / 2048),
        Recipe("adafactor", 2, 2, 0, 4, 0),  # a sum a row and a column: some h of h²
        Recipe("muon", 2, 2, 0, 4, 4),
    )
}
"""Optimizers as recipes for `plan_run`: bytes of weights, gradients, main gradients,
main weights and states. Adam has two states a parameter; in 8 bits a byte each, and 4
bytes for every 2,048; Adafactor without momentum only sums over rows and columns; Muon
one momentum (embedding and head, which stay with Adam, have two)."""


@checked
def muon_overhead(
    hidden_size: Count[float], batch_tokens: Count[float], iterations: Count[float] = 5
) -> float:
    """The FLOPs that Muon adds, as a share of a step's: at most T·m/B.

    Each of T steps of Newton and Schulz multiplies the momentum of a matrix with
    itself; m is the smaller side, B the tokens in a step.

    Source: Jordan et al., Muon, kellerjordan.github.io/posts/muon, runtime analysis.

    >>> round(muon_overhead(16384, 16e6), 4)
    0.0051
    """
    return iterations * hidden_size / batch_tokens


@checked
def offload_seconds(
    parameters: Count[float], host_bandwidth: Quantity[float], num_gpus: Count[float] = 1
) -> float:
    """Seconds a step to send gradients to the host and weights back: 4P/(n·b).

    The host keeps main weights and Adam's states and does the update; each of n GPUs
    sends its n-th of the 16-bit gradients, and gets as much of the weights. The
    update's own time comes on top, and part of both hides behind the backward pass.

    Source: Ren et al., ZeRO-Offload, arXiv 2101.06840, sections 3 and 4.

    >>> round(offload_seconds(8e9, host_bandwidth=25e9), 2)
    1.28
    """
    return 4 * parameters / (num_gpus * host_bandwidth)
