"""Teacher-forced predictions: what a draft proposed on a trace's own contexts.

Key (``task``, ``run``, ``step``, ``draft``, ``repeat``). Required columns: ``task`` (text),
``step`` (whole number) and ``action`` (text, or null for an output that did not parse). Optional:
``run`` (default 0), ``draft`` (text, default ``"draft"``), ``repeat`` (default 0; a draft that
samples may answer one context several times) and ``latency_s`` (seconds of the draft call, > 0, or
null). A step without a row is unknown; it is never a miss. Other columns are kept untouched.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from leapmodel.checks import ColumnChecks, Dropped
from leapmodel.errors import DataError, LeapModelWarning, UsageError, shown
from leapmodel.files import Table, plain_metadata, read_table, table_from_frame, write_table
from leapmodel.trace import Trace

DEFAULT_DRAFT = "draft"
_KEY = ["task", "run", "step", "draft", "repeat"]


class AlignedPredictions(NamedTuple):
    """One draft's predictions laid along the steps of a trace, first and further answers.

    Attributes
    ----------
    actions : ndarray of object, shape (repeats, steps)
        Canonical actions; None where the output was invalid or there is no prediction.
    has : ndarray of bool, shape (repeats, steps)
        False where there is no prediction: the step is unknown.
    latency_s : ndarray of float, shape (repeats, steps)
        Seconds of the draft call; NaN where it was not given.
    """

    actions: np.ndarray
    has: np.ndarray
    latency_s: np.ndarray


@dataclass(frozen=True)
class Predictions:
    """Checked predictions of one or more drafts, in the order they were given.

    Build them with :func:`read_predictions` or :meth:`from_frame`, which check them.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row a prediction: ``task``, ``run``, ``step``, ``draft``, ``repeat``, ``action``,
        ``latency_s``, then what else was given.
    metadata : dict
        What is known of their origin.
    dropped : tuple of Dropped
        Tasks left out by lenient reading, with reasons.
    origin : Table
        Where each row stood, for messages (without its columns); ``frame``'s index counts its rows.

    Examples
    --------
    >>> import pandas as pd
    >>> trace = Trace.from_frame(pd.DataFrame({
    ...     "task": "a", "segment": 0, "step": [0, 1], "gen_s": 1.0,
    ...     "action": ['cd({"to":"x"})', "<respond/>"]}))
    >>> predictions = Predictions.from_frame(pd.DataFrame({
    ...     "task": ["a"], "step": [0], "action": ['cd({"to": "x"})'], "latency_s": [0.2]}))
    >>> aligned = predictions.aligned(trace)
    >>> aligned.has.tolist(), (aligned.actions == trace.actions).tolist()
    ([[True, False]], [[True, False]])
    """

    frame: pd.DataFrame
    metadata: dict[str, Any] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    origin: Table | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        metadata: Mapping[str, Any] | None = None,
        *,
        source: str = "predictions",
        lenient: bool = False,
    ) -> Predictions:
        """Check columns made in memory and return them as predictions.

        Parameters
        ----------
        frame : pandas.DataFrame
            One row a prediction; see the module's list of columns.
        metadata : mapping, optional
            What is known of their origin.
        source : str, default "predictions"
            The name used in error messages.
        lenient : bool, default False
            Leave out the tasks that have a wrong row, instead of raising.

        Raises
        ------
        DataError
            For the first row that does not fit, if no task is left, or if nothing is filled in.
        """
        return _checked(table_from_frame(frame, source), dict(metadata or {}), lenient)

    @property
    def draft_names(self) -> list[str]:
        """Names of the drafts, in order of first appearance."""
        return [str(name) for name in self.frame["draft"].unique()]

    def select(self, draft: str | None = None) -> Predictions:
        """Return the predictions of one draft.

        Parameters
        ----------
        draft : str, optional
            Its name; may be left out where there is only one.

        Raises
        ------
        UsageError
            If there is no draft of that name, or none is named and there are several.
        """
        names = self.draft_names
        if draft is None and len(names) == 1:
            return self
        listed = f"{self._source} holds the drafts {', '.join(names)}"
        if draft is None:
            raise UsageError(f"{listed}: name one of them (--draft-name)")
        if draft not in names:
            near = difflib.get_close_matches(draft, names, n=1)
            raise UsageError(
                f"{listed}, not {draft!r}" + (f" (did you mean {near[0]!r}?)" if near else "")
            )
        return replace(self, frame=self.frame[self.frame["draft"] == draft])

    def aligned(
        self, trace: Trace, draft: str | None = None, *, lenient: bool = False
    ) -> AlignedPredictions:
        """Lay one draft's predictions along the steps of a trace.

        Parameters
        ----------
        trace : Trace
            The trace whose contexts were predicted on.
        draft : str, optional
            As for :meth:`select`.
        lenient : bool, default False
            Ignore predictions of steps that the trace does not have, with a warning, instead of
            raising. Those of tasks that lenient reading dropped from the trace are always ignored.

        Raises
        ------
        UsageError
            If the draft is not clear.
        DataError
            For the first prediction of a step that the trace does not have, or if none is left.

        Warns
        -----
        LeapModelWarning
            With the number of ignored predictions.
        """
        chosen = self.select(draft).frame
        at = _steps_of(chosen, trace)
        stray = at < 0
        expected_stray = stray & chosen["task"].isin([d.task for d in trace.dropped]).to_numpy()
        if stray.all() or (not lenient and (stray & ~expected_stray).any()):
            row = int(np.flatnonzero(stray if stray.all() else stray & ~expected_stray)[0])
            raise self._unknown_step(chosen, row)
        if stray.any():
            warnings.warn(
                f"{self._source}: ignored {np.count_nonzero(stray)} of {len(stray)} predictions, "
                "of steps that the trace does not have",
                LeapModelWarning,
                stacklevel=2,
            )
            chosen, at = chosen[~stray], at[~stray]
        # a step's answers are counted by themselves: labels may differ from task to task
        ordered = np.lexsort((chosen["repeat"].to_numpy(), at))
        chosen, at = chosen.iloc[ordered], at[ordered]
        first = np.concatenate(([True], at[1:] != at[:-1]))
        which = np.arange(len(at)) - np.maximum.accumulate(np.where(first, np.arange(len(at)), 0))
        shape = (int(which.max()) + 1, trace.n_steps)
        actions = np.full(shape, None, dtype=object)
        actions[which, at] = chosen["action"].to_numpy(dtype=object)
        has = np.zeros(shape, bool)
        has[which, at] = True
        latency_s = np.full(shape, np.nan)
        latency_s[which, at] = chosen["latency_s"].to_numpy()
        return AlignedPredictions(actions, has, latency_s)

    @property
    def _source(self) -> str:
        return self.origin.source if self.origin is not None else "predictions"

    def _unknown_step(self, chosen: pd.DataFrame, row: int) -> DataError:
        task, run, step = (chosen[name].iloc[row] for name in ("task", "run", "step"))
        expected, found = "a (task, run, step) of the trace", f"({shown(task)}, {run}, {step})"
        if self.origin is None:
            return DataError(self._source, expected=expected, found=found)
        return self.origin.error(int(chosen.index[row]), None, expected=expected, found=found)


def read_predictions(path: str | Path, *, lenient: bool = False) -> Predictions:
    """Read and check a file of predictions (Parquet or JSON Lines).

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
    table = read_table(path, kind="predictions", lenient=lenient)
    about = {k: v for k, v in table.metadata.items() if k not in {"leapmodel", "version"}}
    return _checked(table, about, lenient)


