"""Rates pooled over tasks, with standard errors that resample whole tasks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leapmodel.bootstrap import MIN_TASKS, N_RESAMPLES, resampled_sums, task_cells
from leapmodel.segments import Floats


class Rate(NamedTuple):
    """A share with its sampling error.

    Attributes
    ----------
    value : float
        NaN where nothing was counted.
    standard_error : float
        Standard deviation of the task bootstrap; NaN with fewer than 10 tasks.
    """

    value: float
    standard_error: float

    def __str__(self) -> str:
        if not np.isfinite(self.value):
            return "-"
        if not np.isfinite(self.standard_error):
            return f"{self.value:.1%}"
        return f"{self.value:.1%} ± {self.standard_error:.1%}"

    def to_list(self) -> list[Any]:
        """Return value and standard error for JSON, with None for what is unavailable."""
        return [float(number) if np.isfinite(number) else None for number in self]


class TaskRates:
    """Ratios of sums over tasks, all resampled with the same weights, so that they are paired.

    Parameters
    ----------
    counted, tried : ndarray, shape (tasks, ratios)
        Numerators and denominators by task.
    seed : int, default 0
        Seed of the bootstrap.

    Examples
    --------
    >>> rates = TaskRates(np.ones((20, 1)), np.full((20, 1), 4.0))
    >>> print(rates[0])
    25.0% ± 0.0%
    """

    def __init__(self, counted: Floats, tried: Floats, *, seed: int = 0) -> None:
        n_tasks, n_ratios = counted.shape
        self.values = _ratio(counted.sum(axis=0), tried.sum(axis=0))
        self.resamples: Floats | None = None
        contributing = (tried > 0).sum(axis=0)
        self._enough = contributing >= MIN_TASKS
        if n_tasks >= MIN_TASKS:
            cells_seed, weights_seed = np.random.SeedSequence(seed).spawn(2)
            cells = task_cells(n_tasks, np.random.default_rng(cells_seed))
            table = np.zeros((int(cells.max()) + 1, 2 * n_ratios))
            np.add.at(table, cells, np.hstack([counted, tried]))
            sums = resampled_sums(table, N_RESAMPLES, rng=np.random.default_rng(weights_seed))
            self.resamples = _ratio(sums[:, :n_ratios], sums[:, n_ratios:])

    def __getitem__(self, ratio: int) -> Rate:
        if self.resamples is None or not self._enough[ratio]:
            return Rate(float(self.values[ratio]), float("nan"))
        return Rate(float(self.values[ratio]), _spread(self.resamples[:, ratio]))

    def difference(self, first: int, second: int) -> Rate:
        """Return the first ratio minus the second, with the error of their paired difference."""
        value = float(self.values[first] - self.values[second])
        if self.resamples is None or not (self._enough[first] and self._enough[second]):
            return Rate(value, float("nan"))
        return Rate(value, _spread(self.resamples[:, first] - self.resamples[:, second]))


def _spread(resamples: Floats) -> float:
    return float(np.nanstd(resamples, ddof=1))


def _ratio(counted: Floats, tried: Floats) -> Floats:
    known = tried > 0
    return np.where(known, counted / np.where(known, tried, 1.0), np.nan)
