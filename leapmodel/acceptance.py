"""How often a draft's proposals are accepted, as something that can be replayed over a trace.

Four kinds with one interface: stated, pooled from counts, one per task, or step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from leapmodel.beta_binomial import (
    CORRELATIONS,
    BetaBinomialFit,
    fit_beta_binomial,
    posterior_values,
)
from leapmodel.hits import HitCounts, StepHits
from leapmodel.replay import (
    ReplaySums,
    StepOutcomes,
    Terminal,
    average_sums,
    exact_replay,
    teacher_forced_replay,
)
from leapmodel.segments import Floats, Segments


@dataclass(frozen=True, eq=False)
class Estimate:
    """Parameters that were estimated from tasks, and how they move when tasks are resampled.

    Attributes
    ----------
    parameters : ndarray, shape (parameters,)
        The estimate.
    table : ndarray, shape (tasks, quantities)
        Sums per task that the estimate is made of.
    of_sums : callable
        From resampled sums, shape (resamples, quantities), to resampled parameters.
    influence : ndarray, shape (tasks, parameters)
        To first order, how much one more copy of a task moves the parameters.
    limits : tuple of (array_like, array_like)
        Lowest and highest values that the parameters can take.
    same_tasks : bool
        As in :class:`~leapmodel.hits.HitCounts`.
    n_tasks : int
        Tasks that carry information.
    """

    parameters: Floats
    table: Floats
    of_sums: Callable[[Floats], Floats]
    influence: Floats
    limits: tuple[Sequence[float], Sequence[float]]
    same_tasks: bool
    n_tasks: int


class Acceptance(Protocol):
    """How often proposals are accepted, as something that can be replayed."""

    @property
    def estimate(self) -> Estimate | None:
        """What was estimated, or None if nothing was."""
        ...

    def replay(
        self,
        segments: Segments,
        depths: Sequence[int] | np.ndarray,
        terminal: Terminal,
        parameters: Floats | None = None,
    ) -> ReplaySums:
        """Return the replay, with other values of the parameters if they are given."""
        ...

    def law(self, deepest: int) -> list[StepOutcomes] | Floats | float:
        """Return what :func:`~leapmodel.replay.verification_work` takes, or one per repeat."""
        ...


@dataclass(frozen=True, eq=False)
class StatedAcceptance:
    """An acceptance that somebody states, a_j: one for all positions or one per position."""

    values: Floats
    estimate: Estimate | None = None

    def replay(
        self,
        segments: Segments,
        depths: Sequence[int] | np.ndarray,
        terminal: Terminal,
        parameters: Floats | None = None,
    ) -> ReplaySums:
        """Return the exact replay."""
        return exact_replay(segments, self.law(int(np.max(depths))), depths, terminal=terminal)

    def law(self, deepest: int) -> Floats | float:
        """Return the acceptance; the last position's goes on past those that were stated."""
        if len(self.values) == 1:
            return float(self.values[0])
        return np.pad(self.values, (0, max(0, deepest - len(self.values))), mode="edge")


@dataclass(frozen=True, eq=False)
class PooledAcceptance:
    """Hits over known outcomes, pooled over tasks: one for all positions or one per position.

    Attributes
    ----------
    counts : HitCounts
        At steps that are not the last of their segment: only there does a hit save a round.
    at_last : float or None
        Acceptance at last steps, which moves hit rates and e alone.
    """

    counts: HitCounts
    at_last: float | None = None

    @cached_property
    def estimate(self) -> Estimate:
        """The pooled acceptance(s)."""
        return _pooled(self.counts)

    def replay(
        self,
        segments: Segments,
        depths: Sequence[int] | np.ndarray,
        terminal: Terminal,
        parameters: Floats | None = None,
    ) -> ReplaySums:
        """Return the exact replay of the whole trace."""
        values = self.estimate.parameters if parameters is None else parameters
        law = StatedAcceptance(values).law(int(np.max(depths)))
        return exact_replay(segments, law, depths, terminal=terminal, last_acceptance=self.at_last)

    def law(self, deepest: int) -> Floats | float:
        """Return the acceptance(s)."""
        return StatedAcceptance(self.estimate.parameters).law(deepest)


