"""Identities that hold for every trace, acceptance and depth (STYLE.md, App. C.1)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leapmodel import equations
from leapmodel.replay import (
    ReplaySums,
    StepOutcomes,
    exact_replay,
    teacher_forced_replay,
    verification_work,
)
from leapmodel.segments import Segments

from .traces import acceptances, random_outcomes, segments_strategy, subset_of_segments

DEPTHS = np.arange(1, 7)
terminals = st.sampled_from(["accepted", "probe"])
draft_costs = st.sampled_from([0.0, 0.01, 0.07, 0.5])
# the same examples on every run: a failure here is a change in the code, not luck
examples = settings(max_examples=50, deadline=None, derandomize=True)


def speedup_of(sums: ReplaySums, draft_cost: float) -> np.ndarray:
    """Sequential over speculative wall-clock, pooled."""
    t_gen = sums.mean_gen_s
    sequential = sums.gen_s.sum() + sums.tool_s.sum()
    speculative = (
        sums.wait_s + draft_cost * t_gen * sums.calls + sums.proposal_tool_s + sums.target_tool_s
    ).sum(axis=0)
    return sequential / speculative


def tool_terms(segments: Segments) -> tuple[float, float]:
    """tau and f of a trace."""
    runs = segments.tool_s > 0
    tau = segments.tool_s[runs].mean() / segments.gen_s.mean() if runs.any() else 0.0
    return float(tau), float(runs.mean())


@examples
@given(segments=segments_strategy(), p=acceptances, terminal=terminals, d=draft_costs)
def test_pooled_speedup_is_equation_1(
    segments: Segments, p: float, terminal: str, d: float
) -> None:
    sums = exact_replay(segments, p, DEPTHS, terminal=terminal)
    tau, f = tool_terms(segments)
    # g tau from the seconds: the steps whose tool the target runs need not be the mean ones
    g = sums.target_tools_per_round / tau if tau else 0.0
    d_term = equations.draft_term(sums.calls_per_round[:, None], d, sums.proposal_tools_per_round)
    s = equations.speedup(
        sums.commits,
        sums.wait_inflation,
        d_term,
        tool_cost=tau,
        tool_step_share=f,
        target_tool_steps=g,
    )
    assert_allclose(s, speedup_of(sums, d), rtol=1e-10)


@examples
@given(segments=segments_strategy(), p=acceptances, terminal=terminals, seed=st.integers(0, 10_000))
def test_equation_3_holds_under_both_rules(
    segments: Segments, p: float, terminal: str, seed: int
) -> None:
    """c = 1 + sum q_j - e; under `probe` the wasted hits at the segment's end are not counted."""
    outcomes = StepOutcomes(*random_outcomes(np.random.default_rng(seed), segments.n_steps))
    for sums in (
        exact_replay(segments, p, DEPTHS, terminal=terminal),
        teacher_forced_replay(segments, outcomes, DEPTHS, terminal=terminal),
    ):
        assert_allclose(equations.commits(sums.hit_rates, sums.bonus_loss), sums.commits, 1e-11)


@examples
@given(segments=segments_strategy(), p=acceptances, terminal=terminals, seed=st.integers(0, 10_000))
def test_bounds(segments: Segments, p: float, terminal: str, seed: int) -> None:
    outcomes = StepOutcomes(*random_outcomes(np.random.default_rng(seed), segments.n_steps))
    longest = segments.lengths.max()
    for sums in (
        exact_replay(segments, p, DEPTHS, terminal=terminal),
        teacher_forced_replay(segments, outcomes, DEPTHS, terminal=terminal),
    ):
        # rounds never cross a segment, so the mean length bounds the mean commits
        bound = equations.perfect_commits(DEPTHS, segments.lengths.mean())
        assert (sums.commits <= bound * (1 + 1e-12)).all()
        assert (sums.commits >= 1 - 1e-12).all()
        # a wait is a maximum of the steps it commits, and no longer than their sum
        assert (sums.wait_s.sum(axis=0) <= segments.gen_s.sum() * (1 + 1e-12)).all()
        # rates are shares and fall with the position
        q, pi = sums.hit_rates, sums.proposal_rates
        for rates in (q, pi):
            inside = rates[~np.isnan(rates)]
            assert (inside >= -1e-12).all()
            assert (inside <= 1 + 1e-12).all()
            assert (np.nan_to_num(np.diff(rates, axis=1)) <= 1e-12).all()
        assert (np.nan_to_num(q - pi) <= 1e-12).all()
        assert (np.nan_to_num(pi[:, longest:]) == 0).all()
        assert (sums.reached <= sums.proposals + 1e-12).all()
        assert (sums.hits <= sums.reached + 1e-12).all()
        calls = sums.calls_per_round
        assert (np.nansum(pi, axis=1) <= calls + 1e-12).all()
        assert (calls <= DEPTHS + 1e-12).all()
        assert (sums.requests_per_step <= (DEPTHS + 1) / sums.commits + 1e-12).all()
        assert (sums.requests_per_step >= 1 - 1e-12).all()


