"""Pictures: each function takes ``ax=None`` and returns the axes it drew on.

Drafts are told apart by colour (Okabe and Ito's colour-blind safe set), marker and line, so that
a grey print can be read too. What kind of number is drawn is part of the title.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, MaxNLocator

from leapmodel.atomic import atomic_path
from leapmodel.verdict import DEPLOY_ABOVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":")


def new_axes(width: float = 7.2, height: float = 4.0) -> Axes:
    """Return axes of a figure of its own, without any window or global state."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure.subplots()


def plain(text: str) -> str:
    r"""Return a name from a log as a label: matplotlib must not read markup into it.

    Examples
    --------
    >>> plain("$x"), plain("_hidden")
    ('\\$x', ' _hidden')
    """
    label = " ".join(text.split()).replace("$", r"\$")
    label = label if len(label) <= 40 else label[:39] + "…"
    return f" {label}" if label.startswith("_") else label  # legends leave out leading underscores


def side_by_side(n: int, width: float = 5.6, height: float = 3.8) -> list[Axes]:
    """Return ``n`` axes in a row on one figure."""
    layout = ConstrainedLayoutEngine(wspace=0.08)
    figure = Figure(figsize=(n * width, height), layout=layout)
    return list(figure.subplots(1, n))


def save(ax: Axes, path: str | Path) -> None:
    """Write the figure of some axes to a file, all or nothing; the suffix chooses the format."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    with atomic_path(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a name in a script that the font lacks
        figure.savefig(temporary, dpi=150)


class SpeedupCurve(NamedTuple):
    """The speedup of one draft by depth.

    Attributes
    ----------
    label : str
        The draft's name.
    depths, speedup : ndarray, shape (depths,)
        k and S.
    ci95 : ndarray, shape (depths, 2), or None
        Band.
    """

    label: str
    depths: np.ndarray
    speedup: np.ndarray
    ci95: np.ndarray | None


def plot_speedup(
    curves: Sequence[SpeedupCurve],
    *,
    ax: Axes | None = None,
    ceiling: np.ndarray | None = None,
    origin: str | None = None,
    legend_below: bool = False,
) -> Axes:
    """Draw the predicted speedup by depth, one line a draft, with 95% bands.

    Parameters
    ----------
    curves : sequence of SpeedupCurve
        Of one trace, at the same depths.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.
    ceiling : ndarray, shape (depths,), optional
        Speedup of a perfect draft that costs nothing.
    origin : str, optional
        What kind of numbers the trace holds, for the title.
    legend_below : bool, default False
        Put the legend under the picture instead of beside it.
    """
    ax = ax or new_axes()
    styles = zip(curves, cycle(COLOURS), cycle(MARKERS), cycle(LINES), strict=False)
    for curve, colour, marker, line in styles:
        if curve.ci95 is not None:
            low, high = curve.ci95.T
            ax.fill_between(curve.depths, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(
            curve.depths,
            curve.speedup,
            color=colour,
            marker=marker,
            linestyle=line,
            label=plain(curve.label),
        )
    if ceiling is not None:
        ax.plot(
            curves[0].depths,
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
    ax.set(xlabel="depth k (proposals per round)", ylabel="speedup S")
    ax.set_title("Predicted speedup by depth" + (f" ({plain(origin)} trace)" if origin else ""))
    has_bands = any(curve.ci95 is not None for curve in curves)
    ax.legend(
        loc="upper center" if legend_below else "upper left",
        bbox_to_anchor=(0.5, -0.2) if legend_below else (1.0, 1.0),  # it must not hide a line
        ncols=2 if legend_below else 1,
        frameon=False,
        fontsize=8,
        title="band: 95% over tasks" if has_bands else None,
        title_fontsize=7,
    )
    ax.spines[["top", "right"]].set_visible(False)
    return ax


class PredictedAgainstMeasured(NamedTuple):
    """One measured configuration and what was predicted of it.

    Attributes
    ----------
    label : str
        The draft and its depth.
    measured : float
        The speedup.
    ci95 : tuple of (float, float), or None
        Its interval.
    eq4, ex_ante : float or None
        Eq. 4 with the run's own hit rates; the prediction from before the run.
    """

    label: str
    measured: float
    ci95: tuple[float, float] | None
    eq4: float
    ex_ante: float | None


def plot_validation(
    points: Sequence[PredictedAgainstMeasured],
    *,
    near: float,
    far: float,
    ax: Axes | None = None,
) -> Axes:
    """Draw measured against predicted speedups, with equal axes (Fig. 4).

    Filled markers are Eq. 4, hollow ones predictions from before the run; the same colour and
    marker is one configuration. The shaded bands are errors of at most ``near`` and ``far``.
    """
    ax = ax or new_axes(8.4, 5.0)
    seen = [v for p in points for v in (p.measured, p.eq4, p.ex_ante, *(p.ci95 or ())) if v]
    low, high = min(1.0, *seen) - far, max(1.0, *seen) + far
    line = np.array([low, high])
    for size, shade in ((far, "0.92"), (near, "0.84")):
        ax.fill_between(
            line, line - size, line + size, color=shade, linewidth=0, label=f"within {size:.2f}"
        )
    ax.plot(line, line, color="0.4", linewidth=0.8)
    for point, colour, marker in zip(points, cycle(COLOURS), cycle(MARKERS), strict=False):
        if point.ci95 is not None:
            ax.plot([point.eq4] * 2, point.ci95, color=colour, linewidth=1, alpha=0.6)
        ax.scatter(point.eq4, point.measured, c=colour, marker=marker, label=plain(point.label))
        if point.ex_ante is not None:
            ax.scatter(
                point.ex_ante, point.measured, marker=marker, facecolor="white", edgecolor=colour
            )
    ax.set(
        xlim=(low, high),
        ylim=(low, high),
        aspect="equal",
        anchor="W",
        xlabel="predicted speedup",
        ylabel="measured speedup",
        title="Predicted against measured",
    )
    has_before = any(point.ex_ante is not None for point in points)
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(
        handles[2:] + handles[:2],
        labels[2:] + labels[:2],
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),  # it must not hide a point
        frameon=False,
        fontsize=8,
        title="filled: Eq. 4" + ("; hollow: ex ante" if has_before else ""),
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
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
    ax.axvline(gen_s.mean(), color="black", linewidth=1, label=f"mean {gen_s.mean():.3g} s")
    median = float(np.median(gen_s))
    ax.axvline(median, color="black", linewidth=1, linestyle="--", label=f"median {median:.3g} s")
    ax.set(xlabel="generation time of a step (s)", ylabel="steps", title="Sequential step times")
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_round_cost(
    depths: np.ndarray,
    parts: Mapping[str, np.ndarray],
    *,
    sequential: float,
    title: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw where the time of a committed step goes, by depth, as stacked bars.

    Parameters
    ----------
    depths : ndarray, shape (depths,)
        k.
    parts : mapping of str to ndarray, shape (depths,)
        Time per committed step over t_gen, by what it is spent on; parts that are nought
        everywhere are left out.
    sequential : float
        Time of a sequential step over t_gen, drawn as a line.
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.
    """
    ax = ax or new_axes()
    bottom = np.zeros(len(depths))
    for (label, height), colour in zip(parts.items(), COLOURS, strict=False):
        if height.any():
            ax.bar(depths, height, bottom=bottom, color=colour, label=label, width=0.7)
            bottom += height
    ax.axhline(sequential, color="black", linewidth=1, label="a sequential step")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(
        xlabel="depth k (proposals per round)",
        ylabel="time per committed step (target steps)",
        title=plain(title),
    )
    ax.set_ylim(0, 1.35 * max(sequential, float(bottom.max())))  # room for the legend
    ax.legend(frameon=False, fontsize=8, ncols=2, loc="upper center")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_segment_lengths(lengths: np.ndarray, *, longest: int = 20, ax: Axes | None = None) -> Axes:
    """Draw how many steps the segments have; those beyond ``longest`` share the last bar."""
    ax = ax or new_axes()
    shown = np.minimum(lengths, longest)
    counts = np.bincount(shown, minlength=int(shown.max()) + 1)[1:]
    ax.bar(np.arange(1, len(counts) + 1), counts, color=COLOURS[0], width=0.8)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    beyond = f" ({longest} or more together)" if lengths.max() > longest else ""
    ax.set(xlabel=f"steps of a segment{beyond}", ylabel="segments", title="Segment lengths")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_rates_by_position(
    rates: Mapping[str, np.ndarray], *, title: str, ax: Axes | None = None
) -> Axes:
    """Draw rates by position in the round, j = 1, 2, …, one line a kind of rate.

    Parameters
    ----------
    rates : mapping of str to ndarray, shape (positions,)
        By name, in [0, 1].
    title : str
        Above the picture.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.
    """
    ax = ax or new_axes()
    for (label, values), colour, marker, line in zip(
        rates.items(), COLOURS, MARKERS, LINES, strict=False
    ):
        positions = np.arange(1, len(values) + 1)
        ax.plot(positions, values, color=colour, marker=marker, linestyle=line, label=label)
    ax.set(xlabel="position j in the round", ylabel="rate", title=plain(title), ylim=(0, 1.05))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
