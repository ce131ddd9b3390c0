"""What a step keeps for the backward pass, and the timeline of its memory."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_course.activations.formulas import bytes_kept, largest_micro_batch
from llmtrain_helpers import (
    RECIPES,
    Attention,
    Experts,
    LatentAttention,
    Layer,
    Mlp,
    Moment,
    Transformer,
    count_activations,
    count_flops,
    count_parameters,
    gpt_activation_bytes,
    model_state_bytes,
    published,
    recompute_flops,
    step_timeline,
    value_bytes,
)
from llmtrain_helpers.activations import KERNELS, MARKS
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.model.recurrences import ShortConvolution
from tests.bad_values import assert_refused

GPT2 = Transformer.gpt(12, 768, 12, 50257, 1024)


LLAMA = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)


PAPER = [(48, 6144, 64), (96, 12288, 96), (105, 20480, 128), (128, 25600, 160)]
"""The four models of arXiv 2205.05198, Table 3: layers, hidden size, heads."""


SETTINGS = [(1, False), (8, False), (8, True)]


# --- the paper's forms


@pytest.mark.parametrize(("l", "h", "a"), PAPER)
@pytest.mark.parametrize(("t", "split"), SETTINGS)
def test_the_papers_forms_for_its_four_models(l, h, a, t, split) -> None:
    """Table 2, written out anew; and exact whole numbers."""
    s, b = 2048, 1
    outside = Fraction(10, t if split else 1)
    forms = {
        "none": s * b * h * (outside + Fraction(24, t) + Fraction(5 * a * s, h * t)),
        "selective": s * b * h * (outside + Fraction(24, t)),
        "full": 2 * s * b * h,
    }
    for recompute, each_layer in forms.items():
        size = gpt_activation_bytes(l, h, a, s, b, recompute, t, split)
        assert type(size) is int
        assert size == l * each_layer


@pytest.mark.parametrize(
    ("shape", "percent"), list(zip(PAPER, ["75.8", "70.2", "65.3", "65.3"], strict=True))
)
def test_selective_recomputation_saves_what_the_paper_prints(shape, percent) -> None:
    none, selective = (gpt_activation_bytes(*shape, 2048, 1, r) for r in ("none", "selective"))
    assert f"{100 * (1 - selective / none):.1f}" == percent


def test_gpt3_keeps_114_sbh_a_layer_and_275_gb_in_all() -> None:
    size = gpt_activation_bytes(96, 12288, 96, 2048, 1)
    assert size == 96 * 2048 * 12288 * 114 == 275_414_777_856
    assert gpt_activation_bytes(96, 12288, 96, 2048, 1, "full") == 4_831_838_208


def test_both_techniques_leave_less_than_a_fifth_of_tensor_parallelism_alone() -> None:
    """arXiv 2205.05198 section 6.1: 5x, under 20% for the large models."""
    for shape in PAPER[1:3]:
        both = gpt_activation_bytes(*shape, 2048, 1, "selective", 8, True)
        assert 0.15 < both / gpt_activation_bytes(*shape, 2048, 1, "none", 8) < 0.21


def test_arrays_broadcast_and_agree_with_ints() -> None:
    lengths = np.array([512, 1024, 4096])
    swept = gpt_activation_bytes(96, 12288, 96, lengths, 1)
    single = [gpt_activation_bytes(96, 12288, 96, s, 1) for s in (512, 1024, 4096)]
    assert swept.tolist() == single


SHAPE = {
    "num_layers": 96,
    "hidden_size": 12288,
    "num_heads": 96,
    "sequence_length": 2048,
    "micro_batch_size": 1,
    "tensor_parallel": 8,
}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"num_heads": 100}, "hidden_size=12288 is not divisible by num_heads=100"),
        ({"tensor_parallel": 7}, "num_heads=96 is not divisible by tensor_parallel=7"),
        (
            {"sequence_length": 2047, "sequence_parallel": True},
            "sequence_length=2047 is not divisible by tensor_parallel=8",
        ),
        ({"sequence_parallel": 1}, "sequence_parallel=1 is neither True nor False"),
        ({"recompute": "some"}, "recompute='some' is unknown"),
    ],
)
def test_the_formula_refuses_splits_that_do_not_come_out_even(changes, problem) -> None:
    assert_refused(gpt_activation_bytes, problem, **{**SHAPE, **changes})


# --- the count


@given(
    l=st.integers(1, 200),
    a=st.sampled_from([8, 16, 64]),
    d=st.sampled_from([64, 128]),
    s=st.sampled_from([512, 2048]),
    b=st.integers(1, 64),
    recompute=st.sampled_from(RECOMPUTE),
    setting=st.sampled_from(SETTINGS),
)
def test_the_count_equals_the_formula_on_gpts(l, a, d, s, b, recompute, setting) -> None:
    """But for full with the sequence split, where frameworks split the checkpoints."""
    t, split = setting
    model = Transformer.gpt(l, a * d, a, 50257, s)
    activations = count_activations(
        model, b, recompute, "unfused", True, tensor_parallel=t, sequence_parallel=split
    )
    formula = gpt_activation_bytes(l, a * d, a, s, b, recompute, t, split)
    assert activations.layers == formula / (t if split and recompute == "full" else 1)
    assert type(activations.total) is int


@pytest.mark.parametrize(
    ("attention", "dropout", "values", "scores"),
    [
        ("unfused", True, 34, 5),
        ("unfused", False, 32, 2),
        ("flash", True, 34, 0),
        ("flash", False, 32, 0),
    ],
)
def test_a_gpts_layer_in_all_four_kinds(attention, dropout, values, scores) -> None:
    s, b, h, a = 1024, 4, 768, 12
    activations = count_activations(GPT2, b, "none", attention, dropout)
    assert activations.layers == 12 * (values * s * b * h + scores * a * b * s**2)
    assert activations.embedding == dropout * s * b * h


LLAMAS = [
    name
    for name, kind in published.architectures()[["name", "kind"]].values.tolist()
    if kind == "llama"
]


@pytest.mark.parametrize("name", LLAMAS)
def test_llama_shapes_follow_the_closed_form(name: str) -> None:
    model, b = published.architecture(name, sequence_length=1024), 2
    h, a, k, d = (model.hidden_size, model.num_heads, model.num_kv_heads, model.head_dim)
    experts = model.experts_per_token or 1
    values = 8 * h + 4 * a * d + 4 * k * d + 8 * model.intermediate_size * experts
    values += model.qk_norm * 2 * (a + k) * d
    for attention, scores in (("flash", 0), ("unfused", 2 * a * 1024)):
        activations = count_activations(model, b, attention=attention)
        assert activations.layers == model.num_layers * 1024 * b * (values + scores)
        assert activations.head == 1024 * b * 4 * (h + model.vocab_size)
        assert activations.total == activations.layers + activations.head


def test_what_recomputation_drops() -> None:
    none, selective, full = (count_activations(LLAMA, 1, r, "unfused") for r in RECOMPUTE)
    assert none.layers - selective.layers == none.scores > 0
    assert selective.scores == 0 == none.checkpoints
    assert full.layers == full.checkpoints == 32 * 2 * 8192 * 4096
    assert none.head == selective.head == full.head
    flash = count_activations(LLAMA, 1, "selective", "flash")
    assert flash == count_activations(LLAMA, 1, "none", "flash")


def test_linear_in_s_without_scores_and_quadratic_with() -> None:
    def ratio(attention: str) -> float:
        long, short = (
            count_activations(LLAMA, 1, "none", attention, sequence_length=s).layers
            for s in (8192, 4096)
        )
        return long / short

    assert ratio("flash") == 2
    assert 3 < ratio("unfused") < 4


def test_four_bytes_a_value_double_all_but_masks_and_log_probabilities() -> None:
    two, four = (count_activations(GPT2, 8, value_bytes=v) for v in (2, 4))
    assert four.layers == 2 * two.layers
    logs = 4 * 8 * 1024 * 50257
    assert four.head - logs == 2 * (two.head - logs)


def test_the_count_takes_arrays_of_batches_and_of_shapes() -> None:
    batches = np.array([1, 2, 4])
    assert count_activations(LLAMA, batches).total.tolist() == [
        count_activations(LLAMA, b).total for b in (1, 2, 4)
    ]
    deep = Transformer.llama(batches * 8, 4096, 32, 8, 14336, 128256, 8192)
    assert count_activations(deep, 1).layers.tolist()[2] == (count_activations(LLAMA, 1).layers)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model": "gpt2"}, "model='gpt2' isn't a Transformer"),
        ({"recompute": None}, "recompute=None is unknown"),
        ({"attention": "dense"}, f"attention='dense' is unknown.*{KERNELS[0]}"),
        ({"dropout": 0.1}, "dropout=0.1 is neither True nor False"),
        ({"tensor_parallel": 16}, "num_kv_heads=8 is not divisible by tensor_parallel"),
        ({"tensor_parallel": 3}, "num_heads=32 is not divisible by tensor_parallel=3"),
    ],
)
def test_the_count_refuses(changes, problem) -> None:
    assert_refused(count_activations, problem, **{"model": LLAMA, "micro_batch_size": 1, **changes})


def test_a_sequence_longer_than_the_position_table_is_refused() -> None:
    assert_refused(
        count_activations,
        "is more than 1,024, the positions",
        model=GPT2,
        micro_batch_size=1,
        sequence_length=2048,
    )


# --- what recomputation costs


def test_recompute_flops_are_the_recomputed_part() -> None:
    l, h, s, B = 96, 12288, 2048, 4
    gpt3 = Transformer.gpt(l, h, 96, 51200, s)
    assert recompute_flops(gpt3, B, "none") == 0
    assert recompute_flops(gpt3, B, "selective") == 4 * B * s**2 * l * h
    assert recompute_flops(gpt3, B, "full") == 24 * B * s * l * h**2 + 4 * B * s**2 * l * h


@pytest.mark.parametrize(
    ("shape", "once", "printed"),
    [((96, 12288, 96), "0.90", 0.027), ((105, 20480, 128), "0.55", 0.016)],
)
def test_selective_costs_a_third_of_what_is_printed(shape, once, printed) -> None:
    l, h, a = shape
    model = Transformer.gpt(l, h, a, 51200, 2048)
    share = recompute_flops(model, 1, "selective") / count_flops(model, 1, "none").total
    assert f"{100 * share:.2f}" == once
    assert round(3 * share, 3) == printed


# --- the timeline


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("recompute", RECOMPUTE)
@pytest.mark.parametrize("k", [1, 3])
def test_the_parts_are_what_is_resident_at_every_mark(recipe, recompute, k) -> None:
    b, s, V = 4, 1024, 50257
    line = step_timeline(GPT2, b, recipe, recompute, accumulation_steps=k)
    states = model_state_bytes(count_parameters(GPT2).total, recipe)
    value = 4 if recipe == "fp32" else 2
    kept = count_activations(GPT2, b, recompute, value_bytes=value)
    layer = (kept.total - kept.embedding - kept.head) / 12
    mlp = value * b * s * 4 * 768  # the gradient of its product, which is free by then
    again = count_activations(GPT2, b, value_bytes=value).layers / 12 - layer
    gradients = states.gradients + states.main_gradients
    for moment in line.moments:
        assert moment.total == sum(moment.parts().values())
        assert moment.weights == states.weights + states.main_weights
        done = moment.step > 1 or moment.mark == "update"
        assert moment.optimizer == done * states.optimizer
        assert moment.logits == (moment.mark == "loss") * 2 * 4 * b * s * V
        if moment.mark in ("forward", "loss"):
            assert moment.activations == kept.total
        if moment.mark in ("start", "update"):
            assert moment.activations == 0
        if moment.mark == "first layer":
            assert moment.activations == layer + again
        at_work = moment.mark in ("last layer", "first layer")
        assert moment.working == at_work * mlp
        if moment.mark in ("first layer", "update") or moment.micro_batch > 1:
            assert moment.gradients == gradients
        elif moment.mark in ("start", "forward", "loss"):
            assert moment.gradients == 0
        else:
            assert 0 < moment.gradients < gradients
    marks = [moment.mark for moment in line.moments if moment.step == 1]
    assert marks == [MARKS[0], *k * MARKS[1:5], MARKS[5]]


def test_the_peak_stands_where_the_loss_is_differentiated() -> None:
    """Activations plus two more tensors of logits in fp32."""
    line = step_timeline(GPT2, 8, "bf16", "none")
    peak = line.peak
    assert (peak.step, peak.mark) == (2, "loss")
    assert peak.logits == 8 * 8 * 1024 * 50257
    states = model_state_bytes(count_parameters(GPT2).total, "bf16")
    activations = count_activations(GPT2, 8).total
    without_gradients = states.total - states.gradients
    assert peak.total == without_gradients + activations + peak.logits
    first = max(moment.total for moment in line.moments if moment.step == 1)
    assert peak.total - first == states.optimizer


def test_with_accumulation_the_gradient_buffer_stays() -> None:
    k1, k4 = (step_timeline(GPT2, 8, "bf16", "none", accumulation_steps=k) for k in (1, 4))
    states = model_state_bytes(count_parameters(GPT2).total, "bf16")
    assert k4.peak.total - k1.peak.total == states.gradients
    assert k4.peak.micro_batch == 2


def test_a_large_model_with_a_small_batch_peaks_after_backward() -> None:
    line = step_timeline(replace(LLAMA, sequence_length=128), 1, "bf16", "full")
    assert line.peak.mark == "first layer"


def test_what_is_computed_again_is_there_for_one_layer_at_a_time() -> None:
    def last_layer(recompute: str) -> Moment:
        line = step_timeline(LLAMA, 1, "bf16", recompute, attention="unfused")
        return next(m for m in line.moments if m.mark == "last layer")

    none, selective, full = (
        count_activations(LLAMA, 1, recompute, "unfused").layers for recompute in RECOMPUTE
    )
    layer, scores, mlp = none // 32, (none - selective) // 32, 2 * 2 * 8192 * 14336
    again = full + layer - 2 * 8192 * 4096  # its input is kept
    assert [last_layer(r).activations for r in RECOMPUTE] == [none, selective, again]
    assert last_layer("none").working == last_layer("full").working == mlp
    assert last_layer("selective").working == scores > mlp  # not both at once


def test_a_shorter_sequence_takes_the_models_place() -> None:
    long, short = (
        step_timeline(LLAMA, 1, "bf16", "none", sequence_length=s).peak for s in (None, 4096)
    )
    assert (long.activations, long.logits) == (2 * short.activations, 2 * short.logits)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model": None}, "model=None isn't a Transformer"),
        ({"recipe": "bf17"}, "recipe='bf17' is unknown, did you mean 'bf16'"),
        ({"recompute": "all"}, "recompute='all' is unknown"),
        ({"steps": 10**5}, "10,000, what a timeline shows"),
        ({"micro_batch_size": np.array([1, 2])}, "micro_batch_size=.*is an array"),
        (
            {"model": Transformer.gpt(np.array([1, 2]), 768, 12, 50257, 1024)},
            "parameters of the model=.*is an array",
        ),
    ],
)
def test_the_timeline_refuses(changes, problem) -> None:
    arguments = {"model": GPT2, "micro_batch_size": 1, "recipe": "bf16"}
    assert_refused(step_timeline, problem, **{**arguments, "recompute": "none", **changes})


def test_the_share_beside_the_states_as_a_formula() -> None:
    """s·b·(34 + 5as/h)/(12·16·h), of layers whose parameters are 12h²."""
    for h, a, s, b in [(4096, 32, 2048, 1), (12288, 96, 4096, 3)]:
        share = s * b * (34 + 5 * a * s / h) / (12 * 16 * h)
        counted = gpt_activation_bytes(7, h, a, s, b) / (16 * 7 * 12 * h**2)
        assert counted == pytest.approx(share, rel=1e-12)


# --- corners


@pytest.mark.parametrize("s", [np.int32(1024), np.int16(1024), 1024.0])
def test_a_sequence_length_in_any_whole_number_is_exact(s) -> None:
    line = step_timeline(GPT2, 8, "bf16", "none", sequence_length=s)
    assert line == step_timeline(GPT2, 8, "bf16", "none")
    assert all(type(part) is int for part in line.peak.parts().values())


def test_a_timeline_of_several_sequence_lengths_is_refused() -> None:
    for changes in ({"sequence_length": np.array([512, 256])}, {}):
        model = LLAMA if changes else replace(LLAMA, sequence_length=np.array([8, 16]))
        arguments = {"model": model, "micro_batch_size": 1, "recipe": "bf16"}
        assert_refused(
            step_timeline,
            "sequence_length=.*is an array",
            **{**arguments, "recompute": "none", **changes},
        )


def test_a_value_weighs_four_bytes_in_fp32_alone() -> None:
    assert [value_bytes(recipe) for recipe in RECIPES] == [4] + 6 * [2]
    assert value_bytes(RECIPES["fp32"]) == 4
    for bad in ("fp17", None, 4, np.array(["fp32"])):
        assert_refused(value_bytes, "recipe", recipe=bad)


def test_a_timeline_has_at_most_ten_thousand_micro_batches() -> None:
    shape = {"model": GPT2, "micro_batch_size": 1, "recipe": "bf16", "recompute": "none"}
    long = step_timeline(**shape, steps=100, accumulation_steps=100)
    assert len(long.moments) == 100 * (2 + 4 * 100)
    problem = "steps·accumulation_steps=10100 is more than"
    assert_refused(step_timeline, problem, **shape, steps=101, accumulation_steps=100)


def test_sequences_are_split_only_where_that_is_said() -> None:
    whole = count_activations(LLAMA, 1, tensor_parallel=8)
    assert whole == count_activations(LLAMA, 1, tensor_parallel=8, sequence_parallel=False)
    assert whole.norms == count_activations(LLAMA, 1).norms


def test_every_other_product_is_kept_and_the_rest_computed_again() -> None:
    """Llama's products: q, k, v, o, gate, up, down; kept are q, v, gate and down."""
    h, kv, f, s = 4096, 1024, 14336, 8192
    kept = count_activations(LLAMA, 2, "alternate")
    assert kept.layers == 32 * 2 * (2 * s) * (h + h + (h + kv + f + h))
    assert kept.head == count_activations(LLAMA, 2, "none").head
    shared = count_activations(LLAMA, 2, "alternate", tensor_parallel=8, sequence_parallel=True)
    assert shared.layers == kept.layers / 8
    alternate = count_flops(LLAMA, 2, "alternate")
    assert alternate.recomputed == 32 * 2 * (2 * s) * (h * kv + h * h + h * f)


