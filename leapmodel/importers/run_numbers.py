"""Number the runs of tasks, and tell a repeated task from a duplicated one."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from pathlib import Path

from leapmodel.errors import shown
from leapmodel.importers.fields import Place
from leapmodel.importers.records import TaskRun

_NONE = -(2**62)  # no run, line or file has this number


class RunNumbers:
    """The runs seen so far, and where each stands.

    Most tasks of a large log run once, so what is known of a task and of its first run is held in
    arrays; a dictionary entry takes ten times as much.
    """

    def __init__(self) -> None:
        self._index: dict[str, int] = {}  # of each task in the arrays
        self._next = array("q")
        self._last_file = array("q")
        self._first_run = array("q")
        self._first_place = (array("q"), array("q"))  # file and line
        self._other_places: dict[tuple[int, int], tuple[int, int]] = {}  # by task and run
        self._paths: dict[int, Path] = {}

    def number(self, task_run: TaskRun, file_index: int, path: Path) -> int:
        """Return the run's number: the log's own, or how many earlier files hold the task.

        Raises
        ------
        DataError
            If the task comes twice in a file, or two runs of it have the same number.
        """
        self._paths[file_index] = path
        task = self._task(task_run.task)
        run = task_run.run
        if run is None:
            run = self._next[task]
            if self._last_file[task] == file_index:
                run -= 1  # taken: refused below
        if (first := self._place(task, run)) is not None:
            first_file, first_line = first
            first_path = self._paths[first_file]
            where = "" if first_path == path else f" in {first_path.name}"
            where += "" if first_line == _NONE else f" at line {first_line}"
            raise Place(path, task_run.line).error(
                "id", "each task once", f"{shown(task_run.task)} again (first{where})"
            )
        here = file_index, _NONE if task_run.line is None else task_run.line
        if self._first_run[task] == _NONE:
            self._first_run[task] = run
            for values, value in zip(self._first_place, here, strict=True):
                values[task] = value
        else:
            self._other_places[task, run] = here
        self._mark(task, run, file_index)
        return run

    def skip(self, tasks: Iterable[str], file_index: int) -> None:
        """Let tasks of this file that gave no trace use up a run's number."""
        for name in tasks:
            task = self._task(name)
            if self._last_file[task] != file_index:
                self._mark(task, self._next[task], file_index)

    def _task(self, name: str) -> int:
        index = self._index.setdefault(name, len(self._index))
        if index == len(self._next):
            self._next.append(0)
            for values in (self._last_file, self._first_run, *self._first_place):
                values.append(_NONE)
        return index

    def _place(self, task: int, run: int) -> tuple[int, int] | None:
        if self._first_run[task] == run:
            file, line = self._first_place
            return file[task], line[task]
        return self._other_places.get((task, run))

    def _mark(self, task: int, run: int, file_index: int) -> None:
        self._next[task] = max(self._next[task], run + 1)
        self._last_file[task] = file_index
