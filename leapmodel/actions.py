"""Canonical actions: one string for one decision, so that equality means agreement.

A draft's proposal is accepted when its canonical string equals the target's (Sec. 3.1, App. G).
A call is ``name(arguments)`` with the arguments as JSON, keys sorted, separators compact and
numbers written by value; parallel calls are one action, one call a line, in their order.
A reply to the user is :data:`RESPOND`, the end of a plan :data:`TERMINATE`, and an output that
does not parse is ``None``, which matches nothing, not even another ``None``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

RESPOND = "<respond/>"
TERMINATE = "<terminate/>"
TERMINAL_ACTIONS = frozenset({RESPOND, TERMINATE})

_CALL_SEPARATOR = "\n"  # never inside a call: JSON escapes it, and names are cleaned of it


def canonical_call(name: str, arguments: object) -> str | None:
    """Return the canonical string of one tool call.

    Parameters
    ----------
    name : str
        The tool's name.
    arguments : mapping, str or None
        The arguments as a mapping, or as the JSON text of an object. ``None`` and ``""`` mean
        no arguments.

    Returns
    -------
    str or None
        ``None`` when the name is empty or the arguments are not a JSON object.

    Examples
    --------
    >>> canonical_call("move", {"to": "temp", "count": 1.0})
    'move({"count":1,"to":"temp"})'
    >>> canonical_call("move", '{"count": 1, "to": "temp"}')
    'move({"count":1,"to":"temp"})'
    >>> canonical_call("move", "{not json") is None
    True
    """
    if not isinstance(name, str) or not name.strip():
        return None
    if arguments is None or arguments == "":
        arguments = {}
    try:
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
        if not isinstance(arguments, Mapping):
            return None
        by_value = _numbers_by_value(arguments)
        text = json.dumps(by_value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate: legal in JSON, not in a UTF-8 file
        text = json.dumps(by_value, sort_keys=True, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError):
        return None
    clean = " ".join(name.split()).encode("utf-8", "backslashreplace").decode("utf-8")
    return f"{clean}({text})"


def canonical_group(calls: Iterable[tuple[str, object]]) -> str | None:
    """Return the canonical action of a group of parallel calls, in their order.

    Parameters
    ----------
    calls : iterable of (name, arguments)
        As for :func:`canonical_call`. An empty group is a reply.

    Returns
    -------
    str or None
        ``None`` as soon as one call of the group is not well formed.

    Examples
    --------
    >>> print(canonical_group([("cd", {"folder": "a"}), ("ls", {})]))
    cd({"folder":"a"})
    ls({})
    >>> canonical_group([])
    '<respond/>'
    """
    parts = []
    for name, arguments in calls:
        call = canonical_call(name, arguments)
        if call is None:
            return None
        parts.append(call)
    return _CALL_SEPARATOR.join(parts) if parts else RESPOND


def same_action(first: str | None, second: str | None) -> bool:
    """Return whether two canonical actions agree; an unparsable one never does.

    Examples
    --------
    >>> same_action("<respond/>", "<respond/>"), same_action(None, None)
    (True, False)
    """
    return first is not None and first == second


def tool_names(action: str | None) -> tuple[str, ...]:
    """Return the names of the tools a canonical action calls, in order.

    Examples
    --------
    >>> tool_names('cd({"folder":"a"})\\nls({})'), tool_names("<respond/>"), tool_names(None)
    (('cd', 'ls'), (), ())
    """
    if action is None or action in TERMINAL_ACTIONS:
        return ()
    return tuple(call.split("(", 1)[0] for call in action.split(_CALL_SEPARATOR))


def calls_any(action: str | None, patterns: Sequence[str]) -> bool:
    """Return whether an action calls a tool whose name fits one of the shell-style patterns.

    Examples
    --------
    >>> calls_any('send_mail({})', ["send_*", "book_*"])
    True
    """
    return any(fnmatchcase(name, pattern) for name in tool_names(action) for pattern in patterns)


def action_kind(action: str | None) -> str | None:
    """Return ``"respond"``, ``"terminate"``, ``"tool"``, or ``None`` for an unparsable output.

    Examples
    --------
    >>> action_kind("<respond/>"), action_kind("ls({})"), action_kind(None)
    ('respond', 'tool', None)
    """
    if action is None:
        return None
    return {RESPOND: "respond", TERMINATE: "terminate"}.get(action, "tool")


def _numbers_by_value(value: Any) -> Any:
    """Rewrite whole floats as integers, so that 1.0 and 1 are one value; booleans stay."""
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value.is_integer() else value
    if isinstance(value, Mapping):
        return {str(key): _numbers_by_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_numbers_by_value(item) for item in value]
    return value
