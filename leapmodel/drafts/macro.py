"""The draft ``macro``: frequent sequences proposed whole, as in *Speculative Macro Commit*."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from leapmodel.actions import TERMINAL_ACTIONS
from leapmodel.drafts.arguments import ArgumentRules
from leapmodel.drafts.history import History
from leapmodel.drafts.interface import Context, Episode
from leapmodel.drafts.shapes import parse_action
from leapmodel.drafts.speculator import walk
from leapmodel.drafts.successors import Successors, add_to

_SHORTEST = 3  # two in a row are a transition, not yet a macro


class MacroDraft:
    """Proposes the rest of a mined macro once its beginning is seen, and nothing elsewhere.

    A macro is a sequence of three or more action shapes within a segment that came at least
    ``support`` times, and in at least ``confidence`` of the times that its beginning did. Its
    beginning is what stands before the step, up to three shapes (the start of the segment counts
    as one); the longest known beginning is taken. The arguments of the whole rest are filled in at
    that moment: what its later steps would have observed is not there to copy from. While the
    target follows, the next step costs one look at the list; once it departs, the rest is dropped.

    Parameters
    ----------
    support : int, default 3
        Times that a macro must have been seen.
    confidence : float, default 0.5
        Share of its beginnings that went on to its end: rather yes than no.
    longest : int, default 8
        Steps of a macro, its beginning included.

    Examples
    --------
    >>> draft = MacroDraft(support=1)
    >>> steps = (Context(starts_segment=True), Context(), Context())
    >>> draft.finish_task([Episode(steps, ("ls({})", "pwd({})", "<respond/>"))])
    >>> draft.start_task()
    >>> draft.propose(steps[0]), draft.planned
    ('ls({})', ('pwd({})', '<respond/>'))
    """

    name = "macro"

    def __init__(self, *, support: int = 3, confidence: float = 0.5, longest: int = 8) -> None:
        if support < 1 or not 0 < confidence <= 1 or longest < 2:
            raise ValueError(
                "expected support >= 1, confidence in (0, 1] and longest >= 2, found "
                f"{support}, {confidence} and {longest}"
            )
        self.settings: dict[str, object] = {
            "support": support,
            "confidence": confidence,
            "longest": longest,
        }
        self._support, self._confidence, self._longest = support, confidence, longest
        self._followed: dict[tuple[str, ...], Successors] = {}
        self._arguments = ArgumentRules()
        self._history = History()
        self._plan: deque[str] = deque()
        self._proposed: str | None = None

    @property
    def planned(self) -> tuple[str, ...]:
        """The rest of the macro that is being followed."""
        return tuple(self._plan)

    def start_task(self) -> None:
        """Begin a run of a task."""
        self._history = History()
        self._plan.clear()
        self._proposed = None

    def propose(self, context: Context) -> str | None:
        """Return the next step of the macro under way, or of one that begins here, or None."""
        self._history.enter(context)
        if context.starts_segment:
            self._plan.clear()
        if not self._plan:
            self._plan.extend(self._filled(self._rest()))
        self._proposed = self._plan.popleft() if self._plan else None
        return self._proposed

    def observe(self, action: str | None) -> None:
        """Take in the committed action; a macro ends where the target departs from it."""
        if action != self._proposed:
            self._plan.clear()
        self._history.commit(action)

    def finish_task(self, episodes: Sequence[Episode]) -> None:
        """Count the sequences of the finished task, and learn its arguments."""
        self._arguments.learn(walk(episodes))
        sequence: list[str] = []
        for history, action in walk(episodes):
            if history.shapes[0].startswith("<start of"):
                sequence = [history.shapes[0]]
            if action is None:  # nothing is known to lead over an output that did not parse
                sequence = []
                continue
            shape = parse_action(action).shape
            for begin in range(max(0, len(sequence) - self._longest + 1), len(sequence)):
                add_to(self._followed, tuple(sequence[begin:]), shape)
            sequence = [*sequence[-self._longest :], shape]

    def _rest(self) -> list[str]:
        """Return the shapes that are left of the macro that begins here, none if there is none."""
        recent = self._history.shapes
        for length in (3, 2, 1):
            beginning = recent[:length][::-1]
            if len(beginning) < length or any(s.startswith("<start of") for s in beginning[1:]):
                continue
            rest = self._continuation(beginning)
            if len(beginning) + len(rest) >= _SHORTEST and rest:
                return rest
        return []

    def _continuation(self, beginning: tuple[str, ...]) -> list[str]:
        seen = self._followed.get(beginning)
        if seen is None:
            return []
        at_least = max(self._support, self._confidence * seen.total)
        rest: list[str] = []
        while seen is not None and len(beginning) + len(rest) < self._longest:
            shape = seen.top
            if seen.counts[shape] < at_least:
                break
            rest.append(shape)
            seen = self._followed.get((*beginning, *rest))
        return rest

    def _filled(self, rest: Sequence[str]) -> list[str]:
        """Return the actions of a macro, each one's arguments following from those before."""
        history = self._history.fork()
        plan = []
        for shape in rest:
            filled = self._arguments.fill(shape, history)
            if filled is None:
                break
            plan.append(filled[0])
            if filled[0] in TERMINAL_ACTIONS:
                break
            history.commit(filled[0])
        return plan
