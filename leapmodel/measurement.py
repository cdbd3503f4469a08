"""What a speculative run measured against the sequential one: the terms of Eq. 4, and the speedup.

Everything here is a ratio of sums over tasks, so that one weight a task resamples all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from leapmodel.configurations import Configuration, configurations
from leapmodel.errors import DataError
from leapmodel.identity import counterparts
from leapmodel.rounds import Rounds
from leapmodel.segments import Floats
from leapmodel.trace import Trace

Sums = Mapping[str, Floats]
"""Sums over the tasks by quantity: of all tasks, shape (), or of each resample, (resamples,)."""


@dataclass(frozen=True, eq=False, repr=False)
class Measurement:
    """One draft at one depth, run on tasks whose sequential trace is known.

    Attributes
    ----------
    configuration : Configuration
        The draft and its depth.
    trace : Trace
        The sequential trace of the tasks that both arms have: of the rounds' own sequential arm,
        if they have one.
    given : Trace
        What is known before the run, of the same tasks: the trace that was given, else ``trace``.
    rounds : Rounds
        The speculative rounds of those tasks.
    per_task : pandas.DataFrame
        Sums of each task, in the order of ``trace.task_names``. Of the sequential arm: ``steps``,
        ``gen_s``, ``tool_s``, ``tool_steps``, ``seq_wall_s`` (all its time; the trace's generation
        and tools where no sequential rounds are known), and ``paired_steps`` and ``paired_wall_s``,
        the same for as many runs as the speculative arm has. Of the speculative arm: ``rounds``,
        ``committed``, ``bonus_lost``, ``hits1`` …, ``target_tool_steps`` and the parts of its time.
    own_sequential : bool
        Whether the sequential arm's time was measured as a whole.
    ms_per_token : dict
        By arm, where tokens are known.
    alone_ms_per_token : dict
        The same of requests that had the target for themselves.
    left_out : tuple of str
        Tasks that one arm or the trace lacks, or that broke off in one arm.
    """

    configuration: Configuration
    trace: Trace
    given: Trace
    rounds: Rounds
    per_task: pd.DataFrame
    own_sequential: bool
    ms_per_token: dict[str, float]
    alone_ms_per_token: dict[str, float]
    left_out: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<Measurement of {self.configuration}: {float(speedup(self.sums)):.2f}x>"

    @property
    def depth(self) -> int:
        """Proposals per round at most, k."""
        return self.configuration.depth

    @cached_property
    def sums(self) -> Sums:
        """Sums over all tasks by quantity."""
        return {str(name): np.sum(column.to_numpy()) for name, column in self.per_task.items()}

    @property
    def hit_rates(self) -> Floats:
        """Pr[A >= j] over all rounds, q_j, shape (depth,)."""
        return np.array([hit_rate(self.sums, j) for j in range(1, self.depth + 1)])

    @property
    def acceptance(self) -> Floats:
        """Acceptance at j among rounds that made proposal j and accepted the earlier, a_j."""
        frame = self.rounds.frame
        proposed, accepted = frame["proposed"].to_numpy(), frame["accepted"].to_numpy()
        positions = range(1, self.depth + 1)
        made = np.array([((proposed >= j) & (accepted >= j - 1)).sum() for j in positions])
        hits = np.array([(accepted >= j).sum() for j in positions])
        with np.errstate(invalid="ignore", divide="ignore"):
            return hits / made


def measure(
    rounds: Rounds, trace: Trace | None = None, *, sequential: Rounds | None = None
) -> list[Measurement]:
    """Return what was measured, one measurement a draft and depth.

    Parameters
    ----------
    rounds : Rounds
        A run. Where it has a sequential arm, that arm is the one compared with, since it ran
        beside it.
    trace : Trace, optional
        The sequential trace to take step times from where the rounds have no such arm; what is
        known before the run in any case.
    sequential : Rounds, optional
        A sequential arm that was recorded apart, for rounds without one.

    Raises
    ------
    DataError
        If there is no sequential arm and no trace, no speculative round, or no common task.
    """
    own = rounds.sequential
    if not own.n_rounds and sequential is not None:
        own = sequential.sequential
    of_arm = own.sequential_trace() if rounds.sequential.n_rounds or trace is None else trace
    parts = configurations(rounds)
    if not parts:
        raise DataError("the rounds", expected="a speculative arm", found="none")
    return [
        _measurement(configuration, part, of_arm, of_arm if trace is None else trace, own)
        for configuration, part in parts
    ]


def speedup(sums: Sums, *, without_idle: bool = False) -> Floats:
    """Return the sequential arm's time over the speculative one's (Sec. 4.1)."""
    spent = sums["wall_s"] - sums["idle_s"] if without_idle else sums["wall_s"]
    return sums["paired_wall_s"] / spent


def hit_rate(sums: Sums, position: int) -> Floats:
    """Return q_j."""
    return sums[f"hits{position}"] / sums["rounds"]


def mean_gen_s(sums: Sums) -> Floats:
    """Return t_gen."""
    return sums["gen_s"] / sums["steps"]


def commits(sums: Sums) -> Floats:
    """Return c, which is 1 + sum q_j - e (Eq. 3)."""
    return sums["committed"] / sums["rounds"]


def per_round(sums: Sums, *names: str) -> Floats:
    """Return the mean of some parts of a round's time over t_gen, such as beta of ``wait_s``."""
    spent = sum(sums[name] for name in names)
    return spent / (sums["rounds"] * mean_gen_s(sums))


