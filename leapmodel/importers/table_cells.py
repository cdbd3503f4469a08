"""Read the cells of one row of a table as a step, or say what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from leapmodel.actions import RESPOND, TERMINATE, canonical_action, canonical_call
from leapmodel.importers.durations import required_moment, seconds_of, whole_microseconds
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.messages import action_of, calls_of
from leapmodel.importers.table_columns import TOKENS, Columns
from leapmodel.importers.table_rows import Row

_KINDS = ("respond", "terminate", "tool")
_TRUE, _FALSE = {"true", "1", "yes", "t"}, {"false", "0", "no", "f", ""}
LONGEST_NUMBER = 64
"""A longer text is no number."""


class RowStep(NamedTuple):
    """The step of one row, with what orders and divides the steps of a run.

    Attributes
    ----------
    start : int or None
        Microseconds since 1970.
    gen_s, tool_s, action, tokens
        As in :class:`~leapmodel.importers.records.Step`.
    number : int or None
        Its number in the run, if the table has a column of them.
    segment : object
        Whatever the table calls its segment.
    begins : bool
        Whether a user turn comes before it.
    """

    start: int | None
    gen_s: float
    action: str | None
    tool_s: float
    number: int | None
    tokens: tuple[int | None, ...]
    segment: object
    begins: bool


def read_step(row: Row, columns: Columns, ledger: Ledger, is_new: Callable[[int], bool]) -> RowStep:
    """Read a row.

    Parameters
    ----------
    row : Row
        The row.
    columns : Columns
        Of its table.
    ledger : Ledger
        Where times without a zone are counted.
    is_new : callable
        Whether the run has no step of this number yet.

    Raises
    ------
    DataError
        For the first cell that is wrong.
    """
    place, cells = row
    start, gen_s = _times(row, columns, ledger)
    action = action_in(
        cells.get("kind"), cells.get("action"), cells.get("tool"), cells.get("arguments"),
        place, columns,
    )  # fmt: skip
    tool_s = _seconds(row, "tool_s", columns)
    number = None
    if columns.has("step"):
        number = place.count(number_in(cells.get("step")), columns.of("step"))
        if not is_new(number):
            expected = "each step of a run once (parallel calls are one row)"
            raise place.error(columns.of("step"), expected, f"{number} again")
    tokens = tuple(whole_in(row, name, columns) for name in TOKENS)
    begins = flag_in(cells.get("user_turn"), place, columns)
    return RowStep(
        start, gen_s, action, tool_s or 0.0, number, tokens, cells.get("segment"), begins
    )


def number_in(value: object) -> object:
    """Return the number that a cell of a CSV file spells, or the value as it is."""
    if isinstance(value, str) and len(value) <= LONGEST_NUMBER:
        try:
            return int(value) if value.strip().lstrip("+-").isdigit() else float(value)
        except ValueError:
            return value
    return value


def task_in(value: object) -> str | None:
    """Return the name of a task, or None if the cell holds none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value.strip() else None


def whole_in(row: Row, name: str, columns: Columns) -> int | None:
    """Return the count that a field holds, None if it is empty."""
    value = row.cells.get(name)
    return None if value is None else row.place.count(number_in(value), columns.of(name))


def moment_in(
    value: object, name: str, place: Place, columns: Columns, ledger: Ledger
) -> int | None:
    """Return a moment in microseconds since 1970, None if the cell is empty."""
    if value is None:
        return None
    field = columns.of(name)
    if columns.time_unit is not None and isinstance(number_in(value), (int, float)):
        return whole_microseconds(seconds_of(number_in(value), field, place, columns.time_unit))
    return required_moment(value, field, place, ledger)


def flag_in(value: object, place: Place, columns: Columns) -> bool:
    """Return whether a user turn is said to come before the step."""
    if value is None or isinstance(value, bool):
        return value is True
    text = str(value).strip().lower()
    if text not in _TRUE and text not in _FALSE:
        raise place.wrong(value, columns.of("user_turn"), "true or false")
    return text in _TRUE


def action_in(
    kind: object, action: object, tool: object, arguments: object, place: Place, columns: Columns
) -> str | None:
    """Return the canonical action that the cells for it hold, None if they hold none."""
    if kind is not None:
        if kind not in _KINDS:
            raise place.wrong(kind, columns.of("kind"), " or ".join(_KINDS))
        if kind != "tool":
            return RESPOND if kind == "respond" else TERMINATE
    if action is not None:
        field = columns.of("action")
        calls = _as_calls(action)
        if calls is not None:
            return action_of(calls_of(calls, place, field))
        return canonical_action(place.text(action, field))
    if tool is not None:
        return canonical_call(place.text(tool, columns.of("tool")), arguments)
    # A table with a column of tools and none in this row: nothing was called, so it is a reply.
    return RESPOND if columns.has("tool") and kind is None else None


def _as_calls(value: object) -> list[Any] | None:
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, list) else None


def _times(row: Row, columns: Columns, ledger: Ledger) -> tuple[int | None, float]:
    """Return (start in microseconds since 1970, seconds of generation)."""
    place = row.place
    start = moment_in(row.cells.get("start"), "start", place, columns, ledger)
    seconds = _seconds(row, "gen_s", columns)
    if seconds is not None:
        if seconds <= 0:
            stated, field = row.cells["gen_s"], columns.of("gen_s")
            raise place.wrong(stated, field, f"a number of {columns.unit} > 0")
        return start, seconds
    end = moment_in(row.cells.get("end"), "end", place, columns, ledger)
    if start is None or end is None:
        missing = columns.of("start" if start is None else "end")
        if columns.has("gen_s"):
            expected = f"a number of {columns.unit} > 0"
            raise place.error(columns.of("gen_s"), expected, "nothing")
        raise place.error(missing, "a time", "nothing")
    if end <= start:
        back = (start - end) / 1e6
        raise place.error(
            columns.of("end"),
            f"a time after {columns.of('start')}",
            f"{back:g} s before it" if back else "the same time",
        )
    return start, (end - start) / 1e6


def _seconds(row: Row, name: str, columns: Columns) -> float | None:
    value = row.cells.get(name)
    if value is None:
        return None
    return seconds_of(number_in(value), columns.of(name), row.place, columns.unit)
