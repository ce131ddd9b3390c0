"""Chapter 01's drawings: to scale, inside their canvas, the same in words."""

import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import Transformer, count_parameters
from llmtrain_helpers.drawings import parameters as drawings, stack
from llmtrain_helpers.drawings.common import COLORS
from llmtrain_helpers.evidence import published
from tests.strategies import transformers


def exact_totals() -> list[str]:
    return published.architectures().dropna(subset="parameters")["name"].tolist()


@pytest.mark.parametrize("name", [*exact_totals(), "GPT-3 175B", "MT-NLG 530B"])
def test_the_matrices_that_are_drawn_are_those_that_are_counted(name: str) -> None:
    model = published.architecture(name)
    counted = count_parameters(model)
    l, h, f = model.num_layers, model.hidden_size, model.intermediate_size
    d, a, k = model.head_dim, model.num_heads, model.num_kv_heads
    count = lambda matrices: sum(matrix.count for matrix in matrices)  # noqa: E731
    biases = model.qkv_bias * (a + 2 * k) * d + model.bias * h
    assert l * (count(drawings.attention(model)) + biases) == counted.attention
    experts, bias = max(model.num_experts, 1), model.bias * (f + h)
    mlps = experts * (count(drawings.mlp(model)) + bias) + model.num_experts * h
    assert l * mlps == counted.mlp
    *inside, last = drawings.norms(model)
    assert l * count(inside) + last.count == counted.norm
    assert count(drawings.tables(model)) == counted.embedding
    assert count(drawings.heads(model)) == counted.head


@pytest.mark.parametrize("name", ["GPT-3 175B", "Llama-3.1-8B", "Mixtral-8x7B"])
def test_the_flow_shows_every_matrix_with_its_size_and_tells_it(name: str) -> None:
    model = published.architecture(name)
    drawn = drawings.transformer(model, name)
    kinds = (drawings.attention, drawings.mlp, drawings.tables, drawings.heads)
    for matrix in [matrix for kind in kinds for matrix in kind(model)]:
        assert f">{matrix.size}</text>" in drawn.body
        assert matrix.size in drawn.words
        assert f'fill="{COLORS[matrix.part]}"' in drawn.body
    assert f"one of {model.num_layers} layers, open" in drawn.body
    assert f"{model.vocab_size:,} scores" in drawn.words
    assert ("again (tied)" in drawn.body) == model.tied_embeddings
    assert ("experts" in drawn.words) == bool(model.num_experts)


def rectangles(body: str, color: str) -> list[tuple[float, float]]:
    """Width and height of each rectangle of a colour."""
    pattern = rf'width="([\d.]+)" height="([\d.]+)" fill="{color}"'
    return [(float(w), float(h)) for w, h in re.findall(pattern, body)]


def test_the_sides_of_a_layers_matrices_are_to_scale() -> None:
    model = published.architecture("Llama-3.1-8B")
    drawn = drawings.transformer(model).body
    swatch = (12, 12)
    blue, red = (
        [side for side in rectangles(drawn, COLORS[part]) if side != swatch]
        for part in ("attention", "MLP")
    )
    unit = blue[0][0] / 4096
    sides = [*drawings.attention(model), *drawings.mlp(model)]
    for (wide, high), matrix in zip([*blue, *red], sides, strict=True):
        assert wide == pytest.approx(matrix.columns * unit, abs=0.15)
        assert high == pytest.approx(matrix.rows * unit, abs=0.15)


@given(transformers())
def test_areas_are_to_scale(model: Transformer) -> None:
    shares = count_parameters(model).shares()
    boxes = drawings.boxes(model)
    whole = sum(wide * high for _, _, wide, high in boxes.values())
    for part, word in drawings.PARTS.items():
        _, _, wide, high = boxes[word]
        assert wide * high / whole == pytest.approx(shares[part])


