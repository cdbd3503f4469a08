"""Columns of numbers that grow while a log is read, and hold numbers instead of objects."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np


class NumberColumn:
    """Numbers, some of them missing: 8 bytes each, and none while all are the same.

    Logs lack one field or another, and then it is missing, or 0, in every step.

    Examples
    --------
    >>> column = NumberColumn()
    >>> column.extend([None, None])
    >>> column.is_missing, column.n_bytes
    (True, 0)
    >>> column.extend_by(np.array([1.0, np.nan]))
    >>> column.append(2)
    >>> column.to_numpy(), len(column)
    (array([nan, nan,  1., nan,  2.]), 5)
    """

    def __init__(self) -> None:
        self._values = array("d")
        self._same = math.nan  # what all numbers before those in the array are
        self._n_same = 0

    def __len__(self) -> int:
        return self._n_same + len(self._values)

    @property
    def is_missing(self) -> bool:
        """Whether there is no number at all."""
        return not self._values and math.isnan(self._same)

    @property
    def n_bytes(self) -> int:
        """The memory of the numbers."""
        return len(self._values) * self._values.itemsize

    def append(self, value: float | None) -> None:
        """Add a number, or None for a missing one."""
        self.extend([value])

    def extend(self, values: Sequence[float | None]) -> None:
        """Add numbers, None for a missing one."""
        if not self._values:
            first = values[0] if values else None
            if values.count(first) == len(values) and self._is_same(first, len(values)):
                return
        if values.count(None):
            values = [math.nan if value is None else value for value in values]
        self._values.extend(values)  # type: ignore[arg-type]

    def extend_by(self, values: np.ndarray) -> None:
        """Add an array of float64, NaN for a missing one."""
        if not self._values:
            first = values[0] if len(values) else math.nan
            is_first = np.isnan(values) if math.isnan(first) else values == first
            if is_first.all() and self._is_same(float(first), len(values)):
                return
        self._values.frombytes(values.tobytes())

    def at(self, rows: np.ndarray) -> list[float | None]:
        """Return the numbers of some rows, None for the missing ones."""
        if not self._values:
            same = None if math.isnan(self._same) else self._same
            return [same] * len(rows)
        values = self.to_numpy()[rows]
        listed: list[float | None] = values.tolist()
        if not np.isnan(values).any():
            return listed
        return [None if value != value else value for value in listed]

    def to_numpy(self) -> np.ndarray:
        """Return the numbers as float64, NaN for the missing; the column can't grow meanwhile."""
        # An array of zeros takes no memory either, until somebody writes to it.
        same = np.full(self._n_same, self._same) if self._same else np.zeros(self._n_same)
        if not self._values:
            return same
        known = np.frombuffer(self._values)
        return np.concatenate((same, known)) if self._n_same else known

    def _is_same(self, value: float | None, times: int) -> bool:
        """Count numbers that are the same as all before, and return whether they are."""
        number = math.nan if value is None else value
        if not self._n_same:
            self._same = number
        elif number != self._same and not (math.isnan(number) and math.isnan(self._same)):
            return False
        self._n_same += times
        return True
