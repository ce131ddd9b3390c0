"""The evidence: what was published, as pandas tables, shapes and accelerators.

Every row of `data/` names its source; `data/README.md` says what each column means. All
columns are in SI base units. Tables come back as copies: change them as you like.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from llmtrain_helpers.architecture import Accelerator, Transformer
from llmtrain_helpers.checks import Number, refuse
from llmtrain_helpers.units import ratio

if TYPE_CHECKING:
    from pandas import DataFrame

FORMATS = ["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"]
"""The columns of `accelerators()` that hold dense peaks, in FLOP/s."""

CONFIG_LIMIT = 1_000_000
"""A config.json has a few thousand bytes; a file beyond this is something else."""


def accelerators() -> DataFrame:
    """GPUs and TPUs: memory, bandwidth, power, and dense peaks by number format."""
    return _table("accelerators")


def architectures() -> DataFrame:
    """Shapes of published models, with their exact totals where there is one."""
    return _table("architectures")


def megatron_table1() -> DataFrame:
    """Ten GPTs from 1.7 billion to 1 trillion parameters (arXiv 2104.04473 Table 1)."""
    return _table("megatron_table1")


def architecture(name: str, sequence_length: Number | None = None) -> Transformer:
    """The shape of a published model by its name, as `architectures()` lists it.

    `sequence_length` is that of training, in tokens; without it the model's maximum
    stands. An unknown name is a ValueError that offers the nearest.

    >>> architecture("Llama-3.1-8B", sequence_length=8192).num_kv_heads
    8
    """
    row = _row("architecture", name, architectures())
    s = row["max_sequence_length"] if sequence_length is None else sequence_length
    columns = Transformer.__dataclass_fields__.keys() & row.keys()
    shape = {column: row[column] for column in columns}
    gpt = row["kind"] == "gpt"
    traits = {"layer_norm": gpt, "gated_mlp": not gpt, "bias": gpt}
    return Transformer(**shape, **traits, sequence_length=s)


def accelerator(name: str) -> Accelerator:
    """An accelerator by its name in `accelerators()`, or as papers call it.

    >>> accelerator("A100-80").peak("bf16")
    312000000000000.0
    >>> accelerator("H10")
    Traceback (most recent call last):
    ...
    ValueError: accelerator='H10' is unknown, did you mean 'H20', 'A10' or 'H100 SXM'?
    """
    row = _row("accelerator", name, accelerators())
    return Accelerator(
        name=row["name"],
        memory=row["memory_bytes"],
        bandwidth=row.get("bandwidth_bytes_per_s"),
        power=row.get("power_watts"),
        peaks={key: row[key] for key in FORMATS if key in row},
    )


def read_config(path: str | Path, sequence_length: Number | None = None) -> Transformer:
    """The shape in a Hugging Face `config.json`; see `Transformer.from_config`.

    A file that is not there, too large, no JSON, or of a family that is not known is a
    ValueError that says so. Nothing is executed, and at most a megabyte is read.
    """
    return Transformer.from_config(_read_json(Path(path)), sequence_length)


class _Text(Protocol):
    def __call__(self, number: float, /) -> str: ...


def confront(
    names: Iterable[str],
    estimates: Iterable[Any],
    reported: Iterable[Any],
    unit: _Text,
) -> DataFrame:
    """Estimates beside what was reported, with their ratio, as text for people.

    `unit` is the function of `units` that writes the numbers.

    >>> from llmtrain_helpers import units
    >>> confront(["GPT-3"], [33.9084 * 86400], [34 * 86400], units.duration)
            estimate   reported  ratio
    GPT-3  33.9 days  34.0 days  0.997
    """
    from pandas import DataFrame

    rows = [
        (unit(e), unit(r), ratio(e / r))
        for e, r in zip(estimates, reported, strict=True)
    ]
    columns = ["estimate", "reported", "ratio"]
    return DataFrame(rows, index=list(names), columns=columns)


def data_folder() -> Path:
    """Where the tables lie: in the installed package, or beside it in a checkout."""
    here = Path(__file__).parent
    installed = here / "data"
    return installed if installed.is_dir() else here.parent / "data"


@cache
def _read_table(name: str) -> DataFrame:
    from pandas import read_csv

    # Nullable columns keep whole numbers whole beside a gap.
    return read_csv(data_folder() / f"{name}.csv", dtype_backend="numpy_nullable")


def _table(name: str) -> DataFrame:
    return _read_table(name).copy()


def _row(kind: str, name: str, table: DataFrame) -> dict[str, Any]:
    """What a table says of the one that goes by this name; gaps are left out."""
    names = table["name"] + (";" + table["aliases"]).fillna("")
    places = {alias: i for i, text in enumerate(names) for alias in text.split(";")}
    spellings = {_plain(alias): place for alias, place in places.items()}
    place = spellings.get(_plain(name)) if isinstance(name, str) else None
    if place is None:
        refuse(kind, name, _nearest(str(name)[:60], table["name"]))
    row = table.iloc[place]
    return {str(key): row[key] for key in table.columns[row.notna()]}


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _nearest(name: str, known: Iterable[str]) -> str:
    known = list(known)
    plain = {_plain(other): other for other in reversed(known)}
    near = [plain[key] for key in get_close_matches(_plain(name), plain, cutoff=0.5)]
    if not near:
        return f"is unknown. Known: {', '.join(known)}"
    offer = " or ".join([", ".join(map(repr, near[:-1])), repr(near[-1])]).removeprefix(
        " or "
    )
    return f"is unknown, did you mean {offer}?"


def _read_json(path: Path) -> Any:
    if not path.is_file():
        refuse("path", str(path), "is no file: give the path of a config.json")
    with path.open("rb") as file:
        content = file.read(CONFIG_LIMIT + 1)
    if len(content) > CONFIG_LIMIT:
        refuse(
            "path", str(path), f"is larger than {CONFIG_LIMIT:,} bytes: no config.json"
        )
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        refuse("path", str(path), f"holds no JSON that can be read: {str(error)[:80]}")
