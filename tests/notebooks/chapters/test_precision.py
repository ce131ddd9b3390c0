"""What the page of chapter 05 and its evidence state, computed anew."""

import math
import re

import numpy as np
import pytest

from llmtrain_course.activations.handles import Setting
from llmtrain_course.precision.formulas import (
    between,
    fit_line,
    sum_of_ones,
    train_small_network,
    update_weight,
)
from llmtrain_course.precision.pictures import number, power
from llmtrain_helpers import FORMATS, count_parameters, model_state_bytes, plan_run, published
from llmtrain_helpers.precision import RECIPES
from tests.pages import cell, cells, words
from tools.notebooks import chapters

bf16, fp16 = FORMATS["bf16"], FORMATS["fp16"]
PAGE, EVIDENCE = words("05_precision"), words("evidence/05_precision")


def test_what_is_said_of_the_edges_of_formats() -> None:
    fp32, e4m3 = FORMATS["fp32"], FORMATS["fp8_e4m3"]
    assert 9 in between(e4m3, 8, 10)
    assert 9.5 not in between(e4m3, 8, 10)
    assert 1 - bf16.max / fp32.max == pytest.approx(1 / 256, rel=1e-4)
    assert "bf16 ends a 256th below fp32's largest number" in EVIDENCE
    assert fp16.round(2.0**-25) == 0 < fp16.round(2.0**-25 * 1.001)
    assert "$2^{-25}$, is rounded to 0" in PAGE
    assert "about 14 bits" in EVIDENCE
    assert "H800" in EVIDENCE


def test_what_is_said_of_runs_and_of_training() -> None:
    fp32 = FORMATS["fp32"]
    ratio = train_small_network(bf16, fp32, master_copy=False)[-1]
    ratio /= train_small_network(fp32, fp32)[-1]
    assert round(ratio) == 11
    assert EVIDENCE.count("eleven times that of fp32") == 1
    assert "A hundredfold outlier doesn't do any harm" in EVIDENCE


def test_a_thousand_updates_end_where_the_page_says() -> None:
    alone, kept = (fit_line(bf16, main)[-1] for main in (False, True))
    assert f"its loss is {round(alone / kept, -3):,.0f}× that of the fit" in PAGE
    weight = update_weight(bf16, 1, 0.004, 1)
    assert f"moves the weight by {weight.direct - 1:.4f}" in PAGE
    assert update_weight(bf16, 1, 0.004, 1000).direct == 2
    assert (
        "From 2 on, though, the spacing is twice as large, so the weight gets stuck there" in PAGE
    )


def test_the_sum_stalls_where_the_page_says() -> None:
    assert (sum_of_ones(bf16, 10**6), sum_of_ones(fp16, 10**6)) == (256, 2048)
    assert "At 256, the sum is stuck" in PAGE
    assert "fp16 counts to 2,048" in PAGE
    ones = np.ones(4096, dtype=np.float16)
    assert (ones.cumsum()[-1], ones.sum()) == (2048, 4096)
    assert "`np.cumsum` stops at 2,048. `np.sum` doesn't" in PAGE
    # nine numbers that share one of its partial sums: pairs alone would leave 2,048
    ones[:128] = 0
    ones[0], ones[8:128:8] = 2048, 1
    assert ones[:128].sum() == 2064


def test_who_fits_at_which_stage() -> None:
    P = int(count_parameters(published.architecture("Llama-3.1-8B")).total)

    def fits(stage: int, replicas: int) -> bool:
        return model_state_bytes(P, "bf16", stage, replicas).total <= 80e9

    assert [fits(stage, 4) for stage in range(3)] == [False, True, True]
    assert [fits(stage, 2) for stage in range(3)] == [False, False, True]
    bf16_bytes = model_state_bytes(1, "bf16")
    assert (bf16_bytes.main_weights + bf16_bytes.optimizer) / bf16_bytes.total == 0.75
    assert "three quarters of the total" in PAGE


@pytest.mark.parametrize("page", [path.stem for path in chapters()[6:]])
def test_a_page_that_counts_bytes_of_a_parameter_names_the_recipe(page: str) -> None:
    """In the same cell, and it's one that has these bytes."""
    for name in (page, f"solutions/{page}", f"evidence/{page}"):
        texts = ["".join(x["source"]) for x in cells(name) if x["cell_type"] == "markdown"]
        for text in texts:
            named = {RECIPES[x].total for x in re.findall(r"`(\w+)`", text) if x in RECIPES}
            for size, of in re.findall(r"\b(16|18|20) bytes (?:for each |per |a )?(\w*)", text):
                assert int(size) in named or of in ("logit", "score"), (name, text)


def test_the_bytes_that_the_page_gives_a_recipe() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| bytes per parameter |"))
    sizes = re.findall(r"(\d+) \((.+?)\)", row)
    named = {x: int(size) for size, of in sizes for x in re.findall(r"`(\w+)`", of)}
    assert named == {name: recipe.total for name, recipe in RECIPES.items()}
    seen = cell("05_precision", "weigh-seen")
    plan = plan_run("gpt2", "A100", 8, 1e9, 64, recompute="none")
    assert plan.run.bytes_of == RECIPES["bf16"]
    assert "From here to chapter 11, ours is `bf16`, with 16 bytes" in seen
    assert Setting().recipe == "bf16"


def test_the_table_of_formats_is_that_of_the_package() -> None:
    for name in ("fp32", "bf16", "fp16", "fp8_e4m3"):
        number_format = FORMATS[name]
        cells = [number_format.exponent_bits, number_format.mantissa_bits]
        cells += [
            number(number_format.max, 2 if number_format.max > 1e6 else 8),
            power(int(math.log2(number_format.eps))),
        ]
        row = " | ".join(map(str, [name, *cells]))
        assert f"| {row} |" in PAGE, row
