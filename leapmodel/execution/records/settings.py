"""The settings of a record that must be the same for it to be gone on with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from leapmodel.errors import shown

_NOT_ALWAYS_STATED = frozenset(
    {
        "split",
        "reset_caches",
        "engine",
        "benchmark tasks_sha256",
        "online tasks",
        "online tasks_sha256",
        "online heldout_sha256",
        "online base",
        "online swap",
        "online train_options",
    }
)
"""Settings that older records don't state, nor one whose server could not be asked: where one is
missing, nothing is contradicted."""
_WIDTH = 60
_BEFORE = 20


class Difference(NamedTuple):
    """A setting that two records state differently, named by its place: ``draft model``."""

    name: str
    theirs: Any
    ours: Any


def first_difference(
    theirs: Mapping[str, Any], ours: Mapping[str, Any], within: str = ""
) -> Difference | None:
    """Return the first setting that differs, or None if all are the same.

    Objects are compared setting by setting; one that is missing counts as null.

    Parameters
    ----------
    theirs, ours : mapping
        Settings, as JSON gives them back.
    within : str, default ""
        The name of the setting that they are part of.

    Examples
    --------
    >>> first_difference({"draft": {"model": "m", "name": "a"}},
    ...                  {"draft": {"model": "m", "name": "b"}})
    Difference(name='draft name', theirs='a', ours='b')
    """
    for key in dict.fromkeys([*theirs, *ours]):
        name = f"{within} {key}".lstrip()
        if name in _NOT_ALWAYS_STATED and not (key in theirs and key in ours):
            continue
        one, other = theirs.get(key), ours.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            found = first_difference(one, other, name)
            if found is not None:
                return found
        elif one != other:
            return Difference(name, one, other)
    return None


def shown_apart(one: object, other: object) -> tuple[str, str]:
    """Return short renderings of two values for an error text that show where they differ.

    Examples
    --------
    >>> shown_apart(2, 3)
    ('2', '3')
    >>> shown_apart("x" * 80 + "a", "x" * 80 + "b")
    ("...xxxxxxxxxxxxxxxxxxxxa'", "...xxxxxxxxxxxxxxxxxxxxb'")
    """
    if shown(one) != shown(other):
        return shown(one), shown(other)
    texts = repr(one), repr(other)
    apart = (at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b)
    begin = max(0, next(apart, min(map(len, texts))) - _BEFORE)

    def cut(text: str) -> str:
        after = "..." if len(text) > begin + _WIDTH else ""
        return ("..." if begin else "") + text[begin : begin + _WIDTH] + after

    return cut(texts[0]), cut(texts[1])
