"""What a benchmark is to the loop: tasks, prompts, a parser, and an environment per task.

The loop of :mod:`leapmodel.execution` knows nothing else about what it runs. A benchmark says what
the two models are asked, turns their raw output into a canonical action (:mod:`leapmodel.actions`)
or None, and gives an environment that executes actions and can be cloned, so that proposals run in
a copy (Sec. 3.1, App. B.2). An environment also knows where segments and the task end.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

from leapmodel.errors import UsageError

Role = Literal["target", "draft"]
"""Who is asked: the target reasons first, the draft answers with the action alone."""

Split = Literal["train", "test", "teacher"]
"""Tasks to learn the draft from, to measure on, and to make a target's policy from."""


@dataclass(frozen=True)
class Task:
    """One task of a benchmark.

    Attributes
    ----------
    name : str
        Unique in the benchmark; the ``task`` of a trace.
    text : str
        What is asked for.
    gold : tuple of str, or None
        The benchmark's own answer, as canonical actions up to and including the terminal one.
    """

    name: str
    text: str
    gold: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Prompt:
    """One request to a model, without the sampling settings that a run shares.

    Attributes
    ----------
    messages : tuple of dict
        Chat messages, each with ``role`` and ``content``.
    max_tokens : int
        At most so many completion tokens.
    structured : mapping, optional
        A decoding constraint, one of ``{"json": schema}``, ``{"grammar": text}``,
        ``{"regex": pattern}``, ``{"choice": [texts]}``.
    """

    messages: tuple[Mapping[str, str], ...]
    max_tokens: int
    structured: Mapping[str, Any] | None = None

    def sha256(self) -> str:
        """Return the hash by which an audit recognises this request.

        Examples
        --------
        >>> Prompt(({"role": "user", "content": "hi"},), 8).sha256()[:12]
        '448d3632065e'
        """
        said = {
            "messages": [dict(message) for message in self.messages],
            "max_tokens": self.max_tokens,
            "structured": None if self.structured is None else dict(self.structured),
        }
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


class Environment(Protocol):
    """The state of one run of one task: what was committed, and what came of it."""

    @property
    def segment(self) -> int:
        """Number of the current segment, counted from 0; a user turn begins a new one."""

    @property
    def over(self) -> bool:
        """Whether the task has ended: by a terminal action, or at the benchmark's step cap."""

    def prompt(self, role: Role) -> Prompt:
        """Return the request for the next action.

        Parameters
        ----------
        role : {"target", "draft"}
            The target is asked to reason first; the draft to answer directly.
        """

    def step(self, action: str | None) -> None:
        """Execute a canonical action, tools included, and append what it returned.

        None is an output that did not parse; the benchmark says what follows from it.
        """

    def clone(self) -> Self:
        """Return an independent copy; stepping one leaves the other as it is."""


class Benchmark(Protocol):
    """A kind of task, and how models are asked about it.

    Attributes
    ----------
    name : str
        The name it is registered by.
    max_steps : int
        Steps after which a task ends unfinished.
    terminal : {"accepted", "probe"}
        Whether a terminal action can be a proposal that counts (planning, tau2-bench), or is left
        to a verification without one (BFCL); see the replay's parameter of that name.
    settings : dict
        What :func:`load_benchmark` needs to build the same benchmark again.
    """

    name: str
    max_steps: int
    terminal: Literal["accepted", "probe"]

    @property
    def settings(self) -> dict[str, Any]:
        """What :func:`load_benchmark` needs to build the same benchmark again."""

    def tasks(self, split: Split) -> list[Task]:
        """Return the tasks of a split; splits share no task."""

    def start(self, task: Task) -> Environment:
        """Return a fresh environment of a task."""

    def parse(self, role: Role, text: str) -> str | None:
        """Return the canonical action in a raw output, or None if the benchmark sees none in it."""

    def answer(self, role: Role, action: str) -> str:
        """Return the output that stands for an action, without a thought: what a draft learns."""

    def is_terminal(self, action: str) -> bool:
        """Return whether an action ends the segment, so that nothing is proposed past it."""


def all_tasks(benchmark: Benchmark) -> dict[str, Task]:
    """Return the tasks of every split by name."""
    splits: tuple[Split, ...] = ("test", "train", "teacher")
    return {task.name: task for split in splits for task in benchmark.tasks(split)}


def tasks_sha256(tasks: Iterable[Task]) -> str:
    """Return a hash of the tasks' names and texts, in their order.

    Examples
    --------
    >>> tasks_sha256([Task("a", "do it")])[:12]
    'b1ff3a88b261'
    """
    said = json.dumps([[task.name, task.text] for task in tasks], ensure_ascii=True)
    return hashlib.sha256(said.encode()).hexdigest()


def about_benchmark(benchmark: Benchmark) -> dict[str, Any]:
    """Return what a record says of a benchmark: name, settings, and a hash of all its tasks.

    The settings name a file of tasks, not what stands in it; the hash tells that it has changed.
    """
    return {
        "name": benchmark.name,
        "settings": benchmark.settings,
        "tasks_sha256": tasks_sha256(all_tasks(benchmark).values()),
    }


def task_named(benchmark: Benchmark, name: str) -> Task:
    """Return a task of any split by its name.

    Raises
    ------
    UsageError
        If no split has it.
    """
    tasks = all_tasks(benchmark)
    if name not in tasks:
        raise UsageError(f"no task {name!r} in the benchmark {benchmark.name}")
    return tasks[name]
