"""What is held out is not learned from: a draft is scored on tasks that taught it nothing."""

from __future__ import annotations

from collections.abc import Iterable

from leapmodel.errors import UsageError


def refuse_learned_tasks(
    learned_from: str, learned: Iterable[str], held_out: Iterable[str]
) -> None:
    """Refuse to score a draft on tasks that it learns from.

    Parameters
    ----------
    learned_from : str
        What error messages call the training tasks: ``the training trace has``.
    learned, held_out : iterable of str
        Names of tasks.

    Raises
    ------
    UsageError
        Saying how many are in both, and naming one.

    Examples
    --------
    >>> refuse_learned_tasks("the training trace has", ["a", "b"], ["c"])
    """
    both = set(learned) & set(held_out)
    if both:
        raise UsageError(f"{learned_from} {len(both)} of the held-out tasks, such as {min(both)}")
