"""The formula sheet: each chapter's formulas, a legend, and tables of chips, bytes and shares."""

from __future__ import annotations

from collections import defaultdict
from html import escape
from pathlib import Path

import book
from bs4 import Tag
from front_page import citation

from llmtrain_helpers import published, units
from llmtrain_helpers.duration import HOUR, UTILIZATIONS, flops_per_parameter, training_seconds
from llmtrain_helpers.plan.memory import card_bytes
from llmtrain_helpers.precision import RECIPES, model_state_bytes

TITLE = "What will it take? The formulas of the course"

LETTERS = {
    "P": "parameters",
    "T": "tokens of the run",
    "F": "FLOPs of a step",
    "C": "FLOPs of the run",
    "X": "FLOP/s that a GPU reaches",
    "u": "its share of the dense peak",
    "n": "GPUs",
    "t": "seconds",
    "B": "sequences in a step",
    "b": "sequences in a pass",
    "k": "passes in a step",
    "s": "tokens in a sequence",
    "l": "layers",
    "h": "hidden size",
    "a": "attention heads",
    "f": "width of the MLP",
    "V": "vocabulary",
    "d": "GPUs that share the data",
    "p": "stages of a pipeline",
    "v": "pieces of a stage",
}
"""What a letter means on the whole sheet, but where a chapter says otherwise."""

HERE: dict[str, dict[str, str]] = {
    "01": {"k, d": "key-value heads and the size of a head", "E, e": "experts, and those at work"},
    "04": {"S, E": "updates and samples", "t₀, r": "a pass's fixed part and its rate"},
    "05": {
        "E, F": "the bits of exponent and fraction, read as whole numbers",
        "e, m": "how many bits each has",
        "S": "the loss scale",
    },
    "07": {"S": "bytes of a message", "W": "bytes a second"},
    "08": {"t": "GPUs that share a matrix"},
    "09": {"m": "micro-batches per step"},
    "10": {
        "M, τ": "seconds between stops, between writes",
        "δ, R": "seconds of a write, of a restart",
        "g": "GPUs in a node",
        "r": "stops of a node a day",
    },
    "11": {
        "N, D": "parameters and tokens, elsewhere P and T",
        "A, B, E, α, β": "a law of the loss",
        "U, R": "what is new, and how often it is read again",
    },
    "12": {"m, k, n": "the sides of a product's matrices"},
    "13": {"m, n": "the sides of a matrix", "r": "an adapter's rank", "T": "tokens at once"},
}
"""What a letter means in one chapter alone."""

WORKED = "Llama 3.1 8B"
"""The run that is worked out on the sheet."""

CHIPS = (
    *("A100 80GB SXM", "H100 SXM", "H200 SXM", "B200 SXM (DGX/HGX)", "RTX 4090", "MI300X"),
    *("TPU v5p", "Gaudi 3"),
)


def body(site: Path) -> str:
    """Write what each chapter takes away, side by side."""
    parts = "".join(_taken(book.article(path)) for path in book.chapter_pages(site))
    head = f"<h1>{TITLE}</h1>{legend()}{worked()}"
    return f"{head}<main>{parts}{tables()}</main><p>{edition()}</p>"


def _taken(page: Tag) -> str:
    """The table at a chapter's end, below the chapter's name, and the letters of its own."""
    title = page.h1.get_text().partition(":")[0]
    rows = page.select_one("#to-take-away table tbody").decode_contents()
    return table(title, rows + here(title[:2]))


def tables() -> str:
    """Write the tables: chips, bytes of a parameter, shares of the peak."""
    return chips() + weights() + shares()


def legend() -> str:
    """The letters and what they mean, and what a small line below a chapter says."""
    words = " ".join(f"<span><b>{name}</b> {meaning} ·</span>" for name, meaning in LETTERS.items())
    more = "A small line below a chapter: letters that mean something else there."
    return f'<p class="letters">{words} {more}</p>'


