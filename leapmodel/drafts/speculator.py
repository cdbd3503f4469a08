"""What comes next and with which arguments: counts of actions and rules for their values.

The common ground of the drafts: ``backoff`` is this alone, ``memory`` adds its memories to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from leapmodel.drafts.arguments import ArgumentRules
from leapmodel.drafts.history import History
from leapmodel.drafts.interface import Episode
from leapmodel.drafts.shapes import parse_action
from leapmodel.drafts.successors import Successors, add_to, blended

_MOST_SHAPES = 8  # that are filled in, at most: the next ones are too unlikely to win


class Proposal(NamedTuple):
    """An action, its shape, and the estimated probability that it is exactly the target's."""

    action: str
    shape: str
    chance: float


class Chances(NamedTuple):
    """Probabilities of the next action's shape, and of whole actions seen before."""

    shapes: dict[str, float]
    actions: dict[str, float]

    def scaled(self, shapes: Mapping[str, float]) -> Chances:
        """Return them with other probabilities of shapes, those of actions in proportion."""
        actions = {}
        for action, chance in self.actions.items():
            shape = parse_action(action).shape
            if self.shapes.get(shape):
                actions[action] = chance * shapes.get(shape, 0.0) / self.shapes[shape]
        return Chances(dict(shapes), actions)


class Speculator:
    """Counts of what followed, by shape and by whole action, and rules for the arguments.

    Parameters
    ----------
    order : int, default 3
        Shapes in the longest context of shapes; two actions more in the longest one of actions.
    """

    def __init__(self, order: int = 3) -> None:
        if order < 1:
            raise ValueError(f"order must be >= 1, found {order}")
        self.order = order
        self._shapes: dict[tuple[str, ...], Successors] = {}
        self._actions: dict[tuple[str, ...], Successors] = {}
        self._arguments = ArgumentRules()

    def chances(self, history: History) -> Chances:
        """Return what may come next."""
        contexts = history.contexts(self.order)
        return Chances(blended(self._shapes, contexts), blended(self._actions, contexts))

    def best(self, chances: Chances, history: History) -> Proposal | None:
        """Return the action most likely to be exactly the target's.

        A shape's arguments are filled in by the rules or taken from a whole action seen before,
        whichever is likelier right. The likeliest shape is not always chosen: a reply, which has
        nothing to get wrong, may have the better chance to be accepted.

        Parameters
        ----------
        chances : Chances
            What may come next.
        history : History
            The task so far.
        """
        whole: dict[str, tuple[str, float]] = {}
        for action, chance in chances.actions.items():
            shape = parse_action(action).shape
            if chance > whole.get(shape, ("", 0.0))[1]:
                whole[shape] = action, chance
        best: Proposal | None = None
        likeliest = sorted(chances.shapes.items(), key=lambda item: -item[1])
        for shape, chance in likeliest[:_MOST_SHAPES]:
            if best is not None and chance <= best.chance:
                break
            action, of_action = whole.get(shape, ("", 0.0))
            if of_action > (0.0 if best is None else best.chance):
                best = Proposal(action, shape, min(chance, of_action))
            above = 0.0 if best is None else best.chance / chance
            filled = self._arguments.fill(shape, history, above=above)
            if filled is not None:
                best = Proposal(filled[0], shape, chance * filled[1])
        return best

    def learn(self, episodes: Sequence[Episode]) -> None:
        """Learn from all runs of one finished task."""
        self._arguments.learn(walk(episodes))
        for history, action in walk(episodes):
            if action is None:  # what did not parse can't be proposed
                continue
            shape = parse_action(action).shape
            for context in history.contexts(self.order):
                add_to(self._shapes, context, shape)
                add_to(self._actions, context, action)


def walk(episodes: Sequence[Episode]) -> Iterator[tuple[History, str | None]]:
    """Yield each step's history and action; the history is led on as soon as the next is asked for.

    Examples
    --------
    >>> from leapmodel.drafts.interface import Context
    >>> episode = Episode((Context(True), Context()), ("ls({})", "<respond/>"))
    >>> [(history.shapes, action) for history, action in walk([episode])]
    [(('<start of task>',), 'ls({})'), (('ls()', '<start of task>'), '<respond/>')]
    """
    for episode in episodes:
        history = History()
        for context, action in zip(episode.contexts, episode.actions, strict=True):
            history.enter(context)
            yield history, action
            history.commit(action)
