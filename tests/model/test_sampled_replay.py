"""The sampled replay (App. H) averages to the exact one."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leapmodel.replay import exact_replay, sampled_replay
from leapmodel.segments import Segments

from .naive_walk import walk_once
from .traces import as_lists, random_segments

DEPTHS = [1, 2, 4]
CONFIGURATIONS = [
    pytest.param(0, 0.3, 12, 5, id="low acceptance, short segments"),
    pytest.param(1, 0.75, 30, 4, id="OpenAGI-like"),
    pytest.param(2, 0.9, 5, 60, id="long segments"),
    pytest.param(3, [0.8, 0.5, 0.9, 0.2], 20, 9, id="by position"),
    pytest.param(4, [0.2, 1.0, 0.0, 0.7], 20, 9, id="by position, with 0 and 1"),
]


def standard_errors_apart(values: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """How far the mean of repeats lies from the exact value, in standard errors."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return np.abs(values.mean(axis=0) - exact) / error


@pytest.mark.parametrize(("seed", "acceptance", "n_segments", "longest"), CONFIGURATIONS)
def test_mean_rounds_and_waits_are_the_exact_ones(
    seed: int, acceptance: float | list[float], n_segments: int, longest: int
) -> None:
    segments = random_segments(
        np.random.default_rng(seed), n_segments=n_segments, longest=longest, n_groups=3
    )
    exact = exact_replay(segments, acceptance, DEPTHS)
    sampled = sampled_replay(
        segments, acceptance, DEPTHS, rng=np.random.default_rng(seed + 10), repeats=2000
    )
    assert sampled.rounds.shape == sampled.wait_s.shape == (2000, len(DEPTHS))
    assert (standard_errors_apart(sampled.rounds, exact.total_rounds) < 4).all()
    assert (standard_errors_apart(sampled.wait_s, exact.wait_s.sum(axis=0)) < 4).all()
    assert_allclose(sampled.commits, exact.commits, rtol=0.01)
    assert_allclose(sampled.wait_inflation, exact.wait_inflation, rtol=0.01)


@pytest.mark.parametrize(("seed", "acceptance", "n_segments", "longest"), CONFIGURATIONS)
def test_a_walk_in_plain_python_agrees(
    seed: int, acceptance: float | list[float], n_segments: int, longest: int
) -> None:
    segments = random_segments(np.random.default_rng(seed), n_segments=n_segments, longest=longest)
    by_position = np.broadcast_to(acceptance, max(DEPTHS)).tolist()
    trace = as_lists(segments)
    times = [[trace.gen_s[s] for s in segment] for segment in trace.segments]
    exact = exact_replay(segments, acceptance, DEPTHS)
    rng = random.Random(seed)
    for d, depth in enumerate(DEPTHS):
        walks = np.array([walk_once(times, by_position, depth, rng) for _ in range(600)])
        expected = np.array([exact.total_rounds[d], exact.wait_s[:, d].sum()])
        assert (standard_errors_apart(walks, expected) < 4).all()


@pytest.mark.parametrize("acceptance", [0.0, 1.0, [1.0, 0.0, 1.0, 1.0]])
def test_certain_outcomes_leave_nothing_to_chance(acceptance: float | list[float]) -> None:
    segments = random_segments(np.random.default_rng(5), n_segments=30, longest=9)
    trace = as_lists(segments)
    times = [[trace.gen_s[s] for s in segment] for segment in trace.segments]
    exact = exact_replay(segments, acceptance, DEPTHS)
    sampled = sampled_replay(segments, acceptance, DEPTHS, rng=np.random.default_rng(0), repeats=2)
    for d, depth in enumerate(DEPTHS):
        by_position = np.broadcast_to(acceptance, max(DEPTHS)).tolist()
        rounds, wait_s = walk_once(times, by_position, depth, random.Random(0))
        for found in (exact.total_rounds[d], *sampled.rounds[:, d]):
            assert_allclose(found, rounds, rtol=1e-12)
        for found in (exact.wait_s[:, d].sum(), *sampled.wait_s[:, d]):
            assert_allclose(found, wait_s, rtol=1e-12)


def test_the_same_generator_state_gives_the_same_walks() -> None:
    segments = random_segments(np.random.default_rng(6), n_segments=30, longest=9)
    first, again, other = (
        sampled_replay(segments, 0.6, DEPTHS, rng=np.random.default_rng(seed), repeats=5)
        for seed in (1, 1, 2)
    )
    assert_array_equal(first.rounds, again.rounds)
    assert_array_equal(first.wait_s, again.wait_s)
    assert (first.rounds != other.rounds).any()


def test_fifty_repeats_by_default() -> None:
    walk = sampled_replay(Segments([1.0], starts=[0]), 0.5, [1], rng=np.random.default_rng(0))
    assert walk.rounds.shape == (50, 1)


def test_repeats_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^repeats must be >= 1, found 0$"):
        sampled_replay(
            Segments([1.0], starts=[0]), 0.5, [1], rng=np.random.default_rng(0), repeats=0
        )
