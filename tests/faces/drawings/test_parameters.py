"""Chapter 01's pictures: areas as large as the parameters, and what's drawn is counted."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given

from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.layout import PAGE, PHONE
from llmtrain_course.parameters import pictures as drawings, stack
from llmtrain_helpers import Transformer, count_parameters, published
from tests.faces.svg import Picture, drawn
from tests.strategies import transformers

# --- the stream

XL = published.architecture("gpt2-xl")


def test_the_token_meets_more_with_every_step() -> None:
    frames = [drawn(drawings.stream(XL, step)) for step in range(drawings.STEPS)]
    colors = {part: COLORS[part] for part in ("embedding", "norms", "attention", "MLP")}
    met = [
        [sum(x.fill == color for x in frame.titled(part)) for part, color in colors.items()]
        for frame in frames
    ]
    [(_, layer)] = XL.layers
    matrices = [len(part.matrices(XL.hidden_size)) for part in layer.parts]
    assert (met[0], met[3], met[-1]) == ([1, 0, 0, 0], [1, 1, 4, 0], [2, 2, *matrices])
    assert all(one <= other for a, b in pairwise(met) for one, other in zip(a, b, strict=True))
    keys = [len(frame.titled("a key")) for frame in frames]
    assert keys == sorted(keys)
    assert keys[0] == 0 < keys[-1] == len(frames[-1].titled("a value"))


@pytest.mark.parametrize("width", [PAGE, PHONE])
def test_mlp_and_attention_read_the_stream_and_add_to_it(width: int) -> None:
    """What comes out of attention goes to the stream, not to the MLP."""
    picture = drawn(drawings.stream(XL, 5), width)
    sums, norms = picture.titled("added", "circle"), picture.titled("norms")
    heads = picture.of_kind("polyline")
    assert len(sums) == len(norms) == 2
    for dot in sums:  # arrows that end at the stream
        assert sum(0 < x.left - dot.right < 4 and x.down == dot.down for x in heads) == 1
    for norm in norms:  # and those that begin there
        assert any(0 < norm.left - x.right < 4 and x.down == norm.down for x in heads)


def test_the_sides_of_a_layers_matrices_are_to_scale() -> None:
    picture = drawn(drawings.stream(XL, 5))
    queries, *others = [x for x in picture.titled("attention") if x.fill == COLORS["attention"]]
    assert {(x.width, x.height) for x in others} == {(queries.width, queries.width)}
    up, down = picture.titled("MLP")
    assert (up.width, up.height) == (down.height, down.width)
    assert (up.width, up.height) == (4 * queries.width, queries.width)


# --- bricks


def gpt(h: int, l: int) -> Transformer:
    return Transformer.gpt(l, h, h // 64, 50257, 1024)


def brick_areas(h: int, l: int) -> dict[str, float]:
    """The area of each colour, in pixels; biases and norms are not drawn."""
    picture = drawn(drawings.bricks(count_parameters(gpt(h, l)), (h, l)))
    return {part: picture.area_of(part) for part in ("tables", "MLP", "attention")}


@pytest.mark.parametrize(("h", "l"), [(768, 12), (1536, 24), (384, 6), (1024, 18), (1536, 12)])
def test_a_brick_is_as_large_as_its_parameters_on_one_scale_for_all(h: int, l: int) -> None:
    counted, areas = count_parameters(gpt(h, l)), brick_areas(h, l)
    start = count_parameters(gpt(768, 12)), brick_areas(768, 12)
    unit = start[1]["tables"] / start[0].embedding
    assert areas["MLP"] / unit == pytest.approx(counted.mlp, rel=0.03)
    assert areas["attention"] / unit == pytest.approx(counted.attention, rel=0.03)
    assert areas["tables"] / unit == pytest.approx(counted.embedding, rel=0.01)


# --- experts


@pytest.mark.parametrize(("count", "met"), [(8, 2), (16, 16), (2, 1)])
def test_as_many_experts_are_full_as_a_token_meets(count: int, met: int) -> None:
    mixtral = Transformer.llama(
        32, 4096, 32, 8, 14336, 32000, 32768, num_experts=count, experts_per_token=met
    )
    seen = set()
    for token in range(7):
        blocks = drawn(drawings.experts(mixtral, token)).titled("expert ")
        full = [x.words for x in blocks if x.opacity == 1]
        assert (len(blocks), len(full)) == (mixtral.num_experts, mixtral.experts_per_token)
        seen.add(tuple(full))
    assert len(seen) > 1 or count == met


def test_experts_and_attention_are_drawn_as_large_as_they_are() -> None:
    model = published.architecture("Mixtral-8x7B")
    picture, counted = drawn(drawings.experts(model, 0)), count_parameters(model)
    router = 32 * 8 * 4096
    experts = sum(box.area for box in picture.titled("expert "))
    ratio = (counted.mlp - router) / counted.attention
    assert experts / picture.area_of("attention") == pytest.approx(ratio, rel=0.006)


def test_the_bars_of_experts_are_to_scale() -> None:
    model = published.architecture("Mixtral-8x7B")
    picture, counted = drawn(drawings.experts(model, 0)), count_parameters(model)
    rest, full = (picture.titled(x) for x in ("attention and tables", "experts that it meets"))
    [idle] = picture.titled("experts that it doesn't meet")
    for bars in (rest, full):
        assert bars[0].width == bars[1].width
    unit = (rest[0].width + full[0].width + idle.width) / counted.total
    assert rest[0].width + full[0].width == pytest.approx(unit * counted.active, abs=0.2)
    assert rest[0].width == pytest.approx(unit * (counted.total - counted.mlp), abs=0.2)


# --- the stack of any model


def sane(picture: Picture) -> bool:
    return all(box.width >= 0 and box.height >= 0 for box in picture.boxes)


@given(transformers())
def test_any_model_can_be_drawn(model: Transformer) -> None:
    assert sane(drawn(stack.stack(model)))


def test_what_changed_leaves_an_outline_and_its_number() -> None:
    model = published.architecture("Llama-3.1-8B")
    wider = replace(model, num_kv_heads=32)
    picture = drawn(stack.stack(model, before=wider))
    [outline] = picture.dashed
    [bar] = [x for x in picture.titled("attention") if x.top == outline.top]
    now, was = (count_parameters(x) for x in (model, wider))
    assert bar.width / outline.width == pytest.approx(now.attention / was.attention, rel=0.005)
    assert {"1.34 billion, was 2.15 billion", "was 8.84 billion"} < {*picture.texts}
    assert picture.height == drawn(stack.stack(model)).height


def test_a_parts_bar_is_as_long_as_its_parameters() -> None:
    model = published.architecture("Llama-3.1-8B")
    picture, parts = drawn(stack.stack(model)), count_parameters(model).parts()
    bars = {x.words: x.width for x in reversed(picture.of_kind("rect"))}  # they come first
    for part in ("embedding", "attention", "head"):
        name = drawings.PARTS[part]
        assert bars[name] / bars["MLP"] == pytest.approx(parts[part] / parts["mlp"], rel=0.006)


def test_every_family_that_is_read_can_be_drawn() -> None:
    read = [r["name"] for r in published.rows("families") if r["read"] == "exact"]
    for family in read:
        model = Transformer.from_config({"model_type": family})
        drawing = stack.stack(model, family)
        assert "of another kind" not in drawing.words, family
        assert sane(drawn(drawing))
    long = Transformer.from_config({"model_type": "gemma3_text", "num_hidden_layers": 900})
    captions = drawn(stack.stack(long)).texts
    assert any("900 layers, from first to last, one in 6 drawn" in x for x in captions)


@pytest.mark.parametrize("name", ["DeepSeek-V3", "Jamba-v0.1", "Gemma-3-1B", "gpt2", "Qwen3-8B"])
def test_the_areas_of_a_stack_are_to_scale(name: str) -> None:
    model = published.config_model(name)
    picture = drawn(stack.stack(model))
    _, tall = picture.titled("embedding")  # the bar, and the area
    named = [x for x in picture.of_kind("rect") if x.words]
    boxes = [x for x in named if tall.top <= x.top and x.bottom <= tall.bottom + 1]
    assert all(x.fill == COLORS[x.words] for x in boxes)
    whole = sum(box.area for box in boxes)
    for part, share in count_parameters(model).shares().items():
        area = sum(box.area for box in boxes if box.words == drawings.PARTS[part])
        assert area / whole == pytest.approx(float(share), rel=0.008, abs=5e-4), part
