"""What a replay returns: sums over rounds, by group and depth, and the ratios made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np

from leapmodel.segments import Floats, Ints, Segments

Terminal = Literal["accepted", "probe"]
"""How a segment's last step is decided: proposed and accepted like any other (planning,
tau2-bench; gives Eq. 3's e), or confirmed by a width-1 probe that carries no proposal (BFCL)."""

_CHUNK_STEPS = 8_192  # a chunk's arrays stay in the processor's cache, its products on one core


@dataclass(frozen=True, eq=False)
class ReplaySums:
    """Expected sums over the rounds of a replay.

    Every ratio is a ratio of sums, in expectation too: c = steps / E[rounds],
    beta = E[wait] / (E[rounds] t_gen).

    Attributes
    ----------
    depths : ndarray of int, shape (depths,)
        The depths k replayed.
    steps, gen_s, tool_s : ndarray, shape (groups,)
        Steps, generation seconds and tool seconds of the sequential trace.
    proposable_steps, proposable_tool_s : ndarray, shape (groups,)
        Steps whose tool a proposal can run in a copy, and their tool seconds: not a boundary
        tool's, and under ``probe`` not a last step's.
    rounds, wait_s, calls : ndarray, shape (groups, depths)
        Rounds; seconds waited for the longest awaited verification; draft calls (those whose
        output was invalid or terminal included).
    accepted_tool_s, rejected, target_tool_s : ndarray, shape (groups, depths)
        Seconds of the tools of accepted proposals; proposals that were rejected after their tool
        ran; seconds of the tools of the target's own steps.
    hits, proposals, reached : ndarray, shape (depths, positions)
        Rounds with A >= j; rounds that make a j-th proposal; and those of them that accepted all
        earlier ones.
    further_requests : ndarray, shape (depths, positions)
        Rounds that verify a context after the j-th proposal, and so j + 1 contexts or more: the
        segment goes on there, and the draft has not ended it.
    bonus_lost, target_tool_steps : ndarray, shape (depths,)
        Rounds whose accepted prefix ended the segment; tool steps run by the target.
    """

    depths: Ints
    steps: Floats
    gen_s: Floats
    tool_s: Floats
    proposable_steps: Floats
    proposable_tool_s: Floats
    rounds: Floats
    wait_s: Floats
    calls: Floats
    accepted_tool_s: Floats
    rejected: Floats
    target_tool_s: Floats
    hits: Floats
    proposals: Floats
    reached: Floats
    further_requests: Floats
    bonus_lost: Floats
    target_tool_steps: Floats

    @property
    def total_rounds(self) -> Floats:
        """E[rounds] over all groups, shape (depths,)."""
        return self.rounds.sum(axis=0)

    @property
    def mean_gen_s(self) -> float:
        """Mean seconds of one sequential generation, t_gen."""
        return float(self.gen_s.sum() / self.steps.sum())

    @property
    def proposal_tool_s(self) -> Floats:
        """Seconds of tools run for proposals, shape (groups, depths).

        What a rejected proposal would have run can't be seen from a trace, so it costs the mean
        over the steps that can be proposed: a tool, a reply or nothing in their proportions.
        """
        steps = self.proposable_steps.sum()
        mean = self.proposable_tool_s.sum() / steps if steps else 0.0
        return self.accepted_tool_s + mean * self.rejected

    @property
    def commits(self) -> Floats:
        """Committed steps per round, c = 1 + sum q_j - e (Eq. 3), shape (depths,)."""
        return self.steps.sum() / self.total_rounds

    @property
    def wait_inflation(self) -> Floats:
        """Longest awaited verification over t_gen, beta (App. C.1, App. H), shape (depths,)."""
        return self.wait_s.sum(axis=0) / (self.total_rounds * self.mean_gen_s)

    @property
    def hit_rates(self) -> Floats:
        """Pr[A >= j] over all rounds, q_j; NaN past the depth, shape (depths, positions)."""
        return self._past_depth_nan(self.hits / self.total_rounds[:, None])

    @property
    def proposal_rates(self) -> Floats:
        """Share of rounds that make a j-th proposal, pi_j, shape (depths, positions)."""
        return self._past_depth_nan(self.proposals / self.total_rounds[:, None])

    @property
    def acceptance(self) -> Floats:
        """Acceptance at j where it was proposed and all earlier were accepted, a_j (Table 8)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self._past_depth_nan(self.hits / self.reached)

    @property
    def bonus_loss(self) -> Floats:
        """Bonus steps lost per round at segment ends, e (Eq. 3), shape (depths,)."""
        return self.bonus_lost / self.total_rounds

    @property
    def calls_per_round(self) -> Floats:
        """Draft calls per round, so that D = d * calls_per_round + tools, shape (depths,)."""
        return self.calls.sum(axis=0) / self.total_rounds

    @property
    def proposal_tools_per_round(self) -> Floats:
        """Seconds of proposals' tools per round over t_gen: the tool part of D."""
        return self.proposal_tool_s.sum(axis=0) / (self.total_rounds * self.mean_gen_s)

    @property
    def target_tools_per_round(self) -> Floats:
        """Seconds of the target's own tool steps per round over t_gen: g tau of Eq. 1."""
        return self.target_tool_s.sum(axis=0) / (self.total_rounds * self.mean_gen_s)

    @property
    def requests(self) -> Floats:
        """Verification requests issued, shape (depths,)."""
        return self.total_rounds + self.further_requests.sum(axis=1)

    @property
    def request_rates(self) -> Floats:
        """Share of rounds that verify 1, 2, … contexts or more, shape (depths, 1 + positions)."""
        ones = np.ones((len(self.depths), 1))
        return np.hstack([ones, self.further_requests / self.total_rounds[:, None]])

    @property
    def requests_per_step(self) -> Floats:
        """Verification requests per committed step; 1 in the sequential arm."""
        return self.requests / self.steps.sum()

    def _past_depth_nan(self, rates: Floats) -> Floats:
        positions = np.arange(1, rates.shape[1] + 1)
        return np.where(positions <= self.depths[:, None], rates, np.nan)


