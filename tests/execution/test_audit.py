"""The audit: valid runs are clean, and each way to falsify one is found and named."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leapmodel.actions import RESPOND, TERMINATE
from leapmodel.execution.auditing.audit import audit
from leapmodel.rounds import write_rounds
from tests.execution.falsifying import falsify, of, place, places
from tests.execution.simulated import PLANNER, TALKER, TalkBenchmark, simulate


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 999),
    depth=st.integers(0, 6),
    agreement=st.floats(0, 1),
    gather=st.booleans(),
    terminal=st.sampled_from(["accepted", "probe", None]),
    diverges=st.sampled_from([0.0, 0.5]),
)
def test_valid_runs_are_clean(seed, depth, agreement, gather, terminal, diverges):
    benchmark, speaker = (None, PLANNER) if terminal is None else (TalkBenchmark(terminal), TALKER)
    rounds = simulate(
        benchmark,
        speaker,
        n_tasks=4,
        seed=seed,
        depth=depth,
        agreement=agreement,
        gather=gather,
        diverges=diverges,
        tool_s=0.1,
    )
    found = audit(rounds, benchmark)
    assert found.passed, found.summary()
    assert found.counts["rounds"] == rounds.n_rounds
    assert found.counts["commits"] == len(rounds.committed)
    assert found.counts["requests"] == len(rounds.verifications) + len(rounds.proposals)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_file_names_its_benchmark(tmp_path, suffix):
    path = tmp_path / f"r{suffix}"
    write_rounds(simulate(n_tasks=3), path)
    assert audit(path).passed


# ------------------------------------------------------------------ falsified runs


@pytest.fixture(scope="module")
def rounds():
    return simulate(n_tasks=40, depth=3, agreement=0.6)


@pytest.fixture
def falsified(tmp_path, rounds):
    """Return a function that changes the rows of a run as a file and audits it."""

    def apply(change, of=rounds, benchmark=None):
        found = falsify(tmp_path, of, change, benchmark)
        assert not found.passed
        return found

    return apply


def test_an_altered_action_of_the_target(falsified, rounds):
    at = of(rounds.frame.to_dict(orient="records"), arm="sequential")

    def change(rows):
        rows[at]["verifications"][0]["action"] = "Fill Mask"

    found = falsified(change)
    assert places(found) == [place(rounds.frame.iloc[at])]  # what follows is checked as well
    violation = found.violations[0]
    assert violation.what == "verifications[0].action"
    assert violation.found == "'Fill Mask'"
    assert violation.expected == repr(rounds.frame["verifications"][at][0]["action"])


def test_an_altered_action_of_both_models(falsified, rounds):
    at = of(rounds.frame.to_dict(orient="records"), arm="speculative", accepted=1)

    def change(rows):
        for items in ("proposals", "verifications"):
            rows[at][items][0]["action"] = "Fill Mask"

    found = falsified(change)
    assert set(places(found)) == {place(rounds.frame.iloc[at])}
    whats = [violation.what for violation in found.violations]
    assert whats == ["proposals[0].action", "verifications[0].action"]


def test_an_altered_output_of_the_target(falsified, rounds):
    at = of(rounds.frame.to_dict(orient="records"), arm="sequential")

    def change(rows):
        rows[at]["verifications"][0]["output"] = "<tool>Fill Mask</tool>"

    found = falsified(change)
    assert places(found) == [place(rounds.frame.iloc[at])]
    assert str(found.violations[0]).endswith(
        f"expected 'Fill Mask', found {rounds.frame['verifications'][at][0]['action']!r}"
    )


def test_an_altered_output_of_the_draft(falsified, rounds):
    at = of(rounds.frame.to_dict(orient="records"), arm="speculative", proposed=3, accepted=0)

    def change(rows):
        rows[at]["proposals"][1]["output"] = "<tool>TERMINATE</tool>"

    found = falsified(change)
    assert set(places(found)) == {place(rounds.frame.iloc[at])}
    assert found.violations[0].what == "proposals[1].action"
    assert found.violations[0].expected == repr(TERMINATE)
    assert "ended the segment or stopped proposing" in found.violations[1].expected


@pytest.mark.parametrize("items", ["verifications", "proposals"])
def test_an_altered_context(falsified, rounds, items):
    at = of(rounds.frame.to_dict(orient="records"), arm="speculative", proposed=3)

    def change(rows):
        rows[at][items][1]["context"] = "0" * 64

    found = falsified(change)
    assert places(found) == [place(rounds.frame.iloc[at])]
    assert found.violations[0].what == f"{items}[1].context"
    assert found.violations[0].found == "000000000000…"


def test_a_missing_context(falsified, rounds):
    def change(rows):
        rows[0]["verifications"][0]["context"] = None

    assert falsified(change).violations[0].found == "no hash"


def test_two_rounds_in_the_other_order(falsified, rounds):
    at = of(rounds.frame.to_dict(orient="records"), arm="sequential")

    def change(rows):
        first, second = rows[at - 1], rows[at]
        for name in ("round", "first_step", "clock_s", "started_s"):
            first[name], second[name] = second[name], first[name]

    found = falsified(change)
    assert places(found)[0] == place(rounds.frame.iloc[at - 1])
    assert found.violations[0].what == "verifications[0].context"


def test_two_verifications_in_the_other_order(falsified, rounds):
    at = of(rounds.frame.to_dict(orient="records"), arm="speculative", accepted=0, proposed=3)

    def change(rows):
        asked = rows[at]["verifications"]
        asked[1], asked[2] = asked[2], asked[1]

    found = falsified(change)
    assert [v.what for v in found.violations] == [
        "verifications[1].context",
        "verifications[2].context",
    ]


@pytest.mark.parametrize("arm", ["sequential", "speculative"])
def test_a_dropped_round(falsified, rounds, arm):
    at = of(rounds.frame.to_dict(orient="records"), arm=arm)
    found = falsified(lambda rows: rows[:at] + rows[at + 1 :])
    follower = rounds.frame.iloc[at + 1]
    assert places(found) == [place(follower)]
    assert found.violations[0].what == f"round (line {at + 2})"
    assert found.violations[0].expected == "rounds without a gap (0, 1, 2, …)"


@pytest.mark.parametrize("arm", ["sequential", "speculative"])
def test_a_dropped_round_with_the_numbers_closed_up(falsified, rounds, arm):
    at = of(rounds.frame.to_dict(orient="records"), arm=arm)

    def change(rows):
        gone = rows.pop(at)
        for row in rows[at:]:
            if place(row)[:3] == place(gone)[:3]:
                row["round"] -= 1
                row["first_step"] -= gone["committed"]

    found = falsified(change)
    assert places(found)[0] == place(rounds.frame.iloc[at])
    assert found.violations[0].what in ("verifications[0].context", "requests")


@pytest.mark.parametrize("arm", ["sequential", "speculative"])
def test_a_dropped_last_round(falsified, rounds, arm):
    frame = rounds.frame[(rounds.frame["arm"] == arm) & (rounds.frame["round"] > 0)]
    at = frame.index[frame["task"] == frame["task"].iloc[0]][-1]
    found = falsified(lambda rows: rows[:at] + rows[at + 1 :])
    before = rounds.frame.iloc[at - 1]
    assert places(found)[0] == place(before)
    assert str(found.violations[0]).endswith(
        "the last round: expected one that ends the task, found a task that goes on"
    )


def test_a_duplicated_round(falsified, rounds):
    at = of(rounds.frame.to_dict(orient="records"), arm="speculative")
    found = falsified(lambda rows: [*rows[: at + 1], rows[at], *rows[at + 1 :]])
    assert places(found) == [place(rounds.frame.iloc[at])]
    assert found.violations[0].expected == "each (task, run, arm, round) once"


def test_a_duplicated_round_with_the_numbers_counted_on(falsified, rounds):
    at = of(rounds.frame.to_dict(orient="records"), arm="sequential")

    def change(rows):
        rows.insert(at, copy.deepcopy(rows[at]))
        for row in rows[at + 1 :]:
            if place(row)[:3] == place(rows[at])[:3]:
                row["round"] += 1
                row["first_step"] += rows[at]["committed"]

    found = falsified(change)
    task, run, arm, number = place(rounds.frame.iloc[at])
    assert places(found)[0] == (task, run, arm, number + 1)
    assert found.violations[0].what == "verifications[0].context"


def test_a_round_past_the_end(falsified, rounds):
    frame = rounds.frame[rounds.frame["arm"] == "sequential"]
    at = frame.index[frame["task"] == frame["task"].iloc[0]][-1]

    def change(rows):
        more = copy.deepcopy(rows[at])
        more["round"] += 1
        more["first_step"] += 1
        rows.insert(at + 1, more)

    found = falsified(change)
    assert str(found.violations[0]).endswith(
        "round: expected none, as the task has ended, found a further one"
    )


def test_a_hit_that_is_counted_as_a_miss(falsified, rounds):
    rows = rounds.frame.to_dict(orient="records")
    at = of(rows, arm="speculative", accepted=1, proposed=3)

    def change(rows):  # consistent in itself, but not what the outputs say
        row = rows[at]
        row["verifications"][1]["status"] = "cancelled"
        row["accepted"], row["committed"] = 0, 1
        row["proposals"][0]["action"] = "Fill Mask"
        for later in rows[at + 1 :]:
            if place(later)[:3] == place(row)[:3]:
                later["first_step"] -= 1

    found = falsified(change)
    said = {(v.what, v.expected, v.found) for v in found.violations}
    assert {("accepted", "1", "0"), ("committed", "2", "1")} <= said
    assert place(rows[at]) in places(found)


def test_a_shortened_round(falsified, rounds):
    rows = rounds.frame.to_dict(orient="records")
    at = of(rows, asked=4, arm="speculative", accepted=0, proposed=3)

    def change(rows):
        row = rows[at]
        gone_s = row["proposals"][-1]["end_s"] - row["proposals"].pop()["start_s"]
        row["draft_model_s"] -= gone_s
        row["residual_s"] += gone_s
        row["verifications"].pop()
        row["proposed"] = 2

    found = falsified(change)
    assert places(found) == [place(rounds.frame.iloc[at])]
    assert str(found.violations[0]).endswith(
        "proposals: expected 3, as nothing stopped the draft, found 2"
    )


def test_a_wrong_segment(falsified):
    talk = TalkBenchmark()
    rounds = simulate(talk, TALKER, n_tasks=5)

    def change(rows):
        for row in rows:
            row["segment"] = 0

    found = falsified(change, rounds, talk)
    assert {v.what for v in found.violations} == {"segment"}


def test_a_proposal_past_a_reply(falsified):
    talk = TalkBenchmark()
    rounds = simulate(talk, TALKER, n_tasks=20, depth=3)
    rows = rounds.frame.to_dict(orient="records")
    at = next(
        i
        for i, row in enumerate(rows)
        if 0 < row["proposed"] < 3
        and row["accepted"] < row["proposed"]
        and row["proposals"][-1]["action"] == RESPOND
    )

    def change(rows):
        row = rows[at]
        row["proposals"].append({**row["proposals"][-1], "output": "look", "action": "look"})
        row["verifications"].append({**row["verifications"][-1], "status": "cancelled"})
        row["proposed"] += 1

    found = falsified(change, rounds, talk)
    assert place(rows[at]) in places(found)
    assert any(
        v.expected == "none, as the one before ended the segment or stopped proposing"
        for v in found.violations
    )


def test_a_proposed_reply_where_only_a_probe_decides(falsified):
    talk = TalkBenchmark("accepted")
    rounds = simulate(talk, TALKER, n_tasks=20, depth=3)
    rounds.metadata["terminal"] = "probe"
    found = audit(rounds, talk)
    assert ("withheld", "proposed") in {(v.expected, v.found) for v in found.violations}


def test_times_that_do_not_fit(falsified, rounds):
    def change(rows):
        rows[0]["wait_s"] += 1.0
        rows[0]["wall_s"] += 1.0

    found = falsified(change)
    assert [v.what for v in found.violations] == ["wait_s", "clock_s"]


def test_a_task_the_benchmark_does_not_have(falsified, rounds):
    def change(rows):
        first = rows[0]["task"]
        for row in rows:
            if row["task"] == first:
                row["task"] = "plan-9999"

    found = falsified(change)
    assert {v.what for v in found.violations} == {"task"}
    assert found.violations[0].found == "'plan-9999'"


def test_an_environment_that_refuses_an_action_is_a_violation(rounds):
    class Strict(TalkBenchmark):
        def start(self, task):
            environment = super().start(task)

            def step(action):
                raise KeyError(action)

            environment.clone = lambda: environment
            environment.step = step
            return environment

    found = audit(simulate(TalkBenchmark(), TALKER, n_tasks=1), Strict())
    assert {v.what for v in found.violations} == {"the environment"}


def test_a_line_that_can_not_be_read(tmp_path, rounds):
    path = tmp_path / "r.jsonl"
    write_rounds(rounds, path)
    path.write_bytes(path.read_bytes()[:-40])
    found = audit(path)
    assert "(the file ends inside this line)" in found.violations[0].found
    assert found.violations[0].task is None


def test_one_bad_task_alone_is_still_an_audit(falsified):
    def change(rows):
        rows[0]["committed"] = 2

    found = falsified(change, simulate(n_tasks=1))
    assert found.violations[0].what == "committed (line 2)"
    assert found.counts["rounds"] == 0


# ------------------------------------------------------------------ results


def test_its_results(rounds, falsified):
    longest = max(rounds.frame["round"])
    found = falsified(lambda rows: [row for row in rows if row["round"] < longest])
    assert found.to_dict()["passed"] is False
    assert found.to_frame()["task"].tolist() == [v.task for v in found.violations]
    several = len(found.violations)
    said = f"{several} violation{'s' * (several > 1)} in 40 tasks, 80 runs, "
    assert found.summary().startswith(said)
    assert "<table" in found._repr_html_()
    assert audit(rounds).summary().startswith("0 violations in ")
