import gzip
import json

import pandas as pd
import pytest

from leapmodel.actions import RESPOND, TERMINATE
from leapmodel.errors import DataError, UsageError
from leapmodel.importers import import_log
from tests.importers.agent_logs import TABLE


@pytest.fixture
def table(tmp_path):
    def import_it(text, suffix=".csv", **options):
        path = tmp_path / f"t{suffix}"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return import_log("table", path, **options)

    return import_it


def test_rows_of_a_task_are_gathered_in_order(table):
    trace = table(TABLE)
    frame = trace.frame
    assert trace.task_names == ["a", "b"]
    assert frame["segment"].tolist() == [0, 0, 1, 0]
    assert frame["gen_s"].tolist() == [1.5, 0.5, 0.75, 2.5]
    assert frame["tool_s"].tolist() == [0.25, 0, 0, 0]
    assert frame["action"].tolist() == ['sing({"to":"owl"})', RESPOND, "sing({})", "hum({})"]
    assert frame["prompt_tokens"].tolist() == [10, 12, 13, 11]


def test_columns_and_unit_by_name(table):
    text = "case;latency ms;nr\nx;250;1\nx;1500;0\n"
    for columns in (
        ["task=case", "gen_s=latency ms", "step=nr"],
        {"task": "case", "gen_s": "latency ms", "step": "nr"},
    ):
        trace = table(text, columns=columns, time_unit="ms")
        assert trace.gen_s.tolist() == [1.5, 0.25]
        assert not trace.has_actions
        assert any("actions are unknown" in line for line in trace.metadata["warnings"])


@pytest.mark.parametrize(
    ("start", "end", "unit"),
    [
        ("2026-02-03T12:00:00Z", "2026-02-03T12:00:01.5Z", None),
        ("2026-02-03 12:00:00", "2026-02-03 12:00:01.5", None),
        ("1770120000", "1770120001.5", None),
        ("1770120000000", "1770120001500", None),
        ("1770120000000000000", "1770120001500000000", None),
        ("1000", "2500", "ms"),
    ],
)
def test_start_and_end_in_any_spelling(table, start, end, unit):
    trace = table(f"task,start,end\nx,{start},{end}\n", time_unit=unit)
    assert trace.gen_s.tolist() == [pytest.approx(1.5, abs=1e-6)]


def test_rows_are_ordered_by_start_without_a_step(table):
    trace = table("task,start,gen_s\nx,1770120009,1\nx,1770120001,2\nx,1770120005,3\n")
    assert trace.gen_s.tolist() == [2, 3, 1]


def test_segments_and_runs_of_ones_own(table):
    trace = table("task,run,segment,gen_s\nx,1,u,1\nx,1,v,2\nx,1,v,3\nx,0,u,4\n")
    assert trace.frame[["run", "segment"]].to_numpy().tolist() == [[0, 0], [1, 0], [1, 1], [1, 1]]


def test_kinds_and_actions_as_text_or_lists(table):
    calls = json.dumps([{"name": "a", "args": {"x": 1.0}}, {"name": "b"}])
    rows = [
        {"task": "x", "gen_s": 1.5, "action": "ls( {} )", "kind": "tool"},
        {"task": "x", "gen_s": 2, "action": calls},
        {"task": "x", "gen_s": 3, "action": None, "kind": "respond"},
        {"task": "x", "gen_s": 4, "kind": "terminate"},
        {"task": "x", "gen_s": 5},
    ]
    trace = table("".join(json.dumps(row) + "\n" for row in rows), ".jsonl")
    assert trace.actions.tolist() == ["ls({})", 'a({"x":1})\nb({})', RESPOND, TERMINATE, None]
    assert trace.frame["segment"].tolist() == [0, 0, 0, 1, 2]


