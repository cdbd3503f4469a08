"""How many steps the paper's tasks have: what it prints, and what has to be filled in.

Table 18 sorts the main runs' tasks into buckets by their number of sequential steps. Some buckets
are a single number, others are open; inside an open bucket lengths are chosen here, so that the
other numbers the paper prints come out. Every choice is argued for beside it. BFCL, which Table 18
leaves out, is in :mod:`leapmodel.paper.turns`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from leapmodel.errors import UsageError
from leapmodel.paper.layout import Layout
from leapmodel.paper.shuffling import shuffled
from leapmodel.segments import Ints, Segments


@dataclass(frozen=True)
class TaskLengths:
    """Steps of each task of one benchmark.

    Attributes
    ----------
    benchmark : str
        The paper's name of it.
    tasks_of_length : dict of int to int
        How many tasks have so many steps; one segment a task.
    buckets : dict of str to (int, int)
        Table 18's buckets as (fewest, most) steps.
    reasoning : tuple of str
        What is printed, what was chosen, and why.
    """

    benchmark: str
    tasks_of_length: dict[int, int]
    buckets: dict[str, tuple[int, int]]
    reasoning: tuple[str, ...]

    @property
    def lengths(self) -> Ints:
        """Steps of each task, shortest first, shape (tasks,)."""
        steps, tasks = zip(*sorted(self.tasks_of_length.items()), strict=True)
        return np.repeat(np.asarray(steps, dtype=np.intp), tasks)

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return sum(self.tasks_of_length.values())

    @property
    def n_steps(self) -> int:
        """Number of steps, over all tasks."""
        return sum(steps * tasks for steps, tasks in self.tasks_of_length.items())

    @property
    def mean(self) -> float:
        """Mean steps per task."""
        return self.n_steps / self.n_tasks

    def tasks_in(self, bucket: str) -> int:
        """Return the number of tasks in one of Table 18's buckets."""
        fewest, most = self.buckets[bucket]
        return sum(n for steps, n in self.tasks_of_length.items() if fewest <= steps <= most)

    def layout(self, rng: random.Random | None = None) -> Layout:
        """Return one segment a task: shortest first, or in an order drawn from ``rng``."""
        lengths = self.lengths
        if rng is not None:
            lengths = np.array(shuffled(lengths.tolist(), rng))
        return Layout(lengths, np.arange(len(lengths)))

    def segments(self) -> Segments:
        """Return segments of these lengths whose steps all take one second.

        Examples
        --------
        >>> OPENAGI.segments().lengths.max()
        np.int64(6)
        """
        return self.layout().segments()


OPENAGI = TaskLengths(
    "OpenAGI",
    {1: 1, 2: 2, 3: 15, 4: 21, 5: 15, 6: 9},
    {"3": (3, 3), "4": (4, 4), "5": (5, 5), ">=6": (6, 12)},
    (
        "Table 7: 63 tasks with 263 contexts, one a step (App. G), so the total is 263 and the "
        "mean 4.17, Table 9's 4.2.",
        "Table 18: 15 tasks of 3 steps, 21 of 4, 15 of 5, 9 of 6 or more. These 60 have at least "
        "258 steps, which leaves at most 5 for the other three tasks, shorter than 3 each.",
        "Table 18's c gives whole numbers of rounds: 45/2.14 = 21, 84/2.15 = 39, 75/2.14 = 35; in "
        "the last bucket only 54 steps do (54/1.80 = 30; 55 or 56 steps fit no whole number). So "
        "its nine tasks have 6 steps each, and 5 steps are left: 1, 2 and 2. (c counts steps of "
        "the speculative arm; 96 % of its trajectories here are the sequential ones, Table 23.)",
    ),
)

TASKBENCH = TaskLengths(
    "TaskBench",
    {3: 15, 4: 12, 5: 16, 6: 7, 7: 4, 8: 3, 9: 1, 12: 2},
    {"<=4": (1, 4), "5": (5, 5), "6": (6, 6), ">=7": (7, 12)},
    (
        "Table 9: 5.0 steps per task; 60 tasks, so 300 steps within rounding.",
        "Table 18: 16 tasks of 5 steps and 7 of 6; 27 of 4 or fewer and 10 of 7 or more share the "
        "other 178 steps. Their rounds by Table 18's c (1.91 and 1.65) add up to Table 10's 1.88 "
        "over all if the long ones have 85 to 94 steps. Chosen: 85, and 93 for the short ones.",
        "Table 22: two tasks a run do not end normally; App. G stops a plan at 12 steps. Hence "
        "two tasks of 12 steps. The spread of the others inside their buckets is a choice.",
    ),
)

TAU2_BENCH = TaskLengths(
    "tau2-bench",
    {5: 1, 6: 2, 7: 2, 8: 2, 9: 2}
    | {10: 2, 11: 2, 12: 3, 13: 2}
    | {14: 3, 15: 2, 16: 3, 17: 2}
    | {18: 4, 19: 3, 20: 2, 21: 2, 22: 1},
    {"<=9": (1, 9), "10-13": (10, 13), "14-17": (14, 17), ">=18": (18, 60)},
    (
        "Table 18: 9 tasks of 9 steps or fewer, 9 of 10 to 13, 10 of 14 to 17, 12 of 18 or more, "
        "spread over each bucket; the open ones so that the mean is Table 9's 13.9 (556 steps).",
        "App. D.3 counts 559 sequential steps in the control run, a mean of 13.98; the three "
        "steps change nothing here that is printed.",
    ),
)

BENCHMARKS = {each.benchmark: each for each in (OPENAGI, TASKBENCH, TAU2_BENCH)}


def task_lengths(benchmark: str) -> TaskLengths:
    """Return the task lengths of a benchmark.

    Raises
    ------
    UsageError
        If none were worked out for it (BFCL is not in Table 18).

    Examples
    --------
    >>> openagi = task_lengths("OpenAGI")
    >>> openagi.n_tasks, openagi.n_steps, round(openagi.mean, 1)
    (63, 263, 4.2)
    """
    if benchmark not in BENCHMARKS:
        raise UsageError(f"no task lengths for {benchmark!r}; there are {', '.join(BENCHMARKS)}")
    return BENCHMARKS[benchmark]
