"""What an importer yields, and what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from leapmodel.importers.ledger import Ledger

Message: TypeAlias = dict[str, Any]
"""One chat message: ``role``, ``content``, and ``tool_calls`` or ``tool_call_id`` where due."""


@dataclass(frozen=True)
class Sample:
    """The beginning of a file, for telling its format.

    Attributes
    ----------
    path : Path
        The file.
    head : bytes
        Its first 64 KB, decompressed.
    record : object
        The first line if it is JSON by itself, else the whole file if it is JSON and short enough
        to fit in ``head``, else None.
    """

    path: Path
    head: bytes
    record: Any = None

    def has_keys(self, *names: str) -> bool:
        """Return whether all these occur as JSON keys in the head."""
        return all(f'"{name}"'.encode() in self.head for name in names)


class Guess(NamedTuple):
    """What a draft proposed on the context of one step.

    Attributes
    ----------
    action : str or None
        Canonical action; None if its output does not parse.
    latency_s : float, optional
        Seconds of the draft call, > 0.
    draft : str, default "draft"
        The draft's name.
    """

    action: str | None
    latency_s: float | None = None
    draft: str = "draft"


class Step(NamedTuple):
    """One target decision of a task.

    A tuple, because a log has as many as it has decisions: a frozen dataclass takes three times
    as long to build.

    Attributes
    ----------
    segment : int
        0, 1, 2, … within the task; it goes up where speculation must stop (a user turn).
    gen_s : float
        Seconds of generation, > 0, tool time excluded.
    action : str or None
        Canonical action (:mod:`leapmodel.actions`); None if the output does not parse.
    tool_s : float, default 0
        Seconds of tool execution; 0 when no tool ran or the log does not say.
    started_s : float, optional
        Start of the generation, seconds since 1970.
    prompt_tokens, cached_tokens, completion_tokens : int, optional
        As the log counts them; None where it does not.
    before : sequence of dict
        Chat messages that entered the context since the previous step (system, user, tool), and
    said : dict or None
        the assistant message of this step, in the shape of the OpenAI chat format. Filled in only
        if ``ledger.keep_messages``; the contexts of a run are their concatenation.
    guesses : sequence of Guess
        What drafts proposed here, if the log holds that; several of one draft are its repeats.
    """

    segment: int
    gen_s: float
    action: str | None
    tool_s: float = 0.0
    started_s: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    before: Sequence[Message] = ()
    said: Message | None = None
    guesses: Sequence[Guess] = ()


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One run of one task, its steps in order.

    Attributes
    ----------
    task : str
        The name under which two logs of the same task are paired.
    steps : sequence of Step
        Not empty.
    line : int, optional
        1-based line where the task stands in its file, for messages.
    run : int, optional
        The log's own number of the run. Without it, a task that comes again in another file is
        its next run, and a task that comes again in the same file is an error.
    """

    task: str
    steps: Sequence[Step]
    line: int | None = None
    run: int | None = None


class ReadFile(Protocol):
    """Read one file of a format: yield its task runs in order, one at a time."""

    def __call__(self, path: Path, ledger: Ledger, /, **options: object) -> Iterator[TaskRun]:
        """Yield the task runs of ``path``; refuse bad ones through ``ledger.guard``."""


@dataclass(frozen=True)
class Importer:
    """A log format.

    Attributes
    ----------
    name : str
        As it is typed on the command line.
    description : str
        One line.
    suffixes : tuple of str
        What a file's name ends on, for finding the files of a folder.
    read_file : callable
        ``(path, ledger, **options)`` to an iterator of :class:`TaskRun`. It streams.
    options : mapping of str to str
        The keyword options that ``read_file`` takes, each with a line of help.
    remarks : tuple of str
        What is true of every trace of this format and limits its use; kept as warnings.
    recognises : callable, optional
        Whether the beginning of a file is of this format; ``auto`` asks it.
    has_messages : bool, default False
        Whether it fills in ``Step.before`` and ``Step.said``, so that contexts can be written.
    has_guesses : bool, default False
        Whether it fills in ``Step.guesses``, so that predictions can be read from the log.
    """

    name: str
    description: str
    suffixes: tuple[str, ...]
    read_file: ReadFile
    options: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    recognises: Callable[[Sample], bool] | None = None
    has_messages: bool = False
    has_guesses: bool = False
