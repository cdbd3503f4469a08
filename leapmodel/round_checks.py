"""What must hold of a table of rounds: every number in its range, every count what it counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from leapmodel.checks import ColumnChecks, ItemChecks
from leapmodel.files import Table

ARMS = ("sequential", "speculative")
PROPOSAL_STATUSES = ("proposed", "invalid", "withheld")
VERIFICATION_STATUSES = ("used", "cancelled", "failed")
TIMES = (
    "wall_s",
    "draft_model_s",
    "proposal_tool_s",
    "wait_s",
    "idle_s",
    "target_tool_s",
    "residual_s",
)
"""What a round takes, and the six parts of it."""
REQUIRED = (
    "task",
    "arm",
    "round",
    "first_step",
    "depth",
    "proposed",
    "accepted",
    "committed",
    *TIMES[:-1],
    "proposals",
    "verifications",
)
PROPOSAL_FIELDS = (
    "context",
    "output",
    "action",
    "start_s",
    "end_s",
    "tool_s",
    "prompt_tokens",
    "completion_tokens",
    "status",
)
VERIFICATION_FIELDS = (
    "context",
    "output",
    "action",
    "start_s",
    "end_s",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "status",
)
LONGEST_S = 1e8
ROUNDING_S = 1e-4
"""Seconds by which sums of recorded times may be off, for a recorder that rounds them."""


def checked_frame(
    table: Table, metadata: Mapping[str, Any], *, lenient: bool
) -> tuple[pd.DataFrame, ColumnChecks]:
    """Return the columns in their types and in order, and the checks that they have passed.

    Parameters
    ----------
    table : Table
        As read.
    metadata : mapping
        Of the file; its ``terminal`` decides which rounds may do without a bonus.
    lenient : bool
        Mark wrong rows instead of raising.

    Raises
    ------
    DataError
        For the first row that does not fit, unless lenient.
    """
    checks = ColumnChecks(table, lenient=lenient)
    checks.require(REQUIRED)
    given = table.frame.columns
    columns: dict[str, Any] = {
        "task": checks.texts("task"),
        "run": checks.integers("run", default=0),
        "arm": checks.choices("arm", ARMS),
        "segment": checks.integers("segment", default=0),
    }
    counts = ("round", "first_step", "depth", "proposed", "accepted", "committed")
    columns |= {name: checks.integers(name) for name in counts}
    columns |= {name: checks.numbers(name, at_least=0, at_most=LONGEST_S) for name in TIMES[:-1]}
    columns["residual_s"] = _residual(checks, columns)
    columns["clock_s"] = checks.numbers("clock_s", at_least=0, nullable=True)
    columns["draft"] = (
        checks.texts("draft", nullable=True).astype(object).where(lambda text: text.notna(), None)
        if "draft" in given
        else pd.Series(None, index=table.frame.index, dtype=object)
    )
    columns["started_s"] = checks.numbers("started_s", nullable=True)
    proposals, made = _proposals(checks)
    verifications, asked = _verifications(checks)
    columns["proposals"] = _as_lists(made, proposals, len(table.frame))
    columns["verifications"] = _as_lists(asked, verifications, len(table.frame))
    extra = {name: table.frame[name].infer_objects() for name in given if name not in columns}
    frame = pd.DataFrame({**columns, **extra}, copy=False)
    _check_counts(checks, frame)
    _check_lists(checks, frame, made, proposals, asked, verifications, metadata)
    order = _check_order(checks, frame)
    return frame.take(order), checks


def _residual(checks: ColumnChecks, columns: Mapping[str, Any]) -> np.ndarray:
    """Return what is left of a round's time; it may be left out of the file."""
    parts = sum(columns[name] for name in TIMES[1:-1])
    left = columns["wall_s"] - parts
    if "residual_s" in checks.table.frame.columns:
        given = checks.numbers("residual_s", at_most=LONGEST_S, nullable=True)
        left = np.where(np.isfinite(given), given, left)
        tolerance = ROUNDING_S + 1e-6 * columns["wall_s"]
        with np.errstate(invalid="ignore"):
            off = np.abs(columns["wall_s"] - parts - left) > tolerance
            negative = left < -tolerance
        good = ~checks.is_wrong()
        checks.refuse(negative & good, "residual_s", "a number >= 0")
        checks.refuse(off & good, "residual_s", "wall_s less its five other parts")
    with np.errstate(invalid="ignore"):
        over = (left < -ROUNDING_S) & ~checks.is_wrong()
    checks.refuse(over, "wall_s", "at least the sum of its parts")
    return np.maximum(left, 0.0)


