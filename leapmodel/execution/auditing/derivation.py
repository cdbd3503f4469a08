"""A round derived a second time: what the rules make of its state and its recorded outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leapmodel.actions import canonical_action
from leapmodel.benchmarks import Benchmark, Environment, Role

Row = Mapping[str, Any]
"""A round as it is recorded; see :mod:`leapmodel.rounds`."""


class Derived:
    """A round as it follows from the state it starts in and the recorded raw outputs.

    Attributes
    ----------
    calls : list of (recorded proposal, action, status)
        The draft's calls that the rules allow, with what its outputs say.
    offered : list of str
        The proposals among them.
    goes_on : bool
        Whether a further proposal would be allowed.
    states : list of Environment
        Where each verification starts.
    answers : list of str or None
        What the outputs of the used verifications say.
    accepted, committed : int
        A, and how many actions the round commits.
    requests : list of (name, hash, recorded hash)
        Of target and draft.
    """

    def __init__(
        self, benchmark: Benchmark, terminal: str, environment: Environment, row: Row
    ) -> None:
        self.row = row
        self.calls: list[tuple[Row, str | None, str]] = []
        self.offered: list[str] = []
        self.states = [environment]
        self.requests: list[tuple[str, str, str | None]] = []
        self.goes_on = True
        branch = environment.clone()
        for i, proposal in enumerate(row["proposals"]):
            if not self.goes_on:
                break
            hashed = branch.prompt("draft").sha256()
            self.requests.append((f"proposals[{i}].context", hashed, proposal["context"]))
            action = _parsed(benchmark, "draft", proposal["output"])
            ends = action is not None and benchmark.is_terminal(action)
            status = "invalid" if action is None else "proposed"
            if ends and terminal == "probe":
                status = "withheld"
            self.calls.append((proposal, action, status))
            if action is None or status == "withheld":
                self.goes_on = False
                break
            self.offered.append(action)
            branch.step(action)
            self.goes_on = not (ends or branch.over or branch.segment != environment.segment)
            if self.goes_on:
                self.states.append(branch.clone())
        asked = row["verifications"]
        for i, (state, verification) in enumerate(zip(self.states, asked, strict=False)):
            hashed = state.prompt("target").sha256()
            self.requests.append((f"verifications[{i}].context", hashed, verification["context"]))
        self.answers = [
            _parsed(benchmark, "target", verification["output"])
            for verification in asked
            if verification["status"] == "used"
        ]
        self.accepted = 0
        for ours, theirs in zip(self.answers, self.offered, strict=False):
            if ours is None or ours != theirs:
                break
            self.accepted += 1
        self.committed = self.accepted + (len(self.states) > self.accepted)

    @property
    def follows(self) -> bool:
        """Whether the round's first verification starts where the rounds before ended."""
        first = "verifications[0].context"
        return any(name == first and ours == theirs for name, ours, theirs in self.requests)


def state_after(
    environment: Environment, row: Row, answers: Sequence[str | None], following: Row | None
) -> Environment:
    """Return the state after a round: by its outputs, or by its actions if the next fits those."""
    recorded = [v["action"] for v in row["verifications"] if v["status"] == "used"]
    by_output = _stepped(environment, answers)
    if following is None or list(answers) == recorded or not following["verifications"]:
        return by_output
    by_action = _stepped(environment, recorded)
    if by_action.over:
        return by_output
    next_hash = following["verifications"][0]["context"]
    fits = by_action.prompt("target").sha256() == next_hash
    return by_action if fits else by_output


def _stepped(environment: Environment, actions: Iterable[str | None]) -> Environment:
    state = environment.clone()
    for action in actions:
        state.step(action)
    return state


def _parsed(benchmark: Benchmark, role: Role, output: str | None) -> str | None:
    action = None if output is None else benchmark.parse(role, output)
    return None if action is None else canonical_action(action)
