"""Read OTLP protobuf: binary export requests, in the same shape as their JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leapmodel.errors import DataError, UsageError
from leapmodel.importers.documents import MAX_DOCUMENT_BYTES
from leapmodel.importers.fields import Place
from leapmodel.jsonlines import damage_named, open_binary

_FIRST_TAG = 0x0A  # field 1, length-delimited: the resource spans of a request
_JSON_BLANKS = b"\t\n\r"


def is_protobuf(path: Path, head: bytes | None = None) -> bool:
    """Return whether a file begins as a binary export request does, or as its length and it.

    Parameters
    ----------
    path : Path
        The file.
    head : bytes, optional
        Its beginning, if it is at hand.
    """
    if head is None:
        with open_binary(path) as stream, damage_named(path):
            head = stream.read(4096)
    # JSON may begin with a line break, which is the same byte, but holds no control characters.
    is_binary = any(byte < 0x20 and byte not in _JSON_BLANKS for byte in head[:4096])
    return is_binary and (head[0] == _FIRST_TAG or _has_length_first(head))


def iter_requests(path: Path) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield ``(place, request)`` for each export request of a file, shaped as OTLP JSON.

    Raises
    ------
    UsageError
        If the package opentelemetry-proto is not installed.
    DataError
        If the bytes are no export request.
    """
    try:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )
    except ImportError:
        raise UsageError(
            f"{path}: reading OTLP protobuf needs the package opentelemetry-proto "
            "(pip install 'leapmodel[otlp]')"
        ) from None
    for row, data in enumerate(_messages(path), start=1):
        place = Place(path, row=row)
        try:
            request = ExportTraceServiceRequest.FromString(data)
        except (DecodeError, RecursionError):
            found = f"{len(data)} bytes that are none"
            raise place.error(None, "an OTLP export request of traces", found) from None
        yield place, _as_json(request)


def _has_length_first(head: bytes) -> bool:
    # With the tag's own byte first, such a length would be over 160 MB.
    return len(head) > 4 and head[4] == _FIRST_TAG != head[0]


def _messages(path: Path) -> Iterator[bytes]:
    with open_binary(path) as stream, damage_named(path):
        head = stream.read(5)
        if not _has_length_first(head):
            data = head + stream.read(MAX_DOCUMENT_BYTES + 1)
            if len(data) > MAX_DOCUMENT_BYTES:
                limit = f"one export request of at most {MAX_DOCUMENT_BYTES // 2**20} MB"
                raise DataError(path, expected=limit, found="more")
            yield data
            return
        row = 0
        pending = head
        while pending:
            row += 1
            pending += stream.read(4 - len(pending)) if len(pending) < 4 else b""
            length = int.from_bytes(pending[:4], "big")
            if len(pending) < 4 or length > MAX_DOCUMENT_BYTES:
                expected = f"a length of at most {MAX_DOCUMENT_BYTES // 2**20} MB"
                raise DataError(path, row=row, expected=expected, found=repr(pending[:4]))
            data = pending[4:] + stream.read(length - len(pending[4:]))
            if len(data) < length:
                found = f"the file's end after {len(data)}"
                raise DataError(path, row=row, expected=f"{length} bytes", found=found)
            yield data
            pending = stream.read(4)


def _as_json(request: Any) -> dict[str, Any]:
    return {
        "resourceSpans": [
            {
                "scopeSpans": [
                    {"spans": [_span(span) for span in scope.spans]}
                    for scope in resource.scope_spans
                ]
            }
            for resource in request.resource_spans
        ]
    }


def _span(span: Any) -> dict[str, Any]:
    return {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "parentSpanId": span.parent_span_id.hex(),
        "name": span.name,
        "startTimeUnixNano": span.start_time_unix_nano,
        "endTimeUnixNano": span.end_time_unix_nano,
        "attributes": _attributes(span.attributes),
        "events": [
            {"name": event.name, "attributes": _attributes(event.attributes)}
            for event in span.events
        ],
        "status": {"code": span.status.code},
    }


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    inner = getattr(value, kind)
    if kind == "array_value":
        return [_value(item) for item in inner.values]
    if kind == "kvlist_value":
        return _attributes(inner.values)
    return inner.hex() if kind == "bytes_value" else inner
