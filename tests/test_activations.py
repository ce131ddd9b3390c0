"""Chapter 06: what a step holds in memory."""

import re
from dataclasses import replace
from fractions import Fraction
from html import unescape
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import nbformat
import numpy as np
import pytest
from hypothesis import given, strategies as st
from matplotlib.colors import to_hex

from llmtrain_helpers import (
    RECIPES,
    Transformer,
    count_activations,
    count_flops,
    count_parameters,
    gpt_activation_bytes,
    model_state_bytes,
    plan_run,
    recompute_flops,
    step_timeline,
    units,
    value_bytes,
)
from llmtrain_helpers.activations import KERNELS, MARKS
from llmtrain_helpers.drawings.activations import (
    KEPT,
    LEGEND,
    MOMENTS,
    kept_by_layer,
    parts_at_peak,
    recomputation,
    segments,
    step_memory,
    there,
)
from llmtrain_helpers.drawings.common import COLORS
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import PREDICTIONS, check
from llmtrain_helpers.exercises.activations import own_peak
from llmtrain_helpers.figures import describe
from llmtrain_helpers.figures.activations import memory_bars, timeline
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.model.layers import Attention
from llmtrain_helpers.panels import PANELS, activations_panel
from llmtrain_helpers.panels.activations import Setting, largest

from .bad_values import BAD_COUNTS, assert_refused
from .panel_code import code_of, value_of

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
        held = gpt_activation_bytes(l, h, a, s, b, recompute, t, split)
        assert type(held) is int
        assert held == l * each_layer


@pytest.mark.parametrize(
    ("shape", "percent"), list(zip(PAPER, ["75.8", "70.2", "65.3", "65.3"], strict=True))
)
def test_selective_recomputation_saves_what_the_paper_prints(shape, percent) -> None:
    none, selective = (gpt_activation_bytes(*shape, 2048, 1, r) for r in ("none", "selective"))
    assert f"{100 * (1 - selective / none):.1f}" == percent


def test_gpt3_keeps_114_sbh_a_layer_and_275_gb_in_all() -> None:
    held = gpt_activation_bytes(96, 12288, 96, 2048, 1)
    assert held == 96 * 2048 * 12288 * 114 == 275_414_777_856
    assert gpt_activation_bytes(96, 12288, 96, 2048, 1, "full") == 4_831_838_208


def test_both_techniques_leave_less_than_a_fifth_of_tensor_parallelism_alone() -> None:
    """arXiv 2205.05198 section 6.1: 5x, under 20 % for the large models."""
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


@pytest.mark.parametrize("name", SHAPE)
@pytest.mark.parametrize("bad", BAD_COUNTS, ids=repr)
def test_the_formula_refuses_bad_counts(name: str, bad: object) -> None:
    assert_refused(gpt_activation_bytes, name, **{**SHAPE, name: bad})


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
    held = count_activations(
        model, b, recompute, "unfused", True, tensor_parallel=t, sequence_parallel=split
    )
    formula = gpt_activation_bytes(l, a * d, a, s, b, recompute, t, split)
    assert held.layers == formula / (t if split and recompute == "full" else 1)
    assert type(held.total) is int


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
    held = count_activations(GPT2, b, "none", attention, dropout)
    assert held.layers == 12 * (values * s * b * h + scores * a * b * s**2)
    assert held.embedding == dropout * s * b * h


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
        held = count_activations(model, b, attention=attention)
        assert held.layers == model.num_layers * 1024 * b * (values + scores)
        assert held.head == 1024 * b * 4 * (h + model.vocab_size)
        assert held.total == held.layers + held.head


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


@pytest.mark.parametrize("bad", BAD_COUNTS, ids=repr)
@pytest.mark.parametrize(
    "name", ["micro_batch_size", "tensor_parallel", "value_bytes", "sequence_length"]
)
def test_the_count_refuses_bad_counts(name: str, bad: object) -> None:
    if name == "sequence_length" and bad is None:
        pytest.skip("None leaves the model's sequence length")
    arguments = {"model": LLAMA, "micro_batch_size": 1, name: bad}
    assert_refused(count_activations, name, **arguments)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model": "gpt2"}, "model='gpt2' is no Transformer"),
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
        "num_positions=1024",
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
    held = count_activations(GPT2, b, recompute, value_bytes=value).total
    gradients = states.gradients + states.main_gradients
    for moment in line.moments:
        assert moment.total == sum(moment.parts().values())
        assert moment.weights == states.weights + states.main_weights
        done = moment.step > 1 or moment.mark == "update"
        assert moment.optimizer == done * states.optimizer
        assert moment.logits == (moment.mark == "loss") * 2 * 4 * b * s * V
        if moment.mark in ("forward", "loss"):
            assert moment.activations == held
        if moment.mark in ("start", "backward", "update"):
            assert moment.activations == 0
        if moment.mark in ("backward", "update") or moment.micro_batch > 1:
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
    held = count_activations(GPT2, 8).total
    without_gradients = states.total - states.gradients
    assert peak.total == without_gradients + held + peak.logits
    first = max(moment.total for moment in line.moments if moment.step == 1)
    assert peak.total - first == states.optimizer


