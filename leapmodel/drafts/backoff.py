"""The draft ``backoff``: action n-grams with back-off, and copy rules for the arguments."""

from __future__ import annotations

from collections.abc import Sequence

from leapmodel.drafts.history import History
from leapmodel.drafts.interface import Context, Episode
from leapmodel.drafts.speculator import Speculator


class BackoffDraft:
    """Proposes what followed the longest context seen before, by n-grams with back-off.

    See :func:`~leapmodel.drafts.successors.blended` for the back-off and
    :mod:`~leapmodel.drafts.arguments` for the arguments.

    Parameters
    ----------
    order : int, default 3
        Longest context of action shapes (tools and keys); contexts of whole actions reach two
        further. Fixed by reason: a trace of a few thousand steps seldom repeats a longer one.

    Examples
    --------
    >>> draft = BackoffDraft()
    >>> steps = (Context(starts_segment=True), Context())
    >>> draft.finish_task([Episode(steps, ("ls({})", "<respond/>"))])
    >>> draft.start_task()
    >>> draft.propose(steps[0])
    'ls({})'
    >>> draft.observe("ls({})")
    >>> draft.propose(steps[1])
    '<respond/>'
    """

    name = "backoff"

    def __init__(self, *, order: int = 3) -> None:
        self.settings: dict[str, object] = {"order": order}
        self._speculator = Speculator(order)
        self._history = History()

    def start_task(self) -> None:
        """Begin a run of a task."""
        self._history = History()

    def propose(self, context: Context) -> str | None:
        """Return the likeliest next action; None before anything was learned."""
        self._history.enter(context)
        best = self._speculator.best(self._speculator.chances(self._history), self._history)
        return None if best is None else best.action

    def observe(self, action: str | None) -> None:
        """Take in the committed action."""
        self._history.commit(action)

    def finish_task(self, episodes: Sequence[Episode]) -> None:
        """Count what followed what in the finished task."""
        self._speculator.learn(episodes)
