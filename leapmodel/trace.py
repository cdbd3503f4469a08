"""The sequential trace: one target decision a row, the input of every question asked here.

Key (``task``, ``run``, ``step``). Required columns: ``task`` (text), ``step`` (0, 1, 2, … within a
run), ``gen_s`` (seconds of generation, > 0) and ``action`` (canonical text or null, see
:mod:`leapmodel.actions`; calls written with other spacing or order are brought into canonical
form). Optional: ``run`` (default 0), ``segment`` (whole number; default: a new one after each
reply), ``tool_s`` (seconds of tool execution, default 0), ``kind`` (tool / respond / terminate),
``started_s``, ``prompt_tokens``, ``cached_tokens``, ``completion_tokens``, ``boundary`` (true where
a boundary tool ended the segment). Other columns are kept untouched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leapmodel.actions import calls_any, tool_names
from leapmodel.checks import Dropped
from leapmodel.errors import UsageError
from leapmodel.files import Table, plain_metadata, read_table, table_from_frame, write_table
from leapmodel.segments import Segments
from leapmodel.trace_checks import checked_frame, task_blocks, with_misspelt


@dataclass(frozen=True, repr=False)
class Trace:
    """A checked sequential trace, in order of task, run and step.

    Build one with :func:`read_trace` or :meth:`from_frame`, which check it; then read its columns
    from ``frame`` or its arrays from the properties.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row a step, tasks in the order of their first appearance.
    metadata : dict
        What is known of its origin (``source``, ``target_model``, ``warnings``, …).
    dropped : tuple of Dropped
        Tasks left out by lenient reading, with reasons.

    Examples
    --------
    >>> import pandas as pd
    >>> trace = Trace.from_frame(pd.DataFrame({
    ...     "task": ["a", "a", "b"], "segment": 0, "step": [0, 1, 0],
    ...     "gen_s": [1.0, 2.0, 3.0], "action": ["ls({})", "<respond/>", "<respond/>"]}))
    >>> trace.n_tasks, trace.n_segments, trace.segment_lengths.tolist()
    (2, 2, [2, 1])
    """

    frame: pd.DataFrame
    metadata: dict[str, Any] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        metadata: Mapping[str, Any] | None = None,
        *,
        source: str = "trace",
        lenient: bool = False,
        are_canonical: bool = False,
        copy: bool = True,
    ) -> Trace:
        """Check columns made in memory and return them as a trace.

        Parameters
        ----------
        frame : pandas.DataFrame
            One row a step; see the module's list of columns.
        metadata : mapping, optional
            What is known of its origin.
        source : str, default "trace"
            The name used in error messages.
        lenient : bool, default False
            Leave out the tasks that have a wrong row, instead of raising.
        are_canonical : bool, default False
            Whether the actions are known to be in canonical form, as an importer's are: then they
            are not parsed again.
        copy : bool, default True
            Whether to copy columns; without it, and where rows stand in order, the trace holds
            those of ``frame``, which must not be changed any more.

        Raises
        ------
        DataError
            For the first row that does not fit, or if no task is left.
        """
        table = table_from_frame(frame, source)
        return _checked(table, dict(metadata or {}), lenient, are_canonical, copy)

    def __repr__(self) -> str:
        return f"<Trace: {self.n_tasks} tasks, {self.n_segments} segments, {self.n_steps} steps>"

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return len(self.frame)

    @property
    def n_tasks(self) -> int:
        """Number of tasks; several runs of a task count once."""
        return len(self.task_names)

    @property
    def n_runs(self) -> int:
        """Number of (task, run) pairs."""
        return int(np.count_nonzero(self.run_starts_mask))

    @property
    def n_segments(self) -> int:
        """Number of segments, over all runs."""
        return len(self.segment_starts)

    @cached_property
    def gen_s(self) -> np.ndarray:
        """Generation seconds per step, shape (steps,)."""
        return self.frame["gen_s"].to_numpy(dtype=np.float64)

    @cached_property
    def tool_s(self) -> np.ndarray:
        """Tool seconds per step, shape (steps,)."""
        return self.frame["tool_s"].to_numpy(dtype=np.float64)

    @cached_property
    def actions(self) -> np.ndarray:
        """Canonical actions, objects of str or None, shape (steps,)."""
        column = self.frame["action"].astype(object)
        return column.where(column.notna(), None).to_numpy(dtype=object)

    @cached_property
    def actions_by_run(self) -> dict[tuple[str, int], list[str | None]]:
        """The actions of each run in order, by (task, run)."""
        found: dict[tuple[str, int], list[str | None]] = {}
        steps = zip(self.frame["task"], self.frame["run"], self.actions, strict=True)
        for task, run, action in steps:
            found.setdefault((str(task), int(run)), []).append(action)
        return found

    @cached_property
    def _task_factors(self) -> tuple[np.ndarray, list[str]]:
        blocks, codes, names = task_blocks(self.frame["task"])
        return np.repeat(codes, np.diff(np.append(blocks, self.n_steps))), list(names)

    @property
    def task_codes(self) -> np.ndarray:
        """Index of each step's task in ``task_names``, shape (steps,)."""
        return self._task_factors[0]

    @property
    def task_names(self) -> list[str]:
        """Task names in order of first appearance."""
        return self._task_factors[1]

    @cached_property
    def run_starts_mask(self) -> np.ndarray:
        """True at the first step of each run, shape (steps,)."""
        return np.equal(self.frame["step"].to_numpy(), 0)

    @cached_property
    def segment_starts(self) -> np.ndarray:
        """Index of each segment's first step, shape (segments,)."""
        segment = self.frame["segment"].to_numpy()
        starts = self.run_starts_mask.copy()
        starts[1:] |= segment[1:] != segment[:-1]
        return np.flatnonzero(starts)

    @cached_property
    def segment_lengths(self) -> np.ndarray:
        """Steps of each segment, L in the paper, shape (segments,)."""
        return np.diff(np.append(self.segment_starts, self.n_steps))

    @cached_property
    def segment_tasks(self) -> np.ndarray:
        """Index of each segment's task in ``task_names``, shape (segments,)."""
        return np.take(self.task_codes, self.segment_starts)

    @cached_property
    def is_boundary(self) -> np.ndarray:
        """True where a boundary tool ended the segment, shape (steps,)."""
        if "boundary" not in self.frame.columns:
            return np.zeros(self.n_steps, bool)
        return self.frame["boundary"].to_numpy(dtype=bool)

    @cached_property
    def segments(self) -> Segments:
        """The arrays that a replay walks over, grouped by task."""
        return Segments(
            self.gen_s,
            self.segment_starts,
            tool_s=self.tool_s,
            groups=self.segment_tasks,
            n_groups=self.n_tasks,
            is_boundary=self.is_boundary,
        )

    @cached_property
    def tool_steps(self) -> dict[str, int]:
        """How many steps call each tool, the most frequent first."""
        found: dict[str, int] = {}
        for action, steps in self.frame["action"].value_counts(sort=False).items():
            for name in set(tool_names(str(action))):
                found[name] = found.get(name, 0) + int(steps)
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    @property
    def has_actions(self) -> bool:
        """Whether any step has a parsed action."""
        return bool(self.frame["action"].notna().any())

    def winsorized(self, percent: float) -> Trace:
        """Return the trace with the longest step times cut down to a percentile.

        Parameters
        ----------
        percent : float
            Such as 99.5, between 50 and 100: times beyond that percentile become it.

        Returns
        -------
        Trace
            The metadata's ``warnings`` say how many steps that were, and their weight.

        Raises
        ------
        UsageError
            If ``percent`` is out of range.
        """
        if not 50 <= percent <= 100:
            raise UsageError(f"winsorize: expected a percentile from 50 to 100, found {percent:g}")
        cap = float(np.percentile(self.gen_s, percent))
        beyond = self.gen_s > cap
        share = (self.gen_s[beyond] - cap).sum() / self.gen_s.sum()
        said = (
            f"{int(beyond.sum())} step times were cut down to the {percent:g}th percentile,"
            f" {cap:.3g} s: {share:.1%} of all generation time"
        )
        frame = self.frame.assign(gen_s=np.minimum(self.gen_s, cap))
        metadata = {**self.metadata, "warnings": [*self.metadata.get("warnings", ()), said]}
        return Trace(frame, metadata, self.dropped)

    def with_boundary_tools(self, patterns: Sequence[str]) -> Trace:
        """Return the trace with a segment end after each call of a tool that changes the world.

        Such a tool can't be run in a copy of the environment: it may be proposed, but nothing is
        proposed past it, it runs after the commit, and there is no bonus after it.

        Parameters
        ----------
        patterns : sequence of str
            Shell-style patterns of tool names, such as ``["send_*", "book_*"]``.

        Returns
        -------
        Trace
            With a boolean column ``boundary``; unchanged segments if nothing fits. A pattern
            that fits no tool is noted in the metadata's ``warnings``.
        """
        fits = {
            action: calls_any(action, patterns) for action in self.frame["action"].dropna().unique()
        }
        boundary = np.fromiter((fits.get(a, False) for a in self.actions), bool, self.n_steps)
        boundary |= self.is_boundary  # a second call adds to the first
        known = list(dict.fromkeys([*self.metadata.get("boundary_tools", []), *patterns]))
        said = [
            *self.metadata.get("warnings", ()),
            *(
                f"no step calls a tool that fits the boundary pattern {pattern}"
                for pattern in patterns
                if not any(fnmatchcase(name, pattern) for name in self.tool_steps)
            ),
        ]
        frame = self.frame.assign(segment=_cut_after(self, boundary), boundary=boundary)
        metadata = {**self.metadata, "boundary_tools": known, "warnings": said}
        return Trace(frame, metadata, self.dropped)


