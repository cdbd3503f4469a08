"""Gather the steps of a table, whose rows may come in any order, as columns until it ends."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias

import numpy as np

from leapmodel.actions import RESPOND, TERMINATE
from leapmodel.importers.fields import Place
from leapmodel.importers.number_columns import NumberColumn
from leapmodel.importers.records import Step, TaskRun
from leapmodel.importers.table_batches import BatchSteps
from leapmodel.importers.table_cells import RowStep
from leapmodel.importers.table_columns import TOKENS, Columns
from leapmodel.importers.table_rows import BATCH, Batch

_NUMBERS = ("gen_s", "tool_s", "start", *TOKENS)
_Key: TypeAlias = tuple[str, int | None]


class TableSteps:
    """The steps of all runs so far.

    Numbers are held as numbers, and what a run's rows share is held once: of a large table, the
    actions are most of what is in memory.

    Parameters
    ----------
    columns : Columns
        Of the table: for a column that it does not have, nothing is held.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._runs: dict[_Key, int] = {}
        self._places: list[Place] = []  # of each run's first row
        self._n_steps = array("q")  # of each run
        self._run_of_row = array("q")
        self._order = array("d")
        self._numbers = {name: NumberColumn() for name in _NUMBERS}
        self._actions: list[str | None] = []
        self._segments: list[object] = []
        self._begins = array("b")
        self._latest: list[float] = []  # the largest number of a step in each run
        self._seen: list[set[float]] | None = None

    def run(self, task: str, number: int | None, place: Place) -> int:
        """Return the index of a run, whose first row stands at ``place`` if it is new."""
        index = self._runs.get((task, number))
        if index is None:
            index = self._runs[task, number] = len(self._runs)
            self._places.append(place)
            self._n_steps.append(0)
            self._latest.append(-1)
            if self._seen is not None:
                self._seen.append(set())
        return index

    def is_new(self, run: int, number: int) -> bool:
        """Return whether a run has no step of this number yet."""
        return number > self._latest[run] or number not in self._numbers_seen()[run]

    def append(self, run: int, step: RowStep) -> None:
        """Add the step of one row."""
        order: float | None = step.number if step.number is not None else step.start
        if step.number is not None:
            self._note([run], [step.number])
        self._run_of_row.append(run)
        self._order.append(self._n_steps[run] if order is None else order)
        self._n_steps[run] += 1
        for name, value in zip(
            _NUMBERS, (step.gen_s, step.tool_s, step.start, *step.tokens), strict=True
        ):
            self._numbers[name].append(value)
        self._actions.append(step.action)
        if self._columns.has("segment"):
            self._segments.append(step.segment)
        if self._columns.has("user_turn"):
            self._begins.append(step.begins)

    def extend(self, batch: Batch, steps: BatchSteps) -> bool:
        """Add the steps of a batch, or none of them (and return False) if a step comes twice."""
        runs = self._runs_of(batch, steps)
        of_row = np.array(runs)
        numbers = None if steps.number is None else steps.number.tolist()
        if numbers is not None:
            if not self._are_new(runs, numbers):
                return False
            self._note(runs, numbers)
        self._order.frombytes(self._order_in(of_row, steps).tobytes())
        self._run_of_row.extend(runs)
        for name, values in zip(
            _NUMBERS, (steps.gen_s, steps.tool_s, steps.start, *steps.tokens), strict=True
        ):
            self._numbers[name].extend_by(_nothing(runs) if values is None else values)
        self._actions += steps.action
        self._segments += steps.segment or ()
        self._begins.extend(steps.begins or ())
        return True

    def task_runs(self) -> Iterator[TaskRun]:
        """Yield the runs in order of their first rows, each with its steps in order."""
        of_row = np.frombuffer(self._run_of_row, dtype=np.int64)
        order = np.lexsort((np.frombuffer(self._order), of_row))
        runs = zip(self._runs, self._places, self._n_steps, strict=True)
        first = 0
        while block := _first_steps(runs, BATCH):
            n_rows = sum(n_steps for _, _, n_steps in block)
            steps = iter(self._steps(order[first : first + n_rows], [n for _, _, n in block]))
            for (task, number), place, n_steps in block:
                if n_steps:  # none: all its rows were refused
                    yield TaskRun(task, list(islice(steps, n_steps)), place.line, number)
            first += n_rows

    def _steps(self, rows: np.ndarray, n_steps: list[int]) -> Iterator[Step]:
        """Return rows, each run's in its order, as steps."""
        at = rows.tolist()
        actions = [self._actions[row] for row in at]
        segments: list[int] = []
        for n in n_steps:
            of_run = slice(len(segments), len(segments) + n)
            segments += self._segments_of(at[of_run], actions[of_run])
        return map(
            Step,
            segments,
            self._numbers["gen_s"].at(rows),
            actions,
            self._numbers["tool_s"].at(rows),
            [None if start is None else start / 1e6 for start in self._numbers["start"].at(rows)],
            *(
                [None if count is None else int(count) for count in self._numbers[name].at(rows)]
                for name in TOKENS
            ),
        )

    def _segments_of(self, rows: list[int], actions: list[str | None]) -> list[int]:
        """Return the segment of each step of a run."""
        given = [self._segments[row] for row in rows] if self._segments else []
        has_segments = any(segment is not None for segment in given)
        segment = 0
        segments = [0] * len(rows)
        for at in range(1, len(rows)):
            if has_segments:
                segment += given[at] != given[at - 1]
            else:
                begins = bool(self._begins) and self._begins[rows[at]]
                segment += actions[at - 1] in (RESPOND, TERMINATE) or begins
            segments[at] = segment
        return segments

    def _runs_of(self, batch: Batch, steps: BatchSteps) -> list[int]:
        numbers = steps.runs or [None] * len(steps.tasks)
        known = self._runs
        runs = []
        for row, key in enumerate(zip(steps.tasks, numbers, strict=True)):
            run = known.get(key)
            runs.append(self.run(*key, batch.place(row)) if run is None else run)
        return runs

    def _order_in(self, of_row: np.ndarray, steps: BatchSteps) -> np.ndarray:
        """Return what orders each row in its run: number, else start, else place in the run."""
        n_before = np.frombuffer(self._n_steps, dtype=np.int64)[of_row]
        by_run = np.argsort(of_row, kind="stable")
        runs, n_rows = np.unique(of_row, return_counts=True)
        first = np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
        n_before[by_run] += np.arange(len(of_row)) - first
        for run, n in zip(runs.tolist(), n_rows.tolist(), strict=True):
            self._n_steps[run] += n
        if steps.number is not None:
            return steps.number
        if steps.start is None:
            return n_before.astype(np.float64)
        return np.where(np.isnan(steps.start), n_before, steps.start)

    def _are_new(self, runs: Sequence[int], numbers: Sequence[float]) -> bool:
        latest: dict[int, float] = {}
        known = self._latest
        for run, number in zip(runs, numbers, strict=True):
            if number <= latest.get(run, known[run]):
                break
            latest[run] = number
        else:
            return True  # each is the largest so far, as where tables are written step by step
        seen = self._numbers_seen()
        pairs = set(zip(runs, numbers, strict=True))
        return len(pairs) == len(runs) and all(number not in seen[run] for run, number in pairs)

    def _note(self, runs: Sequence[int], numbers: Sequence[float]) -> None:
        latest = self._latest
        for run, number in zip(runs, numbers, strict=True):
            if number > latest[run]:
                latest[run] = number
        if self._seen is not None:
            for run, number in zip(runs, numbers, strict=True):
                self._seen[run].add(number)

    def _numbers_seen(self) -> list[set[float]]:
        """Return the numbers of each run's steps: only needed once they come out of order."""
        if self._seen is None:
            self._seen = [set() for _ in self._runs]
            for run, number in zip(self._run_of_row, self._order, strict=True):
                self._seen[run].add(number)
        return self._seen


def _first_steps(
    runs: Iterator[tuple[_Key, Place, int]], n_rows: int
) -> list[tuple[_Key, Place, int]]:
    """Take as many runs as have this many rows together, at least one if there is any."""
    block = []
    for run in runs:
        block.append(run)
        n_rows -= run[2]
        if n_rows <= 0:
            break
    return block


def _nothing(rows: Sequence[object]) -> np.ndarray:
    return np.full(len(rows), np.nan)
