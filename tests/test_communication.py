"""Chapter 07: bytes counted over simulated ranks, seconds, page, panel, exercises."""

from __future__ import annotations

import json
import re
from collections import Counter
from html import unescape
from itertools import pairwise
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import (
    Accelerator,
    Traffic,
    Transformer,
    all_reduce_bytes,
    all_reduce_seconds,
    count_parameters,
    data_parallel_bytes,
    plan_run,
    step_traffic,
    units,
)
from llmtrain_helpers.checks import show
from llmtrain_helpers.communication import (
    LATENCY,
    LINK_SHARE,
    NETWORK_SHARE,
    bandwidth_of,
    communication_seconds,
)
from llmtrain_helpers.drawings.communication import (
    ring,
    ring_turns,
    sending,
    shared_layer,
    step_bar,
    who_sends,
)
from llmtrain_helpers.evidence import published
from llmtrain_helpers.evidence.splits import measured_splits, ranked
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_helpers.exercises.communication import best_of
from llmtrain_helpers.figures import describe
from llmtrain_helpers.figures.communication import by_tensor, collectives, layouts
from llmtrain_helpers.panels import PANELS, communication_panel
from llmtrain_helpers.panels.communication import Setting, planned

from .bad_values import BAD_COUNTS, BAD_QUANTITIES, assert_refused

# --- ranks that note what they send


class Ranks:
    """GPUs that send each other numbers, and note how many bytes each one sent."""

    def __init__(self, how_many: int, value_bytes: int = 2) -> None:
        self.many, self.value_bytes = how_many, value_bytes
        self.sent: Counter[int] = Counter()

    def send(self, rank: int, values: np.ndarray) -> np.ndarray:
        self.sent[rank] += values.size * self.value_bytes
        return values.copy()

    def scatter(self, whole: list[np.ndarray]) -> list[np.ndarray]:
        """Reduce-scatter in a ring: of a sum each rank ends with one piece."""
        n = self.many
        pieces = [np.split(one.copy(), n) for one in whole]
        for turn in range(n - 1):
            out = [self.send(i, pieces[i][(i - turn) % n]) for i in range(n)]
            for i, values in enumerate(out):
                pieces[(i + 1) % n][(i - turn) % n] += values
        return [pieces[i][(i + 1) % n] for i in range(n)]

    def gather(self, own: list[np.ndarray]) -> list[np.ndarray]:
        """All-gather in a ring: every rank ends with the pieces of all, in order."""
        n = self.many
        found: list[dict[int, np.ndarray]] = [{i: own[i]} for i in range(n)]
        for turn in range(n - 1):
            out = [self.send(i, found[i][(i - turn) % n]) for i in range(n)]
            for i, values in enumerate(out):
                found[(i + 1) % n][(i - turn) % n] = values
        return [np.concatenate([one[i] for i in range(n)]) for one in found]

    def all_reduce(self, whole: list[np.ndarray]) -> list[np.ndarray]:
        """Both halves; a rank's piece of the sum is that of its neighbour's place."""
        piece = whole[0].size // self.many  # rank i had piece i + 1
        return [np.roll(x, piece) for x in self.gather(self.scatter(whole))]

    def all_to_all(self, whole: list[np.ndarray]) -> list[np.ndarray]:
        """Rank i's j-th piece goes to rank j."""
        n = self.many
        pieces = [np.split(one, n) for one in whole]
        return [
            np.concatenate([self._passed(i, j, pieces[i][j]) for i in range(n)]) for j in range(n)
        ]

    def _passed(self, rank: int, to: int, values: np.ndarray) -> np.ndarray:
        return values if rank == to else self.send(rank, values)

    @property
    def each(self) -> int:
        """What every rank sent, which has to be the same."""
        [sent] = {self.sent[rank] for rank in range(self.many)}
        return sent


def numbers(n: int, size: int) -> list[np.ndarray]:
    return [np.arange(size, dtype=float) * (i + 1) + i for i in range(n)]


ranks = st.integers(1, 8)


@given(ranks, st.integers(1, 5))
def test_a_ring_sums_and_sends_what_the_formula_says(n: int, times: int) -> None:
    group, whole = Ranks(n), numbers(n, n * times)
    for result in group.all_reduce(whole):
        assert np.array_equal(result, sum(whole))
    assert group.each == all_reduce_bytes(2 * n * times, n)


@given(ranks, st.integers(1, 5))
def test_halves_of_a_ring_and_an_all_to_all_send_less_than_once(n, times) -> None:
    size = 2 * n * times
    for name in ("scatter", "all_to_all"):
        group = Ranks(n)
        result = getattr(group, name)(numbers(n, n * times))
        assert group.each == pytest.approx((n - 1) / n * size)
        if name == "all_to_all":
            assert np.array_equal(result[0][:times], np.arange(times))
    group = Ranks(n)
    own = np.split(np.arange(float(n * times)), n)
    assert np.array_equal(group.gather(own)[-1], np.arange(n * times))
    assert group.each == pytest.approx((n - 1) / n * size)


