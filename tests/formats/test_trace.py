"""The trace format: what is read, what is refused and with which words, what lenient keeps."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leapmodel.actions import RESPOND, calls_any
from leapmodel.errors import DataError
from leapmodel.trace import Trace, read_trace, write_trace

NAN, INF = float("nan"), float("inf")


def message(path, **options) -> str:
    """Return the text of the refusal, after the file's name; it must be one line."""
    with pytest.raises(DataError) as caught:
        read_trace(path, **options)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert text.startswith(f"{path}: ")
    return text.removeprefix(f"{path}: ")


# ------------------------------------------------------------------ a wrong cell

TIME = "expected a number > 0, found "
WHOLE = "expected a whole number >= 0, found "
WRONG_CELLS = [
    ("gen_s", NAN, TIME + "NaN"),
    ("gen_s", None, TIME + "nothing"),
    ("gen_s", -1.5, TIME + "-1.5"),
    ("gen_s", 0, TIME + "0"),
    ("gen_s", INF, TIME + "inf"),
    ("gen_s", "1.5", TIME + "the text '1.5'"),
    ("gen_s", True, TIME + "True"),
    ("gen_s", [1.5], TIME + "[1.5]"),
    ("gen_s", 10**400, TIME + "1" + "0" * 56 + "..."),
    ("tool_s", -0.1, "expected a number >= 0, found -0.1"),
    ("tool_s", NAN, "expected a number >= 0, found NaN"),
    ("tool_s", "", "expected a number >= 0, found the text ''"),
    ("step", 0.5, WHOLE + "0.5"),
    ("step", -1, WHOLE + "-1"),
    ("step", None, WHOLE + "nothing"),
    ("step", "0", WHOLE + "the text '0'"),
    ("step", 2**53 + 2, "expected a whole number of at most 2^53, found 9007199254740994"),
    ("segment", NAN, WHOLE + "NaN"),
    ("run", "first", WHOLE + "the text 'first'"),
    ("task", None, "expected text, found nothing"),
    (
        "task",
        7,
        "expected text, found 7 (a name is text: put it in quotes, or use astype(str) in pandas)",
    ),
    ("task", 7.5, "expected text, found 7.5"),
    ("task", ["x"], "expected text, found ['x']"),
    ("action", 3, "expected text or null, found 3"),
    ("action", {"name": "ls"}, "expected text or null, found {'name': 'ls'}"),
    ("kind", "reply", "expected tool or respond or terminate, found the text 'reply'"),
    ("started_s", "noon", "expected a number, found the text 'noon'"),
    ("prompt_tokens", 1.5, WHOLE + "1.5"),
    ("boundary", "yes", "expected true or false, found the text 'yes'"),
]


@pytest.mark.parametrize(("column", "value", "words"), WRONG_CELLS)
def test_wrong_cell_in_json_lines(jsonl, step, column, value, words):
    path = jsonl(step(task="good"), step(**{column: value}), step(task="other"))
    assert message(path) == f"line 2, column {column}: {words}"
    trace = read_trace(path, lenient=True)
    assert trace.task_names == ["good", "other"]
    (dropped,) = trace.dropped
    name = "a" if column != "task" else "(no task name)"
    assert (dropped.task, dropped.reason) == (name, f"{path}: line 2, column {column}: {words}")


