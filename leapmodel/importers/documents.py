"""Read a file's JSON objects, whether it holds them line by line, in an array, or just one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ijson

from leapmodel.errors import DataError, shown
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.jsonlines import damage_named, encoding_of, iter_json_lines, open_binary

MAX_DOCUMENT_BYTES = 256 * 2**20
"""A single JSON object must fit in memory; larger logs come line by line or as an array."""


def iter_documents(
    path: Path,
    ledger: Ledger | None = None,
    *,
    on_bad_line: Callable[[DataError], None] | None = None,
) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield ``(place, object)`` for each JSON object of a file, one in memory at a time.

    Parameters
    ----------
    path : Path
        JSON Lines, a JSON array of objects, or one JSON object over any number of lines.
    ledger : Ledger, optional
        In lenient use a damaged line is dropped there and reading goes on.
    on_bad_line : callable, optional
        Called with the error of a damaged line instead; reading goes on.

    Raises
    ------
    DataError
        If the file is none of these.
    """
    with open_binary(path) as stream, damage_named(path):
        head = stream.read(2**16)
    if (other := encoding_of(head)) is not None:
        raise DataError(path, expected="JSON", found=other)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"["):
        yield from _of_array(path)
    elif start.startswith(b"{") and not _first_line_is_whole(path):
        yield Place(path), _whole(path)
    else:

        def drop(error: DataError) -> None:
            assert ledger is not None
            ledger.drop(f"({path.name} line {error.line})", error)

        if on_bad_line is None and ledger is not None and ledger.lenient:
            on_bad_line = drop
        for line, record in iter_json_lines(path, on_bad_line=on_bad_line):
            yield Place(path, line), record


def _first_line_is_whole(path: Path) -> bool:
    try:
        next(iter_json_lines(path), None)
    except DataError:
        return False
    return True


def _of_array(path: Path) -> Iterator[tuple[Place, dict[str, Any]]]:
    number = 0
    with open_binary(path) as stream, damage_named(path):
        try:
            for record in ijson.items(stream, "item", use_float=True):
                number += 1
                if not isinstance(record, dict):
                    raise DataError(path, row=number, expected="a JSON object", found=shown(record))
                yield Place(path, row=number), record
        except (ijson.JSONError, UnicodeDecodeError) as error:
            reason = str(error).split("\n")[0].strip()
            raise DataError(path, row=number + 1, expected="JSON", found=reason) from None
    if not number:
        raise DataError(path, expected="at least one JSON object", found="an empty array")


def _whole(path: Path) -> dict[str, Any]:
    with open_binary(path) as stream, damage_named(path):
        raw = stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(raw) > MAX_DOCUMENT_BYTES:
        limit = MAX_DOCUMENT_BYTES // 2**20
        raise DataError(
            path, expected=f"one JSON object of at most {limit} MB, or one a line", found="more"
        )
    try:
        document = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        found = f"byte 0x{raw[error.start]:02x} at position {error.start + 1}"
        raise DataError(path, expected="UTF-8 text", found=found) from None
    except json.JSONDecodeError as error:
        raise DataError(path, line=error.lineno, expected="JSON", found=error.msg) from None
    except (RecursionError, ValueError) as error:
        raise DataError(path, expected="JSON", found=str(error).split(";")[0]) from None
    if not isinstance(document, dict):
        raise DataError(path, expected="a JSON object", found=shown(document))
    return document
