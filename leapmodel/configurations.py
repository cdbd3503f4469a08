"""Which draft proposed in measured rounds, and how deep: what a speedup is a speedup of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leapmodel.rounds import KEY, Rounds


@dataclass(frozen=True, order=True)
class Configuration:
    """Which draft proposed, and how many actions a round at most."""

    draft: str
    depth: int

    def __str__(self) -> str:
        return f"{self.draft}, k = {self.depth}"


def configurations(rounds: Rounds) -> list[tuple[Configuration, Rounds]]:
    """Return the speculative rounds by draft and depth, whole runs of a task together.

    A run's draft is the one that proposed first in it, or the one the metadata names; its depth is
    the largest of its rounds.
    """
    frame = rounds.speculative.frame
    if not len(frame):
        return []
    by_run = frame.groupby(KEY, sort=False)
    draft = by_run["draft"].transform("first").astype(object)
    named = _draft_name(rounds.metadata.get("draft"))
    drafts = draft.where(draft.notna(), named)
    depths = by_run["depth"].transform("max")
    pairs = dict.fromkeys(zip(drafts, depths, strict=True))
    return [
        (
            Configuration(str(draft), int(depth)),
            rounds.speculative.where((drafts == draft) & (depths == depth)),
        )
        for draft, depth in pairs
    ]


def _draft_name(said: Any) -> str:
    if isinstance(said, Mapping):
        said = said.get("name") or said.get("model")
    return "draft" if said is None else str(said)
