"""Where a draft agrees with the target, step by step: a hit, a miss, or unknown.

A step's outcome is known when the draft's output on that very context is known: from a teacher-
forced prediction, or from an independent run for as long as that run took the same actions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from leapmodel.actions import TERMINAL_ACTIONS, calls_any
from leapmodel.errors import DataError
from leapmodel.predictions import Predictions
from leapmodel.replay import StepOutcomes
from leapmodel.segments import Floats
from leapmodel.trace import Trace

OFTEN = 0.03
"""A tool in at least this share of the steps is one that the other run should know."""


@dataclass(frozen=True, eq=False)
class StepHits:
    """What is known of a draft's outputs on the contexts of a trace.

    Attributes
    ----------
    known, hit, invalid, wrong_end : ndarray of bool, shape (repeats, steps)
        Whether the output on the step's context is known; and if so, whether it equals the
        target's action, was no usable proposal, or stopped proposing where the target went on (a
        reply, the end of the task, or a boundary tool).
        Several repeats are several outputs on the same contexts.
    """

    known: np.ndarray
    hit: np.ndarray
    invalid: np.ndarray
    wrong_end: np.ndarray

    @property
    def coverage(self) -> float:
        """Share of the (repeated) steps whose outcome is known."""
        return float(self.known.mean())

    def outcomes(self, unknown: float) -> list[StepOutcomes]:
        """Return each repeat's outcomes with ``unknown`` as the hit probability of the rest."""
        return [
            StepOutcomes(
                np.where(known, hit, unknown).astype(np.float64),
                invalid.astype(np.float64),
                wrong_end.astype(np.float64),
            )
            for known, hit, invalid, wrong_end in zip(
                self.known, self.hit, self.invalid, self.wrong_end, strict=True
            )
        ]


@dataclass(frozen=True, eq=False)
class HitCounts:
    """Hits and known outcomes per task, one column per acceptance estimated.

    Attributes
    ----------
    hits, known : ndarray, shape (tasks, parameters)
        Sums over a task's steps, runs and repeats.
    same_tasks : bool
        True if row t is task t of the trace that is predicted (resampled together with its
        times); False if they are other tasks (resampled on their own).
    """

    hits: np.ndarray
    known: np.ndarray
    same_tasks: bool = True

    @property
    def n_tasks(self) -> int:
        """Tasks with any known outcome."""
        return int((self.known > 0).any(axis=1).sum())

    @property
    def acceptance(self) -> np.ndarray:
        """Pooled hits over known, shape (parameters,)."""
        return self.hits.sum(axis=0) / self.known.sum(axis=0)


@dataclass(frozen=True, eq=False)
class RunComparison:
    """Two independent runs of the same tasks, the second one the draft's.

    A step is known while all earlier actions of the task agree in both runs; after the first
    difference the runs stand in different contexts and nothing more can be compared. The known
    steps are therefore biased to the early ones.

    Attributes
    ----------
    steps : StepHits
        Outcomes on the target's steps, one repeat.
    draft_s, target_s : ndarray, shape (tasks,)
        Generation seconds of both runs over the known steps.
    unmatched_cost : float
        Mean draft step over mean target step, over all steps of both runs.
    paired_tasks : int
        Tasks of the trace that the draft's run has as well.
    unshared_tools : tuple of str
        Tools in at least 3% of one run's steps that the other never calls: harness noise?
    """

    steps: StepHits
    draft_s: np.ndarray
    target_s: np.ndarray
    unmatched_cost: float
    paired_tasks: int
    unshared_tools: tuple[str, ...]


def compare_runs(target: Trace, draft: Trace) -> RunComparison:
    """Compare the run of a would-be draft with the target's on the same tasks.

    Parameters
    ----------
    target : Trace
        The sequential trace whose speedup is asked for.
    draft : Trace
        An independent run of a smaller model on the same tasks (paired by ``task`` and ``run``).

    Raises
    ------
    DataError
        If a trace has no actions, or no task is in both.

    Notes
    -----
    Both runs ended a step in the same context only if every action before it was the same; an
    unparsable action equals nothing, so nothing after it is known.
    """
    for trace, name in [(target, "the trace"), (draft, "the draft's run")]:
        if not trace.has_actions:
            raise DataError(name, column="action", expected="actions to compare", found="none")
    keys = ["task", "run", "step"]
    other = draft.frame[[*keys, "gen_s"]].rename(columns={"gen_s": "draft_gen_s"})
    other["draft_action"] = draft.actions
    joined = target.frame[keys].merge(other, on=keys, how="left")
    paired = joined["draft_gen_s"].notna().to_numpy()
    paired_tasks = len(set(target.task_names) & set(draft.task_names))
    if not paired.any():
        column = "run" if paired_tasks else "task"
        ours, theirs = (
            f"run {t.frame['run'].iloc[0]} of {t.task_names[0]!r}" if paired_tasks else repr(name)
            for t, name in ((target, target.task_names[0]), (draft, draft.task_names[0]))
        )
        raise DataError(
            "the draft's run",
            column=column,
            expected=f"{column}s of the trace, such as {ours}",
            found=f"others, such as {theirs}",
        )
    draft_actions = joined["draft_action"].to_numpy(dtype=object)
    agrees = paired & _equal(target.actions, draft_actions)
    known = paired & _no_difference_before(agrees, target.run_starts_mask)
    steps = _step_hits(target, known[None], draft_actions[None])
    draft_gen_s = np.where(known, joined["draft_gen_s"].to_numpy(), 0.0)
    return RunComparison(
        steps=steps,
        draft_s=sum_by_task(target, draft_gen_s),
        target_s=sum_by_task(target, np.where(known, target.gen_s, 0.0)),
        unmatched_cost=float(draft.gen_s.mean() / target.gen_s.mean()),
        paired_tasks=paired_tasks,
        unshared_tools=tuple([*_only_in(target, draft), *_only_in(draft, target)]),
    )