def sent_by_replicas(d: int, P: int, stage: int, k: int, keep: bool, weights: bool = False) -> int:
    """Bytes that each of d replicas sends in a step of k passes, simulated."""
    group, gradients = Ranks(d), numbers(d, P)
    shards = np.split(np.zeros(P), d)
    for a_pass in range(k):
        last = a_pass == k - 1
        if stage == 3:
            group.gather(shards)  # for forward
            if not weights:
                group.gather(shards)  # for backward
        if stage >= 2 and (last or not keep):
            group.scatter(gradients)
        if stage == 1 and last:
            group.scatter(gradients)
        if stage == 0 and last:
            group.all_reduce(gradients)
    if stage in (1, 2):
        group.gather(shards)  # the new weights
    return group.each


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("d", [1, 2, 8])
def test_what_replicas_send_is_what_simulated_ones_send(stage, keep, k, d) -> None:
    counted = sent_by_replicas(d, 48, stage, k, keep)
    told = data_parallel_bytes(48, d, stage, k, keep_gradients=keep)
    assert told == pytest.approx(counted)
    if stage == 3:
        counted = sent_by_replicas(d, 48, stage, k, keep, weights=True)
        kept = {"keep_gradients": keep, "keep_weights": True}
        assert data_parallel_bytes(48, d, 3, k, **kept) == pytest.approx(counted)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize(("q", "r"), [(4, 1), (4, 2), (2, 8), (1, 4)])
