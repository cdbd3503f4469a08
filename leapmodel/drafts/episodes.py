"""Second memory: past moments that resemble the present one, and what the target did then."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from leapmodel.drafts.history import History
from leapmodel.drafts.interface import Episode
from leapmodel.drafts.shapes import parse_action
from leapmodel.drafts.speculator import Chances, Proposal, walk
from leapmodel.drafts.texts import read_text

_RECENT = 16  # moments kept for one key of the index, the newest: bounds a retrieval
_NEAREST = 8  # moments that vote
_FADING = 0.7  # weight of an action against the one after it
_SHAPE_ONLY = 0.5  # likeness of two actions that differ in their values


class Moment(NamedTuple):
    """A step of a finished task: what had just happened, and what the target did."""

    actions: tuple[str, ...]
    shapes: tuple[str, ...]
    message: str | None
    action: str
    shape: str


class EpisodicMemory:
    """Retrieves similar moments of past segments; each votes for what followed it.

    Likeness is that of the last actions, aligned from the newest back: 1 for the same action, 1/2
    for one with other values, faded by 0.7 a step; plus the overlap of the user's last words
    (Jaccard), where the trace has them. The eight nearest vote with the square of their likeness.

    Examples
    --------
    >>> memory = EpisodicMemory()
    >>> from leapmodel.drafts.interface import Context
    >>> memory.learn([Episode((Context(True), Context()), ("ls({})", "pwd({})"))])
    >>> history = History()
    >>> history.commit("ls({})")
    >>> memory.recall(history)
    Chances(shapes={'pwd()': 1.0}, actions={'pwd({})': 1.0})
    """

    def __init__(self) -> None:
        self._index: dict[tuple[str, ...], deque[Moment]] = {}
        self._foresaw = [0, 0]  # steps whose shape came first by the counts, and by the moments
        self._thought: list[tuple[str | None, str | None]] = []  # of the steps of the task so far
        self._did: list[str | None] = []

    def advise(self, chances: Chances, history: History, first: Proposal) -> Chances:
        """Return the probabilities mixed with the moments' votes.

        The votes weigh as much as their share of the steps that either foresaw in earlier tasks.
        """
        recalled = self.recall(history)
        self._thought.append((_likeliest(chances), _likeliest(recalled)))
        if not recalled.shapes:
            return chances
        by_counts, by_moments = self._foresaw
        weight = (by_moments + 1) / (by_counts + by_moments + 2)
        return Chances(
            _mixed(chances.shapes, recalled.shapes, weight),
            _mixed(chances.actions, recalled.actions, weight),
        )

    def observe(self, action: str | None) -> None:
        """Note what the target did, to judge the votes when the task is over."""
        if len(self._thought) > len(self._did):
            self._did.append(None if action is None else parse_action(action).shape)

    def recall(self, history: History) -> Chances:
        """Return what followed similar moments; empty if there is none."""
        moments: dict[int, Moment] = {}
        for key in _keys(history):
            for moment in reversed(self._index.get(key, ())):
                moments[id(moment)] = moment
        rated = [(_likeness(moment, history), moment) for moment in moments.values()]
        rated.sort(key=lambda pair: -pair[0])
        shapes: dict[str, float] = {}
        actions: dict[str, float] = {}
        total = sum(likeness**2 for likeness, _ in rated[:_NEAREST])
        for likeness, moment in rated[:_NEAREST]:
            vote = likeness**2 / total
            shapes[moment.shape] = shapes.get(moment.shape, 0.0) + vote
            actions[moment.action] = actions.get(moment.action, 0.0) + vote
        return Chances(shapes, actions)

    def learn(self, episodes: Sequence[Episode]) -> None:
        """Keep the moments of all runs of one finished task."""
        for thought, did in zip(self._thought, self._did, strict=False):
            for who in (0, 1):
                self._foresaw[who] += did is not None and thought[who] == did
        self._thought.clear()
        self._did.clear()
        for history, action in walk(episodes):
            if action is None:
                continue
            moment = Moment(
                history.actions, history.shapes, history.message, action, parse_action(action).shape
            )
            for key in _keys(history):
                kept = self._index.get(key)
                if kept is None:
                    kept = self._index[key] = deque(maxlen=_RECENT)
                kept.append(moment)


def _keys(history: History) -> list[tuple[str, ...]]:
    """Return the keys under which a moment is found: its last two actions, its last, its shape."""
    actions = history.actions
    keys = [("two", *actions[:2]), ("one", actions[0]), ("shape", history.shapes[0])]
    if history.message is not None:
        keys.insert(0, ("message", history.message, history.shapes[0]))
    return keys


def _likeness(moment: Moment, history: History) -> float:
    likeness, weight = 0.0, 1.0
    for action, shape, other, other_shape in zip(
        history.actions, history.shapes, moment.actions, moment.shapes, strict=False
    ):
        if action == other:
            likeness += weight
        elif shape == other_shape:
            likeness += weight * _SHAPE_ONLY
        else:
            break
        weight *= _FADING
    if history.message is not None and moment.message is not None:
        ours, theirs = read_text(history.message).words, read_text(moment.message).words
        if ours and theirs:
            likeness += len(ours & theirs) / len(ours | theirs)
    return likeness


def _likeliest(chances: Chances) -> str | None:
    return max(chances.shapes, key=chances.shapes.__getitem__) if chances.shapes else None


def _mixed(first: dict[str, float], second: dict[str, float], weight: float) -> dict[str, float]:
    mixed = {key: (1 - weight) * chance for key, chance in first.items()}
    for key, chance in second.items():
        mixed[key] = mixed.get(key, 0.0) + weight * chance
    return mixed
