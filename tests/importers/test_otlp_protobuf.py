import gzip
import json
import sys

import pytest

from leapmodel.errors import DataError, UsageError
from leapmodel.importers import import_log
from leapmodel.importers.otlp import OTLP
from leapmodel.importers.recognition import sample_of
from tests.importers.span_logs import FIXTURES


@pytest.fixture
def requests():
    """The export requests of a fixture as protobuf, one a line of it."""
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    lines = (FIXTURES / "otlp_new.jsonl").read_text().splitlines()
    return [_as_protobuf(json.loads(line), service.ExportTraceServiceRequest()) for line in lines]


def _as_protobuf(request, message):
    for resource in request["resourceSpans"]:
        resource_spans = message.resource_spans.add()
        for scope in resource["scopeSpans"]:
            scope_spans = resource_spans.scope_spans.add()
            for span in scope["spans"]:
                made = scope_spans.spans.add(
                    trace_id=bytes.fromhex(span["traceId"]),
                    span_id=span["spanId"].encode(),
                    parent_span_id=span["parentSpanId"].encode(),
                    name=span["name"],
                    start_time_unix_nano=int(span["startTimeUnixNano"]),
                    end_time_unix_nano=int(span["endTimeUnixNano"]),
                )
                for pair in span["attributes"]:
                    attribute = made.attributes.add(key=pair["key"])
                    if "intValue" in pair["value"]:
                        attribute.value.int_value = int(pair["value"]["intValue"])
                    else:
                        attribute.value.string_value = pair["value"]["stringValue"]
    return message.SerializeToString()


def test_one_request_and_several_with_their_lengths(requests, tmp_path):
    as_json = import_log("otlp", FIXTURES / "otlp_new.jsonl").frame
    framed = b"".join(len(r).to_bytes(4, "big") + r for r in requests)
    contents = {
        "one.pb": b"".join(requests),  # protobuf merges what is written one after the other
        "many.pb": framed,
        "many.pb.gz": gzip.compress(framed),
    }
    for name, content in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert OTLP.recognises(sample_of(path))
        assert import_log("otlp", path).frame.equals(as_json)


def test_bytes_that_are_no_request(requests, tmp_path):
    path = tmp_path / "a.pb"
    path.write_bytes(b"\n\x05\x01\x02")
    with pytest.raises(DataError, match=r"a\.pb: row 1: expected an OTLP export request"):
        import_log("otlp", path)
    path.write_bytes(len(requests[0]).to_bytes(4, "big") + requests[0][:-3])
    with pytest.raises(DataError, match=r"a\.pb: row 1: expected \d+ bytes, found the file's end"):
        import_log("otlp", path)
    path.write_bytes(b"\xff\xff\x00\x00\n")
    with pytest.raises(DataError, match=r"a\.pb: row 1: expected a length of at most 256 MB"):
        import_log("otlp", path)


def test_a_missing_package_says_what_to_install(requests, tmp_path, monkeypatch):
    path = tmp_path / "a.pb"
    path.write_bytes(requests[0])
    for name in list(sys.modules):
        if name.startswith("opentelemetry"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(UsageError, match=r"needs the package opentelemetry-proto \(pip install"):
        import_log("otlp", path)


def test_json_that_begins_with_a_line_break_is_json(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("\n" + (FIXTURES / "otlp_old.json").read_text())
    assert import_log("otlp", path).n_tasks == 3
