"""The loop of Sec. 3.1 and App. B.2: propose, verify, commit, until the task ends.

Depth 0 is the sequential loop, by the same code: one context, one request, its action committed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from leapmodel.benchmarks import Benchmark, Environment
from leapmodel.errors import UsageError
from leapmodel.execution.proposing import propose
from leapmodel.execution.records.record import Arm, Round
from leapmodel.execution.talking.endpoint import Endpoint
from leapmodel.execution.verification import Mode, verify


@dataclass(frozen=True)
class Models:
    """Who proposes and who decides.

    Attributes
    ----------
    target : Endpoint
    draft : Endpoint, optional
        None for the sequential loop.
    draft_name : str, optional
        What the rounds call the draft, such as an adapter's version.
    """

    target: Endpoint
    draft: Endpoint | None = None
    draft_name: str | None = None


@dataclass
class Progress:
    """Where a run of a task stands: what a killed run goes on from.

    Attributes
    ----------
    environment : Environment
        The committed state.
    steps, rounds : int
        Committed so far.
    clock_s : float
        Seconds the task has run.
    """

    environment: Environment
    steps: int = 0
    rounds: int = 0
    clock_s: float = 0.0


async def run_task(
    benchmark: Benchmark,
    task: str,
    progress: Progress,
    models: Models,
    depth: int,
    *,
    run: int = 0,
    mode: Mode = "prefix",
) -> AsyncIterator[Round]:
    """Run a task to its end and give each round as it is committed.

    What the caller does between two rounds (such as writing the last one to disk) is part of the
    task's clock and of no round.

    Parameters
    ----------
    benchmark : Benchmark
    task : str
        Its name, for the record.
    progress : Progress
        Where to begin; brought up to date with every round.
    models : Models
    depth : int
        Proposals a round at most, k; 0 is the sequential loop.
    run : int, default 0
        The number of the pass over the task.
    mode : {"prefix", "gather"}, default "prefix"
        See :func:`~leapmodel.execution.verification.verify`.

    Raises
    ------
    EngineError
        If a server fails; rounds given until then are complete.
    UsageError
        If ``depth`` is negative, or above 0 without a draft.
    """
    if depth < 0 or (depth > 0 and models.draft is None):
        raise UsageError(f"depth: expected 0 without a draft, at least 1 with one; found {depth}")
    before_s = progress.clock_s
    task_began = time.monotonic()
    while not progress.environment.over:
        # In this order, or a thread that is held up between the two would start a round late and
        # seem to end it after the next one began.
        started_s, began_s = time.time(), time.perf_counter()
        done, after = await _round(benchmark, progress, models, depth, mode, began_s)
        progress.environment = after
        progress.clock_s = before_s + time.monotonic() - task_began
        arm: Arm = "sequential" if depth == 0 else "speculative"
        finished = Round(
            task=task,
            run=run,
            arm=arm,
            round=progress.rounds,
            first_step=progress.steps,
            depth=depth,
            clock_s=progress.clock_s,
            draft=models.draft_name if depth else None,
            started_s=started_s,
            **done,
        )
        progress.steps += finished.committed
        progress.rounds += 1
        yield finished


async def _round(
    benchmark: Benchmark,
    progress: Progress,
    models: Models,
    depth: int,
    mode: Mode,
    began_s: float,
) -> tuple[dict[str, Any], Environment]:
    environment = progress.environment
    segment = environment.segment
    draft = models.draft if depth else None
    proposing = await propose(benchmark, environment, draft, depth, began_s)
    verified = await verify(
        models.target,
        proposing.contexts,
        proposing.actions,
        lambda text: benchmark.parse("target", text),
        mode,
        began_s,
    )
    # An accepted proposal's copy becomes the environment: its tools are not run again.
    if verified.accepted:
        environment = proposing.branches[verified.accepted - 1]
    tool_s = 0.0
    if len(verified.used) > verified.accepted:  # a correction or a bonus
        tool_began_s = time.perf_counter()
        environment.step(verified.used[-1].action)
        tool_s = time.perf_counter() - tool_began_s
    draft_s = sum(call.end_s - call.start_s for call in proposing.calls)
    proposal_tool_s = sum(call.tool_s for call in proposing.calls)
    wait_s = verified.wait_s
    idle_s = verified.wall_s - wait_s
    wall_s = time.perf_counter() - began_s
    return {
        "segment": segment,
        "proposed": len(proposing.actions),
        "accepted": verified.accepted,
        "committed": len(verified.used),
        "wall_s": wall_s,
        "draft_model_s": draft_s,
        "proposal_tool_s": proposal_tool_s,
        "wait_s": wait_s,
        "idle_s": idle_s,
        "target_tool_s": tool_s,
        "residual_s": wall_s - draft_s - proposal_tool_s - wait_s - idle_s - tool_s,
        "proposals": proposing.calls,
        "verifications": verified.requests,
    }, environment
