"""A draft known by measured rounds: its acceptance counted again by hand, and what follows."""

import numpy as np
import pytest

from leapmodel.configurations import configurations
from leapmodel.errors import DataError, UsageError
from leapmodel.measured_draft import (
    FEW_CALLS,
    _time_alone,
    draft_from_rounds,
    measured_slowdown,
)
from leapmodel.measurement import calls_by_position
from leapmodel.predictor import NOT_SLOWED, SLOWED, predict
from leapmodel.rounds import Rounds
from tests.conftest import random_trace
from tests.execution.simulated import TALKER, TalkBenchmark, simulate, slowed


def counted_by_hand(rounds, names, depth):
    """Count calls whose outcome is known, one round at a time."""
    hits, known = np.zeros((2, len(names), depth)), np.zeros((2, len(names), depth))
    steps = rounds.committed
    for row in rounds.frame.to_dict(orient="records"):
        own = steps[(steps["task"] == row["task"]) & (steps["run"] == row["run"])]
        segments = dict(zip(own["step"], own["segment"], strict=True))
        for j in range(len(row["proposals"])):
            if j > row["accepted"] or j >= row["committed"]:
                continue
            step = row["first_step"] + j
            last = int(segments.get(step + 1) != segments[step])
            known[last, names.index(row["task"]), j] += 1
            hits[last, names.index(row["task"]), j] += j < row["accepted"]
    return hits, known


@pytest.mark.parametrize("terminal", ["accepted", "probe"])
def test_calls_by_position(terminal):
    rounds = simulate(TalkBenchmark(terminal), TALKER, n_tasks=12, runs=2, depth=3).speculative
    names = rounds.task_names
    hits, known, calls = calls_by_position(rounds, names, 3)
    expected_hits, expected_known = counted_by_hand(rounds, names, 3)
    np.testing.assert_array_equal(hits, expected_hits)
    np.testing.assert_array_equal(known, expected_known)
    assert calls.sum() == len(rounds.proposals)


def test_a_prediction_from_the_rounds_gives_back_what_they_measured():
    rounds = simulate(TalkBenchmark(), TALKER, n_tasks=40, runs=3, depth=3, agreement=0.6)
    trace = rounds.sequential_trace()
    prediction = predict(trace, draft_from_rounds(trace, rounds), [3])
    frame = rounds.speculative.frame
    measured = frame["committed"].sum() / len(frame)
    assert prediction.commits[0] == pytest.approx(measured, abs=0.06)
    np.testing.assert_allclose(
        prediction.replay.hit_rates[0],
        [(frame["accepted"] >= j).mean() for j in (1, 2, 3)],
        atol=0.04,
    )
    assert prediction.call_s == pytest.approx(0.07)


def wider_is_slower(rounds: Rounds, factors: dict[int, float]) -> Rounds:
    """Rounds whose answers take so much longer, by how many were asked for at once."""
    by_round = rounds.frame["verifications"].map(lambda asked: factors.get(len(asked), 1.0))
    return slowed(rounds, by_round.to_numpy())


def test_the_rounds_tell_how_the_target_slows_down():
    rounds = simulate(n_tasks=60, runs=2, depth=3, agreement=0.6)
    trace = rounds.sequential_trace()
    assert draft_from_rounds(trace, rounds).slowdown == pytest.approx((1.0,) * 4)
    slower = wider_is_slower(rounds, {2: 1.1, 3: 1.2, 4: 1.5})
    draft = draft_from_rounds(trace, slower)
    assert draft.slowdown == pytest.approx((1.0, 1.1, 1.2, 1.5))
    measured = slower.speculative.frame["wait_s"].mean() / trace.gen_s.mean()
    prediction = predict(trace, draft, [3])
    assert prediction.wait_inflation[0] == pytest.approx(measured, rel=0.05)
    assert SLOWED in prediction.conditional_on
    free = predict(trace, draft, [3], slowdown=[1.0])
    assert free.wait_inflation[0] < prediction.wait_inflation[0] - 0.2


def test_what_one_request_takes_comes_from_wherever_it_is_known():
    rounds = simulate(n_tasks=60, runs=2, depth=3, agreement=0.6)
    trace = rounds.sequential_trace()
    slower = wider_is_slower(rounds, {2: 1.1, 3: 1.2, 4: 1.5})
    alone = draft_from_rounds(trace, slower.speculative).slowdown  # rounds of one verification
    assert alone == pytest.approx((1.0, 1.1, 1.2, 1.5))
    wide = slower.speculative.frame["verifications"].map(len) > 1
    kept = Rounds(slower.speculative.frame[wide].reset_index(drop=True), slower.metadata)
    assert _time_alone(kept, trace) == pytest.approx(_time_alone(rounds, None))
    assert _time_alone(kept, None) is None
    assert measured_slowdown([kept], None) == ()


