"""What each memory of the draft ``memory`` adds, on one trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from leapmodel.drafts.memory import MEMORIES, MemoryDraft
from leapmodel.drafts.prequential import prequential
from leapmodel.drafts.rates import Rate, TaskRates
from leapmodel.hits import compare_predictions, sum_by_task
from leapmodel.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Ablation:
    """Exact agreement with some of the memories switched on.

    Attributes
    ----------
    memories : tuple of tuple of str
        Which were on: none, each alone, all but each, all.
    exact : tuple of Rate
        Exact agreement with these.
    over_none : tuple of Rate
        The difference to no memory, with the standard error of the paired difference.
    below_all : tuple of Rate
        All memories minus these: for all but one, what that one adds to the others.
    mean_us : tuple of float
        Microseconds a proposal.
    order : str
        The order in which the tasks were met.
    """

    memories: tuple[tuple[str, ...], ...]
    exact: tuple[Rate, ...]
    over_none: tuple[Rate, ...]
    below_all: tuple[Rate, ...]
    mean_us: tuple[float, ...]
    order: str

    def summary(self) -> str:
        """Return a line for each set of memories."""
        width = max(len(_label(on)) for on in self.memories)
        lines = [f"exact agreement by memory ({self.order})"]
        lines += [
            f"{_label(on):{width}}  {exact}  over none {_points(gain)}  below all {_points(loss)}"
            for on, exact, gain, loss in zip(
                self.memories, self.exact, self.over_none, self.below_all, strict=True
            )
        ]
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return one row a set of memories.

        Columns: ``memories``, ``exact``, ``over_none``, ``below_all``, each with its standard error
        (``…_se``; NaN with fewer than 10 tasks), and ``mean_us``.
        """
        columns: dict[str, Any] = {"memories": [_label(on) for on in self.memories]}
        for name in ("exact", "over_none", "below_all"):
            rates: tuple[Rate, ...] = getattr(self, name)
            columns[name] = [rate.value for rate in rates]
            columns[f"{name}_se"] = [rate.standard_error for rate in rates]
        return pd.DataFrame({**columns, "mean_us": self.mean_us})

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a rate is [value, standard error]."""
        rows = zip(
            self.memories, self.exact, self.over_none, self.below_all, self.mean_us, strict=True
        )
        return {
            "order": self.order,
            "rows": [
                {
                    "memories": list(on),
                    "exact": exact.to_list(),
                    "over_none": gain.to_list(),
                    "below_all": loss.to_list(),
                    "mean_us": microseconds,
                }
                for on, exact, gain, loss, microseconds in rows
            ],
        }

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False, float_format="{:.3f}".format, na_rep="–")

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what each set of memories adds to none, with the error of the paired difference."""
        from leapmodel.plots import COLOURS, new_axes

        ax = ax or new_axes(width=7.2)
        rows = np.arange(len(self.memories))[::-1]
        gain = 100 * np.array([rate.value for rate in self.over_none])
        error = 100 * np.array([rate.standard_error for rate in self.over_none])
        ax.errorbar(
            gain,
            rows,
            xerr=np.nan_to_num(error),
            fmt="o",
            color=COLOURS[0],
            capsize=3,
            linestyle="",
        )
        ax.axvline(0.0, color="0.5", linewidth=0.8)
        ax.set_yticks(rows, [" + ".join(on) if on else "none" for on in self.memories])
        ax.set(
            xlabel="points of exact agreement gained, ± SE over tasks",
            title=f"What each memory adds to {self.exact[0]} without any",
        )
        ax.spines[["top", "right"]].set_visible(False)
        return ax


def memory_ablation(trace: Trace, *, seed: int | None = None) -> Ablation:
    """Run the draft ``memory`` with none of its memories, each alone, all but each, and all.

    Parameters
    ----------
    trace : Trace
        The target's sequential trace; it is passed over eight times.
    seed : int, optional
        Shuffles the tasks, as for :func:`~leapmodel.drafts.prequential.prequential`.

    Returns
    -------
    Ablation
    """
    sets: list[tuple[str, ...]] = [(), *((memory,) for memory in MEMORIES)]
    sets += [tuple(other for other in MEMORIES if other != memory) for memory in MEMORIES]
    sets.append(MEMORIES)
    hits, mean_us, order = [], [], ""
    for on in sets:
        predictions = prequential(trace, MemoryDraft(on), seed=seed)
        hits.append(sum_by_task(trace, compare_predictions(trace, predictions).hit[0]))
        mean_us.append(1e6 * float(predictions.frame["latency_s"].mean()))
        order = str(predictions.metadata["order"])
    steps = trace.segments.steps_by_group
    rates = TaskRates(np.column_stack(hits), np.column_stack([steps] * len(sets)))
    rows = range(len(sets))
    return Ablation(
        memories=tuple(sets),
        exact=tuple(rates[row] for row in rows),
        over_none=tuple(rates.difference(row, 0) for row in rows),
        below_all=tuple(rates.difference(rows[-1], row) for row in rows),
        mean_us=tuple(mean_us),
        order=order,
    )


def _label(on: tuple[str, ...]) -> str:
    return " + ".join(on) if on else "none"


def _points(difference: Rate) -> str:
    if not np.isfinite(difference.standard_error):
        return f"{100 * difference.value:+.1f}"
    return f"{100 * difference.value:+.1f} ± {100 * difference.standard_error:.1f} points"
