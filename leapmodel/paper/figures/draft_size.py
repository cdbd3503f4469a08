"""Fig. 3: measured and predicted speedup of three draft sizes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from leapmodel.paper.comparison import Comparison
from leapmodel.paper.figures.style import BENCHMARKS, PAGE, grid, handle, new_figure, styled
from leapmodel.paper.tables import load


def data() -> dict[str, Comparison]:
    """Return measured speedups with intervals (Table 9) and predicted ones (Table 14), Qwen3.

    Examples
    --------
    >>> frame = data()[""].frame
    >>> len(frame), int(frame["speedup_predicted"].notna().sum())
    (12, 9)
    """
    measured = load("table09").frame.query("target == 'Qwen3-32B'")
    predicted = load("table14").frame[["benchmark", "draft", "speedup_predicted"]]
    numbers = ["speedup", "ci95_low", "ci95_high"]
    frame = measured[["benchmark", "draft", *numbers]].merge(predicted, on=["benchmark", "draft"])
    return {
        "": Comparison(
            "Fig. 3: speedup by draft size, Qwen3 target",
            frame,
            dict.fromkeys([*numbers, "speedup_predicted"], "published"),
            ("BFCL has no prediction. The independent repeats of the figure are not printed.",),
        )
    }


@styled
def draw() -> Figure:
    """Draw one panel a benchmark on a common scale."""
    frame: pd.DataFrame = data()[""].frame
    figure = new_figure(PAGE, 2.1)
    axes = figure.subplots(1, 4, sharey=True)
    for ax, (name, look) in zip(axes, BENCHMARKS.items(), strict=True):
        rows = frame[frame["benchmark"] == name]
        places = np.arange(len(rows))
        errors = [rows["speedup"] - rows["ci95_low"], rows["ci95_high"] - rows["speedup"]]
        ax.errorbar(
            places,
            rows["speedup"],
            yerr=errors,
            color=look.colour,
            marker=look.marker,
            elinewidth=0.8,
        )
        if rows["speedup_predicted"].notna().any():
            ax.plot(
                places + 0.12,  # beside the measured value, not on it
                rows["speedup_predicted"],
                color="0.25",
                linestyle=(0, (3, 2)),
                marker="o",
                fillstyle="none",
            )
        ax.axhline(1, color="0.5", linewidth=0.8)
        ax.set(title=look.name, xlabel="size of the draft", xlim=(-0.4, 2.5))
        ax.set_xticks(places, rows["draft"])
        grid(ax)
    axes[0].set(ylabel="speedup", ylim=(0.95, 1.85))
    figure.legend(
        handles=[
            handle("measured, 95% over tasks [published]", color="0.25", marker="o", linestyle="-"),
            handle(
                "predicted [published]",
                color="0.25",
                marker="o",
                fillstyle="none",
                linestyle=(0, (3, 2)),
            ),
        ],
        loc="outside lower center",
        ncols=2,
    )
    return figure
