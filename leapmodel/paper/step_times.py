"""A model of step times with few parameters, fitted so that replaying it gives the paper's beta.

The paper prints no step times, only their mean, the range of their coefficients of variation, and
the beta that replaying them gave. Here log time = slope x position in the task + a task's own
level + a step's own level, both normal. The levels are stratified: the m values of a group are the
m middle quantiles in shuffled order, so that a small sample has the shape of its law and no draw
is a lucky one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares
from scipy.special import ndtri

from leapmodel.paper.layout import Layout
from leapmodel.replay import exact_replay
from leapmodel.segments import Floats, Ints, Segments


@dataclass(frozen=True)
class StepTimes:
    """Lognormal step times that drift along a task.

    Attributes
    ----------
    mean_s : float
        Mean of all steps, t_gen, seconds.
    slope : float
        Change of log time per step of position in the task.
    step_sd : float
        Standard deviation of log time from step to step.
    task_sd : float
        Standard deviation of log time from task to task: what correlates a task's steps.

    Examples
    --------
    >>> steady = StepTimes(mean_s=2.0, slope=0.0, step_sd=0.0)
    >>> steady.draw(np.array([2, 1]), seed=0).tolist()
    [2.0, 2.0, 2.0]
    """

    mean_s: float
    slope: float
    step_sd: float
    task_sd: float = 0.0

    def draw(self, lengths: Ints, seed: int) -> Floats:
        """Return the seconds of every step of tasks of these lengths, shape (steps,).

        Parameters
        ----------
        lengths : array_like of int, shape (tasks,)
            Steps of each task.
        seed : int
            Seed of the shuffles. The mean is ``mean_s`` for any seed.
        """
        # random() of the standard library gives the same numbers in every version, numpy's
        # generators need not; the files made from these have to come out the same anywhere.
        rng = random.Random(seed)
        lengths = np.asarray(lengths)
        positions = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        of_step = np.empty(len(positions))
        for position in range(int(lengths.max())):
            here = positions == position
            of_step[here] = _stratified(int(np.count_nonzero(here)), rng)
        of_task = np.repeat(_stratified(len(lengths), rng), lengths)
        seconds = np.exp(self.slope * positions + self.task_sd * of_task + self.step_sd * of_step)
        return seconds * (self.mean_s / seconds.mean())


@dataclass(frozen=True)
class Replayed:
    """A beta of the paper, and the replay that gave it.

    Attributes
    ----------
    depth : int
        k.
    first_hit_rate : float
        q_1, the rate at which App. H draws its hits.
    wait_inflation : float
        The beta printed.
    """

    depth: int
    first_hit_rate: float
    wait_inflation: float


def replayed_beta(gen_s: Floats, lengths: Ints, rows: Sequence[Replayed]) -> Floats:
    """Return beta by App. H's replay, exactly, for each row, shape (rows,).

    Examples
    --------
    >>> replayed_beta(np.array([1.0, 3.0]), np.array([2]), [Replayed(1, 1.0, 1.5)]).tolist()
    [1.5]
    """
    segments = Segments(gen_s, starts=np.cumsum(lengths) - lengths)
    return np.array(
        [exact_replay(segments, r.first_hit_rate, [r.depth]).wait_inflation[0] for r in rows]
    )


def mean_beta(
    times: StepTimes, layout: Layout, rows: Sequence[Replayed], seeds: Sequence[int] = range(16)
) -> Floats:
    """Return the mean of :func:`replayed_beta` over several draws, shape (rows,)."""
    draws = [times.draw(layout.task_lengths, seed) for seed in seeds]
    return np.mean([replayed_beta(d, layout.segment_lengths, rows) for d in draws], axis=0)


def mean_variation(times: StepTimes, layout: Layout, seeds: Sequence[int] = range(16)) -> float:
    """Return the coefficient of variation (of the population) of all steps, meaned over draws.

    Examples
    --------
    >>> two = Layout(np.array([1, 1]), np.array([0, 1]))
    >>> mean_variation(StepTimes(2.0, slope=0.0, step_sd=0.0), two)
    0.0
    """
    draws = [times.draw(layout.task_lengths, seed) for seed in seeds]
    return float(np.mean([gen_s.std() / gen_s.mean() for gen_s in draws]))


def fit_step_times(
    start: StepTimes,
    layout: Layout,
    rows: Sequence[Replayed],
    *,
    free: Sequence[str] = ("slope", "step_sd"),
    seeds: Sequence[int] = range(16),
    variation: float | None = None,
) -> StepTimes:
    """Return the step times whose mean replayed beta comes closest to the paper's.

    Parameters
    ----------
    start : StepTimes
        Where the search starts; what is not free stays as it is.
    layout : Layout
        Steps of each segment and task.
    rows : sequence of Replayed
        The rows fitted to. Rows that shall test the fit are left out of it.
    free : sequence of str, default ("slope", "step_sd")
        The parameters fitted: fewer than targets.
    seeds : sequence of int, default 0 … 15
        Draws averaged over, so that no single one is fitted.
    variation : float, optional
        A coefficient of variation that is a target too. It is printed with as many decimals as
        beta, so a miss of either counts the same.

    Raises
    ------
    ValueError
        If there are not fewer free parameters than targets.
    """
    n_targets = len(rows) + (variation is not None)
    if len(free) >= n_targets:
        raise ValueError(f"{len(free)} free parameters need more than {n_targets} targets")
    wanted = np.array([row.wait_inflation for row in rows])

    def times_of(values: Floats) -> StepTimes:
        return replace(start, **dict(zip(free, map(float, values), strict=True)))

    def misses(values: Floats) -> Floats:
        times = times_of(values)
        of_beta = mean_beta(times, layout, rows, seeds) - wanted
        if variation is None:
            return of_beta
        return np.append(of_beta, mean_variation(times, layout, seeds) - variation)

    found = least_squares(
        misses,
        [getattr(start, name) for name in free],
        diff_step=[0.02] * len(free),  # beta is smooth only on the scale of the draws
    )
    return times_of(found.x)


def _stratified(n: int, rng: random.Random) -> Floats:
    """Return n standard normal quantiles, evenly spread, in random order."""
    keys = [rng.random() for _ in range(n)]
    return ndtri((np.argsort(np.argsort(keys)) + 0.5) / n)
