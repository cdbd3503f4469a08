"""What a draft that needs no GPU is given and asked, and what it may learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class Context(NamedTuple):
    """What is new to the agent when it decides a step, besides its own actions.

    Attributes
    ----------
    starts_segment : bool
        True at the first step of a segment: a task begins, or the user has spoken.
    message : str or None
        New text for the agent (the trace's column ``context``), such as the user's words.
    observation : str or None
        What the action before this step returned (its column ``observation``).
    """

    starts_segment: bool = False
    message: str | None = None
    observation: str | None = None


class Episode(NamedTuple):
    """One finished run of a task.

    Attributes
    ----------
    contexts : tuple of Context
        One a step.
    actions : tuple of str or None
        The target's canonical actions, one a step.
    went_well : bool
        Whether the run succeeded, see :func:`~leapmodel.drafts.prequential.prequential`.
    """

    contexts: tuple[Context, ...]
    actions: tuple[str | None, ...]
    went_well: bool = True


class DraftModel(Protocol):
    """A draft that learns from finished tasks and proposes one action at a time.

    The order of calls for each run of a task: :meth:`start_task`, then for each step
    :meth:`propose` and :meth:`observe`. After all runs of a task :meth:`finish_task` once, which
    alone may change what is proposed in other tasks.
    """

    @property
    def name(self) -> str:
        """Name for tables and the predictions' ``draft`` column."""
        ...

    @property
    def settings(self) -> Mapping[str, object]:
        """What it was made with, for the predictions' metadata."""
        ...

    def start_task(self) -> None:
        """Begin a run of a task: no action of another run is context any more."""
        ...

    def propose(self, context: Context) -> str | None:
        """Return the action expected next, canonical, or None if there is none to propose."""
        ...

    def observe(self, action: str | None) -> None:
        """Take in the action that the target committed (None: its output did not parse)."""
        ...

    def finish_task(self, episodes: Sequence[Episode]) -> None:
        """Learn from all runs of the task that just ended."""
        ...