def write_predictions(predictions: Predictions, path: str | Path) -> None:
    """Write predictions, all or nothing; ``.parquet`` or ``.jsonl``.

    Raises
    ------
    UsageError
        If the suffix names neither format, or the place can't be written.
    """
    write_table(predictions.frame, path, kind="predictions", metadata=predictions.metadata)


def join_predictions(several: Sequence[Predictions], source: str = "predictions") -> Predictions:
    """Return the predictions of several drafts as one.

    Parameters
    ----------
    several : sequence of Predictions
        At least one; the first one's metadata are kept.
    source : str, optional
        What an error names.

    Raises
    ------
    DataError
        If a draft answers one step twice.
    """
    if len(several) == 1:
        return several[0]
    together = pd.concat([one.frame for one in several], ignore_index=True)
    return Predictions.from_frame(together, several[0].metadata, source=source)


def predictions_template(trace: Trace) -> pd.DataFrame:
    """Return the keys of every step of a trace, with empty cells for what a draft predicts there.

    Returns
    -------
    pandas.DataFrame
        ``task``, ``run``, ``step``, and empty: ``draft`` (may stay empty where there is one draft),
        ``action`` and ``latency_s`` (may stay empty if the draft's cost is stated elsewhere). A row
        with both left empty counts as not predicted; an output that did not parse is an empty
        action with its latency.

    Examples
    --------
    >>> import pandas as pd
    >>> trace = Trace.from_frame(pd.DataFrame({
    ...     "task": "a", "segment": 0, "step": [0, 1], "gen_s": 1.0, "action": "ls({})"}))
    >>> predictions_template(trace).columns.tolist()
    ['task', 'run', 'step', 'draft', 'action', 'latency_s']
    """
    n_steps = trace.n_steps
    empty_text = pd.Series([None] * n_steps, dtype="string")
    return trace.frame[["task", "run", "step"]].assign(
        draft=empty_text, action=empty_text, latency_s=np.full(n_steps, np.nan)
    )