@given(transformers(), st.sampled_from(drawings.CHOICES))
def test_any_model_can_be_drawn_and_opened(model: Transformer, part: str) -> None:
    shown = drawings.areas(model, part)
    for matrix in drawings.opened(model, part):
        assert f">{matrix.size}</text>" in shown.body
        assert matrix.size in shown.words
    assert drawings.transformer(model).words.startswith("Drawing: A transformer.")
    for body in (shown.body, drawings.transformer(model).body):
        assert not re.search(r'(width|height)="-|nan|inf"', body)


def test_the_areas_tell_counts_shares_and_what_is_idle() -> None:
    told = drawings.areas(published.architecture("Mixtral-8x7B"), "MLP").words
    assert "46.7 billion parameters as areas" in told
    assert "attention 1.34 billion (2.87 %)" in told
    assert "Pale: experts that a token does not meet, 6 of 8 in a layer." in told
    assert "gate 4,096 × 14,336" in told
    with pytest.raises(ValueError, match="chosen='mpl' is unknown"):
        drawings.areas(published.architecture("gpt2"), "mpl")


@pytest.mark.parametrize("name", ["Mixtral-8x7B", "Qwen3-30B-A3B"])
def test_as_many_experts_are_full_as_a_token_meets(name: str) -> None:
    model = published.architecture(name)
    drawn = drawings.areas(model, "MLP").body
    assert f"{model.experts_per_token} of {model.num_experts} for each token" in drawn
    [full] = re.findall(rf'<path d="([^"]+z)" fill="{COLORS["MLP"]}"', drawn)
    places = set(re.findall(r"M([\d.]+) ([\d.]+)h", full))
    in_layers = Counter(x for x, _ in places)
    assert [*in_layers.values()] == [model.experts_per_token] * model.num_layers
    _, top, _, high = drawings.boxes(model)["MLP"]
    assert all(top - 0.05 <= float(y) < top + high for _, y in places)


def test_what_changed_leaves_a_ghost_and_its_number() -> None:
    model = published.architecture("Llama-3.1-8B")
    wider = replace(model, num_kv_heads=32)
    plain = drawings.areas(model, "attention").body
    assert "stroke-dasharray" not in plain
    assert drawings.areas(model, "attention", model).body == plain
    shown = drawings.areas(model, "attention", wider).body
    assert "dashed: 8.84 billion" in shown
    assert "was 2.15 billion" in shown
    assert shown.count("<title>at the start</title>") == 2  # keys and values


def config_model(name: str) -> Transformer:
    return published.config_model(name)


def test_every_family_that_is_read_can_be_drawn() -> None:
    read = [r["name"] for r in published.rows("families") if r["read"] == "exact"]
    for family in read:
        model = Transformer.from_config({"model_type": family})
        shown = stack.stack(model, family)
        assert "of another kind" not in shown.words, family
        assert not re.search(r'(width|height)="-|nan|inf"', shown.body), family
        assert shown.height > 380
    long = Transformer.from_config({"model_type": "gemma3_text", "num_hidden_layers": 900})
    assert "900 layers, from first to last, one in 6 drawn" in stack.stack(long).body


@pytest.mark.parametrize("name", ["DeepSeek-V3", "Jamba-v0.1", "Gemma-3-1B", "gpt2"])
def test_the_areas_of_a_stack_are_to_scale(name: str) -> None:
    model = config_model(name)
    rects = re.findall(
        r'y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="(#\w+)"[^>]*><title>(\w+)',
        stack.stack(model).body,
    )
    drawn = [rest for y, *rest in rects if stack.TOP <= float(y) < stack.TOP + stack.TALL]
    found: dict[str, float] = {}
    for wide, high, color, word in drawn:
        full = "output head" if word == "output" else word
        assert color == COLORS[full]
        found[full] = found.get(full, 0) + float(wide) * float(high)
    for part, share in count_parameters(model).shares().items():
        area = found.get(drawings.PARTS[part], 0) / stack.ACROSS / stack.TALL
        assert area == pytest.approx(float(share), abs=0.004)


def test_the_waterfall_tells_each_change() -> None:
    drawn = drawings.waterfall(("one", 100), {"more": 50, "less": -30}, "other")
    assert drawn.words == "one 100; more + 50, less − 30; other 120."
    assert drawn.body.count("<rect") == 4
