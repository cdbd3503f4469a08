"""Requests that a server refuses for what they hold, such as more tokens than its model reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from leapmodel.errors import EngineError
from leapmodel.execution.contexts import Context
from leapmodel.execution.talking.connection import Refused

Tell = Callable[[str], None]
"""Takes a sentence for whoever asked."""
_OF_THE_REQUEST = frozenset({400, 413, 422})


class Refusals:
    """The contexts that a server refused.

    A benchmark's are all made to be answered, so that a refusal is an error. Those of somebody's
    agent can be longer than a small model reads, and the others are still worth asking about.

    Parameters
    ----------
    bear : callable or None
        Who is to be told in the end; None if the first refusal is an error.
    become : str, default "are left out"
        What is made of them, for what is told.
    """

    def __init__(self, bear: Tell | None, become: str = "are left out") -> None:
        self._bear = bear
        self._become = become
        self._found: dict[tuple[str, int, int], Refused] = {}

    @contextmanager
    def taken(self, context: Context) -> Iterator[None]:
        """Take down a refusal of what is asked inside, if it is to be borne.

        Raises
        ------
        Refused
            If it is not, or is no fault of the context's.
        """
        try:
            yield
        except Refused as error:
            if self._bear is None or error.status not in _OF_THE_REQUEST:
                raise
            self._found.setdefault(context.key, error)

    def tell(self, *, anything_left: bool) -> None:
        """Say how many there were, and why; nothing if there was none.

        Raises
        ------
        EngineError
            If nothing else was asked about.
        """
        if not self._found or self._bear is None:
            return
        (task, run, step), error = next(iter(self._found.items()))
        first = f"task {task!r}, run {run}, step {step}: {error}"
        if not anything_left:
            raise EngineError(f"every context was refused ({first})")
        many = "1 context was" if len(self._found) == 1 else f"{len(self._found)} contexts were"
        self._bear(f"{many} refused: they {self._become} (the first: {first})")