def _proposals(checks: ColumnChecks) -> tuple[dict[str, Any], ItemChecks]:
    items = checks.items("proposals", PROPOSAL_FIELDS)
    columns = _shared_fields(items, PROPOSAL_STATUSES)
    columns["tool_s"] = items.numbers("tool_s", at_least=0, at_most=LONGEST_S, default=0.0)
    for name in ("prompt_tokens", "completion_tokens"):
        columns[name] = items.integers(name, nullable=True)
    is_null = columns["action"].isna().to_numpy()
    proposed = (columns["status"] == "proposed").to_numpy()
    items.refuse(proposed & is_null, "action", "an action, as it was proposed")
    invalid = (columns["status"] == "invalid").to_numpy()
    items.refuse(invalid & ~is_null, "action", "null, as the output did not parse")
    items.refuse(
        _follows(items, ~proposed),
        "status",
        "no further proposal, as the one before stopped proposing",
    )
    return _in_order(columns, PROPOSAL_FIELDS), items


def _verifications(checks: ColumnChecks) -> tuple[dict[str, Any], ItemChecks]:
    items = checks.items("verifications", VERIFICATION_FIELDS)
    columns = _shared_fields(items, VERIFICATION_STATUSES)
    for name in ("prompt_tokens", "cached_tokens", "completion_tokens"):
        columns[name] = items.integers(name, nullable=True)
    used = (columns["status"] == "used").to_numpy()
    items.refuse(
        used & _follows(items, ~used), "status", "used verifications first, in prefix order"
    )
    return _in_order(columns, VERIFICATION_FIELDS), items


def _shared_fields(items: ItemChecks, statuses: tuple[str, ...]) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "context": items.texts("context", nullable=True),
        "output": items.texts("output", nullable=True),
        "action": items.actions("action"),
        "start_s": items.numbers("start_s", at_least=0, at_most=LONGEST_S),
        "end_s": items.numbers("end_s", at_least=0, at_most=LONGEST_S),
        "status": items.choices("status", statuses),
    }
    with np.errstate(invalid="ignore"):
        back = columns["end_s"] < columns["start_s"]
    items.refuse(back & ~items.is_wrong(), "end_s", "seconds not before start_s")
    return columns