def average_sums(replays: Sequence[ReplaySums]) -> ReplaySums:
    """Return the mean of replays of the same trace, such as one per repeated prediction."""
    if len(replays) == 1:
        return replays[0]
    means = {
        field.name: np.mean([getattr(replay, field.name) for replay in replays], axis=0)
        for field in fields(ReplaySums)
        if field.name != "depths"
    }
    return ReplaySums(depths=replays[0].depths, **means)


def check_depths(depths: Sequence[int] | np.ndarray) -> Ints:
    """Return the depths as an array; each a whole number >= 1, increasing."""
    array = np.atleast_1d(np.asarray(depths))
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "iu":
        raise ValueError(f"depths must be whole numbers, found {depths!r}")
    if (array < 1).any() or (np.diff(array) <= 0).any():
        raise ValueError(f"depths must be >= 1 and increasing, found {array.tolist()}")
    return array.astype(np.intp)


def check_terminal(terminal: str) -> None:
    """Refuse an unknown terminal rule."""
    if terminal not in get_args(Terminal):
        raise ValueError(f"terminal must be 'accepted' or 'probe', found {terminal!r}")


def chunks_of_segments(segments: Segments) -> Iterator[tuple[slice, slice]]:
    """Yield (segments, steps) slices of about a cache's worth of steps, whole segments each."""
    ends = segments.starts + segments.lengths
    first = 0
    while first < len(ends):
        begin = int(segments.starts[first])
        last = int(np.searchsorted(ends, begin + _CHUNK_STEPS, side="right"))
        last = max(last, first + 1)
        yield slice(first, last), slice(begin, int(ends[last - 1]))
        first = last


def sum_segments_by_group(segments: Segments, per_segment: np.ndarray) -> Floats:
    """Return sums over each group's segments; (m, segments) becomes (groups, m)."""
    if segments.n_groups == 1:
        return per_segment.sum(axis=1)[None, :]
    n = segments.n_groups
    return np.array([np.bincount(segments.groups, row, minlength=n) for row in per_segment]).T


def executable_tools(segments: Segments, terminal: Terminal) -> np.ndarray:
    """Return which steps' tools a proposal can run in a copy, a mask of shape (steps,).

    Not a boundary tool's; and under ``probe`` not a last step's, which is never proposed.
    """
    runs = ~segments.is_boundary
    if terminal == "probe":
        runs = runs & (segments.remaining > 1)
    return runs


def proposable_tools(segments: Segments, executable: np.ndarray) -> tuple[Floats, Floats]:
    """Return the steps a proposal can run the tool of, and their tool seconds, by group."""
    if not segments.has_tools:  # both only matter as their ratio
        return np.zeros(segments.n_groups), np.zeros(segments.n_groups)
    return (
        segments.sum_by_group(executable),
        segments.sum_by_group(np.where(executable, segments.tool_s, 0.0)),
    )
