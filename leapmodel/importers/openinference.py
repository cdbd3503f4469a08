"""OpenInference spans as Arize Phoenix exports them: one span a record, attributes by name.

Records may stand in an array, one a line, or in a list ``data`` (a page of Phoenix's REST API) or
``spans``. Attributes are flattened (``llm.output_messages.0.message.role``) or nested; the columns
of a data frame exported as records (``context.span_id``, ``attributes.llm.model_name``) are read
too. Spans that carry GenAI attributes instead are read by those.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leapmodel.importers.documents import iter_documents
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.moments import moment
from leapmodel.importers.records import Importer, Sample, TaskRun
from leapmodel.importers.span import Span
from leapmodel.importers.span_attributes import Event, describe_span
from leapmodel.importers.spans import SpanLog, import_spans

_LISTS = ("data", "spans")
_KIND = "openinference.span.kind"


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the tasks of a Phoenix export, one a trace or session.

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
            name = next((key for key in _LISTS if isinstance(record.get(key), list)), None)
            if name is None:
                _add(record, place, "", log)
                continue
            for number, span in enumerate(record[name]):
                at = f"{name}[{number}]"
                with log.reading(None, place):
                    _add(place.mapping(span, at), place, f"{at}.", log)
        yield from ()

    yield from import_spans(path, ledger, read)


def _add(record: dict[str, Any], place: Place, at: str, log: SpanLog) -> None:
    context = record.get("context")
    ids = context if isinstance(context, dict) else {}
    trace = ids.get("trace_id", record.get("context.trace_id", record.get("trace_id")))
    with log.reading(trace, place):
        identity = ids.get("span_id", record.get("context.span_id", record.get("span_id")))
        parent = record.get("parent_id") or record.get("parent_span_id")
        status = record.get("status_code")
        name = record.get("name")
        span = Span(
            place.text(trace, f"{at}context.trace_id"),
            place.text(identity, f"{at}context.span_id"),
            None if parent is None else place.text(parent, f"{at}parent_id"),
            "other",
            name if isinstance(name, str) else "",
            place,
            moment(record.get("start_time"), place, f"{at}start_time", log.ledger),
            moment(record.get("end_time"), place, f"{at}end_time", log.ledger),
            failed=status == "ERROR",
        )
        attributes = record.get("attributes")
        if attributes is None:
            columns = (key for key in record if key.startswith("attributes."))
            attributes = {key.removeprefix("attributes."): record[key] for key in columns}
        found = dict(place.mapping(attributes, f"{at}attributes"))
        if isinstance(record.get("span_kind"), str) and _KIND not in found:
            found[_KIND] = record["span_kind"]
        events = record.get("events")
        describe_span(span, found, list(_events(events)), place, at, log.ledger)
        log.add(span)


def _events(items: object) -> Iterator[Event]:
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            attributes = item.get("attributes")
            yield Event(item["name"], attributes if isinstance(attributes, dict) else {})


def _recognises(sample: Sample) -> bool:
    others = ("resourceSpans", "resource_spans", "mlflow.traceRequestId", "parentObservationId")
    if any(map(sample.has_keys, others)):
        return False
    is_phoenix = sample.has_keys("span_kind", "parent_id") and (
        sample.has_keys("context") or sample.has_keys("context.span_id")
    )
    return is_phoenix or sample.has_keys(_KIND) or sample.has_keys(f"attributes.{_KIND}")


OPENINFERENCE = Importer(
    name="openinference",
    description="OpenInference spans as Arize Phoenix exports them (JSON or JSON Lines)",
    suffixes=(".json", ".jsonl"),
    read_file=read_file,
    remarks=(
        "retries inside a client's call count in gen_s; time between spans that no tool span "
        "covers is not counted",
    ),
    recognises=_recognises,
    has_messages=True,
)
