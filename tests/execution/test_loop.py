"""The loop on scripted models: what it proposes, verifies, cancels, commits and adopts."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from leapmodel.actions import RESPOND, TERMINATE
from leapmodel.errors import EngineError, UsageError
from leapmodel.execution.fake.server import Answer, FakeServer, Fault

from .scripted import GOLD, PLANNING, Turns, measure, naive_rounds, planner, rounds_of, speaker


def by_chance(text: str, step: int) -> bool:
    return int(hashlib.sha256(f"{text}{step}".encode()).hexdigest(), 16) % 3 == 0


def committed(rows: list[dict]) -> dict[str, list[str | None]]:
    found: dict[str, list[str | None]] = {}
    for row in rows:
        found.setdefault(row["task"], []).extend(
            v["action"] for v in row["verifications"] if v["status"] == "used"
        )
    return found


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_both_arms_commit_the_targets_own_actions(tmp_path: Path, depth: int):
    with FakeServer(planner(thought="hm ")) as target, FakeServer(planner(by_chance)) as draft:
        journal = measure(tmp_path, PLANNING, target, draft, depth, limit=12)
    expected = {task.name: list(task.gold or ()) for task in PLANNING.tasks("test")[:12]}
    assert committed(rounds_of(journal, "sequential")) == expected
    speculative = rounds_of(journal, "speculative")
    assert committed(speculative) == expected
    for task in PLANNING.tasks("test")[:12]:
        gold = GOLD[task.text] or ()
        naive = naive_rounds(
            gold,
            lambda i, gold=gold, task=task: "miss" if by_chance(task.text, i) else gold[i],
            depth,
            True,
        )
        rows = [row for row in speculative if row["task"] == task.name]
        assert [(r["accepted"], r["committed"]) for r in rows] == [n[1:] for n in naive]
        assert [r["first_step"] for r in rows] == [
            sum(n[2] for n in naive[:i]) for i in range(len(naive))
        ]


def test_depth_0_is_the_sequential_loop(tmp_path: Path):
    with FakeServer(planner()) as target:
        journal = measure(tmp_path, PLANNING, target, None, 0, limit=2, arms=("sequential",))
    for row in rounds_of(journal, "sequential"):
        assert (row["depth"], row["proposed"], row["accepted"], row["committed"]) == (0, 0, 0, 1)
        assert len(row["verifications"]) == 1
        assert row["proposals"] == ()
        assert row["draft"] is None


def test_a_perfect_draft_has_no_bonus_where_its_prefix_ends_the_task(tmp_path: Path):
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        journal = measure(tmp_path, PLANNING, target, draft, 5, limit=12, arms=("speculative",))
        requests = target.finished
    rows = rounds_of(journal, "speculative")
    for row in rows:
        actions = [p["action"] for p in row["proposals"]]
        assert row["accepted"] == row["proposed"] == len(actions)
        ends = actions[-1] == TERMINATE
        # nothing is asked past a terminal proposal, and there is no bonus behind it
        assert len(row["verifications"]) == len(actions) + (not ends)
        assert row["committed"] == row["accepted"] + (not ends)
    assert requests == sum(len(row["verifications"]) for row in rows) + 6  # and the warm-up


@pytest.mark.timed
def test_a_mismatch_cancels_what_is_behind_it(tmp_path: Path):
    slow = {"first_token_s": 0.05, "token_s": 0.01}

    def uneven(request):
        text = planner()(request)
        waits = request.messages[-1]["content"].endswith("nothing yet")
        return Answer(text) if waits else Answer("well " * 40 + text)

    with (
        FakeServer(uneven, **slow) as target,
        FakeServer(planner(lambda text, step: True)) as draft,
    ):
        journal = measure(tmp_path, PLANNING, target, draft, 3, limit=1, arms=("speculative",))
        aborted = target.aborted
        assert target.wait_for(lambda server: server.running == 0)
    first = rounds_of(journal, "speculative")[0]
    assert (first["proposed"], first["accepted"], first["committed"]) == (3, 0, 1)
    assert [v["status"] for v in first["verifications"]] == ["used", *["cancelled"] * 3]
    assert aborted >= 3
    # it did not wait for them, and knows what they had cost
    assert first["idle_s"] < 0.2  # they would have taken twice as long
    assert all(0 < v["completion_tokens"] < 40 for v in first["verifications"][1:])
    assert all(v["action"] is None for v in first["verifications"][1:])


def test_gathering_commits_the_same_and_waits_for_all(tmp_path: Path):
    times = {"first_token_s": 0.01, "token_s": 0.001}

    def uneven(request):
        text = planner()(request)
        first = request.messages[-1]["content"].endswith("nothing yet")
        return text if first else "well " * 60 + text

    found = {}
    for mode in ("prefix", "gather"):
        with (
            FakeServer(uneven, **times) as target,
            FakeServer(planner(by_chance)) as draft,
        ):
            found[mode] = rounds_of(
                measure(
                    tmp_path / mode,
                    PLANNING,
                    target,
                    draft,
                    3,
                    limit=6,
                    arms=("speculative",),
                    mode=mode,
                ),
                "speculative",
            )
    assert committed(found["prefix"]) == committed(found["gather"])
    idle = {mode: sum(row["idle_s"] for row in rows) for mode, rows in found.items()}
    assert idle["gather"] > 0.05 > idle["prefix"]
    statuses = {v["status"] for row in found["gather"] for v in row["verifications"]}
    assert statuses == {"used", "cancelled"}


@pytest.mark.parametrize("terminal", ["probe", "accepted"])
def test_rounds_never_cross_a_turn(tmp_path: Path, terminal):
    benchmark = Turns(terminal=terminal)
    with FakeServer(speaker()) as target, FakeServer(speaker()) as draft:
        journal = measure(tmp_path, benchmark, target, draft, 4)
    speculative = rounds_of(journal, "speculative")
    assert committed(speculative) == committed(rounds_of(journal, "sequential"))
    assert committed(speculative)["t0"] == [
        "say({})a", "say({})b", RESPOND, "say({})c", RESPOND,
    ]  # fmt: skip
    for row in speculative:
        actions = [v["action"] for v in row["verifications"] if v["status"] == "used"]
        assert RESPOND not in actions[:-1]
        counted = [p["action"] for p in row["proposals"] if p["status"] == "proposed"]
        assert len(counted) == row["proposed"]
        if terminal == "probe":  # the reply is verified, but it is no proposal and never counts
            assert RESPOND not in counted
            assert row["committed"] == row["accepted"] + 1
            assert [p["status"] for p in row["proposals"]][-1] == "withheld"
    # a whole turn is one round under either rule
    assert [row["segment"] for row in speculative if row["task"] == "t0"] == [0, 1]


def test_a_turn_end_alone_is_a_width_1_probe(tmp_path: Path):
    with FakeServer(speaker()) as target, FakeServer(speaker()) as draft:
        journal = measure(tmp_path, Turns(scripts=(".",)), target, draft, 3, arms=("speculative",))
    (row,) = rounds_of(journal, "speculative")
    assert (row["proposed"], row["accepted"], row["committed"]) == (0, 0, 1)
    assert len(row["verifications"]) == len(row["proposals"]) == 1


def test_accepted_tools_are_adopted_and_not_run_again(tmp_path: Path):
    """Every context shows how many calls its environment executed, so a second run would show."""
    benchmark = Turns(scripts=("abcdefgh.",))
    with FakeServer(speaker()) as target, FakeServer(speaker(wrong_at=[1, 2, 5])) as draft:
        journal = measure(tmp_path, benchmark, target, draft, 3)
    prompts: dict[str, list[str]] = {"sequential": [], "speculative": []}
    for arm, found in prompts.items():
        for row in rounds_of(journal, arm):
            found += [v["context"] for v in row["verifications"] if v["status"] == "used"]
    assert prompts["sequential"] == prompts["speculative"]


def test_an_answer_that_does_not_parse_stops_proposing_and_never_matches(tmp_path: Path):
    outputs = iter(["", "<tool>Teleport</tool>", "no tag", "<tool></tool>", "<tool>" * 300])

    def draft_says(request):
        return next(outputs, "nothing")

    with FakeServer(planner()) as target, FakeServer(draft_says) as draft:
        journal = measure(tmp_path, PLANNING, target, draft, 3, limit=2, arms=("speculative",))
    for row in rounds_of(journal, "speculative"):
        assert (row["proposed"], row["accepted"], row["committed"]) == (0, 0, 1)
        assert [p["status"] for p in row["proposals"]] == ["invalid"]
        assert row["draft_model_s"] > 0


def test_the_targets_unparsable_answer_is_committed_as_none_and_ends_the_plan(tmp_path: Path):
    with FakeServer("no idea") as target, FakeServer("no idea") as draft:
        journal = measure(tmp_path, PLANNING, target, draft, 3, limit=1)
    for arm in ("sequential", "speculative"):
        (row,) = rounds_of(journal, arm)
        assert (row["accepted"], row["committed"]) == (0, 1)
        assert row["verifications"][0]["action"] is None


def test_a_plan_without_end_stops_at_the_step_cap(tmp_path: Path):
    with FakeServer("<tool>Colorization</tool>") as both:
        journal = measure(tmp_path, PLANNING, both, both, 5, limit=1)
    for arm in ("sequential", "speculative"):
        assert sum(row["committed"] for row in rounds_of(journal, arm)) == 12


def test_the_parts_of_a_round_add_up(tmp_path: Path):
    times = {"first_token_s": 0.02, "token_s": 0.001}
    with FakeServer(planner(), **times) as target, FakeServer(planner(by_chance)) as draft:
        journal = measure(tmp_path, PLANNING, target, draft, 3, limit=6)
    parts = ("draft_model_s", "proposal_tool_s", "wait_s", "idle_s", "target_tool_s", "residual_s")
    for rows in journal.rows.values():
        for row in rows:
            assert all(row[part] >= 0 for part in parts)
            assert sum(row[part] for part in parts) == pytest.approx(row["wall_s"], abs=1e-12)
        # Between rounds the record is written: on a busy machine that takes its time. How close
        # the two are on a quiet one is what benchmarks/harness_overhead.py measures.
        wall_s = sum(row["wall_s"] for row in rows)
        assert wall_s <= rows[-1]["clock_s"] <= 1.5 * wall_s + 0.5


def test_a_failure_that_the_round_does_not_need_changes_nothing(tmp_path: Path):
    def behind(request):  # the draft is wrong at once, so nobody needs these
        return "Done: nothing yet" not in request.last

    always_wrong = planner(lambda text, step: True)
    with (
        FakeServer(planner(), first_token_s=0.1) as target,
        FakeServer(always_wrong) as draft,
    ):
        target.fail(Fault("status", status=500, when=behind, times=3))
        journal = measure(tmp_path, PLANNING, target, draft, 3, limit=1, arms=("speculative",))
    first = rounds_of(journal, "speculative")[0]
    assert [v["status"] for v in first["verifications"]] == ["used", *["failed"] * 3]


def test_a_failure_that_the_round_needs_ends_the_run_and_is_one_line(tmp_path: Path):
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        target.fail(Fault("status", status=500, skip=4, times=None))  # spare the warm-up
        with pytest.raises(EngineError, match=r"target at http.* answered 500") as caught:
            measure(tmp_path, PLANNING, target, draft, 3, limit=1, arms=("speculative",))
    assert "\n" not in str(caught.value)


def test_speculating_needs_a_draft(tmp_path: Path):
    with FakeServer(planner()) as target, pytest.raises(UsageError, match="depth"):
        measure(tmp_path, PLANNING, target, None, 2, limit=1, arms=("speculative",))