@pytest.mark.parametrize(
    ("column", "array", "words"),
    [
        ("gen_s", pa.array([1.5, NAN]), TIME + "NaN"),
        ("gen_s", pa.array([1.5, None]), TIME + "nothing"),
        ("gen_s", pa.array([1, None]), TIME + "nothing"),
        ("gen_s", pa.array([1.5, -1.5]), TIME + "-1.5"),
        ("gen_s", pa.array([1, 0], pa.uint8()), TIME + "0"),
        ("gen_s", pa.array([1.5, INF], pa.float32()), TIME + "inf"),
        ("gen_s", pa.array([1.5, 0.0]).dictionary_encode(), TIME + "0.0"),
        (
            "gen_s",
            pa.array([decimal.Decimal("1.5"), decimal.Decimal("-2.5")]),
            TIME + "Decimal('-2.5')",
        ),
        (
            "step",
            pa.array([0, 2**64 - 1], pa.uint64()),
            "expected a whole number of at most 2^53, found 18446744073709551615",
        ),
        ("step", pa.array([0, None]), WHOLE + "nothing"),
        ("task", pa.array(["good", None]), "expected text, found nothing"),
        ("task", pa.array(["good", None]).dictionary_encode(), "expected text, found nothing"),
        ("boundary", pa.array([1, 0]), None),
    ],
)
def test_wrong_cell_in_parquet(parquet, step, column, array, words):
    path = parquet(step(task="good"), step(), **{column: array})
    if words is None:
        assert message(path) == "row 1, column boundary: expected true or false, found 1"
        return
    assert message(path) == f"row 2, column {column}: {words}"
    trace = read_trace(path, lenient=True)
    assert trace.task_names == ["good"]
    assert trace.dropped[0].reason == f"{path}: row 2, column {column}: {words}"


@pytest.mark.parametrize(
    ("column", "array", "found"),
    [
        ("gen_s", pa.array(["1", "2"]), "the text '1'"),
        ("gen_s", pa.array([True, True]), "True"),
        ("gen_s", pa.array([1, 2], pa.timestamp("s")), "Timestamp('1970-01-01 00:00:01')"),
        ("gen_s", pa.array([1, 2], pa.duration("s")), "Timedelta('0 days 00:00:01')"),
        ("gen_s", pa.array([[1.0], [2.0]]), "array([1.])"),
        ("gen_s", pa.array([{"s": 1}, {"s": 2}]), "{'s': 1}"),
        ("gen_s", pa.nulls(2), "nothing"),
        ("gen_s", pa.array(["1", "2"]).dictionary_encode(), "the text '1'"),
    ],
)
def test_wrong_column_in_parquet(parquet, step, column, array, found):
    path = parquet(step(), step(step=1), **{column: array})
    assert message(path) == f"row 1, column {column}: {TIME}{found}"
    # where every task is bad there is nothing to keep
    assert message(path, lenient=True).startswith("expected at least one good task, found 1 bad,")


def test_task_of_integers_in_parquet_says_what_to_do(parquet, step):
    path = parquet(step(task=7), step(task=8))
    assert message(path) == (
        "row 1, column task: expected text, found 7 "
        "(a name is text: put it in quotes, or use astype(str) in pandas)"
    )
    assert message(parquet(step(), task=pa.array([b"a"]))) == (
        "row 1, column task: expected text, found b'a'"
    )


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", "a"], pa.large_string()),
        pa.array(["a", "a"], pa.string_view()),
        pa.array(["a", "a"]).dictionary_encode(),
    ],
)
def test_text_of_any_parquet_kind_is_text(parquet, step, array):
    trace = read_trace(parquet(step(), step(step=1), task=array, action=array))
    assert trace.task_names == ["a"]
    assert trace.actions.tolist() == ["a", "a"]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 2], pa.uint64()),
        pa.array([1.0, 2.0], pa.float32()),
        pa.array([decimal.Decimal("1.00"), decimal.Decimal("2.00")]),
        pa.array([1, 2]).dictionary_encode(),
    ],
)
def test_numbers_of_any_parquet_kind_are_numbers(parquet, step, array):
    trace = read_trace(parquet(step(), step(step=1), gen_s=array, prompt_tokens=array))
    assert trace.gen_s.tolist() == [1, 2]
    assert trace.frame["prompt_tokens"].tolist() == [1, 2]


# ------------------------------------------------------------------ columns, keys and order


@pytest.mark.parametrize("column", ["task", "step", "gen_s", "action"])
def test_missing_column(jsonl, parquet, step, column):
    record = step()
    del record[column]
    words = f"expected the columns task, step, gen_s, action, found no column {column}"
    for path in (jsonl(record), parquet(record)):
        assert message(path) == words
        assert message(path, lenient=True) == words


