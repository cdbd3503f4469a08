"""Learn the draft while the system runs (Sec. 4.5, App. L).

Tasks come in batches. The first is served by the untrained base; after each batch an adapter is
trained on what the target committed and swapped into the running draft server (by itself, or
merged into the base), always under a new path, and the next batch proposes with it. So no batch is
served by anything that saw it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import shutil
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from leapmodel.actions import same_action
from leapmodel.benchmarks import Benchmark, Task
from leapmodel.benchmarks.interface import tasks_sha256
from leapmodel.bootstrap import ratio_with_error
from leapmodel.errors import EngineError, UsageError
from leapmodel.execution.contexts import Context
from leapmodel.execution.loop import Models
from leapmodel.execution.protocol import Observer, Plan, carry_out
from leapmodel.execution.records.journal import Journal
from leapmodel.execution.records.record import Round
from leapmodel.execution.records.recording import (
    FIXED,
    ROUNDS_NAME,
    TRACE_NAME,
    TraceFile,
    describe_run,
    made_folder,
    refuse_others,
)
from leapmodel.execution.swapping import Swap, retire_version, serve_version
from leapmodel.execution.talking.endpoint import Endpoint
from leapmodel.execution.training.pairs import Pairs, join_pairs
from leapmodel.execution.training.sft import ADAPTER_FOLDER, TRAINING_FILE
from leapmodel.execution.training.supervision import pairs_from_rounds
from leapmodel.holding_out import refuse_learned_tasks
from leapmodel.versions import VERSIONS_NAME, Version, read_versions, write_versions

Method = Literal["retrain", "continual"]
_PUT_BACK_S = 10.0
SCORED_AT_ONCE = 4
"""As many as the CPU preset's servers decode at once."""
Trainer = Callable[[Pairs, Path, Path | None], Awaitable[None]]
"""Trains an adapter on pairs into a new folder, going on from an earlier one if there is one. If
versions are swapped merged, the folder gets the merged weights and the adapter beside them."""


@dataclass(frozen=True)
class Stream:
    """What is run online.

    Attributes
    ----------
    plan : Plan
        With all tasks, in their order, and the base as draft.
    batches : int
    method : {"retrain", "continual"}
        Train from the base on all commits so far; or go on from the adapter before, on the new
        batch and as many pairs drawn from the earlier ones.
    train : Trainer
    base : str
        The weights of version 0, as the draft's server finds them.
    swap : {"adapter", "merged"}
        How a version gets into the draft's server.
    heldout : sequence of Context
        Contexts of other tasks, with the target's actions, to score each version on.
    seed : int
        Of what is drawn from earlier batches.
    training : mapping
        What decides how ``train`` trains, as JSON; a stream goes on only with the same.
    """

    plan: Plan
    batches: int
    method: Method
    train: Trainer
    base: str
    swap: Swap = "adapter"
    heldout: Sequence[Context] = ()
    seed: int = 0
    training: Mapping[str, Any] = field(default_factory=dict)


