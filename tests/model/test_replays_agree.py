"""Exact and teacher-forced replay agree on larger traces, wherever they are cut."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import leapmodel.replay.sums as sums_module
from leapmodel.replay import (
    ReplaySums,
    StepOutcomes,
    Terminal,
    average_sums,
    exact_replay,
    teacher_forced_replay,
    verification_work,
)
from leapmodel.segments import Segments

from .traces import random_outcomes, random_segments, subset_of_segments

DEPTHS = [1, 2, 3, 5, 8]


def assert_same_sums(first: ReplaySums, second: ReplaySums, rtol: float = 1e-12) -> None:
    for field in fields(ReplaySums):
        one, other = getattr(first, field.name), getattr(second, field.name)
        assert one.shape == other.shape, field.name
        # rounding scales with the largest entry: rare rounds are differences of common ones
        atol = rtol * max(1.0, float(np.abs(other).max()))
        assert_allclose(one, other, rtol=rtol, atol=atol, err_msg=field.name)


def larger_trace(seed: int, n_groups: int = 40, **changes: int) -> Segments:
    sizes = {"n_segments": 3000, "longest": 14, **changes}
    return random_segments(np.random.default_rng(seed), n_groups=n_groups, **sizes)


@pytest.mark.parametrize("terminal", ["accepted", "probe"])
@pytest.mark.parametrize("p", [0.0, 0.2, 0.8, 1.0])
@pytest.mark.parametrize("n_groups", [1, 40])
def test_a_constant_acceptance_is_one_acceptance_per_step(
    n_groups: int, p: float, terminal: Terminal
) -> None:
    segments = larger_trace(0, n_groups)
    assert_same_sums(
        exact_replay(segments, p, DEPTHS, terminal=terminal),
        teacher_forced_replay(segments, np.full(segments.n_steps, p), DEPTHS, terminal=terminal),
    )


@pytest.mark.parametrize("chunk_steps", [1, 7, 1000])
def test_where_the_trace_is_cut_into_chunks_does_not_matter(
    chunk_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    segments = larger_trace(1, n_segments=150)
    outcomes = StepOutcomes(*random_outcomes(rng, segments.n_steps))
    cost = rng.random(segments.n_steps)
    whole = teacher_forced_replay(segments, outcomes, DEPTHS)
    whole_work = verification_work(segments, [0.7] * 8, DEPTHS, request_cost=cost)
    whole_exact = exact_replay(segments, 0.7, DEPTHS)
    monkeypatch.setattr(sums_module, "_CHUNK_STEPS", chunk_steps)
    assert len(list(sums_module.chunks_of_segments(segments))) > 1
    assert_same_sums(teacher_forced_replay(segments, outcomes, DEPTHS), whole)
    assert_same_sums(exact_replay(segments, 0.7, DEPTHS), whole_exact)
    work = verification_work(segments, [0.7] * 8, DEPTHS, request_cost=cost)
    assert_allclose(work.requests, whole_work.requests, rtol=1e-12)
    assert_allclose(work.cancelled_s, whole_work.cancelled_s, rtol=1e-12)
    assert_allclose(work.request_cost, whole_work.request_cost, rtol=1e-12)


def test_chunks_cover_all_segments_once(monkeypatch: pytest.MonkeyPatch) -> None:
    segments = larger_trace(2, n_segments=200)
    monkeypatch.setattr(sums_module, "_CHUNK_STEPS", 20)
    next_segment = next_step = 0
    for which, steps in sums_module.chunks_of_segments(segments):
        assert which.start == next_segment
        assert steps.start == next_step == segments.starts[which.start]
        next_segment, next_step = which.stop, steps.stop
        assert which.stop - which.start == 1 or steps.stop - steps.start <= 20
    assert (next_segment, next_step) == (len(segments.starts), segments.n_steps)


def test_one_long_segment() -> None:
    segments = larger_trace(3, n_groups=1, n_segments=1, longest=20_000)
    assert segments.n_steps > sums_module._CHUNK_STEPS
    assert_same_sums(
        exact_replay(segments, 0.7, DEPTHS),
        teacher_forced_replay(segments, np.full(segments.n_steps, 0.7), DEPTHS),
        rtol=1e-11,
    )


def test_work_at_a_stated_acceptance_is_the_one_at_that_probability_for_each_step() -> None:
    segments = larger_trace(4)
    by_position = verification_work(segments, 0.65, DEPTHS)
    by_step = verification_work(segments, StepOutcomes(np.full(segments.n_steps, 0.65)), DEPTHS)
    replayed = exact_replay(segments, 0.65, DEPTHS)
    assert_allclose(by_position.requests, replayed.requests, rtol=1e-12)
    assert_allclose(by_position.requests, by_step.requests, rtol=1e-12)
    assert_allclose(by_position.cancelled_s, by_step.cancelled_s, rtol=1e-12)
    assert (by_position.cancelled_s <= by_position.uncancelled_s).all()
    assert (by_position.request_cost == 0).all()


@pytest.mark.parametrize("terminal", ["accepted", "probe"])
def test_each_group_is_replayed_as_if_alone(terminal: Terminal) -> None:
    """But for the mean tool time of a rejected proposal, which is the whole trace's."""
    segments = random_segments(
        np.random.default_rng(5), n_segments=60, longest=9, n_groups=4, with_tools=False
    )
    hit = np.random.default_rng(6).random(segments.n_steps)
    together = teacher_forced_replay(segments, hit, DEPTHS, terminal=terminal)
    together_exact = exact_replay(segments, 0.6, DEPTHS, terminal=terminal)
    for group in range(4):
        order = np.flatnonzero(segments.groups == group)
        alone = subset_of_segments(segments, order)
        own_hits = hit[segments.step_groups == group]
        forced = teacher_forced_replay(alone, own_hits, DEPTHS, terminal=terminal)
        exact = exact_replay(alone, 0.6, DEPTHS, terminal=terminal)
        for name in ("steps", "gen_s", "tool_s", "rounds", "wait_s", "calls"):
            for whole, part in [(together, forced), (together_exact, exact)]:
                assert_allclose(getattr(whole, name)[group], getattr(part, name)[group], 1e-12)


