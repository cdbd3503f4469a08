"""How much tasks differ in how predictable they are: a beta-binomial fit by maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, betaln, chdtrc, digamma, expit, logit

from leapmodel.segments import Floats

_LOG_STRENGTH = (float(np.log(0.05)), float(np.log(1e4)))
_STEP = 1e-4
CORRELATIONS = (1e-4, 0.95)
"""Between these the correlation is taken to lie."""
N_VALUES = 5
"""Equally likely values that stand for a task's posterior."""


@dataclass(frozen=True, eq=False)
class BetaBinomialFit:
    """Each task's acceptance is a draw from Beta(m s, (1 - m) s).

    Attributes
    ----------
    parameters : ndarray, shape (2,)
        logit of the mean m, and the correlation r = 1 / (1 + s) of two outcomes of one task: 0 if
        all tasks are alike.
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

    That a task's outcomes were counted up to its first miss does not bias the fit: the likelihood
    p^hits (1 - p)^misses is the same. It does bias a pooled rate, because the tasks that agree
    longest supply most of the outcomes. Where long tasks are harder (or easier) than short ones
    the fit is biased too: it takes acceptance and length to be unrelated.

    Parameters
    ----------
    hits, known : ndarray, shape (tasks,)
        Hits and known outcomes per task; tasks without any carry no information.

    Examples
    --------
    >>> fit = fit_beta_binomial(np.array([9.0, 1.0, 8.0, 2.0] * 20), np.full(80, 10.0))
    >>> mean, correlation = expit(fit.parameters[0]), fit.parameters[1]
    >>> round(float(mean), 2), bool(correlation > 0.2), fit.p_value < 0.001
    (0.5, True, True)
    """
    from scipy.optimize import minimize  # a fifth of a second that other questions need not pay

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
    correlation = float(np.clip(1 / (1 + np.exp(theta[1])), *CORRELATIONS))
    # by correlation the fit is regular where tasks are alike; by strength it is not
    influence[:, 1] *= -correlation * (1 - correlation)
    parameters = np.array([theta[0], correlation])
    return BetaBinomialFit(parameters, influence, float(chdtrc(1, ratio)) / 2)


def posterior_mean(parameters: Floats, hits: Floats, known: Floats) -> Floats:
    """Return each task's expected acceptance given its own outcomes, shape (tasks,).

    Examples
    --------
    >>> alike = np.array([logit(0.8), 1 / 11])
    >>> posterior_mean(alike, np.array([0.0, 10.0]), np.array([0.0, 10.0])).round(3).tolist()
    [0.8, 0.9]
    """
    mean, strength = _mean_and_strength(parameters)
    return (hits + mean * strength) / (known + strength)


def posterior_values(parameters: Floats, hits: Floats, known: Floats) -> Floats:
    """Return equally likely values of each task's acceptance, shape (N_VALUES, tasks).

    Their mean is close to the posterior mean, and their spread to the posterior's.

    Examples
    --------
    >>> even = np.array([logit(0.5), 1 / 3])  # all acceptances equally likely
    >>> posterior_values(even, np.zeros(1), np.zeros(1))[:, 0].round(2).tolist()
    [0.1, 0.3, 0.5, 0.7, 0.9]
    """
    mean, strength = _mean_and_strength(parameters)
    a, b = mean * strength + hits, (1 - mean) * strength + known - hits
    quantiles = (np.arange(N_VALUES) + 0.5) / N_VALUES
    values = betaincinv(a, b, quantiles[:, None])
    # five points do not quite have the posterior's mean, which decides most
    return np.clip(values + a / (a + b) - values.mean(axis=0), 0.0, 1.0)


def _mean_and_strength(parameters: Floats) -> tuple[float, float]:
    correlation = float(np.clip(parameters[1], *CORRELATIONS))
    return float(expit(parameters[0])), 1 / correlation - 1


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
