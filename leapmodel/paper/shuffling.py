"""Shuffles that come out the same in every version of Python and numpy."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def shuffled(values: Sequence[T], rng: random.Random) -> list[T]:
    """Return the values in an order drawn from ``rng``.

    ``Random.shuffle`` may change from version to version, ``Random.random`` does not, and the files
    made with it have to come out the same anywhere.

    Examples
    --------
    >>> sorted(shuffled([3, 1, 2], random.Random(0)))
    [1, 2, 3]
    """
    keys = [rng.random() for _ in values]
    return [values[i] for i in sorted(range(len(values)), key=keys.__getitem__)]