def test_with_accumulation_the_gradient_buffer_stays() -> None:
    k1, k4 = (step_timeline(GPT2, 8, "bf16", "none", accumulation_steps=k) for k in (1, 4))
    states = model_state_bytes(count_parameters(GPT2).total, "bf16")
    assert k4.peak.total - k1.peak.total == states.gradients
    assert k4.peak.micro_batch == 2


def test_a_large_model_with_a_small_batch_peaks_after_backward() -> None:
    line = step_timeline(replace(LLAMA, sequence_length=128), 1, "bf16", "full")
    assert line.peak.mark in ("backward", "update")


def test_what_is_computed_again_is_there_for_one_layer_at_a_time() -> None:
    def at_layers(recompute: str) -> int:
        line = step_timeline(LLAMA, 1, "bf16", recompute, attention="unfused")
        return next(m.activations for m in line.moments if m.mark == "layers")

    layer = count_activations(LLAMA, 1, "none", "unfused").layers // 32
    kept = count_activations(LLAMA, 1, "full").layers
    assert at_layers("none") == 32 * layer
    assert at_layers("full") == kept + layer - 2 * 8192 * 4096  # its input is kept
    selective = count_activations(LLAMA, 1, "selective", "unfused").layers
    assert at_layers("selective") == selective  # the scores come later, inside


def test_a_shorter_sequence_takes_the_models_place() -> None:
    long, short = (
        step_timeline(LLAMA, 1, "bf16", "none", sequence_length=s).peak for s in (None, 4096)
    )
    assert (long.activations, long.logits) == (2 * short.activations, 2 * short.logits)


@pytest.mark.parametrize("bad", BAD_COUNTS, ids=repr)
@pytest.mark.parametrize("name", ["micro_batch_size", "steps", "accumulation_steps"])
def test_the_timeline_refuses_bad_counts(name: str, bad: object) -> None:
    arguments = {"model": GPT2, "micro_batch_size": 1, "recipe": "bf16"}
    assert_refused(step_timeline, name, **{**arguments, "recompute": "none", name: bad})


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model": None}, "model=None is no Transformer"),
        ({"recipe": "bf17"}, "recipe='bf17' is unknown, did you mean 'bf16'"),
        ({"recompute": "all"}, "recompute='all' is unknown"),
        ({"steps": 10**5}, "what a timeline shows=10000"),
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


# --- figures, panel, exercises


def test_the_figures_tell_what_is_kept() -> None:
    bars = {"8B": {"2048 none": {"weights": 16e9, "activations": 4e9}}}
    assert "activations: 2048 none 4" in describe(memory_bars(bars))
    line = step_timeline(GPT2, 8, "bf16", "none")
    assert f"2 loss {line.peak.logits / 1e9:.2f}" in describe(timeline(line))


PAGE = Path(__file__).parents[1] / "notebooks" / "06_activations.ipynb"


def source(name: str) -> str:
    """A cell of the learner's page."""
    [cell] = [c for c in nbformat.read(PAGE, as_version=4).cells if c.id == name]
    return str(cell.source)


@pytest.mark.parametrize("layers", [1, 4, 6])
def test_recomputation_leaves_inputs_and_brings_back_one_layer(layers: int) -> None:
    moments = range(1, 2 * layers + 1)
    kept = [there(layers, time, again=False) for time in moments]
    assert [len(kinds) for kinds in kept] == [*range(1, layers + 1), *range(layers, 0, -1)]
    left = [there(layers, time, again=True) for time in moments]
    assert [kinds.count("again") for kinds in left] == [0] * layers + [1] * layers
    drawn = recomputation(layers)
    shown = [re.findall(rf"<title>{kind}<", drawn.body) for kind in ("kept", "again")]
    assert len(shown[0]) == layers * (layers + 1) + 1  # and one in the key
    assert len(shown[1]) == layers + 1
    assert f"grows to {layers} inputs" in drawn.words


def test_each_panel_still_says_something_else() -> None:
    still = activations_panel().still()
    for said in ("42.1 GB", "111 GB", "70.1 GB"):
        assert said in still
    settings = re.findall(r"<p>(Model .*?)</p>", still)
    assert settings[1] == (
        "Model Llama-3.2-1B · Sequence 8,192 tokens · Micro-batch 1 at a time · "
        "Passes a step 1 in a row · Recomputed none · "
        "Accelerator A100 80GB SXM · Attention unfused · "
        "Recipe bf16_fp32_grads"
    )


