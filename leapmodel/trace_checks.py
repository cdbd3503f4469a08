"""What the rows of a trace must be: columns, ranges, keys and order; see :mod:`leapmodel.trace`."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from leapmodel.actions import TERMINAL_ACTIONS, action_kind
from leapmodel.checks import ColumnChecks, Dropped
from leapmodel.files import Table

LONGEST_S = 1e8
"""No step takes longer, about three years: its time is in another unit."""
KINDS = ("tool", "respond", "terminate")
OPTIONAL_COLUMNS = (
    "run",
    "segment",
    "tool_s",
    "kind",
    "started_s",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
)
TOKEN_COLUMNS = ("prompt_tokens", "cached_tokens", "completion_tokens")


def checked_frame(
    table: Table, *, lenient: bool, are_canonical: bool, copy: bool
) -> tuple[pd.DataFrame, list[Dropped]]:
    """Return a trace's columns in their types and in order, and the tasks that were left out.

    Parameters
    ----------
    table : Table
        As read.
    lenient : bool
        Leave out the tasks that have a wrong row, instead of raising.
    are_canonical : bool
        Whether the actions are known to be in canonical form.
    copy : bool
        Whether to copy columns that stand in order.

    Raises
    ------
    DataError
        For the first row that does not fit, unless lenient, or if no task is left.
    """
    checks = ColumnChecks(table, lenient=lenient)
    checks.require(["task", "step", "gen_s", "action"])
    columns: dict[str, Any] = {
        "task": checks.texts("task"),
        "run": checks.integers("run", default=0),
        "segment": checks.integers("segment", default=0),
        "step": checks.integers("step"),
        "gen_s": checks.numbers("gen_s", above=0, at_most=LONGEST_S),
        "tool_s": checks.numbers("tool_s", at_least=0, at_most=LONGEST_S, default=0.0),
        "action": checks.actions("action", are_canonical=are_canonical),
    }
    given = table.frame.columns
    if "kind" in given:
        kind = checks.texts("kind", nullable=True)
        checks.refuse(~(kind.isna() | kind.isin(KINDS)).to_numpy(), "kind", " or ".join(KINDS))
        columns["kind"] = kind
    else:
        columns["kind"] = _kinds_of(columns["action"])
    if "started_s" in given:
        columns["started_s"] = checks.numbers("started_s", nullable=True)
    for name in TOKEN_COLUMNS:
        if name in given:
            columns[name] = checks.integers(name, nullable=True)
    if "boundary" in given:
        columns["boundary"] = checks.booleans("boundary")
    extra = {n: table.frame[n].infer_objects() for n in given if n not in columns}
    frame = pd.DataFrame({**columns, **extra}, copy=False)  # put in order, it is copied below
    order = _check_order(checks, frame)
    if "segment" not in given:
        by_step = np.arange(len(frame)) if order is None else order
        frame["segment"] = _segments_from_replies(frame, by_step)
    # No names where none is asked for: as objects, they are larger than the whole trace.
    names = () if checks.is_clean else columns["task"]
    dropped = checks.dropped([name if isinstance(name, str) else None for name in names])
    if order is not None:
        frame = frame.take(order)
    elif copy:
        frame = frame.copy()
    frame = checks.without_dropped(frame, dropped).reset_index(drop=True)
    frame["task"] = frame["task"].astype(str)
    return frame, dropped


def _check_order(checks: ColumnChecks, frame: pd.DataFrame) -> np.ndarray | None:
    """Check keys, steps and segments; return the row order task, run, step, or None if it is so.

    Rows that stand in order are not copied: a large trace leaves no room for that.
    """
    run, step = frame["run"].to_numpy(), frame["step"].to_numpy()
    segment = frame["segment"].to_numpy()
    blocks, codes, names = task_blocks(frame["task"])
    same_task = np.ones(len(frame), bool)
    same_task[blocks] = False
    same_task = same_task[1:]
    order = None
    if len(names) < len(blocks) or not _are_in_order(same_task, run, step):
        codes = np.repeat(codes, np.diff(np.append(blocks, len(frame))))
        order = np.lexsort((step, run, codes))
        codes, run, step, segment = codes[order], run[order], step[order], segment[order]
        same_task = codes[1:] == codes[:-1]
    same_run = _after_first(same_task & (run[1:] == run[:-1]))

    def refuse(in_order: np.ndarray, expected: str, column: str, found: str | None = None) -> None:
        wrong = in_order
        if order is not None:
            wrong = np.zeros(len(order), bool)
            wrong[order] = in_order
        checks.refuse(wrong & ~checks.is_wrong(), column, expected, found)

    twice = same_run & _after_first(step[1:] == step[:-1])
    refuse(twice, "each (task, run, step) once", "step", "a second one")
    refuse(~same_run & (step != 0), "a run's first step to be 0", "step")
    gap = same_run & ~twice & _after_first(np.diff(step) != 1)
    refuse(gap, "steps without a gap (0, 1, 2, …)", "step")
    back = same_run & _after_first(segment[1:] < segment[:-1])
    refuse(back, "segments in order along the steps", "segment")
    return order


def task_blocks(tasks: pd.Series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (first row, index of its name) of each block of rows of one task, and the names.

    In a trace the rows of a task stand together, so that there are few blocks; and their names are
    told apart as objects, for Arrow's own table of names takes several times their memory.
    """
    names = tasks.array
    is_first = np.ones(len(names), bool)
    is_first[1:] = names[1:] != names[:-1]
    blocks = np.flatnonzero(is_first)
    codes, different = pd.factorize(tasks.take(blocks).to_numpy(dtype=object))
    return blocks, codes, different


