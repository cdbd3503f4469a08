"""Pictures of learned drafts: how fast they learn, and what each memory adds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import PercentFormatter

from leapmodel.drafts.ablation import Ablation
from leapmodel.drafts.agreement import Agreement
from leapmodel.plots import COLOURS, LINES, MARKERS, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


def plot_ablation(ablation: Ablation, *, ax: Axes | None = None) -> Axes:
    """Draw what each set of memories adds to none, with the error of the paired difference."""
    ax = ax or new_axes(width=7.2)
    rows = np.arange(len(ablation.memories))[::-1]
    gain = 100 * np.array([rate.value for rate in ablation.over_none])
    error = 100 * np.array([rate.standard_error for rate in ablation.over_none])
    ax.errorbar(
        gain, rows, xerr=np.nan_to_num(error), fmt="o", color=COLOURS[0], capsize=3, linestyle=""
    )
    ax.axvline(0.0, color="0.5", linewidth=0.8)
    ax.set_yticks(rows, [" + ".join(on) if on else "none" for on in ablation.memories])
    ax.set(
        xlabel="points of exact agreement gained, ± SE over tasks",
        title=f"What each memory adds to {ablation.exact[0]} without any",
    )
    ax.spines[["top", "right"]].set_visible(False)
    return ax