def test_a_width_with_few_answers_takes_the_factor_of_the_one_before():
    rounds = wider_is_slower(simulate(n_tasks=60, runs=2, depth=3), {2: 1.2, 3: 1.4, 4: 1.6})
    frame = rounds.frame
    width = frame["verifications"].map(len)
    rare = (width == 3) & (frame["arm"] == "speculative")
    kept = rounds.where(~rare | (rare.cumsum() <= FEW_CALLS // 4))
    factors = measured_slowdown([kept.speculative], _time_alone(rounds, None))
    assert factors == pytest.approx((1.0, 1.2, 1.2, 1.6))


def test_widths_that_a_small_pilot_did_not_see_are_not_said_to_be_timed():
    rounds = wider_is_slower(simulate(n_tasks=60, runs=2, depth=3), {2: 1.2, 3: 1.4, 4: 1.6})
    frame = rounds.frame
    widest = (frame["verifications"].map(len) == 4) & (frame["arm"] == "speculative")
    kept = rounds.where(~widest | (widest.cumsum() <= FEW_CALLS // 4))
    draft = draft_from_rounds(rounds.sequential_trace(), kept)
    assert draft.slowdown == pytest.approx((1.0, 1.2, 1.4))
    deep = predict(rounds.sequential_trace(), draft, [3])
    assert any("more than 3 requests at once, which were not timed" in w for w in deep.warnings)
    few = draft_from_rounds(rounds.sequential_trace(), simulate(n_tasks=2, depth=3))
    assert few.slowdown == ()
    assert NOT_SLOWED in predict(rounds.sequential_trace(), few, [3]).conditional_on


def test_tasks_of_another_benchmark_are_not_taken_for_those_of_the_trace():
    rounds = simulate(n_tasks=12, depth=2)
    trace = rounds.sequential_trace()
    about = {**rounds.metadata, "benchmark": {"name": "planning", "settings": {"seed": 7}}}
    with pytest.raises(UsageError, match="the rounds: was recorded with benchmark settings seed 7"):
        draft_from_rounds(trace, Rounds(rounds.frame, about))


def test_positions_with_few_calls_take_the_one_before():
    rounds = simulate(n_tasks=30, depth=5, agreement=0.1)
    draft = draft_from_rounds(rounds.sequential_trace(), rounds)
    counts = draft.acceptance.counts
    known = counted_by_hand(rounds.speculative, rounds.task_names, 5)[1][0].sum(axis=0)
    assert known[0] >= FEW_CALLS > known[2]
    assert counts.acceptance[4] == counts.acceptance[3] == counts.acceptance[2]
    assert np.isfinite(counts.acceptance).all()


def test_tasks_of_the_trace_are_resampled_with_it_and_others_apart(rng):
    rounds = simulate(n_tasks=12)
    own = draft_from_rounds(rounds.sequential_trace(), rounds)
    assert own.cost.same_tasks
    assert own.source == "the rounds of a measured run"
    other = draft_from_rounds(random_trace(rng), rounds)
    assert not other.cost.same_tasks
    assert not other.acceptance.estimate.same_tasks
    assert other.source.endswith("on other tasks")
    assert other.evidence_tasks == other.acceptance.counts.n_tasks >= 10
    assert predict(random_trace(rng), other, [1, 2]).speedup_ci95 is not None


def test_the_cost_can_be_stated():
    rounds = simulate(n_tasks=12)
    draft = draft_from_rounds(rounds.sequential_trace(), rounds, latency_s=0.5)
    assert draft.cost.seconds(1.0) == 0.5
    assert draft.conditional_on == ("the draft's seconds a call, as stated",)


def test_one_of_several_drafts():
    rounds = simulate(n_tasks=12)
    frame = rounds.frame.copy()
    frame["draft"] = np.where(frame["task"] < "plan-0256", "one", "two")
    both = Rounds.from_frame(frame)
    assert {c.draft for c, _ in configurations(both)} == {"one", "two"}
    trace = both.sequential_trace()
    assert draft_from_rounds(trace, both, draft="two").name == "two"
    with pytest.raises(UsageError, match="the drafts one, two: name one of them"):
        draft_from_rounds(trace, both)
    with pytest.raises(UsageError, match="the drafts one, two: not 'three'"):
        draft_from_rounds(trace, both, draft="three")


def test_what_can_not_be_evidence():
    trace = simulate(n_tasks=3).sequential_trace()
    with pytest.raises(DataError, match="expected a speculative arm, found none"):
        draft_from_rounds(trace, simulate(n_tasks=3, arms=["sequential"]))
    with pytest.raises(DataError, match="expected at least one step whose outcome is known"):
        draft_from_rounds(trace, simulate(n_tasks=3, depth=0))


def test_invalid_calls_are_said():
    rounds = simulate(n_tasks=12, agreement=0.0)
    draft = draft_from_rounds(rounds.sequential_trace(), rounds)
    assert "gave no usable proposal" in draft.warnings[0]
