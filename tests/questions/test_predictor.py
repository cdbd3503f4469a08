from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from leapmodel.acceptance import TaskAcceptance
from leapmodel.bootstrap import resample_weights
from leapmodel.compared_draft import draft_from_predictions, draft_from_run
from leapmodel.draft import Draft, probed, stated_draft
from leapmodel.equations import speedup
from leapmodel.errors import DataError, UsageError
from leapmodel.predictions import Predictions
from leapmodel.predictor import NOT_SLOWED, SLOWED, TOOLS_ARE_SAFE, predict, speedups
from leapmodel.replay import teacher_forced_replay
from leapmodel.trace import Trace
from tests.conftest import disturbed, random_trace, steady_trace


def predictions_for(
    trace: Trace, rng: np.random.Generator, hit: float, repeats: int = 1, latency: bool = True
) -> Predictions:
    frames = []
    for repeat in range(repeats):
        right = rng.random(trace.n_steps) < hit
        other = np.where(rng.random(trace.n_steps) < 0.3, None, "other({})")
        frame = trace.frame[["task", "run", "step"]].assign(
            draft="tiny", repeat=repeat, action=np.where(right, trace.actions, other)
        )
        if latency:
            frame["latency_s"] = 0.1 * rng.lognormal(0, 0.2, trace.n_steps)
        frames.append(frame)
    return Predictions.from_frame(pd.concat(frames, ignore_index=True))


def test_speedup_is_equation_1_and_the_ratio_of_pooled_seconds(workload: Trace):
    prediction = predict(workload, stated_draft(0.7, latency_s=0.1), [1, 2, 4])
    replay = prediction.replay
    tau, f = prediction.tool_cost, prediction.tool_step_share
    g = replay.target_tool_steps / replay.total_rounds
    # g tau needs the tool time of the steps the target runs, not of all steps
    g_tau = replay.target_tools_per_round
    by_equation = speedup(
        prediction.commits,
        prediction.wait_inflation,
        prediction.draft_term,
        tool_cost=tau,
        tool_step_share=f,
        target_tool_steps=g_tau / tau,
    )
    assert np.allclose(prediction.speedup, by_equation, rtol=1e-12)
    assert np.allclose(prediction.speedup, speedups(replay, prediction.call_s), rtol=1e-12)
    assert np.allclose(g_tau, g * tau, rtol=0.2)
    total = workload.gen_s.sum() + workload.tool_s.sum()
    assert np.allclose(prediction.task_saved_s.sum(axis=0), total * (1 - 1 / prediction.speedup))


def test_stated_acceptance_by_position_goes_on_with_its_last_value(workload: Trace):
    short = predict(workload, stated_draft([0.9, 0.5], latency_s=0.1), [1, 2, 3])
    full = predict(workload, stated_draft([0.9, 0.5, 0.5], latency_s=0.1), [1, 2, 3])
    assert np.array_equal(short.speedup, full.speedup)
    assert short.replay.acceptance[2].tolist() == pytest.approx([0.9, 0.5, 0.5])


def test_cost_in_seconds_and_in_target_steps_agree(workload: Trace):
    t_gen = workload.gen_s.mean()
    seconds = predict(workload, stated_draft(0.7, latency_s=0.1 * t_gen), [2])
    relative = predict(workload, stated_draft(0.7, cost=0.1), [2])
    assert seconds.speedup == pytest.approx(relative.speedup)
    assert relative.draft_cost == pytest.approx(0.1)


def resampled_by_hand(
    trace: Trace, run: Trace, make_draft, seed: int, n: int, depths: list[int]
) -> np.ndarray:
    """Draw the tasks for real: a trace with each task as often as its weight says, replayed."""
    weights_seed = np.random.SeedSequence(seed).spawn(3)[0]
    weights = np.concatenate(
        list(resample_weights(trace.n_tasks, n, np.random.default_rng(weights_seed)))
    ).astype(int)
    out = []
    for row in weights:
        copies = []
        for other in (trace, run):
            frames = [
                other.frame[other.frame["task"] == name].assign(task=f"{name} {copy}")
                for name, count in zip(trace.task_names, row, strict=True)
                for copy in range(count)
            ]
            copies.append(Trace.from_frame(pd.concat(frames, ignore_index=True)))
        out.append(predict(copies[0], make_draft(*copies), depths, n_resamples=2).speedup)
    return np.array(out)


