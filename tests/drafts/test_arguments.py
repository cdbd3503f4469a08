"""Each copy rule alone, on sequences that only it can foresee."""

from __future__ import annotations

import pytest

from leapmodel.drafts import BackoffDraft
from leapmodel.drafts.arguments import following_number
from tests.drafts.agents import REPLY, call, episode, proposals_on, trace_of
from tests.drafts.agents import proposals as proposals_of


def taught(*runs: object) -> BackoffDraft:
    draft = BackoffDraft()
    for run in runs:
        draft.finish_task([run])  # type: ignore[list-item]
    return draft


def test_a_value_that_is_always_the_same():
    draft = taught(*(episode(call("ls", all=True), REPLY) for _ in range(3)))
    assert proposals_on(draft, episode(REPLY)) == [call("ls", all=True)]


def test_the_usual_value_depends_on_what_stands_before():
    run = episode(call("a"), call("ls", all=True), call("b"), call("ls", all=False), REPLY)
    draft = taught(run, run, run)
    assert proposals_on(draft, run) == list(run.actions)


def test_an_argument_of_another_tool_is_copied():
    def run(user: str):
        return episode(call("find", user=user), call("orders", of=user), REPLY)

    draft = taught(*(run(f"user {n}") for n in range(6)))
    assert proposals_on(draft, run("Zoë"))[1] == call("orders", of="Zoë")


def test_an_argument_is_kept_through_the_task():
    def run(user: str):
        return episode(*[call("poll", job=user)] * 4, REPLY)

    draft = taught(*(run(f"job {n}x") for n in range(6)))
    assert proposals_on(draft, run("new"))[1:4] == [call("poll", job="new")] * 3


def test_arguments_take_turns():
    def run(a: str, b: str):
        return episode(*[call("ping", host=a), call("ping", host=b)] * 3)

    draft = taught(*(run(f"a{n}z", f"b{n}z") for n in range(8)))
    assert proposals_on(draft, run("new", "old"))[2:] == [
        call("ping", host=host) for host in ("new", "old", "new", "old")
    ]


def test_a_number_that_counts_on():
    def run(first: int):
        return episode(*(call("page", number=first + n) for n in range(5)), REPLY)

    draft = taught(*(run(first) for first in (10, 200, 3000, 40, 71)))
    assert proposals_on(draft, run(600))[1:5] == [call("page", number=600 + n) for n in range(1, 5)]


@pytest.mark.parametrize(
    ("values", "following"),
    [
        (["7"], "8"),
        (["-3"], "-2"),
        (["1", "5"], "-3"),
        (["30", "20"], "40"),
        (["5", "5"], "6"),
        (['"p1"', '"p5"'], None),
        (['"page_09"', '"page_08"'], '"page_10"'),
        (['"7"'], '"8"'),
        (['"b7"', '"a5"'], '"b8"'),
        (["1.5"], None),
        (["true"], None),
        (['"x"'], None),
        (["[1]"], None),
        (['"' + "9" * 300 + '"'], None),
    ],
)
def test_following_numbers(values: list[str], following: str | None):
    assert following_number(values) == following


def test_a_quoted_word_of_the_user():
    names = [f"{word}.txt" for word in ("plan", "notes", "todo", "draft", "memo", "list")]
    tasks = [[call("open", file=name), REPLY] for name in names]
    words = [[f"Please open '{name}', now", None] for name in names]
    asked = proposals_of(trace_of(tasks, context=words), BackoffDraft())
    assert asked[4::2] == [task[0] for task in tasks[2:]]
    unasked = proposals_of(trace_of(tasks), BackoffDraft())
    assert not any(a == t[0] for a, t in zip(unasked[::2], tasks, strict=True))


def test_ids_of_an_observation_are_worked_off():
    tasks, seen = [], []
    for n in range(8):
        orders = [f"#W{n}{m}77" for m in range(3)]
        tasks.append([call("find", user=f"u{n}"), *(call("get", order=o) for o in orders), REPLY])
        seen.append([f"User has orders {', '.join(orders)}.", *["nothing new"] * 3, None])
    asked = proposals_of(trace_of(tasks, observation=seen), BackoffDraft())
    assert asked[-4:-1] == tasks[-1][1:4]


def test_a_field_of_an_observation_by_its_name():
    tasks = [[call("find"), call("get", user_id=f"{n}abc"), REPLY] for n in range(6)]
    seen = [[f'{{"id": "zz", "user_id": "{n}abc"}}', None, None] for n in range(6)]
    assert proposals_of(trace_of(tasks, observation=seen), BackoffDraft())[-2] == tasks[-1][1]


def test_an_observation_is_not_known_before_it_was_made():
    """The text that names the argument stands in the row of the step itself."""
    tasks = [[call("get", user_id=f"{n}abc"), REPLY] for n in range(6)]
    seen = [[f'{{"user_id": "{n}abc"}}', None] for n in range(6)]
    asked = proposals_of(trace_of(tasks, observation=seen), BackoffDraft())
    assert not any(a == t for a, t in zip(asked[::2], [t[0] for t in tasks], strict=True))


def test_parallel_calls_are_filled_in_one_after_the_other():
    def run(n: int):
        both = call("get", id=n) + "\n" + call("get", id=n + 1)
        return episode(call("find", id=n), both, REPLY)

    draft = taught(*(run(n) for n in (10, 200, 31, 47, 58, 90)))
    assert proposals_on(draft, run(700))[1] == run(700).actions[1]
