"""The libraries that training needs, loaded when it starts and named when they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from leapmodel.errors import UsageError


def load(name: str) -> Any:
    """Return a module of the ``train`` extra.

    Raises
    ------
    UsageError
        If it is not installed; the message says what installs it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        missing = (error.name or name).split(".")[0]
        raise UsageError(
            f"training needs {missing}, which is not installed: pip install 'leapmodel[train]'"
        ) from None
