"""Chapter 07's drawings: to scale, inside their canvas, the same in words."""

import re
from dataclasses import fields
from html import unescape

import pytest

from llmtrain_helpers import Transformer, plan_run, units
from llmtrain_helpers.communication import SharedMlp, beside_backward
from llmtrain_helpers.drawings.common import COLORS, STEP_PARTS
from llmtrain_helpers.drawings.communication import (
    LONGEST,
    apart,
    message_rates,
    neighbour_grid,
    of_first_stage,
    sending,
    shared_matrices,
    step_bar,
    time_line,
    who_sends,
)
from llmtrain_helpers.evidence import published
from llmtrain_helpers.plan.seconds import StepSeconds

MODEL = Transformer.gpt(4, 16, 4, 64, 8)


H100 = published.accelerator("H100")


LLAMA = published.architecture("Llama-3.1-70B", 8192)


SPLIT = {"tensor_parallel": 8, "zero_stage": 1, "recompute": "full"}


PLAN = plan_run(LLAMA, H100, 64, 1e12, 256, **SPLIT)


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
    for drawn in (who_sends(plan), step_bar(plan)):
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


# --- the handles' pictures


def edges(body: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of each rectangle."""
    found = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', body)
    numbers = (map(float, place) for place in found)
    return [(x, y, x + wide, y + high) for x, y, wide, high in numbers]


def test_gpu_1_sends_what_the_first_stage_sends() -> None:
    """Activations to the next stage, once per pass; a middle stage also sends gradients back."""
    for stages in (2, 4, 8):
        plan = PLAN.but(tensor_parallel=2, pipeline_parallel=stages)
        part = of_first_stage(plan, sending(plan))["pipeline"]
        passes = int(plan.split.accumulation_steps)
        assert part.sent == passes * 2 * 8192 * 8192 / 2
        words = neighbour_grid(plan, 1e12).words
        assert f"pipeline: {units.about(part.sent, units.gigabytes)}, to the next stage" in words
    assert of_first_stage(PLAN, sending(PLAN)) == sending(PLAN)
    middle = sending(plan)["pipeline"]
    assert (middle.sent / part.sent, middle.seconds / part.seconds) == (2, 2)


def test_squares_are_as_large_as_what_is_sent() -> None:
    piped = PLAN.but(tensor_parallel=2, pipeline_parallel=4)
    for plan in (PLAN, piped):
        parts = of_first_stage(plan, sending(plan))
        most = sending(PLAN)["tensor"].sent
        body = neighbour_grid(plan, most).body
        for name, part in parts.items():
            [side] = re.findall(rf'width="([\d.]+)"[^>]*><title>{name}</title>', body)
            assert float(side) == pytest.approx(124 * (part.sent / most) ** 0.5, abs=0.06)
    assert neighbour_grid(PLAN, most).body.count("shares tensor with GPU 1") == 7
    assert neighbour_grid(PLAN, most).body.count("shares data with GPU 1") == 7
    assert neighbour_grid(piped, most).body.count("shares pipeline with GPU 1") == 1
    assert "stroke-dasharray" in neighbour_grid(piped, most, PLAN).body


def test_a_node_of_replicas_sends_its_sums_by_network() -> None:
    drawn = neighbour_grid(PLAN, sending(PLAN)["tensor"].sent, replicas=True)
    row, *others = drawn.body.split(">node ")[1:]
    assert row.count("shares data with GPU 1") == 7
    assert all(other.count("shares tensor with GPU 1") == 1 for other in others)
    assert "tensor: 4.2 TB, with 7 GPUs, by network, 92 s, at 46 GB/s" in drawn.words
    assert "data: 31 GB, with 7 GPUs, by links" in drawn.words
    sums, near = apart(PLAN)["tensor"], sending(PLAN)["tensor"]
    assert (sums.sent, sums.inside, near.inside) == (near.sent, False, True)


def test_the_time_line_is_to_scale_and_what_shows_is_full() -> None:
    for tokens in (256, 3072, 4096):
        for messages in (1, 8, 32):
            last = beside_backward(8e9, tokens, 989.5e12, 64, 400e9, messages)
            assert 1e3 * last.end < LONGEST
            body = time_line(last, LONGEST).body
            full = r'<rect x="([\d.]+)" y="132" width="([\d.]+)" height="40" fill="#\w+">'
            seen = sum(float(wide) + 1 for _, wide in re.findall(full, body))
            assert seen == pytest.approx(2420 * last.visible, abs=messages)
            assert max(edge[2] for edge in edges(body)) <= 640
    assert "message" not in re.sub("<svg.*?>", "", time_line(last, 0).body)


def test_hundreds_of_messages_are_drawn_as_one_path() -> None:
    last = beside_backward(8e9, 2560, 989.5e12, 64, 400e9, 512)
    body = time_line(last, LONGEST).body
    [way] = re.findall(r'<path d="([^"]+)"', body)
    pieces = [*map(float, re.findall(r"132h([\d.]+)v", way))]
    hidden = 2.42e3 * (last.sending - last.visible)
    assert sum(pieces) == pytest.approx(hidden, abs=0.01 * len(pieces))
    [wide] = re.findall(r'width="([\d.]+)"[^>]*><title>messages, seen', body)
    assert float(wide) + 1 == pytest.approx(2.42e3 * last.visible, abs=0.1)


def test_cells_are_filled_when_they_are_computed() -> None:
    filled = [shared_matrices(SharedMlp(), step).body.count(">3</text>") for step in range(7)]
    assert filled == sorted(filled)
    assert "Added up: 10 15. " in shared_matrices(SharedMlp(), 5).words
    assert shared_matrices(SharedMlp(gpus=4), 6).words.endswith("Added up: 9 8.")
    for gpus in (1, 2, 4):
        body = shared_matrices(SharedMlp(gpus=gpus), 6).body
        boxes = edges(re.sub(r'<rect [^>]*stroke="currentColor".*?</rect>', "", body))
        for i, one in enumerate(boxes):
            for two in boxes[i + 1 :]:  # no two lie on each other
                across = min(one[2], two[2]) - max(one[0], two[0])
                down = min(one[3], two[3]) - max(one[1], two[1])
                assert across <= 0 or down <= 0, (gpus, one, two)


def test_rates_lie_where_the_axis_says() -> None:
    rates = {"8 H100": {2**17: 450e9, 2**33: 900e9}} | {x: {2**17: 9e9} for x in "abc"}
    body = message_rates(rates, dict.fromkeys(rates, 0.001), 2**17).body
    [(x, y)] = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="6"[^>]*><title>8 H100', body)
    assert (float(x), float(y)) == (62, 330 - 140)