@dataclass(frozen=True, eq=False)
class TaskAcceptance:
    """One acceptance per task: its own outcomes, drawn towards what is usual among the tasks.

    What a task's acceptance is stays uncertain after few outcomes, and rounds are not linear in
    it, so the replay is averaged over a few equally likely values of each task's posterior.

    Attributes
    ----------
    counts : HitCounts
        As for :class:`PooledAcceptance`, one column, for one run of each task: several runs of a
        task meet the same steps, and would make tasks look more different than they are.
    task_codes : ndarray of int, shape (steps,)
        The task of each step of the trace that is replayed.
    is_last : ndarray of bool, shape (steps,)
        Where a step is the last of its segment.
    at_last : float or None
        Acceptance there.
    """

    counts: HitCounts
    task_codes: np.ndarray
    is_last: np.ndarray
    at_last: float | None = None

    @cached_property
    def fit(self) -> BetaBinomialFit:
        """How the tasks differ."""
        return fit_beta_binomial(self.counts.hits[:, 0], self.counts.known[:, 0])

    @cached_property
    def estimate(self) -> Estimate:
        """Mean and correlation of the fit."""
        fit = self.fit
        return Estimate(
            parameters=fit.parameters,
            table=fit.influence,
            of_sums=lambda sums: fit.parameters + sums,
            influence=fit.influence,
            limits=([-np.inf, CORRELATIONS[0]], [np.inf, CORRELATIONS[1]]),
            same_tasks=self.counts.same_tasks,
            n_tasks=self.counts.n_tasks,
        )

    def by_step(self, parameters: Floats) -> list[Floats]:
        """Return equally likely acceptances of each step of the trace."""
        hits, known = self.counts.hits[:, 0], self.counts.known[:, 0]
        if not self.counts.same_tasks:  # nothing is known of these very tasks
            hits = known = np.zeros(int(self.task_codes.max()) + 1)
        values = [column[self.task_codes] for column in posterior_values(parameters, hits, known)]
        if self.at_last is None:
            return values
        return [np.where(self.is_last, self.at_last, by_step) for by_step in values]

    def replay(
        self,
        segments: Segments,
        depths: Sequence[int] | np.ndarray,
        terminal: Terminal,
        parameters: Floats | None = None,
    ) -> ReplaySums:
        """Return the mean of the replays with each task's likely acceptances."""
        values = self.estimate.parameters if parameters is None else parameters
        return average_sums(
            [
                teacher_forced_replay(segments, by_step, depths, terminal=terminal)
                for by_step in self.by_step(values)
            ]
        )

    def law(self, deepest: int) -> list[StepOutcomes]:
        """Return the acceptance of each step, once for each likely value."""
        return [StepOutcomes(by_step) for by_step in self.by_step(self.estimate.parameters)]


@dataclass(frozen=True, eq=False)
class TeacherForced:
    """The draft's own outputs on the trace's contexts; unknown ones take the pooled acceptance."""

    steps: StepHits
    counts: HitCounts

    @cached_property
    def estimate(self) -> Estimate | None:
        """The pooled acceptance, if any step is unknown."""
        return None if self.steps.known.all() else _pooled(self.counts)

    def replay(
        self,
        segments: Segments,
        depths: Sequence[int] | np.ndarray,
        terminal: Terminal,
        parameters: Floats | None = None,
    ) -> ReplaySums:
        """Return the mean of the replays of all repeats."""
        return self.replay_with_unknown(self._unknown(parameters), segments, depths, terminal)

    def replay_with_unknown(
        self,
        unknown: float,
        segments: Segments,
        depths: Sequence[int] | np.ndarray,
        terminal: Terminal,
    ) -> ReplaySums:
        """Return the replay with one hit probability for all unknown steps: 0 and 1 are bounds."""
        return average_sums(
            [
                teacher_forced_replay(segments, outcomes, depths, terminal=terminal)
                for outcomes in self.steps.outcomes(unknown)
            ]
        )

    def law(self, deepest: int) -> list[StepOutcomes]:
        """Return each repeat's outcomes."""
        return self.steps.outcomes(self._unknown(None))

    def _unknown(self, parameters: Floats | None) -> float:
        if parameters is not None and len(parameters):
            return float(parameters[0])
        return 0.0 if self.estimate is None else float(self.estimate.parameters[0])


def _pooled(counts: HitCounts) -> Estimate:
    """Return hits over known outcomes, one ratio a column."""
    rates, width = counts.acceptance, counts.hits.shape[1]

    def ratios(sums: Floats) -> Floats:
        hits, known = sums[:, :width], sums[:, width:]
        drawn = known > 0  # a resample may hold no task with known outcomes
        return np.where(drawn, hits / np.where(drawn, known, 1.0), rates)

    return Estimate(
        parameters=rates,
        table=np.hstack([counts.hits, counts.known]),
        of_sums=ratios,
        influence=(counts.hits - rates * counts.known) / counts.known.sum(axis=0),
        limits=([0.0] * width, [1.0] * width),
        same_tasks=counts.same_tasks,
        n_tasks=counts.n_tasks,
    )