ORDER = [
    ([0, 0], "expected each (task, run, step) once, found a second one"),
    ([0, 2], "expected steps without a gap (0, 1, 2, …), found 2"),
    ([1, 2], "expected a run's first step to be 0, found 1"),
]


@pytest.mark.parametrize(("steps", "words"), ORDER)
@pytest.mark.parametrize("kind", ["line", "row"])
def test_step_keys(jsonl, parquet, step, kind, steps, words):
    write = jsonl if kind == "line" else parquet
    path = write(step(task="good"), *(step(step=s) for s in steps))
    place = 2 if steps == [1, 2] else 3
    assert message(path) == f"{kind} {place}, column step: {words}"
    trace = read_trace(path, lenient=True)
    assert trace.task_names == ["good"]
    assert [str(d.reason) for d in trace.dropped] == [
        f"{path}: {kind} {place}, column step: {words}"
    ]


def test_segments_go_forward_within_a_run(jsonl, step):
    path = jsonl(step(segment=1), step(step=1, segment=0))
    assert message(path) == (
        "line 2, column segment: expected segments in order along the steps, found 0"
    )
    assert read_trace(jsonl(step(segment=1), step(run=1, segment=0))).n_segments == 2


def test_runs_of_a_task_are_apart_and_a_bad_run_takes_its_task_along(jsonl, step):
    path = jsonl(step(), step(run=1), step(run=1, step=1, gen_s=0), step(task="b"))
    trace = read_trace(path, lenient=True)
    assert trace.task_names == ["b"]
    assert [d.task for d in trace.dropped] == ["a"]


def test_each_dropped_task_is_listed_once_with_its_first_reason(jsonl, step):
    path = jsonl(
        step(gen_s=0),
        step(step=1, gen_s="x"),
        step(task="b", action=1),
        step(task="c"),
        step(task=""),
    )
    trace = read_trace(path, lenient=True)
    assert trace.task_names == ["c", ""]
    assert [(d.task, d.reason.split(": ", 1)[1]) for d in trace.dropped] == [
        ("a", f"line 1, column gen_s: {TIME}0"),
        ("b", "line 3, column action: expected text or null, found 1"),
    ]


