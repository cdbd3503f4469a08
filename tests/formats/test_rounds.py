"""The rounds format: what it accepts, what it refuses and how, and what follows from rounds."""

import copy
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leapmodel.errors import DataError, UsageError
from leapmodel.rounds import Rounds, read_rounds, write_rounds
from leapmodel.trace import read_trace
from tests.execution.simulated import TALKER, TalkBenchmark, simulate


@pytest.fixture
def rounds():
    return simulate(n_tasks=6, tool_s=0.1, seed=1)


def rows_of(rounds):
    return copy.deepcopy(rounds.frame.to_dict(orient="records"))


def refusal(rows, metadata=None) -> str:
    with pytest.raises(DataError) as caught:
        Rounds.from_frame(pd.DataFrame(rows), metadata, source="r")
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    return text.removeprefix("r: ")


def a_row(rows, **wanted):
    """Return the first row with these values, and its number counted from 1."""
    for number, row in enumerate(rows, start=1):
        if all(row[name] == value for name, value in wanted.items()):
            return row, number
    raise AssertionError(f"no row with {wanted}")


# ------------------------------------------------------------------ reading and writing


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
@pytest.mark.parametrize("terminal", ["accepted", "probe"])
def test_round_trip(tmp_path, suffix, terminal):
    rounds = simulate(TalkBenchmark(terminal), TALKER, gather=True)
    path = tmp_path / f"r{suffix}"
    write_rounds(rounds, path)
    again = read_rounds(path)
    assert rows_of(again) == rows_of(rounds)
    assert again.metadata == rounds.metadata


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_round_trip_of_lists_that_tell_no_type(tmp_path, suffix):
    rounds = simulate(arms=["sequential"], n_tasks=1)
    path = tmp_path / f"r{suffix}"
    write_rounds(rounds, path)
    assert rows_of(read_rounds(path)) == rows_of(rounds)


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_columns_and_fields_of_ones_own_are_kept(tmp_path, suffix, rounds):
    rows = rows_of(rounds)
    for number, row in enumerate(rows):
        row["batch"] = number // 4
        for verification in row["verifications"]:
            verification["server"] = "one"
    path = tmp_path / f"r{suffix}"
    write_rounds(Rounds.from_frame(pd.DataFrame(rows)), path)
    again = read_rounds(path)
    assert again.frame["batch"].tolist() == [row["batch"] for row in rows]
    assert set(again.verifications["server"]) == {"one"}


def test_optional_columns_may_be_absent(rounds):
    optional = ["run", "segment", "residual_s", "clock_s", "draft", "started_s"]
    less = Rounds.from_frame(rounds.frame.drop(columns=optional))
    assert (less.frame["run"] == 0).all()
    np.testing.assert_allclose(less.frame["residual_s"], rounds.frame["residual_s"])
    assert less.frame["clock_s"].isna().all()
    assert less.decomposition()["wall_over_clock"].isna().all()


def test_rows_may_come_in_any_order(rounds):
    shuffled = rounds.frame.sample(frac=1, random_state=3)
    again = Rounds.from_frame(shuffled)
    by_key = ["task", "run", "arm", "round"]
    assert rows_of(again.where(np.ones(len(shuffled)))) is not None
    for (_, ours), (_, theirs) in zip(
        again.frame.groupby("task"), rounds.frame.groupby("task"), strict=True
    ):
        assert ours[by_key].to_numpy().tolist() == theirs[by_key].to_numpy().tolist()


def test_parquet_of_the_other_kinds_is_refused(tmp_path, rounds):
    path = tmp_path / "r.parquet"
    write_rounds(rounds, path)
    with pytest.raises(DataError, match="expected a trace file, found a 'rounds' file"):
        read_trace(path)


def test_unknown_suffix(tmp_path, rounds):
    with pytest.raises(UsageError, match=r"\.parquet or \.jsonl"):
        write_rounds(rounds, tmp_path / "r.csv")


# ------------------------------------------------------------------ a killed run


def test_every_cut_of_a_killed_run_reads_to_the_rounds_written_whole(tmp_path):
    rounds = simulate(n_tasks=2)
    path = tmp_path / "r.jsonl"
    write_rounds(rounds, path)
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == 10]
    cut = tmp_path / "cut.jsonl"
    tail = ends[-2]
    for at in [*range(0, ends[1] + 40, 37), *range(tail - 5, tail + 5), len(whole) - 1]:
        cut.write_bytes(whole[:at])
        read = read_rounds(cut, truncated_ok=True)
        done = sum(end <= at for end in ends[1:])
        assert read.n_rounds in (done, done + 1)  # the line may lack its line break alone
        assert read.n_rounds == done or (at + 1) in ends


