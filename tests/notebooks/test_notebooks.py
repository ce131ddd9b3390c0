"""The notebooks as the course promises them: ten rules, and all else that counts."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from tokenize import COMMENT, DEDENT, ENDMARKER, INDENT, NEWLINE, NL, generate_tokens
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode

import conftest
from llmtrain_course.duration.exercises import Rented
from llmtrain_course.exercises import EXERCISES, PREDICTIONS
from llmtrain_course.kit.exercise import Function, MultipleChoice, Numeric
from llmtrain_course.kit.ids import chapter_of, part_of
from llmtrain_helpers import count_parameters, model_state_bytes, published
from tests.notebooks.scripts import load
from tests.paths import ROOT, tracked
from tools import notebooks, regenerate
from tools.notebooks import all_notebooks, chapters

minutes = load("minutes")
PATHS = all_notebooks()
CHAPTERS = chapters()
EVIDENCE = [path for path in PATHS if path.parent.name == "evidence"]
HAVE_EVIDENCE = [path for path in CHAPTERS if path.stem in {p.stem for p in EVIDENCE}]
"""Pages of the learner's path whose evidence stands apart."""

every_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(path: Path) -> list[NotebookNode]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def prose(path: Path) -> str:
    texts = [c.source for c in read(path).cells if c.cell_type == "markdown"]
    return "\n".join(texts)


def outputs(path: Path) -> list[NotebookNode]:
    return [output for cell in code_cells(path) for output in cell.outputs]


def test_the_courses_notebooks_are_those_that_are_committed() -> None:
    assert {path for path in tracked() if path.suffix == ".ipynb"} == set(PATHS)


OWN = """03_duration.mine.ipynb, 03_duration.mine-2.ipynb, 03_duration-Copy1.ipynb,
Untitled.ipynb, 3.ipynb, .ipynb_checkpoints/03_duration-checkpoint.ipynb,
.ipynb_checkpoints/03_duration.ipynb, solutions/03_duration.mine.ipynb,
evidence/.ipynb_checkpoints/03_duration-checkpoint.ipynb""".replace("\n", " ")
"""What JupyterLab, `make reset` and a learner leave beside the course's notebooks."""


def test_what_a_learner_leaves_there_is_none_of_the_courses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    ours = ["03_duration.ipynb", "evidence/03_duration.ipynb", "solutions/03_duration.ipynb"]
    for name in [*ours, *OWN.split(", ")]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path)
    assert notebooks.all_notebooks() == [tmp_path / name for name in ours]
    for name in OWN.split(", "):
        assert conftest.pytest_ignore_collect(ROOT / "notebooks" / name, request.config)
    assert not any(conftest.pytest_ignore_collect(path, request.config) for path in PATHS)


@pytest.mark.parametrize(
    "files", ["*.py", "llmtrain_*/**/*.py", "tests/**/*.py", "[rt]*/*.py", "site/*.py"]
)
def test_nothing_else_lists_them(files: str) -> None:
    for path in ROOT.glob(files):
        assert not re.search(r"glob\([^)]*[i]pynb", path.read_text("utf-8")), path.name


@every_notebook
def test_is_valid_and_ran_in_order(path: Path) -> None:
    nbformat.validate(read(path))
    ran = [cell.execution_count for cell in code_cells(path)]
    assert ran == list(range(1, len(ran) + 1))


@every_notebook
def test_no_output_is_an_error_or_on_stderr(path: Path) -> None:
    for output in outputs(path):
        assert output.output_type != "error"
        assert output.get("name") != "stderr"


@every_notebook
def test_no_widget_state_and_no_widget_view_is_saved(path: Path) -> None:
    assert "widgets" not in read(path).metadata
    assert regenerate.WIDGET_VIEW not in path.read_text("utf-8")