@pytest.mark.parametrize("kind", ["pooled hits and a measured cost", "tools at a stated cost"])
def test_resamples_equal_tasks_drawn_and_replayed_for_real(rng: np.random.Generator, kind: str):
    tools = kind == "tools at a stated cost"
    trace = random_trace(rng, 25, runs=2, with_tools=tools)
    run = disturbed(trace, rng, share=0.25)

    def make_draft(of: Trace, its_run: Trace) -> Draft:
        if tools:
            return stated_draft(0.7, latency_s=0.2)
        return draft_from_run(of, its_run, pool="all")

    fast = predict(trace, make_draft(trace, run), [1, 3], n_resamples=20, seed=3)
    slow = resampled_by_hand(trace, run, make_draft, seed=3, n=20, depths=[1, 3])
    assert fast.resamples is not None
    assert np.abs(fast.resamples.speedup - slow).max() < 1e-3
    assert np.abs(slow.std(axis=0)).min() > 0.005  # there was something to get right


def test_interval_widens_when_the_acceptance_is_measured_and_not_stated(rng: np.random.Generator):
    trace = random_trace(rng, 40, with_tools=False)
    measured = draft_from_run(trace, disturbed(trace, rng, share=0.3), pool="all")
    acceptance = float(measured.acceptance.estimate.parameters[0])
    stated = stated_draft(acceptance, latency_s=measured.cost.seconds(trace.gen_s.mean()))
    a, b = (predict(trace, d, [3], n_resamples=2000) for d in (measured, stated))
    assert a.speedup == pytest.approx(b.speedup)
    assert a.speedup_se is not None
    assert b.speedup_se is not None
    assert a.speedup_se[0] > 1.5 * b.speedup_se[0]
    assert b.conditional_on == (
        "the acceptance, as stated",
        "the draft's seconds a call, as stated",
        NOT_SLOWED,
        TOOLS_ARE_SAFE,
    )
    unknown = 1 - measured.coverage
    assert a.conditional_on == (
        f"the {unknown:.0%} of steps not known being like the others",
        NOT_SLOWED,
        TOOLS_ARE_SAFE,
    )


def test_tools_that_are_named_as_boundaries_are_not_taken_to_be_safe(rng: np.random.Generator):
    trace = random_trace(rng, 12)
    draft = stated_draft(0.5, cost=0.1)
    assert TOOLS_ARE_SAFE in predict(trace, draft, [1]).conditional_on
    named = trace.with_boundary_tools([trace.frame["action"].iloc[0].split("(")[0]])
    assert TOOLS_ARE_SAFE not in predict(named, draft, [1]).conditional_on


def test_a_probed_cost_is_no_stated_one(rng: np.random.Generator):
    trace = random_trace(rng, 40)
    draft = probed(stated_draft(1.0, latency_s=0.001), [1.0, 1.1])
    assert draft.slowdown == (1.0, 1.1)
    assert probed(draft).slowdown == (1.0, 1.1)  # a probe without the target says nothing of it
    assert draft.conditional_on[1] == "the draft's seconds a call, as probed"
    assert predict(trace, draft, [2]).slowdown == (1.0, 1.1)
    assert predict(trace, draft, [2], slowdown=[1.0, 1.5]).slowdown == (1.0, 1.5)
    assert predict(trace, draft, [2]).verdict.title == "deploy, if what was stated holds"
    answers = replace(draft, conditional_on=draft.conditional_on[1:])
    assert predict(trace, answers, [2]).verdict.title == "deploy"


