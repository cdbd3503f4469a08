"""Codex CLI rollouts: one session a file, one record a line.

A step is one response of the model: its records (reasoning, text, calls) stand together and end
with the count of its tokens, a call's result, or the next user message. Each record has the time
at which it was complete, so

- ``gen_s`` runs from the latest record before the response (a result, the user's message, or the
  turn's settings, which Codex writes as it sends the request) to the response's last record;
- ``tool_s`` runs from there to the last of its results.

Text before calls is commentary, not a reply. Searches that the provider runs inside the
generation are no calls of the agent. A rollout of a sub-agent is a file of its own and left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leapmodel.importers.conversation import Conversation, Usage
from leapmodel.importers.durations import required_moment
from leapmodel.importers.fields import Place, stem_of
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.messages import (
    Call,
    action_of,
    said_by,
    said_by_assistant,
    said_by_tool,
    text_of,
    text_or_none,
)
from leapmodel.importers.records import Importer, Sample, TaskRun
from leapmodel.jsonlines import iter_json_lines

_RECORDS = {"session_meta", "turn_context", "response_item", "event_msg", "compacted"}
_OUTPUTS = {"function_call_output", "custom_tool_call_output", "tool_search_output"}
_CALLS = {"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"}
_INSIDE_GENERATION = {"reasoning", "web_search_call", "image_generation_call"}


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the one task of a rollout, or none if the agent took no step in it.

    Parameters
    ----------
    path : Path
        JSON Lines; the task's name is the file's, without its suffix.
    ledger : Ledger
        Where dropped and remarkable things are noted.

    Yields
    ------
    TaskRun
    """
    with ledger.guard(stem_of(path)):
        Place(path).text(stem_of(path), "file name")
        rollout = _Rollout(stem_of(path), ledger)
        for line, record in iter_json_lines(path):
            if not rollout.read(record, Place(path, line)):
                ledger.count("rollouts of sub-agents left out", path.name)
                return
        steps = rollout.finish()
        if steps:
            yield TaskRun(stem_of(path), steps)
        else:
            ledger.count("files without a step of the agent", path.name)


@dataclass
class _Response:
    """A response while its records come in."""

    place: Place
    ended: int
    gen_s: float | None
    text: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    said_anything: bool = False
    usage: Usage = field(default_factory=Usage)