def test_every_other_product_of_experts_is_that_of_the_shared_one() -> None:
    """All three of the experts' are computed again; what was sent to other GPUs is kept."""
    h, s, b, chosen = 64, 8, 3, 2
    layer = Layer(Attention(4, 4, 16), Experts(Mlp(32), 4, chosen, shared=Mlp(48)))
    mixture = Transformer(hidden_size=h, vocab_size=99, sequence_length=s, layers=[(5, layer)])
    kept = count_activations(mixture, b, "alternate")
    assert kept.layers == 5 * 2 * b * s * (h + h + (h + h) + (48 + h))
    for recompute, times in (("none", 1), ("alternate", 1), ("full", 0)):
        alone, spread = (
            count_activations(mixture, b, recompute, expert_parallel=e) for e in (1, 4)
        )
        assert spread.layers - alone.layers == times * 5 * 2 * b * s * (2 * chosen * h)
    again = count_flops(mixture, b, "alternate").recomputed
    assert again == 5 * 2 * b * s * (2 * h * h + 4 * h + chosen * 3 * h * 32 + h * 48)


V3 = Layer(LatentAttention(128, 1536, 512, 128, 64, 128), Experts(Mlp(2048), 256, 8, Mlp(2048)))
MODELS = {name: published.architecture(name, 1024) for name in published.architectures()["name"]}
MODELS["as DeepSeek-V3"] = Transformer(
    hidden_size=7168, vocab_size=129280, sequence_length=1024, layers=[(58, V3)]
)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("e", [1, 8])
def test_more_recomputation_never_keeps_more(name: str, e: int) -> None:
    for kernel, ways in product(KERNELS, (RECOMPUTE, ["none", "alternate", "full"])):
        kept = [count_activations(MODELS[name], 1, x, kernel, expert_parallel=e) for x in ways]
        sizes = [count.total for count in kept]
        assert sizes == sorted(sizes, reverse=True)


