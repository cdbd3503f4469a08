"""MLflow traces: one trace a record, or spans one a record; the schemas of versions 2 and 3.

A trace is an object with ``info`` and ``data`` (what ``Trace.to_json`` writes), or with ``spans``
alone (what an artifact store holds). A span's type, inputs and outputs are attributes whose values
are JSON text; times are nanoseconds since 1970.
"""

from __future__ import annotations

import json
import re
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
    "LLM": "generation",
    "CHAT_MODEL": "generation",
    "TOOL": "tool",
    "AGENT": "agent",
    "GUARDRAIL": "guard",
    "EVALUATOR": "guard",
}
_NO_DECISIONS = {"EMBEDDING", "RERANKER", "RETRIEVER"}
_FAILED = {"ERROR", "STATUS_CODE_ERROR", 2}
_MODEL = re.compile(r'"model": ?"([^"\\]+)"')
_STREAM = re.compile('"stream": true')  # twice as fast as `in`: texts are full of quotes
_TIMES = {
    which: (f"{which}_time_unix_nano", f"{which}_time_ns", f"{which}_time")
    for which in ("start", "end")
}
_TRACE_ID = "mlflow.traceRequestId"


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the tasks of a file of MLflow traces, one a trace or session.

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
            info = _object(record.get("info", record.get("trace_info")))
            data = _object(record.get("data", record.get("trace_data")))
            holder, at = (data, "data.") if "spans" in data else (record, "")
            if "spans" not in holder:
                _add(record, record.get("trace_id"), None, place, at, log)
                continue
            trace = info.get("trace_id") or info.get("request_id") or record.get("trace_id")
            session = _session(info)
            before = None
            with log.reading(trace, place):
                spans = _listed(holder["spans"])
                for number, item in enumerate(place.items(spans, f"{at}spans")):
                    name = f"{at}spans[{number}]"
                    span = place.mapping(_decoded(item), name)
                    before = _add(span, trace, session, place, f"{name}.", log) or before
            whole = trace if isinstance(trace, str) else before
            if whole is not None:
                yield whole

    yield from import_spans(path, ledger, read)


def _add(
    record: dict[str, Any],
    trace: object,
    session: str | None,
    place: Place,
    at: str,
    log: SpanLog,
) -> str | None:
    """Add a span and return its trace's id."""
    attributes = record.get("attributes")
    attributes = attributes if isinstance(attributes, dict) else {}
    context = _object(record.get("context"))
    trace = (
        trace
        or _decoded(attributes.get(_TRACE_ID))
        or context.get("trace_id", record.get("trace_id"))
    )
    with log.reading(trace, place):
        place.mapping(record.get("attributes", {}), f"{at}attributes")
        parent = record.get("parent_span_id", record.get("parent_id"))
        span_type = _decoded(attributes.get("mlflow.spanType", record.get("span_type")))
        status = record.get("status", record.get("status_code"))
        code = status.get("code") if isinstance(status, dict) else status
        name = record.get("name")
        span = Span(
            place.text(trace, f"{at}trace_id"),
            place.text(context.get("span_id", record.get("span_id")), f"{at}span_id"),
            None if not parent else place.text(parent, f"{at}parent_id"),
            _KINDS.get(span_type, "other") if isinstance(span_type, str) else "other",
            name if isinstance(name, str) else "",
            place,
            _time(record, "start", place, at, log.ledger),
            _time(record, "end", place, at, log.ledger),
            failed=isinstance(code, (str, int)) and code in _FAILED,
            session=session,
        )
        if span_type in _NO_DECISIONS if isinstance(span_type, str) else False:
            log.ledger.count("embeddings, rerankings and retrievals (no steps)", span.trace)
        _describe(span, record, attributes, place, at, log.ledger)
        log.add(span)
        return span.trace
    return None


def _time(record: dict[str, Any], which: str, place: Place, at: str, ledger: Ledger) -> int | None:
    for name in _TIMES[which]:
        if record.get(name) is not None:
            return moment(record[name], place, at + name, ledger)
    return None


def _describe(
    span: Span,
    record: dict[str, Any],
    attributes: dict[str, Any],
    place: Place,
    at: str,
    ledger: Ledger,
) -> None:
    inputs = attributes.get("mlflow.spanInputs", record.get("inputs"))
    if span.kind == "tool" and (arguments := tool_arguments(inputs)) is not None:
        span.said = Said((Call(span.name, arguments),))
    if span.kind != "generation":
        return
    span.said = read_said(_decoded(attributes.get("mlflow.spanOutputs", record.get("outputs"))))
    if ledger.keep_messages:
        span.messages = read_messages(_decoded(inputs))
    # The inputs repeat the whole conversation, most of the file: they are searched, not read.
    if isinstance(inputs, str):
        span.streamed = _STREAM.search(inputs) is not None
        asked = _MODEL.search(inputs)
        model = asked[1] if asked else None
    else:
        span.streamed = isinstance(inputs, dict) and inputs.get("stream") is True
        model = inputs.get("model") if isinstance(inputs, dict) else None
    models = (_decoded(attributes.get(key)) for key in ("mlflow.llm.model", "model", "model_name"))
    span.model = next((name for name in (*models, model) if isinstance(name, str)), None)
    key = "mlflow.chat.tokenUsage"
    usage = _object(attributes.get(key))
    for attribute, name in (
        ("prompt_tokens", "input_tokens"),
        ("cached_tokens", "cache_read_input_tokens"),
        ("completion_tokens", "output_tokens"),
    ):
        if usage.get(name) is not None:
            field = f"{at}attributes.{key}.{name}"
            setattr(span, attribute, place.count(usage[name], field))


def _session(info: dict[str, Any]) -> str | None:
    for key in ("trace_metadata", "request_metadata", "tags"):
        session = _object(info.get(key)).get("mlflow.trace.session")
        if isinstance(session, str) and session.strip():
            return session
    return None


def _object(value: object) -> dict[str, Any]:
    decoded = _decoded(value)
    return decoded if isinstance(decoded, dict) else {}


def _listed(value: object) -> object:
    return _decoded(value) if isinstance(value, str) else value


def _decoded(value: object) -> Any:
    """Decode JSON text; MLflow writes every attribute as such, texts included."""
    if not isinstance(value, str):
        return value
    if value[:1] == '"' and "\\" not in value and value.count('"') == 2:
        return value[1:-1] if value[-1:] == '"' else value  # a plain word, as most of them are
    decoded = decoded_json(value)
    if decoded is not None:
        return decoded
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _recognises(sample: Sample) -> bool:
    if any(map(sample.has_keys, ("resourceSpans", "parentObservationId"))):
        return False
    return any(map(sample.has_keys, (_TRACE_ID, "mlflow.spanType", "mlflow.spanInputs"))) or (
        b'\\"mlflow.spanType' in sample.head and sample.has_keys("spans")
    )


MLFLOW = Importer(
    name="mlflow",
    description="MLflow traces (JSON or JSON Lines)",
    suffixes=(".json", ".jsonl"),
    read_file=read_file,
    remarks=(
        "retries inside a client's call count in gen_s; time between spans that no tool span "
        "covers is not counted",
    ),
    recognises=_recognises,
    has_messages=True,
)
