"""A draft known by what it did beside the target: its predictions, or an independent run."""

from __future__ import annotations

from typing import Literal

import numpy as np

from leapmodel.acceptance import Acceptance, PooledAcceptance, TaskAcceptance, TeacherForced
from leapmodel.bootstrap import MIN_TASKS
from leapmodel.draft import Draft, DraftCost, cost_as, require_known, stated_cost
from leapmodel.errors import UsageError
from leapmodel.hits import (
    HitCounts,
    StepHits,
    compare_predictions,
    compare_runs,
    count_hits,
    count_hits_by_position,
    sum_by_task,
)
from leapmodel.predictions import Predictions
from leapmodel.trace import Trace

Pool = Literal["auto", "all", "position", "task"]
TASKS_DIFFER = 0.25
"""Below this p-value tasks are taken to differ in how predictable they are. It is lax on purpose:
to pool unlike tasks promises too much, to tell alike ones apart only widens the interval."""
TREND = 2.5
"""Standard errors from which a trend of first hits with task length is said."""
LOW_COVERAGE = 0.5
"""Below this share of known steps a warning is given."""


def draft_from_predictions(
    trace: Trace,
    predictions: Predictions,
    *,
    draft: str | None = None,
    latency_s: float | None = None,
    cost: float | None = None,
    evidence_trace: Trace | None = None,
    name: str | None = None,
) -> Draft:
    """Return a draft known by its predictions on the target's own contexts (Table 11).

    Parameters
    ----------
    trace : Trace
        The trace whose speedup is asked for.
    predictions : Predictions
        The draft's outputs; every repeat is replayed, and the replays are averaged.
    draft : str, optional
        Which draft of the file; needed if it holds several.
    latency_s, cost : float, optional
        Cost of a call as for :func:`~leapmodel.draft.stated_draft`, if the predictions have no
        ``latency_s``.
    evidence_trace : Trace, optional
        The trace whose contexts were predicted, if it is another one (such as validation tasks):
        then only the pooled acceptance is taken from it.
    name : str, optional
        For tables; default the draft's name in the file.

    Raises
    ------
    DataError, UsageError
        If the predictions do not belong to the trace, or have no latency and none is stated.
    """
    chosen = predictions.select(draft)
    of = evidence_trace or trace
    same = evidence_trace is None
    aligned = chosen.aligned(of)
    steps = compare_predictions(of, chosen)
    counts, at_last = _counts(of, steps, same)
    label = name or chosen.draft_names[0]
    facts = _hit_facts(of, steps)
    require_known(facts, label)
    conditional = _unknown_condition(steps) if same else []
    timed = np.isfinite(aligned.latency_s)
    if latency_s is not None or cost is not None:
        price, unit = stated_cost(latency_s, cost)
        conditional.append(cost_as(unit, "stated"))
    elif timed.any():
        seconds = np.where(timed, aligned.latency_s, 0.0).sum(axis=0)
        price = DraftCost(
            sum_by_task(of, seconds),
            sum_by_task(of, timed.sum(axis=0)),
            "seconds",
            measured=True,
            same_tasks=same,
        )
    else:
        raise UsageError(
            f"{label}: the predictions have no latency_s; state the draft's cost"
            " (--draft-latency SECONDS)"
        )
    forced = TeacherForced(steps, counts)
    return Draft(
        label,
        "its predictions on the trace's contexts" if same else "its predictions on other tasks",
        forced if same else PooledAcceptance(counts, at_last),
        price,
        known=forced if same else None,
        conditional_on=tuple(conditional),
        warnings=(*chosen.metadata.get("warnings", ()), *_coverage_warnings(steps, label)),
        facts={**facts, "repeats": len(steps.known)},
    )


