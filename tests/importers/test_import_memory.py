"""An import streams: of a large file only the columns of the trace are in memory, and these few.

The figures of a 1 GB file are in ``benchmarks/import_memory.py``.
"""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapmodel.importers import Step, TaskRun, import_log
from leapmodel.importers.number_columns import NumberColumn
from leapmodel.importers.trace_columns import TraceColumns
from leapmodel.trace import Trace
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


N_STEPS = 50
MOST_BYTES_HELD = 48
MOST_BYTES_AT_THE_PEAK = 100


def steps_of(number):
    """Make the steps of a run as a BFCL log tells them, with actions that come again."""
    return [
        Step(step, 1 + step / 7, f'dig({{"depth":{step % 20}}})', prompt_tokens=step + number)
        for step in range(N_STEPS)
    ]


def test_a_step_takes_few_bytes():
    columns = TraceColumns()
    tracemalloc.start()
    try:
        for number in range(2_000):
            columns.add(TaskRun(f"task-{number}", steps_of(number)), 0)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        trace = Trace.from_frame(columns.frame(), are_canonical=True, copy=False)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < MOST_BYTES_HELD * trace.n_steps
    assert peak < MOST_BYTES_AT_THE_PEAK * trace.n_steps


def test_runs_of_several_files_come_in_the_order_of_a_trace():
    columns = TraceColumns()
    for task, run in (("b", 0), ("a", 0), ("b", 1), ("a", 2), ("a", 1)):
        columns.add(TaskRun(task, [Step(0, run + 1, None), Step(1, run + 1.5, "ls({})")]), run)
    frame = columns.frame()
    assert frame["task"].tolist() == ["b"] * 4 + ["a"] * 6
    assert frame["run"].tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 2, 2]
    assert frame["step"].tolist() == [0, 1] * 5
    assert frame["gen_s"].tolist() == [1, 1.5, 2, 2.5, 1, 1.5, 2, 2.5, 3, 3.5]
    assert frame["action"].tolist() == [None, "ls({})"] * 5
    assert "prompt_tokens" not in frame


@given(st.lists(st.lists(st.none() | st.just(0.0) | st.floats(0, 9), max_size=4), max_size=6))
def test_a_column_of_numbers_gives_them_back(parts):
    whole, by_array = NumberColumn(), NumberColumn()
    for part in parts:
        whole.extend(part)
        by_array.extend_by(np.array([np.nan if v is None else v for v in part]))
    given_values = [value for part in parts for value in part]
    rows = np.arange(len(given_values))
    for column in (whole, by_array):
        assert len(column) == len(given_values)
        assert column.at(rows) == given_values
        assert column.is_missing == all(value is None for value in given_values)
    if len(set(given_values)) == 1:
        assert whole.n_bytes == by_array.n_bytes == 0