def test_parquet(tmp_path):
    frame = pd.DataFrame(
        {
            "task": [7, 7],
            "begun": pd.to_datetime(["2026-02-03T12:00:00", "2026-02-03T12:00:05"]),
            "done": pd.to_datetime(["2026-02-03T12:00:01", "2026-02-03T12:00:07"]),
            "tool": ["sing", None],
            "arguments": [{"to": "owl"}, None],
            "other": [1, 2],
        }
    )
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    trace = import_log("table", path, columns=["start=begun", "end=done"])
    assert trace.gen_s.tolist() == [1, 2]
    assert trace.task_names == ["7"]
    assert trace.actions.tolist() == ['sing({"to":"owl"})', RESPOND]


def test_gzip_and_a_byte_order_mark(table):
    assert table(gzip.compress(b"\xef\xbb\xbf" + TABLE.encode())).n_steps == 4


def test_the_line_of_a_row_is_told(table):
    lines = "".join(f"t{n % 5},{n + 1}\n" for n in range(20))
    assert table("task,gen_s\n" + lines).n_tasks == 5
    with pytest.raises(DataError, match="line 21, column gen_s"):
        table("task,gen_s\n" + lines.replace("t4,20", "t4,x"))


BAD = {
    "line 2, column gen_s: expected a number of s >= 0, found the text 'x'": "task,gen_s\na,x\n",
    "line 3, column gen_s: expected a number of s > 0, found nothing": "task,gen_s\na,1\nb,\n",
    "line 2, column gen_s: expected a number of s > 0, found the text '0'": "task,gen_s\na,0\n",
    "line 2, column task: expected text, found nothing": "task,gen_s\n,1\n",
    "line 3, column step: expected each step of a run once": "task,gen_s,step\na,1,3\na,1,3\n",
    "line 2, column step: expected a whole number": "task,gen_s,step\na,1,\n",
    "line 2, column end: .* found the same time": "task,start,end\na,1770120000,1770120000\n",
    "line 2, column end: .* found 2 s before": "task,start,end\na,1770120002,1770120000\n",
    "line 2, column end: expected a time, found nothing": "task,start,end\na,1770120000,\n",
    "line 2, column start: expected a time": "task,start,end\na,noon,1770120000\n",
    "line 2, column kind: expected respond or": "task,gen_s,kind\na,1,sing\n",
    "line 2, column user_turn: expected true or false": "task,gen_s,user_turn\na,1,maybe\n",
    "line 3: expected 2 cells as in the header, found 3": "task,gen_s\na,1\na,1,2\n",
    "line 3: expected 2 cells as in the header, found 1": "task,gen_s\na,1\na\n",
    "line 2: expected CSV, found unexpected end of data": 'task,gen_s\n"a,1\n',
    "expected each column once, found 'gen_s' twice": "task,gen_s,gen_s\na,1,2\n",
    "expected at least one row, found none": "task,gen_s\n",
    "expected a column gen_s .*name yours with --column gen_s=YOURS": "task,latency\na,1\n",
    "expected a column task": "case,gen_s\na,1\n",
}


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_is_said_in_one_line(message, table):
    with pytest.raises(DataError, match=message.replace("(", r"\(")) as caught:
        table(BAD[message])
    assert "\n" not in str(caught.value)


def test_bad_tasks_are_dropped_whole_in_lenient_use(table):
    trace = table("task,gen_s\na,1\nb,2\na,x\na,3\n", lenient=True)
    assert trace.task_names == ["b"]
    assert [entry.task for entry in trace.dropped] == ["a"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["gen=x"]}, r"no field 'gen' \(did you mean gen_s\?\)"),
        ({"columns": ["gen_s"]}, "expected a text such as gen_s=latency_ms"),
        ({"columns": ["gen_s=a", "gen_s=b"]}, "gen_s is named twice"),
        ({"columns": 3}, "expected texts such as"),
        ({"time_unit": "h"}, "time_unit: expected s, ms, us, ns, found 'h'"),
    ],
)
def test_options_that_are_not_understood(table, options, message):
    with pytest.raises(UsageError, match=message):
        table(TABLE, **options)


def test_a_named_column_that_is_not_there(table):
    with pytest.raises(DataError, match=r"the column tols for tool_s, .*did you mean tool_s\?"):
        table(TABLE, columns=["tool_s=tols"])
