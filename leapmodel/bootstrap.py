"""The paired task bootstrap: whole tasks are resampled, every ratio is recomputed (Sec. 4.1).

All runs, steps and times of a task stay together, because they enter as that task's sums; one
multinomial weight per task multiplies them all. 10,000 resamples are then one product of a weight
matrix with the table of sums, made a slab at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from leapmodel.segments import Floats

N_RESAMPLES = 10_000
"""As in the paper (Table 1, Table 9)."""
MIN_TASKS = 10
"""Below this many tasks no interval is given."""
MAX_CELLS = 10_000
"""More tasks than this are resampled in random batches, see :func:`task_cells`."""
_SLAB_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Interval:
    """A 95% interval and the standard error beside it."""

    low: float
    high: float
    standard_error: float


def resample_weights(n_tasks: int, n_resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Yield slabs of multinomial weights, shape (some resamples, n_tasks).

    Row b says how often each task was drawn in resample b. The slabs together have
    ``n_resamples`` rows; none takes more than 16 MB, unless a single row does.

    Raises
    ------
    ValueError
        If there is no task or no resample.

    Examples
    --------
    >>> slabs = list(resample_weights(4, 3, np.random.default_rng(0)))
    >>> np.concatenate(slabs).sum(axis=1).tolist()
    [4.0, 4.0, 4.0]
    """
    if n_tasks < 1 or n_resamples < 1:
        raise ValueError(
            f"expected at least one task and one resample, found {n_tasks} and {n_resamples}"
        )
    rows = max(1, min(n_resamples, _SLAB_BYTES // (8 * n_tasks)))
    offsets = np.arange(rows)[:, None] * n_tasks
    done = 0
    while done < n_resamples:
        count = min(rows, n_resamples - done)
        drawn = rng.integers(0, n_tasks, size=(count, n_tasks), dtype=np.int32)
        cells = (drawn + offsets[:count]).ravel()
        counts = np.bincount(cells, minlength=count * n_tasks)
        yield counts.reshape(count, n_tasks).astype(np.float64)
        done += count


def resampled_sums(
    per_task: Floats, n_resamples: int = N_RESAMPLES, *, rng: np.random.Generator
) -> Floats:
    """Return the bootstrap distribution of sums over tasks.

    Parameters
    ----------
    per_task : ndarray, shape (tasks, quantities)
        One row of sums per task.
    n_resamples : int, default 10,000
        Number of resamples.
    rng : numpy.random.Generator
        Source of the draws; the same state gives the same resamples for any table of as many
        tasks, which keeps drafts and depths paired.

    Returns
    -------
    ndarray, shape (n_resamples, quantities)

    Examples
    --------
    >>> sums = resampled_sums(np.ones((5, 2)), 3, rng=np.random.default_rng(0))
    >>> sums.tolist()
    [[5.0, 5.0], [5.0, 5.0], [5.0, 5.0]]
    """
    table = np.asarray(per_task, dtype=np.float64)
    return np.concatenate(
        [weights @ table for weights in resample_weights(len(table), n_resamples, rng)]
    )


def task_cells(n_tasks: int, rng: np.random.Generator, max_cells: int = MAX_CELLS) -> np.ndarray:
    """Return a random batch for each task, so that no more than ``max_cells`` are resampled.

    A batch of exchangeable tasks is itself an exchangeable unit: resampling batches estimates the
    same sampling error of a ratio of sums, its variance with a relative noise of about
    sqrt(2 / max_cells), under 2%. Batches differ by one task at most; that cancels in a ratio but
    not in a sum. Up to ``max_cells`` tasks each task is its own batch.

    Returns
    -------
    ndarray of int, shape (n_tasks,)
    """
    if n_tasks <= max_cells:
        return np.arange(n_tasks)
    return rng.permutation(np.arange(n_tasks) % max_cells)


def percentile_interval(resamples: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return the percentile interval along axis 0.

    Examples
    --------
    >>> low, high = percentile_interval(np.arange(101.0))
    >>> round(float(low), 9), round(float(high), 9)
    (2.5, 97.5)
    """
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(resamples, [tail, 100 - tail], axis=0)
    return low, high


def interval_of_best(
    estimates: Floats, resamples: Floats, best: int, level: float = 0.95
) -> tuple[float, float]:
    """Return the interval of one of several configurations, adjusted for having picked it.

    The largest of several noisy estimates is likely to be too high. The interval is the one of a
    simultaneous band over all configurations (max-|t|): half-width is the ``level`` quantile of
    the largest |S* - S| / SE over the configurations, times the picked one's SE.

    Parameters
    ----------
    estimates : ndarray, shape (configurations,)
        Point estimates.
    resamples : ndarray, shape (n_resamples, configurations)
        Their joint bootstrap distribution.
    best : int
        Index of the picked configuration.
    level : float, default 0.95
        Coverage of the band.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draws = rng.normal(size=(4000, 5))
    >>> low, high = interval_of_best(np.zeros(5), draws, best=0)
    >>> round(high, 1)  # wider than the 1.96 of a single one
    2.6
    """
    errors = resamples.std(axis=0, ddof=1)
    varies = errors > 1e-12 * np.maximum(np.abs(estimates), 1e-300)
    if not varies[best]:
        return float(estimates[best]), float(estimates[best])
    deviations = np.abs(resamples[:, varies] - estimates[varies]) / errors[varies]
    width = float(np.quantile(deviations.max(axis=1), level) * errors[best])
    return float(estimates[best]) - width, float(estimates[best]) + width


def tasks_needed(standard_error: float, n_tasks: int, half_width: float) -> int:
    """Return how many tasks a 95% half-width needs, if the next tasks vary as these did.

    Examples
    --------
    >>> tasks_needed(standard_error=0.07, n_tasks=63, half_width=0.05)
    475
    """
    if not half_width > 0:
        raise ValueError(f"half_width must be > 0, found {half_width}")
    return int(np.ceil(n_tasks * (1.959964 * standard_error / half_width) ** 2))


def ratio_with_error(numerators: ArrayLike, denominators: ArrayLike) -> tuple[float, float]:
    """Return a ratio of sums over tasks, and its standard error (linearised).

    Parameters
    ----------
    numerators, denominators : array_like of float, shape (tasks,)
        Each task's own sums.

    Returns
    -------
    tuple of (float, float)
        The error is NaN where one task says nothing of the others.

    Examples
    --------
    >>> ratio_with_error([1, 2], [2, 2])
    (0.75, 0.25)
    """
    above = np.asarray(numerators, dtype=float)
    below = np.asarray(denominators, dtype=float)
    ratio = float(above.sum() / below.sum())
    n = len(above)
    if n < 2:
        return ratio, float("nan")
    spread = ((above - ratio * below) ** 2).sum()
    return ratio, float(np.sqrt(n / (n - 1) * spread) / below.sum())