@pytest.mark.parametrize(
    ("control", "value", "said"),
    [
        ("model", "gpt2", "sequences have 1,024 tokens here and not 8,192"),
        ("sequence_length", "4,096", "29.7 GB"),
        ("sequence_length", 0, "Sequence: 0 lies outside"),
        ("micro_batch_size", 3, "does not fit"),
        ("micro_batch_size", "2", r"66.8 GB</b> at the peak \(dashed: 42.1 GB\)"),
        ("accumulation_steps", 2, "47.0 GB"),
        ("accumulation_steps", 16, "pass 16"),
        ("recompute", "full", "<b>4</b>"),
        ("recompute", "selective", "Nothing to drop"),
        ("attention", "unfused", "111 GB"),
        ("recipe", "fp32", "51.7 GB"),
        ("chip", "RTX 3090", "not fit</b> into the 24.0 GB of RTX 3090"),
    ],
)
def test_the_panel_follows_each_control(control: str, value, said: str) -> None:
    panel = activations_panel()
    before = panel.output.value + panel.status.value
    panel.controls[control].value = value
    shown = panel.status.value + panel.output.value
    assert shown != before
    assert re.search(said, shown)


@pytest.mark.parametrize("model", PANELS["activations"].controls["model"].options)
def test_every_model_can_be_chosen_and_nothing_is_shortened_in_silence(model) -> None:
    panel = PANELS["activations"]
    values = {**panel.default, "model": model}
    answer = panel.answer(values)
    rows = published.architecture(model).num_positions
    assert answer.html
    assert Setting(**values).length == (min(8192, rows) if rows else 8192)
    assert ("Shortened" in answer.html) == (0 < rows < 8192)
    assert f"architecture(&#x27;{model}&#x27;, {Setting(**values).length})" in answer.html


@pytest.mark.parametrize("name", PANELS["activations"].presets)
@pytest.mark.parametrize("passes", [1, 2, 16, 100])
def test_the_panels_code_gives_what_it_shows_for_as_many_passes(name, passes) -> None:
    """The call has the passes that the control says; the picture those it can show."""
    panel = activations_panel()
    panel.set(**{**panel.presets[name], "accumulation_steps": passes})
    assert f"accumulation_steps={passes}," in code_of(panel.output.value)
    told = units.gigabytes(value_of(panel.output.value).total)
    assert f"<b>{told}</b> at the peak" in panel.output.value
    shown = {1: "update", 2: "pass 2", 16: "pass 16", 100: "pass 100"}[passes]
    assert f">{shown}</text>" in panel.output.value


@pytest.mark.parametrize("recompute", RECOMPUTE)
@pytest.mark.parametrize("attention", KERNELS)
@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("model", ["gpt2", "Llama-3.2-1B", "Mixtral-8x7B"])
def test_the_largest_micro_batch_fits_and_the_next_does_not(
    model, passes, attention, recompute
) -> None:
    values = {**PANELS["activations"].default, "model": model, "recompute": recompute}
    values |= {"attention": attention, "accumulation_steps": passes}
    shape, memory = published.architecture(model, Setting(**values).length), 1.5e12

    def peak(batch: int) -> float:
        run = (batch, values["recipe"], recompute, 2, passes, attention)
        return step_timeline(shape, *run).peak.total

    most = largest(Setting(**values), memory)
    assert peak(most) <= memory < peak(most + 1)


def test_the_panel_is_quick() -> None:
    panel = PANELS["activations"]
    slow = panel.presets["GPT-2 on a small card"]
    start = perf_counter()
    for number in range(20):
        panel.render(before=panel.default, **{**slow, "sequence_length": 900 + number})
    assert (perf_counter() - start) / 20 < 0.05


# --- drawings


def bands(body: str) -> dict[str, list[list[tuple[float, float]]]]:
    """The corners of each polygon, by its word."""
    found: dict[str, list[list[tuple[float, float]]]] = {}
    pattern = r'<polygon points="([^"]+)" fill="(#\w+)"[^>]*><title>([\w ]+)</title>'
    for points, color, word in re.findall(pattern, body):
        part = {"loss gradients": "logits"}.get(word, word)
        assert color == COLORS[part]
        corners = [tuple(map(float, point.split(","))) for point in points.split()]
        found.setdefault(word, []).append(corners)
    return found


def small(micro: int = 1, passes: int = 1, recompute: str = "none"):
    model = published.architecture("Llama-3.2-1B", 8192)
    return step_timeline(model, micro, "bf16_fp32_grads", recompute, 2, passes)


