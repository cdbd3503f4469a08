from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapmodel.actions import same_action
from leapmodel.drafts import BackoffDraft, agreement, prequential, self_agreement
from leapmodel.drafts.agreement import plot_learning_curves
from leapmodel.drafts.rates import Rate
from leapmodel.predictions import Predictions
from leapmodel.trace import Trace
from tests.conftest import random_trace
from tests.drafts.agents import REPLY, call, trace_of


def test_exact_and_name_only_by_hand():
    trace = trace_of([[call("cd", to="x"), call("ls"), None, REPLY]])
    guesses = [call("cd", to="y"), call("ls"), None, call("ls")]
    predictions = Predictions.from_frame(
        trace.frame[["task", "step"]].assign(action=guesses, latency_s=[1e-6, 2e-6, 3e-6, 2e-6])
    )
    found = agreement(trace, predictions)
    assert (found.exact.value, found.name_only.value) == (0.25, 0.5)
    assert (found.proposed.value, found.precision.value) == (0.75, pytest.approx(1 / 3))
    assert found.mean_us == pytest.approx(2.0)
    assert np.isnan(found.exact.standard_error)  # one task says nothing of others
    assert [part.exact.value for part in found.positions] == [0, 1, 0, 0]


def test_a_step_without_a_prediction_is_unknown():
    trace = trace_of([[call("a"), call("b"), REPLY]])
    rows = trace.frame[["task", "step", "action"]].iloc[:1]
    found = agreement(trace, Predictions.from_frame(rows))
    assert (found.exact.value, found.coverage) == (1.0, pytest.approx(1 / 3))
    assert (found.mean_us, found.p95_us) == (None, None)
    assert "33% of the steps were predicted" in found.summary()


def test_several_repeats_are_averaged():
    trace = trace_of([[call("a"), REPLY]])
    rows = trace.frame[["task", "step", "action"]]
    both = pd.concat([rows.assign(repeat=0), rows.assign(repeat=1, action=call("z"))])
    assert agreement(trace, Predictions.from_frame(both)).exact.value == 0.5


def test_the_standard_error_is_that_of_task_means():
    """Tasks of equal length: the bootstrap of a mean, whose error is known."""
    rng = np.random.default_rng(0)
    tasks = [[call("a")] * 5 for _ in range(400)]
    trace = trace_of(tasks)
    hits = rng.random(400) < 0.3
    action = np.where(np.repeat(hits, 5), call("a"), call("b"))
    rows = trace.frame[["task", "step"]].assign(action=action)
    found = agreement(trace, Predictions.from_frame(rows)).exact
    assert found.standard_error == pytest.approx(hits.std() / 20, rel=0.05)


@pytest.mark.parametrize("seed", [None, 5])
def test_the_learning_curve_follows_the_order(seed: int | None):
    task = [call("a"), call("b"), REPLY]
    trace = trace_of([task] * 20)
    found = agreement(trace, prequential(trace, BackoffDraft(), seed=seed))
    assert [part.exact.value for part in found.learning_curve] == [0.5, *[1.0] * 9]
    assert [part.steps for part in found.learning_curve] == [6] * 10
    assert found.learning_curve[0].label == "tasks 1-2"


def test_parts_add_up(workload: Trace):
    found = agreement(workload, prequential(workload, BackoffDraft()))
    for parts in (found.positions, found.learning_curve):
        assert sum(part.steps for part in parts) == workload.n_steps
        hits = sum(part.steps * part.exact.value for part in parts)
        assert hits == pytest.approx(found.exact.value * workload.n_steps)


def test_what_an_agreement_shows(workload: Trace):
    found = agreement(workload, prequential(workload, BackoffDraft(), seed=1))
    assert found.summary().startswith("backoff: exact ")
    assert "shuffled with seed 1" in found.summary()
    frame = found.to_frame()
    assert frame["part"].tolist()[:2] == ["all", "position 1"]
    assert frame["exact_se"][0] > 0
    plain = found.to_dict()
    assert plain["exact"] == [found.exact.value, found.exact.standard_error]
    assert len(plain["learning_curve"]) == 10
    assert "<table" in found._repr_html_()
    assert found.plot().get_ylabel() == "exact agreement"
    axes = plot_learning_curves([found, found], ceiling=0.65)
    assert "target with itself" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_rates_are_written_with_their_error():
    nan = float("nan")
    assert [str(Rate(0.5, 0.02)), str(Rate(0.5, nan)), str(Rate(nan, nan))] == [
        *["50.0% ± 2.0%", "50.0%", "-"]
    ]
    assert Rate(0.5, nan).to_list() == [0.5, None]


def runs_of(tasks: list[list[list[str | None]]]) -> Trace:
    rows = [
        {"task": f"t{t}", "run": r, "segment": 0, "step": s, "gen_s": 1.0, "action": action}
        for t, runs in enumerate(tasks)
        for r, run in enumerate(runs)
        for s, action in enumerate(run)
    ]
    return Trace.from_frame(pd.DataFrame(rows))


def test_self_agreement_by_hand():
    a, b, c = call("a", x=1), call("a", x=2), call("c")
    found = self_agreement(runs_of([[[a, c, REPLY], [a, b, REPLY]], [[a, c], [b, c]], [[a]]]))
    assert found is not None
    # task 0: a = a, c != b; task 1: a != b, but by name
    assert (found.exact.value, found.name_only.value) == (
        pytest.approx(1 / 3),
        pytest.approx(2 / 3),
    )
    assert (found.comparisons, found.n_tasks) == (3, 2)
    assert found.by_step == ((2, 0.5, 1.0), (1, 0.0, 0.0))
    assert found.to_frame()["comparisons"].tolist() == [2, 1]
    assert "3 comparisons in 2 tasks" in found.summary()
    assert found.to_dict()["tasks"] == 2
    assert "<table" in found._repr_html_()


def test_self_agreement_needs_two_runs(workload: Trace):
    assert self_agreement(workload) is None


def test_a_deterministic_target_agrees_with_itself(rng: np.random.Generator):
    once = random_trace(rng, 20).frame
    found = self_agreement(Trace.from_frame(pd.concat([once, once.assign(run=1)])))
    assert found is not None
    assert found.exact == found.name_only == Rate(1.0, 0.0)


RUN = st.lists(st.sampled_from([None, "a", "b", REPLY]), min_size=1, max_size=4)


@given(st.lists(st.lists(RUN, min_size=2, max_size=5), min_size=1, max_size=4))
def test_self_agreement_against_all_pairs(tasks: list[list[list[str | None]]]):
    same, compared = 0.0, 0.0
    for runs in tasks:
        pairs = list(itertools.combinations(runs, 2))
        for first, second in pairs:
            for one, other in zip(first, second, strict=False):
                compared += 1 / len(pairs)
                same += same_action(one, other) / len(pairs)
                if not same_action(one, other):
                    break
    found = self_agreement(runs_of(tasks))
    assert found is not None
    assert found.exact.value == pytest.approx(same / compared)
