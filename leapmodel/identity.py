"""Whether two runs of the same tasks committed the same decisions (App. M, Table 23).

Every committed action is the target's, yet a speculative run may take another way than a target-
only one: an engine's numbers depend on which requests it decodes together. The free text of a reply
is not compared; an output that did not parse is a decision like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product, zip_longest
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from leapmodel.bootstrap import MIN_TASKS, N_RESAMPLES, resampled_sums
from leapmodel.configurations import configurations
from leapmodel.errors import DataError, UsageError
from leapmodel.recorded_settings import refuse_mixed_benchmarks
from leapmodel.rounds import KEY, Rounds, named_rounds

Decisions = Sequence[str | None]


class _Pass(NamedTuple):
    """One pass over the tasks: who ran (a draft's name and depth, or nobody), and what came."""

    name: str
    decisions: dict[str, list[str | None]]


TARGET_ONLY = "two target-only runs"


@dataclass(frozen=True, eq=False, repr=False)
class TrajectoryIdentity:
    """How often two runs of a task commit identical decisions.

    Attributes
    ----------
    table : pandas.DataFrame
        One row a kind of comparison and a configuration: ``comparison`` (two target-only runs,
        target-only and speculative, two speculative runs), ``configuration`` (the draft and depth),
        ``pairs`` of runs of one task compared, ``tasks``, ``identical`` (share of the pairs),
        ``se`` (over resampled tasks; NaN with fewer than 10), ``first_difference`` (median step,
        from 0, of the first difference; NaN if there is none).
    differences : pandas.DataFrame
        One row a pair that differs: ``comparison``, ``configuration``, ``task``, ``first`` and
        ``second`` (the runs' names), ``step``, ``first_action``, ``second_action`` (None where an
        output did not parse, and where the record of a run has no such step), ``first_steps``,
        ``second_steps`` (how many steps the records have).
    """

    table: pd.DataFrame
    differences: pd.DataFrame

    def __repr__(self) -> str:
        said = [
            f"{row['comparison']} {row['identical']:.1%}"
            for row in self.table.to_dict(orient="records")
        ]
        return f"<TrajectoryIdentity: {'; '.join(said)}>"

    def __str__(self) -> str:
        return self.summary()

    @property
    def target_repeats_itself(self) -> bool:
        """Whether the target alone takes the same decisions each time (true of a single run)."""
        alone = self.table[self.table["comparison"] == TARGET_ONLY]
        return bool((alone["identical"] == 1).all())

    def to_frame(self) -> pd.DataFrame:
        """Return the table."""
        return self.table

    def summary(self) -> str:
        """Return the table as plain text."""
        return self.table.to_string(index=False, float_format="{:.3f}".format, na_rep="-")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what is unavailable is None."""

        def rows(frame: pd.DataFrame) -> list[dict[Any, Any]]:
            return frame.astype(object).where(frame.notna(), None).to_dict(orient="records")

        return {
            "schema_version": 1,
            "comparisons": rows(self.table),
            "differences": rows(self.differences),
        }

    def _repr_html_(self) -> str:
        return self.table.to_html(index=False, float_format="{:.3f}".format, na_rep="–")


def trajectory_identity(
    rounds: Rounds | Sequence[Rounds] | Mapping[str, Rounds],
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> TrajectoryIdentity:
    """Compare the decisions of all runs of the same tasks, two at a time.

    Parameters
    ----------
    rounds : Rounds, or several, by name if they have one
        One or several runs. Each run of each arm in each of them is one pass over its tasks. A
        speculative pass is compared with the sequential arm beside it, or with all if it has none,
        and with other speculative passes of the same draft and depth.
    n_resamples, seed : int
        The bootstrap over tasks.

    Raises
    ------
    DataError
        If no two passes have a task in common.
    UsageError
        If two of them state different benchmarks, or are one record.
    """
    given = named_rounds(rounds)
    refuse_mixed_benchmarks({name: one.metadata for name, one in given.items()})
    _refuse_copies(given)
    target_only: list[_Pass] = []
    speculative: dict[str, list[_Pass]] = {}
    beside: dict[str, list[tuple[_Pass, _Pass]]] = {}  # with the sequential arm of the same run
    for name, one in given.items():
        prefix = f"{name}: " if len(given) > 1 else ""
        own = _passes(one.sequential, f"{prefix}sequential")
        target_only += own
        for configuration, part in configurations(one):
            label = str(configuration)
            passes = _passes(part, f"{prefix}{label}")
            speculative.setdefault(label, []).extend(passes)
            beside.setdefault(label, []).extend(product(own, passes))
    compared = [(TARGET_ONLY, "", list(combinations(target_only, 2)))]
    for label, passes in speculative.items():
        compared += [
            (
                "target-only and speculative",
                label,
                beside[label] or list(product(target_only, passes)),
            ),
            ("two speculative runs", label, list(combinations(passes, 2))),
        ]
    rows, differences = [], []
    for comparison, label, pairs in compared:
        found = pd.DataFrame([row for pair in pairs for row in _compared(*pair)])
        if found.empty:
            continue
        apart = found[~found["identical"]]
        rows.append(
            {
                "comparison": comparison,
                "configuration": label,
                "pairs": len(found),
                "tasks": found["task"].nunique(),
                "identical": found["identical"].mean(),
                "se": _standard_error(found, n_resamples, seed),
                "first_difference": apart["step"].median() if len(apart) else np.nan,
            }
        )
        named = apart.drop(columns="identical").astype(object)
        named = named.where(named.notna(), None)
        differences.append(named.assign(comparison=comparison, configuration=label))
    if not rows:
        raise DataError("the rounds", expected="two runs of one task", found="none to compare")
    return TrajectoryIdentity(pd.DataFrame(rows), pd.concat(differences, ignore_index=True))


def identical_share(
    first: Mapping[tuple[str, int], Decisions], second: Mapping[tuple[str, int], Decisions]
) -> float:
    """Return the share of the second's (task, run) pairs that commit what the first's do.

    A run that only the second has is compared with the task's first one; NaN if no task is in both.

    Examples
    --------
    >>> identical_share({("a", 0): ["x"], ("b", 0): ["x"]}, {("a", 0): ["x"], ("b", 1): ["y"]})
    0.5
    """
    same = [ours == theirs for _, ours, theirs in counterparts(first, second)]
    return float(np.mean(same)) if same else float("nan")


def counterparts(
    first: Mapping[tuple[str, int], Decisions], second: Mapping[tuple[str, int], Decisions]
) -> list[tuple[str, Decisions, Decisions]]:
    """Return task, the first's decisions and the second's, for every run of the second's.

    A run that only the second has is put beside the task's first one; none if the task has none.
    """
    of_task: dict[str, Decisions] = {}
    for (task, _), decisions in first.items():
        of_task.setdefault(task, decisions)
    return [
        (key[0], first.get(key, of_task[key[0]]), decisions)
        for key, decisions in second.items()
        if key[0] in of_task
    ]


def first_difference(first: Decisions, second: Decisions) -> int | None:
    """Return the step, from 0, at which two runs first differ, or None if they never do.

    Examples
    --------
    >>> first_difference(["a", "b"], ["a", "c"]), first_difference(["a"], ["a", "c"])
    (1, 1)
    >>> first_difference(["a", None], ["a", None]) is None
    True
    """
    nothing = object()
    pairs = zip_longest(first, second, fillvalue=nothing)
    return next((step for step, (a, b) in enumerate(pairs) if a != b), None)


def _refuse_copies(given: Mapping[str, Rounds]) -> None:
    """Refuse a record that is given twice: it would count as a run that repeated itself.

    A record that was gone on with is still the same one.
    """
    for (one, first), (other, second) in combinations(given.items(), 2):
        if first.metadata.get("begun") != second.metadata.get("begun"):
            continue
        both = first.frame[_MOMENTS].merge(second.frame[_MOMENTS], on=[*KEY, "round"])
        same = [both[f"{name}_x"].equals(both[f"{name}_y"]) for name in _OF_ONE_MOMENT]
        if len(both) and all(same):
            raise UsageError(
                f"{other}: expected another run than in {one}, found the same record (a copy of"
                " it?)"
            )


_OF_ONE_MOMENT = ("started_s", "wall_s")
_MOMENTS = [*KEY, "round", *_OF_ONE_MOMENT]


def _passes(rounds: Rounds, name: str) -> list[_Pass]:
    by_run: dict[int, dict[str, list[str | None]]] = {}
    for arm in ("sequential", "speculative"):
        for (task, run), actions in rounds.committed_actions(arm).items():
            by_run.setdefault(run, {})[task] = actions
    several = len(by_run) > 1
    return [
        _Pass(f"{name}, run {run}" if several else name, decisions)
        for run, decisions in by_run.items()
    ]


def _compared(first: _Pass, second: _Pass) -> list[dict[str, Any]]:
    rows = []
    for task, ours in first.decisions.items():
        if (theirs := second.decisions.get(task)) is None:
            continue
        step = first_difference(ours, theirs)
        actions: list[str | None] = [None, None]
        if step is not None:
            actions = [steps[step] if step < len(steps) else None for steps in (ours, theirs)]
        rows.append(
            {
                "task": task,
                "first": first.name,
                "second": second.name,
                "step": -1 if step is None else step,
                "first_action": actions[0],
                "second_action": actions[1],
                "first_steps": len(ours),
                "second_steps": len(theirs),
                "identical": step is None,
            }
        )
    return rows


def _standard_error(found: pd.DataFrame, n_resamples: int, seed: int) -> float:
    """Return the standard deviation over resampled tasks, all pairs of a task together."""
    by_task = found.groupby("task")["identical"]
    table = np.column_stack([by_task.sum(), by_task.size()]).astype(float)
    if len(table) < MIN_TASKS:
        return float("nan")
    drawn = resampled_sums(table, n_resamples, rng=np.random.default_rng(seed))
    return float((drawn[:, 0] / drawn[:, 1]).std(ddof=1))
