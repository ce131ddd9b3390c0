"""What the page of chapter 03 states, computed anew."""

import pytest

from llmtrain_course.duration.formulas import measured_days
from llmtrain_course.duration.handles import shares_of_runs
from llmtrain_course.duration.pictures import WAYS, more_gpus
from llmtrain_helpers import published, training_seconds, units
from llmtrain_helpers.duration import UTILIZATIONS
from llmtrain_helpers.flops import count_flops, gpt_flops
from llmtrain_helpers.parameters import count_parameters, gpt_parameters
from research import utilizations
from tests.pages import cell, words

PAGE, EVIDENCE = "03_duration", "evidence/03_duration"
SMALLER = {"num_layers": 24, "hidden_size": 1024, "vocab_size": 50257, "sequence_length": 2048}
"""The shape of a GPT of 400 million parameters."""


def test_llama_2_70b_took_what_the_page_says() -> None:
    hours = published.run("Llama 2 70B")["gpu_hours"]
    assert f"{units.count(hours)} GPU-hours" in cell(PAGE, "gpus")


def test_bloom_as_the_page_tells_it() -> None:
    bloom, text = published.run("BLOOM-176B"), cell(PAGE, "convention")
    assert bloom["recompute"] == "full"
    assert f"{bloom['num_gpus']} A100s ran at {bloom['flops_per_gpu'] / 1e12:.0f} TFLOP/s" in text
    assert f"{bloom['parameters'] / 1e9:.0f} billion parameters" in text


