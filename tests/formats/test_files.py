"""Files that are damaged, of another kind, or can't be written."""

import contextlib
import errno
import gzip
import os
import tracemalloc
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from leapmodel import files, jsonlines
from leapmodel.errors import DataError, LeapModelError, UsageError
from leapmodel.jsonlines import iter_json_lines
from leapmodel.predictions import read_predictions
from leapmodel.trace import Trace, read_trace, write_trace

OBJECT = "expected a JSON object, found "


def message(path, read=read_trace, **options) -> str:
    with pytest.raises(DataError) as caught:
        read(path, **options)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert text.startswith(f"{path}: ")
    return text.removeprefix(f"{path}: ")


@pytest.fixture
def trace(step):
    return Trace.from_frame(pd.DataFrame([step(), step(step=1)]), {"source": "before"})


# ------------------------------------------------------------------ not a file of ours


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "expected at least one JSON record, found an empty file"),
        (b"\n  \n", "expected at least one JSON record, found an empty file"),
        (b"\xef\xbb\xbf", "expected at least one JSON record, found an empty file"),
        (b'{"leapmodel": "trace", "version": 1}\n', "expected at least one row, found none"),
        (b"\x7fELF\0\0\1", "expected Parquet or JSON Lines, found another kind of binary file"),
        (b"PAR1", None),
        (b"PAR1 and then something else that is long enough PAR1", None),
        (
            gzip.compress(b'{"task": "a"}\n' * 400, mtime=0)[:-20],  # the test's name holds it
            "expected whole gzip data, found compressed file ended before the"
            " end-of-stream marker was reached",
        ),
        (
            b"PK\x03\x04\0\0",
            "expected Parquet or JSON Lines, found a zip archive (unpack it first: unzip)",
        ),
        (
            '{"a": 1}'.encode("utf-16"),
            "expected Parquet or JSON Lines, found UTF-16 text (save it as UTF-8)",
        ),
        (
            b'[{"task": "a"}, {"task": "b"}]\n',
            "line 1: " + OBJECT + "a JSON array (write one object a line, as `jq -c '.[]'` does)",
        ),
        (
            b'[\n  {"task": "a"}\n]\n',
            "line 1: " + OBJECT + "a JSON array (write one object a line, as `jq -c '.[]'` does)",
        ),
        (
            b'{\n  "task": "a"\n}\n',
            "line 1: "
            + OBJECT
            + "a JSON object over several lines (write one a line, as `jq -c .` does)",
        ),
        (
            b"task,step,gen_s\na,0,1.5\n",
            "line 1: "
            + OBJECT
            + "what looks like CSV (pandas.read_csv(...).to_parquet(...) converts it)",
        ),
        (b"hello\n", "line 1: " + OBJECT + "Expecting value at position 1"),
        (b"3\n", "line 1: " + OBJECT + "3"),
        (
            b'{"leapmodel": "trace", "version": 2}\n{"task": "a"}\n',
            "expected format version 1, found version 2 (written by a newer leapmodel?)",
        ),
        (
            b'{"leapmodel": "trace", "version": "1"}\n{"task": "a"}\n',
            "expected format version 1, found version '1'",
        ),
        (
            b'{"leapmodel": "rounds", "version": 1}\n{"task": "a"}\n',
            "expected a trace file, found a 'rounds' file",
        ),
    ],
)
@pytest.mark.parametrize("lenient", [False, True])
def test_other_kinds_of_file(tmp_path, content, words, lenient):
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    found = message(path, lenient=lenient)
    if words is None:
        assert found.startswith("expected a complete Parquet file, found ")
    else:
        assert found == words


def test_a_file_that_is_not_there_or_no_file(tmp_path, monkeypatch):
    missing = tmp_path / "none.parquet"
    assert message(missing) == "expected a readable file, found no such file or directory"
    assert message(tmp_path) == "expected a file, found a folder"
    os.mkfifo(tmp_path / "pipe")  # and nobody writes: waiting would be for ever
    found = "expected a file, found a pipe or a device (save it to a file first)"
    assert message(tmp_path / "pipe") == found
    assert message(os.devnull) == found

    def denied(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "secret.jsonl").write_text("{}")
    monkeypatch.setattr("builtins.open", denied)
    found = message(tmp_path / "secret.jsonl")
    assert found == "expected a readable file, found permission denied"


