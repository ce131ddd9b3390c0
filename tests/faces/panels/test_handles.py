"""What all handles share, and what each shows: one picture, one to three controls, a sentence."""

from __future__ import annotations

import re
from itertools import pairwise, product
from types import SimpleNamespace

import pytest

from llmtrain_course.batch.formulas import batch_cost
from llmtrain_course.kit.panel import Handle
from llmtrain_course.kit.state import State
from llmtrain_course.measure.recorded import WIDTHS, recorded_step
from llmtrain_course.panels import HANDLES
from llmtrain_helpers.batch import critical_batch
from tests.faces.svg import pictures
from tests.panel_code import sentence_of

every_handle = pytest.mark.parametrize("name", HANDLES)


def area(html: str) -> list[str]:
    """The canvas of each picture."""
    return re.findall(r'<svg [^>]*viewBox="([^"]+)"', html)


# --- all of them


@every_handle
def test_a_handle_is_one_picture_and_at_most_three_controls(name: str) -> None:
    """Two that one mark moves to the side and up count as one."""
    handle = HANDLES[name]
    assert isinstance(handle, Handle)
    in_two_directions = len(re.findall(r'data-moves="\w+ \w+"', handle.render()))
    assert 1 <= len(handle.controls) - in_two_directions <= 3
    assert (len(handle.presets), handle.static_presets) == (1, ())
    html = handle.render()
    assert len(area(html)) == 1
    assert not re.findall("<(table|pre|details|h\\d)", html)
    assert sentence_of(html)
    assert re.fullmatch("[a-z_]+", name)
    for control in handle.controls.values():
        assert re.fullmatch(r"[A-Z].{5,}[.]", control.help), control.label
        assert control.stops or control.kind in ("flag", "choice")
        assert [control.read(stop) for stop in control.stops] == [*control.stops]
        assert not control.more


@every_handle
def test_every_stop_draws_on_the_same_area(name: str) -> None:
    """And no two neighbours look alike, within what the setting reaches."""
    handle = HANDLES[name]
    canvas = area(handle.render())
    for key, control in handle.controls.items():
        seen = set()
        for stop in control.stops or control.options or (False, True):
            values = {**handle.default, key: stop}
            if control.applies and not control.applies(handle.setting(values)):
                values |= {flag: True for flag, c in handle.controls.items() if c.kind == "flag"}
            answer = handle.answer(values)
            assert not answer.problem
            assert area(answer.html) == canvas
            last = control.reach(handle.setting(values)) if control.reach else control.most
            if control.kind != "number" or stop <= last:
                seen.add(answer.html)
        setting = handle.setting(handle.default)
        moves = control.applies(setting) and not (control.reach and control.reach(setting) == 1)
        assert len(seen) >= 2 or not moves, key


@every_handle
def test_what_is_written_between_two_stops_is_drawn_or_the_field_says_what_is(name: str) -> None:
    handle = HANDLES[name]
    for key, control in handle.controls.items():
        for low, high in [*pairwise(sorted(control.stops))][-3:]:
            between = (low + high) // 2 if control.whole else (low + high) / 2
            if between in (low, high):
                continue
            values = [{**handle.default, key: value} for value in (low, between, high)]
            first, drawn, last = (handle.answer(value).html for value in values)
            echo = control.field_state(between, handle.setting(values[1])).echo
            assert (drawn in (first, last) and first != last) == ("is the nearest" in echo)


def test_a_field_says_which_stop_is_drawn() -> None:
    handle = HANDLES["message"]
    state = State(handle)
    state.write("size", "500")
    assert state.html == handle.answer({"size": 512}, handle.default).html
    field = handle.controls["size"].field_state(500.0, handle.setting(handle.default))
    assert (field.text, field.echo) == ("500", "512 is the nearest")
    assert handle.controls["size"].field_state(512.0, handle.setting({})).echo == "= 512 MiB"


@every_handle
@pytest.mark.parametrize("written", ["a lot", "", "-1", "1e300", "nan", "[" * 7000, "\0"])
def test_what_is_no_value_is_refused_and_the_picture_stays(name: str, written: str) -> None:
    state = State(HANDLES[name])
    before = state.html
    for key, control in state.panel.controls.items():
        if written == "-1" and control.kind == "number" and control.least <= -1:
            continue
        state.write(key, written)
        assert state.html == before
        assert state.panel.controls[key].label in state.problem
        state.write(key, state.panel.default[key])
        assert (state.problem, state.html) == ("", before)


@every_handle
def test_where_only_text_can_be_shown_there_are_the_pictures_words(name: str) -> None:
    handle = HANDLES[name]
    [picture] = pictures(handle.render())
    assert handle.words == f"{picture.words} {sentence_of(handle.render())}"
    assert "<" not in handle.words