def read_trace(path: str | Path, *, lenient: bool = False) -> Trace:
    """Read and check a trace file (Parquet or JSON Lines).

    Parameters
    ----------
    path : str or Path
        The file.
    lenient : bool, default False
        Leave out tasks with a wrong row, and list them in ``dropped``, instead of raising.

    Raises
    ------
    DataError
        Naming file, line or row, column, what was expected and what was found.
    """
    table = read_table(path, kind="trace", lenient=lenient)
    about = {k: v for k, v in table.metadata.items() if k not in {"leapmodel", "version"}}
    return _checked(table, about, lenient)


def write_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace, all or nothing; ``.parquet`` or ``.jsonl``.

    Raises
    ------
    UsageError
        If the suffix names neither format, or the place can't be written.
    """
    write_table(trace.frame, path, kind="trace", metadata=trace.metadata)


def _checked(
    table: Table,
    metadata: dict[str, Any],
    lenient: bool,
    are_canonical: bool = False,
    copy: bool = True,
) -> Trace:
    metadata = with_misspelt(plain_metadata(metadata), table.frame.columns)
    frame, dropped = checked_frame(table, lenient=lenient, are_canonical=are_canonical, copy=copy)
    trace = Trace(frame, metadata, tuple(dropped))
    if trace.is_boundary.any():  # a boundary step ends its segment, whatever the file numbers say
        cut = _cut_after(trace, trace.is_boundary)
        trace = Trace(frame.assign(segment=cut), metadata, tuple(dropped))
    return trace


def _cut_after(trace: Trace, boundary: np.ndarray) -> np.ndarray:
    """Return segment numbers with a new segment after each boundary step."""
    starts = np.zeros(trace.n_steps, bool)
    starts[trace.segment_starts] = True
    starts[1:] |= boundary[:-1]
    count = np.cumsum(starts)
    return count - np.maximum.accumulate(np.where(trace.run_starts_mask, count, 0))
