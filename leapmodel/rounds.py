"""Measured rounds: what the loop did and how long each part took, one round a row.

Key (``task``, ``run``, ``arm``, ``round``). A sequential step is a round of depth 0: one
verification, no proposal. Columns:

- ``task`` (text), ``run`` (default 0), ``arm`` (sequential / speculative), ``segment`` (default 0),
  ``round`` (0, 1, 2, … within task, run and arm), ``first_step`` (steps committed before);
- ``depth`` (k in force), ``proposed``, ``accepted`` (A) and ``committed``: A + 1, or A where the
  accepted prefix ended the segment;
- ``wall_s`` = ``draft_model_s`` (all draft calls) + ``proposal_tool_s`` (their tools) + ``wait_s``
  (the longest used verification) + ``idle_s`` (waiting beyond it) + ``target_tool_s`` (tools of the
  target's own action) + ``residual_s`` (what is left, >= 0; may be left out);
- ``clock_s`` (another clock: seconds of the task at the round's end), ``started_s`` (unix seconds),
  ``draft`` (which one proposed), each optional;
- ``proposals``, a list of ``context`` (SHA-256 of the request), ``output`` (raw), ``action``
  (canonical or null), ``start_s``, ``end_s`` (since the round began), ``tool_s``,
  ``prompt_tokens``, ``completion_tokens``, ``status``: proposed, invalid (did not parse, stopped
  proposing) or withheld (a terminal action that only a verification may decide);
- ``verifications``, in prefix order, a list of the same with ``cached_tokens`` and without
  ``tool_s``; ``status`` is used, cancelled (tokens until then) or failed.

The actions committed are those of the used verifications. Other columns are kept untouched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from leapmodel.checks import Dropped
from leapmodel.errors import DataError
from leapmodel.files import Table, plain_metadata, read_table, table_from_frame, write_table
from leapmodel.round_checks import (
    PROPOSAL_FIELDS,
    REQUIRED,
    TIMES,
    VERIFICATION_FIELDS,
    checked_frame,
)
from leapmodel.trace import Trace

Arm = Literal["sequential", "speculative"]
KEY = ["task", "run", "arm"]
"""What tells one run of one task in one arm from another."""


@dataclass(frozen=True, repr=False)
class Rounds:
    """Checked rounds, in order of task, run, arm and round.

    Build one with :func:`read_rounds` or :meth:`from_frame`, which check it.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row a round, tasks in the order of their first appearance; see the module.
    metadata : dict
        What the run says about itself: ``benchmark``, ``target``, ``draft``, ``arms``, ``depth``,
        ``terminal``, ``machine``, ``versions``, ``warnings``, …
    dropped : tuple of Dropped
        Tasks left out by lenient reading, with reasons.

    Examples
    --------
    >>> import pandas as pd
    >>> said = {"context": None, "output": "ls()", "action": "ls({})", "start_s": 0.0,
    ...         "end_s": 2.0, "completion_tokens": 20, "status": "used"}
    >>> rounds = Rounds.from_frame(pd.DataFrame([{
    ...     "task": "a", "arm": "sequential", "round": 0, "first_step": 0, "depth": 0,
    ...     "proposed": 0, "accepted": 0, "committed": 1, "wall_s": 2.5, "draft_model_s": 0.0,
    ...     "proposal_tool_s": 0.0, "wait_s": 2.0, "idle_s": 0.0, "target_tool_s": 0.25,
    ...     "proposals": [], "verifications": [said]}]))
    >>> rounds, rounds.sequential_trace(), float(rounds.frame["residual_s"].sum())
    (<Rounds: 1 tasks, 1 rounds sequential, 0 speculative>, <Trace: 1 tasks, 1 segments, 1 steps>,
     0.25)
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
        source: str = "rounds",
        lenient: bool = False,
    ) -> Rounds:
        """Check columns made in memory and return them as rounds.

        Parameters
        ----------
        frame : pandas.DataFrame
            One row a round; see the module's list of columns.
        metadata : mapping, optional
            What is known of the run.
        source : str, default "rounds"
            The name used in error messages.
        lenient : bool, default False
            Leave out the tasks that have a wrong row, instead of raising.

        Raises
        ------
        DataError
            For the first row that does not fit, or if no task is left.
        """
        return _checked(table_from_frame(frame, source), dict(metadata or {}), lenient)

    def __repr__(self) -> str:
        by_arm = self.frame["arm"].value_counts()
        said = [f"{by_arm.get(arm, 0)}" for arm in ("sequential", "speculative")]
        tasks = self.frame["task"].nunique()
        return f"<Rounds: {tasks} tasks, {said[0]} rounds sequential, {said[1]} speculative>"

    @property
    def n_rounds(self) -> int:
        """Number of rounds, of both arms."""
        return len(self.frame)

    @property
    def task_names(self) -> list[str]:
        """Task names in order of first appearance."""
        return [str(name) for name in self.frame["task"].unique()]

    def arm(self, name: Arm) -> Rounds:
        """Return the rounds of one arm; there may be none."""
        return self.where(self.frame["arm"] == name)

    @cached_property
    def sequential(self) -> Rounds:
        """The rounds of the sequential arm."""
        return self.arm("sequential")

    @cached_property
    def speculative(self) -> Rounds:
        """The rounds of the speculative arm."""
        return self.arm("speculative")

    def where(self, chosen: pd.Series | np.ndarray) -> Rounds:
        """Return the rounds that a mask over the rows chooses; whole runs, to stay meaningful."""
        kept = self.frame[np.asarray(chosen, bool)].reset_index(drop=True)
        return Rounds(kept, self.metadata, self.dropped)

    @cached_property
    def proposals(self) -> pd.DataFrame:
        """One row a draft call: the key, ``round``, ``position`` (from 0), and its fields.

        The index counts the rounds in ``frame``, so several rows may share one.
        """
        return self._flat("proposals", PROPOSAL_FIELDS)

    @cached_property
    def verifications(self) -> pd.DataFrame:
        """One row a verification, as :attr:`proposals`; ``step`` is the step it decides."""
        flat = self._flat("verifications", VERIFICATION_FIELDS)
        first = self.frame["first_step"].to_numpy()[flat.index]
        return flat.assign(step=first + flat["position"].to_numpy())

    @cached_property
    def committed(self) -> pd.DataFrame:
        """One row a committed step: the key, ``segment``, ``round``, ``step``, and its fields.

        ``gen_s`` is the wall-clock time of the verification that gave it.
        """
        used = self.verifications[self.verifications["status"] == "used"]
        return used.assign(gen_s=used["end_s"] - used["start_s"])

    def committed_actions(self, arm: Arm) -> dict[tuple[str, int], list[str | None]]:
        """Return the actions of an arm in order, by (task, run)."""
        steps = self.committed[self.committed["arm"] == arm]
        found: dict[tuple[str, int], list[str | None]] = {}
        for task, run, action in zip(steps["task"], steps["run"], steps["action"], strict=True):
            found.setdefault((str(task), int(run)), []).append(action)
        return found

    def sequential_trace(self) -> Trace:
        """Return the sequential arm as the trace that predictions start from.

        Columns: those of a trace, and ``context``, the hash of the target's request.

        Raises
        ------
        DataError
            If there is no sequential round.
        """
        rows = self.sequential.frame
        if not len(rows):
            raise DataError("the rounds", expected="a sequential arm", found="none")
        steps = self.sequential.committed
        frame = rows[["task", "run", "segment"]].assign(
            step=rows["first_step"],
            gen_s=rows["wait_s"],
            tool_s=rows["target_tool_s"],
            started_s=rows["started_s"],
        )
        copied = ["action", "prompt_tokens", "cached_tokens", "completion_tokens", "context"]
        frame[copied] = steps[copied]
        about: dict[str, Any] = {
            "origin": "measured",
            "source": "the sequential arm of a run",
            "target_model": _model(self.metadata.get("target")),
        }
        for name in ("benchmark", "machine", "versions", "seed", "warnings"):
            if name in self.metadata:
                about[name] = self.metadata[name]
        return Trace.from_frame(frame, about, source="the sequential arm", are_canonical=True)

    def task_sums(self) -> pd.DataFrame:
        """Return sums over the rounds of each task, one row a task and arm, all its runs together.

        Columns: ``runs``, ``rounds``, ``committed``, the parts of ``wall_s`` and itself,
        ``clock_s`` (of the runs' last rounds).
        """
        frame = self.frame
        by = [frame["task"], frame["arm"]]
        last = ~frame.duplicated(KEY, keep="last")
        counted = frame[list(TIMES)].assign(
            runs=last.astype(float),
            rounds=1.0,
            committed=frame["committed"].astype(float),
            clock_s=np.where(last, frame["clock_s"], np.nan),
        )
        return counted.groupby(by, sort=False).sum(min_count=1)

    def decomposition(self) -> pd.DataFrame:
        """Return where the time of each arm goes (App. H).

        Columns: ``rounds``; ``wall_s``, the sum of the rounds; its parts ``wait_s`` (max used),
        ``idle_s`` (waiting for verifications already discarded), ``draft_model_s``,
        ``proposal_tool_s``, ``target_tool_s``, ``residual_s``; ``clock_s``, the tasks' own clock;
        ``wall_over_clock``, which is 1 if the rounds account for all of it. One row an arm.
        """
        sums = self.task_sums().groupby("arm", sort=False).sum(min_count=1)
        sums["wall_over_clock"] = sums["wall_s"] / sums["clock_s"]
        parts = ["wait_s", "idle_s", "draft_model_s", "proposal_tool_s", "target_tool_s"]
        return sums[["rounds", "wall_s", *parts, "residual_s", "clock_s", "wall_over_clock"]]

    def ms_per_token(self, *, alone: bool = False) -> dict[str, float]:
        """Return milliseconds per completion token over used verifications, by arm.

        They are alike if concurrent verification is close to free: assumption (b) (App. H).

        Parameters
        ----------
        alone : bool, default False
            Of rounds with a single verification only. These are alike in any case, unless the
            engine or the machine was faster in one arm than in the other.
        """
        used = self.committed.dropna(subset=["completion_tokens"])
        if alone:
            round_key = ["task", "run", "arm", "round"]
            single = self.frame.loc[self.frame["verifications"].map(len) == 1, round_key]
            used = used.merge(single, on=round_key)
        sums = used.groupby("arm", sort=False)[["gen_s", "completion_tokens"]].sum()
        spoke = sums[sums["completion_tokens"] > 0]
        rates = 1000 * spoke["gen_s"] / spoke["completion_tokens"]
        return {str(arm): float(rate) for arm, rate in rates.items()}

    def completion_tokens(self) -> pd.DataFrame:
        """Return completion tokens by arm: ``used``, ``cancelled``, ``failed``, ``draft``.

        A cancelled verification counts the tokens streamed until then.
        """
        said = pd.concat([self.verifications, self.proposals.assign(status="draft")])
        sums = said.pivot_table("completion_tokens", "arm", "status", "sum", fill_value=0.0)
        arms, columns = self.frame["arm"].unique(), ["used", "cancelled", "failed", "draft"]
        return sums.reindex(index=arms, columns=columns, fill_value=0.0).rename_axis("arm")

    def _flat(self, name: str, fields: tuple[str, ...]) -> pd.DataFrame:
        lists = self.frame[name].tolist()
        rows = np.repeat(np.arange(len(lists)), [len(items) for items in lists])
        items = [item for row in lists for item in row]
        flat = (
            self.frame[["task", "run", "arm", "segment", "round"]].take(rows).reset_index(drop=True)
        )
        flat["position"] = [at for row in lists for at in range(len(row))]
        names = dict.fromkeys([*fields, *(key for item in items for key in item)])
        numeric = {key for key in names if key.endswith(("_s", "_tokens"))}
        for key in names:
            values = [item.get(key) for item in items]
            flat[key] = pd.Series(values, dtype=float if key in numeric else object)
        return flat.set_axis(rows, axis=0)


