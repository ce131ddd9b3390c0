"""Chapter 02's panel: what each control changes, and what it refuses."""

import re
from dataclasses import replace

import pytest

from llmtrain_course.flops.handles import ALL, BACK, PANEL, SEEN, highest_hfu
from llmtrain_course.flops.pictures import share_of_peak
from llmtrain_helpers import Transformer, achieved_flops_per_gpu, count_flops, published, units
from tests.pages import cell


def test_the_panel_shows_rate_and_shares() -> None:
    html = PANEL.render()
    sentence = "<b>154 TFLOP/s</b> on each GPU, MFU 37.2%, and another 12.2% of the peak"
    assert sentence in html
    assert "HFU 49.4%" in html
    assert html.index("154 TFLOP/s") < html.index("<svg") < html.index("<details")
    assert "no work is repeated" in PANEL.render(recompute="none")
    assert "HFU 7.78%" in PANEL.render(chip="H100 SXM", format="fp8")


def _offers_at(seconds: float) -> tuple:
    return PANEL.answer({**PANEL.default, "seconds": seconds}).offers


def test_what_the_page_tells_of_the_panel_is_so() -> None:
    assert ">HFU 99.0%<" in PANEL.render(seconds=16)
    stops = PANEL.controls["seconds"].stops
    shorter = max(stop for stop in stops if stop < 16)
    past = PANEL.answer({**PANEL.default, "seconds": shorter}).html
    assert "of its peak of 312 TFLOP/s" in past
    assert "runs past the peak" in past
    assert "A step as passes over the stack of layers" in past
    assert "HFU 99" in _offers_at(5)[1][0]
    for seconds in (4, 3.2):
        answer = PANEL.answer({**PANEL.default, "seconds": seconds})
        assert "None of the usual mistakes explains this" in answer.html
        assert "mistakes are below" not in answer.html
        sentence = f"Seconds 32.09, not {seconds:g}: HFU 49.4%"
        assert answer.offers == ((sentence, {"seconds": 32.09}),)
    eight = PANEL.answer({**PANEL.default, "seconds": 8})
    assert "mistakes are below" in eight.html
    assert len(eight.offers) > 1
    assert "MFU 37.2%" in PANEL.render(recompute="none")
    long = PANEL.presets["Llama 3.1 8B at 32,768 tokens"]
    assert "MFU 40.0%" in PANEL.render(**long)
    short = {**long, "sequence_length": 2048, "batch_size": 512}
    assert "MFU 20.0%" in PANEL.render(**short)
    assert "MFU 39.9%" in PANEL.render(**{**short, "seconds": 2})


def test_the_panel_warns_above_what_was_ever_published() -> None:
    values = dict(PANEL.default)
    assert highest_hfu() == 0.711  # llm-foundry: 70B on 64 A100
    assert "Look again" not in PANEL.render(**values)
    faster = PANEL.render(**values | {"seconds": 20})
    assert "no published step on more than one node was above an HFU of 71.1%" in faster


WRONG = PANEL.presets["18.4B, as a colleague counts it"]


def test_more_than_the_peak_is_drawn_past_it_and_slips_are_named() -> None:
    answer = PANEL.answer(WRONG)
    assert not answer.problem
    assert "at 101% of its peak of 312 TFLOP/s" in answer.html
    counted = count_flops(published.architecture("Megatron 18.4B", 2048), 512, "full")
    rate = achieved_flops_per_gpu(counted.total, 32.09, 16)
    assert share_of_peak(counted, rate, 312e12, (0, 0)).words in answer.html
    offered = dict(answer.offers)
    assert offered["Sequence 1,024, not 2,048: HFU 49.4%"] == {"sequence_length": 1024}
    assert offered["Recomputed none, not full: HFU 76.4%"] == {"recompute": "none"}
    assert len(offered) == 5
    for change in offered.values():
        assert "runs past" not in PANEL.answer({**WRONG, **change}).html
    problem = PANEL.answer({**PANEL.default, "format": "fp8"}).problem
    assert problem.startswith("Number format 'fp8' has no peak on A100")


def test_pairs_that_a_token_may_see_are_counted_on_demand() -> None:
    values = PANEL.presets["gpt-oss-20b at 32,768 tokens"]
    seen = PANEL.render(**{**values, "attention": SEEN})
    model = published.architecture("gpt-oss-20b", 32768)
    work = units.flops(count_flops(model, 32, "none", "causal").total)
    assert work in seen
    plain = PANEL.render(**values)
    assert work not in plain
    share = re.search(r"on each GPU, MFU ([\d.]+%)", re.sub("<[^>]*>", "", seen))
    assert share
    assert share[1] not in plain  # it is asked beside the panel
    assert "although a token only sees a window in some layers" in plain
    assert "window" not in PANEL.render()
    assert "attention=&quot;causal&quot;" in seen


def test_the_empty_half_and_the_windows_are_left_out_one_after_the_other() -> None:
    values = PANEL.presets["gpt-oss-20b at 32,768 tokens"]
    shares = [
        re.search(r"MFU ([\d.]+)%", PANEL.render(**{**values, "attention": pairs}))[1]
        for pairs in (ALL, BACK, SEEN)
    ]
    assert shares == ["49.9", "33.9", "26.0"]
    text = cell("02_flops", "panel-answers")
    assert all(f"{share}" in text for share in shares)


WINDOWS = {
    "Mistral-7B-v0.1": ("Mistral 7B v0.1", 4096, "every layer"),
    "gpt-oss-20b": ("gpt-oss-20b", 128, "every second layer"),
    "Gemma-3-27B (text)": ("Gemma 3 27B", 1024, "five of six layers"),
}


def too_high(model: Transformer, s: int) -> float:
    """Those that a token could see without windows, over those that it may see."""
    layers = tuple(
        (n, replace(layer, mixer=replace(layer.mixer, window=0))) for n, layer in model.layers
    )
    forgotten = replace(model, layers=layers)
    with_them, without = (
        count_flops(shape, 1, "none", "causal", s).total for shape in (model, forgotten)
    )
    return without / with_them - 1


@pytest.mark.parametrize("name", WINDOWS)
def test_what_the_page_says_of_windows_is_so(name: str) -> None:
    page, model = cell("evidence/02_flops", "windows-models"), published.config_model(name)
    title, window, which = WINDOWS[name]
    assert max(layer.mixer.window for _, layer in model.layers) == window
    share = f"{100 * too_high(model, 32768):.0f}%"
    assert f"| {title} | {window:,} tokens, {which} | {share} |" in page
    run = {"model": name, "sequence_length": 32768, "recompute": "none", "attention": SEEN}
    work = count_flops(model, 8, "none", "causal", 32768).total
    html = PANEL.render(**run, batch_size=8, seconds=60.0, num_gpus=8)
    assert units.flops_per_second(work / 60 / 8) in html
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    *steps, last = code.replace("Mistral-7B-v0.1", name).strip().splitlines()
    names = {"published": published, "count_flops": count_flops}
    exec("\n".join(steps), names)
    assert f"{100 * eval(last, names):.0f}%" == share
    if name.startswith("Gemma"):
        long = 100 * too_high(model, 131072)
        assert f"At 131,072 tokens, Gemma's {share} have grown to {long:.0f}%" in page


def test_a_change_leaves_an_outline_of_the_state_before() -> None:
    before = {**PANEL.default, "seconds": 40}
    html = PANEL.render(before=before, **PANEL.default)
    assert "at the start: MFU 29.8%, HFU 39.6%" in html
    assert "at the start:" not in PANEL.render(before=PANEL.default, **PANEL.default)
