"""Chapter 04's panel: what each control changes, and what it refuses."""

import pytest

from llmtrain_helpers.panels import PANELS, batch_panel
from llmtrain_helpers.panels.batch import Setting


@pytest.mark.parametrize(
    ("control", "value", "said"),
    [
        ("num_gpus", 32, "131 thousand tokens"),
        ("num_gpus", 100, "100 GPUs do not make a whole number of replicas: each"),
        ("num_gpus", 0, "GPUs: 0 lies outside"),
        ("tensor_parallel", 8, "from one replica"),
        ("tensor_parallel", 2, "from 4 replicas"),
        ("pipeline_parallel", 1, "from 4 replicas"),
        ("context_parallel", 2, "from one replica"),
        ("accumulation", "8", "(dashed: 65.5 thousand): 32 sequences"),
        ("micro_batch_size", "1", "32.8 thousand tokens"),
        ("sequence_length", "8k", "128 thousand tokens"),
        ("tokens", 0, "Tokens: 0 lies outside"),
        ("tokens", "1M", ">16<"),
    ],
)
def test_the_panel_follows_each_control(control: str, value, said: str) -> None:
    panel = batch_panel()
    assert "<b>65.5 thousand tokens</b> a step: 16 sequences" in panel.html
    panel.controls[control].value = value
    assert said in panel.status.value + panel.html


@pytest.mark.parametrize("name", PANELS["batch"].presets)
def test_the_panels_numbers_agree_with_each_other(name: str) -> None:
    values = PANELS["batch"].presets[name]
    if name == "A split that does not divide":
        answer = PANELS["batch"].answer(values)
        assert [label for label, _ in answer.offers] == ["GPUs: 96", "GPUs: 104"]
        return
    batch = Setting(**values).batch
    assert batch.passes == batch.updates * values["accumulation"]
    assert (batch.updates - 1) * batch.tokens < values["tokens"]
    assert values["tokens"] <= batch.updates * batch.tokens
    shown = PANELS["batch"].render(**values)
    for number in (batch.tokens, batch.updates, batch.passes, batch.replicas):
        assert f">{number:,}<" in shown


def test_the_panel_offers_gpu_counts_that_do() -> None:
    panel = batch_panel()
    panel.set(**panel.presets["A split that does not divide"])
    panel.offers.children[1].click()
    assert "from 13 replicas" in panel.html
    assert panel.status.value == ""