def named_rounds(
    rounds: Rounds | Sequence[Rounds] | Mapping[str, Rounds],
) -> dict[str, Rounds]:
    """Return one or several runs by name: their own, or ``file 1``, ``file 2``, …."""
    if isinstance(rounds, Rounds):
        rounds = [rounds]
    if isinstance(rounds, Mapping):
        return dict(rounds)
    return {f"file {number}": one for number, one in enumerate(rounds, start=1)}


def read_rounds(path: str | Path, *, lenient: bool = False, truncated_ok: bool = False) -> Rounds:
    """Read and check a file of rounds (Parquet or JSON Lines).

    Parameters
    ----------
    path : str or Path
        The file.
    lenient : bool, default False
        Leave out tasks with a wrong row, and list them in ``dropped``, instead of raising.
    truncated_ok : bool, default False
        Leave out a last line that a killed run did not finish writing; there may be no round then.

    Raises
    ------
    DataError
        Naming file, line or row, column, what was expected and what was found.
    """
    table = read_table(path, kind="rounds", lenient=lenient, truncated_ok=truncated_ok)
    about = {k: v for k, v in table.metadata.items() if k not in {"leapmodel", "version"}}
    return _checked(table, about, lenient)


class Problem(NamedTuple):
    """A row that is no valid round: where it says it belongs, and what is wrong with it."""

    task: str | None
    run: int | None
    arm: str | None
    round: int | None
    error: DataError


