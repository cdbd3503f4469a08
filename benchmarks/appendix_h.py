"""The paper's replay as one would first write it: plain Python, a step and a draw at a time."""

from __future__ import annotations

import random
from collections.abc import Sequence


def walk(
    gen_s: Sequence[float], lengths: Sequence[int], acceptance: float, depth: int, seed: int
) -> tuple[int, float]:
    """Return (rounds, seconds waited) of one random walk over all segments (App. H)."""
    draw = random.Random(seed).random
    rounds, wait_s, at = 0, 0.0, 0
    for length in lengths:
        end = at + length
        while at < end:
            cap = min(depth, end - at - 1)
            hits = 0
            while hits < cap and draw() < acceptance:
                hits += 1
            rounds += 1
            wait_s += max(gen_s[at : at + hits + 1])
            at += hits + 1
    return rounds, wait_s
