"""The formula sheet's legend, and the tables that one looks up: chips, bytes, shares."""

from __future__ import annotations

from collections import defaultdict
from html import escape

from front import citation

from llmtrain_helpers.duration import UTILIZATIONS
from llmtrain_helpers.evidence import published
from llmtrain_helpers.precision import RECIPES, model_state_bytes

LETTERS = {
    "P, N": "parameters",
    "T, D": "tokens of the run",
    "F, C": "FLOPs of a step; of the run",
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
"""What a letter means on the whole sheet."""

HERE = {
    "01": "k key-value heads of size d · E experts, e at work",
    "04": "S, E samples and updates · r, t₀ a pass's rate and fixed part",
    "05": "S the loss scale · E, F, e, m a number's bits",
    "07": "S bytes of a message · W bytes a second · t GPUs that share a matrix",
    "08": "m micro-batches in a step",
    "09": "M, τ, δ, R seconds between stops, between writes, of a write, of a restart · g GPUs in "
    "a node · r stops of a node a day · T days of a repair",
    "10": "E, A, B, α, β a law of the loss · R times that text is read again, U what is new · "
    "r rank · b bytes a second",
}
"""What a letter means in one chapter alone."""

CHIPS = (
    *("A100 80GB SXM", "H100 SXM", "H200 SXM", "B200 SXM (DGX/HGX)", "RTX 4090", "MI300X"),
    *("TPU v5p", "Gaudi 3"),
)


def tables() -> str:
    """The legend, chips, bytes of a parameter, shares of the peak."""
    return legend() + chips() + weights() + shares()


def legend() -> str:
    """The letters and what they mean."""
    words = (f"<b>{name}</b> {meaning}" for name, meaning in LETTERS.items())
    return section("Letters", [[" · ".join(words)]])


def here(chapter: str) -> str:
    """The letters of one chapter, as a row below its formulas."""
    return f'<tr class="here"><td colspan="2">{HERE[chapter]}</td></tr>' if chapter in HERE else ""


def chips() -> str:
    """Peak, memory and bandwidth of well-known chips."""
    rows = [["", "16 bits", "8 bits", "GB", "GB/s"]]
    for name in CHIPS:
        chip = published.accelerator(name)
        eight = chip.peaks.get("fp8")
        peaks = [
            f"{chip.peak(chip.training_format) / 1e12:,.0f}",
            f"{eight / 1e12:,.0f}" if eight else "–",
        ]
        memory = [f"{chip.memory / 1e9:,.0f}", f"{chip.bandwidth / 1e9:,.0f}"]
        rows.append([escape(name.partition(" (")[0]), *peaks, *memory])
    return section("Chips: dense TFLOP/s, memory, bandwidth", rows)


def weights() -> str:
    """What a parameter weighs with each recipe."""
    recipes = defaultdict[str, list[str]](list)
    for name in RECIPES:
        states = model_state_bytes(10**9, recipe=name)
        recipes[f"{float(states.total) / 1e9:g}"].append(f"<code>{name}</code>")
    words = (f"<b>{weight}</b> {', '.join(names)}" for weight, names in recipes.items())
    return section("Bytes a parameter, by recipe, with Adam", [[" · ".join(words)]])


def shares() -> str:
    """Which share of its peak a run reaches, of those that were published."""
    told = zip(("to promise, for a first run", "usual", "the fast ones"), UTILIZATIONS, strict=True)
    words = (f"<b>{share:.0%}</b> {whose}" for whose, share in told)
    return section("Share of the dense peak, in 16 bits", [[" · ".join(words).replace("%", " %")]])


def section(title: str, rows: list[list[str]]) -> str:
    """A table below its title."""
    cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f'<section class="look"><h2>{title}</h2><table><tbody>{body}</tbody></table></section>'


def edition() -> str:
    """Whose sheet it is, which version, under which licence."""
    told = citation()
    return (
        f"{told['authors']} · version {told['version']}, {told['date']} · text CC BY 4.0, code MIT"
    )