def _in_order(columns: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    return {name: columns[name] for name in fields}


def _follows(items: ItemChecks, mask: np.ndarray) -> np.ndarray:
    """Return which objects come straight after a marked one of the same row."""
    out = np.zeros(len(mask), bool)
    out[1:] = mask[:-1] & (items.indices[1:] > 0)
    return out


def _as_lists(items: ItemChecks, columns: Mapping[str, Any], n_rows: int) -> pd.Series:
    """Return the checked objects as lists of plain dictionaries, fields of one's own kept."""
    values = {
        name: _plain(column, whole=name.endswith("_tokens")) for name, column in columns.items()
    }
    values |= {
        name: items.table.frame[name].tolist()
        for name in items.table.frame.columns
        if name not in values
    }
    lists: list[list[dict[str, Any]]] = [[] for _ in range(n_rows)]
    for item, parent in enumerate(items.parents.tolist()):
        lists[parent].append({name: column[item] for name, column in values.items()})
    return pd.Series(lists, index=items.parent.table.frame.index, dtype=object)


def _plain(column: Any, *, whole: bool) -> list[Any]:
    """Return plain values, None where there is none; only counts of tokens can lack a number."""
    if isinstance(column, pd.Series):
        return [None if pd.isna(value) else value for value in column]
    if whole:
        return [None if value != value else int(value) for value in column.tolist()]
    return column.tolist()


def _check_counts(checks: ColumnChecks, frame: pd.DataFrame) -> None:
    sequential = (frame["arm"] == "sequential").to_numpy()
    depth, proposed, accepted, committed = (
        frame[name].to_numpy() for name in ("depth", "proposed", "accepted", "committed")
    )

    def refuse(wrong: np.ndarray, column: str, expected: str) -> None:
        checks.refuse(wrong & ~checks.is_wrong(), column, expected)

    refuse(sequential & (depth != 0), "depth", "0 in the sequential arm")
    refuse(proposed > depth, "proposed", "at most depth")
    refuse(accepted > proposed, "accepted", "at most proposed")
    no_bonus = committed == accepted
    refuse(committed < 1, "committed", "at least 1")
    refuse(~no_bonus & (committed != accepted + 1), "committed", "accepted or accepted + 1")
    refuse(
        no_bonus & (accepted < proposed),
        "committed",
        "accepted + 1, as the target's own action follows a rejected proposal",
    )


def _check_lists(
    checks: ColumnChecks,
    frame: pd.DataFrame,
    made: ItemChecks,
    proposals: Mapping[str, Any],
    asked: ItemChecks,
    verifications: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> None:
    n_rows = len(frame)
    depth, proposed, accepted, committed = (
        frame[name].to_numpy() for name in ("depth", "proposed", "accepted", "committed")
    )

    def count(items: ItemChecks, mask: np.ndarray | None = None) -> np.ndarray:
        parents = items.parents if mask is None else items.parents[mask]
        return np.bincount(parents, minlength=n_rows)

    def refuse(wrong: np.ndarray, column: str, expected: str, found: np.ndarray) -> None:
        rows = np.flatnonzero(wrong & ~checks.is_wrong())
        for row in rows.tolist():
            checks.refuse_row(row, column, expected, str(found[row]))

    status = proposals["status"].to_numpy(dtype=object)
    n_calls, n_asked = count(made), count(asked)
    refuse(n_calls > depth, "proposals", "at most depth of them", n_calls)
    n_proposed = count(made, status == "proposed")
    refuse(proposed != n_proposed, "proposed", "the proposals of status proposed", proposed)
    if metadata.get("terminal") == "accepted":
        withheld = count(made, status == "withheld")
        refuse(withheld > 0, "proposals", "none withheld under terminal = accepted", withheld)
    used = verifications["status"].to_numpy(dtype=object) == "used"
    n_used = count(asked, used)
    refuse(committed != n_used, "committed", "the verifications of status used", committed)
    wrong = (n_asked != proposed + 1) & (n_asked != proposed)
    refuse(
        wrong | (n_asked < 1),
        "verifications",
        "proposed + 1 of them, or proposed where the last one is terminal",
        n_asked,
    )
    _check_matches(checks, made, proposals, asked, verifications, used, accepted, proposed)


def _check_matches(
    checks: ColumnChecks,
    made: ItemChecks,
    proposals: Mapping[str, Any],
    asked: ItemChecks,
    verifications: Mapping[str, Any],
    used: np.ndarray,
    accepted: np.ndarray,
    proposed: np.ndarray,
) -> None:
    """Compare each used verification with the proposal on its context."""
    n_rows = len(accepted)
    first = np.searchsorted(made.parents, np.arange(n_rows))  # objects are in the order of rows
    row, at = asked.parents, asked.indices
    compared = np.flatnonzero(used & (at < proposed[row]) & ~checks.is_wrong()[row])
    ours = verifications["action"].to_numpy(dtype=object)[compared]
    theirs = proposals["action"].to_numpy(dtype=object)[first[row[compared]] + at[compared]]
    for item, own, other in zip(compared.tolist(), ours, theirs, strict=True):
        is_accepted = at[item] < accepted[row[item]]
        same = own is not None and own == other
        if is_accepted and not same:
            expected = f"{other!r}, as the proposal was accepted"
        elif not is_accepted and same:
            expected = "another action than the proposal, as it was rejected"
        else:
            continue
        wrong = np.zeros(len(used), bool)
        wrong[item] = True
        asked.refuse(wrong, "action", expected)


def _check_order(checks: ColumnChecks, frame: pd.DataFrame) -> np.ndarray:
    """Check that the rounds of a run follow one another; return the order of the rows."""
    codes, _ = pd.factorize(frame["task"])
    arm = (frame["arm"] == "speculative").to_numpy().astype(int)
    run, number = frame["run"].to_numpy(), frame["round"].to_numpy()
    order = np.lexsort((number, arm, run, codes))
    keys = np.column_stack([codes, run, arm])[order]
    same_run = np.zeros(len(order), bool)
    same_run[1:] = (keys[1:] == keys[:-1]).all(axis=1)

    def before(name: str) -> np.ndarray:
        values = frame[name].to_numpy()[order]
        return np.concatenate((values[:1], values[:-1]))

    def refuse(in_order: np.ndarray, column: str, expected: str, found: str | None = None) -> None:
        wrong = np.zeros(len(order), bool)
        wrong[order] = in_order & ~checks.is_wrong()[order]
        checks.refuse(wrong, column, expected, found)

    number = number[order]
    twice = same_run & (number == before("round"))
    refuse(twice, "round", "each (task, run, arm, round) once", "a second one")
    refuse(~same_run & (number != 0), "round", "a run's first round to be 0")
    refuse(
        same_run & ~twice & (number != before("round") + 1),
        "round",
        "rounds without a gap (0, 1, 2, …)",
    )
    step = frame["first_step"].to_numpy()[order]
    refuse(~same_run & (step != 0), "first_step", "0 in a run's first round")
    refuse(
        same_run & (step != before("first_step") + before("committed")),
        "first_step",
        "the steps committed before this round",
    )
    segment = frame["segment"].to_numpy()[order]
    refuse(same_run & (segment < before("segment")), "segment", "segments in order")
    clock = frame["clock_s"].to_numpy()[order]
    with np.errstate(invalid="ignore"):
        back = same_run & (clock < before("clock_s"))
    refuse(back, "clock_s", "a clock that does not go back")
    return order
