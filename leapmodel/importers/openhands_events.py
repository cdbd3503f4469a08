"""Tell what an event in an OpenHands history is, in either generation of the format."""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple, TypeAlias

from leapmodel.importers.fields import Place
from leapmodel.importers.messages import Call, calls_of, text_or_none

Kind: TypeAlias = Literal["decision", "result", "user", "system", "aside"]

_COMMENTS = {"security_risk", "summary"}
_ASIDES_OF_ARGUMENTS = {
    "thought", "blocking", "confirmation_state", "hidden", "is_input", "is_static", "keep_prompt",
    "security_risk", "impl_source", "wait_for_response", "image_urls", "file_urls",
}  # fmt: skip
_DECISIONS = {
    "run", "run_ipython", "browse", "browse_interactive", "read", "write", "edit", "message",
    "finish", "think", "delegate", "reject", "call_tool_mcp", "mcp", "task_tracking",
}  # fmt: skip
_ASIDE_RESULTS = {"null", "agent_state_changed", "recall", "condense", "error_null"}


class Event(NamedTuple):
    """One event.

    Attributes
    ----------
    kind : {"decision", "result", "user", "system", "aside"}
        An aside is of no weight for the conversation.
    content : object
        Its text.
    calls : tuple of Call
        Of a decision; empty for a reply.
    is_whole : bool
        Whether ``calls`` are all the calls of the response, not only this event's.
    response_id : str or None
        The model's response that a decision came from.
    call_id : str or None
        The call that a result answers.
    """

    kind: Kind
    content: object = None
    calls: tuple[Call, ...] = ()
    is_whole: bool = False
    response_id: str | None = None
    call_id: str | None = None


ASIDE = Event("aside")


def read_event(given: dict[str, Any], place: Place, at: str) -> Event:
    """Return what an event is.

    Raises
    ------
    DataError
        If it is a call without a name.
    """
    kind = text_or_none(given.get("kind"))
    if kind is not None:
        return _of_sdk(kind, given, place, at)
    return _of_version_0(given, place, at)


def _of_sdk(kind: str, given: dict[str, Any], place: Place, at: str) -> Event:
    source = given.get("source")
    if kind == "ActionEvent":
        called = place.mapping(given.get("tool_call") or {}, f"{at}.tool_call")
        name = place.text(given.get("tool_name", called.get("name")), f"{at}.tool_name")
        arguments = called.get("arguments")
        if arguments is None and isinstance(given.get("action"), dict):
            arguments = {k: v for k, v in given["action"].items() if k != "kind"}
        identity = text_or_none(given.get("tool_call_id"))
        return Event(
            "decision",
            given.get("thought"),
            (Call(name, _without(arguments, _COMMENTS), identity),),
            response_id=text_or_none(given.get("llm_response_id")),
        )
    if kind in {"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"}:
        seen = given.get("observation", given.get("error", given.get("rejection_reason")))
        if isinstance(seen, dict):
            seen = seen.get("content", seen)
        return Event("result", seen, call_id=text_or_none(given.get("tool_call_id")))
    if kind == "MessageEvent":
        message = place.mapping(given.get("llm_message"), f"{at}.llm_message")
        content = message.get("content")
        if source == "agent":
            return Event(
                "decision", content, response_id=text_or_none(given.get("llm_response_id"))
            )
        return Event("user", content)
    if kind == "SystemPromptEvent":
        prompt = given.get("system_prompt")
        return Event("system", prompt.get("text") if isinstance(prompt, dict) else prompt)
    return ASIDE


def _of_version_0(given: dict[str, Any], place: Place, at: str) -> Event:
    action = text_or_none(given.get("action"))
    observation = text_or_none(given.get("observation"))
    called = given.get("tool_call_metadata")
    called = called if isinstance(called, dict) else {}
    args = given.get("args")
    args = args if isinstance(args, dict) else {}
    if observation is not None:
        if observation in _ASIDE_RESULTS:
            return ASIDE
        call_id = text_or_none(called.get("tool_call_id"))
        return Event("result", given.get("content"), call_id=call_id)
    if action == "system":
        return Event("system", args.get("content", given.get("message")))
    if action == "message" and given.get("source") == "user":
        return Event("user", args.get("content", given.get("message")))
    if given.get("source") != "agent" or action not in _DECISIONS:
        return ASIDE
    response = called.get("model_response")
    if isinstance(response, dict):
        return _of_response(response, place, f"{at}.tool_call_metadata.model_response")
    if action == "message":
        return Event("decision", args.get("content", given.get("message")))
    return Event(
        "decision",
        args.get("thought"),
        (Call(action, _without(args, _ASIDES_OF_ARGUMENTS)),),
    )


def _of_response(response: dict[str, Any], place: Place, at: str) -> Event:
    choices = place.items(response.get("choices"), f"{at}.choices")
    choice = place.mapping(choices[0] if choices else None, f"{at}.choices[0]")
    message = place.mapping(choice.get("message"), f"{at}.choices[0].message")
    calls = calls_of(message.get("tool_calls"), place, f"{at}.choices[0].message.tool_calls")
    return Event(
        "decision",
        message.get("content"),
        tuple(call._replace(arguments=_without(call.arguments, _COMMENTS)) for call in calls),
        is_whole=True,
        response_id=text_or_none(response.get("id")),
    )


def _without(arguments: object, names: set[str]) -> object:
    """Leave arguments out, if the others can be read."""
    if isinstance(arguments, str) and any(f'"{name}"' in arguments for name in names):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return arguments
    if isinstance(arguments, dict):
        return {key: value for key, value in arguments.items() if key not in names}
    return arguments