def test_doubling_as_the_paper_measured_it() -> None:
    days = published.megatron_training_days().set_index("name")["days"]
    text = cell(PAGE, "twice")
    first, second, third = (days[f"ZeRO-3 174.6B on {n} GPUs"] for n in (384, 768, 1536))
    assert f"On 384 GPUs, a run would take {first} days" in text
    assert f"only brought that down to {second}," in text
    assert third == second
    assert days["PTD-P 174.6B on 1536 GPUs"] < 0.55 * days["PTD-P 174.6B on 768 GPUs"]
    seen, picture = cell(PAGE, "twice-seen"), more_gpus(1536, [*WAYS]).words
    for scheme in ("ZeRO-3", "PTD-P"):
        for row in measured_days(scheme):
            assert f"{row['days']} days on {row['num_gpus']:,} GPUs" in picture
            assert row["global_batch_size"] == 1536
    peak = published.accelerator("A100").peak("bf16")
    share = units.share(measured_days("ZeRO-3")[-1]["flops_per_gpu"] / peak)
    assert f"On 1,536 GPUs, each one reaches only {share} of its peak" in seen
    assert [1536 // row["num_gpus"] for row in measured_days("ZeRO-3")] == [4, 2, 1]
    assert "four sequences, then two, then one" in seen
    assert {row["model_parallel"] for row in measured_days("PTD-P")} == {96}
    assert "when 96 GPUs share it as a group" in seen


def test_the_8b_took_two_and_a_half_times_the_estimate() -> None:
    row, text = published.run("Llama 3.1 8B"), cell(PAGE, "promise-seen")
    work = (row["tokens"], row["active_parameters"])
    rate = UTILIZATIONS[1] * row["peak_flops"]
    hours = training_seconds(*work, 1, rate, "none") / units.HOUR
    assert f"should have needed {hours / 1e6:.2f} million GPU-hours" in text
    assert f"Meta reports {row['gpu_hours'] / 1e6:.2f} million." in text
    assert row["gpu_hours"] / hours == pytest.approx(2.5, abs=0.05)
    assert "hours cover all training stages" in row["note"]


def test_how_many_would_have_been_late() -> None:
    shares, text = shares_of_runs(), cell(PAGE, "promise-seen")
    late = {x: sum(share < x for share in shares.values()) for x in (0.25, 0.35)}
    assert (len(shares), late) == (14, {0.25: 1, 0.35: 8})
    assert (
        "At 35%, eight of the fourteen are late. At 25% the smallest model is the only late" in text
    )
    assert 0.22 < min(shares.values()) < 0.23
    assert "and at 22% they all make it." in text
    fastest = max(shares, key=lambda name: shares[name])
    assert published.run(fastest)["team"] == "Meta"
    assert f"one of Meta's LLaMAs, at {units.share(shares[fastest])}" in cell(PAGE, "predict")
    assert "none of the 14 published runs was over 48%" in cell(PAGE, "panel-answers")


def test_blooms_calendar_rules_one_count_out() -> None:
    row, text = published.run("BLOOM-176B"), cell(PAGE, "convention-seen")
    work = (row["tokens"], row["active_parameters"], row["num_gpus"])
    right, long = (
        float(training_seconds(*work, X, "full")) / units.DAY for X in (150e12, 0.75 * 150e12)
    )
    assert right < row["days"] < long
    assert f"the run took {row['days']:.0f} days" in text
    assert f"so it can't have spent {long:.0f} days computing" in text
    assert 13 < row["days"] - right < 15.5  # two weeks


def test_the_own_run_is_five_sevenths_of_the_first_pages() -> None:
    assert UTILIZATIONS[0] / UTILIZATIONS[1] == pytest.approx(5 / 7)
    assert "At the 25% from this page, they'd manage 34 billion" in cell(PAGE, "own")
    assert 47 * UTILIZATIONS[0] / UTILIZATIONS[1] == pytest.approx(34, abs=0.5)


def test_runs_with_a_known_rate_took_longer_than_by_formula() -> None:
    rates = {"BLOOM-176B": 150e12, "Llama 3.1 405B": 400e12, "DeepSeek-V3": 432e12}
    rates |= {"TinyLlama 1.1B": 0.56 * 312e12, "PaLM 540B": 0.462 * 275e12}
    runs = published.training_runs().set_index("name")
    hours, longer = published.reported_gpu_hours(), []
    for name, X in rates.items():
        T, P = runs.loc[name, ["tokens", "active_parameters"]]
        again = "full" if name == "BLOOM-176B" else "none"
        longer.append(hours[name] * 3600 / training_seconds(T, P, 1, X, again) - 1)
    span = f"{100 * min(longer):.0f} to {100 * max(longer):.0f}%"
    assert f"So the five runs took {span} longer" in words(EVIDENCE)


def test_palm_has_two_shares_and_the_evidence_says_why() -> None:
    palm = published.run("PaLM 540B")
    assert palm["mfu"] == 0.462
    assert "incl. downtime and repeated steps" in palm["note"]
    shares = utilizations.model_utilizations()["utilization"]
    assert round(float(shares["PaLM 540B"]), 2) == 0.30
    assert "its utilization at its best speed" in cell(EVIDENCE, "interval")
    below = shares[shares < UTILIZATIONS[0]]
    assert list(below.index) == ["Pythia 70M"]


def test_what_the_scores_add_to_an_8b() -> None:
    llama = published.architecture("Llama-3.1-8B", sequence_length=8192)
    by_formula = 6 * count_parameters(llama).active * 8192
    added = float(count_flops(llama, 1, recompute="none").total) / by_formula - 1
    assert added == pytest.approx(1 / 5, abs=0.01)
    assert "they add a fifth to the work of Llama 3.1 8B" in words("03_duration")


def test_what_the_scores_are_of_the_work_of_a_gpt() -> None:
    """At most a tenth with 2,048 tokens, but only from 1.7 billion parameters up."""
    shares = {}
    rows = [*published.rows("megatron_table1"), SMALLER]
    for row in rows:
        shape = {name: row[name] for name in SMALLER}
        exact = gpt_flops(**shape, batch_size=1, recompute="full")
        P = gpt_parameters(**shape)
        shares[float(P) / 1e9] = 1 - 8 * P * row["sequence_length"] / float(exact)
    small, least, *_ = sorted(shares)
    assert (small < 0.5, f"{least:.1f}") == (True, "1.7")
    assert max(share for size, share in shares.items() if size >= least) < 0.105 < shares[small]
    sentence = "at most a tenth of the work for a GPT with 1.7 billion parameters or more and"
    assert f"{sentence} sequences of 2,048 tokens" in words(PAGE)


SLIPS = {"tokens": ("10e09", "1e9"), "rate": ("10e12", "1e12"), "length": ("1048", "1024")}
"""What the copied calculation has wrong, and what is right."""


@pytest.mark.parametrize(
    ("mended", "days"),
    [
        ("", "203"),
        ("tokens", "20.3"),
        ("rate", "2,030"),
        ("tokens rate", "203"),
        ("tokens rate length", "208"),
        ("length", "208"),
    ],
)
def test_two_of_the_slips_cancel(mended: str, days: str, capsys) -> None:
    code = cell(PAGE, "copied-lines")
    for slip in mended.split():
        wrong, right = SLIPS[slip]
        assert code.count(wrong) == 1
        code = code.replace(wrong, right)
    names = {"gpt_flops": gpt_flops, "gpt_parameters": gpt_parameters, "units": units}
    exec(code, names)
    printed = capsys.readouterr().out
    assert printed.endswith(f"\n{days} days\n")
    assert ("T: 3.00 trillion tokens" in printed) == ("tokens" not in mended)
    assert ("X: 1.58 PFLOP/s" in printed) == (mended in ("", "tokens"))
    assert ("X: 154 TFLOP/s" in printed) == (mended == "tokens rate length")


def test_two_lines_of_the_copied_calculation_can_be_seen_to_be_wrong() -> None:
    text = words(PAGE)
    assert "two of the lines are so far off that you can tell before you reach it" in cell(
        PAGE, "copied"
    )
    given_away = "the two lines above it give the mistakes away: it's 300 billion tokens, not 3"
    assert f"{given_away} trillion" in text
    peak = published.accelerator("A100 80GB SXM").peak("bf16")
    assert (
        f"an A100 can't run at 1.58 PFLOP/s when its peak is {units.flops_per_second(peak)}."
        in text
    )
    assert (
        "1,048 tokens instead of 1,024. Once that's fixed too, the 203 days turn into 208." in text
    )


def test_how_many_runs_page_00_says_were_slower_than_35_per_cent() -> None:
    shares = shares_of_runs()
    slower = sum(share < UTILIZATIONS[1] for share in shares.values())
    text = f"because {slower} of {len(shares)} published runs were slower, as you'll see in"
    assert text in cell("00_start_here", "own-run-seen")
