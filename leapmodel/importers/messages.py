"""Build chat messages and actions, in the shape of the OpenAI chat format, from plain parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from leapmodel.actions import RESPOND, canonical_group
from leapmodel.importers.fields import Place
from leapmodel.importers.records import Message


class Call(NamedTuple):
    """One tool call: its name, its arguments (a mapping or JSON text) and the log's name for it."""

    name: str
    arguments: object
    identity: str | None = None


def action_of(calls: Sequence[Call]) -> str | None:
    """Return the canonical action of parallel calls; none at all are a reply."""
    return canonical_group([(call.name, call.arguments) for call in calls]) if calls else RESPOND


def calls_of(value: object, place: Place, field: str) -> list[Call]:
    """Read a list of tool calls, however common logs spell one.

    ``{"id", "function": {"name", "arguments"}}``, ``{"id", "name", "arguments"}``,
    ``{"tool_call_id", "function_name", "arguments"}``, ``{"id", "function", "arguments"}`` and
    ``{"name", "args"}`` are all the same call. A missing list is an empty one.

    Raises
    ------
    DataError
        If it is no list of calls with names.
    """
    if value is None:
        return []
    calls = []
    for number, item in enumerate(place.items(value, field)):
        at = f"{field}[{number}]"
        given = place.mapping(item, at)
        inner = given.get("function")
        if isinstance(inner, dict):
            name, arguments = inner.get("name"), inner.get("arguments")
        else:
            name = given.get("name", given.get("function_name", inner))
            arguments = given.get("arguments", given.get("args"))
        identity = text_or_none(given.get("id", given.get("tool_call_id", given.get("call_id"))))
        calls.append(Call(place.text(name, f"{at}.name"), arguments, identity))
    return calls


def said_by_assistant(content: object, calls: Sequence[Call] = ()) -> Message:
    """Build an assistant message."""
    text = text_of(content)
    if not calls:
        return {"role": "assistant", "content": text}
    return {
        "role": "assistant",
        "content": text or None,
        "tool_calls": [
            {
                "id": call.identity or f"call_{number}",
                "type": "function",
                "function": {"name": call.name, "arguments": _argument_text(call.arguments)},
            }
            for number, call in enumerate(calls)
        ],
    }


def said_by_tool(content: object, identity: object) -> Message:
    """Build the message of a tool's result; ``identity`` is the log's name of the call, if any."""
    return {
        "role": "tool",
        "tool_call_id": text_or_none(identity) or "call_0",
        "content": text_of(content),
    }


def said_by(role: str, content: object) -> Message:
    """Build a system or user message."""
    return {"role": role, "content": text_of(content)}


def text_of(content: object) -> str:
    """Return the text of a message's content: plain, in blocks, or any other value as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(block, (str, dict)) for block in content):
        parts = [block if isinstance(block, str) else _block_text(block) for block in content]
        return "\n".join(part for part in parts if part)
    return _json_text(content)


def text_or_none(value: object) -> str | None:
    """Return a text that is not empty, and None for anything else."""
    return value if isinstance(value, str) and value else None


def _block_text(block: dict[str, Any]) -> str:
    for key in ("text", "content"):
        if isinstance(block.get(key), str):
            return str(block[key])
    kind = block.get("type")
    return f"[{kind}]" if isinstance(kind, str) and kind not in {"reasoning", "thinking"} else ""


def _argument_text(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    return _json_text({} if arguments is None else arguments)


def _json_text(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:  # it could be parsed, but from a shallower call
        return "[nested too deeply]"
