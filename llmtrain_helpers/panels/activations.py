"""The panel of chapter 06: memory through two steps, under the line of a chip's."""

from __future__ import annotations

from functools import cache
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.activations import KERNELS, Moment, Timeline, step_timeline
from llmtrain_helpers.batch import largest_batch
from llmtrain_helpers.drawings.activations import LEGEND, MOMENTS, parts_at_peak, step_memory
from llmtrain_helpers.evidence.published import accelerator, architecture
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.panels import common
from llmtrain_helpers.precision import RECIPES


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
    "1B, 4 sequences, all computed again": _preset(recompute="full", micro_batch_size=4),
    "1B, 16 passes a step": _preset(accumulation_steps=16),
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
    "model": common.models(counted=True),
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
        unit="at a time",
        most=1_000_000,
        stops=common.doublings(1, 256),
    ),
    "accumulation_steps": common.Control(
        "Passes a step",
        "Micro-batches, one after another, before an update.",
        unit="in a row",
        most=1_000,
        stops=common.doublings(1, 256),
    ),
    "recompute": common.choice(
        "Recomputed", "What is computed a second time to save memory.", RECOMPUTE
    ),
    "chip": common.accelerators(),
    "attention": common.choice(
        "Attention", "Whether the scores are stored (unfused) or not (flash).", KERNELS, more=True
    ),
    "recipe": common.choice(
        "Recipe", "Which number formats the copies have.", [*RECIPES], more=True
    ),
}


def render(before: common.Values | None = None, **values: Any) -> str:
    """The panel's answer as HTML: sentence, notes, picture, table, and the call."""
    line, memory = _line(values), accelerator(values["chip"]).memory
    passes = values["accumulation_steps"]
    old = (_line(before), accelerator(before["chip"]).memory) if before else None
    picture = step_memory(line, memory, values["chip"], passes, old)
    return "".join(
        [
            common.sentence(_sentence(line, memory, values, old)),
            *(f'<p style="margin:6px 0px">{note}</p>' for note in _notes(values)),
            f"<div>{picture.live()}</div>",
            common.folded("The numbers", _tables(line)),
            common.folded("In code", common.call(_code(values))),
        ]
    )


def length(values: common.Values) -> int:
    """The tokens of a sequence: what was asked for, or all that the model has room for.

    Models with a table of learned positions take no longer sequence than that.
    """
    rows = int(_shape(values["model"]).num_positions)
    asked: int = values["sequence_length"]
    return min(asked, rows) if rows else asked


@cache
def _shape(model: str, sequence_length: int | None = None) -> Transformer:
    return architecture(model, sequence_length)


def _line(values: common.Values, micro_batch_size: int = 0) -> Timeline:
    """The first two steps; of many passes two, for the others are like the second."""
    return step_timeline(
        _shape(values["model"], length(values)),
        micro_batch_size or values["micro_batch_size"],
        values["recipe"],
        values["recompute"],
        accumulation_steps=min(values["accumulation_steps"], 2),
        attention=values["attention"],
    )


def largest(values: common.Values, memory: Any) -> int:
    """The largest micro-batch that fits; a ValueError if not even 1 does.

    Each moment grows by the same bytes with each sequence, so two timelines tell all.
    """
    one, two = (_line(values, batch).moments for batch in (1, 2))
    totals = [(a.total, b.total - a.total) for a, b in zip(one, two, strict=True)]
    return largest_batch(lambda batch: all(x + (batch - 1) * more <= memory for x, more in totals))


def _sentence(line: Timeline, memory: Any, values: common.Values, old: Any | None) -> str:
    peak = line.peak
    told = f"<b>{units.gigabytes(peak.total)}</b> at the peak"
    if old and old[0].peak.total != peak.total:
        told += f" (dashed: {units.gigabytes(old[0].peak.total)})"
    told += f", step {peak.step}, {MOMENTS[peak.mark]}: "
    chip = f"the {units.gigabytes(memory)} of {values['chip']}"
    told += (
        f"it <b>fits</b> into {chip}. "
        if peak.total <= memory
        else (f"it <b>does not fit</b> into {chip}. ")
    )
    try:
        most = largest(values, memory)
    except ValueError:
        return f"{told}Not even a micro-batch of 1 would."
    return f"{told}The largest micro-batch that does: <b>{units.exact(most)}</b>."


def _notes(values: common.Values) -> list[str]:
    """What was changed or has no effect, so that nothing happens in silence."""
    found, s = [], length(values)
    if s < values["sequence_length"]:
        found.append(
            f"<b>Shortened:</b> {values['model']} has {s:,} learned positions, so its "
            f"sequences have {s:,} tokens here and not {values['sequence_length']:,}."
        )
    if (values["recompute"], values["attention"]) == ("selective", "flash"):
        found.append(
            "<b>Nothing to drop:</b> flash attention stores no scores, and they are "
            "what selective recomputation would compute again."
        )
    return found


def _tables(line: Timeline) -> str:
    """The peak part by part, and the total of each moment of the second step."""
    at_peak = [
        [LEGEND.get(name, name), units.gigabytes(size), units.percent(size / line.peak.total)]
        for name, size in parts_at_peak(line).items()
    ]
    last = line.moments[-1].micro_batch
    moments = [
        [_when(moment, last), units.gigabytes(moment.total)]
        for moment in line.moments
        if moment.step == 2 and moment.micro_batch in (1, last)
    ]
    parts = common.table(["part", "at the peak", "share"], at_peak)
    return parts + common.table(["moment of step 2", "in all"], moments)


def _when(moment: Moment, last: int) -> str:
    """The moment, and of several passes which."""
    several = last > 1 and moment.mark not in ("start", "update")
    told = f"pass {moment.micro_batch}: " if several else ""
    return f"{told}{MOMENTS[moment.mark]}"


def _code(values: common.Values) -> str:
    passes = f"accumulation_steps={values['accumulation_steps']}"
    run = f"{values['micro_batch_size']}, {values['recipe']!r}"
    return (
        f"model = published.architecture({values['model']!r}, {length(values)})\n"
        f"step_timeline(model, {run}, {values['recompute']!r},"
        f"\n    {passes}, attention={values['attention']!r}).peak"
    )


PANEL = common.Panel(
    "What does a step hold in memory?",
    _CONTROLS,
    _PRESETS,
    ("1B, scores stored", "1B, 4 sequences, all computed again"),
    render,
    told=True,
)
