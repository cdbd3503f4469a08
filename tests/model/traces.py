"""Random traces for the tests, as arrays and as the plain lists of the second implementation."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from leapmodel.segments import Segments

from .enumeration import Trace


def random_segments(
    rng: np.random.Generator,
    *,
    n_segments: int,
    longest: int,
    n_groups: int = 1,
    with_tools: bool = True,
) -> Segments:
    """Segments of 1 … longest steps; a boundary tool only where a segment ends."""
    lengths = rng.integers(1, longest + 1, n_segments)
    n = int(lengths.sum())
    last = np.cumsum(lengths) - 1
    tool_s = rng.exponential(0.5, n) * (rng.random(n) < 0.6) if with_tools else np.zeros(n)
    is_boundary = np.zeros(n, bool)
    is_boundary[last] = with_tools & (rng.random(n_segments) < 0.3)
    return Segments(
        rng.lognormal(0.0, 0.8, n),
        starts=np.concatenate(([0], last[:-1] + 1)),
        tool_s=tool_s,
        groups=rng.integers(0, n_groups, n_segments),
        n_groups=n_groups,
        is_boundary=is_boundary,
    )


def as_lists(segments: Segments) -> Trace:
    ends = [*segments.starts.tolist()[1:], segments.n_steps]
    return Trace(
        gen_s=segments.gen_s.tolist(),
        tool_s=segments.tool_s.tolist(),
        boundary=segments.is_boundary.tolist(),
        segments=[list(range(a, b)) for a, b in zip(segments.starts.tolist(), ends, strict=True)],
        groups=segments.groups.tolist(),
        n_groups=segments.n_groups,
    )


def random_outcomes(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities (hit, invalid, wrong_end) by step: known facts and uncertain ones mixed."""
    hit, invalid, wrong_end, _ = rng.dirichlet([2.0, 0.7, 0.7, 1.0], n).T
    kind = rng.integers(0, 6, n)
    for value, part in enumerate((hit, invalid, wrong_end)):
        part[kind < 4] = 0.0
        part[kind == value] = 1.0
    return hit, invalid, wrong_end


def subset_of_segments(segments: Segments, order: np.ndarray) -> Segments:
    """The same segments laid out in another order."""
    pieces = [
        np.arange(segments.starts[s], segments.starts[s] + segments.lengths[s]) for s in order
    ]
    steps = np.concatenate(pieces)
    return Segments(
        segments.gen_s[steps],
        starts=np.concatenate(([0], np.cumsum([len(p) for p in pieces])[:-1])),
        tool_s=segments.tool_s[steps],
        groups=segments.groups[order],
        n_groups=segments.n_groups,
        is_boundary=segments.is_boundary[steps],
    )


@st.composite
def segments_strategy(draw: st.DrawFn, max_segments: int = 6, longest: int = 9) -> Segments:
    """Segments with round times, so that a failing example is readable."""
    lengths = draw(st.lists(st.integers(1, longest), min_size=1, max_size=max_segments))
    n = sum(lengths)
    times = st.integers(1, 40).map(lambda tenths: tenths / 10)
    gen_s = draw(st.lists(times, min_size=n, max_size=n))
    tools = st.one_of(st.just(0.0), times)
    tool_s = draw(st.lists(tools, min_size=n, max_size=n))
    n_groups = draw(st.integers(1, 3))
    groups = draw(
        st.lists(st.integers(0, n_groups - 1), min_size=len(lengths), max_size=len(lengths))
    )
    return Segments(
        gen_s,
        starts=np.concatenate(([0], np.cumsum(lengths)[:-1])),
        tool_s=tool_s,
        groups=groups,
        n_groups=n_groups,
    )


acceptances = st.integers(0, 20).map(lambda twentieths: twentieths / 20)
