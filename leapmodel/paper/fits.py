"""Fit step times to the trained draft's rows of Table 10, and test the fit on everything else.

What is fitted, and to what, is one table (:data:`PLANS`): a benchmark has fewer free parameters
than targets. :data:`TIMES` are the fits, rounded; a test makes the fits again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leapmodel.errors import UsageError
from leapmodel.paper.lengths import OPENAGI, TASKBENCH, TAU2_BENCH, TaskLengths
from leapmodel.paper.step_times import (
    Replayed,
    StepTimes,
    fit_step_times,
    mean_beta,
    mean_variation,
)
from leapmodel.paper.tables import load
from leapmodel.paper.turns import BFCL, TurnLengths
from leapmodel.segments import Floats

TRAINED = "trained 0.6B"


@dataclass(frozen=True)
class Plan:
    """What is fitted on one benchmark.

    Attributes
    ----------
    lengths : TaskLengths or TurnLengths
        Steps of its segments.
    times : StepTimes
        The fit, rounded: what the shipped trace is drawn from. Parameters that are not free were
        never varied.
    free : tuple of str
        The parameters fitted.
    stated_variation : tuple of float
        The range of the coefficient of variation that the paper states.
    fit_variation : bool
        Whether that is a single number and one of the targets.
    why : str
        Why these parameters.
    """

    lengths: TaskLengths | TurnLengths
    times: StepTimes
    free: tuple[str, ...]
    stated_variation: tuple[float, float]
    fit_variation: bool
    why: str

    @property
    def benchmark(self) -> str:
        """The paper's name of the benchmark."""
        return self.lengths.benchmark


# Means are Table 9's t_gen; App. D.3 states the coefficients of variation.
PLANS = {
    plan.benchmark: plan
    for plan in (
        Plan(
            OPENAGI,
            StepTimes(mean_s=1.1, slope=-0.355, step_sd=0.2),
            ("slope", "step_sd"),
            (0.3, 0.5),
            False,
            "steps of one plan must differ by where they stand: with independent times no spread "
            "gives beta at k = 1 and at k = 5 together",
        ),
        Plan(
            TASKBENCH,
            StepTimes(mean_s=1.8, slope=0.0, step_sd=0.303),
            ("step_sd",),
            (0.3, 0.5),
            False,
            "one spread is enough; a correlation within tasks is not identified by beta and left "
            "at nought",
        ),
        Plan(
            TAU2_BENCH,
            StepTimes(mean_s=12.4, slope=0.0, step_sd=0.364),
            ("step_sd",),
            (0.3, 0.5),
            False,
            "two targets allow one parameter",
        ),
        Plan(
            BFCL,
            StepTimes(mean_s=10.8, slope=0.0, step_sd=0.526, task_sd=0.748),
            ("step_sd", "task_sd"),
            (1.07, 1.07),
            True,
            "the stated variation is so wide that steps of one task must resemble each other for "
            "beta to be so low",
        ),
    )
}


def plan_of(benchmark: str) -> Plan:
    """Return what is fitted on a benchmark.

    Raises
    ------
    UsageError
        If there is no such benchmark.

    Examples
    --------
    >>> plan_of("TaskBench").free
    ('step_sd',)
    """
    if benchmark not in PLANS:
        raise UsageError(f"no reconstruction of {benchmark!r}; there are {', '.join(PLANS)}")
    return PLANS[benchmark]


def beta_rows(benchmark: str, *, trained: bool) -> list[Replayed]:
    """Return Table 10's predicted beta with the q_1 and k it was replayed at.

    Parameters
    ----------
    benchmark : str
        The paper's name.
    trained : bool
        The trained draft's rows, to fit step times to; or the other drafts', to test the fit.

    Examples
    --------
    >>> [row.wait_inflation for row in beta_rows("OpenAGI", trained=True)]
    [1.09, 1.21, 1.24]
    """
    table = load("table10").frame
    rows = table[(table["benchmark"] == benchmark) & ((table["draft"] == TRAINED) == trained)]
    return [
        Replayed(int(k), float(q1), float(beta))
        for k, q1, beta in zip(rows["k"], rows["q1"], rows["beta_predicted"], strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Fit:
    """Step times fitted anew, and what they give.

    Attributes
    ----------
    plan : Plan
        What was fitted.
    times : StepTimes
        The fit, not rounded.
    fitted, held_out : tuple of Replayed
        The rows fitted to, and those left out.
    beta_fitted, beta_held_out : ndarray, shape (rows,)
        What the fit gives there, averaged over draws.
    variation : float
        Coefficient of variation of its step times, averaged over draws.
    """

    plan: Plan
    times: StepTimes
    fitted: tuple[Replayed, ...]
    held_out: tuple[Replayed, ...]
    beta_fitted: Floats
    beta_held_out: Floats
    variation: float

    @property
    def n_targets(self) -> int:
        """Numbers fitted to."""
        return len(self.fitted) + self.plan.fit_variation

    @property
    def correlation(self) -> float:
        """Correlation of the log times of two steps of a task, drift left out."""
        between, within = self.times.task_sd**2, self.times.step_sd**2
        return between / (between + within)


def fit(benchmark: str, seeds: Sequence[int] = range(16)) -> Fit:
    """Fit a benchmark's step times; the untrained and 32B-direct rows are not looked at.

    Parameters
    ----------
    benchmark : str
        One of ``PLANS``.
    seeds : sequence of int, default 0 … 15
        Draws averaged over, so that no single one is fitted.

    Examples
    --------
    >>> found = fit("tau2-bench")
    >>> round(found.times.step_sd, 2), found.beta_fitted.round(2), found.n_targets
    (0.36, array([1.16, 1.21]), 2)
    """
    plan = plan_of(benchmark)
    layout = plan.lengths.layout()
    fitted = beta_rows(benchmark, trained=True)
    held_out = beta_rows(benchmark, trained=False)
    times = fit_step_times(
        plan.times,
        layout,
        fitted,
        free=plan.free,
        seeds=seeds,
        variation=plan.stated_variation[0] if plan.fit_variation else None,
    )
    return Fit(
        plan=plan,
        times=times,
        fitted=tuple(fitted),
        held_out=tuple(held_out),
        beta_fitted=mean_beta(times, layout, fitted, seeds),
        beta_held_out=mean_beta(times, layout, held_out, seeds),
        variation=float(np.mean(mean_variation(times, layout, seeds))),
    )
