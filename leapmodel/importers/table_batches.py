"""Read a batch of rows column by column, which takes a fraction of reading them one by one.

Only batches in which every cell is as expected are read so. Any other is left to
:mod:`~leapmodel.importers.table_cells`, which reads row after row, knows what to say about a cell
that is wrong, and is the definition of what a table means: both give the same steps.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from leapmodel.actions import RESPOND, canonical_calls
from leapmodel.errors import DataError
from leapmodel.importers.durations import PER_SECOND
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.table_cells import LONGEST_NUMBER, action_in, flag_in, moment_in
from leapmodel.importers.table_columns import TOKENS, Columns
from leapmodel.importers.table_csv import Texts
from leapmodel.importers.table_rows import Batch

_EXACT = 2.0**53  # up to here float64 is as exact as Python's integers


class BatchSteps(NamedTuple):
    """The steps of a batch; numbers are float64 with NaN where a cell is empty.

    Attributes
    ----------
    tasks : list of str
        Names.
    runs : list of int or None
        Numbers of the runs; None if the table does not number them.
    start, gen_s, action, tool_s, number, tokens, segment, begins
        As in :class:`~leapmodel.importers.table_cells.RowStep`, of each row. ``start`` or
        ``number`` is None if no row has one, and so is ``segment`` or ``begins``.
    """

    tasks: list[str]
    runs: list[int | None] | None
    start: np.ndarray | None
    gen_s: np.ndarray
    action: list[str | None]
    tool_s: np.ndarray
    number: np.ndarray | None
    tokens: tuple[np.ndarray | None, ...]
    segment: Sequence[object] | None
    begins: list[bool] | None


class _UnusualError(Exception):
    """A cell that must be looked at by itself."""


def read_batch(batch: Batch, columns: Columns, ledger: Ledger) -> BatchSteps | None:
    """Return the steps of a batch, or None if its rows must be read one by one.

    Parameters
    ----------
    batch : Batch
        The rows.
    columns : Columns
        Of their table.
    ledger : Ledger
        Where times without a zone are counted; of no use if the batch is not read.
    """
    place = Place(batch.path)  # whoever reads the rows one by one says where something is wrong
    cells = batch.cells
    try:
        start, gen_s = _times(batch, columns, place, ledger)
        tool_s = _seconds(cells.get("tool_s"), columns)
        number = _counts(cells.get("step"))
        if columns.has("step") and (number is None or np.isnan(number).any()):
            return None
        return BatchSteps(
            tasks=_tasks(list(cells["task"])),
            runs=_whole(_counts(cells.get("run"))),
            start=start,
            gen_s=gen_s,
            action=_actions(batch, columns, place),
            tool_s=np.zeros(batch.n_rows) if tool_s is None else np.nan_to_num(tool_s, nan=0.0),
            number=number,
            tokens=tuple(_counts(cells.get(name)) for name in TOKENS),
            segment=cells.get("segment"),
            begins=[flag_in(value, place, columns) for value in cells["user_turn"]]
            if "user_turn" in cells
            else None,
        )
    except (_UnusualError, DataError, ValueError, OverflowError):
        return None


def _tasks(cells: list[Any]) -> list[str]:
    kinds = set(map(type, cells))
    if kinds == {int}:
        return list(map(str, cells))
    if kinds != {str} or not all(str(name).strip() for name in set(cells)):
        raise _UnusualError
    return cells


def _times(
    batch: Batch, columns: Columns, place: Place, ledger: Ledger
) -> tuple[np.ndarray | None, np.ndarray]:
    """Return (starts in microseconds since 1970, seconds of generation)."""
    start = _moments(batch, "start", columns, place, ledger)
    seconds = _seconds(batch.cells.get("gen_s"), columns)
    if seconds is None:
        end = _moments(batch, "end", columns, place, ledger)
        if start is None or end is None:
            raise _UnusualError
        seconds = (end - start) / 1e6
    if not (seconds > 0).all():
        raise _UnusualError
    return start, seconds


def _moments(
    batch: Batch, name: str, columns: Columns, place: Place, ledger: Ledger
) -> np.ndarray | None:
    cells = batch.cells.get(name)
    if cells is None:
        return None
    return _numbers([moment_in(value, name, place, columns, ledger) for value in cells])


def _seconds(cells: Sequence[object] | None, columns: Columns) -> np.ndarray | None:
    values = _numbers(cells)
    if values is None:
        return None
    if (values < 0).any():
        raise _UnusualError
    return values / PER_SECOND[columns.unit]


def _counts(cells: Sequence[object] | None) -> np.ndarray | None:
    values = _numbers(cells)
    if values is not None and not (np.isnan(values) | ((values >= 0) & (values % 1 == 0))).all():
        raise _UnusualError
    return values


def _whole(values: np.ndarray | None) -> list[int | None] | None:
    if values is None:
        return None
    return [None if value != value else int(value) for value in values.tolist()]


def _numbers(cells: Sequence[object] | None) -> np.ndarray | None:
    """Return the numbers that cells hold or spell, NaN for an empty cell; None if all are empty."""
    if isinstance(cells, Texts):
        values = cells.numbers(LONGEST_NUMBER)
        if values is not None and not (np.abs(values) > _EXACT).any():
            return None if np.isnan(values).all() else values
    kinds = set(map(type, cells or ()))
    given = cells or ()
    if NoneType in kinds:
        kinds.discard(NoneType)
        given = [cell for cell in given if cell is not None]
    if not kinds:
        return None
    if kinds == {str}:
        if max(map(len, given)) > LONGEST_NUMBER:  # type: ignore[arg-type]
            raise _UnusualError
        given = array("d", map(float, given))  # type: ignore[arg-type]
    elif not kinds <= {int, float}:
        raise _UnusualError
    numbers = np.array(given, dtype=np.float64)
    if not (np.abs(numbers) <= _EXACT).all():  # nor NaN, which no cell may spell
        raise _UnusualError
    assert cells is not None
    if len(numbers) == len(cells):
        return numbers
    values = np.full(len(cells), np.nan)
    values[[cell is not None for cell in cells]] = numbers
    return values


def _actions(batch: Batch, columns: Columns, place: Place) -> list[str | None]:
    nothing: list[Any] = [None] * batch.n_rows
    kind, action, tool, arguments = (
        batch.cells.get(name, nothing) for name in ("kind", "action", "tool", "arguments")
    )
    if not columns.has("kind") and not columns.has("action") and columns.has("tool"):
        if not set(map(type, tool)) <= {str, NoneType}:
            raise _UnusualError
        for name in {*tool, None} - {None}:
            place.text(name, columns.of("tool"))
        calls = canonical_calls(tool, arguments)
        # No tool is a reply, as for action_in.
        return [RESPOND if n is None else call for n, call in zip(tool, calls, strict=True)]
    return [
        action_in(*of_row, place, columns)
        for of_row in zip(kind, action, tool, arguments, strict=True)
    ]
