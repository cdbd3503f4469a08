"""Altered records, and where an audit of one finds something."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leapmodel.execution.auditing.audit import Audit, audit
from leapmodel.rounds import Rounds

Rows = list[dict[str, Any]]


def rows_of(rounds: Rounds) -> Rows:
    return copy.deepcopy(rounds.frame.to_dict(orient="records"))


def falsify(
    folder: Path,
    rounds: Rounds,
    change: Callable[[Rows], Rows | None] = lambda rows: None,
    benchmark: Any = None,
    **metadata: Any,
) -> Audit:
    """Write the rounds as a file after a change to them or to their metadata, and audit it."""
    rows = rows_of(rounds)
    rows = change(rows) or rows
    path = folder / "r.jsonl"
    about = {"leapmodel": "rounds", "version": 1, **rounds.metadata, **metadata}
    path.write_text("".join(json.dumps(line) + "\n" for line in [about, *rows]))
    return audit(path, benchmark)


def of(rows: Rows, asked: int | None = None, **wanted: Any) -> int:
    """Return the number of a row in the middle of a run with these values."""
    for i, row in enumerate(rows[:-1]):
        goes_on = (rows[i + 1]["task"], rows[i + 1]["arm"]) == (row["task"], row["arm"])
        fits = asked is None or len(row["verifications"]) == asked
        if goes_on and row["round"] and fits and all(row[n] == v for n, v in wanted.items()):
            return i
    raise AssertionError(f"no such row: {wanted}")


def place(row: Any) -> tuple[str, int, str, int]:
    return (row["task"], row["run"], row["arm"], row["round"])


def places(found: Audit) -> list[tuple[str | None, int | None, str | None, int | None]]:
    return [(v.task, v.run, v.arm, v.round) for v in found.violations]


def whats(found: Audit) -> list[str]:
    return [violation.what for violation in found.violations]
