"""Read the rows of a CSV, Parquet or JSON Lines table, a batch in memory at a time."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from leapmodel.errors import DataError, shown
from leapmodel.importers.documents import iter_documents
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.table_csv import Rest, Rows, Texts, read_blocks
from leapmodel.jsonlines import damage_named, encoding_of, open_binary

BATCH = 5_000
"""Rows in memory at a time: enough to share the work on a column, few enough for the caches."""
_FIRST_RECORDS = 100
_LONGEST_CELL = 2**24
_PARQUET = b"PAR1"
_WHOLE = Rest()
_Read: TypeAlias = tuple[int | None, int | None, Iterable[Any]]  # line, row, cells


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


class Batch(NamedTuple):
    """Consecutive rows, column by column.

    Attributes
    ----------
    path : Path
        The table.
    lines : sequence of int or None
        Of each row in its file.
    numbers : sequence of int or None
        Of each row in its table, where there are no lines.
    cells : dict
        What each row holds by field; an empty cell is None.
    """

    path: Path
    lines: Sequence[int | None]
    numbers: Sequence[int | None]
    cells: Mapping[str, Sequence[Any]]

    @property
    def n_rows(self) -> int:
        """How many rows these are; ``len`` would be that of a tuple."""
        return len(self.lines)

    def place(self, row: int) -> Place:
        """Return where a row stands."""
        return Place(self.path, self.lines[row], self.numbers[row])

    def row(self, row: int) -> Row:
        """Return a row by itself."""
        return Row(self.place(row), {field: cells[row] for field, cells in self.cells.items()})


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
        for _, record in islice(_records(path, _pass_over), _FIRST_RECORDS):
            names.update(dict.fromkeys(record))
        return list(names)
    with _csv(path, head) as (_, header):
        return header


def read_batches(
    path: Path, columns: Mapping[str, str], ledger: Ledger, n_rows: int = BATCH
) -> Iterator[Batch]:
    """Yield the rows of a table, some of them at a time.

    Parameters
    ----------
    path : Path
        The file; its content tells the format.
    columns : mapping of str to str
        The columns to read, by the field that each holds.
    ledger : Ledger
        Where damaged lines of JSON are noted in lenient use.
    n_rows : int, default 5000
        Rows of a batch; fewer where the table ends, or something is wrong with the next row.

    Raises
    ------
    DataError
        If the file can't be read, or has no rows.
    """
    head = _head(path)
    is_empty = True
    if head.startswith(_PARQUET):
        batches = _of_parquet(path, columns, n_rows)
    elif _is_json(head):
        batches = _of_json(path, columns, ledger, n_rows)
    else:
        batches = _of_csv(path, head, columns, n_rows)
    for batch in batches:
        is_empty = False
        yield batch
    if is_empty:
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


def _pass_over(_: DataError) -> None:
    """Leave it to whoever reads the rows."""


def _of_json(
    path: Path, columns: Mapping[str, str], ledger: Ledger, n_rows: int
) -> Iterator[Batch]:
    damaged: list[DataError] = []
    names = list(columns.values())
    records = _records(path, damaged.append if ledger.lenient else None)
    # Of a record only the wanted cells stay in memory until the batch is full.
    rows = ((place.line, place.row, map(record.get, names)) for place, record in records)
    for batch, error in _gathered(path, rows, list(columns), n_rows, damaged):
        if batch is not None:
            yield batch
        for line in damaged:  # only now: the rows before it come first
            ledger.drop(f"({path.name} line {line.line})", line)
        damaged.clear()
        if error is not None:
            raise error


def _records(
    path: Path, on_bad_line: Callable[[DataError], None] | None
) -> Iterator[tuple[Place, dict[str, Any]]]:
    for place, record in iter_documents(path, on_bad_line=on_bad_line):
        if not ("leapmodel" in record and place.line == 1):  # a trace's own first line
            yield place, record


def _of_csv(path: Path, head: bytes, columns: Mapping[str, str], n_rows: int) -> Iterator[Batch]:
    with _csv(path, head) as (_, names):
        pass
    wanted = list(columns.values())
    with open_binary(path) as stream:
        blocks = read_blocks(stream, names, _separator(head), wanted)
        rest = yield from _of_blocks(path, blocks, columns, n_rows)
    if rest is None:
        return
    rows = _csv_rows(path, head, names, wanted, rest)
    for batch, error in _gathered(path, rows, list(columns), n_rows):
        if batch is not None:
            cells = {field: [cell or None for cell in of] for field, of in batch.cells.items()}
            yield batch._replace(cells=cells)
        if error is not None:
            raise error


def _of_blocks(
    path: Path,
    blocks: Generator[Rows, None, Rest | None],
    columns: Mapping[str, str],
    n_rows: int,
) -> Generator[Batch, None, Rest | None]:
    """Yield blocks of a CSV file as batches, and return what they return."""
    while True:
        try:
            lines, block = next(blocks)
        except StopIteration as end:
            return end.value
        for at in range(0, len(lines), n_rows):
            part = block.slice(at, n_rows)
            cells = {field: Texts(part.column(name)) for field, name in columns.items()}
            yield Batch(path, lines[at : at + n_rows], [None] * len(part), cells)


def _csv_rows(
    path: Path, head: bytes, names: list[str], columns: list[str], rest: Rest
) -> Iterator[_Read]:
    width = len(names)
    wanted = itemgetter(*map(names.index, columns))  # at least two: a task and a time
    with _csv(path, head, rest) as (reader, _):
        for cells in reader:
            if len(cells) == width:
                yield rest.lines + reader.line_num, None, wanted(cells)
            elif cells:
                # pandas would drop what is too much, and so put arguments in the wrong place.
                place = Place(path, line=rest.lines + reader.line_num)
                raise place.error(None, f"{width} cells as in the header", str(len(cells)))


def _gathered(
    path: Path,
    rows: Iterator[_Read],
    fields: list[str],
    n_rows: int,
    damaged: Sequence[DataError] = (),
) -> Iterator[tuple[Batch | None, DataError | None]]:
    """Yield rows by the batch, the last one with the error that ended them.

    A batch also ends before a row at whose reading lines were found ``damaged``.
    """
    # Cell after cell in one list: a tuple a row would keep the garbage collector busy.
    cells: list[Any] = []
    lines: list[int | None] = []
    numbers: list[int | None] = []

    def batch() -> Batch | None:
        if not lines:
            return None
        of = {field: _cells(cells[at :: len(fields)]) for at, field in enumerate(fields)}
        whole = Batch(path, lines.copy(), numbers.copy(), of)
        for column in (cells, lines, numbers):
            column.clear()
        return whole

    try:
        for line, number, of_row in rows:
            if len(lines) == n_rows or damaged:
                yield batch(), None
            cells.extend(of_row)
            lines.append(line)
            numbers.append(number)
    except DataError as error:
        yield batch(), error
        return
    yield batch(), None


def _cells(values: list[Any]) -> list[Any]:
    """Return what typed cells hold as a log would write it."""
    kinds = set(map(type, values))
    if float in kinds:
        values = [None if type(v) is float and math.isnan(v) else v for v in values]
    if any(issubclass(kind, datetime) for kind in kinds):
        values = [v.isoformat() if isinstance(v, datetime) else v for v in values]
    return values


@contextmanager
def _csv(path: Path, head: bytes, rest: Rest = _WHOLE) -> Iterator[tuple[Any, list[str]]]:
    """Open a CSV file for reading; yields the reader and the names in its header.

    Of the rest of a file there is no header, and the reader counts the lines of the rest.
    """
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    with open_binary(path) as stream, damage_named(path):
        if rest.lines:
            stream.seek(rest.offset)
        encoding = "utf-8" if rest.lines else "utf-8-sig"
        text = io.TextIOWrapper(stream, encoding=encoding, newline="")
        reader = csv.reader(text, delimiter=_separator(head), strict=True)
        try:
            names = [] if rest.lines else next(reader, [])
            if twice := [name for name, times in Counter(names).items() if times > 1]:
                raise DataError(path, expected="each column once", found=f"{shown(twice[0])} twice")
            yield reader, names
        except UnicodeDecodeError as error:
            found = f"byte 0x{error.object[error.start]:02x}"
            raise DataError(path, expected="UTF-8 text", found=found) from None
        except csv.Error as error:
            line, found = rest.lines + reader.line_num, str(error).split("\n")[0]
            raise DataError(path, line=line, expected="CSV", found=found) from None
        finally:
            text.detach()  # the stream is closed by whoever opened it


def _separator(head: bytes) -> str:
    first = head.split(b"\n", 1)[0]
    return max((",", "\t", ";"), key=lambda mark: first.count(mark.encode()))


def _of_parquet(path: Path, columns: Mapping[str, str], n_rows: int) -> Iterator[Batch]:
    import pyarrow as pa

    first = 1
    with _parquet(path) as file:
        try:
            for batch in file.iter_batches(batch_size=n_rows, columns=list(columns.values())):
                cells = {
                    field: _cells(batch.column(column).to_pylist())
                    for field, column in columns.items()
                }
                n_read = len(batch)
                if n_read:
                    numbers = range(first, first + n_read)
                    yield Batch(path, [None] * n_read, numbers, cells)
                first += n_read
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
