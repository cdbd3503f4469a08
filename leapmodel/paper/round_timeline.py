"""One speculative round, second by second, beside the same steps taken in sequence (Fig. 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd


class Span(NamedTuple):
    """Something that takes time.

    Attributes
    ----------
    lane : str
        ``"sequential"``, ``"speculative"`` or ``"verify 1"``, ``"verify 2"``, …
    what : str
        ``"target"``, ``"draft"``, ``"tool"`` or ``"unused"``, a verification past the
        mismatch, which ends with the round if not before.
    label : str
        The action or the context it is about.
    start, end : float
        Seconds.
    """

    lane: str
    what: str
    label: str
    start: float
    end: float


def sequential_steps(gen_s: Sequence[float], tool_s: float) -> list[Span]:
    """Return target generations, each followed by its tool.

    Examples
    --------
    >>> [(span.what, span.end) for span in sequential_steps([1.0, 2.0], tool_s=0.5)]
    [('target', 1.0), ('tool', 1.5), ('target', 3.5), ('tool', 4.0)]
    """
    spans, now = [], 0.0
    for i, seconds in enumerate(gen_s, start=1):
        spans.append(Span("sequential", "target", f"a{i}", now, now + seconds))
        now += seconds
        spans.append(Span("sequential", "tool", f"a{i}", now, now + tool_s))
        now += tool_s
    return spans


def speculative_round(
    gen_s: Sequence[float], *, accepted: int, draft_s: float, tool_s: float
) -> list[Span]:
    """Simulate a round that proposes for all but the last of some steps.

    Proposals are made one after another, each with its tool; then the target verifies all
    contexts at once. Answers are used in order: at the first mismatch what is still running is
    cancelled, and the target's own action, a correction or a bonus, runs its tool.

    Parameters
    ----------
    gen_s : sequence of float, shape (depth + 1,)
        Seconds of the target on each context.
    accepted : int
        Leading proposals that match, A.
    draft_s, tool_s : float
        Seconds of a draft call and of a tool.

    Returns
    -------
    list of Span

    Examples
    --------
    A rejected first proposal: the round ends with the first verification.

    >>> spans = speculative_round([1.0, 2.0], accepted=0, draft_s=0.25, tool_s=0.0)
    >>> [(span.lane, span.what, span.end) for span in spans if span.lane.startswith("verify")]
    [('verify 1', 'target', 1.25), ('verify 2', 'unused', 1.25)]
    >>> spans = speculative_round([1.0, 2.0], accepted=1, draft_s=0.25, tool_s=0.0)
    >>> max(span.end for span in spans)  # waits for the slowest
    2.25
    """
    depth = len(gen_s) - 1
    if not 0 <= accepted <= depth:
        raise ValueError(f"accepted must lie between 0 and {depth}, found {accepted}")
    spans, now = [], 0.0
    for j in range(1, depth + 1):
        spans.append(Span("speculative", "draft", f"â{j}", now, now + draft_s))
        now += draft_s
        spans.append(Span("speculative", "tool", f"â{j}", now, now + tool_s))
        now += tool_s
    decided = now + max(gen_s[: accepted + 1])
    for i, seconds in enumerate(gen_s):
        used = i <= accepted
        end = now + seconds if used else min(now + seconds, decided)
        proposed = f"a{i + 1} = â{i + 1}" if i < accepted else f"a{i + 1} ≠ â{i + 1}"
        label = "bonus" if i == depth else proposed
        spans.append(Span(f"verify {i + 1}", "target" if used else "unused", label, now, end))
    spans.append(Span("speculative", "tool", f"a{accepted + 1}", decided, decided + tool_s))
    return spans


def as_frame(spans: Sequence[Span]) -> pd.DataFrame:
    """Return the spans as a table."""
    return pd.DataFrame(spans, columns=list(Span._fields))
