"""What the times of a record must be: a round's follow from its calls, a run's from its rounds.

The loop takes each part of a round's time from the round's own calls and runs one round after
another, so that time moved from one part or place to another contradicts what stands beside it.
What can't be told apart is the end of a wait and what comes after it, where nothing was closed in
between: the event loop may be late by any time, and a tool may take any.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from leapmodel.execution.auditing.derivation import Row
from leapmodel.execution.auditing.violation import Contradiction
from leapmodel.round_checks import ROUNDING_S

CLOCK_SHARE, CLOCK_S = 0.01, 0.02
"""The rounds of a run may be off another clock by this share of it, or by these seconds."""
CALENDAR_S = 0.1
"""A round may have been dated so much late: older loops read the date after its beginning."""


def round_times(row: Row, *, gathered: bool) -> Iterator[Contradiction]:
    """Compare the times of a round with those of its calls.

    Parameters
    ----------
    row : mapping
        The round.
    gathered : bool
        Whether it waited for verifications that a mismatch had made needless.
    """
    yield from _draft_times(row)
    yield from _waited(row, gathered)
    yield from _target_tool(row)
    yield from _places(row)


def run_times(rows: Sequence[Row]) -> Iterator[tuple[int | None, Contradiction]]:
    """Compare the rounds of a run with its clock and with the calendar.

    Yields
    ------
    tuple of (round or None, Contradiction)
        None is about the whole run.
    """
    yield from _clock(rows)
    yield from _calendar(rows)


def _rounding(n: int) -> float:
    """Return by how much a sum of so many recorded times may be off."""
    return ROUNDING_S * n


def _seconds(row: Row, name: str, said: str) -> Contradiction:
    return Contradiction(name, said, f"{row[name]:.4f}")


def _draft_times(row: Row) -> Iterator[Contradiction]:
    calls = row["proposals"]
    sums = {
        "draft_model_s": ("calls", sum(call["end_s"] - call["start_s"] for call in calls)),
        "proposal_tool_s": ("tools", sum(call["tool_s"] for call in calls)),
    }
    for name, (of_what, total) in sums.items():
        if abs(row[name] - total) > _rounding(1 + len(calls)):
            yield _seconds(row, name, f"{total:.4f}, the sum of its proposals' {of_what}")


def _waited(row: Row, gathered: bool) -> Iterator[Contradiction]:
    asked = row["verifications"]
    used = [one for one in asked if one["status"] == "used"]
    longest = max((one["end_s"] - one["start_s"] for one in used), default=0.0)
    if abs(row["wait_s"] - longest) > _rounding(2):
        yield _seconds(row, "wait_s", f"{longest:.4f}, its longest used verification")
        return  # what was waited beyond it can't be said
    yield from _not_too_late(row)
    # A failed request is closed only after the wait, and so are cancelled ones unless gathered.
    awaited = [one for one in asked if gathered and one["status"] == "cancelled"] + used
    if not awaited:
        return
    spanned = max(one["end_s"] for one in awaited) - min(one["start_s"] for one in asked)
    if row["wait_s"] + row["idle_s"] < spanned - _rounding(4):
        least = spanned - longest
        yield _seconds(row, "idle_s", f"at least {least:.4f}, until what it waited for had ended")


def _not_too_late(row: Row) -> Iterator[Contradiction]:
    """Check that the wait had ended when needless requests were closed and the tool was run."""
    asked = row["verifications"]
    latest_s = min([row["wall_s"] - row["target_tool_s"], *_closed(asked)])
    most_s = latest_s - _proposed_at(row)
    if row["wait_s"] + row["idle_s"] > most_s + _rounding(5):
        said = f"at most {most_s - row['wait_s']:.4f}, until the round went on"
        yield _seconds(row, "idle_s", said)


def _closed(asked: Sequence[Row]) -> Iterator[float]:
    """Yield when requests were closed by the round, and did not end themselves.

    Only a whole answer has the count of its prompt, if this server counts.
    """
    counts = all(one["prompt_tokens"] is not None for one in asked if one["status"] == "used")
    for one in asked:
        aborted = one["status"] == "cancelled" and counts and one["prompt_tokens"] is None
        if aborted or one["status"] == "failed":
            yield one["end_s"]


def _proposed_at(row: Row) -> float:
    """Return when the last proposal was done."""
    return row["proposals"][-1]["end_s"] + row["proposals"][-1]["tool_s"] if row["proposals"] else 0


def _target_tool(row: Row) -> Iterator[Contradiction]:
    """Check the tool of the target's own action: it runs last, if there is such an action."""
    took = row["target_tool_s"]
    left = row["wall_s"] - max((one["end_s"] for one in row["verifications"]), default=0.0)
    if row["committed"] == row["accepted"] and took > _rounding(1):
        said = "0, as the tools of accepted proposals have run already"
        yield _seconds(row, "target_tool_s", said)
    elif took > left + _rounding(3):
        said = f"at most {left:.4f}, what is left after its verifications"
        yield _seconds(row, "target_tool_s", said)


def _places(row: Row) -> Iterator[Contradiction]:
    """Check that the draft's calls come one after another, then the target's, all in the round."""
    ready_s = 0.0
    for name, call in _named(row, "proposals"):
        yield from _not_before(ready_s, name, call)
        ready_s = call["end_s"] + call["tool_s"]
    for name, call in _named(row, "verifications"):
        yield from _not_before(ready_s, name, call)
    for name, call in (*_named(row, "proposals"), *_named(row, "verifications")):
        if call["end_s"] > row["wall_s"] + _rounding(2):
            said = f"at most {row['wall_s']:.4f}, the end of the round"
            yield Contradiction(f"{name}.end_s", said, f"{call['end_s']:.4f}")


def _named(row: Row, items: str) -> list[tuple[str, Row]]:
    return [(f"{items}[{i}]", call) for i, call in enumerate(row[items])]


def _not_before(ready_s: float, name: str, call: Row) -> Iterator[Contradiction]:
    if call["start_s"] < ready_s - _rounding(3):
        said = f"at least {ready_s:.4f}, when the proposal before it was done"
        yield Contradiction(f"{name}.start_s", said, f"{call['start_s']:.4f}")


def _slack(seconds: float) -> float:
    return CLOCK_S + CLOCK_SHARE * seconds


def _clock(rows: Sequence[Row]) -> Iterator[tuple[int | None, Contradiction]]:
    """Check that the run's clock covers every round, and little else."""
    before_s, contradicted = 0.0, False
    for row in rows:
        clock_s, least_s = row["clock_s"], before_s + row["wall_s"]
        if clock_s < least_s - _slack(row["wall_s"]):
            contradicted = True
            said = f"at least {least_s:.4f}, the clock before and its own wall_s"
            yield row["round"], _seconds(row, "clock_s", said)
        before_s = least_s if math.isnan(clock_s) else clock_s
    spent_s = sum(row["wall_s"] for row in rows)
    if not contradicted and abs(spent_s - before_s) > _slack(before_s):
        said = f"about {spent_s:.4f}, the sum of the rounds"
        yield None, Contradiction("clock_s", said, f"{before_s:.4f}")


def _calendar(rows: Sequence[Row]) -> Iterator[tuple[int | None, Contradiction]]:
    """Check that each round starts when the one before has ended; any time may pass between."""
    for before, row in pairwise(rows):
        ended_s = before["started_s"] + before["wall_s"]
        if row["started_s"] < ended_s - CALENDAR_S - CLOCK_SHARE * before["wall_s"]:
            said = f"at least {ended_s:.4f}, the end of the round before"
            yield row["round"], _seconds(row, "started_s", said)
