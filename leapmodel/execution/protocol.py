"""The timing protocol (App. I): both arms on the same servers, sequential first, caches reset.

Tasks run one at a time within an arm. Before each arm the servers are warmed up, then their prefix
caches are emptied and that is checked, so that no arm reuses what the other one left behind. On a
machine whose speed drifts the arms can take turns, a few tasks each (as on tau2-bench, App. L).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leapmodel.benchmarks import Benchmark, Split, Task
from leapmodel.errors import DataError, EngineError, UsageError
from leapmodel.execution.loop import Models, Progress, run_task
from leapmodel.execution.records.journal import Journal
from leapmodel.execution.records.record import Arm, Round
from leapmodel.execution.talking.endpoint import Endpoint, NotReset
from leapmodel.execution.verification import Mode

ARMS: tuple[Arm, ...] = ("sequential", "speculative")


@dataclass(frozen=True)
class Plan:
    """What is to be run.

    Attributes
    ----------
    benchmark : Benchmark
    tasks : sequence of Task
    models : Models
    depth : int
        Of the speculative arm.
    arms : tuple of str
        In the order in which they run.
    run : int
        The number of this pass over the tasks.
    mode : {"prefix", "gather"}
    reset_caches : bool
        Whether to empty prefix caches before each arm, and fail if a server can't.
    concurrency : int
        Tasks at a time; more than one only to collect actions, since it spoils the timing.
    split : str or None
        Which of the benchmark's splits the tasks are of, if they are of one.
    turn : int or None
        Tasks after which the other arm runs the same ones; None for all of them.
    extra : dict
        More columns of every row.
    """

    benchmark: Benchmark
    tasks: Sequence[Task]
    models: Models
    depth: int
    arms: tuple[Arm, ...] = ARMS
    run: int = 0
    mode: Mode = "prefix"
    reset_caches: bool = True
    concurrency: int = 1
    split: Split | None = None
    turn: int | None = None
    extra: dict[str, Any] | None = None

    def turns(self) -> list[Sequence[Task]]:
        """Return the tasks in the groups that one arm runs before the other does."""
        size = self.turn or max(len(self.tasks), 1)
        return [self.tasks[i : i + size] for i in range(0, len(self.tasks), size)]


Observer = Callable[[Round], None]
"""Is shown each round once it is recorded."""


async def carry_out(plan: Plan, journal: Journal, observe: Observer | None = None) -> None:
    """Run every arm over every task and record it; what the journal already holds is not run again.

    Raises
    ------
    EngineError
        If a server fails. What was recorded stays, and another call goes on from there.
    UsageError
        If the journal can't be written.
    DataError
        If the journal holds rounds that this benchmark can't have made.
    """
    for tasks, arm in itertools.product(plan.turns(), plan.arms):
        waiting = [
            (task, progress)
            for task in tasks
            if not (progress := _progress(plan, journal, task, arm)).environment.over
        ]
        if waiting:
            await _run_arm(plan, journal, arm, waiting, observe)


async def _run_arm(
    plan: Plan,
    journal: Journal,
    arm: Arm,
    waiting: Sequence[tuple[Task, Progress]],
    observe: Observer | None,
) -> None:
    depth = plan.depth if arm == "speculative" else 0
    await _make_ready(plan, depth)
    gate = asyncio.Semaphore(plan.concurrency)

    async def run_one(task: Task, progress: Progress) -> None:
        async with gate:
            async for finished in run_task(
                plan.benchmark,
                task.name,
                progress,
                plan.models,
                depth,
                run=plan.run,
                mode=plan.mode,
            ):
                journal.add(finished, **(plan.extra or {}))
                if observe is not None:
                    observe(finished)

    async with _Group() as group:
        for task, progress in waiting:
            group.begin(run_one(task, progress))


class _Group:
    """Coroutines that run together; the first failure stops the others and is raised as it is."""

    def __init__(self) -> None:
        self._running: list[asyncio.Task[None]] = []

    def begin(self, work: Any) -> None:
        self._running.append(asyncio.ensure_future(work))

    async def __aenter__(self) -> _Group:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await asyncio.gather(*self._running)
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)


def _progress(plan: Plan, journal: Journal, task: Task, arm: Arm) -> Progress:
    """Return where a task stands, by running its committed actions again in a new environment."""
    environment = plan.benchmark.start(task)
    rows = journal.rows.get((task.name, plan.run, arm), [])
    steps = 0
    for row in rows:
        for verification in row["verifications"]:
            if verification["status"] == "used":
                if environment.over:
                    raise DataError(
                        journal.path,
                        expected=f"{task.name} to end after {steps} steps, as the benchmark does",
                        found="more rounds",
                    )
                environment.step(verification["action"])
                steps += 1
    clock_s = rows[-1]["clock_s"] if rows else 0.0
    return Progress(environment, steps, len(rows), clock_s)


async def _make_ready(plan: Plan, depth: int) -> None:
    models = plan.models
    environment = plan.benchmark.start(plan.tasks[0])
    prompt = environment.prompt("target")
    # As many at once as a round will ask: their connections and the engine's first batches of each
    # size belong to no arm.
    await asyncio.gather(*(models.target.generate(prompt) for _ in range(depth + 1)))
    if depth and models.draft is not None:
        await models.draft.generate(environment.prompt("draft"))
    if not plan.reset_caches:
        return
    used = [models.target, *([models.draft] if depth and models.draft is not None else [])]
    for endpoint in used:
        await reset_cache(endpoint)


async def reset_cache(endpoint: Endpoint, patience: int = 10) -> None:
    """Empty a server's prefix cache.

    An aborted request may still be leaving the engine, so it is tried for a second.

    Raises
    ------
    EngineError
        If the server can't, or won't.
    """
    for attempt in range(patience):
        try:
            await endpoint.reset_prefix_cache()
            return
        except NotReset as error:
            if not error.busy:
                hint = "--no-reset leaves the prefix cache as it is"
                raise EngineError(f"{error} ({hint})") from None
            if attempt == patience - 1:
                raise
            await asyncio.sleep(0.1)


def require_models(available: Sequence[str], wanted: str, where: str) -> None:
    """Refuse a model's name that the server does not know.

    Raises
    ------
    UsageError
        Naming those it has.
    """
    if wanted not in available:
        raise UsageError(f"{where}: has no model {wanted!r}; it has {', '.join(available)}")
