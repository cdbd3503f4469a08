"""Whether runs commit the same decisions: counted by hand."""

import numpy as np
import pandas as pd
import pytest

from leapmodel.benchmarks import PlanningBenchmark
from leapmodel.errors import DataError, UsageError
from leapmodel.identity import first_difference, trajectory_identity
from leapmodel.rounds import Rounds, read_rounds, write_rounds
from tests.execution.simulated import TALKER, TalkBenchmark, simulate


def rows(answer):
    keys = ["comparison", "configuration"]
    return {tuple(row[k] for k in keys): row for row in answer.table.to_dict(orient="records")}


def test_a_target_that_depends_on_the_context_alone_repeats_itself():
    rounds = simulate(TalkBenchmark(), TALKER, n_tasks=12, runs=2)
    answer = trajectory_identity(rounds)
    assert answer.table["comparison"].tolist() == [
        "two target-only runs",
        "target-only and speculative",
        "two speculative runs",
    ]
    assert (answer.table["identical"] == 1).all()
    assert (answer.table["se"] == 0).all()
    assert answer.table["pairs"].tolist() == [12, 48, 12]
    assert answer.differences.empty


def test_shares_and_first_differences_by_hand():
    rounds = simulate(TalkBenchmark(), TALKER, n_tasks=20, diverges=0.5, seed=3)
    answer = trajectory_identity(rounds)
    ours = rounds.committed_actions("sequential")
    theirs = rounds.committed_actions("speculative")
    row = rows(answer)["target-only and speculative", "scripted draft, k = 3"]
    same = np.array([ours[key] == theirs[key] for key in ours])
    assert 0 < same.mean() < 1
    assert row["identical"] == same.mean()
    assert row["se"] == pytest.approx(same.std() / np.sqrt(20), rel=0.05)
    for apart in answer.differences.to_dict(orient="records"):
        key, step = (apart["task"], 0), apart["step"]
        assert ours[key][:step] == theirs[key][:step]
        first, second = (
            steps[step] if step < len(steps) else None for steps in (ours[key], theirs[key])
        )
        assert [apart["first_action"], apart["second_action"]] == [first, second]
    assert len(answer.differences) == (~same).sum()


def test_runs_of_other_drafts_are_not_compared_with_each_other():
    answer = trajectory_identity({"a": simulate(n_tasks=3), "b": simulate(n_tasks=3, depth=1)})
    table = rows(answer)
    assert ("two target-only runs", "") in table
    assert table["two target-only runs", ""]["pairs"] == 3
    assert not any(comparison == "two speculative runs" for comparison, _ in table)
    assert table["target-only and speculative", "scripted draft, k = 1"]["pairs"] == 3


def test_an_output_that_did_not_parse_is_a_decision():
    assert first_difference(["a", None], ["a", None]) is None
    assert first_difference(["a", None], ["a", "b"]) == 1


def test_the_end_of_one_run_is_a_difference():
    assert first_difference(["a"], ["a", "b"]) == 1
    assert first_difference([], []) is None


def test_replies_differ_in_words_only():
    rounds = simulate(TalkBenchmark(), TALKER, n_tasks=10)
    frame = rounds.frame.assign(
        started_s=rounds.frame["started_s"] + 1000,
        verifications=[
            [{**v, "output": f"{v['output']}, said differently {i}"} for v in said]
            for i, said in enumerate(rounds.frame["verifications"])
        ],
    )
    answer = trajectory_identity([rounds, Rounds.from_frame(frame, rounds.metadata)])
    assert (answer.table["identical"] == 1).all()


def test_nothing_to_compare():
    with pytest.raises(DataError, match="expected two runs of one task, found none to compare"):
        trajectory_identity(simulate(n_tasks=2, arms=["sequential"]))


def test_few_tasks_have_no_error():
    answer = trajectory_identity(simulate(n_tasks=2))
    assert pd.isna(answer.table["se"]).all()
    assert answer.to_dict()["comparisons"][0]["se"] is None


# ------------------------------------------------------------------ what is no second run


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@pytest.mark.parametrize("begun", [{}, {"begun": "2026-12-01T10:00:00+00:00"}])
def test_a_record_and_its_copy_are_one_run(tmp_path, suffix, begun):
    rounds = simulate(n_tasks=3, metadata=begun)
    write_rounds(rounds, tmp_path / f"copy.{suffix}")
    copy = read_rounds(tmp_path / f"copy.{suffix}")
    with pytest.raises(UsageError, match=r"^b: expected another run than in a, found the same rec"):
        trajectory_identity({"a": rounds, "b": copy})
    kept = copy.frame["task"].isin(copy.task_names[:2])  # as it was before it was gone on with
    with pytest.raises(UsageError, match=r"^file 2: expected another run than in file 1"):
        trajectory_identity([rounds, copy.where(kept)])
    undated = Rounds.from_frame(rounds.frame.drop(columns="started_s"), begun)
    with pytest.raises(UsageError, match="the same record"):
        trajectory_identity([undated, undated])


def test_runs_that_were_begun_apart_are_two():
    one, other = (simulate(n_tasks=3, metadata={"begun": begun}) for begun in "ab")
    table = rows(trajectory_identity([one, other]))
    assert table["two target-only runs", ""]["pairs"] == 3


def test_the_arms_of_a_record_may_be_in_files_of_their_own():
    rounds = simulate(n_tasks=3, metadata={"begun": "a"})
    apart = trajectory_identity([rounds.sequential, rounds.speculative])
    assert apart.table["comparison"].tolist() == ["target-only and speculative"]


def test_tasks_of_different_benchmarks_are_not_compared():
    one, other = simulate(n_tasks=3), simulate(PlanningBenchmark(seed=7), n_tasks=3)
    assert one.task_names == other.task_names
    said = "^b: was recorded with benchmark settings seed 7, a with 42$"
    with pytest.raises(UsageError, match=said):
        trajectory_identity({"a": one, "b": other})
