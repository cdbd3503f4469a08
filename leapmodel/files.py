"""Read and write the project's tables: Parquet, or JSON Lines with an optional first metadata line.

What a table must hold is the business of the module of each format (``trace``, ``predictions``);
here it is only bytes to columns and back, never leaving a half-written file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from leapmodel.atomic import atomic_path, check_place
from leapmodel.errors import DataError, UsageError, shown
from leapmodel.jsonlines import damage_named, encoding_of, iter_json_lines, open_binary

_METADATA_KEY = b"leapmodel"
_PARQUET_MAGIC = b"PAR1"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Table:
    """A file's columns, and where each row stands in it.

    Attributes
    ----------
    source : str
        The file's name, for messages.
    frame : pandas.DataFrame
        The columns as they were found; nothing is checked yet.
    metadata : dict
        What the file says about itself.
    positions : ndarray of int, shape (rows,)
        1-based line or row numbers.
    unit : {"line", "row"}
        What ``positions`` count.
    nulls : dict of str to ndarray of bool, shape (rows,)
        Where a cell is empty; a column without empty cells may be absent. A NaN that was written
        as a number is not empty, it is wrong.
    bad_lines : list of (DataError, int)
        Lines left out in lenient reading, each with the number of rows read before it.
    """

    source: str
    frame: pd.DataFrame
    metadata: dict[str, Any]
    positions: np.ndarray
    unit: Literal["line", "row"]
    nulls: dict[str, np.ndarray]
    bad_lines: list[tuple[DataError, int]] = field(default_factory=list)

    def is_null(self, column: str) -> np.ndarray:
        """Return where a column is empty, shape (rows,)."""
        return self.nulls.get(column, np.zeros(len(self.frame), bool))

    def error(self, row: int, column: str | None, *, expected: str, found: str) -> DataError:
        """Build the error of one row (counted from 0 in ``frame``)."""
        place = int(self.positions[row])
        if self.unit == "line":
            return DataError(self.source, line=place, column=column, expected=expected, found=found)
        return DataError(self.source, row=place, column=column, expected=expected, found=found)


def read_table(
    path: str | Path, *, kind: str, lenient: bool = False, truncated_ok: bool = False
) -> Table:
    """Read a Parquet or JSON Lines file into columns.

    Parameters
    ----------
    path : str or Path
        The file. Parquet is recognised by its first bytes, not by its name.
    kind : str
        ``"trace"``, ``"predictions"``, ``"rounds"`` or ``"pairs"``: what the caller wants; a
        file that says it is something else is refused. Empty: whatever it is.
    lenient : bool, default False
        Keep going past a JSON line that can't be read, and list it in ``bad_lines``.
    truncated_ok : bool, default False
        Leave out a last JSON line that a killed writer did not finish; there may be no row then.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        If the file is missing, empty, neither format, or says it is of another kind.
    """
    if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
        # Looking at the first bytes would eat them, and a pipe without a writer waits for ever.
        raise DataError(
            path, expected="a file", found="a pipe or a device (save it to a file first)"
        )
    with open_binary(path) as stream, damage_named(path):
        head = stream.read(4096)
    if head.startswith(_PARQUET_MAGIC):
        table = _read_parquet(path)
    elif (other := encoding_of(head)) is not None:
        raise DataError(path, expected="Parquet or JSON Lines", found=other)
    elif b"\0" in head and not head.lstrip().startswith(b"{"):
        raise DataError(path, expected="Parquet or JSON Lines", found="another kind of binary file")
    else:
        table = _read_json_lines(path, lenient, truncated_ok)
    said = table.metadata.get("leapmodel")
    if said is not None and kind and said != kind:
        raise DataError(path, expected=f"a {kind} file", found=f"a {shown(said)} file")
    check_version(table.metadata, path)
    return table


def check_version(metadata: Mapping[str, Any], path: str | Path) -> None:
    """Refuse a file whose metadata name a version of the formats that is not known here.

    Raises
    ------
    DataError
        If they do.
    """
    version = metadata.get("version", FORMAT_VERSION)
    if version not in range(1, FORMAT_VERSION + 1):
        newer = isinstance(version, (int, float)) and version > FORMAT_VERSION
        raise DataError(
            path,
            expected=f"format version {FORMAT_VERSION}",
            found=f"version {shown(version)}"
            + (" (written by a newer leapmodel?)" if newer else ""),
        )


def kind_of(path: str | Path) -> str:
    """Return which of the project's formats a file is in: what it says, or its columns show.

    Raises
    ------
    DataError
        As :func:`read_table`, if it is no table at all.

    Examples
    --------
    >>> kind_of("traces/reconstructed/openagi.parquet")
    'trace'
    """
    said = _said_kind(path)
    if said is not None:
        return said
    columns = set(read_table(path, kind="", lenient=True).frame.columns)
    if {"verifications", "proposals"} <= columns:
        return "rounds"
    if "messages" in columns:
        return "pairs"
    return "trace" if "gen_s" in columns else "predictions"


def _said_kind(path: str | Path) -> str | None:
    """Return what a file says it is, without reading it whole; None if it does not say."""
    with open_binary(path) as stream, damage_named(path):
        head = stream.read(len(_PARQUET_MAGIC))
    if head == _PARQUET_MAGIC:
        import pyarrow.parquet as pq

        try:
            said = (pq.read_schema(path).metadata or {}).get(_METADATA_KEY)
            about = json.loads(said) if said else {}
        except (ValueError, RecursionError, OSError):
            return None  # reading it whole says better what is wrong
    else:
        _, about = next(iter_json_lines(path), (0, {}))
    kind = about.get("leapmodel") if isinstance(about, dict) else None
    return kind if isinstance(kind, str) else None


def plain_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata whose ``warnings`` and ``boundary_tools`` are text, and its ``origin``.

    These are shown to people and used; a file may hold anything there.

    Examples
    --------
    >>> plain_metadata({"warnings": "slow clock", "engine": "vllm"})
    {'warnings': ['slow clock'], 'engine': 'vllm'}
    """
    plain = dict(metadata)
    if "warnings" in plain:
        said = plain["warnings"]
        if said is not None:
            plain["warnings"] = [
                str(w) for w in (said if isinstance(said, (list, tuple)) else [said])
            ]
        else:
            del plain["warnings"]
    tools = plain.get("boundary_tools")
    if tools is not None:
        plain["boundary_tools"] = [
            str(t) for t in (tools if isinstance(tools, (list, tuple)) else [tools])
        ]
    if plain.get("origin") is not None:
        plain["origin"] = str(plain["origin"])
    return plain