def test_every_other_product_of_latent_attention_is_in_the_order_of_computing() -> None:
    h, s = 64, 8
    layer = Layer(LatentAttention(4, 24, 16, 8, 8, 12), Mlp(96))
    latent = Transformer(hidden_size=h, vocab_size=99, sequence_length=s, layers=[(1, layer)])
    kept = count_activations(latent, 1, "alternate")
    assert kept.layers == 2 * s * (h + 4 * 12 + (24 + (16 + 8) + h) + 96)


def test_every_other_product_of_a_recurrence_is_unknown() -> None:
    layer = Layer(ShortConvolution(3, 64), Mlp(96))
    model = Transformer(hidden_size=64, vocab_size=99, sequence_length=8, layers=[(1, layer)])
    assert_refused(
        count_activations, "recompute=", model=model, micro_batch_size=1, recompute="alternate"
    )


def test_eager_attention_stores_scores_in_32_bits_and_cast_and_keys_for_each_head() -> None:
    """Counted with autograd in tests/ground_truth/test_tuning.py."""
    l, b, s, a, repeated = 32, 2, 8192, 32, 2 * 24 * 128
    flash = count_activations(LLAMA, b).layers
    for dropout, value, each in ((False, 2, 6), (True, 2, 7), (False, 4, 4), (True, 4, 9)):
        eager, flash = (
            count_activations(LLAMA, b, "none", kernel, dropout, value_bytes=value).layers
            for kernel in ("eager", "flash")
        )
        assert eager - flash == l * b * s * (each * a * s + value * repeated)
    selective = count_activations(LLAMA, b, "selective", "eager")
    assert selective.scores == 0


