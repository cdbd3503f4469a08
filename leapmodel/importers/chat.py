"""Read what a model said in whichever shape a vendor writes it.

Known shapes: OpenAI chat completions and responses, Anthropic and Bedrock content blocks, Gemini
parts, LangChain messages and results, the messages of OpenTelemetry's GenAI conventions,
OpenInference's, Vercel's AI SDK, and any of these as JSON text. What fits none of them is text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from leapmodel.importers.messages import Call, action_of, said_by_assistant, text_or_none
from leapmodel.importers.records import Message

_DEEPEST = 12
_OPENING = frozenset("{[")
_DECODER = json.JSONDecoder()
_TOOL_ENDS = {"tool_calls", "tool_call", "tool_use", "function_call", "tool-calls"}
_REPLY_ENDS = {"stop", "end_turn", "stop_sequence", "completed"}
_ROLES = {
    "human": "user",
    "ai": "assistant",
    "aimessagechunk": "assistant",
    "model": "assistant",
    "developer": "system",
    "function": "tool",
}
# Where a vendor puts the message inside its answer, outermost first.
_WRAPPERS = (
    "choices", "generations", "candidates", "output", "outputs", "response", "message", "messages",
    "kwargs", "data", "delta",
)  # fmt: skip
_WRAPPER_SET = frozenset(_WRAPPERS)
_CONTENT_KEYS = ("content", "parts", "contents", "text")
_MESSAGE_KEYS = {*_CONTENT_KEYS, "role", "tool_calls", "toolCalls", "function_call"}
_CLIENT_CALLS = {"computer_call", "local_shell_call", "shell_call", "apply_patch_call"}
_EMPTY = {"id", "object", "created", "model", "usage", "finish_reason", "index"}
NO_OUTPUT = {"", "None", "null", "{}", "[]"}


class Said(NamedTuple):
    """What one generation said.

    Attributes
    ----------
    calls : tuple of Call
        In their order.
    text : str or None
        None if there is none; "" if there is some but it is not kept.
    finish : str or None
        Why the generation ended, in the vendor's word.
    """

    calls: tuple[Call, ...] = ()
    text: str | None = None
    finish: str | None = None

    @property
    def is_reply(self) -> bool:
        """Whether it is text for the user, or ended as one does though its text is not logged."""
        if self.calls or self.finish in _TOOL_ENDS:
            return False
        return self.text is not None or self.finish in _REPLY_ENDS

    @property
    def is_known(self) -> bool:
        """Whether the log says anything about the decision."""
        return bool(self.calls) or self.is_reply

    def action(self) -> str | None:
        """Return the canonical action, or None if a call is not well formed or nothing is known."""
        return action_of(self.calls) if self.is_known else None

    def message(self) -> Message:
        """Return it as an assistant message of the OpenAI chat format."""
        return said_by_assistant(self.text, self.calls)


NOTHING = Said()


def read_said(value: object, depth: int = 0) -> Said:
    """Return what a generation's logged output says.

    Parameters
    ----------
    value : object
        The output, decoded or as JSON text.

    Examples
    --------
    >>> read_said({"choices": [{"message": {"content": "Hi."}}]}).text
    'Hi.'
    >>> said = read_said([{"type": "tool_use", "id": "c1", "name": "ls", "input": {}}])
    >>> said.action(), said.is_reply
    ('ls({})', False)
    """
    if depth > _DEEPEST:
        return NOTHING
    if isinstance(value, str):
        decoded = decoded_json(value)
        if decoded is not None and _is_shaped(decoded):
            return read_said(decoded, depth + 1)
        return NOTHING if value.strip() in NO_OUTPUT else Said(text=value)
    if isinstance(value, list):
        return _of_list(value, depth)
    if isinstance(value, dict):
        return _of_object(value, depth)
    return NOTHING


def kind_of(value: dict[str, Any]) -> str:
    """Return what an item calls itself, "" if nothing."""
    return text_or_none(value.get("type")) or ""


def decoded_json(text: str) -> Any:
    """Return the object or list that a text spells as JSON, or None."""
    if text[:1] not in _OPENING and text.lstrip()[:1] not in _OPENING:
        return None
    try:
        value, end = _DECODER.raw_decode(text)
        if end == len(text):
            return value
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(text)  # with blanks around it, if it is JSON at all
    except (ValueError, RecursionError):
        return None


def call_of(item: object) -> Call | None:
    """Return a tool call of any vendor's shape, or None if it is none."""
    if isinstance(item, str):
        item = decoded_json(item)
    if not isinstance(item, dict):
        return None
    for key in ("tool_call", "function_call", "functionCall", "toolUse"):
        if isinstance(item.get(key), dict):
            item = {**item, **item[key]}
    function = item.get("function")
    if isinstance(function, dict):
        item = {**item, **function}
    name = item.get("name") or item.get("toolName")
    if not isinstance(name, str) or not name.strip():
        return None
    keys = ("arguments", "args", "input", "parameters")
    arguments = next((item[key] for key in keys if item.get(key) is not None), None)
    if item.get("type") == "custom_tool_call":  # its input is free text
        arguments = {"input": arguments}
    names = ("id", "call_id", "tool_call_id", "toolCallId", "toolUseId")
    ids = [item[key] for key in names if isinstance(item.get(key), str)]
    # A response's item has an id of its own beside that of the call.
    identity = item["call_id"] if isinstance(item.get("call_id"), str) else next(iter(ids), None)
    return Call(name, arguments, identity)