@examples
@given(
    length=st.integers(1, 8),
    n_segments=st.integers(1, 5),
    p=acceptances,
    seed=st.integers(0, 10_000),
)
def test_commits_of_equal_segments(length: int, n_segments: int, p: float, seed: int) -> None:
    """c <= min(k + 1, L)."""
    rng = np.random.default_rng(seed)
    gen_s = rng.lognormal(size=length * n_segments)
    segments = Segments(gen_s, starts=np.arange(n_segments) * length)
    bound = equations.perfect_commits(DEPTHS, length) * (1 + 1e-12)
    assert (exact_replay(segments, p, DEPTHS).commits <= bound).all()
    hit = rng.random(segments.n_steps)
    assert (teacher_forced_replay(segments, hit, DEPTHS).commits <= bound).all()


@examples
@given(segments=segments_strategy(), p=acceptances, d=draft_costs)
def test_speedup_is_at_most_its_bounds(segments: Segments, p: float, d: float) -> None:
    """S <= c / beta <= (k + 1) / beta with negligible tool time."""
    no_tools = Segments(segments.gen_s, segments.starts)
    sums = exact_replay(no_tools, p, DEPTHS)
    s = equations.speedup(sums.commits, sums.wait_inflation, d * sums.calls_per_round)
    assert_allclose(s, speedup_of(sums, d), rtol=1e-12)
    of_commits, of_depth = equations.speedup_bounds(sums.commits, sums.wait_inflation, DEPTHS)
    assert (s <= of_commits * (1 + 1e-12)).all()
    assert (of_commits <= of_depth * (1 + 1e-12)).all()


@examples
@given(segments=segments_strategy(), terminal=terminals, d=draft_costs)
def test_a_draft_that_never_matches(segments: Segments, terminal: str, d: float) -> None:
    for sums in (
        exact_replay(segments, 0.0, DEPTHS, terminal=terminal),
        teacher_forced_replay(segments, np.zeros(segments.n_steps), DEPTHS, terminal=terminal),
    ):
        assert_allclose(sums.commits, 1.0, rtol=1e-12)
        assert_allclose(sums.wait_inflation, 1.0, rtol=1e-12)
        assert (sums.bonus_loss == 0).all()
        assert_allclose(sums.target_tools_per_round, segments.tool_s.mean() / sums.mean_gen_s)
        assert (speedup_of(sums, d) <= 1 + 1e-12).all()


@examples
@given(segments=segments_strategy(), terminal=terminals)
def test_a_draft_that_always_matches(segments: Segments, terminal: str) -> None:
    rounds = np.ceil(segments.lengths / (DEPTHS[:, None] + 1)).sum(axis=1)
    for sums in (
        exact_replay(segments, 1.0, DEPTHS, terminal=terminal),
        teacher_forced_replay(segments, np.ones(segments.n_steps), DEPTHS, terminal=terminal),
    ):
        assert_allclose(sums.commits, segments.n_steps / rounds, rtol=1e-12)
        # the target itself runs a round's last tool, if the segment did not end before
        lost = (segments.lengths % (DEPTHS[:, None] + 1) != 0).sum(axis=1)
        expected = lost / rounds if terminal == "accepted" else np.zeros(len(DEPTHS))
        assert_allclose(sums.bonus_loss, expected, rtol=1e-12, atol=1e-12)