def test_shards_in_copies_send_inside_and_once_across(q: int, r: int, k: int) -> None:
    """HSDP: inside q GPUs as FSDP; across the r copies an all-reduce of a shard."""
    P = 16 * q * r
    inside = sent_by_replicas(q, P, 3, k, False)
    across = Ranks(r)
    across.all_reduce(numbers(r, P // q))
    told = data_parallel_bytes(P, q * r, 3, k, shard_size=q)
    assert told == pytest.approx(inside + across.each)


# --- a small model's step, rank by rank

MODEL = Transformer.gpt(4, 16, 4, 64, 8)
GROUPED = Transformer.llama(4, 16, 4, 2, 32, 64, 8)


def values(model: Transformer, b: int, c: int = 1) -> int:
    return b * model.sequence_length // c * model.hidden_size


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("t", [1, 2, 4])
@pytest.mark.parametrize(("b", "m", "p"), [(1, 1, 1), (2, 3, 1), (1, 4, 2)])
def test_shared_layers_send_what_simulated_ranks_send(recompute, t, b, m, p) -> None:
    sums, pairs = Ranks(t), Ranks(t)
    whole = numbers(t, values(MODEL, b))
    for _ in range(m * MODEL.num_layers // p * (6 if recompute == "full" else 4)):
        sums.all_reduce(whole)
        pairs.gather(pairs.scatter(whole))  # sequence parallelism: the same bytes
    split = {"tensor_parallel": t, "pipeline_parallel": p, "recompute": recompute}
    told = step_traffic(MODEL, 1, b, m, sequence_parallel=False, **split)
    assert (told.tensor, told.sequence) == (pytest.approx(sums.each), 0)
    told = step_traffic(MODEL, 1, b, m, sequence_parallel=True, **split)
    assert (told.tensor, told.sequence) == (0, pytest.approx(pairs.each))


def sent_by_stages(p: int, v: int, m: int, size: int) -> Counter[int]:
    """Bytes that the stages of a pipeline send, each with v pieces of the model."""
    sent: Counter[int] = Counter()
    for _ in range(m):
        for here, there in pairwise(range(p * v)):
            if here % p != there % p:
                sent[here % p] += size  # activations on
                sent[there % p] += size  # their gradients back
    return sent


@pytest.mark.parametrize(("p", "v"), [(1, 1), (2, 1), (2, 2), (4, 1), (3, 1)])
@pytest.mark.parametrize(("m", "t"), [(1, 1), (6, 2)])
def test_borders_of_stages_send_what_simulated_ones_send(p, v, m, t) -> None:
    size = 2 * values(MODEL, 1) // t  # scattered over the tensor-parallel GPUs
    sent = sent_by_stages(p, v, m, size)
    split = {"tensor_parallel": t, "pipeline_parallel": p, "interleave": v}
    told = step_traffic(MODEL, 1, 1, m, recompute="none", **split).pipeline
    assert told == max(sent.values(), default=0)
    if p > 2:
        assert sent[0] == sent[p - 1] < sent[1]  # the ends send less


@pytest.mark.parametrize("model", [MODEL, GROUPED], ids=["own", "grouped"])
@pytest.mark.parametrize(("c", "t", "m"), [(1, 1, 1), (2, 1, 3), (4, 2, 1)])
def test_a_shared_sequence_sends_what_simulated_ranks_send(model, c, t, m) -> None:
    b, s, d = 1, model.sequence_length, model.head_dim
    kept = b * (s // c) * d * model.num_kv_heads // t
    asked = b * (s // c) * d * model.num_heads // t
    goes_round, exchanged = Ranks(c), Ranks(c)
    for _ in range(m * model.num_layers):
        for _ in range(3):  # K and V forward; K and V, and their gradients, backward
            goes_round.gather(numbers(c, 2 * kept))
        for size in (asked, kept, kept, asked):  # Q, K, V and what comes out
            if c > 1 and size % c:
                pytest.skip("heads that do not divide")
            exchanged.all_to_all(numbers(c, size))
            exchanged.all_to_all(numbers(c, size))
    split = {"recompute": "none", "tensor_parallel": t, "context_parallel": c}
    told = step_traffic(model, 1, b, m, **split).context
    assert told == pytest.approx(goes_round.each)
    told = step_traffic(model, 1, b, m, context="all-to-all", **split).context
    assert told == pytest.approx(exchanged.each)


@pytest.mark.parametrize(("e", "t", "m"), [(1, 1, 1), (2, 1, 3), (4, 2, 1)])
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_tokens_on_their_way_to_experts_are_counted(e, t, m, recompute) -> None:
    """Dispatch and combine, forward and backward, of every chosen expert's copy."""
    model = published.architecture("Mixtral-8x7B", 64)
    times = 6 if recompute == "full" else 4
    group = Ranks(e)
    size = values(model, 1, t) * model.experts_per_token
    for _ in range(times):
        group.all_to_all([np.zeros(size)] * e)
    split = {"recompute": recompute, "tensor_parallel": t, "expert_parallel": e}
    told = step_traffic(model, 1, 1, m, data_parallel=e, **split)
    assert told.expert == pytest.approx(m * model.num_layers * group.each)
    uneven = step_traffic(model, 1, 1, m, data_parallel=e, imbalance=1.5, **split)
    assert uneven.expert == pytest.approx(1.5 * told.expert)


def test_arrays_of_splits_are_those_of_each() -> None:
    t = np.array([1, 2, 4])
    told = step_traffic(MODEL, 48, 1, 2, recompute="none", tensor_parallel=t)
    each = [step_traffic(MODEL, 48, 1, 2, recompute="none", tensor_parallel=int(x)) for x in t]
    assert told.sequence.tolist() == [one.sequence for one in each]


@pytest.mark.parametrize("bad", BAD_COUNTS, ids=show)
@pytest.mark.parametrize(
    "name", ["tensor_parallel", "pipeline_parallel", "data_parallel", "interleave"]
)
def test_bad_sizes_of_a_split_are_refused(name: str, bad) -> None:
    given = {"model": MODEL, "parameters": 48, "recompute": "none", name: bad}
    assert_refused(step_traffic, name, **given)


@pytest.mark.parametrize(
    ("split", "said"),
    [
        ({"tensor_parallel": 3}, "num_heads=4 is not divisible"),
        ({"context_parallel": 3}, "sequence_length=8 is not divisible"),
        ({"expert_parallel": 2}, "has no experts"),
        ({"pipeline_parallel": 8}, "pipeline_parallel=8"),
        ({"context": "star"}, "context='star' is unknown"),
        ({"zero_stage": 4}, "zero_stage=4 is unknown"),
        ({"data_parallel": 4, "shard_size": 3}, "data_parallel=4 is not divisible"),
    ],
)
def test_splits_that_cannot_be_are_refused(split: dict, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        step_traffic(MODEL, 48, recompute="none", **split)


# --- seconds

H100 = published.accelerator("H100")


def test_inside_a_node_the_links_carry_and_over_nodes_all_cards_together() -> None:
    assert bandwidth_of(H100, 8) == LINK_SHARE * 450e9
    own_card, egress = NETWORK_SHARE * 50e9, NETWORK_SHARE * 400e9
    assert bandwidth_of(H100, 16, stride=8) == own_card
    assert bandwidth_of(H100, 16, stride=2) == 4 * own_card
    assert bandwidth_of(H100, 16) == min(egress, LINK_SHARE * 450e9)
    assert bandwidth_of(H100, 16, ring=False) == own_card
    assert bandwidth_of(published.accelerator("RTX 3090"), 8) is None


def test_what_the_computing_does_not_cover_is_visible() -> None:
    sent = Traffic(0, 315e9, 0, 0, 0, 46e9)
    split = {"tensor_parallel": 8, "data_parallel": 4}
    taken = communication_seconds(sent, H100, **split, behind={"data": 0.25})
    assert taken.sequence == taken.visible["sequence"] == pytest.approx(1)
    assert taken.data == pytest.approx(1)
    assert taken.visible["data"] == pytest.approx(0.75)
    calls = communication_seconds(sent, H100, **split, calls={"sequence": 100})
    assert calls.sequence - taken.sequence == pytest.approx(100 * LATENCY)
    unknown = Accelerator("mine", 80e9)
    assert communication_seconds(sent, unknown, **split) is None


def test_measured_collectives_have_the_rates_that_are_assumed() -> None:
    """Links and cards at the shares of the constants; a latency as measured."""
    table = published.collectives_measured()
    runs = table[table["collective"] == "all-reduce"].dropna(subset=["message_bytes"])
    large = runs[runs["message_bytes"] >= 2**30]
    a100 = large[(large["accelerator"] == "A100 80GB SXM") & (large["nodes"] == 1)]
    shares = a100["bus_bytes_per_s"] / 300e9
    assert shares.between(0.62, 0.8).all()
    assert abs(float(shares.median()) - LINK_SHARE) < 0.1
    efa = large[large["source"].str.contains("EFA v4")]["bus_bytes_per_s"]
    assert efa.max() / 400e9 == pytest.approx(NETWORK_SHARE, abs=0.05)
    small = runs[(runs["message_bytes"] <= 65536) & (runs["nodes"] == 1)]
    waits = small.groupby("accelerator")["seconds"].median().dropna()
    assert waits.between(0.3 * LATENCY, 1.5 * LATENCY).all()


@pytest.mark.parametrize("bad", BAD_QUANTITIES, ids=show)
def test_bad_seconds_and_bytes_are_refused(bad) -> None:
    link = {"num_bytes": 1e9, "data_parallel": 8, "bandwidth": bad}
    assert_refused(all_reduce_seconds, "bandwidth", **link)


# --- what the page says

LLAMA = published.architecture("Llama-3.1-70B", 8192)
SPLIT = {"tensor_parallel": 8, "zero_stage": 1, "recompute": "full"}
PLAN = plan_run(LLAMA, H100, 64, 1e12, 256, **SPLIT)


def page() -> str:
    path = published.data_folder().parent / "notebooks" / "07_communication.ipynb"
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def test_the_win_is_what_the_traffic_says() -> None:
    P = count_parameters(LLAMA).total
    assert PLAN.sent.sequence == 32 * 80 * 6 * 2 * 7 / 8 * 2 * 8192 * 8192
    assert PLAN.sent.data == pytest.approx(2 * 7 / 8 * 2 * P / 8, rel=0.001)
    assert PLAN.sent.sequence / PLAN.sent.total > 0.99
    assert PLAN.step.total == pytest.approx(47, abs=0.5)
    assert "$2 \\cdot \\tfrac{7}{8} \\cdot 17.64 = 30.9$ GB" in page()
    assert all_reduce_seconds(17.64e9, 8, 50e9) == pytest.approx(0.62, abs=0.005)


def test_a_border_is_cheap_and_shared_layers_are_dear() -> None:
    state = 2 * 8192 * 8192
    layers = 80 * 4 * 2 * 7 / 8 * state
    assert layers / (2 * state) == 280
    work = 6 * 70e9 * 8192 / 8 / (0.8 * 989e12)
    assert layers / 450e9 / work == pytest.approx(1 / 3, abs=0.03)
    assert layers / 50e9 / work == pytest.approx(2.8, abs=0.1)


def test_tokens_that_hide_a_ring_do_not_depend_on_the_model() -> None:
    """4PT/X seconds of backward against 4P/W of sending."""
    X, W = H100.peak("bf16"), 8 * H100.network_bandwidth
    for P in (1e9, 70e9):
        backward = 4 * P * (X / W) / X
        assert backward == pytest.approx(all_reduce_seconds(2 * P, 10**6, W), rel=1e-5)
    tokens = X / W
    assert tokens == pytest.approx(2500, rel=0.02)
    assert 4 * tokens == pytest.approx(10_000, rel=0.02)  # a card of 12.5 GB/s


def test_a_call_waits_for_its_latency() -> None:
    """45 µs, between the 31 and 56 that were fitted to collectives inside nodes."""
    h100 = published.accelerator("H100")
    calls = dict.fromkeys(("data", "pipeline"), 1000)
    taken = communication_seconds(Traffic(0, 0, 0, 0, 0, 0), h100, calls=calls)
    assert taken.data == taken.pipeline == pytest.approx(0.045)
    assert taken.tensor == 0


def test_what_the_page_says_of_measurements() -> None:
    told = page()
    runs = published.collectives_measured()
    runs = runs[runs["collective"] == "all-reduce"].dropna(subset=["message_bytes"])

    def rate(word: str, n: int, size: float) -> float:
        rows = runs[runs["source"].str.contains(word) & (runs["num_gpus"] == n)]
        near = (rows["message_bytes"] / size - 1).abs().argsort().iloc[0]
        return float(rows.iloc[near]["bus_bytes_per_s"]) / 1e9

    assert round(rate("nebius", 16, 8.6e9)) == 468
    assert round(rate("Azure.*H100", 8, 8.6e9)) == 479
    assert rate("nccl-tests issue 283", 1984, 0.5e9) == 350
    assert any("sometimes below 300" in x for x in runs["source"])
    pairs = runs[(runs["num_gpus"] == 16) & (runs["accelerator"] == "H100 SXM")]
    pairs = pairs[~pairs["source"].str.contains("nebius")]
    tops = pairs.groupby("source")["bus_bytes_per_s"].max() / 1e9
    slow, *fast = sorted(tops)
    pairs = f"reach {fast[0]:.0f} to {fast[-1]:.0f} GB/s"
    assert f"{pairs}, and {slow:.0f} with cards half as fast" in told
    b200 = runs[runs["accelerator"].str.startswith("B200 SXM")]
    best = b200.groupby("num_gpus")["bus_bytes_per_s"].max()
    two_nodes = b200[b200["num_gpus"] == 16].groupby("source")["bus_bytes_per_s"].max()
    lost = 1 - two_nodes / best[8]
    assert lost.between(0.17, 0.2).all()
    assert 1 - best[32] / best[8] == pytest.approx(0.55, abs=0.01)
    assert "a fifth over two nodes and half over four" in told
    shares = [
        round(100 * rate(word, n, 2**27) / rate(word, n, 2**34))
        for word, n in (("ND_H100", 8), ("P6-B200, NCCL", 8), ("EFA v4", 32))
    ]
    assert shares == [84, 67, 52]
    assert "84 % with eight H100, and 52 % with 32 B200" in told
    ratio = rate("P6-B200, NCCL", 8, 17e9) / rate("EFA v4", 32, 17e9)
    assert ratio == pytest.approx(2, abs=0.3)
    for word, n in (("nebius", 16), ("Azure.*H100", 8), ("P6-B200, NCCL", 8)):
        assert rate(word, n, 8.4e6) < rate(word, n, 8.6e9) / 2
    products = published.matmul_measured().set_index("name")
    shares = products["flops_per_s"] / products["peak_flops"]
    a100 = shares[shares.index.str.startswith("NVIDIA A100 SXM, fp16")]
    assert round(a100[a100.index.str.contains("1024 × 1024 × 1024")].iloc[0], 2) == 0.38
    assert round(a100[a100.index.str.contains("16384")].iloc[0], 2) == 0.82
    nvidia = shares[shares.index.str.startswith("NVIDIA")]
    assert nvidia.max() == pytest.approx(0.87, abs=0.005)


def test_how_well_the_model_orders_measured_splits() -> None:
    """The bars of the page's sentence: rank, the split it names, its first three."""
    least = {
        "vtrain_a100_single_node": (720, 0.88, 0.1, 0.02),
        "vtrain_a100_multi_node": (47, 0.9, 0.01, 0.02),
        "bloom_sweeps": (57, 0.3, 0.12, 0.12),
    }
    for name, (rows, rank, first, three) in least.items():
        table = measured_splits(name)
        mean = ranked(table).mean(numeric_only=True)
        assert len(table) == rows
        assert mean["correlation"] >= rank
        assert mean["first"] <= first
        assert mean["first three"] <= three
        if rows == 720:
            assert mean["correlation"] == pytest.approx(0.94, abs=0.005)
            assert mean["first"] == pytest.approx(0.05, abs=0.005)
            assert mean["first three"] == pytest.approx(0.013, abs=0.0005)
    assert "824 measured steps" in page()


def test_how_much_slower_software_is_where_many_gpus_take_part() -> None:
    names = ("vtrain_a100_multi_node", "bloom_sweeps")
    tables = [measured_splits(name) for name in names]
    slower = [row["seconds"] / row["modelled"] - 1 for row in tables]
    low, middle, high = np.percentile(np.concatenate(slower), [25, 50, 75])
    assert f"by {100 * middle:.0f} % in the median" in page()
    assert f"by {100 * low:.0f} to {100 * high:.0f} % in the middle half" in page()


def test_a_random_split_is_far_slower() -> None:
    table = measured_splits("vtrain_a100_single_node")
    groups = [rows["seconds"] for _, rows in table.groupby("group") if len(rows) >= 5]
    assert len(groups) == 48
    slower = np.mean([rows.mean() / rows.min() - 1 for rows in groups])
    assert slower == pytest.approx(0.77, abs=0.01)


def a_3_6b() -> list[dict]:
    table = measured_splits("vtrain_a100_multi_node")
    return by_tensor(table, num_gpus=64, pipeline_parallel=1, micro_batch_size=4)


def test_more_tensor_parallelism_was_slower_each_time() -> None:
    seconds = [row["seconds"] for row in a_3_6b()]
    assert [f"{x:.1f}" for x in seconds] == ["3.6", "4.1", "4.8", "5.6", "12.0"]
    assert seconds == sorted(seconds)
    [P] = {count_parameters(r["plan"].inputs["model"]).total for r in a_3_6b()}
    assert round(P / 1e9, 1) == 3.6


# --- figures and drawings


def test_the_figures_show_the_measurements() -> None:
    rows = published.all_reduces({"32 B200": "EFA v4"})
    assert set(rows["32 B200"]["num_gpus"]) == {32}
    assert rows["32 B200"]["message_bytes"].min() == 2**17
    with pytest.raises(ValueError, match="'EFA v9' in its source"):
        published.all_reduces({"32 B200": "EFA v9"})
    told = describe(collectives(rows, {"a layer": 1e8}))
    assert "- 32 B200: " in told
    assert "written: a layer" in told
    table = measured_splits("vtrain_a100_multi_node")
    told = describe(layouts({"mine": table}, a_3_6b()))
    assert "47 points" in told
    assert "- measured: 3.64 at x = 1 to 12.0 at x = 16" in told


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


# --- the panel


@pytest.mark.parametrize(
    ("control", "value", "said"),
    [
        ("tensor_parallel", 4, "A step takes <b>37 s</b> (dashed: 47 s)"),
        ("tensor_parallel", 16, "Key-value heads 8 is not divisible"),
        ("pipeline_parallel", 2, "waiting"),
        ("num_gpus", 128, "DP 16"),
        ("num_gpus", 100, "GPUs 100 make no whole number of replicas: each takes Tensor"),
        ("model", "Llama-3.1-8B", "A step takes"),
        ("zero_stage", 3, "data: 1"),
        ("recompute", "none", "2.41 TB"),
        ("chip", "A100 80GB SXM", "dashed: 47 s"),
        ("micro_batch_size", 2, "dashed: 47 s"),
        ("micro_batch_size", 3, "Batch 256 is not divisible by 8 replicas"),
        ("global_batch_size", 512, "(dashed: 47 s)"),
        ("sequence_length", "4k", "dashed: 47 s"),
        ("context_parallel", 2, "context: "),
    ],
)
def test_the_panel_follows_each_control(control: str, value, said: str) -> None:
    panel = communication_panel()
    assert "A step takes <b>47 s</b>, <b>26 %</b> of it sending" in panel.output.value
    panel.controls[control].value = units.read(value) if value == "4k" else value
    assert said in panel.status.value + panel.output.value


def test_experts_pieces_and_gradients_are_asked_for_where_there_are_any() -> None:
    panel = PANELS["communication"]
    hidden = {"expert_parallel", "interleave", "gradients"}
    assert not hidden & set(panel.shown(panel.default))
    piped = {**panel.default, "pipeline_parallel": 4, "zero_stage": 2}
    assert hidden & set(panel.shown(piped)) == {"interleave", "gradients"}
    mixed = panel.presets["A mixture of experts"]
    assert "expert_parallel" in panel.shown(mixed)
    assert "expert: " in panel.render(**mixed)
    left_over = {**panel.default, "expert_parallel": 4, "interleave": 2}
    assert planned(Setting(**left_over)).split == planned(Setting(**panel.default)).split
    pieces = planned(Setting(**{**piped, "interleave": 2})).step.bubble
    assert pieces < planned(Setting(**piped)).step.bubble


def test_what_one_should_have_seen_is_what_is_seen() -> None:
    panel = PANELS["communication"]

    def seconds(preset: str, **change: object) -> tuple[str, dict[str, float]]:
        plan = planned(Setting(**{**panel.presets[preset], **change}))
        return units.seconds(plan.step.total), plan.step.parts() | {"held": plan.memory.total}

    assert seconds("70B on 64 H100")[0] == "47 s"
    two = {"tensor_parallel": 4, "pipeline_parallel": 2}
    assert seconds("70B on 64 H100", **two)[0] == "39 s"
    told, parts = seconds("70B on 64 H100", tensor_parallel=2)
    assert (told, round(parts["held"] / 1e9)) == ("32 s", 166)
    for n in (1024, 512, 256, 128):
        told, parts = seconds("Little work for each", num_gpus=n)
        assert parts["data"] == pytest.approx(0.0115, abs=0.0006)
    assert parts["data"] < 0.01 * sum(parts[x] for x in parts if x != "held")
    _, parts = seconds("Little work for each", num_gpus=128, sequence_length=8192)
    assert parts["data"] == 0
    told, parts = seconds("A small model, cut fine")
    assert (told, units.seconds(parts["launching"])) == ("12 s", "3.9 s")
    assert units.seconds(parts["tensor"]) == "2.7 s"
    assert seconds("A small model, cut fine", tensor_parallel=1)[0] == "5.5 s"


def test_the_panel_is_quick() -> None:
    panel = PANELS["communication"]
    largest = panel.presets["GPT-3 on 512 A100"]
    start = perf_counter()
    for _ in range(20):
        panel.render(before=panel.default, **largest)
    assert (perf_counter() - start) / 20 < 0.05


# --- exercises


def text_of(id: str, answer: object) -> str:
    verdict = check(id, answer)
    assert verdict.ok is False
    return verdict.text


def test_07_a_takes_every_right_way() -> None:
    for answer in (
        0.251875,
        0.252,
        "0.252",
        all_reduce_seconds(26e9, 32, 200e9),
        all_reduce_bytes(26e9, 32) / (8 * 25e9),
    ):
        assert check("07-a", answer).ok, answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (50.375e9 / 25e9, "8 cards carry eight rings"),
        (50.375e9 / 300e9, "has to leave the nodes"),
        (2 * 0.251875, "2 bytes"),
        (0.5 * 0.251875, "once to go round"),
        (50.375e9 / 400e9, "not H100's 50"),
        (2 * 26e9 / 200e9, "d − 1"),
        (26e9 / 200e9, "goes round twice"),
        (2 * 0.75 * 26e9 / 200e9, "there are 32"),
        (50.375e9, "divide them"),
        (251.9, "milliseconds"),
        (0.3, "too high"),
    ],
)
def test_07_a_names_the_slips(answer: float, said: str) -> None:
    assert said in text_of("07-a", answer)


def test_07_b_says_why_a_small_model_wants_no_tensor_parallelism() -> None:
    assert "8,192 tokens a pass" in check("07-b", "tp 1, zero 3").text
    assert "wait for each other" in text_of("07-b", "TP 2, ZeRO 1")
    assert "too small for eight" in text_of("07-b", "TP 8, ZeRO 1")
    assert "stages wait" in text_of("07-b", "PP 4, ZeRO 1")
    times = [
        float(re.search(r"([\d.]+) s a step", EXERCISES["07-b"].options[x])[1])
        for x in EXERCISES["07-b"].options
    ]
    assert min(times) == times[0]
    assert 512 // 64 * 8192 == 65_536


def test_07_c_says_why_a_large_one_wants_it() -> None:
    assert "8 must share each" in check("07-c", "TP 8, PP 16").text
    assert "too few to fill 16 stages" in text_of("07-c", "TP 1, PP 16")
    assert "8 passes" in text_of("07-c", "TP 2, PP 32")
    assert "nobody has room" in text_of("07-c", "TP 8, PP 1")
    held = [
        float(re.search(r"(?:holds|need) ([\d.]+) GB", EXERCISES["07-c"].options[x])[1])
        for x in ("TP 8, PP 1", "TP 8, PP 16")
    ]
    assert held[0] > 80 > held[1]
    assert "would need 209 GB and has 80.0 GB" in EXERCISES["07-c"].options["TP 8, PP 1"]
    for t, p, told in ((1, 16, "88"), (2, 32, "79"), (8, 16, "48")):
        k = 2048 * t * p // 16384  # one sequence a pass
        waits = 100 * (p - 1) / (k + p - 1)
        said = EXERCISES["07-c"].options[f"TP {t}, PP {p}"]
        assert f"{told} % waiting" in said
        assert waits == pytest.approx(int(told), abs=1)
    assert r"$(\text{PP}-1)/(k+\text{PP}-1)$ of a step (chapter 04)" in page()


MINE = {"model": "Llama-3.1-8B", "gpus": 8, "chip": "H100", "batch": 64}
MINE |= {"sequence": 8192, "recompute": "full", "tensor": 1, "pipeline": 1, "zero": 3}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"zero": 1},
        {"chip": "A100"},
        {"sequence": "8192", "batch": "64"},
        {"gpus": 64, "batch": 512, "recompute": "none"},
        {"model": "Llama-3.1-70B", "gpus": 64, "batch": 256},
        {"recompute": "none", "pipeline": 2},
        {"recompute": "none", "tensor": 2, "zero": 1},
    ],
)
def test_07_d_takes_any_split_that_fits_and_is_fast(change: dict) -> None:
    verdict = check("07-d", MINE | change)
    assert verdict.ok, verdict.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tensor": 8, "zero": 1}, "longer than another split that fits"),
        ({"tensor": 2}, "longer than another"),
        ({"tensor": 2}, "above all by the sums of tensor parallelism"),
        ({"tensor": 8, "recompute": "none", "gpus": 64}, "above all by launching"),
        ({"pipeline": 8, "zero": 1, "batch": 8}, "above all by stages that wait"),
        ({"recompute": "none"}, "leaves no reserve: most of it activations"),
        ({"zero": 0}, "GB and has 80.0 GB: most of it optimizer"),
        ({"gpus": 12, "tensor": 8}, "do not divide 12"),
        ({"batch": 100}, "8 replicas do not share 100"),
        ({"chip": "RTX 4090"}, "links of RTX 4090 are not known"),
        ({"model": "Llama-3.1-405B"}, "no usual split"),
        ({"tensor": "two"}, "is no number"),
        ({"model": "Llama-9"}, "Llama-9"),
        ({"zero": 4}, "zero_stage=4"),
    ],
)
def test_07_d_says_what_does_not_hold(change: dict, said: str) -> None:
    assert said in text_of("07-d", MINE | change)


