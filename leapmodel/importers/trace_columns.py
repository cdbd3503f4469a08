"""Grow the columns of a trace a task run at a time, with few bytes a step."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from leapmodel.importers.number_columns import NumberColumn
from leapmodel.importers.records import Step, TaskRun

_ALWAYS = ("gen_s", "tool_s")
_OPTIONAL = ("started_s", "prompt_tokens", "cached_tokens", "completion_tokens")
_N_FIELDS = Step._fields.index(_OPTIONAL[-1]) + 1  # those after it are no columns
_HELD = 2**9
"""Steps gathered as objects before they go to the columns: a run at a time, that takes twice as
long."""
_REMEMBERED = 2**14
"""Different actions looked up before one is kept again: agents repeat themselves soon or never."""


class TraceColumns:
    """The trace's columns so far; what else a step says is not kept.

    Numbers are kept as numbers, an action that comes again is kept once, and a field that the log
    lacks is not kept at all: of a large log, these columns are most of what is in memory.
    """

    def __init__(self) -> None:
        self._tasks: list[str] = []  # of each run, as are its number and its count of steps
        self._runs = NumberColumn()
        self._n_steps = array("q")
        self._segments = array("q")
        self._actions: list[str | None] = []
        self._held: list[list[Any]] = [[] for _ in range(_N_FIELDS)]  # the steps not yet in columns
        self._same: dict[str | None, str | None] = {}
        self._numbers = {name: NumberColumn() for name in (*_ALWAYS, *_OPTIONAL)}

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return len(self._tasks)

    def add(self, task_run: TaskRun, run: int) -> None:
        """Add a run under its number."""
        steps = task_run.steps
        self._tasks.append(task_run.task)
        self._runs.append(run)
        self._n_steps.append(len(steps))
        for held, values in zip(self._held, zip(*steps, strict=True), strict=False):
            held.extend(values)
        if len(self._held[0]) >= _HELD:
            self._take_held()

    def _take_held(self) -> None:
        """Move the steps held as objects to the columns."""
        segments, gen_s, actions, tool_s, *optional = self._held
        self._segments.extend(segments)
        for column, values in zip(self._numbers.values(), (gen_s, tool_s, *optional), strict=True):
            column.extend(values)
        same = self._same
        self._actions += [same.setdefault(action, action) for action in actions]
        if len(same) > _REMEMBERED:
            same.clear()
        for held in self._held:
            held.clear()

    def frame(self) -> pd.DataFrame:
        """Return the columns in the order of a trace (task, run, step), and keep none of them."""
        self._take_held()
        n_steps = np.array(self._n_steps)
        tasks = pd.Series(self._tasks)
        runs = self._runs.to_numpy().astype(np.int64)
        order = np.arange(len(runs))
        rows = None
        if runs.any():  # else each task has one run, and they stand in order
            order = np.lexsort((runs, pd.factorize(tasks)[0]))
            first = np.cumsum(n_steps) - n_steps
            n_steps = n_steps[order]
            rows = _counted(n_steps) + np.repeat(first[order], n_steps)

        n_rows = int(n_steps.sum())

        def ordered(values: np.ndarray) -> np.ndarray:
            return values if rows is None else values[rows]

        # As objects, for pandas would copy each text, and copy it again for the trace.
        actions = np.array(self._actions, dtype=object)
        self._actions, self._same = [], {}
        columns: dict[str, Any] = {
            "task": tasks.take(np.repeat(order, n_steps)).reset_index(drop=True),
            # Zeros that nobody wrote take no memory.
            "run": np.repeat(runs[order], n_steps) if runs.any() else np.zeros(n_rows, np.int64),
            "segment": ordered(np.frombuffer(self._segments, dtype=np.int64)),
            "step": _counted(n_steps),
            "action": pd.Series(ordered(actions), dtype=object, copy=False),
        }
        for name in (*_ALWAYS, *_OPTIONAL):
            column = self._numbers.pop(name)
            if name in _ALWAYS or not column.is_missing:
                columns[name] = ordered(column.to_numpy())
        _give_back()
        return pd.DataFrame(columns, copy=False)


def _give_back() -> None:
    """Return to the system what columns left behind while they grew, Arrow's and Python's."""
    for pool in (pa.default_memory_pool(), pa.system_memory_pool()):  # the latter is malloc's
        pool.release_unused()


def _counted(n_steps: np.ndarray) -> np.ndarray:
    """Return 0, 1, 2, … for the steps of each run."""
    numbers = np.arange(n_steps.sum())
    numbers -= np.repeat(np.cumsum(n_steps) - n_steps, n_steps)
    return numbers
