"""The curve of a draft that learns online, against sums done by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leapmodel.errors import DataError
from leapmodel.online_curve import online_curve
from leapmodel.rounds import read_rounds
from leapmodel.trace import Trace
from tests.execution.test_online import Pupil, rows_of, stream


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    folder = tmp_path_factory.mktemp("online")
    versions, _ = stream(folder, Pupil(), "retrain", batches=3)
    return folder, [vars(version) for version in versions]


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
        assert found["agreement"] == versions[batch]["agreement"]
        assert math.isnan(found["low"])  # four tasks are too few
    assert curve.last["number"] == 3
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
