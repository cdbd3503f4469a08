"""Pictures: each function takes ``ax=None`` and returns the axes it drew on.

Drafts are told apart by colour (Okabe and Ito's colour-blind safe set), marker and line, so that
a grey print can be read too. What kind of number is drawn is part of the title.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from leapmodel.files import atomic_path
from leapmodel.predictor import Prediction
from leapmodel.verdict import DEPLOY_ABOVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":")


def new_axes(width: float = 6.4, height: float = 4.0) -> Axes:
    """Return axes of a figure of its own, without any window or global state."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure.subplots()


def save(ax: Axes, path: str | Path) -> None:
    """Write the figure of some axes to a file, all or nothing; the suffix chooses the format."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150)


def plot_speedup(
    predictions: Sequence[Prediction],
    *,
    ax: Axes | None = None,
    ceiling: np.ndarray | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the predicted speedup by depth, one line a draft, with 95% bands.

    Parameters
    ----------
    predictions : sequence of Prediction
        Of one trace.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.
    ceiling : ndarray, shape (depths,), optional
        Speedup of a perfect draft that costs nothing.
    title : str, optional
        Above the picture; default says what is drawn, and of what kind the trace is.
    """
    ax = ax or new_axes()
    origin = predictions[0].trace_origin
    title = title or "Predicted speedup by depth" + (f" ({origin} trace)" if origin else "")
    styles = zip(predictions, cycle(COLOURS), cycle(MARKERS), cycle(LINES), strict=False)
    for prediction, colour, marker, line in styles:
        depths = prediction.depths
        ci = prediction.speedup_ci95
        if ci is not None:
            ax.fill_between(depths, ci[:, 0], ci[:, 1], color=colour, alpha=0.15, linewidth=0)
        ax.plot(
            depths,
            prediction.speedup,
            color=colour,
            marker=marker,
            linestyle=line,
            label=prediction.draft.name,
        )
    if ceiling is not None:
        ax.plot(
            predictions[0].depths,
            ceiling,
            color="0.35",
            linestyle=(0, (1, 1.5)),
            label="perfect free draft",
        )
    ax.axhline(1.0, color="0.5", linewidth=0.8)
    ax.axhline(
        DEPLOY_ABOVE,
        color="0.5",
        linewidth=0.8,
        linestyle=(0, (4, 3)),
        label=f"deploy above {DEPLOY_ABOVE:.2f}",
    )
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="depth k (proposals per round)", ylabel="speedup S", title=title)
    has_bands = any(p.resamples is not None for p in predictions)
    ax.legend(
        frameon=False,
        fontsize=8,
        title="band: 95% over tasks" if has_bands else None,
        title_fontsize=7,
    )
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_step_times(gen_s: np.ndarray, *, ax: Axes | None = None) -> Axes:
    """Draw the distribution of generation times on a logarithmic axis, mean and median marked."""
    ax = ax or new_axes()
    low, high = float(gen_s.min()), float(gen_s.max())
    bins = np.geomspace(low, high, 41).tolist() if high > low * 1.001 else 10
    ax.hist(gen_s, bins=bins, color=COLOURS[0], alpha=0.85)
    if high > low * 1.001:
        ax.set_xscale("log")
    ax.axvline(gen_s.mean(), color="black", linewidth=1, label=f"mean {gen_s.mean():.3g} s")
    median = float(np.median(gen_s))
    ax.axvline(median, color="black", linewidth=1, linestyle="--", label=f"median {median:.3g} s")
    ax.set(xlabel="generation time of a step (s)", ylabel="steps", title="Sequential step times")
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_round_cost(prediction: Prediction, *, ax: Axes | None = None) -> Axes:
    """Draw where a round's time goes, by depth: wait, draft calls, tools, per committed step."""
    ax = ax or new_axes()
    replay = prediction.replay
    parts = {
        "wait for verification": prediction.wait_inflation,
        "draft calls": prediction.draft_cost * replay.calls_per_round,
        "proposals' tools": replay.proposal_tools_per_round,
        "target's tools": replay.target_tools_per_round,
    }
    bottom = np.zeros(len(prediction.depths))
    for (label, height), colour in zip(parts.items(), COLOURS, strict=False):
        per_step = height / prediction.commits
        if not per_step.any():
            continue
        ax.bar(prediction.depths, per_step, bottom=bottom, color=colour, label=label, width=0.7)
        bottom += per_step
    sequential = 1 + prediction.tool_cost * prediction.tool_step_share
    ax.axhline(sequential, color="black", linewidth=1, label="sequential step")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(
        xlabel="depth k (proposals per round)",
        ylabel="target steps of time per committed step",
        title=f"Where the time goes: {prediction.draft.name}",
    )
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
