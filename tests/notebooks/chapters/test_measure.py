"""What the page of chapter 12 states, computed anew."""

from llmtrain_course.measure.recorded import recorded_step
from llmtrain_helpers import units
from tests.pages import cell
from tools.notebooks import chapters


def test_the_share_of_the_peak_that_the_recorded_step_reached() -> None:
    step = recorded_step(256)
    share = units.share(step.ideal / step.total)
    text = f"{1000 * step.ideal:.0f} ms out of {1000 * step.total:.0f} is {share}"
    assert text in cell("12_measure", "step-seen")


def test_only_the_last_page_calls_itself_the_last() -> None:
    for path in chapters()[:-1]:
        assert "this last page" not in cell(path.stem, "title").lower()
