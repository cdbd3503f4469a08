"""A canonical action taken apart: what is called with which keys, and the values given.

The *shape* of an action is its tools and argument keys without the values, so that two calls that
differ only in a file name have one shape. Terminal markers and texts that are no calls have no
values; each is its own shape.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from leapmodel.actions import TERMINAL_ACTIONS, tool_names

_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


class Call(NamedTuple):
    """One call: its tool, argument keys in order, and their values as canonical JSON texts.

    ``slots`` names each argument across tools, ``tool.key``; ``shape`` is the call's own.
    """

    tool: str
    keys: tuple[str, ...]
    values: tuple[str, ...]
    slots: tuple[str, ...]
    shape: str


class ParsedAction(NamedTuple):
    """An action as its shape and its calls (none for a terminal marker or other text)."""

    shape: str
    calls: tuple[Call, ...]


@lru_cache(maxsize=2**16)
def parse_action(action: str) -> ParsedAction:
    r"""Take a canonical action apart.

    An action that could not be put together again from its parts, letter by letter, is left whole.

    Examples
    --------
    >>> parsed = parse_action('mv({"source":"a.txt","to":"b"})\nls({})')
    >>> parsed.shape
    'mv(source,to)\nls()'
    >>> parsed.calls[0].values, parsed.calls[0].slots
    (('"a.txt"', '"b"'), ('mv.source', 'mv.to'))
    >>> parse_action("click 3"), parse_action("<respond/>").calls
    (ParsedAction(shape='click 3', calls=()), ())
    """
    whole = ParsedAction(action, ())
    if action in TERMINAL_ACTIONS or not action.endswith("})"):
        return whole
    calls = []
    for text in action.split("\n"):
        tool, opened, inside = text.partition("({")
        if not (tool and opened and inside.endswith("})")):
            return whole
        try:
            arguments = json.loads("{" + inside[:-1])
            values = tuple(_ENCODE(value) for value in arguments.values())
        except (ValueError, RecursionError):
            return whole
        calls.append(_call(tool, tuple(arguments), values))
    if render(calls, [call.values for call in calls]) != action:
        return whole
    return ParsedAction("\n".join(call.shape for call in calls), tuple(calls))


def render(calls: Iterable[Call], values: Iterable[Sequence[str]]) -> str:
    """Put calls together with other values.

    Examples
    --------
    >>> render(parse_action('cd({"to":"x"})').calls, [['"y"']])
    'cd({"to":"y"})'
    """
    return "\n".join(
        f"{call.tool}({{"
        + ",".join(f"{_ENCODE(key)}:{value}" for key, value in zip(call.keys, given, strict=True))
        + "})"
        for call, given in zip(calls, values, strict=True)
    )


@lru_cache(maxsize=2**16)
def names_of(action: str | None) -> tuple[str, ...] | None:
    """Return what name-only agreement compares: the tools called, or the terminal marker.

    Examples
    --------
    >>> names_of('cd({"to":"x"})'), names_of("<respond/>"), names_of(None)
    (('cd',), ('<respond/>',), None)
    """
    if action is None:
        return None
    return (action,) if action in TERMINAL_ACTIONS else tool_names(action)


def _call(tool: str, keys: tuple[str, ...], values: tuple[str, ...]) -> Call:
    slots = tuple(f"{tool}.{key}" for key in keys)
    return Call(tool, keys, values, slots, f"{tool}({','.join(keys)})")
