"""Predict the speedup of one draft at several depths from a sequential trace, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leapmodel.bootstrap import MIN_TASKS, N_RESAMPLES, interval_of_best
from leapmodel.concurrency import beyond_timed, slowed, wait_factor
from leapmodel.draft import Draft
from leapmodel.errors import UsageError, shown
from leapmodel.hits import sum_by_task
from leapmodel.prediction import Prediction
from leapmodel.replay import ReplaySums, Terminal
from leapmodel.replay.sums import check_depths
from leapmodel.resampling import resample
from leapmodel.segments import Floats, Ints
from leapmodel.trace import Trace
from leapmodel.verdict import Unknown, give_verdict

DEPTHS = range(1, 7)
"""The depths that are looked at unless somebody says otherwise."""
NOT_SLOWED = "k + 1 requests at once taking no longer than one (leapmodel probe times them)"
SLOWED = "the target's time per token with several requests at once, as it was timed"
TOOLS_ARE_SAFE = "every tool being safe to run in a copy (none is named as a boundary tool)"
OF_THE_WORKLOAD = (NOT_SLOWED, SLOWED, TOOLS_ARE_SAFE)
"""What is taken for granted of the target and of its tools, whatever the draft."""


def predict(
    trace: Trace,
    draft: Draft,
    depths: Sequence[int] | np.ndarray = DEPTHS,
    *,
    terminal: Terminal = "accepted",
    slowdown: Sequence[float] | None = None,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Prediction:
    """Predict the speedup of action speculation on a workload (Eq. 1, App. H).

    Parameters
    ----------
    trace : Trace
        The workload, run sequentially.
    draft : Draft
        The evidence for the draft; see :mod:`leapmodel.draft`.
    depths : array_like of int, default 1 to 6
        The depths k, increasing.
    terminal : {"accepted", "probe"}, default "accepted"
        How a segment's last step is decided.
    slowdown : sequence of float, optional
        The target's time per token with 1, 2, … requests at once, over that of one alone, as a
        probe measures it (:attr:`leapmodel.probes.Probe.slowdown`). Default: the draft's, where it
        was timed along with it; else none, which is assumption (b) of Sec. 3.2: every wait of a
        round is then that of its steps alone. ``[1.0]`` is that assumption, whatever was timed.
    n_resamples : int, default 10,000
        Bootstrap resamples of whole tasks.
    seed : int, default 0
        Seed of the bootstrap; predictions of one trace with the same seed are paired.

    Returns
    -------
    Prediction

    Notes
    -----
    The acceptance, the draft's cost and t_gen are resampled together with the trace's tasks. An
    acceptance estimated from counts enters the replay, whose sums are taken as a quadratic
    function of it through three points, three standard errors apart, so that one resample costs
    one row of a matrix product and not a replay of its own.

    Examples
    --------
    >>> import pandas as pd
    >>> from leapmodel.draft import stated_draft
    >>> trace = Trace.from_frame(pd.DataFrame({
    ...     "task": [f"t{i // 4}" for i in range(80)], "segment": 0, "step": [0, 1, 2, 3] * 20,
    ...     "gen_s": 1.0, "action": "ls({})"}))
    >>> prediction = predict(trace, stated_draft(1.0, latency_s=0.1), [1, 3])
    >>> prediction.speedup.round(3).tolist()  # 4 steps in 2 rounds of 1.1 s, or 1 of 1.3 s
    [1.818, 3.077]
    """
    require_trace(trace)
    checked = check_depths(depths)
    segments = trace.segments
    replay = draft.acceptance.replay(segments, checked, terminal)
    mean_gen_s = replay.mean_gen_s
    call_s = draft.cost.seconds(mean_gen_s)
    slowdown = tuple(slowdown or draft.slowdown)
    runs_tool = trace.tool_s > 0
    resamples = None
    n_tasks = deciding_tasks(trace, draft)
    factor = wait_factor(replay, slowdown)
    if n_tasks >= MIN_TASKS:
        resamples = resample(
            trace,
            draft,
            replay,
            terminal,
            wait_factor=factor,
            n_resamples=n_resamples,
            seed=seed,
        )
    replay = replace(replay, wait_s=replay.wait_s * factor)
    point = speedups(replay, call_s)
    bounds = _bounds(draft, trace, checked, terminal, call_s, slowdown)
    warnings = [*trace.metadata.get("warnings", ()), *draft.warnings]
    best = int(np.argmax(point))
    conditional_on = (*draft.conditional_on, SLOWED if len(slowdown) > 1 else NOT_SLOWED)
    if len(slowdown) > 1 and len(beyond := beyond_timed(replay, slowdown)):
        condition = f"more than {len(slowdown)} requests at once, which were not timed, being"
        condition += f" as slow as {len(slowdown)}"
        first = int(beyond.min())
        more = " and more" if first < checked.max() else ""
        warnings.append(f"k = {first}{more}: it depends on {condition}")
        if checked[best] in beyond:
            conditional_on += (condition,)
    if not trace.metadata.get("boundary_tools"):
        conditional_on += (TOOLS_ARE_SAFE,)
    ci95 = None
    if resamples is not None:
        ci95 = interval_of_best(point, resamples.speedup, best)
    return Prediction(
        draft=draft,
        replay=replay,
        terminal=terminal,
        gen_s_mean=mean_gen_s,
        gen_s_cv=float(trace.gen_s.std() / mean_gen_s),
        tool_cost=float(trace.tool_s[runs_tool].mean() / mean_gen_s) if runs_tool.any() else 0.0,
        tool_step_share=float(runs_tool.mean()),
        call_s=call_s,
        resamples=resamples,
        bounds=bounds,
        verdict=give_verdict(
            draft=draft.name,
            depth=int(checked[best]),
            speedup=float(point[best]),
            ci95=ci95,
            n_tasks=n_tasks,
            n_configurations=len(checked),
            conditional_on=conditional_on,
            unknown=unknown_of(draft, bounds, best),
        ),
        conditional_on=conditional_on,
        warnings=tuple(dict.fromkeys(warnings)),
        about_trace=_about(trace),
        runs_of_task=sum_by_task(trace, trace.run_starts_mask),
        seed=seed,
        n_resamples=n_resamples,
        slowdown=slowdown or None,
    )


def require_trace(trace: object) -> None:
    """Say what to do with a path where a trace is wanted.

    Raises
    ------
    UsageError
        If it is no trace.
    """
    if not isinstance(trace, Trace):
        raise UsageError(f"expected a Trace, as leapmodel.read_trace gives, found {shown(trace)}")


def speedups(replay: ReplaySums, call_s: float, *, proposal_tools: bool = True) -> Floats:
    """Return S = sequential seconds / speculative seconds, pooled over tasks, shape (depths,).

    The same as Eq. 1 with all its ratios taken from the replay.

    Parameters
    ----------
    replay : ReplaySums
        Expected sums.
    call_s : float
        Seconds of one draft call.
    proposal_tools : bool, default True
        Whether the tools of proposals take their time.
    """
    spent = replay.wait_s + call_s * replay.calls + replay.target_tool_s
    if proposal_tools:
        spent = spent + replay.proposal_tool_s
    return (replay.gen_s.sum() + replay.tool_s.sum()) / spent.sum(axis=0)


def deciding_tasks(trace: Trace, draft: Draft) -> int:
    """Return how many tasks an interval would rest on: the trace's, or fewer that were measured."""
    measured = draft.evidence_tasks
    return trace.n_tasks if measured is None else min(trace.n_tasks, measured)


def unknown_of(draft: Draft, bounds: Floats | None, best: int) -> Unknown | None:
    """Return what is unknown of a draft, at the depth with index ``best``."""
    if bounds is None or draft.coverage is None:
        return None
    return Unknown(draft.coverage, float(bounds[0, best]), float(bounds[1].max()))


def _about(trace: Trace) -> dict[str, Any]:
    kept = ("origin", "format", "source", "target_model", "boundary_tools")
    return {
        "tasks": trace.n_tasks,
        "runs": trace.n_runs,
        "segments": trace.n_segments,
        "steps": trace.n_steps,
        **{name: trace.metadata.get(name) for name in kept},
    }


def _bounds(
    draft: Draft,
    trace: Trace,
    depths: Ints,
    terminal: Terminal,
    call_s: float,
    slowdown: Sequence[float] | None,
) -> Floats | None:
    if draft.known is None or draft.known.steps.known.all():
        return None
    found = []
    for unknown in (0.0, 1.0):
        replay = draft.known.replay_with_unknown(unknown, trace.segments, depths, terminal)
        found.append(speedups(slowed(replay, slowdown), call_s))
    return np.array(found)
