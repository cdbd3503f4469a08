"""Predicted against measured: by hand, in closed form, and identities that always hold."""

import json

import matplotlib.figure
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leapmodel.benchmarks import PlanningBenchmark
from leapmodel.bootstrap import percentile_interval, resampled_sums
from leapmodel.compared_draft import draft_from_predictions
from leapmodel.errors import DataError, UsageError
from leapmodel.measurement import measure
from leapmodel.predictions import Predictions
from leapmodel.predictor import predict
from leapmodel.replay import exact_replay
from leapmodel.rounds import Rounds
from leapmodel.trace import Trace
from leapmodel.validation import validate
from tests.execution.simulated import TALKER, TalkBenchmark, simulate, slowed

STEADY = {"tokens": (40, 40), "residual_s": 0.0, "follow_gold": True}
"""Steps of one second, no overhead, and the plans of the benchmark."""


def predictions_of(rounds, share=1.0, latency_s=0.07):
    """Return predictions that are right on a share of the sequential steps."""
    steps = rounds.sequential.committed
    right = np.random.default_rng(0).random(len(steps)) < share
    return Predictions.from_frame(
        pd.DataFrame(
            {
                "task": steps["task"],
                "run": steps["run"],
                "step": steps["step"],
                "draft": "scripted draft",
                "action": np.where(right, steps["action"], "Teleport"),
                "latency_s": latency_s,
            }
        )
    )