def gigabytes_a_pixel(body: str) -> float:
    """From the ticks of the axis."""
    ticks = re.findall(r'y="([\d.]+)"[^>]*text-anchor="end"[^>]*>([\d.]+) GB<', body)
    (low, less), (high, more) = ticks[0], ticks[-1]
    return (float(more) - float(less)) / (float(low) - float(high))


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("memory", [24e9, 80e9, 180e9])
def test_bands_are_to_one_scale_and_as_high_as_the_peak(passes, memory) -> None:
    line = small(2, passes)
    body = step_memory(line, memory).body
    found = bands(body)
    assert [*found] == [
        "weights",
        "main weights",
        "optimizer",
        "gradients",
        "activations",
        "loss gradients",
    ]
    scale = gigabytes_a_pixel(body)
    tops = [min(y for _, y in corners) for corners in found["loss gradients"]]
    base = max(y for _, y in found["weights"][0])
    assert (base - min(tops)) * scale == pytest.approx(line.peak.total / 1e9, rel=0.01)
    assert (max(tops) - min(tops)) * scale == pytest.approx(line.peak.logits / 2e9, rel=0.02)
    thick = re.search(r'y1="([\d.]+)"[^>]*stroke-width="3"', body)
    assert (base - float(thick[1])) * scale == pytest.approx(memory / 1e9, rel=0.01)


def test_bands_stand_on_each_other_and_fill_the_steps() -> None:
    found = bands(step_memory(small(1, 2), 80e9).body)
    stack = [corners for polygons in found.values() for corners in polygons]
    for below, above in pairwise(stack):
        half = len(above) // 2
        assert above[half:][::-1] == below[:half]
        assert [x for x, _ in above[:half]] == sorted(x for x, _ in above[:half])


def test_the_two_tensors_are_named_with_their_size() -> None:
    shown = step_memory(small(), 80e9)
    assert "two more tensors in fp32, 4.20 GB each" in shown.body
    for named in ("gradient of the log-probabilities", "gradient of the logits"):
        assert named in shown.body
        assert named in shown.words
    assert units.gigabytes(4 * 8192 * 128256) == "4.20 GB"


def test_what_the_page_says_of_experts_and_latent_attention_is_so() -> None:
    page, model = source("kinds"), published.config_model("DeepSeek-V3")
    [(_, dense), (_, sparse)] = model.layers
    h = model.hidden_size
    assert dense.mlp.kept(h, False)[1] == sparse.mlp.kept(h, False)[1]
    wide = sparse.mlp.experts_per_token * sparse.mlp.expert.intermediate_size
    assert wide + sparse.mlp.shared.intermediate_size == dense.mlp.intermediate_size
    met, held = sparse.mlp.experts_per_token + 1, sparse.mlp.num_experts + 1
    assert f"meets {met} of a layer's {held} experts" in page
    mixer = sparse.mixer
    assert f"to {mixer.kv_rank + mixer.rotary_dim} numbers" in page
    plain = Attention(128, 128, 128).kept(h, False)
    assert f"{sum(mixer.kept(h, False)) / sum(plain):.1f} times as much" in page


@pytest.mark.parametrize(
    ("size", "recompute", "passes", "mark"),
    [(1, "none", 1, "loss"), (1, "none", 2, "loss"), (1, "full", 1, "update")],
)
def test_the_callout_stands_where_the_peak_is(size, recompute, passes, mark) -> None:
    model = published.architecture("Llama-3.1-8B", 2048)
    line = step_timeline(model, size, "pure_bf16", recompute, 2, passes)
    if mark == "loss":
        line = small(size, passes, recompute)
    assert line.peak.mark == mark
    shown = step_memory(line, 80e9).body
    assert ("two more tensors" in shown) == (mark == "loss")
    assert ("The peak is at the update" in shown) == (mark == "update")
    found = re.search(r'<line x1="([\d.]+)" y1="60" x2="[\d.]+" y2="([\d.]+)"[^>]*"2 4"', shown)
    tops = [min(y for _, y in c) for polygons in bands(shown).values() for c in polygons]
    assert float(found[2]) == pytest.approx(min(tops) - 3, abs=0.2)
    first = 66 + 272 * (line.peak.step - 1)
    assert first < float(found[1]) < first + 272


def test_what_is_over_the_line_is_hatched_and_nothing_else() -> None:
    def slanted(memory: float) -> list[list[float]]:
        body = step_memory(small(2), memory).body
        path = re.search(r'<path d="([^"]+)"', body)
        pairs = re.findall(r"[ML]([\d.]+),([\d.]+)", path[1]) if path else []
        return [[float(y) for _, y in pairs], body]

    assert slanted(80e9)[0] == []
    heights, body = slanted(40e9)
    floor = float(re.search(r'y1="([\d.]+)"[^>]*stroke-width="3"', body)[1])
    assert heights
    assert max(heights) <= floor + 0.1
    assert "26.8 GB over the line" in step_memory(small(2), 40e9).words
    assert "under the line" in step_memory(small(), 80e9).words