def write_table(
    frame: pd.DataFrame,
    path: str | Path,
    *,
    kind: str,
    metadata: dict[str, Any],
    arrow_types: Mapping[str, Any] | None = None,
) -> None:
    """Write columns to ``path``, all or nothing; the suffix chooses the format.

    ``.parquet`` is Parquet; ``.jsonl`` and ``.json`` are JSON Lines. The file appears under its
    name only when it is complete. ``arrow_types`` gives the Parquet type of columns whose values
    do not tell it, such as lists that happen to be empty.

    Raises
    ------
    UsageError
        If the suffix is none of these, the place can't be written, or a column of the person's own
        is of a kind that Parquet does not hold.
    """
    check_table_path(path)
    about = json.dumps({**metadata, "leapmodel": kind, "version": FORMAT_VERSION}, default=_plain)
    with atomic_path(path) as temporary:
        if Path(path).suffix.lower() == ".parquet":
            _write_parquet(frame, path, temporary, about, arrow_types or {})
        else:
            # Half a surrogate pair has no UTF-8, but its escape is what JSON writes for it.
            with open(temporary, "w", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(about + "\n")
                stream.writelines(_json_lines(frame))


def check_table_path(path: str | Path) -> None:
    """Refuse an output name that says no format, before any work is done for it.

    Raises
    ------
    UsageError
        If the suffix is not ``.parquet``, ``.jsonl`` or ``.json``, or no file can be written there.
    """
    if Path(path).suffix.lower() not in {".parquet", ".jsonl", ".json"}:
        raise UsageError(f"{path}: expected a name ending in .parquet or .jsonl")
    check_place(path)


def _read_parquet(path: str | Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:  # not read_table: it takes folders for columns
            table = file.read()
        table.validate(full=True)  # text that is not UTF-8 would fail later, without a place
        metadata = json.loads((table.schema.metadata or {}).get(_METADATA_KEY, b"{}"))
        if not isinstance(metadata, dict):
            raise ValueError("metadata that is not a JSON object")
        names = table.column_names
        frame = table.to_pandas(ignore_metadata=True)
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        reason = str(error).split("\n")[0]
        raise DataError(path, expected="a complete Parquet file", found=reason) from None
    if len(frame) == 0:
        raise DataError(path, expected="at least one row", found="none")
    _refuse_duplicates(frame, path)
    nulls = {
        name: table.column(name).is_null().to_numpy()
        for name in names
        if table.column(name).null_count
    }
    return Table(str(path), frame, metadata, np.arange(1, len(frame) + 1), "row", nulls)


def _write_parquet(
    frame: pd.DataFrame,
    path: str | Path,
    temporary: Path,
    about: str,
    arrow_types: Mapping[str, Any],
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def written(part: pd.DataFrame) -> None:
        table = pa.Table.from_pandas(part, preserve_index=False)
        for name in set(part.columns) & set(arrow_types):
            values = pa.array(part[name].tolist(), type=arrow_types[name])
            table = table.set_column(table.column_names.index(name), name, values)
        kept = {**(table.schema.metadata or {}), _METADATA_KEY: about.encode()}
        pq.write_table(table.replace_schema_metadata(kept), temporary)

    try:
        written(frame)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        # Arrow's own text names the column only now and then: ask it about one after another.
        for name in frame.columns:
            try:
                written(frame[[name]])
            except (pa.ArrowException, OverflowError, UnicodeEncodeError):
                raise UsageError(
                    f"{path}: column {name}: Parquet can't hold its values (of mixed kinds?); "
                    "write a .jsonl file instead"
                ) from None
        raise UsageError(f"{path}: Parquet can't hold this ({shown(str(error))})") from None


def table_from_frame(frame: pd.DataFrame, source: str) -> Table:
    """Take columns made in memory, where pandas' missing values are the empty cells.

    Raises
    ------
    DataError
        If there is no row.
    """
    if len(frame) == 0:
        raise DataError(source, expected="at least one row", found="none")
    _refuse_duplicates(frame, source)
    nulls = {
        str(name): column.isna().to_numpy() for name, column in frame.items() if column.hasnans
    }
    positions = np.arange(1, len(frame) + 1)
    return Table(source, frame.reset_index(drop=True), {}, positions, "row", nulls)


def _read_json_lines(path: str | Path, lenient: bool, truncated_ok: bool) -> Table:
    metadata: dict[str, Any] = {}
    records: list[dict[str, Any]] = []
    positions: list[int] = []
    bad_lines: list[tuple[DataError, int]] = []
    keep: Callable[[DataError], None] | None = None
    if lenient:

        def keep(error: DataError) -> None:
            bad_lines.append((error, len(records)))

    lines = iter_json_lines(path, on_bad_line=keep, truncated_ok=truncated_ok)
    for number, record in lines:
        if "leapmodel" in record and not records and not metadata:
            metadata = record
            continue
        records.append(record)
        positions.append(number)
    if not records:
        if bad_lines:
            raise bad_lines[0][0]
        if not truncated_ok:
            raise DataError(path, expected="at least one row", found="none")
    return table_of_lines(path, records, positions, metadata, bad_lines)


def table_of_lines(
    path: str | Path,
    records: Sequence[Mapping[str, Any]],
    positions: Sequence[int],
    metadata: dict[str, Any],
    bad_lines: Sequence[tuple[DataError, int]] = (),
) -> Table:
    """Return the objects on a file's lines as columns; a field that one lacks is empty there.

    Parameters
    ----------
    path : str or Path
        The file.
    records : sequence of mapping
        The objects.
    positions : sequence of int
        The number of each one's line.
    metadata : dict
        What the file says about itself.
    bad_lines : sequence of (DataError, int)
        As :attr:`Table.bad_lines`.
    """
    columns = {name: [record.get(name) for record in records] for name in _names_in(records)}
    nulls = {
        name: np.fromiter((value is None for value in values), bool, len(values))
        for name, values in columns.items()
    }
    frame = pd.DataFrame(
        {name: pd.Series(values, dtype=object) for name, values in columns.items()}
    )
    return Table(str(path), frame, metadata, np.asarray(positions), "line", nulls, list(bad_lines))


def _refuse_duplicates(frame: pd.DataFrame, source: str | Path) -> None:
    duplicated = frame.columns[frame.columns.duplicated()]
    if len(duplicated):
        raise DataError(source, expected="each column once", found=f"{duplicated[0]!r} twice")


def _names_in(records: Sequence[Mapping[str, Any]]) -> list[str]:
    names: dict[str, None] = {}
    for record in records:
        names.update(dict.fromkeys(record))
    return list(names)


def _json_lines(frame: pd.DataFrame) -> Iterator[str]:
    columns = {name: frame[name].astype(object).tolist() for name in frame.columns}
    for row in zip(*columns.values(), strict=True):
        record = {
            name: None if _is_missing(value) else value
            for name, value in zip(columns, row, strict=True)
        }
        yield json.dumps(record, ensure_ascii=False, default=_plain) + "\n"


def _is_missing(value: object) -> bool:
    return (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, float) and value != value)
    )


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return str(value)
