"""Say which column of a table holds which field of a step."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from leapmodel.errors import DataError, UsageError
from leapmodel.importers.durations import PER_SECOND

TIMES = ("gen_s", "tool_s", "start", "end")
"""Fields that hold a duration or a moment."""
TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens")
FIELDS = (
    "task", "gen_s", "start", "end", "run", "step", "segment", "user_turn", "kind", "action",
    "tool", "arguments", "tool_s", *TOKENS,
)  # fmt: skip


@dataclass(frozen=True)
class Columns:
    """The columns of the fields, and the unit of times.

    Attributes
    ----------
    names : dict of str to str
        Columns that a person named, by field.
    time_unit : str or None
        The unit a person named.
    header : frozenset of str
        The columns that the table has, see :meth:`checked`.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    time_unit: str | None = None
    header: frozenset[str] = frozenset()

    @property
    def unit(self) -> str:
        """The unit of spans of time."""
        return self.time_unit or "s"

    def of(self, name: str) -> str:
        """Return the column of a field."""
        return self.names.get(name, name)

    def has(self, name: str) -> bool:
        """Return whether the table has the column of a field."""
        return self.of(name) in self.header

    def wanted(self) -> dict[str, str]:
        """Return the columns to read, by field."""
        return {name: self.of(name) for name in FIELDS if self.has(name)}

    def checked(self, header: Sequence[str], path: Path) -> Columns:
        """Return these columns in a table with this header.

        Refuse one without the columns that must be there, or that a person named.

        Raises
        ------
        DataError
            Naming the columns that are there.
        """
        names = [name if len(name) <= 60 else name[:57] + "…" for name in header[:12]]
        shown = ", ".join(names) + (", …" if len(header) > 12 else "")
        for name, column in self.names.items():
            if column not in header:
                near = difflib.get_close_matches(column, header, n=1)
                hint = f" (did you mean {near[0]}?)" if near else ""
                raise DataError(
                    path, expected=f"the column {column} for {name}", found=f"only {shown}{hint}"
                )
        if self.of("task") not in header:
            raise self._missing("task", shown, path)
        if self.of("gen_s") not in header and not {self.of("start"), self.of("end")} <= {*header}:
            raise self._missing("gen_s (or start and end)", shown, path)
        return replace(self, header=frozenset(header))

    def _missing(self, what: str, shown: str, path: Path) -> DataError:
        field_name = what.split()[0]
        return DataError(
            path,
            expected=f"a column {what}; name yours with --column {field_name}=YOURS",
            found=f"only {shown}",
        )


def read_columns(columns: object, time_unit: object) -> Columns:
    """Read the options of a table.

    Parameters
    ----------
    columns : mapping, str or sequence of str, or None
        Fields to columns, or texts ``field=column``.
    time_unit : str or None
        One of ``s``, ``ms``, ``us``, ``ns``.

    Raises
    ------
    UsageError
        If they are something else.

    Examples
    --------
    >>> read_columns(["gen_s=latency_ms"], "ms").of("gen_s")
    'latency_ms'
    """
    if time_unit is not None and time_unit not in PER_SECOND:
        raise UsageError(f"time_unit: expected {', '.join(PER_SECOND)}, found {time_unit!r}")
    pairs: list[tuple[object, object]] = []
    if isinstance(columns, Mapping):
        pairs = list(columns.items())
    elif columns is not None:
        texts = [columns] if isinstance(columns, str) else columns
        if not isinstance(texts, Sequence):
            raise UsageError(f"columns: expected texts such as gen_s=latency_ms, found {texts!r}")
        for text in texts:
            name, equals, column = str(text).partition("=")
            if not equals or not column:
                raise UsageError(
                    f"columns: expected a text such as gen_s=latency_ms, found {text!r}"
                )
            pairs.append((name.strip(), column.strip()))
    names: dict[str, str] = {}
    for field_name, column_name in pairs:
        name = str(field_name)
        if name not in FIELDS:
            near = difflib.get_close_matches(name, FIELDS, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise UsageError(
                f"columns: there is no field {name!r}{hint}; fields: {', '.join(FIELDS)}"
            )
        if name in names:
            raise UsageError(f"columns: {name} is named twice")
        names[name] = str(column_name)
        unit = str(column_name).rpartition("_")[2].lower()
        if time_unit is None and name in TIMES and unit in PER_SECOND and unit != "s":
            raise UsageError(
                f"columns: {column_name} looks like {unit}: say --time-unit {unit}, or"
                " --time-unit s if it is not"
            )
    return Columns(names, None if time_unit is None else str(time_unit))
