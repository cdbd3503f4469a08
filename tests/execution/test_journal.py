"""A record that grows by a line a round, survives being killed, and is gone on with."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from leapmodel.errors import DataError, EngineError, UsageError
from leapmodel.execution.fake.server import FakeServer, Fault
from leapmodel.execution.journal import Journal
from leapmodel.execution.recording import ROUNDS_NAME, TRACE_NAME
from leapmodel.trace import read_trace

from .scripted import PLANNING, measure, planner, rounds_of
from .test_loop import by_chance, committed

ABOUT = {"leapmodel": "rounds", "version": 1, "depth": 3}


def stable(rows: list[dict]) -> list[dict]:
    """What of the rounds depends neither on the clock nor on what a cache held."""

    def of(request: dict) -> dict:
        return {k: v for k, v in request.items() if k[-2:] != "_s" and k != "cached_tokens"}

    keep = ("task", "run", "arm", "segment", "round", "first_step", "proposed", "accepted")
    return [
        {k: row[k] for k in keep}
        | {
            "proposals": [of(p) for p in row["proposals"]],
            "used": [of(v) for v in row["verifications"] if v["status"] == "used"],
        }
        for row in rows
    ]


def lines(folder: Path, name: str = ROUNDS_NAME) -> list[dict]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


@pytest.mark.parametrize("after", [1, 9, 23, 40, 55])
def test_a_run_that_broke_off_goes_on_to_the_identical_result(tmp_path: Path, after: int):
    with FakeServer(planner(thought="so ")) as target, FakeServer(planner(by_chance)) as draft:
        whole = measure(tmp_path / "whole", PLANNING, target, draft, 3, limit=6)
        fault = target.fail(Fault("drop", at_token=2, skip=after, times=None))
        with pytest.raises(EngineError):
            measure(tmp_path / "parts", PLANNING, target, draft, 3, limit=6)
        fault.times = 0
        before = lines(tmp_path / "parts")[1:]
        measure(tmp_path / "parts", PLANNING, target, draft, 3, limit=6, resume=True)
    rows = lines(tmp_path / "parts")[1:]
    assert rows[: len(before)] == before
    for arm in ("sequential", "speculative"):
        ours = [row for row in rows if row["arm"] == arm]
        assert stable(ours) == stable(json.loads(json.dumps(rounds_of(whole, arm))))
        for task in {row["task"] for row in ours}:
            clocks = [row["clock_s"] for row in ours if row["task"] == task]
            assert clocks == sorted(clocks)
    trace = read_trace(tmp_path / "parts" / TRACE_NAME)
    assert trace.n_steps == sum(len(task.gold or ()) for task in PLANNING.tasks("test")[:6])


def test_a_half_written_line_is_the_round_that_was_lost(tmp_path: Path):
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        measure(tmp_path, PLANNING, target, draft, 3, limit=3)
        path = tmp_path / ROUNDS_NAME
        data = path.read_bytes()
        whole = lines(tmp_path)
        path.write_bytes(data[: len(data) - 40])
        measure(tmp_path, PLANNING, target, draft, 3, limit=3, resume=True)
    again = lines(tmp_path)
    assert len(again) == len(whole)
    assert stable(again[1:]) == stable(whole[1:])


def test_each_line_is_there_before_the_next_round(tmp_path: Path):
    seen = []

    def target_says(request):
        path = tmp_path / ROUNDS_NAME
        seen.append(len(path.read_text().splitlines()) if path.exists() else 0)
        return planner()(request)

    with FakeServer(target_says) as target:
        measure(tmp_path, PLANNING, target, None, 0, limit=2, arms=("sequential",))
    assert seen == [1, *range(1, len(seen))]  # the warm-up, then one more line each time


def test_resuming_what_is_finished_runs_nothing(tmp_path: Path):
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        measure(tmp_path, PLANNING, target, draft, 2, limit=2)
        before = (tmp_path / ROUNDS_NAME).read_bytes()
        asked = target.finished
        measure(tmp_path, PLANNING, target, draft, 2, limit=2, resume=True)
        assert target.finished == asked
    assert (tmp_path / ROUNDS_NAME).read_bytes() == before


def test_more_tasks_can_be_added(tmp_path: Path):
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        measure(tmp_path, PLANNING, target, draft, 2, limit=2)
        journal = measure(tmp_path, PLANNING, target, draft, 2, limit=4, resume=True)
    assert len(committed(rounds_of(journal, "speculative"))) == 4


def test_what_exists_is_not_written_over(tmp_path: Path):
    with FakeServer(planner()) as target:
        measure(tmp_path, PLANNING, target, None, 0, limit=1, arms=("sequential",))
        with pytest.raises(UsageError, match=r"exists already \(--resume goes on with it\)"):
            measure(tmp_path, PLANNING, target, None, 0, limit=1, arms=("sequential",))


def test_another_runs_record_is_refused(tmp_path: Path):
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        measure(tmp_path, PLANNING, target, draft, 2, limit=1)
        with pytest.raises(UsageError, match="was begun with depth 2, now it is 3"):
            measure(tmp_path, PLANNING, target, draft, 3, limit=1, resume=True)


def test_a_record_has_one_writer(tmp_path: Path):
    path = tmp_path / ROUNDS_NAME
    with Journal(path, ABOUT), pytest.raises(UsageError, match="another run is writing it"):
        Journal(path, ABOUT, resume=True)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("plain text\n", "line 1: expected a JSON object, found 'plain text'"),
        ('{"leapmodel":"trace"}\n', "line 1: expected the metadata of a rounds file"),
        ('{"leapmodel":"rounds","depth":3}\n[]\n', r"line 2: expected a JSON object, found '\[\]'"),
        ('{"leapmodel":"rounds","depth":3}\n{}\n', "line 2, column task: expected a value"),
    ],
)
def test_a_file_that_is_no_record_is_named_and_left_alone(tmp_path: Path, text: str, error: str):
    path = tmp_path / ROUNDS_NAME
    path.write_text(text)
    with pytest.raises(DataError, match=error):
        Journal(path, ABOUT, resume=True, fixed=("depth",))
    assert path.read_text() == text


def test_rounds_the_benchmark_cannot_have_made_are_refused(tmp_path: Path):
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        measure(tmp_path, PLANNING, target, draft, 2, limit=1)
        path = tmp_path / ROUNDS_NAME
        last = path.read_text().splitlines()[-1]
        path.write_text(path.read_text() + last + "\n")
        with pytest.raises(DataError, match="found more rounds"):
            measure(tmp_path, PLANNING, target, draft, 2, limit=1, resume=True)


@pytest.mark.parametrize("room", [700, 2_500, 9_000])
def test_a_full_disk_loses_nothing_that_was_written(tmp_path: Path, room: int):
    """A limit on file sizes fails as a full disk does: some of a line is written, then no more."""
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        try:
            with pytest.raises(UsageError, match=r"can't write it \(File too large\)"):
                measure(tmp_path, PLANNING, target, draft, 2, limit=3)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        left = (tmp_path / ROUNDS_NAME).read_bytes()
        assert len(left) <= room
        assert left == b"" or left.endswith(b"\n")
        measure(tmp_path, PLANNING, target, draft, 2, limit=3, resume=True)
        measure(tmp_path / "whole", PLANNING, target, draft, 2, limit=3)
    assert (tmp_path / ROUNDS_NAME).read_bytes().startswith(left)
    assert stable(lines(tmp_path)[1:]) == stable(lines(tmp_path / "whole")[1:])


def test_the_folder_is_made(tmp_path: Path):
    with FakeServer(planner()) as target:
        measure(tmp_path / "a" / "b", PLANNING, target, None, 0, limit=1, arms=("sequential",))
    assert (tmp_path / "a" / "b" / TRACE_NAME).exists()