def tool_terms(sums: Sums) -> tuple[Floats, Floats, Floats]:
    """Return tau, f and g of Eq. 4; tau of no tool is 0."""
    steps = sums["tool_steps"]
    tool_s = np.divide(sums["tool_s"], steps, out=np.zeros_like(steps * 1.0), where=steps > 0)
    return (
        tool_s / mean_gen_s(sums),
        steps / sums["steps"],
        sums["target_tool_steps"] / sums["rounds"],
    )


def _measurement(
    configuration: Configuration, part: Rounds, trace: Trace, given: Trace, sequential: Rounds
) -> Measurement:
    whole = sequential.frame if len(sequential.frame) else None
    in_both = set(part.task_names) & set(trace.task_names) & set(given.task_names)
    if whole is not None:
        in_both &= set(whole["task"])
    in_both -= _broken_off(trace, part)
    if not in_both:
        of = "sequential arm" if given is trace else "trace"
        raise DataError(
            f"the rounds of {configuration}",
            column="task",
            expected=f"whole tasks of the {of}, such as {given.task_names[0]!r}",
            found=f"others, such as {part.task_names[0]!r}",
        )
    everyone = dict.fromkeys([*trace.task_names, *given.task_names, *part.task_names])
    alone = given is trace
    trace = _only(in_both, trace)
    given = trace if alone else _only(in_both, given)
    part = part.where(part.frame["task"].isin(in_both))
    if whole is not None:
        whole = whole[whole["task"].isin(in_both)]
    compared = part if whole is None else sequential.where(sequential.frame["task"].isin(in_both))
    return Measurement(
        configuration=configuration,
        trace=trace,
        given=given,
        rounds=part,
        per_task=_per_task(trace, part, whole, configuration.depth),
        own_sequential=whole is not None,
        ms_per_token=_ms_per_token(trace, part, compared),
        alone_ms_per_token={
            arm: rate
            for rounds in (part, compared)
            for arm, rate in rounds.ms_per_token(alone=True).items()
        },
        left_out=tuple(name for name in everyone if name not in in_both),
    )


def _broken_off(trace: Trace, part: Rounds) -> set[str]:
    """Return the tasks of which one arm did what the other did, but stopped before its end."""
    found = set()
    done = part.committed_actions("speculative")
    for task, *arms in counterparts(trace.actions_by_run, done):
        short, long = sorted(arms, key=len)
        if len(short) < len(long) and long[: len(short)] == short:
            found.add(task)
    return found


def _only(tasks: set[str], trace: Trace) -> Trace:
    """Return the part of a trace that is about some of its tasks."""
    kept = trace.frame["task"].isin(tasks).to_numpy()
    if kept.all():
        return trace
    return Trace(trace.frame[kept].reset_index(drop=True), trace.metadata, trace.dropped)


