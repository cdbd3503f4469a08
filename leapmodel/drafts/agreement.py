"""How often a draft's predictions agree with the target, where, and how fast it learned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from leapmodel.drafts.prequential import task_order
from leapmodel.drafts.rates import Rate, TaskRates
from leapmodel.drafts.shapes import names_of
from leapmodel.hits import compare_predictions, sum_by_task
from leapmodel.predictions import Predictions
from leapmodel.segments import Floats
from leapmodel.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_POSITIONS = 8
"""Positions in a segment that are told apart; later ones are pooled."""
N_PARTS = 10
"""Parts of the tasks, in the order they were met, of a learning curve."""


class Part(NamedTuple):
    """The agreement over some of the steps.

    Attributes
    ----------
    label : str
        Which steps: ``position 1`` … ``position 9+`` in the segment, or ``tasks 1-20`` in the
        order they were met.
    steps : int
        Predicted steps.
    exact, name_only : Rate
        Of these.
    """

    label: str
    steps: int
    exact: Rate
    name_only: Rate


@dataclass(frozen=True)
class Agreement:
    """Agreement of one draft with the target, over the steps it predicted.

    Attributes
    ----------
    draft : str
        Its name.
    n_tasks, n_steps : int
        Of the trace.
    coverage : float
        Share of the steps with a prediction; the others are unknown, not misses.
    exact, name_only : Rate
        Share of the predicted steps whose action is the target's, or calls the same tools in the
        same order whatever the arguments. A step without a proposal is a miss.
    proposed : Rate
        Share of the predicted steps with a proposal.
    precision : Rate
        Exact agreement among these.
    positions, learning_curve : tuple of Part
        By position in the segment; by tenth of the tasks in the order they were met.
    mean_us, p95_us : float or None
        Microseconds a proposal, mean and 95th percentile; None without ``latency_s``.
    order : str
        The order in which the tasks were met.
    """

    draft: str
    n_tasks: int
    n_steps: int
    coverage: float
    exact: Rate
    name_only: Rate
    proposed: Rate
    precision: Rate
    positions: tuple[Part, ...]
    learning_curve: tuple[Part, ...]
    mean_us: float | None
    p95_us: float | None
    order: str

    def summary(self) -> str:
        """Return the agreement as plain text, with the learning curve."""
        cost = "" if self.mean_us is None else f", {self.mean_us:.0f} µs (p95 {self.p95_us:.0f})"
        lines = [
            f"{self.draft}: exact {self.exact}, name only {self.name_only}; proposes on "
            f"{self.proposed} of the steps, {self.precision} of these exact{cost}"
        ]
        if self.coverage < 1:
            lines.append(f"{self.coverage:.0%} of the steps were predicted; the rest is unknown")
        curve = " ".join(f"{part.exact.value:.0%}" for part in self.learning_curve)
        lines.append(f"learning curve (tenths of the tasks, {self.order}): {curve}")
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for all steps, then one a position and one a part of the tasks.

        Columns: ``part``, ``steps`` predicted, ``exact`` and ``name_only`` (shares of these) with
        their standard errors over tasks, ``exact_se`` and ``name_only_se`` (NaN where fewer than
        10 tasks contribute).
        """
        return pd.DataFrame(self._rows())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a rate is [value, standard error], unavailable is None."""

        def parts(of: tuple[Part, ...]) -> list[dict[str, Any]]:
            return [
                {
                    "label": part.label,
                    "steps": part.steps,
                    "exact": part.exact.to_list(),
                    "name_only": part.name_only.to_list(),
                }
                for part in of
            ]

        return {
            "draft": self.draft,
            "tasks": self.n_tasks,
            "steps": self.n_steps,
            "coverage": self.coverage,
            "exact": self.exact.to_list(),
            "name_only": self.name_only.to_list(),
            "proposed": self.proposed.to_list(),
            "precision": self.precision.to_list(),
            "positions": parts(self.positions),
            "learning_curve": parts(self.learning_curve),
            "mean_us": self.mean_us,
            "p95_us": self.p95_us,
            "order": self.order,
        }

    def _repr_html_(self) -> str:
        from html import escape

        table = self.to_frame().to_html(index=False, float_format="{:.3f}".format, na_rep="–")
        return f"<p>{escape(self.summary().splitlines()[0])}</p>{table}"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the learning curve; see :func:`plot_learning_curves`."""
        return plot_learning_curves([self], ax=ax)

    def _rows(self) -> Iterator[dict[str, Any]]:
        steps = sum(part.steps for part in self.positions)
        whole = Part("all", steps, self.exact, self.name_only)
        for part in (whole, *self.positions, *self.learning_curve):
            yield {
                "part": part.label,
                "steps": part.steps,
                "exact": part.exact.value,
                "exact_se": part.exact.standard_error,
                "name_only": part.name_only.value,
                "name_only_se": part.name_only.standard_error,
            }