def read_sound_rounds(path: str | Path) -> tuple[Rounds, list[Problem]]:
    """Read the tasks whose rows are all valid, and say of every other row what is wrong.

    Unlike lenient reading it names each bad row, and there may be no task left.

    Raises
    ------
    DataError
        If the file can't be read at all, or lacks a column.
    """
    table = read_table(path, kind="rounds", lenient=True)
    metadata = {k: v for k, v in table.metadata.items() if k not in {"leapmodel", "version"}}
    metadata = plain_metadata(metadata)
    frame, checks = checked_frame(table, metadata, lenient=True)
    in_table_order = frame.sort_index()
    problems = []
    for row, error in checks.problems():
        if row is None:
            problems.append(Problem(None, None, None, None, error))
            continue
        cells = in_table_order.iloc[row]
        task, arm = (cells[n] if isinstance(cells[n], str) else None for n in ("task", "arm"))
        problems.append(Problem(task, int(cells["run"]), arm, int(cells["round"]), error))
    bad = {problem.task for problem in problems}
    kept = frame[frame["task"].notna() & ~frame["task"].isin(bad)].reset_index(drop=True)
    return Rounds(kept, metadata), problems


def write_rounds(rounds: Rounds, path: str | Path) -> None:
    """Write rounds, all or nothing; ``.parquet`` or ``.jsonl``.

    Raises
    ------
    UsageError
        If the suffix names neither format, or the place can't be written.
    """
    write_table(
        rounds.frame,
        path,
        kind="rounds",
        metadata=rounds.metadata,
        arrow_types=_arrow_types(rounds.frame),
    )


