"""Training pairs: the context of a decision, and the action the target took there (Sec. 3.3).

A file of pairs is JSON Lines (or Parquet) with a first line of metadata. Key (``task``, ``run``,
``step``). Columns: ``task`` (text), ``run`` (default 0), ``step`` (whole number), ``messages`` (the
draft's prompt: objects with ``role`` and ``content``), ``action`` (canonical text), ``answer`` (the
text that a draft learns to write). ``target_messages`` and ``target_completion`` (what the target
was asked and what it wrote, reasoning included) are kept where given, and not learned. So is any
other column.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leapmodel.checks import ColumnChecks
from leapmodel.errors import UsageError, shown
from leapmodel.files import Table, plain_metadata, read_table, table_from_frame, write_table

VALIDATION_SHARE = 0.1
"""Of the tasks, to choose a checkpoint by (App. L)."""
MIN_TASKS_TO_CARVE = 5
"""Fewer tasks are all learned from: a single one would choose by chance."""


@dataclass(frozen=True)
class Pairs:
    """Checked training pairs, in the order they were given.

    Build them with :func:`read_pairs`, with what :mod:`~leapmodel.execution.training.supervision`
    has, or with :meth:`from_frame`.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row a pair; see the module's list of columns.
    metadata : dict
        What is known of their origin; ``benchmark`` has the name and the settings.

    Examples
    --------
    >>> from leapmodel.benchmarks import load_benchmark
    >>> from leapmodel.execution.training.supervision import pairs_from_gold
    >>> benchmark = load_benchmark("planning")
    >>> pairs = pairs_from_gold(benchmark, benchmark.tasks("train"))
    >>> len(pairs), pairs.n_tasks
    (1058, 250)
    >>> print(pairs.summary())
    1,058 pairs of 250 tasks, 136 different action sequences
    """

    frame: pd.DataFrame
    metadata: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        metadata: Mapping[str, Any] | None = None,
        *,
        source: str = "pairs",
    ) -> Pairs:
        """Check columns made in memory and return them as pairs.

        Raises
        ------
        DataError
            For the first row that does not fit.
        """
        return _checked(table_from_frame(frame, source), dict(metadata or {}))

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def task_names(self) -> list[str]:
        """Names of the tasks, in order of first appearance."""
        return [str(name) for name in self.frame["task"].unique()]

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.task_names)

    @property
    def contexts(self) -> Iterator[tuple[Sequence[Mapping[str, str]], str]]:
        """The messages and the text to learn of each pair."""
        return zip(self.frame["messages"], self.frame["answer"], strict=True)

    def summary(self) -> str:
        """Return how many there are, as one line."""
        tasks = f"{self.n_tasks:,} task{'s' * (self.n_tasks != 1)}"
        sequences = len(set(action_sequences(self.frame).values()))
        return f"{len(self):,} pairs of {tasks}, {sequences:,} different action sequences"

    def without_duplicates(self) -> Pairs:
        """Return each (context, action) once: the first of them."""
        seen: set[tuple[str, str]] = set()
        keep = np.zeros(len(self), bool)
        for row, (messages, action) in enumerate(
            zip(self.frame["messages"], self.frame["action"], strict=True)
        ):
            key = (json.dumps(messages, sort_keys=True), action)
            keep[row] = key not in seen
            seen.add(key)
        return replace(self, frame=self.frame[keep])

    def fraction(self, share: float, *, seed: int = 0) -> Pairs:
        """Return the pairs of a share of the tasks.

        Parameters
        ----------
        share : float
            Above 0, at most 1; at least one task is kept. A smaller share of the same seed is a
            part of a larger one, so that shares compare as growing data.
        seed : int, default 0
            Of the choice.

        Raises
        ------
        UsageError
            If ``share`` is out of range.

        Examples
        --------
        >>> from leapmodel.benchmarks import load_benchmark
        >>> from leapmodel.execution.training.supervision import pairs_from_gold
        >>> benchmark = load_benchmark("planning")
        >>> pairs = pairs_from_gold(benchmark, benchmark.tasks("train"))
        >>> pairs.fraction(0.25).n_tasks
        62
        """
        if not 0 < share <= 1:
            raise UsageError(f"fraction: expected a share above 0, at most 1, found {share:g}")
        names = _shuffled(self.task_names, seed)
        return self.of_tasks(names[: max(1, round(share * len(names)))])

    def sample(self, n: int, *, seed: int = 0) -> Pairs:
        """Return so many of the pairs, drawn at random; all of them if there are no more."""
        drawn = self.frame.sample(min(n, len(self)), random_state=seed)
        return replace(self, frame=drawn)

    def of_tasks(self, names: Sequence[str]) -> Pairs:
        """Return the pairs of some tasks, in their own order."""
        return replace(self, frame=self.frame[self.frame["task"].isin(set(names))])

    def carve(self, share: float = VALIDATION_SHARE, *, seed: int = 0) -> tuple[Pairs, Pairs]:
        """Split off whole tasks to validate on.

        Parameters
        ----------
        share : float, default 0.1
            Of the tasks; at least one. With fewer than five tasks there is nothing to split off.
        seed : int, default 0
            Of the choice.

        Returns
        -------
        tuple of (Pairs, Pairs)
            To learn from, and to validate on; the second may be empty.

        Examples
        --------
        >>> from leapmodel.benchmarks import load_benchmark
        >>> from leapmodel.execution.training.supervision import pairs_from_gold
        >>> benchmark = load_benchmark("planning")
        >>> pairs = pairs_from_gold(benchmark, benchmark.tasks("train"))
        >>> [part.n_tasks for part in pairs.carve()]
        [225, 25]
        """
        names = _shuffled(self.task_names, seed)
        n_validation = 0
        if share > 0 and len(names) >= MIN_TASKS_TO_CARVE:
            n_validation = min(max(1, round(share * len(names))), len(names) - 1)
        return self.of_tasks(names[n_validation:]), self.of_tasks(names[:n_validation])


def read_pairs(path: str | Path) -> Pairs:
    """Read and check a file of training pairs.

    Raises
    ------
    DataError
        Naming file, line or row, column, what was expected and what was found.
    """
    table = read_table(path, kind="pairs")
    about = {k: v for k, v in table.metadata.items() if k not in {"leapmodel", "version"}}
    return _checked(table, about)


def write_pairs(pairs: Pairs, path: str | Path) -> None:
    """Write pairs, all or nothing; ``.jsonl`` or ``.parquet``.

    Raises
    ------
    UsageError
        If the suffix names neither format, or the place can't be written.
    """
    write_table(pairs.frame, path, kind="pairs", metadata=pairs.metadata)


def join_pairs(several: Sequence[Pairs]) -> Pairs:
    """Return the pairs of several sets as one; the first one's metadata are kept.

    Raises
    ------
    DataError
        If two sets have the same step of a task.
    """
    together = pd.concat([one.frame for one in several], ignore_index=True)
    return Pairs.from_frame(together, several[0].metadata)


def action_sequences(frame: pd.DataFrame) -> dict[tuple[str, int], tuple[str | None, ...]]:
    """Return the sequence of actions of each (task, run) of a trace's or of pairs' frame."""
    return {
        (str(task), int(run)): tuple(a if isinstance(a, str) else None for a in steps)  # type: ignore[call-overload]
        for (task, run), steps in frame.sort_values(["task", "run", "step"]).groupby(
            ["task", "run"], sort=False
        )["action"]
    }


def _shuffled(names: Sequence[str], seed: int) -> list[str]:
    shuffled = sorted(names)
    random.Random(seed).shuffle(shuffled)
    return shuffled


def _checked(table: Table, metadata: dict[str, Any]) -> Pairs:
    checks = ColumnChecks(table)
    checks.require(["task", "step", "messages", "action", "answer"])
    columns: dict[str, Any] = {
        "task": checks.texts("task").astype(str),
        "run": checks.integers("run", default=0),
        "step": checks.integers("step"),
        "messages": _messages(table, "messages", nullable=False),
        "action": checks.actions("action"),
        "answer": checks.texts("answer"),
    }
    checks.refuse(columns["action"].isna().to_numpy(), "action", "a canonical action")
    if "target_messages" in table.frame.columns:
        columns["target_messages"] = _messages(table, "target_messages", nullable=True)
    extra = {n: table.frame[n] for n in table.frame.columns if n not in columns}
    frame = pd.DataFrame({**columns, **extra})
    twice = frame.duplicated(["task", "run", "step"]).to_numpy()
    checks.refuse(twice, "step", "each (task, run, step) once", "a second one")
    return Pairs(frame, plain_metadata(metadata))


def _messages(table: Table, name: str, *, nullable: bool) -> pd.Series:
    """Return a column of chat messages as lists of plain objects."""
    found: list[list[dict[str, Any]] | None] = []
    for row, value in enumerate(table.frame[name]):
        if nullable and (value is None or (isinstance(value, float) and value != value)):
            found.append(None)
            continue
        given = list(value) if isinstance(value, (list, tuple, np.ndarray)) else None
        if not given or not all(_is_message(one) for one in given):
            raise table.error(
                row,
                name,
                expected="a list of messages, each with role and content",
                found=shown(value),
            )
        found.append([dict(one) for one in given])
    return pd.Series(found, dtype=object, index=table.frame.index)


def _is_message(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("role"), str)
        and isinstance(value.get("content"), str)
    )
