"""Read a span's attributes in the vocabularies that tracing libraries use.

OpenTelemetry's GenAI conventions (old and new), OpenInference, OpenLLMetry and Vercel's AI SDK, all
of which may come through the same exporter. MLflow's own attributes are read in its module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from leapmodel.importers.chat import NOTHING, Said, decoded_json, joined, read_said
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.messages import Call
from leapmodel.importers.records import Message
from leapmodel.importers.span import Kind, Span
from leapmodel.importers.told import read_messages

_KIND_KEYS = (
    "openinference.span.kind",
    "gen_ai.operation.name",
    "ai.operationId",
    "traceloop.span.kind",
    "llm.request.type",
    "langsmith.span.kind",
)
_KINDS: dict[str, Kind] = {
    "llm": "generation",
    "chat": "generation",
    "completion": "generation",
    "text_completion": "generation",
    "generate_content": "generation",
    "responses": "generation",
    "tool": "tool",
    "execute_tool": "tool",
    "ai.toolcall": "tool",
    "agent": "agent",
    "guardrail": "guard",
    "evaluator": "guard",
    "invoke_agent": "agent",
    "ai.generatetext": "agent",
    "ai.streamtext": "agent",
}
_NO_DECISIONS = {"embeddings", "embedding", "rerank", "reranker", "retriever"}
_SESSIONS = ("session.id", "gen_ai.conversation.id", "langfuse.session.id")
_TOOL_NAMES = (
    "gen_ai.tool.name", "tool.name", "tool_call.function.name", "ai.toolCall.name",
    "traceloop.entity.name",
)  # fmt: skip
_TOOL_ARGUMENTS = (
    "gen_ai.tool.call.arguments", "tool_call.function.arguments", "ai.toolCall.args",
    "input.value", "tool.parameters", "traceloop.entity.input", "gen_ai.tool.input",
)  # fmt: skip
_MODELS = (
    "gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "ai.response.model",
    "ai.model.id", "llm.response.model", "llm.request.model",
)  # fmt: skip
_TOKENS = {
    "prompt_tokens": (
        "gen_ai.usage.input_tokens", "llm.token_count.prompt", "gen_ai.usage.prompt_tokens",
        "ai.usage.promptTokens", "ai.usage.inputTokens",
    ),
    "cached_tokens": (
        "gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read",
        "gen_ai.usage.cache_read_input_tokens", "llm.usage.cache_read_input_tokens",
        "ai.usage.cachedInputTokens",
    ),
    "completion_tokens": (
        "gen_ai.usage.output_tokens", "llm.token_count.completion",
        "gen_ai.usage.completion_tokens", "ai.usage.completionTokens", "ai.usage.outputTokens",
    ),
}  # fmt: skip
_STREAMED = (
    "gen_ai.request.stream", "llm.is_streaming", "gen_ai.is_streaming",
    "gen_ai.request.is_stream", "gen_ai.response.streaming",
)  # fmt: skip
_OUTPUTS = ("gen_ai.output.messages", "llm.output_messages", "gen_ai.completion")
_INPUTS = ("gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt", "ai.prompt.messages")
_TEXTS = ("ai.response.text", "gen_ai.output.text", "output.value", "gen_ai.output")
_DEEPEST = 12


class Event(NamedTuple):
    """An event of a span, its attributes decoded."""

    name: str
    attributes: Mapping[str, Any]


def describe_span(
    span: Span,
    attributes: Mapping[str, Any],
    events: Iterable[Event],
    place: Place,
    at: str,
    ledger: Ledger,
) -> None:
    """Fill in a span from its attributes.

    Parameters
    ----------
    span : Span
        Its ids, name and times are known; its kind, output, tokens and so on are set here. A kind
        other than "other" stays.
    attributes : mapping
        By dotted name, or nested as Phoenix exports them.
    events : iterable of Event
        Where older conventions put the messages.
    place, at : Place, str
        Where the span stands, and what its fields' names begin with, for messages.
    ledger : Ledger
        Whether to keep the messages, and where to count.
    """
    found = _flat(attributes)
    if span.kind == "other":
        span.kind = _kind(span, found, ledger)
    session = _first(found, _SESSIONS)
    span.session = session if isinstance(session, str) and session.strip() else None
    if span.kind == "tool":
        name = _first(found, _TOOL_NAMES)
        span.name = name if isinstance(name, str) else span.name.removeprefix("execute_tool ")
        arguments = tool_arguments(_first(found, _TOOL_ARGUMENTS))
        if arguments is not None:
            span.said = Said((Call(span.name, arguments),))
    if span.kind != "generation":
        return
    model = _first(found, _MODELS)
    span.model = model if isinstance(model, str) else None
    for name, keys in _TOKENS.items():
        key = next((key for key in keys if found.get(key) is not None), None)
        if key is not None:
            setattr(span, name, place.count(found[key], f"{at}attributes.{key}"))
    span.streamed = any(found.get(key) in (True, "true", "True") for key in _STREAMED)
    span.failed = span.failed or "error.type" in found
    happened = [*events, *_events_in(found)]
    span.said = _said(found, happened)
    if ledger.keep_messages:
        span.messages = _messages(found, happened)


def tool_arguments(value: object) -> object:
    """Return a tool's logged input if it is the arguments of a call, else None.

    Examples
    --------
    >>> tool_arguments('{"q": 1}'), tool_arguments("free text")
    ({'q': 1}, None)
    """
    if isinstance(value, str):
        value = decoded_json(value)
    if not isinstance(value, dict):
        return None
    # LangChain's tracers put the arguments one level down.
    for key in ("inputs", "kwargs"):
        if isinstance(value.get(key), dict) and set(value) <= {"inputs", "kwargs", "args", "tags",
                                                               "metadata"}:  # fmt: skip
            return value[key]
    return value


def _kind(span: Span, found: Mapping[str, Any], ledger: Ledger) -> Kind:
    for key in _KIND_KEYS:
        value = found.get(key)
        if not isinstance(value, str):
            continue
        word = value.lower()
        if word.endswith((".dogenerate", ".dostream")):
            return "generation"
        if word in _NO_DECISIONS:
            ledger.count("embeddings, rerankings and retrievals (no steps)", span.trace)
            return "other"
        if word in _KINDS:
            return _KINDS[word]
    is_unnamed = "gen_ai.operation.name" not in found and "gen_ai.request.model" in found
    return "generation" if is_unnamed and "gen_ai.usage.output_tokens" in found else "other"


def _said(found: Mapping[str, Any], events: list[Event]) -> Said:
    finish = _finish(found)
    for key in _OUTPUTS:
        value = _subtree(found, key)
        if value is not None and (said := read_said(value)).is_known:
            return Said(said.calls, said.text, said.finish or finish)
    chosen = []
    for event in events:
        if event.name in {"gen_ai.choice", "gen_ai.content.completion", _DETAILS}:
            chosen.append(_of_event(event))
    said = joined(chosen)
    if said.is_known:
        return Said(said.calls, said.text, said.finish or finish)
    calls = read_said(found.get("ai.response.toolCalls")).calls
    text = _first(found, _TEXTS)
    spoken = read_said(text) if text is not None else NOTHING
    return Said(calls or spoken.calls, spoken.text, spoken.finish or finish)


_DETAILS = "gen_ai.client.inference.operation.details"


def _of_event(event: Event) -> Said:
    for key in ("gen_ai.output.messages", "gen_ai.completion", "message"):
        value = _subtree(event.attributes, key)
        if value is not None:
            said = read_said(value)
            finish = event.attributes.get("finish_reason")
            return Said(said.calls, said.text, finish if isinstance(finish, str) else said.finish)
    return read_said(dict(event.attributes))


def _finish(found: Mapping[str, Any]) -> str | None:
    for key in ("gen_ai.response.finish_reasons", "ai.response.finishReason"):
        value = found.get(key)
        if isinstance(value, str):
            value = decoded_json(value) or value
        if isinstance(value, (list, tuple)) and value:
            value = value[0]
        if isinstance(value, str):
            return value.lower()
    return None


def _messages(found: Mapping[str, Any], events: list[Event]) -> list[Message]:
    system = read_said(found.get("gen_ai.system_instructions")).text
    start: list[Message] = [{"role": "system", "content": system}] if system else []
    for key in _INPUTS:
        value = _subtree(found, key)
        if value is not None and (messages := read_messages(value)):
            return start + messages
    told = []
    for event in events:
        if event.name == "gen_ai.content.prompt" or event.name == _DETAILS:
            value = event.attributes.get("gen_ai.prompt") or event.attributes.get(_INPUTS[0])
            told += read_messages(value)
        elif event.name.startswith("gen_ai.") and event.name.endswith(".message"):
            told += read_messages([{"role": event.name.split(".")[1], **event.attributes}])
    return start + (told or read_messages(found.get("input.value")))


def _events_in(found: Mapping[str, Any]) -> list[Event]:
    """Return the events that pydantic-ai writes into an attribute."""
    items = found.get("events")
    if isinstance(items, str):
        items = decoded_json(items)
    result = []
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(item.get("event.name"), str):
            result.append(Event(item["event.name"], item))
    return result


def _first(found: Mapping[str, Any], keys: Iterable[str]) -> Any:
    for key in keys:
        value = found.get(key)
        if value is not None and value != "":
            return value
    return None


def _flat(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return attributes by dotted name, as they are written without nesting."""
    nested = [k for k, v in attributes.items() if "." not in k and isinstance(v, (dict, list))]
    if not nested:
        return attributes
    flat: dict[str, Any] = {k: v for k, v in attributes.items() if k not in nested}

    def walk(name: str, value: Any, depth: int) -> None:
        if isinstance(value, dict) and value and depth < _DEEPEST:
            for key, item in value.items():
                walk(f"{name}.{key}", item, depth + 1)
        flat[name] = value  # whole lists and objects stay readable by their own name too

    for key in nested:
        walk(key, attributes[key], 0)
    return flat


