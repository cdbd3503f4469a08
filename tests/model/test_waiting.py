"""The closed form of the wait against enumeration of all draws, and against the replay."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leapmodel.replay import exact_replay
from leapmodel.segments import Segments
from leapmodel.waiting import expected_maximum, wait_inflation_independent

times = st.lists(st.integers(1, 30).map(lambda t: t / 10), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(gen_s=times, n=st.integers(1, 4))
def test_expected_maximum_is_the_mean_over_all_tuples(gen_s: list[float], n: int) -> None:
    enumerated = np.mean([max(draw) for draw in product(gen_s, repeat=n)])
    assert_allclose(expected_maximum(gen_s, n), enumerated, rtol=1e-12)


def test_expected_maximum_of_many_counts_keeps_their_shape() -> None:
    gen_s = [0.5, 2.0, 1.0]
    found = expected_maximum(gen_s, [[1, 2], [3, 40]])
    assert found.shape == (2, 2)
    assert_allclose(found[0, 0], np.mean(gen_s), rtol=1e-15)
    assert (np.diff(found.ravel()) > 0).all()
    assert_allclose(found[1, 1], 2.0, rtol=1e-6)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    gen_s=st.lists(st.integers(1, 30).map(float), min_size=1, max_size=3),
    p=st.integers(0, 10).map(lambda tenths: tenths / 10),
    depth=st.integers(1, 3),
)
def test_the_closed_form_is_the_replay_averaged_over_all_assignments_of_times(
    gen_s: list[float], p: float, depth: int
) -> None:
    """Two segments of 3 and 2 steps whose times are any draws: truncation is in Pr[A = a]."""
    wait_s, hit_rates = [], None
    for drawn in product(gen_s, repeat=5):
        sums = exact_replay(Segments(drawn, starts=[0, 3]), p, [depth], terminal="probe")
        wait_s.append(sums.wait_s.sum())
        hit_rates = sums.hit_rates[0]
    beta = np.mean(wait_s) / (sums.total_rounds[0] * np.mean(gen_s))
    assert hit_rates is not None
    assert_allclose(wait_inflation_independent(hit_rates, gen_s), beta, rtol=1e-12)


@pytest.mark.parametrize("p", [0.3, 0.8])
def test_the_closed_form_is_the_replay_of_a_long_segment_of_independent_times(p: float) -> None:
    gen_s = np.random.default_rng(0).lognormal(0, 1, 200_000)
    sums = exact_replay(Segments(gen_s, starts=[0]), p, [1, 3, 6], terminal="probe")
    closed = [wait_inflation_independent(q, gen_s) for q in sums.hit_rates]
    assert_allclose(closed, sums.wait_inflation, rtol=0.01)


def test_correlated_times_wait_less_than_independent_ones() -> None:
    """Fig. 7(b): a round of equal steps waits for one of them, whatever their number."""
    gen_s = np.repeat([1.0, 5.0], 1000)
    sums = exact_replay(Segments(gen_s, starts=[0, 1000]), 0.8, [3], terminal="probe")
    assert_allclose(sums.wait_inflation[0], 1.0, rtol=1e-3)
    assert wait_inflation_independent(sums.hit_rates[0], gen_s) > 1.3


def test_hit_rates_past_the_depth_are_absent() -> None:
    gen_s = [1.0, 3.0, 4.0]
    padded = wait_inflation_independent([0.5, np.nan, np.nan], gen_s)
    assert_allclose(padded, wait_inflation_independent([0.5], gen_s), rtol=1e-15)
    assert_allclose(wait_inflation_independent([0.0, 0.0], gen_s), 1.0, rtol=1e-15)


@pytest.mark.parametrize(("gen_s", "n"), [([], 1), ([1.0], 0), ([1.0], [2, -1])])
def test_bad_arguments(gen_s: list[float], n: int) -> None:
    with pytest.raises(ValueError, match=r"^expected at least one time and n >= 1$"):
        expected_maximum(gen_s, n)
