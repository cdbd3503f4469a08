"""Read JSON: a file of one value, or JSON Lines record by record, saying which line is not one.

Files compressed with gzip are read as they are.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leapmodel.errors import DataError, shown

_BUFFER_BYTES = 2**18  # lines of agent logs are long: Python's 8 KB would be filled too often
MAX_LINE_BYTES = 64 * 2**20
"""A longer line is refused before it is read whole, so that no file can exhaust the memory."""


def iter_json_lines(
    path: str | Path,
    *,
    on_bad_line: Callable[[DataError], None] | None = None,
    truncated_ok: bool = False,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line number, record)`` for every non-blank line of a UTF-8 JSON Lines file.

    Parameters
    ----------
    path : str or Path
        The file. It is streamed: one line is in memory at a time.
    on_bad_line : callable, optional
        Called with the error of a line that is not a JSON object; reading goes on after it.
        Without it the error is raised.
    truncated_ok : bool, default False
        Leave out a last line that was never finished, as a killed writer leaves it; and take an
        empty file for one without records.

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
    with open_binary(path) as stream, damage_named(path):
        number = 0
        while raw := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if number == 1 and (other := encoding_of(raw)) is not None:
                raise DataError(path, expected="JSON Lines", found=other)
            if len(raw) > MAX_LINE_BYTES:
                seen_any = True
                refuse(
                    DataError(
                        path,
                        line=number,
                        expected=f"lines of at most {MAX_LINE_BYTES // 2**20} MB",
                        found="a longer one",
                    )
                )
                while raw and not raw.endswith(b"\n"):  # skip to the next line, a piece at a time
                    raw = stream.readline(2**16)
                continue
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if not raw or raw.isspace():
                continue
            hint = None if seen_any else _other_format(raw)
            seen_any = True
            try:
                yield number, parse_object(path, number, raw, hint)
            except DataError as error:
                if hint == _ARRAY:  # what follows may read like lines, but they are not
                    raise
                if truncated_ok and not raw.endswith(b"\n"):
                    return
                refuse(error)
    if not seen_any and not truncated_ok:
        raise DataError(path, expected="at least one JSON record", found="an empty file")


def open_binary(path: str | Path) -> Any:
    """Open a file for reading bytes; a person's mistake in the path becomes a one-line error."""
    try:
        stream = open(path, "rb", _BUFFER_BYTES)  # noqa: SIM115  (the caller closes it)
        if stream.read(2) == _GZIP:
            stream.close()
            return gzip.open(path, "rb")
        stream.seek(0)
        return stream
    except IsADirectoryError:
        raise DataError(path, expected="a file", found="a folder") from None
    except OSError as error:
        raise DataError(
            path, expected="a readable file", found=(error.strerror or str(error)).lower()
        ) from None


@contextmanager
def damage_named(path: str | Path) -> Iterator[None]:
    """Turn what goes wrong while bytes are read, such as a broken gzip file, into one line."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        found = str(error).lower() or "damaged gzip data"
        raise DataError(path, expected="whole gzip data", found=found) from None
    except OSError as error:
        raise DataError(
            path, expected="a readable file", found=(error.strerror or str(error)).lower()
        ) from None


def encoding_of(head: bytes) -> str | None:
    r"""Return in words what else a file's first bytes say it is, or None if it may be UTF-8 text.

    Examples
    --------
    >>> encoding_of(b"BZh9")
    'bzip2-compressed data (unpack it first: bunzip2)'
    """
    return next((found for magic, found in _MAGIC.items() if head.startswith(magic)), None)


_ARRAY = "a JSON array (write one object a line, as `jq -c '.[]'` does)"
_GZIP = b"\x1f\x8b"
_MAGIC = {
    b"\x28\xb5\x2f\xfd": "zstd-compressed data (unpack it first: unzstd)",
    b"BZh": "bzip2-compressed data (unpack it first: bunzip2)",
    b"\xfd7zXZ": "xz-compressed data (unpack it first: unxz)",
    b"PAR1": "a Parquet file (if it is a trace, it needs no import)",
    b"PK\x03\x04": "a zip archive (unpack it first: unzip)",
    b"\xff\xfe": "UTF-16 text (save it as UTF-8)",
    b"\xfe\xff": "UTF-16 text (save it as UTF-8)",
}


def _other_format(first_line: bytes) -> str | None:
    """Guess which other format a first line that is not JSON Lines belongs to, in words."""
    start = first_line.lstrip()
    if start.startswith(b"["):
        return _ARRAY
    if start.rstrip() == b"{":
        return "a JSON object over several lines (write one a line, as `jq -c .` does)"
    if not start.startswith(b"{") and any(mark in start for mark in (b",", b"\t", b";")):
        return "what looks like CSV (pandas.read_csv(...).to_parquet(...) converts it)"
    return None


def parse_object(
    path: str | Path, number: int, raw: bytes, hint: str | None = None
) -> dict[str, Any]:
    """Return the object on one line of a file.

    Parameters
    ----------
    path : str or Path
        The file, for messages.
    number : int
        The line's.
    raw : bytes
        The line.
    hint : str, optional
        What else the file seems to be, in words.

    Raises
    ------
    DataError
        If the line is not UTF-8, not JSON, or not an object.
    """
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
    try:
        # Nearly every line is an object from end to end. A closer look costs as much as parsing,
        # so only the others get one.
        record, end = _DECODER.raw_decode(text)
        if isinstance(record, dict) and text[end:] in _LINE_ENDS:
            return _without_half_pairs(record) if _HALF_PAIR.search(text) else record
    except (ValueError, RecursionError):
        pass
    return _explained(path, number, raw, text.rstrip("\r\n"), hint)


def _explained(
    path: str | Path, number: int, raw: bytes, text: str, hint: str | None
) -> dict[str, Any]:
    """Return the object that a line holds among blanks, or say why it holds none."""
    if "\0" in text:
        raise DataError(path, line=number, expected="JSON text", found="binary data")
    try:
        record = json.loads(text)
        if _HALF_PAIR.search(text):
            record = _without_half_pairs(record)
    except json.JSONDecodeError as error:
        complete = raw.endswith(b"\n")
        found = f"{error.msg} at position {error.pos + 1}" + (
            "" if complete else " (the file ends inside this line)"
        )
        found = hint or found
        raise DataError(path, line=number, expected="a JSON object", found=found) from None
    except (RecursionError, ValueError) as error:
        raise DataError(
            path, line=number, expected="a JSON object", found=str(error).split(";")[0]
        ) from None
    if not isinstance(record, dict):
        found = hint or shown(record)
        raise DataError(path, line=number, expected="a JSON object", found=found)
    return record


_DECODER = json.JSONDecoder()
_LINE_ENDS = ("\n", "", "\r\n")
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


def _without_half_pairs(value: Any) -> Any:
    """Keep half a surrogate pair as its escape: no UTF-8 file could hold it as a character."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_without_half_pairs(item) for item in value]
    if isinstance(value, dict):
        return {_without_half_pairs(k): _without_half_pairs(v) for k, v in value.items()}
    return value


def read_json(path: str | Path, *, kind: str, shape: str) -> Any:
    """Return what a file of one JSON value holds; a byte order mark before it is left out.

    Raises
    ------
    DataError
        If it can't be read, naming the ``kind`` of file that is expected, or is no JSON, naming the
        ``shape``.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(path, expected=kind, found=str(error.strerror)) from None
    except (ValueError, RecursionError):
        raise DataError(path, expected=shape, found="something else") from None