def test_07_d_waits_for_every_entry() -> None:
    assert check("07-d", MINE | {"zero": None}).ok is None
    assert "leaves out chip" in text_of("07-d", {"model": "gpt2"})
    assert "is no dict" in text_of("07-d", 64)
    best = best_of(MINE)
    assert best.fits
    assert best.split.tensor_parallel == 1


def test_the_predictions_tell_why() -> None:
    assert PREDICTIONS["07-guess"].truth() == pytest.approx((511 / 512) / (15 / 16))
    assert PREDICTIONS["07-passes"].truth() == 48
    assert "1.996 with 512" in PREDICTIONS["07-guess"].reveal(32)
    assert 2 * 15 / 16 == 1.875
    assert round(2 * 511 / 512, 3) == 1.996
    assert "it is 48.0 times" in PREDICTIONS["07-passes"].reveal(1.5)


@pytest.mark.parametrize("bad", [*BAD_COUNTS, range(3)], ids=show)
@pytest.mark.parametrize("of_experts", [0, 8])
def test_bad_parameters_are_refused_beside_those_of_experts(bad, of_experts) -> None:
    given = {"model": MODEL, "parameters": bad, "expert_parameters": of_experts}
    assert_refused(step_traffic, "parameters", recompute="none", **given)


def test_experts_that_are_spread_are_averaged_over_fewer() -> None:
    """An e-th of 16 replicas hold the same experts: 4 of them, not 16."""
    mixtral = published.architecture("Mixtral-8x7B", 4096)
    sizes: dict = {"recompute": "none", "data_parallel": 16}
    sent = step_traffic(mixtral, 9e9, **sizes, expert_parallel=4, expert_parameters=8e9)
    alone = data_parallel_bytes(1e9, 16) + data_parallel_bytes(8e9, 4)
    assert sent.data == pytest.approx(alone)
    whole = step_traffic(mixtral, 9e9, **sizes, expert_parameters=8e9)
    assert whole.data == data_parallel_bytes(9e9, 16)
    with pytest.raises(ValueError, match="expert_parameters=2000000000"):
        step_traffic(mixtral, 1e9, **sizes, expert_parallel=4, expert_parameters=2e9)