def worked() -> str:
    """A run by these formulas, from its work to what a GPU keeps."""
    [row] = [row for row in published.rows("tokens_per_parameter") if row["name"] == WORKED]
    P, T, n = row["active_parameters"], 200e9, 64
    chip = published.accelerator("H100 SXM")
    _, usual, _ = UTILIZATIONS
    peak = chip.peak(chip.training_format)
    C = flops_per_parameter("none") * T * P
    X = usual * peak
    t = float(training_seconds(T, P, n, X, "none"))
    states = float(model_state_bytes(P, "bf16", zero_stage=1, data_parallel=n).total)
    lines = [
        f"C = 6TP = {units.powers(C)} FLOPs",
        f"X = {usual:.0%} of {peak / 1e12:.0f} TFLOP/s = {units.flops_per_second(X)}",
        f"t = C/(nX) = {units.duration(t)}, {round(n * t / HOUR, -1):,.0f} GPU-hours",
        f"states with ZeRO 1: 4 + 12/{n} bytes a parameter, {units.gigabytes(states)} a GPU",
    ]
    results = " · ".join(lines)
    asked = f"{WORKED}, P = {units.count(P)}, T = {units.count(T)} tokens, n = {n} H100"
    return f'<p class="letters worked"><b>A run worked out.</b> {asked}: {results}</p>'


def here(chapter: str) -> str:
    """The letters of one chapter, as a row below its formulas."""
    letters = [f"<b>{names}</b> {meaning}" for names, meaning in HERE.get(chapter, {}).items()]
    if not letters:
        return ""
    return f'<tr class="here"><td colspan="2">{" · ".join(letters)}</td></tr>'


def chips() -> str:
    """Write peak, memory (as a plan counts it) and bandwidth of well-known chips."""
    rows = [["", "16 bits", "8 bits", "GB", "GB/s"]]
    for name in CHIPS:
        chip = published.accelerator(name)
        eight = chip.peaks.get("fp8")
        peaks = [
            f"{chip.peak(chip.training_format) / 1e12:,.0f}",
            f"{eight / 1e12:,.0f}" if eight else "–",
        ]
        memory = [units.digits(card_bytes(chip) / 1e9), f"{chip.bandwidth / 1e9:,.0f}"]
        rows.append([escape(name.partition(" (")[0]), *peaks, *memory])
    return section("Chips: dense TFLOP/s and memory", rows)


def weights() -> str:
    """Write what a parameter weighs with each recipe."""
    recipes = defaultdict[str, list[str]](list)
    for name in RECIPES:
        states = model_state_bytes(10**9, recipe=name)
        recipes[f"{float(states.total) / 1e9:g}"].append(f"<code>{name}</code>")
    words = (f"<b>{weight}</b> {', '.join(names)}" for weight, names in recipes.items())
    return section("Bytes a parameter, by recipe, with Adam", [[" · ".join(words)]])


def shares() -> str:
    """Write which share of its peak a published run reaches."""
    speeds = ("to promise", "usual", "the fast ones")
    rates = zip(UTILIZATIONS, speeds, strict=True)
    words = (f"<b>{share:.0%}</b> {speed}" for share, speed in rates)
    return section("Share of the dense peak, in 16 bits", [[" · ".join(words)]])


def section(title: str, rows: list[list[str]]) -> str:
    """A table to look things up, below its title."""
    cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    return table(title, "".join(f"<tr>{row}</tr>" for row in cells), "look")


def table(title: str, rows: str, kind: str = "taken") -> str:
    """A table below its title."""
    head = f'<thead><tr><th colspan="9">{title}</th></tr></thead>'
    return f'<table class="{kind}">{head}<tbody>{rows}</tbody></table>'


def edition() -> str:
    """Whose sheet it is, which version, under which licence."""
    cited = citation()
    version = f"version {cited['version']}, {cited['date']}"
    return f"{cited['authors']} · {version} · text CC BY 4.0, code MIT"
