"""Read the rows of a CSV, Parquet or JSON Lines table, a batch in memory at a time."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from leapmodel.errors import DataError, shown
from leapmodel.importers.documents import iter_documents
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.jsonlines import damage_named, encoding_of, open_binary

_BATCH = 20_000
_FIRST_RECORDS = 100
_LONGEST_CELL = 2**24
_PARQUET = b"PAR1"


class Row(NamedTuple):
    """One row.

    Attributes
    ----------
    place : Place
        Where it stands.
    cells : dict
        What it holds by field; an empty cell is None or absent.
    """

    place: Place
    cells: dict[str, Any]


def number_in(value: object) -> object:
    """Return the number that a cell of a CSV file spells, or the value as it is."""
    if isinstance(value, str) and len(value) <= 64:
        try:
            return int(value) if value.strip().lstrip("+-").isdigit() else float(value)
        except ValueError:
            return value
    return value


def header_of(path: Path) -> list[str]:
    """Return the names of a table's columns; of JSON Lines, those of the first records.

    Raises
    ------
    DataError
        If the file is no table.
    """
    head = _head(path)
    if head.startswith(_PARQUET):
        with _parquet(path) as file:
            return list(file.schema_arrow.names)
    if _is_json(head):
        names: dict[str, None] = {}
        for _, record in islice(_records(path, Ledger(lenient=True)), _FIRST_RECORDS):
            names.update(dict.fromkeys(record))
        return list(names)
    with _csv(path, head) as (_, header):
        return header


def read_rows(path: Path, columns: Mapping[str, str], ledger: Ledger) -> Iterator[Row]:
    """Yield the rows of a table.

    Parameters
    ----------
    path : Path
        The file; its content tells the format.
    columns : mapping of str to str
        The columns to read, by the field that each holds.
    ledger : Ledger
        Where damaged lines of JSON are noted in lenient use.

    Raises
    ------
    DataError
        If the file can't be read, or has no rows.
    """
    head = _head(path)
    number = 0
    if head.startswith(_PARQUET):
        rows = _of_parquet(path, columns)
    elif _is_json(head):
        rows = _of_json(path, columns, ledger)
    else:
        rows = _of_csv(path, head, columns)
    for row in rows:
        number += 1
        yield row
    if not number:
        raise DataError(path, expected="at least one row", found="none")


def _head(path: Path) -> bytes:
    with open_binary(path) as stream, damage_named(path):
        head: bytes = stream.read(2**16)
    other = None if head.startswith(_PARQUET) else encoding_of(head)
    if other is not None:
        raise DataError(path, expected="CSV, Parquet or JSON Lines", found=other)
    if not head.strip():
        raise DataError(path, expected="CSV, Parquet or JSON Lines", found="an empty file")
    return head.removeprefix(b"\xef\xbb\xbf")


def _is_json(head: bytes) -> bool:
    return head.lstrip()[:1] in {b"{", b"["}


def _records(path: Path, ledger: Ledger) -> Iterator[tuple[Place, dict[str, Any]]]:
    for place, record in iter_documents(path, ledger):
        if not ("leapmodel" in record and place.line == 1):  # a trace's own first line
            yield place, record


def _of_json(path: Path, columns: Mapping[str, str], ledger: Ledger) -> Iterator[Row]:
    wanted = list(columns.items())
    for place, record in _records(path, ledger):
        cells = {}
        for field, column in wanted:
            value = record.get(column)
            cells[field] = _cell(value) if type(value) is float else value
        yield Row(place, cells)


def _of_csv(path: Path, head: bytes, columns: Mapping[str, str]) -> Iterator[Row]:
    with _csv(path, head) as (reader, names):
        wanted = [(field, names.index(column)) for field, column in columns.items()]
        for cells in reader:
            if not cells:
                continue
            place = Place(path, line=reader.line_num)
            if len(cells) != len(names):
                # pandas would drop what is too much, and so put arguments in the wrong place.
                raise place.error(None, f"{len(names)} cells as in the header", str(len(cells)))
            yield Row(place, {field: cells[index] or None for field, index in wanted})


def _cell(value: Any) -> Any:
    """Return what a typed cell holds as a log would write it."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return value.isoformat() if isinstance(value, datetime) else value


@contextmanager
def _csv(path: Path, head: bytes) -> Iterator[tuple[Any, list[str]]]:
    """Open a CSV file for reading; yields the reader and the names in its header."""
    first = head.split(b"\n", 1)[0]
    separator = max((",", "\t", ";"), key=lambda mark: first.count(mark.encode()))
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    with open_binary(path) as stream, damage_named(path):
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        reader = csv.reader(text, delimiter=separator, strict=True)
        try:
            names = next(reader, [])
            if twice := [name for name, times in Counter(names).items() if times > 1]:
                raise DataError(path, expected="each column once", found=f"{shown(twice[0])} twice")
            yield reader, names
        except UnicodeDecodeError as error:
            found = f"byte 0x{error.object[error.start]:02x}"
            raise DataError(path, expected="UTF-8 text", found=found) from None
        except csv.Error as error:
            raise DataError(
                path, line=reader.line_num, expected="CSV", found=str(error).split("\n")[0]
            ) from None
        finally:
            text.detach()  # the stream is closed by whoever opened it


def _of_parquet(path: Path, columns: Mapping[str, str]) -> Iterator[Row]:
    import pyarrow as pa

    number = 0
    with _parquet(path) as file:
        try:
            for batch in file.iter_batches(batch_size=_BATCH, columns=list(columns.values())):
                cells = {
                    field: [_cell(value) for value in batch.column(column).to_pylist()]
                    for field, column in columns.items()
                }
                for values in zip(*cells.values(), strict=True):
                    number += 1
                    yield Row(Place(path, row=number), dict(zip(cells, values, strict=True)))
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = str(error).split("\n")[0]
            raise DataError(path, expected="a complete Parquet file", found=reason) from None


def _parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise DataError(path, expected="a complete Parquet file", found=reason) from None
