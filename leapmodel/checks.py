"""Check a table's columns a column at a time, and name the first cell that is wrong.

In strict use the first wrong cell raises. In lenient use the task it belongs to is marked, and
:meth:`ColumnChecks.dropped` says which tasks must go and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leapmodel.errors import DataError, shown
from leapmodel.files import Table


@dataclass(frozen=True)
class Dropped:
    """A task that lenient reading left out, and the first reason for it."""

    task: str
    reason: str


class ColumnChecks:
    """The checks of one table.

    Parameters
    ----------
    table : Table
        The columns as read.
    lenient : bool
        Collect instead of raise.
    """

    def __init__(self, table: Table, *, lenient: bool = False) -> None:
        self.table = table
        self.lenient = lenient
        self._first_reason: dict[int, str] = {}
        self._n_rows = len(table.frame)

    def require(self, names: Sequence[str]) -> None:
        """Refuse the table if a column is missing altogether (lenient or not)."""
        missing = [name for name in names if name not in self.table.frame.columns]
        if missing:
            raise DataError(
                self.table.source,
                expected=f"the columns {', '.join(names)}",
                found=f"no column {', '.join(missing)}",
            )

    def texts(self, name: str, *, nullable: bool = False) -> pd.Series:
        """Return a text column; numbers standing for names are refused, not guessed."""
        column = self.table.frame[name]
        missing = self.table.is_null(name)
        if pd.api.types.is_string_dtype(column.dtype) and column.dtype != object:
            is_text = ~missing
        elif column.dtype == object:
            is_text = np.fromiter((isinstance(v, str) for v in column), bool, self._n_rows)
        else:
            is_text = np.zeros(self._n_rows, bool)
        wrong = ~(is_text | missing) if nullable else ~is_text
        self.refuse(wrong, name, "text" + (" or null" if nullable else ""))
        kept = column.astype(object).where(pd.Series(is_text, index=column.index), None)
        return kept if self.lenient or nullable else column

    def numbers(
        self,
        name: str,
        *,
        above: float | None = None,
        at_least: float | None = None,
        default: float | None = None,
        nullable: bool = False,
    ) -> np.ndarray:
        """Return a column of finite numbers as float64 of shape (rows,); nulls become NaN.

        A column that is absent, or a null where ``default`` is given, takes the default.
        """
        expected = "a number"
        if above is not None:
            expected += f" > {above:g}"
        if at_least is not None:
            expected += f" >= {at_least:g}"
        if name not in self.table.frame.columns:
            return np.full(self._n_rows, np.nan if default is None else default)
        missing = self.table.is_null(name)
        numeric, values = self._as_floats(self.table.frame[name])
        with np.errstate(invalid="ignore"):
            wrong = ~numeric | ~np.isfinite(values)
            if above is not None:
                wrong |= ~(values > above)
            if at_least is not None:
                wrong |= ~(values >= at_least)
        if nullable or default is not None:
            wrong &= ~missing
        self.refuse(wrong, name, expected)
        if default is not None:
            values = np.where(missing, default, values)
        return values

    def integers(
        self, name: str, *, at_least: int = 0, default: int | None = None, nullable: bool = False
    ) -> np.ndarray:
        """Return a column of whole numbers: int64, or float64 with NaN for nulls if nullable."""
        values = self.numbers(name, at_least=at_least, default=default, nullable=nullable)
        with np.errstate(invalid="ignore"):
            wrong = ~np.isnan(values) & (values != np.floor(values))
        self.refuse(wrong, name, f"a whole number >= {at_least}")
        if nullable:
            return values
        return np.where(np.isfinite(values), values, 0).astype(np.int64)

    def refuse(
        self,
        wrong: np.ndarray,
        column: str | None,
        expected: str,
        found: str | None = None,
    ) -> None:
        """Raise for the first wrong row, or mark every wrong row in lenient use."""
        rows = np.flatnonzero(wrong)
        if not len(rows):
            return
        for row in rows if self.lenient else rows[:1]:
            error = self.table.error(
                int(row), column, expected=expected, found=found or self._found(int(row), column)
            )
            if not self.lenient:
                raise error
            self._first_reason.setdefault(int(row), str(error))

    def dropped(self, task_of_row: Sequence[str | None]) -> list[Dropped]:
        """Return the marked tasks in file order, each once, with its first reason."""
        reasons: dict[str, str] = {}
        for row in sorted(self._first_reason):
            name = task_of_row[row]
            reasons.setdefault("(no task name)" if name is None else name, self._first_reason[row])
        return [Dropped(task, reason) for task, reason in reasons.items()]

    def is_wrong(self) -> np.ndarray:
        """Return a mask of the rows marked so far, shape (rows,)."""
        mask = np.zeros(self._n_rows, bool)
        mask[list(self._first_reason)] = True
        return mask

    def _found(self, row: int, column: str | None) -> str:
        if column is None or column not in self.table.frame.columns:
            return "nothing"
        value: Any = self.table.frame[column].iloc[row]
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or value is pd.NA:
            return "nothing"
        if isinstance(value, str):
            return f"the text {shown(value)}"
        return "NaN" if value != value else shown(value)

    def _as_floats(self, column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        """Return (is a number, value) per row; booleans and texts are not numbers."""
        if pd.api.types.is_bool_dtype(column.dtype):
            return np.zeros(self._n_rows, bool), np.full(self._n_rows, np.nan)
        if pd.api.types.is_numeric_dtype(column.dtype):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            return np.ones(self._n_rows, bool), values
        numeric = np.zeros(self._n_rows, bool)
        values = np.full(self._n_rows, np.nan)
        for row, value in enumerate(column):
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                try:
                    values[row] = float(value)
                    numeric[row] = True
                except OverflowError:  # an integer too large for a float: not a time, not a count
                    continue
        return numeric, values
