"""What verifying several contexts at once costs a target: assumption (b) of Sec. 3.2, or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from leapmodel.errors import UsageError, shown
from leapmodel.replay import ReplaySums
from leapmodel.segments import Floats, Ints


def wait_factor(replay: ReplaySums, slowdown: Sequence[float] | None) -> Floats:
    """Return what concurrent verification makes of a round's wait, on average.

    Parameters
    ----------
    replay : ReplaySums
        Says how many contexts rounds verify at once.
    slowdown : sequence of float or None
        The target's time per token with 1, 2, … requests at once, over that of one alone. Beyond
        the last of them the last stands. None and empty are assumption (b): no slowdown.

    Returns
    -------
    ndarray, shape (depths,)

    Raises
    ------
    UsageError
        If they are not numbers above 0 of which the first is 1.
    """
    if not slowdown:
        return np.ones(len(replay.depths))
    factors = np.asarray(slowdown, dtype=float)
    if not (np.isfinite(factors).all() and (factors > 0).all() and factors[0] == 1):
        raise UsageError(
            f"slowdown: expected numbers above 0, the first 1, found {shown(list(slowdown))}"
        )
    least = replay.request_rates
    exactly = least - np.column_stack([least[:, 1:], np.zeros(len(least))])
    at = np.minimum(np.arange(exactly.shape[1]), len(factors) - 1)
    weighted: Floats = exactly @ factors[at]
    return weighted


def beyond_timed(replay: ReplaySums, slowdown: Sequence[float]) -> Ints:
    """Return the depths at which rounds ask more at once than was timed."""
    return replay.depths[replay.request_rates[:, len(slowdown) :].sum(axis=1) > 0]


def slowed(replay: ReplaySums, slowdown: Sequence[float] | None) -> ReplaySums:
    """Return a replay whose waits are those of a target that slows down as stated.

    Examples
    --------
    >>> from leapmodel.replay import exact_replay
    >>> from leapmodel.segments import Segments
    >>> replay = exact_replay(Segments([1.0] * 1000, starts=[0]), 0.5, [1])
    >>> slowed(replay, (1.0, 1.2)).wait_inflation.round(2).tolist()  # all but the last verify two
    [1.2]
    """
    return replace(replay, wait_s=replay.wait_s * wait_factor(replay, slowdown))