def test_a_group_without_segments_has_zero_sums() -> None:
    segments = Segments([1.0, 2.0], starts=[0, 1], groups=[0, 2], n_groups=4)
    for sums in (
        exact_replay(segments, 0.5, [1, 2]),
        teacher_forced_replay(segments, [0.5, 0.5], [1, 2]),
    ):
        assert sums.rounds.tolist() == [[1, 1], [0, 0], [1, 1], [0, 0]]
        assert sums.wait_s[:, 0].tolist() == [1, 0, 2, 0]


def test_a_depth_asked_for_alone_is_the_same() -> None:
    segments = larger_trace(7)
    hit = np.random.default_rng(8).random(segments.n_steps)
    for together, alone in [
        (exact_replay(segments, 0.6, DEPTHS), exact_replay(segments, 0.6, 5)),
        (teacher_forced_replay(segments, hit, DEPTHS), teacher_forced_replay(segments, hit, 5)),
    ]:
        d = DEPTHS.index(5)
        for name in ("rounds", "wait_s", "calls", "proposal_tool_s", "target_tool_s"):
            assert_allclose(getattr(together, name)[:, d], getattr(alone, name)[:, 0], 1e-12)
        for name in ("hits", "proposals", "reached"):
            assert_allclose(getattr(together, name)[d, :5], getattr(alone, name)[0], 1e-12)
        assert_allclose(together.requests[d], alone.requests[0], 1e-12)
        assert_allclose(together.target_tool_steps[d], alone.target_tool_steps[0], 1e-12)


def test_average_sums() -> None:
    segments = larger_trace(9, n_segments=50)
    replays = [exact_replay(segments, p, DEPTHS) for p in (0.2, 0.6)]
    mean = average_sums(replays)
    assert_array_equal(mean.depths, DEPTHS)
    assert mean.depths.dtype == replays[0].depths.dtype
    for field in fields(ReplaySums):
        both = [getattr(replay, field.name) for replay in replays]
        assert_allclose(getattr(mean, field.name), (both[0] + both[1]) / 2, rtol=1e-15)
    assert average_sums(replays[:1]) is replays[0]


