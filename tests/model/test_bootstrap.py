"""The task bootstrap against closed forms and simulation."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from leapmodel import bootstrap
from leapmodel.bootstrap import (
    interval_of_best,
    percentile_interval,
    resample_weights,
    resampled_sums,
    task_cells,
    tasks_needed,
)


def task_table(n_tasks: int, seed: int = 0) -> np.ndarray:
    """Steps and seconds a task, correlated."""
    rng = np.random.default_rng(seed)
    steps = rng.integers(2, 12, n_tasks).astype(float)
    return np.column_stack([steps, steps * rng.lognormal(0, 0.5, n_tasks)])


def test_weights_are_multinomial_counts() -> None:
    weights = np.concatenate(list(resample_weights(30, 4000, np.random.default_rng(0))))
    assert weights.shape == (4000, 30)
    assert (weights.sum(axis=1) == 30).all()
    assert_allclose(weights.mean(axis=0), 1.0, atol=4 * np.sqrt(1 / 4000))
    assert_allclose(weights.var(axis=0), 1 - 1 / 30, rtol=0.15)
    off_diagonal = np.cov(weights.T)[~np.eye(30, dtype=bool)]
    assert_allclose(off_diagonal.mean(), -1 / 30, rtol=0.05)


def test_sums_have_the_closed_form_mean_and_standard_error() -> None:
    table = task_table(120)
    sums = resampled_sums(table, rng=np.random.default_rng(1))
    assert sums.shape == (10_000, 2)
    error = np.sqrt(len(table)) * table.std(axis=0)
    assert (np.abs(sums.mean(axis=0) - table.sum(axis=0)) < 4 * error / 100).all()
    assert_allclose(sums.std(axis=0), error, rtol=0.03)


def test_a_ratio_has_the_delta_methods_standard_error() -> None:
    table = task_table(400)
    sums = resampled_sums(table, rng=np.random.default_rng(2))
    ratio = table[:, 1].sum() / table[:, 0].sum()
    residual = table[:, 1] - ratio * table[:, 0]
    error = np.sqrt((residual**2).sum()) / table[:, 0].sum()
    assert_allclose((sums[:, 1] / sums[:, 0]).std(), error, rtol=0.03)


def test_the_same_seed_gives_the_same_resamples_for_any_table() -> None:
    table = task_table(50)
    wide = np.column_stack([table, np.ones(50), table[:, ::-1], table**2])
    narrow_sums = resampled_sums(table, 300, rng=np.random.default_rng(3))
    wide_sums = resampled_sums(wide, 300, rng=np.random.default_rng(3))
    other_sums = resampled_sums(table, 300, rng=np.random.default_rng(4))
    assert_allclose(wide_sums[:, :2], narrow_sums, rtol=1e-13)
    assert (wide_sums[:, 2] == 50).all()
    assert not np.allclose(other_sums, narrow_sums)
    again = resampled_sums(table, 300, rng=np.random.default_rng(3))
    assert_array_equal(again, narrow_sums)


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_how_the_resamples_are_cut_into_slabs_does_not_matter(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = np.concatenate(list(resample_weights(33, 100, np.random.default_rng(5))))
    monkeypatch.setattr(bootstrap, "_SLAB_BYTES", rows * 8 * 33)
    slabs = list(resample_weights(33, 100, np.random.default_rng(5)))
    assert [len(slab) for slab in slabs[:-1]] == [rows] * (len(slabs) - 1)
    assert_array_equal(np.concatenate(slabs), whole)


def test_memory_stays_small() -> None:
    """The peak is a slab's; more resamples than fit in one add their sums only."""
    table = np.ones((10_000, 32))
    tracemalloc.start()
    resampled_sums(table, 500, rng=np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120e6


@pytest.mark.parametrize(
    ("n_tasks", "n_resamples"), [(0, 10), (5, 0), (0, 0)], ids=["task", "resample", "both"]
)
def test_nothing_to_resample(n_tasks: int, n_resamples: int) -> None:
    message = f"^expected at least one task and one resample, found {n_tasks} and {n_resamples}$"
    with pytest.raises(ValueError, match=message):
        resampled_sums(np.ones((n_tasks, 2)), n_resamples, rng=np.random.default_rng(0))


def test_percentile_interval_of_normal_draws() -> None:
    draws = np.random.default_rng(6).normal([0.0, 10.0], [1.0, 2.0], (200_000, 2))
    low, high = percentile_interval(draws)
    assert_allclose(low, [-1.96, 10 - 3.92], atol=0.03)
    assert_allclose(high, [1.96, 10 + 3.92], atol=0.03)
    low, high = percentile_interval(draws, level=0.5)
    assert_allclose(high - low, 2 * norm.ppf(0.75) * np.array([1.0, 2.0]), atol=0.03)


def test_interval_of_best_between_one_and_bonferroni() -> None:
    rng = np.random.default_rng(7)
    independent = rng.normal(size=(20_000, 8))
    together = np.repeat(rng.normal(size=(20_000, 1)), 8, axis=1)
    half = rng.normal(size=(20_000, 1)) + rng.normal(size=(20_000, 8))
    widths = [
        interval_of_best(np.zeros(8), draws, best=3)[1] / draws[:, 3].std()
        for draws in (together, half, independent)
    ]
    single, bonferroni = norm.ppf(0.975), norm.ppf(1 - 0.025 / 8)
    sidak = norm.ppf((1 + 0.95 ** (1 / 8)) / 2)
    assert_allclose(widths[0], single, rtol=0.02)
    assert_allclose(widths[2], sidak, rtol=0.02)
    assert widths[0] < widths[1] < widths[2] < bonferroni * 1.02


def test_interval_of_best_covers_what_was_picked_for_being_largest() -> None:
    """Eight equally good configurations; each time the luckiest is picked."""
    rng = np.random.default_rng(8)
    noise = rng.normal(size=(1500, 8))
    covered, naive = 0, 0
    for _ in range(600):
        estimates = rng.normal(size=8)
        best = int(estimates.argmax())
        low, high = interval_of_best(estimates, estimates + noise, best)
        covered += low <= 0 <= high
        one_low, one_high = percentile_interval(estimates[best] + noise[:, best])
        naive += one_low <= 0 <= one_high
    assert covered / 600 > 0.93
    assert naive / 600 < 0.90


def test_interval_of_best_is_in_the_picked_ones_units() -> None:
    draws = np.random.default_rng(9).normal([1.0, 5.0], [0.1, 3.0], (5000, 2))
    low, high = interval_of_best(np.array([1.0, 5.0]), draws, best=0)
    assert_allclose((low + high) / 2, 1.0)
    assert_allclose((high - low) / 2, 0.1 * norm.ppf((1 + 0.95**0.5) / 2), rtol=0.03)


def test_interval_of_best_leaves_out_what_does_not_vary() -> None:
    draws = np.random.default_rng(10).normal(size=(5000, 2))
    draws[:, 1] = 4.0
    low, high = interval_of_best(np.array([0.0, 4.0]), draws, best=0)
    assert_allclose([low, high], [-1.96, 1.96], rtol=0.03)
    assert interval_of_best(np.array([0.0, 4.0]), draws, best=1) == (4.0, 4.0)


def test_tasks_needed() -> None:
    # a quarter of the half-width takes 16 times the tasks
    wide, narrow = (tasks_needed(0.05, 40, half_width) for half_width in (0.1, 0.025))
    assert wide == np.ceil(40 * (norm.ppf(0.975) * 0.05 / 0.1) ** 2)
    assert_allclose(narrow, 16 * wide, rtol=0.03)
    # the half-width there is needs the tasks there are
    assert tasks_needed(0.05, 40, 0.05 * 1.959964) == 40
    assert tasks_needed(0.0, 40, 0.1) == 0


@pytest.mark.parametrize("half_width", [0, -0.1, float("nan")])
def test_tasks_needed_for_no_half_width(half_width: float) -> None:
    with pytest.raises(ValueError, match=rf"^half_width must be > 0, found {half_width}$"):
        tasks_needed(0.05, 40, half_width)


def test_few_tasks_are_their_own_cells() -> None:
    assert task_cells(5, np.random.default_rng(0), max_cells=5).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("n_tasks", [6000, 7500])
def test_cells_of_tasks_estimate_the_same_standard_error(n_tasks: int) -> None:
    table = task_table(n_tasks)
    cells = task_cells(n_tasks, np.random.default_rng(11), max_cells=2000)
    sizes = np.bincount(cells)
    assert len(sizes) == 2000
    assert sizes.max() - sizes.min() <= 1
    by_cell = np.column_stack([np.bincount(cells, column) for column in table.T])
    assert_allclose(by_cell.sum(axis=0), table.sum(axis=0))
    sums = resampled_sums(by_cell, 3000, rng=np.random.default_rng(12))
    ratio = table[:, 1].sum() / table[:, 0].sum()
    residual = table[:, 1] - ratio * table[:, 0]
    error = np.sqrt((residual**2).sum()) / table[:, 0].sum()
    assert_allclose((sums[:, 1] / sums[:, 0]).std(), error, rtol=0.06)