def test_a_truncated_parquet_file(trace, tmp_path):
    path = tmp_path / "t.parquet"
    write_trace(trace, path)
    path.write_bytes(path.read_bytes()[:-20])
    assert message(path).startswith("expected a complete Parquet file, found ")


def test_text_in_parquet_that_is_not_utf_8(trace, tmp_path):
    path = tmp_path / "t.parquet"
    write_trace(trace, path)
    path.write_bytes(path.read_bytes().replace(b"ls({})", b"\xff\xff({})"))
    assert message(path).startswith("expected a complete Parquet file, found ")


def test_parquet_without_rows_or_columns(parquet, step, tmp_path):
    assert message(parquet()) == "expected at least one row, found none"
    path = tmp_path / "empty.parquet"
    pd.DataFrame([step()]).iloc[:0].to_parquet(path)
    assert message(path) == "expected at least one row, found none"


def test_parquet_with_a_column_twice(tmp_path, step, parquet):
    table = pq.read_table(parquet(step()))
    path = tmp_path / "twice.parquet"
    pq.write_table(table.append_column("gen_s", table["gen_s"]), path)
    assert message(path) == "expected each column once, found 'gen_s' twice"


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (b'{"leapmodel": "predictions"}', "expected a trace file, found a 'predictions' file"),
        (b'{"version": 9}', "expected format version 1, found version 9 (written by a newer "
                            "leapmodel?)"),
        (b"[1]", "expected a complete Parquet file, found metadata that is not a JSON object"),
        (b"\xff", None),
        (b"[" * 100_000, None),
    ],
)  # fmt: skip
def test_parquet_metadata(parquet, step, metadata, words):
    path = parquet(step(), metadata=metadata)
    with contextlib.suppress(DataError):
        files.kind_of(path)
    found = message(path)
    assert found == words or (words is None and found.startswith("expected a complete Parquet"))


def test_parquet_is_known_by_its_content_and_its_folder_is_no_column(trace, tmp_path):
    folder = tmp_path / "run=7"
    folder.mkdir()
    write_trace(trace, folder / "t.parquet")
    (folder / "t.parquet").rename(folder / "t.jsonl")
    assert read_trace(folder / "t.jsonl").frame["run"].tolist() == [0, 0]


def test_predictions_given_as_a_trace_and_a_trace_as_predictions(
    jsonl, parquet, step, prediction, trace, tmp_path
):
    write_trace(trace, tmp_path / "ours.parquet")
    found = message(tmp_path / "ours.parquet", read=read_predictions)
    assert found == "expected a predictions file, found a 'trace' file"
    for write in (jsonl, parquet):
        assert message(write(step()), read=read_predictions) == (
            "expected predictions made on the trace's contexts, found the columns of a trace "
            "(a run of the draft's own is --draft-run)"
        )
        assert message(write(prediction())) == (
            "expected the columns task, step, gen_s, action, found no column gen_s"
        )


# ------------------------------------------------------------------ a damaged line

DAMAGED = [
    (b'{"task": "a", "gen_s": 1.', OBJECT + "Expecting ',' delimiter at position 25"),
    (b'{"task": "a"', OBJECT + "Expecting ',' delimiter at position 13"),
    (b'{"task": "a" "run": 0}', OBJECT + "Expecting ',' delimiter at position 14"),
    (b'{"task": "caf\xe9"}', "expected UTF-8 text, found byte 0xe9 at position 14"),
    (b'{"task": "\0"}', "expected JSON text, found binary data"),
    (b'{"a":' * 100_000, OBJECT + "maximum recursion depth exceeded"),
    (b'{"a":' + b"9" * 5000 + b"}", OBJECT + "Exceeds the limit (4300 digits)"),
    (b"[1, 2]", OBJECT + "[1, 2]"),
    (b'"text"', OBJECT + "'text'"),
    (b"null", OBJECT + "None"),
    (b'{"task": "a"}{"task": "b"}', OBJECT + "Extra data at position 14"),
]


