"""Place a draft's hits on the steps of tasks so that its rounds count up to what the paper prints.

A rate printed with two decimals over some hundred rounds is a whole number of rounds. Given the
tasks' lengths, such counts (rounds, rounds with A >= j, rounds that ended a task, …) are sums over
tasks of what a walk over each task's hits gives, and a seeded local search looks for hits whose
sums are the printed ones, for several depths of one draft at once. The time waited, which beta is
made of, is such a sum too.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

MISS, HIT, STOP = 0, 1, 2
"""What a draft's call at a step does: proposes another tool (and would go on), proposes the
target's action, or stops proposing (an invalid output, or the end of the task too early)."""

Outcomes = tuple[int, ...]


@dataclass(frozen=True)
class Aim:
    """A number the paper prints, as a count.

    Attributes
    ----------
    statistic : str
        ``"rounds"``; ``"accepted"``: rounds with A >= position; ``"ended"``: rounds whose accepted
        prefix ended the task, with A = position, or any A where position is 0; ``"called"``:
        rounds that make call number position; ``"calls"``: draft calls; ``"compared"``: proposals
        up to and including the first mismatch; ``"waited"``: milliseconds waited for the longest
        of each round's awaited steps; ``"hits"``: steps where the draft is right (no depth).
    count : int
        What the tasks' counts should sum to.
    depth : int, default 0
        k of the run.
    position : int, default 0
        j, where the statistic has one.
    length : int, optional
        Count only tasks of so many steps.
    weight : float, default 1
        Weight of the squared miss.
    """

    statistic: str
    count: int
    depth: int = 0
    position: int = 0
    length: int | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class Placement:
    """Where the hits were placed, and how close that came.

    Attributes
    ----------
    outcomes : tuple of tuple of int
        MISS, HIT or STOP for each step of each task, in the order of the lengths given.
    aims : tuple of Aim
        What was aimed at.
    reached : tuple of int
        The counts that the outcomes give.
    cost : float
        Weighted sum of squared misses.
    """

    outcomes: tuple[Outcomes, ...]
    aims: tuple[Aim, ...]
    reached: tuple[int, ...]
    cost: float


def aims_of_run(
    depth: int,
    hit_rates: Sequence[float],
    bonus_loss: float,
    commits: float,
    n_steps: int,
    weight: float = 1.0,
) -> list[Aim]:
    """Turn the printed q_j, e and c of a run into counts of rounds.

    Examples
    --------
    >>> [(aim.statistic, aim.position, aim.count)
    ...  for aim in aims_of_run(3, [0.71, 0.44, 0.28], 0.38, 2.05, 263)]
    [('rounds', 0, 128), ('accepted', 1, 91), ('accepted', 2, 56), ('accepted', 3, 36),
     ('ended', 0, 49)]
    """
    rounds = round(n_steps / commits)
    return [
        # c decides the speedup; it should be met before anything else
        Aim("rounds", rounds, depth, weight=6 * weight),
        *(
            Aim("accepted", round(q * rounds), depth, j, weight=weight)
            for j, q in enumerate(hit_rates, start=1)
        ),
        Aim("ended", round(bonus_loss * rounds), depth, weight=weight),
    ]


def aim_of_wait(
    depth: int, wait_inflation: float, rounds: int, mean_gen_s: float, weight: float
) -> Aim:
    """Turn a printed beta into milliseconds waited; ``weight`` is that of a miss of one t_gen.

    Examples
    --------
    >>> aim_of_wait(3, 1.21, rounds=128, mean_gen_s=1.1, weight=1.0).count
    170368
    """
    waited_ms = round(1000 * wait_inflation * rounds * mean_gen_s)
    return Aim("waited", waited_ms, depth, weight=weight / (1000 * mean_gen_s) ** 2)


