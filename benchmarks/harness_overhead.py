"""What the loop itself costs, against a server that takes 50 ms a step.

Servers are processes of their own, so that what is measured is the client's.
"""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import resource
import tempfile
from contextlib import AsyncExitStack
from multiprocessing.connection import Connection

from figures import Figure

from leapmodel.benchmarks.planning import PlanningBenchmark
from leapmodel.benchmarks.planning.prompts import answer
from leapmodel.execution.fake.server import Answer, FakeRequest, FakeServer
from leapmodel.execution.loop import Models
from leapmodel.execution.protocol import Plan
from leapmodel.execution.records.journal import Journal
from leapmodel.execution.records.recording import record
from leapmodel.execution.talking.endpoint import Endpoint

DEPTH = 3
STEP_S = 0.05
TASKS = 40
REPEATS = 3
_GOLD = {task.text: task.gold for task in PlanningBenchmark().tasks("test")}


def _action(request: FakeRequest, wrong: bool) -> str:
    text, done = request.messages[-1]["content"].removeprefix("Task: ").rsplit("\nDone: ", 1)
    gold = _GOLD[text] or ()
    steps = 0 if done == "nothing yet" else len(done.split(", "))
    action = gold[min(steps, len(gold) - 1)]
    chance = int(hashlib.sha256(request.last.encode()).hexdigest(), 16) % 4 == 0
    return answer("Fill Mask" if wrong and chance and action != "Fill Mask" else action)


def _target(request: FakeRequest) -> Answer:
    return Answer("because of this " + _action(request, wrong=False), tokens=20)


def _draft(request: FakeRequest) -> Answer:
    return Answer(_action(request, wrong=True), tokens=4)


def _serve(pipe: Connection, role: str) -> None:
    if role == "target":
        server = FakeServer(_target, first_token_s=0.01, token_s=(STEP_S - 0.01) / 20)
    else:
        server = FakeServer(_draft, first_token_s=0.002, token_s=0.0005)
    with server:
        pipe.send(server.url)
        pipe.recv()


async def _measure(target_url: str, draft_url: str, folder: str) -> Journal:
    async with AsyncExitStack() as stack:
        target = await stack.enter_async_context(Endpoint(target_url, "fake", role="target"))
        draft = await stack.enter_async_context(Endpoint(draft_url, "fake", role="draft"))
        benchmark = PlanningBenchmark()
        plan = Plan(
            benchmark, benchmark.tasks("test")[:TASKS], Models(target, draft, "fake"), DEPTH
        )
        return await record(plan, folder)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def overhead_figures() -> list[Figure]:
    """Measure it."""
    context = multiprocessing.get_context("spawn")
    pipes, servers = [], []
    for role in ("target", "draft"):
        ours, theirs = context.Pipe()
        server = context.Process(target=_serve, args=(theirs, role), daemon=True)
        server.start()
        pipes.append(ours)
        servers.append(server)
    urls = [pipe.recv() for pipe in pipes]
    shares, cpu_ms, apart = [], [], []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            before_s = _cpu_s()
            journal = asyncio.run(_measure(*urls, folder))
            cpu_s = _cpu_s() - before_s
        rows = [r for (_, _, arm), rs in journal.rows.items() if arm == "speculative" for r in rs]
        everything = [row for rows in journal.rows.values() for row in rows]
        wall_s = sum(row["wall_s"] for row in rows)
        shares.append(100 * sum(row["residual_s"] for row in rows) / wall_s)
        cpu_ms.append(1000 * cpu_s / sum(len(row["verifications"]) for row in everything))
        clock_s = sum(rs[-1]["clock_s"] for rs in journal.rows.values())
        apart.append(100 * (clock_s / sum(row["wall_s"] for row in everything) - 1))
    for pipe, server in zip(pipes, servers, strict=True):
        pipe.send("stop")
        server.join()
    return [
        Figure(
            f"loop: residual over wall-clock, {1000 * STEP_S:.0f} ms a step, k = {DEPTH}",
            shares,
            "%",
            target=2,
        ),
        Figure("loop: client CPU time per verification", cpu_ms, "ms"),
        Figure("loop: tasks' own clocks beyond the sum of their rounds", apart, "%", target=1),
    ]
