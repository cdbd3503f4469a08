"""Rounds that contradict their metadata or each other are found and named."""

import pytest

from leapmodel.execution.auditing.audit import audit
from leapmodel.rounds import Rounds
from tests.execution.falsifying import falsify, of, place, places, rows_of, whats
from tests.execution.simulated import TALKER, TalkBenchmark, simulate


@pytest.fixture(scope="module")
def rounds():
    return simulate(n_tasks=12, depth=3, agreement=0.6)


@pytest.fixture(scope="module")
def twice():
    return simulate(n_tasks=3, depth=3, runs=2)


# ------------------------------------------------------------------ metadata


@pytest.mark.parametrize("terminal", [["probe"], "Probe", 1, {}])
def test_a_terminal_rule_that_is_none(tmp_path, terminal):
    talk = TalkBenchmark("probe")
    rounds = simulate(talk, TALKER, n_tasks=5)
    found = falsify(tmp_path, rounds, benchmark=talk, terminal=terminal)
    assert [str(violation) for violation in found.violations] == [
        f"terminal in the metadata: expected accepted or probe, found {terminal!r}"
    ]


def test_a_depth_that_is_not_the_metadatas(tmp_path, rounds):
    rows = rows_of(rounds)
    at = of(rows, arm="speculative")

    def change(rows):
        rows[at]["depth"] = 5

    found = falsify(tmp_path, rounds, change)
    assert {where for where in places(found)} == {place(rows[at])}
    said = {(v.what, v.expected, v.found) for v in found.violations}
    assert ("depth", "3, as the metadata say", "5") in said


def test_another_depth_in_the_metadata(tmp_path, rounds):
    found = falsify(tmp_path, rounds, depth=5)
    assert [str(violation) for violation in found.violations] == [
        "depth in the metadata: expected 3, that of every speculative round, found 5"
    ]


def test_a_depth_in_the_metadata_that_is_no_number(tmp_path, rounds):
    for depth in ([3], "3", True):
        found = falsify(tmp_path, rounds, depth=depth)
        assert whats(found) == ["depth in the metadata"]


def test_metadata_that_state_no_depth(tmp_path, rounds):
    assert falsify(tmp_path, rounds, depth=None).passed


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("concurrency", "1", "a whole number above 0"),
        ("concurrency", 0, "a whole number above 0"),
        ("concurrency", True, "a whole number above 0"),
        ("concurrency", 1.5, "a whole number above 0"),
        ("concurrency", [4], "a whole number above 0"),
        ("turn", 0, "a whole number above 0"),
        ("turn", "9", "a whole number above 0"),
        ("mode", "Gather", "prefix or gather"),
        ("mode", ["gather"], "prefix or gather"),
        ("arms", "both", "a list of sequential and speculative, or of one of them"),
        ("arms", [], "a list of sequential and speculative, or of one of them"),
        ("arms", ["sequential", "other"], "a list of sequential and speculative, or of one of"),
        ("arms", [["sequential"], 3], "a list of sequential and speculative, or of one of them"),
    ],
)
def test_metadata_that_would_switch_a_check_off(tmp_path, rounds, name, value, expected):
    (violation,) = falsify(tmp_path, rounds, **{name: value}).violations
    assert str(violation).startswith(f"{name} in the metadata: expected {expected}")
    assert violation.found == repr(value)


@pytest.mark.parametrize("name", ["terminal", "mode", "concurrency", "arms", "tasks"])
def test_metadata_that_say_less(tmp_path, rounds, name):
    assert falsify(tmp_path, rounds, **{name: None}).passed


def test_metadata_that_leave_the_concurrency_out_are_of_one_task_at_a_time(tmp_path, rounds):
    def change(rows):
        return without(as_recorded(rows), 5, "speculative")

    found = falsify(tmp_path, rounds, change, concurrency=None)
    assert places(found) == [(rounds.task_names[5], 0, "speculative", None)]


@pytest.mark.parametrize("name", ["clock_s", "started_s"])
@pytest.mark.parametrize("how_many", [1, 4])
def test_a_time_that_is_not_always_there(tmp_path, rounds, name, how_many):
    rows = rows_of(rounds)[3 : 3 + how_many]

    def change(rows):
        for row in rows[3 : 3 + how_many]:
            row[name] = None

    found = falsify(tmp_path, rounds, change)
    assert (whats(found), places(found)) == ([name] * how_many, [place(row) for row in rows])
    assert {violation.found for violation in found.violations} == {"none"}


# ------------------------------------------------------------------ arms


def without(rows, at, arm, run=0):
    """Return the rows without one arm of the task at this place."""
    task = list(dict.fromkeys(row["task"] for row in rows))[at]
    return [row for row in rows if (row["task"], row["arm"], row["run"]) != (task, arm, run)]


