"""A table that puts numbers of different origin side by side, and says which is which."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from leapmodel.paper.cells import cells

Origin = Literal["published", "recomputed", "reconstructed", "illustrative"]
"""Where a number comes from; an illustrative one shows a mechanism and claims nothing."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Published numbers beside what follows from them.

    Attributes
    ----------
    title : str
        What is compared.
    frame : pandas.DataFrame
        One row a configuration; the columns that name it come first.
    origins : dict of str to Origin
        The origin of every column of numbers: published, recomputed or reconstructed. Columns
        that only name the row have none.
    notes : tuple of str
        What a reader should know.

    Raises
    ------
    ValueError
        If an origin is given for a column that does not exist, or a number has none.

    Examples
    --------
    >>> frame = pd.DataFrame({"benchmark": ["OpenAGI"], "S": [1.47], "S_eq4": [1.475]})
    >>> table = Comparison("Eq. 4", frame, {"S": "published", "S_eq4": "recomputed"})
    >>> table
    <Comparison: Eq. 4 (1 row)>
    >>> print(table)
    Eq. 4
    origins: S published; S_eq4 recomputed
    benchmark    S  S_eq4
      OpenAGI 1.47  1.475
    """

    title: str
    frame: pd.DataFrame
    origins: dict[str, Origin]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        missing = [name for name in self.origins if name not in self.frame]
        numbers = self.frame.select_dtypes("number").columns
        # k names the configuration, as benchmark and draft do
        unsaid = [name for name in numbers if name not in self.origins and name != "k"]
        if missing or unsaid:
            raise ValueError(f"origins without a column: {missing}; without an origin: {unsaid}")

    def __repr__(self) -> str:
        rows = len(self.frame)
        return f"<Comparison: {self.title} ({rows} row{'s' * (rows != 1)})>"

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Return the table as text, with the origin of each column."""
        return "\n".join(
            [
                self.title,
                "origins: " + "; ".join(f"{name} {kind}" for name, kind in self.origins.items()),
                self.frame.to_string(index=False, na_rep="–", float_format=lambda x: f"{x:.4g}"),
                *(f"note: {note}" for note in self.notes),
            ]
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the table, with the origins in ``attrs["origins"]``."""
        frame = self.frame.copy()
        frame.attrs["origins"] = dict(self.origins)
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain values; an empty cell is None."""
        cells = self.frame.astype(object).where(self.frame.notna(), None)
        return {
            "title": self.title,
            "origins": dict(self.origins),
            "notes": list(self.notes),
            "rows": cells.to_dict(orient="records"),
        }

    def _repr_html_(self) -> str:
        columns = {
            name: cells(
                self.frame[name],
                is_published=self.origins.get(str(name)) == "published",
                decimals=3,
                empty="–",
            )
            for name in self.frame
        }
        shown = pd.DataFrame(columns)
        shown.columns = pd.MultiIndex.from_tuples(
            [(self.origins.get(name, ""), name) for name in shown.columns]
        )
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return (
            f"<p><b>{html.escape(self.title)}</b></p>"
            # the origin stands above every number: said once for several columns, it would be seen
            # above the last of them only, if that is not out of sight
            + shown.to_html(index=False, border=0, sparsify=False)
            + (f"<ul>{notes}</ul>" if notes else "")
        )


def hundredths(values: ArrayLike) -> np.ndarray:
    """Return numbers printed with two decimals as whole hundredths.

    1.32 - 1.27 is more than 0.05 in binary floating point; 132 - 127 is 5.

    Raises
    ------
    ValueError
        If a value has more than two decimals.

    Examples
    --------
    >>> (hundredths([1.32, 1.2]) - hundredths([1.27, 1.17])).tolist()
    [5, 3]
    """
    scaled = np.asarray(values, dtype=np.float64) * 100
    whole = np.rint(scaled)
    if not (np.abs(scaled - whole) < 1e-6).all():
        raise ValueError("expected numbers printed with two decimals")
    return whole.astype(np.int64)


def count_within(
    predicted: ArrayLike, measured: ArrayLike, limits: Iterable[int] = (5, 10)
) -> dict[int, int]:
    """Return how many printed pairs differ by at most so many hundredths.

    Examples
    --------
    >>> count_within([1.32, 1.46], [1.27, 1.37])
    {5: 1, 10: 2}
    """
    apart = np.abs(hundredths(predicted) - hundredths(measured))
    return {limit: int(np.count_nonzero(apart <= limit)) for limit in limits}