def _subtree(found: Mapping[str, Any], name: str) -> Any:
    """Return an attribute, put together again if it was flattened ("name.0.message.role")."""
    if found.get(name) is not None:
        return _unwrapped(found[name])
    prefix = name + "."
    tree: dict[str, Any] = {}
    for key, value in found.items():
        if not key.startswith(prefix):
            continue
        at = tree
        *path, last = key[len(prefix) :].split(".")
        for part in path[:_DEEPEST]:
            inner = at.get(part)
            if not isinstance(inner, dict):
                inner = at[part] = {}
            at = inner
        at.setdefault(last, value)
    return _unwrapped(_lists(tree)) if tree else None


def _lists(tree: Any) -> Any:
    """Turn objects whose keys are all numbers into lists."""
    if not isinstance(tree, dict):
        return tree
    if tree and all(key.isdecimal() and len(key) < 9 for key in tree):
        return [_lists(tree[key]) for key in sorted(tree, key=int)]
    return {key: _lists(value) for key, value in tree.items()}


def _unwrapped(value: Any) -> Any:
    """Take OpenInference's messages, calls and contents out of the objects that name them."""
    if isinstance(value, list):
        return [_unwrapped(item) for item in value]
    if isinstance(value, dict):
        if any("." in key for key in value):  # Phoenix's data frames flatten each item by itself
            return _subtree({f"item.{key}": item for key, item in value.items()}, "item")
        for key in ("message", "tool_call", "message_content"):
            if set(value) == {key}:
                return _unwrapped(value[key])
        return {key: _unwrapped(item) for key, item in value.items()}
    return value
