"""What followed a context, counted in bounded space, and the blend of short and long contexts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

Key = TypeVar("Key")
CAPACITY = 32
"""Different successors that one context remembers."""
_NEGLIGIBLE = 1e-3


class Successors:
    """Counts of what followed one context, the most recent last.

    At most :data:`CAPACITY` different ones are kept; a new one takes the place of the rarest, and
    among equals of the one not seen for longest. That bounds the time of a proposal, whatever the
    number of actions an agent invents.

    Attributes
    ----------
    counts : dict of str to int
        In order of last sight.
    total, distinct : int
        All that was ever counted, and how often something new was.
    top : str
        The most frequent, of equals the most recent.

    Examples
    --------
    >>> seen = Successors()
    >>> for action in ["ls", "cd", "cd", "ls"]:
    ...     seen.add(action)
    >>> seen.top, seen.counts, seen.total, seen.distinct
    ('ls', {'cd': 2, 'ls': 2}, 4, 2)
    """

    __slots__ = ("counts", "distinct", "top", "total")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.total = 0
        self.distinct = 0
        self.top = ""

    def add(self, successor: str) -> None:
        """Count one more."""
        count = self.counts.pop(successor, 0) + 1
        if count == 1:
            self.distinct += 1
            if len(self.counts) >= CAPACITY:
                del self.counts[min(self.counts, key=self.counts.__getitem__)]
        self.counts[successor] = count
        self.total += 1
        if count >= self.counts.get(self.top, 0):
            self.top = successor


def add_to(table: dict[Key, Successors], key: Key, successor: str) -> None:
    """Count a successor of one key of a table."""
    found = table.get(key)
    if found is None:
        found = table[key] = Successors()
    found.add(successor)


def blended(table: Mapping[Key, Successors], contexts: Iterable[Key]) -> dict[str, float]:
    """Return probabilities of what comes next, by back-off with Witten and Bell's discount.

    A context seen n times with s different successors keeps n / (n + s) of the probability for
    what it has seen and leaves the rest to the next shorter one. A context with many counts and
    few successors thus speaks for itself; a new or undecided one yields. Nothing is tuned.

    Parameters
    ----------
    table : mapping of context to Successors
        The counts.
    contexts : iterable of context
        The longest first; those never seen are passed over.

    Returns
    -------
    dict of str to float
        Sums to less than 1: the remainder is for what was never seen. Of equal probabilities the
        one of the longer context, then the more recent, comes first.

    Examples
    --------
    >>> table = {}
    >>> for context, successor in [("", "ls"), ("", "cd"), ("", "ls"), ("a", "cd")]:
    ...     add_to(table, context, successor)
    >>> {key: round(value, 3) for key, value in blended(table, ["ba", "a", ""]).items()}
    {'cd': 0.6, 'ls': 0.2}
    """
    chances: dict[str, float] = {}
    left = 1.0
    for context in contexts:
        seen = table.get(context)
        if seen is None:
            continue
        share = left / (seen.total + seen.distinct)
        for successor, count in reversed(seen.counts.items()):
            chances[successor] = chances.get(successor, 0.0) + count * share
        left = share * seen.distinct
        if left < _NEGLIGIBLE:
            break
    return chances
