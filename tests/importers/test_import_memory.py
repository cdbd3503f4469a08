"""An import streams: of a large file only the columns of the trace are in memory.

The figures of a 1 GB file are in ``benchmarks/import_memory.py``.
"""

import json
import tracemalloc

import pytest

from leapmodel.importers import import_log
from tests.importers import agent_logs, span_logs

FILE_BYTES = 60e6
MOST_BYTES = 40e6
TEXT = "a long observation of the shed, " * 900


def bfcl(number):
    yield {
        "id": f"task-{number}",
        "result": [[[{"dig": json.dumps({"depth": number})}], "Done."]],
        "latency": [[1.0 + number % 7, 0.5]],
        "inference_log": [TEXT],
    }


def openhands(number):
    record = agent_logs.openhands()[0]
    yield {**record, "instance_id": f"task-{number}", "instruction": TEXT}


def otlp(number):
    lines = (span_logs.FIXTURES / "otlp_new.jsonl").read_text().splitlines()
    for line in lines:
        for trace in ("a" * 32, "b" * 32):
            line = line.replace(trace, f"{trace[0]}{number:031x}")
        yield json.loads(line.replace("Water the fern.", TEXT))


@pytest.mark.parametrize(
    ("name", "records"), [("bfcl", bfcl), ("openhands", openhands), ("otlp", otlp)]
)
def test_a_large_file_is_not_in_memory(name, records, tmp_path):
    path = tmp_path / "log.jsonl"
    with open(path, "w", encoding="utf-8") as stream:
        number = 0
        while stream.tell() < FILE_BYTES:
            # of many tasks at once, as asking where the file stands takes a while
            for _ in range(100):
                stream.writelines(json.dumps(record) + "\n" for record in records(number))
                number += 1
    tracemalloc.start()
    try:
        trace = import_log(name, path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert trace.n_tasks >= number
    assert peak < MOST_BYTES
    path.unlink()  # pytest would keep it