class _Rollout:
    """Walk the records of one rollout."""

    def __init__(self, task: str, ledger: Ledger) -> None:
        self.task = task
        self.ledger = ledger
        self.talk = Conversation(task, ledger)
        self._response: _Response | None = None
        self._complete = False
        self._total_tokens: object = None

    def read(self, record: dict[str, Any], place: Place) -> bool:
        """Take in one record; False if it says that the whole rollout is a sub-agent's."""
        kind = place.text(record.get("type"), "type")
        if kind not in _RECORDS:
            # Before autumn 2025 a line was the bare item, without a time.
            if "payload" not in record and "timestamp" not in record:
                raise place.error("timestamp", "the time of the record", "nothing")
            return True
        payload = place.mapping(record.get("payload"), "payload")
        time = required_moment(record.get("timestamp"), "timestamp", place, self.ledger)
        if kind == "session_meta":
            source = payload.get("source")
            if isinstance(source, dict) and ("subagent" in source or "sub_agent" in source):
                return False
            instructions = payload.get("base_instructions", payload.get("instructions"))
            if isinstance(instructions, dict):
                instructions = instructions.get("text")
            if isinstance(instructions, str) and not self.talk.steps:
                self.talk.hear(said_by("system", instructions))
        elif kind == "turn_context":
            self._close()
            self.ledger.saw_model(payload.get("model"))
            self.talk.hear(at=time)
        elif kind == "compacted":
            self._close()
            self.ledger.count("compactions (later contexts hold the history before it)", self.task)
        elif kind == "event_msg":
            self._read_event(payload, place)
        else:
            self._read_item(payload, time, place)
        return True

    def finish(self) -> list[Any]:
        """Close the last response and return the steps."""
        self._close()
        return self.talk.steps

    def _read_event(self, payload: dict[str, Any], place: Place) -> None:
        kind = payload.get("type")
        if kind == "user_message":
            self._close()
            self.talk.end_turn()
        elif kind == "turn_aborted":
            if self._response is not None and not self._response.calls:
                # Neither its time nor its decision is complete.
                self.ledger.count("responses interrupted by the user left out", self.task)
                self._response = None
            self._close()
            self.talk.end_turn()
        elif kind == "stream_error":
            self.ledger.count("failed requests whose retries count in gen_s", self.task)
        elif kind == "token_count" and payload.get("info") is not None:
            info = place.mapping(payload["info"], "payload.info")
            # The count is repeated, unchanged, when only the rate limits are new.
            if info.get("total_token_usage") != self._total_tokens:
                self._total_tokens = info.get("total_token_usage")
                if self._response is not None:
                    self._response.usage = _usage(info.get("last_token_usage"), place)
                    self._complete = True

    def _read_item(self, item: dict[str, Any], time: int, place: Place) -> None:
        kind = place.text(item.get("type"), "payload.type")
        if kind in _OUTPUTS:
            self._close()
            self.talk.tools_ended(time)
            if self.talk.keeps:
                output = item.get("output", item.get("tools"))
                self.talk.hear(said_by_tool(output, item.get("call_id")))
        elif kind == "message" and item.get("role") != "assistant":
            self._close()
            role = place.text(item.get("role"), "payload.role")
            message = said_by("user" if role == "user" else "system", item.get("content"))
            # What Codex itself puts in under the user's name (settings, instructions) is tagged.
            if role == "user" and not message["content"].lstrip().startswith("<"):
                self.talk.end_turn()
            self.talk.hear(message, time)
        elif kind == "message" or kind in _CALLS or kind in _INSIDE_GENERATION:
            response = self._open(time, place)
            if kind == "message":
                response.said_anything = True
                if self.talk.keeps:
                    response.text.append(text_of(item.get("content")))
            elif kind in _CALLS:
                response.calls.append(_call(kind, item, place))
            elif kind != "reasoning":
                self.ledger.count("searches the provider ran inside the generation", self.task)

    def _open(self, time: int, place: Place) -> _Response:
        if self._complete:
            self._close()
        if self._response is None:
            self._response = _Response(place, time, None)
        response = self._response
        response.ended = max(response.ended, time)
        response.place = place
        return response

    def _close(self) -> None:
        """Turn the open response into a step."""
        response, self._response = self._response, None
        self._complete = False
        if response is None:
            return
        if not response.calls and not response.said_anything:
            self.ledger.count("responses that only reasoned left out", self.task)
            self.talk.hear(at=response.ended)
            return
        said = None
        if self.talk.keeps:
            said = said_by_assistant("\n".join(response.text), response.calls)
        gen_s = self.talk.gap(response.ended, response.place, "timestamp")
        if gen_s is None:
            self.talk.pass_over(said, response.ended)
            return
        self.talk.decide(
            action_of(response.calls),
            gen_s,
            ended=response.ended,
            usage=response.usage,
            said=said,
        )


def _call(kind: str, item: dict[str, Any], place: Place) -> Call:
    identity = text_or_none(item.get("call_id"))
    if kind == "local_shell_call":
        return Call("local_shell", item.get("action"), identity)
    if kind == "tool_search_call":
        return Call("tool_search", item.get("arguments"), identity)
    name = place.text(item.get("name"), "payload.name")
    if kind == "custom_tool_call":  # its input is free text, not JSON
        return Call(name, {"input": item.get("input")}, identity)
    return Call(name, item.get("arguments"), identity)


def _usage(value: object, place: Place) -> Usage:
    if value is None:
        return Usage()
    given = place.mapping(value, "payload.info.last_token_usage")

    def tokens(name: str) -> int | None:
        found = given.get(name)
        return (
            None if found is None else place.count(found, f"payload.info.last_token_usage.{name}")
        )

    return Usage(tokens("input_tokens"), tokens("cached_input_tokens"), tokens("output_tokens"))


def _recognises(sample: Sample) -> bool:
    record = sample.record
    return (
        isinstance(record, dict) and record.get("type") in tuple(_RECORDS) and "payload" in record
    )


CODEX = Importer(
    name="codex",
    description="Codex CLI rollouts (JSON Lines, one session a file)",
    suffixes=(".jsonl",),
    read_file=read_file,
    remarks=("tool times include any wait for a person to permit a call",),
    recognises=_recognises,
    has_messages=True,
)
