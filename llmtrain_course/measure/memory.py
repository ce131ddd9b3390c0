"""What a step holds, from a ledger of storages while a small model really trains.

Behind `measure_step_memory`. Needs PyTorch. It also prints the rows of
`data/memory_trace.csv`, for steps of any size, because tensors on PyTorch's meta device have
sizes and no values:

    python -m llmtrain_course.measure.memory >data/memory_trace.csv
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.utils.checkpoint import set_checkpoint_early_stop

from llmtrain_course.measure.ledger import Entry, Ledger, storage_key
from llmtrain_course.measure.model import MLP, build, tokens
from llmtrain_course.measure.training import DTYPES, Trainer
from llmtrain_helpers import published
from llmtrain_helpers.activations import Moment, Timeline
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.precision import RECIPES, RecipeName


def timeline(
    shape: Transformer,
    micro_batch_size: int,
    recipe: RecipeName,
    *,
    steps: int,
    accumulation_steps: int,
    left_out: bool,
    **options: Any,
) -> Timeline:
    """The moments of real steps on the CPU, in the order in which they come."""
    watch = Watch(left_out)
    with watch, set_checkpoint_early_stop(False):
        net = build(shape, "cpu", DTYPES[int(RECIPES[recipe].weights)], **options)
        trainer = Trainer(net, recipe)
        inputs = tokens(shape, micro_batch_size, "cpu")
        watch.begin(trainer, shape)
        with watch.name_modules(net):
            for _ in range(steps):
                watch.next_step()
                watch.mark("start")
                for _ in range(accumulation_steps):
                    watch.micro_batch += 1
                    loss = net.loss(*inputs)
                    watch.mark("forward")
                    watch.backward = True  # in which the loss and the last layer are marked
                    loss.backward()
                    watch.backward = False
                    del loss
                    watch.mark("first layer")
                trainer.update()
                watch.mark("update")
                trainer.release()
    return Timeline(tuple(watch.moments))


class Watch(Ledger):
    """A ledger that notes at each mark what is alive, part by part."""

    def __init__(self, left_out: bool) -> None:
        super().__init__()
        self.counts_left_out = left_out
        self.moments: list[Moment] = []
        self.step, self.micro_batch = 0, 0
        self.awaits_last_layer = False

    def begin(self, trainer: Trainer, shape: Transformer) -> None:
        """Begin to record; what is alive now stays to the end: weights, tables and tokens."""
        self.trainer = trainer
        self.constant = set(self.live)
        self.head_shape = (shape.vocab_size, shape.hidden_size)
        # backward enters a layer through the last matrix of its MLP, or of its experts
        mlps = [module for module in trainer.net.layers[-1].modules() if isinstance(module, MLP)]
        self.last = {storage_key(mlp.down.weight) for mlp in mlps}

    def next_step(self) -> None:
        """Count a step, and its micro-batches from the start."""
        self.step, self.micro_batch = self.step + 1, 0

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run and enter an operator, and set the two marks that lie within backward."""
        if self._enters_last_layer(op, args):
            self.awaits_last_layer = False
            self.mark("last layer")
        result = super().__torch_dispatch__(op, types, args, kwargs)
        if op is torch.ops.aten._log_softmax_backward_data.default:
            self.awaits_last_layer = True
            self.mark("loss")
        return result

    def _enters_last_layer(self, op: Any, args: Any) -> bool:
        """Check whether this is the first operator of backward within the last layer.

        It undoes a dropout, or multiplies with a weight of the layer's end.
        """
        if not (self.awaits_last_layer and self.in_backward):
            return False
        if op is torch.ops.aten.native_dropout_backward.default:
            return True
        return op is torch.ops.aten.mm.default and any(
            storage_key(tensor) in self.last for tensor in args
        )

    def mark(self, name: str) -> None:
        """Note what is alive at this moment."""
        owner = {
            storage_key(tensor): part
            for part, tensors in self.trainer.states().items()
            for tensor in tensors
        }
        parts = dict.fromkeys(["weights", "gradients", "optimizer"], 0)
        parts |= {"activations": 0, "logits": 0}
        for key, entry in self.live.items():
            part = owner.get(key) or self._part(key, entry)
            if part:
                parts[part] += entry.bytes
        self.moments.append(Moment(self.step, max(self.micro_batch, 1), name, **parts))

    def _part(self, key: int, entry: Entry) -> str:
        """What a tensor is that is no state of the model's; nothing if left out."""
        if entry.operator in _OF_THE_LOSS:
            return "logits"
        if entry.backward and entry.shape == self.head_shape:
            return "gradients"  # a tied head's: it waits for the embedding's
        working = key in self.constant or entry.backward or entry.left_out
        return "activations" if not working or self.counts_left_out else ""


