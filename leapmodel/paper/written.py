"""Comparisons as files: the origin of every number stands in its column's head.

Published numbers keep the decimals they were printed with; others get four, which is more than they
are worth and few enough to be the same on every machine.
"""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd

from leapmodel.paper.comparison import Comparison

_DASH = "–"


def csv_text(table: Comparison) -> str:
    """Return a table as CSV; a column of numbers is headed ``name [origin]``.

    Examples
    --------
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


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _heads(table: Comparison) -> list[str]:
    return [
        f"{name} [{table.origins[name]}]" if name in table.origins else str(name)
        for name in table.frame
    ]


def _rows(table: Comparison, empty: str) -> list[list[str]]:
    columns = [
        _cells(table.frame[name], table.origins.get(str(name)) == "published", empty)
        for name in table.frame
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _cells(column: pd.Series, is_published: bool, empty: str) -> list[str]:
    if not pd.api.types.is_numeric_dtype(column):
        return [empty if pd.isna(value) else str(value) for value in column]
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    decimals = _decimals(values) if is_published or (values == values.round()).all() else 4
    # adding nought turns -0.0000 into 0.0000
    return [
        empty if np.isnan(value) else f"{round(value, decimals) + 0.0:.{decimals}f}"
        for value in values.tolist()
    ]


def _decimals(values: np.ndarray) -> int:
    """Return how many decimals the longest of some printed numbers has."""
    printed = [f"{value:.6f}".rstrip("0").split(".")[1] for value in values[~np.isnan(values)]]
    return max(map(len, printed), default=0)