def test_what_was_before_is_a_dashed_outline_to_the_same_scale() -> None:
    now, old = small(), small(4)
    assert "dashed" not in step_memory(now, 80e9).body
    assert "dashed" not in step_memory(now, 80e9, before=(now, 80e9)).body
    shown = step_memory(now, 80e9, before=(old, 40e9)).body
    assert "dashed: the start" in shown
    corners = re.search(r'<polyline points="([^"]+)"', shown)[1].split()
    heights = [float(corner.split(",")[1]) for corner in corners]
    scale = gigabytes_a_pixel(shown)
    assert (372 - min(heights)) * scale == pytest.approx(old.peak.total / 1e9, rel=0.01)
    assert shown.count("stroke-dasharray") == 3  # the callout is dotted


def test_beside_other_passes_only_the_old_peak_is_dashed() -> None:
    """Moments of one pass say nothing about those of two."""
    old = small()
    shown = step_memory(small(1, 2), 80e9, before=(old, 80e9)).body
    corners = re.search(r'<polyline points="([^"]+)"', shown)[1].split()
    heights = {float(corner.split(",")[1]) for corner in corners}
    assert len(corners) == 2
    assert len(heights) == 1
    high = (372 - heights.pop()) * gigabytes_a_pixel(shown)
    assert high == pytest.approx(old.peak.total / 1e9, rel=0.01)


def test_the_head_comes_at_the_end_of_forward() -> None:
    """With all layers computed again, nearly all that forward keeps is the head's."""
    model = published.architecture("Llama-3.2-1B", 8192)
    line = step_timeline(model, 1, "bf16_fp32_grads", "full")
    assert line.head == count_activations(model, 1, "full").head
    shown = step_memory(line, 80e9).body
    band = next(x for x in re.findall(r"<polygon.*?</polygon>", shown) if "#96407A" in x)
    corners = re.search('points="([^"]+)"', band)[1].split()
    points = [tuple(map(float, corner.split(","))) for corner in corners]
    thick = [points[-1 - i][1] - points[i][1] for i in (1, 2, 3)]
    scale = gigabytes_a_pixel(shown)
    assert [x * scale for x in thick] == pytest.approx([0, 0.54, 4.81], abs=0.06)


def test_many_passes_are_two_and_a_gap_with_their_number() -> None:
    shown = step_memory(small(1, 2), 80e9, passes=16)
    assert ">pass 1</text>" in shown.body
    assert ">pass 16</text>" in shown.body
    assert ">…</text>" in shown.body
    assert "of 16 passes each" in shown.words
    assert ">…</text>" not in step_memory(small(1, 2), 80e9).body
    assert set(MOMENTS) == set(MARKS)


@pytest.mark.parametrize("model", ["gpt2", "Llama-3.2-1B", "Llama-3.1-405B"])
@pytest.mark.parametrize("micro", [1, 64, 10**6])
@pytest.mark.parametrize("passes", [1, 2])
def test_nothing_leaves_the_canvas_and_words_are_large(model, micro, passes) -> None:
    shape = published.architecture(model, 1024)
    line = step_timeline(shape, micro, "bf16_both_grads", "none", 2, passes)
    old = step_timeline(shape, 1, "pure_bf16", "full")
    for drawing in (
        step_memory(line, 80e9, "A100 80GB SXM", 5000, (old, 16e9)),
        kept_by_layer(shape.hidden_size, shape.num_heads, 1024 * passes**7),
        segments([[6, 6, -8]], 10),
    ):
        for x, y in re.findall(r"([\d.]+),([\d.]+)", drawing.body):
            assert 0 <= float(x) <= drawing.width
            assert 0 <= float(y) <= drawing.height
        assert "-0.0" not in drawing.body
        sizes = re.findall(r'font-size="([\d.]+)"', drawing.body)
        assert min(map(float, sizes)) >= 14
        assert drawing.words in unescape(drawing.saved())
        assert drawing.words in unescape(drawing.live())
        for x, size, anchor, words in re.findall(
            r'<text x="([\d.]+)"[^>]*font-size="([\d.]+)" text-anchor="(\w+)"[^>]*>'
            r"([^<]*)<",
            drawing.body,
        ):
            wide = 0.56 * float(size) * len(unescape(words))
            right = {"start": wide, "middle": wide / 2, "end": 0}[anchor]
            assert float(x) + right <= drawing.width + 20, words


@pytest.mark.parametrize("chip", published.names("accelerators"))
def test_every_chips_name_finds_room_beside_its_line(chip: str) -> None:
    body = step_memory(small(), published.accelerator(chip).memory, chip).body
    named = re.findall(r'<text x="624"[^>]*font-size="14"[^>]*>([^<]+)<', body)
    assert len(named) == 1
    assert chip.startswith(named[0])
    assert 0.56 * 14 * len(named[0]) <= 744 - 624