def compare_predictions(target: Trace, predictions: Predictions) -> StepHits:
    """Compare teacher-forced predictions of one draft with the target's actions (Prop. 1).

    A step without a prediction is unknown; a null prediction is an invalid output, a miss.
    """
    aligned = predictions.aligned(target)
    return _step_hits(target, aligned.has, aligned.actions)


def count_hits(
    trace: Trace, steps: StepHits, *, last: bool = False, same_tasks: bool = True
) -> HitCounts:
    """Return hits and known outcomes per task: one parameter.

    Parameters
    ----------
    trace : Trace
        Whose steps they are.
    steps : StepHits
        The outcomes.
    last : bool, default False
        Count the last steps of segments only, or (default) all others: a hit on the last step
        saves no round, so an acceptance that decides commits must not be made of those.
    same_tasks : bool, default True
        As in :class:`HitCounts`.
    """
    counted = (trace.segments.remaining == 1) == last
    return HitCounts(
        hits=sum_by_task(trace, steps.hit.sum(axis=0) * counted)[:, None],
        known=sum_by_task(trace, steps.known.sum(axis=0) * counted)[:, None],
        same_tasks=same_tasks,
    )


def count_hits_by_position(
    trace: Trace, steps: StepHits, depth: int, *, same_tasks: bool = True, at_least: int = 30
) -> HitCounts:
    """Return hits and known outcomes per task and round position j = 1 … depth.

    Position j can only be reached at a step with j - 1 steps before it in its segment that all
    were hits, so its acceptance is estimated on those, last steps of segments aside. A position
    with fewer than ``at_least`` known outcomes takes the acceptance of the one before.
    """
    position = trace.segments.positions
    counted_at = trace.segments.remaining > 1
    hit, known = steps.hit.sum(axis=0) * counted_at, steps.known.sum(axis=0) * counted_at
    run_of_hits = np.ones(trace.n_steps, bool)  # the j - 1 steps before were all hits
    columns_hit: list[Floats] = []
    columns_known: list[Floats] = []
    all_hit = np.asarray(steps.hit.all(axis=0))
    for j in range(1, depth + 1):
        if j > 1:
            before = np.concatenate((np.zeros(j - 1, bool), all_hit[: 1 - j]))
            run_of_hits = run_of_hits & before & (position >= j - 1)
        counted = known * run_of_hits
        if j > 1 and counted.sum() < at_least:
            columns_hit.append(columns_hit[-1])
            columns_known.append(columns_known[-1])
            continue
        columns_hit.append(sum_by_task(trace, hit * run_of_hits))
        columns_known.append(sum_by_task(trace, counted))
    return HitCounts(np.column_stack(columns_hit), np.column_stack(columns_known), same_tasks)


def _only_in(trace: Trace, other: Trace) -> list[str]:
    often = OFTEN * trace.n_steps
    return [
        name for name, n in trace.tool_steps.items() if n >= often and name not in other.tool_steps
    ]


def _step_hits(target: Trace, known: np.ndarray, actions: np.ndarray) -> StepHits:
    null = _is_null(actions)
    # a boundary tool can't run in a copy, so nothing is proposed past it, wrong or right
    patterns = [str(pattern) for pattern in target.metadata.get("boundary_tools", ())]
    proposed = pd.Series(actions.ravel(), dtype=object)
    stopping = {
        action
        for action in proposed.dropna().unique()
        if action in TERMINAL_ACTIONS or calls_any(action, patterns)
    }
    ends = proposed.isin(stopping).to_numpy()
    hit = known & _equal(target.actions, actions)
    return StepHits(
        known=known,
        hit=hit,
        invalid=known & null,
        wrong_end=known & ~hit & ends.reshape(actions.shape),
    )


def _equal(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Compare object arrays of actions; null equals nothing."""
    same: np.ndarray = (first == second) & ~_is_null(first)
    return same.astype(bool)


def _is_null(actions: np.ndarray) -> np.ndarray:
    """Return where an object array holds None."""
    return np.asarray(pd.isna(actions), dtype=bool)


def _no_difference_before(agrees: np.ndarray, run_starts: np.ndarray) -> np.ndarray:
    """Return where all earlier steps of the run agree."""
    differences = np.cumsum(~agrees)
    before = differences - ~agrees
    at_run_start = np.maximum.accumulate(np.where(run_starts, before, 0))
    return before == at_run_start


def sum_by_task(trace: Trace, per_step: np.ndarray) -> Floats:
    """Return a per-step array's sums by task, shape (tasks,)."""
    sums = np.bincount(trace.task_codes, per_step.astype(np.float64), trace.n_tasks)
    return sums.astype(np.float64, copy=False)
