"""OpenTelemetry spans with the GenAI conventions, as OTLP (JSON or protobuf) or one span a record.

- OTLP JSON: a file is one export request (``resourceSpans`` → ``scopeSpans`` → ``spans``), or one
  a line, as the Collector's file exporter writes them; spans of a trace may be spread over lines.
- OTLP protobuf: one binary export request, or several, each with its length before it (the
  Collector's file exporter again). Needs the package opentelemetry-proto: ``leapmodel[otlp]``.
- One span a record: what the Python SDK's console exporter writes, and files that hold such
  records in a list ``spans`` (inference-perf's trace sets).

An instrumentation may leave out what was said (the conventions make it optional). Then the action
is read from the spans of the tools that ran, if they have their arguments; else it is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from leapmodel.importers.documents import iter_documents
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.moments import moment
from leapmodel.importers.otlp_protobuf import is_protobuf, iter_requests
from leapmodel.importers.records import Importer, Sample, TaskRun
from leapmodel.importers.span import Span
from leapmodel.importers.span_attributes import Event, describe_span
from leapmodel.importers.spans import SpanLog, import_spans

_REQUEST_KEYS = ("resourceSpans", "resource_spans")
_SCOPE_KEYS = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_FAILED = {2, "2", "STATUS_CODE_ERROR", "ERROR", "Error"}
_DEEPEST = 12


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the tasks of a file of OpenTelemetry spans, one a trace or session.

    Parameters
    ----------
    path : Path
        OTLP JSON, OTLP protobuf, or JSON with one span a record.
    ledger : Ledger
        Where dropped and remarkable things are noted.

    Yields
    ------
    TaskRun

    Raises
    ------
    UsageError
        For protobuf, if the package opentelemetry-proto is not installed.
    """

    def read(log: SpanLog) -> Iterator[str]:
        records = iter_requests(path) if is_protobuf(path) else iter_documents(path, ledger)
        for place, record in records:
            read_record(record, place, log)
        yield from ()

    yield from import_spans(path, ledger, read)


def read_record(record: dict[str, Any], place: Place, log: SpanLog) -> None:
    """Add the spans of one record: an export request, a list of spans, or one span."""
    request = next((key for key in _REQUEST_KEYS if key in record), None)
    if request is not None:
        with log.reading(None, place):
            for at, span in list(_of_request(record, request, place)):
                _add(span, place, at, log)
    elif "spans" in record:
        with log.reading(record.get("trace_id"), place):
            for number, span in enumerate(place.items(record["spans"], "spans")):
                at = f"spans[{number}]"
                _add(place.mapping(span, at), place, f"{at}.", log)
    else:
        _add(record, place, "", log)


def _of_request(
    record: dict[str, Any], key: str, place: Place
) -> Iterator[tuple[str, dict[str, Any]]]:
    for r, resource in enumerate(place.items(record[key], key)):
        at = f"{key}[{r}]"
        place.mapping(resource, at)
        scopes = next((name for name in _SCOPE_KEYS if name in resource), _SCOPE_KEYS[0])
        for s, scope in enumerate(place.items(resource.get(scopes, []), f"{at}.{scopes}")):
            inner = f"{at}.{scopes}[{s}]"
            spans = place.mapping(scope, inner).get("spans", [])
            for n, span in enumerate(place.items(spans, f"{inner}.spans")):
                yield f"{inner}.spans[{n}].", place.mapping(span, f"{inner}.spans[{n}]")