def test_half_a_line_is_one_clear_error(tmp_path, rounds):
    path = tmp_path / "r.jsonl"
    write_rounds(rounds, path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:100])
    with pytest.raises(DataError) as caught:
        read_rounds(path)
    assert "line 5: expected a JSON object" in str(caught.value)
    assert "(the file ends inside this line)" in str(caught.value)
    assert read_rounds(path, truncated_ok=True).n_rounds == 3


def test_a_damaged_line_inside_is_an_error_even_so(tmp_path, rounds):
    path = tmp_path / "r.jsonl"
    write_rounds(rounds, path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3][:50] + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(DataError, match="line 4: expected a JSON object"):
        read_rounds(path, truncated_ok=True)


def test_lenient_reading_drops_the_tasks_with_wrong_rows(tmp_path, rounds):
    rows = rows_of(rounds)
    bad, line = a_row(rows, arm="speculative", accepted=1)
    bad["verifications"][0]["action"] = "Teleport"
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=rf"line {line}, column verifications\[0\]\.action"):
        read_rounds(path)
    read = read_rounds(path, lenient=True)
    assert [dropped.task for dropped in read.dropped] == [bad["task"]]
    assert f"line {line}, column verifications[0].action" in read.dropped[0].reason
    assert bad["task"] not in read.task_names
    assert len(read.task_names) == len(rounds.task_names) - 1


# ------------------------------------------------------------------ what is refused


def test_missing_column(rounds):
    with pytest.raises(DataError, match="found no column wait_s"):
        Rounds.from_frame(rounds.frame.drop(columns="wait_s"))


CELLS = [
    (
        "arm",
        "parallel",
        "column arm: expected sequential or speculative, found the text 'parallel'",
    ),
    ("wall_s", -1.0, "column wall_s: expected a number >= 0, found -1.0"),
    ("idle_s", float("nan"), "column idle_s: expected a number >= 0, found nothing"),
    ("round", 1.5, "column round: expected a whole number >= 0, found 1.5"),
    ("task", 3, "column task: expected text, found 3 (a name is text"),
    ("depth", 1, "column depth: expected 0 in the sequential arm, found 1"),
    ("proposals", "none", "column proposals: expected a list of objects, found the text 'none'"),
    ("verifications", [1], "column verifications: expected a list of objects, found [1]"),
    ("verifications", [], "column committed: expected the verifications of status used, found 1"),
    ("committed", 0, "column committed: expected at least 1, found 0"),
    ("wall_s", 1e-6, "column residual_s: expected wall_s less its five other parts"),
    ("residual_s", -0.5, "column residual_s: expected a number >= 0, found -0.5"),
    ("first_step", 1, "column first_step: expected 0 in a run's first round, found 1"),
    ("round", 70, "column round: expected a run's first round to be 0, found 1"),
]


@pytest.mark.parametrize(("column", "value", "said"), CELLS)
def test_a_wrong_cell_is_named(rounds, column, value, said):
    rows = rows_of(rounds)
    rows[0][column] = value
    assert said in refusal(rows)


def change(field, value, item=0):
    def apply(row):
        row[field[0]][item][field[1]] = value

    return apply


def put(**values):
    return lambda row: row.update(values)


ROWS = [
    (change(("proposals", "status"), "lost"), "proposals[0].status: expected proposed or invalid"),
    (change(("proposals", "end_s"), -1), "proposals[0].end_s: expected a number >= 0, found -1"),
    (
        change(("proposals", "start_s"), 99.0),
        "proposals[0].end_s: expected seconds not before start_s",
    ),
    (change(("proposals", "action"), None), "proposals[0].action: expected an action"),
    (
        change(("proposals", "status"), "withheld"),
        "proposals[1].status: expected no further proposal",
    ),
    (
        change(("verifications", "status"), "cancelled"),
        "verifications[1].status: expected used verifications first, in prefix order",
    ),
    (
        change(("verifications", "completion_tokens"), 2.5),
        "verifications[0].completion_tokens: expected a whole number >= 0, found 2.5",
    ),
    (
        change(("verifications", "action"), "Colour it"),
        "verifications[0].action: expected 'Sentiment Analysis', as the proposal was accepted,"
        " found the text 'Colour it'",
    ),
    (put(accepted=0, committed=1), "column committed: expected the verifications of status used"),
    (put(depth=1), "column proposed: expected at most depth"),
    (put(accepted=3), "column accepted: expected at most proposed"),
    (put(committed=1), "column committed: expected accepted + 1, as the target's own action"),
    (put(committed=5), "column committed: expected accepted or accepted + 1, found 5"),
]


