"""Small pictures made of characters, for tables in a terminal."""

from __future__ import annotations

import numpy as np

BLOCKS = " ▁▂▃▄▅▆▇█"


def histogram(values: np.ndarray, width: int = 40) -> str:
    """Return the distribution of positive values as a row of blocks, by the logarithm.

    Examples
    --------
    >>> histogram(np.array([1.0, 1.0, 10.0, 100.0]), width=3)
    '█▄▄'
    """
    low, high = float(values.min()), float(values.max())
    if high <= low:
        return BLOCKS[-1]
    counts, _ = np.histogram(np.log(values), bins=width)
    heights = np.ceil(counts / counts.max() * (len(BLOCKS) - 1)).astype(int)
    return "".join(BLOCKS[height] for height in heights)


def interval_line(
    low: float, point: float, high: float, *, axis: tuple[float, float], width: int = 25
) -> str:
    """Return an interval with its point and the place of 1 on an axis, as a line of characters.

    Examples
    --------
    >>> interval_line(1.25, 1.5, 1.75, axis=(0.75, 2.0), width=11)
    '··│·├─●─┤··'
    """
    first, last = axis
    cells = ["·"] * width

    def at(value: float) -> int:
        place = (value - first) / (last - first) * (width - 1)
        return int(np.clip(round(place), 0, width - 1))

    if first <= 1 <= last:
        cells[at(1.0)] = "│"
    if np.isfinite(low) and np.isfinite(high):
        cells[at(low) : at(high) + 1] = "─" * (at(high) - at(low) + 1)
        cells[at(low)], cells[at(high)] = "├", "┤"
    cells[at(point)] = "●"
    return "".join(cells)
