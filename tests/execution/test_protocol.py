"""The timing protocol: which arm when, and caches emptied in between."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web

from leapmodel.errors import EngineError, UsageError
from leapmodel.execution.fake.server import FakeServer, Fault
from leapmodel.execution.records import recording
from leapmodel.execution.records.journal import Journal
from leapmodel.execution.talking.endpoint import Endpoint

from .scripted import PLANNING, measure, planner, rounds_of


def test_the_sequential_arm_runs_first_and_no_arm_reuses_the_others_cache(tmp_path: Path):
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        journal = measure(tmp_path, PLANNING, target, draft, 2, limit=3)
    rows = [row for rows in journal.rows.values() for row in rows]
    by_time = sorted(rows, key=lambda row: row["started_s"])
    arms = [row["arm"] for row in by_time]
    assert arms == sorted(arms)  # "sequential" before "speculative"
    for arm in ("sequential", "speculative"):
        first = rounds_of(journal, arm)[0]
        assert first["verifications"][0]["cached_tokens"] == 0
    assert target.resets == [True, True]
    assert draft.resets
    assert draft.requests[0].cached_tokens == 0


def turns_of(journal: Journal) -> list[tuple[str, list[str]]]:
    """The arms in the order in which they ran, each with the tasks of its turn."""
    rows = [row for rows in journal.rows.values() for row in rows]
    found: list[tuple[str, list[str]]] = []
    for row in sorted(rows, key=lambda row: row["started_s"]):
        if not found or found[-1][0] != row["arm"]:
            found.append((row["arm"], []))
        if row["task"] not in found[-1][1]:
            found[-1][1].append(row["task"])
    return found


def test_arms_take_turns_with_caches_emptied_before_each(tmp_path: Path):
    first, second, third = (task.name for task in PLANNING.tasks("test")[:3])
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        journal = measure(tmp_path, PLANNING, target, draft, 2, limit=3, turn=2)
        assert target.resets == [True] * 4
        assert len(draft.resets) == 2
    assert turns_of(journal) == [
        ("sequential", [first, second]),
        ("speculative", [first, second]),
        ("sequential", [third]),
        ("speculative", [third]),
    ]
    assert journal.metadata["turn"] == 2


@pytest.mark.parametrize("broken_after", [1, 4, 9, 14, 20])
def test_turns_go_on_where_they_broke_off(tmp_path: Path, broken_after: int):
    broken = Fault("die", skip=broken_after)
    with FakeServer(planner(), faults=[broken]) as target, FakeServer(planner()) as draft:
        with pytest.raises(EngineError):
            measure(tmp_path, PLANNING, target, draft, 2, limit=4, turn=2)
        journal = measure(tmp_path, PLANNING, target, draft, 2, limit=4, turn=2, resume=True)
        arms = [arm for arm, _ in turns_of(journal)]
        assert arms == ["sequential", "speculative"] * 2
        with pytest.raises(UsageError, match="was begun with turn 2, now it is None"):
            measure(tmp_path, PLANNING, target, draft, 2, limit=4, resume=True)
    steps = [sum(row["committed"] for row in rounds_of(journal, arm)) for arm in sorted(set(arms))]
    assert steps == [sum(len(task.gold or ()) for task in PLANNING.tasks("test")[:4])] * 2


def test_without_a_reset_the_second_arm_would_find_the_firsts_cache(tmp_path: Path):
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        journal = measure(tmp_path, PLANNING, target, draft, 2, limit=3, reset_caches=False)
    first = rounds_of(journal, "speculative")[0]
    assert first["verifications"][0]["cached_tokens"] > 0
    assert "prefix caches were not reset before each arm" in journal.metadata["warnings"]


def test_whether_caches_are_reset_stays_as_it_was(tmp_path: Path):
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        for begun, folder in ((True, tmp_path / "a"), (False, tmp_path / "b")):
            measure(folder, PLANNING, target, draft, 2, limit=1, reset_caches=begun)
            with pytest.raises(UsageError, match=f"with reset_caches {begun}, now it is"):
                measure(
                    folder, PLANNING, target, draft, 2, limit=2, reset_caches=not begun, resume=True
                )


def test_a_record_is_of_one_machine_and_one_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with FakeServer(planner()) as target:

        def go_on(limit: int) -> Journal:
            options = {"arms": ("sequential",), "resume": True}
            return measure(tmp_path, PLANNING, target, None, 0, limit=limit, **options)

        go_on(1)
        for name in ("about_machine", "version"):
            with monkeypatch.context() as patch:
                if name == "version":
                    patch.setattr(Endpoint, name, new_version)
                else:
                    patch.setattr(recording, name, lambda: {"cores": 96})
                with pytest.raises(UsageError, match=r"was begun with (machine|engine) "):
                    go_on(2)
        assert len(go_on(2).rows) == 2


async def new_version(_: Endpoint) -> str:
    return "a newer one"


def test_a_record_keeps_to_its_split(tmp_path: Path):
    with FakeServer("<tool>TERMINATE</tool>") as target:

        def go_on(split: str, limit: int) -> Journal:
            options = {"arms": ("sequential",), "split": split, "resume": True}
            return measure(tmp_path, PLANNING, target, None, 0, limit=limit, **options)

        assert go_on("train", 2).metadata["split"] == "train"
        with pytest.raises(UsageError, match="was begun with split 'train', now it is 'test'"):
            go_on("test", 2)
        assert len(go_on("train", 3).rows) == 3


class Busy(FakeServer):
    """A server that always has a request running, so that its cache is never reset."""

    async def _reset_prefix_cache(self, request: web.Request) -> web.Response:
        return web.json_response({"success": False})


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_reset_that_did_not_happen_is_an_error(tmp_path: Path, role: str):
    kinds = {"target": FakeServer, "draft": FakeServer, role: Busy}
    with (
        kinds["target"](planner()) as target,
        kinds["draft"](planner()) as draft,
        pytest.raises(EngineError, match=f"^{role} at .*cache was not reset"),
    ):
        measure(tmp_path, PLANNING, target, draft, 2, limit=1)


class Saying(FakeServer):
    """A server that answers a set text when it is told to empty its cache."""

    said = ""

    async def _reset_prefix_cache(self, request: web.Request) -> web.Response:
        self.resets.append(True)
        return web.Response(text=self.said)


@pytest.mark.parametrize(
    "said",
    [
        "<html>Welcome</html>",
        "false",
        "true",
        "[]",
        '{"success":"false"}',
        '{"success":1}',
        '{"success":null}',
        '{"error":"no such call"}',
        '{"success":true,"error":{"message":"no"}}',
        pytest.param("[" * 100_000, id="deep"),
    ],
)
def test_only_word_of_a_reset_is_taken_for_one(tmp_path: Path, said: str):
    with Saying(planner()) as target:
        target.said = said
        expected = r"^target at .*: expected word that the prefix cache was reset, .*\(--no-reset"
        with pytest.raises(EngineError, match=expected):
            measure(tmp_path, PLANNING, target, None, 0, limit=1, arms=("sequential",))
        assert target.resets == [True]  # it is not asked again


@pytest.mark.parametrize("said", ["", " \n", "{}", '{"success":true}', '{"error":null}'])
def test_what_is_taken_for_a_reset(tmp_path: Path, said: str):
    with Saying(planner()) as target:
        target.said = said
        measure(tmp_path, PLANNING, target, None, 0, limit=1, arms=("sequential",))


class Plain(FakeServer):
    """A server of another make, that has no call to empty its cache."""

    async def _reset_prefix_cache(self, request: web.Request) -> web.Response:
        raise web.HTTPNotFound


def test_a_server_that_can_not_reset_is_used_when_that_is_wanted(tmp_path: Path):
    with Plain(planner()) as target, Plain(planner()) as draft:
        with pytest.raises(EngineError, match=r"answered 404.*\(--no-reset leaves"):
            measure(tmp_path / "a", PLANNING, target, draft, 2, limit=1)
        journal = measure(tmp_path / "b", PLANNING, target, draft, 2, limit=1, reset_caches=False)
    assert rounds_of(journal, "speculative")


def test_tasks_at_a_time_are_said_in_the_record(tmp_path: Path):
    with FakeServer(planner(), first_token_s=0.02) as target:
        journal = measure(
            tmp_path, PLANNING, target, None, 0, limit=8, arms=("sequential",), concurrency=4
        )
    assert "4 tasks ran at a time" in journal.metadata["warnings"][0]
    rows = [row for rows in journal.rows.values() for row in rows]
    starts = sorted(row["started_s"] for row in rows)
    assert starts[3] - starts[0] < 0.02
    assert len(journal.rows) == 8


def test_a_failure_stops_the_tasks_beside_it(tmp_path: Path):
    with FakeServer(planner(), first_token_s=0.02) as target:
        target.fail(Fault("reset", at_token=1, skip=9, times=1))
        with pytest.raises(EngineError, match="the connection failed"):
            measure(
                tmp_path, PLANNING, target, None, 0, limit=8, arms=("sequential",), concurrency=4
            )
        assert target.wait_for(lambda server: server.running == 0)
