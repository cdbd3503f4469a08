"""The benchmark of a record, whatever its metadata hold."""

import pytest

from leapmodel.benchmarks.recorded import benchmark_of
from leapmodel.errors import DataError, UsageError

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
    "a setting called name": ({"name": 7}, "benchmark planning: .*unexpected keyword .*'name'"),
    "a setting called self": ({"self": 7}, "benchmark planning: .*'self'"),
}


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_settings_that_it_does_not_take(case):
    settings, said = BAD_SETTINGS[case]
    with pytest.raises(UsageError, match=rf"^r\.jsonl: {said}"):
        benchmark_of({"benchmark": {"name": "planning", "settings": settings}}, "r.jsonl")
    with pytest.raises(UsageError, match=rf"^r\.jsonl: {said}"):
        benchmark_of({"benchmark": "planning"}, "r.jsonl", settings=settings)