def count_rounds(
    outcomes: Outcomes, depth: int, gen_ms: tuple[int, ...] | None = None
) -> dict[tuple[str, int], int]:
    """Walk one task in rounds and count them, by (statistic, position).

    The same walk as :func:`leapmodel.replay.teacher_forced_replay` with ``terminal="accepted"``
    and certain outcomes: past a miss the draft goes on to min(k, r) calls.

    Parameters
    ----------
    outcomes : tuple of int, shape (steps,)
        MISS, HIT or STOP.
    depth : int
        k.
    gen_ms : tuple of int, shape (steps,), optional
        Milliseconds of each step; without them no time is waited.

    Examples
    --------
    >>> counts = count_rounds((HIT, MISS, HIT), depth=2)
    >>> counts["rounds", 0], counts["accepted", 1], counts["ended", 0], counts["calls", 0]
    (2, 2, 1, 3)
    """
    names = [(s, 0) for s in ("rounds", "ended", "calls", "compared", "waited")]
    names += [(s, j) for s in ("accepted", "ended", "called") for j in range(1, depth + 1)]
    counts = dict.fromkeys(names, 0)
    at = 0
    while at < len(outcomes):
        most = min(depth, len(outcomes) - at)
        accepted = 0
        while accepted < most and outcomes[at + accepted] == HIT:
            accepted += 1
        stops = accepted < most and outcomes[at + accepted] == STOP
        calls = accepted + 1 if stops else most
        counts["rounds", 0] += 1
        counts["calls", 0] += calls
        counts["compared", 0] += min(accepted + 1, most)
        if gen_ms is not None:
            counts["waited", 0] += max(gen_ms[at : at + accepted + 1])
        for j in range(1, calls + 1):
            counts["called", j] += 1
        for j in range(1, accepted + 1):
            counts["accepted", j] += 1
        if at + accepted == len(outcomes):
            counts["ended", 0] += 1
            counts["ended", accepted] += 1
            break
        at += accepted + 1
    return counts


def place_hits(
    gen_ms: Sequence[tuple[int, ...]],
    aims: Sequence[Aim],
    *,
    seed: int,
    moves: int = 80_000,
    stop_at_last: bool = False,
) -> Placement:
    """Search for hits that give the counts aimed at, by simulated annealing.

    Parameters
    ----------
    gen_ms : sequence of tuple of int
        Milliseconds of each step of each task.
    aims : sequence of Aim
        The counts.
    seed : int
        Seed of the search.
    moves : int, default 40,000
        Changes of one or two steps of a task to try; it stops early where every aim is met.
    stop_at_last : bool, default False
        Whether a call at a task's last step can be a STOP: an invalid output can, the end of the
        task can't, it would be a hit.

    Returns
    -------
    Placement
        The best found.

    Examples
    --------
    >>> placed = place_hits([(900, 800), (900, 800)], [Aim("rounds", 3, depth=1)], seed=0)
    >>> placed.reached, placed.cost
    ((3,), 0.0)
    """
    rng = random.Random(seed)  # random() gives the same numbers in every version of Python
    count = _counter(tuple(aims))
    wanted = np.array([aim.count for aim in aims])
    weights = np.array([aim.weight for aim in aims])

    def cost_of(total: np.ndarray) -> float:
        miss = total - wanted
        # fsum rounds once: a sum that depends on the processor's order would make ties depend on it
        return math.fsum((miss * miss * weights).tolist())

    tasks: list[Outcomes] = [(HIT,) * len(times) for times in gen_ms]
    total = sum(map(count, tasks, gen_ms), np.zeros(len(aims), dtype=np.int64))
    cost = cost_of(total)
    best, best_total, best_cost = list(tasks), total, cost
    for move in range(moves):
        which = int(rng.random() * len(tasks))
        changed = _changed(tasks[which], rng, stop_at_last)
        new_total = total - count(tasks[which], gen_ms[which]) + count(changed, gen_ms[which])
        new_cost = cost_of(new_total)
        # from accepting losses of tens of squared counts down to accepting almost none
        temperature = 20.0 * (1 - move / moves) ** 3 + 0.05
        if new_cost <= cost or rng.random() < math.exp((cost - new_cost) / temperature):
            tasks[which], total, cost = changed, new_total, new_cost
            if cost < best_cost:
                best, best_total, best_cost = list(tasks), total, cost
                if cost == 0:
                    break
    return Placement(tuple(best), tuple(aims), tuple(map(int, best_total)), best_cost)


def _changed(task: Outcomes, rng: random.Random, stop_at_last: bool) -> Outcomes:
    out = list(task)
    for _ in range(2):
        step = int(rng.random() * len(task))
        kinds = 3 if stop_at_last or step < len(task) - 1 else 2
        out[step] = int(rng.random() * kinds)
    return tuple(out)


def _counter(aims: tuple[Aim, ...]) -> Callable[[Outcomes, tuple[int, ...]], np.ndarray]:
    depths = {aim.depth for aim in aims if aim.statistic != "hits"}

    @cache  # the search comes back to the same few outcomes again and again
    def count(task: Outcomes, gen_ms: tuple[int, ...]) -> np.ndarray:
        walks = {depth: count_rounds(task, depth, gen_ms) for depth in depths}
        hits = task.count(HIT)

        def one(aim: Aim) -> int:
            if aim.length not in (None, len(task)):
                return 0
            if aim.statistic == "hits":
                return hits
            return walks[aim.depth][aim.statistic, aim.position]

        return np.array([one(aim) for aim in aims])

    return count