def test_key_and_table_have_the_parts_that_are_drawn() -> None:
    line = step_timeline(LLAMA, 1, "bf16_fp32_grads", "none")
    parts = parts_at_peak(line)
    states = model_state_bytes(count_parameters(LLAMA).total, "bf16_fp32_grads")
    assert sum(parts.values()) == line.peak.total
    assert parts["main weights"] == states.main_weights
    assert parts["weights"] == states.weights
    assert "main weights" not in parts_at_peak(step_timeline(LLAMA, 1, "amp", "none"))
    shown = PANELS["activations"].render(model="Llama-3.1-8B")
    for part, size in parts.items():
        name = LEGEND.get(part, part)
        assert f">{name}</td>" in shown
        assert f"{name} {units.gigabytes(size) if size else 0}</text>" in shown


def test_figures_and_drawings_have_one_colour_for_each_part() -> None:
    figure = timeline(step_timeline(GPT2, 8, "bf16", "none"))
    for bars in figure.axes[0].containers:
        assert to_hex(bars.patches[0].get_facecolor()).upper() == COLORS[bars.get_label()].upper()


def test_the_drawing_of_a_layer_adds_up_to_the_formula() -> None:
    """Its rows make 34 and 5as/h, as the count by parts does."""
    assert sum(kept.size for kept in KEPT if not kept.scores) == 34
    assert sum(kept.size for kept in KEPT if kept.scores) == 5
    assert sum(kept.size for kept in KEPT if kept.learns) == 18
    gpt = Transformer.gpt(1, 768, 12, 50257, 1024)
    held = count_activations(gpt, 1, "none", "unfused", dropout=True)
    by_half = {"attention": held.attention, "MLP": held.mlp, "norms": held.norms}
    for half, counted in by_half.items():
        rows = [kept.size for kept in KEPT if kept.half == half and not kept.scores]
        assert sum(rows) * 768 * 1024 == counted
    assert "34 + 5as/h = 114 bytes" in kept_by_layer(12288, 96, 2048).body
    assert "34 + 5as/h = 114." not in kept_by_layer(4096, 32, 2048 * 7).words


def test_bars_of_a_layer_are_to_scale() -> None:
    body = kept_by_layer(12288, 96, 2048).body
    bars = re.findall(rf'width="([\d.]+)" height="18" fill="{COLORS["activations"]}"', body)
    wide = [float(width) for width in bars]
    sizes = [kept.size * (16 if kept.scores else 1) for kept in KEPT]
    assert [w / wide[0] for w in wide] == pytest.approx(
        [size / sizes[0] for size in sizes], rel=0.02
    )


def test_an_allocators_gaps_are_told() -> None:
    shown = segments([[6, 6, -8], [6, -6, 6, -2], [6, 6, -8]], 10)
    assert "60 MiB reserved: 36 MiB in use, 24 MiB free" in shown.words
    assert "No: the widest gap has 8 MiB." in shown.body
    assert "Yes: the widest gap has 8 MiB." in segments([[12, -8]], 8).body
    assert "8 free" in shown.body
    assert shown.body.count("6 in use") == 6


# --- what the page says in prose


def test_the_numbers_of_the_page() -> None:
    """Each stands in a sentence of the page, or of its folded answers."""
    states = 16 * count_parameters(LLAMA).total
    gpt = [gpt_activation_bytes(32, 4096, 32, s, 1) / states for s in (1024, 2048, 4096)]
    assert [f"{100 * share:.0f}" for share in gpt] == ["8", "24", "81"]
    own = [count_activations(LLAMA, 1, sequence_length=s).layers / states for s in (2048, 4096)]
    assert [f"{100 * share:.0f}" for share in own] == ["9", "17"]
    full = gpt_activation_bytes(96, 12288, 96, 2048, 1, "full")
    layer = gpt_activation_bytes(1, 12288, 96, 2048, 1) - 2 * 2048 * 12288
    assert [units.gigabytes(x) for x in (full, layer)] == ["4.83 GB", "2.82 GB"]
    one = published.architecture("Llama-3.2-1B", 8192)
    held, kept = (count_activations(one, 1, r).layers for r in ("none", "full"))
    assert held / kept == 22.5
    for micro, passes, told in [(2, 1, "66.8 GB"), (4, 1, "116 GB"), (1, 2, "47.0 GB")]:
        assert units.gigabytes(small(micro, passes).peak.total) == told
    assert small(1, 256).peak.total == small(1, 2).peak.total
    assert units.gigabytes(18 * count_parameters(LLAMA).total) == "145 GB"
    small_8b = step_timeline(LLAMA, 1, "pure_bf16", "full").peak
    assert (units.gigabytes(small_8b.total), small_8b.mark) == ("64.2 GB", "update")
    assert published.accelerator("B200").memory == 180e9
    assert published.accelerators()["memory_bytes"].max() < small(16).peak.total
    without = step_timeline(LLAMA, 1, "pure_bf16", "none").peak
    assert (units.gigabytes(without.total), without.mark) == ("105 GB", "loss")
    gpt2 = [gpt_activation_bytes(12, 768, 12, 512, 8), 12 * 32 * 512 * 8 * 768]
    assert [units.gigabytes(x) for x in gpt2] == ["2.79 GB", "1.21 GB"]


