"""Reading a table by the batch gives what reading it row by row gives, errors included."""

import csv
import io
import json
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leapmodel.errors import DataError
from leapmodel.importers import table, table_rows
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
