"""Training steps as a recipe has them: which copies there are, and Adam written out.

Behind `measure_step_memory`, the timings and the record. Needs PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from llmtrain_course.measure.model import Decoder
from llmtrain_helpers.precision import RECIPES, RecipeName

DTYPES = {4: torch.float32, 2: torch.bfloat16}
"""What a recipe's bytes stand for."""

RATE, MEAN, SQUARE, EPS = 1e-4, 0.9, 0.95, 1e-8
"""Adam's learning rate, its two decays, and what keeps it from dividing by 0."""


class Trainer:
    """A model's gradients, copies and optimizer, made and released as in training."""

    def __init__(self, net: Decoder, recipe: RecipeName) -> None:
        self.net, self.sizes = net, RECIPES[recipe]
        self.weights: list[Any] = list(net.parameters())
        self.main: dict[Any, Tensor] = {}
        self.main_gradients: dict[Any, Tensor] = {}
        self.moments: dict[Any, tuple[Tensor, Tensor]] = {}
        self.updates = 0
        if self.sizes.main_weights:
            self.main = {w: w.detach().float() for w in self.weights}
        if self.sizes.gradients > self.sizes.weights or self.sizes.main_gradients:
            for weight in self.weights:
                weight.register_post_accumulate_grad_hook(self._gather)

    def _gather(self, weight: Any) -> None:
        """Add a gradient to its sum in fp32, as soon as it is there."""
        if weight in self.main_gradients:
            self.main_gradients[weight] += weight.grad
        else:
            self.main_gradients[weight] = weight.grad.float()
        if self.sizes.main_gradients:  # both are kept
            weight.grad.zero_()
        else:
            weight.grad = None

    def step(self, inputs: Tensor, targets: Tensor) -> None:
        """A training step: a pass forward and backward, and an update."""
        self.net.loss(inputs, targets).backward()
        self.update()
        self.release()

    def update(self) -> None:
        """Adam, one parameter after the other; its moments are made the first time."""
        self.updates += 1
        with torch.no_grad():
            for weight in self.weights:
                exact = self.main.get(weight, weight)
                gradient = self.main_gradients.get(weight, weight.grad)
                adam(exact, gradient, self._moments(weight), self.updates)
                if exact is not weight:
                    weight.copy_(exact)

    def _moments(self, weight: Any) -> tuple[Tensor, Tensor]:
        if weight not in self.moments:
            dtype = DTYPES[int(self.sizes.optimizer) // 2]
            mean = torch.zeros_like(weight, dtype=dtype)
            self.moments[weight] = mean, torch.zeros_like(mean)
        return self.moments[weight]

    def release(self) -> None:
        """Drop the gradients."""
        self.main_gradients.clear()
        for weight in self.weights:
            weight.grad = None

    def states(self) -> dict[str, list[Any]]:
        """The tensors of the model's states, by part."""
        gradients = [w.grad for w in self.weights if w.grad is not None]
        return {
            "weights": [*self.weights, *self.main.values()],
            "gradients": [*gradients, *self.main_gradients.values()],
            "optimizer": [t for pair in self.moments.values() for t in pair],
        }


def adam(weight: Any, gradient: Any, moments: tuple[Any, Any], number_of_update: int) -> None:
    """An update by Adam, in place (arXiv 1412.6980, algorithm 1).

    torch.optim.Adam also keeps a counter of 4 bytes for each tensor; here it is one for
    all, and no tensor.
    """
    mean, square = moments
    g = gradient.to(mean.dtype)
    mean.lerp_(g, 1 - MEAN)
    square.mul_(SQUARE).addcmul_(g, g, value=1 - SQUARE)
    size = (square / (1 - SQUARE**number_of_update)).sqrt_().add_(EPS)
    weight.addcdiv_(mean, size, value=-RATE / (1 - MEAN**number_of_update))