@examples
@given(segments=segments_strategy(), p=acceptances, terminal=terminals, data=st.data())
def test_the_order_of_segments_and_tasks_changes_nothing(
    segments: Segments, p: float, terminal: str, data: st.DataObject
) -> None:
    order = np.array(data.draw(st.permutations(range(len(segments.starts)))))
    labels = np.array(data.draw(st.permutations(range(segments.n_groups))))
    moved = subset_of_segments(segments, order)
    moved = Segments(
        moved.gen_s,
        moved.starts,
        tool_s=moved.tool_s,
        groups=labels[moved.groups],
        n_groups=moved.n_groups,
    )
    one = exact_replay(segments, p, DEPTHS, terminal=terminal)
    other = exact_replay(moved, p, DEPTHS, terminal=terminal)
    for name in ("steps", "gen_s", "tool_s", "rounds", "wait_s", "calls", "proposal_tool_s"):
        assert_allclose(getattr(other, name)[labels], getattr(one, name), rtol=1e-12, err_msg=name)
    for name in ("commits", "wait_inflation", "hit_rates", "proposal_rates", "bonus_loss"):
        assert_allclose(
            getattr(other, name), getattr(one, name), rtol=1e-12, atol=1e-15, err_msg=name
        )
    assert_allclose(speedup_of(one, 0.1), speedup_of(other, 0.1), rtol=1e-12)
    work, moved_work = (verification_work(s, p, DEPTHS) for s in (segments, moved))
    assert_allclose(work.cancelled_s, moved_work.cancelled_s, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("p", [0.3, 0.75, 0.95])
def test_a_long_segment_is_the_iid_case(p: float) -> None:
    """Eq. 5's numerator, q_j = p^j and the ceiling 1 / ((1 - p) beta)."""
    depths = [1, 2, 4, 8]
    gen_s = np.random.default_rng(0).lognormal(size=50_000)
    sums = exact_replay(Segments(gen_s, starts=[0]), p, depths)
    for d, k in enumerate(depths):
        assert_allclose(sums.commits[d], equations.commits_iid(p, k), rtol=1e-3)
        assert_allclose(sums.hit_rates[d, :k], p ** np.arange(1, k + 1), rtol=1e-3)
        assert_allclose(sums.proposal_rates[d, :k], 1.0, rtol=1e-3)
        s = equations.speedup(sums.commits[d], sums.wait_inflation[d], k * 0.01)
        iid = equations.speedup_iid(p, k, sums.wait_inflation[d], 0.01)
        assert_allclose(s, iid, rtol=1e-3)
    ceiling = equations.long_segment_ceiling(p, sums.wait_inflation)
    free = equations.speedup(sums.commits, sums.wait_inflation, 0.0)
    assert (free < ceiling).all()
    deep = exact_replay(Segments(gen_s, starts=[0]), p, [200])
    reached = float(equations.speedup(deep.commits, deep.wait_inflation, 0.0)[0])
    limit = float(equations.long_segment_ceiling(p, deep.wait_inflation)[0])
    assert_allclose(reached, limit, rtol=5e-3)


@examples
@given(
    commits=st.lists(st.floats(1.0, 6.0), min_size=1, max_size=8),
    data=st.data(),
)
def test_equation_6_says_whether_the_speedup_rises(
    commits: list[float], data: st.DataObject
) -> None:
    cost = data.draw(st.lists(st.floats(1.0, 4.0), min_size=len(commits), max_size=len(commits)))
    rule = equations.depth_rule(commits, cost)
    s = np.concatenate(([1.0], np.divide(commits, cost)))
    clear = np.abs(np.diff(s)) > 1e-9
    assert (rule.pays == (np.diff(s) > 0))[clear].all()
    stop = rule.last_before_stop
    assert rule.pays[:stop].all()
    assert stop == len(commits) or not rule.pays[stop]


@examples
@given(segments=segments_strategy(), p=acceptances, d=draft_costs)
def test_equation_6_on_replays(segments: Segments, p: float, d: float) -> None:
    """With tools too, if the round cost is relative to a sequential step's."""
    sums = exact_replay(segments, p, DEPTHS)
    tau, f = tool_terms(segments)
    round_cost = (
        sums.wait_inflation
        + d * sums.calls_per_round
        + sums.proposal_tools_per_round
        + sums.target_tools_per_round
    ) / (1 + f * tau)
    s = np.concatenate(([1.0], speedup_of(sums, d)))
    assert_allclose(sums.commits / round_cost, s[1:], rtol=1e-10)
    clear = np.abs(np.diff(s)) > 1e-9
    assert (equations.depth_rule(sums.commits, round_cost).pays == (np.diff(s) > 0))[clear].all()
