"""Read spans of time in any unit, and moments that must not be missing."""

from __future__ import annotations

import math

from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.moments import moment

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Units of time by the name a person types, each as its number in a second."""
_NO_CLOCK_S = 1e12


def required_moment(value: object, field: str, place: Place, ledger: Ledger) -> int:
    """Return a point in time as whole microseconds since 1970; see :func:`.moments.moment`.

    Raises
    ------
    DataError
        If it is missing or no time.
    """
    time = moment(value, place, field, ledger)
    if time is None:
        raise place.wrong(value, field, "a time such as 2026-01-31T12:00:00.000Z")
    return time


def seconds_of(value: object, field: str, place: Place, unit: str = "s") -> float:
    """Return a span of time, at least 0, in seconds.

    Raises
    ------
    DataError
        If the value is no number, or below 0.
    """
    expected = f"a number of {unit} >= 0"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise place.wrong(value, field, expected)
    try:
        seconds = value / PER_SECOND[unit]
    except OverflowError:  # an integer too large for a float
        raise place.wrong(value, field, expected) from None
    if not math.isfinite(seconds) or seconds < 0:
        raise place.wrong(value, field, expected)
    return seconds


def whole_microseconds(seconds: float) -> int:
    """Return a span of time in whole microseconds, however long a log says it was.

    What no clock has seen is cut: that a step took too long is said where all steps are checked.

    Examples
    --------
    >>> whole_microseconds(1.5), whole_microseconds(1e305) == whole_microseconds(1e300)
    (1500000, True)
    """
    return round(min(seconds, _NO_CLOCK_S) * 1e6)


def union_seconds(spans: list[tuple[int, int]]) -> float:
    """Return the seconds covered by spans of microseconds that may overlap.

    Examples
    --------
    >>> union_seconds([(0, 2_000_000), (1_000_000, 3_000_000), (5_000_000, 6_000_000)])
    4.0
    """
    covered = 0
    end_so_far: int | None = None
    for start, end in sorted(spans):
        begin = start if end_so_far is None else max(start, end_so_far)
        covered += max(0, end - begin)
        end_so_far = end if end_so_far is None else max(end, end_so_far)
    return covered / 1e6
