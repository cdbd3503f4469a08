"""Fig. 7: the framework's components, each by itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from leapmodel.paper.comparison import Comparison
from leapmodel.paper.figures.style import (
    BENCHMARKS,
    PAGE,
    benchmark_handles,
    grid,
    handle,
    new_figure,
    styled,
)
from leapmodel.paper.replayed import table10_replayed
from leapmodel.paper.tables import load

_MAIN_DEPTH = {"OpenAGI": 3, "TaskBench": 3, "tau2-bench": 2, "BFCL": 2}


def data() -> dict[str, Comparison]:
    """Return hit rates by position (a), three estimates of beta (b) and two of c (c).

    Examples
    --------
    >>> [len(panel.frame) for panel in data().values()]
    [10, 17, 17]
    """
    main = load("table16").frame.query("study == 'main' and draft == 'trained 0.6B'")
    main = main[main["k"] == main["benchmark"].map(_MAIN_DEPTH)]
    hit_rates = main.set_index("benchmark").to_dict("index")
    rates = [
        {
            "benchmark": name,
            "j": str(j),
            "hit_rate": hit_rates[name][f"q{j}"],
            "hit_rate_independent": hit_rates[name]["q1"] ** j,
        }
        for name, depth in _MAIN_DEPTH.items()
        for j in range(1, depth + 1)
    ]
    replayed = table10_replayed()
    names = ["benchmark", "draft", "k", "fit"]
    beta = ["beta_measured", "beta_predicted", "beta_rec", "beta_closed_rec"]
    commits = ["commits", "commits_iid_rec"]
    return {
        "a": Comparison(
            "Fig. 7(a): hit rates by position, and those of independent hits",
            pd.DataFrame(rates),
            {"hit_rate": "published", "hit_rate_independent": "recomputed"},
        ),
        "b": Comparison(
            "Fig. 7(b): beta measured, replayed, and by the closed form for independent times",
            replayed.frame[names + beta],
            {name: replayed.origins[name] for name in beta},
            ("Table 4's delayed runs are left out: their beta is not printed.",),
        ),
        "c": Comparison(
            "Fig. 7(c): commits of the single-rate replay against measured ones",
            replayed.frame[names[:3] + commits],
            {name: replayed.origins[name] for name in commits},
        ),
    }


@styled
def draw() -> Figure:
    """Draw the three panels."""
    panels = data()
    figure = new_figure(PAGE, 3.1)
    axes: list[Axes] = list(figure.subplots(1, 3))
    _hit_rates(axes[0], panels["a"].frame)
    _beta(axes[1], panels["b"].frame)
    _commits(axes[2], panels["c"].frame)
    for ax in axes:
        grid(ax)
    figure.legend(handles=benchmark_handles(list(BENCHMARKS)), loc="outside lower center", ncols=4)
    return figure


def _hit_rates(ax: Axes, frame: pd.DataFrame) -> None:
    for name, look in BENCHMARKS.items():
        rows = frame[frame["benchmark"] == name]
        at = rows["j"].astype(int)
        ax.plot(at, rows["hit_rate"], color=look.colour, marker=look.marker)
        ax.plot(at, rows["hit_rate_independent"], color=look.colour, linestyle=(0, (1, 1.5)))
    ax.set(
        title="(a) hit rates",
        xlabel="position j in the round",
        ylabel="Pr[A ≥ j]",
        xticks=[1, 2, 3],
        xlim=(0.8, 3.2),
        ylim=(0, 0.8),
        box_aspect=1,
    )
    _below(
        ax,
        [
            handle("$q_j$ [published]", color="0.25", linestyle="-"),
            handle("$q_1^j$ [recomputed]", color="0.25", linestyle=(0, (1, 1.5))),
        ],
    )


def _beta(ax: Axes, frame: pd.DataFrame) -> None:
    for row in frame.to_dict("records"):
        look = BENCHMARKS[row["benchmark"]]
        for column, fill in (("beta_predicted", "full"), ("beta_closed_rec", "none")):
            ax.plot(
                row["beta_measured"],
                row[column],
                color=look.colour,
                marker=look.marker,
                fillstyle=fill,
            )
    _diagonal(ax, 0.99, 1.29)
    ax.set(
        title="(b) verification wait β",
        xlabel="measured [published]",
        ylabel="estimated from step times",
    )
    _below(
        ax,
        [
            handle("trace replay [published]", color="0.25", marker="o"),
            handle("independent steps [reconstructed]", color="0.25", marker="o", fillstyle="none"),
        ],
    )


def _commits(ax: Axes, frame: pd.DataFrame) -> None:
    for row in frame.to_dict("records"):
        look = BENCHMARKS[row["benchmark"]]
        ax.plot(row["commits"], row["commits_iid_rec"], color=look.colour, marker=look.marker)
    _diagonal(ax, 0.95, 2.5)
    ax.set(
        title="(c) committed steps per round",
        xlabel="measured [published]",
        ylabel="single-rate replay [reconstructed]",
        xticks=[1, 1.5, 2, 2.5],
        yticks=[1, 1.5, 2, 2.5],
    )


def _diagonal(ax: Axes, low: float, high: float) -> None:
    ends = np.array([low, high])
    ax.plot(ends, ends, color="0.4", linewidth=0.8, zorder=1)
    ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")


def _below(ax: Axes, handles: list[Line2D]) -> None:
    ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.2),
        handletextpad=0.3,
    )