# --- bad values


def test_what_a_layer_keeps_adds_up_to_the_published_form() -> None:
    assert bytes_kept(0) == 34
    assert bytes_kept(16, flash=True) == 34
    assert bytes_kept(16, dropout=False) == 32 + 2 * 16
    assert bytes_kept(16, flash=True, dropout=False) == 32
    assert bytes_kept(16) - bytes_kept(0) == 5 * 16


@pytest.mark.parametrize("recompute", RECOMPUTE)
@pytest.mark.parametrize("attention", KERNELS)
@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("name", ["gpt2", "Llama-3.2-1B", "Mixtral-8x7B"])
def test_the_largest_micro_batch_fits_and_the_next_does_not(
    name: str, passes: int, attention: str, recompute: str
) -> None:
    model, recipe, memory = published.architecture(name, 1024), "bf16_fp32_grads", 1.5e12

    def peak(batch: int) -> float:
        return step_timeline(model, batch, recipe, recompute, 2, passes, attention).peak.total

    most = largest_micro_batch(model, memory, recipe, recompute, passes, attention)
    assert peak(most) <= memory < peak(most + 1)


def test_where_not_even_one_sequence_fits_there_is_no_largest_micro_batch() -> None:
    with pytest.raises(ValueError, match="not even a batch of 1 fits"):
        largest_micro_batch(LLAMA, 80e9, "bf16", "none")
