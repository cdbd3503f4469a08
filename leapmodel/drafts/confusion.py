"""Third memory: errors that recur, such as proposing a where the target does b."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leapmodel.drafts.history import History
from leapmodel.drafts.interface import Episode
from leapmodel.drafts.shapes import parse_action
from leapmodel.drafts.speculator import Chances, Proposal

_PRIOR = 4.0  # expected cases that stand against the record, so that one error changes little
_NEGLIGIBLE = 0.01  # a shape held less likely than this was not expected

_Choice = tuple[str, str, Mapping[str, float]]  # shape before, shape chosen, probabilities then


class ConfusionTracker:
    """Keeps what the target did where a was the choice, against what was expected then.

    Where a was about to be proposed after a certain shape, and the target was expected to do b x
    times and did it n times, b is held (n + 4) / (x + 4) times as likely from then on; b may be a
    itself. So an error made again and again suppresses a and brings up what it is mistaken for,
    while an estimate that holds on the whole is left alone, however often it misses.

    Examples
    --------
    >>> memory = ConfusionTracker()
    >>> chances = {"cd(to)": 0.75, "pwd()": 0.25}
    >>> for _ in range(16):
    ...     memory.saw(("ls()", "cd(to)", chances), "pwd()")
    >>> memory.corrected("ls()", "cd(to)", chances)
    {'cd(to)': 0.1875, 'pwd()': 0.625}
    """

    def __init__(self) -> None:
        # (shape before, shape chosen): what the target did: times found, and expected
        self._record: dict[tuple[str, str], dict[str, tuple[int, float]]] = {}
        self._choice: _Choice | None = None
        self._pending: list[tuple[_Choice, str | None]] = []

    def advise(self, chances: Chances, history: History, first: Proposal) -> Chances:
        """Return the probabilities by the record of choosing ``first`` here."""
        self._choice = history.shapes[0], first.shape, chances.shapes
        if self._choice[:2] not in self._record:
            return chances
        return chances.scaled(self.corrected(*self._choice))

    def observe(self, action: str | None) -> None:
        """Note what the target did, to be learned when the task is over."""
        if self._choice is not None:
            shape = None if action is None else parse_action(action).shape
            self._pending.append((self._choice, shape))
            self._choice = None

    def learn(self, episodes: Sequence[Episode]) -> None:
        """Add what was chosen in the finished task to the record."""
        for choice, actual in self._pending:
            self.saw(choice, actual)
        self._pending.clear()

    def corrected(self, before: str, chosen: str, chances: Mapping[str, float]) -> dict[str, float]:
        """Return the probabilities of shapes by the record of this choice after that shape."""
        record = self._record.get((before, chosen), {})
        corrected = {}
        for shape, chance in chances.items():
            found, expected = record.get(shape, (0, 0.0))
            corrected[shape] = chance * (found + _PRIOR) / (expected + _PRIOR)
        return corrected

    def saw(self, choice: _Choice, actual: str | None) -> None:
        """Count what the target did where a shape was chosen with certain probabilities."""
        before, chosen, chances = choice
        record = self._record.setdefault((before, chosen), {})
        for shape, chance in chances.items():
            if chance >= _NEGLIGIBLE or shape == actual:
                found, expected = record.get(shape, (0, 0.0))
                record[shape] = found + (shape == actual), expected + chance
