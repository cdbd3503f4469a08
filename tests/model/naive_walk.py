"""A third implementation: App. H's random walk, one step of one segment at a time."""

from __future__ import annotations

import random
from collections.abc import Sequence


def walk_once(
    segments: Sequence[Sequence[float]],
    acceptances: Sequence[float],
    depth: int,
    rng: random.Random,
) -> tuple[int, float]:
    """Return (rounds, seconds waited) of one walk over the segments' generation times."""
    rounds, wait_s = 0, 0.0
    for times in segments:
        at = 0
        while at < len(times):
            cap = min(depth, len(times) - at - 1)
            hits = 0
            while hits < cap and rng.random() < acceptances[hits]:
                hits += 1
            rounds += 1
            wait_s += max(times[at : at + hits + 1])
            at += hits + 1
    return rounds, wait_s
