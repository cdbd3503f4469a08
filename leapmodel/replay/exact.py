"""The exact replay for an acceptance that does not depend on the step.

App. H draws A at random and averages 50 walks. Its mean has a closed form: with v(i) the
probability that a round starts at step i of a segment,

    E[rounds] = sum_i v(i)        E[wait] = sum_i v(i) E[max(t_i ... t_(i+A))]

and v follows from the round before: v(i) = sum_a v(i-a-1) Pr[A = a]. The cap on A at a segment's
end never matters to v, because a round that starts later was not cut short; so with an acceptance
that is the same at every step v depends on the position alone, and one short table per depth
serves all segments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.blas import dtbsv

from leapmodel.replay.sums import (
    ReplaySums,
    Terminal,
    check_depths,
    check_terminal,
    executable_tools,
    proposable_tools,
    sum_segments_by_group,
)
from leapmodel.segments import Floats, Segments


def exact_replay(
    segments: Segments,
    acceptance: float | Sequence[float] | np.ndarray,
    depths: Sequence[int] | np.ndarray,
    *,
    terminal: Terminal = "accepted",
    last_acceptance: float | None = None,
) -> ReplaySums:
    """Return the expected sums of the App. H replay, without sampling.

    Parameters
    ----------
    segments : Segments
        The sequential trace.
    acceptance : float or array_like, shape (positions,)
        Acceptance of a proposal whose predecessors in the round were accepted, a_j: one for all
        positions, or one per position (at least as many as the largest depth). Not the hit rates
        q_j, which already contain the truncation that this replay performs.
    depths : array_like of int, shape (depths,)
        The depths k, increasing.
    terminal : {"accepted", "probe"}, default "accepted"
        Whether a segment's last step can be proposed and accepted. Commits and waits do not
        depend on it; hit rates, proposal rates and e do.
    last_acceptance : float, optional
        Acceptance of a proposal for a segment's last step, if it is another one: replies are
        often easier to predict than calls. It moves hit rates and e, but no commit and no wait,
        because a round that reaches the last step ends there either way.

    Returns
    -------
    ReplaySums

    Raises
    ------
    ValueError
        If an acceptance is outside [0, 1] or there are too few of them.

    Notes
    -----
    Linear in steps x depth. For acceptances that differ by step see
    :func:`~leapmodel.replay.teacher_forced_replay`.

    Examples
    --------
    >>> sums = exact_replay(Segments([1.0, 3.0], starts=[0]), acceptance=0.5, depths=[1])
    >>> sums.total_rounds, sums.wait_s.sum(axis=0)  # half the time 1 round of 3 s, else 1 s + 3 s
    (array([1.5]), array([3.5]))
    """
    depths = check_depths(depths)
    check_terminal(terminal)
    deepest = int(depths[-1])
    survival = survival_by_position(acceptance, deepest)
    at_last = np.concatenate(([1.0], acceptance_by_position(acceptance, deepest)))
    if last_acceptance is not None:
        at_last = np.concatenate(([1.0], acceptance_by_position(last_acceptance, deepest)))
    # expected rounds depend on a segment's length alone: every table below has one column a length
    lengths = np.array([len(block.steps) for block in segments.by_length])
    n_of_length = np.array([len(block.which) for block in segments.by_length], dtype=np.float64)
    longest = int(lengths[-1])
    column_of_length = np.empty(longest + 1, np.intp)
    column_of_length[lengths] = np.arange(len(lengths))
    visits = np.array([_visits_by_position(survival, int(k), longest) for k in depths])
    # cumulative[d, deepest + n]: expected rounds that start in the first n positions of a segment
    cumulative = np.zeros((len(depths), deepest + 1 + longest))
    np.cumsum(visits, axis=1, out=cumulative[:, deepest + 1 :])
    last_is_proposed = terminal == "accepted"

    def rounds_with(depth_index: int, remaining: int) -> Floats:
        """Return, by segment length, the expected rounds with at least `remaining` steps left."""
        return cumulative[depth_index, deepest + 1 + lengths - remaining]

    shape = (len(depths), deepest)
    hits, proposals, reached, further = (np.zeros(shape) for _ in range(4))
    bonus_lost = np.zeros(len(depths))
    rounds, calls, rejected = (np.zeros((len(depths), len(lengths))) for _ in range(3))
    for d, k in enumerate(depths.tolist()):
        rounds[d] = rounds_with(d, 1)
        for j in range(1, k + 1):
            goes_on = rounds_with(d, j + 1)
            is_last = rounds_with(d, j) - goes_on if last_is_proposed else 0.0 * goes_on
            accepted = survival[j] * goes_on + survival[j - 1] * at_last[j] * is_last
            further[d, j - 1] = n_of_length @ goes_on
            proposals[d, j - 1] = n_of_length @ (goes_on + is_last)
            hits[d, j - 1] = n_of_length @ accepted
            rejected[d] += goes_on + is_last - accepted
            calls[d] += rounds_with(d, j)
            bonus_lost[d] += survival[j - 1] * at_last[j] * (n_of_length @ is_last)
        reached[d, :k] = survival[:k] * proposals[d, :k]

    def by_group(by_length: Floats) -> Floats:
        """Return the (depths, lengths) table summed over each group's segments."""
        if segments.n_groups == 1:
            return (by_length @ n_of_length)[None, :]
        return sum_segments_by_group(segments, by_length[:, column_of_length[segments.lengths]])

    executable = executable_tools(segments, terminal)
    accepted_tool_s, accepted_tool_steps = _accepted_tools(
        segments, survival, at_last, depths, visits, executable
    )
    tool_s: Floats = np.zeros(segments.n_groups)
    n_tool_steps = 0
    if segments.has_tools:
        tool_s = segments.sum_by_group(segments.tool_s)
        n_tool_steps = int(np.count_nonzero(segments.tool_s))
    proposable_steps, proposable_tool_s = proposable_tools(segments, executable)
    return ReplaySums(
        depths=depths,
        steps=segments.steps_by_group,
        gen_s=segments.sum_by_group(segments.gen_s),
        tool_s=tool_s,
        proposable_steps=proposable_steps,
        proposable_tool_s=proposable_tool_s,
        rounds=by_group(rounds),
        wait_s=_expected_waits(segments, survival, depths, visits),
        calls=by_group(calls),
        accepted_tool_s=accepted_tool_s,
        rejected=by_group(rejected),
        target_tool_s=tool_s[:, None] - accepted_tool_s,
        hits=hits,
        proposals=proposals,
        reached=reached,
        further_requests=further,
        bonus_lost=bonus_lost,
        target_tool_steps=n_tool_steps - accepted_tool_steps,
    )


