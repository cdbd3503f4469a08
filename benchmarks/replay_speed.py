"""How fast the exact replay is, beside plain Python and beside one pass over the same array."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from appendix_h import walk
from figures import Figure, seconds_of

from leapmodel.replay import exact_replay, teacher_forced_replay
from leapmodel.segments import Segments

N_STEPS, N_SEGMENTS, N_TASKS = 500_000, 70_000, 20_000
ACCEPTANCE, DEPTH, DEPTHS = 0.8, 3, range(1, 9)
PAPER_REPEATS = 50
LONGEST_PATIENCE_S = 60.0


def replay_figures() -> list[Figure]:
    """Measure the replays of 500,000 steps."""
    rng = np.random.default_rng(0)
    gen_s = 0.05 + rng.gamma(1.0, 1.5, N_STEPS)
    starts = np.sort(rng.choice(np.arange(1, N_STEPS), N_SEGMENTS - 1, replace=False))
    starts = np.concatenate(([0], starts))
    tasks = np.sort(rng.integers(0, N_TASKS, N_SEGMENTS))
    pooled = Segments(gen_s, starts)
    by_task = Segments(gen_s, starts, groups=tasks, n_groups=N_TASKS)
    one = Segments(gen_s, starts=np.array([0]))
    by_step = rng.random(N_STEPS)
    return [
        *_against_plain_python(pooled),
        *_against_one_pass(
            gen_s,
            {
                "depths 1-8, one sum for all tasks": lambda: exact_replay(
                    pooled, ACCEPTANCE, DEPTHS
                ),
                f"depths 1-8, sums of {N_TASKS:,} tasks": lambda: exact_replay(
                    by_task, ACCEPTANCE, DEPTHS
                ),
            },
            target=20.0,
        ),
        *_against_one_pass(
            gen_s,
            {
                "the same, the segments' layout included (first call)": lambda: exact_replay(
                    Segments(gen_s, starts, groups=tasks, n_groups=N_TASKS), ACCEPTANCE, DEPTHS
                ),
                "depths 1-8, one segment of 500,000 steps": lambda: exact_replay(
                    one, ACCEPTANCE, DEPTHS
                ),
                "depths 1-8, one acceptance per step": lambda: teacher_forced_replay(
                    by_task, by_step, DEPTHS
                ),
                "both: one segment, one acceptance per step": lambda: teacher_forced_replay(
                    one, by_step, DEPTHS
                ),
            },
            target=None,
            repeats=5,
        ),
    ]


def _against_plain_python(segments: Segments) -> list[Figure]:
    gen_s, lengths = segments.gen_s.tolist(), segments.lengths.tolist()
    rounds: list[int] = []

    def one_walk() -> None:
        rounds.append(walk(gen_s, lengths, ACCEPTANCE, DEPTH, seed=len(rounds))[0])

    walks = [seconds_of(one_walk)]
    n_walks = PAPER_REPEATS if walks[0] * PAPER_REPEATS < LONGEST_PATIENCE_S else 5
    walks += [seconds_of(one_walk) for _ in range(n_walks - 1)]
    plain_s = sum(walks) / n_walks * PAPER_REPEATS
    exact_replay(segments, ACCEPTANCE, [DEPTH])
    exact = [seconds_of(lambda: exact_replay(segments, ACCEPTANCE, [DEPTH])) for _ in range(15)]
    apart = np.mean(rounds) / exact_replay(segments, ACCEPTANCE, [DEPTH]).total_rounds[0] - 1
    measured = "all measured" if n_walks == PAPER_REPEATS else f"{n_walks} measured, scaled to 50"
    return [
        Figure("exact replay, 500,000 steps in 70,000 segments, k = 3", exact, "s"),
        Figure(
            f"plain-Python App. H replay, {PAPER_REPEATS} walks",
            [w * PAPER_REPEATS for w in walks],
            "s",
            note=f"{measured}; its mean rounds are {apart:+.4%} from the exact ones",
        ),
        Figure(
            "plain Python / exact replay",
            [plain_s / s for s in exact],
            "x",
            target=1000,
            at_least=True,
        ),
    ]


def _against_one_pass(
    gen_s: np.ndarray,
    calls: dict[str, Callable[[], object]],
    target: float | None,
    repeats: int = 15,
) -> list[Figure]:
    """Ratios to np.maximum.accumulate, measured in turn so that both see the same machine."""
    found = []
    for what, call in calls.items():
        call()
        ratios, seconds = [], []
        for _ in range(repeats):
            one_pass = min(seconds_of(lambda: np.maximum.accumulate(gen_s)) for _ in range(3))
            seconds.append(seconds_of(call))
            ratios.append(seconds[-1] / one_pass)
        middle = f"{1000 * float(np.median(seconds)):.0f} ms"
        found.append(Figure(f"/ maximum.accumulate: {what}", ratios, "x", target, note=middle))
    return found