async def run_online(
    stream: Stream,
    folder: str | Path,
    *,
    resume: bool = False,
    observe: Observer | None = None,
    updated: Callable[[Version], None] = lambda version: None,
) -> list[Version]:
    """Run the stream, batch by batch, and record it in a folder.

    Parameters
    ----------
    stream : Stream
        Its endpoints are open.
    folder : str or Path
        For the rounds (with a column ``batch``), the versions, and an adapter a version.
    resume : bool, default False
        Whether to go on with what the folder holds.
    observe, updated : callable, optional
        Shown each round, and each version once it is loaded and scored.

    Returns
    -------
    list of Version
        The base and one per batch.

    Raises
    ------
    UsageError
        If there are fewer tasks than batches, a held-out task is one of them, or the folder holds
        another stream.
    DataError
        If a file of the folder is damaged, or there is no action to learn from.
    EngineError
        If a server or the training fails; ``resume`` goes on from there.
    """
    plan, draft = stream.plan, stream.plan.models.draft
    if draft is None:
        raise UsageError("online: expected a draft, found none")
    require_batches(stream.batches, plan.tasks)
    require_held_out(stream.heldout, plan.tasks)
    place = made_folder(folder)
    adapters = sorted(one.name for one in place.glob("version-*"))
    refuse_others(place, [TRACE_NAME, VERSIONS_NAME, *adapters])
    about = {**await describe_run(plan), "online": _about_stream(stream)}
    served = draft.model
    batches = _split(plan.tasks, stream.batches)
    with (
        Journal(place / ROUNDS_NAME, about, resume=resume, fixed=FIXED) as journal,
        TraceFile(place / TRACE_NAME, journal) as trace,
    ):

        def seen(finished: Round) -> None:
            trace.add(finished.to_row())
            if observe is not None:
                observe(finished)

        _refuse_moved_tasks(journal, batches)
        listed = place / VERSIONS_NAME
        versions = read_versions(listed) if listed.exists() else []
        if not versions:
            base = Version(0, None, 0, 0.0, None, None)
            await _serve(stream, place, served, base)
            share, error = await _agreement(stream, draft)
            versions.append(replace(base, agreement=share, agreement_se=error))
            write_versions(listed, versions)
            updated(versions[0])
        try:
            for number, tasks in enumerate(batches):
                await _serve(stream, place, served, versions[number])
                models = Models(plan.models.target, draft, f"version {number}")
                part = replace(plan, tasks=tasks, models=models, extra={"batch": number})
                await carry_out(part, journal, seen)
                if len(versions) == number + 1:
                    met = batches[: number + 1]
                    versions.append(await _update(stream, place, served, journal, met, versions))
                    write_versions(listed, versions)
                    updated(versions[-1])
                await _retire(stream, place, versions[number])
            await _retire(stream, place, versions[-1])
        except BaseException:
            # Whoever asks for the base next should not be answered by what it has learned.
            with suppress(EngineError, TimeoutError):
                async with asyncio.timeout(_PUT_BACK_S):
                    await _serve(stream, place, served, versions[0])
            raise
        await _serve(stream, place, served, versions[0])
    return versions


def require_batches(batches: int, tasks: Sequence[Task]) -> None:
    """Refuse more batches than there are tasks.

    Raises
    ------
    UsageError
        Naming the option.
    """
    if not 1 <= batches <= len(tasks):
        raise UsageError(
            f"--batches: expected at most {len(tasks)}, one for each task, found {batches}"
        )


def require_held_out(contexts: Iterable[Context], tasks: Iterable[Task]) -> None:
    """Refuse contexts of tasks that the draft learns from: it would be scored on what it was told.

    Raises
    ------
    UsageError
        Naming one of the tasks.
    """
    names = (context.task.name for context in contexts)
    refuse_learned_tasks("the training tasks have", (task.name for task in tasks), names)


def _about_stream(stream: Stream) -> dict[str, Any]:
    """Return what a stream must have in common with the one that it goes on with.

    Its tasks belong to it, in their order: others would come in other batches, and be served by
    other versions.
    """
    scored = [(*one.key, one.draft.sha256(), one.action) for one in stream.heldout]
    return {
        "method": stream.method,
        "batches": stream.batches,
        "seed": stream.seed,
        "swap": stream.swap,
        "base": stream.base,
        "tasks": len(stream.plan.tasks),
        "tasks_sha256": tasks_sha256(stream.plan.tasks),
        "heldout_sha256": hashlib.sha256(json.dumps(scored).encode()).hexdigest(),
        **stream.training,
    }


def _refuse_moved_tasks(journal: Journal, batches: Sequence[Sequence[Task]]) -> None:
    """Refuse tasks that were served in another batch; older records state no list of them."""
    batch_of = {task.name: number for number, tasks in enumerate(batches) for task in tasks}
    for (task, _, _), rows in journal.rows.items():
        before, now = rows[0].get("batch"), batch_of.get(task)
        if before != now:
            where = "in none" if now is None else f"in batch {now}"
            raise UsageError(
                f"{journal.path}: {task} was served in batch {before}, now it would be {where}:"
                " expected the same tasks in the same order"
            )


