"""Tell the format of a log from the beginning of its files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from leapmodel.errors import DataError
from leapmodel.importers.assembly import find_files
from leapmodel.importers.records import Importer, Sample
from leapmodel.jsonlines import damage_named, open_binary

HEAD_BYTES = 2**16
_MOST_TRIED = 20
"""In a folder: a log of several thousand tasks shows its format in its first files."""


def sample_of(path: Path) -> Sample:
    """Read the beginning of a file.

    Parameters
    ----------
    path : Path
        The file; gzip is read as it is.

    Raises
    ------
    DataError
        If it can't be read.
    """
    with open_binary(path) as stream, damage_named(path):
        raw: bytes = stream.read(HEAD_BYTES + 1)
    head = raw[:HEAD_BYTES].removeprefix(b"\xef\xbb\xbf")
    first_line, newline, _ = head.lstrip().partition(b"\n")
    candidates = [first_line] if newline else []
    if len(raw) <= HEAD_BYTES:
        candidates.append(head)
    for text in candidates:
        if text.lstrip()[:1] in {b"{", b"["}:
            try:
                return Sample(path, head, json.loads(text))
            except (ValueError, RecursionError):
                continue
    return Sample(path, head)


def choose_format(
    paths: Sequence[str | Path], formats: Iterable[Importer]
) -> tuple[Importer, list[Path]]:
    """Return the one format that recognises the files, and those files.

    Of a folder the first files in natural order are asked about; those of the format are its log.

    Parameters
    ----------
    paths : sequence of paths
        Files or folders, as for an import.
    formats : iterable of Importer
        Those to ask.

    Raises
    ------
    DataError
        If no format recognises a file, several do, or two files are of different formats.
    """
    asked = [entry for entry in formats if entry.recognises is not None]
    suffixes = sorted({suffix for entry in asked for suffix in entry.suffixes})
    chosen: Importer | None = None
    seen_in: Path | None = None
    for path in map(Path, paths):
        found = _of_path(path, asked, suffixes)
        if chosen is not None and found is not chosen:
            raise DataError(
                path,
                expected=f"{chosen.name}, as {seen_in} is",
                found=f"{found.name} (import one format at a time)",
            )
        chosen, seen_in = found, path
    assert chosen is not None  # the caller refuses an empty list of paths
    return chosen, find_files(paths, chosen.suffixes)


def _of_path(path: Path, formats: Sequence[Importer], suffixes: Sequence[str]) -> Importer:
    is_folder = path.is_dir()
    files = find_files([path], suffixes)
    for file in files[:_MOST_TRIED]:
        names = [entry for entry in formats if _recognises(entry, sample_of(file))]
        if len(names) == 1:
            return names[0]
        if names or not is_folder:
            raise _unclear(file, [entry.name for entry in names], formats)
    raise _unclear(path, [], formats)


def _recognises(entry: Importer, sample: Sample) -> bool:
    assert entry.recognises is not None
    return entry.recognises(sample)


def _unclear(path: Path, names: Sequence[str], formats: Sequence[Importer]) -> DataError:
    if names:
        return DataError(
            path,
            expected="a log that one format recognises; say which, as in "
            f"'leapmodel import {names[0]} {path.name}'",
            found=f"one that {' and '.join(names)} recognise",
        )
    known = ", ".join(entry.name for entry in formats)
    return DataError(
        path,
        expected=f"a log in one of the formats {known}; say which it is, as in 'leapmodel import "
        f"FORMAT {path.name}', or for any table 'leapmodel import table {path.name} --column "
        "gen_s=YOURS'",
        found="one that none recognises",
    )
