"""A folder of measured runs read back: the same rows as file by file, side by side."""

import json

import pytest

from leapmodel.errors import DataError, UsageError
from leapmodel.measured_set import read_measured_set
from leapmodel.predictions import write_predictions
from leapmodel.probes import Probe, TokenTime
from leapmodel.rounds import write_rounds
from leapmodel.set_validation import validate_set
from leapmodel.trace import write_trace
from leapmodel.validation import validate
from tests.execution.simulated import simulate
from tests.questions.test_validation import predictions_of

TIMES = (TokenTime(1, 30.0, 0.1, 8), TokenTime(2, 33.0, 0.1, 8))
DEPTHS = {"small": 2, "large": 3}


@pytest.fixture
def folder(tmp_path):
    for name, depth in DEPTHS.items():
        place = tmp_path / name
        place.mkdir()
        rounds = simulate(n_tasks=12, depth=depth)
        write_trace(rounds.sequential_trace(), place / "trace.parquet")
        write_rounds(rounds, place / f"trained-k{depth}.rounds.parquet")
        write_predictions(predictions_of(rounds), place / "trained.predictions.parquet")
        probe = Probe("scripted draft", "target", 0.07, 0.01, 20, TIMES)
        (place / "trained.probe.json").write_text(json.dumps(probe.to_dict()))
    (tmp_path / "about.json").write_text("{}")
    (tmp_path / "other").mkdir()
    return tmp_path


def test_it_is_read_pair_by_pair(folder):
    pairs = read_measured_set(folder)
    assert list(pairs) == ["large", "small"]
    assert list(pairs["large"].rounds) == ["trained-k3"]
    assert [probe.draft_latency_s for probe in pairs["small"].probes] == [0.07]
    assert pairs["small"].trace.n_tasks == 12


def test_its_rows_are_those_of_each_folder_by_itself(folder):
    together = validate_set(folder, n_resamples=100)
    apart = [
        validate(
            pair.rounds,
            pair.trace,
            predictions=pair.predictions,
            draft_latency_s=0.07,
            slowdown=[1.0, 1.1],
            n_resamples=100,
        ).rows[0]
        for pair in read_measured_set(folder).values()
    ]
    assert [row.depth for row in together.rows] == [3, 2]
    assert [row.to_dict() for row in together.rows] == [row.to_dict() for row in apart]
    assert "of 2 within 0.05" in together.sentence


def test_the_folder_of_a_pair_is_a_set_of_one(folder, monkeypatch):
    (alone,) = validate_set(folder / "small", n_resamples=100).rows
    (together,) = (row for row in validate_set(folder, n_resamples=100).rows if row.depth == 2)
    assert alone.to_dict() == together.to_dict()
    monkeypatch.chdir(folder / "small")
    assert list(read_measured_set(".")) == ["small"]


def test_a_folder_without_any_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"trace\.parquet"):
        read_measured_set(tmp_path)
    with pytest.raises(DataError, match="nowhere"):
        read_measured_set(tmp_path / "nowhere")


def test_an_unfinished_set_shows_what_is_there(folder):
    (folder / "large" / "trained-k3.rounds.parquet").unlink()
    (folder / "small" / "trained.predictions.parquet").unlink()
    answer = validate_set(folder, n_resamples=100)
    assert [row.depth for row in answer.rows] == [2]
    assert "large: no speculative run yet, left out" in answer.warnings
    assert "small: a probe, but no predictions: nothing is said beforehand" in answer.warnings
    (folder / "small" / "trained-k2.rounds.parquet").unlink()
    with pytest.raises(DataError, match=r"expected a speculative run in a \*\.rounds\.parquet"):
        validate_set(folder, n_resamples=100)


def test_two_probes_of_one_draft_are_refused(folder):
    there = folder / "small" / "trained.probe.json"
    (folder / "small" / "again.probe.json").write_bytes(there.read_bytes())
    with pytest.raises(UsageError, match="expected one probe of each draft, found 2"):
        validate_set(folder, n_resamples=100)
