"""Fig. 4: predicted against measured speedup, and predicted against measured wait."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from leapmodel.paper.comparison import Comparison, count_within
from leapmodel.paper.figures.style import (
    BENCHMARKS,
    PAGE,
    benchmark_handles,
    grid,
    handle,
    new_figure,
    styled,
)
from leapmodel.paper.table10 import figure4a, table12

_FILL_OF_CONTROL = {
    "trained 0.6B": "full",
    "untrained 0.6B": "none",
    "32B-direct": "left",
    "delayed": "bottom",
}
_SIZE_OF_DRAFT = {"0.6B": 3.4, "1.7B": 5.0, "4B": 6.6}


def data() -> dict[str, Comparison]:
    """Return the 21, 18 and 18 points of the three panels.

    Examples
    --------
    >>> [len(panel.frame) for panel in data().values()]
    [21, 18, 18]
    """
    size_study = table12()
    gap = size_study.frame["beta_measured"] - size_study.frame["beta_replay"]
    names = ["target", "benchmark", "draft"]
    speedups = ["speedup_predicted", "speedup_measured", "error"]
    waits = size_study.frame[[*names, "beta_replay", "beta_measured"]].assign(gap=gap)
    return {
        "a": figure4a(),
        "b": Comparison(
            "Fig. 4(b): predicted against measured speedup of the size study",
            size_study.frame[[*names, "draft_timing", *speedups]],
            {name: size_study.origins[name] for name in speedups},
            size_study.notes,
        ),
        "c": Comparison(
            "Fig. 4(c): replayed against measured verification wait of the size study",
            waits,
            {"beta_replay": "published", "beta_measured": "published", "gap": "recomputed"},
        ),
    }


@styled
def draw() -> Figure:
    """Draw the three panels, with equal scales in each.

    Returns
    -------
    Figure
        Benchmarks by colour and marker; drafts and targets by how the marker is filled, and in
        (b) and (c) draft sizes by its size.
    """
    panels = data()
    figure = new_figure(PAGE, 2.95)
    axes: list[Axes] = list(figure.subplots(1, 3))
    _controls(axes[0], panels["a"].frame)
    _size_study(axes[1], panels["b"].frame, "speedup_predicted", "speedup_measured")
    _size_study(axes[2], panels["c"].frame, "beta_replay", "beta_measured")
    _square(axes[0], 0.85, 1.95, 0.2, shade=0.10)
    _square(axes[1], 1.25, 1.85, 0.1, shade=0.10)
    _square(axes[2], 1.10, 1.40, 0.1)
    axes[0].set(
        title="(a) 21 control runs",
        xlabel="predicted speedup [published]",
        ylabel="measured speedup [published]",
    )
    axes[1].set(
        title="(b) 18 runs of the size study",
        xlabel="predicted speedup [published]",
        ylabel="measured speedup [published]",
    )
    axes[2].set(
        title="(c) their verification wait",
        xlabel="replayed β [published]",
        ylabel="measured β [published]",
    )
    for ax, column in ((axes[0], "speedup_eq4"), (axes[1], "speedup_predicted")):
        frame = panels["a" if ax is axes[0] else "b"].frame
        within = count_within(frame[column], frame["speedup_measured"])
        ax.text(
            0.97,
            0.04,
            f"{within[5]} within 0.05\n{within[10]} within 0.10",
            transform=ax.transAxes,
            ha="right",
        )
    _legends(figure, axes)
    return figure


def _controls(ax: Axes, frame: pd.DataFrame) -> None:
    for row in frame.to_dict("records"):
        look = BENCHMARKS[row["benchmark"]]
        kind = "delayed" if row["delay_s"] else row["draft"]
        ax.plot(
            row["speedup_eq4"],
            row["speedup_measured"],
            linestyle="none",
            marker=look.marker,
            color=look.colour,
            fillstyle=_FILL_OF_CONTROL[kind],
            markerfacecoloralt="white",
        )
    # the two that miss by more than 0.10
    for benchmark, k, height in (("TaskBench", 5, 1.29), ("BFCL", 3, 1.12)):
        point = frame.query("benchmark == @benchmark and k == @k")[
            ["speedup_eq4", "speedup_measured"]
        ].to_numpy()[0]
        ax.annotate(
            f"{benchmark}, k = {k}",
            point,
            xytext=(1.93, height),
            ha="right",
            va="center",
            fontsize=6.5,
            arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": "0.4", "shrinkB": 3},
        )


def _size_study(ax: Axes, frame: pd.DataFrame, predicted: str, measured: str) -> None:
    large_first = frame.sort_values("draft", ascending=False, kind="stable")
    for row in large_first.to_dict("records"):
        look = BENCHMARKS[row["benchmark"]]
        is_filled = row["target"] == "Qwen3"
        ax.plot(
            row[predicted],
            row[measured],
            linestyle="none",
            marker=look.marker,
            color=look.colour,
            # the white edge below takes from a filled marker what a hollow one's edge adds
            markersize=_SIZE_OF_DRAFT[row["draft"]] + 1.2 * is_filled,
            fillstyle="full" if is_filled else "none",
            # where markers overlap, an edge shows the smaller one on top
            markeredgecolor="white" if is_filled else look.colour,
            markeredgewidth=0.5 if is_filled else 1.0,
        )


def _square(ax: Axes, low: float, high: float, tick: float, shade: float = 0.0) -> None:
    ends = np.array([low, high])
    if shade:
        ax.fill_between(ends, ends - shade, ends + shade, color="0.9", linewidth=0, zorder=0)
    else:
        grid(ax)
    ax.plot(ends, ends, color="0.4", linewidth=0.8, zorder=1)
    ticks = np.arange(np.ceil(round(low / tick, 6)), np.floor(round(high / tick, 6)) + 1) * tick
    ax.set(xlim=(low, high), ylim=(low, high), aspect="equal", xticks=ticks, yticks=ticks)


def _legends(figure: Figure, axes: list[Axes]) -> None:
    def below(ax: Axes, handles: list[Line2D], columns: int, x: float) -> Legend:
        return ax.legend(
            handles=handles,
            loc="upper center",
            bbox_to_anchor=(x, -0.22),
            ncols=columns,
            handletextpad=0.2,
            columnspacing=0.9,
        )

    grey = {"color": "0.25", "marker": "o", "markerfacecoloralt": "white"}
    drafts = [
        handle(name, fillstyle=_FILL_OF_CONTROL[kind], **grey)
        for name, kind in [
            ("trained 0.6B", "trained 0.6B"),
            ("untrained 0.6B", "untrained 0.6B"),
            ("32B-direct", "32B-direct"),
            ("trained, tools +2 or 5 s", "delayed"),
        ]
    ]
    targets = [
        handle("Qwen3 target", fillstyle="full", **grey),
        handle("Gemma target", fillstyle="none", **grey),
    ]
    sizes = [
        handle(f"{name} draft", markersize=size + 0.6, fillstyle="full", **grey)
        for name, size in _SIZE_OF_DRAFT.items()
    ]
    below(axes[0], drafts, 2, 0.5)
    # what (b) and (c) share stands between them
    below(axes[1], [*targets, *sizes], 3, 1.15).set_in_layout(False)
    figure.legend(
        handles=[*benchmark_handles(list(BENCHMARKS)), handle("±0.10", marker="s", color="0.85")],
        loc="outside lower center",
        ncols=5,
        handletextpad=0.2,
    )
