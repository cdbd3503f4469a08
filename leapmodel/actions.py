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
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

RESPOND = "<respond/>"
TERMINATE = "<terminate/>"
TERMINAL_ACTIONS = frozenset({RESPOND, TERMINATE})

_AS_THEY_ARE = frozenset({str, int, bool, type(None)})
_CALL_SEPARATOR = "\n"  # never inside a call: JSON escapes it, and names are cleaned of it
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_SHORT = 256
"""Arguments of so many characters are looked up; longer ones seldom repeat, and would fill it."""
_LONGEST_MARKER = 64  # a longer text is no marker however much blank space it holds
_CALL_START = re.compile(r"([^\n]*?)\(\s*+(?=[{)])")
_CALL_END = re.compile(r"\s*+\)[^\S\n]*+(?:\n\s*+|\Z)")


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
    if isinstance(arguments, str):
        written = _often_written if len(arguments) <= _SHORT else _written_call
        return written(name, arguments)
    try:
        by_value = _numbers_by_value(arguments)
        return _call_text(name, by_value) if isinstance(by_value, dict) else None
    except (ValueError, TypeError, RecursionError):
        return None


def _written_call(name: str, arguments: str) -> str | None:
    try:
        is_bare = arguments[:1] == "{" and arguments[-1:] == "}"
        # Looking for blanks around the object costs a third of reading it.
        by_value, end = _DECODER.raw_decode(arguments) if is_bare else (None, -1)
        if end != len(arguments):
            by_value = _DECODER.decode(arguments)
        return _call_text(name, by_value) if isinstance(by_value, dict) else None
    except (ValueError, TypeError, RecursionError):
        return None


def canonical_calls(names: Sequence[str | None], arguments: Sequence[object]) -> list[str | None]:
    """Return the canonical strings of many tool calls, each by itself.

    The same as :func:`canonical_call` on each, in two thirds of the time where the arguments are
    JSON text, as they are in the columns of a table.

    Examples
    --------
    >>> canonical_calls(["ls", "cd"], ["{}", '{"to": "a"}'])
    ['ls({})', 'cd({"to":"a"})']
    """
    scan, write = _DECODER.raw_decode, _ENCODE
    are_plain = {name for name in set(names) if isinstance(name, str) and name.isidentifier()}
    calls: list[str | None] = []
    for name, given in zip(names, arguments, strict=True):
        if name is None:
            calls.append(None)
            continue
        if name in are_plain and isinstance(given, str) and given[:1] == "{":
            try:
                by_value, end = scan(given)
                text = write(by_value)
            except (ValueError, RecursionError):
                end = -1
            if end == len(given) and text.isascii():
                calls.append(f"{name}({text})")
                continue
        calls.append(canonical_call(name, given))
    return calls


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


def canonical_action(text: str) -> str:
    """Return the canonical form of an action that a person or another program wrote as text.

    One or more calls ``name({...})``, each beginning on a line of its own, are rewritten with
    sorted keys, compact separators and numbers by value; ``name()`` is a call without arguments.
    Empty text, blank text and an empty list ``[]`` are what a reply to the user looks like, so
    they become :data:`RESPOND`; a draft whose output did not parse is ``None``, never ``""``.
    Any other text is left as it is and compares letter by letter.

    Parameters
    ----------
    text : str
        The action as written.

    Returns
    -------
    str
        The canonical form; it is its own canonical form.

    Examples
    --------
    >>> canonical_action('move( {"to": "temp",  "count": 1.0} )')
    'move({"count":1,"to":"temp"})'
    >>> canonical_action("ls()"), canonical_action(""), canonical_action("click 3")
    ('ls({})', '<respond/>', 'click 3')
    """
    calls = _parse_calls(text)
    if calls:
        return _CALL_SEPARATOR.join(calls)
    bare = "".join(text.split()) if len(text) < _LONGEST_MARKER else text
    if bare in TERMINAL_ACTIONS:
        return bare
    if bare == "[]" or not text.strip():
        return RESPOND
    return _storable(text)


