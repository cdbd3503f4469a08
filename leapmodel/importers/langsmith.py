"""LangSmith runs: exported runs one a record, or the batches that its SDK sends.

A run of type ``llm`` is a generation and one of type ``tool`` a tool's run; chains hold others. A
batch (``post`` and ``patch``) says a run in two pieces, the end and the outputs in the second; so
may lines of one file, hence pieces with the same id are put together when the file has been read.
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

_KINDS: dict[str, Kind] = {"llm": "generation", "tool": "tool"}
_LISTS = ("post", "patch", "runs", "child_runs")
_THREADS = ("session_id", "thread_id", "conversation_id")
_DEEPEST = 50


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the tasks of a LangSmith export, one a trace or thread.

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
        pieces: dict[str, Span] = {}
        for place, record in iter_documents(path, ledger):
            with log.reading(None, place):
                for at, run in _runs(record, place, "", 0):
                    _add(run, place, at, log, pieces)
        for span in pieces.values():
            log.add(span)
        yield from ()

    yield from import_spans(path, ledger, read)


def _runs(
    record: dict[str, Any], place: Place, at: str, depth: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the runs in a record, each with what its fields' names begin with."""
    if depth > _DEEPEST:
        raise place.error(at.rstrip("."), f"runs nested at most {_DEEPEST} deep", "deeper ones")
    if not any(key in record for key in ("post", "patch", "runs")):
        yield at, record
    for key in _LISTS:
        items = record.get(key)
        for number, item in enumerate(place.items(items, at + key) if items is not None else ()):
            inner = f"{at}{key}[{number}]"
            run = place.mapping(item, inner)
            yield from _runs({"trace_id": record.get("trace_id"), **run}, place, f"{inner}.",
                             depth + 1)  # fmt: skip


def _add(run: dict[str, Any], place: Place, at: str, log: SpanLog, pieces: dict[str, Span]) -> None:
    identity = run.get("id", run.get("run_id"))
    trace = run.get("trace_id") or identity  # the root run names the trace
    with log.reading(trace, place):
        identity = place.text(identity, f"{at}id")
        span = pieces.get(identity)
        if span is None:
            span = Span(place.text(trace, f"{at}trace_id"), identity, None, "other", "", place)
            pieces[identity] = span
        parent = run.get("parent_run_id")
        span.parent = place.text(parent, f"{at}parent_run_id") if parent else span.parent
        if run.get("run_type") is not None:
            kind = place.text(run["run_type"], f"{at}run_type")
            span.kind = _KINDS.get(kind, "other")
            if kind in {"embedding", "retriever"}:
                log.ledger.count("embeddings, rerankings and retrievals (no steps)", span.trace)
        if isinstance(run.get("name"), str):
            span.name = run["name"]
        start = moment(run.get("start_time"), place, f"{at}start_time", log.ledger)
        end = moment(run.get("end_time"), place, f"{at}end_time", log.ledger)
        span.start = span.start if start is None else start
        span.end = span.end if end is None else end
        span.failed = span.failed or bool(run.get("error"))
        _describe(span, run, place, at, log.ledger)


def _describe(span: Span, run: dict[str, Any], place: Place, at: str, ledger: Ledger) -> None:
    extra = run.get("extra")
    metadata = extra.get("metadata") if isinstance(extra, dict) else None
    metadata = metadata if isinstance(metadata, dict) else {}
    session = next((metadata[k] for k in _THREADS if isinstance(metadata.get(k), str)), None)
    span.session = session or span.session
    inputs, outputs = run.get("inputs"), run.get("outputs")
    if span.kind == "tool":
        arguments = tool_arguments(_tool_input(inputs))
        if arguments is not None:
            span.said = Said((Call(span.name, arguments),))
    if span.kind != "generation":
        return
    model = metadata.get("ls_model_name")
    span.model = model if isinstance(model, str) else span.model
    invocation = extra.get("invocation_params") if isinstance(extra, dict) else None
    asked = [settings for settings in (inputs, invocation) if isinstance(settings, dict)]
    span.streamed = span.streamed or any(settings.get("stream") is True for settings in asked)
    if outputs:
        said = read_said(outputs)
        if not ledger.keep_messages and said.text:
            said = Said(said.calls, "", said.finish)
        span.said = said if said.is_known else span.said
    if inputs and ledger.keep_messages:
        span.messages = read_messages(inputs)
    _count_tokens(span, run, metadata, place, at)


def _tool_input(inputs: object) -> object:
    """Return a tool's input; LangChain writes the arguments as text under ``input``."""
    if isinstance(inputs, dict) and set(inputs) == {"input"}:
        inner = tool_arguments(inputs["input"])
        return inputs if inner is None else inner
    return inputs


def _count_tokens(
    span: Span, run: dict[str, Any], metadata: dict[str, Any], place: Place, at: str
) -> None:
    outputs = run.get("outputs")
    places = [
        (run, at, "prompt_tokens", "completion_tokens"),
        (metadata.get("usage_metadata"), f"{at}extra.metadata.usage_metadata.", "input_tokens",
         "output_tokens"),
    ]  # fmt: skip
    if isinstance(outputs, dict):
        usage = outputs.get("usage_metadata")
        places.append((usage, f"{at}outputs.usage_metadata.", "input_tokens", "output_tokens"))
        usage = outputs.get("usage")
        places.append((usage, f"{at}outputs.usage.", "prompt_tokens", "completion_tokens"))
        places.append((usage, f"{at}outputs.usage.", "input_tokens", "output_tokens"))
    for holder, where, prompt, completion in places:
        if not isinstance(holder, dict):
            continue
        if span.prompt_tokens is None and holder.get(prompt) is not None:
            span.prompt_tokens = place.count(holder[prompt], where + prompt)
        if span.completion_tokens is None and holder.get(completion) is not None:
            span.completion_tokens = place.count(holder[completion], where + completion)
        for key, inner in (("input_token_details", "cache_read"),
                           ("prompt_tokens_details", "cached_tokens")):  # fmt: skip
            details = holder.get(key)
            if isinstance(details, dict) and details.get(inner) is not None:
                span.cached_tokens = place.count(details[inner], f"{where}{key}.{inner}")


def _recognises(sample: Sample) -> bool:
    return sample.has_keys("run_type", "start_time") and (
        sample.has_keys("trace_id") or sample.has_keys("parent_run_id")
    )


LANGSMITH = Importer(
    name="langsmith",
    description="LangSmith runs, exported or as its SDK sends them (JSON or JSON Lines)",
    suffixes=(".json", ".jsonl"),
    read_file=read_file,
    remarks=(
        "retries inside a client's call count in gen_s; time between runs that no tool run "
        "covers is not counted",
    ),
    recognises=_recognises,
    has_messages=True,
)
