"""What the page of chapter 05 states, computed anew."""

import re

import pytest

from llmtrain_helpers import FORMATS, train_small_network
from llmtrain_helpers.evidence import published
from tests.pages import words

bf16, fp16 = FORMATS["bf16"], FORMATS["fp16"]


def test_what_the_page_says_of_the_edges_of_formats() -> None:
    fp8, fp32 = FORMATS["fp8_e4m3"], FORMATS["fp32"]
    assert fp8.round(2**-10) == 0 < fp8.round(2**-10 * 1.001)
    assert "nothing above 448, and 0 from $2^{-10}$ down" in words("05_precision")
    assert 1 - bf16.max / fp32.max == pytest.approx(1 / 256, rel=1e-4)
    assert "it lacks a 256th" in words("05_precision")
    for known in FORMATS.values():  # F = 1 below the smallest normal number
        small = 2.0 ** (1 - known.bias) * 1 / 2**known.mantissa_bits
        assert small == known.min_subnormal
        assert known.spacing(small) == known.spacing(known.min_normal)
    for page in (words("05_precision"), words("evidence/05_precision")):
        assert "some 14 bits" in page
        assert "H800" in page


def test_what_the_page_says_of_runs_and_of_training() -> None:
    speedups = published.fp8_speedup().query("kind == 'run'")["speedup"]
    assert (round(speedups.min(), 1), round(speedups.max(), 1)) == (0.9, 1.7)
    peaks = published.accelerator("A100").peaks
    assert (peaks["bf16"], peaks["tf32"]) == (312e12, 156e12)
    fp32 = FORMATS["fp32"]
    ratio = train_small_network(bf16, fp32, master_copy=False)[-1]
    ratio /= train_small_network(fp32, fp32)[-1]
    assert round(ratio) == 11  # "eleven times"
    outliers = words("evidence/05_precision")  # a hundredfold one does no harm
    assert "A hundredfold outlier does no harm" in outliers
    assert (
        words("05_precision").count("0.9 to 1.7 times")
        == words("05_precision").count("eleven times")
        == 1
    )


def test_the_sum_on_the_page_stalls_where_it_says() -> None:
    [code] = re.findall(r"```python\n(.*?)```", words("05_precision"), re.DOTALL)
    names: dict = {"FORMATS": FORMATS}
    exec(code, names)
    assert names["total"] == 256
    assert "# 256.0" in code
