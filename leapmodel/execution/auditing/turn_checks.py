"""What the order must be of arms that take turns: a turn is over in both before the next begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from leapmodel.execution.auditing.stated import (
    in_order,
    is_whole,
    listed_tasks,
    names_both_arms,
)
from leapmodel.execution.auditing.time_checks import CALENDAR_S
from leapmodel.execution.auditing.violation import Violation
from leapmodel.round_checks import ARMS
from leapmodel.rounds import Rounds


def turns(rounds: Rounds) -> Iterator[Violation]:
    """Find tasks whose arms did not run when the metadata say that they had their turn.

    Tasks that are not listed, as when more were added later, are passed over. So is a record whose
    metadata name one arm: the other, if it has one, was run afterwards.

    Parameters
    ----------
    rounds : Rounds
        The metadata's ``turn``, ``tasks`` and ``arms`` are sound, or there is nothing to find.
    """
    turn_of = _turns_of(rounds.metadata)
    frame = rounds.frame[rounds.frame["task"].isin(turn_of) & rounds.frame["started_s"].notna()]
    frame = frame.assign(
        turn=frame["task"].map(turn_of), ended_s=frame["started_s"] + frame["wall_s"]
    )
    for run, of_pass in frame.groupby("run", sort=True):
        begun = of_pass.groupby("turn")["started_s"].min()
        begins, ends = (
            of_pass.groupby(["task", "arm"])[column].agg(how)
            for column, how in (("started_s", "min"), ("ended_s", "max"))
        )
        for task in dict.fromkeys(of_pass["task"]):
            later = begun[begun.index > turn_of[task]].min()
            yield from _of_task(task, int(str(run)), begins, ends, later)


def _of_task(
    task: str, run: int, begins: pd.Series, ends: pd.Series, next_turn_s: float
) -> Iterator[Violation]:
    for arm in ARMS:
        began_s, ended_s = begins.get((task, arm)), ends.get((task, arm))
        if ended_s is None:
            if next_turn_s == next_turn_s:
                said = "some, as the next turn had begun"
                yield Violation(task, run, arm, None, "rounds", said, "none")
        elif ended_s > next_turn_s + CALENDAR_S:
            said = f"its turn to end before {next_turn_s:.4f}, when the next one began"
            yield Violation(task, run, arm, None, "started_s", said, f"{began_s:.4f}")
    first, second = (begins.get((task, arm)) for arm in ARMS)
    if first is not None and second is not None and second < first - CALENDAR_S:
        said = f"the sequential arm first, which began at {first:.4f}"
        yield Violation(task, run, ARMS[1], None, "started_s", said, f"{second:.4f}")


def _turns_of(metadata: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of each listed task's turn; nothing where the arms took none."""
    turn: Any = metadata.get("turn")
    if not (is_whole(turn) and turn > 0 and names_both_arms(metadata) and in_order(metadata)):
        return {}
    return {name: at // turn for at, name in enumerate(listed_tasks(metadata))}
