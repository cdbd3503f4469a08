"""What if: the same prediction with one thing changed at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from leapmodel.acceptance import PooledAcceptance, StatedAcceptance
from leapmodel.concurrency import slowed
from leapmodel.prediction import Prediction
from leapmodel.predictor import speedups
from leapmodel.replay import ReplaySums, StepOutcomes, average_sums, teacher_forced_replay
from leapmodel.segments import Segments
from leapmodel.trace import Trace

FEWER_HITS = 0.10
"""How much the acceptance falls in "hits 10 points lower"."""


def sensitivity(trace: Trace, prediction: Prediction, depth: int | None = None) -> pd.DataFrame:
    """Recompute a prediction at one depth with one thing changed at a time.

    Parameters
    ----------
    trace : Trace
        The workload.
    prediction : Prediction
        Of one draft on it.
    depth : int, optional
        Default the depth of its verdict.

    Returns
    -------
    pandas.DataFrame
        Columns ``what_if``, ``speedup`` and ``change`` against the prediction as it is; the first
        row is the prediction itself. Tools are left alone where the trace has no tool time.

    Examples
    --------
    >>> from leapmodel.draft import stated_draft
    >>> from leapmodel.predictor import predict
    >>> trace = Trace.from_frame(pd.DataFrame({
    ...     "task": "a", "step": range(1000), "gen_s": 1.0, "action": "ls({})"}))
    >>> table = sensitivity(trace, predict(trace, stated_draft(0.8, cost=0.2), [1]))
    >>> table["what_if"].tolist()[:3], table["speedup"].round(2).tolist()[:3]
    (['as predicted', 'draft twice as fast', 'draft twice as slow'], [1.5, 1.64, 1.29])
    """
    k = prediction.verdict.depth if depth is None else depth
    segments, call_s = trace.segments, prediction.call_s

    def speedup(of: Segments, seconds: float, fewer_hits: float = 0.0) -> float:
        replay = slowed(_replay(of, prediction, k, fewer_hits), prediction.slowdown)
        return float(speedups(replay, seconds)[0])

    cases = {
        "as predicted": speedup(segments, call_s),
        "draft twice as fast": speedup(segments, call_s / 2),
        "draft twice as slow": speedup(segments, call_s * 2),
        "hits 10 points lower": speedup(segments, call_s, FEWER_HITS),
        "hits 10 points higher": speedup(segments, call_s, -FEWER_HITS),
    }
    if trace.tool_s.any():
        cases |= {
            "tools twice as slow": speedup(replace(segments, tool_s=segments.tool_s * 2), call_s),
            "tools instantaneous": speedup(replace(segments, tool_s=segments.tool_s * 0), call_s),
        }
    table = pd.DataFrame({"what_if": list(cases), "speedup": list(cases.values())})
    return table.assign(change=table["speedup"] - table["speedup"].iloc[0])


def _replay(segments: Segments, prediction: Prediction, depth: int, fewer: float) -> ReplaySums:
    acceptance, terminal = prediction.draft.acceptance, prediction.terminal
    if isinstance(acceptance, PooledAcceptance):
        parameters = np.clip(acceptance.estimate.parameters - fewer, 0, 1)
        return acceptance.replay(segments, [depth], terminal, parameters)
    if isinstance(acceptance, StatedAcceptance):
        stated = StatedAcceptance(np.clip(acceptance.values - fewer, 0, 1))
        return stated.replay(segments, [depth], terminal)
    law = acceptance.law(depth)
    assert isinstance(law, list)
    return average_sums(
        [
            teacher_forced_replay(segments, _shifted(outcomes, fewer), [depth], terminal=terminal)
            for outcomes in law
        ]
    )


def _shifted(outcomes: StepOutcomes, fewer: float) -> StepOutcomes:
    """Move the mean hit probability by as many points, in proportion at each step.

    Fewer hits: each is lost with one probability. More hits: each miss becomes one with another.
    """
    mean = float(outcomes.hit.mean())
    if fewer > 0:
        kept = max(mean - fewer, 0.0) / mean if mean else 0.0
        hit = np.clip(outcomes.hit * kept, 0, 1)
        return StepOutcomes(hit, outcomes.invalid, outcomes.wrong_end)
    gained = min(-fewer / (1 - mean), 1.0) if mean < 1 else 0.0
    left = 1 - gained
    hit = np.clip(1 - (1 - outcomes.hit) * left, 0, 1)
    return StepOutcomes(hit, outcomes.invalid * left, outcomes.wrong_end * left)
