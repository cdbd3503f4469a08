"""The arrays a replay walks over: steps laid end to end, cut into segments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Ints = np.ndarray[tuple[int, ...], np.dtype[np.intp]]


class EqualLength(NamedTuple):
    """All segments of one length, side by side.

    Attributes
    ----------
    which : ndarray of int, shape (segments,)
        Which segments these are.
    steps : ndarray of int, shape (length, segments)
        Their steps: one column per segment, one row per position.
    gen_s : ndarray, shape (length, segments)
        Seconds of generation of these steps.
    """

    which: Ints
    steps: Ints
    gen_s: Floats


@dataclass(frozen=True, eq=False)
class Segments:
    """Sequential steps in segments, each segment belonging to a group (a task).

    Parameters
    ----------
    gen_s : array_like, shape (steps,)
        Seconds of sequential generation, > 0.
    starts : array_like of int, shape (segments,)
        Index of each segment's first step: increasing, the first one 0.
    tool_s : array_like, shape (steps,), optional
        Seconds of tool execution, >= 0; default none.
    groups : array_like of int, shape (segments,), optional
        The group of each segment, 0 … ``n_groups`` - 1; default one group.
    n_groups : int, optional
        Number of groups; default the largest one named, plus one.
    is_boundary : array_like of bool, shape (steps,), optional
        Steps whose tool can't be run in a copy; default none.

    Raises
    ------
    ValueError
        If the shapes do not agree, a time is out of range, or the starts do not cover the steps.

    Examples
    --------
    >>> two = Segments([1.0, 2.0, 3.0], starts=[0, 2])
    >>> two.lengths.tolist(), two.remaining.tolist(), two.positions.tolist()
    ([2, 1], [2, 1, 1], [0, 1, 0])
    """

    gen_s: Floats
    starts: Ints
    tool_s: Floats = None  # type: ignore[assignment]  # filled in below
    groups: Ints = None  # type: ignore[assignment]  # filled in below
    n_groups: int = 0
    is_boundary: np.ndarray = None  # type: ignore[assignment]  # filled in below

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        gen_s = np.ascontiguousarray(self.gen_s, dtype=np.float64)
        n = len(gen_s)
        starts = np.ascontiguousarray(self.starts, dtype=np.intp)
        tool_s = np.zeros(n) if self.tool_s is None else np.asarray(self.tool_s, np.float64)
        groups = (
            np.zeros(len(starts), np.intp)
            if self.groups is None
            else np.ascontiguousarray(self.groups, dtype=np.intp)
        )
        boundary = (
            np.zeros(n, bool) if self.is_boundary is None else np.asarray(self.is_boundary, bool)
        )
        if gen_s.ndim != 1 or n == 0 or not (np.isfinite(gen_s).all() and (gen_s > 0).all()):
            raise ValueError("gen_s must be a non-empty array of finite seconds > 0")
        if tool_s.shape != (n,) or not (np.isfinite(tool_s).all() and (tool_s >= 0).all()):
            raise ValueError(f"tool_s must hold {n} finite seconds >= 0")
        if boundary.shape != (n,):
            raise ValueError(f"is_boundary must hold {n} booleans")
        if not len(starts) or starts[0] != 0 or (np.diff(starts) <= 0).any() or starts[-1] >= n:
            raise ValueError("starts must increase from 0 and stay below the number of steps")
        if groups.shape != starts.shape or (groups < 0).any():
            raise ValueError(f"groups must hold {len(starts)} indices >= 0")
        n_groups = self.n_groups or int(groups.max()) + 1
        if groups.max() >= n_groups:
            raise ValueError(f"groups must be below n_groups = {n_groups}")
        for name, value in [
            ("gen_s", gen_s),
            ("starts", starts),
            ("tool_s", tool_s),
            ("groups", groups),
            ("n_groups", n_groups),
            ("is_boundary", boundary),
        ]:
            put(name, value)

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return len(self.gen_s)

    @cached_property
    def lengths(self) -> Ints:
        """Steps of each segment, L in the paper, shape (segments,)."""
        return np.diff(np.append(self.starts, self.n_steps))

    @cached_property
    def positions(self) -> Ints:
        """0-based position of each step in its segment, shape (steps,)."""
        return np.arange(self.n_steps) - np.repeat(self.starts, self.lengths)

    @cached_property
    def remaining(self) -> Ints:
        """Steps left in the segment, this one included (r in App. H), shape (steps,)."""
        return np.repeat(self.starts + self.lengths, self.lengths) - np.arange(self.n_steps)

    @cached_property
    def has_tools(self) -> bool:
        """Whether any step has tool time."""
        return bool(self.tool_s.any())

    @cached_property
    def step_groups(self) -> Ints:
        """Group of each step, shape (steps,)."""
        return np.repeat(self.groups, self.lengths)

    @cached_property
    def by_length(self) -> list[EqualLength]:
        """The segments by length, shortest first.

        Where all columns are equally long, the steps ahead are plain slices of rows.
        """
        order = np.argsort(self.lengths, kind="stable")
        bounds = np.flatnonzero(np.diff(self.lengths[order])) + 1
        blocks = []
        for which in np.split(order, bounds):
            steps = self.starts[which] + np.arange(self.lengths[which[0]])[:, None]
            blocks.append(EqualLength(which, steps, self.gen_s[steps]))
        return blocks

    @property
    def steps_by_group(self) -> Floats:
        """Number of steps of each group, shape (n_groups,)."""
        if self.n_groups == 1:
            return np.array([float(self.n_steps)])
        sums = np.bincount(self.groups, weights=self.lengths, minlength=self.n_groups)
        return sums.astype(np.float64, copy=False)

    def sum_by_group(self, per_step: np.ndarray) -> Floats:
        """Return sums of a per-step array by group, shape (n_groups,)."""
        if self.n_groups == 1:
            return np.sum(per_step, dtype=np.float64, keepdims=True)
        per_segment = np.add.reduceat(np.asarray(per_step, dtype=np.float64), self.starts)
        sums = np.bincount(self.groups, weights=per_segment, minlength=self.n_groups)
        return sums.astype(np.float64, copy=False)
