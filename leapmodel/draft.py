"""A draft, as far as a prediction needs it: how often it is right, what a call costs, how we know.

Four origins give the same object: figures a person states (:func:`stated_draft`), teacher-forced
predictions (also those of a model learned from the trace itself) and an independent run (both
:mod:`leapmodel.compared_draft`), and the rounds of a measured speculative run
(:mod:`leapmodel.measured_draft`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from leapmodel.acceptance import Acceptance, StatedAcceptance, TeacherForced
from leapmodel.errors import DataError, UsageError
from leapmodel.segments import Floats


@dataclass(frozen=True, eq=False)
class DraftCost:
    """What one draft call costs.

    Attributes
    ----------
    numerator, denominator : ndarray, shape (tasks,) or (1,)
        Draft seconds over calls, or over the target's seconds, per task; of one task if stated.
    unit : {"seconds", "target steps"}
        Whether the ratio is seconds a call (t_draft) or t_draft / t_gen (d).
    measured : bool
        False if somebody stated it.
    same_tasks : bool
        As in :class:`~leapmodel.hits.HitCounts`.
    """

    numerator: Floats
    denominator: Floats
    unit: Literal["seconds", "target steps"]
    measured: bool
    same_tasks: bool = True

    def seconds(self, mean_gen_s: float) -> float:
        """Return seconds a call, given t_gen."""
        ratio = float(self.numerator.sum() / self.denominator.sum())
        return ratio if self.unit == "seconds" else ratio * mean_gen_s


@dataclass(frozen=True, eq=False, repr=False)
class Draft:
    """The evidence for one draft.

    Attributes
    ----------
    name : str
        For tables.
    source : str
        Where the evidence comes from, in words.
    acceptance : Acceptance
        How often its proposals are accepted.
    cost : DraftCost
        What a call costs.
    known : TeacherForced or None
        The step-by-step evidence behind a pooled acceptance, for its bounds.
    conditional_on : tuple of str
        What was stated or held fixed, so that no interval covers it.
    warnings : tuple of str
        What limits the evidence.
    facts : dict
        Numbers behind it (known steps, hits, paired tasks, …).
    slowdown : tuple of float
        The target's time per token with 1, 2, … requests at once over that of one alone, if it was
        timed along with the draft; empty otherwise.
    """

    name: str
    source: str
    acceptance: Acceptance
    cost: DraftCost
    known: TeacherForced | None = None
    conditional_on: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    facts: dict[str, float | int] = field(default_factory=dict)
    slowdown: tuple[float, ...] = ()

    def __repr__(self) -> str:
        return f"<Draft {self.name}: {self.source}>"

    @property
    def evidence_tasks(self) -> int | None:
        """Tasks that what was measured of it comes from, or None if all of it was stated."""
        found = []
        if self.acceptance.estimate is not None:
            found.append(self.acceptance.estimate.n_tasks)
        elif self.known is not None:
            found.append(self.known.counts.n_tasks)
        if self.cost.measured:
            found.append(int((self.cost.denominator > 0).sum()))
        return min(found, default=None)

    @property
    def coverage(self) -> float | None:
        """Share of steps whose outcome is known, or None if the acceptance was stated."""
        return None if self.known is None else self.known.steps.coverage


def stated_draft(
    acceptance: float | Sequence[float],
    *,
    latency_s: float | None = None,
    cost: float | None = None,
    name: str = "stated draft",
) -> Draft:
    """Return a draft described by figures that somebody states.

    Parameters
    ----------
    acceptance : float or sequence of float
        Acceptance of a proposal whose predecessors were accepted, a_j, in [0, 1]: one for all
        positions, or one per position (the last goes on).
    latency_s : float, optional
        Seconds of one draft call, >= 0.
    cost : float, optional
        The same over t_gen, d. Exactly one of the two must be given.
    name : str, default "stated draft"
        For tables.

    Raises
    ------
    UsageError
        If a value is out of range, or not exactly one cost is given.

    Examples
    --------
    >>> stated_draft([0.8, 0.7], latency_s=0.2).source
    'acceptance 0.8, 0.7 and 0.2 s a call, as stated'
    """
    values = np.atleast_1d(np.asarray(acceptance, dtype=np.float64))
    if not len(values) or not ((values >= 0) & (values <= 1)).all():
        raise UsageError(f"acceptance: expected numbers from 0 to 1, found {_listed(values)}")
    said = _listed(values)
    price, unit = stated_cost(latency_s, cost)
    words = f"{latency_s:g} s a call" if latency_s is not None else f"{cost:g} target steps a call"
    return Draft(
        name,
        f"acceptance {said} and {words}, as stated",
        StatedAcceptance(values),
        price,
        conditional_on=("the acceptance, as stated", cost_as(unit, "stated")),
    )


def stated_cost(latency_s: float | None, cost: float | None) -> tuple[DraftCost, str]:
    """Return a cost that somebody states in one of two units, and the unit in words."""
    if (latency_s is None) == (cost is None):
        raise UsageError("state either the draft's seconds a call or its cost in target steps")
    value = latency_s if latency_s is not None else cost
    assert value is not None
    if not np.isfinite(value) or value < 0:
        raise UsageError(f"the draft's cost: expected a number >= 0, found {value:g}")
    unit: Literal["seconds", "target steps"] = "target steps" if latency_s is None else "seconds"
    return DraftCost(np.array([value]), np.array([1.0]), unit, measured=False), unit


def cost_as(unit: str, known: str) -> str:
    """Return what depends on a call's cost, and how that is known, in words."""
    return f"the draft's {unit} a call, as {known}"


def probed(draft: Draft, slowdown: Sequence[float] = ()) -> Draft:
    """Return a draft whose cost a call was not stated but timed by ``leapmodel probe``.

    Parameters
    ----------
    draft : Draft
        Built with the probed seconds a call.
    slowdown : sequence of float, default ()
        What the probe found of the target.

    Examples
    --------
    >>> probed(stated_draft(0.8, latency_s=0.2)).conditional_on
    ('the acceptance, as stated', "the draft's seconds a call, as probed")
    """
    stated = cost_as(draft.cost.unit, "stated")
    conditions = tuple(
        cost_as(draft.cost.unit, "probed") if condition == stated else condition
        for condition in draft.conditional_on
    )
    return replace(draft, conditional_on=conditions, slowdown=tuple(slowdown) or draft.slowdown)


def _listed(values: Floats) -> str:
    return ", ".join(f"{value:.9g}" for value in values) or "none"


def require_known(facts: dict[str, float | int], name: str) -> None:
    """Refuse evidence without a single known outcome."""
    if not facts["known"]:
        raise DataError(
            name, expected="at least one step whose outcome is known", found="none in common"
        )
