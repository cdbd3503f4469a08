from __future__ import annotations

import pytest

from leapmodel.drafts import BackoffDraft
from leapmodel.drafts.successors import CAPACITY, Successors, add_to, blended
from tests.drafts.agents import REPLY, call, episode, proposals_on

A, B, C, D = (call(name) for name in "abcd")


def test_the_longest_context_decides():
    """After b comes c, except after d b."""
    draft = BackoffDraft()
    for _ in range(3):
        draft.finish_task([episode(A, B, C, REPLY), episode(D, B, A, REPLY)])
    draft.finish_task([episode(A, B, C, REPLY)])
    assert proposals_on(draft, episode(A, B, C))[2] == C
    assert proposals_on(draft, episode(D, B, A))[2] == A
    assert proposals_on(draft, episode(C, B, C))[2] == C  # never seen: back off to b alone


def test_the_start_of_a_segment_is_context():
    draft = BackoffDraft()
    draft.finish_task([episode(A, REPLY, B, REPLY, C, REPLY)])
    assert proposals_on(draft, episode(A, REPLY, B, REPLY, C, REPLY)) == [
        *[A, REPLY, B, REPLY, C, REPLY]
    ]


def test_of_equals_the_more_recent():
    draft = BackoffDraft()
    draft.finish_task([episode(A, B)])
    draft.finish_task([episode(A, C)])
    assert proposals_on(draft, episode(A, C))[1] == C


def test_a_reply_may_have_the_better_chance():
    """The call is likelier, but no one can foresee its argument."""
    draft = BackoffDraft()
    for n in range(30):
        rare = f"{n * 7919 % 31}q{n * 104729 % 97}"
        draft.finish_task([episode(A, call("say", text=rare) if n % 5 < 3 else REPLY)])
    assert proposals_on(draft, episode(A, REPLY))[1] == REPLY


def test_an_output_that_did_not_parse_is_context_but_never_proposed():
    draft = BackoffDraft()
    for _ in range(3):
        draft.finish_task([episode(A, None, B, REPLY), episode(A, C, REPLY)])
    assert proposals_on(draft, episode(A, None, B, REPLY)) == [A, C, B, REPLY]


def test_nothing_is_proposed_before_anything_was_learned():
    assert proposals_on(BackoffDraft(), episode(A, REPLY)) == [None, None]


@pytest.mark.parametrize("order", [0, -1])
def test_the_order_is_checked(order: int):
    with pytest.raises(ValueError, match=f"order must be >= 1, found {order}"):
        BackoffDraft(order=order)


def test_successors_forget_the_rarest_and_keep_the_top():
    seen = Successors()
    for n in range(10 * CAPACITY):
        seen.add(f"once {n}")
        seen.add("often")
    assert len(seen.counts) == CAPACITY
    assert (seen.top, seen.total, seen.distinct) == ("often", 20 * CAPACITY, 10 * CAPACITY + 1)


def test_blended_probabilities_by_hand():
    table: dict[str, Successors] = {}
    for context, successor in [("", "x"), ("", "y"), ("", "y"), ("", "z"), ("b", "x"), ("b", "x")]:
        add_to(table, context, successor)
    found = blended(table, ["ab", "b", ""])
    # b: 2 counts, 1 kind, so 2/3 to x and 1/3 left; shortest: 4 counts, 3 kinds, so sevenths
    assert found == pytest.approx({"x": 2 / 3 + 1 / 21, "y": 2 / 21, "z": 1 / 21})
