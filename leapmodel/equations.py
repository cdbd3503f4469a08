"""The latency framework's equations (Sec. 3.2, App. C.1): numbers in, numbers out.

All functions take scalars or arrays and broadcast. Times are relative to t_gen, the mean
sequential generation time, unless a name ends in ``_s``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from leapmodel.segments import Floats


def commits(hit_rates: ArrayLike, bonus_loss: ArrayLike = 0.0) -> Floats:
    """Return the committed steps per round, c = 1 + sum q_j - e (Eq. 3).

    Parameters
    ----------
    hit_rates : array_like, shape (..., positions)
        q_j = Pr[A >= j] over all rounds; NaN past the depth counts as absent.
    bonus_loss : array_like, default 0
        e, the probability that the accepted prefix ends the segment.

    Examples
    --------
    >>> float(commits([0.71, 0.44, 0.28], bonus_loss=0.38))  # Table 16, OpenAGI, k = 3
    2.05
    """
    return 1.0 + np.nansum(np.asarray(hit_rates, float), axis=-1) - np.asarray(bonus_loss, float)


def speedup(
    commits: ArrayLike,
    wait_inflation: ArrayLike,
    draft_term: ArrayLike,
    *,
    tool_cost: ArrayLike = 0.0,
    tool_step_share: ArrayLike = 1.0,
    target_tool_steps: ArrayLike = 1.0,
) -> Floats:
    """Return S = c (1 + f tau) / (beta + D + g tau) (Eq. 1, Eq. 4).

    Parameters
    ----------
    commits : array_like
        c, committed steps per round.
    wait_inflation : array_like
        beta, mean longest awaited verification over t_gen.
    draft_term : array_like
        D, mean proposing time per round over t_gen, proposals' tools included.
    tool_cost : array_like, default 0
        tau, mean tool time of a step that runs a tool, over t_gen.
    tool_step_share : array_like, default 1
        f, share of sequential steps that run a tool.
    target_tool_steps : array_like, default 1
        g, tool steps the target runs per round.

    Examples
    --------
    >>> round(float(speedup(2.05, 1.21, 0.18)), 2)  # Table 10, OpenAGI, k = 3
    1.47
    """
    c, beta, d, tau, f, g = (
        np.asarray(x, float)
        for x in (
            commits,
            wait_inflation,
            draft_term,
            tool_cost,
            tool_step_share,
            target_tool_steps,
        )
    )
    return c * (1 + f * tau) / (beta + d + g * tau)


def speedup_ratio(
    commits: tuple[float, float],
    wait_inflation: tuple[float, float],
    draft_term: tuple[float, float],
) -> float:
    """Return S_B / S_A of two drafts A and B, with negligible tool time (Eq. 2).

    Each argument is the pair (of A, of B).

    Examples
    --------
    >>> round(speedup_ratio((2.05, 2.26), (1.19, 1.25), (0.17, 0.28)), 2)  # 4B against 0.6B
    0.98
    """
    (c_a, c_b), (beta_a, beta_b), (d_a, d_b) = commits, wait_inflation, draft_term
    return (c_b / c_a) / ((beta_b + d_b) / (beta_a + d_a))


def speedup_iid(
    acceptance: ArrayLike, depth: int, wait_inflation: ArrayLike, draft_cost: ArrayLike
) -> Floats:
    """Return S(p) = (1 + p + ... + p^k) / (beta(p) + k d) (Eq. 5).

    For long segments, independent hits of probability p and k proposals in every round.

    Examples
    --------
    >>> float(speedup_iid(0.5, depth=1, wait_inflation=1.0, draft_cost=0.25))
    1.2
    """
    beta, d = np.asarray(wait_inflation, float), np.asarray(draft_cost, float)
    return commits_iid(acceptance, depth) / (beta + depth * d)


def commits_iid(acceptance: ArrayLike, depth: int) -> Floats:
    """Return 1 + p + ... + p^k, the commits of a long segment (Eq. 5's numerator).

    Examples
    --------
    >>> float(commits_iid(0.5, 2))
    1.75
    """
    p = np.asarray(acceptance, float)
    return np.polyval(np.ones(depth + 1), p)


def draft_term(
    proposal_rates: ArrayLike,
    draft_cost: ArrayLike,
    proposal_tools: ArrayLike = 0.0,
) -> Floats:
    """Return D = d sum pi_j + proposal tools (App. C.1).

    Parameters
    ----------
    proposal_rates : array_like, shape (..., positions)
        Share of rounds that make a j-th draft call: less than 1 where a segment ends or proposing
        stopped early. A call whose output was invalid counts, it was paid.
    draft_cost : array_like
        d, one draft call over t_gen.
    proposal_tools : array_like, default 0
        Tool seconds of the proposals per round, over t_gen.

    Examples
    --------
    >>> round(float(draft_term([1.0, 0.81, 0.62], draft_cost=0.07)), 2)  # OpenAGI, Sec. 4.2
    0.17
    """
    calls = np.nansum(np.asarray(proposal_rates, float), axis=-1)
    return np.asarray(draft_cost, float) * calls + np.asarray(proposal_tools, float)


def perfect_commits(depth: ArrayLike, segment_length: ArrayLike) -> Floats:
    """Return min(k + 1, L), which no draft can exceed (App. C.1).

    Examples
    --------
    >>> perfect_commits([1, 3, 5], segment_length=4).tolist()
    [2.0, 4.0, 4.0]
    """
    return np.minimum(np.asarray(depth, float) + 1, np.asarray(segment_length, float))


def speedup_bounds(
    commits: ArrayLike, wait_inflation: ArrayLike, depth: ArrayLike
) -> tuple[Floats, Floats]:
    """Return the bounds c / beta and (k + 1) / beta with negligible tool time (App. C.1).

    Examples
    --------
    >>> [float(bound) for bound in speedup_bounds(2.0, 1.25, 3)]
    [1.6, 3.2]
    """
    beta = np.asarray(wait_inflation, float)
    return np.asarray(commits, float) / beta, (np.asarray(depth, float) + 1) / beta


def long_segment_ceiling(acceptance: ArrayLike, wait_inflation: ArrayLike) -> Floats:
    """Return 1 / ((1 - p) beta), the ceiling of ever deeper speculation (App. C.1).

    Examples
    --------
    >>> round(float(long_segment_ceiling(0.75, 1.25)), 6)
    3.2
    """
    p = np.asarray(acceptance, float)
    with np.errstate(divide="ignore"):
        return 1.0 / ((1.0 - p) * np.asarray(wait_inflation, float))


@dataclass(frozen=True, eq=False)
class DepthRule:
    """Whether each further proposal pays.

    Attributes
    ----------
    gain, threshold : ndarray, shape (depths,)
        The k-th proposal pays where the gain exceeds the threshold.
    pays : ndarray of bool, shape (depths,)
        The comparison.
    """

    gain: Floats
    threshold: Floats

    @property
    def pays(self) -> np.ndarray:
        """Whether the k-th proposal raises the speedup, shape (depths,)."""
        return self.gain > self.threshold

    @property
    def last_before_stop(self) -> int:
        """The depth at which the rule first says stop: 0 if not even one proposal pays."""
        says_stop = np.flatnonzero(~self.pays)
        return int(says_stop[0]) if len(says_stop) else len(self.gain)


def depth_rule(commits: ArrayLike, round_cost: ArrayLike) -> DepthRule:
    """Apply the exact depth rule: c_k - c_(k-1) > S_(k-1) (B_k - B_(k-1)) (Eq. 6).

    Parameters
    ----------
    commits : array_like, shape (depths,)
        c_k for k = 1, 2, …, without gaps.
    round_cost : array_like, shape (depths,)
        B_k, the cost of a round over the cost of a sequential step: beta_k + D_k with negligible
        tool time, (beta_k + D_k + g_k tau) / (1 + f tau) with tools.

    Returns
    -------
    DepthRule
        With S_0 = c_0 = B_0 = 1, the sequential loop.

    Examples
    --------
    >>> rule = depth_rule(commits=[1.5, 1.6], round_cost=[1.1, 1.3])
    >>> rule.pays.tolist(), rule.last_before_stop
    ([True, False], 1)
    """
    c = np.concatenate(([1.0], np.asarray(commits, float)))
    b = np.concatenate(([1.0], np.asarray(round_cost, float)))
    return DepthRule(gain=np.diff(c), threshold=(c / b)[:-1] * np.diff(b))


def depth_rule_simplified(
    hit_rates: ArrayLike,
    previous_speedup: ArrayLike,
    draft_cost: float,
    *,
    proposal_rates: ArrayLike = 1.0,
    wait_growth: ArrayLike = 0.0,
) -> DepthRule:
    """Apply the simplified rule: q_k > S_(k-1) (pi_k d + Delta beta_k) (Eq. 7).

    With the defaults pi_k = 1 and Delta beta_k = 0 it is q_k > S_(k-1) d.

    Parameters
    ----------
    hit_rates : array_like, shape (depths,)
        q_k at position k.
    previous_speedup : array_like, shape (depths,)
        S_(k-1).
    draft_cost : float
        d, one draft call over t_gen.
    proposal_rates : array_like, default 1
        pi_k.
    wait_growth : array_like, default 0
        beta_k - beta_(k-1).

    Examples
    --------
    App. C on OpenAGI: d = 0.06 and S about 1.5 give a threshold of 0.09, which selects k = 4.

    >>> rule = depth_rule_simplified([0.70, 0.47, 0.31, 0.14, 0.08], 1.5, 0.06)
    >>> rule.last_before_stop
    4
    """
    q = np.asarray(hit_rates, float)
    pi, growth = np.asarray(proposal_rates, float), np.asarray(wait_growth, float)
    threshold = np.asarray(previous_speedup, float) * (pi * draft_cost + growth)
    return DepthRule(gain=q, threshold=np.broadcast_to(threshold, q.shape))
