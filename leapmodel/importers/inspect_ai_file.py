"""Read the samples of an inspect_ai log one at a time, from a zip (``.eval``) or from JSON."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leapmodel.errors import DataError
from leapmodel.importers.assembly import natural_order
from leapmodel.importers.documents import MAX_DOCUMENT_BYTES
from leapmodel.importers.fields import Place
from leapmodel.importers.nested import Document, parse
from leapmodel.jsonlines import damage_named, open_binary

_HEADERS = ("header.json", "_journal/start.json")


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sample of a log.

    Attributes
    ----------
    place : Place
        Where it stands.
    fallback : str
        How to name it if its id can't be read.
    sample : dict
        The sample itself.
    about : dict
        What the log says about the evaluation: ``task``, ``model``, …
    epochs : int or None
        How often each sample was run.
    """

    place: Place
    fallback: str
    sample: dict[str, Any]
    about: dict[str, Any]
    epochs: int | None


def read_samples(path: Path) -> Iterator[Sampled]:
    """Yield the samples of a log in natural order.

    Raises
    ------
    DataError
        If the file is no log, is damaged, or holds no samples.
    """
    with open_binary(path) as stream, damage_named(path):
        is_zip = stream.read(4) == b"PK\x03\x04"
    if is_zip:
        yield from _of_zip(path)
        return
    document = Document(path)
    about, epochs = _about(document.field("eval"), Place(path))
    for place, sample in document.records("samples"):
        yield Sampled(place, f"({path.name} sample {place.row})", sample, about, epochs)


# What zipfile raises beside its own error: RuntimeError where a member is encrypted,
# NotImplementedError where Python lacks its compression, ValueError where a name is not the UTF-8
# that it says or a place lies before the file's start, and what the decompressors and struct say.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    RuntimeError,
    NotImplementedError,
    ValueError,
    OverflowError,
)


def _of_zip(path: Path) -> Iterator[Sampled]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            header = next((name for name in _HEADERS if name in names), None)
            if header is None:
                expected = f"an inspect_ai log, with {' or '.join(_HEADERS)} in it"
                raise DataError(path, expected=expected, found="another zip archive")
            start = Place(path).mapping(_member(archive, header, path), header)
            about, epochs = _about(start.get("eval"), Place(path))
            members = [n for n in names if n.startswith("samples/") and n.endswith(".json")]
            if not members:
                expected = "samples in the log"
                found = f"none (its status is {start.get('status', 'unknown')!r})"
                raise DataError(path, expected=expected, found=found)
            for row, name in enumerate(sorted(members, key=natural_order), start=1):
                place = Place(path, row=row)
                sample = place.mapping(_member(archive, name, path), name)
                yield Sampled(place, f"({path.name} {name})", sample, about, epochs)
    except _DAMAGE as error:
        reason = str(error).split("\n")[0][:200]  # it may quote all that stands for a name
        raise DataError(path, expected="a whole .eval archive", found=reason) from None
    except OSError as error:
        found = (error.strerror or str(error)).lower()
        raise DataError(path, expected="a readable file", found=found) from None


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> Any:
    if archive.getinfo(name).file_size > MAX_DOCUMENT_BYTES:
        limit = MAX_DOCUMENT_BYTES // 2**20
        raise DataError(path, column=name, expected=f"at most {limit} MB", found="more")
    with archive.open(name) as stream:
        raw = stream.read(MAX_DOCUMENT_BYTES + 1)  # the size in the archive's directory may lie
    if len(raw) > MAX_DOCUMENT_BYTES:
        limit = MAX_DOCUMENT_BYTES // 2**20
        raise DataError(path, column=name, expected=f"at most {limit} MB", found="more")
    return parse(raw, path, name)


def _about(value: object, place: Place) -> tuple[dict[str, Any], int | None]:
    about = place.mapping(value, "eval")
    config = about.get("config")
    epochs = config.get("epochs") if isinstance(config, dict) else None
    return about, epochs if isinstance(epochs, int) else None
