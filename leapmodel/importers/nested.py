"""Read the records that stand in a list inside one big JSON document, one in memory at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ijson

from leapmodel.errors import DataError
from leapmodel.importers.fields import Place
from leapmodel.jsonlines import damage_named, encoding_of, open_binary

LARGEST_WHOLE = 24 * 2**20
"""Up to this size a document is read at once, which is several times faster than streaming it."""


class Document:
    """One JSON object in a file, read whole if it is small and streamed if it is not.

    Parameters
    ----------
    path : Path
        The file; gzip is read as it is.

    Raises
    ------
    DataError
        If the file can't be read, or is small and not one JSON object.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._whole: dict[str, Any] | None = None
        with open_binary(path) as stream, damage_named(path):
            raw = stream.read(LARGEST_WHOLE + 1)
        if (other := encoding_of(raw)) is not None:
            raise DataError(path, expected="JSON", found=other)
        if len(raw) <= LARGEST_WHOLE:
            value = parse(raw, path)
            if not isinstance(value, dict):
                raise Place(path).wrong(value, "document", "a JSON object")
            self._whole = value

    def field(self, *names: str) -> Any:
        """Return the value at a path of keys, None if there is none."""
        if self._whole is None:
            return next(self._stream(".".join(names)), None)
        value: Any = self._whole
        for name in names:
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return value

    def records(self, name: str) -> Iterator[tuple[Place, dict[str, Any]]]:
        """Yield ``(place, object)`` for each entry of the list under a key.

        Raises
        ------
        DataError
            If there is no such list, it is empty, or an entry is not an object.
        """
        place = Place(self.path)
        if self._whole is not None:
            items: Iterator[Any] = iter(place.items(self._whole.get(name), name))
        else:
            items = self._stream(f"{name}.item")
        number = 0
        for item in items:
            number += 1
            yield Place(self.path, row=number), place.mapping(item, f"{name}[{number - 1}]")
        if not number:
            raise place.error(name, "a list of at least one entry", "none")

    def _stream(self, prefix: str) -> Iterator[Any]:
        with open_binary(self.path) as stream, damage_named(self.path):
            try:
                yield from ijson.items(stream, prefix, use_float=True)
            except (ijson.JSONError, UnicodeDecodeError) as error:
                reason = str(error).split("\n")[0].strip()
                raise DataError(self.path, expected="JSON", found=reason) from None


def parse(raw: bytes, path: Path, part: str | None = None) -> Any:
    """Return the JSON value that bytes spell.

    Parameters
    ----------
    raw : bytes
        UTF-8.
    path : Path
        For messages.
    part : str, optional
        The part of the file they are, for messages.

    Raises
    ------
    DataError
        If they spell none.
    """
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        found = f"byte 0x{raw[error.start]:02x} at position {error.start + 1}"
        raise DataError(path, column=part, expected="UTF-8 text", found=found) from None
    except json.JSONDecodeError as error:
        found = f"{error.msg} at position {error.pos + 1}" if raw.strip() else "an empty file"
        raise DataError(
            path, line=error.lineno, column=part, expected="JSON", found=found
        ) from None
    except (RecursionError, ValueError) as error:
        raise DataError(
            path, column=part, expected="JSON", found=str(error).split(";")[0]
        ) from None
