"""However a log is damaged, an import gives a trace or one line that says why not.

The same for longer: ``python benchmarks/fuzz_importers.py --minutes 10``.
"""

import io
import json
import random
import zipfile
from collections import Counter
from itertools import islice

import pytest

from leapmodel.errors import DataError
from leapmodel.importers import AUTO, FORMATS, import_log
from tests.importers import agent_logs
from tests.importers.fuzzing import Case, cases, outcome, seeds

ROUNDS = 100


def test_damaged_logs_of_every_format(tmp_path):
    from_seeds = seeds()
    seen: Counter[str] = Counter()
    for case in islice(cases(random.Random(8), from_seeds), ROUNDS * len(from_seeds)):
        try:
            seen[outcome(case, tmp_path)] += 1
        except BaseException as error:
            error.add_note(f"{case}: {case.content[:4000]!r}")
            raise
        seen[case.format_name] += 1
        seen["contexts"] += case.contexts
        seen["predictions"] += case.predictions
    assert {*FORMATS, AUTO, "trace", "DataError", "contexts", "predictions"} <= seen.keys()
    assert seen["trace"] > ROUNDS


def test_good_logs_are_still_read(tmp_path):
    for seed in seeds():
        case = Case(seed, seed.content, seed.format_name, False, False, False, False)
        expected = "DataError" if seed.format_name == "swe-agent" else "trace"
        assert outcome(case, tmp_path) == expected, seed


MLFLOW_SPAN = (
    '{"trace_id": "t", "span_id": "s", "start_time_ns": 1%s, "end_time_ns": 2, '
    '"attributes": {"mlflow.spanType": "\\"LLM\\""}}'
)


@pytest.mark.parametrize(
    ("name", "file_name", "content", "message"),
    [
        ("inspect-ai", "log.eval", b"\x1f\x8b\x08", "expected whole gzip data"),
        ("inspect-ai", "log.eval", b"\x1f\x8bab", "expected whole gzip data"),
        ("mlflow", "log.jsonl", (MLFLOW_SPAN % ("9" * 400)).encode(), "expected a time"),
        ("table", "log.csv", b"task," + b"x" * 5000 + b"\n", "found only task, xxx"),
        ("table", "log.csv", b"task,gen_s" + b",x" * 200_000 + b"\n", "each column once"),
    ],
)
def test_what_long_runs_found(name, file_name, content, message, tmp_path):
    path = tmp_path / file_name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        import_log(name, path)
    assert len(str(caught.value)) < 500


def test_contexts_appear_only_beside_a_trace(tmp_path):
    log = agent_logs.openhands()[2]
    log["history"][-1]["timestamp"] = "2999-01-01T00:00:00"
    path, out = tmp_path / "log.jsonl", tmp_path / "contexts.jsonl"
    path.write_text(json.dumps(log))
    with pytest.raises(DataError, match="line 1, column gen_s: expected seconds, at most 1e"):
        import_log("openhands", path, contexts=out)
    assert not out.exists()


def test_any_damage_to_an_archives_directory_is_one_error(tmp_path):
    """Each byte of the directory at its end, changed in turn: what zipfile raises is ours."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/é_epoch_1.json", "{}")
    whole = buffer.getvalue()
    path = tmp_path / "log.eval"
    for at in range(whole.index(b"PK\x01\x02"), len(whole)):
        for value in (0x00, 0xB4, 0xFF, whole[at] ^ 0x10):
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            with pytest.raises(DataError):
                import_log("inspect-ai", path)


@pytest.mark.parametrize("latency", [1e12, 1e300, 1.7e308])
def test_a_latency_no_clock_has_seen_is_one_error(latency, tmp_path):
    log = agent_logs.openhands()[0]
    log["metrics"]["response_latencies"][0]["latency"] = latency
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(log))
    with pytest.raises(DataError, match="expected seconds, at most 1e"):
        import_log("openhands", path)
