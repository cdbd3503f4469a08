"""Training pairs: contexts rebuilt, data taken by whole tasks, files checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapmodel.benchmarks import PlanningBenchmark
from leapmodel.errors import DataError, UsageError
from leapmodel.execution.training.pairs import Pairs, action_sequences, read_pairs, write_pairs
from leapmodel.execution.training.supervision import (
    pairs_from_gold,
    pairs_from_rounds,
    pairs_from_trace,
)
from leapmodel.rounds import Rounds, read_rounds
from leapmodel.trace import Trace, read_trace

from .scripted import PLANNING
from .simulated import simulate

ABOUT = {"benchmark": {"name": "planning", "settings": PLANNING.settings}}
GOLD = pairs_from_gold(PLANNING, PLANNING.tasks("train"))


def trace_of(*plans: list[str | None], runs: int = 1) -> Trace:
    tasks = PLANNING.tasks("train")
    rows = [
        {"task": task.name, "run": run, "step": step, "gen_s": 1.0, "action": action}
        for task, plan in zip(tasks, plans, strict=False)
        for run in range(runs)
        for step, action in enumerate(plan)
    ]
    return Trace.from_frame(pd.DataFrame(rows), ABOUT)


def test_contexts_are_those_the_environment_gives():
    pairs = pairs_from_trace(trace_of(["Fill Mask", "Colorization", "<terminate/>"]))
    environment = PLANNING.start(PLANNING.tasks("train")[0])
    for row in pairs.frame.itertuples():
        assert row.messages == [dict(m) for m in environment.prompt("draft").messages]
        assert row.target_messages == [dict(m) for m in environment.prompt("target").messages]
        assert PLANNING.parse("draft", row.answer) == row.action
        environment.step(row.action)
    assert environment.over
    assert pairs.metadata["supervision"] == "target"


def test_an_output_that_did_not_parse_teaches_nothing():
    pairs = pairs_from_trace(trace_of(["Fill Mask", None], ["Colorization"]))
    assert pairs.frame["action"].tolist() == ["Fill Mask", "Colorization"]


def test_a_trace_that_goes_on_past_its_end_is_refused():
    with pytest.raises(DataError, match="another step"):
        pairs_from_trace(trace_of(["<terminate/>", "Fill Mask"]))


def test_a_trace_must_say_its_benchmark():
    trace = trace_of(["Fill Mask"])
    with pytest.raises(DataError, match="the trace: expected a benchmark's name in the metadata"):
        pairs_from_trace(Trace.from_frame(trace.frame))


def test_what_is_no_trace_of_the_benchmark_is_named_by_its_file():
    trace = Trace.from_frame(trace_of(["Fill Mask"]).frame.assign(task="mine"), ABOUT)
    for source, said in ((None, "the trace"), ("t.jsonl", "t.jsonl")):
        named = {} if source is None else {"source": source}
        with pytest.raises(DataError, match=rf"^{said}: column task: expected a task of the bench"):
            pairs_from_trace(trace, **named)


@pytest.mark.parametrize("arm", ["sequential", "speculative"])
def test_contexts_that_were_other_ones_teach_nothing(arm: Any):
    rounds = simulate(n_tasks=3)
    assert len(pairs_from_rounds(rounds, arm=arm))
    other = PlanningBenchmark(target_tokens=9)  # the same tasks, asked in another way
    task = rounds.task_names[0]
    said = (
        "^r.jsonl: column verifications: expected the request that the benchmark makes of"
        f" {task} at step 0, found the hash of another$"
    )
    with pytest.raises(DataError, match=said):
        pairs_from_rounds(rounds, other, arm=arm, source="r.jsonl")
    frame = rounds.frame.assign(
        verifications=[
            [{**one, "context": None} for one in asked] for asked in rounds.frame["verifications"]
        ]
    )
    unstated = Rounds.from_frame(frame, rounds.metadata)  # such a record is taken at its word
    assert len(pairs_from_rounds(unstated, other, arm=arm)) == len(
        pairs_from_rounds(rounds, arm=arm)
    )


def test_rounds_without_the_arm_are_refused():
    with pytest.raises(DataError, match=r"^the record: expected a speculative arm, found none$"):
        pairs_from_rounds(simulate(n_tasks=2, arms=["sequential"]), arm="speculative")


def test_no_parsed_action_at_all_is_refused():
    with pytest.raises(DataError, match="expected a parsed action, found none"):
        pairs_from_trace(trace_of([None]))


def test_gold_is_the_benchmarks_plan():
    plans = {task.name: task.gold for task in PLANNING.tasks("train")}
    assert {task: actions for (task, _), actions in action_sequences(GOLD.frame).items()} == plans


def test_repeated_pairs_are_learned_once():
    twice = pairs_from_trace(trace_of(["Fill Mask", "<terminate/>"], runs=2))
    assert (len(twice), len(twice.without_duplicates())) == (4, 2)
    # the same context with another action is another pair
    frame = twice.frame.assign(action=["Fill Mask", "<terminate/>", "Colorization", "Fill Mask"])
    assert len(Pairs.from_frame(frame).without_duplicates()) == 4


@given(st.floats(0.01, 1), st.floats(0.01, 1), st.integers(0, 5))
def test_fractions_take_whole_tasks_and_nest(one: float, other: float, seed: int):
    small, large = (GOLD.fraction(share, seed=seed) for share in sorted((one, other)))
    assert set(small.task_names) <= set(large.task_names)
    assert small.n_tasks == max(1, round(min(one, other) * GOLD.n_tasks))
    whole = GOLD.frame.groupby("task").size()
    assert (small.frame.groupby("task").size() == whole[small.task_names]).all()


@pytest.mark.parametrize("share", [0, -0.5, 1.5])
def test_a_fraction_out_of_range_is_refused(share: float):
    with pytest.raises(UsageError, match="above 0, at most 1"):
        GOLD.fraction(share)


@given(st.integers(1, 60), st.integers(0, 3))
def test_validation_is_a_tenth_of_the_tasks_and_shares_none(n_tasks: int, seed: int):
    pairs = GOLD.of_tasks(GOLD.task_names[:n_tasks])
    training, validation = pairs.carve(seed=seed)
    assert not set(training.task_names) & set(validation.task_names)
    assert len(training) + len(validation) == len(pairs)
    assert validation.n_tasks == (0 if n_tasks < 5 else max(1, round(n_tasks / 10)))


def test_which_tasks_are_taken_does_not_depend_on_their_order():
    backwards = Pairs(GOLD.frame.iloc[::-1], GOLD.metadata)
    assert set(backwards.fraction(0.3).task_names) == set(GOLD.fraction(0.3).task_names)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_file_gives_back_what_was_written(tmp_path: Path, suffix: str):
    pairs = pairs_from_trace(trace_of(["Fill Mask", "<terminate/>"], ["Colorization"]))
    write_pairs(pairs, tmp_path / f"p.{suffix}")
    again = read_pairs(tmp_path / f"p.{suffix}")
    assert again.metadata == pairs.metadata
    for name in pairs.frame.columns:
        assert again.frame[name].tolist() == pairs.frame[name].tolist()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("messages", "hi", "column messages: expected a list of messages"),
        ("messages", [{"role": "user"}], "each with role and content"),
        ("messages", [], "column messages"),
        ("action", None, "column action: expected a canonical action, found nothing"),
        ("answer", 3, "column answer: expected text, found 3"),
        ("step", 0, r"expected each \(task, run, step\) once"),
    ],
)
def test_a_wrong_cell_is_named(column: str, value: object, message: str):
    frame = pairs_from_trace(trace_of(["Fill Mask", "<terminate/>"])).frame
    frame[column] = pd.Series([frame[column].iloc[0], value], dtype=object)
    with pytest.raises(DataError, match=message):
        Pairs.from_frame(frame)


def test_a_missing_column_is_named():
    frame = GOLD.frame.drop(columns="answer")
    with pytest.raises(DataError, match="found no column answer"):
        Pairs.from_frame(frame)


def test_both_arms_of_a_record_teach_what_was_committed(tmp_path: Path):
    from leapmodel.execution.fake.server import FakeServer

    from .scripted import planner
    from .test_commands import leapmodel

    with FakeServer(planner()) as target:
        done = leapmodel(
            "run", "--target-url", target.url, "--draft-url", target.url, "--limit", "3",
            "-o", str(tmp_path / "both"),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rounds = read_rounds(tmp_path / "both" / "rounds.jsonl")
    wanted = pairs_from_trace(read_trace(tmp_path / "both" / "trace.jsonl")).frame
    for part in (rounds, rounds.speculative):
        found = pairs_from_rounds(part).frame
        for name in ("task", "step", "messages", "action", "answer"):
            assert found[name].tolist() == wanted[name].tolist()
