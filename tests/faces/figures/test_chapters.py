"""The chapters' figures: what is told of them in words."""

import re

import pytest

from llmtrain_course import measure
from llmtrain_course.activations.figures import memory_bars
from llmtrain_course.batch.figures import published_batches
from llmtrain_course.duration.figures import days_by_gpus
from llmtrain_course.flops.figures import flops_per_parameter
from llmtrain_course.kit.figures import describe
from llmtrain_course.measure.figures import operators, throughputs
from llmtrain_course.parallelism.figures import by_tensor, layouts
from llmtrain_course.parameters.figures import formula_errors, shares_by_size
from llmtrain_course.precision.figures import bit_layouts, losses, ranges, spacings
from llmtrain_helpers import Transformer, count_parameters, published
from research.splits import measured_splits

GPT2 = Transformer.gpt(12, 768, 12, 50257, 1024)


def test_the_figures_tell_what_is_kept() -> None:
    bars = {"8B": {"2048 none": {"weights": 16e9, "activations": 4e9}}}
    assert "activations: 2048 none 4" in describe(memory_bars(bars))


def test_the_figures_show_the_data() -> None:
    table = published.batch_sizes().dropna(
        subset=["batch_tokens_start", "batch_tokens_end", "parameters"]
    )
    rows = table.to_dict("records")
    description = describe(published_batches(rows, "parameters"))
    assert f"greatest 67,000,000; {len(rows)} points" in description


def a_3_6b() -> list[dict]:
    table = measured_splits("vtrain_a100_multi_node")
    return by_tensor(table, num_gpus=64, pipeline_parallel=1, micro_batch_size=4)


def test_more_tensor_parallelism_was_slower_each_time() -> None:
    seconds = [row["seconds"] for row in a_3_6b()]
    assert [f"{x:.1f}" for x in seconds] == ["3.6", "4.1", "4.8", "5.6", "12.0"]
    assert seconds == sorted(seconds)
    [P] = {count_parameters(r["plan"].run.model).total for r in a_3_6b()}
    assert round(P / 1e9, 1) == 3.6


def test_the_figures_show_the_measurements() -> None:
    table = measured_splits("vtrain_a100_multi_node")
    description = describe(layouts({"mine": table}, a_3_6b()))
    assert "47 points" in description
    assert "- measured: 3.64 at x = 1 to 12.0 at x = 16" in description


def test_the_figure_shows_the_reported_days() -> None:
    runs = published.training_runs().dropna(subset=["days", "num_gpus", "tokens"])
    rows = runs.to_dict("records")[:2]
    figure = days_by_gpus(rows)
    for row in rows:
        assert f"{row['name']}, reported: {row['days']:g}"[:-1] in describe(figure)


def test_the_figure_shows_six_and_eight_for_short_sequences() -> None:
    figure = flops_per_parameter([12288])
    none, full = figure.axes[0].lines[:2]
    assert none.get_ydata()[0] == pytest.approx(6, rel=0.01)
    assert full.get_ydata()[0] == pytest.approx(8, rel=0.01)
    assert "h = 12,288, recompute full" in describe(figure)


def test_the_figure_of_shares_shows_what_was_counted() -> None:
    names = ["gpt2", "GPT-3 175B"]
    figure = shares_by_size({name: published.architecture(name) for name in names})
    gpt3 = count_parameters(published.architecture("GPT-3 175B"))
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
    assert lines["MLP"][-1] == pytest.approx(100 * gpt3.mlp / gpt3.total)
    assert "MLP: 45.5 at x = 124,000,000 to 66.4" in describe(figure)


def test_the_figure_of_errors_is_in_order() -> None:
    description = describe(formula_errors({"low": -0.4, "high": 0.1, "none": 0.0}))
    assert "high 10, none 0, low -40" in description


def test_the_figures_show_the_formats() -> None:
    assert "mantissa: fp8_e5m2 2, fp8_e4m3 3, fp16 10" in describe(bit_layouts())
    assert "normal numbers: fp8_e5m2 29.8" in describe(ranges())
    assert "bf16: " in describe(spacings())
    description = describe(losses([3.0, 2.0, 0.5], {"One": {"mine": [3.0, 2.0, 1.0]}}))
    assert description.startswith("Figure: One")
    assert "fp32: 3 at x = 0 to 0.500 at" in description
    assert "mine: 3 at x = 0 to 1 at" in description


def test_the_band_of_fp32_is_broader_than_what_lies_on_it() -> None:
    figure = losses([3.0, 2.0], {"One": {"a": [3.0, 2.0], "b": [3.0, 1.0]}, "Two": {}})
    first, second = figure.axes
    assert [line.get_linewidth() for line in first.lines] == [11, 2.5, 2.5]
    assert len({line.get_color() for line in first.lines}) == 3
    assert len(second.lines) == 1


def test_figures_of_times_have_words_without_numbers() -> None:
    steps = [measure.Operator("mm", p, 0.0, 1e-3, True) for p in measure.PHASES]
    description = describe(operators(measure.StepProfile(tuple(steps))))
    assert description.startswith("Figure: A training step on this machine")
    description += describe(throughputs([1, 2], {"here": [0.1, 0.1], "record": [0.2, 0.3]}))
    assert not re.search(r"\d", description)
