"""From the best configuration's interval to one word and one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from leapmodel.bootstrap import MIN_TASKS

Decision = Literal["deploy", "pilot first", "don't", "cannot tell"]

DEPLOY_ABOVE = 1.10
"""The lower end of the interval must exceed this for "deploy"."""
PAPER_WORST_MISS = 0.22
"""The largest miss of the framework's predictions in the paper (Table 12, Gemma on OpenAGI)."""


@dataclass(frozen=True)
class Verdict:
    """One recommendation.

    Attributes
    ----------
    decision : {"deploy", "pilot first", "don't", "cannot tell"}
        The lower end above 1.10; from 1 to 1.10; at or below 1; or no interval.
    draft : str
        The configuration it speaks of.
    depth : int
        Its k.
    speedup : float
        Its predicted speedup.
    ci95 : tuple of float, or None
        Interval adjusted for having picked the best of several configurations.
    sentence : str
        The recommendation in words.
    """

    decision: Decision
    draft: str
    depth: int
    speedup: float
    ci95: tuple[float, float] | None
    sentence: str

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "decision": self.decision,
            "draft": self.draft,
            "depth": self.depth,
            "speedup": self.speedup,
            "speedup_ci95_adjusted": None if self.ci95 is None else list(self.ci95),
            "sentence": self.sentence,
        }


def give_verdict(
    *,
    draft: str,
    depth: int,
    speedup: float,
    ci95: tuple[float, float] | None,
    n_tasks: int,
    n_configurations: int,
    conditional_on: tuple[str, ...] = (),
) -> Verdict:
    """Apply the verdict rule to the best configuration.

    Parameters
    ----------
    draft, depth, speedup
        The best configuration and its predicted speedup.
    ci95 : tuple of float, or None
        Its interval, adjusted for the choice; None with too few tasks.
    n_tasks : int
        Tasks in the trace.
    n_configurations : int
        How many it was chosen from.
    conditional_on : tuple of str
        What was stated, so that the interval does not cover it; the sentence repeats it.

    Examples
    --------
    >>> give_verdict(draft="small", depth=2, speedup=1.4, ci95=(1.2, 1.6), n_tasks=60,
    ...              n_configurations=6).decision
    'deploy'
    """
    what = f"{draft} at k = {depth}"
    if ci95 is None:
        return Verdict(
            "cannot tell",
            draft,
            depth,
            speedup,
            None,
            f"Cannot tell: {n_tasks} tasks are too few for an interval (at least {MIN_TASKS}); the"
            f" best point estimate is {speedup:.2f}x with {what}.",
        )
    low, high = ci95
    many = f", adjusted for picking the best of {n_configurations}" if n_configurations > 1 else ""
    figures = f"{speedup:.2f}x with {what} (95% interval {low:.2f} to {high:.2f}{many})"
    decision: Decision
    if low > DEPLOY_ABOVE:
        decision = "deploy"
        words = f"Deploy: predicted {figures}; even the lower end is above {DEPLOY_ABOVE:.2f}."
    elif low > 1:
        decision = "pilot first"
        words = (
            f"Pilot first: predicted {figures}; the lower end is above 1 but not above"
            f" {DEPLOY_ABOVE:.2f}."
        )
    elif high > 1 and speedup > 1:
        decision = "don't"
        words = (
            f"Don't, on this evidence: predicted {figures}; the interval includes no gain at all."
        )
    else:
        decision = "don't"
        words = f"Don't: even the best configuration is predicted at {figures}."
    if conditional_on and low > 1:
        words += f" This holds only if these do: {'; '.join(conditional_on)}."
    return Verdict(decision, draft, depth, speedup, ci95, f"{words} {_model_error(decision)}")


def _model_error(decision: Decision) -> str:
    size = f"the paper's predictions miss the measured speedup by up to {PAPER_WORST_MISS}"
    if decision == "don't":
        return f"Model error comes on top: {size}."
    return f"Model error comes on top: {size}, mostly by promising too much."
