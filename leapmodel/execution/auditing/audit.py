"""The commit audit: is every recorded round what the loop may do (Property 1, App. L, App. M).

A task is run again in the benchmark's environment, from what was committed. Every request is built
anew and compared with the recorded hash, of the target and of the draft; every raw output is parsed
again; and from these the round is derived a second time: which proposals were possible, which of
them are accepted, what is committed. Its times are compared with those of its calls, and the whole
record with its metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from leapmodel.benchmarks import Benchmark, Environment, Task, task_named
from leapmodel.benchmarks.recorded import benchmark_of
from leapmodel.errors import UsageError, shown
from leapmodel.execution.auditing.derivation import Derived, Row, state_after
from leapmodel.execution.auditing.stated import stated_terminal
from leapmodel.execution.auditing.time_checks import round_times, run_times
from leapmodel.execution.auditing.violation import Violation
from leapmodel.execution.auditing.whole_checks import (
    Unfinished,
    unfinished,
    whole_record,
)
from leapmodel.rounds import Problem, Rounds, read_sound_rounds


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What an audit looked at and what it found.

    Attributes
    ----------
    violations : tuple of Violation
        In the order of the rounds, then those of the whole; none if all is well.
    counts : dict
        How much was checked: ``tasks``, ``runs`` (of a task in an arm), ``rounds``, ``requests``
        (hashes compared), ``outputs`` (parsed again), ``commits`` (Property 1).
    unfinished : Unfinished or None
        How many of the tasks that the metadata list have no rounds yet; None if they list none.
    """

    violations: tuple[Violation, ...]
    counts: dict[str, int]
    unfinished: Unfinished | None = None

    def __repr__(self) -> str:
        return f"<Audit: {self.summary().splitlines()[0]}>"

    def __str__(self) -> str:
        return self.summary()

    @property
    def passed(self) -> bool:
        """Whether there is no violation."""
        return not self.violations

    def summary(self) -> str:
        """Return the counts and every violation as plain text."""
        counted = ", ".join(f"{number:,} {name}" for name, number in self.counts.items())
        n = len(self.violations)
        verdict = f"{n:,} violation{'s' * (n != 1)} in {counted}"
        if self.unfinished is not None and self.unfinished.tasks:
            verdict += f"; {self.unfinished}"
        return "\n".join([verdict, *map(str, self.violations)])

    def to_frame(self) -> pd.DataFrame:
        """Return one row a violation: task, run, arm, round, what, expected, found."""
        return pd.DataFrame(
            [vars(violation) for violation in self.violations],
            columns=list(Violation.__dataclass_fields__),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "schema_version": 1,
            "passed": self.passed,
            "counts": dict(self.counts),
            "unfinished": None if self.unfinished is None else self.unfinished.tasks,
            "violations": [dict(vars(violation)) for violation in self.violations],
        }

    def _repr_html_(self) -> str:
        return f"<p>{self.summary().splitlines()[0]}</p>" + self.to_frame().to_html(index=False)


def audit(rounds: Rounds | str | Path, benchmark: Benchmark | None = None) -> Audit:
    """Run every task again and check its rounds.

    Parameters
    ----------
    rounds : Rounds or path
        Of a file, rows that are no valid rounds are violations too; the other rounds of their task
        are then not looked at.
    benchmark : Benchmark, optional
        Default the one that the metadata names, with its settings.

    Returns
    -------
    Audit

    Raises
    ------
    DataError
        If the file can't be read, or does not say its benchmark.
    UsageError
        If there is no such benchmark, it does not take the settings of the metadata, or has other
        tasks than those that ran.
    """
    problems: Sequence[Problem] = ()
    where = "the rounds" if isinstance(rounds, Rounds) else rounds
    if not isinstance(rounds, Rounds):
        rounds, problems = read_sound_rounds(rounds)
    if benchmark is None:
        benchmark = benchmark_of(rounds.metadata, where)
    terminal = stated_terminal(rounds.metadata) or benchmark.terminal
    work = _Work(benchmark, terminal, gathered=rounds.metadata.get("mode") == "gather")
    work.violations += [_of_problem(problem) for problem in problems]
    of_run: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for row in rounds.frame.to_dict(orient="records"):
        key = (str(row["task"]), int(row["run"]), str(row["arm"]))
        of_run.setdefault(key, []).append({str(name): cell for name, cell in row.items()})
    for (task, run, arm), rows in of_run.items():
        work.run(task, run, arm, rows)
    unread = {problem.task for problem in problems}
    work.violations += whole_record(rounds, unread)
    work.counts["tasks"] = rounds.frame["task"].nunique()
    return Audit(tuple(work.violations), work.counts, unfinished(rounds, unread))


def _of_problem(problem: Problem) -> Violation:
    error = problem.error
    line = f"line {error.line}" if error.line is not None else f"row {error.row}"
    what = line if error.column is None else f"{error.column} ({line})"
    where = (problem.task, problem.run, problem.arm, problem.round)
    return Violation(*where, what, error.expected, error.found)


