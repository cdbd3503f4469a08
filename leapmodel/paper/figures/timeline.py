"""Fig. 6: one round as a timeline, both proposals accepted and the first one rejected."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from leapmodel.paper.comparison import Comparison
from leapmodel.paper.figures.style import PAGE, new_figure, styled
from leapmodel.paper.round_timeline import as_frame, sequential_steps, speculative_round
from leapmodel.plots import COLOURS

_GEN_S, _DRAFT_S, _TOOL_S = (1.0, 1.35, 0.8), 0.14, 0.12
_CONTEXTS = ("s", "s, â1", "s, â1, â2")
_LANES = ("sequential", "speculative", "verify 1", "verify 2", "verify 3")
_CASES = {
    "a": (2, "(a) both proposals accepted: three committed steps for one wait"),
    "b": (0, "(b) first proposal rejected: one committed step, and the proposing was for nothing"),
}
_LOOKS: dict[str, dict[str, Any]] = {
    "target": {"facecolor": COLOURS[5], "label": "target generation"},
    "draft": {"facecolor": COLOURS[1], "label": "draft proposal"},
    "tool": {"facecolor": COLOURS[4], "hatch": "//////", "label": "tool"},
    "unused": {"facecolor": "white", "hatch": "xxxx", "label": "unused verification"},
}


def data() -> dict[str, Comparison]:
    """Simulate both rounds with k = 2, and the same steps in sequence.

    Examples
    --------
    >>> frame = data()["a"].frame
    >>> frame.groupby("lane")["end"].max().round(2)[["sequential", "speculative"]].tolist()
    [3.51, 1.99]
    """
    return {
        case: Comparison(
            f"Fig. 6({case}): {title[4:]}",
            pd.concat(
                [
                    as_frame(sequential_steps(_GEN_S[: accepted + 1], _TOOL_S)),
                    as_frame(
                        speculative_round(
                            _GEN_S, accepted=accepted, draft_s=_DRAFT_S, tool_s=_TOOL_S
                        )
                    ),
                ],
                ignore_index=True,
            ),
            {"start": "illustrative", "end": "illustrative"},
            ("A simulated round; its durations were chosen to be seen, in target steps.",),
        )
        for case, (accepted, title) in _CASES.items()
    }


@styled
def draw() -> Figure:
    """Draw both rounds on one scale of time."""
    figure = new_figure(PAGE, 3.7)
    axes = figure.subplots(2, 1, sharex=True)
    for ax, (case, panel) in zip(axes, data().items(), strict=True):
        _round(ax, panel.frame)
        ax.set_title(_CASES[case][1])
    axes[1].set(xlabel="time (mean target steps) [illustrative]", xlim=(0, 3.62))
    handles: list[Artist] = [
        Patch(edgecolor="0.2", linewidth=0.6, **look) for look in _LOOKS.values()
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=4,
    )
    return figure


def _round(ax: Axes, frame: pd.DataFrame) -> None:
    for span in frame.to_dict("records"):
        lane, length = _LANES.index(span["lane"]), span["end"] - span["start"]
        look = {name: value for name, value in _LOOKS[span["what"]].items() if name != "label"}
        ax.barh(
            lane, length, left=span["start"], height=0.62, edgecolor="0.2", linewidth=0.6, **look
        )
        if span["what"] == "target":
            ax.text(span["start"] + length / 2, lane, span["label"], ha="center", va="center")
    _saved(ax, frame)
    ax.set(yticks=range(len(_LANES)), ylim=(len(_LANES) - 0.4, -0.75))
    ax.set_yticklabels(["in sequence", "propose, commit", *("verify " + x for x in _CONTEXTS)])
    ax.tick_params(axis="y", length=0)


def _saved(ax: Axes, frame: pd.DataFrame) -> None:
    """Mark how much sooner, or later, the round ends than the steps in sequence."""
    in_sequence = frame.loc[frame["lane"] == "sequential", "end"].max()
    in_a_round = frame.loc[frame["lane"] != "sequential", "end"].max()
    is_sooner = in_a_round < in_sequence
    for end in (in_sequence, in_a_round):
        ax.axvline(end, color="0.4", linewidth=0.7, linestyle=(0, (3, 2)), zorder=0)
    lane = 3 if is_sooner else 0  # where nothing else is drawn between the two ends
    ax.annotate(
        "",
        (in_sequence, lane),
        xytext=(in_a_round, lane),
        arrowprops={"arrowstyle": "<->", "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0},
    )
    ax.text(
        (in_sequence + in_a_round) / 2,
        lane - 0.12,
        f"{abs(in_sequence - in_a_round):.2f} {'saved' if is_sooner else 'lost'}",
        ha="center",
        va="bottom",
    )
