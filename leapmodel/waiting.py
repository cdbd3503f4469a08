"""The wait for the slowest of several verifications, when step times are independent draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from leapmodel.segments import Floats


def expected_maximum(gen_s: ArrayLike, n: ArrayLike) -> Floats:
    """Return E[max of n independent draws] from the empirical distribution, in seconds.

    Parameters
    ----------
    gen_s : array_like, shape (steps,)
        Observed step times, seconds.
    n : array_like of int
        How many draws, >= 1.

    Raises
    ------
    ValueError
        If there are no times or n < 1.

    Notes
    -----
    With x_(i) the sorted times, the maximum of n draws is at most x_(i) with probability
    (i/N)^n, so E[max] = sum x_(i) ((i/N)^n - ((i-1)/N)^n).

    Examples
    --------
    >>> expected_maximum([1.0, 3.0], [1, 2]).tolist()
    [2.0, 2.5]
    """
    times = np.sort(np.asarray(gen_s, dtype=np.float64).ravel())
    draws = np.asarray(n)
    if not len(times) or (draws < 1).any():
        raise ValueError("expected at least one time and n >= 1")
    below = np.arange(len(times) + 1) / len(times)
    out = [times @ np.diff(below ** int(count)) for count in draws.ravel()]
    return np.asarray(out).reshape(draws.shape)


def wait_inflation_independent(hit_rates: ArrayLike, gen_s: ArrayLike) -> float:
    """Return beta = sum_a Pr[A = a] E[max_(a+1)] / t_gen for independent step times (App. C.1).

    Consecutive steps are usually correlated; the replay of the trace itself takes that into
    account, this closed form does not (Fig. 7b compares the two).

    Parameters
    ----------
    hit_rates : array_like, shape (depth,)
        q_j = Pr[A >= j] as App. H counts A: never the segment's last step (``terminal="probe"``).
        NaN past the depth counts as absent.
    gen_s : array_like, shape (steps,)
        Sequential step times, seconds.

    Examples
    --------
    >>> wait_inflation_independent([0.5], [1.0, 3.0])
    1.125
    """
    rates = np.nan_to_num(np.asarray(hit_rates, float), nan=0.0)
    at_least = np.concatenate(([1.0], rates, [0.0]))
    exactly = -np.diff(at_least)
    waits = expected_maximum(gen_s, np.arange(1, len(exactly) + 1))
    return float(exactly @ waits / np.mean(np.asarray(gen_s, dtype=np.float64)))
