"""`python -m llmtrain_helpers.measure --record FILE.csv`: see `measure.record`."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from llmtrain_helpers.measure import torch_missing


def main(arguments: list[str] | None = None) -> int:
    """Record this machine; 0 when complete, 2 with one sentence when it cannot be."""
    parser = argparse.ArgumentParser(
        prog="python -m llmtrain_helpers.measure",
        description="Time matrix products and training steps, and write each as a row.",
    )
    parser.add_argument("--record", type=Path, required=True, metavar="FILE.csv")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes, in seconds")
    chosen = parser.parse_args(arguments)
    if chosen.record.suffix != ".csv":
        return _refused("--record takes the name of a file that ends in .csv")
    if chosen.device == "cpu" and not chosen.tiny:
        return _refused("A CPU takes days for this: add --tiny to try the path.")
    missing = torch_missing()
    if missing:
        return _refused(missing)
    return _recorded(chosen.record, chosen.device, chosen.tiny)


def _recorded(path: Path, device: str, tiny: bool) -> int:
    try:
        record = import_module("llmtrain_helpers.measure.record")
        problem = record.problem(device)
        if problem:
            return _refused(problem)
        record.record(path, device, tiny)
    except (ValueError, OSError, RuntimeError) as error:
        return _refused(str(error).splitlines()[0])
    except KeyboardInterrupt:
        print(f"Stopped: {path} keeps its rows; the same command goes on.")
        return 130
    return 0


def _refused(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
