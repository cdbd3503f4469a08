"""Figs. 5 and 8: a draft that is trained while the agent runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from leapmodel.paper.comparison import Comparison
from leapmodel.paper.figures.style import BENCHMARKS, PAGE, grid, handle, new_figure, styled
from leapmodel.paper.tables import load

_TASKS_PER_VERSION = {"OpenAGI": 25, "tau2-bench": 10}
_OFFLINE = {"OpenAGI": 75.0, "tau2-bench": 63.7}  # Table 21's caption
_LINES = {"retrain": ("-", "full"), "continual": ((0, (5, 1.5, 1, 1.5)), "none")}
_NO_BATCHES = "Speedups and acceptances of single batches are not printed, so {} is left out."


def agreement() -> Comparison:
    """Return the agreement of every version, with the untrained draft as version 0.

    Examples
    --------
    >>> frame = agreement().frame
    >>> frame.query("benchmark == 'OpenAGI' and variant == 'retrain'")["tasks"].tolist()[:3]
    [0, 25, 50]
    """
    versions = load("table21").frame
    base = load("table02").frame.query("draft == '0.6B base'").set_index("benchmark")
    before = versions[versions["version"] == 1].assign(version=0)
    before["agreement_pct"] = before["benchmark"].map(base["agreement_pct"])
    frame = pd.concat([before, versions]).sort_values(
        ["benchmark", "variant", "version"], kind="stable", ignore_index=True
    )
    frame.insert(3, "tasks", frame["version"] * frame["benchmark"].map(_TASKS_PER_VERSION))
    frame["offline_pct"] = frame["benchmark"].map(_OFFLINE)
    return Comparison(
        "Agreement of drafts trained while the agent runs",
        frame,
        dict.fromkeys(["version", "tasks", "agreement_pct", "offline_pct"], "published"),
        ("Version 0 is the untrained draft (Table 2).",),
    )


def figure5_data() -> dict[str, Comparison]:
    """Return Fig. 5(a)'s points; (b) can't be drawn."""
    table = agreement()
    notes = (*table.notes, _NO_BATCHES.format("Fig. 5(b)"))
    return {"a": Comparison(f"Fig. 5(a): {table.title}", table.frame, table.origins, notes)}


def figure8_data() -> dict[str, Comparison]:
    """Return Fig. 8(a)'s points, and of (c) the final adapters."""
    table = agreement()
    final = load("table20")
    numbers = ["speedup", "ci95_low", "ci95_high"]
    return {
        "a": Comparison(
            f"Fig. 8(a): {table.title}",
            table.frame,
            table.origins,
            (*table.notes, _NO_BATCHES.format("Fig. 8(b)")),
        ),
        "c": Comparison(
            "Fig. 8(c): final adapters on the test tasks",
            final.frame[["benchmark", "variant", *numbers]],
            dict.fromkeys(numbers, "published"),
            (_NO_BATCHES.format("the rest of Fig. 8(c)"),),
        ),
    }


@styled
def draw_figure5() -> Figure:
    """Draw agreement against tasks seen, one panel a benchmark."""
    frame = agreement().frame
    figure = new_figure(PAGE, 2.3)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, name in zip(axes, _TASKS_PER_VERSION, strict=True):
        _curves(ax, frame, name, "tasks")
        ax.axhline(_OFFLINE[name], color="0.4", linestyle=(0, (3, 2)), linewidth=0.9)
        ax.set(title=BENCHMARKS[name].name, xlabel="tasks trained on")
    axes[0].set(ylabel="offline agreement (%)", ylim=(0, 85))
    figure.legend(
        handles=[*_variant_handles(), _offline_handle()],
        loc="outside lower center",
        ncols=3,
        title="Fig. 5(a): all numbers [published]",
        title_fontsize=7,
    )
    return figure


@styled
def draw_figure8() -> Figure:
    """Draw agreement by version, and the final adapters' speedups with their intervals."""
    panels = figure8_data()
    figure = new_figure(PAGE, 2.5)
    left, right = figure.subplots(1, 2, width_ratios=[1.3, 1])
    for name in _TASKS_PER_VERSION:
        _curves(left, panels["a"].frame, name, "version")
        left.axhline(
            _OFFLINE[name], color=BENCHMARKS[name].colour, linestyle=(0, (3, 2)), linewidth=0.9
        )
    left.set(
        title="(a) agreement of each version [published]",
        xlabel="version of the draft",
        ylabel="offline agreement (%)",
        ylim=(0, 85),
    )
    left.legend(
        handles=[
            handle(
                f"{BENCHMARKS[name].name}, a version per {tasks} tasks",
                color=BENCHMARKS[name].colour,
                marker=BENCHMARKS[name].marker,
            )
            for name, tasks in _TASKS_PER_VERSION.items()
        ],
        loc="lower right",
        handletextpad=0.2,
    )
    _final(right, panels["c"].frame)
    figure.legend(
        handles=[*_variant_handles(), _offline_handle()], loc="outside lower center", ncols=3
    )
    return figure


def _curves(ax: Axes, frame: pd.DataFrame, name: str, x: str) -> None:
    look = BENCHMARKS[name]
    for variant, (line, fill) in _LINES.items():
        rows = frame[(frame["benchmark"] == name) & (frame["variant"] == variant)]
        ax.plot(
            rows[x],
            rows["agreement_pct"],
            color=look.colour,
            marker=look.marker,
            linestyle=line,
            fillstyle=fill,
        )
    grid(ax)


def _final(ax: Axes, frame: pd.DataFrame) -> None:
    variants = ["offline", *_LINES]
    for shift, name in zip((-0.1, 0.1), _TASKS_PER_VERSION, strict=True):
        look = BENCHMARKS[name]
        rows = frame[frame["benchmark"] == name].set_index("variant").loc[variants]
        for place, (variant, row) in enumerate(rows.iterrows()):
            speedup = row["speedup"]
            ax.errorbar(
                place + shift,
                speedup,
                yerr=np.array([[speedup - row["ci95_low"]], [row["ci95_high"] - speedup]]),
                color=look.colour,
                marker=look.marker,
                fillstyle=_LINES.get(str(variant), ("", "full"))[1],
                elinewidth=0.8,
            )
    ax.axhline(1, color="0.5", linewidth=0.8)
    ax.set(
        title="(c) final drafts, 95% [published]",
        ylabel="speedup on the test tasks",
        xlim=(-0.5, 2.5),
        ylim=(0.95, 1.9),
    )
    ax.set_xticks(range(3), ["offline", "online:\nretrain", "online:\ncontinual"])
    grid(ax)


def _variant_handles() -> list[Line2D]:
    names = {"retrain": "retrained on all commits", "continual": "continued on new commits"}
    return [
        handle(names[variant], color="0.25", marker="o", linestyle=line, fillstyle=fill)
        for variant, (line, fill) in _LINES.items()
    ]


def _offline_handle() -> Line2D:
    return handle("offline draft", color="0.4", linestyle=(0, (3, 2)))
