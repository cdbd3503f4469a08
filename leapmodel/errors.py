"""What can go wrong, said in one line each.

Every error a person can cause derives from :class:`LeapModelError`; its text says where, what was
expected and what was found, so the command line can print it as it is.
"""

from __future__ import annotations

from pathlib import Path


class LeapModelError(Exception):
    """Base class of every error this package raises on purpose."""


class DataError(LeapModelError):
    """A file or a table does not hold what its format promises.

    Parameters
    ----------
    source : str or Path
        The file (or the name of the table in memory).
    expected, found : str
        What the format asks for and what stands there instead.
    line, row : int, optional
        1-based place: a line of a text file, or a row of a binary one.
    column : str, optional
        The column or field.

    Examples
    --------
    >>> print(DataError("t.jsonl", expected="a number > 0", found="-1", line=3, column="gen_s"))
    t.jsonl: line 3, column gen_s: expected a number > 0, found -1
    """

    def __init__(
        self,
        source: str | Path,
        *,
        expected: str,
        found: str,
        line: int | None = None,
        row: int | None = None,
        column: str | None = None,
    ) -> None:
        self.source = str(source)
        self.expected = expected
        self.found = found
        self.line = line
        self.row = row
        self.column = column
        places = []
        if line is not None:
            places.append(f"line {line}")
        if row is not None:
            places.append(f"row {row}")
        if column is not None:
            places.append(f"column {column}")
        where = f"{self.source}: " + (", ".join(places) + ": " if places else "")
        super().__init__(one_line(f"{where}expected {expected}, found {found}"))


def one_line(text: str) -> str:
    r"""Return a text whose line breaks are shown as escapes, as an error is one line.

    Examples
    --------
    >>> one_line("a\nb")
    'a\\nb'
    """
    return "".join(f"\\x{ord(c):02x}" if c in "\v\f\r\x1b" else c for c in text).replace(
        "\n", "\\n"
    )


class UsageError(LeapModelError):
    """A question that can't be answered as it was put (an option, a value, a combination)."""


class LeapModelWarning(UserWarning):
    """An answer was given, but something about the data limits it."""


def shown(value: object, width: int = 60) -> str:
    """Return a short one-line rendering of a value for an error text.

    Examples
    --------
    >>> shown("x" * 80, width=10)
    "'xxxxxx..."
    """
    text = repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."


class EngineError(LeapModelError):
    """A model server did not answer as it should; what was recorded until then is kept."""
