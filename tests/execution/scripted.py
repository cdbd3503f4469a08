"""Models that follow a script, behind fake servers; a benchmark with turns and tools; and the loop
written again, naively, to compare with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from leapmodel.actions import RESPOND
from leapmodel.benchmarks import Benchmark, Prompt, Role, Split, Task
from leapmodel.benchmarks.planning import PlanningBenchmark
from leapmodel.benchmarks.planning.prompts import answer
from leapmodel.execution.auditing.audit import audit
from leapmodel.execution.fake.server import FakeRequest, FakeServer
from leapmodel.execution.loop import Models
from leapmodel.execution.protocol import Plan
from leapmodel.execution.records.journal import Journal
from leapmodel.execution.records.recording import ROUNDS_NAME, record
from leapmodel.execution.talking.endpoint import Endpoint

PLANNING = PlanningBenchmark()
GOLD = {task.text: task.gold for task in PLANNING.tasks("test")}


def asked(request: FakeRequest) -> tuple[str, list[str]]:
    """The planning task and the committed actions in a request."""
    text, done = request.messages[-1]["content"].removeprefix("Task: ").rsplit("\nDone: ", 1)
    return text, [] if done == "nothing yet" else done.split(", ")


def planner(
    wrong_at: Callable[[str, int], bool] = lambda text, step: False, thought: str = ""
) -> Callable[[FakeRequest], str]:
    """A planning model: the gold plan, but another tool where it is wrong."""

    def said(request: FakeRequest) -> str:
        text, done = asked(request)
        gold = GOLD[text]
        assert gold is not None
        action = gold[min(len(done), len(gold) - 1)]
        if wrong_at(text, len(done)):
            action = "Fill Mask" if action != "Fill Mask" else "Colorization"
        return thought + answer(action)

    return said


@dataclass
class Turns:
    """A benchmark with user turns and a tool: letters to say, ``.`` ends a turn.

    Each tool call returns how many calls the environment has executed, so a call run twice or in
    the wrong copy changes every later context.
    """

    scripts: tuple[str, ...] = ("ab.c.", "abc.")
    terminal: Literal["accepted", "probe"] = "probe"
    name: str = "turns"
    max_steps: int = 20

    @property
    def settings(self) -> dict[str, Any]:
        return {"scripts": self.scripts, "terminal": self.terminal}

    def tasks(self, split: Split) -> list[Task]:
        return [Task(f"t{i}", script) for i, script in enumerate(self.scripts)]

    def start(self, task: Task) -> TurnsEnvironment:
        return TurnsEnvironment(task.text)

    def parse(self, role: Role, text: str) -> str | None:
        if text == ".":
            return RESPOND
        return f"say({{}}){text}" if len(text) == 1 and text.isalpha() else None

    def answer(self, role: Role, action: str) -> str:
        return "." if action == RESPOND else action[-1]

    def is_terminal(self, action: str) -> bool:
        return action == RESPOND


class TurnsEnvironment:
    def __init__(self, script: str) -> None:
        self.script = script
        self.seen: list[str] = []
        self.executed = 0
        self.segment = 0

    @property
    def over(self) -> bool:
        return self.segment >= self.script.count(".")

    def prompt(self, role: Role) -> Prompt:
        text = f"{self.script}|{len(self.seen)}|{';'.join(self.seen)}"
        return Prompt(({"role": "user", "content": text},), 8)

    def step(self, action: str | None) -> None:
        if action == RESPOND:
            self.segment += 1
            self.seen.append("user speaks")
        else:
            self.executed += 1
            self.seen.append(f"{action}->{self.executed}")

    def clone(self) -> TurnsEnvironment:
        twin = TurnsEnvironment(self.script)
        twin.seen, twin.executed, twin.segment = list(self.seen), self.executed, self.segment
        return twin


def speaker(wrong_at: Sequence[int] = ()) -> Callable[[FakeRequest], str]:
    """A model of :class:`Turns`: the next letter, but ``?`` (no action) or ``x`` where wrong."""

    def said(request: FakeRequest) -> str:
        script, at, _ = request.messages[-1]["content"].split("|")
        if int(at) in wrong_at:
            return "x" if int(at) % 2 else "??"
        return script[min(int(at), len(script) - 1)]

    return said


def measure(
    folder: Path,
    benchmark: Benchmark,
    target: FakeServer,
    draft: FakeServer | None,
    depth: int,
    *,
    limit: int | None = None,
    resume: bool = False,
    **options: Any,
) -> Journal:
    """Record a run in a folder, and audit what it recorded."""
    stalled_s = options.pop("stalled_s", 5)
    name = options.pop("name", "scripted")
    tasks = benchmark.tasks(options.get("split", "test"))[:limit]

    async def work() -> Journal:
        async with AsyncExitStack() as stack:

            async def opened(server: FakeServer, role: str) -> Endpoint:
                return await stack.enter_async_context(
                    Endpoint(server.url, "fake", role=role, stalled_s=stalled_s)
                )

            models = Models(
                await opened(target, "target"),
                None if draft is None else await opened(draft, "draft"),
                name,
            )
            plan = Plan(benchmark, tasks, models, depth, **options)
            return await record(plan, folder, resume=resume)

    journal = asyncio.run(work())
    found = audit(folder / ROUNDS_NAME, benchmark)
    # Writing a round may take its time on a busy machine, which the run's own clock shows.
    assert [one for one in found.violations if one.what != "clock_s"] == []
    return journal


def rounds_of(journal: Journal, arm: str) -> list[dict[str, Any]]:
    """The rows of an arm, in order."""
    return [row for (_, _, found), rows in journal.rows.items() if found == arm for row in rows]


def naive_rounds(
    steps: Sequence[str],
    proposal_at: Callable[[int], str | None],
    depth: int,
    last_is_terminal: bool,
) -> list[tuple[int, int, int]]:
    """(proposed, accepted, committed) of each round of one segment, by the rules of App. B.2.

    ``steps`` are the target's actions, ``proposal_at(i)`` is what the draft says on the target's
    own context i. Past a miss only the number of proposals is unknown, so drafts here go on.
    """
    found, at = [], 0
    while at < len(steps):
        accepted = 0
        while (
            accepted < depth
            and at + accepted < len(steps)
            and proposal_at(at + accepted) == steps[at + accepted]
        ):
            accepted += 1
        committed = min(accepted + 1, len(steps) - at)
        found.append((depth, accepted, committed))
        at += committed
    return found
