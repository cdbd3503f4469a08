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

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from leapmodel.errors import DataError
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.records import Importer, Sample, TaskRun
from leapmodel.importers.table_batches import read_batch
from leapmodel.importers.table_cells import read_step, task_in, whole_in
from leapmodel.importers.table_columns import Columns, read_columns
from leapmodel.importers.table_rows import Batch, Row, header_of, read_batches
from leapmodel.importers.table_steps import TableSteps


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
    steps = TableSteps(columns)
    bad: set[str] = set()
    if not any(columns.has(name) for name in ("action", "tool", "kind")):
        ledger.count("tables without a column of actions (actions are unknown)", path.name)
    for batch in read_batches(path, columns.wanted(), ledger):
        if not _take_batch(batch, columns, steps, bad, ledger):
            for number in range(batch.n_rows):
                _take_row(batch.row(number), columns, steps, bad, ledger)
    for task_run in steps.task_runs():
        if task_run.task not in bad:
            yield task_run


def _take_batch(
    batch: Batch, columns: Columns, steps: TableSteps, bad: set[str], ledger: Ledger
) -> bool:
    """Add the rows of a batch together, or return False if they must be taken one by one."""
    counted = Ledger()
    read = read_batch(batch, columns, counted)
    if read is None or not bad.isdisjoint(read.tasks) or not steps.extend(batch, read):
        return False
    ledger.add_counts(counted)
    return True


def _take_row(row: Row, columns: Columns, steps: TableSteps, bad: set[str], ledger: Ledger) -> None:
    """Add a row, or drop its task."""
    name = task_in(row.cells.get("task"))
    if name is None:
        error = row.place.wrong(row.cells.get("task"), columns.of("task"), "text")
        ledger.drop(f"({Path(row.place.source).name})", error)
    elif name not in bad:
        try:
            run = steps.run(name, whole_in(row, "run", columns), row.place)
            steps.append(run, read_step(row, columns, ledger, partial(steps.is_new, run)))
        except DataError as error:
            bad.add(name)
            ledger.drop(name, error)


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
