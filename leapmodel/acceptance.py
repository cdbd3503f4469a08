"""How often a draft's proposals are accepted, as something that can be replayed over a trace.

Four kinds with one interface: stated, pooled from counts, one per task, or step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

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


class Acceptance(Protocol):
    """How often proposals are accepted, as something that can be replayed."""

    @property
    def parameters(self) -> Floats:
        """What was estimated from counts, shape (parameters,); empty if nothing was."""
        ...

    @property
    def counts(self) -> HitCounts | None:
        """The counts behind the parameters, one column for each."""
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
    counts: HitCounts | None = None

    @property
    def parameters(self) -> Floats:
        """Nothing is estimated."""
        return np.empty(0)

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
    """Hits over known outcomes, pooled over tasks: one for all positions or one per position."""

    counts: HitCounts

    @property
    def parameters(self) -> Floats:
        """The pooled acceptance(s)."""
        return self.counts.acceptance

    def replay(
        self,
        segments: Segments,
        depths: Sequence[int] | np.ndarray,
        terminal: Terminal,
        parameters: Floats | None = None,
    ) -> ReplaySums:
        """Return the exact replay of the whole trace."""
        values = StatedAcceptance(self.parameters if parameters is None else parameters)
        return values.replay(segments, depths, terminal)

    def law(self, deepest: int) -> Floats | float:
        """Return the acceptance(s)."""
        return StatedAcceptance(self.parameters).law(deepest)


@dataclass(frozen=True, eq=False)
class TaskAcceptance:
    """One acceptance per task, drawn towards the pooled one; taken as given when resampling."""

    by_step: Floats
    counts: HitCounts | None = None

    @property
    def parameters(self) -> Floats:
        """Nothing is resampled apart from the tasks themselves."""
        return np.empty(0)

    def replay(
        self,
        segments: Segments,
        depths: Sequence[int] | np.ndarray,
        terminal: Terminal,
        parameters: Floats | None = None,
    ) -> ReplaySums:
        """Return the replay with each step's own acceptance."""
        return teacher_forced_replay(segments, self.by_step, depths, terminal=terminal)

    def law(self, deepest: int) -> list[StepOutcomes]:
        """Return the acceptance of each step."""
        return [StepOutcomes(self.by_step)]


@dataclass(frozen=True, eq=False)
class TeacherForced:
    """The draft's own outputs on the trace's contexts; unknown ones take the pooled acceptance."""

    steps: StepHits
    counts: HitCounts

    @property
    def parameters(self) -> Floats:
        """The pooled acceptance, if any step is unknown."""
        return np.empty(0) if self.steps.known.all() else self.counts.acceptance

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
        return float(self.parameters[0]) if len(self.parameters) else 0.0
