"""First memory: what followed in runs that went well against those that did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leapmodel.drafts.history import History
from leapmodel.drafts.interface import Episode
from leapmodel.drafts.shapes import parse_action
from leapmodel.drafts.speculator import Chances, Proposal, walk

_PRIOR = 2.0  # steps of the runs at large that stand against a transition's own

Counts = list[int]  # [in runs that went well, in the others]


class ContrastiveTransitions:
    """Leans towards transitions that are commoner in runs that went well.

    The probability of a shape is multiplied by the share of good runs among the times it followed
    the last two shapes, over their share after these in general (drawn to it while the
    transition is rare). If all runs went well, or none, nothing changes.

    Examples
    --------
    >>> memory = ContrastiveTransitions()
    >>> from leapmodel.drafts.interface import Context
    >>> memory.learn([Episode((Context(True),), ("a",), went_well=True)] * 4)
    >>> memory.learn([Episode((Context(True),), ("b",), went_well=False)] * 4)
    >>> leaning = memory.leaning({"a": 0.5, "b": 0.5}, ["<start of task>"])
    >>> {shape: round(chance, 2) for shape, chance in leaning.items()}
    {'a': 0.83, 'b': 0.17}
    """

    def __init__(self) -> None:
        self._followed: dict[tuple[str, ...], dict[str, Counts]] = {}
        self._after: dict[tuple[str, ...], Counts] = {}

    def advise(self, chances: Chances, history: History, first: Proposal) -> Chances:
        """Return the probabilities with this memory's weight."""
        leaning = self.leaning(chances.shapes, history.shapes)
        return chances if leaning is chances.shapes else chances.scaled(leaning)

    def observe(self, action: str | None) -> None:
        """Nothing is learned before a task is over."""

    def leaning(self, chances: Mapping[str, float], shapes: Sequence[str]) -> Mapping[str, float]:
        """Return the probabilities of shapes with this memory's weight, after the last shapes."""
        context = tuple(shapes[:2])
        good, bad = self._after.get(context, (0, 0))
        if not (good and bad and chances):
            return chances
        share = good / (good + bad)
        followed = self._followed[context]
        leaning = {}
        for shape, chance in chances.items():
            well, ill = followed.get(shape, (0, 0))
            leaning[shape] = chance * (well / share + _PRIOR) / (well + ill + _PRIOR)
        # The factor can pass 1, and what it scales is compared with other probabilities.
        scale = sum(chances.values()) / sum(leaning.values())
        return {shape: chance * scale for shape, chance in leaning.items()}

    def learn(self, episodes: Sequence[Episode]) -> None:
        """Count the transitions of all runs of one finished task."""
        for episode in episodes:
            ill = 0 if episode.went_well else 1
            for history, action in walk([episode]):
                if action is None:
                    continue
                context = history.shapes[:2]
                self._after.setdefault(context, [0, 0])[ill] += 1
                followed = self._followed.setdefault(context, {})
                followed.setdefault(parse_action(action).shape, [0, 0])[ill] += 1
