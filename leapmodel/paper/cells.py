"""Numbers as text: published ones keep the decimals they were printed with."""

from __future__ import annotations

import numpy as np
import pandas as pd


def cells(column: pd.Series, *, is_published: bool, decimals: int, empty: str) -> list[str]:
    """Return a column as text, with ``decimals`` unless it was printed or is whole.

    Examples
    --------
    >>> values = pd.Series([1.5, 1.25, np.nan])
    >>> cells(values, is_published=True, decimals=3, empty="–")
    ['1.50', '1.25', '–']
    >>> cells(values, is_published=False, decimals=3, empty="–")
    ['1.500', '1.250', '–']
    """
    if not pd.api.types.is_numeric_dtype(column):
        return [empty if pd.isna(value) else str(value) for value in column]
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if is_published or (values == values.round()).all():
        decimals = _printed_decimals(values)
    # adding nought turns -0.0000 into 0.0000
    return [
        empty if np.isnan(value) else f"{round(value, decimals) + 0.0:.{decimals}f}"
        for value in values.tolist()
    ]


def _printed_decimals(values: np.ndarray) -> int:
    """Return how many decimals the longest of some printed numbers has."""
    printed = [f"{value:.6f}".rstrip("0").split(".")[1] for value in values[~np.isnan(values)]]
    return max(map(len, printed), default=0)
