"""The fit of how tasks differ, against what the data were made with."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import beta, betabinom

from leapmodel.beta_binomial import fit_beta_binomial, posterior_mean, posterior_values


def until_the_first_miss(rng, p, longest):
    """Count as two independent runs do: outcomes stop at the first miss."""
    misses_at = rng.geometric(1 - p)
    known = np.minimum(misses_at, longest).astype(float)
    return known - (misses_at <= longest), known


def test_the_fit_maximises_the_likelihood():
    rng = np.random.default_rng(1)
    n = rng.integers(1, 20, 300)
    h = rng.binomial(n, rng.beta(3, 2, 300))
    fit = fit_beta_binomial(h.astype(float), n.astype(float))

    def likelihood(theta):
        mean, strength = expit(theta[0]), 1 / theta[1] - 1
        return betabinom.logpmf(h, n, mean * strength, (1 - mean) * strength).sum()

    best = likelihood(fit.parameters)
    for step in ([0.02, 0], [-0.02, 0], [0, 0.01], [0, -0.01]):
        assert likelihood(fit.parameters + np.array(step)) < best


def test_stopping_at_the_first_miss_biases_the_pooled_rate_but_not_the_fit():
    rng = np.random.default_rng(2)
    truth = rng.beta(4, 2, 4000)
    hits, known = until_the_first_miss(rng, truth, longest=12)
    fit = fit_beta_binomial(hits, known)
    assert hits.sum() / known.sum() > 4 / 6 + 0.03
    assert expit(fit.parameters[0]) == pytest.approx(4 / 6, abs=0.015)
    assert fit.parameters[1] == pytest.approx(1 / 7, rel=0.2)
    assert fit.p_value < 1e-6


def test_alike_tasks_are_not_told_apart():
    rng = np.random.default_rng(3)
    p_values = []
    for _ in range(24):
        hits, known = until_the_first_miss(rng, np.full(100, 0.8), longest=10)
        p_values.append(fit_beta_binomial(hits, known).p_value)
    assert np.mean(np.array(p_values) < 0.05) <= 0.15


def test_posterior_means_beat_the_tasks_own_rates():
    rng = np.random.default_rng(4)
    truth = rng.beta(4, 2, 3000)
    known = rng.integers(5, 40, 3000).astype(float)
    hits = rng.binomial(known.astype(int), truth).astype(float)
    fit = fit_beta_binomial(hits, known)
    shrunk = posterior_mean(fit.parameters, hits, known)
    best = (hits + 4) / (known + 6)  # with the true prior
    assert np.abs(shrunk - truth).mean() == pytest.approx(np.abs(best - truth).mean(), rel=0.01)
    assert np.abs(shrunk - truth).mean() < np.abs(hits / known - truth).mean()


def test_the_influence_foretells_a_refit():
    rng = np.random.default_rng(5)
    truth = rng.beta(4, 2, 400)
    hits, known = until_the_first_miss(rng, truth, longest=12)
    fit = fit_beta_binomial(hits, known)
    assert np.abs(fit.influence.sum(axis=0)).max() < 1e-6
    refits, foretold = [], []
    for _ in range(30):
        weights = rng.multinomial(400, np.full(400, 1 / 400))
        again = np.repeat(np.arange(400), weights)
        refits.append(fit_beta_binomial(hits[again], known[again]).parameters)
        foretold.append(fit.parameters + weights @ fit.influence)
    error = np.std(refits, axis=0)
    assert np.std(foretold, axis=0) == pytest.approx(error, rel=0.25)
    off = np.abs(np.array(refits) - foretold).mean(axis=0)
    assert (off < 0.35 * error).all()


def test_likely_values_have_the_mean_and_spread_of_the_posterior():
    parameters = np.array([np.log(2.0), 0.2])
    hits, known = np.array([0.0, 3.0, 9.0]), np.array([0.0, 4.0, 9.0])
    values = posterior_values(parameters, hits, known)
    a, b = 4 * 2 / 3 + hits, 4 / 3 + known - hits
    assert values.mean(axis=0) == pytest.approx(a / (a + b), abs=0.01)
    assert values.std(axis=0) == pytest.approx(beta(a, b).std(), rel=0.2)


def test_tasks_without_outcomes_carry_no_information():
    hits, known = np.array([3.0, 0.0, 8.0, 0.0, 1.0]), np.array([4.0, 0.0, 9.0, 0.0, 5.0])
    fit = fit_beta_binomial(hits, known)
    assert fit.influence[[1, 3]].tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_all_misses_or_all_hits(rate):
    known = np.full(30, 5.0)
    fit = fit_beta_binomial(rate * known, known)
    assert np.isfinite(fit.parameters).all()
    assert np.isfinite(fit.influence).all()
    shrunk = posterior_mean(fit.parameters, rate * known, known)
    assert np.abs(shrunk - rate).max() < 0.02