def _checked(table: Table, metadata: dict[str, Any], lenient: bool) -> Rounds:
    metadata = plain_metadata(metadata)
    if not len(table.frame):  # a run that was killed in its first round
        return Rounds(pd.DataFrame(columns=[*KEY, *_OTHERS]), metadata)
    frame, checks = checked_frame(table, metadata, lenient=lenient)
    task_of_row = (
        [t if isinstance(t, str) else None for t in frame["task"].sort_index()] if lenient else []
    )
    dropped = checks.dropped(task_of_row)
    frame = checks.without_dropped(frame, dropped).reset_index(drop=True)
    frame["task"] = frame["task"].astype(str)
    return Rounds(frame, metadata, tuple(dropped))


_OTHERS = (
    *(name for name in REQUIRED if name not in KEY),
    *("segment", "residual_s", "clock_s", "draft", "started_s"),
)


def _model(said: Any) -> str | None:
    if isinstance(said, Mapping):
        said = said.get("model")
    return None if said is None else str(said)


def _arrow_types(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the Parquet types of the two lists, which can't be told from empty ones."""
    import pyarrow as pa

    known = {"context": pa.string(), "output": pa.string(), "action": pa.string()}
    known |= {name: pa.float64() for name in ("start_s", "end_s", "tool_s")}
    known |= {name: pa.int64() for name in ("prompt_tokens", "cached_tokens", "completion_tokens")}
    known |= {"status": pa.string()}

    def type_of(name: str, fields: tuple[str, ...]) -> Any:
        types = {key: known[key] for key in fields}
        items = [item for row in frame[name] for item in row]
        for key in dict.fromkeys(key for item in items for key in item):
            if key not in types:
                types[key] = pa.array([item.get(key) for item in items]).type
        return pa.list_(pa.struct(list(types.items())))

    return {
        "proposals": type_of("proposals", PROPOSAL_FIELDS),
        "verifications": type_of("verifications", VERIFICATION_FIELDS),
    }