def coverage(rng: np.random.Generator, acceptances: np.ndarray, pool: str, n: int) -> np.ndarray:
    """Share of samples whose 95% interval holds the speedup of the whole population, by depth."""
    everything = random_trace(rng, len(acceptances), with_tools=False)
    p = acceptances[everything.task_codes]
    outcomes = teacher_forced_replay(everything.segments, p, [1, 3])
    truth = speedups(outcomes, 0.3 * float(everything.gen_s.mean()))
    run = disturbed(everything, rng, share=1 - p)
    names = np.array(everything.task_names)
    covered = []
    for sample in range(len(names) // n):
        chosen = names[sample * n : (sample + 1) * n]
        part, part_run = (
            Trace.from_frame(t.frame[t.frame["task"].isin(chosen)].reset_index(drop=True))
            for t in (everything, run)
        )
        draft = draft_from_run(part, part_run, pool=pool, cost=0.3)  # type: ignore[arg-type]
        low, high = predict(part, draft, [1, 3], n_resamples=500).speedup_ci95.T  # type: ignore[union-attr]
        covered.append((low <= truth) & (truth <= high))
    return np.mean(covered, axis=0)


def test_intervals_cover_the_truth_as_often_as_they_say(rng: np.random.Generator):
    alike = coverage(rng, np.full(2000, 0.75), "auto", 50)
    assert (alike >= 0.85).all(), alike


def test_intervals_cover_the_truth_when_tasks_differ(rng: np.random.Generator):
    """Tasks that agree longest supply most of the known steps; the pooled rate is too high then."""
    acceptances = rng.beta(4, 1.5, 3000)
    by_task = coverage(rng, acceptances, "auto", 150)
    assert (by_task >= 0.8).all(), by_task
    pooled = coverage(rng, acceptances, "all", 150)
    assert (pooled < by_task).all(), pooled


def test_repeated_runs_do_not_make_tasks_look_different(rng: np.random.Generator):
    """Steps differ in difficulty, tasks do not; runs of a task meet the same steps."""
    trace = random_trace(rng, 150)
    step_acceptance = rng.beta(2, 1, trace.n_steps)
    once = draft_from_run(trace, disturbed(trace, rng, share=1 - step_acceptance))
    frames, runs = [], []
    for number in range(4):
        run = disturbed(trace, rng, share=1 - step_acceptance)
        frames.append(trace.frame.assign(run=number))
        runs.append(run.frame.assign(run=number))
    several = draft_from_run(
        *(Trace.from_frame(pd.concat(parts, ignore_index=True)) for parts in (frames, runs)),
        pool="task",
    )
    assert isinstance(several.acceptance, TaskAcceptance)
    hits, known = several.acceptance.counts.hits, several.acceptance.counts.known
    assert known.sum() < 2 * once.facts["known"]  # as much as one run says, not four
    mean = 1 / (1 + np.exp(-several.acceptance.estimate.parameters[0]))
    assert mean == pytest.approx(hits.sum() / known.sum(), abs=0.06)


def test_a_trend_with_task_length_is_said(rng: np.random.Generator):
    trace = random_trace(rng, 200)
    length = trace.frame.groupby("task")["step"].transform("size").to_numpy()
    harder = disturbed(trace, rng, share=np.clip(length / 14, 0, 1))
    assert any(
        "long tasks are predicted worse" in w for w in draft_from_run(trace, harder).warnings
    )
    plain = draft_from_run(trace, disturbed(trace, rng, share=0.4))
    assert not any("long tasks" in w for w in plain.warnings)


def test_pooling_unlike_tasks_is_warned_of(rng: np.random.Generator):
    trace = random_trace(rng, 300)
    run = disturbed(trace, rng, share=1 - rng.beta(3, 1.5, 300)[trace.task_codes])
    pooled = draft_from_run(trace, run, pool="all")
    assert "a pooled acceptance promises too much" in pooled.warnings[-2] + pooled.warnings[-1]
    automatic = draft_from_run(trace, run)
    assert "one acceptance a task" in automatic.source
    assert predict(trace, automatic, [3]).speedup[0] < predict(trace, pooled, [3]).speedup[0]


def test_hits_on_replies_alone_save_nothing(rng: np.random.Generator):
    """A draft that only gets the last step of each segment right can't speed anything up."""
    trace = random_trace(rng, 30, with_tools=False)
    only_replies = trace.frame["action"].where(trace.frame["kind"] == "respond", "other({})")
    run = Trace.from_frame(trace.frame.assign(action=only_replies, gen_s=trace.gen_s * 0.05))
    draft = draft_from_run(trace, run)
    assert draft.facts["hits"] > 0
    assert predict(trace, draft, [1, 2]).speedup.max() < 1


def test_evidence_from_too_few_tasks_gives_no_interval(rng: np.random.Generator):
    trace = random_trace(rng, 50)
    one = trace.task_names[0]
    run = disturbed(trace, rng, share=0.1)
    single = Trace.from_frame(run.frame[run.frame["task"] == one].reset_index(drop=True))
    answer = predict(trace, draft_from_run(trace, single), [1, 2])
    assert answer.speedup_ci95 is None
    assert answer.verdict.decision == "cannot tell"
    assert "1 task is too few" in answer.verdict.sentence


def test_permuting_tasks_changes_nothing(rng: np.random.Generator):
    trace = random_trace(rng, 20)
    run = disturbed(trace, rng, share=0.3)
    names = list(rng.permutation(trace.task_names))
    frame = trace.frame.set_index("task").loc[names].reset_index()
    turned = Trace.from_frame(frame)
    a = predict(trace, draft_from_run(trace, run), [1, 2, 3])
    b = predict(turned, draft_from_run(turned, run), [1, 2, 3])
    assert np.allclose(a.speedup, b.speedup, rtol=1e-12)
    assert a.speedup_se == pytest.approx(b.speedup_se, rel=0.05)  # other draws, same spread


def test_under_ten_tasks_no_interval_and_cannot_tell(rng: np.random.Generator):
    prediction = predict(random_trace(rng, 9), stated_draft(0.9, latency_s=0.0), [1, 2])
    assert prediction.speedup_ci95 is None
    assert prediction.speedup_se is None
    assert prediction.verdict.decision == "cannot tell"
    assert "9 tasks are too few" in prediction.verdict.sentence
    assert prediction.to_dict()["speedup_ci95"] is None


def test_bounds_enclose_the_prediction_and_coverage_is_said(rng: np.random.Generator):
    trace = random_trace(rng, 30)
    draft = draft_from_run(trace, disturbed(trace, rng, share=0.5))
    prediction = predict(trace, draft, [1, 2, 3])
    assert prediction.bounds is not None
    assert draft.coverage is not None
    assert draft.coverage < 0.5
    assert "the tool other is used often by one of the two runs" in draft.warnings[0]
    assert "known on" in draft.warnings[-1]
    assert (prediction.bounds[0] <= prediction.bounds[1]).all()


def test_teacher_forced_repeats_are_replayed_and_averaged(rng: np.random.Generator):
    trace = random_trace(rng, 20)
    both = predictions_for(trace, rng, 0.7, repeats=2)
    single = [
        Predictions.from_frame(both.frame[both.frame["repeat"] == r].reset_index(drop=True))
        for r in (0, 1)
    ]
    together = predict(trace, draft_from_predictions(trace, both), [2])
    apart = [predict(trace, draft_from_predictions(trace, p), [2]) for p in single]
    mean_rounds = np.mean([p.replay.total_rounds[0] for p in apart])
    assert together.replay.total_rounds[0] == pytest.approx(mean_rounds)


def test_fully_known_predictions_depend_on_no_pooled_acceptance(rng: np.random.Generator):
    trace = random_trace(rng, 20)
    draft = draft_from_predictions(trace, predictions_for(trace, rng, 0.7))
    assert draft.acceptance.estimate is None
    assert draft.coverage == 1.0
    assert predict(trace, draft, [1]).bounds is None


def test_unknown_steps_take_the_pooled_acceptance(rng: np.random.Generator):
    trace = random_trace(rng, 40)
    full = predictions_for(trace, rng, 0.7)
    part = Predictions.from_frame(full.frame.iloc[::2].reset_index(drop=True))
    draft = draft_from_predictions(trace, part)
    assert draft.coverage == pytest.approx(0.5, abs=0.01)
    prediction = predict(trace, draft, [1, 3])
    assert prediction.bounds is not None
    assert (prediction.bounds[0] < prediction.speedup).all()
    assert (prediction.speedup < prediction.bounds[1]).all()


def test_latency_of_predictions_is_measured_or_must_be_stated(rng: np.random.Generator):
    trace = random_trace(rng, 15)
    timed = predictions_for(trace, rng, 0.7)
    mean = timed.frame["latency_s"].mean()
    assert predict(trace, draft_from_predictions(trace, timed), [1]).call_s == pytest.approx(mean)
    untimed = predictions_for(trace, rng, 0.7, latency=False)
    with pytest.raises(UsageError, match="the predictions have no latency_s; state the draft's"):
        draft_from_predictions(trace, untimed)
    stated = draft_from_predictions(trace, untimed, latency_s=0.2)
    assert predict(trace, stated, [1]).call_s == 0.2


def test_evidence_from_other_tasks_is_resampled_on_its_own(rng: np.random.Generator):
    trace = random_trace(rng, 30)
    frame = random_trace(rng, 14).frame
    other = Trace.from_frame(frame.assign(task="v" + frame["task"]))
    draft = draft_from_run(trace, disturbed(other, rng, share=0.3), evidence_trace=other)
    assert draft.acceptance.estimate is not None
    assert not draft.acceptance.estimate.same_tasks
    assert draft.coverage is None
    prediction = predict(trace, draft, [2])
    assert prediction.speedup_se is not None
    stated = stated_draft(float(draft.acceptance.estimate.parameters[0]), cost=0.3)
    assert prediction.speedup_se[0] > predict(trace, stated, [2]).speedup_se[0]  # type: ignore[index]


@pytest.mark.parametrize("pool", ["auto", "all", "position", "task"])
def test_every_pooling_gives_an_interval(rng: np.random.Generator, pool: str):
    trace = random_trace(rng, 60)
    draft = draft_from_run(trace, disturbed(trace, rng, share=0.2), pool=pool, depth=3)  # type: ignore[arg-type]
    prediction = predict(trace, draft, [1, 2, 3], n_resamples=500)
    low, high = prediction.speedup_ci95.T  # type: ignore[union-attr]
    assert ((low < prediction.speedup) & (prediction.speedup < high)).all()


def test_boundary_tools_cost_speed(workload: Trace):
    draft = stated_draft(0.9, latency_s=0.05)
    free = predict(workload, draft, [3])
    cut = predict(workload.with_boundary_tools(["send_*", "book_*"]), draft, [3])
    assert cut.speedup[0] < free.speedup[0]
    assert cut.commits[0] < free.commits[0]


def test_boundary_tool_time_is_never_a_proposals(rng: np.random.Generator):
    trace = random_trace(rng, 20)
    everything = trace.with_boundary_tools(["*"])
    replay = predict(everything, stated_draft(1.0, latency_s=0.0), [2]).replay
    assert replay.proposal_tool_s.sum() == 0
    assert replay.target_tool_s.sum() == pytest.approx(trace.tool_s.sum())


def test_more_than_ten_thousand_tasks_are_resampled_in_batches(rng: np.random.Generator):
    n = 20_500
    frame = pd.DataFrame(
        {
            "task": np.repeat([f"t{i}" for i in range(n)], 2),
            "segment": 0,
            "step": np.tile([0, 1], n),
            "gen_s": rng.lognormal(0, 0.5, 2 * n),
            "action": "ls({})",
        }
    )
    trace = Trace.from_frame(frame)
    run = disturbed(trace, rng, share=0.3)
    answer = predict(trace, draft_from_run(trace, run), [1], n_resamples=200)
    small = Trace.from_frame(frame.iloc[: 2 * 2050])
    part = predict(
        small,
        draft_from_run(small, Trace.from_frame(run.frame.iloc[: 2 * 2050])),
        [1],
        n_resamples=200,
    )
    # ten times the tasks: the error is sqrt(10) times smaller
    assert part.speedup_se[0] / answer.speedup_se[0] == pytest.approx(np.sqrt(10), rel=0.25)  # type: ignore[index]


def test_json_has_the_promised_keys_and_no_nan(workload: Trace, rng: np.random.Generator):
    draft = draft_from_run(workload, disturbed(workload, rng, share=0.3))
    value = predict(workload, draft, [1, 2, 3]).to_dict()
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    promised = {
        "schema_version depths commits wait_inflation draft_term bonus_loss speedup speedup_ci95"
        " speedup_se hit_rates proposal_rates acceptance gen_s_mean gen_s_cv conditional_on"
        " warnings verdict"
    }
    assert set(next(iter(promised)).split()) <= set(value)
    assert [len(row) for row in value["hit_rates"]] == [1, 2, 3]
    assert [len(pair) for pair in value["speedup_ci95"]] == [2, 2, 2]


def test_summary_frame_and_html_show_the_same_numbers(workload: Trace):
    prediction = predict(workload, stated_draft(0.8, latency_s=0.1, name="<tiny>"), [1, 2])
    assert f"{prediction.speedup[1]:.2f}" in prediction.summary()
    assert prediction.to_frame()["speedup"].tolist() == prediction.speedup.tolist()
    assert "&lt;tiny&gt;" in prediction._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"acceptance": 1.2, "latency_s": 0.1},
            "acceptance: expected numbers from 0 to 1, found 1.2",
        ),
        (
            {"acceptance": 0.5},
            "state either the draft's seconds a call or its cost in target steps",
        ),
        (
            {"acceptance": 0.5, "latency_s": 0.1, "cost": 0.1},
            "state either the draft's seconds a call or its cost in target steps",
        ),
        (
            {"acceptance": 0.5, "latency_s": float("nan")},
            "the draft's cost: expected a number >= 0, found nan",
        ),
    ],
)
def test_a_stated_draft_is_checked(arguments: dict[str, float], message: str):
    with pytest.raises(UsageError) as caught:
        stated_draft(**arguments)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_evidence_without_any_known_step_is_refused(workload: Trace):
    frame = workload.frame.assign(action="never({})", run=5)
    with pytest.raises(DataError, match="expected runs of the trace, such as run 0 of 'task0'"):
        draft_from_run(workload, Trace.from_frame(frame))


