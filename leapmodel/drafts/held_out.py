"""Agreement of a trained draft on held-out tasks, seen and unseen action sequences apart.

A task counts as seen if the sequence of actions the target commits in it also occurs in a training
task: most of what more epochs and more data buy is familiarity with those (Table 13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leapmodel.drafts.rates import Rate, TaskRates
from leapmodel.hits import compare_predictions, sum_by_task
from leapmodel.holding_out import refuse_learned_tasks
from leapmodel.predictions import Predictions
from leapmodel.segments import Floats
from leapmodel.trace import Trace


@dataclass(frozen=True)
class HeldOut:
    """How often a draft's action is the target's, on contexts it was not trained on.

    Attributes
    ----------
    draft : str
        Its name.
    n_tasks, n_contexts, repeats : int
        Tasks and contexts asked about, and answers to each at most, averaged.
    exact : Rate
        Share of the answers that are the target's action; standard error over whole tasks.
    parsed : Rate
        Share that is an action at all.
    seen, unseen : Rate or None
        Exact agreement by whether the task's sequence of actions occurs in training; None without
        a training trace.
    n_seen, n_unseen : int or None
        Runs of tasks of each kind.
    latency_s, latency_p95_s : float or None
        Seconds a call, mean and 95th percentile.
    """

    draft: str
    n_tasks: int
    n_contexts: int
    repeats: int
    exact: Rate
    parsed: Rate
    seen: Rate | None
    unseen: Rate | None
    n_seen: int | None
    n_unseen: int | None
    latency_s: float | None
    latency_p95_s: float | None

    def summary(self) -> str:
        """Return the agreement in a few lines."""
        asked = f"{self.n_contexts:,} context{'s' * (self.n_contexts != 1)}"
        asked += f" of {self.n_tasks:,} task{'s' * (self.n_tasks != 1)}"
        if self.repeats > 1:
            asked += f", {self.repeats} answers each"
        lines = [f"{self.draft}: exact match {self.exact} ({asked}); parsed {self.parsed}"]
        if self.seen is not None and self.unseen is not None:
            lines.append(
                f"action sequence seen in training ({self.n_seen} runs): {self.seen};"
                f" unseen ({self.n_unseen}): {self.unseen}"
            )
        if self.latency_s is not None and self.latency_p95_s is not None:
            lines.append(
                f"{1e3 * self.latency_s:.0f} ms a call (p95 {1e3 * self.latency_p95_s:.0f}),"
                " one at a time"
            )
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return one row a kind of context.

        Columns: ``contexts`` (``all``, ``seen``, ``unseen``), ``exact`` (share) and ``exact_se``
        (standard error over tasks, NaN where fewer than 10 contribute).
        """
        rates = {"all": self.exact, "seen": self.seen, "unseen": self.unseen}
        return pd.DataFrame(
            [
                {"contexts": name, "exact": rate.value, "exact_se": rate.standard_error}
                for name, rate in rates.items()
                if rate is not None
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a rate is [value, standard error], unavailable is None."""

        def pair(rate: Rate | None) -> list[Any] | None:
            return None if rate is None else rate.to_list()

        return {
            "schema_version": 1,
            "draft": self.draft,
            "tasks": self.n_tasks,
            "contexts": self.n_contexts,
            "repeats": self.repeats,
            "exact": pair(self.exact),
            "parsed": pair(self.parsed),
            "seen": pair(self.seen),
            "unseen": pair(self.unseen),
            "seen_runs": self.n_seen,
            "unseen_runs": self.n_unseen,
            "latency_s": self.latency_s,
            "latency_p95_s": self.latency_p95_s,
        }

    def _repr_html_(self) -> str:
        from html import escape

        table = self.to_frame().to_html(index=False, float_format="{:.3f}".format, na_rep="–")
        return f"<p>{escape(self.summary().splitlines()[0])}</p>{table}"


def held_out(
    trace: Trace,
    predictions: Predictions,
    *,
    draft: str | None = None,
    training: Trace | None = None,
    seed: int = 0,
) -> HeldOut:
    """Score a draft's predictions against the target's actions.

    Parameters
    ----------
    trace : Trace
        Of the held-out tasks.
    predictions : Predictions
        On its contexts.
    draft : str, optional
        Which draft, if there are several.
    training : Trace, optional
        What the draft learned from, for the split into seen and unseen.
    seed : int, default 0
        Of the task bootstrap.

    Raises
    ------
    UsageError
        If a task of ``trace`` is in ``training``: it is not held out.

    Examples
    --------
    >>> trace = Trace.from_frame(pd.DataFrame({
    ...     "task": "a", "step": [0, 1], "gen_s": 1.0, "action": ["ls({})", "<respond/>"]}))
    >>> predictions = Predictions.from_frame(pd.DataFrame({
    ...     "task": "a", "step": [0, 1], "action": ["cd({})", "<respond/>"], "latency_s": 0.1}))
    >>> print(held_out(trace, predictions).summary())
    draft: exact match 50.0% (2 contexts of 1 task); parsed 100.0%
    100 ms a call (p95 100), one at a time
    """
    chosen = predictions.select(draft)
    aligned = chosen.aligned(trace)
    known = aligned.has.sum(axis=0).astype(float)
    exact = compare_predictions(trace, chosen).hit.sum(axis=0).astype(float)
    parsed = (aligned.has & (aligned.actions != None)).sum(axis=0).astype(float)  # noqa: E711
    seen = np.zeros(trace.n_steps, bool)
    n_seen = n_unseen = None
    if training is not None:
        seen, n_seen, n_unseen = _seen(trace, training)

    def sums(*columns: Floats) -> Floats:
        return np.column_stack([sum_by_task(trace, column) for column in columns])

    rates = TaskRates(
        sums(exact, parsed, exact * seen, exact * ~seen),
        sums(known, known, known * seen, known * ~seen),
        seed=seed,
    )
    seconds = chosen.frame["latency_s"].dropna().to_numpy(dtype=np.float64)
    asked = known > 0
    return HeldOut(
        draft=chosen.draft_names[0],
        n_tasks=len(np.unique(trace.task_codes[asked])),
        n_contexts=int(asked.sum()),
        repeats=len(aligned.has),
        exact=rates[0],
        parsed=rates[1],
        seen=None if training is None else rates[2],
        unseen=None if training is None else rates[3],
        n_seen=n_seen,
        n_unseen=n_unseen,
        latency_s=float(seconds.mean()) if len(seconds) else None,
        latency_p95_s=float(np.percentile(seconds, 95)) if len(seconds) else None,
    )


def _seen(trace: Trace, training: Trace) -> tuple[np.ndarray, int, int]:
    """Return which steps belong to a run whose actions occur in training, and the runs' counts."""
    refuse_learned_tasks("the training trace has", training.task_names, trace.task_names)
    known = {tuple(run) for run in _runs(training)}
    flags = [tuple(run) in known for run in _runs(trace)]
    lengths = [len(run) for run in _runs(trace)]
    return np.repeat(flags, lengths), sum(flags), len(flags) - sum(flags)


def _runs(trace: Trace) -> list[np.ndarray]:
    return np.split(trace.actions, np.flatnonzero(trace.run_starts_mask)[1:])
