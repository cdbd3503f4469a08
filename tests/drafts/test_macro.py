from __future__ import annotations

import pytest

from leapmodel.drafts import MacroDraft
from tests.drafts.agents import REPLY, call, episode, proposals_on

A, B, C, D = (call(name) for name in "abcd")


def taught(*runs: object, **settings: float) -> MacroDraft:
    draft = MacroDraft(**settings)  # type: ignore[arg-type]
    for run in runs:
        draft.finish_task([run])  # type: ignore[list-item]
    return draft


def test_the_rest_of_a_macro_is_proposed_at_once():
    draft = taught(*[episode(A, B, C, REPLY)] * 3)
    draft.start_task()
    assert draft.propose(episode(A).contexts[0]) == A
    assert draft.planned == (B, C, REPLY)


def test_a_macro_needs_its_support():
    run = episode(A, B, C, REPLY)
    assert proposals_on(taught(run, run), run) == [None] * 4
    assert proposals_on(taught(run, run, run), run) == list(run.actions)


def test_a_macro_needs_its_confidence():
    """Half of the times x goes on to a b c, the rest goes elsewhere each time."""
    runs = [episode(D, A, B, C)] * 3 + [episode(D, call(f"other{n}")) for n in range(4)]
    assert proposals_on(taught(*runs, confidence=0.5), episode(D, A))[1] is None
    assert proposals_on(taught(*runs, confidence=0.4), episode(D, A))[1] == A


def test_a_transition_is_no_macro():
    draft = taught(*[episode(A, B)] * 5 + [episode(C, B)] * 5)
    assert proposals_on(draft, episode(D, A, B))[2] is None  # only the pair a b is known


def test_a_departure_drops_the_rest():
    draft = taught(*[episode(A, B, C, REPLY)] * 3)
    assert proposals_on(draft, episode(A, D, C, REPLY)) == [A, B, None, None]


def test_a_macro_does_not_cross_a_segment():
    draft = taught(*[episode(A, B, REPLY, C, D, REPLY)] * 3)
    draft.start_task()
    draft.propose(episode(A).contexts[0])
    assert draft.planned == (B, REPLY)


def test_arguments_of_the_whole_rest_follow_from_its_beginning():
    def run(user: str):
        return episode(call("find", user=user), call("orders", of=user), call("mail", to=user))

    draft = taught(*(run(f"user {n}") for n in range(6)))
    asked = run("Zoë 漢")
    assert proposals_on(draft, asked)[1:] == list(asked.actions[1:])
    draft.start_task()
    draft.propose(asked.contexts[0])
    draft.observe(asked.actions[0])
    draft.propose(asked.contexts[1])
    assert draft.planned == (call("mail", to="Zoë 漢"),)


def test_an_output_that_did_not_parse_ends_a_macro():
    draft = taught(*[episode(A, None, B, C, D)] * 4)
    # a alone leads nowhere; b c d is a macro of its own
    assert proposals_on(draft, episode(A, None, B, C, D)) == [None, None, None, C, D]


@pytest.mark.parametrize(
    "wrong", [{"support": 0}, {"confidence": 0.0}, {"confidence": 1.5}, {"longest": 1}]
)
def test_settings_are_checked(wrong: dict[str, float]):
    with pytest.raises(ValueError, match=r"expected support >= 1"):
        MacroDraft(**wrong)  # type: ignore[arg-type]
