"""What must hold of a record as a whole: its rounds and what its metadata say of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from leapmodel.errors import shown
from leapmodel.execution.auditing.stated import (
    MODES,
    TERMINALS,
    in_order,
    is_list_of_names,
    is_whole,
    listed_tasks,
    names_both_arms,
)
from leapmodel.execution.auditing.turn_checks import turns
from leapmodel.execution.auditing.violation import Violation
from leapmodel.round_checks import ARMS
from leapmodel.rounds import KEY, Rounds


class Unfinished(NamedTuple):
    """How many of the listed tasks no pass has come to.

    ``arm`` is the one that lacks so many; None if it is so of every arm that the record has.
    """

    tasks: int
    listed: int
    arm: str | None = None

    def __str__(self) -> str:
        has = "has" if self.tasks == 1 else "have"
        rounds = "rounds" if self.arm is None else f"{self.arm} rounds"
        return f"unfinished: {self.tasks} of {self.listed} listed tasks {has} no {rounds}"


def whole_record(rounds: Rounds, unread: Collection[str | None] = ()) -> Iterator[Violation]:
    """Compare the rounds with the metadata and with each other.

    Parameters
    ----------
    rounds : Rounds
    unread : collection of str
        Tasks that have rounds in the record which are no valid ones.
    """
    yield from _metadata(rounds.metadata)
    yield from _depths(rounds)
    for name in ("clock_s", "started_s"):
        yield from _missing(rounds.frame, name)
    skipped = list(_skipped_tasks(rounds, unread))
    yield from skipped
    named = {(one.task, one.run, one.arm) for one in skipped}
    for missing in (*_missing_arms(rounds), *turns(rounds)):
        if missing.what != "rounds" or (missing.task, missing.run, missing.arm) not in named:
            named.add((missing.task, missing.run, missing.arm))
            yield missing
    yield from _copied(rounds.frame)


def _in_metadata(name: str, expected: str, found: object) -> Violation:
    return Violation(None, None, None, None, f"{name} in the metadata", expected, shown(found))


def _of_run(row: Any, what: str, expected: str, found: str) -> Violation:
    return Violation(str(row.task), int(row.run), str(row.arm), None, what, expected, found)


def _of_round(row: Any, what: str, expected: str, found: str) -> Violation:
    place = (str(row.task), int(row.run), str(row.arm), int(row.round))
    return Violation(*place, what, expected, found)


def _metadata(metadata: Mapping[str, Any]) -> Iterator[Violation]:
    """Check what the metadata say that decides what is checked; it may be left out, not unknown."""
    for name, known in (("terminal", TERMINALS), ("mode", MODES)):
        said = metadata.get(name)
        if said is not None and not (isinstance(said, str) and said in known):
            yield _in_metadata(name, " or ".join(known), said)
    for name in ("concurrency", "turn"):
        said = metadata.get(name)
        if said is not None and not (is_whole(said) and said > 0):
            yield _in_metadata(name, "a whole number above 0", said)
    arms = metadata.get("arms")
    if arms is not None and not (isinstance(arms, list) and arms and all(a in ARMS for a in arms)):
        yield _in_metadata("arms", f"a list of {' and '.join(ARMS)}, or of one of them", arms)
    listed = metadata.get("tasks")
    if listed is not None and not is_list_of_names(listed):
        yield _in_metadata("tasks", "a list of names", listed)


def _depths(rounds: Rounds) -> Iterator[Violation]:
    """Check that speculative rounds have the depth that the metadata state, if they state one."""
    stated = rounds.metadata.get("depth")
    if stated is None:
        return
    if not is_whole(stated):
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


def unfinished(rounds: Rounds, unread: Collection[str | None] = ()) -> Unfinished | None:
    """Return how many of the tasks that the metadata list no pass has come to.

    It is no violation: a run that broke off looks so. One whose last tasks were taken out does,
    too. An arm that no task has is not missed. None if no tasks are listed.
    """
    listed = listed_tasks(rounds.metadata)
    if not listed:
        return None
    lacking: dict[str, int] = {}
    for arm, of_arm in rounds.frame.groupby("arm", sort=False):
        present = {*of_arm["task"], *unread}
        come_to = _come_to(rounds.metadata, listed, present)
        lacking[str(arm)] = sum(name not in present for name in listed[come_to:])
    most = max(lacking.values(), default=0)
    arms = [arm for arm, tasks in lacking.items() if tasks == most]
    return Unfinished(most, len(listed), None if len(arms) == len(lacking) else arms[0])


def _come_to(metadata: Mapping[str, Any], listed: list[str], present: Collection[str]) -> int:
    """Return how many of the listed tasks had their turn, by those that have rounds."""
    if not in_order(metadata):
        return 0
    return max((at for at, name in enumerate(listed, start=1) if name in present), default=0)


def _skipped_tasks(rounds: Rounds, unread: Collection[str | None]) -> Iterator[Violation]:
    """Find tasks without rounds whose turn came before that of one with rounds.

    Tasks run in the order in which the metadata list them, so what a pass lacks is at its end: it
    is unfinished, or was told to take fewer of them.
    """
    listed = listed_tasks(rounds.metadata)
    runs = rounds.frame[KEY].drop_duplicates()
    for (run, arm), of_arm in runs.groupby(["run", "arm"], sort=False):
        present = {*of_arm["task"], *unread}
        for name in listed[: _come_to(rounds.metadata, listed, present)]:
            if name not in present:
                expected = "some, as the metadata list this task before others that have them"
                yield Violation(name, int(str(run)), str(arm), None, "rounds", expected, "none")


def _missing_arms(rounds: Rounds) -> Iterator[Violation]:
    """Find tasks that were run in one arm and not in the other, where the metadata name both.

    An arm that no task has is not missed: arms may be in files of their own.
    """
    if not names_both_arms(rounds.metadata):
        return
    runs = rounds.frame[KEY].drop_duplicates()
    last_run = dict(runs.groupby("task")["run"].max())
    for number, of_run in runs.groupby("run", sort=False):
        first, second = (list(of_run.loc[of_run["arm"] == arm, "task"]) for arm in ARMS)
        if not first or not second:
            continue
        repeated = {task for task in first if last_run[task] > number}
        firsts = set(first)
        never_first = [task for task in second if task not in firsts]
        passed_over = _passed_over(first, set(second), repeated, in_order(rounds.metadata))
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
