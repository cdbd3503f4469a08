"""A record that grows by a line a round, survives being killed, and is gone on with."""

from __future__ import annotations

import json
import resource
import shutil
import time
from codecs import BOM_UTF8
from pathlib import Path

import pytest

from leapmodel.benchmarks.planning import PlanningBenchmark
from leapmodel.errors import DataError, EngineError, UsageError
from leapmodel.execution.fake.server import FakeServer, Fault
from leapmodel.execution.records.journal import Journal
from leapmodel.execution.records.recording import ROUNDS_NAME, TRACE_NAME
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
        measure(tmp_path, PLANNING, target, draft, 2, limit=1, split="test")
        for depth, changed, said in (
            (3, {}, "depth 2, now it is 3"),
            (2, {"name": "b" * 80}, r"draft name 'scripted', now it is 'bbb"),
            (2, {"reset_caches": False}, "reset_caches True, now it is False"),
            (2, {"mode": "gather"}, "mode 'prefix', now it is 'gather'"),
            (2, {"split": "train"}, "split 'test', now it is 'train'"),
        ):
            with pytest.raises(UsageError, match=rf"was begun with {said}"):
                measure(
                    tmp_path, PLANNING, target, draft, depth, limit=1, resume=True,
                    **{"split": "test", **changed},
                )  # fmt: skip


def test_a_file_of_tasks_that_has_changed_is_refused(tmp_path: Path):
    listed, folder = tmp_path / "tasks.txt", tmp_path / "out"

    def go_on(**options: bool) -> None:
        benchmark = PlanningBenchmark(tasks_file=listed)
        with FakeServer("<tool>TERMINATE</tool>") as target:
            measure(folder, benchmark, target, None, 0, limit=2, arms=("sequential",), **options)

    listed.write_text("\n".join(f"Given picture {i}, how to get its class?" for i in range(20)))
    go_on()
    go_on(resume=True)
    listed.write_text(listed.read_text().replace("picture 3", "picture 33"))
    with pytest.raises(UsageError, match="was begun with benchmark tasks_sha256 '"):
        go_on(resume=True)


def test_a_record_that_states_less_is_gone_on_with(recorded: Path, tmp_path: Path):
    about, *rows = lines(recorded)
    for name in ("split", "reset_caches"):
        about.pop(name, None)
    del about["benchmark"]["tasks_sha256"]
    written = [about, *rows[:-1]]
    (tmp_path / ROUNDS_NAME).write_text("".join(json.dumps(row) + "\n" for row in written))
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        measure(tmp_path, PLANNING, target, draft, 1, limit=2, resume=True, split="test")
    assert stable(lines(tmp_path)[1:]) == stable(rows)


@pytest.mark.parametrize("resume", [False, True])
def test_a_trace_that_no_record_made_is_not_written_over(tmp_path: Path, resume: bool):
    (tmp_path / TRACE_NAME).write_text(text := '{"task":"mine","step":0,"gen_s":1}\n')
    with FakeServer(planner()) as target:

        def go_on() -> None:
            options = {"limit": 1, "arms": ("sequential",), "resume": resume}
            measure(tmp_path, PLANNING, target, None, 0, **options)

        said = rf"{TRACE_NAME}: exists already, without a {ROUNDS_NAME} that it belongs to"
        with pytest.raises(UsageError, match=said):
            go_on()
        assert not (tmp_path / ROUNDS_NAME).exists()
        assert (tmp_path / TRACE_NAME).read_text() == text
        (tmp_path / TRACE_NAME).write_text("")
        go_on()
    assert read_trace(tmp_path / TRACE_NAME).n_tasks == 1


def test_another_trace_beside_the_rounds_is_not_written_over(recorded: Path, tmp_path: Path):
    shutil.copy(recorded / ROUNDS_NAME, tmp_path)
    for text in ('{"task":"mine","step":0,"gen_s":1}\n', '{"leapmodel":"trace","begun":"x"}\n'):
        (tmp_path / TRACE_NAME).write_text(text)
        with (
            FakeServer(planner()) as target,
            FakeServer(planner()) as draft,
            pytest.raises(UsageError, match=r"is not the trace of rounds\.jsonl beside it"),
        ):
            measure(tmp_path, PLANNING, target, draft, 1, limit=2, resume=True)
        assert (tmp_path / TRACE_NAME).read_text() == text


