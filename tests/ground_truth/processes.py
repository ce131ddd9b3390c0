"""Some processes that run a script of this folder together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from llmtrain_course.measure.parallel import _environment


def first_of(script: str, many: int, meeting: Path) -> Any:
    """What the first of them prints last, read as JSON; all have to end well.

    A script takes its rank, how many there are, and the file in which they meet.
    """
    command = [sys.executable, str(Path(__file__).with_name(script))]
    group = [
        subprocess.Popen(
            [*command, str(rank), str(many), str(meeting)],
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env=_environment(),
        )
        for rank in range(many)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in group]
    assert [process.returncode for process in group] == [0] * many
    return json.loads(outputs[0].strip().splitlines()[-1])