def _after_first(mask: np.ndarray) -> np.ndarray:
    """Return a mask of the rows after the first as one of all rows."""
    return np.concatenate(([False], mask))


def _are_in_order(is_same: np.ndarray, *keys: np.ndarray) -> bool:
    """Return whether rows that are the same as those before go up by the first key, then the next.

    ``is_same`` says so of each row but the first.
    """
    for key in keys:
        if (is_same & (key[1:] < key[:-1])).any():
            return False
        is_same = is_same & (key[1:] == key[:-1])
    return True


def _segments_from_replies(frame: pd.DataFrame, order: np.ndarray) -> np.ndarray:
    """Start a segment after each reply or end of task, as a user turn follows there."""
    ends = frame["action"].isin(TERMINAL_ACTIONS).to_numpy()[order]
    first_of_run = frame["step"].to_numpy()[order] == 0
    before = np.cumsum(ends) - ends
    at_run_start = np.maximum.accumulate(np.where(first_of_run, before, 0))
    segment = np.empty(len(order), np.int64)
    segment[order] = before - at_run_start
    return segment


def with_misspelt(metadata: dict[str, Any], given: Iterable[str]) -> dict[str, Any]:
    """Note a column that looks like a misspelt optional one: it would be ignored in silence."""
    said = []
    for name in given:
        absent = [optional for optional in OPTIONAL_COLUMNS if optional not in given]
        near = get_close_matches(str(name), absent, n=1, cutoff=0.7)
        if near and name not in OPTIONAL_COLUMNS:
            said.append(f"the column {name} is not used; is it meant to be {near[0]}?")
    if not said:
        return metadata
    return {**metadata, "warnings": [*metadata.get("warnings", ()), *said]}


def _kinds_of(actions: pd.Series) -> pd.Series:
    # No table of all different actions: of a large log it would be as large as the column.
    kinds = np.empty(len(actions), dtype=object)
    kinds.fill("tool")  # one text for all rows, where np.full would make as many
    for action in TERMINAL_ACTIONS:
        kinds[(actions == action).to_numpy()] = action_kind(action)
    kinds[actions.isna().to_numpy()] = None
    return pd.Series(kinds, index=actions.index, dtype=object, copy=False)
