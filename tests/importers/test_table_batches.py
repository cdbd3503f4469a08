"""Reading a table by the batch gives what reading it row by row gives, errors included."""

import csv
import io
import json
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leapmodel.errors import DataError
from leapmodel.importers import table, table_csv, table_rows
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.table_columns import FIELDS

NAMES = st.sampled_from(["a", "b", "c"])
SECONDS = st.sampled_from([0.5, 2, 1e-3, 12.25])
COUNTS = st.one_of(st.none(), st.integers(0, 9), st.sampled_from([3.0, 2**53]))
MOMENTS = st.sampled_from(["2026-02-03T12:00:00", "2026-02-03 12:00:01Z", 1770120000, 1.77e9])
GOOD = {
    "task": NAMES,
    "run": st.sampled_from([None, 0, 1]),
    "step": st.integers(0, 400),
    "gen_s": SECONDS,
    "tool_s": st.one_of(st.none(), SECONDS),
    "start": MOMENTS,
    "segment": st.sampled_from([None, "u", 1, 1.0, True, ["v"]]),
    "user_turn": st.sampled_from([None, True, False, "yes", "0"]),
    "kind": st.sampled_from([None, "tool", "respond", "terminate"]),
    "action": st.sampled_from([None, "ls( {} )", "", "click 3", [{"name": "b"}], '[{"name": 1}']),
    "tool": st.sampled_from([None, "sing"]),
    "arguments": st.sampled_from([None, "", '{"x": 1.0}', "{", {"y": [1, None]}]),
    "prompt_tokens": COUNTS,
    "completion_tokens": COUNTS,
}
ODD = st.sampled_from(
    [
        None, "", " ", "x", 0, -1, 1.5, True, "nan", "7", " 7", "1_0", "²", float("nan"),
        float("inf"), 10**400, 2**53 + 2, [], {}, ["x"], "2026-13-01", "9" * 70, "1e-400", 5e-324,
    ]
)  # fmt: skip


@st.composite
def tables(draw):
    """Make rows that are good but for a cell or two, in a few columns."""
    optional = draw(st.sets(st.sampled_from([f for f in FIELDS if f in GOOD])))
    fields = sorted({"task", "gen_s", *optional})
    rows = [{field: draw(GOOD[field]) for field in fields} for _ in range(draw(st.integers(1, 12)))]
    if "step" in fields and draw(st.booleans()):
        for number, row in enumerate(rows):
            row["step"] = number
    for _ in range(draw(st.integers(0, 2))):
        draw(st.sampled_from(rows))[draw(st.sampled_from(fields))] = draw(ODD)
    return rows


def spelled(rows, suffix):
    if suffix == ".jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]))
    writer.writeheader()
    for row in rows:
        cells = {k: json.dumps(v) if isinstance(v, (dict, list)) else v for k, v in row.items()}
        writer.writerow({k: "" if v is None else v for k, v in cells.items()})
    return stream.getvalue()


def outcome(path, ledger, **options):
    """Return the task runs, what the ledger holds, and the error if there is one."""
    runs = []
    try:
        runs += table.read_file(path, ledger, **options)
    except DataError as error:
        return runs, ledger.dropped, ledger.warnings(), str(error)
    return runs, ledger.dropped, ledger.warnings(), None


@settings(deadline=None)
@given(tables(), st.sampled_from([".jsonl", ".csv"]), st.booleans(), st.sampled_from([None, "ms"]))
def test_a_batch_reads_as_its_rows(tmp_path_factory, rows, suffix, lenient, unit):
    path = tmp_path_factory.getbasetemp() / f"batches{suffix}"
    path.write_text(spelled(rows, suffix), encoding="utf-8")
    options = {} if unit is None else {"time_unit": unit}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "read_batch", lambda *_: None)
        one_by_one = outcome(path, Ledger(lenient=lenient), **options)
    for n_rows in (2, table_rows.BATCH):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table, "read_batches", partial(table_rows.read_batches, n_rows=n_rows))
            assert repr(outcome(path, Ledger(lenient=lenient), **options)) == repr(one_by_one)