def draft_from_run(
    trace: Trace,
    run: Trace,
    *,
    pool: Pool = "auto",
    depth: int = 8,
    latency_s: float | None = None,
    cost: float | None = None,
    evidence_trace: Trace | None = None,
    name: str = "draft run",
) -> Draft:
    """Return a draft known by an independent run of it on the same tasks.

    Hits are known while both runs took the same actions. Where tasks differ in how predictable
    they are, the predictable ones supply most of the known steps, and one pooled acceptance would
    promise too much: then each task gets its own, drawn towards the usual. A call costs as much
    of a target step as the run's steps did over the known steps, unless it is stated.

    Parameters
    ----------
    trace : Trace
        The trace whose speedup is asked for.
    run : Trace
        The draft's own sequential run.
    pool : {"auto", "all", "position", "task"}, default "auto"
        One acceptance for all; one per round position; one per task, drawn towards the usual
        (beta-binomial); or (auto) per task if a likelihood ratio test finds that tasks differ.
    depth : int, default 8
        How many positions ``pool="position"`` may tell apart.
    latency_s, cost : float, optional
        Cost of a call, if it is to be stated instead.
    evidence_trace : Trace, optional
        The target's trace of the tasks of ``run``, if they are not those of ``trace``.
    name : str
        For tables.

    Raises
    ------
    DataError
        If the runs have no task or no known step in common.
    """
    of = evidence_trace or trace
    same = evidence_trace is None
    compared = compare_runs(of, run)
    facts = _hit_facts(of, compared.steps)
    require_known(facts, name)
    conditional = _unknown_condition(compared.steps) if same else []
    run_warnings = [
        f"{name}: the tool {tool} is used often by one of the two runs and never by the other:"
        " harness noise, to be left out when importing?"
        for tool in compared.unshared_tools
    ]
    counts, at_last = _counts(of, compared.steps, same)
    by_task = TaskAcceptance(
        _per_run(counts, of, compared.steps),
        trace.task_codes,
        trace.segments.remaining == 1,
        at_last=at_last,
    )
    tasks_differ = counts.n_tasks > 1 and by_task.fit.p_value < TASKS_DIFFER
    acceptance: Acceptance = PooledAcceptance(counts, at_last)
    if pool == "task" or (pool == "auto" and tasks_differ):
        acceptance = by_task
    elif tasks_differ:
        run_warnings.append(
            f"{name}: tasks differ in how predictable they are, and the predictable ones supply"
            " most of the known steps: a pooled acceptance promises too much (--pool task)"
        )
    if pool == "position":
        positions = count_hits_by_position(of, compared.steps, depth, same_tasks=same)
        if positions.known.sum(axis=0).all():
            acceptance = PooledAcceptance(positions, at_last)
    if (trend := _trend_with_length(of, compared.steps)) is not None:
        run_warnings.append(f"{name}: {trend}")
    if latency_s is not None or cost is not None:
        price, unit = stated_cost(latency_s, cost)
        conditional.append(cost_as(unit, "stated"))
    else:
        price = DraftCost(
            compared.draft_s, compared.target_s, "target steps", measured=True, same_tasks=same
        )
    return Draft(
        name,
        "an independent run of the draft"
        + ("" if same else " on other tasks")
        + (", one acceptance a task" if acceptance is by_task else ""),
        acceptance,
        price,
        known=TeacherForced(compared.steps, counts) if same else None,
        conditional_on=tuple(conditional),
        warnings=(*run_warnings, *_coverage_warnings(compared.steps, name)),
        facts={
            **facts,
            "paired_tasks": compared.paired_tasks,
            "unmatched_cost": compared.unmatched_cost,
        },
    )


def _counts(trace: Trace, steps: StepHits, same: bool) -> tuple[HitCounts, float | None]:
    """Return counts at all but last steps, and the acceptance at last steps."""
    counts = count_hits(trace, steps, same_tasks=same)
    last = count_hits(trace, steps, last=True, same_tasks=same)
    if not counts.known.sum():  # only one-step segments are known: no hit there saves a round
        return last, None
    return counts, float(last.acceptance[0]) if last.known.sum() else None


def _per_run(counts: HitCounts, trace: Trace, steps: StepHits) -> HitCounts:
    """Return the counts of an average run of each task."""
    begun = sum_by_task(trace, trace.run_starts_mask & steps.known.any(axis=0))
    runs = np.maximum(begun, 1.0)[:, None]
    return HitCounts(counts.hits / runs, counts.known / runs, counts.same_tasks)


def _trend_with_length(trace: Trace, steps: StepHits) -> str | None:
    """Say if long tasks begin with a hit more or less often than short ones, beyond chance."""
    first = trace.run_starts_mask & steps.known[0]
    hit = steps.hit[0][first].astype(float)
    starts = np.flatnonzero(trace.run_starts_mask)
    lengths = np.diff(np.append(starts, trace.n_steps))[np.isin(starts, np.flatnonzero(first))]
    if len(hit) < MIN_TASKS or hit.std() == 0 or lengths.std() == 0:
        return None
    ranks = np.searchsorted(np.sort(lengths), lengths) + np.searchsorted(
        np.sort(lengths), lengths, side="right"
    )
    strength = float(np.corrcoef(ranks, hit)[0, 1]) * np.sqrt(len(hit))
    if abs(strength) < TREND:
        return None
    worse = "worse" if strength < 0 else "better"
    return (
        f"long tasks are predicted {worse} than short ones, which an acceptance shared by all steps"
        f" does not know: the speedup is likely {'lower' if strength < 0 else 'higher'}"
    )


def _unknown_condition(steps: StepHits) -> list[str]:
    unknown = 1 - steps.coverage
    return [f"the {unknown:.0%} of steps not known being like the others"] if unknown > 0 else []


def _coverage_warnings(steps: StepHits, name: str) -> tuple[str, ...]:
    if steps.coverage >= LOW_COVERAGE:
        return ()
    return (
        f"{name}: the outcome is known on {steps.coverage:.0%} of the steps only; the rest is taken"
        " to be like them (with an independent run they are the early ones)",
    )


def _hit_facts(trace: Trace, steps: StepHits) -> dict[str, float | int]:
    """Return what the hits are, in all and apart for the last steps of segments."""
    facts: dict[str, float | int] = {
        "known": int(steps.known.sum()),
        "hits": int(steps.hit.sum()),
    }
    for name, last in (("acceptance_before_last", False), ("acceptance_at_last", True)):
        counts = count_hits(trace, steps, last=last)
        if counts.known.sum():
            facts[name] = float(counts.acceptance[0])
    return facts
