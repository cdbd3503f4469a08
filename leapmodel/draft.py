"""A draft, as far as a prediction needs it: how often it is right, what a call costs, how we know.

Four origins give the same object: figures a person states (:func:`stated_draft`), teacher-forced
predictions (:func:`draft_from_predictions`; also those of a model learned from the trace itself),
an independent run (:func:`draft_from_run`), and the rounds of a measured speculative run
(:mod:`leapmodel.measured_draft`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from leapmodel.acceptance import (
    Acceptance,
    PooledAcceptance,
    StatedAcceptance,
    TaskAcceptance,
    TeacherForced,
)
from leapmodel.bootstrap import MIN_TASKS
from leapmodel.errors import DataError, UsageError
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
from leapmodel.segments import Floats
from leapmodel.trace import Trace

Pool = Literal["auto", "all", "position", "task"]
TASKS_DIFFER = 0.25
"""Below this p-value tasks are taken to differ in how predictable they are. It is lax on purpose:
to pool unlike tasks promises too much, to tell alike ones apart only widens the interval."""
TREND = 2.5
"""Standard errors from which a trend of first hits with task length is said."""
LOW_COVERAGE = 0.5
"""Below this share of known steps a warning is given."""


@dataclass(frozen=True, eq=False)
class DraftCost:
    """What one draft call costs.

    Attributes
    ----------
    numerator, denominator : ndarray, shape (tasks,) or (1,)
        Draft seconds over calls, or over the target's seconds, per task; of one task if stated.
    unit : {"seconds", "target steps"}
        Whether the ratio is seconds a call (t_draft) or t_draft / t_gen (d).
    measured : bool
        False if somebody stated it.
    same_tasks : bool
        As in :class:`~leapmodel.hits.HitCounts`.
    """

    numerator: Floats
    denominator: Floats
    unit: Literal["seconds", "target steps"]
    measured: bool
    same_tasks: bool = True

    def seconds(self, mean_gen_s: float) -> float:
        """Return seconds a call, given t_gen."""
        ratio = float(self.numerator.sum() / self.denominator.sum())
        return ratio if self.unit == "seconds" else ratio * mean_gen_s


@dataclass(frozen=True, eq=False, repr=False)
class Draft:
    """The evidence for one draft.

    Attributes
    ----------
    name : str
        For tables.
    source : str
        Where the evidence comes from, in words.
    acceptance : Acceptance
        How often its proposals are accepted.
    cost : DraftCost
        What a call costs.
    known : TeacherForced or None
        The step-by-step evidence behind a pooled acceptance, for its bounds.
    conditional_on : tuple of str
        What was stated or held fixed, so that no interval covers it.
    warnings : tuple of str
        What limits the evidence.
    facts : dict
        Numbers behind it (known steps, hits, paired tasks, …).
    slowdown : tuple of float
        The target's time per token with 1, 2, … requests at once over that of one alone, if it was
        timed along with the draft; empty otherwise.
    """

    name: str
    source: str
    acceptance: Acceptance
    cost: DraftCost
    known: TeacherForced | None = None
    conditional_on: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    facts: dict[str, float | int] = field(default_factory=dict)
    slowdown: tuple[float, ...] = ()

    def __repr__(self) -> str:
        return f"<Draft {self.name}: {self.source}>"

    @property
    def evidence_tasks(self) -> int | None:
        """Tasks that what was measured of it comes from, or None if all of it was stated."""
        found = []
        if self.acceptance.estimate is not None:
            found.append(self.acceptance.estimate.n_tasks)
        elif self.known is not None:
            found.append(self.known.counts.n_tasks)
        if self.cost.measured:
            found.append(int((self.cost.denominator > 0).sum()))
        return min(found, default=None)

    @property
    def coverage(self) -> float | None:
        """Share of steps whose outcome is known, or None if the acceptance was stated."""
        return None if self.known is None else self.known.steps.coverage


def stated_draft(
    acceptance: float | Sequence[float],
    *,
    latency_s: float | None = None,
    cost: float | None = None,
    name: str = "stated draft",
) -> Draft:
    """Return a draft described by figures that somebody states.

    Parameters
    ----------
    acceptance : float or sequence of float
        Acceptance of a proposal whose predecessors were accepted, a_j, in [0, 1]: one for all
        positions, or one per position (the last goes on).
    latency_s : float, optional
        Seconds of one draft call, >= 0.
    cost : float, optional
        The same over t_gen, d. Exactly one of the two must be given.
    name : str, default "stated draft"
        For tables.

    Raises
    ------
    UsageError
        If a value is out of range, or not exactly one cost is given.

    Examples
    --------
    >>> stated_draft([0.8, 0.7], latency_s=0.2).source
    'acceptance 0.8, 0.7 and 0.2 s a call, as stated'
    """
    values = np.atleast_1d(np.asarray(acceptance, dtype=np.float64))
    if not len(values) or not ((values >= 0) & (values <= 1)).all():
        raise UsageError(f"acceptance: expected numbers from 0 to 1, found {_listed(values)}")
    said = _listed(values)
    price, unit = stated_cost(latency_s, cost)
    words = f"{latency_s:g} s a call" if latency_s is not None else f"{cost:g} target steps a call"
    return Draft(
        name,
        f"acceptance {said} and {words}, as stated",
        StatedAcceptance(values),
        price,
        conditional_on=("the acceptance, as stated", cost_as(unit, "stated")),
    )


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
        Cost of a call as for :func:`stated_draft`, if the predictions have no ``latency_s``.
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


def stated_cost(latency_s: float | None, cost: float | None) -> tuple[DraftCost, str]:
    """Return a cost that somebody states in one of two units, and the unit in words."""
    if (latency_s is None) == (cost is None):
        raise UsageError("state either the draft's seconds a call or its cost in target steps")
    value = latency_s if latency_s is not None else cost
    assert value is not None
    if not np.isfinite(value) or value < 0:
        raise UsageError(f"the draft's cost: expected a number >= 0, found {value:g}")
    unit: Literal["seconds", "target steps"] = "target steps" if latency_s is None else "seconds"
    return DraftCost(np.array([value]), np.array([1.0]), unit, measured=False), unit


def cost_as(unit: str, known: str) -> str:
    """Return what depends on a call's cost, and how that is known, in words."""
    return f"the draft's {unit} a call, as {known}"


def probed(draft: Draft, slowdown: Sequence[float] = ()) -> Draft:
    """Return a draft whose cost a call was not stated but timed by ``leapmodel probe``.

    Parameters
    ----------
    draft : Draft
        Built with the probed seconds a call.
    slowdown : sequence of float, default ()
        What the probe found of the target.

    Examples
    --------
    >>> probed(stated_draft(0.8, latency_s=0.2)).conditional_on
    ('the acceptance, as stated', "the draft's seconds a call, as probed")
    """
    stated = cost_as(draft.cost.unit, "stated")
    conditions = tuple(
        cost_as(draft.cost.unit, "probed") if condition == stated else condition
        for condition in draft.conditional_on
    )
    return replace(draft, conditional_on=conditions, slowdown=tuple(slowdown) or draft.slowdown)


def _listed(values: Floats) -> str:
    return ", ".join(f"{value:.9g}" for value in values) or "none"


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


def require_known(facts: dict[str, float | int], name: str) -> None:
    """Refuse evidence without a single known outcome."""
    if not facts["known"]:
        raise DataError(
            name, expected="at least one step whose outcome is known", found="none in common"
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