def as_recorded(rows):
    """Return the rows in the order of the runs: an arm over all tasks, then the other."""
    return sorted(rows, key=lambda row: (row["run"], row["arm"]))


@pytest.mark.parametrize("order", [list, as_recorded])
@pytest.mark.parametrize(
    ("at", "arm"), [(0, "speculative"), (5, "speculative"), (0, "sequential"), (-1, "sequential")]
)
def test_a_missing_arm_of_a_task(tmp_path, rounds, at, arm, order):
    found = falsify(tmp_path, rounds, lambda rows: without(order(rows), at, arm))
    assert [str(violation) for violation in found.violations] == [
        f"task {rounds.task_names[at]}, run 0, {arm}: rounds: expected some, as the metadata name"
        " this arm, found none"
    ]


def test_a_run_that_did_not_get_to_the_last_tasks(tmp_path, rounds):
    def change(rows):
        return without(without(as_recorded(rows), -1, "speculative"), -2, "speculative")

    assert falsify(tmp_path, rounds, change).passed


def test_a_missing_first_arm_in_a_run_that_is_unfinished(tmp_path, rounds):
    def change(rows):
        return without(without(as_recorded(rows), -1, "speculative"), 2, "sequential")

    found = falsify(tmp_path, rounds, change)
    assert places(found) == [(rounds.task_names[2], 0, "sequential", None)]


def test_a_run_that_ended_inside_a_task(tmp_path, rounds):
    rows = as_recorded(rows_of(rounds))
    at = max(i for i, row in enumerate(rows) if row["round"])
    found = falsify(tmp_path, rounds, lambda _: rows[:at])
    assert whats(found) == ["the last round"]


def test_a_missing_arm_where_a_later_pass_has_the_task(tmp_path, twice):
    found = falsify(tmp_path, twice, lambda rows: without(rows, -1, "speculative"))
    assert places(found) == [(twice.task_names[-1], 0, "speculative", None)]
    assert falsify(tmp_path, twice, lambda rows: without(rows, -1, "speculative", 1)).passed


def test_tasks_at_a_time_end_in_any_order(tmp_path, rounds):
    def change(rows):
        return without(as_recorded(rows), 5, "speculative")

    assert falsify(tmp_path, rounds, change, concurrency=4).passed


@pytest.mark.parametrize("arm", ["sequential", "speculative"])
def test_an_arm_in_a_file_of_its_own(rounds, arm):
    assert audit(rounds.arm(arm)).passed


@pytest.mark.parametrize("arms", [None, ["speculative"]])
def test_metadata_that_do_not_name_both_arms(tmp_path, rounds, arms):
    assert falsify(tmp_path, rounds, lambda rows: without(rows, 0, "sequential"), arms=arms).passed


# ------------------------------------------------------------------ tasks


SKIPPED = "rounds: expected some, as the metadata list this task before others that have them"


@pytest.mark.parametrize("arm", ["sequential", "speculative"])
@pytest.mark.parametrize("at", [0, 5])
def test_a_task_that_was_skipped(tmp_path, rounds, arm, at):
    names = rounds.task_names
    alone = rounds.arm(arm)
    found = falsify(tmp_path, alone, lambda rows: without(rows, at, arm), tasks=names)
    assert [str(violation) for violation in found.violations] == [
        f"task {names[at]}, run 0, {arm}: {SKIPPED}, found none"
    ]


def test_a_task_that_both_arms_skipped(tmp_path, rounds):
    names = rounds.task_names

    def change(rows):
        return [row for row in as_recorded(rows) if row["task"] != names[3]]

    found = falsify(tmp_path, rounds, change, tasks=names)
    assert places(found) == [(names[3], 0, arm, None) for arm in ("sequential", "speculative")]


def test_a_missing_arm_is_named_once(tmp_path, rounds):
    found = falsify(
        tmp_path,
        rounds,
        lambda rows: without(as_recorded(rows), 2, "speculative"),
        tasks=rounds.task_names,
    )
    assert places(found) == [(rounds.task_names[2], 0, "speculative", None)]


def test_tasks_that_are_still_to_come(tmp_path, rounds):
    later = [*rounds.task_names, "one more", "and another"]
    assert falsify(tmp_path, rounds, tasks=later).passed
    # --limit may grow: the list is that of the beginning
    assert falsify(tmp_path, rounds, tasks=rounds.task_names[:4]).passed


@pytest.mark.parametrize("run", [0, 1])
def test_a_pass_that_was_told_to_take_fewer_tasks(tmp_path, twice, run):
    names = twice.task_names

    def lacking(rows, at):
        return without(without(rows, at, "sequential", run), at, "speculative", run)

    found = falsify(tmp_path, twice, lambda rows: lacking(rows, -1), tasks=names)
    assert (found.passed, found.unfinished) == (True, (0, 3, None))
    found = falsify(tmp_path, twice, lambda rows: lacking(rows, 1), tasks=names)
    assert places(found) == [(names[1], run, arm, None) for arm in ("sequential", "speculative")]