def test_a_perfect_draft_on_steady_steps_in_closed_form():
    rounds = simulate(n_tasks=30, depth=2, agreement=1.0, call_s=0.1, **STEADY)
    row = validate(rounds).rows[0]
    lengths = rounds.sequential_trace().segment_lengths
    # a round commits 3 steps, or what is left; with 2 left both are proposed, and no bonus
    n_rounds = sum(int(np.ceil(length / 3)) for length in lengths)
    calls = sum(2 * (length // 3) + length % 3 for length in lengths)
    expected = lengths.sum() / (n_rounds + 0.1 * calls)
    assert row.speedup == pytest.approx(expected)
    assert row.speedup_eq4 == pytest.approx(expected)
    assert row.error == pytest.approx(0, abs=1e-12)
    assert row.to_dict()["commits"] == pytest.approx(lengths.sum() / n_rounds)
    assert row.to_dict()["wait_inflation_replayed"] == pytest.approx(1.0)
    assert row.to_dict()["identical"] == 1.0


def test_a_draft_that_is_never_right_in_closed_form():
    rounds = simulate(n_tasks=20, depth=1, call_s=0.25, agreement=0.0, **STEADY)
    frame = rounds.frame
    wrong = frame[(frame["arm"] == "sequential") | (frame["accepted"] == 0)]
    kept = wrong["task"].isin(set(wrong["task"]) - set(frame.loc[frame["accepted"] > 0, "task"]))
    row = validate(Rounds.from_frame(wrong[kept], rounds.metadata)).rows[0]
    assert row.speedup == pytest.approx(1 / 1.25)
    assert row.speedup_eq4 == pytest.approx(1 / 1.25)
    assert row.speedup_iid == pytest.approx(1 / 1.25)


def test_depth_nought_is_the_sequential_loop():
    row = validate(simulate(n_tasks=12, depth=0)).rows[0]
    assert row.speedup == pytest.approx(1)
    assert row.speedup_eq4 == row.speedup_iid == pytest.approx(1)
    assert row.to_dict()["hit_rates"] == []


def test_the_measured_terms_by_hand():
    rounds = simulate(n_tasks=20, depth=3, tool_s=0.3, gather=True)
    row = validate(rounds).rows[0].to_dict()
    spec, seq = rounds.speculative.frame, rounds.sequential.frame
    n, t_gen = len(spec), seq["wait_s"].mean()
    assert row["hit_rates"] == [(spec["accepted"] >= j).mean() for j in (1, 2, 3)]
    assert row["bonus_loss"] == pytest.approx((spec["committed"] == spec["accepted"]).mean())
    assert row["commits"] == pytest.approx(1 + sum(row["hit_rates"]) - row["bonus_loss"])
    assert row["gen_s_mean"] == pytest.approx(t_gen)
    assert row["wait_inflation_measured"] == pytest.approx(spec["wait_s"].sum() / n / t_gen)
    proposing = spec["draft_model_s"].sum() + spec["proposal_tool_s"].sum()
    assert row["draft_term"] == pytest.approx(proposing / n / t_gen)
    runs_tool = seq["target_tool_s"] > 0
    assert row["tool_step_share"] == pytest.approx(runs_tool.mean())
    assert row["tool_cost"] == pytest.approx(0.3 / t_gen)
    assert row["target_tool_steps"] == pytest.approx((spec["target_tool_s"] > 0).mean())
    assert row["speedup_measured"] == pytest.approx(seq["wall_s"].sum() / spec["wall_s"].sum())
    busy = spec["wall_s"].sum() - spec["idle_s"].sum()
    assert row["speedup_no_idle"] == pytest.approx(seq["wall_s"].sum() / busy)
    assert row["speedup_no_idle"] > row["speedup_measured"]


def test_acceptance_is_that_of_proposals_made():
    rounds = simulate(n_tasks=40, depth=3)
    acceptance = measure(rounds)[0].acceptance
    proposals = rounds.speculative.frame
    for j in (1, 2, 3):
        made = proposals[(proposals["proposed"] >= j) & (proposals["accepted"] >= j - 1)]
        assert acceptance[j - 1] == pytest.approx((made["accepted"] >= j).mean())


def test_iid_is_a_replay_at_the_first_hit_rate():
    rounds = simulate(TalkBenchmark("accepted"), TALKER, n_tasks=30, depth=3)
    row = validate(rounds).rows[0]
    values = row.to_dict()
    trace = rounds.sequential_trace()
    replay = exact_replay(trace.segments, values["hit_rates"][0], [3])
    expected = replay.commits[0] / (replay.wait_inflation[0] + values["draft_term"])
    assert row.speedup_iid == pytest.approx(expected)


def test_the_interval_is_a_paired_bootstrap_over_tasks():
    rounds = simulate(n_tasks=25, runs=2)
    row = validate(rounds, seed=5, n_resamples=400).rows[0]
    by_arm = [
        one.frame.groupby("task", sort=False)["wall_s"].sum()
        for one in (rounds.sequential, rounds.speculative)
    ]
    drawn = resampled_sums(np.column_stack(by_arm), 400, rng=np.random.default_rng(5))
    low, high = percentile_interval(drawn[:, 0] / drawn[:, 1])
    assert row.speedup_ci95 == pytest.approx((low, high))
    assert low < row.speedup < high


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 50),
    depth=st.integers(0, 4),
    agreement=st.floats(0, 1),
    gather=st.booleans(),
    terminal=st.sampled_from(["accepted", "probe"]),
    diverges=st.sampled_from([0.0, 0.5]),
    tool_s=st.sampled_from([0.0, 0.2]),
)
def test_the_parts_of_an_error_sum_to_it(
    seed, depth, agreement, gather, terminal, diverges, tool_s
):
    rounds = simulate(
        TalkBenchmark(terminal),
        TALKER,
        n_tasks=5,
        seed=seed,
        depth=depth,
        agreement=agreement,
        gather=gather,
        diverges=diverges,
        tool_s=tool_s,
    )
    predictions = predictions_of(rounds, 0.6)
    answer = validate(rounds, predictions=predictions, draft_latency_s=0.1)
    row = answer.rows[0]
    assert sum(row.parts.values()) == pytest.approx(-row.error)
    assert row.parts["commits"] == row.parts["draft_term"] == 0
    if depth:
        assert sum(row.ex_ante_parts.values()) == pytest.approx(-row.ex_ante_error)
    if not gather:
        assert row.parts["idle"] == 0
    if not diverges:
        assert row.identical == 1
        assert row.parts["steps_per_task"] == pytest.approx(0)
    json.dumps(answer.to_dict(), allow_nan=False)
    assert len(answer.to_frame()) == 1


def test_ex_ante_is_the_prediction_from_the_sequential_trace_alone():
    rounds = simulate(n_tasks=20, depth=3)
    predictions = predictions_of(rounds, 0.7)
    row = validate(rounds, predictions=predictions, draft_latency_s=0.2).rows[0]
    trace = rounds.sequential_trace()
    alone = predict(trace, draft_from_predictions(trace, predictions, latency_s=0.2), [3])
    assert row.ex_ante.speedup[0] == alone.speedup[0]
    np.testing.assert_array_equal(row.ex_ante.speedup_ci95, alone.speedup_ci95)
    changed = rounds.frame.copy()
    spec = changed["arm"] == "speculative"
    for name in ("wall_s", "wait_s"):
        changed.loc[spec, name] += 1.0
    other = validate(Rounds.from_frame(changed, rounds.metadata), predictions=predictions)
    own = validate(rounds, predictions=predictions)
    assert other.rows[0].ex_ante.speedup[0] == own.rows[0].ex_ante.speedup[0]
    assert other.rows[0].speedup < own.rows[0].speedup