def agreement(
    trace: Trace, predictions: Predictions, *, draft: str | None = None, seed: int = 0
) -> Agreement:
    """Compare a draft's predictions with the target's actions, exactly and by name only.

    Parameters
    ----------
    trace : Trace
        The trace that was predicted.
    predictions : Predictions
        Of any draft; the order of tasks is taken from the metadata that
        :func:`~leapmodel.drafts.prequential.prequential` writes, default that of the trace.
    draft : str, optional
        Which draft, if there are several.
    seed : int, default 0
        Seed of the task bootstrap.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> trace = Trace.from_frame(pd.DataFrame({
    ...     "task": "a", "segment": 0, "step": [0, 1], "gen_s": 1.0,
    ...     "action": ['cd({"to":"x"})', "<respond/>"]}))
    >>> predictions = Predictions.from_frame(pd.DataFrame({
    ...     "task": "a", "step": [0, 1], "action": ['cd({"to":"y"})', "<respond/>"]}))
    >>> found = agreement(trace, predictions)
    >>> found.exact.value, found.name_only.value
    (0.5, 1.0)
    """
    chosen = predictions.select(draft)
    aligned = chosen.aligned(trace)
    known = aligned.has.sum(axis=0)
    exact = compare_predictions(trace, chosen).hit.sum(axis=0)
    names = sum((_same_names(trace.actions, repeat) for repeat in aligned.actions), np.zeros(1))
    proposed = (aligned.has & (aligned.actions != None)).sum(axis=0)  # noqa: E711  (by element)

    def by_task(per_step: np.ndarray, parts: np.ndarray) -> Floats:
        return np.column_stack([sum_by_task(trace, per_step * part) for part in parts])

    position = np.minimum(trace.segments.positions, N_POSITIONS)
    met = _place_in_order(trace, chosen)
    n_parts = min(N_PARTS, trace.n_tasks)
    part_of_task = np.arange(trace.n_tasks) * n_parts // trace.n_tasks
    masks = np.vstack(
        [
            np.ones((1, trace.n_steps), bool),
            position == np.arange(N_POSITIONS + 1)[:, None],
            part_of_task[met] == np.arange(n_parts)[:, None],
        ]
    )
    tried = by_task(known, masks)
    n_masks = len(masks)
    some = np.ones((1, trace.n_steps), bool)
    rates = TaskRates(
        np.hstack(
            [
                by_task(exact, masks),
                by_task(names, masks),
                by_task(proposed, some),
                by_task(exact, some),
            ]
        ),
        np.hstack([tried, tried, tried[:, :1], by_task(proposed, some)]),
        seed=seed,
    )
    labels = [*(f"position {j + 1}" for j in range(N_POSITIONS)), f"position {N_POSITIONS + 1}+"]
    for part in range(n_parts):
        first, last = np.flatnonzero(part_of_task == part)[[0, -1]] + 1
        labels.append(f"tasks {first}-{last}" if last > first else f"task {first}")
    steps = tried.sum(axis=0).astype(int).tolist()
    parts = [
        Part(label, steps[at], rates[at], rates[n_masks + at])
        for at, label in enumerate(labels, start=1)
    ]
    microseconds = 1e6 * chosen.frame["latency_s"].dropna().to_numpy(dtype=np.float64)
    return Agreement(
        draft=chosen.draft_names[0],
        n_tasks=trace.n_tasks,
        n_steps=trace.n_steps,
        coverage=float(aligned.has.mean()),
        exact=rates[0],
        name_only=rates[n_masks],
        proposed=rates[2 * n_masks],
        precision=rates[2 * n_masks + 1],
        positions=tuple(part for part in parts[: N_POSITIONS + 1] if part.steps),
        learning_curve=tuple(parts[N_POSITIONS + 1 :]),
        mean_us=float(microseconds.mean()) if len(microseconds) else None,
        p95_us=float(np.percentile(microseconds, 95)) if len(microseconds) else None,
        order=str(chosen.metadata.get("order", "the order of the trace")),
    )


def _same_names(actual: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return where two rows of actions call the same tools; null equals nothing."""
    same = [
        first is not None and second is not None and names_of(first) == names_of(second)
        for first, second in zip(actual, predicted, strict=True)
    ]
    return np.array(same)


def _place_in_order(trace: Trace, predictions: Predictions) -> np.ndarray:
    """Return for each step how many tasks had been met before its own, shape (steps,)."""
    place = np.empty(trace.n_tasks, dtype=np.intp)
    place[task_order(trace.n_tasks, predictions.metadata.get("seed"))] = np.arange(trace.n_tasks)
    return place[trace.task_codes]


def plot_learning_curves(
    agreements: Sequence[Agreement],
    *,
    ax: Axes | None = None,
    ceiling: float | None = None,
) -> Axes:
    """Draw exact agreement by tenth of the tasks, one line a draft, with error bars.

    Parameters
    ----------
    agreements : sequence of Agreement
        Of one trace.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.
    ceiling : float, optional
        The target's agreement with itself, drawn as a line.
    """
    from matplotlib.ticker import PercentFormatter

    from leapmodel.plots import COLOURS, LINES, MARKERS, new_axes

    ax = ax or new_axes()
    styles = zip(agreements, cycle(COLOURS), cycle(MARKERS), cycle(LINES), strict=False)
    for drawn, (found, colour, marker, line) in enumerate(styles):
        share = (np.arange(len(found.learning_curve)) + 1) / len(found.learning_curve)
        value = np.array([part.exact.value for part in found.learning_curve])
        error = np.array([part.exact.standard_error for part in found.learning_curve])
        ax.errorbar(
            share + 0.006 * (drawn - (len(agreements) - 1) / 2),  # bars of several drafts apart
            value,
            yerr=np.nan_to_num(error),
            color=colour,
            marker=marker,
            linestyle=line,
            capsize=2,
            label=f"{found.draft} ({found.exact} in all)",
        )
    if ceiling is not None:
        ax.axhline(ceiling, color="0.35", linestyle=(0, (1, 1.5)), label="target with itself")
    ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_ylim(bottom=0)
    ax.set(
        xlabel=f"share of the tasks met ({agreements[0].order})",
        ylabel="exact agreement",
        title="How predictable the agent is, by tenth of the tasks",
    )
    ax.legend(frameon=False, fontsize=8, title="bars: ± SE over tasks", title_fontsize=7)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
