"""mini-swe-agent trajectories (``.traj.json``): one task a file, a list of chat messages.

Since version 2 the agent's messages and its commands' results carry the time at which each was
complete (``extra.timestamp``): ``gen_s`` runs from the result before a message to the message,
``tool_s`` from a message to its last result. The task's own messages have no time, so the first
step's start is not known and that step is left out. An answer without exactly one readable command
is not in the log at all; its time counts in the next step.

Older trajectories have no such times, and are refused: ``created`` inside a response is a whole
second of the provider's clock, which some take before and some after generating.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leapmodel.errors import DataError
from leapmodel.importers.conversation import Conversation, Usage
from leapmodel.importers.documents import MAX_DOCUMENT_BYTES
from leapmodel.importers.durations import required_moment
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.messages import (
    Call,
    action_of,
    calls_of,
    said_by,
    said_by_assistant,
    said_by_tool,
    text_of,
)
from leapmodel.importers.nested import parse
from leapmodel.importers.records import Importer, Sample, Step, TaskRun
from leapmodel.jsonlines import damage_named, encoding_of, open_binary

_SUFFIXES = (".traj", ".json")


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the one task of a trajectory.

    Parameters
    ----------
    path : Path
        One JSON object, or the list of its messages; the task is its ``instance_id``, else the
        file's name.
    ledger : Ledger
        Where dropped and remarkable things are noted.

    Yields
    ------
    TaskRun
    """
    document = _whole(path)
    place = Place(path)
    about: dict[str, Any] = {}
    if isinstance(document, list):
        messages = document
    else:
        about = place.mapping(document, "document")
        messages = place.items(about.get("messages"), "messages")
    task = about.get("instance_id") or path.name.split(".traj")[0].removesuffix(".json")
    with ledger.guard(str(task)):
        name = place.text(task, "instance_id")
        info = about.get("info")
        config = info.get("config") if isinstance(info, dict) else None
        model = config.get("model") if isinstance(config, dict) else None
        ledger.saw_model(model.get("model_name") if isinstance(model, dict) else None)
        steps = _steps(messages, place, Conversation(name, ledger))
        if steps:
            yield TaskRun(name, steps)
        else:
            ledger.count("files without a timed step of the agent", path.name)


def _whole(path: Path) -> Any:
    with open_binary(path) as stream, damage_named(path):
        raw = stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(raw) > MAX_DOCUMENT_BYTES:
        limit = MAX_DOCUMENT_BYTES // 2**20
        raise DataError(path, expected=f"a trajectory of at most {limit} MB", found="a larger one")
    if (other := encoding_of(raw)) is not None:
        raise DataError(path, expected="JSON", found=other)
    return parse(raw, path)


def _steps(messages: list[Any], place: Place, talk: Conversation) -> list[Step]:
    for number, item in enumerate(messages):
        at = f"messages[{number}]"
        message = place.mapping(item, at)
        extra = place.mapping(message.get("extra") or {}, f"{at}.extra")
        time = None
        if extra.get("timestamp") is not None:
            time = required_moment(extra["timestamp"], f"{at}.extra.timestamp", place, talk.ledger)
        if message.get("role") == "assistant" or message.get("object") == "response":
            _decide(message, extra, time, place, at, talk)
            continue
        role = place.text(message.get("role"), f"{at}.role")
        if extra.get("interrupt_type") == "FormatError":
            talk.ledger.count("unreadable answers, whose time counts in the next step", talk.task)
        if time is not None:
            talk.tools_ended(time)
        if talk.keeps and role != "exit":
            identity = message.get("tool_call_id")
            content = message.get("content")
            talk.hear(
                said_by(role, content) if identity is None else said_by_tool(content, identity)
            )
    return talk.steps


def _decide(
    message: dict[str, Any],
    extra: dict[str, Any],
    time: int | None,
    place: Place,
    at: str,
    talk: Conversation,
) -> None:
    if time is None:
        raise place.error(
            f"{at}.extra.timestamp",
            "the time of each message, as mini-swe-agent writes it since version 2",
            "none, so nothing tells how long a generation took"
            + (" ('created' is a whole second of the provider's clock)" if extra else ""),
        )
    calls = []
    given = place.items(extra.get("actions") or [], f"{at}.extra.actions")
    for number, item in enumerate(given):
        action = place.mapping(item, f"{at}.extra.actions[{number}]")
        command = place.text(action.get("command"), f"{at}.extra.actions[{number}].command")
        identity = action.get("tool_call_id")
        calls.append(
            Call("bash", {"command": command}, identity if isinstance(identity, str) else None)
        )
    said = None
    if talk.keeps:
        asked = calls_of(message.get("tool_calls"), place, f"{at}.tool_calls")
        content = message.get("content", message.get("output"))
        said = said_by_assistant(text_of(content), asked)
    gen_s = talk.gap(time, place, f"{at}.extra.timestamp")
    if gen_s is None:
        talk.pass_over(said, time)
        return
    talk.decide(
        action_of(calls) if calls else None,
        gen_s,
        ended=time,
        usage=_usage(extra, place, at),
        said=said,
    )


def _usage(extra: dict[str, Any], place: Place, at: str) -> Usage:
    response = extra.get("response")
    usage = response.get("usage") if isinstance(response, dict) else None
    if not isinstance(usage, dict):
        return Usage()

    def tokens(*names: str) -> int | None:
        for name in names:
            if usage.get(name) is not None:
                return place.count(usage[name], f"{at}.extra.response.usage.{name}")
        return None

    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        prompt=tokens("prompt_tokens", "input_tokens"),
        cached=None if cached is None else place.count(cached, f"{at}: cached_tokens"),
        completion=tokens("completion_tokens", "output_tokens"),
    )


def _recognises(sample: Sample) -> bool:
    if isinstance(sample.record, list):
        messages = [m for m in sample.record if isinstance(m, dict)]
        return bool(messages) and messages[0].get("role") == "system" and b"bash" in sample.head
    return b'"mini-swe-agent' in sample.head or sample.has_keys("mini_version", "model_stats")


MINI_SWE_AGENT = Importer(
    name="mini-swe-agent",
    description="mini-swe-agent trajectories (.traj.json, one task a file)",
    suffixes=_SUFFIXES,
    read_file=read_file,
    remarks=("the first step of each task is left out: the log has no time before it",),
    recognises=_recognises,
    has_messages=True,
)
