"""Segments of tasks, laid end to end: the shape of a trace without its times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leapmodel.segments import Floats, Ints, Segments


@dataclass(frozen=True, eq=False)
class Layout:
    """How many steps each segment has, and which task it belongs to.

    Attributes
    ----------
    segment_lengths : ndarray of int, shape (segments,)
        Steps of each segment.
    segment_tasks : ndarray of int, shape (segments,)
        The task of each segment, 0, 1, …; a task's segments stand together.

    Examples
    --------
    >>> talk = Layout(np.array([2, 3, 2]), np.array([0, 0, 1]))
    >>> talk.task_lengths.tolist(), talk.n_steps
    ([5, 2], 7)
    >>> talk.step_tasks.tolist(), talk.step_segments.tolist()
    ([0, 0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 1, 0, 0])
    """

    segment_lengths: Ints
    segment_tasks: Ints

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return int(self.segment_lengths.sum())

    @property
    def task_lengths(self) -> Ints:
        """Steps of each task, shape (tasks,)."""
        sums = np.bincount(self.segment_tasks, weights=self.segment_lengths)
        return sums.astype(np.intp)

    @property
    def step_tasks(self) -> Ints:
        """The task of each step, shape (steps,)."""
        return np.repeat(self.segment_tasks, self.segment_lengths)

    @property
    def step_segments(self) -> Ints:
        """The segment of each step, counted within its task, shape (steps,)."""
        per_task = np.bincount(self.segment_tasks)
        first = np.repeat(np.cumsum(per_task) - per_task, per_task)
        return np.repeat(np.arange(len(self.segment_tasks)) - first, self.segment_lengths)

    def segments(self, gen_s: Floats | None = None) -> Segments:
        """Return the segments with these step times; one second a step by default."""
        starts = np.cumsum(self.segment_lengths) - self.segment_lengths
        seconds = np.ones(self.n_steps) if gen_s is None else gen_s
        return Segments(seconds, starts=starts, groups=self.segment_tasks)
