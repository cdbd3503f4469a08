"""What a person sees in the terminal: tables and a verdict; plain text when piped."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from leapmodel.verdict import Verdict

PIPED_WIDTH = 132
"""Wide enough for every table; a pipe has no width of its own."""
_COLOUR = {"deploy": "green", "pilot first": "yellow", "don't": "red", "cannot tell": "magenta"}


class _Screen(Console):
    """A console for which a reader that stops early, as ``head`` does, is no error."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0)


def console() -> Console:
    """Return a console for standard output."""
    wanted = os.environ.get("COLUMNS", "")
    piped = int(wanted) if wanted.isdecimal() and int(wanted) >= 40 else PIPED_WIDTH
    width = None if sys.stdout.isatty() else piped
    return _Screen(width=width, highlight=False, markup=False, emoji=False)


def new_table(title: str, *columns: str, caption: str | None = None) -> Table:
    """Return an empty table whose first column is text and the others figures."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=caption,
        caption_justify="left",
        caption_style="dim",
    )
    for number, name in enumerate(columns):
        first = number == 0
        table.add_column(name, justify="left" if first else "right", no_wrap=first)
    return table


@dataclass(frozen=True)
class Row:
    """One row of figures; ``best`` makes it stand out, ``new_group`` draws a line above it."""

    cells: Sequence[str]
    best: bool = False
    new_group: bool = False


def show_table(
    out: Console,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Row],
    *,
    keys: int,
    split_after: Sequence[int],
    caption: str,
) -> None:
    """Print a table; where the screen is too narrow for it, print it in parts.

    Parameters
    ----------
    columns : sequence of str
        Headings; the first ``keys`` of them are repeated in each part.
    split_after : sequence of int
        The numbers of the columns after which it may be cut.
    """
    unbounded = out.options.update(max_width=10_000)

    def fits(part: Sequence[int]) -> bool:
        built = _built(title, columns, rows, part)
        return Measurement.get(out, unbounded, built).maximum <= out.width

    cuts = [keys, *(cut for cut in split_after if cut > keys), len(columns)]
    pieces = [list(range(first, last)) for first, last in pairwise(cuts) if last > first]
    parts = [[*range(keys), *pieces[0]]]
    for piece in pieces[1:]:
        if fits([*parts[-1], *piece]):
            parts[-1] += piece
        else:
            parts.append([*range(keys), *piece])
    for number, part in enumerate(parts):
        table = _built(title if number == 0 else "", columns, rows, part)
        out.print(table)
    out.print(Text(caption, style="dim"))
    out.print()


def _built(title: str, columns: Sequence[str], rows: Sequence[Row], part: Sequence[int]) -> Table:
    table = new_table(title, *(columns[i] for i in part))
    for column in table.columns:
        column.no_wrap = True
    for row in rows:
        if row.new_group:
            table.add_section()
        table.add_row(*(clean(row.cells[i]) for i in part), style="bold" if row.best else None)
    return table


def figure(value: float | None, digits: int = 2) -> str:
    """Return a number for a table cell, or a dash if there is none."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    """Return a share as percent, with a sign."""
    return "-" if value is None or not math.isfinite(value) else f"{100 * value:+.0f}%"


def interval(low: float | None, high: float | None) -> str:
    """Return an interval for a table cell."""
    if low is None or high is None or not math.isfinite(low):
        return "-"
    return f"{low:.2f} to {high:.2f}"


def seconds(value: float) -> str:
    """Return a duration with three significant digits."""
    return f"{value:.3g} s" if abs(value) < 1000 else f"{value:,.0f} s"


def show_verdict(out: Console, verdict: Verdict, advice: tuple[str, ...] = ()) -> None:
    """Print the verdict in a box, with the sentences that go with it."""
    colour = _COLOUR[verdict.decision]
    text = Text(clean(verdict.sentence, 4000))
    for sentence in advice:
        text.append("\n" + clean(sentence, 4000), style="dim")
    out.print(Panel(text, title=f"verdict: {verdict.title}", border_style=colour, expand=True))


def show_notes(out: Console, heading: str, sentences: tuple[str, ...]) -> None:
    """Print sentences as a list under a heading, if there are any."""
    if sentences:
        out.print(Text(heading, style="bold"))
        for sentence in sentences:
            out.print(f"  - {clean(sentence, 1000)}", soft_wrap=True)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object; what is not a number, such as a file's NaN, becomes null."""
    click.echo(json.dumps(_finite(value), indent=2, allow_nan=False, default=str))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def clean(text: str, longest: int = 48) -> str:
    r"""Return a name from a log for a table: no control characters, and not too long.

    Examples
    --------
    >>> clean("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"