@every_notebook
def test_code_cells_are_short_and_never_more_than_three_in_a_row(path: Path) -> None:
    kinds = "".join(cell.cell_type[0] for cell in read(path).cells)
    assert "cccc" not in kinds
    lengths = [len(cell.source.splitlines()) for cell in code_cells(path)] or [0]
    assert max(lengths) <= 20
    assert sorted(lengths)[len(lengths) // 2] <= 6


@every_notebook
def test_no_cell_ends_in_a_semicolon(path: Path) -> None:
    """nbval runs cells without history, where a semicolon hides nothing."""
    for cell in code_cells(path):
        assert not ends_in_a_semicolon(cell.source), cell.id


def ends_in_a_semicolon(source: str) -> bool:
    """As IPython sees it: behind the semicolon there may be a comment."""
    unseen = (COMMENT, NEWLINE, NL, INDENT, DEDENT, ENDMARKER)
    tokens = generate_tokens(StringIO(source).readline)
    return [t.string for t in tokens if t.type not in unseen][-1:] == [";"]


def test_a_semicolon_hides_behind_a_comment() -> None:
    assert ends_in_a_semicolon("x = 1\nx;  # quiet\n\n# and more")
    assert not ends_in_a_semicolon("x = '1;'; x  # heard;")


@every_notebook
def test_nothing_is_installed_fetched_or_put_on_the_path(path: Path) -> None:
    banned = r"sys\.path|^\s*[%!]|requests|urllib|import \*|http\.client"
    for cell in code_cells(path):
        assert not re.search(banned, cell.source, re.MULTILINE), cell.id


@every_notebook
def test_no_cell_is_left_out_of_the_strict_test(path: Path) -> None:
    assert not re.search(r"nbval[-_]|NBVAL_", path.read_text("utf-8"), re.IGNORECASE)


@every_notebook
def test_pictures_have_words(path: Path) -> None:
    for tag in re.findall(r"<img[^>]*>", path.read_text("utf-8")):
        assert re.search(r"alt=\\?[\"'][^\"']+", tag)
    assert not re.findall(r"!\[\s*\]\(", prose(path))
    for cell in code_cells(path):
        kinds = [kind for output in cell.outputs for kind in output.get("data", {})]
        text = "".join(output.get("text", "") for output in cell.outputs)
        assert kinds.count("image/png") == text.count("Figure: "), cell.id
        assert path not in [*CHAPTERS, *EVIDENCE] or "image/png" not in kinds, cell.id


PARAGRAPH = re.compile(r"</?(?:p|t[dhr]|li|h\d|pre|span|div|summary)\b[^>]*>")


@every_notebook
def test_jupyterlab_takes_no_two_prices_for_a_formula(path: Path) -> None:
    for output in outputs(path):
        text = re.sub(r'"data:[^"]*"', "", output.get("data", {}).get("text/html", ""))
        for paragraph in PARAGRAPH.split(text):
            assert re.sub("<[^>]*>", "", paragraph).count("$") < 2, paragraph


@every_notebook
def test_is_small_and_has_the_standard_kernel(path: Path) -> None:
    assert path.stat().st_size < 600_000
    assert read(path).metadata == regenerate.METADATA


@every_notebook
def test_cell_ids_are_words_and_none_stands_twice(path: Path) -> None:
    ids = [cell.id for cell in read(path).cells]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z][a-z0-9-]*", name) for name in ids)


@every_notebook
def test_outputs_hold_nothing_that_changes_from_run_to_run(path: Path) -> None:
    text = json.dumps([dict(output) for output in outputs(path)])
    assert not re.search(r"0x[0-9a-f]{6,}|/home/|/root/|/tmp/|np\.(int|float)64", text)


@every_notebook
def test_regenerated_text_has_the_form_of_the_committed_one(path: Path) -> None:
    text = path.read_text("utf-8")
    notebook = nbformat.reads(text, as_version=4)
    assert regenerate.as_text(regenerate.clean(notebook)) == text


@every_chapter
def test_objectives_are_met_by_checks_that_exist(path: Path) -> None:
    goals = re.findall(r"^\* (.*check [a-z_]+-[a-z].*)$", prose(path), re.MULTILINE)
    assert 3 <= len(goals) <= 4
    met = [name for goal in goals for name in re.findall(r"check ([a-z_]+-[a-z])", goal)]
    assert met == [name for name in checks_of(path) if len(part_of(name)) == 1]


def _texts(output: Any) -> list[str]:
    text = output.get("data", {}).get("text/plain", output.get("text", ""))
    return [text]


@every_chapter
def test_solutions_are_in_step(path: Path) -> None:
    solution = path.parent / "solutions" / path.name
    assert checks_of(solution) == checks_of(path)
    assert [id for id in EXERCISES if chapter_of(id) == path.stem[3:]] == checks_of(path)
    texts = [o.data["text/plain"] for o in outputs(solution) if "data" in o]
    passed = [text for text in texts if re.search(r"✓|→ [a-z_]+-[a-z]\b", text)]
    assert len(passed) == len(checks_of(path))
    replies = "\n".join(text for o in outputs(solution) for text in _texts(o))
    assert "isn't one of the choices" not in replies
    assert "No guess yet" not in replies
    untouched = [o.data["text/plain"] for o in outputs(path) if "data" in o]
    waiting = [
        text
        for text in untouched
        if re.search("[Nn]o (answer|recommendation) yet|Nothing is here yet", text)
    ]
    assert len(waiting) == len(checks_of(path))