VAGUE = re.compile(
    r"\b(nearly|hardly|almost|roughly|about|near|close|(?<!so )far|most|much|few|little|twice|half|"
    r"(a|one|two) (third|quarter|fifth|tenth)s?)\b"
)
"""Words that claim something of a number, wherever a slider stands."""

MEASURED = {
    "attention_square": ["as most papers count", "at the most"],
    "batch_cost": ["Twice the batch would take"],
    "message": ["half their best rate"],
    "month": ["GB are missing"],
    "time_line": ["too few tokens to hide them"],
}
"""What may be said with such a word, by the handle: its number is compared on the spot."""


@every_handle
def test_a_sentence_gives_its_numbers_and_no_opinion_of_them(name: str) -> None:
    """At every stop: what's "nearly half" at one of them isn't at the next."""
    handle = HANDLES[name]
    stops = [it.stops or it.options or (False, True) for it in handle.controls.values()]
    settings = [*product(*stops)]
    for values in settings[:: 1 + len(settings) // 300]:
        sentence = sentence_of(handle.answer(dict(zip(handle.controls, values, strict=True))).html)
        for words in MEASURED.get(name, []):
            sentence = sentence.replace(words, "")
        assert not VAGUE.search(sentence.lower()), (values, sentence)


def test_products_are_as_fast_as_the_sentence_says() -> None:
    """A wide GPT's products are larger than the one that gave the peak, and still slower."""
    for width in WIDTHS:
        step = recorded_step(width)
        sentence = sentence_of(HANDLES["predicted_step"].render(measured=True, hidden_size=width))
        assert f"run at {100 * step.ideal / step.products:.0f}% of the peak" in sentence


# --- the ring


@pytest.mark.parametrize(
    ("gpus", "turn", "beginning"),
    [
        (8, 0, "Each GPU has its own gradients, cut into 8 pieces. By the end, each GPU will have"),
        (8, 7, "Each GPU now owns one finished piece, the sum over all GPUs. GPU 1 has sent 14 GB"),
        (
            8,
            8,
            "The finished 2 GB pieces are passed round, without any more adding. GPU 1 has sent",
        ),
        (8, 14, "Every GPU has every finished piece. GPU 1 has sent 28 GB of 28 GB."),
        (2, 2, "Every GPU has every finished piece. GPU 1 has sent 16 GB of 16 GB."),
        (64, 126, "Every GPU has every finished piece. GPU 1 has sent 31.5 GB of 31.5 GB."),
        (5, 126, "Every GPU has every finished piece. GPU 1 has sent 25.6 GB of 25.6 GB."),
    ],
)
def test_the_ring_says_what_a_turn_does(gpus: int, turn: int, beginning: str) -> None:
    assert sentence_of(HANDLES["ring"].render(gpus=gpus, turn=turn)).startswith(beginning)


def test_the_ring_draws_all_pieces_of_eight_gpus_and_one_of_more() -> None:
    gpus, turn = 8, 3
    [eight] = pictures(HANDLES["ring"].render(gpus=gpus, turn=turn))
    titles = [box.words for box in eight.boxes]
    pieces = [x for x in titles if x.startswith("GPU ") and x.endswith(f"of {gpus} summed")]
    assert len({x.split(":")[0] for x in pieces}) == gpus * gpus
    moving = [x for x in titles if x.startswith("piece ") and ", from GPU " in x]
    assert len({*moving}) == gpus
    furthest = [x for x in pieces if f": {turn + 1} of" in x]
    assert len(furthest) == gpus
    html = HANDLES["ring"].render(gpus=64, turn=turn)
    [many] = pictures(html)
    assert "drawn: the first of 64 pieces" in many.texts
    assert sum("piece 1, just in" in box.words for box in many.boxes) == 1
    assert len(html) < 40_000


def test_before_the_first_turn_nothing_moves() -> None:
    start = HANDLES["ring"].render(gpus=8, turn=0)
    assert "from GPU" not in start
    assert "GPU 1 has sent nothing" in start


# --- the square


def test_the_square_counts_pairs_as_the_formula_does() -> None:
    square = HANDLES["attention_square"]
    assert sentence_of(square.render(causal=True)).startswith(
        "136 of 256 pairs are multiplied: 53%."
    )
    everything = sentence_of(square.render(causal=False))
    assert everything.startswith("256 of 256 pairs: every token with every token")
    windowed = sentence_of(square.render(causal=True, window=4))
    assert windowed.startswith("58 of 256 pairs are multiplied: 23%. A token sees up to 4 tokens")
    assert sentence_of(square.render(causal=False, window=4)) == everything
    everything = square.render(causal=True, window=32)
    assert sentence_of(everything) == sentence_of(square.render(causal=True))


@pytest.mark.parametrize(
    ("tokens", "window", "filled", "hollow"), [(16, 0, 136, 120), (4, 0, 10, 6), (32, 5, 150, 874)]
)
def test_the_square_fills_the_pairs_that_count(
    tokens: int, window: int, filled: int, hollow: int
) -> None:
    html = HANDLES["attention_square"].render(causal=True, tokens=tokens, window=window)
    [picture] = pictures(html)
    assert [len(path.pieces) for path in picture.of_kind("path")] == [filled, hollow]


def test_twice_the_tokens_are_drawn_on_four_times_the_area() -> None:
    square = HANDLES["attention_square"]

    def side(tokens: int) -> float:
        [picture] = pictures(square.render(tokens=tokens, causal=False))
        [path] = picture.of_kind("path")
        assert len({x.left for x in path.pieces}) == len({x.top for x in path.pieces}) == tokens
        pitch = path.pieces[1].left - path.pieces[0].left
        return path.width - path.pieces[0].width + max(pitch, path.pieces[0].width)

    assert side(32) / side(16) == pytest.approx(2, rel=0.02)


# --- the step on four GPUs, and the batch


@pytest.mark.parametrize(
    ("stages", "micro", "ticks", "waits"),
    [(1, 1, 96, 0), (1, 4, 60, 0), (2, 2, 90, 20), (4, 1, 114, 16), (4, 2, 99, 27)],
)
def test_the_same_work_takes_its_time_and_its_waiting(stages, micro, ticks, waits) -> None:
    """16 passes of (1 + 1) sequences' time on 4 stages wait for 3 turns more."""
    sentence = sentence_of(HANDLES["four_gpus"].render(stages=stages, micro_batch=micro, now=0))
    assert f"The passes need {ticks} ticks" in sentence
    assert ("no GPU waits" if not waits else f"a GPU waits for {waits}%") in sentence


def test_the_step_ends_with_the_average_and_the_update() -> None:
    four = HANDLES["four_gpus"]
    assert "average their gradients, not their weights" in sentence_of(four.render(now=99))
    assert "updated its weights in the same way" in sentence_of(four.render(now=120))
    assert "average" not in sentence_of(four.render(stages=4, now=114))
    now = four.controls["now"]
    assert len(now.stops) < 20  # Play takes less than 14 s
    for stages, micro in product((1, 2, 4), (1, 2, 4)):
        setting = {"stages": stages, "micro_batch": micro}
        end = now.reach(SimpleNamespace(**setting))
        assert end in now.stops
        assert "updated its weights" in sentence_of(four.render(**setting, now=end))


def test_the_tutorials_slip_makes_another_batch() -> None:
    epoch = HANDLES["epoch"]
    assert sentence_of(epoch.render()).startswith("100 updates and 200 passes in an epoch.")
    slip = sentence_of(epoch.render(micro_batch=10))
    assert slip.startswith("50 updates and 100 passes")
    assert "activations of 10 samples" in slip


def test_a_split_that_leaves_gpus_over_is_shown() -> None:
    split = HANDLES["gpu_split"]
    assert sentence_of(split.render(pipeline=3)) == (
        "1 replica of 12 GPUs. 4 GPUs of 16 have nothing to do."
    )
    assert "A replica needs 32 GPUs, but there are only 16." in sentence_of(split.render(tensor=16))
    assert "so they use the network" in sentence_of(split.render(tensor=16, gpus=32))


def test_the_loss_decides_whether_a_batch_is_large() -> None:
    cost = HANDLES["batch_cost"]
    assert "3.6× the critical one" in sentence_of(cost.render())
    assert "11% fewer updates and 78% more tokens" in sentence_of(cost.render())
    late = sentence_of(cost.render(loss=2))
    assert "0.52× the critical one" in late
    assert "33% fewer updates and 34% more tokens" in late


def test_twice_the_batch_costs_what_the_next_stop_shows() -> None:
    """At every loss, and at every stop that has a next one: they double."""
    handle = HANDLES["batch_cost"]
    stops = handle.controls["batch"].stops
    for loss in handle.controls["loss"].stops:
        for batch, twice in pairwise(stops):
            now, then = (batch_cost(x, critical_batch(loss)) for x in (batch, twice))
            fewer, more = 1 - then.updates / now.updates, then.samples / now.samples - 1
            sentence = f"{100 * fewer:.0f}% fewer updates and {100 * more:.0f}% more tokens."
            assert sentence_of(handle.render(batch=batch, loss=loss)).endswith(sentence)
