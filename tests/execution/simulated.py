"""The loop on scripted models and a clock that is only counted: valid rounds in no time."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leapmodel.actions import RESPOND, TERMINATE
from leapmodel.benchmarks import PlanningBenchmark, Prompt, Task
from leapmodel.benchmarks.planning.prompts import answer
from leapmodel.benchmarks.planning.tools import TOOLS
from leapmodel.rounds import Rounds

NO_ACTION = "I can't say."
TOKEN_S = 0.025


@dataclass(frozen=True)
class Speaker:
    """A benchmark's actions and how a model writes them."""

    actions: Sequence[str]
    terminal: str
    write: Callable[[str], str]


PLANNER = Speaker(sorted(TOOLS), TERMINATE, answer)
TALKER = Speaker(["look", "move", "buy"], RESPOND, str)


class TalkBenchmark:
    """User turns and tools: a segment ends at a reply, a task after three turns or ten steps."""

    name = "talk"
    max_steps = 10

    def __init__(self, terminal: str = "accepted", turns: int = 3) -> None:
        self.terminal = terminal
        self.turns = turns
        self.settings: dict[str, Any] = {"terminal": terminal, "turns": turns}

    def tasks(self, split: str) -> list[Task]:
        return [Task(f"{split}-{i}", f"talk {i}") for i in range(40)]

    def start(self, task: Task) -> TalkEnvironment:
        return TalkEnvironment(self, task, ())

    def parse(self, role: str, text: str) -> str | None:
        return text if text in (*TALKER.actions, RESPOND) else None

    def is_terminal(self, action: str) -> bool:
        return action == RESPOND


@dataclass
class TalkEnvironment:
    benchmark: TalkBenchmark
    task: Task
    done: tuple[str | None, ...]

    @property
    def segment(self) -> int:
        return min(self.done.count(RESPOND), self.benchmark.turns - 1)

    @property
    def over(self) -> bool:
        ended = self.done.count(RESPOND) >= self.benchmark.turns
        return ended or len(self.done) >= self.benchmark.max_steps

    def prompt(self, role: str) -> Prompt:
        said = f"{role} {self.task.text}: {self.done}"
        return Prompt(({"role": "user", "content": said},), 10)

    def step(self, action: str | None) -> None:
        self.done = (*self.done, action)

    def clone(self) -> TalkEnvironment:
        return TalkEnvironment(self.benchmark, self.task, self.done)


def simulate(
    benchmark: Any = None,
    speaker: Speaker = PLANNER,
    *,
    n_tasks: int = 4,
    depth: int = 3,
    seed: int = 0,
    agreement: float = 0.7,
    call_s: float = 0.07,
    tool_s: float = 0.0,
    diverges: float = 0.0,
    runs: int = 1,
    tokens: tuple[int, int] = (10, 60),
    residual_s: float = 0.001,
    follow_gold: bool = False,
    arms: Sequence[str] = ("sequential", "speculative"),
    gather: bool = False,
    metadata: dict[str, Any] | None = None,
) -> Rounds:
    """Run both arms over tasks and return the rounds."""
    benchmark = benchmark or PlanningBenchmark()
    rows: list[dict[str, Any]] = []
    now = 1e9
    for task in benchmark.tasks("test")[:n_tasks]:
        for run in range(runs):
            for arm in arms:
                salt = (
                    f"{run} {arm}"
                    if random.Random(f"{seed}{task}{run}").random() < diverges
                    else ""
                )
                models = _Models(
                    benchmark, speaker, f"{seed}{salt}", agreement, call_s, tool_s, tokens,
                    residual_s, task.gold if follow_gold else None,
                )  # fmt: skip
                k = depth if arm == "speculative" else 0
                done = models.run(task, run, arm, k, gather, now)
                rows += done
                now += done[-1]["clock_s"] + 1
    about = {
        "benchmark": {"name": benchmark.name, "settings": benchmark.settings},
        "target": {"model": "scripted"},
        "draft": {"model": "scripted", "name": "scripted draft"},
        "arms": list(arms),
        "depth": depth,
        "mode": "gather" if gather else "prefix",
        "terminal": benchmark.terminal,
        "seed": seed,
        **(metadata or {}),
    }
    return Rounds.from_frame(pd.DataFrame(rows), about)


def slowed(rounds: Rounds, factors) -> Rounds:
    """Rounds whose verifications take so much longer, a factor for each round."""
    frame = rounds.frame
    longer = (np.asarray(factors) - 1) * frame["wait_s"]
    frame = frame.assign(
        wait_s=frame["wait_s"] + longer,
        wall_s=frame["wall_s"] + longer,
        verifications=[
            [{**v, "end_s": v["start_s"] + factor * (v["end_s"] - v["start_s"])} for v in asked]
            for factor, asked in zip(factors, frame["verifications"], strict=True)
        ],
    )
    return Rounds.from_frame(frame.drop(columns="clock_s"), rounds.metadata)


