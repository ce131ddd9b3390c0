"""Chapter 04's exercises: what they say beside right and wrong, and its predictions."""

import pytest

from llmtrain_helpers import batch_tokens, data_parallel_size, global_batch_size, units
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import PREDICTIONS, check
from llmtrain_helpers.exercises.batch import batches_of_size, idle


def text_of(id: str, answer: object) -> str:
    verdict = check(id, answer)
    assert verdict.ok is False
    return verdict.text


def test_04_a_takes_every_right_way() -> None:
    d = data_parallel_size(96, 2, 4)
    for answer in (
        3_145_728,
        "3,145,728",
        "3.145728M",
        3145728.0,
        batch_tokens(global_batch_size(4, 32, d), 2048),
    ):
        assert check("04-a", answer).ok, answer
    assert "exactly" in check("04-a", 3.146e6).text


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (3_145_728 * 8, "every GPU as a replica"),
        (3_145_728 * 4, "pipeline's stages"),
        (3_145_728 * 2, "tensor-parallel group"),
        (3_145_728 // 12, "one replica's part"),
        (3_145_728 // 32, "one pass of each"),
        (1536, "these are sequences"),
        (3_145_728 * 12, "the replicas are counted already"),
    ],
)
def test_04_a_names_the_slips(answer: int, said: str) -> None:
    assert said in text_of("04-a", answer)


def test_04_b_tells_why_of_each_split() -> None:
    assert check("04-b", "TP 8, PP 2").ok
    assert check("04-b", "tp 8, pp 2").ok
    assert "64 passes, 1.5 % of the step idle" in check("04-b", "TP 8, PP 2").text
    assert "two nodes" in text_of("04-b", "TP 16, PP 1")
    assert "no multiple of 12" in text_of("04-b", "TP 4, PP 3")
    assert "64 passes, 19 % of the step idle" in text_of("04-b", "TP 1, PP 16")
    assert idle(4, 8) == pytest.approx(3 / 11)
    with pytest.raises(ValueError, match="not divisible"):
        data_parallel_size(128, 4, 3)


def test_04_c_takes_the_measured_way_and_the_formula() -> None:
    for answer in (3.96, "3.96", 11 * 0.36, (32 / 4 + 3) * (0.12 + 4 * 0.06), 3.9600001):
        assert check("04-c", answer).ok, answer
    steps = {b: (32 // b + 3) * (0.12 + 0.06 * b) for b in (1, 2, 4, 8)}
    assert min(steps, key=lambda b: steps[b]) == 4


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (4.2, "wait for 3 of 7"),
        (4.56, "wait less"),
        (6.3, "four times as often"),
        (5.4, "do not fit"),
        (2.88, "it waits"),
        (2.4, "the largest micro-batch, and no waiting"),
        (3.84, "of 2 without the waiting"),
        (0.36, "one pass"),
        (4, "this is a micro-batch"),
        ("8", "this is a micro-batch"),
        (11, "these are the turns"),
        (5.0, "too high"),
    ],
)
def test_04_c_names_the_slips(answer: object, said: str) -> None:
    assert said in text_of("04-c", answer)


MINE = {"model": "Llama-3.1-8B", "gpus": 8, "tensor": 1, "pipeline": 1, "micro": 1}
MINE |= {"accumulation": 64, "sequence": 8192}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"accumulation": 32},
        {"micro": 2, "accumulation": "32"},
        {"gpus": 1024, "tensor": 8, "pipeline": 2, "accumulation": 8, "micro": 1},
        {"sequence": "8k", "accumulation": 64},
        {"model": "Llama-3.1-70B", "gpus": 64, "tensor": 8},
    ],
)
def test_04_d_takes_any_design_that_holds(change: dict) -> None:
    verdict = check("04-d", MINE | change)
    assert verdict.ok, verdict.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"accumulation": 1}, "65.5 thousand tokens a step; models of this size had"),
        ({"accumulation": 4096}, "268 million tokens"),
        ({"gpus": 12, "tensor": 8}, "8 GPUs a replica do not divide 12"),
        ({"gpus": 32, "tensor": 16}, "does not stay inside a node"),
        ({"gpus": 24, "tensor": 3}, "TP 3 does not stay inside a node"),
        ({"gpus": 64, "pipeline": 64}, "32 layers make no 64 stages"),
        ({"micro": 64, "accumulation": 1}, "64 at once keep 3.10 TB of activations"),
        ({"gpus": 10, "pipeline": 5}, "32 layers do not come out even over 5"),
        ({"micro": 0}, "micro=0 is not positive"),
        ({"micro": "two"}, "is no number"),
        ({"model": "Llama-9"}, "Llama-9"),
    ],
)
def test_04_d_says_what_does_not_hold(change: dict, said: str) -> None:
    assert said in text_of("04-d", MINE | change)


