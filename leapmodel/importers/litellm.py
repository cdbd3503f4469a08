"""LiteLLM's logs: one call of a model a record, from the proxy's spend logs or a callback.

The standard logging payload (``startTime`` and ``endTime`` in seconds), rows of the spend logs
(ISO times) and what a custom callback is given (``start_time``, ``end_time``) are read. Calls of a
session are one task; without a session, calls of a trace are; a call with neither is its own.

``response_time`` is not used: for a streamed call it is the time to the first token.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leapmodel.importers.chat import decoded_json, read_said
from leapmodel.importers.documents import iter_documents
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.moments import moment
from leapmodel.importers.records import Importer, Sample, TaskRun
from leapmodel.importers.span import Span
from leapmodel.importers.spans import SpanLog, import_spans
from leapmodel.importers.told import read_messages

_SESSIONS = ("session_id", "litellm_session_id")
_TRACES = ("trace_id", "litellm_trace_id")
_NO_DECISIONS = (
    "embedding", "rerank", "moderation", "transcription", "speech", "image", "batch", "file",
    "vector",
)  # fmt: skip
_LISTS = ("data", "logs")


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the tasks of a file of logged calls, one a session or trace.

    Parameters
    ----------
    path : Path
        JSON or JSON Lines.
    ledger : Ledger
        Where dropped and remarkable things are noted.

    Yields
    ------
    TaskRun
    """

    def read(log: SpanLog) -> Iterator[str]:
        number = 0
        for place, record in iter_documents(path, ledger):
            name = next((key for key in _LISTS if isinstance(record.get(key), list)), None)
            for index, item in enumerate([record] if name is None else record[name]):
                at = "" if name is None else f"{name}[{index}]"
                number += 1
                with log.reading(None, place):
                    call = place.mapping(item, at)
                    _add(call, number, place, f"{at}." if at else "", log)
        yield from ()

    yield from import_spans(path, ledger, read)


def _add(record: dict[str, Any], number: int, place: Place, at: str, log: SpanLog) -> None:
    ledger = log.ledger
    payload = record.get("standard_logging_object")
    call = {**record, **payload} if isinstance(payload, dict) else record
    identity = next(
        (call[k] for k in ("id", "request_id", "litellm_call_id") if isinstance(call.get(k), str)),
        f"call {number}",
    )
    trace = _group(call)
    with log.reading(trace or identity, place):
        kind = call.get("call_type")
        if isinstance(kind, str) and any(word in kind.lower() for word in _NO_DECISIONS):
            ledger.count("embeddings, rerankings and other calls that are no steps", identity)
            return
        start = "startTime" if "startTime" in call else "start_time"
        end = "endTime" if "endTime" in call else "end_time"
        if start not in call:
            raise place.error(f"{at}startTime", "the time at which the call started", "nothing")
        if trace is None:
            ledger.count("calls without a session or trace, each a task of its own", identity)
        elif call.get("cache_hit") in (True, "True", "true"):
            ledger.count("answers from LiteLLM's cache left out", trace)
            return
        status = call.get("status") or _metadata(call).get("status")
        model = call.get("model")
        span = Span(
            place.text(trace or identity, f"{at}id"),
            f"{number}",  # a retried call may keep its id
            None,
            "generation",
            "",
            place,
            moment(call.get(start), place, at + start, ledger),
            moment(call.get(end), place, at + end, ledger),
            failed=status == "failure" or bool(call.get("exception")),
            streamed=call.get("stream") is True,
            model=model if isinstance(model, str) else None,
        )
        for name in ("prompt_tokens", "completion_tokens"):
            if call.get(name) is not None:
                setattr(span, name, place.count(call[name], at + name))
        span.said = read_said(_parsed(call.get("response", call.get("response_obj"))))
        if ledger.keep_messages:
            span.messages = read_messages(_parsed(call.get("messages", call.get("input"))))
        log.add(span)


def _group(call: dict[str, Any]) -> str | None:
    """Return the session of a call, or else its trace."""
    parameters = call.get("litellm_params")
    parameters = parameters if isinstance(parameters, dict) else {}
    inner = parameters.get("metadata")
    holders = [call, _metadata(call), parameters, inner if isinstance(inner, dict) else {}]
    for key in (*_SESSIONS, *_TRACES):
        for holder in holders:
            value = holder.get(key)
            if isinstance(value, str) and value.strip():
                return value
    return None


def _metadata(call: dict[str, Any]) -> dict[str, Any]:
    metadata = _parsed(call.get("metadata"))
    if not isinstance(metadata, dict):
        return {}
    asked = metadata.get("requester_metadata")
    return {**asked, **metadata} if isinstance(asked, dict) else metadata


def _parsed(value: object) -> Any:
    if isinstance(value, str):
        decoded = decoded_json(value)
        return value if decoded is None else decoded
    return value


def _recognises(sample: Sample) -> bool:
    is_timed = sample.has_keys("startTime", "endTime") or sample.has_keys("start_time", "end_time")
    names = ("call_type", "litellm_params", "litellm_call_id", "standard_logging_object")
    return is_timed and any(map(sample.has_keys, names))


LITELLM = Importer(
    name="litellm",
    description="LiteLLM's logs of calls: spend logs or standard payloads (JSON or JSON Lines)",
    suffixes=(".json", ".jsonl"),
    read_file=read_file,
    remarks=(
        "tool times are unknown (LiteLLM sees only the calls of the model): tool_s is 0",
        "retries inside LiteLLM count in gen_s",
    ),
    recognises=_recognises,
    has_messages=True,
)
