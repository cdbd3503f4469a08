"""Whether two traces differ, and whether that changes the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leapmodel.actions import tool_names
from leapmodel.bootstrap import MIN_TASKS, N_RESAMPLES, interval_of_best, resampled_sums
from leapmodel.draft import Draft, stated_draft
from leapmodel.hits import sum_by_task
from leapmodel.prediction import Prediction
from leapmodel.predictor import DEPTHS, predict, require_trace
from leapmodel.segments import Floats
from leapmodel.trace import Trace

ASSUMED_ACCEPTANCE, ASSUMED_COST = 0.75, 0.07
"""A draft like the paper's trained 0.6B on OpenAGI (Table 8, Sec. 4.2), unless one is given."""
PERMUTATIONS = 1_000
LEVEL = 0.05
"""Of all comparisons together, half of it for the action mix."""


@dataclass(frozen=True, eq=False, repr=False)
class TraceComparison:
    """Two traces side by side.

    Attributes
    ----------
    table : pandas.DataFrame
        One row a quantity: ``quantity``, ``first``, ``second``, ``difference`` (second - first),
        ``low`` and ``high`` of its bootstrap interval over tasks (NaN with too few tasks),
        ``differs`` whether the interval excludes 0. All intervals together hold with 97.5%, which
        leaves 2.5% for the action mix: of two traces alike, one pair in twenty differs in anything.
    mix_distance, mix_p_value : float
        Total variation distance of the two mixes of tools and replies (0: the same, 1: nothing in
        common), and the share of random splits of the tasks that are at least as far apart (NaN
        with too few tasks).
    predictions : tuple of Prediction
        The same draft on both.
    paired : bool
        Whether tasks of the same name were resampled together.
    sentence : str
        What it means for the answer.
    """

    table: pd.DataFrame
    mix_distance: float
    mix_p_value: float
    predictions: tuple[Prediction, Prediction]
    paired: bool
    sentence: str

    def __repr__(self) -> str:
        return f"<TraceComparison: {self.sentence}>"

    def __str__(self) -> str:
        return self.summary()

    def to_frame(self) -> pd.DataFrame:
        """Return the table."""
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        rows = self.table.astype(object).where(self.table.notna(), None).to_dict(orient="records")
        return {
            "schema_version": 1,
            "quantities": rows,
            "action_mix_distance": self.mix_distance,
            "action_mix_p_value": None if np.isnan(self.mix_p_value) else self.mix_p_value,
            "paired_tasks": self.paired,
            "verdicts": [p.verdict.to_dict() for p in self.predictions],
            "draft": self.predictions[0].draft.source,
            "sentence": self.sentence,
        }

    def summary(self) -> str:
        """Return the comparison as plain text."""
        table = self.table.to_string(index=False, float_format="{:.3f}".format, na_rep="-")
        mix = f"action mix: distance {self.mix_distance:.2f} (p = {self.mix_p_value:.3f})"
        return f"{table}\n{mix}\n{self.sentence}"

    def _repr_html_(self) -> str:
        from html import escape

        table = self.table.to_html(index=False, float_format="{:.3f}".format, na_rep="–")
        return f"<p><b>{escape(self.sentence)}</b></p>{table}"


