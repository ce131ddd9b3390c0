"""Bytes that GPUs send, counted over simulated ranks, and the seconds they take."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_course.communication.formulas import BackwardOverlap, backward_overlap, ring_turn
from llmtrain_course.parallelism.formulas import (
    Exchange,
    SharedMlp,
    exchanges,
    neighbours,
    replicas_first,
    ring_at,
)
from llmtrain_helpers import (
    Accelerator,
    Traffic,
    Transformer,
    all_reduce_bytes,
    all_reduce_seconds,
    communication_seconds,
    data_parallel_bytes,
    published,
    step_traffic,
)
from llmtrain_helpers.communication import LATENCY, LINK_SHARE, NETWORK_SHARE, bandwidth_of
from llmtrain_helpers.parallelism import Split
from tests.bad_values import assert_refused


def test_a_ring_sends_nearly_twice_the_buffer() -> None:
    assert all_reduce_bytes(16e9, 1) == 0
    assert all_reduce_bytes(16e9, 2) == 16e9
    assert all_reduce_bytes(16e9, np.array([1024]))[0] == pytest.approx(32e9, rel=0.001)
    assert all_reduce_seconds(16e9, 8, 28e9) == 1


def test_over_whole_nodes_the_ring_runs_at_the_nodes_egress() -> None:
    h100 = published.links().set_index("name").loc["H100 SXM"]
    card, cards = h100["network_bandwidth"], h100["gpus_per_node"]
    nodes = all_reduce_seconds(16e9, 128, cards * card)
    assert nodes == pytest.approx(0.079375)
    assert all_reduce_seconds(16e9, 128, card) == pytest.approx(8 * nodes)
    shared = all_reduce_seconds(16e9 / cards, 128, card)  # tensor parallelism 8
    assert shared == pytest.approx(nodes)


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
        blocks: list[dict[int, np.ndarray]] = [{i: own[i]} for i in range(n)]
        for turn in range(n - 1):
            out = [self.send(i, blocks[i][(i - turn) % n]) for i in range(n)]
            for i, values in enumerate(out):
                blocks[(i + 1) % n][(i - turn) % n] = values
        return [np.concatenate([one[i] for i in range(n)]) for one in blocks]

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
    size = data_parallel_bytes(48, d, stage, k, keep_gradients=keep)
    assert size == pytest.approx(counted)
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
    size = data_parallel_bytes(P, q * r, 3, k, shard_size=q)
    assert size == pytest.approx(inside + across.each)


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
    for _ in range(m * MODEL.num_layers // p):
        for _ in range(6 if recompute == "full" else 4):
            sums.all_reduce(whole)
            pairs.gather(pairs.scatter(whole))  # sequence parallelism: the same bytes
        for _ in ("attention", "mlp"):  # whose input backward gathers once more
            pairs.gather(np.split(whole[0], t))
    split = {"tensor_parallel": t, "pipeline_parallel": p, "recompute": recompute}
    traffic = step_traffic(MODEL, 1, b, m, sequence_parallel=False, **split)
    assert (traffic.tensor, traffic.sequence) == (pytest.approx(sums.each), 0)
    traffic = step_traffic(MODEL, 1, b, m, sequence_parallel=True, **split)
    assert (traffic.tensor, traffic.sequence) == (0, pytest.approx(pairs.each))


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
    traffic = step_traffic(MODEL, 1, 1, m, recompute="none", **split).pipeline
    assert traffic == max(sent.values(), default=0)
    if p > 2:
        assert sent[0] == sent[p - 1] < sent[1]  # the ends send less


@pytest.mark.parametrize("model", [MODEL, GROUPED], ids=["own", "grouped"])
@pytest.mark.parametrize(("c", "t", "m"), [(1, 1, 1), (2, 1, 3), (2, 2, 1)])
@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_a_shared_sequence_sends_what_simulated_ranks_send(model, c, t, m, recompute) -> None:
    b, s, d = 1, model.sequence_length, model.head_dim
    kept = b * (s // c) * d * model.num_kv_heads // t
    asked = b * (s // c) * d * model.num_heads // t
    goes_round, exchanged = Ranks(c), Ranks(c)
    for _ in range(m * model.num_layers):
        recomputes = recompute == "full"  # forward once more
        for _ in range(3 + recomputes):  # K and V forward; K and V, and their gradients, backward
            goes_round.gather(numbers(c, 2 * kept))
        for size in (asked, kept, kept, asked):  # Q, K, V and what comes out
            for _ in range(2 + recomputes):
                exchanged.all_to_all(numbers(c, size))
    split = {"recompute": recompute, "tensor_parallel": t, "context_parallel": c}
    traffic = step_traffic(model, 1, b, m, **split).context
    assert traffic == pytest.approx(goes_round.each)
    traffic = step_traffic(model, 1, b, m, context="all-to-all", **split).context
    assert traffic == pytest.approx(exchanged.each)


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
    traffic = step_traffic(model, 1, 1, m, data_parallel=e, **split)
    assert traffic.expert == pytest.approx(m * model.num_layers * group.each)
    fullest = (1 + e) / 2
    uneven = step_traffic(model, 1, 1, m, data_parallel=e, imbalance=fullest, **split)
    assert uneven.expert == pytest.approx(fullest * traffic.expert)
    with pytest.raises(ValueError, match=r"imbalance=.* is more than expert_parallel"):
        step_traffic(model, 1, 1, m, data_parallel=e, imbalance=e + 0.1, **split)


def test_arrays_of_splits_are_those_of_each() -> None:
    t = np.array([1, 2, 4])
    traffic = step_traffic(MODEL, 48, 1, 2, recompute="none", tensor_parallel=t)
    each = [step_traffic(MODEL, 48, 1, 2, recompute="none", tensor_parallel=int(x)) for x in t]
    assert traffic.sequence.tolist() == [one.sequence for one in each]


def test_what_is_not_said_of_a_split_is_one() -> None:
    plain = Split(8, 1, 1, 4, 1, 2, accumulation_steps=6)
    assert (plain.interleave, plain.expert_parallel) == (1, 1)
    assert plain.bubble == 3 / 6


@pytest.mark.parametrize("stage", [2, 3])
def test_what_is_not_said_of_traffic_is_one_way_in_a_ring_and_keeps_nothing(stage: int) -> None:
    split = {"recompute": "none", "tensor_parallel": 2, "pipeline_parallel": 2}
    split |= {"data_parallel": 2, "zero_stage": stage}
    plain = {"sequence_parallel": True, "interleave": 1, "context_parallel": 1, "context": "ring"}
    plain |= {"expert_parallel": 1, "expert_parameters": 0, "imbalance": 1, "value_bytes": 2}
    plain |= {"weight_bytes": 2, "gradient_bytes": 2, "shard_size": None}
    plain |= {"keep_gradients": False, "keep_weights": False}
    traffic = step_traffic(MODEL, 48, 1, 3, **split)
    assert traffic == step_traffic(MODEL, 48, 1, 3, **split, **plain)
    once = step_traffic(MODEL, 48, recompute="none")
    assert once == step_traffic(MODEL, 48, 1, 1, recompute="none", **plain)


@pytest.mark.parametrize("t", [1, 8])
def test_seconds_of_what_is_not_split_run_over_the_links(t: int) -> None:
    """One GPU for each way that is not named: its group lies inside a node that t fill."""
    taken = communication_seconds(Traffic(*[1e9] * 6), CHIP, tensor_parallel=t)
    assert taken is not None
    for name, seconds in taken.parts().items():
        assert seconds == 1e9 / bandwidth_of(CHIP, t), name


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ({"tensor_parallel": 3}, "num_heads=4 is not divisible"),
        ({"context_parallel": 3}, "sequence_length=8 is not divisible"),
        ({"expert_parallel": 2}, "has no experts"),
        ({"pipeline_parallel": 8}, "pipeline_parallel=8"),
        ({"context": "star"}, "context='star' is unknown"),
        (
            {"tensor_parallel": 2, "context_parallel": 4, "context": "all-to-all"},
            "num_heads=4 is not divisible by tensor_parallel·context_parallel=8",
        ),
        ({"zero_stage": 4}, "zero_stage=4 is unknown"),
        ({"data_parallel": 4, "shard_size": 3}, "data_parallel=4 is not divisible"),
    ],
)
def test_splits_that_cannot_be_are_refused(split: dict, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
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


def test_a_call_waits_for_its_latency() -> None:
    """45 µs, between the 31 and 56 that were fitted to collectives inside nodes."""
    h100 = published.accelerator("H100")
    calls = dict.fromkeys(("data", "pipeline"), 1000)
    taken = communication_seconds(Traffic(0, 0, 0, 0, 0, 0), h100, calls=calls)
    assert taken.data == taken.pipeline == pytest.approx(0.045)
    assert taken.tensor == 0


def test_experts_that_are_spread_are_averaged_over_fewer() -> None:
    """An e-th of 16 replicas hold the same experts: 4 of them, not 16."""
    mixtral = published.architecture("Mixtral-8x7B", 4096)
    sizes: dict = {"recompute": "none", "data_parallel": 16}
    sent = step_traffic(mixtral, 9e9, **sizes, expert_parallel=4, expert_parameters=8e9)
    two_parts = data_parallel_bytes(1e9, 16) + data_parallel_bytes(8e9, 4)
    assert sent.data == pytest.approx(two_parts)
    whole = step_traffic(mixtral, 9e9, **sizes, expert_parameters=8e9)
    assert whole.data == data_parallel_bytes(9e9, 16)
    with pytest.raises(ValueError, match="expert_parameters=2000000000"):
        step_traffic(mixtral, 1e9, **sizes, expert_parallel=4, expert_parameters=2e9)


# --- bad values


CHIP = Accelerator("H100", 80e9, link_bandwidth=450e9, network_bandwidth=50e9)


def ring(gpus: int) -> list[list[list[int]]]:
    """An all-reduce, turn by turn, as GPUs would do it: whose numbers are in each piece."""
    state = [[1] * gpus for _ in range(gpus)]
    states = [[row[:] for row in state]]
    for turn in range(2 * (gpus - 1)):
        adds = turn < gpus - 1
        back = turn if adds else turn - gpus  # which piece is sent on
        sent = [((i - back) % gpus, state[i][(i - back) % gpus]) for i in range(gpus)]
        for i, (piece, parts) in enumerate(sent):
            to = state[(i + 1) % gpus]
            to[piece] = to[piece] + parts if adds else parts
        states.append([row[:] for row in state])
    return states


@pytest.mark.parametrize("n", [1, 2, 3, 8, 17])
def test_a_ring_can_be_asked_for_one_turn(n: int) -> None:
    """What it holds is what `ring` gives, and what moved is the one piece that changed."""
    before = None
    for turn, state in enumerate(ring(n)):
        asked = ring_turn(n, turn)
        assert [[*row] for row in asked.summed] == state
        assert (asked.turns, asked.adds) == (2 * (n - 1), 1 <= turn <= n - 1)
        if before is None:
            assert asked.moved == ()
        else:
            for gpu, piece in enumerate(asked.moved):
                to = (gpu + 1) % n
                assert [i for i in range(n) if before[to][i] != state[to][i]] == [piece]
        before = state
    assert before == [[n] * n] * n  # all sums are everywhere


def test_a_ring_sends_as_much_in_all_its_turns_as_an_all_reduce() -> None:
    for n in (1, 2, 8, 64):
        last = ring_turn(n, 2 * (n - 1))
        assert last.sent_bytes(16e9) == all_reduce_bytes(16e9, n)
    assert [ring_turn(8, turn).sent_bytes(16e9) for turn in (0, 1, 7)] == [0, 2e9, 14e9]
    with pytest.raises(ValueError, match="turn=15 is more than 14, the turns of this ring"):
        ring_turn(8, 15)


def test_exchanges_are_as_long_as_the_communication() -> None:
    sent = Traffic(tensor=1e9, sequence=2e9, context=0, expert=0, pipeline=3e9, data=16e9)
    ways = {"tensor_parallel": 8, "pipeline_parallel": 4, "data_parallel": 2}
    parts = exchanges(sent, CHIP, {"data": 100.0}, **ways)
    taken = communication_seconds(sent, CHIP, **ways)
    assert taken is not None
    assert list(parts) == ["tensor", "pipeline", "data"]
    assert parts["tensor"].seconds == taken.tensor + taken.sequence
    assert parts["tensor"].sent == 3e9
    assert [part.others for part in parts.values()] == [7, 2, 1]
    assert [part.inside for part in parts.values()] == [True, False, False]
    assert parts["data"].seconds == parts["data"].visible == 100  # seen for longer than sent
    with pytest.raises(ValueError, match="accelerator='A' has links that are not known"):
        exchanges(sent, Accelerator("A", 80e9), {})


def test_what_communication_takes_is_refused_by_its_full_name() -> None:
    """Also the parts of a traffic, and arrays of them that do not go together."""
    sent, many = Traffic(0, 50e9, 0, 0, 0, 16e9), Traffic(0, np.ones(3), 0, 0, 0, 0)
    two = np.array([1, 2])
    assert_refused(communication_seconds, r"traffic\['tensor'\]", Traffic("8", 1, 0, 0, 0, 0), H100)
    assert_refused(communication_seconds, r"traffic\['tensor'\]", Traffic(-8, 1, 0, 0, 0, 0), H100)
    words = r"tensor_parallel and traffic\['sequence'\] do not broadcast"
    assert_refused(communication_seconds, words, many, H100, tensor_parallel=two)
    for name in ("calls", "behind"):
        words = rf"data_parallel and {name}\['data'\] do not broadcast"
        given = {name: {"data": np.ones(3)}, "data_parallel": two}
        assert_refused(communication_seconds, words, sent, H100, **given)
        assert_refused(communication_seconds, name, sent, H100, **{name: 0})
    assert_refused(exchanges, "traffic", many, H100, {})
    assert_refused(exchanges, r"visible\['data'\]", sent, H100, {"data": "8"})
    assert_refused(bandwidth_of, "stride", H100, 8, 0)
    assert_refused(bandwidth_of, "accelerator", "H100", 8)
    narrow = Traffic(0, np.array([30_000], "int16"), 0, 0, 0, 0)
    taken = communication_seconds(narrow, H100, tensor_parallel=8)
    assert taken is not None
    assert taken.sequence[0] == 30_000 / bandwidth_of(H100, 8)


def test_chips_of_several_links_take_as_long_together_as_each() -> None:
    def taken(link: object, card: object) -> dict[str, object]:
        chip = Accelerator("A", 80e9, link_bandwidth=link, network_bandwidth=card)
        sent = Traffic(0, 50e9, 0, 0, 0, 16e9)
        return communication_seconds(sent, chip, tensor_parallel=8, data_parallel=16).parts()

    links, cards = [450e9, 300e9], [50e9, 25e9]
    together = taken(np.array(links), np.array(cards))
    each = [taken(*both) for both in zip(links, cards, strict=True)]
    for part in ("sequence", "data"):
        assert together[part].tolist() == [one[part] for one in each]


# --- whom a GPU talks to


@pytest.mark.parametrize(("t", "c", "e", "p", "d"), [
    (8, 1, 1, 1, 8), (2, 2, 2, 4, 4), (1, 1, 4, 2, 8), (4, 1, 1, 1, 1), (1, 1, 1, 1, 1),
])  # fmt: skip
def test_the_first_gpus_neighbours_are_those_that_differ_in_one_way(t, c, e, p, d) -> None:
    split = Split(t * c * p * d, 1, t, p, c, d, 4, expert_parallel=e)
    places = {}  # of every GPU: its place in the tensor and context group, its replica, its stage
    for gpu in range(split.num_gpus):
        rest, in_tensor = divmod(gpu, t)
        rest, in_context = divmod(rest, c)
        stage, replica = divmod(rest, d)
        places[gpu] = in_tensor, in_context, replica, stage
    groups = neighbours(split)
    same_weights = [g for g, (x, _, _, s) in places.items() if x == 0 == s and g]
    assert groups.get("tensor", ()) == tuple(
        g for g, (x, *rest) in places.items() if x and rest == [0, 0, 0]
    )
    assert len(groups.get("context", ())) == c - 1
    assert len(groups.get("expert", ())) == e - 1
    both = {*groups.get("context", ()), *groups.get("expert", ()), *groups.get("data", ())}
    assert both == {*same_weights}
    assert groups.get("pipeline", ()) == ((t * c * d,) if p > 1 else ())


def test_where_replicas_share_nodes_only_the_numbers_change() -> None:
    for t, p, d in ((8, 1, 8), (2, 4, 4), (1, 1, 8), (4, 2, 1)):
        split = Split(t * p * d, 1, t, p, 1, d, 4)
        groups, usual = replicas_first(split), neighbours(split)
        assert {name: len(gpus) for name, gpus in groups.items()} == {
            name: len(gpus) for name, gpus in usual.items()
        }
        assert groups.get("data", ()) == tuple(range(1, d))
        assert groups.get("tensor", ()) == tuple(range(d, t * d, d))
        assert groups.get("pipeline") == usual.get("pipeline")


def test_a_ring_over_nodes_takes_as_long_as_its_cards() -> None:
    h100 = Accelerator("H100", 80e9, link_bandwidth=450e9, network_bandwidth=50e9)
    part = Exchange(sent=4e12, others=7, inside=True, seconds=14.0, visible=14.0)
    assert ring_at(part, h100, 1, 1) == part
    slower = ring_at(part, h100, 1, 8).seconds - part.seconds
    assert slower == pytest.approx(4e12 / (0.92 * 50e9) - 4e12 / (0.7 * 450e9))
    with pytest.raises(ValueError, match="links that are not known"):
        ring_at(part, Accelerator("X", 80e9), 1, 8)


def test_with_interleaving_the_last_stage_is_a_neighbour_too() -> None:
    split = Split(32, 1, 2, 4, 1, 4, 8, interleave=2)
    assert neighbours(split)["pipeline"] == (8, 24)


# --- matrices that GPUs share


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_shared_matrices_give_what_whole_ones_give(gpus: int) -> None:
    mlp = SharedMlp(gpus=gpus)
    x, A, B, error = map(np.array, (mlp.token, mlp.first, mlp.second, mlp.error))
    assert [n for gpu in range(gpus) for n in mlp.hidden(gpu)] == [*(x @ A)]
    assert mlp.output == [*(x @ A @ B)]
    assert [n for gpu in range(gpus) for n in mlp.hidden_error(gpu)] == [*(B @ error)]
    assert mlp.token_error == [*(A @ (B @ error))]
    for gpu in range(gpus):
        k = mlp.columns(gpu)
        assert mlp.partial(gpu) == [*(x @ A[:, k] @ B[k])]
        assert mlp.partial_error(gpu) == [*(A[:, k] @ (B[k] @ error))]
        assert gpus == 1 or mlp.partial(gpu) != mlp.output


# --- sending beside backward


@given(st.floats(0.01, 10), st.floats(0.01, 10), st.integers(1, 40))
def test_messages_leave_once_they_exist_and_one_after_the_other(backward, sending, m) -> None:
    last = BackwardOverlap(backward, sending, m)
    for k, (start, end) in enumerate(last.spans, 1):
        assert start >= backward * k / m - 1e-9
        assert end - start == pytest.approx(sending / m)
    assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(last.spans))
    slower = max(sending - backward * (m - 1) / m, sending / m)
    assert last.visible == pytest.approx(slower, abs=1e-9)  # as a queue has it
    assert last.visible >= sending / m * (1 - 1e-9)  # the last one cannot hide


def test_backward_and_the_ring_are_equally_long_at_x_over_w_tokens() -> None:
    X, W = H100.peak("bf16"), 8 * H100.network_bandwidth
    for P in (1e9, 70e9):
        last = backward_overlap(P, round(X / W), X, 100_000, W)
        assert last.backward == pytest.approx(4 * P / W, rel=1e-3)
        assert last.sending == pytest.approx(last.backward + LATENCY, rel=1e-3)
    many = backward_overlap(8e9, 3072, X, 64, W, 32)
    assert many.sending - all_reduce_seconds(16e9, 64, W) == pytest.approx(32 * LATENCY)
    assert backward_overlap(8e9, 4096, X, 1, W).sending == pytest.approx(LATENCY)