def cut(rows, names, arms=("sequential", "speculative")):
    return [row for row in rows if row["task"] not in names or row["arm"] not in arms]


def test_a_record_that_lacks_its_last_tasks_is_said_to_be_unfinished(tmp_path, rounds):
    names = rounds.task_names
    whole = falsify(tmp_path, rounds, tasks=names)
    assert "unfinished" not in whole.summary()
    assert whole.to_dict()["unfinished"] == 0
    found = falsify(tmp_path, rounds, lambda rows: cut(rows, names[-1:]), tasks=names)
    assert found.passed
    said = "unfinished: 1 of 12 listed tasks has no rounds"
    assert found.summary().startswith("0 violations in 11 tasks, ")
    assert found.summary().endswith(f" commits; {said}")
    assert found.to_dict()["unfinished"] == 1
    found = falsify(
        tmp_path, rounds, lambda rows: cut(rows, names[-3:]), tasks=names, concurrency=4
    )
    assert str(found.unfinished) == "unfinished: 3 of 12 listed tasks have no rounds"


def test_an_arm_that_lacks_its_last_tasks_is_named(tmp_path, rounds):
    names = rounds.task_names

    def change(rows):
        return cut(cut(as_recorded(rows), names[-1:]), names[-4:], ["speculative"])

    found = falsify(tmp_path, rounds, change, tasks=names)
    assert found.passed
    assert str(found.unfinished) == "unfinished: 4 of 12 listed tasks have no speculative rounds"


def test_it_is_not_known_whether_a_record_without_a_list_is_finished(rounds):
    assert audit(rounds).unfinished is None
    assert audit(rounds).to_dict()["unfinished"] is None


def test_a_task_whose_rounds_can_not_be_read_is_not_skipped(tmp_path, rounds):
    names = rounds.task_names

    def change(rows):
        for at in (2, -1):
            row = next(row for row in rows if row["task"] == names[at])
            row["committed"] = 7

    found = falsify(tmp_path, rounds, change, tasks=names)
    assert {violation.task for violation in found.violations} == {names[2], names[-1]}
    assert "rounds" not in whats(found)
    assert found.unfinished.tasks == 0


@pytest.mark.parametrize("tasks", ["all", [1], {"a": 1}])
def test_a_list_of_tasks_that_is_none(tmp_path, rounds, tasks):
    found = falsify(tmp_path, rounds, tasks=tasks)
    assert whats(found) == ["tasks in the metadata"]


def test_of_several_at_a_time_any_may_begin(tmp_path, rounds):
    alone = rounds.sequential

    def change(rows):
        return without(rows, 5, "sequential")

    assert falsify(tmp_path, alone, change, tasks=rounds.task_names, concurrency=4).passed


# ------------------------------------------------------------------ copies


@pytest.mark.parametrize("number", [1, 7])
def test_a_copy_of_a_run_under_another_number(tmp_path, rounds, number):
    task = rounds.task_names[2]

    def change(rows):
        copies = [{**row, "run": number} for row in rows if row["task"] == task]
        return [*rows, *copies]

    found = falsify(tmp_path, rounds, change)
    assert [(v.what, v.task, v.run, v.arm) for v in found.violations] == [
        ("started_s", task, number, "sequential"),
        ("started_s", task, number, "speculative"),
    ]
    assert found.violations[0].expected == "a moment of its own, not that of run 0, sequential"


def test_two_passes_are_no_copies(twice):
    assert audit(twice).passed


# ------------------------------------------------------------------ what a round did not use


def cancelled(rows):
    return of(rows, asked=4, arm="speculative", accepted=0, proposed=3)


def test_a_cancelled_verification_with_an_action(tmp_path, rounds):
    def change(rows):
        rows[cancelled(rows)]["verifications"][2]["action"] = "Fill Mask"

    found = falsify(tmp_path, rounds, change)
    assert [(v.what, v.expected, v.found) for v in found.violations] == [
        ("verifications[2].action", "none, as it was cancelled", "'Fill Mask'")
    ]


def test_a_cancelled_verification_that_is_called_failed(tmp_path, rounds):
    def change(rows):
        rows[cancelled(rows)]["verifications"][1]["status"] = "failed"

    found = falsify(tmp_path, rounds, change)
    assert whats(found) == ["verifications[1].status"]
    assert "the server counted its prompt's tokens" in found.violations[0].expected


def test_a_failed_verification_has_no_count_of_its_prompt(rounds):
    rows = rows_of(rounds)
    one = rows[cancelled(rows)]["verifications"][1]
    one["status"], one["prompt_tokens"] = "failed", None
    frame = rounds.frame.assign(verifications=[row["verifications"] for row in rows])
    assert audit(Rounds.from_frame(frame, rounds.metadata)).passed
