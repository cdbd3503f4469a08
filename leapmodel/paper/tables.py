"""The paper's tables as data: each with where it stands, what it says, and what its columns mean.

The CSV files in ``data/`` are facts of the paper; ``data/tables.toml`` describes them.
"""

from __future__ import annotations

import difflib
import html
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import pandas as pd

from leapmodel.errors import DataError, UsageError

PAPER = (
    "LEAP: Learning Efficient Action Proposals For LLM Agents "
    "(Xu, Zhang, Wan, Zhu, Zhang), 2026, arXiv preprint"
)
_DESCRIPTIONS = "tables.toml"


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """One table of the paper.

    Attributes
    ----------
    name : str
        The name it is loaded by, such as ``"table10_predicted_vs_measured"``.
    frame : pandas.DataFrame
        The entries; where the paper has a dash the cell is empty (NaN).
    number : str
        Where it stands in the paper, such as ``"Table 10"`` or ``"App. H"``.
    caption : str
        What it shows, in this project's words.
    source : str
        The paper and the table's number.
    columns : dict of str to str
        Meaning and unit of each column.
    notes : tuple of str
        What recomputing the table found.
    origin : {"published"}
        The origin of every number in ``frame``.
    """

    name: str
    frame: pd.DataFrame
    number: str
    caption: str
    source: str
    columns: dict[str, str]
    notes: tuple[str, ...]
    origin: str = "published"

    def summary(self) -> str:
        """Return provenance, shape, columns and notes as text."""
        rows, columns = self.frame.shape
        width = max(map(len, self.columns))
        return "\n".join(
            [
                f"{self.number}: {self.caption}",
                f"{self.source} ({self.origin}; {rows} rows, {columns} columns)",
                *(f"  {name:<{width}}  {meaning}" for name, meaning in self.columns.items()),
                *(f"note: {note}" for note in self.notes),
            ]
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the entries."""
        return self.frame.copy()

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain values; an empty cell is None."""
        cells = self.frame.astype(object).where(self.frame.notna(), None)
        return {
            "name": self.name,
            "number": self.number,
            "caption": self.caption,
            "source": self.source,
            "origin": self.origin,
            "columns": dict(self.columns),
            "notes": list(self.notes),
            "rows": cells.to_dict(orient="records"),
        }

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return (
            f"<p><b>{html.escape(self.number)}</b> ({self.origin}): {html.escape(self.caption)}"
            f"<br><small>{html.escape(self.source)}</small></p>"
            + self.frame.to_html(index=False, na_rep="–", border=0)
            + (f"<ul>{notes}</ul>" if notes else "")
        )


def available() -> list[str]:
    """Return the names of the paper's tables, in the order of the paper.

    Examples
    --------
    >>> len(available()), available()[:2]
    (22, ['table02_agreement_se', 'table03_objective'])
    """
    stems = [f.name.removesuffix(".csv") for f in _folder().iterdir() if f.name.endswith(".csv")]
    return sorted(stems, key=lambda stem: (not stem.startswith("table"), stem))


def load(name: str) -> PublishedTable:
    """Load one of the paper's tables with its provenance.

    Parameters
    ----------
    name : str
        ``"table10"``, or the full name that :func:`available` lists.

    Returns
    -------
    PublishedTable

    Raises
    ------
    UsageError
        If there is no such table; names the nearest.

    Examples
    --------
    >>> table = load("table10")
    >>> table.number, table.frame.shape, table.origin
    ('Table 10', (17, 13), 'published')
    >>> table.columns["draft_term_D"]
    'D: proposing time per round over t_gen, measured'
    """
    stem = _stem_of(name)
    about = _descriptions().get(stem)
    if about is None:
        raise DataError(f"{stem}.csv", expected=f"a description in {_DESCRIPTIONS}", found="none")
    with (_folder() / f"{stem}.csv").open("r", encoding="utf-8") as stream:
        frame = pd.read_csv(stream)
    if list(about["columns"]) != list(frame.columns):
        raise DataError(
            f"{stem}.csv",
            expected=f"the columns described in {_DESCRIPTIONS}",
            found=", ".join(frame.columns),
        )
    return PublishedTable(
        name=stem,
        frame=frame,
        number=about["number"],
        caption=about["caption"],
        source=f"{PAPER}, {about['number']}",
        columns=about["columns"],
        notes=tuple(about["notes"]),
    )


def _stem_of(name: str) -> str:
    stems = available()
    wanted = "".join(name.lower().split())
    if wanted in stems:
        return wanted
    if by_number := re.fullmatch(r"table0*(\d+)", wanted):
        prefix = f"table{int(by_number[1]):02d}_"
        if found := [stem for stem in stems if stem.startswith(prefix)]:
            return found[0]
    by_short_name = {stem.split("_")[0]: stem for stem in stems if stem.startswith("table")}
    near = difflib.get_close_matches(wanted, [*stems, *by_short_name], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(stems)}"
    raise UsageError(f"no published table {name!r}; {hint}")


def _folder() -> Traversable:
    return files("leapmodel.paper") / "data"


@cache
def _descriptions() -> dict[str, Any]:
    return tomllib.loads((_folder() / _DESCRIPTIONS).read_text(encoding="utf-8"))
