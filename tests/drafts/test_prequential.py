"""What holds for every draft."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leapmodel.compared_draft import draft_from_predictions
from leapmodel.drafts import DRAFTS, Episode, agreement, prequential, task_order
from leapmodel.errors import DataError
from leapmodel.predictor import predict
from leapmodel.trace import Trace
from tests.conftest import random_trace
from tests.drafts.agents import REPLY, call, proposals, trace_of

ACTIONS = st.sampled_from(
    [None, REPLY, "<terminate/>", "click 3", call("a"), call("b", x="é"), call("b", x="漢字 😀")]
    + [call("c", n=n) for n in range(3)]
    + [call("b", x=1) + "\n" + call("a")]
)
TASKS = st.lists(st.lists(ACTIONS, min_size=1, max_size=6), min_size=2, max_size=7)
every_draft = pytest.mark.parametrize("name", DRAFTS)


def some_action(tasks: list[list[str | None]]) -> bool:
    return any(action is not None for task in tasks for action in task)


@every_draft
@given(tasks=TASKS, other=st.lists(ACTIONS, min_size=1, max_size=6), data=st.data())
@settings(max_examples=60, deadline=None)
def test_later_tasks_never_change_an_earlier_prediction(
    name: str, tasks: list[list[str | None]], other: list[str | None], data: st.DataObject
):
    at = data.draw(st.integers(0, len(tasks) - 1))
    changed = [*tasks[:at], other, *tasks[at + 1 :]]
    permuted = [*tasks[:at], *data.draw(st.permutations(tasks[at:]))]
    if not (some_action(tasks) and some_action(changed)):
        return
    before = sum(len(task) for task in tasks[:at])
    expected = proposals(trace_of(tasks), DRAFTS[name]())[:before]
    assert proposals(trace_of(changed), DRAFTS[name]())[:before] == expected
    assert proposals(trace_of(permuted), DRAFTS[name]())[:before] == expected


@every_draft
@given(tasks=TASKS, data=st.data())
@settings(max_examples=60, deadline=None)
def test_later_steps_never_change_an_earlier_prediction(
    name: str, tasks: list[list[str | None]], data: st.DataObject
):
    """The label itself, above all: what a step did is not known when it is predicted."""
    last = tasks[-1]
    at = data.draw(st.integers(0, len(last) - 1))
    changed = [*tasks[:-1], [*last[:at], data.draw(ACTIONS), *data.draw(st.lists(ACTIONS))]]
    if not (some_action(tasks) and some_action(changed)):
        return
    known = sum(len(task) for task in tasks[:-1]) + at + 1
    expected = proposals(trace_of(tasks), DRAFTS[name]())[:known]
    assert proposals(trace_of(changed), DRAFTS[name]())[:known] == expected


@every_draft
def test_a_cyclic_agent_is_learned_after_one_task(name: str):
    task = [call("a", x=1), call("b", y="k"), call("c"), REPLY] * 3
    trace = trace_of([task] * 20)
    draft = DRAFTS[name]() if name != "macro" else type(DRAFTS[name]())(support=1)
    asked = proposals(trace, draft)
    assert asked[: len(task)] == [None] * len(task)
    assert asked[len(task) :] == task * 19


@every_draft
def test_a_random_agent_is_met_at_chance_level(name: str, rng: np.random.Generator):
    tools = [call(f"tool{n}") for n in range(4)]
    tasks = [[tools[at] for at in rng.integers(4, size=10)] for _ in range(300)]
    trace = trace_of(tasks)
    found = agreement(trace, prequential(trace, DRAFTS[name]()))
    rate = found.exact
    if name == "macro":  # it takes a few coincidences for macros, and is right by chance
        assert found.proposed.value < 0.2
        rate = found.precision
    assert rate.value == pytest.approx(0.25, abs=4 * rate.standard_error)
    assert rate.standard_error < 0.03


@every_draft
def test_the_seed_decides_the_order_and_all_else_is_determined(name: str, rng: np.random.Generator):
    trace = random_trace(rng, 40)
    first = prequential(trace, DRAFTS[name](), seed=1)
    assert first.metadata["order"] == "shuffled with seed 1"
    again = prequential(trace, DRAFTS[name](), seed=1)
    pd.testing.assert_series_equal(first.frame["action"], again.frame["action"])
    other = prequential(trace, DRAFTS[name](), seed=2)
    assert not first.frame["action"].equals(other.frame["action"])
    met_first = trace.task_codes == task_order(trace.n_tasks, 1)[0]
    assert first.frame["action"][met_first].isna().all()


@every_draft
def test_runs_of_a_task_do_not_teach_each_other(name: str):
    trace = trace_of([[call("a"), call("b"), REPLY]])
    run = trace.frame
    both = Trace.from_frame(pd.concat([run, run.assign(run=1), run.assign(task="other")]))
    asked = proposals(both, DRAFTS[name]())
    assert asked[:6] == [None] * 6
    if name != "macro":
        assert asked[6:] == [call("a"), call("b"), REPLY]


@every_draft
def test_odd_tasks(name: str):
    tasks = [[REPLY], [None], [call("ä", ö="ü")], ["<terminate/>"], [None, None, REPLY]] * 4
    trace = trace_of(tasks)
    found = agreement(trace, prequential(trace, DRAFTS[name]()))
    assert found.coverage == 1.0
    assert 0 <= found.exact.value <= found.name_only.value <= 1


@every_draft
def test_predictions_serve_as_any_drafts_do(name: str, rng: np.random.Generator):
    trace = random_trace(rng, 30, runs=2)
    predictions = prequential(trace, DRAFTS[name]())
    assert predictions.draft_names == [name]
    assert (predictions.frame["latency_s"] > 0).all()
    assert predictions.metadata["learning_s"] > 0
    predicted = predict(trace, draft_from_predictions(trace, predictions), [1, 3])
    assert predicted.draft_cost < 0.05
    assert predicted.draft.coverage == 1.0


def test_the_proxy_for_success_is_stated_and_gives_way_to_a_column():
    a = call("a")
    trace = trace_of([[a, REPLY], [a, a]])
    stated = prequential(trace, DRAFTS["memory"]()).metadata["success"]
    assert stated.startswith("a proxy: every segment ended on a reply")
    told = Trace(trace.frame.assign(success=[False, True, True, False]))
    assert prequential(told, DRAFTS["memory"]()).metadata["success"] == "column success"


@pytest.mark.parametrize(
    ("values", "well"),
    [
        ([True, False], False),
        ([None, True], True),
        ([0.2, 0.5], True),
        (["", "0.4"], False),
        ([np.nan, np.nan], False),
        ([1, None], True),
    ],
)
def test_the_last_known_value_says_how_a_run_went(values: list[object], well: bool):
    class Watching(type(DRAFTS["backoff"]())):  # type: ignore[misc]
        def finish_task(self, episodes: list[Episode]) -> None:
            assert [episode.went_well for episode in episodes] == [well]

    trace = trace_of([[call("a"), REPLY]])
    prequential(Trace(trace.frame.assign(reward=pd.Series(values, dtype=object))), Watching())


def test_time_grows_with_the_steps_alone():
    """A proposal in a long trace of ever new actions costs about what it does in a short one."""

    def mean_s(n_tasks: int) -> float:
        rng = np.random.default_rng(0)
        tasks = [
            [call(f"t{rng.integers(50)}", path=f"/{rng.integers(10**9)}") for _ in range(10)]
            for _ in range(n_tasks)
        ]
        predictions = prequential(trace_of(tasks), DRAFTS["memory"]())
        return float(predictions.frame["latency_s"].median())

    assert mean_s(600) < 5 * mean_s(100)


def test_a_trace_without_actions_is_refused():
    with pytest.raises(DataError, match="expected actions to predict, found none"):
        prequential(trace_of([[None], [None]]), DRAFTS["backoff"]())
