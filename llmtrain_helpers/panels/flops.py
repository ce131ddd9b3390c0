"""The panel of chapter 02: from the seconds of an iteration to MFU and HFU."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.drawings.flops import filled, passes, past_peak
from llmtrain_helpers.evidence import published
from llmtrain_helpers.evidence.published import FORMATS, accelerator, names, rows
from llmtrain_helpers.flops import (
    ATTENTION,
    RECOMPUTE,
    FlopCount,
    achieved_flops_per_gpu,
    count_flops,
)
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.panels import common

ALL, SEEN = "all", "those that a token may see"
"""Which pairs of tokens are counted; the first is how papers count."""


def _preset(**changes: Any) -> dict[str, Any]:
    return {
        "model": "Megatron 18.4B",
        "sequence_length": 1024,
        "batch_size": 512,
        "num_gpus": 16,
        "seconds": 32.09,
        "recompute": "full",
        "chip": "A100 80GB SXM",
        "format": "bf16",
        "attention": ALL,
    } | changes


_GPT3 = {"model": "GPT-3 175B", "sequence_length": 2048, "batch_size": 64, "num_gpus": 64}

_PRESETS = {
    "18.4B on 16 A100": _preset(),
    "GPT-3 on 64 A100, full recomputation": _preset(**_GPT3, seconds=18.13),
    "GPT-3 on 64 A100, selective": _preset(**_GPT3, seconds=13.75, recompute="selective"),
    "Llama 3.1 8B at 32,768 tokens": _preset(
        model="Llama-3.1-8B",
        sequence_length=32768,
        batch_size=32,
        num_gpus=64,
        seconds=4,
        recompute="none",
        chip="H100 SXM",
    ),
    "gpt-oss-20b at 32,768 tokens": _preset(
        model="gpt-oss-20b",
        sequence_length=32768,
        batch_size=32,
        num_gpus=64,
        seconds=2,
        recompute="none",
        chip="H100 SXM",
    ),
    "18.4B with the wrong sequence length": _preset(sequence_length=2048),
}


_SECONDS = common.steps(1, 100, 1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8)
"""A quarter more at every stop of the slider."""

_CONTROLS = {
    "model": common.models(),
    "seconds": common.Control(
        "Seconds an iteration",
        "Measured time from one update to the next.",
        unit="s",
        least=0.001,
        most=1e6,
        whole=False,
        stops=tuple(x if x % 1 else int(x) for x in _SECONDS),
    ),
    "num_gpus": common.Control(
        "GPUs", "All GPUs of the run.", most=10_000_000, stops=common.doublings(1, 16384)
    ),
    "recompute": common.choice(
        "Recomputed", "What is computed a second time to save memory.", RECOMPUTE
    ),
    "sequence_length": common.SEQUENCE,
    "batch_size": common.BATCH,
    "chip": common.accelerators(more=True),
    "format": common.choice(
        "Number format", "The format whose peak is compared.", FORMATS, more=True
    ),
    "attention": common.choice(
        "Pairs of tokens counted",
        "All, as most papers do; or only those before a token, and in its window.",
        [ALL, SEEN],
        more=True,
    ),
}


def render(before: common.Values | None = None, **chosen: Any) -> str | common.Answer:
    """The panel's answer as HTML: sentence, passes and bar, table, call in code."""
    counted, rate, peak = _measured(chosen)
    hfu = rate / peak
    if hfu > 1:
        return _impossible(chosen, counted, rate, peak, before)
    mfu = hfu * counted.model / counted.total
    ghost = _shares(before) if before and dict(before) != chosen else None
    return "".join(
        [
            common.sentence(_sentence(counted, rate, mfu, hfu) + _windows(chosen)),
            filled(counted, rate, peak, ghost).live(),
            _passes(chosen, counted, before),
            common.folded("The work, part by part", _table(counted)),
            common.folded("The same in code", _code(chosen)),
        ]
    )


def _passes(chosen: common.Values, counted: FlopCount, before: common.Values | None) -> str:
    """The work over the stack of layers, which time does not change."""
    layers = int(_shape(chosen["model"]).num_layers)
    old = _measured(before)[0] if before else None
    return passes(counted, layers, height=170, before=old).live()


def _source(model: str) -> str:
    """Which call knows the shape: a configuration file has windows, the table none."""
    return "config_model" if model in names("configs") else "architecture"


def _shape(model: str, sequence_length: int | None = None) -> Transformer:
    found: Transformer = getattr(published, _source(model))(model, sequence_length)
    return found


def _measured(chosen: common.Values) -> tuple[FlopCount, float, float]:
    """The work of an iteration, the rate of each GPU, and its peak."""
    shape = _shape(chosen["model"], chosen["sequence_length"])
    pairs = dict(zip((ALL, SEEN), ATTENTION, strict=True))[chosen["attention"]]
    counted = count_flops(shape, chosen["batch_size"], chosen["recompute"], pairs)
    rate = achieved_flops_per_gpu(counted.total, chosen["seconds"], chosen["num_gpus"])
    return counted, rate, accelerator(chosen["chip"]).peak(chosen["format"])


def _shares(chosen: common.Values) -> tuple[float, float]:
    """MFU and HFU."""
    counted, rate, peak = _measured(chosen)
    return rate / peak * counted.model / counted.total, rate / peak


