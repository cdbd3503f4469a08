"""Whose actions a draft learns: the target's, of a trace or rounds, or the benchmark's (Table 2).

The contexts are built anew through the benchmark's environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from leapmodel.benchmarks import Benchmark, Task
from leapmodel.benchmarks.interface import about_benchmark
from leapmodel.benchmarks.recorded import benchmark_of
from leapmodel.errors import DataError, UsageError
from leapmodel.execution.contexts import Context, contexts_of
from leapmodel.execution.records.record import Arm
from leapmodel.execution.training.pairs import Pairs
from leapmodel.rounds import Rounds
from leapmodel.trace import Trace


def pairs_from_trace(
    trace: Trace, benchmark: Benchmark | None = None, *, source: str | Path = "the trace"
) -> Pairs:
    """Rebuild the contexts of a trace by replaying its actions in the benchmark's environment.

    Parameters
    ----------
    trace : Trace
        Sequential, of tasks of a benchmark.
    benchmark : Benchmark, optional
        Default: the one the trace's metadata names.
    source : str or Path, default "the trace"
        What error messages call the trace, such as its file.

    Returns
    -------
    Pairs
        One for each step whose output parsed.

    Raises
    ------
    UsageError
        If there is no such benchmark, it does not take the settings of the metadata, or has other
        tasks than those that ran.
    DataError
        If the trace names no benchmark, has a task the benchmark lacks, goes on where its
        environment ends, or has no parsed action.
    """
    benchmark = benchmark or benchmark_of(trace.metadata, source)
    return _pairs_of(contexts_of(benchmark, trace, source=source), benchmark, source)


def pairs_from_rounds(
    rounds: Rounds,
    benchmark: Benchmark | None = None,
    *,
    arm: Arm | None = None,
    source: str | Path = "the record",
) -> Pairs:
    """Return the pairs behind measured rounds.

    Each context built again is compared with the recorded hash of the target's request.

    Parameters
    ----------
    rounds : Rounds
        Of tasks of a benchmark.
    benchmark : Benchmark, optional
        Default: the one the record names.
    arm : {"sequential", "speculative"}, optional
        Default: the sequential one, if there is one.
    source : str or Path, default "the record"
        What error messages call the rounds, such as their file.

    Returns and raises what :func:`pairs_from_trace` does, and a DataError for a request that was
    another one.
    """
    benchmark = benchmark or benchmark_of(rounds.metadata, source)
    if arm is None:
        arm = "sequential" if len(rounds.sequential.frame) else "speculative"
    steps = rounds.arm(arm).committed
    if not len(steps):
        raise DataError(source, expected=f"a {arm} arm", found="none")
    key = ["task", "run", "step"]
    # Only the actions count: a round's time is no step's.
    trace = Trace.from_frame(steps[[*key, "action"]].assign(gen_s=1.0), are_canonical=True)
    asked = dict(zip(steps[key].itertuples(index=False, name=None), steps["context"], strict=True))
    contexts = contexts_of(benchmark, trace, source=source)
    return _pairs_of(_as_asked(contexts, asked, source), benchmark, source)


def pairs_from_gold(benchmark: Benchmark, tasks: Sequence[Task]) -> Pairs:
    """Return pairs whose actions are the benchmark's own answers, not the target's (Table 2).

    Raises
    ------
    UsageError
        If there is no task, or one has no answer of its own.
    """
    rows = []
    for task in tasks:
        if task.gold is None:
            raise UsageError(
                f"benchmark {benchmark.name}: task {task.name} has no answer of its own to learn"
            )
        environment = benchmark.start(task)
        for step, action in enumerate(task.gold):
            rows.append(
                {
                    "task": task.name,
                    "run": 0,
                    "step": step,
                    "messages": _plain(environment.prompt("draft").messages),
                    "action": action,
                    "answer": benchmark.answer("draft", action),
                }
            )
            environment.step(action)
    if not rows:
        raise UsageError(f"benchmark {benchmark.name}: no task to learn from")
    return Pairs.from_frame(pd.DataFrame(rows), _about(benchmark, "gold"))


def _pairs_of(contexts: Iterable[Context], benchmark: Benchmark, source: str | Path) -> Pairs:
    rows = [
        {
            "task": context.task.name,
            "run": context.run,
            "step": context.step,
            "messages": _plain(context.draft.messages),
            "action": context.action,
            "answer": benchmark.answer("draft", context.action),
            "target_messages": _plain(context.target.messages),
        }
        for context in contexts
        if context.action is not None
    ]
    if not rows:
        raise DataError(source, column="action", expected="a parsed action", found="none")
    return Pairs.from_frame(pd.DataFrame(rows), _about(benchmark, "target"))


def _as_asked(
    contexts: Iterable[Context],
    asked: Mapping[tuple[str, int, int], Any],
    source: str | Path,
) -> Iterator[Context]:
    """Yield contexts as long as each is the one whose hash was recorded, if one was."""
    for context in contexts:
        recorded = asked[context.key]
        if isinstance(recorded, str) and recorded != context.target.sha256():
            raise DataError(
                source,
                column="verifications",
                expected="the request that the benchmark makes of"
                f" {context.task.name} at step {context.step}",
                found="the hash of another",
            )
        yield context


def _about(benchmark: Benchmark, supervision: str) -> dict[str, Any]:
    return {"benchmark": about_benchmark(benchmark), "supervision": supervision}


def _plain(messages: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    return [dict(message) for message in messages]