def _checked(table: Table, metadata: dict[str, Any], lenient: bool) -> Predictions:
    metadata = plain_metadata(metadata)
    checks = ColumnChecks(table, lenient=lenient)
    given = table.frame.columns
    if "gen_s" in given and not {"draft", "latency_s"} & set(given):
        raise DataError(
            table.source,
            expected="predictions made on the trace's contexts",
            found="the columns of a trace (a run of the draft's own is --draft-run)",
        )
    checks.require(["task", "step", "action"])
    columns: dict[str, Any] = {
        "task": checks.texts("task"),
        "run": checks.integers("run", default=0),
        "step": checks.integers("step"),
        "draft": DEFAULT_DRAFT,
        "repeat": checks.integers("repeat", default=0),
        "action": checks.actions("action"),
        "latency_s": checks.numbers("latency_s", above=0, nullable=True),
    }
    if "draft" in given:
        columns["draft"] = checks.texts("draft", nullable=True).fillna(DEFAULT_DRAFT)
    extra = {n: table.frame[n].infer_objects() for n in given if n not in columns}
    frame = pd.DataFrame({**columns, **extra})
    codes = pd.DataFrame({k: pd.factorize(frame[k])[0] for k in _KEY})
    twice = codes.duplicated().to_numpy() & ~checks.is_wrong()
    checks.refuse(twice, "step", f"each ({', '.join(_KEY)}) once", "a second one")
    task_of_row = [t if isinstance(t, str) else None for t in columns["task"]] if lenient else []
    dropped = checks.dropped(task_of_row)
    frame = checks.without_dropped(frame, dropped)
    frame = _answered(frame, table.source, metadata)
    frame["task"] = frame["task"].astype(str)
    frame["draft"] = frame["draft"].astype(str)
    origin = replace(table, frame=table.frame[[]], nulls={}, bad_lines=[])
    return Predictions(frame, metadata, tuple(dropped), origin)


def _answered(frame: pd.DataFrame, source: str, metadata: dict[str, Any]) -> pd.DataFrame:
    """Leave out rows that nobody filled in: their steps are unknown, not invalid output.

    A draft that was timed has a latency even where its output did not parse; so where a draft's
    other rows have one, or the file is a filled-in template, a row with neither action nor latency
    was never answered.
    """
    unanswered = frame["action"].isna() & frame["latency_s"].isna()
    if unanswered.all():
        raise DataError(
            source,
            column="action",
            expected="a predicted action, or its latency_s, in some row",
            found="none filled in (is this the empty template?)",
        )
    timed = frame["latency_s"].notna().groupby(frame["draft"]).transform("any")
    if "template_for" not in metadata:
        unanswered &= timed
    if unanswered.any():
        metadata["warnings"] = [
            *metadata.get("warnings", ()),
            f"{int(unanswered.sum()):,} of {len(frame):,} rows have neither action nor latency_s:"
            " they count as unknown",
        ]
    return frame[~unanswered]


def _steps_of(frame: pd.DataFrame, trace: Trace) -> np.ndarray:
    """Return the trace's step that each row predicts, -1 for none, shape (rows,)."""
    starts = np.flatnonzero(trace.run_starts_mask)
    lengths = np.diff(np.append(starts, trace.n_steps))
    runs = trace.frame["run"].to_numpy()[starts]
    run_values = np.unique(runs)

    # One number a (task, run); the trace is in that order, so a binary search finds the run.
    def key(task: np.ndarray, run: np.ndarray) -> np.ndarray:
        return task * len(run_values) + np.searchsorted(run_values, run)

    codes, names = pd.factorize(frame["task"])
    task = pd.Index(trace.task_names).get_indexer(pd.Index(names))[codes]
    run, step = frame["run"].to_numpy(), frame["step"].to_numpy()
    known = (task >= 0) & np.isin(run, run_values)
    run_keys = key(trace.task_codes[starts], runs)
    wanted = np.where(known, key(task, run), -1)
    found = np.minimum(np.searchsorted(run_keys, wanted), len(run_keys) - 1)
    known &= (run_keys[found] == wanted) & (step < lengths[found])
    at: np.ndarray = np.where(known, starts[found] + step, -1)
    return at
