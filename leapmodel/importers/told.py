"""Read what a model was told, in whichever shape a vendor writes it, as OpenAI chat messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leapmodel.importers.chat import (
    NO_OUTPUT,
    Said,
    call_of,
    decoded_json,
    is_message,
    kind_of,
    read_said,
    role_of,
)
from leapmodel.importers.messages import said_by, said_by_tool
from leapmodel.importers.records import Message

_DEEPEST = 12


def read_messages(value: object) -> list[Message]:
    """Return a generation's logged input as messages of the OpenAI chat format.

    Examples
    --------
    >>> read_messages({"messages": [{"type": "human", "content": "Hi."}]})
    [{'role': 'user', 'content': 'Hi.'}]
    """
    for _ in range(_DEEPEST):
        if isinstance(value, str):
            decoded = decoded_json(value)
            if not isinstance(decoded, (list, dict)):
                return [] if value.strip() in NO_OUTPUT else [said_by("user", value)]
            value = decoded
        elif isinstance(value, dict) and not is_message(value):
            keys = ("messages", "contents", "input", "inputs", "prompt", "message", "args")
            inner = next((value[key] for key in keys if value.get(key)), None)
            if inner is None:
                return []
            value = inner
        elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
            value = value[0]  # LangChain: a batch of one conversation
        else:
            break
    items = value if isinstance(value, list) else [value]
    return [message for item in items for message in _messages_of(item)]


def _messages_of(item: object) -> Iterator[Message]:
    if isinstance(item, str):
        yield said_by("user", item)
    elif isinstance(item, dict):
        yield from _of_object(_unwrapped(item))


def _of_object(item: dict[str, Any]) -> Iterator[Message]:
    role = role_of(item)
    content = item.get("content", item.get("parts"))
    if item.get("type") == "function_call" and (call := call_of(item)):
        yield Said((call,)).message()
    elif item.get("type") == "function_call_output":
        yield said_by_tool(item.get("output"), item.get("call_id"))
    elif role == "assistant":
        yield read_said(item).message()
    elif role == "tool" and not isinstance(item.get("parts"), list):
        yield said_by_tool(content, item.get("tool_call_id"))
    else:
        results = list(_results(content))
        yield from results
        parts = content if isinstance(content, list) else [content]
        texts = [part for part in parts if not _is_result(part)]
        if texts or not results:
            yield said_by(role, content if isinstance(content, str) else texts)


def _unwrapped(item: dict[str, Any]) -> dict[str, Any]:
    """Take a LangChain message out of what it is serialized in, or an event's message."""
    if isinstance(item.get("kwargs"), dict) and "lc" in item:
        names = item.get("id")
        last = str(names[-1]) if isinstance(names, list) and names else ""
        kind = last.removesuffix("Chunk").removesuffix("Message").lower()
        return {"type": kind, **item["kwargs"]}
    if isinstance(item.get("data"), dict) and isinstance(item.get("type"), str):
        return {**item["data"], "type": item["type"]}
    inner = item.get("message")
    return inner if isinstance(inner, dict) else item


def _is_result(part: object) -> bool:
    return isinstance(part, dict) and kind_of(part) in {"tool_result", "tool_call_response"}


def _results(parts: object) -> Iterator[Message]:
    for part in parts if isinstance(parts, list) else ():
        if _is_result(part):
            content = part.get("content", part.get("response", part.get("result")))
            yield said_by_tool(content, part.get("tool_use_id", part.get("id")))
