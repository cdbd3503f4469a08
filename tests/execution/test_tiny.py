"""What the tiny drafts are pretrained on: steps that are still to be done, of tasks kept apart."""

from __future__ import annotations

import random

from leapmodel.actions import TERMINATE
from leapmodel.benchmarks.planning import PlanningBenchmark
from leapmodel.benchmarks.planning.prompts import parse_tool
from leapmodel.benchmarks.planning.thoughts import reading
from leapmodel.execution.training.tiny import texts_to_read

PLANNING = PlanningBenchmark()
TEXTS = texts_to_read(PLANNING, 2000, random.Random(0))


def asked(messages) -> tuple[str, str]:
    """The words of the task, and what follows them."""
    text, _, rest = messages[-1]["content"].removeprefix("Task: ").rpartition("\n")
    return text, rest


def test_no_measured_task_is_read():
    measured = {task.text for split in ("train", "test") for task in PLANNING.tasks(split)}
    assert not measured & {asked(messages)[0] for messages, _ in TEXTS}


def test_half_are_glosses_and_half_actions_that_are_still_to_be_done():
    others = PlanningBenchmark(PLANNING.seed + 10_000)
    known = {
        task.text: assignment
        for benchmark in (others, PLANNING)
        for split in ("train", "test", "teacher")
        for task, assignment in benchmark.assignments(split)
    }
    glosses, ends = 0, 0
    orders = set()
    for messages, answer in TEXTS:
        text, rest = asked(messages)
        if rest == "In short:":
            glosses += 1
            assert answer == reading(known[text])
            continue
        done = rest.removeprefix("Done: ")
        history = [] if done == "nothing yet" else done.split(", ")
        left = known[text].remaining(history)
        action = parse_tool(answer)
        assert action in left
        assert (action == TERMINATE) == (left == (TERMINATE,))
        ends += action == TERMINATE
        if len(left) > 2:
            orders.add(action == left[0])
    assert glosses == len(TEXTS) / 2
    assert ends > 50
    assert orders == {True, False}  # the target's order is not given away
