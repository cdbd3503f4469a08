"""Keep account of what an import left out or had to take on trust."""

from __future__ import annotations

from types import TracebackType

from leapmodel.checks import Dropped
from leapmodel.errors import DataError


class Ledger:
    """The account of one import.

    Parameters
    ----------
    lenient : bool, default False
        Drop a bad task and go on, instead of raising its error.
    keep_messages : bool, default False
        Whether readers should fill in the messages of each step.
    keep_guesses : bool, default False
        Whether they should fill in what drafts proposed; they check it all the same.

    Attributes
    ----------
    dropped : list of Dropped
        Bad tasks left out (lenient only), each with its reason.
    failed : list of str
        Tasks that the log itself says have failed: no trace, but no error either.
    first_drop : DataError or None
        The error of the first bad task.
    models : dict of str to None
        Names of the target models seen, in order.

    Examples
    --------
    >>> ledger = Ledger()
    >>> ledger.count("calls without a result", "task_1")
    >>> ledger.count("calls without a result", "task_2")
    >>> ledger.warnings()
    ['calls without a result: 2 (first in task_1)']
    """

    def __init__(
        self, *, lenient: bool = False, keep_messages: bool = False, keep_guesses: bool = False
    ) -> None:
        self.lenient = lenient
        self.keep_messages = keep_messages
        self.keep_guesses = keep_guesses
        self.dropped: list[Dropped] = []
        self.failed: list[str] = []
        self.models: dict[str, None] = {}
        self._counts: dict[str, tuple[int, str]] = {}
        self.first_drop: DataError | None = None

    def count(self, what: str, where: str, times: int = 1) -> None:
        """Count something a reader of the trace should know; ``where`` is shown for the first."""
        if times:
            so_far, first = self._counts.get(what, (0, where))
            self._counts[what] = (so_far + times, first)

    def add_counts(self, other: Ledger) -> None:
        """Count all that another ledger counted."""
        for what, (times, where) in other.counts().items():
            self.count(what, where, times)

    def saw_model(self, name: object) -> None:
        """Note the name of a target model, if it is one."""
        if isinstance(name, str) and name:
            self.models.setdefault(name)

    def guard(self, task: str) -> _Guard:
        """Let a bad task's error through, or drop the task in lenient use.

        What the block counted is forgotten with the task.
        """
        return _Guard(self, task)

    def forget_counts_since(self, counts: dict[str, tuple[int, str]]) -> None:
        """Go back to what had been counted, as :meth:`counts` gave it."""
        self._counts = counts

    def counts(self) -> dict[str, tuple[int, str]]:
        """Return what was counted so far: by kind, how many times and where first."""
        return dict(self._counts)

    def drop(self, task: str, error: DataError) -> None:
        """Raise a bad task's error, or list the task as dropped in lenient use."""
        if not self.lenient:
            raise error
        self.first_drop = self.first_drop or error
        self.dropped.append(Dropped(task, str(error)))

    def fail(self, task: str) -> None:
        """List a task whose run the log itself calls failed."""
        self.failed.append(task)

    def warnings(self) -> list[str]:
        """Return what was counted, one line a kind, in order of first appearance."""
        lines = []
        if self.failed:
            lines.append(
                f"failed tasks left out: {len(self.failed)} (first: {_one_line(self.failed[0])})"
            )
        for what, (times, where) in self._counts.items():
            lines.append(f"{what}: {times} (first in {_one_line(where)})")
        if len(self.models) > 1:
            names = list(self.models)
            lines.append(f"more than one target model: {', '.join(names[:5])}")
        return lines


class _Guard:
    """The guard of a task, written out: one from contextlib costs as much as a short task."""

    __slots__ = ("_counts", "_ledger", "_task")

    def __init__(self, ledger: Ledger, task: str) -> None:
        self._ledger = ledger
        self._task = task

    def __enter__(self) -> None:
        self._counts = self._ledger.counts()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, DataError):
            return False
        self._ledger.forget_counts_since(self._counts)
        self._ledger.drop(self._task, error)
        return True


def _one_line(name: str) -> str:
    """Shorten a name found in a log for a message; it may hold anything."""
    plain = " ".join(name.split())
    return plain if len(plain) <= 60 else plain[:57] + "..."
