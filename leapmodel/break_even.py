"""How often a draft must be right before it pays."""

from __future__ import annotations

import numpy as np

from leapmodel.concurrency import slowed
from leapmodel.prediction import Prediction
from leapmodel.predictor import speedups
from leapmodel.replay import exact_replay
from leapmodel.segments import Floats, Ints
from leapmodel.trace import Trace

N_GRID = 21


def break_even(trace: Trace, prediction: Prediction) -> Floats:
    """Find the lowest acceptance at which S reaches 1, at a draft's cost: one for all positions.

    Parameters
    ----------
    trace : Trace
        The workload.
    prediction : Prediction
        Of the draft, on that workload.

    Returns
    -------
    ndarray, shape (depths,)
        In [0, 1]; NaN where none reaches it.

    Notes
    -----
    S mostly rises with the acceptance, but not always (a miss can begin the next round where step
    times fit better together), so it is looked for on a grid first.

    Examples
    --------
    >>> import pandas as pd
    >>> from leapmodel.draft import stated_draft
    >>> from leapmodel.predictor import predict
    >>> trace = Trace.from_frame(pd.DataFrame({
    ...     "task": "a", "step": range(1000), "gen_s": 1.0, "action": "ls({})"}))
    >>> prediction = predict(trace, stated_draft(0.8, cost=0.25), [1])
    >>> break_even(trace, prediction).round(3).tolist()  # 1 + p = 1 + d on a long segment
    [0.25]
    """
    from scipy.optimize import brentq  # a fifth of a second that other questions need not pay

    grid = np.linspace(0.0, 1.0, N_GRID)

    def excess(acceptance: float, depths: Ints) -> Floats:
        replay = exact_replay(trace.segments, acceptance, depths, terminal=prediction.terminal)
        return speedups(slowed(replay, prediction.slowdown), prediction.call_s) - 1.0

    on_grid = np.array([excess(float(acceptance), prediction.depths) for acceptance in grid])
    found = []
    for d, depth in enumerate(prediction.depths):
        reached = np.flatnonzero(on_grid[:, d] >= 0)
        if not len(reached):
            found.append(np.nan)
        elif reached[0] == 0:  # a draft that costs nothing never loses
            found.append(0.0)
        else:
            bracket = grid[reached[0] - 1], grid[reached[0]]
            only = np.array([depth])
            found.append(float(brentq(lambda a, k=only: excess(a, k)[0], *bracket, xtol=1e-4)))
    return np.array(found)