def _per_task(trace: Trace, part: Rounds, whole: pd.DataFrame | None, depth: int) -> pd.DataFrame:
    names = trace.task_names
    steps = pd.DataFrame(
        {
            "steps": 1.0,
            "gen_s": trace.gen_s,
            "tool_s": trace.tool_s,
            "tool_steps": (trace.tool_s > 0).astype(float),
        }
    )
    table = steps.groupby(trace.task_codes).sum().set_axis(names, axis=0)
    own_runs = trace.frame.groupby("task")["run"].nunique().reindex(names)
    if whole is None:
        table["seq_wall_s"] = table["gen_s"] + table["tool_s"]
        seq_steps, seq_runs = table["steps"], own_runs
    else:
        by_task = whole.groupby("task")
        table["seq_wall_s"] = by_task["wall_s"].sum().reindex(names)
        seq_steps = by_task["committed"].sum().reindex(names).astype(float)
        seq_runs = by_task["run"].nunique().reindex(names)
    frame = part.frame
    target_tool = (frame["target_tool_s"] > 0).astype(float)
    spec = frame[_PARTS].assign(
        rounds=1.0,
        committed=frame["committed"].astype(float),
        bonus_lost=(frame["accepted"] + 1 - frame["committed"]).astype(float),
        target_tool_steps=target_tool,
    )
    for j in range(1, depth + 1):
        spec[f"hits{j}"] = (frame["accepted"] >= j).astype(float)
    spent = spec.groupby(frame["task"]).sum().reindex(names)
    runs = frame.groupby("task")["run"].nunique().reindex(names) / seq_runs
    table["paired_wall_s"] = table["seq_wall_s"] * runs
    table["paired_steps"] = seq_steps * runs
    return table.join(spent)


_PARTS = [
    "wall_s",
    "draft_model_s",
    "proposal_tool_s",
    "wait_s",
    "idle_s",
    "target_tool_s",
    "residual_s",
]


def _ms_per_token(trace: Trace, part: Rounds, sequential: Rounds) -> dict[str, float]:
    found = part.ms_per_token()
    if len(sequential.frame):
        found |= sequential.arm("sequential").ms_per_token()
    if "sequential" not in found and (rate := trace_ms_per_token(trace)) is not None:
        found["sequential"] = rate
    return found


def trace_ms_per_token(trace: Trace) -> float | None:
    """Return milliseconds per completion token of a sequential trace; None if none are counted."""
    if "completion_tokens" not in trace.frame:
        return None
    tokens = trace.frame["completion_tokens"].to_numpy(float)
    told = tokens > 0
    return float(1000 * trace.gen_s[told].sum() / tokens[told].sum()) if told.any() else None


def calls_by_position(
    rounds: Rounds, names: Sequence[str], depth: int
) -> tuple[Floats, Floats, Floats]:
    """Return hits and draft calls whose outcome is known, by task and position j.

    A call for position j counts where all proposals before it were accepted, an invalid one too.

    Parameters
    ----------
    rounds : Rounds
        Speculative ones.
    names : sequence of str
        The tasks, in the order of the result.
    depth : int
        Positions looked at.

    Returns
    -------
    hits, known : ndarray, shape (2, tasks, depth)
        Index 0 holds steps that are not the last of their segment, 1 those that are.
    calls : ndarray, shape (tasks,)
        All draft calls.
    """
    steps = rounds.committed
    key = steps[["task", "run"]].to_numpy(dtype=object)
    segment = steps["segment"].to_numpy()
    is_last = np.ones(len(steps), bool)
    is_last[:-1] = (key[1:] != key[:-1]).any(axis=1) | (segment[1:] != segment[:-1])
    frame = rounds.frame
    first = np.concatenate(([0], np.cumsum(frame["committed"].to_numpy())[:-1]))
    n_calls = frame["proposals"].map(len).to_numpy()
    accepted = frame["accepted"].to_numpy()
    committed = frame["committed"].to_numpy()
    task = pd.Index(names).get_indexer(pd.Index(frame["task"]))
    n = len(names)
    hits, known = np.zeros((2, n, depth)), np.zeros((2, n, depth))
    for j in range(1, depth + 1):
        # the target's answer at this position is known if the step was committed in this round
        seen = (n_calls >= j) & (accepted >= j - 1) & (committed >= j)
        rows = np.flatnonzero(seen)
        cell = n * is_last[first[rows] + j - 1] + task[rows]
        known[:, :, j - 1] = np.bincount(cell, minlength=2 * n).reshape(2, n)
        hit = (accepted[rows] >= j).astype(np.float64)
        hits[:, :, j - 1] = np.bincount(cell, hit, 2 * n).reshape(2, n)
    return hits, known, np.bincount(task, n_calls, n).astype(np.float64)
