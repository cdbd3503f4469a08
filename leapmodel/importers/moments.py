"""Read a moment whichever way a log writes it: seconds to nanoseconds since 1970, or ISO 8601."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

from leapmodel.errors import shown
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger

NO_ZONE = "times without a zone, taken as UTC"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_WITHOUT_ZONE = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_DATE = re.compile("[0-9]{4}-")  # so does no number begin
# The years 1973 to 5138 in each unit: the ranges do not meet, so the size of a number tells it.
_UNITS = ((1e17, 1e-3), (1e14, 1.0), (1e11, 1e3), (-math.inf, 1e6))
_NANOSECONDS = 10**18  # up to ten times this, the years 2001 to 2286: nearly all there are
_LATEST = 10**17  # microseconds; beyond the year 5000 a number is no time
_EXPECTED = "a time (ISO 8601, or a number since 1970)"


def moment(value: object, place: Place, field: str, ledger: Ledger) -> int | None:
    """Return a moment as whole microseconds since 1970, or None where the log has none.

    Parameters
    ----------
    value : object
        A number of seconds, milliseconds, microseconds or nanoseconds (its size tells which), such
        a number as text, or an ISO 8601 text. None, 0 and "" mean that there is no time.
    place : Place
        Where the value stands, for messages.
    field : str
        Its name there.
    ledger : Ledger
        Where times without a zone are counted; they are taken as UTC.

    Raises
    ------
    DataError
        If it is something else.

    Examples
    --------
    >>> place, ledger = Place("log.json"), Ledger()
    >>> [moment(v, place, "t", ledger) for v in (1.7e9, 1.7e12, 1.7e15, "1700000000000000000")]
    [1700000000000000, 1700000000000000, 1700000000000000, 1700000000000000]
    >>> moment("2023-11-14T22:13:20.5", place, "t", ledger), moment(0, place, "t", ledger)
    (1700000000500000, None)
    >>> ledger.warnings()
    ['times without a zone, taken as UTC: 1 (first in log.json)']
    """
    if value is None or value == "" or (value == 0 and not isinstance(value, bool)):
        return None
    if isinstance(value, str):
        if len(value) == 19 and value.isdecimal() and value.isascii():  # OTLP's nanoseconds
            return int(value) // 1000
        text = value.strip()
        number = None if _DATE.match(text) else _as_number(text)
        if number is None:
            return _iso(text, value, place, field, ledger)
        return moment(number, place, field, ledger)
    if type(value) is int and _NANOSECONDS <= value < 10 * _NANOSECONDS:
        return value // 1000
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise place.wrong(value, field, _EXPECTED)
    if not 0 <= value <= _LATEST * 1000:  # so neither infinite nor too large for a float
        raise place.wrong(value, field, _EXPECTED)
    microseconds = next(unit for least, unit in _UNITS if value >= least)
    # Whole numbers stay whole: a float holds nanoseconds since 1970 only to 256 ns.
    result = value // 1000 if microseconds == 1e-3 else round(value * microseconds)
    if result > _LATEST:
        raise place.error(field, _EXPECTED, shown(value))
    return int(result)


def _as_number(text: str) -> int | float | None:
    if len(text) > 32 or not text.isascii() or not text[:1].isdigit():
        return None
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        return None


def _iso(text: str, value: str, place: Place, field: str, ledger: Ledger) -> int:
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            ledger.count(NO_ZONE, str(getattr(place.source, "name", place.source)))
            return (time - _EPOCH_WITHOUT_ZONE) // _MICROSECOND
        return (time - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        raise place.wrong(value, field, _EXPECTED) from None
