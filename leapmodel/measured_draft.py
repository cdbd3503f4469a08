"""A draft known by the rounds of a measured run, such as a pilot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from leapmodel.acceptance import PooledAcceptance
from leapmodel.configurations import configurations
from leapmodel.draft import Draft, DraftCost, cost_as, require_known, stated_cost
from leapmodel.errors import DataError, UsageError
from leapmodel.hits import HitCounts
from leapmodel.measurement import calls_by_position, trace_ms_per_token
from leapmodel.recorded_settings import refuse_mixed_benchmarks
from leapmodel.rounds import Rounds
from leapmodel.segments import Floats
from leapmodel.trace import Trace

FEW_CALLS = 30
"""A round position with fewer calls than this takes the acceptance of the one before."""
_ROUND = ["task", "run", "arm", "round"]
OFTEN_INVALID = 0.05
"""From this share of invalid calls on it is said that they cost less than predicted."""


def draft_from_rounds(
    trace: Trace,
    rounds: Rounds,
    *,
    draft: str | None = None,
    latency_s: float | None = None,
    cost: float | None = None,
    name: str | None = None,
) -> Draft:
    """Return a draft known by the rounds of a measured run, such as a pilot.

    The acceptance of each position is that of the calls made there after all earlier proposals of
    the round were accepted, at steps that are not the last of their segment: hit rates already
    contain the truncation that a replay performs by itself, so they can't stand for it.

    Parameters
    ----------
    trace : Trace
        The trace whose speedup is asked for.
    rounds : Rounds
        The run, at whatever depths. Its tasks may be those of the trace or others.
    draft : str, optional
        Which draft; needed if several proposed.
    latency_s, cost : float, optional
        Cost of a call as for :func:`stated_draft`, if it is to be stated instead.
    name : str, optional
        For tables; default the draft's name in the rounds.

    Raises
    ------
    DataError, UsageError
        If there is no speculative round, no call whose outcome is known, or no such draft; or tasks
        of the same names are those of another benchmark.
    """
    found = [part for configuration, part in configurations(rounds) if configuration.draft == draft]
    drafts = list(dict.fromkeys(one.draft for one, _ in configurations(rounds)))
    if not drafts:
        raise DataError("the rounds", expected="a speculative arm", found="none")
    if draft is None and len(drafts) == 1:
        found = [part for _, part in configurations(rounds)]
    if not found:
        asked = "name one of them (--draft-name)" if draft is None else f"not {draft!r}"
        raise UsageError(f"the rounds hold the drafts {', '.join(drafts)}: {asked}")
    same = {task for part in found for task in part.task_names} <= set(trace.task_names)
    if same:
        refuse_mixed_benchmarks({"the trace": trace.metadata, "the rounds": rounds.metadata})
    names = trace.task_names if same else rounds.task_names
    depth = max(int(part.frame["depth"].max()) for part in found)
    tables = [calls_by_position(part, names, depth) for part in found]
    hits, known = (np.sum([table[i] for table in tables], axis=0) for i in (0, 1))
    for j in range(1, depth):
        if known[0, :, j].sum() < FEW_CALLS:  # too few to tell: as the position before
            hits[0, :, j], known[0, :, j] = hits[0, :, j - 1], known[0, :, j - 1]
    label = name or draft or drafts[0]
    facts = {
        "hits": float(sum(table[0].sum() for table in tables)),
        "known": float(sum(table[1].sum() for table in tables)),
        "rounds": sum(part.n_rounds for part in found),
    }
    require_known(facts, label)
    at_last = float(hits[1].sum() / known[1].sum()) if known[1].any() else None
    if at_last is not None and known[0, :, 0].any():
        facts["acceptance_before_last"] = float(hits[0, :, 0].sum() / known[0, :, 0].sum())
        facts["acceptance_at_last"] = at_last
    if not known[0].any():  # only one-step segments: no hit there saves a round
        hits[0], known[0], at_last = hits[1], known[1], None
    calls = np.sum([table[2] for table in tables], axis=0)
    conditional: list[str] = []
    if latency_s is not None or cost is not None:
        price, unit = stated_cost(latency_s, cost)
        conditional.append(cost_as(unit, "stated"))
    else:
        by_task = pd.concat([part.frame for part in found]).groupby("task")["draft_model_s"].sum()
        spent = by_task.reindex(names).fillna(0.0).to_numpy(np.float64)
        price = DraftCost(spent, calls, "seconds", measured=True, same_tasks=same)
    return Draft(
        label,
        "the rounds of a measured run" + ("" if same else " on other tasks"),
        PooledAcceptance(HitCounts(hits[0], known[0], same_tasks=same), at_last),
        price,
        conditional_on=tuple(conditional),
        warnings=_stops_early(found, label),
        facts=facts,
        slowdown=measured_slowdown(found, _time_alone(rounds, trace if same else None)),
    )


def _time_alone(rounds: Rounds, trace: Trace | None) -> float | None:
    """Return the target's milliseconds per token without any other request, if they are known.

    Those of the sequential arm; else of rounds with one verification; else of the trace.
    """
    for one in (rounds.sequential, rounds.speculative):
        seconds, tokens, answers = _by_width(one, 1)[0]
        if answers >= FEW_CALLS and tokens > 0:
            return float(1000 * seconds / tokens)
    return None if trace is None else trace_ms_per_token(trace)


def measured_slowdown(parts: Sequence[Rounds], alone: float | None) -> tuple[float, ...]:
    """Return the target's time per token in rounds of 1, 2, … verifications, over that of one.

    Parameters
    ----------
    parts : sequence of Rounds
        Speculative ones.
    alone : float or None
        Milliseconds per token without any other request.

    Returns
    -------
    tuple of float
        Up to the widest of which there are enough answers; in between, a number of verifications
        with few takes the factor of the one before. Empty if there are enough of none, or tokens
        were not counted.
    """
    if not alone:
        return ()
    widest = max(int(part.frame["verifications"].map(len).max()) for part in parts)
    factors, known = [1.0], 1
    for seconds, tokens, answers in np.sum([_by_width(part, widest) for part in parts], axis=0)[1:]:
        enough = answers >= FEW_CALLS and tokens > 0
        factors.append(float(1000 * seconds / tokens / alone) if enough else factors[-1])
        known = len(factors) if enough else known
    return tuple(factors[:known]) if known > 1 else ()


def _by_width(rounds: Rounds, widest: int) -> Floats:
    """Return seconds, tokens and number of the answers used in rounds of 1, 2, … verifications.

    The shape is (widest, 3).
    """
    widths = rounds.frame[_ROUND].assign(width=rounds.frame["verifications"].map(len))
    used = rounds.committed.dropna(subset=["completion_tokens"]).merge(widths, on=_ROUND)
    sums = used.groupby("width").agg(
        seconds=("gen_s", "sum"), tokens=("completion_tokens", "sum"), answers=("gen_s", "size")
    )
    return sums.reindex(range(1, widest + 1), fill_value=0).to_numpy(np.float64)


def _stops_early(parts: Sequence[Rounds], name: str) -> tuple[str, ...]:
    invalid = sum(int((part.proposals["status"] == "invalid").sum()) for part in parts)
    calls = sum(len(part.proposals) for part in parts)
    if invalid < OFTEN_INVALID * calls:
        return ()
    return (
        f"{name}: {invalid / calls:.0%} of its calls gave no usable proposal and ended the"
        " proposing; the prediction takes them for rejected ones, after which a round goes on to k"
        " calls, so it is a little low",
    )