def committed_pairs(
    benchmark: Benchmark, tasks: Sequence[Task], journal: Journal, run: int
) -> Pairs:
    """Return what the target committed in the speculative arm, each with its context."""
    rounds, names = journal.rounds(), {task.name for task in tasks}
    served = rounds.where((rounds.frame["run"] == run) & rounds.frame["task"].isin(names))
    return pairs_from_rounds(served, benchmark, arm="speculative")


async def _update(
    stream: Stream,
    place: Path,
    served: str,
    journal: Journal,
    batches: Sequence[Sequence[Task]],
    versions: Sequence[Version],
) -> Version:
    """Train the next version on what has been committed, load it and score it."""
    plan, draft = stream.plan, stream.plan.models.draft
    assert draft is not None
    began_s = time.monotonic()
    number = len(versions)
    tasks = [task for batch in batches for task in batch]
    pairs = committed_pairs(plan.benchmark, tasks, journal, plan.run)
    previous = None
    if stream.method == "continual" and versions[-1].adapter is not None:
        previous = place / versions[-1].adapter
        if stream.swap == "merged":
            previous /= ADAPTER_FOLDER
        last = {task.name for task in batches[-1]}
        new = pairs.of_tasks([name for name in pairs.task_names if name in last])
        earlier = pairs.of_tasks([name for name in pairs.task_names if name not in last])
        pairs = join_pairs([earlier.sample(len(new), seed=stream.seed + number), new])
    name = f"version-{number:02d}"
    before_s = 0.0
    if (place / name / TRAINING_FILE).exists():  # trained, and broken off before it served
        before_s = _training_s(place / name / TRAINING_FILE)
    else:
        shutil.rmtree(place / name, ignore_errors=True)  # of an attempt that was killed
        await stream.train(pairs, place / name, previous)
    version = Version(number, name, len(pairs), 0.0, None, None)
    await _serve(stream, place, served, version)
    update_s = before_s + time.monotonic() - began_s
    return Version(number, name, len(pairs), update_s, *await _agreement(stream, draft))


async def _serve(stream: Stream, place: Path, served: str, version: Version) -> None:
    """Make the draft's server answer as a version."""
    draft = stream.plan.models.draft
    assert draft is not None
    folder = None if version.adapter is None else place / version.adapter
    await serve_version(draft, stream.swap, served, stream.base, folder)


async def _retire(stream: Stream, place: Path, version: Version) -> None:
    draft = stream.plan.models.draft
    assert draft is not None
    folder = None if version.adapter is None else place / version.adapter
    await retire_version(draft, stream.swap, folder)


def _training_s(file: Path) -> float:
    """Return how long a training took, by its own account."""
    try:
        said = json.loads(file.read_text(encoding="utf-8"))["seconds"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
    return float(said) if isinstance(said, (int, float)) else 0.0


async def _agreement(stream: Stream, draft: Endpoint) -> tuple[float | None, float | None]:
    """Score the served version on the held-out contexts, a few at once: nothing is timed here."""
    if not stream.heldout:
        return None, None
    slots = asyncio.Semaphore(SCORED_AT_ONCE)

    async def is_hit(context: Context) -> bool:
        async with slots:
            answer = await draft.generate(context.draft)
        action = stream.plan.benchmark.parse("draft", answer.text)
        return same_action(action, context.action)

    asked = [asyncio.create_task(is_hit(context)) for context in stream.heldout]
    try:
        found = await asyncio.gather(*asked)
    finally:
        for one in asked:
            one.cancel()
    hits: dict[tuple[str, int], list[bool]] = {}
    for context, hit in zip(stream.heldout, found, strict=True):
        hits.setdefault((context.task.name, context.run), []).append(hit)
    share, error = ratio_with_error(
        [sum(task) for task in hits.values()], [len(task) for task in hits.values()]
    )
    return share, None if math.isnan(error) else error


def _split(tasks: Sequence[Task], batches: int) -> list[Sequence[Task]]:
    ends = [round(i * len(tasks) / batches) for i in range(batches + 1)]
    return [tasks[a:b] for a, b in pairwise(ends)]
