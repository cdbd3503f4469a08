"""How often a draft must be right before it pays."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from leapmodel.predictor import Prediction, speedups
from leapmodel.replay import exact_replay
from leapmodel.segments import Floats
from leapmodel.trace import Trace


def break_even(trace: Trace, prediction: Prediction) -> Floats:
    """Find the acceptance at which S = 1, at a draft's cost: one for all positions.

    Parameters
    ----------
    trace : Trace
        The workload.
    prediction : Prediction
        Of the draft, on that workload.

    Returns
    -------
    ndarray, shape (depths,)
        In [0, 1]; NaN where even a draft that is always right loses.

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

    def excess(acceptance: float, depth: int) -> float:
        replay = exact_replay(trace.segments, acceptance, [depth], terminal=prediction.terminal)
        return float(speedups(replay, prediction.call_s)[0]) - 1.0

    found = []
    for depth in prediction.depths.tolist():
        if excess(0.0, depth) >= 0:  # a draft that costs nothing never loses
            found.append(0.0)
        elif excess(1.0, depth) <= 0:
            found.append(np.nan)
        else:
            found.append(float(brentq(excess, 0.0, 1.0, args=(depth,), xtol=1e-4)))
    return np.array(found)
