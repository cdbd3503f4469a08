"""The draft ``memory``: the three online memories of *Speculate with Memory*.

That paper equips a language model with them; here they are added to the n-grams of ``backoff``,
so that no model runs at all. The n-grams learn from the same tasks, which leaves the memories less
to add than to a model that never learns; so each has to earn its say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from leapmodel.drafts.confusion import ConfusionTracker
from leapmodel.drafts.contrast import ContrastiveTransitions
from leapmodel.drafts.episodes import EpisodicMemory
from leapmodel.drafts.history import History
from leapmodel.drafts.interface import Context, Episode
from leapmodel.drafts.speculator import Chances, Proposal, Speculator


class Memory(Protocol):
    """Something learned from finished tasks that changes what is held likely."""

    def advise(self, chances: Chances, history: History, first: Proposal) -> Chances:
        """Return other probabilities than these, of which ``first`` is the best proposal."""
        ...

    def observe(self, action: str | None) -> None:
        """Take in what the target did."""
        ...

    def learn(self, episodes: Sequence[Episode]) -> None:
        """Learn from a finished task."""
        ...


_MAKERS: dict[str, Callable[[], Memory]] = {
    "contrast": ContrastiveTransitions,
    "episodes": EpisodicMemory,
    "confusion": ConfusionTracker,
}
MEMORIES = tuple(_MAKERS)
"""The memories that can be switched off, in the order in which they are asked."""


class _Adviser:
    """A memory with its record: steps where its advice alone was right, or alone wrong."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.balance = 0
        self._said: tuple[str, str | None] | None = None  # without and with the advice
        self._pending = 0

    @property
    def is_trusted(self) -> bool:
        """Whether its advice was right as often as it was wrong, over the finished tasks."""
        return self.balance >= 0

    def said(self, without: str, with_advice: str | None) -> None:
        """Note what would be proposed without and with the advice."""
        self._said = without, with_advice

    def observe(self, action: str | None) -> None:
        """Judge the last advice, if there was one."""
        self.memory.observe(action)
        if self._said is not None and action is not None:
            without, with_advice = self._said
            self._pending += (with_advice == action) - (without == action)
        self._said = None

    def learn(self, episodes: Sequence[Episode]) -> None:
        """Learn from a finished task, and settle the record of its steps."""
        self.balance += self._pending
        self._pending = 0
        self.memory.learn(episodes)


class MemoryDraft:
    """N-grams with back-off, advised by three memories of finished tasks, in turn.

    - ``contrast``: a transition table that tells runs that went well from the others
      (:class:`~leapmodel.drafts.contrast.ContrastiveTransitions`);
    - ``episodes``: similar moments of past segments vote
      (:class:`~leapmodel.drafts.episodes.EpisodicMemory`);
    - ``confusion``: errors that recur oftener than expected are suppressed
      (:class:`~leapmodel.drafts.confusion.ConfusionTracker`).

    A memory whose advice has so far spoiled more proposals than it mended is not followed, only
    watched, until its record is even again. With no memory the draft proposes what
    :class:`~leapmodel.drafts.backoff.BackoffDraft` does.

    Parameters
    ----------
    memories : iterable of str, default all of :data:`MEMORIES`
        Which ones are on.
    order : int, default 3
        As for :class:`~leapmodel.drafts.backoff.BackoffDraft`.

    Raises
    ------
    ValueError
        If a memory is unknown.

    Examples
    --------
    >>> MemoryDraft(memories=["episodes"]).settings
    {'order': 3, 'memories': ['episodes']}
    """

    name = "memory"

    def __init__(self, memories: Iterable[str] = MEMORIES, *, order: int = 3) -> None:
        wanted = set(memories)
        if unknown := sorted(wanted - set(MEMORIES)):
            raise ValueError(f"memories must be among {', '.join(MEMORIES)}, found {unknown[0]}")
        on = [name for name in MEMORIES if name in wanted]
        self.settings: dict[str, object] = {"order": order, "memories": on}
        self._speculator = Speculator(order)
        self._advisers = {name: _Adviser(_MAKERS[name]()) for name in on}
        self._history = History()

    @property
    def balances(self) -> dict[str, int]:
        """Proposals that each memory's advice mended, less those it spoiled, so far."""
        return {name: adviser.balance for name, adviser in self._advisers.items()}

    def start_task(self) -> None:
        """Begin a run of a task."""
        self._history = History()

    def propose(self, context: Context) -> str | None:
        """Return the likeliest next action; None before anything was learned."""
        history = self._history
        history.enter(context)
        chances = self._speculator.chances(history)
        best = self._speculator.best(chances, history)
        if best is None:
            return None
        for adviser in self._advisers.values():
            advised = adviser.memory.advise(chances, history, best)
            if advised is chances:
                continue
            other = self._speculator.best(advised, history)
            adviser.said(best.action, None if other is None else other.action)
            if adviser.is_trusted and other is not None:
                chances, best = advised, other
        return best.action

    def observe(self, action: str | None) -> None:
        """Take in the committed action."""
        for adviser in self._advisers.values():
            adviser.observe(action)
        self._history.commit(action)

    def finish_task(self, episodes: Sequence[Episode]) -> None:
        """Learn from the finished task, and from what was advised in it."""
        for adviser in self._advisers.values():
            adviser.learn(episodes)
        self._speculator.learn(episodes)