def test_a_good_table_is_read_by_the_batch(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("task,step,gen_s,tool,arguments\n" + 'a,0,1.5,ls,"{""x"": 1}"\na,1,2,,\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_take_row", None)
        (run,) = table.read_file(path, Ledger())
    assert [step.action for step in run.steps] == ['ls({"x":1})', "<respond/>"]


def test_damaged_lines_are_dropped_between_the_rows_around_them(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"task":"a","gen_s":-1}\n{\n{"task":"b","gen_s":-1}\n{"task":"c","gen_s":1}\n')
    runs, dropped, _, error = outcome(path, Ledger(lenient=True))
    assert [run.task for run in runs] == ["c"]
    assert error is None
    assert [entry.task for entry in dropped] == ["a", "(t.jsonl line 2)", "b"]
    with pytest.raises(DataError, match="line 1, column gen_s"):
        list(table.read_file(path, Ledger()))


def test_rows_before_a_broken_one_are_checked_first(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("task,gen_s\na,x\nb,1,2\n")
    with pytest.raises(DataError, match="line 2, column gen_s"):
        list(table.read_file(path, Ledger()))


def test_steps_in_reverse_order_are_told_from_repeated_ones(tmp_path):
    rows = [f"a,{step},{step + 1}\n" for step in reversed(range(5000))]
    path = tmp_path / "t.csv"
    path.write_text("task,step,gen_s\n" + "".join(rows))
    (run,) = table.read_file(path, Ledger())
    assert [step.gen_s for step in run.steps] == [step + 1 for step in range(5000)]
    path.write_text("task,step,gen_s\n" + "".join(rows) + "a,17,1\n")
    with pytest.raises(DataError, match=r"line 5002, column step: .* found 17 again"):
        list(table.read_file(path, Ledger()))


LINE = st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\r\n \r\n"])
USUAL = st.sampled_from(["\n", "\r\n"])
CELL = st.one_of(
    st.sampled_from(["a", "1", "2.5", "", '""', '"a"', '"1"', '"x\ny"', '"x\r\ny,""z"""', "é"]),
    st.text(st.sampled_from('"\n\r,;a1 \0\ufeff\x0b\u2028'), max_size=5),
)


@st.composite
def texts(draw):
    """Make CSV that is strange in a place or two, of rows that are mostly alike."""
    end, odd = draw(USUAL), draw(st.booleans())
    rows = [["task", "gen_s", "note"]]
    for _ in range(draw(st.integers(0, 8))):
        middle = draw(CELL) if odd and draw(st.integers(0, 5)) == 0 else "1.5"
        rows.append([draw(st.sampled_from(["a", '"b"', '"c,""d"'])), middle, draw(CELL)])
    text = "".join(",".join(row) + (draw(LINE) if odd else end) for row in rows)
    cut = draw(st.integers(0, 3)) if odd else 0
    start = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    return start + text.encode()[: len(text.encode()) - cut]


@settings(deadline=None, max_examples=300)
@given(texts(), st.booleans(), st.sampled_from([16, 64, 2**20]))
def test_csv_reads_by_the_block_as_by_the_row(tmp_path_factory, text, lenient, n_bytes):
    path = tmp_path_factory.getbasetemp() / "blocks.csv"
    path.write_bytes(text)

    def read():
        return outcome(path, Ledger(lenient=lenient), columns=["segment=note"])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_rows, "read_blocks", by_the_row)
        by_row = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_csv, "_BLOCK", n_bytes)
        assert repr(read()) == repr(by_row)


def by_the_row(*_):
    yield from ()
    return table_csv.Rest()


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        ('a,"x"y,1\n', "line 5: expected CSV, found ',' expected after '\"'"),
        ('a,"x', "line 5: expected CSV, found unexpected end of data"),
        ("a,1\n", "line 5: expected 3 cells as in the header, found 2"),
        ("\na,x,1\n", "line 6, column gen_s: expected a number"),
        ("\na,1,é\n\na,x,\n", "line 8, column gen_s: expected a number"),
        ('a,1,5" pipe\na,x,\n', "line 6, column gen_s: expected a number"),
    ],
)
def test_lines_are_counted_over_blocks_and_what_is_left(tmp_path, monkeypatch, tail, message):
    path = tmp_path / "t.csv"
    path.write_bytes(('task,gen_s,note\na,1,"x\ny"\na,2,""\n' + tail).encode())
    for n_bytes in (1, 20, 2**20):
        monkeypatch.setattr(table_csv, "_BLOCK", n_bytes)
        with pytest.raises(DataError, match=message):
            list(table.read_file(path, Ledger()))


def test_usual_csv_is_read_by_the_block(tmp_path, monkeypatch):
    monkeypatch.setattr(table_rows, "_csv_rows", None)
    monkeypatch.setattr(table_csv, "_BLOCK", 30)
    path = tmp_path / "t.csv"
    path.write_bytes('task;gen_s;note\r\na;1;"x; ""y""\r\nz"\r\n\r\na;2;é\r\nb;3;'.encode())
    runs = list(table.read_file(path, Ledger()))
    assert [(run.task, run.line, len(run.steps)) for run in runs] == [("a", 3, 2), ("b", 6, 1)]


def test_a_byte_that_is_no_utf_8_is_found_after_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(table_csv, "_BLOCK", 20)
    path = tmp_path / "t.csv"
    path.write_bytes(b"task,gen_s,note\n" + b"a,1,\n" * 9 + b"a,1,\xff\n")
    with pytest.raises(DataError, match="expected UTF-8 text, found byte 0xff"):
        list(table.read_file(path, Ledger()))
