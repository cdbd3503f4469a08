"""Fig. 2: what training does to a small draft, and what a large one costs."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leapmodel.paper.comparison import Comparison
from leapmodel.paper.figures.style import (
    BENCHMARKS,
    COLUMN,
    benchmark_handles,
    grid,
    handle,
    new_figure,
    styled,
)
from leapmodel.paper.tables import load

# App. D.3: acceptance of the target with reasoning disabled as its own draft
_SELF_ACCEPTANCE = {"OpenAGI": 0.78, "TaskBench": 0.79}
# Sec. 4.3: share of rounds in which the untrained draft made no usable proposal
_NO_PROPOSAL = {"TaskBench": 0.38}
_MAIN_DEPTH = {"OpenAGI": 3, "TaskBench": 3, "tau2-bench": 2, "BFCL": 2}


def data() -> dict[str, Comparison]:
    """Return acceptance with and without training (a), and acceptance against D (b).

    Examples
    --------
    >>> [len(panel.frame) for panel in data().values()]
    [4, 6]
    """
    table = load("table10").frame
    main = table[table["k"] == table["benchmark"].map(_MAIN_DEPTH)].set_index("benchmark")
    acceptance = load("table08").frame.set_index("benchmark")["per_proposal"]
    untrained = main[main["draft"] == "untrained 0.6B"].to_dict("index")
    rows = [
        {
            "benchmark": name,
            "acceptance_trained": acceptance[name],
            "acceptance_untrained_at_least": _at_least(untrained[name], name),
        }
        for name in BENCHMARKS
    ]
    costs = [
        {"benchmark": name, "draft": draft, "draft_term": row["draft_term_D"], "acceptance": hits}
        for draft, of_draft in (
            ("trained 0.6B", acceptance.to_dict()),
            ("32B-direct", _SELF_ACCEPTANCE),
        )
        for name, hits in of_draft.items()
        for _, row in main[main["draft"] == draft].loc[[name]].iterrows()
    ]
    return {
        "a": Comparison(
            "Fig. 2(a): share of compared proposals that match, 0.6B draft",
            pd.DataFrame(rows),
            {"acceptance_trained": "published", "acceptance_untrained_at_least": "recomputed"},
            (
                "The untrained draft's acceptance is not printed. At least sum q_j over the most "
                "proposals that can have been compared, 1 + q_1 + … (less the 38 % of TaskBench's "
                "rounds without one); equal to it where every round proposes.",
            ),
        ),
        "b": Comparison(
            "Fig. 2(b): acceptance against proposing cost",
            pd.DataFrame(costs),
            {"draft_term": "published", "acceptance": "published"},
            ("32B-direct's acceptances are those of App. D.3.",),
        ),
    }


def _at_least(row: dict[Hashable, float], benchmark: str) -> float:
    hit_rates = np.array([row[q] for q in ("q1", "q2", "q3") if not np.isnan(row[q])])
    most_compared = 1 - _NO_PROPOSAL.get(benchmark, 0.0) + hit_rates[:-1].sum()
    return float(hit_rates.sum() / most_compared)


@styled
def draw() -> Figure:
    """Draw both panels one above the other, at column width."""
    panels = data()
    figure = new_figure(COLUMN, 4.3)
    above, below = figure.subplots(2, 1, height_ratios=[0.8, 1])
    _training(above, panels["a"].frame)
    _cost(below, panels["b"].frame)
    return figure


def _training(ax: Axes, frame: pd.DataFrame) -> None:
    for height, row in enumerate(frame.to_dict("records")):
        look = BENCHMARKS[row["benchmark"]]
        ends = row["acceptance_untrained_at_least"], row["acceptance_trained"]
        ax.plot(ends, [height, height], color="0.75", linewidth=1.2, zorder=1)
        for x, fill in zip(ends, ("none", "full"), strict=True):
            ax.plot(x, height, marker=look.marker, color=look.colour, fillstyle=fill)
    ax.set(
        title="(a) training the 0.6B draft",
        xlabel="acceptance",
        xlim=(0, 1),
        ylim=(len(frame) - 0.5, -0.5),
        yticks=range(len(frame)),
        yticklabels=[BENCHMARKS[name].name for name in frame["benchmark"]],
    )
    grid(ax)
    ax.legend(
        handles=[
            handle("untrained, at least [recomputed]", marker="o", color="0.25", fillstyle="none"),
            handle("trained [published]", marker="o", color="0.25"),
        ],
        loc="upper center",
        bbox_to_anchor=(0.4, -0.3),
        ncols=2,
        handletextpad=0.1,
        columnspacing=1,
    )


def _cost(ax: Axes, frame: pd.DataFrame) -> None:
    for row in frame.to_dict("records"):
        look = BENCHMARKS[row["benchmark"]]
        fill = "full" if row["draft"] == "trained 0.6B" else "left"
        ax.plot(
            row["draft_term"],
            row["acceptance"],
            marker=look.marker,
            color=look.colour,
            fillstyle=fill,
            markerfacecoloralt="white",
            markersize=6,
        )
    ax.set(
        title="(b) agreeing more costs more [published]",
        xlabel="D, proposing time per round (target steps)",
        ylabel="acceptance",
        xlim=(0, 0.8),
        ylim=(0.4, 0.9),
    )
    grid(ax)
    kinds = [
        handle("trained 0.6B", marker="o", color="0.25"),
        handle(
            "32B-direct", marker="o", color="0.25", fillstyle="left", markerfacecoloralt="white"
        ),
    ]
    ax.legend(
        handles=[*benchmark_handles(list(BENCHMARKS)), *kinds],
        loc="upper center",
        bbox_to_anchor=(0.45, -0.22),
        ncols=3,
        handletextpad=0.1,
        columnspacing=1,
    )