def a_partly_accepted_row(rounds):
    """Return rows and one that accepts its first proposal and rejects its second."""
    rows = rows_of(rounds)
    row, _ = a_row(rows, arm="speculative", accepted=1, proposed=2, committed=2)
    assert [p["status"] for p in row["proposals"]] == ["proposed", "proposed"]
    return rows, row


@pytest.mark.parametrize(("apply", "said"), ROWS)
def test_a_wrong_round_is_named(apply, said):
    rows, row = a_partly_accepted_row(simulate(n_tasks=40))
    row["verifications"][0]["action"] = row["proposals"][0]["action"] = "Sentiment Analysis"
    apply(row)
    assert said in refusal(rows)


def test_a_rejected_proposal_must_differ():
    rows, row = a_partly_accepted_row(simulate(n_tasks=40))
    row["verifications"][1]["action"] = row["proposals"][1]["action"]
    said = "verifications[1].action: expected another action than the proposal, as it was rejected"
    assert said in refusal(rows)


def test_a_second_round_of_one_key_is_named(rounds):
    rows = rows_of(rounds)
    said = "column round: expected each (task, run, arm, round) once, found a second one"
    assert said in refusal([*rows, rows[3]])


def test_a_missing_round_is_named(rounds):
    rows = rows_of(rounds)
    _, number = a_row(rows, round=2)  # the one before it goes
    said = f"row {number - 1}, column round: expected rounds without a gap (0, 1, 2, …), found 2"
    assert said in refusal([*rows[: number - 2], *rows[number - 1 :]])


def test_a_clock_that_goes_back_is_named(rounds):
    rows = rows_of(rounds)
    rows[1]["clock_s"] = 0.0
    assert "column clock_s: expected a clock that does not go back" in refusal(rows)


def test_nothing_is_withheld_where_terminal_actions_are_proposed():
    probe = simulate(TalkBenchmark("probe"), TALKER, n_tasks=20)
    assert "withheld" in set(probe.proposals["status"])
    said = refusal(rows_of(probe), {"terminal": "accepted"})
    assert "column proposals: expected none withheld under terminal = accepted" in said


# ------------------------------------------------------------------ what follows


def test_the_sequential_trace(rounds):
    trace = rounds.sequential_trace()
    rows = rounds.sequential.frame
    np.testing.assert_array_equal(trace.gen_s, rows["wait_s"])
    np.testing.assert_array_equal(trace.tool_s, rows["target_tool_s"])
    assert trace.actions.tolist() == [row[0]["action"] for row in rows["verifications"]]
    assert trace.metadata["target_model"] == "scripted"
    assert trace.frame["context"].tolist() == [row[0]["context"] for row in rows["verifications"]]
    assert trace.frame["completion_tokens"].tolist() == [
        row[0]["completion_tokens"] for row in rows["verifications"]
    ]


def test_no_sequential_trace_without_that_arm():
    with pytest.raises(DataError, match="expected a sequential arm, found none"):
        simulate(arms=["speculative"]).sequential_trace()


def test_both_arms_commit_the_same_where_the_target_depends_on_the_context_alone(rounds):
    assert rounds.committed_actions("sequential") == rounds.committed_actions("speculative")


@settings(max_examples=10, deadline=None)
@given(
    st.integers(0, 99),
    st.integers(0, 5),
    st.floats(0, 1),
    st.booleans(),
    st.sampled_from(["accepted", "probe"]),
)
def test_sums_and_counts(seed, depth, agreement, gather, terminal):
    rounds = simulate(
        TalkBenchmark(terminal),
        TALKER,
        seed=seed,
        depth=depth,
        agreement=agreement,
        gather=gather,
        tool_s=0.2,
        n_tasks=3,
        runs=2,
    )
    parts = rounds.decomposition()
    whole = parts.drop(columns=["rounds", "wall_s", "clock_s", "wall_over_clock"]).sum(axis=1)
    np.testing.assert_allclose(whole, parts["wall_s"])
    np.testing.assert_allclose(parts["wall_over_clock"], 1)
    assert gather or parts["idle_s"].max() == 0
    spec = rounds.speculative
    assert spec.frame["committed"].sum() == len(spec.committed)
    n = spec.committed_actions("speculative")
    assert sum(map(len, n.values())) == len(spec.committed)
    sums = rounds.task_sums()
    np.testing.assert_allclose(sums["wall_s"].sum(), rounds.frame["wall_s"].sum())
    assert (sums["runs"] == 2).all()
    tokens = rounds.completion_tokens()
    assert tokens.to_numpy().sum() == sum(
        item["completion_tokens"]
        for row in rounds.frame.to_dict(orient="records")
        for item in [*row["proposals"], *row["verifications"]]
    )
    rates = rounds.ms_per_token()  # simulated at 25 ms, whatever runs beside it
    np.testing.assert_allclose(list(rates.values()), 25)
