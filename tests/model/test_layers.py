"""Layers of every kind: what each states of itself, and the sums over a stack."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import (
    Accelerator,
    Attention,
    Experts,
    LatentAttention,
    Layer,
    Mlp,
    Transformer,
    count_activations,
    count_flops,
    count_parameters,
    plan_run,
    published,
)
from llmtrain_helpers.model.layers import Matrix, Mixer, pairs
from llmtrain_helpers.model.recurrences import Mamba, ShortConvolution
from llmtrain_helpers.parallelism import Split
from llmtrain_helpers.plan.memory import ends, stage_layers, stage_parameters

PLAIN = Attention(8, 2, 16)
LATENT = LatentAttention(8, 24, 16, 8, 8, 16)
DENSE, MIXED = Mlp(96), Experts(Mlp(32), 8, 2, Mlp(48))
A100 = Accelerator("A100", 80e9, 2e12, 400, {"bf16": 312e12})


def stack(*layers: tuple[int, Layer], **ends) -> Transformer:
    sizes = {"hidden_size": 64, "vocab_size": 100, "sequence_length": 32}
    return Transformer(layers=layers, **(sizes | ends))


MIXTURE = stack((2, Layer(LATENT, DENSE)), (6, Layer(PLAIN, MIXED)))


# --- windows


@given(s=st.integers(1, 60), w=st.integers(0, 60), chunked=st.booleans())
def test_pairs_are_those_that_a_token_may_see(s: int, w: int, chunked: bool) -> None:
    mixer = Attention(1, 1, 1, window=w, chunked=chunked)
    seen = 0
    for i in range(s):
        first = 0 if not w else i // w * w if chunked else max(i - w + 1, 0)
        seen += i + 1 - first
    assert pairs(s, "causal", mixer) == seen
    assert pairs(s, "dense", mixer) == s * s


def test_a_window_slides_unless_it_is_said_to_move_on_in_steps() -> None:
    """Of 6 tokens with a window of 4 each sees 1, 2, 3, 4, 4, 4; in steps 1, 2, 3, 4, 1, 2."""
    assert pairs(6, "causal", Attention(1, 1, 1, window=4)) == 18
    assert pairs(6, "causal", Attention(1, 1, 1, window=4, chunked=True)) == 13
    for family, seen in {"mistral": 18, "llama4_text": 13}.items():
        keys = {"sliding_window": 4} if family == "mistral" else {"attention_chunk_size": 4}
        read = Transformer.from_config({"model_type": family, **keys})
        assert pairs(6, "causal", read.layers[0][1].mixer) == seen


def test_a_window_counted_as_full_is_40_percent_over() -> None:
    read = Transformer.from_config({"model_type": "mistral", "sliding_window": 4096})
    full = Transformer.from_config({"model_type": "mistral", "sliding_window": None})
    assert read == full  # the same matrices
    counted = [count_flops(model, 1, "none", "causal", 32768).total for model in (full, read)]
    assert counted[0] / counted[1] == pytest.approx(1.40, abs=0.01)
    dense = [count_flops(model, 1, "none", "dense", 32768) for model in (full, read)]
    assert dense[0] == dense[1]


def test_a_sweep_over_lengths_respects_the_window() -> None:
    model = Transformer.from_config({"model_type": "mistral"})
    lengths = np.array([1024, 4096, 4097, 32768])
    swept = count_flops(model, 1, "none", "causal", lengths).scores
    looped = [count_flops(model, 1, "none", "causal", int(s)).scores for s in lengths]
    assert swept.tolist() == looped


# --- sums over a stack


def test_a_stack_is_the_sum_of_its_layers() -> None:
    counted = count_parameters(MIXTURE)
    layers = sum(n * layer.parameters(64) for n, layer in MIXTURE.layers)
    assert counted.total == layers + 2 * 100 * 64 + 64
    assert counted.total - counted.active == 6 * 6 * 3 * 64 * 32
    flops = count_flops(MIXTURE, 3, "none")
    parts = [count_flops(stack(pair), 3, "none") for pair in MIXTURE.layers]
    assert flops.mlp == sum(part.mlp for part in parts)
    assert flops.scores == sum(part.scores for part in parts)
    kept = count_activations(MIXTURE, 3)
    assert kept.layers == sum(count_activations(stack(pair), 3).layers for pair in MIXTURE.layers)


def test_keywords_and_layers_say_the_same() -> None:
    plain = Transformer.llama(8, 64, 8, 2, 96, 100, 32, head_dim=16)
    assert plain == stack((8, Layer(PLAIN, DENSE)))
    deeper = replace(plain, num_layers=16)
    assert deeper.num_layers == 16
    assert replace(plain, sequence_length=64).layers == plain.layers


@pytest.mark.parametrize("family", ["olmo2", "mistral", "minimax_m2", "llama", "qwen3_moe"])
def test_what_no_keyword_says_stays_when_keywords_change_a_stack(family: str) -> None:
    """Norms of each head, and windows: what a file of so many layers says."""
    read = Transformer.from_config({"model_type": family})
    deeper = Transformer.from_config({"model_type": family, "num_hidden_layers": 48})
    copy = replace(read, num_layers=48)
    assert copy == deeper
    flops = [count_flops(model, 1, "none", "causal", 32768) for model in (copy, deeper)]
    assert flops[0] == flops[1]
    assert replace(deeper, qk_norm=False).layers[0][1].mixer.qk_norm == ""
    assert replace(deeper, qk_norm=True).qk_norm


@pytest.mark.parametrize(
    "layer",
    [
        Layer(PLAIN, MIXED),
        Layer(replace(PLAIN, more=4), DENSE),
        Layer(replace(PLAIN, value_dim=np.array([16, 32])), DENSE),
        Layer(PLAIN, DENSE, beside=PLAIN),
    ],
    ids=["shared expert", "parameters of attention alone", "an array", "two mixers"],
)
def test_a_kind_that_keywords_cannot_make_again_is_refused(layer: Layer) -> None:
    with pytest.raises(ValueError, match=r"layers=.* can't be described by keywords"):
        replace(stack((4, layer)), num_layers=8)


def test_several_kinds_answer_for_most_of_their_layers() -> None:
    assert (MIXTURE.num_layers, MIXTURE.num_experts) == (8, 8)
    assert (MIXTURE.num_kv_heads, MIXTURE.head_dim) == (2, 16)
    with pytest.raises(ValueError, match="layers="):
        replace(MIXTURE, num_layers=4)
    mamba = stack((4, Layer(Mamba(4, 128, 16, 4), None, norms=1)))
    assert (mamba.num_heads, mamba.intermediate_size) == (0, 0)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ("none", "layers='none' aren't pairs"),
        ([], r"layers=\[\] aren't pairs"),
        ([3], "layers=3 isn't a pair"),
        ([(2, "attention")], "layers='attention' isn't a Layer"),
        ([(0, Layer(PLAIN, DENSE))], "num_layers=0 is not positive"),
        ([(np.array([1, 2]), Layer(PLAIN, DENSE))] * 2, "is an array"),
    ],
)
def test_what_is_no_stack_is_refused(layers, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stack(*layers) if layers not in ("none", []) else Transformer(
            layers=layers, hidden_size=64, vocab_size=100, sequence_length=32
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attention(8, 3, 16), "num_heads=8 is not divisible"),
        (lambda: Attention(8, 2, 16, biases="x"), "biases='x' names projections other"),
        (lambda: Attention(8, 2, 16, gate="all"), "gate='all' is unknown"),
        (lambda: LatentAttention(8, 0, 0, 8, 8, 8), "kv_rank=0 is not positive"),
        (lambda: Experts(DENSE, 4, 5), "experts_per_token=5 is more than"),
        (lambda: Experts(DENSE, 4, 0), "experts_per_token=0 is not positive"),
        (lambda: Experts(Mlp(32, norm=True), 4, 2), r"expert=Mlp\(.* has more than matrices"),
        (lambda: Experts(Mlp(32, more=3), 4, 2), r"expert=Mlp\(.* has more than matrices"),
        (lambda: Experts(Mlp(32, more=np.array([0])), 4, 2), "expert=.* has more than matr"),
        (lambda: Layer(None, None), "mixer=None leaves a layer"),
        (lambda: Layer("attention", None), "mixer='attention' isn't a Mixer"),
    ],
)
def test_bad_parts_are_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_shared_mlp_weighs_beside_experts_what_it_weighs_alone() -> None:
    """All that it has: biases, a norm inside, further parameters."""
    shared = Mlp(48, bias=True, norm=True, more=7)
    models = [stack((3, Layer(PLAIN, mlp))) for mlp in (Experts(Mlp(32), 8, 2), shared)]
    both = count_parameters(stack((3, Layer(PLAIN, Experts(Mlp(32), 8, 2, shared)))))
    routed, alone = map(count_parameters, models)
    assert both.total - routed.total == 3 * (3 * 64 * 48 + 2 * 48 + 64 + 48 + 7)
    assert both.active - routed.active == both.total - routed.total
    assert (both.mlp, both.norm) == (routed.mlp + alone.mlp, alone.norm)


class Cross(Mixer):
    """A kind that is not in the package: one matrix."""

    def matrices(self, hidden_size):
        """The one."""
        return (Matrix(hidden_size, 2 * hidden_size),)

    def activations(self, hidden_size, fused):
        """As many values as it has columns."""
        return 0, 2 * hidden_size


READ = [row["name"] for row in published.rows("families") if row["read"] != "refused"]


@pytest.mark.parametrize("family", READ)
def test_each_matrix_has_a_name_of_its_own_in_its_part(family: str) -> None:
    model = Transformer.from_config({"model_type": family})
    for part in {part for layer in model.kinds for part in layer.parts}:
        names = [matrix.name for matrix in part.matrices(model.hidden_size)]
        assert all(names)
        assert len({*names}) == len(names)
        assert part.matrix(names[-1], model.hidden_size) == part.matrices(model.hidden_size)[-1]


EVERY_OTHER = {
    (Attention(8, 2, 16), Mlp(96)): ("query value gate down", "key output up"),
    (Attention(8, 8, 8), Mlp(96, gated=False)): ("query value up", "key output down"),
    (Attention(8, 2, 16, gate="heads"), Mlp(96)): ("query value gate up", "key output gate down"),
    (PLAIN, MIXED): (
        "query value shared_gate shared_down",
        "key output router expert_gate expert_up expert_down shared_up",
    ),
    (LATENT, MIXED): (
        "query_down key_value_down output shared_up",
        "query_up key_value_up router expert_gate expert_up expert_down shared_gate shared_down",
    ),
    (replace(LATENT, q_rank=0), DENSE): (
        "query key_value_up gate down",
        "key_value_down output up",
    ),
}


@pytest.mark.parametrize(("mixer", "mlp"), EVERY_OTHER)
def test_every_other_product_is_computed_again_and_the_others_are_kept(mixer, mlp) -> None:
    """A matrix more in the middle moves all behind it: then these words must change too.

    A router's and experts' products don't count, as in torchtitan.
    """
    named = (" ".join(m.name for m in some) for some in Layer(mixer, mlp).every_other(64))
    assert tuple(named) == EVERY_OTHER[mixer, mlp]


def test_a_new_kind_is_one_class() -> None:
    model = stack((3, Layer(Cross(), DENSE)))
    assert count_parameters(model).attention == 3 * 64 * 128
    assert count_flops(model, 1, "none").projections == 6 * 32 * 3 * 64 * 128
    kept = count_activations(model, 1)
    assert kept.attention == 3 * 2 * 32 * (64 + 128)


# --- what a split has


def test_stages_hold_the_layers_that_stand_there() -> None:
    split = Split(8, 1, 1, 4, 1, 2, 4)
    assert layers_at_ends(split) == [[2, 0], [0, 2]]
    assert layers_at_ends(Split(8, 1, 1, 2, 1, 4, 4, interleave=2)) == [[2, 2], [0, 4]]


def layers_at_ends(split: Split) -> list[list[int]]:
    """How many layers of each kind the first stage and the last one have."""
    return [[n for n, _ in stage_layers(MIXTURE, stage)] for stage in ends(split)]


def test_one_stage_holds_all_parameters() -> None:
    alone = Split(1, 1, 1, 1, 1, 1, 1)
    whole = stage_parameters(MIXTURE, ends(alone)[0])
    assert whole == count_parameters(MIXTURE).total


def test_a_mixture_of_kinds_can_be_planned() -> None:
    run = {"tokens": 10**9, "global_batch_size": 64, "recompute": "none"}
    plan = plan_run(MIXTURE, A100, 8, **run)
    piped = plan_run(MIXTURE, A100, 8, pipeline_parallel=4, **run)
    assert piped.memory.weights < plan.memory.weights


def test_latent_attention_keeps_what_its_norms_and_products_read() -> None:
    """Value by value, as `LATENT` has them; tests/ground_truth counts them with PyTorch."""
    squeezed = {"queries": 24, "normed": 24, "keys and values": 16, "normed too": 16, "rotary": 8}
    heads = {"queries": 8 * (8 + 8), "keys": 8 * (8 + 8), "values": 8 * 16, "result": 8 * 16}
    kept = sum(squeezed.values()), sum(heads.values())
    assert LATENT.activations(64, True) == LATENT.activations(64, False) == kept
    gates = {"heads": 8 + 8 * 16, "values": 2 * 8 * 16}  # scores of the gate, and what passes it
    for gate, more in gates.items():
        gated = replace(LATENT, gate=gate).activations(64, True)
        assert gated == (kept[0], kept[1] + more)


def test_what_is_not_counted_is_refused_and_not_guessed() -> None:
    model = stack((2, Layer(ShortConvolution(3, 64), DENSE)))
    assert count_flops(model, 1, "none").scores == 0
    with pytest.raises(ValueError, match="layers='ShortConvolution' stores"):
        count_activations(model, 1)