def test_acceptance_zero_never_speeds_up(workload: Trace):
    draft: Draft = stated_draft(0.0, latency_s=0.01)
    prediction = predict(workload, draft, [1, 2, 3])
    assert (prediction.speedup < 1).all()
    assert prediction.verdict.decision == "don't"


def test_verification_that_is_slower_together_in_closed_form():
    """Four equal steps, every proposal right: rounds of two contexts, then the last step alone."""
    trace = steady_trace(tasks=12, steps=4)
    draft = stated_draft(1.0, latency_s=0.1)
    free, slower = (
        predict(trace, draft, [1], slowdown=slowdown, n_resamples=200)
        for slowdown in (None, (1.0, 1.25))
    )
    assert free.speedup[0] == pytest.approx(4 / (2 * 1.1))
    assert slower.speedup[0] == pytest.approx(4 / (2 * (1.25 + 0.1)))
    assert slower.wait_inflation[0] == pytest.approx(1.25)
    assert slower.speedup_ci95[0] == pytest.approx([slower.speedup[0]] * 2)
    assert SLOWED in slower.conditional_on
    assert NOT_SLOWED not in slower.conditional_on
    assert NOT_SLOWED in free.conditional_on


def test_a_round_is_slowed_by_as_many_contexts_as_it_verifies():
    trace = steady_trace(tasks=12, steps=3)
    draft = stated_draft(1.0, latency_s=0.1)
    one = predict(trace, draft, [5], slowdown=(1.0, 1.1, 1.2, 1.3), n_resamples=200)
    # three steps are left; the third proposal ends the segment, so no context follows it: three
    assert one.wait_inflation[0] == pytest.approx(1.2)
    assert one.warnings == ()
    beyond = predict(trace, draft, [5], slowdown=(1.0, 1.1), n_resamples=200)
    taken = "more than 2 requests at once, which were not timed, being as slow as 2"
    assert beyond.warnings == (f"k = 5: it depends on {taken}",)
    assert taken in beyond.conditional_on
    assert taken in beyond.verdict.sentence
    assert SLOWED not in predict(trace, draft, [5], slowdown=(1.0,)).conditional_on
    assert predict(trace, draft, [1], slowdown=(1.0, 1.1), n_resamples=200).warnings == ()
    assert beyond.wait_inflation[0] == pytest.approx(1.1)


@pytest.mark.parametrize("slowdown", [(1.1, 1.2), (1.0, 0.0), (1.0, float("nan"))])
def test_a_slowdown_that_is_none_is_refused(slowdown):
    with pytest.raises(UsageError, match="slowdown: expected numbers above 0, the first 1"):
        predict(steady_trace(tasks=12, steps=3), stated_draft(0.5, cost=0.1), slowdown=slowdown)