def test_a_latency_per_draft():
    rounds = simulate(n_tasks=12)
    predictions = predictions_of(rounds)
    row = validate(
        rounds, predictions=predictions, draft_latency_s={"scripted draft": 0.3, "other": 1}
    ).rows[0]
    assert row.ex_ante.call_s == 0.3
    with pytest.raises(
        UsageError, match=r"^the probes: no latency for the draft 'scripted draft', only for x"
    ):
        validate(rounds, predictions=predictions, draft_latency_s={"x": 0.3})
    with pytest.raises(UsageError, match="predicts nothing without its predictions"):
        validate(rounds, draft_latency_s=0.3)


def test_files_of_different_benchmarks_are_not_compared():
    rounds = simulate(n_tasks=12)
    other = simulate(PlanningBenchmark(seed=7), n_tasks=12)
    assert rounds.task_names == other.task_names
    said = "was recorded with benchmark settings seed 7, file 1 with 42$"
    with pytest.raises(UsageError, match=rf"^file 2: {said}"):
        validate([rounds.speculative, other.sequential])
    with pytest.raises(UsageError, match=rf"^the trace: {said}"):
        validate(rounds.speculative, other.sequential_trace())
    predictions = predictions_of(rounds)
    predictions.metadata["benchmark"] = other.metadata["benchmark"]
    with pytest.raises(UsageError, match=rf"^the predictions: {said}"):
        validate(rounds, predictions=predictions)


def test_predictions_of_another_draft_say_nothing():
    rounds = simulate(n_tasks=12)
    predictions = predictions_of(rounds)
    unnamed = Predictions.from_frame(predictions.frame.drop(columns="draft"))
    ours, theirs = (
        validate(rounds, predictions=said).rows[0].ex_ante for said in (predictions, unnamed)
    )
    assert ours.speedup[0] == theirs.speedup[0]
    other = Predictions.from_frame(predictions.frame.assign(draft="zz"))
    with pytest.raises(UsageError, match="predictions holds the drafts zz, not 'scripted draft'"):
        validate(rounds, predictions=other)


def test_one_row_a_draft_and_depth():
    runs = {f"k{k}": simulate(n_tasks=12, depth=k) for k in (1, 3)}
    runs["again"] = simulate(n_tasks=12, depth=3, seed=1)
    answer = validate(runs)
    assert [(row.name, row.depth) for row in answer.rows] == [
        ("scripted draft", 1),
        ("scripted draft (k3)", 3),
        ("scripted draft (again)", 3),
    ]


def test_a_sequential_arm_recorded_apart_serves_the_others():
    both = simulate(n_tasks=12)
    apart = validate([both.sequential, both.speculative])
    assert len(apart.rows) == 1
    assert apart.rows[0].to_dict() == validate(both).rows[0].to_dict()


def test_a_trace_instead_of_a_sequential_arm():
    both = simulate(n_tasks=12, residual_s=0.0)
    trace = both.sequential_trace()
    apart = validate(both.speculative, trace)
    assert apart.rows[0].speedup == pytest.approx(validate(both).rows[0].speedup)
    assert "the sequential time is the trace's generation and tools" in apart.warnings[0]


def test_a_trace_of_another_run_is_noticed():
    rounds = simulate(n_tasks=12)
    trace = rounds.sequential_trace()
    slower = Trace.from_frame(trace.frame.assign(gen_s=trace.gen_s * 3))
    said = validate(rounds, slower).warnings
    assert any("a step of the trace takes +" in one and "as if it were of" in one for one in said)
    assert not any("as if it were of" in one for one in validate(rounds, trace).warnings)


@pytest.mark.parametrize("arm", ["sequential", "speculative"])
def test_a_task_that_broke_off_in_one_arm_is_left_out(arm: str):
    rounds = simulate(n_tasks=12, agreement=0.3)
    frame = rounds.frame
    of_task = frame[(frame["task"] == "plan-0253") & (frame["arm"] == arm)]
    assert len(of_task) > 1
    broken = rounds.where(~frame.index.isin(of_task.index[-1:]))
    answer = validate(broken)
    assert "1 task not whole in both arms, left out (such as plan-0253)" in answer.warnings[0]
    rest = rounds.where(frame["task"] != "plan-0253")
    assert answer.rows[0].to_dict() == validate(rest).rows[0].to_dict()


