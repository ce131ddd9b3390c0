"""Chapter 01's drawings: to scale, inside their canvas, the same in words."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given

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
    biases = model.qkv_bias * (a + 2 * k) * d + model.bias * h
    inside = sum(matrix.count for matrix in drawings.attention(model))
    assert l * (inside + biases) == counted.attention
    experts, bias = max(model.num_experts, 1), model.bias * (f + h)
    one = sum(matrix.count for matrix in drawings.mlp(model)) + bias
    assert l * (experts * one + model.num_experts * h) == counted.mlp


def rectangles(body: str, color: str, title: str = ".*?") -> list[tuple[float, float]]:
    """Width and height of each rectangle of a colour that a pointer can name."""
    pattern = rf'width="([\d.]+)" height="([\d.]+)" fill="{color}"[^>]*><title>{title}<'
    return [(float(w), float(h)) for w, h in re.findall(pattern, body)]


# --- the stream


def test_the_token_meets_more_with_every_step() -> None:
    model = published.architecture("gpt2-xl")
    bodies = [drawings.stream(model, step).body for step in range(drawings.STEPS)]
    colors = [COLORS[part] for part in ("embedding", "norms", "attention", "MLP")]
    met = [[len(rectangles(body, color)) for color in colors] for body in bodies]
    assert met[0] == [1, 0, 0, 0]
    assert met[3] == [1, 1, 4, 0]
    assert met[-1] == [2, 2, 4, 2]
    keys = [body.count("<title>a key</title>") for body in bodies]
    assert keys == [0, 0, 4, 4, 4, 4, 4, 4]
    assert all(one <= other for a, b in pairwise(met) for one, other in zip(a, b, strict=True))


@pytest.mark.parametrize("layout", [drawings.PAGE, drawings.TELEPHONE])
def test_mlp_and_attention_read_the_stream_and_add_to_it(layout: drawings.Layout) -> None:
    """What comes out of attention goes to the stream, not to the MLP."""
    body = drawings.stream(published.architecture("gpt2-xl"), 5, layout).body
    assert body.count("<title>added</title>") == 2
    middle, keys = layout.stream, layout.rows[1]
    reading = re.findall(rf'<line x1="{middle + 6}" y1="(\d+)" x2="\d+"', body)
    adding = re.findall(rf'<line x1="{layout.back}" y1="(\d+)" x2="{middle + 14}"', body)
    assert (reading, adding) == ([f"{keys - 1}", "190"], ["262", "122"])


def test_the_sides_of_a_layers_matrices_are_to_scale() -> None:
    body = drawings.stream(published.architecture("gpt2-xl"), 5).body
    side = drawings.SIDE
    assert rectangles(body, COLORS["attention"], "attention") == [(side, side)] * 4
    assert rectangles(body, COLORS["MLP"], "MLP") == [(4 * side, side), (side, 4 * side)]


# --- bricks


def gpt(h: int, l: int) -> Transformer:
    return Transformer.gpt(l, h, h // 64, 50257, 1024)


def brick_areas(h: int, l: int) -> dict[str, float]:
    """The area of each colour, in pixels; biases and norms are not drawn."""
    body = drawings.bricks(count_parameters(gpt(h, l)), (h, l)).body
    [(wide, high)] = rectangles(body, COLORS["embedding"])
    areas = {"embedding": wide * high}
    for part in ("MLP", "attention"):
        [path] = re.findall(rf'<path d="([^"]+z)" fill="{COLORS[part]}"', body)
        sides = re.findall(r"h([\d.]+)v([\d.]+)", path)
        areas[part] = sum(float(x) * float(y) for x, y in sides)
    return areas


@pytest.mark.parametrize(("h", "l"), [(768, 12), (1536, 48), (384, 6), (1024, 18)])
def test_a_brick_is_as_large_as_its_parameters_on_one_scale_for_all(h: int, l: int) -> None:
    counted, areas = count_parameters(gpt(h, l)), brick_areas(h, l)
    pixel = drawings._PIXEL**2
    assert areas["MLP"] / pixel == pytest.approx(counted.mlp, rel=0.03)
    assert areas["attention"] / pixel == pytest.approx(counted.attention, rel=0.03)
    assert areas["embedding"] / pixel == pytest.approx(counted.embedding, rel=0.01)


def test_twice_the_width_is_four_times_the_area_and_twice_the_layers_are_two() -> None:
    start, wider, deeper = brick_areas(768, 12), brick_areas(1536, 12), brick_areas(768, 24)
    for part in ("MLP", "attention"):
        assert wider[part] / start[part] == pytest.approx(4, rel=0.01)
        assert deeper[part] / start[part] == pytest.approx(2)
    assert wider["embedding"] / start["embedding"] == pytest.approx(2, rel=0.01)
    assert deeper["embedding"] == start["embedding"]


def test_what_was_there_at_the_start_stays_as_an_outline() -> None:
    counted = count_parameters(gpt(1536, 12))
    assert "at the start" not in drawings.bricks(counted, (1536, 12)).body
    assert "at the start" in drawings.bricks(counted, (1536, 12), (768, 12)).body


# --- a Llama, and experts


def test_outlines_are_of_what_is_not_yet_llamas() -> None:
    whole = published.architecture("Llama-3.1-8B")
    done = drawings.mended(whole, whole)
    assert "stroke-dasharray" not in done.body
    sides = rectangles(done.body, COLORS["attention"], r"4,096.*?")
    assert sides[1] == (sides[0][0] / 4, sides[0][1]) == (11.5, 46)
    gate, _, down = rectangles(done.body, COLORS["MLP"], r"\d+,.*?")
    assert gate == down[::-1] == (161, 46)
    gpt = Transformer.gpt(32, 4096, 32, 128256, 2048)
    assert drawings.mended(gpt, whole).body.count("<title>Llama 3.1 8B</title>") == 5


@pytest.mark.parametrize(("count", "met"), [(8, 2), (16, 16), (2, 1)])
def test_as_many_experts_are_full_as_a_token_meets(count: int, met: int) -> None:
    mixtral = Transformer.llama(
        32, 4096, 32, 8, 14336, 32000, 32768, num_experts=count, experts_per_token=met
    )
    seen = set()
    for token in range(7):
        body = drawings.experts(mixtral, token).body
        blocks = re.findall(r"<rect [^>]*><title>expert (\d+)</title>", body)
        pale = re.findall(r'opacity="0.25"><title>expert (\d+)</title>', body)
        assert (len(blocks), len(pale)) == (count, count - met)
        seen.add(tuple(pale))
    assert len(seen) > 1 or count == met


def test_the_bars_of_experts_are_to_scale() -> None:
    model = published.architecture("Mixtral-8x7B")
    body, counted = drawings.experts(model, 0).body, count_parameters(model)
    rest = rectangles(body, COLORS["attention"], "attention and tables")
    full = rectangles(body, COLORS["MLP"], "experts that it meets")
    [idle] = rectangles(body, COLORS["MLP"], "experts that it does not meet")
    assert rest[0] == rest[1]
    assert full[0] == full[1]
    unit = (rest[0][0] + full[0][0] + idle[0]) / counted.total
    assert rest[0][0] + full[0][0] == pytest.approx(unit * counted.active, abs=0.2)


# --- the stack of any model


@given(transformers())
def test_any_model_can_be_drawn(model: Transformer) -> None:
    assert not re.search(r'(width|height)="-|nan|inf"', stack.stack(model).body)


def test_what_changed_leaves_a_ghost_and_its_number() -> None:
    model = published.architecture("Llama-3.1-8B")
    wider = replace(model, num_kv_heads=32)
    plain = stack.stack(model).body
    assert "stroke-dasharray" not in plain
    assert stack.stack(model, before=model).body == plain
    shown = stack.stack(model, before=wider).body
    assert "dashed: 8.84 billion" in shown
    assert "was 2.15 billion" in shown


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
