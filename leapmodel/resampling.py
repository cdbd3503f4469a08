"""The sampling error of a prediction: tasks, acceptance and draft cost resampled together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leapmodel.acceptance import Estimate
from leapmodel.bootstrap import resampled_sums, task_cells
from leapmodel.draft import Draft
from leapmodel.replay import ReplaySums, Terminal
from leapmodel.segments import Floats
from leapmodel.trace import Trace


@dataclass(frozen=True, eq=False)
class Resamples:
    """Bootstrap distribution of a prediction, each array of shape (resamples, depths)."""

    speedup: Floats
    commits: Floats
    wait_inflation: Floats
    draft_term: Floats


def resample(
    trace: Trace,
    draft: Draft,
    replay: ReplaySums,
    terminal: Terminal,
    *,
    wait_factor: Floats | float = 1.0,
    n_resamples: int,
    seed: int,
) -> Resamples:
    """Bootstrap whole tasks; sums are linear in the weights and every ratio is recomputed.

    Parameters
    ----------
    trace, draft, replay, terminal
        The prediction: ``replay`` is the draft's replay of the trace.
    wait_factor : float or ndarray, shape (depths,)
        What verifications at once make of every wait; taken as known.
    n_resamples : int
        Number of resamples.
    seed : int
        The same seed gives the same task weights for every draft of one trace.
    """
    weights_seed, others_seed, cells_seed = np.random.SeedSequence(seed).spawn(3)
    cells = task_cells(trace.n_tasks, np.random.default_rng(cells_seed))
    acceptance, cost = draft.acceptance, draft.cost
    estimate = acceptance.estimate
    moves = [] if estimate is None else _moves(estimate)
    own = {
        "sequential": np.column_stack(
            [
                replay.steps,
                replay.gen_s,
                replay.tool_s,
                replay.proposable_steps,
                replay.proposable_tool_s,
            ]
        ),
        "replay": _table(replay),
    }
    for move in moves:
        moved = acceptance.replay(trace.segments, replay.depths, terminal, move.parameters)
        own[move.name] = _table(moved)
    others: dict[str, Floats] = {}
    if estimate is not None:
        (own if estimate.same_tasks else others)["estimate"] = estimate.table
    if cost.measured:
        table = np.column_stack([cost.numerator, cost.denominator])
        (own if cost.same_tasks else others)["cost"] = table

    drawn = _resampled(
        {name: _by_cell(table, cells) for name, table in own.items()}, n_resamples, weights_seed
    )
    if others:
        drawn |= _resampled(others, n_resamples, others_seed)
    steps, gen_s, tool_s, proposable, proposable_s = drawn["sequential"].T[:, :, None]
    sums = drawn["replay"]
    if estimate is not None:
        values = np.clip(estimate.of_sums(drawn["estimate"]), *estimate.limits)
        sums = sums + sum(
            move.weight(values[:, move.parameter])[:, None] * (drawn[move.name] - sums)
            for move in moves
        )
    rounds, wait_s, calls, rejected, accepted_tool_s, target_tool_s = np.split(sums, 6, axis=1)
    wait_s = wait_s * wait_factor
    proposal_tool_s = accepted_tool_s + rejected * _ratio(proposable_s, proposable, np.zeros(1))
    mean_gen_s = gen_s / steps
    stated = cost.numerator.sum() / cost.denominator.sum()
    call_s = np.full_like(steps, stated)
    if cost.measured:
        call_s = _ratio(drawn["cost"][:, :1], drawn["cost"][:, 1:], np.array([stated]))
    if cost.unit == "target steps":
        call_s = call_s * mean_gen_s
    proposing_s = call_s * calls + proposal_tool_s
    return Resamples(
        speedup=(gen_s + tool_s) / (wait_s + proposing_s + target_tool_s),
        commits=steps / rounds,
        wait_inflation=wait_s / (rounds * mean_gen_s),
        draft_term=proposing_s / (rounds * mean_gen_s),
    )


@dataclass(frozen=True, eq=False)
class _Move:
    """A replay with one parameter moved off its estimate, and its weight in the interpolation."""

    parameter: int
    parameters: Floats
    nodes: Floats  # the values at which the replay is known, the estimate among them
    at: int

    @property
    def name(self) -> str:
        return f"parameter {self.parameter} at node {self.at}"

    def weight(self, values: Floats) -> Floats:
        """Return this node's Lagrange weight at the resampled values."""
        others = np.delete(self.nodes, self.at)
        return np.prod(
            [(values - other) / (self.nodes[self.at] - other) for other in others], axis=0
        )


def _moves(estimate: Estimate) -> list[_Move]:
    """Place nodes three standard errors to both sides of each estimate; within their limits."""
    errors = np.sqrt((estimate.influence**2).sum(axis=0))
    moves = []
    for j, (value, error) in enumerate(zip(estimate.parameters, errors, strict=True)):
        low, high = estimate.limits[0][j], estimate.limits[1][j]
        nodes = np.unique(np.clip([value - 3 * error, value, value + 3 * error], low, high))
        for at, node in enumerate(nodes):
            if node != value:
                moved = estimate.parameters.copy()
                moved[j] = node
                moves.append(_Move(j, moved, nodes, at))
    return moves


def _table(replay: ReplaySums) -> Floats:
    """Return what a resample needs of a replay, one row a task."""
    return np.hstack(
        [
            replay.rounds,
            replay.wait_s,
            replay.calls,
            replay.rejected,
            replay.accepted_tool_s,
            replay.target_tool_s,
        ]
    )


def _by_cell(table: Floats, cells: np.ndarray) -> Floats:
    """Return sums over the batches of tasks that are resampled together."""
    n_cells = int(cells.max()) + 1
    if n_cells == len(table):
        return table
    return np.column_stack([np.bincount(cells, column, n_cells) for column in table.T])


def _resampled(
    tables: dict[str, Floats], n_resamples: int, seed: np.random.SeedSequence
) -> dict[str, Floats]:
    """Resample several tables of the same tasks with the same weights: one matrix product."""
    widths = np.cumsum([table.shape[1] for table in tables.values()])
    rng = np.random.default_rng(seed)
    sums = resampled_sums(np.hstack(list(tables.values())), n_resamples, rng=rng)
    return dict(zip(tables, np.split(sums, widths[:-1], axis=1), strict=True))


def _ratio(numerator: Floats, denominator: Floats, otherwise: Floats) -> Floats:
    """Divide; where a resample drew no task with known outcomes, keep the estimate."""
    known = denominator > 0
    return np.where(known, numerator / np.where(known, denominator, 1.0), otherwise)
