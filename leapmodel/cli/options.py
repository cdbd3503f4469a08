"""Options that several commands share, and what their values mean."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from leapmodel.errors import UsageError, one_line
from leapmodel.predictions import Predictions
from leapmodel.rounds import Rounds
from leapmodel.trace import Trace, read_trace

F = TypeVar("F", bound=Callable[..., Any])

DEEPEST = 64
"""Larger depths than this are a slip of the hand."""


def trace_argument(function: F) -> F:
    """Add the trace, how strictly to read it, and what its tools can't do."""
    for decorator in (
        click.option(
            "--boundary-tools",
            metavar="PATTERNS",
            help="Tools that can't run in a copy of the environment, such as 'send_*,book_*': each"
            " ends its segment, nothing is proposed past it.",
        ),
        click.option(
            "--winsorize",
            type=float,
            metavar="PERCENTILE",
            help="Cut step times beyond it, such as 99.5, down to it (an outlier's weight is shown"
            " by describe).",
        ),
        click.option(
            "--lenient", is_flag=True, help="Leave out tasks with bad rows and report each."
        ),
        click.argument("trace", metavar="TRACE", type=click.Path()),
    ):
        function = decorator(function)
    return function


def question_options(function: F) -> F:
    """Add the depths, the terminal rule and the bootstrap."""
    for decorator in (
        click.option(
            "--seed",
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="Seed of the bootstrap.",
        ),
        click.option(
            "--resamples",
            default=10_000,
            show_default=True,
            type=click.IntRange(100, 1_000_000),
            help="Bootstrap resamples of whole tasks.",
        ),
        click.option(
            "--terminal",
            type=click.Choice(["accepted", "probe"]),
            default="accepted",
            show_default=True,
            help="A segment's last step can be proposed and accepted, or is confirmed by a width-1"
            " probe. The speedup hardly depends on it; hit rates and e do.",
        ),
        click.option(
            "--k",
            "depths",
            default="1:6",
            show_default=True,
            metavar="K",
            help="Depths: 3, 1:6, 1,3.",
        ),
    ):
        function = decorator(function)
    return function


def depth_option(explained: str) -> Callable[[F], F]:
    """Return the option ``--k`` of the commands that run at one depth."""
    return click.option(
        "--k",
        "depth",
        type=click.IntRange(min=1, max=DEEPEST),
        default=3,
        show_default=True,
        help=explained,
    )


def folder_option(explained: str) -> Callable[[F], F]:
    """Return the option ``-o`` of the commands that write a folder."""
    return click.option(
        "-o", "--output", required=True, metavar="FOLDER", callback=_named, help=explained
    )


def _named(context: click.Context, option: click.Parameter, given: str) -> str:
    """Refuse an empty name, as an unset variable leaves: it would be the current folder."""
    if not given.strip():
        raise UsageError(f"--output: expected the name of a folder, found {given!r}")
    return given


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
plot_option = click.option(
    "--plot", type=click.Path(dir_okay=False), help="Save a picture there (.png, .pdf, .svg)."
)


def open_trace(
    path: str, lenient: bool, boundary_tools: str | None, winsorize: float | None = None
) -> Trace:
    """Read the trace an option names, say what was dropped, and cut it as it was asked for."""
    trace = read_trace(path, lenient=lenient)
    report_dropped(trace)
    if winsorize is not None:
        trace = trace.winsorized(winsorize)
    if boundary_tools is not None:
        patterns = [part.strip() for part in boundary_tools.split(",") if part.strip()]
        if not patterns:
            raise UsageError("--boundary-tools: expected patterns such as 'send_*,book_*'")
        trace = trace.with_boundary_tools(patterns)
    return trace


def note(sentence: str) -> None:
    """Say something beside the answer."""
    click.echo(f"leapmodel: note: {sentence}", err=True)


def report_dropped(trace: Trace | Predictions | Rounds) -> None:
    """List on standard error what lenient reading left out."""
    for dropped in trace.dropped:
        click.echo(one_line(f"leapmodel: dropped task {dropped.task}: {dropped.reason}"), err=True)
    if trace.dropped:
        n = len(trace.dropped)
        kept = trace.frame["task"].nunique()
        click.echo(f"leapmodel: dropped {n} task{'s' * (n > 1)}, kept {kept}", err=True)


def parse_depths(text: str) -> np.ndarray:
    """Return the depths that ``3``, ``1:6`` (inclusive) or ``1,3,5`` stand for.

    Raises
    ------
    UsageError
        If the text is none of these.

    Examples
    --------
    >>> parse_depths("1:3").tolist(), parse_depths("5,1").tolist()
    ([1, 2, 3], [1, 5])
    """
    try:
        if ":" in text:
            first, last = (int(part) for part in text.split(":"))
            depths = list(range(first, min(last, DEEPEST + 1) + 1))
        else:
            depths = sorted({int(part) for part in text.split(",")})
    except ValueError:
        depths = []
    if not depths or depths[0] < 1 or depths[-1] > DEEPEST:
        raise UsageError(
            f"--k: expected depths from 1 to {DEEPEST}, as 3, 1:6 or 1,3,5, found {text!r}"
        )
    return np.array(depths)


def parse_numbers(text: str, option: str) -> list[float]:
    """Return the numbers of a comma-separated list.

    Examples
    --------
    >>> parse_numbers("0.8,0.7", "--acceptance")
    [0.8, 0.7]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(
            f"{option}: expected numbers such as 0.8 or 0.8,0.7, found {text!r}"
        ) from None


def refuse_own_input(output: str | None, inputs: Iterable[str | None]) -> None:
    """Refuse an output that is one of the inputs (None: not given), which would be lost.

    Raises
    ------
    UsageError
        If it is.
    """
    if output is None:
        return
    files = [
        file
        for name in inputs
        if name is not None
        for file in ([name] if not os.path.isdir(name) else [e.path for e in os.scandir(name)])
    ]
    for name in files:
        if os.path.realpath(name) == os.path.realpath(output):
            raise UsageError(f"{output}: is what is read, and would be lost; name another output")


def check_plot_path(path: str | None) -> None:
    """Refuse a picture's name that no format fits, before any work is done for it."""
    if path is not None and Path(path).suffix.lower() not in {".png", ".pdf", ".svg"}:
        raise UsageError(f"--plot: expected a name ending in .png, .pdf or .svg, found {path!r}")


def names_of_files(paths: Sequence[str]) -> list[str]:
    """Return a short name for each file, all different: without folder and ending if that will do.

    Examples
    --------
    >>> names_of_files(["runs/k1.jsonl", "runs/k3.jsonl"])
    ['k1', 'k3']
    >>> names_of_files(["runs/tiny/k3.jsonl", "runs/large/k3.jsonl"])
    ['tiny/k3', 'large/k3']
    """
    common = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths] or ["/"])
    below = [os.path.relpath(path, common) for path in paths]
    for names in (
        [Path(path).stem for path in paths],
        [str(Path(path).with_suffix("")) for path in below],
        below,
    ):
        if len(set(names)) == len(names):
            return names
    return list(paths)  # one of them is given twice