def compare_traces(
    first: Trace,
    second: Trace,
    *,
    draft: Draft | None = None,
    depths: Sequence[int] | np.ndarray = DEPTHS,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> TraceComparison:
    """Tell whether two traces differ in step times, lengths, tools or action mix.

    Parameters
    ----------
    first, second : Trace
        Such as last month's and this month's log, or two engines on the same tasks.
    draft : Draft, optional
        A stated draft to predict both with; default one like the paper's trained 0.6B.
    depths : array_like of int, default 1 to 6
        The depths k.
    n_resamples, seed : int
        The bootstrap over tasks. Tasks of the same name in both are resampled together.

    Examples
    --------
    >>> rows = {"task": [f"t{i // 4}" for i in range(80)], "step": [0, 1, 2, 3] * 20,
    ...         "action": "ls({})"}
    >>> slow, fast = (Trace.from_frame(pd.DataFrame({**rows, "gen_s": s})) for s in (2.0, 1.0))
    >>> compare_traces(slow, fast).table["difference"].round(2).tolist()
    [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    require_trace(first)
    require_trace(second)
    draft = draft or stated_draft(ASSUMED_ACCEPTANCE, cost=ASSUMED_COST, name="a 0.6B-like draft")
    predictions = tuple(
        predict(trace, draft, depths, n_resamples=n_resamples, seed=seed)
        for trace in (first, second)
    )
    common = set(first.task_names) & set(second.task_names)
    paired = len(common) * 2 >= min(first.n_tasks, second.n_tasks)
    sums = [_sums(trace) for trace in (first, second)]
    points = [_quantities(table.sum(axis=0)[None])[0] for table in sums]
    enough = min(first.n_tasks, second.n_tasks) >= MIN_TASKS
    low: Floats = np.full(len(QUANTITIES), np.nan)
    high = low
    if enough:
        drawn = _resampled(first, second, sums, paired, n_resamples, seed)
        differences = _quantities(drawn[1]) - _quantities(drawn[0])
        low, high = _simultaneous(points[1] - points[0], differences)
    table = pd.DataFrame(
        {
            "quantity": QUANTITIES,
            "first": points[0],
            "second": points[1],
            "difference": points[1] - points[0],
            "low": low,
            "high": high,
        }
    )
    table["differs"] = ((table["low"] > 0) | (table["high"] < 0)).astype(bool)
    distance, p_value = _action_mix(first, second, paired, np.random.default_rng(seed))
    return TraceComparison(
        table=table,
        mix_distance=distance,
        mix_p_value=p_value,
        predictions=predictions,  # type: ignore[arg-type]
        paired=paired,
        sentence=_sentence(table, distance, p_value, *predictions),
    )


QUANTITIES = (
    "mean step time (s)",
    "step time CV",
    "steps per segment",
    "steps per task and run",
    "tool step share f",
    "tool time / generation time fτ",
)


def _simultaneous(points: Floats, drawn: Floats) -> tuple[Floats, Floats]:
    """Return intervals that hold together: max-|t| over the quantities."""
    ends = [interval_of_best(points, drawn, i, level=1 - LEVEL / 2) for i in range(len(points))]
    low, high = np.array(ends).T
    return low, high


def _sums(trace: Trace) -> Floats:
    """Return what the quantities are made of, one row a task."""
    ones = np.ones(trace.n_steps)
    starts = np.zeros(trace.n_steps)
    starts[trace.segment_starts] = 1
    per_step = [
        ones,
        trace.gen_s,
        trace.gen_s**2,
        starts,
        trace.run_starts_mask,
        trace.tool_s > 0,
        trace.tool_s,
    ]
    return np.column_stack([sum_by_task(trace, column) for column in per_step])


def _quantities(sums: Floats) -> Floats:
    steps, gen, square, segments, runs, tool_steps, tool = sums.T
    mean = gen / steps
    variance = np.maximum(square / steps - mean**2, 0)
    return np.column_stack(
        [
            mean,
            np.sqrt(variance) / mean,
            steps / segments,
            steps / runs,
            tool_steps / steps,
            tool / gen,
        ]
    )


def _resampled(
    first: Trace, second: Trace, sums: list[Floats], paired: bool, n_resamples: int, seed: int
) -> list[Floats]:
    if not paired:
        return [
            resampled_sums(table, n_resamples, rng=np.random.default_rng([seed, number]))
            for number, table in enumerate(sums)
        ]
    names = list(dict.fromkeys([*first.task_names, *second.task_names]))
    width = sums[0].shape[1]
    both = np.zeros((len(names), 2 * width))
    at = {name: i for i, name in enumerate(names)}
    for number, trace in enumerate((first, second)):
        rows = [at[name] for name in trace.task_names]
        both[rows, number * width : (number + 1) * width] = sums[number]
    drawn = resampled_sums(both, n_resamples, rng=np.random.default_rng(seed))
    return [drawn[:, :width], drawn[:, width:]]


def _action_mix(
    first: Trace, second: Trace, paired: bool, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the distance of the two mixes of tools, and how often chance does as much.

    Chance deals the tasks out anew; tasks of one name in both are only swapped if they are paired.
    """
    counts = [_mix_counts(trace) for trace in (first, second)]
    names = sorted(set().union(*(c.columns for c in counts)))
    tables = [c.reindex(columns=names, fill_value=0).to_numpy(float) for c in counts]
    total = tables[0].sum(axis=0) + tables[1].sum(axis=0)

    def distance(of_first: np.ndarray) -> float:
        rest = total - of_first
        if not of_first.sum() or not rest.sum():
            return 0.0
        return float(np.abs(of_first / of_first.sum() - rest / rest.sum()).sum() / 2)

    found = distance(tables[0].sum(axis=0))
    if min(len(tables[0]), len(tables[1])) < MIN_TASKS:
        return found, float("nan")
    of_second = {name: i for i, name in enumerate(second.task_names)}
    pairs = [
        (i, of_second[name])
        for i, name in enumerate(first.task_names)
        if paired and name in of_second
    ]
    gain = np.array([tables[1][b] - tables[0][a] for a, b in pairs]).reshape(-1, len(names))
    alone = [
        np.delete(table, [pair[side] for pair in pairs], axis=0)
        for side, table in enumerate(tables)
    ]
    kept = tables[0].sum(axis=0) - alone[0].sum(axis=0)
    pool = np.concatenate(alone)
    as_far = 0
    for _ in range(PERMUTATIONS):
        swapped = gain[rng.random(len(gain)) < 0.5].sum(axis=0)
        dealt = pool[rng.permutation(len(pool))[: len(alone[0])]].sum(axis=0)
        as_far += distance(kept + swapped + dealt) >= found - 1e-12
    return found, (as_far + 1) / (PERMUTATIONS + 1)


def _mix_counts(trace: Trace) -> pd.DataFrame:
    """Return steps by task and kind of action: the tool's name(s), a reply, an unparsable one."""
    actions = pd.Series(trace.actions, dtype=object)
    names = {
        action: "+".join(sorted(set(tool_names(action)))) or action
        for action in actions.dropna().unique()
    }
    kinds = actions.map(names).fillna("(did not parse)")
    return pd.crosstab(trace.task_codes, kinds)


def _sentence(
    table: pd.DataFrame, distance: float, p_value: float, a: Prediction, b: Prediction
) -> str:
    differing = table.loc[table["differs"], "quantity"].tolist()
    if p_value < LEVEL / 2:
        differing.append(f"the action mix (distance {distance:.2f})")
    what = "No difference is beyond chance"
    if differing:
        what = "They differ in " + ", ".join(differing)
    answers = (
        f"{a.verdict.decision} ({a.verdict.speedup:.2f}x at k = {a.verdict.depth})",
        f"{b.verdict.decision} ({b.verdict.speedup:.2f}x at k = {b.verdict.depth})",
    )
    changes = a.verdict.decision != b.verdict.decision
    return (
        f"{what}. With {a.draft.name} ({a.draft.source}) the answer "
        + ("changes: " if changes else "stays: ")
        + f"{answers[0]} on the first, {answers[1]} on the second."
    )
