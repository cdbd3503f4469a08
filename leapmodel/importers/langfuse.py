"""Langfuse exports: traces with their observations, or observations one a record.

A record is what the page of a trace downloads (``trace`` and ``observations``), what the API
returns (a trace with ``observations`` inside), or one observation. Inputs, outputs and metadata
come as objects or as JSON text. Langfuse receives traces from many frameworks, and not all of them
call a tool's span a tool: a span that bears the name of a called tool is taken as its run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leapmodel.importers.chat import Said, decoded_json, read_said
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
    "GENERATION": "generation",
    "TOOL": "tool",
    "AGENT": "agent",
    "GUARDRAIL": "guard",
    "EVALUATOR": "guard",
}
_NO_DECISIONS = {"EMBEDDING", "RETRIEVER"}
_PROMPT = ("input", "input_tokens", "prompt_tokens", "promptTokens")
_COMPLETION = ("output", "output_tokens", "completion_tokens", "completionTokens")
_CACHED = (
    "input_cache_read", "prompt_details.cache_read", "cache_read_input_tokens",
    "input_cached_tokens",
)  # fmt: skip


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the tasks of a Langfuse export, one a trace or session.

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
        for place, record in iter_documents(path, ledger):
            holder = record.get("trace") if "observations" in record else None
            about = holder if isinstance(holder, dict) else record
            observations = record.get("observations", about.get("observations"))
            if observations is None:
                _add(record, None, record.get("sessionId"), place, "", log)
                continue
            trace = about.get("id")
            with log.reading(trace, place):
                items = place.items(observations, "observations")
                for number, item in enumerate(items):
                    at = f"observations[{number}]"
                    observation = place.mapping(item, at)
                    _add(observation, trace, about.get("sessionId"), place, f"{at}.", log)
            if isinstance(trace, str):
                yield trace

    yield from import_spans(path, ledger, read)


def _add(
    record: dict[str, Any], trace: object, session: object, place: Place, at: str, log: SpanLog
) -> None:
    ledger = log.ledger
    trace = record.get("traceId", record.get("trace_id") if trace is None else trace)
    with log.reading(trace, place):
        parent = record.get("parentObservationId", record.get("parent_observation_id"))
        written = place.text(record.get("type"), f"{at}type")
        kind = _kind(written, record)
        name = record.get("name")
        start = "start_time" if "start_time" in record else "startTime"
        end = "end_time" if "end_time" in record else "endTime"
        span = Span(
            place.text(trace, f"{at}traceId"),
            place.text(record.get("id"), f"{at}id"),
            None if not parent else place.text(parent, f"{at}parentObservationId"),
            kind,
            name if isinstance(name, str) else "",
            place,
            moment(record.get(start), place, f"{at}{start}", ledger),
            moment(record.get(end), place, f"{at}{end}", ledger),
            failed=record.get("level") == "ERROR",
            session=session if isinstance(session, str) and session.strip() else None,
        )
        if written.upper() in _NO_DECISIONS:
            ledger.count("embeddings, rerankings and retrievals (no steps)", span.trace)
        if kind == "generation":
            _describe_generation(span, record, place, at, ledger)
        elif kind == "tool" and (arguments := tool_arguments(record.get("input"))) is not None:
            span.said = Said((Call(span.name.removeprefix("execute_tool "), arguments),))
        log.add(span)


def _kind(written: str, record: dict[str, Any]) -> Kind:
    if written.upper() in _KINDS:
        return _KINDS[written.upper()]
    metadata = record.get("metadata")
    attributes = decoded_json(metadata) if isinstance(metadata, str) else metadata
    if isinstance(attributes, dict) and isinstance(attributes.get("attributes"), dict):
        attributes = attributes["attributes"]
        for key in ("openinference.span.kind", "traceloop.span.kind", "gen_ai.operation.name"):
            word = str(attributes.get(key)).lower()
            if word in {"tool", "execute_tool"}:
                return "tool"
            if word in {"agent", "invoke_agent"}:
                return "agent"
    return "other"


def _describe_generation(
    span: Span, record: dict[str, Any], place: Place, at: str, ledger: Ledger
) -> None:
    model = record.get("model")
    span.model = model if isinstance(model, str) else None
    usage = next((u for key in ("usageDetails", "usage") if isinstance(u := record.get(key), dict)),
                 {})  # fmt: skip
    for attribute, keys in (
        ("prompt_tokens", _PROMPT),
        ("cached_tokens", _CACHED),
        ("completion_tokens", _COMPLETION),
    ):
        key = next((key for key in keys if usage.get(key) is not None), None)
        if key is not None:
            setattr(span, attribute, place.count(usage[key], f"{at}usageDetails.{key}"))
    span.said = read_said(record.get("output"))
    if not span.said.calls:
        span.said = _with_listed_calls(span.said, record)
    if ledger.keep_messages:
        span.messages = read_messages(record.get("input"))


def _with_listed_calls(said: Said, record: dict[str, Any]) -> Said:
    """Add the calls that newer versions of Langfuse list beside the output."""
    names, calls = record.get("toolCallNames"), record.get("toolCalls")
    if not isinstance(names, list) or not isinstance(calls, list) or len(names) != len(calls):
        return said
    found = []
    for name, call in zip(names, calls, strict=True):
        call = decoded_json(call) if isinstance(call, str) else call
        if not isinstance(name, str) or not isinstance(call, dict):
            return said
        identity = call.get("id")
        found.append(
            Call(name, call.get("arguments"), identity if isinstance(identity, str) else None)
        )
    return Said(tuple(found), said.text, said.finish) if found else said


def _recognises(sample: Sample) -> bool:
    is_whole = sample.has_keys("observations") and (
        sample.has_keys("projectId") or sample.has_keys("traceId")
    )
    return is_whole or sample.has_keys("traceId", "parentObservationId", "startTime")


LANGFUSE = Importer(
    name="langfuse",
    description="Langfuse traces with their observations (JSON or JSON Lines)",
    suffixes=(".json", ".jsonl"),
    read_file=read_file,
    remarks=(
        "retries inside a client's call count in gen_s; time between spans that no tool span "
        "covers is not counted",
    ),
    recognises=_recognises,
    has_messages=True,
)