def test_the_share_beside_the_states_as_a_formula() -> None:
    """s·b·(34 + 5as/h)/(12·16·h), of layers whose parameters are 12h²."""
    for h, a, s, b in [(4096, 32, 2048, 1), (12288, 96, 4096, 3)]:
        share = s * b * (34 + 5 * a * s / h) / (12 * 16 * h)
        counted = gpt_activation_bytes(7, h, a, s, b) / (16 * 7 * 12 * h**2)
        assert counted == pytest.approx(share, rel=1e-12)


def test_the_panels_code_gives_what_it_shows() -> None:
    panel = activations_panel()
    panel.preset.value = "GPT-2 on a small card"
    told = units.gigabytes(value_of(panel.output.value).total)
    assert f"<b>{told}</b>" in panel.output.value


# --- exercises


def text_of(id: str, answer: object) -> str:
    verdict = check(id, answer)
    assert verdict.ok is False
    return verdict.text


BYTES = 2048 * 4 * 6144 * 48


def test_06_a_takes_every_right_way() -> None:
    key = gpt_activation_bytes(48, 6144, 64, 2048, 4) - 3 * 64 * 2048**2 * 4 * 48
    for answer in (
        key,
        float(key),
        f"{key:,}",
        "185e9",
        1.85e11,
        BYTES * (34 + 2 * 64 * 2048 / 6144),
        BYTES * 34 + 2 * 64 * 2048**2 * 4 * 48,
        BYTES * 76.7,
    ):
        assert check("06-a", answer).ok, answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (BYTES * (34 + 128 / 3) / 48, "one layer"),
        (BYTES * (34 + 128 / 3) / 4, "one sequence"),
        (BYTES * 34, "scores are missing"),
        (BYTES * 128 / 3, "scores alone"),
        (BYTES * (34 + 64 / 3), "counts the scores once"),
        (BYTES * 36, "as/h is missing"),
        (BYTES * (34 + 320 / 3), "with dropout on the scores"),
        (BYTES * (34 + 256 / 3), "only the mask is gone"),
        (BYTES * (34 + 64), "one thing too many"),
        (BYTES * (32 + 128 / 3), "without any dropout"),
        (BYTES * (34 + 2 * 64 * 2048), "as/h for each hidden value"),
        (BYTES * (34 + 128 / 3) / 1.073741824, "GiB"),
        (BYTES * (34 + 128 / 3) / 1e9, "billion times too little"),
        (BYTES * 200, "too high"),
    ],
)
def test_06_a_names_the_slips(answer: float, said: str) -> None:
    assert said in text_of("06-a", answer)


def test_06_b_takes_every_right_way() -> None:
    def by_hand(s, b, h, f, ad, kd):
        return s * b * (8 * h + 4 * ad + 4 * kd + 8 * f)

    assert check("06-b", by_hand).ok
    assert check("06-b", lambda **x: float(by_hand(**x))).ok
    assert check("06-b", lambda s, b, h, f, ad, kd: None).ok is None


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((4, 2, 2, 4), "each weighs 2 bytes"),
        ((8, 4, 4, 6), "the same activated"),
        ((8, 4, 4, 4), "a plain MLP"),
        ((4, 4, 4, 8), "two norms, attention and the MLP"),
        ((8, 4, 2, 8), "two tensors"),
        ((8, 2, 4, 8), "what comes out"),
        ((8, 4, 4, 9), "it returned"),
    ],
)
def test_06_b_names_the_slips(parts, said: str) -> None:
    def wrong(s, b, h, f, ad, kd):
        widths = zip(parts, (h, ad, kd, f), strict=True)
        return s * b * sum(count * wide for count, wide in widths)

    assert said in text_of("06-b", wrong)


def test_06_b_names_what_is_left_out() -> None:
    def wide(s, b, h, f, ad, kd):
        return s * b * (8 * h + 8 * ad + 8 * f)

    def one_sequence(s, b, h, f, ad, kd):
        return s * (8 * h + 4 * ad + 4 * kd + 8 * f)

    assert "not as the query heads" in text_of("06-b", wide)
    assert "times b" in text_of("06-b", one_sequence)


def test_06_c_tells_why_of_each_change() -> None:
    assert check("06-c", "two passes").ok
    assert check("06-c", "Two passes").ok
    assert "71.8 GB" in check("06-c", "two passes").text
    assert "70.1 GB, and costs 28.4 % more" in text_of("06-c", "full")
    assert "still 116 GB" in text_of("06-c", "selective")
    assert "66.8 GB" in text_of("06-c", "shorter")
    assert small(2, 2).peak.total < 80e9 < small(4).peak.total
    assert small(4, 1, "full").peak.total < 80e9


