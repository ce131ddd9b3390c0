"""Chapter 07's drawings: to scale, inside their canvas, the same in words."""

import re
from dataclasses import fields
from html import unescape
from itertools import pairwise

import pytest

from llmtrain_helpers import Transformer, plan_run, units
from llmtrain_helpers.drawings.common import COLORS, STEP_PARTS
from llmtrain_helpers.drawings.communication import (
    ring,
    ring_turns,
    sending,
    shared_layer,
    step_bar,
    who_sends,
)
from llmtrain_helpers.evidence import published
from llmtrain_helpers.plan.seconds import StepSeconds

MODEL = Transformer.gpt(4, 16, 4, 64, 8)


H100 = published.accelerator("H100")


LLAMA = published.architecture("Llama-3.1-70B", 8192)


SPLIT = {"tensor_parallel": 8, "zero_stage": 1, "recompute": "full"}


PLAN = plan_run(LLAMA, H100, 64, 1e12, 256, **SPLIT)


def test_the_drawn_ring_is_a_real_one() -> None:
    for n in (1, 2, 4, 6):
        states = ring(n)
        assert len(states) == 2 * (n - 1) + 1
        assert states[-1] == [[n] * n] * n
        for before, after in pairwise(states):
            for old, new in zip(before, after, strict=True):
                assert sum(x != y for x, y in zip(old, new, strict=True)) == 1
        if n > 1:
            assert sorted(x for row in states[n - 1] for x in row).count(n) == n
    assert "each GPU sends 6/4 of its buffer" in ring_turns(4).words


def test_who_sends_is_seen_from_the_first_gpu() -> None:
    drawn = who_sends(PLAN)
    assert "64 GPUs = TP 8 × DP 8 × PP 1" in drawn.words
    assert drawn.body.count("shares tensor with the first") == 7
    assert drawn.body.count("shares data with the first") == 2  # of the drawn nodes
    assert drawn.body.count("the one that sends") == 1
    piped = who_sends(PLAN.but(tensor_parallel=2, pipeline_parallel=4))
    assert piped.body.count("shares pipeline with the first") == 1
    assert piped.body.count("shares tensor with the first") == 1
    assert piped.body.count("shares data with the first") == 3
    many = who_sends(PLAN.but(tensor_parallel=1)).body
    assert "2 of 8 nodes; dashed: the network" in many
    assert many.count("shares data with the first") == 15
    alone = plan_run(MODEL, H100, 1, 1e6, 1, recompute="none")
    assert "nothing is sent" in who_sends(alone).body
    assert sending(alone) == {}


def test_what_is_seen_of_sending_is_what_the_step_takes_longer() -> None:
    for name, part in sending(PLAN).items():
        assert part.visible == PLAN.step.parts()[name] <= part.seconds
    assert set(sending(PLAN)) == {"tensor", "data"}
    unknown = plan_run(LLAMA, published.accelerator("RTX 4090"), 64, 1e9, 64, **SPLIT)
    with pytest.raises(ValueError, match="links of RTX 4090 are not known"):
        sending(unknown)


def test_the_pieces_of_the_bar_add_up_to_the_step() -> None:
    for plan in (PLAN, PLAN.but(tensor_parallel=2, pipeline_parallel=4)):
        drawn = step_bar(plan)
        found = re.findall(r'<rect x="([\d.]+)" y="52" width="([\d.]+)"', drawn.body)
        assert float(found[0][0]) == 24
        last = max(float(x) + float(wide) for x, wide in found)
        assert last == pytest.approx(720, abs=1.5)
        assert sum(plan.step.parts().values()) == pytest.approx(plan.step.total)
    assert "stroke-dasharray" not in step_bar(PLAN, PLAN).body
    assert "stroke-dasharray" in step_bar(PLAN, PLAN.but(tensor_parallel=4)).body


@pytest.mark.parametrize("t", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("p", [1, 2, 16])
@pytest.mark.parametrize("n", [16, 64, 16384])
def test_nothing_leaves_the_canvas(t: int, p: int, n: int) -> None:
    if n < t * p:
        return
    model = published.architecture("GPT-3 175B", 2048)
    split = {"tensor_parallel": t, "pipeline_parallel": p, "recompute": "full"}
    plan = plan_run(model, H100, n, 1e9, n, **split)
    for drawn in (who_sends(plan), step_bar(plan), ring_turns(4), shared_layer(t + 1)):
        for place in re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"', drawn.body):
            x, y, wide = map(float, place)
            assert 0 <= x <= x + wide <= drawn.width
            assert 0 <= y <= drawn.height
        texts = re.findall(r'<text x="([\d.]+)".*?font-size="([\d.]+)"', drawn.body)
        assert min(float(size) for _, size in texts) >= 14
        assert max(float(x) for x, _ in texts) <= drawn.width
        assert drawn.words in unescape(drawn.saved())


def test_estimates_have_two_digits() -> None:
    assert [units.seconds(x) for x in (47.8, 1, 0.0962, 0.0002, 99.7)] == [
        *("48 s", "1.0 s", "96 ms", "0.20 ms", "100 s")
    ]
    shares = [units.share(x) for x in (0, 0.004, 0.006, 0.266)]
    assert shares == ["0 %", "under 1 %", "1 %", "27 %"]


@pytest.mark.parametrize(("stages", "told"), [(2, "to the next"), (16, "of a middle")])
def test_what_stands_beside_the_grid_has_room(stages: int, told: str) -> None:
    model = published.architecture("Llama-3.1-405B", 8192)
    split = {"tensor_parallel": 8, "pipeline_parallel": stages, "zero_stage": 1}
    split |= {"recompute": "full", "uneven_stages": True}
    plan = plan_run(model, H100, 16384, 1e12, 2048, **split)
    beside = re.findall(r">([^<]*; (?:links|network))<", who_sends(plan).body)
    assert f"{told} stage; network" in beside
    assert max(map(len, beside)) <= 34


def test_every_part_of_a_step_has_its_words_and_its_colour() -> None:
    assert [*STEP_PARTS] == [part.name for part in fields(StepSeconds)]
    *words, colors = zip(*STEP_PARTS.values(), strict=True)
    assert all(len({*column}) == len(STEP_PARTS) for column in words)
    assert {*colors} <= {*COLORS.values()}
