"""Times that contradict a round's own calls, or the rounds around it, are found and named."""

import pytest

from leapmodel.execution.auditing.audit import audit
from leapmodel.rounds import Rounds, read_rounds, write_rounds
from tests.execution.falsifying import falsify, of, place, places, rows_of, whats
from tests.execution.simulated import TALKER, TalkBenchmark, simulate

PARTS = (
    *("wall_s", "draft_model_s", "proposal_tool_s", "wait_s", "idle_s"),
    *("target_tool_s", "residual_s", "clock_s"),
)


@pytest.fixture(scope="module")
def rounds():
    return simulate(n_tasks=40, depth=3, agreement=0.6, tool_s=0.1)


@pytest.fixture(scope="module")
def gathered():
    return simulate(n_tasks=40, depth=3, agreement=0.3, gather=True)


def speculative(rows):
    return of(rows, asked=4, arm="speculative", proposed=3, accepted=1)


def moved(seconds, source, target):
    """Return a change that moves time of a speculative round from one part to another."""

    def change(rows):
        row = rows[speculative(rows)]
        row[source] -= seconds
        row[target] += seconds

    return change


MOVES = {
    "a draft's time into the residual": (0.1, "draft_model_s", "residual_s", ["draft_model_s"]),
    "a draft's time into tools": (
        *(0.1, "draft_model_s", "proposal_tool_s"),
        ["draft_model_s", "proposal_tool_s"],
    ),
    "a little of it": (0.001, "draft_model_s", "residual_s", ["draft_model_s"]),
    "tools into the residual": (0.2, "proposal_tool_s", "residual_s", ["proposal_tool_s"]),
    "tools into the wait": (0.1, "proposal_tool_s", "wait_s", ["proposal_tool_s", "wait_s"]),
    "a wait into idleness": (0.001, "wait_s", "idle_s", ["wait_s"]),
    "a wait into the target's tool": (0.1, "wait_s", "target_tool_s", ["wait_s", "target_tool_s"]),
}


@pytest.mark.parametrize("case", MOVES)
def test_time_moved_from_one_part_to_another(tmp_path, rounds, case):
    seconds, source, target, named = MOVES[case]
    found = falsify(tmp_path, rounds, moved(seconds, source, target))
    assert whats(found) == named
    rows = rows_of(rounds)
    assert set(places(found)) == {place(rows[speculative(rows)])}


def test_it_says_what_the_calls_took(tmp_path, rounds):
    found = falsify(tmp_path, rounds, moved(0.1, "draft_model_s", "residual_s"))
    assert str(found.violations[0]).endswith(
        "draft_model_s: expected 0.2100, the sum of its proposals' calls, found 0.1100"
    )


def test_idleness_moved_into_the_targets_tool(tmp_path, gathered):
    rows = rows_of(gathered)
    at = next(i for i, row in enumerate(rows) if row["idle_s"] > 0.1)

    def change(rows):
        rows[at]["target_tool_s"], rows[at]["idle_s"] = rows[at]["idle_s"], 0.0

    found = falsify(tmp_path, gathered, change)
    assert whats(found) == ["idle_s", "target_tool_s"]
    assert "until what it waited for had ended" in found.violations[0].expected
    assert "what is left after its verifications" in found.violations[1].expected


def test_the_targets_tool_moved_into_idleness(tmp_path, rounds):
    rows = rows_of(rounds)
    at, closed = next(
        (i, closed)
        for i, row in enumerate(rows)
        for closed, one in enumerate(row["verifications"])
        if row["target_tool_s"]
        and one["status"] == "cancelled"
        and one["end_s"] - one["start_s"] == row["wait_s"]
    )

    def close(rows):  # a request that was closed when the round went on has no such count
        rows[at]["verifications"][closed]["prompt_tokens"] = None

    def change(rows):
        close(rows)
        rows[at]["idle_s"] += rows[at]["target_tool_s"]
        rows[at]["target_tool_s"] = 0.0

    assert falsify(tmp_path, rounds, close).passed
    found = falsify(tmp_path, rounds, change)
    assert (whats(found), places(found)) == (["idle_s"], [place(rows[at])])
    assert "until the round went on" in found.violations[0].expected


@pytest.mark.parametrize("source", ["residual_s", "target_tool_s"])
def test_a_wait_may_have_ended_late_where_nothing_was_closed(tmp_path, rounds, source):
    assert falsify(tmp_path, rounds, moved(0.001, source, "idle_s")).passed