_OF_THE_LOSS = ("nll_loss_backward", "_log_softmax_backward_data")
"""The two operators whose results are the logits' gradients in fp32."""


# --- the most that's alive, layer by layer


class Peak(NamedTuple):
    """The most that was alive in a part of a step, from the end of the part before."""

    step: int
    part: str
    layer: int
    bytes: int


class Peaks(Watch):
    """A watch that also notes the most that's alive in each layer, forward and backward."""

    def __init__(self) -> None:
        super().__init__(left_out=True)
        self.peaks: list[Peak] = []
        self.most = 0

    def follow(self, net: Any) -> None:
        """Note where each layer of a model ends, in both directions."""
        for number, layer in enumerate(net.layers, 1):
            layer.register_forward_pre_hook(partial(self._enter_layer, number))
            layer.register_forward_hook(lambda *_, number=number: self.end("forward", number))

    def _enter_layer(self, number: int, layer: Any, inputs: Any) -> None:
        """When the gradient of a layer's input is there, backward has left the layer."""
        inputs[0].register_hook(lambda gradient: self.end("backward", number))

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run and enter an operator, and see whether more is alive than before."""
        result = super().__torch_dispatch__(op, types, args, kwargs)
        self.most = max(self.most, sum(entry.bytes for entry in self.live.values()))
        return result

    def end(self, part: str, layer: int = 0) -> None:
        """Note the most that was alive in a part that ends here."""
        if part != "start":
            self.peaks.append(Peak(self.step, part, layer, self.most))
        self.most = sum(entry.bytes for entry in self.live.values())

    def mark(self, name: str) -> None:
        """Note what is alive; some moments are also the end of a part."""
        super().mark(name)
        ends = {"start": "start", "forward": "head", "last layer": "loss", "update": "update"}
        if name in ends:
            self.end(ends[name])


def peaks(shape: Transformer, micro_batch_size: int, recipe: RecipeName) -> list[Peak]:
    """The most that's alive in each part of two steps of one pass, with nothing recomputed.

    The tensors have no values, so a step of any size takes seconds.
    """
    watch = Peaks()
    with watch:
        net = build(shape, "meta", DTYPES[int(RECIPES[recipe].weights)], "flash")
        trainer = Trainer(net, recipe)
        inputs = tokens(shape, micro_batch_size, "meta")
        watch.begin(trainer, shape)
        watch.follow(net)
        with watch.name_modules(net):
            for _ in range(2):
                watch.next_step()
                watch.mark("start")
                loss = net.loss(*inputs)
                watch.mark("forward")
                watch.backward = True
                loss.backward()
                watch.backward = False
                del loss
                trainer.update()
                watch.mark("update")
                trainer.release()
    return watch.peaks


def rows() -> Iterator[dict[str, Any]]:
    """The rows of `data/memory_trace.csv`: steps of one, two and three sequences."""
    model, length = "Llama-3.2-1B", 8192
    source = (
        "measured: every storage of notebook 12's model on PyTorch's meta device, whose "
        f"tensors have sizes and no values, PyTorch {torch.__version__.partition('+')[0]}"
    )
    for micro_batch_size in (1, 2, 3):
        for peak in peaks(published.architecture(model, length), micro_batch_size, "bf16"):
            place = f"{peak.part} {peak.layer}" if peak.layer else peak.part
            name = f"{micro_batch_size} at once, step {peak.step}, {place}"
            about = {"model": model, "sequence_length": length, "recipe": "bf16"}
            about |= {"micro_batch_size": micro_batch_size}
            yield {"name": name, **about, **peak._asdict(), "source": source}


if __name__ == "__main__":
    table = [*rows()]
    writer = csv.DictWriter(sys.stdout, [*table[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
