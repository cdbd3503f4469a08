"""Traces of the OpenAI Agents SDK, as its trace processors export them: one span a record.

Records are traces (``trace``) and spans (``trace.span``), one a line, in an array, or in a list
``data`` (a batch). A ``generation`` span holds what was said; a ``response`` span of the SDK's own
export holds only the response's id, so its action is read from the functions that ran and the
handoff that followed. The SDK's loop goes on until the model replies: a generation after which
nothing runs was a reply.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leapmodel.importers.chat import Said, read_said
from leapmodel.importers.documents import iter_documents
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.messages import Call
from leapmodel.importers.moments import moment
from leapmodel.importers.records import Importer, Sample, TaskRun
from leapmodel.importers.span import Kind, Span
from leapmodel.importers.span_attributes import tool_arguments
from leapmodel.importers.spans import SpanLog, import_spans
from leapmodel.importers.told import read_messages

_KINDS: dict[str, Kind] = {
    "generation": "generation",
    "response": "generation",
    "function": "tool",
    "handoff": "tool",  # to the model it is a call like any other
    "agent": "agent",
    "guardrail": "guard",
}
_LISTS = ("data", "spans", "items")


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the tasks of an export, one a trace or group of traces.

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
        groups: dict[str, str] = {}
        for place, record in iter_documents(path, ledger):
            with log.reading(None, place):
                for at, item in _records(record, place):
                    if item.get("object") == "trace" or "span_data" not in item:
                        _note_group(item, groups)
                    else:
                        _add(item, groups, place, at, log)
        yield from ()

    yield from import_spans(path, ledger, read, silence_is_reply=True)


def _records(record: dict[str, Any], place: Place) -> Iterator[tuple[str, dict[str, Any]]]:
    name = next((key for key in _LISTS if isinstance(record.get(key), list)), None)
    if name is None or "span_data" in record:
        yield "", record
        return
    trace = record.get("trace", record)
    if isinstance(trace, dict):
        yield "", {**trace, "object": "trace"}
    for number, item in enumerate(record[name]):
        at = f"{name}[{number}]"
        yield f"{at}.", place.mapping(item, at)


def _note_group(item: dict[str, Any], groups: dict[str, str]) -> None:
    trace, group = item.get("id", item.get("trace_id")), item.get("group_id")
    if isinstance(trace, str) and isinstance(group, str) and group.strip():
        groups[trace] = group


def _add(item: dict[str, Any], groups: dict[str, str], place: Place, at: str, log: SpanLog) -> None:
    trace = item.get("trace_id")
    with log.reading(trace, place):
        data = place.mapping(item.get("span_data"), f"{at}span_data")
        kind = _KINDS.get(place.text(data.get("type"), f"{at}span_data.type"), "other")
        parent = item.get("parent_id")
        name = data.get("name")
        span = Span(
            place.text(trace, f"{at}trace_id"),
            place.text(item.get("id", item.get("span_id")), f"{at}id"),
            None if not parent else place.text(parent, f"{at}parent_id"),
            kind,
            name if isinstance(name, str) else "",
            place,
            moment(item.get("started_at"), place, f"{at}started_at", log.ledger),
            moment(item.get("ended_at"), place, f"{at}ended_at", log.ledger),
            failed=bool(item.get("error")),
        )
        span.session = groups.get(span.trace)
        _describe(span, data, place, f"{at}span_data.", log.ledger)
        log.add(span)


def _describe(span: Span, data: dict[str, Any], place: Place, at: str, ledger: Ledger) -> None:
    if data.get("type") == "handoff":
        to = data.get("to_agent")
        if isinstance(to, str) and to.strip():  # the name that the SDK gives the handoff's tool
            span.name = "transfer_to_" + "_".join(to.lower().split())
            span.said = Said((Call(span.name, {}),))
    elif span.kind == "tool":
        arguments = tool_arguments(data.get("input") or "{}")
        if arguments is not None:
            span.said = Said((Call(span.name, arguments),))
    if span.kind != "generation":
        return
    response = data.get("response")
    response = response if isinstance(response, dict) else {}
    span.said = read_said(data.get("output") or response)
    model = data.get("model") or response.get("model")
    span.model = model if isinstance(model, str) else None
    if ledger.keep_messages:
        span.messages = read_messages(data.get("input"))
    usage, where = data.get("usage"), f"{at}usage."
    if not isinstance(usage, dict):
        usage, where = response.get("usage"), f"{at}response.usage."
    if not isinstance(usage, dict):
        return
    for attribute, names in (
        ("prompt_tokens", ("input_tokens", "prompt_tokens")),
        ("completion_tokens", ("output_tokens", "completion_tokens")),
    ):
        key = next((name for name in names if usage.get(name) is not None), None)
        if key is not None:
            setattr(span, attribute, place.count(usage[key], where + key))
    details = usage.get("input_tokens_details")
    if isinstance(details, dict) and details.get("cached_tokens") is not None:
        name = f"{where}input_tokens_details.cached_tokens"
        span.cached_tokens = place.count(details["cached_tokens"], name)


def _recognises(sample: Sample) -> bool:
    return sample.has_keys("span_data", "started_at") or (
        b'"trace.span"' in sample.head and sample.has_keys("span_data")
    )


OPENAI_AGENTS = Importer(
    name="openai-agents",
    description="OpenAI Agents SDK traces as exported by its trace processors (JSON or JSON Lines)",
    suffixes=(".json", ".jsonl"),
    read_file=read_file,
    remarks=(
        "retries inside a client's call count in gen_s; time between spans that no function span "
        "covers is not counted",
    ),
    recognises=_recognises,
    has_messages=True,
)
