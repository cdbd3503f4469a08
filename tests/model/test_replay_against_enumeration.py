"""Exact and teacher-forced replay equal a brute-force enumeration of all outcomes."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from numpy.testing import assert_allclose

from leapmodel.replay import (
    ReplaySums,
    StepOutcomes,
    exact_replay,
    teacher_forced_replay,
    verification_work,
)
from leapmodel.segments import Segments

from .enumeration import Law, enumerate_replay, law_by_position, law_by_step
from .traces import as_lists, random_outcomes, random_segments

TERMINALS: list[Literal["accepted", "probe"]] = ["accepted", "probe"]
DEPTHS = [1, 2, 3, 4, 6]
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def assert_equals_enumeration(
    sums: ReplaySums, segments: Segments, law: Law, terminal: str
) -> None:
    trace = as_lists(segments)
    for d, depth in enumerate(sums.depths.tolist()):
        expected = enumerate_replay(trace, law, depth, terminal)
        assert_allclose(expected["steps"], segments.n_steps, rtol=1e-12)
        for name in ("rounds", "wait_s", "calls", "proposal_tool_s", "target_tool_s"):
            assert_allclose(getattr(sums, name)[:, d], expected[name], err_msg=name, **CLOSE)
        for name in ("hits", "proposals", "reached", "further_requests"):
            found = getattr(sums, name)[d]
            assert_allclose(found[:depth], expected[name], err_msg=name, **CLOSE)
            assert (found[depth:] == 0).all()
        for name in ("bonus_lost", "requests", "target_tool_steps"):
            assert_allclose(getattr(sums, name)[d], expected[name], err_msg=name, **CLOSE)
        # the ratios, in the paper's words
        rounds = sum(expected["rounds"])
        assert_allclose(sums.commits[d], segments.n_steps / rounds, **CLOSE)
        beta = sum(expected["wait_s"]) / (rounds * trace.mean_gen_s)
        assert_allclose(sums.wait_inflation[d], beta, **CLOSE)
        assert_allclose(sums.hit_rates[d, :depth], np.divide(expected["hits"], rounds), **CLOSE)
        pi = np.divide(expected["proposals"], rounds)
        assert_allclose(sums.proposal_rates[d, :depth], pi, **CLOSE)
        with np.errstate(invalid="ignore"):
            a = np.divide(expected["hits"], expected["reached"])
        # what no round reaches has no acceptance; rounding can leave 1e-17 rounds that reach it
        counts = np.asarray(expected["reached"]) > 1e-9
        assert_allclose(sums.acceptance[d, :depth][counts], a[counts], rtol=1e-9)
        assert_allclose(sums.bonus_loss[d], expected["bonus_lost"] / rounds, **CLOSE)
        assert_allclose(sums.calls_per_round[d], sum(expected["calls"]) / rounds, **CLOSE)
        assert_allclose(sums.requests_per_step[d], expected["requests"] / segments.n_steps, **CLOSE)
        for name, ratio in [
            ("proposal_tool_s", sums.proposal_tools_per_round),
            ("target_tool_s", sums.target_tools_per_round),
        ]:
            assert_allclose(ratio[d], sum(expected[name]) / (rounds * trace.mean_gen_s), **CLOSE)
        assert np.isnan(sums.hit_rates[d, depth:]).all()
        assert np.isnan(sums.proposal_rates[d, depth:]).all()
        assert np.isnan(sums.acceptance[d, depth:]).all()


@pytest.mark.parametrize("terminal", TERMINALS)
@pytest.mark.parametrize("seed", range(12))
def test_exact_replay_at_a_constant_acceptance(seed: int, terminal: str) -> None:
    rng = np.random.default_rng(seed)
    segments = random_segments(rng, n_segments=5, longest=6, n_groups=1 + seed % 3)
    p = float(rng.random()) if seed > 1 else float(seed)
    sums = exact_replay(segments, p, DEPTHS, terminal=terminal)
    assert_equals_enumeration(sums, segments, law_by_position([p] * max(DEPTHS)), terminal)


@pytest.mark.parametrize("terminal", TERMINALS)
@pytest.mark.parametrize("seed", range(12))
def test_exact_replay_at_acceptances_by_position(seed: int, terminal: str) -> None:
    rng = np.random.default_rng(100 + seed)
    segments = random_segments(rng, n_segments=4, longest=7, n_groups=1 + seed % 3)
    by_position = rng.random(max(DEPTHS))
    if seed == 0:
        by_position[1] = 0.0
    sums = exact_replay(segments, by_position, DEPTHS, terminal=terminal)
    assert_equals_enumeration(sums, segments, law_by_position(by_position.tolist()), terminal)


@pytest.mark.parametrize("terminal", TERMINALS)
@pytest.mark.parametrize("seed", range(12))
def test_teacher_forced_replay_at_hit_probabilities(seed: int, terminal: str) -> None:
    rng = np.random.default_rng(200 + seed)
    segments = random_segments(rng, n_segments=4, longest=7, n_groups=1 + seed % 3)
    hit = rng.choice([0.0, 1.0, 0.3, 0.8], segments.n_steps)
    sums = teacher_forced_replay(segments, hit, DEPTHS, terminal=terminal)
    assert_equals_enumeration(sums, segments, law_by_step(hit.tolist()), terminal)


@pytest.mark.parametrize("terminal", TERMINALS)
@pytest.mark.parametrize("seed", range(16))
def test_teacher_forced_replay_with_invalid_and_terminal_outputs(seed: int, terminal: str) -> None:
    rng = np.random.default_rng(300 + seed)
    segments = random_segments(rng, n_segments=4, longest=6, n_groups=1 + seed % 3)
    hit, invalid, wrong_end = random_outcomes(rng, segments.n_steps)
    sums = teacher_forced_replay(
        segments, StepOutcomes(hit, invalid, wrong_end), DEPTHS, terminal=terminal
    )
    law = law_by_step(hit.tolist(), invalid.tolist(), wrong_end.tolist())
    assert_equals_enumeration(sums, segments, law, terminal)


@pytest.mark.parametrize("seed", range(12))
def test_verification_work(seed: int) -> None:
    rng = np.random.default_rng(400 + seed)
    segments = random_segments(rng, n_segments=4, longest=6, n_groups=2)
    cost = rng.random(segments.n_steps)
    if seed % 2:
        hit, invalid, wrong_end = random_outcomes(rng, segments.n_steps)
        acceptance: StepOutcomes | np.ndarray = StepOutcomes(hit, invalid, wrong_end)
        law = law_by_step(hit.tolist(), invalid.tolist(), wrong_end.tolist())
    else:
        acceptance = rng.random(max(DEPTHS))
        law = law_by_position(acceptance.tolist())
    work = verification_work(segments, acceptance, DEPTHS, request_cost=cost)
    trace = as_lists(segments)
    for d, depth in enumerate(DEPTHS):
        for terminal in TERMINALS:  # the work does not depend on the rule
            expected = enumerate_replay(trace, law, depth, terminal, cost.tolist())
            assert_allclose(work.requests[d], expected["requests"], **CLOSE)
            assert_allclose(work.cancelled_s[d], expected["cancelled_s"], **CLOSE)
            assert_allclose(work.request_cost[d], expected["request_cost"], **CLOSE)
            # each step is verified once and used; whatever else was asked for was cancelled
            assert_allclose(work.requests[d] - segments.n_steps, expected["cancelled"], **CLOSE)
            uncancelled_s = expected["cancelled"] * trace.mean_gen_s
            assert_allclose(work.uncancelled_s[d], uncancelled_s, **CLOSE)
    assert (work.cancelled_s <= work.uncancelled_s + 1e-12).all()


@pytest.mark.parametrize("terminal", TERMINALS)
def test_depths_beyond_the_longest_segment(terminal: str) -> None:
    segments = Segments([2.0, 1.0, 3.0], starts=[0, 1], tool_s=[0.5, 0.0, 0.25])
    sums = exact_replay(segments, 0.6, [1, 5], terminal=terminal)
    assert_equals_enumeration(sums, segments, law_by_position([0.6] * 5), terminal)
    forced = teacher_forced_replay(segments, [0.6, 0.2, 0.7], [1, 5], terminal=terminal)
    assert_equals_enumeration(forced, segments, law_by_step([0.6, 0.2, 0.7]), terminal)


@pytest.mark.parametrize("seed", range(4))
def test_commits_and_waits_do_not_depend_on_the_terminal_rule(seed: int) -> None:
    rng = np.random.default_rng(500 + seed)
    segments = random_segments(rng, n_segments=20, longest=8, n_groups=3)
    outcomes = StepOutcomes(*random_outcomes(rng, segments.n_steps))
    for accepted, probe in [
        [exact_replay(segments, 0.7, DEPTHS, terminal=t) for t in TERMINALS],
        [teacher_forced_replay(segments, outcomes, DEPTHS, terminal=t) for t in TERMINALS],
    ]:
        assert_allclose(accepted.commits, probe.commits, rtol=1e-13)
        assert_allclose(accepted.wait_inflation, probe.wait_inflation, rtol=1e-13)
        assert_allclose(accepted.calls, probe.calls, rtol=1e-13)
        assert (probe.bonus_loss == 0).all()
        assert (probe.hits <= accepted.hits + 1e-12).all()