def test_shuffled_rows_are_put_in_order(jsonl, parquet, step):
    records = [
        step(task=task, run=run, step=s, segment=s // 2, gen_s=1 + s)
        for task, run, s in zip(
            "bababab", (1, 0, 0, 0, 1, 0, 1), (1, 2, 0, 0, 0, 1, 2), strict=True
        )
    ]
    for path in (jsonl(*records), parquet(*records)):
        frame = read_trace(path).frame
        keys = list(zip(frame["task"], frame["run"], frame["step"], strict=True))
        of_b = [("b", 0, 0), ("b", 1, 0), ("b", 1, 1), ("b", 1, 2)]
        assert keys == [*of_b, ("a", 0, 0), ("a", 0, 1), ("a", 0, 2)]
        assert frame["gen_s"].tolist() == [1, 1, 2, 3, 1, 2, 3]
        assert read_trace(path).segment_lengths.tolist() == [1, 2, 1, 2, 1]


def test_an_error_after_shuffling_names_the_line_of_the_file(jsonl, step):
    path = jsonl(step(step=3), step(step=0), step(step=1))
    assert message(path).startswith("line 1, column step: expected steps without a gap")


# ------------------------------------------------------------------ what is filled in


def test_defaults(jsonl):
    path = jsonl('{"task":"a","segment":0,"step":0,"gen_s":1,"action":null}')
    frame = read_trace(path).frame
    assert frame.to_dict("records") == [
        {"task": "a", "run": 0, "segment": 0, "step": 0, "gen_s": 1.0, "tool_s": 0.0,
         "action": None, "kind": None}
    ]  # fmt: skip


def test_actions_are_compared_by_value(jsonl, parquet, step):
    written = ['cd( {"b": 1.0, "a": "x"} )', 'cd({"a":"x","b":1})', "", None, "click 3"]
    records = [step(step=i, action=a) for i, a in enumerate(written)]
    canonical = ['cd({"a":"x","b":1})', 'cd({"a":"x","b":1})', RESPOND, None, "click 3"]
    for path in (jsonl(*records), parquet(*records)):
        trace = read_trace(path)
        assert trace.actions.tolist() == canonical
        assert trace.frame["kind"].tolist() == ["tool", "tool", "respond", None, "tool"]
        again = Trace.from_frame(trace.frame)
        assert again.actions.tolist() == canonical


def test_half_a_surrogate_pair_survives_as_its_escape(jsonl, step, tmp_path):
    path = jsonl(step(task="\ud800", action="\udc00", x="\udfff", z={"\ud83d": ["\ud800"]}))
    trace = read_trace(path)
    for name in ("b.jsonl", "b.parquet"):
        write_trace(trace, tmp_path / name)
        again = read_trace(tmp_path / name).frame
        assert again["task"].tolist() == ["\\ud800"]
        assert again["action"].tolist() == ["\\udc00"]
        assert again["x"].tolist() == ["\\udfff"]


# ------------------------------------------------------------------ from memory


def test_a_frame_in_memory_is_checked_alike(step):
    frame = pd.DataFrame([step(), step(step=1, gen_s=np.nan)], index=[7, 7])
    with pytest.raises(DataError) as caught:
        Trace.from_frame(frame, source="mine")
    assert str(caught.value) == f"mine: row 2, column gen_s: {TIME}nothing"
    with pytest.raises(DataError, match=r"^trace: expected at least one row, found none$"):
        Trace.from_frame(frame.iloc[:0])
    twice = pd.concat([frame, frame[["gen_s"]]], axis=1)
    with pytest.raises(DataError, match=r"^trace: expected each column once, found 'gen_s' twice$"):
        Trace.from_frame(twice)


def test_numpy_and_categorical_values_in_memory(step):
    frame = pd.DataFrame([step(), step(step=1)])
    frame["gen_s"] = pd.Series([np.float32(1.5), np.int64(2)], dtype=object)
    frame["task"] = frame["task"].astype("category")
    frame["action"] = frame["action"].astype("category")
    frame["prompt_tokens"] = pd.array([5, None], dtype="Int64")
    trace = Trace.from_frame(frame)
    assert trace.gen_s.tolist() == [1.5, 2]
    assert trace.frame["prompt_tokens"].isna().tolist() == [False, True]
    frame["gen_s"] = pd.Series([1.5, np.bool_(True)], dtype=object)
    with pytest.raises(DataError, match=r"row 2, column gen_s: expected a number > 0, found True$"):
        Trace.from_frame(frame)
    frame["gen_s"] = pd.Series([1.5, 2j], dtype=object)
    with pytest.raises(DataError, match=r"row 2, column gen_s: expected a number > 0, found 2j$"):
        Trace.from_frame(frame)


def test_half_a_surrogate_pair_in_memory_is_no_name(step):
    frame = pd.DataFrame({k: pd.Series([v], dtype=object) for k, v in step(task="\ud800").items()})
    with pytest.raises(DataError) as caught:
        Trace.from_frame(frame)
    assert str(caught.value) == (
        "trace: row 1, column task: expected text, found the text '\\ud800' "
        "(half a surrogate pair is no character)"
    )


# ------------------------------------------------------------------ round trip

names = st.text(min_size=1, max_size=5)
extras = {
    "note": st.none() | st.text(max_size=5),
    "score": st.none() | st.floats(allow_nan=False, allow_infinity=False),
    "seen": st.booleans(),
    "tags": st.lists(st.integers(0, 9), max_size=2),
}


@st.composite
def traces(draw):
    rows = []
    for task in draw(st.lists(names, min_size=1, max_size=3, unique=True)):
        for run in draw(st.lists(st.integers(0, 2**53), min_size=1, max_size=2, unique=True)):
            segment = 0
            for step in range(draw(st.integers(1, 3))):
                segment += draw(st.integers(0, 1))
                rows.append(
                    {
                        "task": task, "run": run, "segment": segment, "step": step,
                        "gen_s": draw(st.floats(min_value=1e-300, max_value=1e8)),
                        "tool_s": draw(st.floats(min_value=0, max_value=1e8)),
                        "action": draw(st.none() | st.text(max_size=6)),
                        "started_s": draw(st.none() | st.floats(-1e9, 1e9)),
                        "prompt_tokens": draw(st.none() | st.integers(0, 10**6)),
                        **{name: draw(values) for name, values in extras.items()},
                    }
                )  # fmt: skip
    metadata = draw(st.dictionaries(st.sampled_from(["source", "é", "n"]), st.integers()))
    return Trace.from_frame(pd.DataFrame(rows), metadata)


def plain(frame):
    """Return cells as plain values, so that a list is a list and any missing value None."""

    def cell(value):
        if isinstance(value, (list, np.ndarray)):
            return list(value)
        return None if value is None or value != value else value

    return {name: [cell(v) for v in frame[name].astype(object)] for name in frame.columns}


@settings(max_examples=40, deadline=None)
@given(trace=traces(), suffix=st.sampled_from([".parquet", ".jsonl", ".json"]))
def test_round_trip(tmp_path_factory, trace, suffix):
    path = tmp_path_factory.mktemp("round") / f"t{suffix}"
    write_trace(trace, path)
    again = read_trace(path)
    assert plain(again.frame) == plain(trace.frame)
    assert again.metadata == trace.metadata
    assert [again.frame[c].dtype for c in ("run", "step", "gen_s")] == ["int64", "int64", "float64"]


def test_unknown_columns_survive_in_both_formats(step, tmp_path):
    frame = pd.DataFrame([step(), step(step=1)]).assign(
        note=["x", None],
        when=[pd.Timestamp("2025-01-01"), pd.NaT],
        nested=[{"a": [1, 2]}, {"a": []}],
        group=pd.Categorical(["u", "v"]),
        big=[2**62, 1],
        day=[datetime.date(2025, 1, 2), None],
    )
    trace = Trace.from_frame(frame, {"source": "mine", "n": np.int64(3)})
    write_trace(trace, tmp_path / "t.parquet")
    parquet = read_trace(tmp_path / "t.parquet")
    assert parquet.metadata == {"source": "mine", "n": 3}
    assert parquet.frame["when"].tolist()[0] == pd.Timestamp("2025-01-01")
    assert parquet.frame["when"].isna().tolist() == [False, True]
    write_trace(parquet, tmp_path / "t.jsonl")
    lines = read_trace(tmp_path / "t.jsonl")
    assert lines.metadata == parquet.metadata
    assert lines.frame["when"].tolist()[0] == "2025-01-01 00:00:00"
    assert lines.frame["when"].isna().tolist() == [False, True]
    for trace in (parquet, lines):
        assert trace.frame["group"].tolist() == ["u", "v"]
        assert trace.frame["big"].tolist() == [2**62, 1]
        assert trace.frame["note"].isna().tolist() == [False, True]
        assert [list(cell["a"]) for cell in trace.frame["nested"]] == [[1, 2], []]


# ------------------------------------------------------------------ boundary tools


def brute_force_segments(rows, patterns):
    """Renumber segments one step at a time."""
    result, before = [], None
    for task, run, segment, action in rows:
        if before is None or before[:2] != (task, run):
            number = 0
        elif before[2] != segment or calls_any(before[3], patterns):
            number += 1
        result.append(number)
        before = (task, run, segment, action)
    return result


@settings(max_examples=60, deadline=None)
@given(trace=traces(), data=st.data())
def test_boundary_tools_against_brute_force(trace, data):
    tools = st.sampled_from(["send_mail({})", "ls({})", "ls({})\nbook({})", RESPOND, None])
    actions = data.draw(st.lists(tools, min_size=trace.n_steps, max_size=trace.n_steps))
    trace = Trace.from_frame(trace.frame.assign(action=actions))
    patterns = ["send_*", "book"]
    split = trace.with_boundary_tools(patterns)
    apart = trace.with_boundary_tools(["send_*"]).with_boundary_tools(["book"])
    columns = (trace.frame[c] for c in ("task", "run", "segment"))
    rows = list(zip(*columns, trace.actions, strict=True))
    assert split.frame["segment"].tolist() == brute_force_segments(rows, patterns)
    assert split.is_boundary.tolist() == [calls_any(a, patterns) for a in actions]
    assert split.actions.tolist() == trace.actions.tolist()
    # one pattern after the other is both at once
    assert apart.frame["segment"].tolist() == split.frame["segment"].tolist()
    assert apart.is_boundary.tolist() == split.is_boundary.tolist()
    assert apart.metadata["boundary_tools"] == patterns


def test_boundary_survives_a_file(step, tmp_path):
    trace = Trace.from_frame(pd.DataFrame([step(action="send({})"), step(step=1)]))
    split = trace.with_boundary_tools(["send"])
    for name in ("t.jsonl", "t.parquet"):
        write_trace(split, tmp_path / name)
        again = read_trace(tmp_path / name)
        assert again.is_boundary.tolist() == [True, False]
        assert again.segment_lengths.tolist() == [1, 1]
        assert again.metadata == {"boundary_tools": ["send"], "warnings": []}


def test_a_pattern_that_fits_nothing_is_said(step):
    trace = Trace.from_frame(pd.DataFrame([step()]))
    split = trace.with_boundary_tools(["send_*", "book"])
    assert split.metadata["warnings"] == [
        "no step calls a tool that fits the boundary pattern send_*",
        "no step calls a tool that fits the boundary pattern book",
    ]
    assert split.n_segments == 1
    assert not split.is_boundary.any()


def test_a_pattern_that_fits_is_not_mentioned_beside_one_that_does_not(step):
    trace = Trace.from_frame(pd.DataFrame([step(action="send_mail({})")]))
    split = trace.with_boundary_tools(["send_*", "bok_*"])
    assert split.metadata["warnings"] == [
        "no step calls a tool that fits the boundary pattern bok_*"
    ]


def test_without_a_segment_column_a_segment_starts_after_each_reply(step):
    actions = ["a({})", "<respond/>", "b({})", "<terminate/>", None]
    rows = [step(step=i, action=action) for i, action in enumerate(actions)]
    rows.append(step(task="other", action="a({})"))
    frame = pd.DataFrame(rows).drop(columns="segment")
    trace = Trace.from_frame(frame.sample(frac=1, random_state=1))
    by_task = trace.frame.groupby("task")["segment"].agg(list).to_dict()
    assert sorted(by_task.values()) == [[0], [0, 0, 1, 1, 2]]


def test_a_misspelt_optional_column_is_said(step):
    frame = pd.DataFrame([step()]).drop(columns="tool_s", errors="ignore")
    trace = Trace.from_frame(frame.assign(tools=2.0, observation="x"))
    assert trace.metadata["warnings"] == ["the column tools is not used; is it meant to be tool_s?"]
    assert "warnings" not in Trace.from_frame(pd.DataFrame([step()]).assign(note="x")).metadata


def test_a_boundary_in_a_file_ends_its_segment(step):
    frame = pd.DataFrame([step(), step(step=1), step(step=2)]).assign(boundary=[True, False, False])
    assert Trace.from_frame(frame).segment_lengths.tolist() == [1, 2]


@pytest.mark.parametrize("column", ["gen_s", "tool_s"])
def test_a_time_in_another_unit_is_refused(jsonl, step, column):
    path = jsonl(step(**{column: 1.5e9}))
    words = "expected seconds, at most 1e+08 (another unit?), found 1500000000.0"
    assert message(path) == f"line 1, column {column}: {words}"
