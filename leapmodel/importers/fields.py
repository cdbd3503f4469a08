"""Read one field of a log record, or say where it stands, what was expected and what was found."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from leapmodel.errors import DataError, shown

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LARGEST_COUNT = 2**53  # beyond it a float64 column could not hold the count exactly


class Place(NamedTuple):
    """A record's place in a log, and the checks of what its fields hold.

    A tuple, because there is one of every record of a log.

    Attributes
    ----------
    source : str or Path
        The file.
    line : int, optional
        1-based line of the record.
    row : int, optional
        1-based place of the record in a JSON array.

    Examples
    --------
    >>> place = Place("log.jsonl", 3)
    >>> place.seconds(1.5, "latency")
    1.5
    >>> place.microseconds("1970-01-01T00:00:01.5Z", "timestamp")
    1500000
    >>> place.count("12", "tokens")
    Traceback (most recent call last):
    leapmodel.errors.DataError: log.jsonl: line 3, column tokens: expected a whole number >= 0, found the text '12'
    """  # noqa: E501  (a doctest's message can't be broken)

    source: str | Path
    line: int | None = None
    row: int | None = None

    def error(self, field: str | None, expected: str, found: str) -> DataError:
        """Build the error of a field of this record."""
        return DataError(
            self.source,
            line=self.line,
            row=self.row,
            column=field,
            expected=expected,
            found=found,
        )

    def wrong(self, value: object, field: str, expected: str) -> DataError:
        """Build the error of a value that is not what was expected."""
        return self.error(field, expected, _described(value))

    def text(self, value: object, field: str) -> str:
        """Return a non-empty text that a UTF-8 file can hold."""
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(value, field, "text")
        if value.isascii():
            return value
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:  # JSON may spell half a character ("\ud800")
            raise self.error(field, "text of whole characters", shown(value)) from None
        return value

    def items(self, value: object, field: str) -> list[Any]:
        """Return a list."""
        if not isinstance(value, list):
            raise self.wrong(value, field, "a list")
        return value

    def mapping(self, value: object, field: str) -> dict[str, Any]:
        """Return a JSON object."""
        if not isinstance(value, dict):
            raise self.wrong(value, field, "an object")
        return value

    def seconds(self, value: object, field: str) -> float:
        """Return a finite number of seconds above 0."""
        number = _as_float(value)
        if number is None or not math.isfinite(number) or number <= 0:
            raise self.wrong(value, field, "a number > 0")
        return number

    def count(self, value: object, field: str) -> int:  # type: ignore[override]  # not a tuple's
        """Return a whole number of at least 0."""
        if type(value) is int and 0 <= value <= _LARGEST_COUNT:  # nearly always
            return value
        number = _as_float(value)
        if number is None or not 0 <= number <= _LARGEST_COUNT or number != int(number):
            raise self.wrong(value, field, "a whole number >= 0")
        return int(number)

    def microseconds(self, value: object, field: str) -> int:
        """Return an ISO 8601 time as whole microseconds since 1970 (UTC).

        Whole microseconds, because differences of epoch seconds as floats are off in the
        seventh digit.
        """
        expected = "a time such as 2026-01-31T12:00:00.000Z"
        if not isinstance(value, str):
            raise self.wrong(value, field, expected)
        try:
            time = datetime.fromisoformat(value)
            if time.tzinfo is None:
                raise self.error(field, expected + " with its zone", shown(value))
            return (time - _EPOCH) // _MICROSECOND
        except (ValueError, OverflowError):
            raise self.wrong(value, field, expected) from None


def stem_of(path: Path) -> str:
    """Return a file's name without its suffix; that of a compressed file is not its own.

    Examples
    --------
    >>> stem_of(Path("logs/task_1.jsonl")), stem_of(Path("task_1.jsonl.gz"))
    ('task_1', 'task_1')
    """
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def _as_float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer too large for a float
        return math.inf


def _described(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return f"the text {shown(value)}"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return shown(value)
