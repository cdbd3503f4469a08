"""How often the target agrees with itself: the ceiling of any draft, from repeated runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leapmodel.drafts.rates import Rate, TaskRates
from leapmodel.drafts.shapes import names_of
from leapmodel.trace import Trace

_EXACT, _NAMES, _COMPARED = range(3)


@dataclass(frozen=True)
class SelfAgreement:
    """Agreement of the target with itself on the contexts that two of its runs share.

    No draft can agree more often with a target that samples, on these steps. They are those
    before two runs first differ, so early ones are over-represented; and where an environment
    answers the same actions differently (such as a simulated user), contexts differ that are
    taken as shared, and the ceiling seems lower than it is.

    Attributes
    ----------
    exact, name_only : Rate
        Share of the comparisons with the same action, or the same tools in the same order.
    comparisons : int
        Pairs of outputs compared.
    n_tasks : int
        Tasks with two runs or more.
    by_step : tuple of (int, float, float)
        Comparisons, exact and name-only agreement at each step of the task.
    """

    exact: Rate
    name_only: Rate
    comparisons: int
    n_tasks: int
    by_step: tuple[tuple[int, float, float], ...]

    def summary(self) -> str:
        """Return the ceiling in a sentence."""
        return (
            f"the target agrees with itself on {self.exact} of the steps that repeated runs share "
            f"(name only {self.name_only}; {self.comparisons} comparisons in {self.n_tasks} tasks)"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each step: ``step``, ``comparisons``, ``exact``, ``name_only``."""
        columns = ["comparisons", "exact", "name_only"]
        frame = pd.DataFrame(list(self.by_step), columns=columns)
        frame.insert(0, "step", range(len(frame)))
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a rate is [value, standard error]."""
        return {
            "exact": self.exact.to_list(),
            "name_only": self.name_only.to_list(),
            "comparisons": self.comparisons,
            "tasks": self.n_tasks,
            "by_step": [list(row) for row in self.by_step],
        }

    def _repr_html_(self) -> str:
        table = self.to_frame().to_html(index=False, float_format="{:.3f}".format)
        return f"<p>{self.summary()}</p>{table}"


def self_agreement(trace: Trace, *, seed: int = 0) -> SelfAgreement | None:
    """Compare all pairs of runs of each task, for as long as their actions are the same.

    Parameters
    ----------
    trace : Trace
        With several runs of some tasks.
    seed : int, default 0
        Seed of the task bootstrap.

    Returns
    -------
    SelfAgreement or None
        None if no task has two runs. A task's pairs are averaged, so that a task with many runs
        has no more weight than one with two. An output that did not parse agrees with nothing.

    Examples
    --------
    >>> trace = Trace.from_frame(pd.DataFrame({
    ...     "task": "a", "run": [0, 0, 1, 1], "segment": 0, "step": [0, 1, 0, 1], "gen_s": 1.0,
    ...     "action": ["ls({})", "<respond/>", "ls({})", 'cd({"to":"x"})']}))
    >>> found = self_agreement(trace)
    >>> found.exact.value, found.comparisons
    (0.5, 2)
    """
    starts = np.flatnonzero(trace.run_starts_mask)
    runs = np.split(trace.actions, starts[1:])
    of_task: dict[int, list[list[str | None]]] = {}
    for task, run in zip(trace.task_codes[starts].tolist(), runs, strict=True):
        of_task.setdefault(task, []).append(list(run))
    repeated = [runs for runs in of_task.values() if len(runs) > 1]
    if not repeated:
        return None
    longest = max(len(run) for runs in repeated for run in runs)
    by_step = np.zeros((longest, 3))
    by_task = np.zeros((len(repeated), 3))
    for task, runs_of_task in enumerate(repeated):
        counts = _compare(runs_of_task)
        by_step[: len(counts)] += counts
        by_task[task] = counts.sum(axis=0) / _pairs(len(runs_of_task))
    tried = by_task[:, [_COMPARED, _COMPARED]]
    rates = TaskRates(by_task[:, [_EXACT, _NAMES]], tried, seed=seed)
    reached = by_step[by_step[:, _COMPARED] > 0]
    return SelfAgreement(
        exact=rates[_EXACT],
        name_only=rates[_NAMES],
        comparisons=int(by_step[:, _COMPARED].sum()),
        n_tasks=len(repeated),
        by_step=tuple(
            (int(compared), exact / compared, names / compared)
            for exact, names, compared in reached.tolist()
        ),
    )


def _compare(runs: list[list[str | None]]) -> np.ndarray:
    """Return pairs that agree exactly and by name, and pairs compared, shape (steps, 3)."""
    counts = []
    together = [runs]  # groups of runs that took the same actions so far
    step = 0
    while together:
        row = np.zeros(3)
        following = []
        for group in together:
            same: dict[str, list[list[str | None]]] = {}
            for run in group:
                action = run[step]
                if action is not None:
                    same.setdefault(action, []).append(run)
            names: dict[tuple[str, ...] | None, int] = {}
            for action, of_action in same.items():
                name = names_of(action)
                names[name] = names.get(name, 0) + len(of_action)
            row += (
                _all_pairs(len(of_action) for of_action in same.values()),
                _all_pairs(names.values()),
                _pairs(len(group)),
            )
            for of_action in same.values():  # a run that ended has nothing more to compare
                going_on = [run for run in of_action if len(run) > step + 1]
                if len(going_on) > 1:
                    following.append(going_on)
        counts.append(row)
        together, step = following, step + 1
    return np.array(counts)


def _pairs(n: int) -> int:
    return n * (n - 1) // 2


def _all_pairs(sizes: Iterable[int]) -> int:
    return sum(_pairs(size) for size in sizes)
