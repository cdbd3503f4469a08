from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leapmodel.errors import DataError
from leapmodel.hits import (
    compare_predictions,
    compare_runs,
    count_hits,
    count_hits_by_position,
)
from leapmodel.predictions import Predictions
from leapmodel.trace import Trace
from tests.conftest import disturbed, random_trace


def trace_of(actions: dict[str, list[str | None]], gen_s: float = 1.0) -> Trace:
    rows = [
        {"task": task, "segment": 0, "step": i, "gen_s": gen_s, "action": action}
        for task, sequence in actions.items()
        for i, action in enumerate(sequence)
    ]
    return Trace.from_frame(pd.DataFrame(rows))


def test_a_step_is_known_while_all_earlier_actions_of_the_task_agree():
    target = trace_of({"a": ["x({})", "y({})", "z({})"], "b": ["x({})"]})
    draft = trace_of({"a": ["x({})", "w({})", "z({})"], "b": ["x({})"]}, gen_s=0.25)
    compared = compare_runs(target, draft)
    assert compared.steps.known.tolist() == [[True, True, False, True]]
    assert compared.steps.hit.tolist() == [[True, False, False, True]]
    assert compared.steps.coverage == 0.75
    assert compared.draft_s.tolist() == [0.5, 0.25]
    assert compared.target_s.tolist() == [2.0, 1.0]


def test_null_matches_nothing_not_even_null():
    target = trace_of({"a": [None, "x({})"]})
    compared = compare_runs(target, trace_of({"a": [None, "x({})"]}))
    assert compared.steps.known.tolist() == [[True, False]]
    assert compared.steps.hit.tolist() == [[False, False]]
    assert compared.steps.invalid.tolist() == [[True, False]]


def test_what_the_draft_never_reached_is_unknown_not_a_miss():
    target = trace_of({"a": ["x({})", "y({})", "z({})"], "only here": ["x({})"]})
    compared = compare_runs(target, trace_of({"a": ["x({})", "y({})"]}))
    assert compared.steps.known.tolist() == [[True, True, False, False]]
    assert compared.paired_tasks == 1


def test_a_wrong_reply_is_told_from_a_wrong_call():
    target = trace_of({"a": ["x({})"], "b": ["x({})"], "c": ["<respond/>"]})
    draft = trace_of({"a": ["<respond/>"], "b": ["y({})"], "c": ["<respond/>"]})
    steps = compare_runs(target, draft).steps
    assert steps.wrong_end.tolist() == [[True, False, False]]


def test_runs_without_a_common_task_are_refused():
    with pytest.raises(DataError, match=r"expected tasks of the trace, such as 'a', found others"):
        compare_runs(trace_of({"a": ["x({})"]}), trace_of({"b": ["x({})"]}))


def test_runs_without_actions_are_refused():
    with pytest.raises(DataError, match="expected actions to compare, found none"):
        compare_runs(trace_of({"a": [None]}), trace_of({"a": ["x({})"]}))


def test_known_steps_equal_a_walk_in_plain_python(rng: np.random.Generator):
    target = random_trace(rng, 40, runs=2)
    draft = disturbed(target, rng, share=0.2)
    compared = compare_runs(target, draft)
    other = {(row.task, row.run, row.step): row.action for row in draft.frame.itertuples()}
    open_runs: dict[tuple[str, int], bool] = {}
    for i, row in enumerate(target.frame.itertuples()):
        known = open_runs.get((row.task, row.run), True)
        hit = known and other[row.task, row.run, row.step] == row.action
        open_runs[row.task, row.run] = hit
        assert compared.steps.known[0, i] == known
        assert compared.steps.hit[0, i] == hit


def test_predictions_give_hits_misses_invalid_and_unknown():
    target = trace_of({"a": ["x({})", "y({})", "<respond/>", "z({})"]})
    predictions = Predictions.from_frame(
        pd.DataFrame({"task": "a", "step": [0, 1, 2], "action": ["x({})", None, "y({})"]})
    )
    steps = compare_predictions(target, predictions)
    assert steps.known.tolist() == [[True, True, True, False]]
    assert steps.hit.tolist() == [[True, False, False, False]]
    assert steps.invalid.tolist() == [[False, True, False, False]]


def test_counts_leave_last_steps_apart(rng: np.random.Generator):
    target = random_trace(rng, 12, runs=2)
    compared = compare_runs(target, disturbed(target, rng, share=0.3))
    counts = count_hits(target, compared.steps)
    at_last = count_hits(target, compared.steps, last=True)
    assert (counts.hits + at_last.hits).sum() == compared.steps.hit.sum()
    assert (counts.known + at_last.known).sum() == compared.steps.known.sum()
    assert counts.known.shape == (12, 1)
    is_last = target.segments.remaining == 1
    first = (target.frame["task"] == target.task_names[0]).to_numpy()
    assert counts.known[0, 0] == compared.steps.known[0][first & ~is_last].sum()
    assert at_last.known[0, 0] == compared.steps.known[0][first & is_last].sum()


def test_a_wrong_boundary_tool_stops_proposing():
    target = trace_of({"a": ["x({})", "y({})", "rm({})"]}).with_boundary_tools(["rm"])
    draft = trace_of({"a": ["rm({})", "y({})", "rm({})"]})
    assert compare_runs(target, draft).steps.wrong_end.tolist() == [[True, False, False]]


def test_counts_by_position_need_a_run_of_hits_before(rng: np.random.Generator):
    target = random_trace(rng, 60)
    steps = compare_runs(target, disturbed(target, rng, share=0.15)).steps
    counts = count_hits_by_position(target, steps, 3, at_least=1)
    position = target.segments.positions
    for j in (1, 2, 3):
        hits = known = 0
        for i in range(target.n_steps):
            before = range(i - j + 1, i)
            is_last = target.segments.remaining[i] == 1
            if not is_last and position[i] >= j - 1 and all(steps.hit[0, m] for m in before):
                known += steps.known[0, i]
                hits += steps.hit[0, i]
        assert counts.hits[:, j - 1].sum() == hits
        assert counts.known[:, j - 1].sum() == known


def test_rare_positions_share_the_last_well_known_acceptance(rng: np.random.Generator):
    target = random_trace(rng, 10)
    steps = compare_runs(target, disturbed(target, rng, share=0.1)).steps
    counts = count_hits_by_position(target, steps, 8, at_least=10_000)
    assert np.array_equal(counts.acceptance, np.full(8, counts.acceptance[0]))
