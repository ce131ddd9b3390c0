"""What a reader may write into each field and where its slider goes: as the panels say it.

The table is kept by hand: pages are written anew after a slip, and this is not.
"""

from __future__ import annotations

from textwrap import dedent

import pytest

from llmtrain_course.kit.panel import Control
from llmtrain_course.panels import PANELS

every_panel = pytest.mark.parametrize("word", PANELS)


FIELDS = {
    "start_here": """
        GPUs: 1 to 1M; 17 stops, 1 2 4 to 65,536
        Days: 0.01 to 3,650, and between; 15 stops, 1 2 3 to 365
        Model size: 1M to 10T parameters; 31 stops, 10M 15M 20M to 1T
        more: Share of the peak: 0.1 to 100%, and between; 76 stops, 5 6 7 to 80
    """,
    "parameters": """
        Layers: 1 to 1,000; 93 stops, 1 2 3 to 256
        Hidden size: 1 to 1M; 18 stops, 512 768 1,024 to 32,768
        Vocabulary: 1 to 10M tokens; 13 stops, 256 1,000 8,192 to 512,000
        more: Attention heads: 1 to 1,000
        more: Key-value heads: 1 to 1,000
        more: Head size: 1 to 10,000
        more: MLP size: 1 to 1M
        more: Experts: 0 to 1,000
        more: Experts a token meets: 1 to 1,000
        more: Positions: 1 to 10M
    """,
    "flops": """
        Seconds per step: 0.001 to 1M s, and between; 21 stops, 1 1.25 1.6 to 100
        GPUs: 1 to 10M; 15 stops, 1 2 4 to 16,384
        more: Sequence: 1 to 10M tokens
        more: Batch: 1 to 10M sequences
    """,
    "duration": """
        Tokens: 1 to 10000T tokens; 31 stops, 1B 1.5B 2B to 100T
        GPUs: 1 to 10M; 17 stops, 1 2 4 to 65,536
        Share of the peak: 0.1 to 100%, and between; 25 stops, 5 5.5 6 to 80
        more: Price: 0.01 to 1M dollars per GPU-hour, and between
    """,
    "batch": """
        GPUs: 1 to 10M; 16 stops, 1 2 4 to 32,768
        Micro-batch: 1 to 100,000 at a time; 5 stops, 1 2 4 to 16
        Accumulation: 1 to 100,000 in a row; 9 stops, 1 2 4 to 256
        more: Sequence: 1 to 10M tokens
        more: Tokens: 1 to 10000T tokens
    """,
    "precision": """
        Replicas: 1 to 1M; 11 stops, 1 2 4 to 1,024
    """,
    "activations": """
        Sequence: 1 to 10M tokens; 11 stops, 128 256 512 to 131,072
        Micro-batch: 1 to 1M at a time; 9 stops, 1 2 4 to 256
        Passes per step: 1 to 1,000 in a row; 9 stops, 1 2 4 to 256
    """,
    "communication": """
        Tokens: 1 to 65,536 tokens; 8 stops, 512 1,024 1,536 to 16,384
        Passes: 1 to 64; 5 stops, 1 2 4 to 16
        GPUs: 1 to 100,000; 12 stops, 2 4 8 to 4,096
    """,
    "parallelism": """
        Tensor parallel: 1 to 1,000; 5 stops, 1 2 4 to 16
        Pipeline stages: 1 to 1,000; 6 stops, 1 2 4 to 32
        GPUs: 1 to 1M; 12 stops, 8 16 32 to 16,384
        more: Micro-batch: 1 to 100,000 at a time
        more: Batch: 1 to 10M sequences
        more: Sequence: 1 to 10M tokens
        more: Context parallel: 1 to 1,000
        more: Expert parallel: 1 to 1,000
        more: Pieces per stage: 1 to 100
    """,
    "plan": """
        GPUs: 1 to 10M; 17 stops, 1 2 4 to 65,536
        Tokens: 1 to 10000T tokens; 31 stops, 1B 1.5B 2B to 100T
        Days you have: 0.1 to 100,000 days, and between; 15 stops, 1 2 3 to 365
        more: Micro-batch: 1 to 1M at a time
        more: Pipeline stages: 1 to 1,000
        more: Tensor parallel: 1 to 1,000
        more: Context parallel: 1 to 1,000
        more: Expert parallel: 1 to 1,000
        more: Batch: 1 to 10M sequences
        more: Sequence: 1 to 10M tokens
        more: Price: 0 to 1M dollars per GPU-hour, and between
        more: Measured rate: 0 to 1e17 FLOP/s, and between
        more: Measured step: 0 to 1M seconds, and between
    """,
    "calendar": """
        GPUs: 1 to 10M; 15 stops, 8 16 32 to 131,072
        Restart: 0.1 to 10,000 minutes, and between; 12 stops, 1 2 3 to 500
        Failures: 0.001 to 10,000 in 1,000 node-days, and between; 9 stops, 0.5 1 2 to 50
        more: Computing: 0.1 to 100,000 days, and between
        more: Write: 0.01 to 100,000 s, and between
        more: Chance: 1 to 1,000
    """,
    "budget": """
        Money: 100 to 10B dollars; 29 stops, 2,000 3,000 5,000 to 100M
        Days: 0.5 to 1,000 days, and between; 15 stops, 1 2 3 to 365
        Your model: 1M to 10T parameters; 23 stops, 63M 190M 310M to 430B
        more: Price: 0.01 to 1M dollars per GPU-hour, and between
    """,
    "measure": """
        Micro-batch: 1 to 100,000 sequences; 8 stops, 1 2 4 to 128
        Accumulation: 1 to 10,000 in a row; 7 stops, 1 2 4 to 64
        Loading: 0.1 to 10,000 ms per sequence, and between; 9 stops, 0.1 0.2 0.5 to 50
        more: Exchange: 0.1 to 100,000 ms, and between; 10 stops, 1 2 5 to 1,000
        more: Fixed part of a pass: 0.01 to 10,000 ms, and between
        more: Computing: 0.01 to 10,000 ms per sequence, and between
        more: Update: 0.01 to 10,000 ms, and between
        more: Slowest GPU's pass: 100 to 1,000%
    """,
    "finetune": """
        Length: 1 to 131,072 tokens; 8 stops, 256 512 1,024 to 32,768
        GPUs: 1 to 8; 4 stops, 1 2 4 to 8
        Texts: 1 to 1B texts; 7 stops, 1,000 3,000 10,000 to 1M
        more: Tokens of a text: 1 to 131,072 tokens
        more: Epochs: 1 to 1,000
        more: Rank: 1 to 4,096
        more: Micro-batch: 1 to 1,024 at a time
        more: Price: 0.01 to 1M dollars per GPU-hour, and between
    """,
}
"""The fields of each panel: what they take, in which unit; those under *more* say so."""


