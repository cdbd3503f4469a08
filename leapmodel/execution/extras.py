"""Packages that only some commands need."""

from __future__ import annotations

import importlib
from typing import Any

from leapmodel.errors import UsageError


def require(module: str, extra: str) -> Any:
    """Import a package of an extra.

    Raises
    ------
    UsageError
        Saying what to install, if it is missing.

    Examples
    --------
    >>> require("json", "execution").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise  # the package is there, and something of its own is missing
        raise UsageError(
            f"this needs {module}, which is not installed: pip install 'leapmodel[{extra}]'"
        ) from None