def test_04_d_takes_the_run_that_the_page_begins_with() -> None:
    run = {"model": "Llama-3.1-405B", "gpus": 16384, "sequence": 8192}
    run |= {"tensor": 8, "pipeline": 16, "micro": 1, "accumulation": 16}
    verdict = check("04-d", run)
    assert verdict.ok
    assert "126 layers do not come out even over 16 stages" in verdict.text


def test_04_d_waits_for_every_entry() -> None:
    assert check("04-d", MINE | {"accumulation": None}).ok is None
    assert "leaves out gpus, tensor" in text_of("04-d", {"model": "gpt2"})
    assert "is no dict" in text_of("04-d", 64)
    assert "1 replica makes" in check("04-d", MINE | {"gpus": 1}).text


@pytest.mark.parametrize(
    ("model", "gpus", "accumulation", "fine"),
    [("gpt2", 8, 64, True), ("gpt2", 8, 8, False), ("Qwen2.5-0.5B", 8, 16, True)],
)
def test_04_d_knows_the_batches_of_small_models(
    model: str, gpus: int, accumulation: int, fine: bool
) -> None:
    mine = MINE | {"model": model, "gpus": gpus, "accumulation": accumulation}
    short = mine | {"sequence": 1024 if model == "gpt2" else 8192}
    assert check("04-d", short).ok is fine


def test_the_batches_that_04_d_names_are_those_of_the_table() -> None:
    known = {row["name"]: row for row in published.rows("batch_sizes")}
    told = {"GPT-3 125M": 0.5, "Pythia 1.4B": 2.1, "Llama 2 7B": 4}
    told |= {"DeepSeek LLM 7B": 9.4, "Llama 2 70B": 4, "DeepSeek LLM 67B": 19}
    told |= {"Llama 3.1 405B": 16}
    for name, millions in told.items():
        size = float(known[name]["batch_tokens_end"])
        assert float(units.digits(size / 1e6, 2)) == millions
    assert batches_of_size(8_030_261_248)[0] == (2e6, "GPT-3 6.7B")


def test_a_batch_is_held_against_models_of_like_size() -> None:
    known = batches_of_size(69e9)
    assert known[0] == (3e6, "Chinchilla 70B")
    assert known[-1] == (18_874_368, "DeepSeek LLM 67B")
    told = check("04-d", MINE | {"model": "Llama-3.1-70B", "gpus": 64, "tensor": 8})
    said = "3.00 million (Chinchilla 70B) to 18.9 million (DeepSeek LLM 67B), the middle"
    assert f"{said} one 4.00 million" in told.text
    assert [name for _, name in batches_of_size(355e6)] == ["GPT-3 350M", "Pythia 410M"]
    assert len(batches_of_size(1.01e12)) == 4  # half to twice as large
    assert len(batches_of_size(1e15)) > 40  # any


def test_the_prediction_names_the_belief() -> None:
    prediction = PREDICTIONS["04-guess"]
    assert prediction.truth() == "twice"
    assert "from 64 to 128 sequences" in prediction.reveal("half")
    assert "smaller copies make more of them" in prediction.reveal("half")
    assert "sequences of its own" in prediction.reveal("the same")
    assert "the accumulation stays" in prediction.reveal("The same")
    assert "and so it is" in prediction.reveal("twice")


@pytest.mark.parametrize("guess", ["eight times", "four times", "A quarter longer"])
def test_a_pass_of_eight_takes_a_quarter_longer_than_one_of_one(guess: str) -> None:
    rows = published.measured_passes().query("hidden_size == 32")
    took = rows.set_index("micro_batch_size")["seconds_min"]
    assert 1.2 < took[8] / took[1] < 1.3
    told = PREDICTIONS["04-time"].reveal(guess)
    assert ("and so it is" in told) == (guess == "A quarter longer")
    assert "0.75 ms, eight took 0.93 ms" in told
