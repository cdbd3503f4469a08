"""Test a draft on the trace that teaches it: each task is predicted from earlier tasks alone."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np
import pandas as pd

from leapmodel.actions import TERMINAL_ACTIONS
from leapmodel.drafts.interface import Context, DraftModel, Episode
from leapmodel.errors import DataError
from leapmodel.predictions import Predictions
from leapmodel.trace import Trace

SUCCESS_COLUMNS = ("success", "reward")
"""Optional columns that say how a run went; the first one that the trace has is taken."""
MESSAGE_COLUMN = "context"
"""Optional column: new text that the agent had before the step, such as the user's words."""
OBSERVATION_COLUMN = "observation"
"""Optional column: what the step's action returned; known from the next step on."""

WENT_WELL = 0.5  # a reward of at least this counts as success
_SHORTEST_S = 1e-9  # a clock may stand still; a prediction's latency must be > 0


def prequential(trace: Trace, draft: DraftModel, *, seed: int | None = None) -> Predictions:
    """Let a draft predict every step of a trace, and learn from each task after it was predicted.

    Tasks come in the order of the trace, or shuffled. All runs of a task are predicted before any
    of them teaches. Within a task the target's own earlier actions are context, as for any
    teacher-forced prediction (Prop. 1), and so are the texts of the optional columns ``context``
    (new text before the step) and ``observation`` (what the step returned).

    Parameters
    ----------
    trace : Trace
        The target's sequential trace.
    draft : DraftModel
        A fresh one: what it knows already would count as its own.
    seed : int, optional
        Shuffles the tasks; default their order in the trace.

    Returns
    -------
    Predictions
        One a step. ``action`` is null where the draft proposed nothing, which counts as a call
        that gave no proposal. ``latency_s`` is the measured time of taking in the action before
        and proposing; the time of learning between tasks is ``learning_s`` in the metadata, next
        to the order and the draft's settings.

    Raises
    ------
    DataError
        If the trace has no actions.

    Notes
    -----
    Whether a run went well is read from the column ``success`` or ``reward`` (the run's last
    value; true, or at least 0.5). Without one a run is taken to have gone well if each of its
    segments ended on a reply or a termination, or at a boundary tool, and not at a step cap or on
    an output that did not parse. The metadata says which.

    Examples
    --------
    >>> from leapmodel.drafts.backoff import BackoffDraft
    >>> trace = Trace.from_frame(pd.DataFrame({
    ...     "task": ["a", "a", "b", "b"], "segment": 0, "step": [0, 1, 0, 1], "gen_s": 1.0,
    ...     "action": ["ls({})", "<respond/>"] * 2}))
    >>> predictions = prequential(trace, BackoffDraft())
    >>> predictions.frame["action"].fillna("nothing").tolist()
    ['nothing', 'nothing', 'ls({})', '<respond/>']
    >>> predictions.metadata["order"]
    'the order of the trace'
    """
    if not trace.has_actions:
        raise DataError("the trace", column="action", expected="actions to predict", found="none")
    actions = trace.actions
    contexts = _contexts(trace)
    went_well, success = _outcomes(trace)
    proposed = np.full(trace.n_steps, None, dtype=object)
    latency_s = np.zeros(trace.n_steps)
    learning_s = 0.0
    runs = _runs_by_task(trace)
    for task in task_order(trace.n_tasks, seed).tolist():
        episodes = []
        for begin, end in runs[task]:
            draft.start_task()
            observing_s = 0.0
            for step in range(begin, end):
                start = perf_counter()
                proposed[step] = draft.propose(contexts[step])
                done = perf_counter()
                latency_s[step] = observing_s + done - start
                draft.observe(actions[step])
                observing_s = perf_counter() - done
            episodes.append(
                Episode(tuple(contexts[begin:end]), tuple(actions[begin:end]), went_well[begin])
            )
        start = perf_counter()
        draft.finish_task(episodes)
        learning_s += perf_counter() - start
    frame = trace.frame[["task", "run", "step"]].assign(
        draft=draft.name, action=proposed, latency_s=np.maximum(latency_s, _SHORTEST_S)
    )
    shuffled = "the order of the trace" if seed is None else f"shuffled with seed {seed}"
    return Predictions.from_frame(
        frame,
        {
            "origin": "learned prequentially: each task is predicted from earlier tasks alone",
            "order": shuffled,
            "seed": seed,
            "settings": dict(draft.settings),
            "success": success,
            "learning_s": learning_s,
        },
        source=f"the predictions of {draft.name}",
    )


def task_order(n_tasks: int, seed: int | None = None) -> np.ndarray:
    """Return the order in which tasks are met, shape (tasks,).

    Examples
    --------
    >>> task_order(3).tolist(), sorted(task_order(3, seed=1).tolist())
    ([0, 1, 2], [0, 1, 2])
    """
    return np.arange(n_tasks) if seed is None else np.random.default_rng(seed).permutation(n_tasks)


def _runs_by_task(trace: Trace) -> list[list[tuple[int, int]]]:
    starts = np.flatnonzero(trace.run_starts_mask)
    ends = np.append(starts[1:], trace.n_steps)
    runs: list[list[tuple[int, int]]] = [[] for _ in range(trace.n_tasks)]
    for task, begin, end in zip(
        trace.task_codes[starts].tolist(), starts.tolist(), ends.tolist(), strict=True
    ):
        runs[task].append((begin, end))
    return runs


def _contexts(trace: Trace) -> list[Context]:
    starts = np.zeros(trace.n_steps, bool)
    starts[trace.segment_starts] = True
    before = [None, *_texts(trace, OBSERVATION_COLUMN)[:-1]]
    for at in np.flatnonzero(trace.run_starts_mask).tolist():
        before[at] = None
    columns = zip(starts.tolist(), _texts(trace, MESSAGE_COLUMN), before, strict=True)
    return [Context(*values) for values in columns]


def _texts(trace: Trace, column: str) -> list[str | None]:
    if column not in trace.frame.columns:
        return [None] * trace.n_steps
    return [text if isinstance(text, str) and text else None for text in trace.frame[column]]


def _outcomes(trace: Trace) -> tuple[list[bool], str]:
    """Return for each step whether its run went well, and how that is known."""
    starts = np.flatnonzero(trace.run_starts_mask)
    lengths = np.diff(np.append(starts, trace.n_steps))
    for column in SUCCESS_COLUMNS:
        if column in trace.frame.columns:
            good = list(_last_values(trace.frame[column], starts))
            return np.repeat(good, lengths).tolist(), f"column {column}"
    ends = trace.segment_starts + trace.segment_lengths - 1
    replied = np.array([action in TERMINAL_ACTIONS for action in trace.actions[ends]])
    ended = np.ones(trace.n_steps, bool)
    ended[ends] = replied | trace.is_boundary[ends]
    all_ended = np.minimum.reduceat(ended, starts)
    return (
        np.repeat(all_ended, lengths).tolist(),
        "a proxy: every segment ended on a reply, a termination or a boundary tool",
    )


def _last_values(column: pd.Series, starts: np.ndarray) -> Iterator[bool]:
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    for of_run in np.split(numbers, starts[1:]):
        known = of_run[~np.isnan(of_run)]
        yield bool(len(known) and known[-1] >= WENT_WELL)
