"""Find a log's files, gather its task runs, and build the checked trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeAlias

from leapmodel.errors import DataError
from leapmodel.importers.contexts import ContextWriter
from leapmodel.importers.fields import Place, stem_of
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.records import Importer, TaskRun
from leapmodel.importers.run_numbers import RunNumbers
from leapmodel.importers.trace_columns import TraceColumns
from leapmodel.trace import Trace
from leapmodel.trace_checks import LONGEST_S

Progress: TypeAlias = Callable[[int, int, int], None]
"""Called as ``(task runs read, files finished, files in all)`` after every task run and file."""

_DIGITS = "0123456789"
_PIECES = re.compile(r"[0-9]+|[^0-9]+")
_PLACEHOLDERS = 10
"""From so many steps on, one and the same time for all of them was not measured."""


def assemble(
    importer: Importer,
    files: Sequence[Path],
    *,
    lenient: bool = False,
    progress: Progress | None = None,
    contexts: Path | None = None,
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
    contexts : Path, optional
        Where to write the messages before each step, see :mod:`~leapmodel.importers.contexts`.
    **options
        Passed to the format's reader.

    Raises
    ------
    DataError
        For the first bad task, or if no task is left.
    """
    ledger = Ledger(lenient=lenient, keep_messages=contexts is not None)
    columns = TraceColumns()
    with nullcontext() if contexts is None else ContextWriter(contexts, ledger) as writer:
        for task_run, run in read_runs(importer, files, ledger, progress, options):
            columns.add(task_run, run)
            if writer is not None:
                writer.write(task_run, run)
        if columns.n_runs and writer is not None:
            writer.finish(name_of(files))
        # Still inside: contexts appear only beside a trace that was not refused.
        return _trace(columns, importer, files, ledger, options)


def _trace(
    columns: TraceColumns,
    importer: Importer,
    files: Sequence[Path],
    ledger: Ledger,
    options: Mapping[str, object],
) -> Trace:
    source = name_of(files)
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
    trace = Trace.from_frame(
        columns.frame(),
        metadata,
        source=source,
        lenient=ledger.lenient,
        are_canonical=True,
        copy=False,
    )
    _refuse_placeholders(trace, source)
    return Trace(trace.frame, trace.metadata, (*ledger.dropped, *trace.dropped))


def read_runs(
    importer: Importer,
    files: Sequence[Path],
    ledger: Ledger,
    progress: Progress | None,
    options: Mapping[str, object],
) -> Iterator[tuple[TaskRun, int]]:
    """Yield every good task run of the files with the number of its run, in order."""
    runs = RunNumbers()
    n_runs = 0
    for index, path in enumerate(files):
        n_failed, n_dropped = len(ledger.failed), len(ledger.dropped)
        for task_run in _task_runs(importer, path, ledger, options):
            number = None
            with ledger.guard(task_run.task):
                _refuse_impossible(task_run, path)
                number = runs.number(task_run, index, path)
            if number is not None:
                n_runs += 1
                yield task_run, number
            if progress is not None:
                progress(n_runs, index, len(files))
        # Runs without a trace keep their number, so that run 1 means the second file throughout.
        runs.skip(ledger.failed[n_failed:], index)
        runs.skip((entry.task for entry in ledger.dropped[n_dropped:]), index)
        if progress is not None:
            progress(n_runs, index + 1, len(files))


def name_of(files: Sequence[Path]) -> str:
    """Name the files for a message about them all."""
    return str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def find_files(paths: Sequence[str | Path], suffixes: Sequence[str]) -> list[Path]:
    """Return the files named, and those of a folder in natural order (task_2 before task_10).

    Raises
    ------
    DataError
        If a path does not exist, a folder holds no file of the format, or a file comes twice.
    """
    files: list[Path] = []
    for given in paths:
        if not str(given).strip():
            raise DataError("(empty path)", expected="a file or a folder", found="an empty name")
        path = Path(given)
        if not path.is_dir():
            if not path.exists():
                raise DataError(path, expected="a file or a folder", found="nothing there")
            files.append(path)
            continue
        try:
            inside = [
                p
                for p in path.iterdir()
                if _suffix(p) in suffixes and p.is_file() and not p.name.startswith(".")
            ]
        except OSError as error:
            raise DataError(
                path, expected="a readable folder", found=(error.strerror or str(error)).lower()
            ) from None
        if not inside:
            raise DataError(path, expected=f"files ending in {' or '.join(suffixes)}", found="none")
        files += sorted(inside, key=lambda file: natural_order(file.name))
    seen: set[Path] = set()
    for file in files:
        if file.resolve() in seen:  # it would count as a second run of its tasks
            raise DataError(file, expected="each file once", found="it twice")
        seen.add(file.resolve())
    return files


def _task_runs(
    importer: Importer, path: Path, ledger: Ledger, options: Mapping[str, object]
) -> Iterator[TaskRun]:
    with ledger.guard(stem_of(path)):  # a file that can't be read at all counts as one bad task
        yield from importer.read_file(path, ledger, **options)


def _refuse_impossible(task_run: TaskRun, path: Path) -> None:
    """Refuse times that the trace would refuse, while their place in the log is known."""
    for name in ("gen_s", "tool_s"):
        longest = max([getattr(step, name) for step in task_run.steps])
        if longest > LONGEST_S:
            raise Place(path, task_run.line).error(
                name, f"seconds, at most {LONGEST_S:g} (another unit?)", f"{longest:g}"
            )


def _refuse_placeholders(trace: Trace, source: str) -> None:
    """Refuse times that nobody measured: nothing can be predicted from them."""
    if trace.n_steps >= _PLACEHOLDERS and (trace.gen_s == trace.gen_s[0]).all():
        raise DataError(
            source,
            column="gen_s",
            expected="generation times that were measured",
            found=f"{trace.gen_s[0]:g} s for each of {trace.n_steps} steps, a placeholder",
        )


def _why_none(ledger: Ledger) -> str:
    if ledger.first_drop is not None:
        return f"{len(ledger.dropped)} bad, the first: {ledger.first_drop}"
    return "; ".join(["none", *ledger.warnings()])


def _suffix(path: Path) -> str:
    """Return the suffix that tells what a file holds, compressed or not."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def natural_order(name: str) -> tuple[list[tuple[int, str]], str]:
    """Return a key that sorts names by the values of their numbers: task_2 before task_10."""
    # A number's count of digits goes first.
    pieces = [p.lstrip("0") if p[0] in _DIGITS else p for p in _PIECES.findall(name)]
    return [(len(p) if p[:1] in _DIGITS else -1, p) for p in pieces], name
