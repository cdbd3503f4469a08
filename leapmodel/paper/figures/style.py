"""How every figure looks: readable at column width, in colour and in grey.

Benchmarks have a colour (Okabe and Ito's, safe for colour-blind readers) *and* a marker; what else
has to be told apart (draft, target, origin) is told by how a marker is filled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from leapmodel.atomic import atomic_path
from leapmodel.plots import COLOURS

P = ParamSpec("P")
T = TypeVar("T")

COLUMN, PAGE = 3.35, 6.9
"""Width of a column and of a page, inches."""

_LOOK: Any = {  # matplotlib types each key by itself
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.5,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "errorbar.capsize": 2,
    "pdf.fonttype": 42,  # whole TrueType fonts inside: text can be searched, and edited
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture everywhere
}


class Look(NamedTuple):
    """How a benchmark is drawn.

    Attributes
    ----------
    name : str
        As a reader knows it.
    colour, marker, line : str
        Its colour, its marker, its line.
    """

    name: str
    colour: str
    marker: str
    line: str | tuple[int, tuple[float, ...]]


BENCHMARKS = {
    "OpenAGI": Look("OpenAGI", COLOURS[0], "o", "-"),
    "TaskBench": Look("TaskBench", COLOURS[1], "s", (0, (5, 1.5))),
    "tau2-bench": Look("τ²-bench", COLOURS[2], "^", (0, (5, 1.5, 1, 1.5))),
    "BFCL": Look("BFCL", COLOURS[3], "D", (0, (1.5, 1.5))),
}


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Make a function draw in the figures' own style, whatever the caller's is."""

    @functools.wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with mpl.rc_context():
            mpl.rcdefaults()
            with mpl.rc_context(_LOOK):
                return draw(*args, **kwargs)

    return wrapped


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of its own, without any window or global state."""
    return Figure(figsize=(width, height), layout="constrained")


def handle(label: str, **look: Any) -> Line2D:
    """Return an entry of a legend: a marker, or a line where ``linestyle`` is given."""
    return Line2D([], [], label=label, **({"linestyle": "none"} | look))


def benchmark_handles(names: list[str]) -> list[Line2D]:
    """Return an entry of a legend for each benchmark."""
    return [
        handle(look.name, color=look.colour, marker=look.marker)
        for look in (BENCHMARKS[name] for name in names)
    ]


def grid(ax: Axes) -> None:
    """Draw thin lines behind the data."""
    ax.grid(color="0.9", linewidth=0.5)
    ax.set_axisbelow(True)


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PDF and as PNG: the same bytes each time, with no date inside.

    Returns
    -------
    list of Path
        The files written.
    """
    metadata: dict[str, dict[str, str | None]] = {
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
        "png": {"Software": None},
    }
    paths = []
    with mpl.rc_context({"pdf.fonttype": 42}):
        for kind, about in metadata.items():
            path = folder / f"{name}.{kind}"
            with atomic_path(path) as temporary:
                figure.savefig(temporary, dpi=200, metadata=about, format=kind)
            paths.append(path)
    return paths