def test_a_split_that_cannot_be_is_refused_by_what_is_wrong_with_it() -> None:
    panel = PANELS["communication"]
    three = panel.answer({**panel.default, "tensor_parallel": 3})
    assert three.problem == ("Tensor parallel 3 does not divide the model's 64 attention heads.")
    assert [label for label, _ in three.offers] == ["Tensor parallel: 2", "Tensor parallel: 4"]
    stages = panel.answer({**panel.default, "pipeline_parallel": 3}).problem
    assert stages.endswith("each takes Tensor parallel 8 × Pipeline stages 3 = 24.")


def test_experts_and_those_that_only_share_gradients_are_both_drawn() -> None:
    panel = PANELS["communication"]
    html = panel.answer(panel.presets["A mixture of experts"]).html
    for part in ("expert", "data"):
        assert f"shares {part} with the first" in html


@pytest.mark.parametrize(("stages", "told"), [(2, "to the next"), (16, "of a middle")])
def test_what_stands_beside_the_grid_has_room(stages: int, told: str) -> None:
    model = published.architecture("Llama-3.1-405B", 8192)
    split = {"tensor_parallel": 8, "pipeline_parallel": stages, "zero_stage": 1}
    split |= {"recompute": "full", "uneven_stages": True}
    plan = plan_run(model, H100, 16384, 1e12, 2048, **split)
    beside = re.findall(r">([^<]*; (?:links|network))<", who_sends(plan).body)
    assert f"{told} stage; network" in beside
    assert max(map(len, beside)) <= 34
