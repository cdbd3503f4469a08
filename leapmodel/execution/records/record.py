"""What one round leaves behind: the rows of :mod:`leapmodel.rounds`, before they are written."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Arm = Literal["sequential", "speculative"]
ProposalStatus = Literal["proposed", "invalid", "withheld"]
VerificationStatus = Literal["used", "cancelled", "failed"]


@dataclass(frozen=True)
class Proposal:
    """One draft call. Times are seconds since the round began.

    ``status`` is ``"proposed"``; ``"invalid"`` if the output did not parse; or ``"withheld"`` for
    a terminal action that the benchmark leaves to a verification without a proposal.
    """

    context: str
    output: str
    action: str | None
    start_s: float
    end_s: float
    tool_s: float
    prompt_tokens: int | None
    completion_tokens: int
    status: ProposalStatus


@dataclass(frozen=True)
class Verification:
    """One request to the target. Times are seconds since the round began.

    ``status`` is ``"used"`` if the round consumed it; ``"cancelled"`` if a mismatch before it
    made it needless; ``"failed"`` if it was needless and the server failed on it.
    """

    context: str
    output: str
    action: str | None
    start_s: float
    end_s: float
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int
    status: VerificationStatus


@dataclass(frozen=True)
class Round:
    """One round, as it is recorded; see :mod:`leapmodel.rounds` for what each column means."""

    task: str
    run: int
    arm: Arm
    segment: int
    round: int
    first_step: int
    depth: int
    proposed: int
    accepted: int
    committed: int
    wall_s: float
    draft_model_s: float
    proposal_tool_s: float
    wait_s: float
    idle_s: float
    target_tool_s: float
    residual_s: float
    clock_s: float
    draft: str | None
    started_s: float
    proposals: tuple[Proposal, ...]
    verifications: tuple[Verification, ...]

    @property
    def committed_actions(self) -> tuple[str | None, ...]:
        """The actions it committed: those of the verifications it used."""
        return tuple(v.action for v in self.verifications if v.status == "used")

    def to_row(self) -> dict[str, Any]:
        """Return it as one row of a rounds file."""
        return asdict(self)
