"""Sliders for a notebook: drag the draft's accuracy, its cost, the tools' time, and the depth."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from leapmodel.errors import UsageError
from leapmodel.plots import COLOURS, SpeedupCurve, new_axes, plot_speedup
from leapmodel.predictor import speedups
from leapmodel.replay import exact_replay
from leapmodel.trace import Trace

if TYPE_CHECKING:
    from ipywidgets import VBox
    from matplotlib.axes import Axes

DEEPEST = 8


def speedup_curve(
    trace: Trace, *, acceptance: float, draft_cost: float, tool_cost: float
) -> SpeedupCurve:
    """Return the speedup at k = 1 … 8 of a draft described by three numbers.

    Parameters
    ----------
    trace : Trace
        The workload, run sequentially.
    acceptance : float
        Acceptance of a proposal whose predecessors were accepted, in [0, 1].
    draft_cost : float
        One draft call over t_gen, d.
    tool_cost : float
        Seconds of every step that runs a tool, over t_gen, tau; replaces the trace's tool times.

    Returns
    -------
    SpeedupCurve

    Examples
    --------
    >>> import pandas as pd
    >>> trace = Trace.from_frame(pd.DataFrame({
    ...     "task": "a", "step": range(1000), "gen_s": 1.0, "action": "ls({})"}))
    >>> curve = speedup_curve(trace, acceptance=1.0, draft_cost=0.0, tool_cost=0.0)
    >>> curve.speedup[:3].round(2).tolist()  # k + 1 steps a round
    [2.0, 2.99, 4.0]
    """
    t_gen_s = float(trace.gen_s.mean())
    is_tool = trace.frame["kind"] == "tool"
    slowed = trace.frame.assign(tool_s=np.where(is_tool, tool_cost * t_gen_s, 0.0))
    depths = np.arange(1, DEEPEST + 1)
    replay = exact_replay(Trace.from_frame(slowed).segments, acceptance, depths)
    label = f"acceptance {acceptance:.2f}, d = {draft_cost:.2f}, τ = {tool_cost:.2f}"
    return SpeedupCurve(label, depths, speedups(replay, draft_cost * t_gen_s), None)


def plot_at_depth(trace: Trace, curve: SpeedupCurve, depth: int) -> Axes:
    """Draw a curve and mark one depth on it."""
    ax = plot_speedup(
        [curve], ax=new_axes(), origin=trace.metadata.get("origin"), legend_below=True
    )
    speedup = float(curve.speedup[depth - 1])
    ax.plot(depth, speedup, marker="o", markersize=11, fillstyle="none", color=COLOURS[1])
    ax.annotate(
        f"k = {depth}: {speedup:.2f}x",
        (depth, speedup),
        xytext=(0, 12),
        textcoords="offset points",
        ha="center",
    )
    # one scale for most settings, so that the curve is seen to move
    ax.set_ylim(0.5, max(3.0, 1.1 * float(curve.speedup.max())))
    return ax


def speedup_sliders(
    trace: Trace,
    *,
    acceptance: float = 0.75,
    draft_cost: float = 0.07,
    tool_cost: float = 0.0,
    depth: int = 3,
) -> VBox:
    """Return sliders above a picture of the speedup by depth that follows them.

    Parameters
    ----------
    trace : Trace
        The workload, run sequentially.
    acceptance, draft_cost, tool_cost : float
        Where the sliders start; see :func:`speedup_curve`.
    depth : int
        The depth marked.

    Raises
    ------
    UsageError
        If ipywidgets is not installed; says how to install it.
    """
    try:
        import ipywidgets as widgets
    except ImportError as error:
        raise UsageError("sliders need ipywidgets: pip install 'leapmodel[notebooks]'") from error

    wide: dict[str, Any] = {
        "style": {"description_width": "14em"},
        "layout": {"width": "34em"},
    }
    sliders = {
        "acceptance": widgets.FloatSlider(
            acceptance, min=0, max=1, step=0.01, description="acceptance of a proposal", **wide
        ),
        "draft_cost": widgets.FloatSlider(
            draft_cost, min=0, max=0.5, step=0.01, description="draft call d (steps)", **wide
        ),
        "tool_cost": widgets.FloatSlider(
            tool_cost, min=0, max=1, step=0.01, description="tool time τ (steps)", **wide
        ),
        "depth": widgets.IntSlider(depth, min=1, max=DEEPEST, description="depth k", **wide),
    }
    picture = widgets.Image(format="png", layout={"max_width": "100%"})

    def redraw(_: object = None) -> None:
        at = {name: slider.value for name, slider in sliders.items()}
        depth = at.pop("depth")
        out = BytesIO()
        figure = plot_at_depth(trace, speedup_curve(trace, **at), depth).get_figure(root=True)
        assert figure is not None
        figure.savefig(out, format="png", dpi=110)
        picture.value = out.getvalue()

    for slider in sliders.values():
        slider.observe(redraw, names="value")
    redraw()
    return widgets.VBox([*sliders.values(), picture])
