"""Read JSON Lines one record at a time, and say exactly which line is not one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from leapmodel.errors import DataError, shown

MAX_LINE_BYTES = 64 * 2**20
"""A longer line is refused before it is read whole, so that no file can exhaust the memory."""


def iter_json_lines(
    path: str | Path, *, on_bad_line: Callable[[DataError], None] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line number, record)`` for every non-blank line of a UTF-8 JSON Lines file.

    Parameters
    ----------
    path : str or Path
        The file. It is streamed: one line is in memory at a time.
    on_bad_line : callable, optional
        Called with the error of a line that is not a JSON object; reading goes on after it.
        Without it the error is raised.

    Yields
    ------
    tuple of (int, dict)
        The 1-based line number and the object on that line.

    Raises
    ------
    DataError
        If the file can't be opened or is empty, or for the first line that is not UTF-8, not JSON
        or not an object, or is longer than :data:`MAX_LINE_BYTES`.
    """

    def refuse(error: DataError) -> None:
        if on_bad_line is None:
            raise error
        on_bad_line(error)

    seen_any = False
    with open_binary(path) as stream:
        number = 0
        while raw := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(raw) > MAX_LINE_BYTES:
                refuse(
                    DataError(
                        path,
                        line=number,
                        expected=f"lines of at most {MAX_LINE_BYTES // 2**20} MB",
                        found="a longer one",
                    )
                )
                while raw and not raw.endswith(b"\n"):  # skip to the next line, a piece at a time
                    raw = stream.readline(MAX_LINE_BYTES + 1)
                continue
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if not raw.strip():
                continue
            seen_any = True
            try:
                yield number, _parse_object(path, number, raw)
            except DataError as error:
                refuse(error)
    if not seen_any:
        raise DataError(path, expected="at least one JSON record", found="an empty file")


def open_binary(path: str | Path) -> Any:
    """Open a file for reading bytes; a person's mistake in the path becomes a one-line error."""
    try:
        return open(path, "rb")
    except IsADirectoryError:
        raise DataError(path, expected="a file", found="a folder") from None
    except OSError as error:
        raise DataError(
            path, expected="a readable file", found=(error.strerror or str(error)).lower()
        ) from None


def _parse_object(path: str | Path, number: int, raw: bytes) -> dict[str, Any]:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        raise DataError(
            path,
            line=number,
            expected="UTF-8 text",
            found=f"byte 0x{byte:02x} at position {error.start + 1}",
        ) from None
    if "\0" in text:
        raise DataError(path, line=number, expected="JSON text", found="binary data")
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        complete = raw.endswith(b"\n")
        found = f"{error.msg} at position {error.pos + 1}" + (
            "" if complete else " (the file ends inside this line)"
        )
        raise DataError(path, line=number, expected="a JSON object", found=found) from None
    except (RecursionError, ValueError) as error:
        raise DataError(
            path, line=number, expected="a JSON object", found=str(error).split(";")[0]
        ) from None
    if not isinstance(record, dict):
        raise DataError(path, line=number, expected="a JSON object", found=shown(record))
    return record