def test_the_page_of_measuring_runs_to_its_end_without_pytorch() -> None:
    """Two cells need it: each says so first, goes on, and leaves nothing that others use."""
    [page] = [path for path in CHAPTERS if path.stem == "12_measure"]
    needing = [cell for cell in code_cells(page) if "require_torch" in cell.source]
    assert len(needing) == 2
    for cell in needing:
        assert cell.source.startswith("measure.require_torch()")
        assert cell.metadata.tags == ["raises-exception"]
    others = [cell for cell in code_cells(page) if cell not in needing]
    made = {name for cell in needing for name in names_in(cell.source, ast.Store)}
    assert made
    for cell in others:
        used = names_in(cell.source, ast.Load) - names_in(cell.source, ast.Store)
        assert not used & {"torch", *made}, cell.id


def names_in(source: str, context: type[ast.expr_context]) -> set[str]:
    """The names that some lines set, or use."""
    nodes = ast.walk(ast.parse(source))
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


@every_chapter
def test_solutions_repeat_the_question_before_the_answer(path: Path) -> None:
    asked, solution = prose(path), prose(path.parent / "solutions" / path.name)
    answered = re.findall(r"^(\*\*[a-z_]+-[a-z]\.\*\* .+?)\n\n\*\*Answer", solution, re.M | re.S)
    assert len(answered) == len([name for name in checks_of(path) if len(part_of(name)) == 1])
    assert all(question in asked for question in answered)


def checks_of(path: Path) -> list[str]:
    sources = "\n".join(cell.source for cell in code_cells(path))
    return re.findall(r'check\("([a-z_]+-[a-z]+)"', sources)


def test_every_place_has_the_same_minutes() -> None:
    """Pages, README, TEACHING and the site's cards: python teaching/minutes.py --write."""
    counted = {path.name[:2]: minutes.solo_minutes(path) for path in CHAPTERS}
    pages = {path.name[:2]: re.findall(r"[Aa]bout (\d+) min", prose(path)) for path in CHAPTERS}
    assert pages == {number: [str(single)] for number, single in counted.items()}
    readme, guide = ((ROOT / x).read_text("utf-8") for x in ("README.md", "TEACHING.md"))
    rows = re.findall(r"^\| (\d\d) · [^|]*\|[^|]*\| (\d+) \|$", readme, re.MULTILINE)
    assert {number: int(single) for number, single in rows} == counted
    parts = re.findall(r"^### (\d\d) · (?s:.*?)\*\*, alone (\d+)$", guide, re.MULTILINE)
    assert {number: int(single) for number, single in parts} == counted
    assert minutes.with_minutes(readme) == readme
    assert "solo_minutes(path)" in (ROOT / "site" / "front_page.py").read_text("utf-8")


# --- the learner's path


@every_chapter
def test_a_page_is_of_a_size_to_be_walked(path: Path) -> None:
    cells, code = read(path).cells, code_cells(path)
    assert len(cells) <= 40
    assert len(code) <= 18
    assert sum(len(cell.source.splitlines()) for cell in code) <= 120


@every_chapter
def test_no_table_has_more_than_eight_rows(path: Path) -> None:
    for cell in read(path).cells:
        for html in shown_html(cell):
            for table in re.findall(r"<table.*?</table>", html, re.S):
                assert table.count("<tr") <= 9, cell.id


def shown_html(cell: NotebookNode) -> list[str]:
    """What a cell shows unfolded; a panel's picture has its table folded."""
    outputs = [o.get("data", {}).get("text/html", "") for o in cell.get("outputs", [])]
    return [re.sub(r"<details.*?</details>", "", html, flags=re.S) for html in outputs]


@every_chapter
def test_a_prediction_waits_and_its_page_tells_nothing(path: Path) -> None:
    ids = predictions_of(path)
    assert ids
    for cell in code_cells(path):
        if "predict(" in cell.source:
            assert re.search(r"^guess = None", cell.source, re.M), cell.id
            [output] = cell.outputs
            assert "No guess yet" in output.data["text/plain"]
    assert set(ids) == {id for id in PREDICTIONS if chapter_of(id) == path.stem[3:]}


def predictions_of(path: Path) -> list[str]:
    sources = "\n".join(cell.source for cell in code_cells(path))
    return re.findall(r'predict\("([\w-]+)"', sources)


