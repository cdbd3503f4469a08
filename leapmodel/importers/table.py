"""Tables with named columns: CSV, Parquet or JSON Lines, one step a row, in any order.

Fields are ``task`` and ``gen_s`` (or ``start`` and ``end``), which must be there, and ``run``,
``step``, ``segment``, ``user_turn``, ``kind``, ``action``, ``tool``, ``arguments``, ``tool_s``,
``prompt_tokens``, ``cached_tokens``, ``completion_tokens``. Each is looked for in the column of its
own name unless ``columns`` says otherwise.

- Rows of a task are ordered by ``step``, else by ``start``, else as they stand.
- ``segment`` may hold anything: where it changes, a segment ends. Without it one ends after a
  reply (``kind`` "respond", or neither action nor tool) and before a row whose ``user_turn`` is
  true.
- The action is ``action`` as text or as a list of calls, else ``tool`` with ``arguments``. Without
  any of these columns actions are unknown, and only the times can be used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from leapmodel.actions import RESPOND, TERMINATE, canonical_action, canonical_call
from leapmodel.errors import DataError
from leapmodel.importers.durations import required_moment, seconds_of
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.messages import action_of, calls_of
from leapmodel.importers.records import Importer, Sample, Step, TaskRun
from leapmodel.importers.table_columns import Columns, read_columns
from leapmodel.importers.table_rows import Row, header_of, number_in, read_rows

_KINDS = ("respond", "terminate", "tool")
_TRUE, _FALSE = {"true", "1", "yes", "t"}, {"false", "0", "no", "f", ""}
_TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens")


def read_file(path: Path, ledger: Ledger, /, **options: object) -> Iterator[TaskRun]:
    """Yield the task runs of a table, in order of their first rows.

    Parameters
    ----------
    path : Path
        The table. It is streamed; what is kept of a row is the step it becomes.
    ledger : Ledger
        Where dropped tasks are noted.
    **options
        ``columns``: a mapping of fields to columns, or texts such as ``"gen_s=latency_ms"``.
        ``time_unit``: the unit of all numbers of time (s, ms, us or ns; default s, and times since
        1970 by their size).

    Yields
    ------
    TaskRun

    Raises
    ------
    UsageError
        For an option that is not understood.
    """
    columns = read_columns(options.get("columns"), options.get("time_unit"))
    columns = columns.checked(header_of(path), path)
    tasks: dict[tuple[str, int | None], _TaskRows] = {}
    bad: set[str] = set()
    if not any(columns.has(name) for name in ("action", "tool", "kind")):
        ledger.count("tables without a column of actions (actions are unknown)", path.name)
    for row in read_rows(path, columns.wanted(), ledger):
        name = _task(row, columns)
        if name is None or name in bad:
            if name is None:
                error = row.place.wrong(row.cells.get("task"), columns.of("task"), "text")
                ledger.drop(f"({path.name})", error)
            continue
        try:
            run = _whole(row, "run", columns)
            if (rows := tasks.get((name, run))) is None:
                rows = tasks[name, run] = _TaskRows(name, run, row.place)
            rows.add(row, columns, ledger)
        except DataError as error:
            bad.add(name)
            ledger.drop(name, error)
    for (name, _), rows in tasks.items():
        if name in bad:
            continue
        with ledger.guard(name):
            yield rows.run()


class _TaskRows:
    """The rows of one run of a task, as steps with what orders and divides them."""

    def __init__(self, task: str, run: int | None, place: Place) -> None:
        self.task = task
        self.number = run
        self.place = place
        self._steps: list[tuple[int, object, bool, Step]] = []
        self._numbers: set[int] = set()

    def add(self, row: Row, columns: Columns, ledger: Ledger) -> None:
        """Take in a row."""
        start, gen_s = _times(row, columns, ledger)
        action = _action(row, columns)
        tool_s = _seconds(row, "tool_s", columns)
        if columns.has("step"):
            order = row.place.count(number_in(row.cells.get("step")), columns.of("step"))
            if order in self._numbers:
                expected = "each step of a run once (parallel calls are one row)"
                raise row.place.error(columns.of("step"), expected, f"{order} again")
            self._numbers.add(order)
        else:
            order = len(self._steps) if start is None else start
        step = Step(
            segment=0,
            gen_s=gen_s,
            action=action,
            tool_s=tool_s or 0.0,
            started_s=None if start is None else start / 1e6,
            prompt_tokens=_whole(row, _TOKENS[0], columns),
            cached_tokens=_whole(row, _TOKENS[1], columns),
            completion_tokens=_whole(row, _TOKENS[2], columns),
        )
        begins = _flag(row, "user_turn", columns)
        self._steps.append((order, row.cells.get("segment"), begins, step))

    def run(self) -> TaskRun:
        """Return the steps in order, in segments."""
        rows = sorted(self._steps, key=lambda entry: entry[0])
        has_segments = any(given is not None for _, given, _, _ in rows)
        steps: list[Step] = []
        segment = 0
        last: object = None
        for _, given, begins, step in rows:
            if steps:
                ended = steps[-1].action in (RESPOND, TERMINATE)
                segment += given != last if has_segments else ended or begins
            steps.append(step._replace(segment=segment) if segment else step)
            last = given
        return TaskRun(self.task, steps, line=self.place.line, run=self.number)


def _task(row: Row, columns: Columns) -> str | None:
    value = row.cells.get("task")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value.strip() else None


def _times(row: Row, columns: Columns, ledger: Ledger) -> tuple[int | None, float]:
    """Return (start in microseconds since 1970, seconds of generation)."""
    start = _moment(row, "start", columns, ledger)
    seconds = _seconds(row, "gen_s", columns)
    if seconds is not None:
        if seconds <= 0:
            stated, field = row.cells["gen_s"], columns.of("gen_s")
            raise row.place.wrong(stated, field, f"a number of {columns.unit} > 0")
        return start, seconds
    end = _moment(row, "end", columns, ledger)
    if start is None or end is None:
        missing = columns.of("start" if start is None else "end")
        if columns.has("gen_s"):
            expected = f"a number of {columns.unit} > 0"
            raise row.place.error(columns.of("gen_s"), expected, "nothing")
        raise row.place.error(missing, "a time", "nothing")
    if end <= start:
        back = (start - end) / 1e6
        raise row.place.error(
            columns.of("end"),
            f"a time after {columns.of('start')}",
            f"{back:g} s before it" if back else "the same time",
        )
    return start, (end - start) / 1e6


def _moment(row: Row, name: str, columns: Columns, ledger: Ledger) -> int | None:
    value = row.cells.get(name)
    if value is None:
        return None
    field = columns.of(name)
    if columns.time_unit is not None and isinstance(number_in(value), (int, float)):
        return round(seconds_of(number_in(value), field, row.place, columns.time_unit) * 1e6)
    return required_moment(value, field, row.place, ledger)


def _seconds(row: Row, name: str, columns: Columns) -> float | None:
    value = row.cells.get(name)
    if value is None:
        return None
    return seconds_of(number_in(value), columns.of(name), row.place, columns.unit)


def _whole(row: Row, name: str, columns: Columns) -> int | None:
    value = row.cells.get(name)
    return None if value is None else row.place.count(number_in(value), columns.of(name))


def _flag(row: Row, name: str, columns: Columns) -> bool:
    value = row.cells.get(name)
    if value is None or isinstance(value, bool):
        return value is True
    text = str(value).strip().lower()
    if text not in _TRUE and text not in _FALSE:
        raise row.place.wrong(value, columns.of(name), "true or false")
    return text in _TRUE


def _action(row: Row, columns: Columns) -> str | None:
    kind = row.cells.get("kind")
    if kind is not None:
        if kind not in _KINDS:
            raise row.place.wrong(kind, columns.of("kind"), " or ".join(_KINDS))
        if kind != "tool":
            return RESPOND if kind == "respond" else TERMINATE
    value = row.cells.get("action")
    if value is not None:
        field = columns.of("action")
        calls = _as_calls(value)
        if calls is not None:
            return action_of(calls_of(calls, row.place, field))
        return canonical_action(row.place.text(value, field))
    tool = row.cells.get("tool")
    if tool is not None:
        name = row.place.text(tool, columns.of("tool"))
        return canonical_call(name, row.cells.get("arguments"))
    # A table with a column of tools and none in this row: nothing was called, so it is a reply.
    return RESPOND if columns.has("tool") and kind is None else None


def _as_calls(value: object) -> list[Any] | None:
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, list) else None


def _recognises(sample: Sample) -> bool:
    names: Mapping[str, object] | list[str] = []
    if isinstance(sample.record, dict):
        names = sample.record
    elif sample.record is None:
        try:
            names = header_of(sample.path)
        except DataError:
            return False
    return "task" in names and ("gen_s" in names or ("start" in names and "end" in names))


TABLE = Importer(
    name="table",
    description="CSV, Parquet or JSON Lines with named columns, one step a row",
    suffixes=(".csv", ".tsv", ".parquet", ".jsonl"),
    read_file=read_file,
    options={
        "columns": "which column holds a field, such as gen_s=latency_ms (may be repeated)",
        "time_unit": "unit of the numbers of time: s, ms, us or ns",
    },
    recognises=_recognises,
)