@pytest.mark.parametrize(("line", "words"), DAMAGED)
def test_damaged_line(jsonl, step, line, words):
    path = jsonl(step(), step(task="b"), line, step(task="c"))
    assert message(path).startswith(f"line 3: {words}")
    trace = read_trace(path, lenient=True)
    # the line is taken for the next step of the task before it
    assert trace.task_names == ["a", "c"]
    (dropped,) = trace.dropped
    assert dropped.task == "b"
    assert dropped.reason.startswith(f"{path}: line 3: {words}")


def test_a_file_cut_off_inside_its_last_line(jsonl, step):
    path = jsonl(step(), step(step=1))
    path.write_bytes(path.read_bytes()[:-10])
    found = message(path)
    assert found.startswith("line 2: " + OBJECT)
    assert found.endswith(" (the file ends inside this line)")


def test_a_damaged_first_step_costs_both_tasks(jsonl, step):
    path = jsonl(step(), b"{", step(task="b", step=1), step(task="c"))
    trace = read_trace(path, lenient=True)
    assert trace.task_names == ["c"]
    assert [d.task for d in trace.dropped] == ["a", "b"]


def test_a_damaged_line_before_any_row_has_no_task(jsonl, step):
    path = jsonl(b'{"leapmodel": "tr', step())
    trace = read_trace(path, lenient=True)
    assert trace.task_names == ["a"]
    assert [d.task for d in trace.dropped] == ["(no task name)"]


def test_blank_lines_and_windows_line_ends_are_no_matter(jsonl, step):
    path = jsonl("\r", b"\xef\xbb\xbf", step())
    assert message(path).startswith("line 2: ")
    path.write_bytes(b"\xef\xbb\xbf" + jsonl(step(), "", step(step=1)).read_bytes())
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_trace(path).n_steps == 2


# ------------------------------------------------------------------ a line without an end


def test_a_long_line_is_refused_before_it_is_read_whole(tmp_path, step, jsonl, monkeypatch):
    monkeypatch.setattr(jsonlines, "MAX_LINE_BYTES", 2**20)
    path = jsonl(step(), step(task="b"))
    with open(path, "ab") as stream:
        stream.write(b'{"task": "')
        stream.truncate(40 * 2**20)  # a sparse file: nothing is written
        stream.seek(0, os.SEEK_END)
        stream.write(b'"}\n' + jsonl(step(task="c"), name="c.jsonl").read_bytes())
    words = "line 3: expected lines of at most 1 MB, found a longer one"
    read_trace(jsonl(step(), name="warm.jsonl"))
    tracemalloc.start()
    assert message(path) == words
    trace = read_trace(path, lenient=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * 2**20
    assert trace.task_names == ["a", "c"]
    assert [d.reason for d in trace.dropped] == [f"{path}: {words}"]


def test_only_a_long_line_is_not_called_an_empty_file(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonlines, "MAX_LINE_BYTES", 100)
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"{" + b" " * 500)
    errors = []
    assert list(iter_json_lines(path, on_bad_line=errors.append)) == []
    assert len(errors) == 1
    assert message(path, lenient=True).startswith("line 1: expected lines of at most ")


def test_the_limit_is_64_mb():
    assert jsonlines.MAX_LINE_BYTES == 64 * 2**20


# ------------------------------------------------------------------ writing


