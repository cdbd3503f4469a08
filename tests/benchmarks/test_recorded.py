"""The benchmark of a record, whatever its metadata hold."""

from pathlib import Path

import pytest

from leapmodel.benchmarks import PlanningBenchmark
from leapmodel.benchmarks.interface import about_benchmark
from leapmodel.benchmarks.recorded import benchmark_of
from leapmodel.errors import DataError, UsageError
from leapmodel.recorded_settings import refuse_mixed_benchmarks, refuse_other_benchmark

SAID = {"benchmark": {"name": "planning", "settings": {"seed": 5, "draft_tokens": 9}}}


def test_its_name_alone_is_enough():
    assert benchmark_of({"benchmark": "planning"}, "r.jsonl").settings["seed"] == 42


def test_its_settings_are_taken_and_can_be_changed():
    assert benchmark_of(SAID, "r.jsonl").settings["seed"] == 5
    changed = benchmark_of(SAID, "r.jsonl", settings={"seed": 6}).settings
    assert (changed["seed"], changed["draft_tokens"]) == (6, 9)


def test_one_by_name_has_its_own_settings():
    assert benchmark_of(SAID, "r.jsonl", name="planning").settings["seed"] == 5
    for said in (None, 3, {"name": "cooking", "settings": [1]}):
        assert benchmark_of({"benchmark": said}, "r.jsonl", name="planning").settings["seed"] == 42


@pytest.mark.parametrize("said", [None, 3, ["planning"], {}, {"name": None}])
def test_none_is_named(said):
    match = r"^r\.jsonl: expected a benchmark's name in the metadata, found "
    with pytest.raises(DataError, match=match):
        benchmark_of({"benchmark": said}, "r.jsonl")


def test_there_is_no_such_benchmark():
    with pytest.raises(UsageError, match=r"^r\.jsonl: no benchmark 'cooking'"):
        benchmark_of(SAID, "r.jsonl", name="cooking")


@pytest.mark.parametrize("given", [[1], "seed=1", 7])
def test_settings_that_are_no_object(given):
    match = r"^r\.jsonl: expected the benchmark's settings as an object in the metadata, found "
    with pytest.raises(DataError, match=match):
        benchmark_of({"benchmark": {"name": "planning", "settings": given}}, "r.jsonl")


SETTINGS = "its settings are seed, tasks_file, target_tokens, draft_tokens"
BAD_SETTINGS = {
    "a seed that is a list": ({"seed": [1]}, r"seed: expected a whole number, found \[1\]"),
    "a seed that is null": ({"seed": None}, "seed: expected a whole number, found None"),
    "tokens as text": (
        {"target_tokens": "9"},
        "target_tokens: expected a whole number above 0, found '9'",
    ),
    "no tokens": ({"draft_tokens": 0}, "draft_tokens: expected a whole number above 0, found 0"),
    "tasks that are no path": (
        {"tasks_file": {}},
        "tasks_file: expected the path of a file, found {}",
    ),
    "tasks without a path": (
        {"tasks_file": ""},
        "tasks_file: expected the path of a file, found ''",
    ),
    "a setting called name": ({"name": 7}, f"benchmark planning: no setting 'name'; {SETTINGS}$"),
    "a setting called self": ({"self": 7}, f"benchmark planning: no setting 'self'; {SETTINGS}$"),
    "a setting that is misspelt": (
        {"seed": 5, "task_file": "x"},
        f"benchmark planning: no setting 'task_file'; {SETTINGS}$",
    ),
}


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_settings_that_it_does_not_take(case):
    settings, said = BAD_SETTINGS[case]
    with pytest.raises(UsageError, match=rf"^r\.jsonl: {said}"):
        benchmark_of({"benchmark": {"name": "planning", "settings": settings}}, "r.jsonl")
    with pytest.raises(UsageError, match=rf"^r\.jsonl: {said}"):
        benchmark_of({"benchmark": "planning"}, "r.jsonl", settings=settings)


# ------------------------------------------------------------------ other tasks


def listed(path: Path, what: str = "picture") -> Path:
    path.write_text("\n".join(f"Given {what} {i}, how to get its class?" for i in range(20)))
    return path


def test_a_file_of_tasks_that_has_changed_is_refused(tmp_path: Path):
    tasks = listed(tmp_path / "tasks.txt")
    said = {"benchmark": about_benchmark(PlanningBenchmark(tasks_file=tasks))}
    assert benchmark_of(said, "r.jsonl").settings["tasks_file"] == str(tasks)
    listed(tasks, "photo")
    with pytest.raises(UsageError, match=r"^r\.jsonl: was recorded with benchmark tasks_sha256 '"):
        benchmark_of(said, "r.jsonl")
    del said["benchmark"]["tasks_sha256"]  # an older record does not state it
    assert len(benchmark_of(said, "r.jsonl").tasks("train")) == 16


def test_a_file_of_tasks_may_lie_elsewhere(tmp_path: Path):
    said = {"benchmark": about_benchmark(PlanningBenchmark(tasks_file=listed(tmp_path / "a")))}
    (tmp_path / "a").rename(tmp_path / "b")
    moved = benchmark_of(said, "r.jsonl", settings={"tasks_file": str(tmp_path / "b")})
    refuse_other_benchmark(about_benchmark(moved), said, "r.jsonl")
    listed(tmp_path / "b", "photo")
    with pytest.raises(UsageError, match="was recorded with benchmark tasks_sha256 '"):
        benchmark_of(said, "r.jsonl", settings={"tasks_file": str(tmp_path / "b")})


def test_settings_may_be_changed_that_leave_the_tasks_as_they_were():
    said = {"benchmark": about_benchmark(PlanningBenchmark())}
    assert benchmark_of(said, "r.jsonl", settings={"draft_tokens": 9}).settings["draft_tokens"] == 9
    match = r"^r\.jsonl: was recorded with benchmark settings seed 42, now it is 7$"
    with pytest.raises(UsageError, match=match):
        benchmark_of(said, "r.jsonl", settings={"seed": 7})


def planning(**settings: object) -> dict:
    return {"benchmark": about_benchmark(PlanningBenchmark(**settings))}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (planning(seed=7), "settings seed 7, a with 42"),
        (planning(target_tokens=9), "settings target_tokens 9, a with 544"),
        (
            {"benchmark": {"name": "planning", "settings": {"seed": 7}}},
            "settings seed 7, a with 42",
        ),
        ({"benchmark": "cooking"}, "name 'cooking', a with 'planning'"),
        ({"benchmark": {"name": "planning", "tasks_sha256": "x"}}, "tasks_sha256 'x', a with '"),
    ],
)
def test_files_of_different_benchmarks_are_not_compared(other: dict, said: str):
    with pytest.raises(UsageError, match=rf"^c: was recorded with benchmark {said}"):
        refuse_mixed_benchmarks({"a": planning(), "b": {}, "c": other})


@pytest.mark.parametrize(
    "said", [None, "planning", {}, {"name": "planning"}, planning()["benchmark"]]
)
def test_what_a_file_leaves_out_contradicts_nothing(said: object):
    refuse_mixed_benchmarks({"a": {"benchmark": said}, "b": planning(), "c": {"benchmark": said}})


def test_the_same_tasks_may_lie_in_two_places(tmp_path: Path):
    files = {name: planning(tasks_file=listed(tmp_path / name)) for name in "ab"}
    refuse_mixed_benchmarks(files)
    for said in files.values():
        del said["benchmark"]["tasks_sha256"]
    with pytest.raises(
        UsageError, match=r"^b: was recorded with benchmark settings tasks_file .*, a with "
    ):
        refuse_mixed_benchmarks(files)
