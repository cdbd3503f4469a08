"""A planning benchmark after the paper's OpenAGI setting (App. G): pick tools, one at a time.

14 tools and a terminal action; the target thinks and then names a tool; the canonical action is the
tool's name; a context is the task and the committed actions. Nothing is executed, so steps have no
tool time. A task ends at the terminal action, at an answer that does not parse, or after 12 steps.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from leapmodel.actions import TERMINATE
from leapmodel.benchmarks.interface import Prompt, Role, Split, Task
from leapmodel.benchmarks.planning.assignment import Assignment
from leapmodel.benchmarks.planning.prompts import answer, draft_prompt, parse_tool, target_prompt
from leapmodel.benchmarks.planning.tasks import made_tasks, read_tasks
from leapmodel.errors import UsageError, shown

MAX_STEPS = 12
TARGET_TOKENS = 544
"""A thought of at most 512 tokens and an action of at most 32 (Table 15)."""
DRAFT_TOKENS = 32


class PlanningBenchmark:
    """The planning benchmark; see the module.

    Parameters
    ----------
    seed : int, default 42
        Of the tasks, or of the split of those in ``tasks_file``.
    tasks_file : str or Path, optional
        Descriptions to use instead of made ones, one a line.
    target_tokens, draft_tokens : int
        Completion budgets.

    Examples
    --------
    >>> benchmark = PlanningBenchmark()
    >>> environment = benchmark.start(benchmark.tasks("test")[0])
    >>> environment.step("Colorization")
    >>> environment.prompt("draft").messages[-1]["content"].splitlines()[-1]
    'Done: Colorization'
    """

    name = "planning"
    max_steps = MAX_STEPS
    terminal: Literal["accepted", "probe"] = "accepted"

    def __init__(
        self,
        seed: int = 42,
        tasks_file: str | Path | None = None,
        target_tokens: int = TARGET_TOKENS,
        draft_tokens: int = DRAFT_TOKENS,
    ) -> None:
        if not _is_whole(seed):
            raise UsageError(f"seed: expected a whole number, found {shown(seed)}")
        if not isinstance(tasks_file, (str, Path, type(None))) or tasks_file == "":
            raise UsageError(f"tasks_file: expected the path of a file, found {shown(tasks_file)}")
        for what, value in (("target_tokens", target_tokens), ("draft_tokens", draft_tokens)):
            if not _is_whole(value) or value < 1:
                raise UsageError(f"{what}: expected a whole number above 0, found {shown(value)}")
        self.seed = seed
        self.tasks_file = None if tasks_file is None else str(tasks_file)
        self.target_tokens = target_tokens
        self.draft_tokens = draft_tokens

    @property
    def settings(self) -> dict[str, Any]:
        """What :func:`~leapmodel.benchmarks.load_benchmark` needs to build it again."""
        return {
            "seed": self.seed,
            "tasks_file": self.tasks_file,
            "target_tokens": self.target_tokens,
            "draft_tokens": self.draft_tokens,
        }

    @cached_property
    def _made(self) -> dict[Split, list[tuple[Task, Assignment]]]:
        return made_tasks(self.seed)

    @cached_property
    def _by_split(self) -> dict[Split, list[Task]]:
        if self.tasks_file is not None:
            return read_tasks(self.tasks_file, self.seed)
        return {split: [task for task, _ in made] for split, made in self._made.items()}

    def tasks(self, split: Split) -> list[Task]:
        """Return the tasks of a split."""
        return self._by_split[split]

    def assignments(self, split: Split) -> list[tuple[Task, Assignment]]:
        """Return made tasks with what is behind their words; none for a file of tasks."""
        return [] if self.tasks_file is not None else self._made[split]

    def start(self, task: Task) -> PlanningEnvironment:
        """Return a fresh environment of a task."""
        return PlanningEnvironment(self, task)

    def parse(self, role: Role, text: str) -> str | None:
        """Return the tool in the last tag pair, or None; the same for both roles."""
        return parse_tool(text)

    def answer(self, role: Role, action: str) -> str:
        """Return the action in its tags."""
        return answer(action)

    def is_terminal(self, action: str) -> bool:
        """Return whether the action completes the plan."""
        return action == TERMINATE


class PlanningEnvironment:
    """One run of a planning task: the committed actions are its whole state."""

    segment = 0

    def __init__(
        self, benchmark: PlanningBenchmark, task: Task, committed: tuple[str | None, ...] = ()
    ) -> None:
        self._benchmark = benchmark
        self._task = task
        self._committed = committed

    @property
    def over(self) -> bool:
        """Whether the plan is complete, did not parse, or has reached the step cap."""
        done = self._committed
        return bool(done) and (done[-1] in (TERMINATE, None) or len(done) >= MAX_STEPS)

    def prompt(self, role: Role) -> Prompt:
        """Return the request for the next tool."""
        if role == "target":
            return target_prompt(self._task.text, self._committed, self._benchmark.target_tokens)
        return draft_prompt(self._task.text, self._committed, self._benchmark.draft_tokens)

    def step(self, action: str | None) -> None:
        """Append an action."""
        self._committed = (*self._committed, action)

    def clone(self) -> Self:
        """Return an independent copy."""
        return type(self)(self._benchmark, self._task, self._committed)


def _is_whole(value: object) -> bool:
    """Return whether a setting is a whole number; a file's metadata may hold anything."""
    return isinstance(value, int) and not isinstance(value, bool)