class FullDisk:
    """Stand in for a file or a writer that fails half-way."""

    def __init__(self, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")


def fail_on_write(monkeypatch, name):
    if name.endswith(".parquet"):

        def half_written(table, where, **_):
            Path(where).write_bytes(b"PAR1 half")
            FullDisk()

        monkeypatch.setattr(pq, "write_table", half_written)
    else:

        def half_of_the_lines(_):
            yield '{"task": "a"\n'
            FullDisk()

        monkeypatch.setattr(files, "_json_lines", half_of_the_lines)


@pytest.mark.parametrize("name", ["t.parquet", "t.jsonl"])
@pytest.mark.parametrize("existed", [True, False])
def test_a_full_disk_leaves_no_partial_file(trace, tmp_path, monkeypatch, name, existed):
    path = tmp_path / name
    if existed:
        write_trace(trace, path)
    before = path.read_bytes() if existed else None
    fail_on_write(monkeypatch, name)
    with pytest.raises(UsageError) as caught:
        write_trace(trace, path)
    assert str(caught.value) == f"{path}: can't write it (No space left on device)"
    assert [p.name for p in tmp_path.iterdir()] == ([name] if existed else [])
    assert (path.read_bytes() if existed else None) == before


@pytest.mark.parametrize("name", ["t.parquet", "t.jsonl"])
def test_an_interruption_leaves_no_partial_file(trace, tmp_path, monkeypatch, name):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_json_lines", interrupted)
    monkeypatch.setattr(pq, "write_table", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_trace(trace, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("t.csv", "expected a name ending in .parquet or .jsonl"),
        ("t", "expected a name ending in .parquet or .jsonl"),
        ("none/t.jsonl", "its folder does not exist"),
        ("folder.jsonl", "can't write it (Is a directory)"),
        ("x" * 300 + ".jsonl", "can't write there (File name too long)"),
    ],
)
def test_places_that_can_not_be_written(trace, tmp_path, name, words):
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(UsageError) as caught:
        write_trace(trace, tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: {words}"
    assert [p.name for p in tmp_path.iterdir()] == ["folder.jsonl"]


def test_a_written_file_is_readable_by_others(trace, tmp_path):
    write_trace(trace, tmp_path / "t.jsonl")
    (tmp_path / "other").write_text("")
    assert (tmp_path / "t.jsonl").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_metadata_can_not_pass_the_file_off_as_another_kind(trace, tmp_path):
    odd = Trace(trace.frame, {"leapmodel": "predictions", "version": 7, "é": object})
    for name in ("t.jsonl", "t.parquet"):
        write_trace(odd, tmp_path / name)
        assert read_trace(tmp_path / name).metadata == {"é": str(object)}


@pytest.mark.parametrize("values", [[1, "x"], [{"a": 1}, 2], [2**70, 1], [{}, {}], ["\ud800", "x"]])
def test_what_parquet_can_not_hold_goes_to_json_lines(trace, tmp_path, values):
    odd = Trace(trace.frame.assign(mine=pd.Series(values, dtype=object)))
    with pytest.raises(UsageError) as caught:
        write_trace(odd, tmp_path / "t.parquet")
    assert str(caught.value) == (
        f"{tmp_path / 't.parquet'}: column mine: Parquet can't hold its values (of mixed kinds?); "
        "write a .jsonl file instead"
    )
    assert list(tmp_path.iterdir()) == []
    write_trace(odd, tmp_path / "t.jsonl")
    expected = ["\\ud800", "x"] if values[1] == "x" and values[0] != 1 else values
    assert read_trace(tmp_path / "t.jsonl").frame["mine"].tolist() == expected


def test_every_refusal_is_one_of_the_packages_own(tmp_path):
    # whatever the bytes are, a person sees one line and no traceback
    import random

    rng = random.Random(0)
    good = b'{"task": "a", "segment": 0, "step": 0, "gen_s": 1.5, "action": "ls({})"}\n'
    pieces = [b"{", b"}", b"\0", b"\xff", b"PAR1", b"\n", b"[", b'"', b",", b"1e999", b"\\ud800"]
    path = tmp_path / "t.jsonl"
    for _ in range(300):
        content = bytearray(good * 3)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(content))
            content[at : at + rng.randrange(3)] = rng.choice(pieces)
        path.write_bytes(content)
        for lenient in (False, True):
            with contextlib.suppress(LeapModelError):
                read_trace(path, lenient=lenient)


def test_gzip_is_read_as_it_is(tmp_path):
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"leapmodel": "trace"}\n{"task": "a", "step": 0}\n'))
    table = files.read_table(path, kind="trace")
    assert table.frame["task"].tolist() == ["a"]
    assert table.positions.tolist() == [2]
