"""The panel of chapter 06: what is resident at the peak of a step, and through it."""

from __future__ import annotations

from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.activations import KERNELS, Moment, Timeline, step_timeline
from llmtrain_helpers.batch import largest_batch
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.panels import common
from llmtrain_helpers.precision import RECIPES
from llmtrain_helpers.published import accelerator, architecture


def _preset(**changes: Any) -> dict[str, Any]:
    return {
        "model": "Llama-3.2-1B",
        "sequence_length": 8192,
        "micro_batch_size": 1,
        "accumulation_steps": 1,
        "recompute": "none",
        "attention": "flash",
        "recipe": "bf16_fp32_grads",
        "chip": "A100 80GB SXM",
    } | changes


_PRESETS = {
    "1B on an A100": _preset(),
    "1B, scores stored": _preset(attention="unfused"),
    "1B, everything computed again": _preset(recompute="full", micro_batch_size=4),
    "8B": _preset(model="Llama-3.1-8B"),
    "GPT-2 on a small card": _preset(
        model="gpt2",
        sequence_length=1024,
        micro_batch_size=12,
        accumulation_steps=4,
        recipe="amp",
        chip="RTX 3090",
    ),
}


_CONTROLS = {
    "model": common.models(),
    "sequence_length": common.Control(
        "Sequence",
        "Tokens in each training sequence.",
        unit="tokens",
        most=10_000_000,
        stops=common.doublings(128, 131072),
    ),
    "micro_batch_size": common.Control(
        "Micro-batch",
        "Sequences at once on a GPU.",
        unit="sequences",
        most=1_000_000,
        stops=common.doublings(1, 256),
    ),
    "recompute": common.choice(
        "Recomputed", "What is computed a second time to save memory.", RECOMPUTE
    ),
    "accumulation_steps": common.Control(
        "Micro-batches a step", "Passes before an update.", most=1_000, more=True
    ),
    "attention": common.choice(
        "Attention", "Whether the scores are stored.", KERNELS, more=True
    ),
    "recipe": common.choice(
        "Recipe", "Which number formats the copies have.", [*RECIPES], more=True
    ),
    "chip": common.accelerators(more=True),
}


def render(
    before: common.Values | None = None,
    *,
    model: str,
    sequence_length: int,
    micro_batch_size: int,
    accumulation_steps: int,
    recompute: str,
    attention: str,
    recipe: str,
    chip: str,
) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    shape, memory = architecture(model, sequence_length), accelerator(chip).memory
    passes = min(accumulation_steps, 2)  # those after the second are like the second

    def line(batch: int) -> Timeline:
        return step_timeline(shape, batch, recipe, recompute, 2, passes, attention)

    shown = line(micro_batch_size)
    bars = {"At the peak": shown.peak.parts(), "Memory": {"memory": memory}}
    return "".join(
        [
            common.sentence(_sentence(shown.peak, memory, line)),
            common.stacked_bars(bars, units.gigabytes),
            _moments(shown),
            common.table(
                ["part", "at the peak", "share"],
                common.shares(shown.peak, units.gigabytes),
            ),
            common.call(
                f"model = published.architecture({model!r}, {sequence_length})\n"
                f"step_timeline(model, {micro_batch_size}, {recipe!r}, {recompute!r},"
                f"\n    accumulation_steps={passes}, attention={attention!r}).peak"
            ),
        ]
    )


def _sentence(peak: Moment, memory: Any, line: Any) -> str:
    told = f"<b>{units.gigabytes(peak.total)}</b> at the peak ({peak.mark}, step "
    told += f"{peak.step}), of {units.gigabytes(memory)}: "
    told += "<b>fits</b>. " if peak.total <= memory else "<b>does not fit</b>. "
    try:
        largest = largest_batch(lambda batch: line(batch).peak.total <= memory)
    except ValueError:
        return f"{told}Not even a micro-batch of 1 would."
    return f"{told}The largest micro-batch that does: <b>{units.exact(largest)}</b>."


def _moments(line: Timeline) -> str:
    bars = {
        f"{moment.step}.{moment.micro_batch} {moment.mark}": moment.parts()
        for moment in line.moments
    }
    told = "<p>Moment by moment (step, micro-batch), through the first two steps:</p>"
    return told + common.thin_bars(bars, units.gigabytes)


PANEL = common.Panel(
    "What does a step hold in memory?",
    _CONTROLS,
    _PRESETS,
    ("1B, scores stored", "1B, everything computed again"),
    render,
)