def acceptance_by_position(
    acceptance: float | Sequence[float] | np.ndarray, deepest: int
) -> Floats:
    """Return a_j for j = 1 … deepest from one acceptance for all or one per position.

    Raises
    ------
    ValueError
        If one lies outside [0, 1] or there are fewer than ``deepest``.
    """
    values = np.asarray(acceptance, dtype=np.float64)
    if values.ndim > 1 or not np.isfinite(values).all() or ((values < 0) | (values > 1)).any():
        raise ValueError(f"acceptance must lie in [0, 1], found {acceptance!r}")
    if values.ndim == 1 and len(values) < deepest:
        raise ValueError(
            f"acceptance by position must have at least {deepest} values, found {len(values)}"
        )
    return np.full(deepest, values) if values.ndim == 0 else values[:deepest]


def survival_by_position(acceptance: float | Sequence[float] | np.ndarray, deepest: int) -> Floats:
    """Return Pr[first j proposals all match | all made] for j = 0 … deepest."""
    return np.concatenate(([1.0], np.cumprod(acceptance_by_position(acceptance, deepest))))


def _visits_by_position(survival: Floats, depth: int, longest: int) -> Floats:
    """Return v(i) for i = 0 … longest - 1: a lower banded triangular system, v(0) = 1."""
    ends_at = np.append(survival[:depth] - survival[1 : depth + 1], survival[depth])
    band = np.empty((depth + 2, longest), order="F")
    band[0] = 1.0
    band[1:] = -ends_at[:, None]
    first = np.zeros(longest)
    first[0] = 1.0
    return dtbsv(depth + 1, band, first, lower=1, diag=1)


def _expected_waits(
    segments: Segments, survival: Floats, depths: np.ndarray, visits: Floats
) -> Floats:
    """Return E[wait] by group and depth: one more running maximum per depth serves them all.

    E[max(t_i ... t_(i+A))] = t_i + sum_a Pr[A >= a] (M_a - M_(a-1)) with M_a the maximum of the
    first a + 1 steps; past the segment's end M stops growing, which is the cap on A.
    """
    out = np.empty((len(depths), len(segments.starts)))
    deepest = int(depths[-1])
    first_depth = np.searchsorted(depths, np.arange(deepest + 1))  # that reaches position a
    weights = [survival[a] * visits[first_depth[a] :] for a in range(deepest + 1)]
    for block in segments.by_length:
        length = len(block.gen_s)
        waits = weights[0][:, :length] @ block.gen_s
        maximum = block.gen_s
        for a in range(1, min(deepest, length - 1) + 1):
            before, maximum = maximum[:-1], np.maximum(maximum[:-1], block.gen_s[a:])
            waits[first_depth[a] :] += weights[a][:, : length - a] @ (maximum - before)
        out[:, block.which] = waits
    return sum_segments_by_group(segments, out)


def _accepted_tools(
    segments: Segments,
    survival: Floats,
    at_last: Floats,
    depths: np.ndarray,
    visits: Floats,
    executable: np.ndarray,
) -> tuple[Floats, Floats]:
    """Return tool seconds (groups, depths) and tool steps (depths,) run by accepted proposals."""
    if not segments.has_tools:
        return np.zeros((segments.n_groups, len(depths))), np.zeros(len(depths))
    adoptable_s = np.where(executable, segments.tool_s, 0.0)
    # Pr[the step at a position is accepted]: a round starts j steps before and accepts j
    accepted, accepted_last = np.zeros_like(visits), np.zeros_like(visits)
    for d, k in enumerate(depths.tolist()):
        for j in range(1, min(k, visits.shape[1]) + 1):
            started = visits[d, : visits.shape[1] - j + 1]
            accepted[d, j - 1 :] += survival[j] * started
            accepted_last[d, j - 1 :] += survival[j - 1] * at_last[j] * started
    seconds = np.empty((len(depths), len(segments.starts)))
    steps = np.zeros(len(depths))
    for block in segments.by_length:
        tool_s = adoptable_s[block.steps]
        length = len(tool_s)
        share = np.column_stack([accepted[:, : length - 1], accepted_last[:, length - 1]])
        seconds[:, block.which] = share @ tool_s
        steps += share @ np.count_nonzero(tool_s, axis=1)
    return sum_segments_by_group(segments, seconds), steps
