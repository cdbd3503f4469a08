"""The curve of a draft that learns online, against sums done by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leapmodel.errors import DataError
from leapmodel.online_curve import online_curve, read_online_curves
from leapmodel.rounds import read_rounds, write_rounds
from leapmodel.trace import Trace
from leapmodel.versions import Version, write_versions
from tests.execution.test_online import Pupil, rows_of, stream


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Version]]:
    folder = tmp_path_factory.mktemp("online")
    versions, _ = stream(folder, Pupil(), "retrain", batches=3)
    return folder, versions


def test_each_batch_is_compared_with_its_own_tasks(recorded):
    folder, versions = recorded
    curve = online_curve(read_rounds(folder / "rounds.jsonl"), versions)
    rows = pd.DataFrame(rows_of(folder))
    for batch, found in curve.table.iterrows():
        mine = rows[rows["batch"] == batch]
        alone, both = (mine[mine["arm"] == arm] for arm in ("sequential", "speculative"))
        gen_s = sum(v[0]["end_s"] - v[0]["start_s"] for v in alone["verifications"])
        gen_s += alone["target_tool_s"].sum()
        expected = (gen_s / len(alone)) / (both["wall_s"].sum() / both["committed"].sum())
        assert found["speedup"] == pytest.approx(expected)
        assert found["tasks"] == 4
        compared = sum(min(row.accepted + 1, row.proposed) for row in both.itertuples())
        assert found["acceptance"] == pytest.approx(both["accepted"].sum() / compared)
        assert found["agreement"] == versions[batch].agreement
        assert math.isnan(found["low"])  # four tasks are too few
    alone, both = (rows[rows["arm"] == arm] for arm in ("sequential", "speculative"))
    gen_s = sum(v[0]["end_s"] - v[0]["start_s"] for v in alone["verifications"])
    gen_s += alone["target_tool_s"].sum()
    whole = (gen_s / len(alone)) / (both["wall_s"].sum() / both["committed"].sum())
    so_far = curve.table["speedup_so_far"]
    assert so_far.iloc[-1] == pytest.approx(whole)
    assert so_far[0] == curve.table["speedup"][0]
    assert curve.last.number == 3
    assert "online, retrain" in curve.summary()
    assert curve.to_dict()["batches"][0]["low"] is None


def test_a_sequential_trace_can_be_given_apart(recorded):
    folder, versions = recorded
    rounds = read_rounds(folder / "rounds.jsonl")
    alone = rounds.sequential_trace()
    slower = Trace.from_frame(alone.frame.assign(gen_s=2 * alone.frame["gen_s"]))
    ours = online_curve(rounds, versions, sequential=slower).table["speedup"]
    ratio = ours / online_curve(rounds, versions).table["speedup"]
    assert np.allclose(ratio, 2, atol=0.01)
    few = Trace.from_frame(alone.frame[alone.frame["task"] == alone.task_names[0]])
    with pytest.raises(DataError, match="the tasks of batch 0, found none named"):
        online_curve(rounds, versions, sequential=few)


def test_rounds_without_batches_are_refused(recorded):
    rounds = read_rounds(recorded[0] / "rounds.jsonl")
    with pytest.raises(DataError, match="the batches of an online run"):
        online_curve(rounds.sequential, [])


@pytest.fixture
def kept(recorded, tmp_path: Path) -> Path:
    """A folder as make measure-online leaves it."""
    folder, versions = recorded
    rounds = read_rounds(folder / "rounds.jsonl")
    write_rounds(rounds, tmp_path / "retrain.rounds.parquet")
    write_versions(tmp_path / "retrain.versions.json", versions)
    return tmp_path


def test_a_kept_measurement_is_read_back(recorded, kept: Path):
    folder, versions = recorded
    (method, curve), *others = read_online_curves(kept).items()
    assert (method, others) == ("retrain", [])
    whole = online_curve(read_rounds(folder / "rounds.jsonl"), versions)
    pd.testing.assert_frame_equal(curve.table, whole.table)
    assert curve.last == versions[-1]


def test_a_kept_measurement_that_is_not_whole_is_refused(kept: Path, tmp_path: Path):
    versions = kept / "retrain.versions.json"
    for text, said in (
        ("", "expected a JSON array"),
        ("{}", "expected a JSON array of versions"),
        ("[3]", "row 1: expected a JSON object"),
        ('[{"number": false}]', "row 1, column number: expected 0"),
        ("[" * 100_000, "expected a JSON array"),
    ):
        versions.write_text(text)
        with pytest.raises(DataError, match=rf"versions\.json.*{said}"):
            read_online_curves(kept)
    versions.write_text("[]")
    (kept / "retrain.rounds.parquet").unlink()
    with pytest.raises(DataError, match=r"retrain\.rounds\.parquet"):
        read_online_curves(kept)
    versions.unlink()
    with pytest.raises(DataError, match="as make measure-online writes"):
        read_online_curves(kept)


def test_agreement_is_drawn_from_the_base_to_the_last_version(recorded):
    folder, versions = recorded
    curve = online_curve(read_rounds(folder / "rounds.jsonl"), versions)
    line = curve.plot_agreement().containers[0].lines[0]
    assert line.get_xdata().tolist() == [0, 4, 8, 12]
    assert line.get_ydata().tolist() == [version.agreement for version in versions]
    unscored = [replace(version, agreement=None) for version in versions]
    with pytest.raises(DataError, match="expected scores, found none"):
        online_curve(read_rounds(folder / "rounds.jsonl"), unscored).plot_agreement()