MINE = {"model": "Llama-3.1-8B", "gpus": 8, "chip": "A100 80GB SXM"}
MINE |= {"sequence": 8192, "zero": 3, "recompute": "full", "micro": 2}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"sequence": "4,096", "recompute": "none", "micro": 1},
        {"gpus": 64, "micro": "4"},
        {"chip": "H200 SXM", "recompute": "none", "micro": 1},
        {"model": "Llama-3.2-1B", "gpus": 1, "zero": 0, "recompute": "none"} | {"micro": 1},
    ],
)
def test_06_d_takes_any_design_that_holds(change: dict) -> None:
    verdict = check("06-d", MINE | change)
    assert verdict.ok, verdict.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"micro": 1}, "2 at a time would fit too"),
        ({"micro": 3}, "no power of two, and would seldom divide a batch: take 2 or 4"),
        ({"micro": 4}, "too much: 77.6 GB at the peak, of 64.0 GB"),
        ({"recompute": "none"}, "not even a micro-batch of 1 fits"),
        ({"zero": 1}, "not even a micro-batch of 1 fits"),
        ({"zero": 4}, "zero=4 is no stage"),
        ({"recompute": "all"}, "recompute='all' is unknown"),
        ({"micro": 0}, "micro=0 is not positive"),
        ({"micro": "two"}, "is no number"),
        ({"model": "Llama-9"}, "Llama-9"),
        ({"chip": "H900"}, "H900"),
        ({"model": "gpt2"}, "gpt2 has positions for 1,024 tokens only"),
    ],
)
def test_06_d_says_what_does_not_hold(change: dict, said: str) -> None:
    assert said in text_of("06-d", MINE | change)


def test_06_d_waits_for_every_entry() -> None:
    assert check("06-d", MINE | {"micro": None}).ok is None
    assert "leaves out gpus, chip" in text_of("06-d", {"model": "gpt2"})
    assert "is no dict" in text_of("06-d", 64)


@pytest.mark.parametrize("recompute", RECOMPUTE)
@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_06_d_counts_as_the_plan_of_07_does(recompute: str, zero: int) -> None:
    design = MINE | {"recompute": recompute, "zero": zero}
    options = {"recompute": recompute, "zero_stage": zero, "micro_batch_size": 2}
    chip = published.accelerator(MINE["chip"])
    plan = plan_run(LLAMA, chip, 8, 1e12, 16, recipe="bf16_fp32_grads", **options)
    assert plan.memory.total == own_peak(design, 2)


def test_the_predictions_name_the_belief() -> None:
    growth, largest = PREDICTIONS["06-guess"], PREDICTIONS["06-largest"]
    assert growth.truth() == pytest.approx(2 * 194 / 114)
    assert "it is 3.40 times as much" in growth.reveal(4)
    assert "they alone make 4" in growth.reveal(4)
    assert largest.truth() == "twice"
    assert "from 2 to 4" in largest.reveal("twenty times")
    assert "the layers alone" in largest.reveal("twenty times")
    assert "and so it is" in largest.reveal("Twice")
    assert {id for id in PREDICTIONS if id[:2] == "06"} == {"06-guess", "06-largest"}


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


def test_the_8b_step_of_06_and_the_plan_of_07_differ_by_the_gradients() -> None:
    """With one pass the loss comes before any gradient; the plan has them all there."""
    model = published.architecture("Llama-3.1-8B", 8192)
    one, two = (
        step_timeline(model, 1, "bf16_fp32_grads", "none", accumulation_steps=k).peak
        for k in (1, 2)
    )
    gradients = 4 * count_parameters(model).total
    assert two.total == one.total + gradients
    b200 = published.accelerator("B200")
    plan = plan_run(*(model, b200, 1, 1e12, 2), recompute="none", recipe="bf16_fp32_grads")
    assert plan.memory.total == two.total
    assert [units.gigabytes(peak.total) for peak in (one, two)] == ["169 GB", "201 GB"]
    assert one.total < b200.memory < two.total


def test_why_full_recomputation_takes_more_time_than_a_third() -> None:
    """One forward more, in a layer whose backward takes 1.5 times as long, not 2."""
    table = published.recomputation_overheads().set_index("name")
    plain, full = (table.loc["22B layer, nothing recomputed"], table.loc["22B layer, full"])
    assert plain["backward_seconds"] / plain["forward_seconds"] == pytest.approx(1.55, 0.01)
    again = full["seconds"] - plain["seconds"]
    assert again == pytest.approx(plain["forward_seconds"], rel=0.02)
    assert round(plain["forward_seconds"] / plain["seconds"], 2) == full["overhead"]


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
    again = count_flops(LLAMA, 2, "alternate")
    assert again.recomputed == 32 * 2 * (2 * s) * (h * kv + h * h + h * f)
    mixture = Transformer.llama(2, 64, 4, 4, 32, 99, 8, num_experts=4, experts_per_token=2)
    assert_refused(
        count_activations, "recompute=", model=mixture, micro_batch_size=1, recompute="alternate"
    )
