"""Comparisons as files: the origin of every number stands in its column's head.

Published numbers keep the decimals they were printed with; others get four, which is more than they
are worth and few enough to be the same on every machine.
"""

from __future__ import annotations

import csv
import io

from leapmodel.paper.cells import cells
from leapmodel.paper.comparison import Comparison

_DASH = "–"


def csv_text(table: Comparison) -> str:
    """Return a table as CSV; a column of numbers is headed ``name [origin]``.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"benchmark": ["OpenAGI"], "S": [1.5], "S_eq4": [1.0 / 3]})
    >>> table = Comparison("t", frame, {"S": "published", "S_eq4": "recomputed"})
    >>> print(csv_text(table), end="")
    benchmark,S [published],S_eq4 [recomputed]
    OpenAGI,1.5,0.3333
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_heads(table))
    writer.writerows(_rows(table, empty=""))
    return out.getvalue()


def markdown_text(table: Comparison) -> str:
    """Return a table as Markdown, with its title, the origin of each number, and its notes.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"benchmark": ["OpenAGI"], "S": [1.5]})
    >>> print(markdown_text(Comparison("Speedups", frame, {"S": "published"}, ("One run.",))))
    **Speedups**
    <BLANKLINE>
    | benchmark | S [published] |
    |---|---|
    | OpenAGI | 1.5 |
    <BLANKLINE>
    - One run.
    <BLANKLINE>
    """
    heads = _heads(table)
    lines = [f"**{table.title}**", "", _line(heads), "|" + "---|" * len(heads)]
    lines += [_line([cell.replace("|", r"\|") for cell in row]) for row in _rows(table, _DASH)]
    if table.notes:
        lines += ["", *(f"- {note}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def _line(row: list[str]) -> str:
    return f"| {' | '.join(row)} |"


def _heads(table: Comparison) -> list[str]:
    return [
        f"{name} [{table.origins[name]}]" if name in table.origins else str(name)
        for name in table.frame
    ]


def _rows(table: Comparison, empty: str) -> list[list[str]]:
    columns = [
        cells(
            table.frame[name],
            is_published=table.origins.get(str(name)) == "published",
            decimals=4,
            empty=empty,
        )
        for name in table.frame
    ]
    return [list(row) for row in zip(*columns, strict=True)]