class _Models:
    def __init__(
        self,
        benchmark: Any,
        speaker: Speaker,
        seed: str,
        agreement: float,
        call_s: float,
        tool_s: float,
        tokens: tuple[int, int],
        residual_s: float,
        gold: Sequence[str] | None,
    ) -> None:
        self.benchmark, self.speaker, self.seed = benchmark, speaker, seed
        self.agreement, self.call_s, self.tool_s = agreement, call_s, tool_s
        self.tokens, self.residual_s, self.gold = tokens, residual_s, gold

    def _rng(self, prompt: Prompt) -> random.Random:
        return random.Random(hashlib.sha256((self.seed + prompt.sha256()).encode()).hexdigest())

    def _drawn(self, rng: random.Random, none: float) -> str | None:
        if rng.random() < none:
            return None
        return self.speaker.terminal if rng.random() < 0.18 else rng.choice(self.speaker.actions)

    def target(self, prompt: Prompt) -> tuple[str, float, int]:
        """Return output, seconds and tokens; of a context always the same."""
        rng = self._rng(prompt)
        action = self._drawn(rng, 0.02)
        if self.gold is not None:
            done = prompt.messages[-1]["content"].splitlines()[-1].removeprefix("Done: ")
            at = 0 if done == "nothing yet" else done.count(", ") + 1
            action = self.gold[at] if at < len(self.gold) else self.speaker.terminal
        text = NO_ACTION if action is None else self.speaker.write(action)
        tokens = rng.randint(*self.tokens)
        return text, TOKEN_S * tokens, tokens

    def draft(self, environment: Any) -> str:
        rng = self._rng(environment.prompt("draft"))
        if rng.random() < self.agreement:
            return self.target(environment.prompt("target"))[0]
        action = self._drawn(rng, 0.2)
        return NO_ACTION if action is None else self.speaker.write(action)

    def tool(self, action: str | None) -> float:
        return 0.0 if action in (None, self.speaker.terminal) else self.tool_s

    def run(
        self, task: Task, run: int, arm: str, depth: int, gather: bool, now: float
    ) -> list[dict[str, Any]]:
        environment = self.benchmark.start(task)
        rows: list[dict[str, Any]] = []
        step, clock = 0, 0.0
        while not environment.over:
            row, environment = self.round(environment, depth, gather)
            started = now + clock
            clock += row["wall_s"]
            rows.append(
                {
                    "task": task.name, "run": run, "arm": arm, "round": len(rows),
                    "first_step": step, "clock_s": clock, "started_s": started, **row,
                }
            )  # fmt: skip
            step += row["committed"]
        return rows

    def round(self, environment: Any, depth: int, gather: bool) -> tuple[dict[str, Any], Any]:
        benchmark = self.benchmark
        segment, branch = environment.segment, environment.clone()
        states, contexts = [environment], [environment.prompt("target")]
        proposals: list[dict[str, Any]] = []
        now = 0.0
        for _ in range(depth):
            prompt, text = branch.prompt("draft"), self.draft(branch)
            action = benchmark.parse("draft", text)
            ends = action is not None and benchmark.is_terminal(action)
            status = "invalid" if action is None else "proposed"
            if ends and benchmark.terminal == "probe":
                status = "withheld"
            tool_s = self.tool(action) if status == "proposed" else 0.0
            proposals.append(
                {
                    "context": prompt.sha256(), "output": text, "action": action,
                    "start_s": now, "end_s": now + self.call_s, "tool_s": tool_s,
                    "prompt_tokens": 100, "completion_tokens": 8, "status": status,
                }
            )  # fmt: skip
            now += self.call_s + tool_s
            if status != "proposed":
                break
            branch.step(action)
            states.append(branch.clone())
            if ends or branch.over or branch.segment != segment:
                break
            contexts.append(branch.prompt("target"))
        offered = [p["action"] for p in proposals if p["status"] == "proposed"]
        answers = [self.target(context) for context in contexts]
        actions = [benchmark.parse("target", text) for text, _, _ in answers]
        accepted = 0
        while accepted < len(offered) and actions[accepted] == offered[accepted]:
            accepted += 1
        committed = min(accepted + 1, len(contexts))
        wait = max(seconds for _, seconds, _ in answers[:committed])
        wall = max(seconds for _, seconds, _ in answers) if gather else wait
        verifications = []
        for i, (context, (text, seconds, tokens)) in enumerate(zip(contexts, answers, strict=True)):
            used = i < committed
            took = seconds if used else min(seconds, wall)
            verifications.append(
                {
                    "context": context.sha256(), "output": text if took == seconds else text[:3],
                    "action": actions[i] if used else None,
                    "start_s": now, "end_s": now + took, "prompt_tokens": 200,
                    "cached_tokens": None, "completion_tokens": int(tokens * took / seconds),
                    "status": "used" if used else "cancelled",
                }
            )  # fmt: skip
        after = states[accepted].clone()
        target_tool_s = 0.0
        if committed > accepted:
            target_tool_s = self.tool(actions[accepted])
            after.step(actions[accepted])
        draft_model_s = self.call_s * len(proposals)
        proposal_tool_s = sum(p["tool_s"] for p in proposals)
        parts = draft_model_s + proposal_tool_s + wall + target_tool_s
        row = {
            "segment": segment, "depth": depth, "proposed": len(offered), "accepted": accepted,
            "committed": committed, "wall_s": parts + self.residual_s,
            "draft_model_s": draft_model_s,
            "proposal_tool_s": proposal_tool_s, "wait_s": wait, "idle_s": wall - wait,
            "target_tool_s": target_tool_s, "residual_s": self.residual_s,
            "draft": "scripted draft" if depth else None,
            "proposals": proposals, "verifications": verifications,
        }  # fmt: skip
        return row, after