@every_chapter
def test_no_key_stands_above_its_exercise(path: Path) -> None:
    """Neither in an output nor in a sentence or code, within 0.5 percent."""
    seen: list[tuple[float, int]] = []
    for cell in read(path).cells:
        for id in re.findall(r'(?:check|predict)\("([\w-]+)"', cell.source):
            assert not near(key_of(id), seen), (id, near(key_of(id), seen))
        seen += numbers_of(cell)


OF_ONES_OWN: dict[str, Callable[[], Any]] = {
    "parameters-e": lambda: count_parameters(replace(EIGHT, num_layers=64)).total,
    "precision-d": lambda: model_state_bytes(8_030_261_248, "bf16", 1, 8).total / 1e9,
}
"""Answers for the run that the page itself has for an example, where that is 8B."""

EIGHT = published.architecture("Llama-3.1-8B")


def key_of(id: str) -> float:
    """The number that an exercise or a prediction asks for; 0 where it asks for none.

    Whole numbers up to 12 stand everywhere, and give nothing away.
    """
    exercise = EXERCISES.get(id) or PREDICTIONS[id]
    compute: Any = getattr(exercise, "truth", getattr(exercise, "key", int))
    if isinstance(exercise, Function):
        return 0
    key = OF_ONES_OWN.get(id, compute)()
    if not isinstance(key, (int, float)) or (key <= 12 and not key % 1):
        return 0
    return float(key)


def near(key: float, seen: list[tuple[float, int]]) -> list[float]:
    """Of numbers with their digits those within 0.5 percent of a key.

    One of three digits or more may also stand for thousands, millions, and so on.
    """
    sizes = [1, 1e3, 1e6, 1e9, 1e12] if key else []
    return [
        x
        for x, digits in seen
        for size in sizes
        if abs(x * size / key - 1) < 0.005 and (digits > 2 or size == 1)
    ]


def test_a_key_is_found_however_it_is_written() -> None:
    for source in ("207.8 days", "208,000", "0.208 thousand", "a rate of 207.83"):
        cell = nbformat.v4.new_markdown_cell(source)
        assert bool(near(207.83, numbers_of(cell))) == (source != "208,000")
    cell = nbformat.v4.new_code_cell("x = 185")
    output = {"text/html": '<b style="margin:99px">185.2</b> GB', "text/plain": "3.15"}
    cell.outputs = [nbformat.v4.new_output("display_data", data=output)]
    numbers = numbers_of(cell)
    assert [x for x, _ in numbers] == [185, 3.15, 185.2]
    assert near(185_220_464_640, numbers) == [185, 185.2]
    assert near(3_145_728, numbers) == [3.15]
    assert not near(14e9, [(14.0, 2)])


def test_which_exercises_have_a_key_that_could_be_given_away() -> None:
    looked_at = {id for id in [*EXERCISES, *PREDICTIONS] if key_of(id)}
    numbers = {id for id, one in EXERCISES.items() if isinstance(one, Numeric)}
    assert numbers - looked_at <= {"calendar-c"}  # its key is 7, which stands everywhere
    assert {
        "duration-b",
        "parameters-e",
        "precision-d",
        "start_here-d",
        "start_here-guess",
        "activations-guess",
    } <= looked_at


SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}


def numbers_of(cell: NotebookNode) -> list[tuple[float, int]]:
    """Numbers that a cell's text, code or output shows, and their digits."""
    texts = [cell.source]
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        seen = re.sub(r"<[^>]*>", " ", data.get("text/html", ""))
        texts += [output.get("text", ""), data.get("text/plain", ""), seen]
    numbers = []
    for text in texts:
        pattern = r"(?<![\w.])(\d[\d,]*\.?\d*)(?: ?(thousand|million|billion|trillion))?"
        for digits, word in re.findall(pattern, text.replace("{,}", ",")):
            number = float(digits.replace(",", "")) * SCALES.get(word, 1)
            numbers.append((number, len(re.sub(r"^[0.]+|[,.]", "", digits))))
    return [(number, digits) for number, digits in numbers if number]


@pytest.mark.parametrize("path", HAVE_EVIDENCE, ids=lambda p: p.stem)
def test_page_and_evidence_are_linked_both_ways(path: Path) -> None:
    evidence = path.parent / "evidence" / path.name
    assert f"](evidence/{path.name})" in prose(path)
    assert f"](../{path.name})" in prose(evidence)


@every_chapter
def test_every_page_asks_for_a_decision_and_for_ones_own_run(path: Path) -> None:
    kinds = [type(EXERCISES[id]) for id in EXERCISES if chapter_of(id) == path.stem[3:]]
    assert {MultipleChoice, Function, Rented} & {*kinds}
    assert "your own run" in prose(path).casefold()
