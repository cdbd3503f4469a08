"""Options that belong together, given to a command as one object."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def gathered(
    parameter: str, gather: Callable[..., Any], fields: Mapping[str, str], *options: Decorator
) -> Decorator:
    """Return a decorator that adds options to a command, which gets them as one object.

    Parameters
    ----------
    parameter : str
        What the command calls the object.
    gather : callable
        Makes it.
    fields : mapping of str to str
        Its arguments, each with the name of the option's value.
    *options : decorators
        Click's.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def gathering(**given: Any) -> Any:
            made = gather(**{field: given.pop(value) for field, value in fields.items()})
            return command(**given, **{parameter: made})

        optioned: Callable[..., Any] = gathering
        for option in reversed(options):
            optioned = option(optioned)
        return optioned

    return decorate