class _Work:
    """One audit under way."""

    def __init__(self, benchmark: Benchmark, terminal: str, *, gathered: bool) -> None:
        self.benchmark, self.terminal, self.gathered = benchmark, terminal, gathered
        self.violations: list[Violation] = []
        self.counts = dict.fromkeys(
            ("tasks", "runs", "rounds", "requests", "outputs", "commits"), 0
        )
        self._tasks: dict[str, Task] = {}
        self._where: tuple[str, int, str, int | None] = ("", 0, "", None)

    def expect(self, what: str, expected: object, found: object) -> None:
        """Note a violation unless the two are equal."""
        if expected != found:
            self.note(what, str(expected), str(found))

    def expect_action(self, what: str, expected: str | None, found: str | None) -> None:
        """Note a violation unless the two actions, or their absence, are the same."""
        if expected != found:
            shown_as = ("no action" if a is None else shown(a) for a in (expected, found))
            self.note(what, *shown_as)

    def note(self, what: str, expected: str, found: str) -> None:
        """Note a violation in the round that is looked at."""
        self.violations.append(Violation(*self._where, what, expected, found))

    def run(self, name: str, run: int, arm: str, rows: Sequence[Row]) -> None:
        """Check one run of a task in one arm."""
        self._where = (name, run, arm, None)
        self.counts["runs"] += 1
        try:
            task = self._tasks.setdefault(name, task_named(self.benchmark, name))
        except UsageError:
            self.note("task", f"a task of the benchmark {self.benchmark.name}", repr(name))
            return
        try:
            self._walk(self.benchmark.start(task), name, run, arm, rows)
        except Exception as error:  # an environment may refuse an altered action in any way
            self.note("the environment", "to take the recorded actions", repr(error))
        for number, contradiction in run_times(rows):
            self._where = (name, run, arm, number)
            self.note(*contradiction)

    def _walk(
        self, environment: Environment, name: str, run: int, arm: str, rows: Sequence[Row]
    ) -> None:
        followed = True
        for number, row in enumerate(rows):
            self._where = (name, run, arm, int(row["round"]))
            if environment.over:
                self.note("round", "none, as the task has ended", "a further one")
                return
            round_ = Derived(self.benchmark, self.terminal, environment, row)
            follows = round_.follows
            if not follows and not followed:
                return  # the rest can't be built again, and where it went wrong has been said
            followed = follows
            self.counts["rounds"] += 1
            self.expect("segment", environment.segment, int(row["segment"]))
            self._requests(round_)
            self._proposals(round_)
            self._verifications(round_)
            self._unused(row)
            for contradiction in round_times(row, gathered=self.gathered):
                self.note(*contradiction)
            following = rows[number + 1] if number + 1 < len(rows) else None
            environment = state_after(environment, row, round_.answers, following)
        if followed and not environment.over:
            self.note("the last round", "one that ends the task", "a task that goes on")

    def _requests(self, derived: Derived) -> None:
        """Compare the hash of every request with that of the one built again."""
        compared = derived.requests
        self.counts["requests"] += len(compared)
        wrong = [request for request in compared if request[1] != request[2]]
        if len(wrong) == len(compared) > 1:  # not one hash is altered: the state is another one
            self.note(
                "requests",
                "those that follow from the rounds before",
                "others (a round lost, doubled or out of order, or an action altered)",
            )
            return
        for what, expected, found in wrong:
            self.note(what, _short(expected), _short(found))

    def _proposals(self, derived: Derived) -> None:
        made, row = derived.row["proposals"], derived.row
        for i, (proposal, action, status) in enumerate(derived.calls):
            self.counts["outputs"] += 1
            if status != "withheld" or proposal["action"] is not None:
                self.expect_action(f"proposals[{i}].action", action, proposal["action"])
            self.expect(f"proposals[{i}].status", status, proposal["status"])
        if len(made) > len(derived.calls):
            self.note(
                f"proposals[{len(derived.calls)}]",
                "none, as the one before ended the segment or stopped proposing",
                "a proposal",
            )
        elif derived.goes_on and len(made) < row["depth"]:
            self.note("proposals", f"{row['depth']}, as nothing stopped the draft", f"{len(made)}")
        self.expect("proposed", len(derived.offered), int(row["proposed"]))

    def _verifications(self, derived: Derived) -> None:
        asked, row = derived.row["verifications"], derived.row
        self.expect("the number of verifications", len(derived.states), len(asked))
        for i, action in enumerate(derived.answers):
            self.counts["outputs"] += 1
            self.expect_action(f"verifications[{i}].action", action, asked[i]["action"])
        self.counts["commits"] += len(derived.answers)
        self.expect("accepted", derived.accepted, int(row["accepted"]))
        self.expect("committed", derived.committed, int(row["committed"]))

    def _unused(self, row: Row) -> None:
        """Check what a round did not use: nothing was read from it."""
        for i, verification in enumerate(row["verifications"]):
            status = verification["status"]
            if status == "used":
                continue
            if verification["action"] is not None:
                found = shown(verification["action"])
                self.note(f"verifications[{i}].action", f"none, as it was {status}", found)
            # Only a server's whole answer says how many tokens the prompt had.
            if status == "failed" and verification["prompt_tokens"] is not None:
                expected = "cancelled, as the server counted its prompt's tokens"
                self.note(f"verifications[{i}].status", expected, status)


def _short(hashed: str | None) -> str:
    return "no hash" if hashed is None else f"{hashed[:12]}…"