one = Segments([1.0, 2.0], starts=[0])


@pytest.mark.parametrize(
    ("depths", "message"),
    [
        ([], r"^depths must be whole numbers, found \[\]$"),
        ([1.0], r"^depths must be whole numbers, found \[1\.0\]$"),
        (["2"], r"^depths must be whole numbers, found \['2'\]$"),
        ([[1, 2]], r"^depths must be whole numbers, found \[\[1, 2\]\]$"),
        ([True], r"^depths must be whole numbers, found \[True\]$"),
        ([0, 1], r"^depths must be >= 1 and increasing, found \[0, 1\]$"),
        ([-3], r"^depths must be >= 1 and increasing, found \[-3\]$"),
        ([2, 1], r"^depths must be >= 1 and increasing, found \[2, 1\]$"),
        ([1, 1], r"^depths must be >= 1 and increasing, found \[1, 1\]$"),
    ],
)
def test_bad_depths(depths: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        exact_replay(one, 0.5, depths)
    with pytest.raises(ValueError, match=message):
        teacher_forced_replay(one, [0.5, 0.5], depths)
    with pytest.raises(ValueError, match=message):
        verification_work(one, 0.5, depths)


def test_bad_terminal_rule() -> None:
    message = r"^terminal must be 'accepted' or 'probe', found 'never'$"
    with pytest.raises(ValueError, match=message):
        exact_replay(one, 0.5, [1], terminal="never")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        teacher_forced_replay(one, [0.5, 0.5], [1], terminal="never")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("acceptance", "message"),
    [
        (1.1, r"^acceptance must lie in \[0, 1\], found 1\.1$"),
        (-0.1, r"^acceptance must lie in \[0, 1\], found -0\.1$"),
        (float("nan"), r"^acceptance must lie in \[0, 1\], found nan$"),
        ([0.5, float("inf")], r"^acceptance must lie in \[0, 1\], found \[0\.5, inf\]$"),
        ([[0.5, 0.5]], r"^acceptance must lie in \[0, 1\], found \[\[0\.5, 0\.5\]\]$"),
        ([0.5], r"^acceptance by position must have at least 2 values, found 1$"),
        ([], r"^acceptance by position must have at least 2 values, found 0$"),
    ],
)
def test_bad_acceptance(acceptance: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        exact_replay(one, acceptance, [1, 2])
    with pytest.raises(ValueError, match=message):
        verification_work(one, acceptance, [1, 2])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([[0.5]],), r"^hit, invalid and wrong_end must be arrays of one shape \(steps,\)$"),
        ((0.5,), r"^hit, invalid and wrong_end must be arrays of one shape \(steps,\)$"),
        (([0.5], [0.1, 0.1]), r"^hit, invalid and wrong_end must be arrays of one shape"),
        (([0.5], None, [0.1, 0.1]), r"^hit, invalid and wrong_end must be arrays of one shape"),
        (([1.5],), r"^a step's probabilities must be >= 0 and sum to at most 1$"),
        (([-0.5],), r"^a step's probabilities must be >= 0 and sum to at most 1$"),
        (([0.5], [0.3], [0.3]), r"^a step's probabilities must be >= 0 and sum to at most 1$"),
        (([0.5], [-0.1]), r"^a step's probabilities must be >= 0 and sum to at most 1$"),
        (([float("nan")],), r"^a step's probabilities must be >= 0 and sum to at most 1$"),
    ],
)
def test_bad_outcomes(parts: tuple[list[float], ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StepOutcomes(*parts)  # type: ignore[arg-type]


def test_one_outcome_per_step() -> None:
    with pytest.raises(ValueError, match=r"^expected 2 outcomes, found 3$"):
        teacher_forced_replay(one, [0.5, 0.5, 0.5], [1])
    with pytest.raises(ValueError, match=r"^expected 2 outcomes, found 1$"):
        verification_work(one, StepOutcomes([0.5]), [1])  # type: ignore[arg-type]


def test_one_request_cost_per_step() -> None:
    with pytest.raises(ValueError, match=r"^request_cost must hold 2 values, one per step$"):
        verification_work(one, 0.5, [1], request_cost=np.ones(3))
