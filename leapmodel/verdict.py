"""From the best configuration's interval to one word and one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from leapmodel.bootstrap import MIN_TASKS

Decision = Literal["deploy", "pilot first", "don't", "cannot tell"]

DEPLOY_ABOVE = 1.10
"""The lower end of the interval must exceed this for "deploy"."""
ENOUGH_KNOWN = 0.5
"""With a smaller share of known steps, what the unknown ones would do can overrule the interval."""
PAPER_WORST_MISS = 0.22
"""The largest miss of the framework's predictions in the paper (Table 12, Gemma on OpenAGI)."""


class Unknown(NamedTuple):
    """What is not known of a draft's outcomes.

    Attributes
    ----------
    coverage : float
        Share of the steps whose outcome is known.
    if_all_miss : float
        Speedup of the best configuration if all unknown steps are misses.
    if_all_hit : float
        Largest speedup of any configuration if all unknown steps are hits.
    """

    coverage: float
    if_all_miss: float
    if_all_hit: float


@dataclass(frozen=True)
class Verdict:
    """One recommendation.

    Attributes
    ----------
    decision : {"deploy", "pilot first", "don't", "cannot tell"}
        The lower end above 1.10; from 1 to 1.10; at or below 1; or not enough is known.
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
    conditional_on : tuple of str
        What was stated or assumed, and decides with it.
    """

    decision: Decision
    draft: str
    depth: int
    speedup: float
    ci95: tuple[float, float] | None
    sentence: str
    conditional_on: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The decision, and whether it rests on what a person stated."""
        positive = self.decision in ("deploy", "pilot first")
        if positive and self._on_what_was_stated:
            return f"{self.decision}, if what was stated holds"
        return self.decision

    @property
    def _on_what_was_stated(self) -> bool:
        return any(condition.endswith("as stated") for condition in self.conditional_on)

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "decision": self.decision,
            "conditional": self._on_what_was_stated,
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
    unknown: Unknown | None = None,
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
    unknown : Unknown, optional
        If most outcomes are unknown and could turn the answer round, it is softened: "deploy" to
        "pilot first", "don't" to "cannot tell".

    Examples
    --------
    >>> give_verdict(draft="small", depth=2, speedup=1.4, ci95=(1.2, 1.6), n_tasks=60,
    ...              n_configurations=6).decision
    'deploy'
    """
    what = f"{draft}, k = {depth}"

    def verdict(decision: Decision, sentence: str) -> Verdict:
        return Verdict(decision, draft, depth, speedup, ci95, sentence, conditional_on)

    if ci95 is None:
        return verdict(
            "cannot tell",
            f"Cannot tell: {n_tasks} task{'s are' if n_tasks != 1 else ' is'} too few for an"
            f" interval (at least {MIN_TASKS} with both times and known outcomes); the"
            f" best point estimate is {speedup:.2f}x ({what}).",
        )
    low, high = ci95
    many = f", adjusted for picking the best of {n_configurations}" if n_configurations > 1 else ""
    figures = f"{speedup:.2f}x with {what} (95% interval {low:.2f} to {high:.2f}{many})"
    decision, words = _by_interval(low, high, speedup, figures)
    if unknown is not None and unknown.coverage < ENOUGH_KNOWN:
        known = f"only {unknown.coverage:.0%} of the steps have a known outcome"
        if decision == "deploy" and unknown.if_all_miss <= 1:
            decision = "pilot first"
            words = (
                f"Pilot first: predicted {figures}, but {known}, and if the others were all misses"
                f" it would be {unknown.if_all_miss:.2f}x."
            )
        elif decision == "don't" and unknown.if_all_hit > DEPLOY_ABOVE:
            decision = "cannot tell"
            words = (
                f"Cannot tell: predicted {figures}, but {known}, and if the others were all hits it"
                f" would be up to {unknown.if_all_hit:.2f}x."
            )
    if conditional_on and decision in ("deploy", "pilot first"):
        words += f" It depends on {'; '.join(conditional_on)}."
    return verdict(decision, f"{words} {_model_error(decision)}")


def _by_interval(low: float, high: float, speedup: float, figures: str) -> tuple[Decision, str]:
    if low > DEPLOY_ABOVE:
        words = f"Deploy: predicted {figures}; even the lower end is above {DEPLOY_ABOVE:.2f}."
        return "deploy", words
    if low > 1:
        beyond = f"the lower end is above 1 but not above {DEPLOY_ABOVE:.2f}"
        return "pilot first", f"Pilot first: predicted {figures}; {beyond}."
    if high > 1 and speedup > 1:
        words = (
            f"Don't, on this evidence: predicted {figures}; the interval includes no gain at all."
        )
        return "don't", words
    return "don't", f"Don't: even the best configuration is predicted at {figures}."


def _model_error(decision: Decision) -> str:
    size = f"the paper's predictions miss the measured speedup by up to {PAPER_WORST_MISS}"
    if decision in ("don't", "cannot tell"):
        return f"Model error comes on top: {size}."
    return f"Model error comes on top: {size}, mostly by promising too much."