def test_a_record_has_one_writer(tmp_path: Path):
    path = tmp_path / ROUNDS_NAME
    with Journal(path, ABOUT), pytest.raises(UsageError, match="another run is writing it"):
        Journal(path, ABOUT, resume=True)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("plain text\n", "line 1: expected a JSON object, found Expecting value at position 1"),
        ("no line end", "line 1: expected the metadata of a rounds file, found 'no line end'"),
        ('{"leapmodel":"trace","version":1', "line 1: expected the metadata of a rounds file"),
        ("\x1f\x8b\x08 packed", "line 1: expected the metadata of a rounds file"),
        ('{"leapmodel":"rounds","version":7}\n', "expected format version 1, found version 7"),
        ('{"leapmodel":"trace"}\n', "line 1: expected the metadata of a rounds file"),
        ('{"leapmodel":"rounds","depth":3}\n[]\n', r"line 2: expected a JSON object, found \[\]"),
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
        last = lines(tmp_path)[-1]
        last["round"] += 1
        last["first_step"] += last["committed"]
        path.write_text(path.read_text() + json.dumps(last) + "\n")
        with pytest.raises(DataError, match="found more rounds"):
            measure(tmp_path, PLANNING, target, draft, 2, limit=1, resume=True)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks in both arms."""
    folder = tmp_path_factory.mktemp("recorded")
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        measure(folder, PLANNING, target, draft, 1, limit=2)
    return folder


def damaged(recorded: Path, folder: Path, change) -> None:
    """Go on with a record whose rows were changed, and make sure that nothing else happens."""
    rows = lines(recorded)
    change(rows)
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    (folder / ROUNDS_NAME).write_text(text)
    shutil.copy(recorded / TRACE_NAME, folder)
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        try:
            measure(folder, PLANNING, target, draft, 1, limit=2, resume=True)
        finally:
            assert target.finished == 0
            assert (folder / ROUNDS_NAME).read_text() == text
            assert (folder / TRACE_NAME).read_bytes() == (recorded / TRACE_NAME).read_bytes()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("committed", None, "column committed: expected a value, found nothing"),
        ("committed", "2", "column committed: expected a whole number >= 0, found the text '2'"),
        ("committed", 7, "column committed: expected accepted or accepted"),
        ("verifications", None, "column verifications: expected a value, found nothing"),
        ("verifications", "x", "column verifications: expected a list of objects"),
        ("verifications", [{}], r"column verifications\[0\]"),
        ("verifications", [], "column committed: expected the verifications of status used"),
        ("task", ["a"], "column task: expected text"),
        ("clock_s", "x", "column clock_s: expected a number >= 0, found the text 'x'"),
        ("clock_s", None, "column clock_s: expected a value, found nothing"),
        ("run", "0", "column run: expected a whole number >= 0, found the text '0'"),
        ("run", None, "column run: expected a value, found nothing"),
        ("arm", "other", "column arm: expected sequential or speculative, found the text 'other'"),
        ("first_step", 5, "column first_step: expected"),
    ],
)
def test_a_row_that_is_no_round_is_named(
    recorded: Path, tmp_path: Path, name: str, value: object, said: str
):
    with pytest.raises(DataError, match=rf"{ROUNDS_NAME}: line 3, {said}"):
        damaged(recorded, tmp_path, lambda rows: rows[2].update({name: value}))


def test_a_row_that_lacks_a_field_is_named(recorded: Path, tmp_path: Path):
    with pytest.raises(DataError, match="line 3, column committed: expected a value, found noth"):
        damaged(recorded, tmp_path, lambda rows: rows[2].pop("committed"))
    said = r"line 3, column verifications\[0\].action: expected a value or null, found nothing"
    with pytest.raises(DataError, match=said):
        damaged(recorded, tmp_path, lambda rows: rows[2]["verifications"][0].pop("action"))


@pytest.mark.parametrize("before", [0, 1, 3, -1])
@pytest.mark.parametrize("blank", ["\n", " \t\r\n"])
def test_a_blank_line_holds_nothing(recorded: Path, tmp_path: Path, before: int, blank: str):
    text = (recorded / ROUNDS_NAME).read_text().splitlines(keepends=True)
    text.insert(before, blank)
    assert_finished("".join(text).encode(), recorded, tmp_path)


def test_a_byte_order_mark_holds_nothing(recorded: Path, tmp_path: Path):
    assert_finished(BOM_UTF8 + (recorded / ROUNDS_NAME).read_bytes(), recorded, tmp_path)


def assert_finished(record: bytes, recorded: Path, folder: Path) -> None:
    """Audit and go on with a record of what was recorded; nothing is left to do."""
    (folder / ROUNDS_NAME).write_bytes(record)
    shutil.copy(recorded / TRACE_NAME, folder)
    with FakeServer(planner()) as target, FakeServer(planner()) as draft:
        measure(folder, PLANNING, target, draft, 1, limit=2, resume=True)
        assert target.finished == 0
    assert (folder / ROUNDS_NAME).read_bytes() == record


def test_a_line_that_is_missing_or_there_twice_is_named(recorded: Path, tmp_path: Path):
    with pytest.raises(DataError, match=r"line 3, column round: expected rounds without a gap"):
        damaged(recorded, tmp_path, lambda rows: rows.pop(2))
    with pytest.raises(DataError, match=r"column round: expected each \(task, run, arm, round\) o"):
        damaged(recorded, tmp_path, lambda rows: rows.insert(2, rows[2]))
    said = "line 3, column round: expected 1, as rounds are written in their order, found 2"
    with pytest.raises(DataError, match=said):
        damaged(recorded, tmp_path, lambda rows: rows.insert(2, rows.pop(3)))


def test_a_long_record_is_read_in_seconds(recorded: Path, tmp_path: Path):
    """Timed against the same record a quarter as long, as machines differ."""
    about, *rows = lines(recorded)

    def seconds(copies: int) -> float:
        path = tmp_path / f"{copies}.jsonl"
        with open(path, "w") as file:
            file.write(json.dumps(about) + "\n")
            for run in range(copies):
                file.writelines(json.dumps({**row, "run": run}) + "\n" for row in rows)
        began = time.process_time()
        with Journal(path, about, resume=True) as journal:
            assert sum(map(len, journal.rows.values())) == copies * len(rows)
        return time.process_time() - began

    short = seconds(1_000 // len(rows))
    assert seconds(4_000 // len(rows)) < 8 * short + 0.5


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
