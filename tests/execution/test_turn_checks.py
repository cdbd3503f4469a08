"""A record of arms that took turns, and orders in which they can't have run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from leapmodel.execution.auditing.audit import Audit
from leapmodel.execution.fake.server import FakeServer
from leapmodel.execution.records.recording import ROUNDS_NAME
from leapmodel.rounds import Rounds, read_rounds
from tests.execution.falsifying import Rows, falsify
from tests.execution.scripted import PLANNING, measure, planner

FIRST, SECOND, THIRD, FOURTH, FIFTH = (task.name for task in PLANNING.tasks("test")[:5])


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Rounds:
    folder = tmp_path_factory.mktemp("turns")
    # slower than what the audit lets pass as a clock's step
    with FakeServer(planner(), first_token_s=0.05) as target, FakeServer(planner()) as draft:
        measure(folder, PLANNING, target, draft, 2, limit=5, turn=2)
    return read_rounds(folder / ROUNDS_NAME)


def found(folder: Path, rounds: Rounds, change: Callable[[Rows], Rows | None], **about: object):
    audit: Audit = falsify(folder, rounds, change, **about)
    return {(one.task, one.arm, one.what) for one in audit.violations if one.what != "clock_s"}


def kept(rows: Rows) -> None:
    pass


def moved(task: str, arm: str, seconds: float) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        for row in rows:
            if (row["task"], row["arm"]) == (task, arm):
                row["started_s"] += seconds

    return change


def without(arm: str, *tasks: str) -> Callable[[Rows], Rows]:
    return lambda rows: [row for row in rows if row["arm"] != arm or row["task"] not in tasks]


def test_a_record_as_it_was_made(tmp_path: Path, rounds: Rounds):
    assert found(tmp_path, rounds, kept) == set()


@pytest.mark.parametrize("turn", [1, 3, 4, 9])
def test_another_turn_than_the_rounds_had(tmp_path: Path, rounds: Rounds, turn: int):
    """Shorter ones overlap; longer ones contradict nothing but when a later one was too early."""
    whats = {what for _, _, what in found(tmp_path, rounds, kept, turn=turn)}
    assert whats == ({"started_s"} if turn in (1, 3) else set())


def test_a_speculative_arm_that_ran_a_thousand_seconds_later(tmp_path: Path, rounds: Rounds):
    change = moved(SECOND, "speculative", 1000)
    assert found(tmp_path, rounds, change) == {(SECOND, "speculative", "started_s")}
    # in the last turn nothing comes after it
    assert found(tmp_path, rounds, moved(FIFTH, "speculative", 1000)) == set()


def test_a_speculative_arm_before_its_sequential_one(tmp_path: Path, rounds: Rounds):
    change = moved(FIFTH, "speculative", -1000)
    places = found(tmp_path, rounds, change)
    assert (FIFTH, "speculative", "started_s") in places


def test_an_arm_that_is_lacking_although_the_next_turn_had_begun(tmp_path: Path, rounds: Rounds):
    lacking = found(tmp_path, rounds, without("speculative", SECOND, FIFTH))
    assert lacking == {(SECOND, "speculative", "rounds")}
    # with those of its turn that come after, too: an earlier audit would have called it unfinished
    cut = found(tmp_path, rounds, without("speculative", SECOND, THIRD, FOURTH, FIFTH))
    assert cut == {(SECOND, "speculative", "rounds"), (THIRD, "speculative", "rounds"),
                   (FOURTH, "speculative", "rounds")}  # fmt: skip


def test_a_run_that_broke_off_in_the_second_turn(tmp_path: Path, rounds: Rounds):
    def change(rows: Rows) -> Rows:
        rows = without("sequential", FIFTH)(rows)
        return without("speculative", THIRD, FOURTH, FIFTH)(rows)

    assert found(tmp_path, rounds, change) == set()
