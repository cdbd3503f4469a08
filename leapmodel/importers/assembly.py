"""Find a log's files, gather its task runs, and build the checked trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from leapmodel.errors import DataError, shown
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.records import Importer, Step, TaskRun
from leapmodel.trace import Trace

Progress: TypeAlias = Callable[[int, int, int], None]
"""Called as ``(task runs read, files finished, files in all)`` after every task run and file."""

_DIGITS = "0123456789"
_PIECES = re.compile(r"[0-9]+|[^0-9]+")
_OPTIONAL = ("started_s", "prompt_tokens", "cached_tokens", "completion_tokens")


def assemble(
    importer: Importer,
    files: Sequence[Path],
    *,
    lenient: bool = False,
    progress: Progress | None = None,
    **options: object,
) -> Trace:
    """Read the files one after the other and return their task runs as one checked trace.

    Parameters
    ----------
    importer : Importer
        The format.
    files : sequence of Path
        Not empty, see :func:`find_files`.
    lenient : bool, default False
        Leave out bad tasks and list them in ``dropped``, instead of raising.
    progress : callable, optional
        See :data:`Progress`.
    **options
        Passed to the format's reader.

    Raises
    ------
    DataError
        For the first bad task, or if no task is left.
    """
    ledger = Ledger(lenient=lenient)
    columns = _Columns()
    runs = _RunNumbers()
    for index, path in enumerate(files):
        n_failed, n_dropped = len(ledger.failed), len(ledger.dropped)
        for task_run in _task_runs(importer, path, ledger, options):
            with ledger.guard(task_run.task):
                columns.add(task_run, runs.number(task_run, index, path))
            if progress is not None:
                progress(columns.n_runs, index, len(files))
        # Runs without a trace keep their number, so that run 1 means the second file throughout.
        runs.skip(ledger.failed[n_failed:], index)
        runs.skip((entry.task for entry in ledger.dropped[n_dropped:]), index)
        if progress is not None:
            progress(columns.n_runs, index + 1, len(files))
    source = str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    if not columns.n_runs:
        raise DataError(source, expected="at least one task with steps", found=_why_none(ledger))
    metadata: dict[str, Any] = {
        "format": importer.name,
        "source": [path.name for path in files],  # names only: no one's folders in a shared file
        "warnings": [*importer.remarks, *ledger.warnings()],
    }
    if len(ledger.models) == 1:
        metadata["target_model"] = next(iter(ledger.models))
    if ledger.failed:
        metadata["failed_tasks"] = list(ledger.failed)
    if options:
        metadata["import_options"] = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in options.items()
        }
    trace = Trace.from_frame(columns.frame(), metadata, source=source, lenient=lenient)
    return Trace(trace.frame, trace.metadata, (*ledger.dropped, *trace.dropped))


def find_files(paths: Sequence[str | Path], suffixes: Sequence[str]) -> list[Path]:
    """Return the files named, and those of a folder in natural order (task_2 before task_10).

    Raises
    ------
    DataError
        If a path does not exist, a folder holds no file of the format, or a file comes twice.
    """
    files: list[Path] = []
    for path in map(Path, paths):
        if not path.is_dir():
            if not path.exists():
                raise DataError(path, expected="a file or a folder", found="nothing there")
            files.append(path)
            continue
        try:
            inside = [p for p in path.iterdir() if p.suffix.lower() in suffixes and p.is_file()]
        except OSError as error:
            raise DataError(
                path, expected="a readable folder", found=(error.strerror or str(error)).lower()
            ) from None
        if not inside:
            raise DataError(path, expected=f"files ending in {' or '.join(suffixes)}", found="none")
        files += sorted(inside, key=_natural)
    seen: set[Path] = set()
    for file in files:
        if file.resolve() in seen:  # it would count as a second run of its tasks
            raise DataError(file, expected="each file once", found="it twice")
        seen.add(file.resolve())
    return files


def _task_runs(
    importer: Importer, path: Path, ledger: Ledger, options: dict[str, object]
) -> Iterator[TaskRun]:
    with ledger.guard(path.stem):  # a file that can't be read at all counts as one bad task
        yield from importer.read_file(path, ledger, **options)


class _RunNumbers:
    """Tell a repeated task, which comes again in another file, from a duplicated one."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        self._last_file: dict[str, int] = {}
        self._taken: dict[tuple[str, int], tuple[Path, int | None]] = {}

    def number(self, task_run: TaskRun, file_index: int, path: Path) -> int:
        """Return the run's number: the log's own, or how many earlier files hold the task."""
        task, run = task_run.task, task_run.run
        if run is None:
            run = self._next.get(task, 0)
            if self._last_file.get(task) == file_index:
                run -= 1  # taken: refused below
        if (task, run) in self._taken:
            first_path, first_line = self._taken[task, run]
            where = "" if first_path == path else f" in {first_path.name}"
            where += "" if first_line is None else f" at line {first_line}"
            raise Place(path, task_run.line).error(
                "id", "each task once", f"{shown(task)} again (first{where})"
            )
        self._taken[task, run] = (path, task_run.line)
        self._mark(task, run, file_index)
        return run

    def skip(self, tasks: Iterable[str], file_index: int) -> None:
        """Let tasks of this file that gave no trace use up a run's number."""
        for task in tasks:
            if self._last_file.get(task) != file_index:
                self._mark(task, self._next.get(task, 0), file_index)

    def _mark(self, task: str, run: int, file_index: int) -> None:
        self._next[task] = max(self._next.get(task, 0), run + 1)
        self._last_file[task] = file_index


class _Columns:
    """The trace's columns, grown a task run at a time."""

    def __init__(self) -> None:
        self.n_runs = 0
        self._keys: list[tuple[str, int, int]] = []
        self._steps: list[Step] = []

    def add(self, task_run: TaskRun, run: int) -> None:
        self._keys += [(task_run.task, run, index) for index in range(len(task_run.steps))]
        self._steps += task_run.steps
        self.n_runs += 1

    def frame(self) -> pd.DataFrame:
        frame = pd.DataFrame(self._keys, columns=["task", "run", "step"])
        frame.insert(2, "segment", [step.segment for step in self._steps])
        frame["gen_s"] = [step.gen_s for step in self._steps]
        frame["tool_s"] = [step.tool_s for step in self._steps]
        frame["action"] = pd.Series([step.action for step in self._steps], dtype=object)
        for name in _OPTIONAL:
            values = [getattr(step, name) for step in self._steps]
            if any(value is not None for value in values):
                frame[name] = pd.Series(values, dtype="Float64" if name == "started_s" else "Int64")
        return frame


def _why_none(ledger: Ledger) -> str:
    if ledger.first_drop is not None:
        return f"{len(ledger.dropped)} bad, the first: {ledger.first_drop}"
    return "; ".join(["none", *ledger.warnings()])


def _natural(path: Path) -> tuple[list[tuple[int, str]], str]:
    """Order names by their numbers' values: a number's count of digits goes first."""
    pieces = [p.lstrip("0") if p[0] in _DIGITS else p for p in _PIECES.findall(path.name)]
    return [(len(p) if p[:1] in _DIGITS else -1, p) for p in pieces], path.name
