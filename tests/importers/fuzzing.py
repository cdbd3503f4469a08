"""Logs damaged at random, in bytes or in structure, and what an importer makes of them.

One seed gives the same logs every time. ``benchmarks/fuzz_importers.py`` runs this for minutes,
``test_fuzz.py`` for seconds.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leapmodel.actions import canonical_action
from leapmodel.errors import DataError, UsageError
from leapmodel.importers import AUTO, FORMATS, import_log, import_predictions
from leapmodel.trace import read_trace, write_trace
from tests.importers import agent_logs, span_logs

FIXTURES = Path(__file__).parent / "fixtures"
LONGEST_S = 5.0

_ODD: list[Any] = [
    None, True, False, 0, -1, 1.5, 2**53 + 1, 2**80, -(2**80), 1e308, float("nan"), float("inf"),
    1_770_000_000, 1_770_000_000_000_000_000, "", " ", "\0", "\ud800", "\U0001f600", "a" * 5_000,
    "None", "{}", "[]", "[" * 300, '{"role": "assistant"}', "1e999", "٣", "2026-02-03T12:00:00Z",
    "0001-01-01T00:00:00+23:00", "assistant", "user", "tool", "generation", "LLM", "<respond/>",
    "a(", "x({})", "ls()\nls()", "=1+1", "../../etc", [], {}, [[]], [None], [{}], {"": ""},
    {"name": "ls", "arguments": "{}"}, {"content": [{"type": "text", "text": "x"}]},
]  # fmt: skip
_PIECES = [
    b"", b"\0", b"\xff", b"\xef\xbb\xbf", b"\n", b"\r\n", b"\n\n", b'"', b"\\", b"{", b"}", b"[",
    b"]", b",", b":", b"\\ud800", b"\\u0000", b"NaN", b"1e999", b"9" * 400, b"null", b"\x1f\x8b",
    b"PK\x03\x04", b"PAR1", b"\x0a\x80\x80\x80\x80", b'{"a":' * 200, b"[" * 2_000,
]  # fmt: skip


class Hang(BaseException):
    """A case took over :data:`LONGEST_S` of CPU time; no ``except Exception`` swallows it."""


@dataclass(frozen=True)
class Seed:
    """A good log: its format, its file name and what it holds."""

    format_name: str
    file_name: str
    content: bytes


@dataclass(frozen=True)
class Case:
    """A damaged log and what is asked of it."""

    seed: Seed
    content: bytes
    format_name: str
    lenient: bool
    contexts: bool
    predictions: bool
    packed: bool

    def __str__(self) -> str:
        asked = [name for name in ("lenient", "contexts", "predictions") if getattr(self, name)]
        return f"{self.seed.file_name} as {self.format_name} ({', '.join(asked) or 'plain'})"


def seeds() -> list[Seed]:
    """Return a good log of every format, and of every shape that a format has."""
    found = [
        Seed(name, agent_logs.name_of(name), agent_logs.written(name))
        for name in (*agent_logs.BUILDERS, "table")
    ]
    found.append(Seed("inspect-ai", "log.eval", agent_logs.as_eval(agent_logs.inspect_ai())))
    for file_name, format_name in span_logs.FORMAT_OF.items():
        content = (span_logs.FIXTURES / file_name).read_bytes()
        found.append(Seed(format_name, file_name, content))
    for path in sorted((FIXTURES / "sessions").iterdir()):
        found.append(Seed("claude-code", path.name, path.read_bytes()))
    result = FIXTURES / "larch-8b_multi_turn_base_result.json"
    found.append(Seed("bfcl", result.name, result.read_bytes()))
    rows = [{"task": "a", "gen_s": 1.5, "tool": "ls", "arguments": {"n": 1}}, {"task": "b"}]
    lines = "".join(json.dumps({"gen_s": 0.5, **row}) + "\n" for row in rows)
    found.append(Seed("table", "rows.jsonl", lines.encode()))
    found += [_parquet(), _protobuf()]
    assert {seed.format_name for seed in found} == set(FORMATS)
    return found


def cases(rng: random.Random, from_seeds: list[Seed]) -> Iterator[Case]:
    """Yield damaged logs without end; every seed has its turn, own format and ``auto`` both."""
    while True:
        for seed in from_seeds:
            content = seed.content
            damage = _structure if rng.random() < 0.6 else _bytes
            for _ in range(rng.choice((1, 1, 2, 4))):
                content = damage(content, rng, from_seeds)
            packed = rng.random() < 0.05
            draw = rng.random()
            name = seed.format_name if draw < 0.7 else AUTO
            if draw > 0.9:
                name = rng.choice(list(FORMATS))
            of_it = FORMATS.get(name)
            yield Case(
                seed,
                gzip.compress(content) if packed else content,
                name,
                lenient=rng.random() < 0.5,
                contexts=rng.random() < 0.4 and (of_it is None or of_it.has_messages),
                predictions=rng.random() < 0.5 and (of_it is None or of_it.has_guesses),
                packed=packed,
            )


def outcome(case: Case, folder: Path) -> str:
    """Run a case and return "trace" or the name of the error that refused it.

    Raises
    ------
    Hang
        If it takes too long.
    Exception
        Any that is no :class:`DataError` or :class:`UsageError`; an ``AssertionError`` where a
        message or a trace is not as it must be.
    """
    path = folder / (case.seed.file_name + (".gz" if case.packed else ""))
    out = folder / "contexts.jsonl"
    out.unlink(missing_ok=True)
    path.write_bytes(case.content)
    try:
        with _limited():
            if case.predictions:
                try:
                    import_predictions(case.format_name, path, lenient=case.lenient)
                except (DataError, UsageError) as error:
                    _check_message(error)
            trace = import_log(
                case.format_name,
                path,
                lenient=case.lenient,
                contexts=out if case.contexts else None,
            )
    except (DataError, UsageError) as error:
        _check_message(error)
        assert not out.exists()
        return type(error).__name__
    finally:
        path.unlink(missing_ok=True)
    actions = [action for action in trace.actions if action is not None]
    assert actions == [canonical_action(action) for action in actions]
    write_trace(trace, folder / "t.jsonl")
    assert read_trace(folder / "t.jsonl").n_steps == trace.n_steps
    if case.contexts:
        with open(out, encoding="utf-8") as lines:
            assert sum(json.loads(line).keys() >= {"task", "messages"} for line in lines)
    return "trace"


def _check_message(error: Exception) -> None:
    message = str(error)
    assert message
    assert "\n" not in message
    assert len(message) < 2_000


@contextmanager
def _limited() -> Iterator[None]:
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _bytes(content: bytes, rng: random.Random, others: list[Seed]) -> bytes:
    """Damage a log without looking at what it says."""
    a, b = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    how = rng.randrange(7)
    if how == 0:
        return content[:a]
    if how == 1:
        return content[:a] + content[b:]
    if how == 2:
        return content[:b] + content[a:b] + content[b:]
    if how == 3:
        return content[:a] + rng.choice(_PIECES) + content[a:]
    if how == 4:
        other = rng.choice(others).content
        return content[:a] + other[rng.randrange(len(other) + 1) :]
    if how == 5 and a < len(content):
        return content[:a] + bytes([rng.randrange(256)]) + content[a + 1 :]
    return content[:a] + content[a:b][::-1] + content[b:]


def _structure(content: bytes, rng: random.Random, others: list[Seed]) -> bytes:
    """Replace, remove, repeat, rename or swap values of a JSON log; damage others as bytes."""
    records = _parsed(content)
    if records is None:
        return _bytes(content, rng, others)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(_containers(records))
        if not places:
            break
        place = rng.choice(places)
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key, other = rng.choice(keys), rng.choice(keys)
        how = rng.randrange(6)
        if how <= 1:
            place[key] = copy.deepcopy(rng.choice(_ODD))
        elif how == 2:
            del place[key]
        elif how == 3:
            place[key], place[other] = place[other], place[key]
        elif how == 4 and isinstance(place, list):
            place.insert(other, copy.deepcopy(place[key]))  # an alias could close a circle
        elif how == 4:
            place[str(rng.choice(_ODD))] = place.pop(key)
        else:
            place[key] = [place[key]] if rng.random() < 0.5 else {"content": place[key]}
    if rng.random() < 0.3:
        return json.dumps(records).encode()
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _parsed(content: bytes) -> list[Any] | None:
    for read in (_as_lines, _as_document):
        try:
            return read(content)
        except (ValueError, RecursionError):
            continue
    return None


def _as_lines(content: bytes) -> list[Any]:
    return [json.loads(line) for line in content.splitlines() if line.strip()]


def _as_document(content: bytes) -> list[Any]:
    whole = json.loads(content)
    return whole if isinstance(whole, list) else [whole]


def _containers(value: Any) -> Iterator[Any]:
    pending = [value]
    while pending:
        at = pending.pop()
        if at:
            yield at
        inside = at.values() if isinstance(at, dict) else at
        pending += [item for item in inside if isinstance(item, (dict, list))]


def _parquet() -> Seed:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    rows = {"task": ["a", "a"], "gen_s": [1.0, 2.5], "tool": ["ls", None]}
    pq.write_table(pa.table(rows), buffer)
    return Seed("table", "rows.parquet", buffer.getvalue())


def _protobuf() -> Seed:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    texts: dict[str, str] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"content": "Hi."}]}]',
    }
    for number in range(3):
        span = scope.spans.add()
        span.trace_id, span.span_id = b"t" * 16, bytes([number + 1] * 8)
        span.start_time_unix_nano = 1_770_000_000_000_000_000 + number * 10**10
        span.end_time_unix_nano = span.start_time_unix_nano + (number + 1) * 10**9
        for key, value in texts.items():
            pair = span.attributes.add()
            pair.key, pair.value.string_value = key, value
    spell: Callable[[], bytes] = request.SerializeToString
    return Seed("otlp", "spans.pb", spell())
