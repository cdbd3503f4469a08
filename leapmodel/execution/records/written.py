"""What stands in a record that is gone on with, checked: nothing may follow a damaged line.

The rows pass the checks of the rounds format, and those of a file that one run after another has
appended to: whole lines, every field, rounds in the order in which they happened.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from leapmodel.errors import DataError, shown
from leapmodel.execution.records.record import Round
from leapmodel.files import check_version, plain_metadata, table_of_lines
from leapmodel.jsonlines import damage_named, parse_object
from leapmodel.round_checks import PROPOSAL_FIELDS, VERIFICATION_FIELDS, checked_frame

Key = tuple[str, int, str]
"""A task, the number of its run, and the arm."""
_NEVER_EMPTY = tuple(one.name for one in fields(Round) if one.name != "draft")
_BEGINNING = b'{"leapmodel":"rounds"'


@dataclass
class Written:
    """What a record holds.

    Attributes
    ----------
    metadata : dict or None
        Its first line; None if nothing was finished, so that it can be begun anew.
    lines : list of (int, dict)
        The other whole lines, each with its number; not checked yet.
    end : int
        Bytes that the whole lines take; what comes after them was never finished.
    """

    metadata: dict[str, Any] | None = None
    lines: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    end: int = 0


def read_written(path: Path) -> Written:
    """Read the whole lines of a record, as whoever else reads it: blank ones hold nothing.

    Raises
    ------
    DataError
        If the file is not a record of rounds, or a whole line is not a JSON object.
    """
    found = Written()
    for number, line in _lines(path):
        if line.isspace() and line.endswith(b"\n"):
            found.end += len(line)
            continue
        if not line.endswith(b"\n"):
            if found.metadata is None and not _may_become_metadata(line):
                raise _no_record(path, number, line.decode("latin1"))
            break
        said = parse_object(path, number, line.removeprefix(BOM_UTF8) if number == 1 else line)
        if found.metadata is not None:
            found.lines.append((number, said))
        elif said.get("leapmodel") != "rounds":
            raise _no_record(path, number, said)
        else:
            check_version(said, path)
            found.metadata = said
        found.end += len(line)
    return found


def checked_rows(path: Path, written: Written) -> dict[Key, list[dict[str, Any]]]:
    """Return the rows of a record by task, run and arm, once they are known to be right.

    Raises
    ------
    DataError
        Naming the first line that is not, what was expected there and what was found.
    """
    rows: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    if not written.lines:
        return rows
    for number, row in written.lines:
        _refuse_missing(path, number, row)
    metadata = plain_metadata(written.metadata or {})
    numbers, said = zip(*written.lines, strict=True)
    checked_frame(table_of_lines(path, said, numbers, metadata), metadata, lenient=False)
    for number, row in written.lines:
        _refuse_missing_in_lists(path, number, row)
        before = rows[row["task"], int(row["run"]), row["arm"]]
        if row["round"] != len(before):
            raise DataError(
                path,
                line=number,
                column="round",
                expected=f"{len(before)}, as rounds are written in their order",
                found=shown(row["round"]),
            )
        before.append(row)
    return rows


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with open(path, "rb") as stream, damage_named(path):
        yield from enumerate(stream, 1)


def _may_become_metadata(line: bytes) -> bool:
    """Return whether an unfinished first line is the beginning of a record's."""
    return line.startswith(_BEGINNING) or _BEGINNING.startswith(line)


def _no_record(path: Path, number: int, found: object) -> DataError:
    expected = "the metadata of a rounds file"
    return DataError(path, line=number, expected=expected, found=shown(found))


def _refuse_missing(path: Path, number: int, row: dict[str, Any]) -> None:
    """Refuse a row without a field that every round is written with."""
    for name in _NEVER_EMPTY:
        if row.get(name) is None:
            raise DataError(path, line=number, column=name, expected="a value", found="nothing")


def _refuse_missing_in_lists(path: Path, number: int, row: dict[str, Any]) -> None:
    for name, wanted in (("proposals", PROPOSAL_FIELDS), ("verifications", VERIFICATION_FIELDS)):
        for at, said in enumerate(row[name]):
            missing = [one for one in wanted if one not in said]
            if missing:
                raise DataError(
                    path,
                    line=number,
                    column=f"{name}[{at}].{missing[0]}",
                    expected="a value or null",
                    found="nothing",
                )
