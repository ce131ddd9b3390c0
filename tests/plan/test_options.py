"""The one list of a plan's options: what a signature, a docstring and a run make of it."""

import re
from dataclasses import fields
from inspect import signature
from typing import Any

import pytest

from llmtrain_helpers import best_split, plan_run, sweep
from llmtrain_helpers.plan.options import OPTIONS, Changes, Options
from llmtrain_helpers.plan.run import Run
from tests.plan.cases import RUN, plan_of


def test_the_list_has_the_fields_of_a_run_and_two_ways_to_write_some_of_them() -> None:
    names = {item.name for item in fields(Run) if item.init}
    assert OPTIONS.keys() == names | {"sequence_length", "shard"}
    assert Changes.__annotations__.keys() - OPTIONS.keys() == {"method"}


def test_a_signature_shows_every_option_with_the_default_that_it_gets() -> None:
    parameters = signature(plan_run).parameters
    assert [*parameters][6:] == [*Options.__annotations__]
    assert {*parameters} == {*OPTIONS}
    inputs = plan_run(**{name: RUN[name] for name in [*parameters][:6]}).inputs
    given = {name: parameters[name].default for name in [*parameters][6:] if name in inputs}
    assert {x: inputs[x] for x in given} == given | {"zero_stage": 0, "sharding": "zero"}


def test_a_docstring_explains_every_argument_once() -> None:
    names = re.findall(r"^    (\w+) {2,}\S", plan_run.__doc__ or "", re.M)
    assert names == [*signature(plan_run).parameters]
    assert all(len(line) < 100 for line in (plan_run.__doc__ or "").splitlines())


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if option.choices])
def test_a_run_takes_just_the_choices_of_the_list(name: str) -> None:
    for choice in OPTIONS[name].choices:
        others = {"optimizer": {"global_batch_size": 64}}
        others |= {key: {"zero_stage": 3} for key in ("sharding", "offload")}
        assert plan_of(**{name: choice, **others.get(name, {})}).inputs.get(name, choice) == choice
    with pytest.raises(ValueError, match=f"^{name}='nothing' is unknown") as refusal:
        plan_of(**{name: "nothing"})
    choices = str(refusal.value).partition("Known: ")[2].split(", ")
    assert sorted(choices) == sorted(OPTIONS[name].choices)


@pytest.mark.parametrize("caller", [plan_run, best_split, sweep, plan_of().replace])
def test_a_misspelt_name_is_refused_and_the_nearest_offered(caller: Any) -> None:
    run: dict[str, Any] = {} if caller == plan_of().replace else RUN
    with pytest.raises(TypeError, match=r"argument 'uneven_stage'\. Did you mean 'uneven_stages'"):
        caller(**run, uneven_stage=True)
    with pytest.raises(TypeError, match=r"argument 'xyzzy'$"):
        caller(**run, xyzzy=True)