def _add(record: dict[str, Any], place: Place, at: str, log: SpanLog) -> None:
    context = record.get("context")
    ids = {**record, **context} if isinstance(context, dict) else record

    def first(*names: str) -> tuple[Any, str]:
        for name in names:
            value = ids.get(name)
            if value is not None and value != "":
                return value, at + name
        return None, at + names[0]

    trace, trace_field = first("traceId", "trace_id")
    with log.reading(trace, place):
        parent, parent_field = first("parentSpanId", "parent_span_id", "parent_id")
        start, start_field = first("startTimeUnixNano", "start_time_unix_nano", "start_time")
        end, end_field = first("endTimeUnixNano", "end_time_unix_nano", "end_time")
        status = record.get("status")
        code = (status.get("code") or status.get("status_code")) if isinstance(status, dict) else ""
        name = record.get("name")
        span = Span(
            place.text(trace, trace_field),
            place.text(*first("spanId", "span_id")),
            None if parent is None else place.text(parent, parent_field),
            "other",
            name if isinstance(name, str) else "",
            place,
            moment(start, place, start_field, log.ledger),
            moment(end, place, end_field, log.ledger),
            failed=isinstance(code, (int, str)) and code in _FAILED,
        )
        attributes = _attributes(record.get("attributes"), place, f"{at}attributes")
        events = list(_events(record.get("events"), place, at))
        describe_span(span, attributes, events, place, at, log.ledger)
        log.add(span)


def _attributes(value: object, place: Place, field: str) -> Mapping[str, Any]:
    """Return attributes by name: OTLP's list of keys and typed values, or an object."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    found = {}
    for number, item in enumerate(place.items(value, field)):
        typed = item.get("value") if isinstance(item, dict) else None
        if isinstance(typed, dict) and "stringValue" in typed and isinstance(item.get("key"), str):
            found[item["key"]] = typed["stringValue"]  # nearly all; spelling out names takes longer
            continue
        at = f"{field}[{number}]"
        key = place.text(place.mapping(item, at).get("key"), f"{at}.key")
        found[key] = _typed(item.get("value"), place, f"{at}.value", 0)
    return found


def _typed(value: object, place: Place, field: str, depth: int) -> Any:
    """Return the value that OTLP wraps in an object that names its type."""
    if not isinstance(value, dict) or depth > _DEEPEST:
        return value
    for name, inner in value.items():
        if name in {"intValue", "int_value"} and isinstance(inner, str):
            try:
                return int(inner)
            except ValueError:
                raise place.wrong(inner, f"{field}.{name}", "a whole number") from None
        if name in {"arrayValue", "array_value"} and isinstance(inner, dict):
            items = place.items(inner.get("values", []), f"{field}.{name}.values")
            return [_typed(item, place, field, depth + 1) for item in items]
        if name in {"kvlistValue", "kvlist_value"} and isinstance(inner, dict):
            pairs = place.items(inner.get("values", []), f"{field}.{name}.values")
            return {
                str(pair.get("key")): _typed(pair.get("value"), place, field, depth + 1)
                for pair in pairs
                if isinstance(pair, dict)
            }
        return inner
    return None


def _events(value: object, place: Place, at: str) -> Iterator[Event]:
    for number, item in enumerate(place.items(value, f"{at}events") if value is not None else ()):
        field = f"{at}events[{number}]"
        name = place.mapping(item, field).get("name")
        if isinstance(name, str) and name.startswith("gen_ai."):
            yield Event(name, _attributes(item.get("attributes"), place, f"{field}.attributes"))


def _recognises(sample: Sample) -> bool:
    if is_protobuf(sample.path, sample.head):
        return True
    if any(sample.has_keys(key) for key in _REQUEST_KEYS):
        return True
    is_span = sample.has_keys("trace_id", "span_id", "start_time", "attributes")
    others = ("openinference.span.kind", "span_kind", "mlflow.traceRequestId")
    return is_span and b'"gen_ai.' in sample.head and not any(map(sample.has_keys, others))


OTLP = Importer(
    name="otlp",
    description="OpenTelemetry spans with GenAI conventions (OTLP JSON, OTLP protobuf, records)",
    suffixes=(".json", ".jsonl", ".pb", ".binpb", ".otlp"),
    read_file=read_file,
    remarks=(
        "retries inside a client's call count in gen_s; time between spans that no tool span "
        "covers is not counted",
    ),
    recognises=_recognises,
    has_messages=True,
)