def _impossible(
    chosen: common.Values,
    counted: FlopCount,
    rate: float,
    peak: float,
    before: common.Values | None,
) -> common.Answer:
    """Above the peak: the bar past it, and what each usual slip would explain."""
    slips = [*_slips(chosen)]
    which = _BELOW if slips else _NONE
    told = (
        f"In {chosen['seconds']:g} s each GPU would have to work at "
        f"{units.percent(rate / peak)} of its peak of {units.flops_per_second(peak)}: "
        f"an input is not as it was in the run. {which}"
    )
    picture = past_peak(counted, rate, peak).live() + _passes(chosen, counted, before)
    offers = (*_moved(chosen), *slips)
    return common.Answer(common.warning(told) + picture, offers=offers)


_BELOW = "The usual slips, and what HFU would be without each, stand below; look up which it was."
_NONE = "None of the usual slips is enough to explain this: look at the seconds first."


def _moved(chosen: common.Values) -> Iterator[common.Offer]:
    """The seconds of the preset that these values are, but for the seconds."""
    for preset in _PRESETS.values():
        time = preset["seconds"]
        if {**chosen, "seconds": time} != preset or time == chosen["seconds"]:
            continue
        share = _shares(preset)[1]
        if share <= 1:
            told = f"Seconds {time:g}, not {chosen['seconds']:g}"
            yield f"{told}: HFU {units.percent(share)}", {"seconds": time}


def _slips(chosen: common.Values) -> Iterator[common.Offer]:
    """Usual slips, each undone alone, if that brings the share below the peak."""
    usual = {
        "sequence_length": chosen["sequence_length"] // 2,
        "batch_size": chosen["batch_size"] // 2,
        "num_gpus": 2 * chosen["num_gpus"],
        "recompute": "none",
        "chip": "H100 SXM",
    }
    for name, value in usual.items():
        if not value or value == chosen[name]:
            continue
        share = _shares({**chosen, name: value})[1]
        if share <= 1:
            shown = units.exact(value) if isinstance(value, int) else value
            told = f"{_CONTROLS[name].label} {shown}, not "
            was = chosen[name]
            told += units.exact(was) if isinstance(was, int) else was
            yield f"{told}: HFU {units.percent(share)}", {name: value}


def _sentence(counted: FlopCount, rate: float, mfu: float, hfu: float) -> str:
    told = f"<b>{units.flops_per_second(rate)}</b> on each GPU, MFU {units.percent(mfu)}"
    told += (
        f", and another {units.percent(hfu - mfu)} of the peak for work done twice."
        if counted.recomputed
        else ": nothing is recomputed, so HFU is the same."
    )
    if hfu <= highest_hfu():
        return told
    return (
        f"{told} <b>Look again</b>: of the published steps on more than one node, none "
        f"came above an HFU of {units.percent(highest_hfu())} (llm-foundry's 70B on 64 "
        "A100)."
    )


def _windows(chosen: common.Values) -> str:
    """The share by the pairs that windows leave, where all were counted."""
    if chosen["attention"] == SEEN or not _has_windows(chosen["model"]):
        return ""
    mfu, _ = _shares({**chosen, "attention": SEEN})
    return (
        " All pairs of tokens are counted, though in some layers a token sees only a "
        f"window: by the pairs that it may see, MFU is {units.percent(mfu)}."
    )


@cache
def _has_windows(model: str) -> bool:
    """Whether a token of some layer looks back less far than the longest sequence."""
    shape = _shape(model)
    every, seen = (count_flops(shape, 1, "none", pairs).scores for pairs in ATTENTION)
    return bool(seen < 0.49 * every)


@cache
def highest_hfu() -> float:
    """The highest HFU in 16 bits that is published of a run on more than one node."""
    runs = [*rows("recomputation_runs"), *rows("llmfoundry_benchmarks")]
    known = [row for row in runs if row.get("precision", "bf16").endswith("bf16")]
    return max(float(row["hfu"]) for row in known if row["num_gpus"] > 8)


def _table(counted: FlopCount) -> str:
    head = ["part", "FLOP an iteration", "share"]
    return common.table(head, common.shares(counted, units.flops))


def _pairs(chosen: common.Values) -> str:
    return ', attention="causal"' if chosen["attention"] == SEEN else ""


def _code(chosen: common.Values) -> str:
    model, s = chosen["model"], chosen["sequence_length"]
    return common.call(
        f"model = published.{_source(model)}({model!r}, {common.in_code(s)})\n"
        f"F = count_flops(model, {common.in_code(chosen['batch_size'])}, "
        f"recompute={chosen['recompute']!r}{_pairs(chosen)}).total\n"
        f"X = achieved_flops_per_gpu(F, {chosen['seconds']:g}, {chosen['num_gpus']})\n"
        f"chip = published.accelerator({chosen['chip']!r})\n"
        f"utilization(X, chip.peak({chosen['format']!r}))"
    )


PANEL = common.Panel(
    "What share of the peak?",
    _CONTROLS,
    _PRESETS,
    ("GPT-3 on 64 A100, selective", "Llama 3.1 8B at 32,768 tokens"),
    render,
    told=True,
)
