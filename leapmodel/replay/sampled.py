"""The paper's own replay: draw the hits, walk the trace, average (App. H)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leapmodel.replay.exact import survival_by_position
from leapmodel.replay.sums import check_depths
from leapmodel.segments import Floats, Ints, Segments


@dataclass(frozen=True, eq=False)
class SampledReplay:
    """Rounds and waits of repeated random walks over a trace.

    Attributes
    ----------
    depths : ndarray of int, shape (depths,)
        The depths k.
    rounds, wait_s : ndarray, shape (repeats, depths)
        Rounds, and seconds waited, of each walk over the whole trace.
    n_steps : int
        Steps of the trace.
    mean_gen_s : float
        t_gen, seconds.
    """

    depths: Ints
    rounds: Floats
    wait_s: Floats
    n_steps: int
    mean_gen_s: float

    @property
    def commits(self) -> Floats:
        """Steps over mean rounds, c, shape (depths,)."""
        return self.n_steps / self.rounds.mean(axis=0)

    @property
    def wait_inflation(self) -> Floats:
        """Beta: total wait over total rounds times t_gen, shape (depths,)."""
        return self.wait_s.sum(axis=0) / (self.rounds.sum(axis=0) * self.mean_gen_s)


def sampled_replay(
    segments: Segments,
    acceptance: float | Sequence[float] | np.ndarray,
    depths: Sequence[int] | np.ndarray,
    *,
    rng: np.random.Generator,
    repeats: int = 50,
) -> SampledReplay:
    """Walk every segment in rounds with random hits, as App. H does.

    With r steps remaining, A counts the leading successes of independent trials, capped at
    min(k, r - 1); the round commits A + 1 steps and waits for the longest of them.

    Parameters
    ----------
    segments : Segments
        The sequential trace.
    acceptance : float or array_like, shape (positions,)
        As for :func:`~leapmodel.replay.exact_replay`.
    depths : array_like of int, shape (depths,)
        The depths k.
    rng : numpy.random.Generator
        Source of the draws; the same generator state gives the same walks.
    repeats : int, default 50
        Walks over the whole trace; the paper uses 50.

    Returns
    -------
    SampledReplay

    Examples
    --------
    >>> trace = Segments([1.0, 3.0], starts=[0])
    >>> walk = sampled_replay(trace, 1.0, [1], rng=np.random.default_rng(0), repeats=2)
    >>> walk.rounds.tolist(), walk.wait_s.tolist()
    ([[1.0], [1.0]], [[3.0], [3.0]])
    """
    depths = check_depths(depths)
    if repeats < 1:
        raise ValueError(f"repeats must be >= 1, found {repeats}")
    survival = survival_by_position(acceptance, int(depths[-1]))
    maxima = _running_maxima(segments, int(depths[-1]))
    ends = segments.starts + segments.lengths
    rounds = np.zeros((repeats, len(depths)))
    wait_s = np.zeros((repeats, len(depths)))
    for repeat in range(repeats):
        for d, k in enumerate(depths):
            # all segments walk at once; those that reach their end drop out
            at, end = segments.starts.copy(), ends
            while len(at):
                # Pr[A >= a] = survival[a]: A is how many thresholds a uniform draw stays below
                draw = rng.random(len(at))
                hits = np.searchsorted(-survival[1 : k + 1], -draw, side="left")
                accepted = np.minimum(hits, end - at - 1)
                rounds[repeat, d] += len(at)
                wait_s[repeat, d] += maxima[accepted, at].sum()
                at = at + accepted + 1
                going = at < end
                at, end = at[going], end[going]
    return SampledReplay(depths, rounds, wait_s, segments.n_steps, float(segments.gen_s.mean()))


def _running_maxima(segments: Segments, deepest: int) -> Floats:
    """Return M_a(i) = max(t_i ... t_(i+a)) within the segment, shape (deepest + 1, steps)."""
    maxima = np.empty((deepest + 1, segments.n_steps))
    maxima[0] = segments.gen_s
    for a in range(1, deepest + 1):
        maxima[a] = maxima[a - 1]
        inside = np.flatnonzero(segments.remaining > a)
        maxima[a, inside] = np.maximum(maxima[a - 1, inside], segments.gen_s[inside + a])
    return maxima
