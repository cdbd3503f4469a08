"""Check a table's columns a column at a time, and name the first cell that is wrong.

In strict use the first wrong cell raises. In lenient use the task it belongs to is marked, and
:meth:`ColumnChecks.dropped` says which tasks must go and why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from leapmodel.actions import canonical_action, is_storable
from leapmodel.errors import DataError, shown
from leapmodel.files import Table

_NO_NAME = "(no task name)"
_NUMBERS_THROUGHOUT = frozenset({"integer", "floating", "mixed-integer-float"})
_LARGEST_EXACT = 2**53  # beyond it, float64 does not tell neighbouring whole numbers apart


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
        self._first_reason: dict[int, tuple[str | None, str, str | None]] = {}
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

    def texts(self, name: str, *, nullable: bool = False, only_storable: bool = True) -> pd.Series:
        """Return a text column; numbers standing for names are refused, not guessed.

        Text that no UTF-8 file can hold is refused too, if ``only_storable``.
        """
        column = _plain_column(self.table.frame[name])
        missing = self.table.is_null(name)
        if pd.api.types.is_string_dtype(column.dtype) and column.dtype != object:
            is_text = ~missing
        elif column.dtype == object:
            fits = (isinstance(v, str) and (not only_storable or is_storable(v)) for v in column)
            is_text = np.fromiter(fits, bool, self._n_rows)
        else:
            is_text = np.zeros(self._n_rows, bool)
        wrong = ~(is_text | missing) if nullable else ~is_text
        self.refuse(wrong, name, "text" + (" or null" if nullable else ""))
        if is_text.all() or not (self.lenient or nullable):
            return column
        kept = column.to_numpy(dtype=object, copy=True)
        kept[~is_text] = None
        return pd.Series(kept, index=column.index, dtype=object)

    def actions(self, name: str, *, are_canonical: bool = False) -> pd.Series:
        """Return a column of actions in canonical form, objects of str or None.

        They are not parsed again if they are known to be canonical.
        """
        if are_canonical:
            return _plain_column(self.table.frame[name]).astype(object)
        given = self.texts(name, nullable=True, only_storable=False)
        # Work on each different text once: a trace repeats its actions.
        codes, texts = pd.factorize(given)
        canonical = np.empty(len(texts) + 1, dtype=object)
        canonical[:-1] = [canonical_action(text) for text in texts]
        return pd.Series(canonical[codes], index=self.table.frame.index, dtype=object)

    def booleans(self, name: str) -> np.ndarray:
        """Return a column of true or false, shape (rows,); nulls count as false."""
        column = _plain_column(self.table.frame[name])
        missing = self.table.is_null(name)
        flags = column.to_numpy(dtype=object, copy=True)
        flags[missing] = False
        is_flag = np.fromiter((isinstance(f, (bool, np.bool_)) for f in flags), bool, len(flags))
        self.refuse(~is_flag, name, "true or false")
        return np.where(is_flag, flags, False).astype(bool)

    def choices(self, name: str, allowed: Sequence[str], *, nullable: bool = False) -> pd.Series:
        """Return a text column whose cells are one of a few words."""
        column = self.texts(name, nullable=nullable).astype(object)
        fits = column.isin(allowed).to_numpy()
        if nullable:
            fits |= column.isna().to_numpy()
        self.refuse(~fits & ~self.is_wrong(), name, " or ".join(allowed))
        return column

    def items(self, name: str, fields: Sequence[str]) -> ItemChecks:
        """Return the checks of a column of lists of objects: one row an object.

        Parameters
        ----------
        name : str
            The column.
        fields : sequence of str
            Fields that are looked at; where an object lacks one, it is empty.
        """
        cells = self.table.frame[name].tolist()
        is_list = np.fromiter(
            (
                isinstance(cell, (list, tuple, np.ndarray))
                and all(isinstance(item, Mapping) for item in cell)
                for cell in cells
            ),
            bool,
            self._n_rows,
        )
        self.refuse(~is_list, name, "a list of objects")
        places = [
            (row, at, item)
            for row, cell in enumerate(cells)
            if is_list[row]
            for at, item in enumerate(cell)
        ]
        found = dict.fromkeys([*fields, *(str(key) for _, _, item in places for key in item)])
        columns = {key: [item.get(key) for _, _, item in places] for key in found}
        frame = pd.DataFrame(
            {key: pd.Series(values, dtype=object) for key, values in columns.items()}
        )
        nulls = {
            key: np.fromiter((value is None for value in values), bool, len(values))
            for key, values in columns.items()
        }
        parents = np.array([row for row, _, _ in places], dtype=np.intp)
        indices = np.array([at for _, at, _ in places], dtype=np.intp)
        table = replace(
            self.table, frame=frame, positions=self.table.positions[parents], nulls=nulls
        )
        return ItemChecks(self, name, table, parents, indices)

    def numbers(
        self,
        name: str,
        *,
        above: float | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        default: float | None = None,
        nullable: bool = False,
        whole: bool = False,
    ) -> np.ndarray:
        """Return a column of finite numbers as float64 of shape (rows,); nulls become NaN.

        A column that is absent, or a null where ``default`` is given, takes the default.
        """
        expected = "a whole number" if whole else "a number"
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
            if at_most is not None and not wrong.all():
                self.refuse(
                    ~wrong & (values > at_most),
                    name,
                    f"seconds, at most {at_most:g} (another unit?)",
                )
            if whole:
                wrong |= values != np.floor(values)
        if nullable or default is not None:
            wrong &= ~missing
        self.refuse(wrong, name, expected)
        if default is not None and missing.any():
            values = np.where(missing, default, values)
        return values

    def integers(
        self, name: str, *, at_least: int = 0, default: int | None = None, nullable: bool = False
    ) -> np.ndarray:
        """Return a column of whole numbers: int64, or float64 with NaN for nulls if nullable."""
        if not nullable and name in self.table.frame and self.table.frame[name].dtype == np.int64:
            whole = self.table.frame[name].to_numpy()  # as it is: no detour, and no copies
            self.refuse(whole < at_least, name, f"a whole number >= {at_least:g}")
            too_large = whole > _LARGEST_EXACT
            self.refuse(too_large, name, "a whole number of at most 2^53")
            return np.where(too_large, 0, whole) if too_large.any() else whole
        values = self.numbers(
            name, at_least=at_least, default=default, nullable=nullable, whole=True
        )
        with np.errstate(invalid="ignore"):
            too_large = values > _LARGEST_EXACT
        self.refuse(too_large, name, "a whole number of at most 2^53")
        if nullable:
            return values
        return np.where(np.isfinite(values) & ~too_large, values, 0).astype(np.int64)

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
        if not self.lenient:
            raise self._error(int(rows[0]), column, expected, found)
        for row in rows.tolist():
            self._first_reason.setdefault(row, (column, expected, found))

    def refuse_row(self, row: int, column: str | None, expected: str, found: str) -> None:
        """Raise for one row, or mark it in lenient use."""
        if not self.lenient:
            raise self._error(row, column, expected, found)
        self._first_reason.setdefault(row, (column, expected, found))

    def problems(self) -> list[tuple[int | None, DataError]]:
        """Return every row marked, with the first reason for it, and every unreadable line."""
        marked = [
            (row, self._error(row, *reason)) for row, reason in sorted(self._first_reason.items())
        ]
        return [*((None, error) for error, _ in self.table.bad_lines), *marked]

    def dropped(self, task_of_row: Sequence[str | None]) -> list[Dropped]:
        """Return the tasks that must go, each once, with its first reason: marked, or unreadable.

        A damaged line is blamed on the task of the line before it, whose next row it most likely
        was. If it was the first step of the next task instead, that task fails the check for gaps.
        """
        reasons: dict[str, str] = {}
        for error, rows_before in self.table.bad_lines:
            name = task_of_row[rows_before - 1] if rows_before else None
            reasons.setdefault(_NO_NAME if name is None else name, str(error))
        for row in sorted(self._first_reason):
            name = task_of_row[row]
            if (name := _NO_NAME if name is None else name) not in reasons:
                reasons[name] = str(self._error(row, *self._first_reason[row]))
        return [Dropped(task, reason) for task, reason in reasons.items()]

    def without_dropped(self, frame: pd.DataFrame, dropped: Sequence[Dropped]) -> pd.DataFrame:
        """Return the rows of the tasks that stay, their order and index labels kept.

        Raises
        ------
        DataError
            If none is left.
        """
        if not dropped:
            return frame
        kept = frame[frame["task"].notna() & ~frame["task"].isin([d.task for d in dropped])]
        if not len(kept):
            raise DataError(
                self.table.source,
                expected="at least one good task",
                found=f"{len(dropped)} bad, the first: {dropped[0].reason}",
            )
        return kept

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong so far."""
        return not self._first_reason and not self.table.bad_lines

    def is_wrong(self) -> np.ndarray:
        """Return a mask of the rows marked so far, shape (rows,)."""
        mask = np.zeros(self._n_rows, bool)
        mask[list(self._first_reason)] = True
        return mask

    def _error(self, row: int, column: str | None, expected: str, found: str | None) -> DataError:
        found = found or self._found(row, column)
        if column == "task" and pd.api.types.is_integer(self.table.frame["task"].iloc[row]):
            found += " (a name is text: put it in quotes, or use astype(str) in pandas)"
        return self.table.error(row, column, expected=expected, found=found)

    def _found(self, row: int, column: str | None) -> str:
        if column is None or column not in self.table.frame.columns:
            return "nothing"
        if column in self.table.nulls and self.table.nulls[column][row]:
            return "nothing"
        value: Any = self.table.frame[column].iloc[row]
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, str):
            return f"the text {shown(value)}" + (
                "" if is_storable(value) else " (half a surrogate pair is no character)"
            )
        return "NaN" if value != value else shown(value)

    def _as_floats(self, column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        """Return (is a number, value) per row; booleans and texts are not numbers."""
        column = _plain_column(column)
        if pd.api.types.is_bool_dtype(column.dtype):
            return np.zeros(self._n_rows, bool), np.full(self._n_rows, np.nan)
        if pd.api.types.is_numeric_dtype(column.dtype):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            return np.ones(self._n_rows, bool), values
        if pd.api.types.infer_dtype(column, skipna=False) in _NUMBERS_THROUGHOUT:
            with suppress(OverflowError):
                return np.ones(self._n_rows, bool), column.to_numpy(dtype=np.float64)
        numeric = np.zeros(self._n_rows, bool)
        values = np.full(self._n_rows, np.nan)
        for row, value in enumerate(column):
            if isinstance(value, (int, float, Decimal, np.number)) and not isinstance(value, bool):
                try:
                    values[row] = float(value)
                    numeric[row] = True
                except (OverflowError, TypeError):  # too large for a float, or a complex number
                    continue
        return numeric, values


class ItemChecks(ColumnChecks):
    """The checks of objects in a column of lists; what is wrong is wrong with the row they are in.

    Attributes
    ----------
    parent : ColumnChecks
        The checks of the table they are in.
    parents, indices : ndarray of int, shape (items,)
        The row that each object is in, and its place in that row's list.
    """

    def __init__(
        self,
        parent: ColumnChecks,
        name: str,
        table: Table,
        parents: np.ndarray,
        indices: np.ndarray,
    ) -> None:
        super().__init__(table, lenient=parent.lenient)
        self.parents, self.indices = parents, indices
        self.parent, self._name = parent, name

    def refuse(
        self,
        wrong: np.ndarray,
        column: str | None,
        expected: str,
        found: str | None = None,
    ) -> None:
        """Refuse the rows that hold the wrong objects, naming each by its place and field."""
        for item in np.flatnonzero(wrong).tolist():
            place = f"{self._name}[{self.indices[item]}]"
            if column is not None:
                place += f".{column}"
            said = found or self._found(item, column)
            self.parent.refuse_row(int(self.parents[item]), place, expected, said)

    def is_wrong(self) -> np.ndarray:
        """Return a mask of the objects in rows marked so far, shape (items,)."""
        return self.parent.is_wrong()[self.parents]


def _plain_column(column: pd.Series) -> pd.Series:
    """Return a dictionary-encoded (categorical) column as the values it stands for."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.astype(column.dtype.categories.dtype)
    return column