def limits(control: Control) -> str:
    """A row of the table."""
    row = f"{control.label}: {control.write(control.least)} to {control.write(control.most)}"
    row = f"{row}{'' if control.unit == '%' else ' '}{control.unit}".rstrip()
    if not control.whole:
        row += ", and between"
    if control.stops:
        *first, last = map(control.write, (*control.stops[:3], control.stops[-1]))
        row += f"; {len(control.stops)} stops, {' '.join(first)} to {last}"
    return f"more: {row}" if control.more else row


@every_panel
def test_each_field_takes_what_its_row_says(word: str) -> None:
    numbers = [x for x in PANELS[word].controls.values() if x.kind == "number"]
    numbers.sort(key=lambda control: control.more)
    assert [*map(limits, numbers)] == dedent(FIELDS[word]).split("\n")[1:-1]


@every_panel
def test_a_field_takes_its_limits_and_nothing_beyond(word: str) -> None:
    for control in PANELS[word].controls.values():
        if control.kind != "number":
            continue
        for edge, beyond in ((control.least, -1), (control.most, 1)):
            assert control.read(edge) == edge
            assert control.read(control.typed(edge)) == pytest.approx(edge, 1e-12)
            with pytest.raises(ValueError, match=f"{control.label}: .* is outside "):
                control.read(edge + beyond * (1 + abs(edge) // 1000))
