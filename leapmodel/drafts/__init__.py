"""Drafts that need no GPU, learned from the trace itself.

"How predictable is my agent?" A draft here learns from tasks that are over and predicts the next
one (:func:`prequential`), with copy rules for arguments; its predictions have the ordinary format,
so that prediction and choice treat them as any draft's. :func:`agreement` says how often they are
right, :func:`self_agreement` how often the target agrees with itself.

A draft is a :class:`DraftModel` in a module of its own; list it in :data:`DRAFTS`.
"""

from __future__ import annotations

from collections.abc import Callable

from leapmodel.drafts.ablation import Ablation, memory_ablation
from leapmodel.drafts.agreement import Agreement, agreement
from leapmodel.drafts.backoff import BackoffDraft
from leapmodel.drafts.interface import Context, DraftModel, Episode
from leapmodel.drafts.macro import MacroDraft
from leapmodel.drafts.memory import MEMORIES, MemoryDraft
from leapmodel.drafts.prequential import prequential, task_order
from leapmodel.drafts.self_agreement import SelfAgreement, self_agreement

__all__ = [
    "DRAFTS",
    "MEMORIES",
    "Ablation",
    "Agreement",
    "BackoffDraft",
    "Context",
    "DraftModel",
    "Episode",
    "MacroDraft",
    "MemoryDraft",
    "SelfAgreement",
    "agreement",
    "memory_ablation",
    "prequential",
    "self_agreement",
    "task_order",
]

DRAFTS: dict[str, Callable[[], DraftModel]] = {
    "backoff": BackoffDraft,
    "memory": MemoryDraft,
    "macro": MacroDraft,
}
"""Makers of a fresh draft by name."""
