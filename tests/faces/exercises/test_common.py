"""What the exercises of all chapters share, and the formulas that lead to the keys."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from html import unescape
from itertools import combinations
from math import log

import numpy as np
import pytest

from llmtrain_course import exercises
from llmtrain_course.exercises import EXERCISES, PREDICTIONS, check, predict, progress
from llmtrain_course.kit.exercise import (
    NEAR,
    UNITS,
    Exercise,
    Function,
    MultipleChoice,
    Numeric,
    Prediction,
    Question,
    Verdict,
    grade,
    read_as,
    solution_of,
)
from llmtrain_course.kit.formula import evaluate
from llmtrain_helpers import units
from llmtrain_helpers.checks import show
from tests.faces.kernel import restart
from tests.paths import NOTEBOOKS
from tests.printed import printed


def test_an_unknown_exercise_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="id='1a' is unknown"):
        check("1a", 3)


@pytest.mark.parametrize("id", EXERCISES)
def test_nothing_answered_yet(id: str) -> None:
    verdict = check(id, None)
    assert verdict.ok is None
    assert not verdict
    assert repr(verdict) == f"○ {id}: {EXERCISES[id].stub}"


def numbers(name: str, exercise: Exercise) -> Iterator[tuple[str, Numeric]]:
    """The numbers that an exercise asks for: itself, or those that it is made of."""
    if isinstance(exercise, Numeric):
        yield name, exercise
    for question in exercise.followups:
        yield from numbers(f"{name}.followups", question.exercise)
    if is_dataclass(exercise):
        for field in fields(exercise):
            part = getattr(exercise, field.name)
            if isinstance(part, Exercise):
                yield from numbers(f"{name}.{field.name}", part)


ASKED_AGAIN = [
    "start_here-b",
    "start_here-d",
    "flops-c",
    "batch-b",
    "precision-c",
    "communication-g",
    "parallelism-a",
    "parallelism-b",
    "plan-c",
    "measure-b",
    "finetune-b",
]
"""Choices that come back as another question."""

NUMERIC = dict(question for item in EXERCISES.items() for question in numbers(*item))


def verdict_on(id: str, number: object) -> Verdict:
    """The verdict on a number, at the first try."""
    return grade(id, number, NUMERIC[id], 0)


def test_numbers_inside_other_exercises_are_checked_as_well() -> None:
    inner = {"flops-c.mfu", "duration-b.days", *(f"{id}.followups" for id in ASKED_AGAIN)}
    assert {id for id in NUMERIC if "." in id} == inner
    assert {*NUMERIC} - inner < {*EXERCISES}


@pytest.mark.parametrize("id", NUMERIC)
def test_a_numeric_key_is_right_and_one_per_cent_off_is_wrong(id: str) -> None:
    key = NUMERIC[id].key()
    assert NUMERIC[id].tolerance <= 0.005
    assert verdict_on(id, key).ok is True
    assert "✓" in repr(verdict_on(id, key))
    for off in (0.9, 0.99, 1.01, 1.1):
        assert verdict_on(id, key * off).ok is False


@pytest.mark.parametrize("id", NUMERIC)
def test_what_is_printed_of_the_right_number_is_right(id: str) -> None:
    exercise, key = NUMERIC[id], NUMERIC[id].key()
    for text in printed(key, exercise.asked):
        number = units.read_as(text, exercise.asked).number
        if abs(number - key) <= exercise.tolerance * key:
            assert verdict_on(id, text).ok, text
        else:  # in fewer digits than are asked
            assert verdict_on(id, text).text.endswith(verdict_on(id, number).text), text


def test_a_unit_that_looks_like_a_power_of_ten_is_no_wrong_answer() -> None:
    assert check("activations-a", "185220464640 B").text == "Right, 185 GB."
    assert (
        check("finetune-a", "208 m").text
        == "You wrote 208 m, that's 3.47 hours. Right, 3.47 hours."
    )
    assert check("budget-a", "10.9B").ok


@pytest.mark.parametrize("id", [id for id, one in PREDICTIONS.items() if not one.options])
def test_a_guess_may_be_written_as_its_truth_is_printed(id: str) -> None:
    prediction = PREDICTIONS[id]
    for text, value in printed(prediction.truth(), prediction.asked).items():
        assert prediction._read(text).number == pytest.approx(value, rel=0.0501), text


@pytest.mark.parametrize("name", UNITS)
def test_an_entry_of_a_design_takes_what_is_printed_in_its_unit(name: str) -> None:
    for number in (2, 60, 4096, 34e9):
        for text, value in printed(number, UNITS[name]).items():
            assert read_as(name, text) == pytest.approx(value, rel=0.0501), text


@pytest.mark.parametrize("id", NUMERIC)
def test_each_slip_is_named_exactly_and_in_three_digits(id: str) -> None:
    exercise = NUMERIC[id]
    for value, mistake in exercise.wrong_answers():
        assert verdict_on(id, value).text == mistake
        verdict = verdict_on(id, float(f"{value:.2e}"))
        assert verdict.text == mistake or verdict.ok or verdict.text.startswith("Almost")


@pytest.mark.parametrize("id", NUMERIC)
def test_no_slip_lies_near_the_key_or_another_slip(id: str) -> None:
    exercise, key = NUMERIC[id], NUMERIC[id].key()

    def margin(value: float, share: float) -> float:
        return share * value if exercise.tolerance else min(0.5, NEAR * value)

    near = min(NEAR, exercise.tolerance or NEAR)
    mistakes = exercise.wrong_answers()
    for value, _ in mistakes:
        assert abs(value - key) > margin(key, exercise.tolerance) + margin(value, near)
    for (one, reply), (other, other_reply) in combinations(mistakes, 2):
        gap = abs(one - other)
        assert reply == other_reply or gap > margin(one, near) + margin(other, near)


@pytest.mark.parametrize("id", NUMERIC)
def test_what_is_near_a_slip_is_not_taken_for_it(id: str) -> None:
    mistakes = NUMERIC[id].wrong_answers()
    for value, mistake in mistakes:
        for off in (0.9979, 1.0021):
            same = (x for x, reply in mistakes if reply == mistake)
            if not any(abs(value * off / x - 1) < 0.002 for x in same):
                assert verdict_on(id, value * off).text != mistake


def test_where_two_slips_fit_none_is_asserted() -> None:
    exercise = Numeric(lambda: 100, str, "h.", common_mistakes={120: "one.", 120.1: "other."})
    assert grade("x", 120.05, exercise, 0).text == "Too high. h."
    assert exercise.grade(119.9) == (False, "one.")


@pytest.mark.parametrize("id", [name for name in NUMERIC if not name.startswith("start_here-")])
def test_gib_and_factors_of_two_are_named_only_where_they_make_sense(id: str) -> None:
    key = NUMERIC[id].key()
    gib = "GiB" in verdict_on(id, key * 1.073741824).text
    assert gib == (id == "activations-a")
    twice = "count something twice?" in verdict_on(id, 2 * key).text
    assert twice == (id == "measure-a")


@pytest.mark.parametrize("wrong", [2400, "24 * key", "T / P", "24 * (T - 0) / (24 * P)"])
def test_a_slip_is_a_wrong_formula_or_its_number(wrong: str | float) -> None:
    values = {"T": 4800, "P": 2}
    one = Numeric(lambda: 100, str, "h.", common_mistakes={wrong: "hours."}, values=values)
    assert one.wrong_answers() == [(2400, "hours.")]
    assert grade("x", 2400, one, 0).text == "hours."


@pytest.mark.parametrize(
    ("formula", "problem"),
    [
        ("8 * T *", "isn't a formula"),
        ("8 * Q", "uses the name Q, but it can only use T, P"),
        ("T.real", "contains T.real, which a formula can't use"),
        ("exit()", "contains exit(), which a formula can't use"),
        ("'T' * 3", "contains 'T', which a formula can't use"),
        ("T if P else 1", "which a formula can't use"),
        ("[T][0]", "which a formula can't use"),
        ("True", "contains True, which a formula can't use"),
        ("(" * 500 + "T" + ")" * 500, "isn't a formula"),
    ],
)
def test_a_formula_has_numbers_names_and_arithmetic_alone(formula: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        evaluate(formula, {"T": 3, "P": 2})


def test_a_formula_computes_as_python_does() -> None:
    values = {"T": 3.0, "P": 2.0}
    formula = "sqrt(T**2 + 16) - max(-T, P) / log(P) + ceil(T / P) * floor(T / P) - min(T, P)"
    assert evaluate(formula, values) == 5 - 2 / log(2) + 2 * 1 - 2


EXACT = Numeric(
    key=lambda: 18_437_658_624,
    unit=lambda number: f"{number:,} parameters",
    hint=("Which part is off?", "It is the tables.", "(V + s)h"),
    tolerance=0,
    common_mistakes={"key + 2 * 6144": "this includes the last LayerNorm."},
)


def verdict_for(answer: object, exercise: object = EXACT, tries: int = 0):
    return grade("x", answer, exercise, tries)


def test_an_exact_count_takes_what_rounds_to_it_and_a_rounding() -> None:
    key = EXACT.key()
    for answer in (key, 18437658624.000004, key + 0.4, np.float64(key)):
        assert verdict_for(answer).text == "Right, 18,437,658,624 parameters."
    for rounded in (18.44e9, 18.438e9, 18_437_700_000, "18.44B", "18,437,658,624"):
        assert verdict_for(rounded).ok is True
    for wrong in (18.4e9, 18.43e9, key + 1, key * 1.0005):
        assert verdict_for(wrong).ok is False
        assert verdict_for(wrong).text.startswith("Almost")
    assert "You've rounded it" in verdict_for(18.4e9).text
    assert "18,437,658,624" not in verdict_for(18.4e9).text
    assert verdict_for(key + 2 * 6144).text == "this includes the last LayerNorm."


def test_hints_come_in_steps() -> None:
    assert verdict_for(20e9).text == "Too high. Which part is off?"
    assert verdict_for(20e9, tries=1).text == "Too high. It is the tables."
    assert verdict_for(20e9, tries=7).text == "Too high. (V + s)h"


@dataclass(frozen=True)
class Wrong(Numeric):
    """A number that nobody gets right."""

    text: str = "Too low. <hint>"

    def grade(self, answer: object) -> tuple[bool, str]:
        return False, self.text


@pytest.mark.parametrize(
    ("text", "hint", "reply"),
    [
        ("Too low. <hint>", "first the work.", "Too low. First the work."),
        ("a part missing? <hint>", "an MFU does.", "a part missing? An MFU does."),
        ("Too low. <hint>", "s = 1024, 300e9 tokens.", "Too low. s = 1024, 300e9 tokens."),
        ("Too low. <hint>", "states / GPUs ≤ room", "Too low. states / GPUs ≤ room"),
        ("<hint>", "first the work.", "first the work."),
        ("said: <hint>", "first the work.", "said: first the work."),
        ("Too low. <hint>", "", "Too low."),
        ("right.", "first the work.", "right."),
    ],
)
def test_a_hint_after_a_full_stop_begins_with_a_capital(text, hint, reply) -> None:
    assert grade("x", 1, Wrong(lambda: 2, str, hint, text=text), 0).text == reply


@pytest.mark.parametrize("id", EXERCISES)
def test_no_hint_begins_with_a_small_word_behind_a_full_stop(id: str) -> None:
    for tries, hint in enumerate(filter(None, EXERCISES[id].hints())):
        reply = grade(id, 1, Wrong(lambda: 2, str, EXERCISES[id].hints()), tries).text
        assert reply.casefold() == f"Too low. {hint}".casefold()
        assert not re.match(r"Too low\. [a-z]+ [a-z]", reply)


@pytest.mark.parametrize("id", NUMERIC)
@pytest.mark.parametrize("bad", [0, -1, float("nan"), "34", [34], True, 10**400], ids=show)
def test_what_is_no_number_gets_a_sentence_and_no_traceback(id: str, bad) -> None:
    verdict = verdict_on(id, bad)
    assert verdict.ok is False
    assert len(repr(verdict)) < 200


class Hostile:
    """An answer that fails at whatever is done with it."""

    def __repr__(self) -> str:
        raise RuntimeError("x" * 5000)

    __getattr__ = __eq__ = __float__ = __bool__ = __call__ = __repr__


def test_what_is_no_number_is_named_by_its_kind() -> None:
    for odd, kind in ((object(), "an object"), (print, "a function"), ([3], "a list")):
        assert check("start_here-a", odd).text.startswith(
            f"That's {kind}. Give one number, such as 3"
        )
        assert check("parameters-layer", odd).text.startswith(
            f"That's {kind}, but the line should give"
        )
        assert (
            predict("start_here-guess", odd).text
            == f"That's {kind}. Give one number, such as 3 or 2.5."
        )


def test_an_answer_in_the_wrong_order_hears_which_comes_first() -> None:
    days = EXERCISES["duration-b"].key()
    for id, answer, words in (
        ("parameters-e", (8e9, "Llama-3.1-8B"), "Give the model first, then your number"),
        ("flops-c", ("sparse", 0.368), "The MFU goes first, then the mistake"),
        (
            "duration-b",
            (days, 415e12, 800e9),
            "Give the tokens first, then the rate, then the days.",
        ),
    ):
        assert check(id, answer).text.startswith(words)


def raising(**_: object) -> None:
    raise ValueError("x" * 5000)


ODD = [object(), [object()], (object(),) * 2, {"gpus": object()}, print]
ODD += [Hostile(), [], {}, np.zeros(3), lambda **_: Hostile(), raising, exit]


@pytest.mark.parametrize("id", EXERCISES)
@pytest.mark.parametrize("answer", ODD, ids=type)
def test_an_answer_may_be_anything_at_all(id: str, answer) -> None:
    """And no reply names an address or proposes an array."""
    verdict = check(id, answer)
    assert verdict.ok is False or answer is print  # which gives nothing
    assert len(repr(verdict)) < 400
    assert not re.search("0x|NumPy|unhashable", verdict.text)


@pytest.mark.parametrize("error", [GeneratorExit, SystemExit, StopIteration, RecursionError])
def test_a_function_that_raises_anything_is_wrong_and_told_so(error: type[BaseException]) -> None:
    def answer(**case: int) -> float:
        raise error

    [id, *_] = [id for id in EXERCISES if isinstance(EXERCISES[id], Function)]
    verdict = check(id, answer)
    assert verdict.ok is False
    assert f"it raised {error.__name__}()" in verdict.text


class Leaves:
    """An object that leaves wherever somebody looks at it."""

    def _leave(self, *about: object) -> None:
        raise GeneratorExit

    __repr__ = __str__ = __eq__ = __len__ = __getattr__ = __call__ = __float__ = _leave
    __class__ = property(_leave)  # type: ignore[assignment]
    __hash__ = object.__hash__


@pytest.mark.parametrize("id", [*EXERCISES, *PREDICTIONS])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], lambda x: (x, x), lambda x: {1: x}])
def test_an_answer_that_leaves_when_it_is_looked_at_gets_a_verdict(id: str, wrap) -> None:
    verdict = (check if id in EXERCISES else predict)(id, wrap(Leaves()))
    assert not verdict.ok
    assert re.search(r"\w.*\.", verdict.text)


def test_an_interrupt_of_a_learners_function_is_no_answer() -> None:
    def answer(**case: int) -> float:
        raise KeyboardInterrupt

    [id, *_] = [id for id in EXERCISES if isinstance(EXERCISES[id], Function)]
    with pytest.raises(KeyboardInterrupt):
        check(id, answer)


@pytest.mark.parametrize("id", [*EXERCISES, *PREDICTIONS])
@pytest.mark.parametrize("bad", [float("nan"), -1, 10**400, "nan", 1j], ids=show)
def test_a_refusal_names_what_the_learner_gave(id: str, bad: object) -> None:
    for answer in (bad, (bad, bad), (bad,) * 3, ("gpt2", bad)):
        verdict = (check if id in EXERCISES else predict)(id, answer)
        assert "text=" not in verdict.text


def test_another_order_of_operations_is_as_right() -> None:
    price = Function(
        key=lambda n, days: n * days * 24 * 2.5,
        cases=[{"n": 1024, "days": 34}, {"n": 16, "days": 200}],
        hint="",
    )
    assert verdict_for(lambda n, days: days * 24 * (n * 2.5), price).ok
    assert verdict_for(lambda n, days: days * 86400 * n * (2.5 / 3600), price).ok
    assert verdict_for(lambda n, days: days * n * 2.5, price).ok is False


def test_a_choice_is_judged_by_its_option_in_any_case() -> None:
    rate = MultipleChoice(lambda: "rate", {"rate": "right.", "count": "a count has no time."})
    assert verdict_for(" Rate ", rate).ok is True
    assert verdict_for("count", rate).text == "a count has no time."
    assert 'isn\'t one of the choices: "rate", "count"' in verdict_for("speed", rate).text
    assert verdict_for(3, rate).ok is False


# --- predictions and progress

GUESS = Prediction(lambda: 2.5, "Why it is so.", lambda days: f"{days:g} days")
CHOSEN = Prediction(lambda: "same", "Why.", options={"same": "Yes.", "more": "No."})


@pytest.mark.parametrize(
    ("guess", "reply"),
    [
        (25, "You said 25. It's 2.5 days, so you're 10× too high. Why it is so."),
        ("1", "You said 1. It's 2.5 days, so you're 2.5× too low. Why it is so."),
        (3, "You said 3. It's 2.5 days, so you're 20% too high. Why it is so."),
        (2.55, "You said 2.55. It's 2.5 days, so you're 2.0% too high. Why it is so."),
    ],
)
def test_a_guess_is_told_its_gap(guess: object, reply: str) -> None:
    assert GUESS.reveal(guess) == reply


@pytest.mark.parametrize("id", [id for id, it in PREDICTIONS.items() if not it.options])
@pytest.mark.parametrize("factor", [0.5, 0.87, 0.97, 1.03, 1.15, 1.9, 3])
def test_a_gap_is_a_number_unless_a_guess_is_as_good_as_exact(id: str, factor: float) -> None:
    """A lead of 1.3 isn't "very near" to one of 1.13: it's 15% too high."""
    guess = PREDICTIONS[id]
    truth = guess.truth()
    assert isinstance(truth, float)
    side = "too high" if factor > 1 else "too low"
    assert re.search(rf", so you're [\d.]+(%|×) {side}\. ", guess.reveal(factor * truth))


def test_a_chosen_belief_is_named() -> None:
    assert CHOSEN.reveal("MORE") == "You said 'more', but it's 'same'. No. Why."
    assert CHOSEN.reveal("same") == "You said 'same', and that's right. Yes. Why."


def test_nothing_is_told_before_a_guess_and_the_first_one_counts(monkeypatch) -> None:
    monkeypatch.setattr(exercises, "PREDICTIONS", {"start_here-x": GUESS})
    assert "2.5" not in repr(predict("start_here-x", None))
    assert predict("start_here-x", "nonsense").ok is None
    assert "You said 25" in repr(predict("start_here-x", 25))
    again = repr(predict("start_here-x", 2.5))
    assert "First you said 25, now you said 2.5. It's 2.5 days" in again
    with pytest.raises(ValueError, match="id='start_here-z' is unknown"):
        predict("start_here-z", 1)


@pytest.mark.parametrize("id", PREDICTIONS)
def test_a_guess_may_be_anything_at_all(id: str) -> None:
    for guess in (Hostile(), [], True, 10**400, float("nan"), -1, "7 bananas"):
        restart()
        assert len(repr(predict(id, guess))) < 700


def test_progress_is_a_line_a_chapter() -> None:
    assert "Nothing answered yet" in repr(progress())
    check("precision-a", EXERCISES["precision-a"].key())
    check("precision-b", "nonsense")
    check("precision-c", None)
    assert "✓" in repr(progress())
    assert "✗ precision-b" in repr(progress())
    assert "○ precision-c" in repr(progress())
    assert "1 of 5 exercises" in repr(progress())


# --- units of answers


DAYS = Numeric(
    lambda: 22.4,
    lambda days: f"{days:g} days",
    "h.",
    common_mistakes={"24 * key": "hours."},
    asked="days",
)


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ("22.4", "Right, 22.4 days."),
        ("22.4 days", "Right, 22.4 days."),
        ("538 hours", "You wrote 538 hours, that's 22.4 days. Right, 22.4 days."),
        ("600 h", "You wrote 600 h, that's 25 days. Too high. h."),
        (537.6, "hours."),
        ("22.4 GB", "'22.4 GB': these are GB; we asked for days."),
        ("22.4 bananas", "'22.4 bananas': 'bananas' isn't a unit we know; we asked for days."),
        ("112/5", "Right, 22.4 days."),
        ("2**10**9", "'2**10**9' isn't a number: write 7B, 300e9, 15T, 8k, 1,024 or 2.5."),
    ],
)
def test_an_answer_has_its_unit(answer: object, reply: str) -> None:
    assert verdict_for(answer, DAYS).text == reply


def test_where_no_unit_is_asked_none_is_left_out_silently() -> None:
    bare = Numeric(lambda: 22.4, str, "h.")
    assert verdict_for("22.4", bare).ok
    assert (
        verdict_for("22.4 days", bare).text
        == "'22.4 days': give the number alone, without its unit."
    )


def test_where_the_unit_is_the_question_nothing_is_converted() -> None:
    bytes_of_it = Numeric(lambda: 2**34, str, "h.", asked="bytes", converts=False)
    reply = verdict_for("16 GiB", bytes_of_it).text
    assert reply == "You've given GiB. Give bytes, without a unit."
    assert verdict_for(f"{2**34} bytes", bytes_of_it).ok


def test_a_number_in_two_digits_is_no_slip_that_lies_there() -> None:
    key = Numeric(lambda: 58.21, str, "h.", tolerance=3e-4, common_mistakes={57.96: "other."})
    assert verdict_for(58, key).text == "Almost. You've rounded it, so give one more digit."
    assert verdict_for(57.96, key).text == "other."


def test_entries_of_a_design_are_read_with_their_units_and_said_back() -> None:
    run = {"model": "Llama-3.1-8B", "days": "720 hours", "chip": "A100", "gpus": "40 GPUs"}
    reply = check("duration-d", run).text
    assert reply.startswith("days: you wrote 720 hours, that's 30 days. Right. At 25%")
    reply = check("duration-d", run | {"days": "30 GB"}).text
    assert reply == "days='30 GB': these are GB; we asked for days."


def test_a_guess_has_its_unit() -> None:
    guess = Prediction(lambda: 26, "Why.", lambda years: f"{years:g} years", asked="years")
    assert guess.reveal("24 months").startswith(
        "You wrote 24 months, that's 2 years. It's 26 years, so you're 13× too low"
    )
    assert guess.reveal("2 years").startswith("You said 2 years. It's 26 years")
    with pytest.raises(ValueError, match="these are GB; we asked for years"):
        guess.reveal("2 GB")
    per_cent = Prediction(lambda: 0.38, "Why.", asked="%")
    assert ["2.00" in per_cent.reveal(x) or "too high" in per_cent.reveal(x) for x in (2, "2%")]


# --- hints, and where the worked answer is


def test_a_named_slip_uses_up_no_hint() -> None:
    replies = [check("start_here-a", 22.65 * 24).text for _ in range(3)]
    assert len({*replies}) == 1
    replies = [check("start_here-a", answer).text for answer in (30, "30 GB", 22.65 * 24, 30, 30)]
    first, second = EXERCISES["start_here-a"].hints()
    assert first in replies[0]
    assert second in replies[3]
    assert replies[4] == "Too high. The worked answer is in solutions/00_start_here.ipynb."


@pytest.mark.parametrize("id", EXERCISES)
def test_the_last_hint_is_a_link_to_a_cell_that_there_is(id: str, monkeypatch, tmp_path) -> None:
    verdict = grade(id, 1, Wrong(lambda: 2, str, ("one.", "two.")), 2)
    assert verdict.hinted
    solution = solution_of(id)
    assert verdict.text == f"Too low. The worked answer is in {solution}."
    assert solution in repr(verdict)
    cells = json.loads((NOTEBOOKS / solution).read_text("utf-8"))["cells"]
    for folder, above in (("notebooks", ""), ("solutions", "../"), ("evidence", "../")):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        [link] = re.findall('<a href="(.*?)">the solutions</a>', html(verdict))
        address, _, cell = link.partition("#cell-id=")
        assert address == f"{above}{solution}"
        [text] = ["".join(each["source"]) for each in cells if each["id"] == cell]
        assert text.startswith(f"**{id}.**") or f'check("{id}"' in text
    assert '<a href="' not in html(grade(id, 1, Wrong(lambda: 2, str, "one."), 0))


def html(verdict: Verdict) -> str:
    return verdict._repr_mimebundle_()["text/html"]


def test_a_folder_that_is_gone_has_links_all_the_same(monkeypatch, tmp_path) -> None:
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path / "x")
    (tmp_path / "x").rmdir()
    assert 'href="solutions/03_duration' in html(
        grade("duration-a", 12, EXERCISES["duration-a"], 9)
    )


def test_what_a_learner_wrote_is_no_markup_in_a_verdict() -> None:
    markup = html(check("start_here-b", "<img src=x> solutions/00_start_here.ipynb"))
    assert "&lt;img" in markup
    assert "<img" not in markup


# --- a choice that was wrong


def test_a_wrong_choice_comes_back_as_another_question() -> None:
    first = check("start_here-b", "A")
    question = EXERCISES["start_here-b"].followups[0].text
    assert first.text.endswith(f"22.4 PFLOP/s. Here's a different question instead: {question}")
    parts = html(first).partition('<span class="asked">')  # the site leaves it to the form
    assert "22.4 PFLOP/s. " in parts[0]
    assert unescape(parts[2]).startswith("<br><b>Here's a different question instead:</b>")
    for option in "ACD":
        verdict = check("start_here-b", option)
        assert verdict.ok is False
        stands = f"The new question still stands: {question}"
        assert verdict.text == f"{EXERCISES['start_here-b'].grade(option)[1]} {stands}"
    verdict = check("start_here-b", "B")  # the right one, but it may have been tried
    assert verdict.ok is None
    assert verdict.text.startswith("Right this time: a day's work is a number of operations")
    assert verdict.text.endswith(f"The new question still stands: {question}")
    assert check("start_here-b", "E").text.endswith(f"The new question still stands: {question}")
    assert check("start_here-b", None).text.endswith(f"The new question still stands: {question}")
    assert (
        check("start_here-b", 1e19).text
        == "Too low. Multiply the rate by the seconds, and you get a count."
    )
    assert "in solutions/00_start_here.ipynb" in check("start_here-b", 1e19).text
    assert "stands" not in check("start_here-b", 32 * 350e12).text
    assert "one second of work" in check("start_here-b", 32 * 350e12).text
    assert check("start_here-b", "40.3 EFLOP").text == "Right, 40.3 EFLOP."
    assert "✓ start_here-b" in re.sub("\x1b.*?m", "", repr(progress()))


@pytest.mark.parametrize("id", ASKED_AGAIN)
def test_trying_every_option_never_ends_in_a_right_one(id: str) -> None:
    exercise, key = EXERCISES[id], EXERCISES[id].key()
    if id == "flops-c":  # a number, and a choice beside it
        options = [(key[0], mistake) for mistake in exercise.mistake.options]
    else:
        options = getattr(exercise, "options", None) or [*exercise.sizes]
    wrong_first = [option for option in options if option != key] + [key]
    assert not any(check(id, option) for option in [*wrong_first, *options])
    [question] = EXERCISES[id].followups
    assert check(id, question.exercise.key())


@pytest.mark.parametrize("id", ASKED_AGAIN)
def test_who_has_answered_the_later_question_is_right_when_all_is_run_anew(id: str) -> None:
    [question] = EXERCISES[id].followups
    assert check(id, question.exercise.key()).ok is True
    restart()
    assert check(id, EXERCISES[id].key()).ok is True


@pytest.mark.parametrize("id", EXERCISES)
def test_what_is_asked_at_last_is_no_choice(id: str) -> None:
    """Or trying would find it after all."""
    for question in EXERCISES[id].followups[-1:]:
        assert isinstance(question.exercise, Numeric)
        assert question.text.endswith("?")
        assert question.exercise.asked or question.exercise.tolerance == 0
    assert bool(EXERCISES[id].followups) == (id in ASKED_AGAIN)


def test_several_questions_come_one_after_the_other(monkeypatch) -> None:
    number = Numeric(lambda: 5, str, "h.")
    second = MultipleChoice(lambda: "x", {"x": "right.", "y": "no, y."})
    first = MultipleChoice(
        lambda: "a",
        {"a": "right.", "b": "no, b."},
        followups=[Question("X or y?", second), Question("How many?", number)],
    )
    monkeypatch.setattr(exercises, "EXERCISES", {"start_here-x": first})
    replies = [exercises.check("start_here-x", answer).text for answer in ("b", "y", "x", 4, 5)]
    assert replies[0] == "no, b. Here's a different question instead: X or y?"
    assert replies[1] == "no, y. Here's a different question instead: How many?"
    assert replies[2].endswith("The new question still stands: How many?")
    assert replies[3:] == ["Too low. h.", "Right, 5."]


# --- a function whose arguments have other names


def test_a_function_may_name_its_arguments_otherwise() -> None:
    price = Function(
        key=lambda n, days: n * days**2, cases=[{"n": 8, "days": 3}, {"n": 2, "days": 5}], hint=""
    )
    for right in (
        lambda gpus, time: gpus * time**2,
        lambda days, gpus: gpus * days**2,
        lambda n, days, more=0: n * days**2,
        lambda *each: each[0] * each[1] ** 2,
        lambda **each: each["n"] * each["days"] ** 2,
    ):
        assert verdict_for(right, price).ok, right
    assert verdict_for(lambda n: 1, price).text == "It takes n, but it should take n, days."
    assert verdict_for(lambda: 1, price).text == "It takes nothing, but it should take n, days."


def test_a_long_error_is_cut_between_words() -> None:
    def answer(n: int) -> float:
        raise TypeError("a word " * 40)

    reply = verdict_for(answer, Function(key=lambda n: n, cases=[{"n": 8}], hint="")).text
    assert reply.startswith("With n=8 it raised TypeError: a word a word")
    assert re.search(r" (a|word) …$", reply)


def test_where_there_are_no_hints_the_second_wrong_answer_gets_the_link() -> None:
    replies = [
        check("calendar-b", answer).text for answer in ("faster restarts", *2 * ["better nodes"])
    ]
    assert replies[0].endswith("in two ways. Which ones?")
    assert replies[1].endswith(
        "hardware for it. The worked answer is in solutions/10_calendar.ipynb."
    )
    assert replies[2] == replies[1]
    assert check("calendar-b", "faster writes").text.startswith("Right")


def test_who_is_right_may_look_at_the_other_choices() -> None:
    """Curiosity isn't answered with a second question."""
    restart()
    assert check("start_here-b", "A").turn == 1
    restart()
    assert check("start_here-b", "B").ok
    other = check("start_here-b", "A")
    assert other.ok is False
    assert other.turn == 0
    assert other.text.endswith("Your right answer still counts.")
