"""What an audit says of a record: where something is not as it must be, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Contradiction(NamedTuple):
    """What was looked at, what it must be and what it is, as in a violation without its place."""

    what: str
    expected: str
    found: str


@dataclass(frozen=True)
class Violation:
    """One thing that is not as it must be.

    Attributes
    ----------
    task : str or None
        The task; None where a line could not be read.
    run, arm, round
        Where in the task's rounds; None where it is about the whole of them.
    what : str
        What was looked at, such as ``proposals[0].context``.
    expected, found : str
        What it must be, and what it is.

    Examples
    --------
    >>> print(Violation("a", 0, "speculative", 3, "accepted", "1", "2"))
    task a, run 0, speculative, round 3: accepted: expected 1, found 2
    """

    task: str | None
    run: int | None
    arm: str | None
    round: int | None
    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        places = [] if self.task is None else [f"task {self.task}"]
        places += [] if self.run is None else [f"run {self.run}"]
        places += [] if self.arm is None else [self.arm]
        places += [] if self.round is None else [f"round {self.round}"]
        where = f"{', '.join(places)}: " if places else ""
        return f"{where}{self.what}: expected {self.expected}, found {self.found}"
