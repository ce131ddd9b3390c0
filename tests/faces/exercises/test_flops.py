"""Chapter 02's exercises: what they say beside right and wrong, and its predictions."""

from pathlib import Path

import pytest

from llmtrain_course.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_course.flops.exercises import STATED, readings, work_ratio
from llmtrain_course.flops.handles import Setting
from llmtrain_course.kit.exercise import grade
from llmtrain_helpers import published
from tests.config_files import FILES
from tests.faces.exercises.answers import ANSWERS
from tests.pages import cell


def test_longer_texts_take_less_than_twice_the_work() -> None:
    assert PREDICTIONS["flops-guess"].truth() == "less than twice"
    assert work_ratio() == pytest.approx(1.404, abs=0.001)


def test_the_colleague_changes_the_length_alone() -> None:
    heard, run = cell("02_flops", "heard-length"), Setting()
    assert "sequence_length=2048" in heard
    assert run.sequence_length == 1024
    assert f"batch_size={run.batch_size}, recompute={run.recompute!r}".replace("'", '"') in heard
    assert f"({run.seconds:g} * {run.num_gpus}) / {run.peak / 1e12:.0f}e12" in heard
    assert PREDICTIONS["flops-wrong"].truth() == "length"


def test_equally_busy_and_not_equally_fast() -> None:
    assert PREDICTIONS["flops-busy"].truth() == "equally"


def test_the_colleagues_figure_is_that_of_the_sparse_peak_and_of_nothing_else() -> None:
    near = [name for name, share in readings().items() if abs(share - STATED) < 0.0005]
    assert near == ["sparse peak"]
    for wrong, _ in ANSWERS["flops-c"].common_mistakes:
        assert "36.8" not in check("flops-c", wrong).text


def test_another_question_follows_a_wrong_slip_and_no_wrong_number() -> None:
    def outcome(answer: object, turn: int = 0) -> tuple[bool | None, int]:
        verdict = grade("flops-c", answer, EXERCISES["flops-c"], 0, turn)
        assert "hint>" not in verdict.text
        return verdict.ok, verdict.turn

    assert outcome((0.184, "length")) == (False, 0)
    assert outcome((0.368, "length")) == (False, 1)
    assert outcome((0.368, "sparse"), 1) == (None, 1)  # and still the number is asked
    assert outcome((0.368, None), 1) == (None, 1)
    assert outcome((0.3, "sparse"), 1) == (False, 1)
    assert outcome(readings()["recomputation"] / 2, 1) == (True, 1)


def test_the_colleagues_share_is_what_runs_that_recompute_everything_reach() -> None:
    runs = published.rows("recomputation_runs")
    again = [row["mfu"] * row["seconds_selective"] / row["seconds_full"] for row in runs]
    assert min(again) < readings()["none"] < max(again)
    hfus = [row["mfu"] for row in runs]  # selective: little is done twice
    assert min(hfus) < readings()["recomputation"] < max(hfus)


def test_ones_own_model_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(FILES["Llama-3.1-8B"], "utf-8")
    for model in (path, str(path), "Llama-3.1-8B"):
        verdict = check("flops-d", (model, 64, "H100", 300))
        assert verdict.ok is True
        assert "300 sequences takes 6.42 s" in verdict.text