def is_storable(text: str) -> bool:
    """Return whether a UTF-8 file can hold the text: half a surrogate pair is no character.

    Examples
    --------
    >>> is_storable("é"), is_storable(chr(0xD800))
    (True, False)
    """
    return text.isascii() or not _HALF_PAIR.search(text)


def same_action(first: str | None, second: str | None) -> bool:
    """Return whether two canonical actions agree; an unparsable one never does.

    Examples
    --------
    >>> same_action("<respond/>", "<respond/>"), same_action(None, None)
    (True, False)
    """
    return first is not None and first == second


def tool_names(action: str | None) -> tuple[str, ...]:
    r"""Return the names of the tools a canonical action calls, in order.

    Examples
    --------
    >>> tool_names('cd({"folder":"a"})\nls({})'), tool_names("<respond/>"), tool_names(None)
    (('cd', 'ls'), (), ())
    """
    if action is None or action in TERMINAL_ACTIONS:
        return ()
    return tuple(_name_in(call) for call in action.split(_CALL_SEPARATOR))


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


def _name_in(call: str) -> str:
    # A name may hold "(" itself; text that is not a canonical call ends its name at the first one.
    return call.split("({" if call.endswith("})") and "({" in call else "(", 1)[0]


def _parse_calls(text: str) -> list[str] | None:
    """Return the calls a text spells out, each canonical, or None if it is anything else."""
    calls = []
    at = len(text) - len(text.lstrip())
    while at < len(text):
        start = _CALL_START.match(text, at)
        if start is None or not start[1].strip():
            return None
        arguments: dict[str, Any] = {}
        at = start.end()
        try:
            if text[at] == "{":
                arguments, at = _DECODER.raw_decode(text, at)
            calls.append(_call_text(start[1], arguments))
        except (ValueError, RecursionError):
            return None
        end = _CALL_END.match(text, at)
        if end is None:
            return None
        at = end.end()
    return calls


def _float_by_value(value: float) -> float | int:
    return int(value) if math.isfinite(value) and value.is_integer() else value


def _numbers_by_value(value: Any) -> Any:
    """Rewrite whole floats as integers, so that 1.0 and 1 are one value; booleans stay."""
    if isinstance(value, float):
        return _float_by_value(value)
    if isinstance(value, (str, int)):  # before the slower question below
        return value
    if isinstance(value, Mapping):
        return {
            str(key): item if type(item) in _AS_THEY_ARE else _numbers_by_value(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_numbers_by_value(item) for item in value]
    return value


def _call_text(name: str, by_value: dict[str, Any]) -> str:
    plain = name if name.isidentifier() else _storable(" ".join(name.split()))
    return f"{plain}({_json_text(by_value)})"


def _json_text(value: object) -> str:
    text = _ENCODE(value)
    if is_storable(text):
        return text
    # Half a surrogate pair is legal in JSON but not in a UTF-8 file: it stays an escape. Two halves
    # that stand together are one character, and decoding joins them.
    joined = _DECODER.decode(_ENCODE_ASCII(value))
    text = _ENCODE(joined)
    return text if is_storable(text) else _ENCODE_ASCII(joined)


def _storable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _encoder(*, ensure_ascii: bool) -> Callable[[object], str]:
    """Return a writer of JSON with sorted keys, built once for a million actions.

    ``JSONEncoder.encode`` builds its C part anew for each text, which takes as long as writing it.
    """
    plain = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=ensure_ascii)
    build = getattr(json.encoder, "c_make_encoder", None)  # absent where Python has no C part
    if build is None:
        return plain.encode
    text_of = "encode_basestring_ascii" if ensure_ascii else "encode_basestring"
    # Without a check for circles: what is its own part runs into the limit of recursion instead.
    write = build(
        None, plain.default, getattr(json.encoder, text_of), None, ":", ",", True, False, True
    )
    return lambda value: "".join(write(value, 0))


# Built once, for the same reason.
_DECODER = json.JSONDecoder(parse_float=lambda text: _float_by_value(float(text)))
_ENCODE = _encoder(ensure_ascii=False)
_ENCODE_ASCII = _encoder(ensure_ascii=True)
_often_written = lru_cache(maxsize=2**10)(_written_call)  # agents repeat short calls
