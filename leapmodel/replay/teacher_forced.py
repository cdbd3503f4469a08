"""The replay of what a draft does at each step of the target's own trajectory.

By Proposition 1 a proposal can only be committed on a prefix of the target's trajectory, so a
draft's outputs on those contexts decide every round (Table 11). Here each step carries
probabilities instead of facts, so that the unknown ones have a place too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy.linalg.blas import dtbsv

from leapmodel.replay.exact import acceptance_by_position
from leapmodel.replay.sums import (
    ReplaySums,
    Terminal,
    check_depths,
    check_terminal,
    chunks_of_segments,
    executable_tools,
    proposable_tools,
    sum_segments_by_group,
)
from leapmodel.segments import Floats, Segments


@dataclass(frozen=True, eq=False)
class StepOutcomes:
    """What the draft's call does on the context of each step.

    Parameters
    ----------
    hit : array_like, shape (steps,)
        Probability that its proposal equals the target's action.
    invalid : array_like, shape (steps,), optional
        Probability that it gives no usable proposal; proposing stops there, the call is paid.
    wrong_end : array_like, shape (steps,), optional
        Probability that it proposes a reply or the end of the task where the target does not;
        the proposal is rejected and nothing is proposed after it.

    Raises
    ------
    ValueError
        If the shapes differ or the probabilities of a step are negative or sum to more than 1.
    """

    hit: Floats
    invalid: Floats = None  # type: ignore[assignment]  # filled in below
    wrong_end: Floats = None  # type: ignore[assignment]  # filled in below

    def __post_init__(self) -> None:
        hit = np.asarray(self.hit, dtype=np.float64)
        zeros = np.zeros(hit.shape)
        invalid = zeros if self.invalid is None else np.asarray(self.invalid, np.float64)
        wrong_end = zeros if self.wrong_end is None else np.asarray(self.wrong_end, np.float64)
        if hit.ndim != 1 or invalid.shape != hit.shape or wrong_end.shape != hit.shape:
            raise ValueError("hit, invalid and wrong_end must be arrays of one shape (steps,)")
        total = hit + invalid + wrong_end
        lowest = min((part.min(initial=0.0) for part in (hit, invalid, wrong_end)), default=0.0)
        if not np.isfinite(total).all() or lowest < 0 or (total > 1 + 1e-12).any():
            raise ValueError("a step's probabilities must be >= 0 and sum to at most 1")
        for name, value in [("hit", hit), ("invalid", invalid), ("wrong_end", wrong_end)]:
            object.__setattr__(self, name, value)


def teacher_forced_replay(
    segments: Segments,
    outcomes: StepOutcomes | Sequence[float] | np.ndarray,
    depths: Sequence[int] | np.ndarray,
    *,
    terminal: Terminal = "accepted",
) -> ReplaySums:
    """Return the expected sums of a replay with one outcome per step.

    Parameters
    ----------
    segments : Segments
        The sequential trace.
    outcomes : StepOutcomes or array_like, shape (steps,)
        What the draft does at each step; a plain array is the hit probability. A known hit is 1,
        a known miss 0, an unknown step the pooled acceptance.
    depths : array_like of int, shape (depths,)
        The depths k, increasing.
    terminal : {"accepted", "probe"}, default "accepted"
        As for :func:`~leapmodel.replay.exact_replay`.

    Returns
    -------
    ReplaySums

    Raises
    ------
    ValueError
        If there is not one outcome per step.

    Notes
    -----
    Past a miss the draft's path can't be seen from a trace: it is taken to go on to min(k, r)
    calls, unless the miss itself stopped it. Linear in steps x depth; the probability v(i) that a
    round starts at step i solves one lower banded triangular system over all segments.

    Examples
    --------
    >>> two = Segments([1.0, 2.0, 4.0], starts=[0])
    >>> sums = teacher_forced_replay(two, [1.0, 0.0, 1.0], depths=[2])
    >>> sums.total_rounds, sums.wait_s.sum(axis=0)  # steps 0 and 1 in one round, step 2 alone
    (array([2.]), array([6.]))
    """
    if not isinstance(outcomes, StepOutcomes):
        outcomes = StepOutcomes(np.asarray(outcomes, dtype=np.float64))
    return _replay(segments, outcomes, depths, terminal)[0]


@dataclass(frozen=True, eq=False)
class VerificationWork:
    """What the target does beyond the sequential arm, in expectation.

    Attributes
    ----------
    requests : ndarray, shape (depths,)
        Verification requests issued; the sequential arm issues one a step.
    cancelled_s : ndarray, shape (depths,)
        Seconds of generation that cancelled verifications had done when the first mismatch
        returned and closed them.
    uncancelled_s : ndarray, shape (depths,)
        The same if they were never cancelled: the upper bound.
    request_cost : ndarray, shape (depths,)
        Sum of the per-step cost given, over all requests.
    """

    requests: Floats
    cancelled_s: Floats
    uncancelled_s: Floats
    request_cost: Floats


def verification_work(
    segments: Segments,
    acceptance: StepOutcomes | float | Sequence[float] | np.ndarray,
    depths: Sequence[int] | np.ndarray,
    *,
    request_cost: np.ndarray | None = None,
) -> VerificationWork:
    """Return the requests a replay issues and the generation it throws away (Sec. 5, App. D.3).

    A context past a miss has a length that the trace can't show; it is taken to be the mean. A
    cancelled verification runs until the first mismatch returns, at the trace's own rate, so
    tokens are these seconds times the trace's tokens per second.

    Parameters
    ----------
    segments : Segments
        The sequential trace.
    acceptance : StepOutcomes, float or array_like of shape (positions,)
        What the draft does at each step, or the acceptance as for
        :func:`~leapmodel.replay.exact_replay`.
    depths : array_like of int, shape (depths,)
        The depths k, increasing.
    request_cost : array_like, shape (steps,), optional
        A cost of asking for each step's verification, such as its prompt tokens times a price.

    Examples
    --------
    >>> work = verification_work(Segments([1.0, 3.0], starts=[0]), acceptance=0.0, depths=[1])
    >>> work.requests, work.cancelled_s  # the second request of round one ran for 1 s in vain
    (array([3.]), array([1.]))
    """
    cost = np.zeros(segments.n_steps) if request_cost is None else np.asarray(request_cost, float)
    if cost.shape != (segments.n_steps,):
        raise ValueError(f"request_cost must hold {segments.n_steps} values, one per step")
    sums, totals = _replay(segments, acceptance, depths, "accepted", cost)
    return VerificationWork(
        requests=sums.requests,
        cancelled_s=totals.cancelled_s,
        uncancelled_s=(sums.requests - segments.n_steps) * sums.mean_gen_s,
        request_cost=totals.request_cost,
    )


def average_work(works: Sequence[VerificationWork]) -> VerificationWork:
    """Return the mean of several, such as one per repeated prediction."""
    return VerificationWork(
        *(
            np.mean([getattr(work, field.name) for work in works], axis=0)
            for field in fields(VerificationWork)
        )
    )


def _replay(
    segments: Segments,
    acceptance: StepOutcomes | float | Sequence[float] | np.ndarray,
    depths: Sequence[int] | np.ndarray,
    terminal: Terminal,
    request_cost: np.ndarray | None = None,
) -> tuple[ReplaySums, _Totals]:
    depths = check_depths(depths)
    check_terminal(terminal)
    if isinstance(acceptance, StepOutcomes) and len(acceptance.hit) != segments.n_steps:
        raise ValueError(f"expected {segments.n_steps} outcomes, found {len(acceptance.hit)}")
    totals = _Totals(len(depths), int(depths[-1]))
    n_segments = len(segments.starts)
    by_segment = {
        name: np.zeros((len(depths), n_segments))
        for name in ("rounds", "wait_s", "calls", "rejected", "accepted_tool_s")
    }
    executable = executable_tools(segments, terminal)
    mean_gen_s = float(segments.gen_s.mean())
    for which, steps in chunks_of_segments(segments):
        chunk = _Chunk(segments, acceptance, int(depths[-1]), steps, which, executable, terminal)
        chunk.mean_gen_s = mean_gen_s
        chunk.request_cost = None if request_cost is None else request_cost[steps]
        chunk.replay(depths, totals, {name: array[:, which] for name, array in by_segment.items()})
    grouped = {name: sum_segments_by_group(segments, array) for name, array in by_segment.items()}
    tool_s = segments.sum_by_group(segments.tool_s)
    proposable_steps, proposable_tool_s = proposable_tools(segments, executable)
    sums = ReplaySums(
        depths=depths,
        steps=segments.steps_by_group,
        gen_s=segments.sum_by_group(segments.gen_s),
        tool_s=tool_s,
        proposable_steps=proposable_steps,
        proposable_tool_s=proposable_tool_s,
        rounds=grouped["rounds"],
        wait_s=grouped["wait_s"],
        calls=grouped["calls"],
        accepted_tool_s=grouped["accepted_tool_s"],
        rejected=grouped["rejected"],
        target_tool_s=tool_s[:, None] - grouped["accepted_tool_s"],
        hits=totals.hits,
        proposals=totals.proposals,
        reached=totals.reached,
        further_requests=totals.further_requests,
        bonus_lost=totals.bonus_lost,
        target_tool_steps=np.count_nonzero(segments.tool_s) - totals.accepted_tool_steps,
    )
    return sums, totals


class _Totals:
    """Sums over all chunks."""

    def __init__(self, n_depths: int, deepest: int) -> None:
        self.hits = np.zeros((n_depths, deepest))
        self.proposals = np.zeros((n_depths, deepest))
        self.reached = np.zeros((n_depths, deepest))
        self.bonus_lost = np.zeros(n_depths)
        self.further_requests = np.zeros((n_depths, deepest))
        self.accepted_tool_steps = np.zeros(n_depths)
        self.cancelled_s = np.zeros(n_depths)
        self.request_cost = np.zeros(n_depths)


class _Chunk:
    """The steps of a few whole segments, and the law of a round started at each of them."""

    def __init__(
        self,
        segments: Segments,
        acceptance: StepOutcomes | float | Sequence[float] | np.ndarray,
        deepest: int,
        steps: slice,
        which: slice,
        executable: np.ndarray,
        terminal: Terminal,
    ) -> None:
        self.starts = segments.starts[which] - steps.start
        self.remaining = segments.remaining[steps]
        self.gen_s = segments.gen_s[steps]
        # a draft that never stops early leaves zeros, and plain ones spare their arithmetic
        self.by_position: Floats | None = None
        self.invalid: Floats | None = None
        self.wrong_end: Floats | None = None
        if isinstance(acceptance, StepOutcomes):
            self.hit = acceptance.hit[steps]
            if acceptance.invalid[steps].any():
                self.invalid = acceptance.invalid[steps]
            if acceptance.wrong_end[steps].any():
                self.wrong_end = acceptance.wrong_end[steps]
        else:
            self.hit = np.ones(len(self.gen_s))
            self.by_position = acceptance_by_position(acceptance, deepest)
        self.tool_s = np.where(executable[steps], segments.tool_s[steps], 0.0)
        self.has_tools = bool(executable.any() and segments.has_tools)
        self.last_is_proposed = terminal == "accepted"
        self.mean_gen_s = 0.0
        self.request_cost: np.ndarray | None = None

    def ahead(self, values: Floats, by: int) -> Floats:
        """Return `values` of the step `by` further on; where the segment ended before, 0."""
        if by == 0:
            return values
        out = np.empty_like(values)
        out[:-by] = values[by:]
        out[-by:] = 0
        out *= self.remaining > by
        return out

    def replay(self, depths: np.ndarray, totals: _Totals, out: dict[str, np.ndarray]) -> None:
        """Add this chunk's rounds to the sums."""
        n, deepest = len(self.gen_s), int(depths[-1])
        # of a round started at each step, before its next proposal is called for:
        all_hit = np.ones(n)  # Pr[every proposal so far matched]
        stopped: Floats | float = 0.0  # Pr[proposing has stopped]
        maximum = self.gen_s
        wait = self.gen_s.copy()
        calls, ends_all_hit = np.zeros(n), np.zeros(n)
        rejected, tools, tool_steps = np.zeros(n), np.zeros(n), np.zeros(n)
        # by depth j a miss at an earlier proposal leaves one more verification to be cancelled
        missed_s, cancelled_s = np.zeros(n), np.zeros(n)
        cost = self.request_cost
        band = np.zeros((deepest + 2, n), order="F")
        band[0] = 1.0
        made, hits, reached, requested = (np.empty((deepest, n)) for _ in range(4))
        called = np.ones(n)
        for j in range(1, deepest + 1):
            goes_on = (self.remaining > j).astype(np.float64)
            hit = self.ahead(self.hit, j - 1)
            if self.by_position is not None:
                hit = hit * self.by_position[j - 1]
            invalid = 0.0 if self.invalid is None else self.ahead(self.invalid, j - 1)
            wrong_end = 0.0 if self.wrong_end is None else self.ahead(self.wrong_end, j - 1)
            # under `probe` a reply where the target goes on is no proposal either
            unusable = invalid if self.last_is_proposed else invalid + wrong_end
            proposable = called if self.last_is_proposed else goes_on
            calls = calls + called * (1 - stopped)
            made[j - 1] = proposable * (1 - stopped - all_hit * unusable)
            reached[j - 1] = proposable * all_hit * (1 - unusable)
            next_all_hit = all_hit * hit
            hits[j - 1] = proposable * next_all_hit
            wrong_tool = all_hit * (1 - hit - invalid - wrong_end)
            if self.has_tools:
                past_a_miss = 1 - all_hit - stopped
                rejected = rejected + proposable * (wrong_tool + past_a_miss)
                tool = self.ahead(self.tool_s, j - 1)
                tools = tools + next_all_hit * tool
                tool_steps = tool_steps + next_all_hit * (tool > 0)
            if cost is not None:
                missed_s = missed_s + wrong_tool * np.minimum(maximum, self.mean_gen_s)
                cancelled_s = cancelled_s + goes_on * missed_s
            # a round ends at this proposal if it is wrong: one transition j steps on
            band[j] = goes_on * (next_all_hit - all_hit)
            stopped = stopped + all_hit * (invalid + wrong_end) * called
            all_hit = next_all_hit
            ends_all_hit = ends_all_hit + (called - goes_on) * all_hit
            # the context after this proposal, if the segment goes on and the proposal stands
            requested[j - 1] = goes_on * (1 - stopped)
            if cost is not None and self.request_cost is not None:
                cost = cost + requested[j - 1] * self.ahead(self.request_cost, j)
            grown = np.maximum(maximum, self.ahead(self.gen_s, j))
            wait = wait + all_hit * (grown - maximum)
            maximum = grown
            called = goes_on
            for d in np.flatnonzero(depths == j):
                visits = self._visits(band, j, all_hit)
                out["rounds"][d] = np.add.reduceat(visits, self.starts)
                out["wait_s"][d] = np.add.reduceat(visits * wait, self.starts)
                out["calls"][d] = np.add.reduceat(visits * calls, self.starts)
                if self.has_tools:
                    out["rejected"][d] = np.add.reduceat(visits * rejected, self.starts)
                    out["accepted_tool_s"][d] = np.add.reduceat(visits * tools, self.starts)
                    totals.accepted_tool_steps[d] += tool_steps @ visits
                totals.proposals[d, :j] += made[:j] @ visits
                totals.reached[d, :j] += reached[:j] @ visits
                totals.hits[d, :j] += hits[:j] @ visits
                totals.further_requests[d, :j] += requested[:j] @ visits
                if cost is not None:
                    totals.cancelled_s[d] += cancelled_s @ visits
                    totals.request_cost[d] += cost @ visits
                if self.last_is_proposed:
                    totals.bonus_lost[d] += ends_all_hit @ visits

    def _visits(self, band: np.ndarray, depth: int, all_hit: np.ndarray) -> Floats:
        """Return the probability that a round starts at each step."""
        # a round of hits alone ends a step later; the next proposal overwrites this row again
        band[depth + 1] = np.where(self.remaining > depth + 1, -all_hit, 0.0)
        first = np.zeros(len(self.gen_s))
        first[self.starts] = 1.0
        return dtbsv(depth + 1, band, first, lower=1, diag=1, overwrite_x=1)
