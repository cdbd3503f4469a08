"""What must hold of a record as a whole: its rounds and what its metadata say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from leapmodel.errors import shown
from leapmodel.execution.auditing.violation import Violation
from leapmodel.round_checks import ARMS
from leapmodel.rounds import KEY, Rounds

TERMINALS = ("accepted", "probe")


def stated_terminal(metadata: Mapping[str, Any]) -> str | None:
    """Return what the metadata say of terminal proposals; None if nothing that is known."""
    said = metadata.get("terminal")
    return said if isinstance(said, str) and said in TERMINALS else None


def whole_record(rounds: Rounds) -> Iterator[Violation]:
    """Compare the rounds with the metadata and with each other."""
    yield from _terminal(rounds.metadata)
    yield from _depths(rounds)
    for name in ("clock_s", "started_s"):
        yield from _missing(rounds.frame, name)
    skipped = list(_skipped_tasks(rounds))
    yield from skipped
    named = {(one.task, one.run, one.arm) for one in skipped}
    for missing in _missing_arms(rounds):
        if (missing.task, missing.run, missing.arm) not in named:
            yield missing
    yield from _copied(rounds.frame)


def _in_metadata(name: str, expected: str, found: object) -> Violation:
    return Violation(None, None, None, None, f"{name} in the metadata", expected, shown(found))


def _of_run(row: Any, what: str, expected: str, found: str) -> Violation:
    return Violation(str(row.task), int(row.run), str(row.arm), None, what, expected, found)


def _of_round(row: Any, what: str, expected: str, found: str) -> Violation:
    place = (str(row.task), int(row.run), str(row.arm), int(row.round))
    return Violation(*place, what, expected, found)


def _terminal(metadata: Mapping[str, Any]) -> Iterator[Violation]:
    said = metadata.get("terminal")
    if said is not None and stated_terminal(metadata) is None:
        yield _in_metadata("terminal", " or ".join(TERMINALS), said)


def _depths(rounds: Rounds) -> Iterator[Violation]:
    """Check that speculative rounds have the depth that the metadata state, if they state one."""
    stated = rounds.metadata.get("depth")
    if stated is None:
        return
    if isinstance(stated, bool) or not isinstance(stated, int):
        yield _in_metadata("depth", "a whole number", stated)
        return
    frame = rounds.speculative.frame
    depths = frame["depth"].unique()
    if len(depths) == 1 and depths[0] != stated:  # not one round is altered: the metadata are
        yield _in_metadata("depth", f"{depths[0]}, that of every speculative round", stated)
        return
    for row in frame[frame["depth"] != stated].itertuples():
        yield _of_round(row, "depth", f"{stated}, as the metadata say", f"{row.depth}")


def _missing(frame: pd.DataFrame, name: str) -> Iterator[Violation]:
    """Check that a time is recorded of every round or of none."""
    lacks = frame[name].isna()
    if not lacks.all():
        for row in frame[lacks].itertuples():
            yield _of_round(row, name, "seconds, as other rounds have", "none")


def _skipped_tasks(rounds: Rounds) -> Iterator[Violation]:
    """Find tasks without rounds whose turn came before that of one with rounds.

    Tasks run in the order in which the metadata list them, so what an unfinished run lacks is at
    the end of its last pass. Of several at a time any may be the first that has a round.
    """
    listed = rounds.metadata.get("tasks")
    if listed is None:
        return
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        yield _in_metadata("tasks", "a list of names", listed)
        return
    in_order = rounds.metadata.get("concurrency", 1) == 1
    runs = rounds.frame[KEY].drop_duplicates()
    last_run = runs["run"].max()
    for (run, arm), of_arm in runs.groupby(["run", "arm"], sort=False):
        present = set(of_arm["task"])
        begun = [at for at, name in enumerate(listed) if name in present and in_order]
        reached = len(listed) if run < last_run else max(begun, default=0)
        for name in listed[:reached]:
            if name not in present:
                expected = "some, as the metadata list this task before others that have them"
                yield Violation(name, int(str(run)), str(arm), None, "rounds", expected, "none")


def _missing_arms(rounds: Rounds) -> Iterator[Violation]:
    """Find tasks that were run in one arm and not in the other, where the metadata name both.

    An arm that no task has is not missed: arms may be in files of their own.
    """
    stated = rounds.metadata.get("arms")
    if not isinstance(stated, list) or not all(arm in stated for arm in ARMS):
        return
    in_order = rounds.metadata.get("concurrency", 1) == 1
    runs = rounds.frame[KEY].drop_duplicates()
    last_run = dict(runs.groupby("task")["run"].max())
    for number, of_run in runs.groupby("run", sort=False):
        first, second = (list(of_run.loc[of_run["arm"] == arm, "task"]) for arm in ARMS)
        if not first or not second:
            continue
        repeated = {task for task in first if last_run[task] > number}
        firsts = set(first)
        never_first = [task for task in second if task not in firsts]
        passed_over = _passed_over(first, set(second), repeated, in_order)
        for arm, missed in zip(ARMS, (never_first, passed_over), strict=True):
            for task in missed:
                expected = "some, as the metadata name this arm"
                yield Violation(str(task), int(str(number)), arm, None, "rounds", expected, "none")


def _passed_over(
    first: list[str], second: set[str], repeated: set[str], in_order: bool
) -> list[str]:
    """Return the tasks of the first arm that the second one can't still have before it.

    The arms run one after another, each over the tasks in order: in a run that is unfinished a task
    may lack its second arm if no later task has it, and no later pass.
    """
    both = [at for at, task in enumerate(first) if task in second]
    reached = both[-1] if both and in_order else -1
    return [
        task
        for at, task in enumerate(first)
        if task not in second and (at < reached or task in repeated)
    ]


def _copied(frame: pd.DataFrame) -> Iterator[Violation]:
    """Check that no two runs of a task start at the same moment."""
    first: dict[tuple[Any, Any], Any] = {}
    for row in frame[(frame["round"] == 0) & frame["started_s"].notna()].itertuples():
        other = first.setdefault((row.task, row.started_s), row)
        if other is not row:
            expected = f"a moment of its own, not that of run {other.run}, {other.arm}"
            yield _of_run(row, "started_s", expected, f"{row.started_s:.4f}")
