"""The settings that records state, compared: which is the first that differs.

They decide whether a record can be gone on with, is read on the benchmark that it was made on, and
can be compared with another one task by task.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from leapmodel.errors import UsageError, shown

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


def refuse_difference(was: str, differs: Difference | None) -> None:
    """Refuse a record that was made otherwise than is asked for now.

    Parameters
    ----------
    was : str
        Which one, and what was done to it, such as ``"r.jsonl: was begun"``.
    differs : Difference or None
        As :func:`first_difference` finds it.

    Raises
    ------
    UsageError
        Naming the setting that differs and both its values.
    """
    if differs is not None:
        before, now = shown_apart(differs.theirs, differs.ours)
        raise UsageError(f"{was} with {differs.name} {before}, now it is {now}")


def refuse_other_benchmark(
    ours: Mapping[str, Any], metadata: Mapping[str, Any], where: str | Path
) -> None:
    """Refuse a record that states another benchmark, or other settings of it.

    Parameters
    ----------
    ours : mapping
        What :func:`~leapmodel.benchmarks.interface.about_benchmark` says of the benchmark in use.
    metadata : mapping
        What the record says about itself; what it leaves out contradicts nothing.
    where : str or Path
        What error messages call the record, such as its file.

    Raises
    ------
    UsageError
        Naming the setting that differs and both its values.
    """
    refuse_difference(f"{where}: was recorded", _difference(_stated(metadata), ours))


def refuse_mixed_benchmarks(files: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse files to be compared task by task that state different benchmarks or settings.

    Tasks of different benchmarks may have the same names.

    Parameters
    ----------
    files : mapping of str to mapping
        The metadata of each, by what error messages call it.

    Raises
    ------
    UsageError
        Naming the setting that differs, both files and both values.

    Examples
    --------
    >>> refuse_mixed_benchmarks({
    ...     "a": {"benchmark": {"name": "planning", "settings": {"seed": 5}}},
    ...     "b": {"benchmark": {"name": "planning", "settings": {"seed": 5}}}, "c": {}})
    """
    for (one, ours), (other, theirs) in combinations(files.items(), 2):
        differs = _difference(_stated(theirs), _stated(ours))
        if differs is not None:
            apart, first = shown_apart(differs.theirs, differs.ours)
            raise UsageError(
                f"{other}: was recorded with {differs.name} {apart}, {one} with {first}"
            )


def _stated(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a record says of its benchmark; it may be the name alone."""
    said = metadata.get("benchmark")
    return said if isinstance(said, Mapping) else {"name": said}


def _difference(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Difference | None:
    """Return the first thing that both state, and differently."""
    both = [name for name in theirs if None not in (theirs[name], ours.get(name))]
    one, other = {name: theirs[name] for name in both}, {name: ours[name] for name in both}
    settings: list[Any] = [said.get("settings") for said in (one, other)]
    if all(isinstance(said, Mapping) for said in settings):
        shared = [name for name in settings[0] if name in settings[1]]
        if "tasks_sha256" in both:  # says more of the tasks than the place of their file
            shared = [name for name in shared if name != "tasks_file"]
        for said, stated in zip((one, other), settings, strict=True):
            said["settings"] = {name: stated[name] for name in shared}
    return first_difference(one, other, "benchmark")
