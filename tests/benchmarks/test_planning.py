"""The planning benchmark: its tasks, what it asks, how it reads answers, its environment."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapmodel.actions import TERMINATE
from leapmodel.benchmarks import load_benchmark, task_named
from leapmodel.benchmarks.interface import all_tasks
from leapmodel.benchmarks.planning import MAX_STEPS, PlanningBenchmark
from leapmodel.benchmarks.planning.assignment import REPAIRS, Assignment
from leapmodel.benchmarks.planning.prompts import answer, parse_tool
from leapmodel.benchmarks.planning.thoughts import histories, taught_answer
from leapmodel.benchmarks.planning.tools import TOOLS
from leapmodel.errors import DataError, UsageError
from tests.conftest import SHARED

PLANNING = PlanningBenchmark()
REAL = SHARED / "traces" / "tasks" / "openagi" / "task_description.txt"


def test_14_tools_and_the_papers_number_of_tasks():
    assert len(TOOLS) == 14
    assert [len(PLANNING.tasks(split)) for split in ("train", "test")] == [250, 63]


def test_splits_share_no_task_and_no_text():
    tasks = [task for split in ("train", "test", "teacher") for task in PLANNING.tasks(split)]
    assert len({task.name for task in tasks}) == len({task.text for task in tasks}) == len(tasks)


def test_a_seed_makes_the_same_tasks_and_another_one_others():
    same = PlanningBenchmark(seed=42).tasks("test")
    assert same == PLANNING.tasks("test")
    assert {t.text for t in PlanningBenchmark(seed=7).tasks("test")}.isdisjoint(
        {t.text for t in same}
    )


def test_plans_are_about_as_long_as_the_papers():
    """263 steps on 63 tasks, the terminal one included: 4.17."""
    lengths = [len(task.gold or ()) for task in PLANNING.tasks("train")]
    assert 3.8 < np.mean(lengths) < 4.6
    assert max(lengths) <= MAX_STEPS


@pytest.mark.parametrize(
    ("assignment", "plan"),
    [
        # the three of these that the original benchmark's own training file gives
        (
            Assignment("picture", "picture", ("small", "grainy", "blurry", "grey")),
            ["Image Super Resolution", "Image Denoising", "Image Deblurring", "Colorization"],
        ),
        (
            Assignment("text", "mood", source_language="Chinese", wanted_language="Chinese"),
            ["Machine Translation", "Sentiment Analysis", "Machine Translation"],
        ),
        (
            Assignment("text", "picture", source_language="Chinese"),
            ["Machine Translation", "Text to Image Generation"],
        ),
        (
            Assignment("picture", "answer", ("grey",), "German", "French", has_gaps=True),
            [
                "Colorization",
                "Machine Translation",
                "Fill Mask",
                "Visual Question Answering",
                "Machine Translation",
            ],
        ),
        (Assignment("text", "text", wanted_language="Italian"), ["Machine Translation"]),
    ],
)
def test_plans(assignment: Assignment, plan: list[str]):
    assert assignment.plan == (*plan, TERMINATE)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("<tool>Fill Mask</tool>", "Fill Mask"),
        ("First thought.\n<tool>  Fill\n Mask </tool>", "Fill Mask"),
        ("<tool>Fill Mask</tool> or rather <tool>Colorization</tool>", "Colorization"),
        ("<tool>Fill Mask</tool> and so on", "Fill Mask"),
        ("<tool>TERMINATE</tool>", TERMINATE),
        ("<tool>terminate</tool>", None),
        ("<tool>Fill mask</tool>", None),
        ("<tool></tool>", None),
        ("<tool>Fill Mask", None),
        ("Fill Mask</tool>", None),
        ("Fill Mask", None),
        ("", None),
        ("<tool>Fill Mask, Colorization</tool>", None),
        ("<tool>" * 50_000, None),
        ("<tool>Fill Mask</tool>" * 20_000, "Fill Mask"),
    ],
)
def test_the_last_tag_pair_is_the_action(text: str, action: str | None):
    assert parse_tool(text) == action


@given(st.text())
def test_no_answer_makes_the_parser_fail(text: str):
    assert parse_tool(text) is None or "<tool>" in text


@given(st.sampled_from([*TOOLS, TERMINATE]), st.text(st.characters(exclude_characters="<>")))
def test_what_a_model_writes_is_what_is_read(action: str, thought: str):
    assert parse_tool(thought + answer(action)) == action


def test_a_taught_answer_is_read_as_the_plan():
    for task, assignment in PLANNING.assignments("teacher")[:100]:
        for step, action in enumerate(task.gold or ()):
            assert parse_tool(taught_answer(assignment, assignment.plan[:step])) == action


def test_what_is_taught_ends_from_any_history():
    """A history gone astray still leads to the end, by what of the plan is left."""
    rng = random.Random(0)
    for _, assignment in PLANNING.assignments("teacher")[:100]:
        for history in histories(assignment, rng):
            done = list(history)
            while (action := parse_tool(taught_answer(assignment, done))) != TERMINATE:
                done.append(action)
                assert len(done) <= MAX_STEPS
            assert not Counter(assignment.plan[:-1]) - Counter(done)


def test_contexts_hold_the_task_and_the_committed_actions_and_no_thought():
    task = PLANNING.tasks("test")[0]
    environment = PLANNING.start(task)
    environment.step("Colorization")
    environment.step("Fill Mask")
    for role in ("target", "draft"):
        prompt = environment.prompt(role)
        assert prompt.messages[-1]["content"] == f"Task: {task.text}\nDone: Colorization, Fill Mask"
    target, draft = (environment.prompt(role) for role in ("target", "draft"))
    assert "Think" in target.messages[0]["content"]
    assert "Think" not in draft.messages[0]["content"]
    assert target.sha256() != draft.sha256()


def test_a_clone_is_independent():
    environment = PLANNING.start(PLANNING.tasks("test")[0])
    twin = environment.clone()
    twin.step("Colorization")
    assert environment.prompt("draft") != twin.prompt("draft")
    environment.step("Colorization")
    assert environment.prompt("draft") == twin.prompt("draft")


def test_where_a_task_ends():
    for last in (TERMINATE, None):
        environment = PLANNING.start(PLANNING.tasks("test")[0])
        assert not environment.over
        environment.step(last)
        assert environment.over
    environment = PLANNING.start(PLANNING.tasks("test")[0])
    for _ in range(MAX_STEPS):
        assert not environment.over
        environment.step("Colorization")
    assert environment.over


def test_the_settings_build_the_same_benchmark_again():
    built = load_benchmark("planning", **PlanningBenchmark(seed=3, target_tokens=99).settings)
    environment = built.start(built.tasks("test")[0])
    assert environment.prompt("target").max_tokens == 99
    assert built.tasks("test") == PlanningBenchmark(seed=3).tasks("test")


def test_unknown_names_and_settings_are_refused():
    with pytest.raises(UsageError, match="no task 'x' in the benchmark planning"):
        task_named(PLANNING, "x")
    said = "^benchmark planning: no setting 'sede'; its settings are seed, tasks_file, target_tok"
    with pytest.raises(UsageError, match=said):
        load_benchmark("planning", sede=1)
    with pytest.raises(UsageError, match="target_tokens: expected a whole number above 0, found 0"):
        load_benchmark("planning", target_tokens=0)


def test_a_file_of_tasks_is_split_as_the_papers_are(tmp_path: Path):
    listed = tmp_path / "tasks.txt"
    listed.write_text("\n".join([*(f"task {i}" for i in range(313)), "", "task 0"]))
    read = PlanningBenchmark(tasks_file=listed)
    assert [len(read.tasks(split)) for split in ("train", "test", "teacher")] == [250, 63, 0]
    assert read.tasks("test")[0].gold is None
    listed.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="expected task descriptions as UTF-8 text"):
        PlanningBenchmark(tasks_file=listed).tasks("test")
    listed.write_text("one\ntwo")
    with pytest.raises(DataError, match="at least five task descriptions, found 2"):
        PlanningBenchmark(tasks_file=listed).tasks("test")


def test_a_task_ends_where_its_line_does_and_nowhere_else(tmp_path: Path):
    listed = tmp_path / "tasks.txt"
    texts = [f"first{mark}second {i}" for i, mark in enumerate("\u2028\u2029\x85\x0b\x0c\x1c")]
    for encoding in ("utf-8", "utf-8-sig"):
        listed.write_bytes("\r\n".join(texts).encode(encoding))
        read = all_tasks(PlanningBenchmark(tasks_file=listed)).values()
        assert {task.text for task in read} == set(texts)


@pytest.mark.skipif(not REAL.exists(), reason="the original task descriptions are not here")
def test_the_original_descriptions_can_be_used():
    read = PlanningBenchmark(tasks_file=REAL)
    texts = [task.text for split in ("train", "test") for task in read.tasks(split)]
    assert len(texts) == len(set(texts)) > 150


def test_every_repair_is_a_tool():
    assert set(REPAIRS.values()) < set(TOOLS)