def test_the_tool_of_an_action_that_was_not_the_targets_own(tmp_path):
    talk = TalkBenchmark()
    rounds = simulate(talk, TALKER, n_tasks=30, depth=3, agreement=0.9, residual_s=0.1)
    rows = rows_of(rounds)
    at = next(i for i, row in enumerate(rows) if row["committed"] == row["accepted"])

    def change(rows):
        rows[at]["residual_s"] -= 0.05
        rows[at]["target_tool_s"] += 0.05

    found = falsify(tmp_path, rounds, change, talk)
    assert (whats(found), places(found)) == (["target_tool_s"], [place(rows[at])])


@pytest.mark.parametrize("items", ["proposals", "verifications"])
def test_a_call_that_ends_before_it_starts(tmp_path, rounds, items):
    def change(rows):
        call = rows[speculative(rows)][items][0]
        call["start_s"], call["end_s"] = call["end_s"], call["start_s"]

    found = falsify(tmp_path, rounds, change)
    assert "seconds not before start_s" in found.violations[0].expected


@pytest.mark.parametrize("at", [0, 3])
def test_a_verification_that_ends_after_its_round(tmp_path, rounds, at):
    def change(rows):
        row = rows[speculative(rows)]
        later = row["wall_s"] + 0.001 - row["verifications"][at]["end_s"]
        for name in ("start_s", "end_s"):
            row["verifications"][at][name] += later

    found = falsify(tmp_path, rounds, change)
    assert f"verifications[{at}].end_s" in whats(found)


def test_calls_in_another_order_than_the_loops(tmp_path, rounds):
    def change(rows):
        row = rows[speculative(rows)]
        for call in (row["proposals"][1], row["verifications"][3]):
            call["start_s"], call["end_s"] = call["start_s"] - 0.05, call["end_s"] - 0.05

    found = falsify(tmp_path, rounds, change)
    named = [what for what in whats(found) if what.endswith("start_s")]
    assert named == ["proposals[1].start_s", "verifications[3].start_s"]


def test_a_recorder_may_round_its_times(tmp_path, rounds):
    frame = rounds.frame.copy()
    for name in PARTS:
        frame[name] = frame[name].round(4)
    for items in ("proposals", "verifications"):
        frame[items] = [
            [{k: round(v, 4) if k.endswith("_s") else v for k, v in one.items()} for one in calls]
            for calls in frame[items]
        ]
    rounded = Rounds.from_frame(frame, rounds.metadata)
    assert audit(rounded).violations == ()


# ------------------------------------------------------------------ a run's rounds


def test_no_clock_at_all_is_no_contradiction(tmp_path, rounds):
    def change(rows):
        for row in rows:
            row["clock_s"] = None

    assert falsify(tmp_path, rounds, change).passed


@pytest.mark.parametrize("hidden", [False, True])
def test_a_clock_that_goes_back(tmp_path, rounds, hidden):
    rows = rows_of(rounds)
    at = of(rows, arm="sequential", round=2)

    def change(rows):
        rows[at]["clock_s"] = rows[at - 2]["clock_s"] - 0.1
        if hidden:  # the one before it is gone, so it is not seen to go back at once
            rows[at - 1]["clock_s"] = None

    found = falsify(tmp_path, rounds, change)
    assert places(found)[0] == place(rows[at])
    assert found.violations[0].what.startswith("clock_s")


def test_time_moved_from_one_round_to_another(tmp_path, rounds):
    rows = rows_of(rounds)
    at = of(rows, arm="sequential", round=1)

    def change(rows):
        for i, sign in ((at - 1, 1), (at, -1)):
            row = rows[i]
            decided = row["verifications"][0]
            decided["end_s"] += sign * 0.2
            row["wait_s"] += sign * 0.2
            row["wall_s"] += sign * 0.2

    found = falsify(tmp_path, rounds, change)
    assert set(whats(found)) == {"clock_s", "started_s"}
    assert places(found)[0] == place(rows[at - 1])


def test_a_round_that_starts_before_the_one_before_it_ended(tmp_path, rounds):
    rows = rows_of(rounds)
    at = speculative(rows)

    def change(rows):
        rows[at]["started_s"] -= 0.2

    found = falsify(tmp_path, rounds, change)
    assert (whats(found), places(found)) == (["started_s"], [place(rows[at])])
    assert "the end of the round before" in found.violations[0].expected


def test_any_time_may_pass_between_two_rounds(tmp_path, rounds):
    def change(rows):  # as where a run went on the next day
        at = speculative(rows)
        for row in rows[at:]:
            row["started_s"] += 86400

    assert falsify(tmp_path, rounds, change).passed


def test_a_file_keeps_times_exactly(tmp_path, rounds):
    write_rounds(rounds, tmp_path / "r.parquet")
    assert audit(read_rounds(tmp_path / "r.parquet")).passed