def joined(parts: Sequence[Said]) -> Said:
    """Return several pieces of one message as one."""
    if len(parts) == 1:
        return parts[0]
    texts = [part.text for part in parts if part.text is not None]
    finishes = [part.finish for part in parts if part.finish is not None]
    calls = tuple(call for part in parts for call in part.calls)
    text = "\n".join(texts) if texts else None
    return Said(calls, text, finishes[-1] if finishes else None)


def _of_list(items: list[Any], depth: int) -> Said:
    if any(is_message(item) and role_of(item) != "assistant" for item in items):
        # A conversation: what was said last is the assistant's messages at its end.
        tail: list[Any] = []
        for item in reversed(items):
            if not is_message(item) or role_of(item) != "assistant":
                break
            tail.insert(0, item)
        items = tail
    return joined([read_said(item, depth + 1) for item in items])


def _of_object(value: dict[str, Any], depth: int) -> Said:
    kind = kind_of(value)
    finish = _finish(value)
    if kind in {"reasoning", "thinking", "redacted_thinking", "tool_result", "tool_call_response"}:
        return NOTHING
    if kind == "message" or is_message(value):
        return _of_message(value, finish, depth)
    if kind in _CLIENT_CALLS:
        arguments = value.get("action", value.get("operation"))
        return Said((Call(kind, arguments, text_or_none(value.get("call_id"))),), finish=finish)
    if _looks_like_call(value) and (call := call_of(value)) is not None:
        return Said((call,), finish=finish)
    text = value.get("text", value.get("content"))
    if isinstance(text, str) and _WRAPPER_SET.isdisjoint(value):
        return Said(text=text or None, finish=finish)
    for key in _WRAPPERS:
        inner = value.get(key)
        if inner in (None, "", [], {}):
            continue
        if key == "generations" and isinstance(inner, list):  # the first of a batch's candidates
            inner = inner[0][:1] if inner and isinstance(inner[0], list) else inner[:1]
        if key in {"choices", "candidates"} and isinstance(inner, list):
            inner = inner[:1]
        said = read_said(inner, depth + 1)
        return Said(said.calls, said.text, said.finish or finish)
    # An empty answer, or a part that is neither text nor a call the client runs.
    if not _WRAPPER_SET.isdisjoint(value) or kind or set(value) <= _EMPTY:
        return Said(finish=finish)
    return Said(text=json.dumps(value, default=str), finish=finish)


def _of_message(value: dict[str, Any], finish: str | None, depth: int) -> Said:
    parts: list[Said] = []
    content = next((value[key] for key in _CONTENT_KEYS if value.get(key) is not None), None)
    if isinstance(content, str):
        decoded = decoded_json(content) if finish in _TOOL_ENDS else None
        if decoded is not None:  # Koog writes the calls into the text
            parts.append(read_said(decoded, depth + 1))
        elif content.strip():
            parts.append(Said(text=content))
    elif isinstance(content, (list, dict)):
        parts.append(read_said(content, depth + 1))
    if not any(part.calls for part in parts):
        parts.append(Said(tuple(_calls_beside(value))))
    whole = joined(parts)
    return Said(whole.calls, whole.text, finish or whole.finish)


def _calls_beside(value: dict[str, Any]) -> Iterator[Call]:
    extra = value.get("additional_kwargs")
    for holder in (value, extra if isinstance(extra, dict) else {}):
        items = holder.get("tool_calls") or holder.get("toolCalls")
        if isinstance(items, str):
            items = decoded_json(items)
        items = items if isinstance(items, list) else []
        calls = [call for item in items if (call := call_of(item))]
        if not calls and (call := call_of(holder.get("function_call"))):
            calls = [call]
        if calls:
            yield from calls
            return


def _is_shaped(value: object) -> bool:
    """Whether decoded JSON is a vendor's shape; an answer that is JSON itself stays text."""
    if isinstance(value, list):
        return any(_is_shaped(item) for item in value)
    if not isinstance(value, dict):
        return False
    return is_message(value) or _looks_like_call(value) or not _WRAPPER_SET.isdisjoint(value)


def is_message(value: object) -> bool:
    """Return whether this is a chat message of any vendor's shape."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("role"), str) or kind_of(value) in {"ai", "human", "system", "tool"}:
        return not _MESSAGE_KEYS.isdisjoint(value)
    if "tool_calls" in value or "toolCalls" in value:
        return True
    return ("content" in value or "parts" in value) and "type" not in value


def _looks_like_call(value: dict[str, Any]) -> bool:
    kind = kind_of(value)
    if kind in {"tool_use", "tool_call", "function_call", "custom_tool_call", "tool-call"}:
        return True
    if any(
        isinstance(value.get(key), dict) for key in ("function_call", "functionCall", "toolUse")
    ):
        return True
    function = value.get("function")
    return (isinstance(function, dict) and "name" in function) or "toolName" in value


def role_of(value: dict[str, Any]) -> str:
    """Return the role of a message in OpenAI's words; "assistant" if it has none."""
    role = value.get("role")
    role = role if isinstance(role, str) else value.get("type")
    role = role.lower() if isinstance(role, str) else "assistant"
    return _ROLES.get(role, role)


def _finish(value: dict[str, Any]) -> str | None:
    for key in ("finish_reason", "stop_reason", "finishReason", "stopReason"):
        if isinstance(value.get(key), str):
            return value[key].lower()
    return None
