"""What a record's metadata state of how it was made, where it is something that is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leapmodel.round_checks import ARMS

TERMINALS = ("accepted", "probe")
MODES = ("prefix", "gather")


def stated_terminal(metadata: Mapping[str, Any]) -> str | None:
    """Return what the metadata say of terminal proposals; None if nothing that is known."""
    said = metadata.get("terminal")
    return said if isinstance(said, str) and said in TERMINALS else None


def listed_tasks(metadata: Mapping[str, Any]) -> list[str]:
    """Return the tasks that the metadata list, in the order in which they run."""
    listed = metadata.get("tasks")
    return listed if isinstance(listed, list) and is_list_of_names(listed) else []


def names_both_arms(metadata: Mapping[str, Any]) -> bool:
    """Return whether the metadata name both arms; each may also be in a file of its own."""
    stated = metadata.get("arms")
    return isinstance(stated, list) and all(arm in stated for arm in ARMS)


def in_order(metadata: Mapping[str, Any]) -> bool:
    """Return whether tasks ran one after another; of several at a time any may begin first."""
    return metadata.get("concurrency") in (None, 1)


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_list_of_names(value: object) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(name, str) for name in value)
