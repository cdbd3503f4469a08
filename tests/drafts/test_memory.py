from __future__ import annotations

import numpy as np
import pytest

from leapmodel.drafts import MEMORIES, BackoffDraft, MemoryDraft, memory_ablation
from leapmodel.drafts.confusion import ConfusionTracker
from leapmodel.drafts.contrast import ContrastiveTransitions
from leapmodel.drafts.episodes import EpisodicMemory
from leapmodel.drafts.history import History
from leapmodel.drafts.interface import Context
from leapmodel.trace import Trace
from tests.conftest import random_trace
from tests.drafts.agents import REPLY, call, episode, proposals, proposals_on, trace_of

A, B, C, D = (call(name) for name in "abcd")


def test_contrast_prefers_what_went_well():
    """b follows a oftener, but mostly in runs that failed."""
    runs = [episode(A, B, REPLY, went_well=False)] * 4 + [episode(A, C, REPLY)] * 3
    runs += [episode(A, B, REPLY)]
    plain, contrasting = MemoryDraft([]), MemoryDraft(["contrast"])
    for run in runs:
        plain.finish_task([run])
        contrasting.finish_task([run])
    asked = episode(A, C, REPLY)
    assert proposals_on(plain, asked)[1] == B
    assert proposals_on(contrasting, asked)[1] == C


def test_contrast_by_hand():
    memory = ContrastiveTransitions()
    memory.learn([episode(A), episode(A), episode(B)])
    memory.learn([episode(B, went_well=False)])
    # 3 of 4 steps here are good; a: 2 of 2, b: 1 of 2
    start = History().shapes
    a, b = (2 / 0.75 + 2) / 4, (1 / 0.75 + 2) / 4
    leaning = memory.leaning({"a()": 0.5, "b()": 0.5}, start)
    assert leaning == pytest.approx({"a()": a / (a + b), "b()": b / (a + b)})


@pytest.mark.parametrize("went_well", [True, False])
def test_without_a_contrast_nothing_changes(went_well: bool):
    memory = ContrastiveTransitions()
    memory.learn([episode(A, B, went_well=went_well)])
    chances = {"a()": 0.7}
    assert memory.leaning(chances, History().shapes) is chances


def test_episodes_are_recalled_by_what_had_happened():
    memory = EpisodicMemory()
    memory.learn([episode(call("open", f="x"), A, B)])
    memory.learn([episode(call("open", f="y"), A, C)])
    history = History()
    for action in (call("open", f="x"), A):
        history.commit(action)
    recalled = memory.recall(history)
    # both moments share a; the first also the values of the call before: likeness 1 + 0.7 + 0.49
    # with the start of the task, and 1 + 0.35 + 0.49
    votes = np.array([1 + 0.7 + 0.49, 1 + 0.35 + 0.49]) ** 2
    assert recalled.actions == pytest.approx({B: votes[0] / votes.sum(), C: votes[1] / votes.sum()})


def test_episodes_are_recalled_by_the_users_words():
    memory = EpisodicMemory()
    for words, action in [("please delete the file", A), ("book a flight to Rome", B)] * 3:
        memory.learn([episode(action, messages=[words])])
    history = History()
    history.enter(Context(True, "I want a flight to Oslo"))
    votes = memory.recall(history).actions
    assert votes[B] > votes[A]


def test_confusion_brings_up_what_a_is_mistaken_for():
    memory = ConfusionTracker()
    chances = {"a()": 0.6, "b()": 0.4}
    for _ in range(10):
        memory.saw(("x()", "a()", chances), "b()")
    corrected = memory.corrected("x()", "a()", chances)
    assert corrected == pytest.approx({"a()": 0.6 * 4 / 10, "b()": 0.4 * 14 / 8})
    assert memory.corrected("y()", "a()", chances) == chances  # after another shape


def test_confusion_leaves_an_estimate_that_holds_alone():
    memory = ConfusionTracker()
    chances = {"a()": 0.5, "b()": 0.5}
    for actual in ["a()", "b()"] * 10:
        memory.saw(("x()", "a()", chances), actual)
    assert memory.corrected("x()", "a()", chances) == pytest.approx(chances)


def test_a_memory_that_spoils_proposals_is_not_followed():
    """Success is drawn at random and points the wrong way, then the advice is ignored."""
    draft = MemoryDraft(["contrast"])
    for _ in range(40):
        draft.finish_task([episode(A, C, REPLY)])
        for run in [episode(A, B, REPLY, went_well=False)] * 2:
            proposals_on(draft, run)
            draft.finish_task([run])
    assert draft.balances["contrast"] < 0
    assert proposals_on(draft, episode(A, B, REPLY))[1] == B


def test_no_memory_is_the_backoff_draft(rng: np.random.Generator):
    trace = random_trace(rng, 40)
    assert proposals(trace, MemoryDraft([])) == proposals(trace, BackoffDraft())


def test_contrast_without_failures_changes_nothing(rng: np.random.Generator):
    trace = random_trace(rng, 40)  # every segment ends on a reply
    assert proposals(trace, MemoryDraft(["contrast"])) == proposals(trace, BackoffDraft())


@pytest.mark.parametrize(("memory", "column"), [("contrast", "success"), ("episodes", "reward")])
def test_success_matters_to_the_contrast_alone(memory: str, column: str, rng: np.random.Generator):
    trace = random_trace(rng, 60)
    other = Trace(trace.frame.assign(**{column: rng.random(trace.n_steps) < 0.5}))
    without = [name for name in MEMORIES if name != "contrast"]
    assert proposals(trace, MemoryDraft(without)) == proposals(other, MemoryDraft(without))
    same = proposals(trace, MemoryDraft([memory])) == proposals(other, MemoryDraft([memory]))
    assert same == (memory != "contrast")


def test_the_first_error_is_where_confusion_begins_to_matter():
    """Nothing to suppress: one deterministic agent, then another one."""
    trace = trace_of([[A, B, REPLY]] * 10 + [[A, C, REPLY]] * 10)
    plain, watching = (proposals(trace, MemoryDraft(on)) for on in ([], ["confusion"]))
    assert plain[:33] == watching[:33]
    assert watching[-2] == C


def test_an_unknown_memory_is_refused():
    with pytest.raises(ValueError, match=r"memories must be among contrast, .* found dreams"):
        MemoryDraft(["dreams", "episodes"])


def test_ablation(rng: np.random.Generator):
    trace = random_trace(rng, 20)
    found = memory_ablation(trace, seed=3)
    assert found.memories[0] == ()
    assert found.memories[-1] == MEMORIES
    assert found.over_none[0].value == found.below_all[-1].value == 0
    assert found.below_all[0].value == pytest.approx(found.over_none[-1].value)
    assert found.order == "shuffled with seed 3"
    frame = found.to_frame()
    assert len(frame) == 8
    assert frame["exact_se"].gt(0).all()
    assert len(found.to_dict()["rows"]) == len(found.summary().splitlines()) - 1 == 8
    assert found.plot().get_title().startswith("What each memory adds to ")
    assert "<table" in found._repr_html_()


def test_success_columns_are_read():
    tasks = [[A, B, REPLY]] * 4 + [[A, C, REPLY]] * 3 + [[A, B, REPLY]] + [[A, C, REPLY]]
    reward = [[None, None, 0.0]] * 4 + [[None, None, 1.0]] * 5
    asked = proposals(trace_of(tasks, reward=reward), MemoryDraft(["contrast"]))
    assert asked[-2] == C
    assert proposals(trace_of(tasks), MemoryDraft(["contrast"]))[-2] == B