def test_a_trace_with_fewer_tasks_is_named():
    rounds = simulate(n_tasks=14)
    trace = rounds.sequential_trace()
    few = Trace.from_frame(trace.frame[trace.frame["task"].isin(trace.task_names[:11])])
    said = validate(rounds, few).warnings
    assert any("3 tasks not whole in both arms and the trace, left out" in one for one in said)
    foreign = Trace.from_frame(trace.frame.assign(task="z" + trace.frame["task"]))
    with pytest.raises(DataError, match="whole tasks of the trace, such as 'zplan-"):
        validate(rounds, foreign)


def test_the_parts_of_a_prediction_sum_to_its_error_whatever_the_traces_tools_took():
    rounds = simulate(n_tasks=12)
    trace = rounds.sequential_trace()
    slow = Trace.from_frame(trace.frame.assign(tool_s=trace.tool_s + 0.5))
    row = validate(rounds, slow, predictions=predictions_of(rounds, 0.6)).rows[0]
    assert sum(row.ex_ante_parts.values()) == pytest.approx(-row.ex_ante_error)


def test_only_what_is_said_beforehand_stands_on_a_trace_beside_an_arm():
    """The arm ran beside the speculative one; an earlier trace may have seen another machine."""
    rounds = simulate(n_tasks=12)
    trace = rounds.sequential_trace()
    slower = Trace.from_frame(trace.frame.assign(gen_s=trace.gen_s * 1.05))
    answers = predictions_of(rounds)
    ours, theirs = (
        validate(rounds, one, predictions=answers, draft_latency_s=0.1).rows[0]
        for one in (trace, slower)
    )
    assert ours.speedup_eq4 == theirs.speedup_eq4
    assert ours.parts == theirs.parts
    assert ours.speedup == theirs.speedup
    assert theirs.ex_ante is not None
    assert theirs.ex_ante.gen_s_mean == pytest.approx(1.05 * trace.gen_s.mean())


def test_twice_as_many_speculative_runs_change_nothing():
    once = simulate(n_tasks=12)
    frame = once.frame
    again = frame[frame["arm"] == "speculative"].assign(run=1)
    twice = Rounds.from_frame(pd.concat([frame, again]), once.metadata)
    ours, theirs = (validate(rounds).rows[0].to_dict() for rounds in (once, twice))
    for name in ("speedup_measured", "speedup_eq4", "steps_ratio", "identical"):
        assert ours[name] == pytest.approx(theirs[name])
    assert ours["speedup_measured_ci95"] == pytest.approx(theirs["speedup_measured_ci95"])


def test_tasks_of_one_arm_are_left_out_and_named():
    rounds = simulate(n_tasks=12)
    gone = (rounds.frame["task"] == "plan-0253") & (rounds.frame["arm"] == "speculative")
    answer = validate(rounds.where(~gone))
    assert "1 task not whole in both arms, left out (such as plan-0253)" in answer.warnings[0]
    rest = rounds.where(rounds.frame["task"] != "plan-0253")
    assert answer.rows[0].to_dict() == validate(rest).rows[0].to_dict()


def test_few_tasks_give_no_interval():
    answer = validate(simulate(n_tasks=4))
    assert answer.rows[0].speedup_ci95 is None
    assert answer.rows[0].error_se is None
    assert "4 tasks are too few for an interval (10 are needed)" in answer.warnings[0]
    assert answer.to_frame()["speedup_low"].isna().all()


def test_a_row_outside_says_why():
    rounds = simulate(n_tasks=30, depth=3, gather=True, agreement=0.1, seed=2)
    answer = validate(rounds)
    row = answer.rows[0]
    assert abs(row.error) > 0.05
    assert answer.explanations == (row.why,)
    assert row.why.startswith(f"scripted draft, k = 3: Eq. 4 is {row.error:.2f} above the")
    assert f"idle costs {-row.parts['idle']:.2f} of speedup" in row.why
    assert row.why.endswith("; decisions identical in 100% of the task runs")
    assert "within 0.05" in answer.sentence


