"""How much tasks differ in how predictable they are: a beta-binomial fit by maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln, digamma, expit, logit
from scipy.stats import chi2

from leapmodel.segments import Floats

_LOG_STRENGTH = (float(np.log(0.05)), float(np.log(1e4)))
_STEP = 1e-4


@dataclass(frozen=True, eq=False)
class BetaBinomialFit:
    """Each task's acceptance is a draw from Beta(m s, (1 - m) s).

    Attributes
    ----------
    parameters : ndarray, shape (2,)
        logit of the mean m, and log of the strength s: the larger s, the more alike the tasks.
    influence : ndarray, shape (tasks, 2)
        How much one more copy of a task would move the parameters; it sums to 0.
    p_value : float
        Of the likelihood ratio against one acceptance for all tasks.
    """

    parameters: Floats
    influence: Floats
    p_value: float


def fit_beta_binomial(hits: Floats, known: Floats) -> BetaBinomialFit:
    """Fit the mean and the spread of an acceptance that differs by task.

    It does not matter that a task's outcomes were counted up to its first miss: the likelihood
    p^hits (1 - p)^misses is the same whatever made the counting stop. A pooled rate is biased by
    that, because the tasks that agree longest supply most of the outcomes.

    Parameters
    ----------
    hits, known : ndarray, shape (tasks,)
        Hits and known outcomes per task; tasks without any carry no information.

    Examples
    --------
    >>> fit = fit_beta_binomial(np.array([9.0, 1.0, 8.0, 2.0] * 20), np.full(80, 10.0))
    >>> mean, strength = expit(fit.parameters[0]), np.exp(fit.parameters[1])
    >>> round(float(mean), 2), bool(strength < 5), fit.p_value < 0.001
    (0.5, True, True)
    """
    seen = known > 0
    h, n = hits[seen], known[seen]
    pooled = np.clip(h.sum() / n.sum(), 1e-6, 1 - 1e-6)

    def log_likelihood(theta: Floats) -> Floats:
        mean, strength = expit(theta[0]), np.exp(theta[1])
        a, b = mean * strength, (1 - mean) * strength
        return betaln(a + h, b + n - h) - betaln(a, b)

    def scores(theta: Floats) -> Floats:
        mean, strength = expit(theta[0]), np.exp(theta[1])
        a, b = mean * strength, (1 - mean) * strength
        total = digamma(a + b) - digamma(a + b + n)
        of_a = digamma(a + h) - digamma(a) + total
        of_b = digamma(b + n - h) - digamma(b) + total
        slope = mean * (1 - mean) * strength
        return np.column_stack([slope * (of_a - of_b), a * of_a + b * of_b])

    def objective(theta: Floats) -> tuple[float, Floats]:
        return -float(log_likelihood(theta).sum()), -scores(theta).sum(axis=0)

    found = []
    for start in (0.0, 3.0, 7.0):
        x0 = np.array([float(logit(pooled)), start])
        bounds = [(-14.0, 14.0), _LOG_STRENGTH]
        found.append(minimize(objective, x0, jac=True, method="L-BFGS-B", bounds=bounds))
    best = min(found, key=lambda result: float(result.fun))
    theta = np.asarray(best.x, dtype=np.float64)
    same_for_all = float((h * np.log(pooled) + (n - h) * np.log1p(-pooled)).sum())
    ratio = max(0.0, 2 * (-float(best.fun) - same_for_all))
    influence = np.zeros((len(hits), 2))
    influence[seen] = _influence(scores, theta)
    return BetaBinomialFit(theta, influence, float(chi2.sf(ratio, 1) / 2))


def posterior_mean(parameters: Floats, hits: Floats, known: Floats) -> Floats:
    """Return each task's expected acceptance given its own outcomes, shape (tasks,).

    Examples
    --------
    >>> theta = np.array([logit(0.8), np.log(10.0)])
    >>> posterior_mean(theta, np.array([0.0, 10.0]), np.array([0.0, 10.0])).round(3).tolist()
    [0.8, 0.9]
    """
    mean, strength = expit(parameters[0]), np.exp(parameters[1])
    return (hits + mean * strength) / (known + strength)


def _influence(scores: Callable[[Floats], Floats], theta: Floats) -> Floats:
    """Return -H^-1 (score - mean score): one Newton step from a reweighted sample."""
    at = scores(theta)
    hessian = np.empty((2, 2))
    for j in range(2):
        step = np.zeros(2)
        step[j] = _STEP
        difference = scores(theta + step).sum(axis=0) - scores(theta - step).sum(axis=0)
        hessian[j] = difference / (2 * _STEP)
    centred = at - at.mean(axis=0)
    on_bound = np.isclose(theta[1], _LOG_STRENGTH).any() or hessian[1, 1] >= -1e-9
    if on_bound:  # the tasks are as good as alike: only their mean is uncertain
        return np.column_stack([-centred[:, 0] / hessian[0, 0], np.zeros(len(at))])
    return -centred @ np.linalg.inv(hessian).T