def test_a_slower_token_is_told_from_other_waiting():
    rounds = simulate(n_tasks=30, depth=3, follow_gold=True)
    before = validate(rounds).rows[0]
    factors = np.where(rounds.frame["arm"] == "speculative", 1.2, 1.0)
    after = validate(slowed(rounds, factors)).rows[0]
    assert after.to_dict()["ms_per_token"]["speculative"] == pytest.approx(30)
    beta = before.to_dict()["wait_inflation_measured"]
    assert after.to_dict()["wait_inflation_measured"] == pytest.approx(1.2 * beta)
    assert after.parts["wait_inflation"] == pytest.approx(before.parts["wait_inflation"])
    assert after.parts["ms_per_token"] < -0.1
    costs = f"ms per token costs {-after.parts['ms_per_token']:.2f} of speedup"
    assert f"{costs} (25.0 sequential, 30.0 speculative)" in after.why


def test_what_a_measured_term_adds_is_said():
    rounds = simulate(n_tasks=30, depth=3)
    row = validate(rounds, predictions=predictions_of(rounds, 0.2)).rows[0]
    assert row.ex_ante_parts["commits"] > 0.05
    measured = row.to_dict()["commits"]
    predicted = row.ex_ante.commits[0]
    assert (
        f"c adds {row.ex_ante_parts['commits']:.2f} of speedup"
        f" (predicted {predicted:.2f}, measured {measured:.2f})" in row.ex_ante_why
    )


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_machine_that_changed_its_speed_between_the_arms_is_noticed(factor: float):
    rounds = simulate(n_tasks=30, depth=3)
    speculative = rounds.frame["arm"] == "speculative"
    together = rounds.frame["verifications"].map(len) > 1
    assert (speculative & ~together).sum() > 5
    # that concurrent requests slow each other down is another matter
    answer = validate(slowed(rounds, np.where(together, 2.0, 1.0)))
    assert not any("equally fast" in one for one in answer.warnings)
    (said,) = validate(slowed(rounds, np.where(speculative, factor, 1.0))).warnings
    assert (
        f"a request alone takes 25.0 ms a token in the sequential arm and {25 * factor:.1f} in the"
        " speculative one: the machine was not equally fast in both" in said
    )


def test_a_clock_that_the_rounds_do_not_account_for_is_said():
    rounds = simulate(n_tasks=12)
    frame = rounds.frame.assign(clock_s=rounds.frame["clock_s"] * 1.1)
    warnings = validate(Rounds.from_frame(frame, rounds.metadata)).warnings
    assert "the rounds' times are -9.1% off the tasks' own clock" in warnings[0]


def test_what_can_not_be_validated():
    both = simulate(n_tasks=3)
    with pytest.raises(DataError, match="expected a sequential arm, or a trace, found neither"):
        validate(both.speculative)
    with pytest.raises(DataError, match="expected a speculative arm, found none"):
        validate(both.sequential)
    other = simulate(TalkBenchmark(), TALKER, n_tasks=3, metadata={"benchmark": None})
    with pytest.raises(DataError, match="whole tasks of the sequential arm, such as 'test-0'"):
        validate(both.speculative, other.sequential_trace())
    with pytest.raises(DataError, match="expected tasks of the rounds, such as 'plan-0251'"):
        validate(both, predictions=predictions_of(other))


def test_its_picture_and_texts():
    rounds = simulate(n_tasks=12)
    answer = validate(rounds, predictions=predictions_of(rounds))
    axes = answer.plot()
    assert isinstance(axes.figure, matplotlib.figure.Figure)
    assert axes.get_aspect() == 1
    assert axes.get_xlim() == axes.get_ylim()
    assert len(axes.collections) == 2 + 2  # two bands, a filled and a hollow marker
    assert "scripted draft" in answer.summary()
    assert "<table" in answer._repr_html_()
    assert repr(answer).startswith("<Validation: Eq. 4:")


def test_a_probed_slowdown_is_part_of_the_predicted_wait_and_the_parts_still_close_the_gap():
    rounds = simulate(n_tasks=20, depth=2)
    free, slower = (
        validate(rounds, predictions=predictions_of(rounds), slowdown=slowdown).rows[0]
        for slowdown in (None, [1.0, 1.2, 1.4])
    )
    assert slower.ex_ante.wait_inflation[0] > 1.1 * free.ex_ante.wait_inflation[0]
    assert slower.ex_ante_parts["ms_per_token"] == 0
    for row in (free, slower):
        assert sum(row.ex_ante_parts.values()) == pytest.approx(-row.ex_ante_error)
    assert slower.speedup_eq4 == free.speedup_eq4  # Eq. 4 itself knows of no probe
